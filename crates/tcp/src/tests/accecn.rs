//! Accurate ECN (RFC 9768): how it is agreed on and what falls back, what the receiver reports, what the sender counts.

use tcplab_units::{Span, Time};

use super::pair::{Faults, Pair, control};
use super::script::plain;
use crate::accecn::{ace, set_ace};
use crate::segment::{ACK, CWR, ECE, SYN};
use crate::{Config, Connection, Ecn, EcnFeedback, Segment};

fn of(ecn: Ecn) -> Config {
    Config { ecn, ..plain() }
}

/// The SYN, the SYN-ACK and the ACK of a handshake on whose way `touch` has its hands, and both ends after it.
fn handshake(
    ours: (Ecn, &str),
    theirs: (Ecn, &str),
    touch: impl Fn(&mut Segment),
) -> ([Segment; 3], Connection, Connection) {
    let now = Time::ZERO;
    let mut client = Connection::connect(&of(ours.0), control(ours.1), 1, now);
    let pass = |from: &mut Connection| {
        let mut segment = from.poll_transmit(now).expect("a segment");
        touch(&mut segment);
        segment
    };
    let syn = pass(&mut client);
    let mut server = Connection::accept(&of(theirs.0), control(theirs.1), 1, &syn, now);
    let reply = pass(&mut server);
    client.handle_segment(&reply, now);
    let ack = pass(&mut client);
    server.handle_segment(&ack, now);
    ([syn, reply, ack], client, server)
}

#[test]
fn both_ends_agree_by_the_three_flags_of_each_segment() {
    let ([syn, reply, ack], client, server) = handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |_| ());
    // Table 2 and 3: all three flags ask; what came back was not ECN-capable.
    assert_eq!([syn, reply, ack].map(|s| ace(&s)), [0b111, 0b010, 0b010]);
    assert_eq!([syn, reply, ack].map(|s| s.accecn.fields), [0, 3, 3]);
    assert_eq!((ack.accecn.e0b, ack.accecn.ceb, ack.accecn.e1b), (1, 0, 1));
    assert_eq!([client, server].map(|end| end.ecn_feedback()), [EcnFeedback::Accurate; 2]);
}

#[test]
fn the_codepoint_of_a_syn_comes_back_in_the_handshake() {
    for (codepoint, encoded) in [(0, 0b010), (1, 0b011), (2, 0b100), (3, 0b110)] {
        let ([_, reply, ack], client, server) =
            handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |s| s.ecn = codepoint);
        assert_eq!([ace(&reply), ace(&ack)], [encoded; 2]);
        assert_eq!([client, server].map(|end| end.ecn_feedback()), [EcnFeedback::Accurate; 2]);
    }
}

#[test]
fn it_falls_back_to_classic_ecn_and_to_none() {
    let agreed = |ours, theirs| {
        let (_, client, server) = handshake((ours, "reno"), (theirs, "reno"), |_| ());
        assert_eq!(client.ecn_feedback(), server.ecn_feedback());
        client.ecn_feedback()
    };
    assert_eq!(agreed(Ecn::Accecn, Ecn::On), EcnFeedback::Classic);
    assert_eq!(agreed(Ecn::Accecn, Ecn::Passive), EcnFeedback::Classic);
    assert_eq!(agreed(Ecn::On, Ecn::Accecn), EcnFeedback::Classic);
    assert_eq!(agreed(Ecn::Accecn, Ecn::Off), EcnFeedback::None);
    assert_eq!(agreed(Ecn::Off, Ecn::Accecn), EcnFeedback::None);
    assert_eq!(agreed(Ecn::Passive, Ecn::Accecn), EcnFeedback::None);
}

#[test]
fn a_path_that_clears_the_flags_turns_ecn_off() {
    let ([_, reply, ack], client, mut server) =
        handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |s| {
            if s.flags & ACK != 0 {
                s.ae = false;
                s.flags &= !(ECE | CWR);
            }
        });
    assert_eq!([ace(&reply), ace(&ack)], [0; 2]);
    assert_eq!(client.ecn_feedback(), EcnFeedback::None);
    // The server had agreed; the ACK corrects it.
    server.write(1000, Time::ZERO);
    assert_eq!(server.poll_transmit(Time::ZERO).expect("data").ecn, 0);
}

#[test]
fn combinations_that_nothing_sends_yet_agree_to_accurate_feedback() {
    for flags in [0b001, 0b010, 0b100, 0b101, 0b110] {
        let (_, client, server) = handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |segment| {
            if segment.flags & ACK == 0 {
                set_ace(segment, flags);
            }
        });
        assert_eq!([client, server].map(|end| end.ecn_feedback()), [EcnFeedback::Accurate; 2], "{flags:03b}");
    }
    // A SYN-ACK with the flags of the nonce (RFC 3540), which is historic.
    let ([_, reply, _], client, _) = handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |segment| {
        if segment.flags & (SYN | ACK) == SYN | ACK {
            set_ace(segment, 0b101);
        }
    });
    assert_eq!((ace(&reply), client.ecn_feedback()), (0b101, EcnFeedback::Accurate));
}

