//! Processing of an ACK (Linux `tcp_ack`): what it delivers, what that says about loss, rate and window.

use tcplab_control::{AckSample, CaState, RateSample};

use crate::ack_flags::AckFlags;
use crate::scoreboard::{BURST_START, EVER_RETRANS, HAS_FIN, LONE_RUNT, LOST, RETRANS, SACKED};
use crate::seq::{after, before};
use crate::transmit::Push;
use crate::{Connection, Segment};

// Flags of `in_ack_event` (Linux `enum tcp_ca_ack_event_flags`).
const CA_ACK_SLOWPATH: u32 = 1;
const CA_ACK_WIN_UPDATE: u32 = 2;
const CA_ACK_ECE: u32 = 4;

/// The segments to send once the window is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rexmit {
    Nothing,
    /// Lost segments, then new ones.
    Lost,
    /// New segments only (F-RTO).
    New,
}

/// State gathered while one ACK is processed.
pub(crate) struct AckState {
    pub flags: AckFlags,
    pub rate: RateSample,
    /// Place in the order of sending of the segment that made the sample.
    pub rate_order: u32,
    /// Lowest never-retransmitted segment this ACK delivered below something delivered before.
    pub reorder: u32,
    /// Send times of the first and last never-retransmitted segment newly SACKed; 0: none.
    pub first_sacked_us: u64,
    pub last_sacked_us: u64,
    /// Segments delivered by SACK, duplicates included.
    pub sack_delivered: u32,
    /// Flags of `in_ack_event`.
    event: u32,
}

impl Connection {
    /// Processes the acknowledgment of `segment`; false if it acknowledges what was never sent.
    ///
    /// In this order, because each step reads what those before it have found:
    /// 1. the header: send window, `snd_una`, SACK blocks, ECN echo (`note_ack_header`);
    /// 2. the scoreboard gives up what is acknowledged, which shows RTT and reordering (`clean_acknowledged`), and with
    ///    accurate ECN how many of its marks are new (`raise_ack_event`);
    /// 3. RACK's reordering window is adapted, since the last step may have seen a duplicate (`rack_adapt_window`);
    /// 4. a tail loss probe that is out is evaluated before losses, for it may start a reduction (`process_probe_ack`);
    /// 5. the congestion state: losses, recovery, undo (`process_recovery`), only where the ACK is not plain progress;
    /// 6. the timer is set anew, for a probe or a timeout;
    /// 7. the rate sample is completed, with the losses found (`rate_generate`);
    /// 8. the control, or a reduction under way, sets window and pacing rate from it (`control_window`);
    /// 9. what is lost is retransmitted as far as that window allows (`transmit_after_ack`). New data follows later,
    ///    in `push_pending`, after the segment's own data is taken in, so that it can carry the ACK of that.
    pub(crate) fn process_ack(&mut self, segment: &Segment) -> bool {
        let ack = segment.ack;
        let prior_snd_una = self.sk.snd_una;
        if self.says_nothing_new(segment) {
            self.snd.wl1 = segment.seq;
            return true;
        }
        let mut state = AckState {
            flags: AckFlags::default(),
            rate: RateSample::default(),
            rate_order: 0,
            reorder: self.sk.snd_nxt,
            first_sacked_us: 0,
            last_sacked_us: 0,
            sack_delivered: 0,
            event: 0,
        };
        if before(ack, prior_snd_una) {
            self.process_old_ack(segment, &mut state);
            return true;
        }
        if after(ack, self.sk.snd_nxt) {
            return false;
        }
        let reneged = self.snd.reneged;
        let (prior_delivered, prior_lost) = (self.sk.delivered, self.sk.lost);
        let prior_packets = self.sk.packets_out;
        let prior_highest = if self.sack_ok { self.highest_sacked() } else { prior_snd_una };
        state.rate.prior_in_flight = self.sk.packets_in_flight();
        if after(ack, prior_snd_una) {
            state.flags.una_advanced = true;
            self.sk.icsk_retransmits = 0;
        }
        self.note_ack_header(segment, prior_snd_una, &mut state);
        self.snd.persist.note_answer();
        if prior_packets == 0 {
            self.process_ack_of_nothing(segment, prior_snd_una, &mut state);
            return true;
        }
        self.clean_acknowledged(prior_highest, prior_snd_una, &mut state);
        self.raise_ack_event(segment, self.sk.delivered.wrapping_sub(prior_delivered), &mut state);
        self.rack_adapt_window(state.rate.prior_delivered);
        if self.snd.tail_loss.is_out() {
            self.process_probe_ack(ack, state.flags);
        }
        let mut rexmit = Rexmit::Nothing;
        if self.is_dubious(&state.flags) {
            let flags = &state.flags;
            let duplicate = flags.may_be_duplicate() && !flags.una_advanced && !flags.dsack;
            self.process_recovery(prior_snd_una, u32::from(duplicate), &mut state.flags, &mut rexmit);
        }
        if state.flags.restart_timer && !self.schedule_loss_probe(true) {
            self.rearm_rto();
        }
        let delivered = self.sk.delivered.wrapping_sub(prior_delivered);
        let lost = self.sk.lost.wrapping_sub(prior_lost);
        state.rate.is_ack_delayed = u8::from(state.flags.maybe_delayed);
        self.rate_generate(delivered, lost, reneged, &mut state.rate);
        self.control_window(ack, delivered, &state);
        self.transmit_after_ack(rexmit);
        true
    }

