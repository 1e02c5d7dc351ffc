//! The information in an ACK.

/// The information in an ACK, as processing finds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckFlags {
    /// The segment carried data.
    pub carries_data: bool,
    /// It updated the send window.
    pub window_update: bool,
    /// `snd_una` advanced.
    pub una_advanced: bool,
    /// It acknowledged segments cumulatively.
    pub data_acked: bool,
    /// Some of these had been retransmitted.
    pub retransmission_acked: bool,
    /// It SACKed new segments.
    pub data_sacked: bool,
    /// It delivered never-retransmitted data from before the recovery point.
    pub original_delivered: bool,
    /// It echoed congestion.
    pub ece: bool,
    /// It reported a duplicate.
    pub dsack: bool,
    /// That duplicate is the tail loss probe.
    pub dsack_of_probe: bool,
    /// A lost retransmission was detected.
    pub lost_retransmission: bool,
    /// The first unacknowledged segment had been SACKed.
    pub reneging: bool,
    /// It was likely a delayed ACK.
    pub maybe_delayed: bool,
    /// The probe or retransmission timer starts anew.
    pub restart_timer: bool,
}

impl AckFlags {
    /// It can be a duplicate ACK (RFC 5681, section 2) as far as it neither carries nor acknowledges data nor updates
    /// the window.
    pub(crate) fn may_be_duplicate(&self) -> bool {
        !(self.carries_data || self.window_update || self.data_acked)
    }

    /// It says something about loss or congestion.
    pub(crate) fn alerts(&self) -> bool {
        self.data_sacked || self.ece || self.dsack
    }

    /// It delivered something.
    pub(crate) fn delivers(&self) -> bool {
        self.data_acked || self.data_sacked
    }

    /// The flags as Linux hands them to controls (`FLAG_*` in `tcp_input.c`).
    #[inline(never)]
    pub(crate) fn bits(&self) -> u32 {
        let bit = |yes: bool, bit: u32| u32::from(yes) << bit;
        bit(self.carries_data, 0)
            | bit(self.window_update, 1)
            | bit(self.data_acked, 2)
            | bit(self.retransmission_acked, 3)
            | bit(self.data_sacked, 5)
            | bit(self.ece, 6)
            | bit(self.lost_retransmission, 7)
            | bit(self.original_delivered, 9)
            | bit(self.una_advanced, 10)
            | bit(self.dsack, 11)
            | bit(self.restart_timer, 12)
            | bit(self.reneging, 13)
            | bit(self.maybe_delayed, 16)
            | bit(self.dsack_of_probe, 17)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_see_linux_s_bits() {
        let ack = AckFlags { data_acked: true, una_advanced: true, ece: true, ..AckFlags::default() };
        assert_eq!(ack.bits(), 0x4 | 0x400 | 0x40);
        let dsack =
            AckFlags { dsack: true, dsack_of_probe: true, maybe_delayed: true, ..AckFlags::default() };
        assert_eq!(dsack.bits(), 0x800 | 0x2_0000 | 0x1_0000);
    }

    #[test]
    fn only_an_ack_that_brings_nothing_may_be_a_duplicate() {
        let nothing = AckFlags::default();
        assert!(nothing.may_be_duplicate() && !nothing.alerts() && !nothing.delivers());
        assert!(!AckFlags { window_update: true, ..nothing }.may_be_duplicate());
        let sack = AckFlags { data_sacked: true, ..nothing };
        assert!(sack.may_be_duplicate() && sack.alerts() && sack.delivers());
    }
}
