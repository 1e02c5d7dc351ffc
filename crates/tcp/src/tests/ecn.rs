//! Explicit congestion notification: how it is agreed on, what is marked, how marks are echoed and answered.

use tcplab_control::CaState;
use tcplab_units::Time;

use super::pair::control;
use super::script::{Script, ack, data, plain, segment};
use crate::Ecn;
use crate::segment::{ACK, CWR, ECE, FIN, SYN};
use crate::{Config, Connection, Notice, Segment};

fn ecn_client() -> Script {
    Script::client(&Config { ecn: Ecn::On, ..plain() }, "reno", 100.0)
}

#[test]
fn data_is_ecn_capable_and_retransmissions_and_acks_are_not() {
    let mut t = ecn_client();
    t.write(u64::MAX);
    assert!(t.segments().iter().all(|s| s.ecn == 2));
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    let again: Vec<_> = t.segments().into_iter().filter(|s| s.retransmission).collect();
    assert_eq!((again.len(), again[0].ecn), (1, 0));
    t.at(201.0, data(1, 1001));
    assert!(t.segments().iter().filter(|s| s.len == 0).all(|s| s.ecn == 0));
}

#[test]
fn an_echo_reduces_the_window_once_a_round_trip_and_is_confirmed_by_cwr() {
    let mut t = ecn_client();
    t.write(u64::MAX);
    t.sent();
    t.at(200.0, ack(1001).flagged(ECE));
    assert_eq!(t.end.info(t.now).ca_state, CaState::Cwr);
    assert_eq!(t.end.info(t.now).ssthresh, Some(5));
    assert!(t.noticed(Notice::EcnResponse));
    let mut confirmed = t.sent();
    for i in 2..=10 {
        t.at(200.0 + f64::from(i), ack(i * 1000 + 1).flagged(ECE));
        confirmed.extend(t.sent());
    }
    assert_eq!(confirmed.iter().filter(|s| s.contains('W')).count(), 1, "{confirmed:?}");
    assert!(!t.noticed(Notice::EcnResponse), "one response a round trip");
    assert_eq!(t.end.info(t.now).ssthresh, Some(5));
    assert_eq!(t.end.info(t.now).retransmits, 0);
}

#[test]
fn a_mark_is_echoed_until_the_sender_confirms() {
    let mut t = ecn_client();
    t.at(110.0, data(1, 1001).codepoint(2));
    t.at(111.0, data(1001, 2001).codepoint(3));
    t.at(112.0, data(2001, 3001).codepoint(2));
    t.at(113.0, data(3001, 4001).codepoint(2).flagged(CWR));
    assert_eq!(t.sent(), ["ack 1001", "ack 2001 E", "ack 3001 E", "ack 4001"]);
}

#[test]
fn ecn_is_used_only_if_both_ends_agree() {
    for (ours, asks) in [(Ecn::Off, false), (Ecn::Passive, false), (Ecn::On, true)] {
        let mut t = Script::client(&Config { ecn: ours, ..plain() }, "reno", 100.0);
        t.write(1000);
        assert_eq!(t.segments()[0].ecn == 2, asks);
    }
}

/// The codepoint of our SYN, whether a server with `ecn` and `control_name` agrees to ECN, and the codepoint of its SYN-ACK.
fn handshake(ours: (Ecn, &str), server: (Ecn, &str)) -> (u8, bool, u8) {
    let of = |ecn| Config { ecn, ..plain() };
    let mut client = Connection::connect(&of(ours.0), control(ours.1), 1, Time::ZERO);
    let syn = client.poll_transmit(Time::ZERO).expect("the SYN");
    let mut server = Connection::accept(&of(server.0), control(server.1), 1, &syn, Time::ZERO);
    let reply = server.poll_transmit(Time::ZERO).expect("the SYN-ACK");
    (syn.ecn, reply.flags & ECE != 0, reply.ecn)
}

#[test]
fn a_fin_without_data_is_not_ecn_capable_and_leaves_cwr_to_data() {
    let mut t = ecn_client();
    t.write(10_000);
    t.sent();
    t.at(200.0, ack(10_001).flagged(ECE));
    t.end.close(t.now);
    let fin = t.segments().remove(0);
    assert_eq!((fin.len, fin.flags & (FIN | CWR), fin.ecn), (0, FIN, 0));
}