    /// An ACK that a later one overtook: only its SACK blocks may be new.
    #[cold]
    fn process_old_ack(&mut self, segment: &Segment, state: &mut AckState) {
        if segment.sack_count > 0 && self.sack_ok {
            let (snd_una, mut rexmit) = (self.sk.snd_una, Rexmit::Nothing);
            self.process_sack(segment, snd_una, state);
            self.process_recovery(snd_una, 0, &mut state.flags, &mut rexmit);
            self.transmit_after_ack(rexmit);
        }
    }

    /// An ACK that arrives while nothing is in flight.
    #[cold]
    fn process_ack_of_nothing(&mut self, segment: &Segment, prior_snd_una: u32, state: &mut AckState) {
        self.raise_ack_event(segment, 0, state);
        if state.flags.dsack {
            self.process_recovery(prior_snd_una, 0, &mut state.flags, &mut Rexmit::Nothing);
        }
        self.window_probe_acked();
        self.process_probe_ack(segment.ack, state.flags);
    }

    /// Data whose ACK is the one we know, while we have nothing to send: a one-way transfer's receiver
    /// (Linux's header prediction does not call `tcp_ack` then either).
    fn says_nothing_new(&self, segment: &Segment) -> bool {
        segment.len > 0
            && segment.ack == self.sk.snd_una
            && segment.sack_count == 0
            && self.sk.packets_out == 0
            && u32::from(segment.window) << self.snd.wscale == self.snd.wnd
            && !self.has_unsent()
            && !self.ecn_echoed(segment)
    }

    /// Send window, SACK blocks, ECN echo; in-order ACKs with an unchanged window take the short way.
    fn note_ack_header(&mut self, segment: &Segment, prior_snd_una: u32, state: &mut AckState) {
        let window = u32::from(segment.window) << self.snd.wscale;
        let echo = self.ecn_echoed(segment);
        let plain =
            window == self.snd.wnd && segment.sack_count == 0 && !echo && !segment.occupies_sequence();
        if plain && state.flags.una_advanced {
            self.snd.wl1 = segment.seq;
            self.advance_snd_una(segment.ack);
            state.flags.window_update = true;
            state.event = CA_ACK_WIN_UPDATE;
        } else {
            self.note_whole_header(segment, window, echo, prior_snd_una, state);
        }
    }

    /// The same for an ACK that carries data, SACK blocks, an ECN echo or another window.
    #[inline(never)]
    fn note_whole_header(
        &mut self,
        segment: &Segment,
        window: u32,
        echo: bool,
        prior_snd_una: u32,
        state: &mut AckState,
    ) {
        state.event = CA_ACK_SLOWPATH;
        state.flags.carries_data = segment.occupies_sequence();
        self.update_window(segment, window, state);
        self.advance_snd_una(segment.ack);
        if segment.sack_count > 0 && self.sack_ok {
            self.process_sack(segment, prior_snd_una, state);
        }
        if echo {
            state.flags.ece = true;
            state.event |= CA_ACK_ECE;
        }
        if state.sack_delivered > 0 {
            self.count_delivered(state.sack_delivered, echo);
        }
        if state.flags.window_update {
            state.event |= CA_ACK_WIN_UPDATE;
        }
    }

