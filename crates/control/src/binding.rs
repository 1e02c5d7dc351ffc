//! The C side as it is: twins of the structures at the end of `cc/include/tcplab_cc_native.h`.

use core::ffi::{CStr, c_char, c_void};

use crate::gauge::{Gauge, Place};
use crate::sock::{AckSample, RateSample, TcpSock};

/// A pointer to one of the socket's operations; absent where the control has none.
type Op<F> = Option<F>;

/// `struct tcp_congestion_ops`.
#[repr(C)]
pub(crate) struct Ops {
    pub init: Op<unsafe extern "C" fn(*mut TcpSock)>,
    pub ssthresh: Op<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub cong_avoid: Op<unsafe extern "C" fn(*mut TcpSock, u32, u32)>,
    pub set_state: Op<unsafe extern "C" fn(*mut TcpSock, u8)>,
    pub cwnd_event: Op<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pub in_ack_event: Op<unsafe extern "C" fn(*mut TcpSock, u32)>,
    pub pkts_acked: Op<unsafe extern "C" fn(*mut TcpSock, *const AckSample)>,
    pub min_tso_segs: Op<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub cong_control: Op<unsafe extern "C" fn(*mut TcpSock, u32, u32, *const RateSample)>,
    pub undo_cwnd: Op<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub sndbuf_expand: Op<unsafe extern "C" fn(*mut TcpSock) -> u32>,
    pub flags: u32,
}

/// `TCP_CONG_NEEDS_ECN` in `Ops::flags`.
pub(crate) const NEEDS_ECN: u32 = 2;
/// `TCP_CONG_NEEDS_ACCECN` in `Ops::flags`.
pub(crate) const NEEDS_ACCECN: u32 = 4;
/// `TCP_CONG_ECT_1` in `Ops::flags`.
pub(crate) const ECT_1: u32 = 8;

/// `TL_NAME_SIZE`, `TL_UNIT_SIZE` and `TL_DOC_SIZE` of `tcplab_cc.h`.
const NAME: usize = 32;
const UNIT: usize = 16;
const DOC: usize = 160;

/// `struct tl_parameter_row`.
#[repr(C)]
pub(crate) struct RawParameter {
    name: [u8; NAME],
    doc: [u8; DOC],
    pub initial: u32,
    pub min: u32,
    pub max: u32,
    pub scale: u32,
}

/// `struct tl_gauge_row`.
#[repr(C)]
pub(crate) struct RawGauge {
    name: [u8; NAME],
    unit: [u8; UNIT],
    doc: [u8; DOC],
    offset: u32,
    size: u32,
    is_signed: u32,
    scale: u32,
}

/// `struct tl_telemetry`, which every control's state begins with.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawTelemetry {
    pub bandwidth: u64,
    pub min_rtt_us: u32,
    pub phase: u32,
    pub pacing_gain: u32,
    pub cwnd_gain: u32,
}

/// `struct tl_control`: all there is to know of a control.
#[repr(C)]
pub(crate) struct Definition {
    name: *const c_char,
    pub phases: *const [u8; NAME],
    pub parameters: *const RawParameter,
    pub gauges: *const RawGauge,
    phase_count: u32,
    parameter_count: u32,
    gauge_count: u32,
    /// Size of the private state, bytes.
    pub state_size: u32,
    pub ops: Ops,
}

// SAFETY: a definition is constant C data; its pointers lead to constant data and to functions that keep no
// state of their own.
unsafe impl Sync for Definition {}

impl Definition {
    pub(crate) fn name(&'static self) -> &'static str {
        // SAFETY: `CONGESTION_CONTROL` sets it to a string literal.
        unsafe { CStr::from_ptr(self.name) }.to_str().unwrap_or("")
    }

    /// Why it cannot be called; none if it can. Linux refuses the same (`tcp_validate_congestion_control`).
    pub(crate) fn fault(&'static self) -> Option<&'static str> {
        let ops = &self.ops;
        match () {
            () if self.name.is_null() || self.name().is_empty() => Some("it has no name"),
            () if self.phases.is_null() || self.parameters.is_null() || self.gauges.is_null() => {
                Some("it has no CONGESTION_CONTROL of this version of tcplab_cc.h")
            }
            () if (self.state_size as usize) < size_of::<RawTelemetry>() => {
                Some("its struct state does not begin with TELEMETRY")
            }
            () if ops.ssthresh.is_none() => Some("it has no SSTHRESH among its operations"),
            () if ops.undo_cwnd.is_none() => Some("it has no UNDO_CWND among its operations"),
            () if ops.cong_avoid.is_none() && ops.cong_control.is_none() => {
                Some("it has neither CONG_AVOID nor CONG_CONTROL among its operations")
            }
            () => None,
        }
    }

    pub(crate) fn parameters(&'static self) -> &'static [RawParameter] {
        // SAFETY: `CONGESTION_CONTROL` makes the table of this many rows.
        unsafe { core::slice::from_raw_parts(self.parameters, self.parameter_count as usize) }
    }

    /// Gauges of the control, in the order of its `GAUGES`.
    pub(crate) fn gauges(&'static self) -> impl Iterator<Item = Gauge> + use<> {
        // SAFETY: `CONGESTION_CONTROL` makes the table of this many rows.
        let rows = unsafe { core::slice::from_raw_parts(self.gauges, self.gauge_count as usize) };
        rows.iter().map(RawGauge::public)
    }

    /// The names of the phases, by number.
    pub(crate) fn phases(&'static self) -> Box<[&'static str]> {
        // SAFETY: `CONGESTION_CONTROL` makes the table of this many rows.
        let rows = unsafe { core::slice::from_raw_parts(self.phases, self.phase_count as usize) };
        rows.iter().map(|row| text(row)).collect()
    }
}

impl RawParameter {
    pub(crate) fn name(&'static self) -> &'static str {
        text(&self.name)
    }

    pub(crate) fn doc(&'static self) -> &'static str {
        text(&self.doc)
    }
}

impl RawGauge {
    fn public(&'static self) -> Gauge {
        let [name, unit, doc] = [&self.name[..], &self.unit, &self.doc].map(|row| text(row).to_owned());
        let place =
            Place { offset: self.offset, size: self.size, signed: self.is_signed != 0, scale: self.scale };
        Gauge { name, unit, doc, place }
    }
}

/// The text in a row of a table; empty if it is not UTF-8.
fn text(row: &[u8]) -> &str {
    CStr::from_bytes_until_nul(row).ok().and_then(|text| text.to_str().ok()).unwrap_or("")
}

/// The private state's address as the C side wants it.
pub(crate) fn address(block: &mut [u64]) -> *mut c_void {
    block.as_mut_ptr().cast()
}