/// The codepoint of the data of a client and of a server between which codepoints of handshakes become `arrives`.
fn codepoints_after(control: &str, arrives: u8) -> [u8; 2] {
    let (_, client, server) =
        handshake((Ecn::Accecn, control), (Ecn::Accecn, control), |segment| segment.ecn = arrives);
    [client, server].map(|mut end| {
        assert_eq!(end.ecn_feedback(), EcnFeedback::Accurate, "it goes on to report");
        end.write(1000, Time::ZERO);
        end.poll_transmit(Time::ZERO).expect("data").ecn
    })
}

#[test]
fn an_end_whose_codepoint_is_changed_on_the_way_sends_nothing_ecn_capable() {
    assert_eq!(codepoints_after("reno", 0), [2, 2]);
    for arrives in 1..=3 {
        assert_eq!(codepoints_after("reno", arrives), [0, 0]);
    }
    // The SYN of Prague is ECN-capable, and its SYN-ACK is not.
    assert_eq!(codepoints_after("prague", 0), [0, 1]);
    assert_eq!(codepoints_after("prague", 3), [1, 0]);
}

#[test]
fn a_marked_syn_is_answered_as_any_mark() {
    let after_first_ack = |codepoint| {
        let (_, mut client, mut server) =
            handshake((Ecn::Accecn, "prague"), (Ecn::Accecn, "prague"), |segment| {
                if segment.flags & ACK == 0 {
                    segment.ecn = codepoint;
                }
            });
        client.write(20_000, Time::ZERO);
        let data = client.poll_transmit(Time::ZERO).expect("data");
        server.handle_segment(&data, Time::ZERO);
        let at = Time::ZERO + Span::from_ms(200);
        server.handle_timeout(at);
        let ack = server.poll_transmit(at).expect("an ACK");
        client.handle_segment(&ack, at);
        client.accecn_answered()
    };
    assert_eq!([1, 3].map(after_first_ack), [0, 1]);
}

#[test]
fn a_server_that_sees_a_syn_without_ecn_sends_nothing_ecn_capable() {
    let data_after = |flags| {
        let now = Time::ZERO;
        let mut client = Connection::connect(&of(Ecn::Accecn), control("reno"), 1, now);
        let mut syn = client.poll_transmit(now).expect("a SYN");
        let mut server = Connection::accept(&of(Ecn::Accecn), control("reno"), 1, &syn, now);
        let first = server.poll_transmit(now).expect("a SYN-ACK");
        set_ace(&mut syn, flags);
        server.handle_segment(&syn, now);
        let again = server.poll_transmit(now).expect("a SYN-ACK");
        // The option may be what was dropped (section 3.2.3.2.2).
        assert_eq!([ace(&first), ace(&again)], [0b010; 2]);
        assert_eq!([first.accecn.fields, again.accecn.fields], [3, 0]);
        client.handle_segment(&again, now);
        server.handle_segment(&client.poll_transmit(now).expect("an ACK"), now);
        server.write(1000, now);
        server.poll_transmit(now).expect("data").ecn
    };
    assert_eq!([0b111, 0b000].map(data_after), [2, 0]);
}

#[test]
fn the_third_syn_is_without_ecn() {
    let mut client = Connection::connect(&of(Ecn::Accecn), control("reno"), 1, Time::ZERO);
    let mut asked = vec![];
    let mut now = Time::ZERO;
    for _ in 0..4 {
        asked.push(ace(&client.poll_transmit(now).expect("a SYN")));
        now = client.poll_timeout();
        client.handle_timeout(now);
    }
    assert_eq!(asked, [0b111, 0b111, 0, 0]);
}

#[test]
fn a_control_of_l4s_sends_ect1_only_with_accurate_feedback() {
    let data = |theirs| {
        let ([syn, ..], mut client, _) = handshake((Ecn::Off, "prague"), theirs, |_| ());
        assert_eq!((ace(&syn), syn.ecn), (0b111, 1), "it asks whatever the setting");
        client.write(1000, Time::ZERO);
        client.poll_transmit(Time::ZERO).expect("data").ecn
    };
    assert_eq!(data((Ecn::Accecn, "reno")), 1);
    assert_eq!(data((Ecn::Off, "prague")), 1);
    assert_eq!(data((Ecn::On, "reno")), 2);
    assert_eq!(data((Ecn::Off, "reno")), 0);
}