/// Our SYN's first retransmission and the first data, if a SYN-ACK that agrees to ECN answers the former.
fn after_a_lost_syn(control_name: &str) -> (Segment, Segment) {
    let mut end =
        Connection::connect(&Config { ecn: Ecn::On, ..plain() }, control(control_name), 7, Time::ZERO);
    end.poll_transmit(Time::ZERO).expect("the SYN");
    let now = end.poll_timeout();
    end.handle_timeout(now);
    let again = end.poll_transmit(now).expect("the SYN again");
    let mut reply = segment(SYN | ACK).flagged(ECE);
    (reply.ack, reply.mss) = (8, 1000);
    end.handle_segment(&reply, now);
    end.poll_transmit(now).expect("the ACK of the SYN-ACK");
    end.write(1000, now);
    (again, end.poll_transmit(now).expect("data"))
}

#[test]
fn a_retransmitted_syn_does_not_ask_for_ecn() {
    // RFC 3168, section 6.1.1.1: something on the path may drop SYNs that do.
    for (control_name, codepoint) in [("reno", 0), ("dctcp", 2)] {
        let (again, _) = after_a_lost_syn(control_name);
        assert_eq!((again.flags & (ECE | CWR), again.ecn), (0, codepoint), "{control_name}");
    }
}

#[test]
fn the_first_data_after_a_syn_timeout_says_that_the_window_was_reduced() {
    // The SYN-ACK of the first SYN was late.
    let (_, data) = after_a_lost_syn("reno");
    assert_eq!((data.flags & CWR, data.ecn), (CWR, 2));
}

#[test]
fn a_control_that_needs_ecn_asks_for_it_whatever_the_setting() {
    assert_eq!(handshake((Ecn::Off, "dctcp"), (Ecn::Off, "dctcp")), (2, true, 2));
    assert_eq!(handshake((Ecn::Passive, "reno"), (Ecn::On, "reno")), (0, false, 0));
    assert_eq!(handshake((Ecn::On, "reno"), (Ecn::Passive, "reno")), (0, true, 0));
}

#[test]
fn a_server_with_another_control_refuses_the_ecn_capable_syn() {
    assert_eq!(handshake((Ecn::On, "dctcp"), (Ecn::On, "reno")), (2, false, 0));
    // But one that needs ECN takes what others offer, and its SYN-ACK is ECN-capable even if they do not.
    assert_eq!(handshake((Ecn::On, "reno"), (Ecn::Off, "dctcp")), (0, true, 2));
    assert_eq!(handshake((Ecn::Off, "reno"), (Ecn::Off, "dctcp")), (0, false, 2));
}

#[test]
fn a_control_that_needs_ecn_makes_all_its_packets_capable() {
    let mut t = Script::client(&plain(), "dctcp", 100.0);
    t.write(u64::MAX);
    t.at(200.0, ack(1).sacks(&[(1001, 4001)]));
    t.at(201.0, data(1, 1001));
    let sent = t.segments();
    assert!(sent.iter().any(|s| s.retransmission) && sent.iter().any(|s| s.len == 0));
    assert!(sent.iter().all(|s| s.ecn == 2));
}

/// A dctcp receiver past its quick ACKs, which delays every other one.
fn dctcp_receiver() -> (Script, u32) {
    let config = Config { receive_buffer: Some(100_000), ..plain() };
    let mut t = Script::client(&config, "dctcp", 10.0);
    let mut seq = 1;
    for i in 0..400 {
        t.at(20.0 + f64::from(i), data(seq, seq + 1000).codepoint(2));
        seq += 1000;
    }
    t.until(500.0);
    t.sent();
    (t, seq)
}

