//! Accurate ECN feedback (RFC 9768): the receiver counts marked packets and the bytes of each codepoint; three bits of
//! every header and an option carry the counts back.

use tcplab_control::sock::ECN_ACCURATE;

use crate::ecn::{CE, ECT_0, ECT_1, NOT_ECT};
use crate::segment::{ACK, AccEcnOption, CWR, ECE, SYN};
use crate::{Connection, Segment};

/// Values of the ACE field (section 3.2.2).
const ACE: u32 = 8;
/// Initial value of the packet counters, so that zero means that a middlebox cleared the field (section 3.2.1).
const CEP_INITIAL: u32 = 5;
/// Byte counters are carried modulo this (section 3.2.3).
const BYTES: u32 = 1 << 24;
/// Marks since the last ACK that draw one at once where data waits for one, and where none does: then an ACK of ACKs,
/// if those are ECN-capable (section 3.2.2.5.1).
const MARKS_MAX: u32 = 2;
const MARKS_OF_ACKS_MAX: u32 = 3;
/// Room for options in a header.
const OPTION_ROOM: u32 = 40;

/// Codepoint of the SYN or SYN-ACK as the ACE field says it during the handshake (Tables 2 and 3).
const fn handshake_encoding(codepoint: u8) -> u8 {
    match codepoint {
        NOT_ECT => 0b010,
        ECT_1 => 0b011,
        ECT_0 => 0b100,
        _ => 0b110,
    }
}

/// Whether a SYN or SYN-ACK that left with the codepoint `sent` cannot have arrived with `arrived` unless something on the
/// way changes codepoints (section 3.2.2.3).
const fn is_mangled(sent: u8, arrived: u8) -> bool {
    (sent == NOT_ECT) != (arrived == NOT_ECT)
}

/// The ACE field: AE, CWR and ECE as one number.
pub(crate) fn ace(segment: &Segment) -> u8 {
    u8::from(segment.ae) << 2 | u8::from(segment.flags & CWR != 0) << 1 | u8::from(segment.flags & ECE != 0)
}

pub(crate) fn set_ace(segment: &mut Segment, ace: u8) {
    segment.ae = ace & 4 != 0;
    segment.flags &= !(CWR | ECE);
    segment.flags |= if ace & 2 != 0 { CWR } else { 0 } | if ace & 1 != 0 { ECE } else { 0 };
}

/// Both halves of the feedback (section 3.2.1).
#[derive(Debug)]
pub(crate) struct Accurate {
    /// Packets that arrived marked.
    r_cep: u32,
    /// Bytes that arrived with ECT(0), CE and ECT(1).
    r_e0b: u32,
    r_ceb: u32,
    r_e1b: u32,
    /// Those of the last option that left: ECT(0), CE and ECT(1).
    reported: [u32; 3],
    /// We opened and have sent no data: the first carries the option, to test the path (section 3.2.3.2.1).
    tests_path: bool,
    /// The last packet was marked.
    last_marked: bool,
    /// Marks since our last ACK.
    marks_unacknowledged: u32,
    /// The same counters of the peer, as far as its feedback goes.
    s_cep: u32,
    s_ceb: u32,
    /// Codepoint of the peer's SYN or SYN-ACK.
    opening_codepoint: u8,
    /// We opened: the peer's SYN-ACK is acknowledged with its codepoint in the ACE field.
    answers_syn_ack: bool,
    /// Codepoint of our SYN or SYN-ACK as it left.
    pub(crate) syn_codepoint: u8,
    /// It arrived marked, and the sender has not answered that yet.
    opening_marked: bool,
    /// The peer has sent its SYN again.
    saw_syn_again: bool,
    /// We set no codepoint if the server has sent a SYN-ACK or received a SYN without ECN (section 3.1.5). Nor do we
    /// if the peer's ACE field is void, or if something changes codepoints on the way (section 3.2.2.3).
    pub(crate) without_ect: bool,
    /// Something clears the peer's ACE field, which then says nothing (section 3.2.2.1, Table 4).
    void: bool,
}

impl Default for Accurate {
    fn default() -> Accurate {
        Accurate {
            r_cep: CEP_INITIAL,
            r_e0b: 1,
            r_ceb: 0,
            r_e1b: 1,
            reported: [1, 0, 1],
            tests_path: false,
            last_marked: false,
            marks_unacknowledged: 0,
            s_cep: CEP_INITIAL,
            s_ceb: 0,
            opening_codepoint: NOT_ECT,
            answers_syn_ack: false,
            syn_codepoint: NOT_ECT,
            opening_marked: false,
            saw_syn_again: false,
            without_ect: false,
            void: false,
        }
    }
}

