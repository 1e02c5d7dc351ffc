//! Whatever happens to a connection, a control's window and pacing rate stay sane.

mod common;

use common::Sender;
use proptest::prelude::*;
use tcplab_control::sock::{INFINITE_SSTHRESH, PACING_NONE};
use tcplab_control::{CaEvent, CaState, Control, RateSample};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Operation {
    /// Time passes, microseconds.
    Wait(u32),
    /// Packets are sent, up to the window.
    Send(u16),
    /// An ACK: so many lost, so many arrived.
    Ack {
        lost: u16,
        acked: u16,
        rtt: Option<i64>,
    },
    /// A rate sample that no path would give.
    AbsurdSample(Box<RateSample>),
    EcnEcho,
    Event(CaEvent),
    Timeout,
    Undo,
    AppLimited,
    MssChange(u32),
    MaxPacingRate(u64),
    TsoSegs,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..32u32).prop_flat_map(|bits| 0..=u32::MAX >> bits).prop_map(Operation::Wait),
        6 => (1..2000u16).prop_map(Operation::Send),
        8 => (1..2000u16).prop_map(|acked| Operation::Ack { lost: 0, acked, rtt: None }),
        3 => (0..50u16, 0..2000u16, any_rtt())
            .prop_map(|(lost, acked, rtt)| Operation::Ack { lost, acked, rtt: Some(rtt) }),
        1 => absurd_sample().prop_map(|sample| Operation::AbsurdSample(Box::new(sample))),
        1 => Just(Operation::EcnEcho),
        1 => event().prop_map(Operation::Event),
        1 => Just(Operation::Timeout),
        1 => Just(Operation::Undo),
        1 => Just(Operation::AppLimited),
        1 => (1..65_535u32).prop_map(Operation::MssChange),
        1 => prop_oneof![1_000..u64::MAX, Just(u64::MAX)].prop_map(Operation::MaxPacingRate),
        1 => Just(Operation::TsoSegs),
    ]
}

fn any_rtt() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-1), Just(0), 1..i64::from(i32::MAX)]
}

fn event() -> impl Strategy<Value = CaEvent> {
    prop_oneof![
        Just(CaEvent::TxStart),
        Just(CaEvent::CwndRestart),
        Just(CaEvent::CompleteCwr),
        Just(CaEvent::Loss),
        Just(CaEvent::EcnNoCe),
        Just(CaEvent::EcnIsCe),
    ]
}

prop_compose! {
    fn absurd_sample()(
        prior_delivered in any::<u32>(),
        delivered in any::<i32>(),
        interval_us in any::<i64>(),
        rtt_us in any::<i64>(),
        losses in 0..100_000i32,
        acked_sacked in 0..100_000u32,
        prior_in_flight in any::<u32>(),
        flags in any::<[bool; 3]>(),
    ) -> RateSample {
        RateSample {
            prior_delivered, delivered, interval_us, rtt_us, losses, acked_sacked, prior_in_flight,
            is_app_limited: flags[0].into(), is_retrans: flags[1].into(), is_ack_delayed: flags[2].into(),
            ..RateSample::default()
        }
    }
}

/// Linux's own limit would be the memory for the packets; the test's is this.
const MAX_IN_FLIGHT: u32 = 3000;

fn apply(sender: &mut Sender, operation: &Operation) {
    match *operation {
        Operation::Wait(us) => sender.set_time(sender.sk.tcp_mstamp + u64::from(us)),
        Operation::Send(max) => {
            for _ in 0..max {
                if sender.sk.packets_out >= sender.sk.snd_cwnd.min(MAX_IN_FLIGHT) {
                    break;
                }
                sender.send();
            }
        }
        Operation::Ack { lost, acked, rtt } => {
            sender.sk.is_cwnd_limited = 1;
            sender.ack(lost.into(), acked.into(), rtt);
        }
        Operation::AbsurdSample(ref sample) => sender.finish_ack(**sample),
        Operation::EcnEcho => sender.ecn_echo(),
        Operation::Event(event) => sender.control.cwnd_event(&mut sender.sk, event),
        Operation::Timeout => sender.timeout(),
        Operation::Undo => sender.undo(),
        Operation::AppLimited => sender.limit_by_application(),
        Operation::MssChange(mss) => sender.sk.mss_cache = mss,
        Operation::MaxPacingRate(rate) => sender.sk.sk_max_pacing_rate = rate,
        Operation::TsoSegs => {
            let segments = sender.control.min_tso_segs(&mut sender.sk);
            assert!((1..=16).contains(&segments), "bursts of at least {segments}");
        }
    }
}