#[test]
fn dctcp_acknowledges_what_waits_when_the_mark_changes() {
    let (mut t, s) = dctcp_receiver();
    t.at(501.0, data(s, s + 1000).codepoint(2));
    assert_eq!(t.sent(), [""; 0]);
    // The ACK that waited goes without echo, the marked packet's at once with it.
    t.at(502.0, data(s + 1000, s + 2000).codepoint(3));
    assert_eq!(t.sent(), [format!("ack {}", s + 1000), format!("ack {} E", s + 2000)]);
    // While marks go on, ACKs are delayed as ever, and all carry the echo.
    t.at(503.0, data(s + 2000, s + 3000).codepoint(3));
    assert_eq!(t.sent(), [""; 0]);
    t.at(504.0, data(s + 3000, s + 4000).codepoint(3));
    assert_eq!(t.sent(), [format!("ack {} E", s + 4000)]);
    t.at(505.0, data(s + 4000, s + 5000).codepoint(3));
    t.at(506.0, data(s + 5000, s + 6000).codepoint(2));
    assert_eq!(t.sent(), [format!("ack {} E", s + 5000), format!("ack {}", s + 6000)]);
}

#[test]
fn dctcp_echoes_on_after_the_sender_has_confirmed() {
    let (mut t, s) = dctcp_receiver();
    t.at(501.0, data(s, s + 1000).codepoint(3));
    t.at(502.0, data(s + 1000, s + 2000).codepoint(3).flagged(CWR));
    assert_eq!(t.sent(), [format!("ack {} E", s + 1000), format!("ack {} E", s + 2000)]);
}

#[test]
fn dctcp_reduces_by_half_the_share_of_marks() {
    // Without a history, the share is taken for all (RFC 8257, section 4.2). The ACK that ends a window belongs to it: the
    // share fades by a sixteenth, and gets a sixteenth for this ACK, of which all is marked.
    let mut t = Script::client(&plain(), "dctcp", 100.0);
    t.write(u64::MAX);
    t.at(200.0, ack(1001).flagged(ECE));
    assert_eq!(t.end.info(t.now).ca_state, CaState::Cwr);
    assert_eq!(t.end.info(t.now).ssthresh, Some(5));

    // Four windows without marks: 10, 20, 40, 80 segments.
    let mut t = Script::client(&plain(), "dctcp", 100.0);
    t.write(u64::MAX);
    let mut end = 1;
    for (round, segments) in [10, 20, 40, 80].into_iter().enumerate() {
        t.sent();
        end += segments * 1000;
        t.at(100.0 * (round as f64 + 2.0), ack(end));
    }
    assert_eq!(t.cwnd(), 160);
    t.sent();
    t.at(600.0, ack(end + 1000).flagged(ECE));
    let alpha = (15.0f64 / 16.0).powi(5) + 1.0 / 16.0;
    let expected = 160.0 * (1.0 - alpha / 2.0);
    let got = f64::from(t.end.info(t.now).ssthresh.expect("a reduction"));
    assert!((got - expected).abs() < 1.0, "{got}, not {expected}");
}

#[test]
fn dctcp_answers_loss_by_half_whatever_the_share_of_marks() {
    let mut t = Script::client(&plain(), "dctcp", 100.0);
    t.write(u64::MAX);
    for (at, end) in [(200.0, 10), (300.0, 30), (400.0, 70)] {
        t.sent();
        t.at(at, ack(end * 1000 + 1));
    }
    assert_eq!(t.cwnd(), 80);
    t.sent();
    t.at(500.0, ack(70_001).sacks(&[(71_001, 110_001)]));
    assert_eq!(t.end.info(t.now).ca_state, CaState::Recovery);
    assert_eq!(t.end.info(t.now).ssthresh, Some(40));
}

#[test]
fn dctcp_halves_the_present_window_when_loss_follows_a_mark() {
    let mut t = Script::client(&plain(), "dctcp", 100.0);
    t.write(u64::MAX);
    t.sent();
    for i in 1..=4 {
        t.at(200.0 + f64::from(i), ack(i * 1000 + 1).flagged(ECE));
    }
    assert_eq!((t.end.info(t.now).ca_state, t.end.info(t.now).ssthresh), (CaState::Cwr, Some(5)));
    let window = t.cwnd();
    assert!(window < 10, "{window}");
    t.at(210.0, ack(4001).sacks(&[(5001, 8001)]));
    assert_eq!(t.end.info(t.now).ca_state, CaState::Recovery);
    assert_eq!(t.end.info(t.now).ssthresh, Some(window / 2));
}