impl Accurate {
    /// The option with its `fields` most useful fields: first what the peer sends, then the marks.
    fn option(&self, fields: u8) -> AccEcnOption {
        AccEcnOption {
            fields,
            ect1_first: self.r_e1b != 1 || self.r_e0b == 1,
            e0b: self.r_e0b % BYTES,
            ceb: self.r_ceb % BYTES,
            e1b: self.r_e1b % BYTES,
        }
    }

    /// `encoding` says with which codepoint our SYN or SYN-ACK arrived; unknown ones say nothing (Table 4).
    fn note_our_opening(&mut self, encoding: u8) {
        let arrived = [NOT_ECT, ECT_1, ECT_0, CE].into_iter().find(|&it| handshake_encoding(it) == encoding);
        let Some(arrived) = arrived else { return };
        self.without_ect |= is_mangled(self.syn_codepoint, arrived);
        self.opening_marked = arrived == CE;
    }

    fn counters(&self) -> [u32; 3] {
        [self.r_e0b, self.r_ceb, self.r_e1b]
    }

    /// A counter has changed since the last option.
    fn has_news(&self) -> bool {
        self.counters() != self.reported
    }

    /// How many fields fit into `room` bytes of options (section 3.2.3.3). The fields are those of every counter
    /// that ever changed, else those of the counters that have changed since the last option. Else there is no
    /// option at all.
    fn fields_within(&self, room: u32) -> u8 {
        let both = self.r_e0b != 1 && self.r_e1b != 1;
        // ECT(1) comes first then.
        let third_has_news = both && self.r_e0b != self.reported[0];
        match room {
            12.. if both => 3,
            8.. if !third_has_news => 2,
            _ => 0,
        }
    }
}

/// Bytes of options left beside `taken` and `blocks` of SACK.
fn room_beside(taken: u32, blocks: u8) -> u32 {
    let sack = if blocks > 0 { 4 + 8 * u32::from(blocks) } else { 0 };
    OPTION_ROOM.saturating_sub(taken + sack)
}

impl Connection {
    /// Both ends agreed on accurate feedback.
    pub(crate) fn accurate(&self) -> bool {
        self.sk.ecn_flags & ECN_ACCURATE != 0
    }

    /// The codepoint of the peer's SYN, which our SYN-ACK repeats, or of its SYN-ACK, which our ACK repeats.
    pub(crate) fn accecn_note_opening(&mut self, opening: &Segment) {
        let accurate = &mut self.ecn.accurate;
        accurate.opening_codepoint = opening.ecn;
        accurate.answers_syn_ack = opening.flags & ACK != 0;
        accurate.tests_path = accurate.answers_syn_ack;
        if !accurate.answers_syn_ack {
            return;
        }
        // Table 3: a marked SYN-ACK is counted, a marked SYN is not.
        if opening.ecn == CE && accurate.r_cep == CEP_INITIAL {
            accurate.r_cep += 1;
        }
        accurate.note_our_opening(ace(opening));
    }

    /// The peer has sent its SYN again while our SYN-ACK is unanswered: that is repeated without the option, with the
    /// codepoint of the latest SYN (sections 3.1.5 and 3.2.3.2.2).
    pub(crate) fn accecn_note_syn_again(&mut self, syn: &Segment) {
        let accurate = &mut self.ecn.accurate;
        accurate.opening_codepoint = syn.ecn;
        accurate.saw_syn_again = true;
        accurate.without_ect |= ace(syn) == 0;
    }

    /// Makes `syn_ack` agree to accurate feedback. A retransmission is without the option and a second one without the
    /// flags, in case something on the path drops it for them (section 3.2.3.2.2).
    pub(crate) fn accecn_agree(&mut self, syn_ack: &mut Segment) {
        if self.handshake.retries < 2 {
            set_ace(syn_ack, handshake_encoding(self.ecn.accurate.opening_codepoint));
        } else {
            self.ecn.accurate.without_ect = true;
        }
        if self.handshake.retries == 0 && !self.ecn.accurate.saw_syn_again {
            syn_ack.accecn = self.ecn.accurate.option(3);
        }
    }

    /// Whether the peer's SYN-ACK agrees to accurate feedback (Table 2). One combination is reserved, and agrees too
    /// (section 3.1.3).
    pub(crate) fn accecn_agreed(syn_ack: &Segment) -> bool {
        matches!(ace(syn_ack), 0b010..=0b110)
    }

    /// Makes an ACK of the SYN-ACK say with which codepoint that arrived (section 3.2.2.1).
    pub(crate) fn accecn_answer(&self, segment: &mut Segment) {
        if self.accurate() && self.ecn.accurate.answers_syn_ack && segment.len == 0 {
            set_ace(segment, handshake_encoding(self.ecn.accurate.opening_codepoint));
            segment.accecn = self.ecn.accurate.option(if segment.sack_count == 0 { 3 } else { 0 });
        }
    }

