//! Queue disciplines in the language: short forms, presets, disciplines in disciplines, and what is refused.

use serde_json::{Value, json};
use tcplab_plan::Flow;
use tcplab_scenario::{Document, Memory, plan};

fn read(queue: &str, at: &str) -> Result<Value, String> {
    let text = format!(
        "tcplab: 1\nname: test\nnetwork:\n  path:\n    rate: 10 Mbit/s\n    rtt: 20 ms\n    queue: {queue}\n    at: \
         {at}\nflows:\n  - {{name: bulk, kind: tcp}}\n"
    );
    Document::parse(text.as_bytes(), "test.yaml")
        .and_then(|document| plan(document, &[], &Memory::default()))
        .map(|made| serde_json::to_value(&made.links[0].forward).expect("JSON"))
        .map_err(|mistakes| mistakes.to_string())
}

fn queue(written: &str) -> Value {
    read(written, "{}").unwrap_or_else(|said| panic!("{written}: {said}"))["queue"].take()
}

/// The messages, without the line that they show.
fn refused(written: &str) -> Vec<String> {
    let said = read(written, "{}").expect_err(written);
    said.lines().filter(|line| line.starts_with("test.yaml")).map(str::to_owned).collect()
}

#[test]
fn a_kind_alone_is_enough_where_it_has_defaults() {
    for kind in ["codel", "fq_codel", "pie", "red", "dualpi2", "cake"] {
        assert_eq!(queue(kind), queue(&format!("{{kind: {kind}}}")));
    }
    assert_eq!(queue("fq_codel")["limit"], json!({"packets": 10_240}));
    let said = refused("drr");
    assert_eq!(said, ["test.yaml:7:5: network.path.queue: `limit` is missing"]);
}

#[test]
fn settings_have_units_and_bounds() {
    let made = queue("{kind: fq_codel, limit: 2 BDP, quantum: 300 B, target: 1.5 ms, flows: 64, ecn: off}");
    assert_eq!(made["limit"], json!({"bytes": 50_000}));
    assert_eq!([&made["quantum"], &made["target"], &made["flows"]], [300, 1_500_000, 64]);
    assert_eq!(made["ecn"], false);
    assert_eq!(refused("{kind: codel, target: 5, interval: 0 ms, ecn: 3, limit: unlimited}").len(), 4);
    assert_eq!(
        refused("{kind: fq_codel, flows: 65537, quantum: 2 MB}"),
        [
            "test.yaml:7:36: network.path.queue.flows: `65537` must be at most 65536",
            "test.yaml:7:52: network.path.queue.quantum: `2 MB` must be at most 1.048576 MB"
        ]
    );
}

#[test]
fn cake_takes_the_words_of_tc() {
    let made = queue(
        "{kind: cake, bandwidth: 8 Mbit/s, rtt: 50 ms, diffserv: diffserv4, isolation: dual-srchost, ack_filter: \
         aggressive, overhead: 38 B, mpu: 84 B, atm: ptm, memlimit: 1 MB}",
    );
    assert_eq!([&made["bandwidth"], &made["rtt"]], [8_000_000, 50_000_000]);
    assert_eq!(made["memlimit"], json!({"bytes": 1_000_000}));
    assert_eq!(queue("{kind: cake, memlimit: 300 packets}")["memlimit"], json!({"packets": 300}));
    assert_eq!(queue("{kind: cake, memlimit: 50 ms}")["memlimit"], json!({"time": 50_000_000}));
    assert_eq!([&made["diffserv"], &made["isolation"]], ["diffserv4", "dual-srchost"]);
    assert_eq!([&made["ack_filter"], &made["atm"]], ["aggressive", "ptm"]);
    assert_eq!(queue("{kind: cake, ack_filter: on}")["ack_filter"], "on");
    assert_eq!(queue("{kind: cake, ack_filter: off}")["ack_filter"], "off");
    let said = read("{kind: cake, isolation: triple-isolated}", "{}").expect_err("no such isolation");
    assert!(said.ends_with("did you mean `triple-isolate`?"), "{said}");
    assert_eq!(refused("{kind: cake, overhead: 257 B, mpu: 84}").len(), 2);
    let said = read("cake", "{5 s: {queue: 100 packets}}").expect_err("no limit");
    assert!(said.contains("a `cake` queue has no `limit` that could change"), "{said}");
    assert!(said.contains("did you mean `queue: {memlimit: 1 MB}`?"), "{said}");
}