fn is_bbr(control: &Control) -> bool {
    control.name().starts_with("bbr")
}

/// The minimum window a control may leave in the state it is in.
fn min_window(control: &Control, state: CaState) -> u32 {
    match state {
        // After a timeout TCP itself sets one segment.
        CaState::Loss => 1,
        // BBR keeps 4 packets "except in the immediate aftermath of entering loss recovery" (draft -00,
        // section 4.2.3.3), when it sends a packet for a packet that arrives.
        CaState::Recovery if is_bbr(control) => 1,
        _ if is_bbr(control) => 4,
        _ => 2,
    }
}

/// `delivered` is what was so before `operation`.
fn check(sender: &Sender, operation: &Operation, delivered: u32) -> Result<(), TestCaseError> {
    let sk = &sender.sk;
    let telemetry = sender.control.telemetry();
    // A control that follows the rate sample sets its window with the next packet acknowledged.
    let settled = !sender.control.has_cong_control() || sk.delivered != delivered;
    if settled {
        let min = min_window(&sender.control, sender.state());
        prop_assert!(sk.snd_cwnd >= min, "window {} below {min} after {operation:?}", sk.snd_cwnd);
    }
    prop_assert!(sk.snd_cwnd >= 1 && sk.snd_cwnd < 1 << 30, "window {} after {operation:?}", sk.snd_cwnd);
    prop_assert!(sk.snd_ssthresh >= 2 && sk.snd_ssthresh <= INFINITE_SSTHRESH);
    // Of a control that does not set its rate, TCP itself does.
    if sk.sk_pacing_status != PACING_NONE && sender.control.has_cong_control() {
        prop_assert!(sk.sk_pacing_rate > 0, "a pacing rate of nothing after {operation:?}");
        // 700 Gbit/s of the largest packets at the highest gain.
        prop_assert!(sk.sk_pacing_rate < 1 << 45, "pacing at {} after {operation:?}", sk.sk_pacing_rate);
    }
    prop_assert!(!telemetry.phase.is_empty());
    Ok(())
}

fn stays_sane(name: &str, rtt: u32, cwnd: u32, operations: &[Operation]) -> Result<(), TestCaseError> {
    let control = Control::new(name, []).map_err(|error| TestCaseError::fail(error.to_string()))?;
    let mut sender = Sender::new(control, rtt, 1);
    sender.sk.snd_cwnd = cwnd;
    for operation in operations {
        let delivered = sender.sk.delivered;
        apply(&mut sender, operation);
        check(&sender, operation, delivered)?;
    }
    Ok(())
}

/// After `operations`, the best window that ACKs alone bring about.
fn recovered_window(control: Control, operations: &[Operation]) -> u32 {
    let mut sender = Sender::new(control, 20_000, 1);
    for operation in operations {
        // These would leave a wrong idea of the path, or of what TCP is doing, that time must correct.
        if !matches!(operation, Operation::AbsurdSample(_) | Operation::Event(_)) {
            apply(&mut sender, operation);
        }
    }
    sender.sk.mss_cache = 1448;
    let mut best = 0;
    // LEDBAT++ grows by a sixth of a packet a round trip here.
    for _ in 0..400 {
        apply(&mut sender, &Operation::Send(100));
        sender.set_time(sender.sk.tcp_mstamp + 20_000);
        apply(&mut sender, &Operation::Ack { lost: 0, acked: u16::MAX, rtt: None });
        best = best.max(sender.sk.snd_cwnd);
    }
    best
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_control_stays_sane_whatever_happens(
        rtt in 1..10_000_000u32,
        cwnd in prop_oneof![4..100u32, 4..1_000_000u32],
        operations in prop::collection::vec(operation(), 1..200),
    ) {
        for name in Control::names() {
            stays_sane(name, rtt, cwnd, &operations)?;
        }
    }

    #[test]
    fn every_control_grows_again_once_all_is_well(operations in prop::collection::vec(operation(), 1..50)) {
        for name in Control::names() {
            let control = Control::new(name, []).map_err(|error| TestCaseError::fail(error.to_string()))?;
            let best = recovered_window(control, &operations);
            prop_assert!(best > 10, "{name} stays at {best}");
        }
    }
}