/// Sends `bytes` through a path with `faults` there and `back`; the sender's end and how many packets arrived marked.
fn transfer(config: &Config, name: &str, bytes: u64, faults: [Faults; 2], seed: u64) -> (Pair, u32, u32) {
    let mut pair = Pair::new([config; 2], name, [1, 1], Span::from_ms(10), seed);
    // The handshake is over before the faults begin.
    while pair.step(Time::ZERO + Span::from_ms(30)) {}
    pair.faults = faults;
    let now = pair.now;
    pair.ends[0].write(bytes, now);
    pair.ends[0].close(now);
    pair.ends[1].close(now);
    pair.run_to_the_end(2_000_000);
    assert_eq!(pair.ends[0].bytes_acked(), bytes);
    let counted = pair.ends[0].sk.delivered_ce;
    let arrived = pair.ends[1].accecn_marked();
    (pair, counted, arrived)
}

const MARKS: Faults =
    Faults { loss: 0, duplicate: 0, reorder: 0, mark: 300, per_packet_us: 100, queue: 2_000 };
const CLEAN: Faults = Faults { mark: 0, ..MARKS };

#[test]
fn the_sender_counts_every_mark() {
    for (gro, name) in [(false, "reno"), (true, "reno"), (false, "dctcp"), (true, "prague")] {
        let config = Config { gro, ecn: Ecn::Accecn, ..plain() };
        let (_, counted, arrived) = transfer(&config, name, 2_000_000, [MARKS, CLEAN], 1);
        assert!(arrived > 400, "{name} gro={gro}: {arrived} marks");
        assert_eq!(counted, arrived, "{name} gro={gro}");
    }
}

#[test]
fn lost_acks_hide_no_mark_where_the_option_fits() {
    for loss in [100, 300, 600] {
        let config = Config { ecn: Ecn::Accecn, ..plain() };
        let back = Faults { loss, ..CLEAN };
        let (_, counted, arrived) = transfer(&config, "reno", 2_000_000, [MARKS, back], 7);
        assert!(counted >= arrived, "{counted} of {arrived} at {loss}/1000");
        // Retransmissions of what has arrived are marked too, and acknowledge nothing by themselves.
        assert!(counted <= arrived + arrived / 50, "{counted} for {arrived} at {loss}/1000");
    }
}

#[test]
fn a_window_is_reduced_once_a_round_trip_however_many_marks() {
    let config = Config { ecn: Ecn::Accecn, ..plain() };
    let all = Faults { mark: 1000, ..MARKS };
    let (pair, counted, arrived) = transfer(&config, "reno", 200_000, [all, CLEAN], 3);
    assert_eq!(counted, arrived);
    assert!(arrived >= 200);
    assert_eq!(pair.ends[0].info(pair.now).retransmits, 0);
    assert!(pair.ends[0].info(pair.now).ssthresh.is_some_and(|packets| packets >= 2));
}

/// Two ends that agreed on accurate feedback, after the handshake.
fn agreed() -> (Connection, Connection) {
    let (_, client, server) = handshake((Ecn::Accecn, "reno"), (Ecn::Accecn, "reno"), |_| ());
    (client, server)
}

fn leaving(end: &mut Connection) -> Vec<Segment> {
    std::iter::from_fn(|| end.poll_transmit(Time::ZERO)).collect()
}

/// Of each segment, its payload and the fields of its option.
fn with_options(segments: &[Segment]) -> Vec<(u32, u8)> {
    segments.iter().map(|s| (s.len, s.accecn.fields)).collect()
}

#[test]
fn the_first_data_of_the_opener_carries_the_option() {
    // Section 3.2.3.2.1. All segments of its burst do, as TSO copies the header, and each is 8 bytes shorter.
    let (mut client, mut server) = agreed();
    client.write(20_000, Time::ZERO);
    let sent = leaving(&mut client);
    assert_eq!(with_options(&sent), [[(992, 2); 5], [(1000, 0); 5]].concat());
    server.write(5_000, Time::ZERO);
    assert!(
        leaving(&mut server).iter().all(|s| s.accecn.fields == 0),
        "the other end tested it by its SYN-ACK"
    );
}

#[test]
fn data_carries_the_option_when_a_counter_has_changed_since_the_last() {
    let (mut client, mut server) = agreed();
    server.write(1_000, Time::ZERO);
    let data = leaving(&mut server).remove(0);
    client.handle_segment(&Segment { ecn: 3, ..data }, Time::ZERO);
    let acks = leaving(&mut client);
    assert_eq!(
        (with_options(&acks), acks[0].accecn.ceb),
        (vec![(0, 2)], 1_000),
        "a mark is reported at once"
    );
    client.write(3_000, Time::ZERO);
    leaving(&mut client);
    // Nothing new; then 500 bytes, which wait for data that goes the same way.
    client.write(2_000, Time::ZERO);
    assert!(leaving(&mut client).iter().all(|s| s.accecn.fields == 0));
    let small = Segment { seq: data.seq + 1_000, len: 500, ecn: 2, ..data };
    client.handle_segment(&small, Time::ZERO);
    leaving(&mut client);
    client.handle_segment(&Segment { seq: small.seq + 500, ..small }, Time::ZERO);
    client.write(1_000, Time::ZERO);
    let sent = leaving(&mut client);
    assert!(sent.iter().any(|s| s.accecn.e0b == 1 + 1_000), "{sent:?}");
}