#[test]
fn the_memory_of_cake_changes() {
    let limit = |queue: &str, change: &str| {
        let made = read(queue, &format!("{{5 s: {{queue: {change}}}}}"));
        made.map(|mut made| made["changes"][0]["limit"].take())
    };
    assert_eq!(limit("cake", "{memlimit: 2 MB}"), Ok(json!({"bytes": 2_000_000})));
    assert_eq!(limit("{kind: cake, bandwidth: 8 Mbit/s}", "{memlimit: 1 BDP}"), Ok(json!({"bytes": 20_000})));
    assert_eq!(limit("cake", "{kind: cake, memlimit: 30 ms}"), Ok(json!({"time": 30_000_000})));
    assert!(limit("codel", "{memlimit: 2 MB}").expect_err("codel").contains("has no `memlimit`"));
}

#[test]
fn the_queue_within_a_token_bucket_changes() {
    let tbf = "{kind: tbf, rate: 5 Mbit/s, burst: 10 kB, queue: codel}";
    let change = |change: &str| {
        read(tbf, &format!("{{5 s: {{queue: {change}}}}}")).map(|mut made| made["changes"][0]["limit"].take())
    };
    assert_eq!(change("{queue: 100 packets}"), Ok(json!({"packets": 100})));
    // Of 5 Mbit/s, not of the 10 of the link.
    assert_eq!(change("{queue: 2 BDP}"), Ok(json!({"bytes": 25_000})));
    for (wrong, said) in [
        ("100 packets", "did you mean `queue: {queue: 100 packets}`?"),
        ("{rate: 1 Mbit/s}", "`rate` cannot change during the run"),
        ("{queue: {kind: pie}}", "the queue is `codel`, and its kind cannot change during the run"),
        ("{queue: unlimited}", "a queue cannot become `unlimited` later"),
    ] {
        assert!(change(wrong).expect_err(wrong).contains(said), "{wrong}: {:?}", change(wrong));
    }
}

#[test]
fn amounts_within_a_shaper_are_at_its_rate() {
    let made = queue("{kind: tbf, rate: 5 Mbit/s, burst: 10 kB, queue: {kind: codel, limit: 2 BDP}}");
    assert_eq!(made["queue"]["limit"], json!({"bytes": 25_000}));
    let made = queue("{kind: cake, bandwidth: 8 Mbit/s, memlimit: 2 BDP}");
    assert_eq!(made["memlimit"], json!({"bytes": 40_000}));
    assert_eq!(queue("{kind: cake, memlimit: 2 BDP}")["memlimit"], json!({"bytes": 50_000}));
    // The link needs no rate then.
    let text = "tcplab: 1\nname: test\nnetwork:\n  nodes: [a, b]\n  links:\n    - {ends: [a, b], delay: 10 ms, queue: \
                {kind: tbf, rate: 5 Mbit/s, burst: 10 kB, queue: 20 ms}}\nflows:\n  - {name: bulk, kind: tcp, from: a, \
                to: b}\n";
    let document = Document::parse(text.as_bytes(), "test.yaml").expect("YAML");
    let made = plan(document, &[], &Memory::default()).expect("a plan");
    let queue = serde_json::to_value(&made.links[0].forward.queue).expect("JSON");
    assert_eq!(queue["queue"]["limit"], json!({"time": 20_000_000}));
}

#[test]
fn only_settings_that_its_kind_has_change() {
    for kind in ["droptail", "codel", "fq", "pie", "red", "drr", "dualpi2", "fq_codel"] {
        let given = format!("{{kind: {kind}, limit: 50 packets}}");
        assert!(read(&given, "{5 s: {queue: 100 packets}}").is_ok(), "{kind}");
        let marking = read(&given, "{5 s: {queue: {limit: 100 packets, mark_above: 10 packets}}}");
        assert_eq!(marking.is_ok(), kind == "droptail", "{kind}");
        if let Err(said) = marking {
            assert!(
                said.contains(&format!("a `{kind}` queue has no `mark_above` that could change")),
                "{said}"
            );
        }
    }
}

