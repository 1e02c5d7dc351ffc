//! Scripts in the manner of packetdrill: this segment at this time, that reply, this window.
//!
//! Sequence numbers are relative to the SYNs, so the first byte each way is 1; times are milliseconds. The
//! peer is played by the script. A segment that leaves reads `1:1001` (data), `ack 1` (no data), then `F`,
//! `P`, `E` (ECE), `W` (CWR) and SACK blocks `[2001-3001]`.

use tcplab_units::{Span, Time};

use super::pair::control;
use crate::segment::{ACK, AccEcnOption, CWR, ECE, FIN, PSH, RST, SYN, Segment};
use crate::{Config, Connection, Notice};

/// Where our sequence starts; near the wrap, so that every script crosses it.
pub(crate) const OURS: u32 = 0xffff_f000;
/// Where the peer's starts.
const THEIRS: u32 = 0xffff_fc00;

pub(crate) struct Script {
    pub end: Connection,
    pub now: Time,
    notices: Vec<Notice>,
}

/// 1000-byte segments without timestamps, and a send buffer that does not limit.
pub(crate) fn plain() -> Config {
    Config { mss: 1000, timestamps: false, send_buffer: Some(1_000_000), ..Config::default() }
}

pub(crate) fn at(ms: f64) -> Time {
    Time::from_ns((ms * 1e6).round() as u64)
}

/// A segment of the peer.
pub(crate) fn segment(flags: u8) -> Segment {
    Segment {
        seq: 1,
        ack: 1,
        len: 0,
        ts_val: 0,
        ts_ecr: 0,
        sack: [(0, 0); 4],
        window: 60_000,
        flags,
        ae: false,
        accecn: AccEcnOption::default(),
        sack_count: 0,
        mss: 0,
        window_scale: 255,
        ecn: 0,
        sack_permitted: false,
        has_timestamp: false,
        more: false,
        retransmission: false,
    }
}

/// An ACK of the peer.
pub(crate) fn ack(n: u32) -> Segment {
    Segment { ack: n, ..segment(ACK) }
}

/// Data of the peer, `start..end`.
pub(crate) fn data(start: u32, end: u32) -> Segment {
    Segment { seq: start, len: end - start, ..segment(ACK) }
}

impl Segment {
    pub(crate) fn sacks(mut self, blocks: &[(u32, u32)]) -> Segment {
        self.sack[..blocks.len()].copy_from_slice(blocks);
        self.sack_count = blocks.len() as u8;
        self
    }
    pub(crate) fn flagged(mut self, flags: u8) -> Segment {
        self.flags |= flags;
        self
    }
    pub(crate) fn windowed(mut self, window: u16) -> Segment {
        self.window = window;
        self
    }
    pub(crate) fn codepoint(mut self, ecn: u8) -> Segment {
        self.ecn = ecn;
        self
    }
    pub(crate) fn stamped(mut self, val: u32, ecr: u32) -> Segment {
        self.has_timestamp = true;
        self.ts_val = val;
        self.ts_ecr = ecr;
        self
    }
}

impl Script {
    /// An established connection we opened at 0; the SYN-ACK came `rtt` ms later. The peer's window is
    /// 60,000 bytes times 2^`wscale` = 2.
    pub(crate) fn client(config: &Config, control_name: &str, rtt: f64) -> Script {
        Script::client_with_window(config, control_name, rtt, 60_000)
    }

    /// The same with a SYN-ACK that announces `window` bytes.
    pub(crate) fn client_with_window(config: &Config, control_name: &str, rtt: f64, window: u16) -> Script {
        let end = Connection::connect(config, control(control_name), OURS, Time::ZERO);
        let mut script = Script { end, now: Time::ZERO, notices: vec![] };
        let syn = script.take().remove(0);
        let mut reply = segment(SYN | ACK);
        reply.seq = 0;
        reply.window = window;
        reply.mss = config.mss as u16;
        reply.window_scale = 2;
        reply.sack_permitted = syn.sack_permitted;
        if syn.has_timestamp {
            reply = reply.stamped(1, syn.ts_val);
        }
        if syn.flags & ECE != 0 {
            reply = reply.flagged(ECE);
        }
        script.at(rtt, reply);
        assert_eq!(script.sent(), ["ack 1"]);
        script
    }

