//! The minimum of a TCP sender that a control needs around it: Linux's calls in Linux's order, over packets that
//! are only counted.

// Each test file uses its own part of this.
#![allow(dead_code)]

use std::collections::VecDeque;

use tcplab_control::sock::{ECN_ACCURATE, INFINITE_SSTHRESH};
use tcplab_control::{AckSample, CaEvent, CaState, Control, RateSample, TcpSock};

/// State of a packet in flight, as in Linux's `tcp_rate.c`.
struct Sent {
    at: u64,
    delivered: u32,
    delivered_ce: u32,
    lost: u32,
    delivered_mstamp: u64,
    first_tx_mstamp: u64,
    app_limited: bool,
    end_seq: u32,
}

/// A sender and its control. Times are microseconds.
pub struct Sender {
    pub sk: TcpSock,
    pub control: Control,
    /// When the sampled state began: recovery lasts until this is acknowledged.
    recovery_end: u32,
    outstanding: VecDeque<Sent>,
    /// How many of the packets that the next ACK acknowledges were marked.
    pub marked: u32,
}

impl Sender {
    /// A sender that has just shaken hands in `rtt` microseconds, at time `now`.
    pub fn new(mut control: Control, rtt: u32, now: u64) -> Sender {
        let mut sk = TcpSock {
            sack_ok: 1,
            mss_cache: 1448,
            tcp_mstamp: now,
            delivered_mstamp: now,
            first_tx_mstamp: now,
            srtt_us: rtt << 3,
            rtt_min_us: rtt,
            app_limited: 0,
            tl_random: 1,
            ecn_flags: if control.needs_accecn() { ECN_ACCURATE } else { 0 },
            ..TcpSock::default()
        };
        control.init(&mut sk);
        let mut sender = Sender { sk, control, recovery_end: 0, outstanding: VecDeque::new(), marked: 0 };
        sender.update_pacing_rate();
        sender
    }

    pub fn state(&self) -> CaState {
        match self.sk.icsk_ca_state {
            0 => CaState::Open,
            1 => CaState::Disorder,
            2 => CaState::Cwr,
            3 => CaState::Recovery,
            _ => CaState::Loss,
        }
    }

    pub fn set_time(&mut self, now: u64) {
        self.sk.tcp_mstamp = now;
        self.sk.tcp_clock_cache = now * 1000;
    }

    /// Sends a packet, whatever the window says.
    pub fn send(&mut self) {
        let sk = &mut self.sk;
        let now = sk.tcp_mstamp;
        if sk.packets_out == 0 {
            self.control.cwnd_event(sk, CaEvent::TxStart);
            sk.first_tx_mstamp = now;
            sk.delivered_mstamp = now;
        }
        sk.snd_nxt = sk.snd_nxt.wrapping_add(sk.mss_cache);
        sk.packets_out += 1;
        sk.segs_out = sk.segs_out.wrapping_add(1);
        sk.max_packets_out = sk.max_packets_out.max(sk.packets_out);
        sk.is_cwnd_limited = u32::from(sk.packets_out >= sk.snd_cwnd);
        self.outstanding.push_back(Sent {
            at: now,
            delivered: sk.delivered,
            delivered_ce: sk.delivered_ce,
            lost: sk.lost,
            delivered_mstamp: sk.delivered_mstamp,
            first_tx_mstamp: sk.first_tx_mstamp,
            app_limited: sk.app_limited != 0,
            end_seq: sk.snd_nxt,
        });
    }

    /// The application has no more to send for now.
    pub fn limit_by_application(&mut self) {
        self.sk.app_limited = (self.sk.delivered + self.sk.packets_out).max(1);
        self.sk.is_cwnd_limited = 0;
    }

    /// An ACK says that the oldest `lost` packets are gone and the next `acked` arrived. `rtt` overrides
    /// the measured one.
    pub fn ack(&mut self, lost: u32, acked: u32, rtt: Option<i64>) {
        let prior_in_flight = self.sk.packets_in_flight();
        self.control.in_ack_event(&mut self.sk, 0);
        let lost = self.drop_oldest(lost);
        let mut sample =
            RateSample { prior_in_flight, losses: lost as i32, rtt_us: -1, ..Default::default() };
        let acked = self.deliver(acked, &mut sample);
        if let Some(rtt) = rtt {
            sample.rtt_us = rtt;
        }
        if acked > 0 {
            let sample = AckSample {
                pkts_acked: acked,
                rtt_us: sample.rtt_us.clamp(-1, i64::from(i32::MAX)) as i32,
                in_flight: prior_in_flight,
            };
            self.control.pkts_acked(&mut self.sk, &sample);
            self.end_recovery();
        }
        self.finish_ack(sample);
    }

    /// All that was sent before the reduction is acknowledged.
    fn end_recovery(&mut self) {
        let over = self.sk.snd_una.wrapping_sub(self.recovery_end) as i32 >= 0;
        if over && self.state() != CaState::Open {
            // tcp_end_cwnd_reduction: the classic controls go on from the threshold.
            if !self.control.has_cong_control() && self.state() != CaState::Loss {
                self.sk.snd_cwnd = self.sk.snd_ssthresh.min(self.sk.snd_cwnd.max(2));
            }
            self.enter(CaState::Open);
        }
    }