#[test]
fn a_change_names_only_what_changes() {
    let mut made =
        read("{limit: 50 packets, mark_above: 20 packets}", "{5 s: {queue: {mark_above: 10 packets}}}")
            .expect("only the threshold changes");
    let change = made["changes"][0].take();
    assert_eq!([&change["limit"], &change["mark_above"]], [&Value::Null, &json!({"packets": 10})]);
    let said = read("{limit: 50 packets}", "{5 s: {queue: {kind: prio}}}").expect_err("another kind");
    assert!(said.contains("its kind cannot change") && !said.contains("missing"), "{said}");
}

#[test]
fn an_unknown_kind_is_reported_with_those_there_are_and_the_nearest() {
    let said = read("{kind: coddel, target: 5 ms}", "{}").expect_err("no such kind");
    assert!(
        said.contains("`coddel` is not one of `droptail`, `prio`") && said.ends_with("did you mean `codel`?"),
        "{said}"
    );
    assert!(read("fqcodel", "{}").expect_err("no such kind").ends_with("did you mean `fq_codel`?"));
}

#[test]
fn docsis_is_a_preset_that_other_keys_override() {
    let made = queue("{kind: pie, docsis: on, target: 12 ms}");
    assert_eq!([&made["target"], &made["tupdate"], &made["beta"]], [12_000_000, 16_000_000, 40]);
    assert_eq!(queue("{kind: pie, docsis: off}"), queue("pie"));
}

#[test]
fn disciplines_hold_disciplines() {
    let made = queue(
        "{kind: prio, bands: [{dscp: [EF, 10, af41], queue: 50 ms}, {queue: {kind: codel, limit: 1 BDP}}]}",
    );
    assert_eq!(made["bands"][0]["dscp"], json!([46, 10, 34]));
    assert_eq!(made["bands"][0]["queue"], json!({"kind": "droptail", "limit": {"time": 50_000_000}}));
    assert_eq!(made["bands"][1]["queue"]["limit"], json!({"bytes": 25_000}));
    let made = queue("{kind: tbf, rate: 5 Mbit/s, burst: 10 kB, queue: fq_codel}");
    assert_eq!(made["queue"]["kind"], "fq_codel");
    assert_eq!(refused("{kind: prio, bands: []}").len(), 1);
    assert_eq!(refused("{kind: prio, bands: [{dscp: [64, XF], queue: 50 ms}]}").len(), 2);
}

/// The plan of a flow through a path, or what is wrong with it.
fn flow(written: &str) -> Result<Flow, String> {
    let text = format!(
        "tcplab: 1\nname: test\nnetwork: {{path: {{rate: 1 Mbit/s, rtt: 20 ms}}}}\nflows:\n  - {written}\n"
    );
    let document = Document::parse(text.as_bytes(), "test.yaml");
    document
        .and_then(|document| plan(document, &[], &Memory::default()))
        .map(|mut made| made.flows.remove(0))
        .map_err(|mistakes| mistakes.to_string())
}

#[test]
fn datagrams_are_ecn_capable_by_a_number() {
    let field = |ect: &str| flow(&format!("{{name: a, kind: udp, rate: 1 Mbit/s{ect}}}"));
    let fields = ["", ", ect: 0", ", ect: 1"].map(|ect| field(ect).expect("a plan").traffic.ecn_field());
    assert_eq!(fields, [0b00, 0b10, 0b01]);
    let said = field(", ect: 2").expect_err("no such codepoint");
    assert!(said.starts_with("test.yaml:5:47: flows.a.ect: `2` must be at most 1"), "{said}");
    // The connections of other kinds negotiate it.
    assert!(flow("{name: a, kind: tcp, ect: 1}").expect_err("unknown").contains("`ect`"));
}