    /// The peer has acknowledged our SYN-ACK (Table 4). An ACE field of zero says that something cleared the flags on
    /// the way: then packets are not ECN-capable, for their marks would not come back.
    pub(crate) fn accecn_established(&mut self, ack: &Segment) {
        if !self.accurate() || ack.len > 0 || ack.sack_count > 0 {
            return;
        }
        match ace(ack) {
            0 => (self.ecn.accurate.without_ect, self.ecn.accurate.void) = (true, true),
            0b110 => self.ecn.accurate.s_cep = CEP_INITIAL + 1,
            _ => {}
        }
        self.ecn.accurate.note_our_opening(ace(ack));
    }

    /// The ACE field of whatever leaves.
    pub(crate) fn accecn_header(&self, segment: &mut Segment) {
        set_ace(segment, (self.ecn.accurate.r_cep % ACE) as u8);
    }

    /// Adds the option to an ACK without data. Counters that have changed come before a third SACK block, and after two
    /// (section 3.2.3.3).
    pub(crate) fn accecn_option(&mut self, ack: &mut Segment) {
        if self.accurate() {
            self.report_counters(ack);
        }
    }

    #[inline(never)]
    fn report_counters(&mut self, ack: &mut Segment) {
        let taken = self.option_bytes();
        let accurate = &mut self.ecn.accurate;
        if accurate.has_news() {
            while ack.sack_count > 2 && accurate.fields_within(room_beside(taken, ack.sack_count)) == 0 {
                ack.sack_count -= 1;
            }
        }
        let fields = accurate.fields_within(room_beside(taken, ack.sack_count));
        if fields > 0 {
            ack.accecn = accurate.option(fields);
            accurate.reported = accurate.counters();
        }
    }

    /// Whether data carries the option: where a counter has changed since the last one (section 3.2.3.3). So
    /// the sender of a one-way transfer, whose counters rest, spends nothing on the option.
    fn accecn_data_wants_option(&self) -> bool {
        self.ecn.accurate.has_news() || self.ecn.accurate.tests_path
    }

    /// Bytes by which the option shortens the next full segment.
    pub(crate) fn accecn_data_bytes(&self) -> u32 {
        if self.accurate() { self.data_option_bytes() } else { 0 }
    }

    #[cold]
    fn data_option_bytes(&self) -> u32 {
        if !self.accecn_data_wants_option() {
            return 0;
        }
        let fields = self.ecn.accurate.fields_within(room_beside(self.option_bytes(), 0));
        self.ecn.accurate.option(fields).padded_len()
    }

    /// Adds the option to a header of data where it is wanted and leaves room for `len` bytes of it.
    pub(crate) fn accecn_data_option(&mut self, header: &mut Segment, len: u32) {
        if self.accurate() {
            self.report_counters_with_data(header, len);
        }
    }

    #[cold]
    fn report_counters_with_data(&mut self, header: &mut Segment, len: u32) {
        if self.accecn_data_wants_option() && len + self.accecn_data_bytes() <= self.sk.mss_cache {
            self.accecn_option(header);
        }
        self.ecn.accurate.tests_path = false;
    }

    /// An ACK of any kind leaves.
    pub(crate) fn accecn_acknowledged(&mut self) {
        if self.accurate() {
            self.ecn.accurate.marks_unacknowledged = 0;
        }
    }

    /// Counts a segment that arrived, of packets with `size` bytes of payload. The first data to arrive marked, and every
    /// second mark, is acknowledged at once (section 3.2.2.5.1).
    pub(crate) fn accecn_on_arrival(&mut self, segment: &Segment, size: u32) {
        if self.accurate() && segment.flags & SYN == 0 {
            self.count_arrival(segment, size);
        }
    }

    #[cold]
    fn count_arrival(&mut self, segment: &Segment, size: u32) {
        let packets = segment.len.div_ceil(size.max(1)).max(1);
        let accurate = &mut self.ecn.accurate;
        let bytes = segment.len;
        match segment.ecn {
            ECT_0 => accurate.r_e0b = accurate.r_e0b.wrapping_add(bytes),
            ECT_1 => accurate.r_e1b = accurate.r_e1b.wrapping_add(bytes),
            CE => {
                accurate.r_ceb = accurate.r_ceb.wrapping_add(bytes);
                accurate.r_cep = accurate.r_cep.wrapping_add(packets);
            }
            _ => {}
        }
        let marked = segment.ecn == CE;
        let changed = marked && !accurate.last_marked;
        accurate.last_marked = marked;
        if !marked {
            return;
        }
        accurate.marks_unacknowledged += packets;
        let marks = accurate.marks_unacknowledged;
        let is_due = if bytes > 0 || self.rcv.delack.is_scheduled() {
            (bytes > 0 && changed) || marks >= MARKS_MAX
        } else {
            // Without SACK an ACK of ACKs would pass for a duplicate ACK.
            self.sack_ok && marks >= MARKS_OF_ACKS_MAX
        };
        if is_due {
            self.rcv.delack.ack_now();
        }
    }

