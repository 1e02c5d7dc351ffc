//! Plans: repetitions and warnings.

use tcplab_plan::{Nic, Overhead, Plan, Policer};
use tcplab_scenario::{Document, Memory, plan, repetition, warnings, with_phases};
use tcplab_units::{Rate, Span};

fn made(settings: &str, flow: &str) -> Plan {
    let text = format!(
        "tcplab: 1\nname: test\nnetwork: {{path: {{rate: 10 Mbit/s, rtt: 40 ms{settings}}}}}\nflows:\n  \
         - {{name: bulk, kind: tcp, start: 1 s, stop: 4 s{flow}}}\n  - {{name: probe, kind: ping}}\n"
    );
    let read = Document::parse(text.as_bytes(), "test.yaml");
    read.and_then(|read| plan(read, &[], &Memory::default())).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn an_interface_is_a_rate_or_a_rate_and_a_queue() {
    let nic = |given: &str| made(&format!(", left: {{nic: {given}}}"), "").nodes[0].nic;
    let rate = Rate::from_bits_per_sec(1_000_000_000).expect("a rate");
    assert_eq!(nic("1 Gbit/s"), Some(Nic { rate, queue: 1000 }));
    assert_eq!(nic("{rate: 1 Gbit/s, queue: 50 packets}"), Some(Nic { rate, queue: 50 }));
    assert_eq!(made("", "").nodes[0].nic, None);
}

#[test]
fn the_first_repetition_is_exact() {
    let plan = made("", "");
    assert_eq!(with_phases(repetition(plan.clone(), 1)), plan);
}

#[test]
fn from_the_second_on_each_flow_starts_later_by_less_than_its_base_rtt() {
    let plan = made("", "");
    let mut mean = 0;
    for number in 2..202 {
        let own = repetition(plan.clone(), number);
        assert_eq!(own.seed, plan.seed + number - 1);
        assert!(own.phases.values().all(|phase| *phase < Span::from_ms(40)));
        mean += own.phases["bulk"].as_us() / 200;
        let later = with_phases(own.clone());
        assert_eq!(later.flows[0].start, plan.flows[0].start + own.phases["bulk"]);
        assert_eq!(later.duration, plan.duration + *own.phases.values().max().expect("two flows"));
    }
    // The mean of 200 uniform draws from 0 to 40 ms: 20 ms, with a deviation of 0.8 ms.
    assert!((17_000..23_000).contains(&mean), "{mean}");
}

#[test]
fn where_nothing_may_vary_a_repetition_has_its_seed_alone() {
    let mut plan = made("", "");
    plan.vary = false;
    let own = repetition(plan.clone(), 3);
    assert!(own.phases.is_empty() && own.seed == plan.seed + 2);
}

#[test]
fn a_framing_stands_for_its_bytes_in_both_directions() {
    let overhead = |settings| made(settings, "").links.remove(0);
    let link = overhead(", overhead: pppoe-atm");
    let adsl = Overhead { bytes: 26, minimum: 0, atm: true };
    assert_eq!([link.forward.overhead, link.backward.overhead], [adsl, adsl]);
    let link = overhead(", overhead: {framing: ethernet, bytes: 30 B}, reverse: {overhead: docsis}");
    assert_eq!(link.forward.overhead, Overhead { bytes: 30, minimum: 84, atm: false });
    assert_eq!(link.backward.overhead, Overhead { bytes: 4, minimum: 64, atm: false });
    assert!(overhead("").forward.overhead.is_none());
}

#[test]
fn a_policer_is_that_of_the_way_there() {
    let link = made(", policer: {rate: 2 Mbit/s, burst: 100 kB}", "").links.remove(0);
    let rate = Rate::from_bits_per_sec(2_000_000).expect("not zero");
    assert_eq!((link.forward.policer, link.backward.policer), (Some(Policer { rate, burst: 100_000 }), None));
}

#[test]
fn settings_rarely_intended_are_warned() {
    let messages = |settings, flow| warnings(&made(settings, flow));
    assert_eq!(messages("", ""), Vec::<String>::new());
    assert_eq!(
        messages(", loss: {rate: 5 %, correlation: 25 %, model: netem}", ""),
        [
            "link path forward: netem's model with 5 % loss and 25 % correlation loses about 0.19 %; `model: random` \
             keeps the rate asked for"
        ]
    );
    assert_eq!(
        messages(", queue: 1 packet", ""),
        ["link path forward: the queue holds 1 full packet, so that any burst overflows it"]
    );
    assert_eq!(
        messages("", ", window: 20 kB"),
        [
            "flow bulk: its window of 20 kB is below the path's bandwidth-delay product of 50 kB, so that it limits \
             the rate"
        ]
    );
    assert!(
        messages(", jitter: 25 ms", "")[0]
            .contains("uniform jitter of 25 ms is more than the delay of 20 ms")
    );
    assert!(
        messages(", at: {9 s: {loss: 1 %}}", "")[0]
            .contains("the change at 9 s comes after the run's end at 4 s")
    );
}

#[test]
fn queues_with_settings_rarely_intended_are_warned_of() {
    let warned = |queue: &str, more: &str| {
        let found = warnings(&made(&format!(", queue: {{kind: {queue}}}{more}"), ""));
        found
            .iter()
            .map(|one| one.strip_prefix("link path forward: ").expect("a link").to_owned())
            .collect::<Vec<_>>()
    };
    for (queue, sentence) in [
        (
            "droptail, limit: 50 ms, mark_above: 60 ms",
            "`mark_above` of 60 ms has no effect: the queue's limit is 50 ms",
        ),
        (
            "codel, target: 200 ms",
            "`target` of 200 ms is not below `interval` of 100 ms; RFC 8289 has 5 to 10 % of it",
        ),
        (
            "red, limit: 20 packets, min: 10 packets, max: 30 packets",
            "`limit` of 20 packets is not above `max` of 30 packets: arrivals are dropped at the limit first",
        ),
        (
            "tbf, rate: 5 Mbit/s, peak: 1 Mbit/s, burst: 9 kB, queue: 1 s",
            "tbf's `peak` of 1 Mbit/s is not above its `rate` of 5 Mbit/s",
        ),
        (
            "tbf, rate: 50 Mbit/s, burst: 9 kB, queue: 1 s",
            "tbf's rate of 50 Mbit/s has no effect: the link has 10 Mbit/s",
        ),
        ("cake, bandwidth: 10 Mbit/s", "cake's bandwidth of 10 Mbit/s has no effect: the link has 10 Mbit/s"),
        (
            "prio, bands: [{dscp: [EF, EF], queue: 50 ms}, {dscp: [EF], queue: {kind: fq_codel, target: 1 s}}]",
            "DSCP 46 is in two bands; its packets join the first",
        ),
    ] {
        assert_eq!(warned(queue, "").first().map(String::as_str), Some(sentence), "{queue}");
    }
    assert_eq!(warned("cake, bandwidth: 5 Mbit/s", ""), Vec::<String>::new());
    assert_eq!(warned("cake, bandwidth: 10 Mbit/s", ", at: {1 s: {rate: 50 Mbit/s}}"), Vec::<String>::new());
    assert_eq!(warned("droptail, limit: 50 ms, mark_above: 5 packets", ""), Vec::<String>::new());
}

#[test]
fn a_run_that_ends_within_the_first_round_trip_of_a_flow_is_warned_of() {
    let mut plan = made("", "");
    let why = "less than its base RTT of 40 ms, so that no round trip is completed";
    plan.duration = Span::from_ms(1_039);
    let early = format!("flow bulk: the run ends 39 ms after the flow's start, {why}");
    assert!(warnings(&plan).contains(&early), "{:?}", warnings(&plan));
    plan.duration = Span::from_ms(1_040);
    assert!(!warnings(&plan).iter().any(|one| one.contains(why)));
}

#[test]
fn a_maximum_below_where_a_receive_buffer_begins_is_warned_of() {
    let said = |settings: &str| warnings(&made(&format!(", right: {{{settings}}}"), ""));
    assert_eq!(
        said("receive_buffer_max: 10 kB"),
        [
            "node right: `receive_buffer_max` of 10 kB has no effect: a socket begins with `receive_buffer_initial`, \
          131.072 kB"
        ]
    );
    assert_eq!(said("receive_buffer_max: 10 kB, receive_buffer_initial: 10 kB"), Vec::<String>::new());
}

#[test]
fn an_accelerated_path_has_a_gateway_beside_its_left_host() {
    let plan = made(", accelerate: {towards_server: {cc: bbr1}}", "");
    let named = |name: &str| plan.nodes.iter().find(|node| node.name == name).expect("a node");
    let gateway = named("gateway").accelerate.as_ref().expect("an accelerator");
    assert_eq!(gateway.towards_server.cc.name, "bbr1");
    assert_eq!(named("left").routes["right"], "access");
    assert_eq!(named("gateway").routes["right"], "path");
    assert_eq!(named("right").routes["left"], "path");
    let path = plan.links.iter().find(|link| link.name == "path").expect("the path");
    assert_eq!(path.ends, ["gateway".to_owned(), "right".to_owned()]);
    assert_eq!(plan.flows[0].base_rtt, Span::from_us(40_100));
}

/// A plan with a router between two hosts, and these settings of it.
fn routed(router: &str, flow: &str) -> Plan {
    let text = format!(
        "tcplab: 1\nname: test\nduration: 5 s\nnetwork:\n  nodes: [a, b, c, {{name: r, kind: router, {router}}}]\n  \
         links: [{{ends: [a, r], rate: 1 Mbit/s}}, {{ends: [r, b], rate: 1 Mbit/s}}, {{ends: [a, c], rate: 1 Mbit/s}}]\n\
         flows:\n  - {{name: f, from: a, {flow}}}\n"
    );
    let read = Document::parse(text.as_bytes(), "test.yaml");
    read.and_then(|read| plan(read, &[], &Memory::default())).unwrap_or_else(|said| panic!("{said}"))
}

#[test]
fn an_accelerator_or_a_cache_that_no_flow_has_use_of_is_warned_of() {
    let said = |router, flow| warnings(&routed(router, flow));
    for (router, flow) in [
        ("accelerate: {}", "to: b, kind: tcp"),
        ("accelerate: {ports: [80, 443], hosts: [b]}", "to: b, kind: tcp, port: 443"),
        ("accelerate: {ports: [443]}", "to: b, kind: tcp, port: 442, streams: 2"),
        ("accelerate: {}, cache: {}", "to: b, kind: http, sizes: [1 kB]"),
    ] {
        assert_eq!(said(router, flow), Vec::<String>::new(), "{router} {flow}");
    }
    let nothing = "node r: the accelerator splits nothing: ";
    for (router, flow, why) in [
        ("accelerate: {}", "to: c, kind: tcp", "no TCP flow passes this router"),
        ("accelerate: {}", "to: b, kind: ping", "no TCP flow passes this router"),
        ("accelerate: {ports: [80]}", "to: b, kind: tcp", "give a flow one of its `ports` as `port`"),
        (
            "accelerate: {ports: [80]}",
            "to: b, kind: tcp, port: 81",
            "its `ports` and `hosts` are of no flow that passes",
        ),
        (
            "accelerate: {hosts: [c]}",
            "to: b, kind: tcp",
            "its `ports` and `hosts` are of no flow that passes",
        ),
    ] {
        assert_eq!(said(router, flow), [format!("{nothing}{why}")], "{router} {flow}");
    }
    assert_eq!(
        said("cache: {}", "to: b, kind: tcp"),
        ["node r: the cache stores nothing: no http flow passes this router"]
    );
}

#[test]
fn proxies_and_the_ends_of_web_traffic_have_their_names_in_a_description() {
    let lines = routed(
        "accelerate: {towards_server: {cc: bbr1}, ports: [80], kill_at: 2 s}, cache: {size: 10 MB}",
        "to: b, kind: http, sizes: [1 kB], port: 80",
    )
    .describe()
    .join("\n");
    let accelerator = "  r: accelerator with cubic towards the client and bbr1 towards the server, for port 80, dies at 2 s";
    assert!(lines.contains(accelerator) && lines.contains("  r: cache of 10 MB"), "{lines}");
    assert!(lines.contains(", client a, server b, 0 s to 5 s"), "{lines}");
}