#[test]
fn intervals_between_datagrams_are_equal_or_exponential() {
    let spaced = |given: &str| flow(&format!("{{name: a, kind: udp, rate: 1 Mbit/s{given}}}"));
    let [even, constant, random] =
        ["", ", spacing: constant", ", spacing: exponential"].map(|given| spaced(given).expect("a plan"));
    assert_eq!(even, constant);
    assert_eq!(even.traffic.to_string(), "udp at 1 Mbit/s, 1472 B datagrams");
    assert_eq!(random.traffic.to_string(), "udp at 1 Mbit/s, 1472 B datagrams at exponential intervals");
    // A plan without it is as it always was.
    let json = |flow: &Flow| serde_json::to_value(flow).expect("JSON");
    assert_eq!((json(&even).get("spacing"), &json(&random)["spacing"]), (None, &"exponential".into()));
    for plan in [&even, &random] {
        assert_eq!(&serde_json::from_value::<Flow>(json(plan)).expect("a flow"), plan);
    }
    for (given, meant) in [("spacing: poisson", "exponential"), ("arrivals: exponential", "spacing")] {
        let said = spaced(&format!(", {given}")).expect_err("a hint");
        assert!(said.ends_with(&format!("did you mean `{meant}`?")), "{said}");
    }
    // Connections send as their controls decide.
    assert!(flow("{name: a, kind: tcp, spacing: exponential}").expect_err("unknown").contains("`spacing`"));
}

#[test]
fn a_flow_has_a_codepoint_by_number_or_name() {
    let read = |written: &str| flow(written).map(|flow| flow.dscp);
    assert_eq!(read("{name: a, kind: ping, dscp: EF}"), Ok(46));
    assert_eq!(read("{name: a, kind: tcp, dscp: 10}"), Ok(10));
    assert_eq!(read("{name: a, kind: tcp}"), Ok(0));
    let said = read("{name: a, kind: tcp, dscp: 64}").expect_err("out of range");
    assert!(said.starts_with("test.yaml:5:32: flows.a.dscp: `64` is not a DSCP"), "{said}");
}

#[test]
fn thresholds_of_red_are_in_one_unit_and_in_order() {
    assert_eq!(queue("{kind: red, min: 5 packets, max: 15 packets}")["max"], json!({"packets": 15}));
    assert_eq!(refused("{kind: red, min: 5 packets}").len(), 1);
    assert_eq!(refused("{kind: red, min: 60 kB, max: 20 kB}").len(), 1);
}

#[test]
fn a_change_names_a_new_limit_whatever_the_kind() {
    let made = read("codel", "{5 s: {queue: 100 packets}}").expect("a plan");
    assert_eq!(made["changes"][0]["limit"], json!({"packets": 100}));
    for (kind, change) in [
        ("codel", "{kind: fq_codel}"),
        ("codel", "{kind: codel, target: 3 ms}"),
        ("codel", "{limit: 3 packets, mark_above: 2 packets}"),
        ("{kind: prio, bands: [{queue: codel}]}", "5 packets"),
    ] {
        assert!(read(kind, &format!("{{5 s: {{queue: {change}}}}}")).is_err(), "{kind}: {change}");
    }
}

#[test]
fn those_that_hold_packets_back_say_so() {
    let shapes = |written: &str| {
        serde_json::from_value::<tcplab_plan::Queue>(queue(written)).expect("a queue").shapes()
    };
    let own_rate = [
        "{kind: tbf, rate: 5 Mbit/s, burst: 20 kB, queue: 50 ms}",
        "{kind: cake, bandwidth: 5 Mbit/s}",
        "{kind: fq, maxrate: 5 Mbit/s}",
        "{kind: prio, bands: [{dscp: [EF], queue: {kind: tbf, rate: 5 Mbit/s, burst: 20 kB, queue: 50 ms}}, {queue: 50 ms}]}",
    ];
    assert_eq!(own_rate.map(shapes), [true; 4]);
    assert_eq!(["50 ms", "cake", "fq", "fq_codel", "dualpi2"].map(shapes), [false; 5]);
}
