//! A control instance on one connection.

use std::sync::Arc;

use tcplab_units::prefetch;

use crate::binding::{Definition, ECT_1, NEEDS_ACCECN, NEEDS_ECN, RawTelemetry, address};
use crate::gauge::Gauge;
use crate::registry;
use crate::sock::{AckSample, CaEvent, CaState, RateSample, TcpSock};

/// A congestion control bound to one connection: the C operations and their private state.
///
/// Every call takes the connection's `TcpSock`; the control reads and writes it in place, as in Linux.
pub struct Control {
    definition: &'static Definition,
    /// Names of the definition's phases. Here, because to make text of C strings takes longer than all else a
    /// telemetry sample costs.
    phases: Arc<[&'static str]>,
    gauges: Arc<[Gauge]>,
    /// Whether the connection is established, before which the state means nothing.
    begun: bool,
    /// The private state; it begins with `RawTelemetry` and is aligned for any of the C side's integers.
    state: Box<[u64]>,
    parameters: Arc<[u32]>,
}

/// Telemetry of a control.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Telemetry {
    /// Name of the present phase ("STARTUP", "PROBE_BW", ...); empty if the control has none.
    pub phase: &'static str,
    /// Bandwidth estimate, bit/s; 0: none.
    pub bandwidth: u64,
    /// Minimum RTT estimate, microseconds; 0: none.
    pub min_rtt_us: u32,
    /// Pacing gain, in 1/256; 0: none.
    pub pacing_gain: u32,
    /// Window gain, in 1/256; 0: none.
    pub cwnd_gain: u32,
}

/// Why a control could not be had.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ControlError {
    /// No such control.
    #[error("unknown congestion control `{0}`: the simulator has {all}", all = all_names())]
    Unknown(String),
    /// No such parameter.
    #[error("congestion control `{control}` has no parameter `{name}`")]
    UnknownParameter {
        /// The control.
        control: String,
        /// The parameter.
        name: String,
    },
    /// A value outside its range.
    #[error("{control}: `{name}` is {value}, but must be from {min} to {max}")]
    OutOfRange {
        /// The control.
        control: String,
        /// The parameter.
        name: String,
        /// The given value.
        value: f64,
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
    },
}

fn all_names() -> String {
    registry::names().collect::<Vec<_>>().join(", ")
}

impl Control {
    /// The control called `name` with the parameters that differ from their defaults.
    ///
    /// `bbr` is `bbr1`, and `tl_NAME`, the name in the kernel, is `NAME`.
    pub fn new<'a>(
        name: &str,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Control, ControlError> {
        Control::of(registry::Table::find(name)?, params)
    }

    /// A control with the parameters that differ from their defaults.
    pub fn of<'a>(
        table: registry::Table,
        params: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<Control, ControlError> {
        let definition = table.0;
        let mut parameters: Vec<u32> = definition.parameters().iter().map(|row| row.initial).collect();
        for (name, value) in params {
            let index = definition.parameters().iter().position(|row| row.name() == name);
            let index = index.ok_or_else(|| ControlError::UnknownParameter {
                control: definition.name().to_owned(),
                name: name.to_owned(),
            })?;
            let row = &definition.parameters()[index];
            parameters[index] = row.whole(value).ok_or_else(|| {
                let known = row.public();
                ControlError::OutOfRange {
                    control: definition.name().to_owned(),
                    name: name.to_owned(),
                    value,
                    min: known.min,
                    max: known.max,
                }
            })?;
        }
        let bytes = (definition.state_size as usize).max(size_of::<RawTelemetry>());
        let state = vec![0; bytes.div_ceil(size_of::<u64>())].into_boxed_slice();
        let (phases, gauges) = (definition.phases().into(), definition.gauges().collect());
        Ok(Control { definition, phases, gauges, begun: false, state, parameters: parameters.into() })
    }

    /// The same control with the same parameters for another connection. Everything but the state is shared.
    pub fn another(&self) -> Control {
        Control {
            definition: self.definition,
            phases: self.phases.clone(),
            gauges: self.gauges.clone(),
            begun: false,
            state: vec![0; self.state.len()].into_boxed_slice(),
            parameters: self.parameters.clone(),
        }
    }

