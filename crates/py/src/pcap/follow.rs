//! Every packet of chosen flows as columns, for figures and tables.

use std::collections::HashSet;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tcplab_pcap::Analysis;
use tcplab_pcap::flow::{Cause, Kind, Observer, Options, Seen};

/// No value.
const NONE: i64 = i64::MIN;

/// Packets between two looks at whether Ctrl-C was pressed.
const PACKETS_A_LOOK: u64 = 1 << 20;

macro_rules! columns {
    ($($name:ident: $kind:ty = $code:literal,)*) => {
        /// One growing array a column.
        #[derive(Default)]
        struct Columns {
            $($name: Vec<$kind>,)*
        }

        impl Columns {
            /// Name to (numpy's code of the type, the values in little-endian order).
            fn to_python<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let dict = PyDict::new(py);
                $({
                    let bytes = PyBytes::new_with(py, size_of_val(self.$name.as_slice()), |out| {
                        let size = size_of::<$kind>();
                        for (to, value) in out.chunks_exact_mut(size).zip(&self.$name) {
                            to.copy_from_slice(&value.to_le_bytes());
                        }
                        Ok(())
                    })?;
                    dict.set_item(stringify!($name), ($code, bytes))?;
                })*
                Ok(dict)
            }
        }
    };
}

columns! {
    packet: u64 = "<u8",
    time: i64 = "<i8",
    flow: u64 = "<u8",
    direction: u8 = "|u1",
    kind: u8 = "|u1",
    flags: u8 = "|u1",
    ecn: u8 = "|u1",
    may_fragment: u8 = "|u1",
    duplicate_ack: u8 = "|u1",
    seq: i64 = "<i8",
    ack: i64 = "<i8",
    window: u64 = "<u8",
    payload: u32 = "<u4",
    new_bytes: u32 = "<u4",
    frame_len: u32 = "<u4",
    ip_len: u32 = "<u4",
    outstanding: u64 = "<u8",
    outstanding_peer: u64 = "<u8",
    rtt: i64 = "<i8",
    rtt_timestamps: i64 = "<i8",
    sack_row: u64 = "<u8",
    sack_left: i64 = "<i8",
    sack_right: i64 = "<i8",
}

/// Keeps what it sees of the flows it wants.
struct Collector {
    /// None: all flows.
    wanted: Option<HashSet<u64>>,
    /// Packets at most.
    maximum: usize,
    columns: Columns,
    left_out: u64,
}

impl Observer for Collector {
    fn seen(&mut self, seen: &Seen<'_>) {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.contains(&seen.flow)) {
            return;
        }
        let columns = &mut self.columns;
        if columns.packet.len() >= self.maximum {
            self.left_out += 1;
            return;
        }
        let segment = seen.segment;
        if let Some(ack) = seen.ack {
            for block in segment.options.sack() {
                let relative = |edge: u32| ack + i64::from(edge.wrapping_sub(segment.ack) as i32);
                columns.sack_row.push(columns.packet.len() as u64);
                columns.sack_left.push(relative(block.left));
                columns.sack_right.push(relative(block.right));
            }
        }
        columns.packet.push(seen.packet);
        columns.time.push(seen.time);
        columns.flow.push(seen.flow);
        columns.direction.push(seen.direction.index() as u8);
        columns.kind.push(kind(seen.kind));
        columns.flags.push(segment.flags);
        columns.ecn.push(segment.ecn);
        columns.may_fragment.push(u8::from(!segment.dont_fragment));
        columns.duplicate_ack.push(u8::from(seen.duplicate_ack));
        columns.seq.push(seen.seq);
        columns.ack.push(seen.ack.unwrap_or(NONE));
        columns.window.push(seen.window);
        columns.payload.push(segment.payload_len);
        columns.new_bytes.push(seen.new_bytes);
        columns.frame_len.push(segment.frame_len);
        columns.ip_len.push(segment.ip_len);
        columns.outstanding.push(seen.outstanding);
        columns.outstanding_peer.push(seen.outstanding_peer);
        columns.rtt.push(seen.rtt.unwrap_or(NONE));
        columns.rtt_timestamps.push(seen.rtt_timestamps.unwrap_or(NONE));
    }
}

/// The names that `kind` counts through.
const KINDS: [&str; 11] = [
    "control",
    "new",
    "after a gap",
    "fast retransmission",
    "retransmission after timeout",
    "tail loss probe",
    "retransmission",
    "out of order",
    "duplicate",
    "keep-alive",
    "out of window",
];

fn kind(kind: Kind) -> u8 {
    match kind {
        Kind::Control => 0,
        Kind::New => 1,
        Kind::AfterGap => 2,
        Kind::Retransmission(Cause::Fast) => 3,
        Kind::Retransmission(Cause::Timeout) => 4,
        Kind::Retransmission(Cause::Probe) => 5,
        Kind::Retransmission(Cause::Unknown) => 6,
        Kind::OutOfOrder => 7,
        Kind::Duplicate => 8,
        Kind::KeepAlive => 9,
        Kind::OutOfWindow => 10,
    }
}

/// The packets of these flows (None: of all), at most `maximum` of them, as columns, and what was read.
#[pyfunction]
#[pyo3(signature = (path=None, flows=None, maximum=50_000_000))]
pub(super) fn follow<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    flows: Option<Vec<u64>>,
    maximum: usize,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyDict>)> {
    let mut reader = py.detach(|| super::open(path.as_ref()))?;
    let wanted = flows.map(|flows| flows.into_iter().collect());
    let collector = Collector { wanted, maximum, columns: Columns::default(), left_out: 0 };
    let mut analysis = Analysis::with_observer(Options::default(), collector);
    loop {
        let ended = py.detach(|| {
            for _ in 0..PACKETS_A_LOOK {
                match reader.next_packet() {
                    Some(packet) => analysis.packet(&packet),
                    None => return true,
                }
            }
            analysis.drain().for_each(drop);
            false
        });
        if ended {
            break;
        }
        py.check_signals()?;
    }
    let (_, counts, collector) = analysis.finish();
    let facts = super::facts(py, &reader)?;
    super::flows::add_counts(&facts, &counts)?;
    facts.set_item("left_out", collector.left_out)?;
    facts.set_item("kinds", KINDS.to_vec())?;
    Ok((collector.columns.to_python(py)?, facts))
}