    /// Packets that arrived marked.
    #[cfg(test)]
    pub(crate) fn accecn_marked(&self) -> u32 {
        self.ecn.accurate.r_cep - CEP_INITIAL
    }

    /// Marks on our packets that the peer has reported so far.
    #[cfg(test)]
    pub(crate) fn accecn_answered(&self) -> u32 {
        self.sk.delivered_ce
    }

    /// How many of our packets the feedback in `segment` newly says were marked; it newly acknowledges or SACKs
    /// `delivered` packets. Feedback that acknowledges nothing may be old and is left for the next.
    pub(crate) fn accecn_newly_marked(&mut self, segment: &Segment, delivered: u32) -> u32 {
        if delivered == 0 || self.ecn.accurate.void {
            return 0;
        }
        let mss = self.sk.mss_cache;
        let accurate = &mut self.ecn.accurate;
        let minimum = u32::from(ace(segment)).wrapping_sub(accurate.s_cep) % ACE;
        let reported = segment.accecn.carries_marks().then_some(segment.accecn.ceb);
        let bytes = reported.map(|ceb| {
            let bytes = ceb.wrapping_sub(accurate.s_ceb) % BYTES;
            // Fewer than were assumed for want of an option.
            if bytes < BYTES / 2 { bytes } else { 0 }
        });
        let marked = newly_marked(minimum, delivered, bytes, mss);
        accurate.s_cep = accurate.s_cep.wrapping_add(marked);
        accurate.s_ceb = reported.unwrap_or(accurate.s_ceb.wrapping_add(marked.wrapping_mul(mss)) % BYTES);
        marked + u32::from(core::mem::take(&mut accurate.opening_marked))
    }
}

/// Packets newly marked, of `delivered`: `minimum` of them or 8, 16, ... more, for the ACE field wraps.
///
/// The option's count of marked bytes, where it is there, says which (appendix A.2.2). Without it a sender to which
/// more than 7 packets are acknowledged at once must assume the worst (section 3.2.2.5.2, appendix A.2.1).
fn newly_marked(minimum: u32, delivered: u32, bytes: Option<u32>, mss: u32) -> u32 {
    if delivered < ACE {
        return minimum;
    }
    let maximum = delivered - (delivered - minimum) % ACE;
    match bytes {
        None => maximum,
        Some(bytes) => {
            // The smallest count of packets that holds so many bytes and agrees with the field.
            let packets = bytes.div_ceil(mss.max(1)).max(minimum);
            (packets + (ACE - (packets - minimum) % ACE) % ACE).min(maximum)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn up_to_seven_packets_the_field_says_all() {
        assert_eq!(newly_marked(0, 7, None, 1000), 0);
        assert_eq!(newly_marked(7, 7, None, 1000), 7);
        // Marked ACKs of the peer's are counted too.
        assert_eq!(newly_marked(3, 2, None, 1000), 3);
    }

    #[test]
    fn without_the_option_the_worst_is_assumed() {
        assert_eq!(newly_marked(0, 9, None, 1000), 8);
        assert_eq!(newly_marked(2, 9, None, 1000), 2);
        assert_eq!(newly_marked(1, 9, None, 1000), 9);
    }

    #[test]
    fn the_option_tells_how_often_the_field_has_wrapped() {
        assert_eq!(newly_marked(0, 40, Some(0), 1000), 0);
        assert_eq!(newly_marked(3, 40, Some(3_000), 1000), 3);
        assert_eq!(newly_marked(3, 40, Some(11_000), 1000), 11);
        // Three of the packets were small.
        assert_eq!(newly_marked(3, 40, Some(8_500), 1000), 11);
    }

    proptest! {
        /// Whatever is lost of the feedback between, full packets are counted exactly with the option, and never too
        /// few without it.
        #[test]
        fn marks_are_never_missed(marked in 0u32..200, others in 0u32..200) {
            let delivered = marked + others;
            let field = marked % ACE;
            prop_assert_eq!(newly_marked(field, delivered, Some(marked * 1000), 1000), marked);
            prop_assert!(newly_marked(field, delivered, None, 1000) >= marked);
            prop_assert!(newly_marked(field, delivered, None, 1000) <= delivered);
        }
    }
}