    /// Names of all controls the simulator has.
    pub fn names() -> impl Iterator<Item = &'static str> {
        registry::names()
    }

    /// Names of the phases, by number.
    pub fn phases(&self) -> &[&'static str] {
        &self.phases
    }

    /// The parameters in the control's own whole numbers, in the order of its `PARAMETERS`.
    pub fn parameters(&self) -> &[u32] {
        &self.parameters
    }

    /// An operation will be called soon: asks for the memory of the private state.
    #[inline]
    pub fn prefetch(&self) {
        prefetch(&*self.state);
    }

    /// The control's name.
    pub fn name(&self) -> &'static str {
        self.definition.name()
    }

    /// Called once the connection is established; starts with a private state of zeros.
    pub fn init(&mut self, sk: &mut TcpSock) {
        self.state.fill(0);
        self.begun = true;
        if let Some(op) = self.definition.ops.init {
            let sk = self.bind(sk);
            // SAFETY: `bind` has lent the operation all it follows; so in every call below.
            unsafe { op(sk) }
        }
    }

    /// The threshold after a loss, segments.
    #[inline]
    pub fn ssthresh(&mut self, sk: &mut TcpSock) -> u32 {
        match self.definition.ops.ssthresh {
            Some(op) => unsafe { op(self.bind(sk)) },
            None => (sk.snd_cwnd / 2).max(2),
        }
    }

    /// Grows the window on an ACK of new data; not called where `has_cong_control`.
    #[inline]
    pub fn cong_avoid(&mut self, sk: &mut TcpSock, ack: u32, acked: u32) {
        if let Some(op) = self.definition.ops.cong_avoid {
            unsafe { op(self.bind(sk), ack, acked) }
        }
    }

    /// Tells of a new congestion avoidance state, before it is set.
    #[inline]
    pub fn set_state(&mut self, sk: &mut TcpSock, state: CaState) {
        if let Some(op) = self.definition.ops.set_state {
            unsafe { op(self.bind(sk), state as u8) }
        }
    }

    /// Tells of an event.
    ///
    /// As in Linux, `CaEvent::TxStart` comes before `first_tx_mstamp` is renewed by the packet that it announces.
    #[inline]
    pub fn cwnd_event(&mut self, sk: &mut TcpSock, event: CaEvent) {
        if let Some(op) = self.definition.ops.cwnd_event {
            unsafe { op(self.bind(sk), event as u32) }
        }
    }

    /// Tells of an ACK's flags before it is processed.
    #[inline]
    pub fn in_ack_event(&mut self, sk: &mut TcpSock, flags: u32) {
        if let Some(op) = self.definition.ops.in_ack_event {
            unsafe { op(self.bind(sk), flags) }
        }
    }

    /// Tells of newly acknowledged packets and their RTT.
    #[inline]
    pub fn pkts_acked(&mut self, sk: &mut TcpSock, sample: &AckSample) {
        if let Some(op) = self.definition.ops.pkts_acked {
            unsafe { op(self.bind(sk), sample) }
        }
    }

    /// The window to go back to after a spurious recovery, segments.
    #[inline]
    pub fn undo_cwnd(&mut self, sk: &mut TcpSock) -> u32 {
        match self.definition.ops.undo_cwnd {
            Some(op) => unsafe { op(self.bind(sk)) },
            None => sk.snd_cwnd.max(sk.prior_cwnd),
        }
    }

    /// Whether the control sets window and pacing rate itself on every ACK (`cong_control`).
    #[inline]
    pub fn has_cong_control(&self) -> bool {
        self.definition.ops.cong_control.is_some()
    }

    /// Sets window and pacing rate from a rate sample.
    #[inline]
    pub fn cong_control(&mut self, sk: &mut TcpSock, ack: u32, flags: u32, sample: &RateSample) {
        if let Some(op) = self.definition.ops.cong_control {
            unsafe { op(self.bind(sk), ack, flags, sample) }
        }
    }

    /// Minimum segments of a TSO burst; Linux's default is 2.
    #[inline]
    pub fn min_tso_segs(&mut self, sk: &mut TcpSock) -> u32 {
        match self.definition.ops.min_tso_segs {
            Some(op) => unsafe { op(self.bind(sk)) },
            None => 2,
        }
    }

    /// Factor by which the send buffer exceeds the window; Linux's default is 2.
    #[inline]
    pub fn sndbuf_expand(&mut self, sk: &mut TcpSock) -> u32 {
        match self.definition.ops.sndbuf_expand {
            Some(op) => unsafe { op(self.bind(sk)) },
            None => 2,
        }
    }

    /// Whether the control's packets must be ECN-capable (`TCP_CONG_NEEDS_ECN`).
    pub fn needs_ecn(&self) -> bool {
        self.definition.ops.flags & (NEEDS_ECN | NEEDS_ACCECN) != 0
    }

    /// Whether it needs to know how many packets were marked (`TCP_CONG_NEEDS_ACCECN`).
    pub fn needs_accecn(&self) -> bool {
        self.definition.ops.flags & NEEDS_ACCECN != 0
    }

    /// Whether its packets are to have the codepoint ECT(1) (`TCP_CONG_ECT_1`).
    pub fn sends_ect1(&self) -> bool {
        self.definition.ops.flags & ECT_1 != 0
    }

    /// Current telemetry of the control.
    #[inline]
    pub fn telemetry(&self) -> Telemetry {
        // SAFETY: the block is at least as large and as aligned as `RawTelemetry`, which is plain numbers.
        let raw = unsafe { *self.state.as_ptr().cast::<RawTelemetry>() };
        Telemetry {
            phase: self.phases.get(raw.phase as usize).copied().unwrap_or_default(),
            bandwidth: raw.bandwidth,
            min_rtt_us: raw.min_rtt_us,
            pacing_gain: raw.pacing_gain,
            cwnd_gain: raw.cwnd_gain,
        }
    }

    /// Current values of its gauges, without those that have no value. Empty before `init`.
    #[inline]
    pub fn gauges(&self) -> impl Iterator<Item = (&Gauge, f64)> {
        // SAFETY: the block is plain numbers, of which any byte may be read.
        let state = unsafe {
            core::slice::from_raw_parts(self.state.as_ptr().cast::<u8>(), size_of_val(&*self.state))
        };
        let gauges = if self.begun { &*self.gauges } else { &[] };
        gauges.iter().filter_map(|gauge| Some((gauge, gauge.place.read(state)?)))
    }

    /// Lends this control's blocks to `sk` for one call.
    ///
    /// Done for each call, at the cost of two stores. So nothing a caller does to `sk` lets the C side follow a stale
    /// pointer. The caller may clone `sk`, or hand over another connection's.
    #[inline]
    fn bind(&mut self, sk: &mut TcpSock) -> *mut TcpSock {
        sk.tl_state = address(&mut self.state);
        sk.tl_params = self.parameters.as_ptr().cast();
        sk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control(name: &str, params: &[(&str, f64)]) -> Result<Control, ControlError> {
        Control::new(name, params.iter().copied())
    }

    fn sock(cwnd: u32) -> TcpSock {
        TcpSock { snd_cwnd: cwnd, is_cwnd_limited: 1, mss_cache: 1448, ..TcpSock::default() }
    }

    #[test]
    fn a_control_can_move_to_another_thread() {
        fn sendable<T: Send>() {}
        sendable::<Control>();
        sendable::<TcpSock>();
    }

    #[test]
    fn a_control_shows_nothing_of_a_connection_that_has_not_begun() -> Result<(), ControlError> {
        let mut copa = control("copa", &[])?;
        assert_eq!(copa.gauges().count(), 0);
        copa.init(&mut sock(10));
        let shown: Vec<_> = copa.gauges().map(|(gauge, value)| (gauge.name.as_str(), value)).collect();
        assert_eq!(shown, [("velocity", 1.0), ("inverse_delta", 2.0), ("queueing_delay", 0.0)]);
        Ok(())
    }

    #[test]
    fn a_control_is_known_by_its_kernel_name_too() -> Result<(), ControlError> {
        assert_eq!(control("tl_cubic", &[])?.name(), "cubic");
        assert_eq!(control("bbr", &[])?.name(), "bbr1");
        assert_eq!(control("tl_bbr1", &[])?.name(), "bbr1");
        Ok(())
    }

    #[test]
    fn an_unknown_control_is_refused_with_those_there_are() {
        let error = control("rneo", &[]).err().map(|error| error.to_string());
        let text = error.unwrap_or_default();
        assert!(text.contains("`rneo`") && text.contains("bbr1") && text.contains("reno"), "{text}");
    }

    #[test]
    fn parameters_are_checked() {
        let unknown = control("cubic", &[("bta", 0.8)]).err();
        assert_eq!(
            unknown,
            Some(ControlError::UnknownParameter { control: "cubic".into(), name: "bta".into() })
        );
        let out_of_range = control("cubic", &[("beta", 1.5)]).err();
        assert!(
            matches!(out_of_range, Some(ControlError::OutOfRange { value: 1.5, .. })),
            "{out_of_range:?}"
        );
        assert!(control("cubic", &[("beta", f64::NAN)]).is_err());
    }

    #[test]
    fn two_connections_may_have_different_parameters() -> Result<(), ControlError> {
        let mut sk = sock(100);
        let mut gentle = control("cubic", &[("beta", 0.9)])?;
        let mut usual = control("cubic", &[])?;
        gentle.init(&mut sk);
        usual.init(&mut sk);
        assert_eq!(gentle.ssthresh(&mut sk), 90);
        assert_eq!(usual.ssthresh(&mut sk), 70);
        Ok(())
    }

    #[test]
    fn init_forgets_the_connection_before() -> Result<(), ControlError> {
        let mut sk = sock(1000);
        let mut cubic = control("cubic", &[])?;
        cubic.init(&mut sk);
        cubic.ssthresh(&mut sk);
        sk.snd_cwnd = 500;
        cubic.init(&mut sk);
        sk.snd_ssthresh = cubic.ssthresh(&mut sk);
        // The way back is to 500; had it remembered the 1000, fast convergence would aim for 425 only.
        sk.snd_cwnd = 450;
        cubic.cong_avoid(&mut sk, 0, 1);
        assert_eq!(cubic.telemetry().phase, "CONCAVE");
        Ok(())
    }

    #[test]
    fn cubic_grows_by_at_most_half_a_window_a_round() -> Result<(), ControlError> {
        let mut sk = TcpSock { tcp_mstamp: 1, ..sock(1000) };
        let mut cubic = control("cubic", &[])?;
        cubic.init(&mut sk);
        cubic.ssthresh(&mut sk);
        (sk.snd_cwnd, sk.snd_ssthresh) = (100, 50);
        cubic.cong_avoid(&mut sk, 0, 1);
        // RFC 9438, section 4.2: however far the cubic function has gone meanwhile.
        sk.tcp_mstamp += 100_000_000;
        cubic.cong_avoid(&mut sk, 0, 100);
        assert_eq!(sk.snd_cwnd, 150);
        Ok(())
    }

    #[test]
    fn every_parameter_has_a_default_in_its_range_and_a_description() {
        for name in Control::names() {
            for parameter in registry::parameters(name).into_iter().flatten() {
                assert!(
                    parameter.min <= parameter.default && parameter.default <= parameter.max,
                    "{parameter:?}"
                );
                assert!(!parameter.doc.is_empty());
                for edge in [parameter.min, parameter.max] {
                    assert_eq!(control(name, &[(parameter.name, edge)]).err(), None);
                }
            }
        }
    }

    #[test]
    fn bbr_has_its_send_buffer_bursts_and_pacing() -> Result<(), ControlError> {
        let mut sk = sock(10);
        let mut bbr = control("bbr1", &[])?;
        bbr.init(&mut sk);
        assert!(bbr.has_cong_control() && !bbr.needs_ecn());
        assert_eq!(bbr.sndbuf_expand(&mut sk), 3);
        assert_eq!(bbr.min_tso_segs(&mut sk), 2);
        sk.sk_pacing_rate = 100_000;
        assert_eq!(bbr.min_tso_segs(&mut sk), 1);
        assert_eq!(sk.sk_pacing_status, crate::sock::PACING_NEEDED);
        assert_eq!(bbr.telemetry().phase, "STARTUP");
        assert_eq!(bbr.telemetry().pacing_gain, 739);
        Ok(())
    }

    /// The phase after a full pipe was found, with the next packet due in `wait` milliseconds.
    ///
    /// There are 100 packets in flight, twice what 1 packet a millisecond and 50 ms make.
    fn bbr_phase_when_full(wait: u64) -> Result<&'static str, ControlError> {
        let mut bbr = control("bbr1", &[])?;
        let mut sk = TcpSock { srtt_us: 50_000 << 3, rtt_min_us: 50_000, packets_out: 100, ..sock(150) };
        bbr.init(&mut sk);
        sk.tcp_wstamp_ns = sk.tcp_clock_cache + wait * 1_000_000;
        for _ in 0..4 {
            let sample = RateSample {
                prior_delivered: sk.delivered,
                delivered: 50,
                interval_us: 50_000,
                rtt_us: 50_000,
                acked_sacked: 50,
                prior_in_flight: 150,
                ..RateSample::default()
            };
            sk.delivered += 50;
            sk.tcp_mstamp += 50_000;
            sk.delivered_mstamp = sk.tcp_mstamp;
            bbr.cong_control(&mut sk, 0, 0, &sample);
        }
        Ok(bbr.telemetry().phase)
    }

    #[test]
    fn bbr_does_not_drain_what_still_waits_to_be_paced() -> Result<(), ControlError> {
        assert_eq!(bbr_phase_when_full(0)?, "DRAIN");
        assert_eq!(bbr_phase_when_full(50)?, "PROBE_BW");
        Ok(())
    }
}