    /// The rest of an ACK's way: the congestion state, then the window.
    pub fn finish_ack(&mut self, sample: RateSample) {
        if sample.losses > 0 && (self.sk.icsk_ca_state) < CaState::Recovery as u32 {
            self.reduce(CaState::Recovery);
        }
        let acked = sample.acked_sacked;
        if self.control.has_cong_control() {
            let ack = self.sk.snd_una;
            self.control.cong_control(&mut self.sk, ack, 0, &sample);
        } else if acked > 0 && matches!(self.state(), CaState::Open | CaState::Disorder | CaState::Loss) {
            let ack = self.sk.snd_una;
            self.control.cong_avoid(&mut self.sk, ack, acked);
        }
        self.update_pacing_rate();
    }

    /// The rate at which TCP itself paces for a control that asks for pacing and sets none.
    fn update_pacing_rate(&mut self) {
        let sk = &mut self.sk;
        if self.control.has_cong_control() || sk.sk_pacing_status == 0 {
            return;
        }
        let percent = if sk.snd_cwnd < sk.snd_ssthresh / 2 { 200 } else { 120 };
        let window = u128::from(sk.mss_cache) * u128::from(sk.snd_cwnd.max(sk.packets_out));
        sk.sk_pacing_rate = (window * 8 * percent * 10_000 / u128::from(sk.srtt_us.max(1))) as u64;
    }

    /// An ACK carried an ECN echo.
    pub fn ecn_echo(&mut self) {
        self.control.in_ack_event(&mut self.sk, 1 << 6);
        if self.sk.icsk_ca_state < CaState::Cwr as u32 {
            self.reduce(CaState::Cwr);
        }
    }

    /// The retransmission timer fired (`tcp_enter_loss`): all in flight is lost.
    pub fn timeout(&mut self) {
        if self.state() != CaState::Loss {
            self.sk.prior_ssthresh = self.sk.snd_ssthresh;
            self.sk.prior_cwnd = self.sk.snd_cwnd;
            self.sk.snd_ssthresh = self.control.ssthresh(&mut self.sk);
            self.control.cwnd_event(&mut self.sk, CaEvent::Loss);
        }
        self.recovery_end = self.sk.snd_nxt;
        self.drop_oldest(u32::MAX);
        self.sk.snd_cwnd = 1;
        self.sk.snd_cwnd_cnt = 0;
        self.enter(CaState::Loss);
    }

    /// The last reduction proves spurious.
    pub fn undo(&mut self) {
        if self.state() == CaState::Open {
            return;
        }
        self.sk.snd_cwnd = self.control.undo_cwnd(&mut self.sk);
        self.sk.snd_ssthresh = self.sk.snd_ssthresh.max(self.sk.prior_ssthresh);
        self.enter(CaState::Open);
    }

    fn reduce(&mut self, state: CaState) {
        self.sk.prior_ssthresh = self.sk.snd_ssthresh;
        self.sk.prior_cwnd = self.sk.snd_cwnd;
        self.sk.snd_ssthresh = self.control.ssthresh(&mut self.sk);
        self.recovery_end = self.sk.snd_nxt;
        // Proportional rate reduction would get there by the end of the round.
        if !self.control.has_cong_control() {
            self.sk.snd_cwnd = self.sk.snd_ssthresh;
        }
        self.enter(state);
    }

    fn enter(&mut self, state: CaState) {
        self.control.set_state(&mut self.sk, state);
        self.sk.icsk_ca_state = state as u32;
    }

    fn drop_oldest(&mut self, max: u32) -> u32 {
        let lost = max.min(self.sk.packets_out);
        for sent in self.outstanding.drain(..lost as usize) {
            self.sk.snd_una = sent.end_seq;
        }
        self.sk.packets_out -= lost;
        self.sk.lost = self.sk.lost.wrapping_add(lost);
        lost
    }

    fn deliver(&mut self, max: u32, sample: &mut RateSample) -> u32 {
        let sk = &mut self.sk;
        let acked = max.min(sk.packets_out);
        sample.interval_us = -1;
        sample.delivered = -1;
        sample.acked_sacked = acked;
        let Some(last) = self.outstanding.drain(..acked as usize).next_back() else { return 0 };
        let now = sk.tcp_mstamp;
        sk.packets_out -= acked;
        sk.snd_una = last.end_seq;
        sk.delivered = sk.delivered.wrapping_add(acked);
        sk.delivered_ce = sk.delivered_ce.wrapping_add(core::mem::take(&mut self.marked).min(acked));
        sk.delivered_mstamp = now;
        sk.first_tx_mstamp = last.at;
        if sk.app_limited != 0 && sk.delivered > sk.app_limited {
            sk.app_limited = 0;
        }

        let rtt = now - last.at;
        sk.rtt_min_us = sk.rtt_min_us.min(rtt as u32);
        sk.srtt_us = (sk.srtt_us - sk.srtt_us / 8).saturating_add(rtt.min(1 << 28) as u32);
        sample.rtt_us = rtt as i64;
        sample.prior_delivered = last.delivered;
        sample.tl_prior_lost = last.lost;
        sample.prior_mstamp = last.delivered_mstamp;
        sample.is_app_limited = u8::from(last.app_limited);
        sample.last_end_seq = last.end_seq;
        let interval = (last.at - last.first_tx_mstamp).max(now - last.delivered_mstamp);
        if interval >= u64::from(sk.rtt_min_us) {
            sample.interval_us = interval as i64;
            sample.delivered = sk.delivered.wrapping_sub(last.delivered) as i32;
            sample.delivered_ce = sk.delivered_ce.wrapping_sub(last.delivered_ce) as i32;
        }
        acked
    }
}

/// The threshold as a person reads it.
pub fn threshold(sk: &TcpSock) -> String {
    if sk.snd_ssthresh == INFINITE_SSTHRESH { "-".into() } else { sk.snd_ssthresh.to_string() }
}