#[test]
fn changed_counters_come_before_a_third_sack_block() {
    // Section 3.2.3.3: loss feedback comes first, but only for two blocks. Timestamps, two blocks and the option are
    // 40 bytes.
    let config = Config { timestamps: true, ..of(Ecn::Accecn) };
    let mut client = Connection::connect(&config, control("reno"), 1, Time::ZERO);
    let syn = leaving(&mut client).remove(0);
    let mut server = Connection::accept(&config, control("reno"), 1, &syn, Time::ZERO);
    client.handle_segment(&leaving(&mut server)[0], Time::ZERO);
    server.handle_segment(&leaving(&mut client)[0], Time::ZERO);
    server.write(1, Time::ZERO);
    let data = Segment { len: 500, flags: ACK, ..leaving(&mut server)[0] };
    let mut last = data;
    for hole in [1, 3, 5] {
        let ecn = if hole == 5 { 3 } else { 0 };
        client.handle_segment(&Segment { seq: data.seq + hole * 500, ecn, ..data }, Time::ZERO);
        last = *leaving(&mut client).last().expect("an ACK");
        if hole == 3 {
            assert_eq!((last.sack_count, last.accecn.fields), (2, 2));
        }
    }
    assert_eq!((last.sack_count, last.accecn.fields, last.accecn.ceb), (2, 2, 500));
    client.handle_segment(&Segment { seq: data.seq + 7 * 500, ecn: 0, ..data }, Time::ZERO);
    let sent = leaving(&mut client);
    assert_eq!((sent[0].sack_count, sent[0].accecn.fields), (3, 0), "no counter has changed");
}

#[test]
fn every_third_marked_ack_is_acknowledged() {
    // Section 3.2.2.5.1, where ACKs are ECN-capable and nobody sends data.
    let (mut client, mut server) = agreed();
    client.write(1_000, Time::ZERO);
    server.handle_segment(&leaving(&mut client)[0], Time::ZERO);
    let ack = Segment { ecn: 3, ..leaving(&mut server)[0] };
    let answers: Vec<usize> = (0..7)
        .map(|_| {
            client.handle_segment(&ack, Time::ZERO);
            leaving(&mut client).len()
        })
        .collect();
    assert_eq!(answers, [0, 0, 1, 0, 0, 1, 0]);
}

#[test]
fn a_server_that_fell_back_sends_nothing_ecn_capable() {
    // Section 3.1.5: its third SYN-ACK had no flags, and it cannot know which of them arrived.
    let now = Time::ZERO;
    let config = of(Ecn::Accecn);
    let mut client = Connection::connect(&config, control("reno"), 1, now);
    let mut server = Connection::accept(&config, control("reno"), 1, &leaving(&mut client)[0], now);
    let first = leaving(&mut server).remove(0);
    for _ in 0..2 {
        let timeout = server.poll_timeout();
        server.handle_timeout(timeout);
    }
    assert_eq!(leaving(&mut server).iter().map(ace).collect::<Vec<_>>(), [0b010, 0]);
    client.handle_segment(&first, now);
    server.handle_segment(&leaving(&mut client)[0], now);
    assert_eq!(server.ecn_feedback(), EcnFeedback::Accurate);
    server.write(1_000, now);
    assert_eq!(leaving(&mut server)[0].ecn, 0);
}

#[test]
fn data_both_ways_hides_no_mark_behind_lost_data() {
    for seed in 0..8 {
        let config = Config { ecn: Ecn::Accecn, ..plain() };
        let mut pair = Pair::new([&config; 2], "reno", [1, 1], Span::from_ms(10), seed);
        while pair.step(Time::ZERO + Span::from_ms(30)) {}
        pair.faults = [MARKS, Faults { loss: 300, ..CLEAN }];
        let now = pair.now;
        for end in &mut pair.ends {
            end.write(500_000, now);
            end.close(now);
        }
        pair.run_to_the_end(4_000_000);
        let (counted, arrived) = (pair.ends[0].sk.delivered_ce, pair.ends[1].accecn_marked());
        assert!(arrived > 50 && counted >= arrived, "{counted} of {arrived}, seed {seed}");
        assert!(counted <= arrived + arrived / 20, "{counted} for {arrived}, seed {seed}");
    }
}