    /// Counts the marks that the ACK reports of the `delivered` packets it newly acknowledges (RFC 9768), and tells the control
    /// of the ACK. The control sees these packets as delivered, as in Linux since 6.16 (`tcp_in_ack_event`).
    fn raise_ack_event(&mut self, segment: &Segment, delivered: u32, state: &mut AckState) {
        if self.accurate() {
            self.count_marked(segment, delivered, state);
        }
        self.snd.control.in_ack_event(&mut self.sk, state.event);
    }

    #[cold]
    fn count_marked(&mut self, segment: &Segment, delivered: u32, state: &mut AckState) {
        let marked = self.accecn_newly_marked(segment, delivered);
        if marked > 0 {
            self.sk.delivered_ce = self.sk.delivered_ce.wrapping_add(marked);
            state.flags.ece = true;
            state.event |= CA_ACK_ECE;
        }
    }

    fn update_window(&mut self, segment: &Segment, window: u32, state: &mut AckState) {
        let newer = after(segment.ack, self.sk.snd_una)
            || after(segment.seq, self.snd.wl1)
            || (segment.seq == self.snd.wl1 && (window > self.snd.wnd || window == 0));
        if !newer {
            return;
        }
        state.flags.window_update = true;
        self.snd.wl1 = segment.seq;
        if self.snd.wnd != window {
            self.snd.wnd = window;
            if window > self.snd.max_window {
                self.snd.max_window = window;
                self.sync_mss();
            }
            if self.has_unsent() {
                self.restart_after_idle();
            }
        }
    }

    fn advance_snd_una(&mut self, ack: u32) {
        self.sk.bytes_acked += u64::from(ack.wrapping_sub(self.sk.snd_una));
        self.sk.snd_una = ack;
    }

    pub(crate) fn count_delivered(&mut self, segments: u32, echo: bool) {
        self.sk.delivered = self.sk.delivered.wrapping_add(segments);
        if echo {
            self.sk.delivered_ce = self.sk.delivered_ce.wrapping_add(segments);
        }
    }

    /// Takes off what the ACK covers, and the RTT it shows (Linux `tcp_clean_rtx_queue`).
    fn clean_acknowledged(&mut self, prior_highest: u32, prior_snd_una: u32, state: &mut AckState) {
        let snd_una = self.sk.snd_una;
        let now = self.sk.tcp_mstamp;
        let prior_sacked = self.sk.sacked_out;
        let echo = state.flags.ece;
        let (mut first_us, mut last_us) = (0, 0);
        let mut lowest = prior_highest;
        let mut acked = 0;
        let mut lone_runt = false;
        while !self.snd.board.is_empty() {
            let id = self.snd.board.head();
            let sent = *self.snd.board.get(id);
            if after(sent.end_seq, snd_una) {
                break;
            }
            // Most were sent once and are acknowledged in order.
            let is_plain = !sent.has(RETRANS | EVER_RETRANS | SACKED | LOST | HAS_FIN);
            if !is_plain && sent.has(RETRANS | EVER_RETRANS) {
                if sent.has(RETRANS) {
                    self.sk.retrans_out -= 1;
                }
                state.flags.retransmission_acked = true;
            } else if is_plain || !sent.has(SACKED) {
                last_us = sent.sent_us;
                lone_runt = sent.has(LONE_RUNT);
                if first_us == 0 {
                    first_us = last_us;
                }
                if before(sent.seq, lowest) {
                    lowest = sent.seq;
                }
                if !after(sent.end_seq, self.sk.high_seq) {
                    state.flags.original_delivered = true;
                }
            }
            if !is_plain && sent.has(SACKED) {
                self.sk.sacked_out -= 1;
            } else if self.sack_ok {
                self.count_delivered(1, echo);
                if is_plain || !(sent.retransmitted() && self.echo_predates(sent.sent_us)) {
                    self.rack_advance(&sent);
                }
            }
            if !is_plain && sent.has(LOST) {
                self.sk.lost_out -= 1;
            }
            if !is_plain && sent.has(HAS_FIN) {
                self.snd.fin_acked = true;
                self.sk.bytes_acked -= 1;
            }
            if sent.has(BURST_START) {
                self.snd.buffer.note_burst_acked();
            }
            self.sk.packets_out -= 1;
            acked += 1;
            self.rate_on_delivered(id, state);
            self.snd.board.pop();
        }
        if acked > 0 {
            state.flags.data_acked = true;
            self.keep_rest_of_buffer();
        }
        match self.snd.board.first() {
            Some(first) if first.has(SACKED) => state.flags.reneging = true,
            Some(_) => {}
            None => self.chrono_stop_busy(),
        }

        let (mut rtt_us, mut latest_us, mut sack_rtt_us) = (None, None, None);
        if first_us != 0 && !state.flags.retransmission_acked {
            rtt_us = Some((now - first_us) as u32);
            latest_us = Some((now - last_us) as u32);
            let single = acked == 1 && lone_runt && prior_sacked == 0;
            if single
                && state.rate.prior_delivered.wrapping_add(1) == self.sk.delivered
                && !state.flags.alerts()
                && snd_una.wrapping_sub(prior_snd_una) < self.sk.mss_cache
            {
                state.flags.maybe_delayed = true;
            }
        }
        if state.first_sacked_us != 0 {
            sack_rtt_us = Some((now - state.first_sacked_us) as u32);
            latest_us = Some((now - state.last_sacked_us) as u32);
        }
        let updated = self.update_rtt(rtt_us, sack_rtt_us, latest_us, state);

        if state.flags.data_acked {
            state.flags.restart_timer = true;
            if !self.sack_ok {
                self.remove_emulated_sacks(acked, echo);
                if state.flags.retransmission_acked {
                    state.flags.original_delivered = false;
                }
            } else if before(lowest, prior_highest) {
                self.note_reordering(lowest);
            }
        } else if let (Some(first), true, Some(sack_rtt)) = (self.snd.board.first(), updated, sack_rtt_us) {
            // A SACK of something sent after the first segment must not put its timeout off.
            if u64::from(sack_rtt) > now - first.sent_us {
                state.flags.restart_timer = true;
            }
        }
        let sample = AckSample {
            pkts_acked: acked,
            rtt_us: state.rate.rtt_us as i32,
            in_flight: self
                .sk
                .mss_cache
                .wrapping_mul(self.sk.delivered.wrapping_sub(state.rate.prior_delivered)),
        };
        self.snd.control.pkts_acked(&mut self.sk, &sample);
    }