    /// Runs timers up to `ms`, then delivers `segment`.
    pub(crate) fn at(&mut self, ms: f64, mut segment: Segment) {
        self.until(ms);
        segment.seq = THEIRS.wrapping_add(segment.seq);
        segment.ack = OURS.wrapping_add(segment.ack);
        for block in &mut segment.sack[..usize::from(segment.sack_count)] {
            *block = (OURS.wrapping_add(block.0), OURS.wrapping_add(block.1));
        }
        self.end.handle_segment(&segment, self.now);
        self.end.verify();
    }

    /// Runs timers up to and including `ms`.
    pub(crate) fn until(&mut self, ms: f64) {
        let until = at(ms);
        while self.end.poll_timeout() <= until {
            self.now = self.end.poll_timeout();
            self.end.handle_timeout(self.now);
            self.end.verify();
        }
        assert!(until >= self.now, "the script goes back to {until} from {}", self.now);
        self.now = until;
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        self.end.write(bytes, self.now);
    }

    /// Milliseconds from now to the next timer.
    pub(crate) fn timer(&self) -> f64 {
        self.end.poll_timeout().since(self.now).as_secs_f64() * 1e3
    }

    fn take(&mut self) -> Vec<Segment> {
        let out = std::iter::from_fn(|| self.end.poll_transmit(self.now)).collect();
        self.notices.extend(std::iter::from_fn(|| self.end.poll_notice()));
        out
    }

    /// Packets that left since the last call.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        self.take().iter().map(describe).collect()
    }

    pub(crate) fn segments(&mut self) -> Vec<Segment> {
        self.take()
    }

    pub(crate) fn noticed(&mut self, notice: Notice) -> bool {
        self.notices.extend(std::iter::from_fn(|| self.end.poll_notice()));
        let seen = self.notices.contains(&notice);
        self.notices.retain(|n| *n != notice);
        seen
    }

    pub(crate) fn cwnd(&self) -> u32 {
        self.end.info(self.now).cwnd
    }

    pub(crate) fn rto(&self) -> Span {
        self.end.info(self.now).rto
    }
}

pub(crate) fn describe(segment: &Segment) -> String {
    let seq = segment.seq.wrapping_sub(OURS);
    let mut text = if segment.flags & RST != 0 {
        format!("reset {seq}")
    } else if segment.len > 0 || segment.flags & FIN != 0 {
        format!("{seq}:{}", seq + segment.len)
    } else {
        format!("ack {}", segment.ack.wrapping_sub(THEIRS))
    };
    for (flag, letter) in [(FIN, " F"), (PSH, " P"), (ECE, " E"), (CWR, " W")] {
        if segment.flags & flag != 0 {
            text += letter;
        }
    }
    if segment.sack_count > 0 {
        let blocks: Vec<String> = segment.sack[..usize::from(segment.sack_count)]
            .iter()
            .map(|(s, e)| format!("{}-{}", s.wrapping_sub(THEIRS), e.wrapping_sub(THEIRS)))
            .collect();
        text += &format!(" [{}]", blocks.join(" "));
    }
    text
}

/// `1:1001`, `1001:2001 P`, ... for segments `first` to `last` of 1000 bytes, counted from 1, in bursts of two.
pub(crate) fn pairs(first: u32, last: u32) -> Vec<String> {
    let segment = |i| format!("{}:{}", (i - 1) * 1000 + 1, i * 1000 + 1);
    (first..=last).map(|i| segment(i) + if (i - first) % 2 == 1 { " P" } else { "" }).collect()
}