    /// Takes the RTT from what was acknowledged, else SACKed, else from the timestamp (RFC 7323, section 4.1).
    #[inline(always)]
    fn update_rtt(
        &mut self,
        acked: Option<u32>,
        sacked: Option<u32>,
        latest: Option<u32>,
        state: &mut AckState,
    ) -> bool {
        let mut rtt = acked.or(sacked);
        let mut latest = latest;
        if rtt.is_none() && state.flags.data_acked {
            rtt = self.rtt_by_timestamp(1);
            latest = rtt;
        }
        state.rate.rtt_us = latest.map_or(-1, i64::from);
        let (Some(rtt), Some(latest)) = (rtt, latest) else { return false };
        self.take_rtt_sample(rtt, latest, state.flags.maybe_delayed);
        true
    }

    fn is_dubious(&self, flags: &AckFlags) -> bool {
        flags.may_be_duplicate() || flags.alerts() || self.sk.icsk_ca_state != CaState::Open as u32
    }

    /// Lets the control, or the reduction under way, set the window (Linux `tcp_cong_control`).
    fn control_window(&mut self, ack: u32, delivered: u32, state: &AckState) {
        if self.snd.control.has_cong_control() {
            self.snd.control.cong_control(&mut self.sk, ack, state.flags.bits(), &state.rate);
            return;
        }
        if self.in_cwnd_reduction() {
            self.reduce_cwnd(delivered, state.rate.losses as u32, state.flags);
        } else {
            let flags = &state.flags;
            // Where the network reorders, a SACK is progress too (`tcp_may_raise_cwnd`).
            let raises = if self.snd.rack.reorders() { flags.delivers() } else { flags.data_acked };
            if raises {
                self.snd.control.cong_avoid(&mut self.sk, ack, delivered);
                self.snd.cwnd_use.renew(self.sk.tcp_mstamp);
            }
        }
        self.update_pacing_rate();
    }

    fn transmit_after_ack(&mut self, rexmit: Rexmit) {
        match rexmit {
            Rexmit::Nothing => return,
            Rexmit::New => {
                self.push(Push::Trial);
                if after(self.sk.snd_nxt, self.sk.high_seq) {
                    return;
                }
                self.snd.frto = false;
            }
            Rexmit::Lost => {}
        }
        self.retransmit_lost();
    }
}
