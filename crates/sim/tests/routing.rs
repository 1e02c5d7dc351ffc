//! Routing protocols: how they find ways, and what a failure costs until they have found another.

use crate::common::*;
use serde_json::{Value, json};

/// Two hosts at opposite routers of a ring of four: `a` at r1, `b` at r3. The way over r4 costs more.
fn ring(routing: impl Fn(usize) -> Value, failure: Value, duration: u64) -> Value {
    let mut nodes = vec![node("a", "host", &[("b", "a-r1")]), node("b", "host", &[("a", "r3-b")])];
    for number in 1..=4 {
        let mut router = node(&format!("r{number}"), "router", &[]);
        router["routing"] = routing(number);
        nodes.push(router);
    }
    let ends = [["a", "r1"], ["r1", "r2"], ["r2", "r3"], ["r3", "r4"], ["r4", "r1"], ["r3", "b"]];
    let mut links = Vec::new();
    for (number, ends) in ends.iter().enumerate() {
        let mut both = direction(100_000_000, 2 * MS);
        if number == 2 {
            both["changes"] = failure.clone();
        }
        let mut made = link(&ends.join("-"), *ends, both.clone(), both);
        made["addresses"] = json!([format!("10.0.{number}.1/24"), format!("10.0.{number}.2/24")]);
        made["addresses6"] = json!([format!("fd00:0:0:{number}::1/64"), format!("fd00:0:0:{number}::2/64")]);
        links.push(made);
    }
    let probe = json!({"kind": "ping", "interval": 10 * MS, "payload": 56, "count": null, "stop": null});
    let mut plan =
        plan(&nodes, &links, vec![with(flow("probe", probe), json!({"stop": (duration - 1) * SECOND}))]);
    plan["duration"] = json!(duration * SECOND);
    plan["sample"] = json!({"sockets": null, "queues": null, "flows": null, "hosts": null, "packets": false});
    plan
}

fn ospf(settings: Value) -> impl Fn(usize) -> Value {
    move |number| {
        let cost = if number == 4 { 50 } else { 1 };
        json!({"ospf": with(json!({"cost": cost}), settings.clone())})
    }
}

/// The link r2-r3 is as `change` says at 5 s.
fn at_5s(change: Value) -> Value {
    json!([with(json!({"at": 5 * SECOND}), change)])
}

fn cut() -> Value {
    at_5s(json!({"up": false}))
}

fn all_lost() -> Value {
    let model = json!({"kind": "random", "chance": {"rate": 1_000_000_000, "correlation": 0}});
    at_5s(json!({"loss": {"model": model, "before_queue": false}}))
}

/// When probes were sent that got no answer, ms.
fn unanswered(run: &Run) -> Vec<i64> {
    let pings = &run.tables.pings;
    let rows = pings.time.iter().zip(pings.lost.iter());
    rows.filter(|(_, lost)| *lost == Some(true)).map(|(time, _)| time.unwrap() / MS as i64).collect()
}

/// From the first probe without an answer to the first later one with, ms.
fn outage(run: &Run) -> i64 {
    let lost = unanswered(run);
    let (first, last) = (lost[0], lost[lost.len() - 1]);
    assert!((4_900..=5_010).contains(&first), "{lost:?}");
    assert_eq!((last - first) / 10 + 1, lost.len() as i64, "one gap: {lost:?}");
    last - first + 10
}

/// The routes to `prefix` that `node` had, by time.
fn routes<'a>(run: &'a Run, node: &str, prefix: &str) -> Vec<(i64, &'a str, &'a str)> {
    let table = &run.tables.routes;
    let names = table.node.symbols().zip(table.prefix.symbols());
    let rest = table.time.iter().zip(table.next_hops.symbols().zip(table.protocol.symbols()));
    names
        .zip(rest)
        .filter(|((of, to), _)| run.string(*of) == node && run.string(*to) == prefix)
        .map(|(_, (time, (hops, protocol)))| (time.unwrap(), run.string(hops), run.string(protocol)))
        .collect()
}

#[test]
fn a_lost_carrier_costs_the_flooding_and_the_hold_time_of_the_table() {
    let run = run(&ring(ospf(json!({})), cut(), 10));
    // r2 notices after 2 ms and r1 hears of it one link later, 2 ms; it calculates after 1 ms, and its table changes 10 ms later.
    let ways = routes(&run, "r1", "10.0.5.0/24");
    assert_eq!(ways[0], (0, "10.0.1.2 eth1", "ospf"));
    assert_eq!((ways[1].1, ways.len()), ("10.0.4.1 eth2", 2));
    let changed = ways[1].0 - 5 * SECOND as i64;
    assert!((15 * MS as i64..16 * MS as i64).contains(&changed), "{ways:?}");
    // At r2 the kernel removes the route with the carrier; the new one comes by zebra.
    let near: Vec<(i64, &str)> =
        routes(&run, "r2", "10.0.5.0/24").iter().map(|way| (way.0 / MS as i64, way.1)).collect();
    assert_eq!(near, [(0, "10.0.2.2 eth1"), (5_002, ""), (5_012, "10.0.1.1 eth0")]);
    assert!((10..=40).contains(&outage(&run)), "{:?}", unanswered(&run));
    let stats = run.stats.routing.expect("routing protocols");
    // The first Hello of each is unseen or does not name the other: the second comes 10 s later. That a router has a
    // second adjacency comes too soon after the first: its neighbours hear of it by the retransmission.
    assert!((10..22).contains(&(stats.converged.as_ns() / SECOND)), "{stats:?}");
    assert!(stats.ttl_exceeded == 0, "{stats:?}");
}

#[test]
fn without_carrier_loss_the_dead_interval_passes_since_the_last_hello() {
    let timers = json!({"hello_interval": SECOND, "dead_interval": 3 * SECOND});
    let mut outages = Vec::new();
    for seed in 1..=4 {
        let mut plan = ring(ospf(timers.clone()), all_lost(), 10);
        plan["seed"] = json!(seed);
        let run = run(&plan);
        let outage = outage(&run);
        assert!((2_000..=3_050).contains(&outage), "{outage} ms");
        let events = run.events();
        let lost = events.iter().find(|(_, event, _)| *event == "adjacency").expect("a lost adjacency");
        assert!(lost.2.ends_with("Full -> Deleted (InactivityTimer)"), "{lost:?}");
        outages.push(outage);
    }
    assert!(outages.iter().max() > outages.iter().min(), "phases of hellos differ: {outages:?}");
}

#[test]
fn bfd_detects_within_three_of_its_intervals() {
    let run = run(&ring(ospf(json!({"bfd": true})), all_lost(), 10));
    let outage = outage(&run);
    assert!((600..=960).contains(&outage), "{outage} ms");
}

#[test]
fn a_link_that_comes_back_is_used_again_when_its_ends_are_adjacent() {
    let flap = json!([{"at": 5 * SECOND, "up": false}, {"at": 12 * SECOND, "up": true}]);
    let run = run(&ring(ospf(json!({})), flap, 40));
    let ways: Vec<&str> = routes(&run, "r1", "10.0.5.0/24").iter().map(|way| way.1).collect();
    assert_eq!(ways, ["10.0.1.2 eth1", "10.0.4.1 eth2", "10.0.1.2 eth1"]);
    let events = run.events();
    let full = events.iter().filter(|(_, event, detail)| *event == "adjacency" && detail.contains("-> Full"));
    let times: Vec<i64> = full.map(|(time, ..)| time / SECOND as i64).collect();
    // Both send a Hello at once, which names nobody; the next does.
    assert_eq!(times, [22, 22]);
}

/// `ring`, but the link of `b` is down from 5 s until `back`.
fn ring_without_b(protocol: &str, back: u64) -> Value {
    let mut plan =
        ring(|number| json!({protocol: {"cost": if number == 4 { 50 } else { 1 }}}), json!([]), 20);
    let changes = json!([{"at": 5 * SECOND, "up": false}, {"at": back, "up": true}]);
    for direction in ["forward", "backward"] {
        plan["links"][5][direction]["changes"] = changes.clone();
    }
    plan["flows"][0]["ip"] = json!(if protocol == "ospf6" { 6 } else { 4 });
    plan
}

#[test]
fn a_network_that_comes_back_is_announced_at_once() {
    for protocol in ["ospf", "ospf6"] {
        let outage = outage(&run(&ring_without_b(protocol, 7 * SECOND)));
        assert!((2_000..2_060).contains(&outage), "{protocol}: {outage} ms");
    }
}

#[test]
fn what_changes_again_within_a_second_is_heard_by_the_retransmission() {
    for (protocol, last) in [("ospf", 10_560), ("ospf6", 5_560)] {
        for seed in 1..=3 {
            let mut plan = ring_without_b(protocol, 5_500 * MS);
            plan["seed"] = json!(seed);
            let outage = outage(&run(&plan));
            assert!((5_500..last).contains(&outage), "{protocol}: {outage} ms");
        }
    }
}

#[test]
fn a_link_state_is_retransmitted_into_a_silent_link_until_the_neighbour_is_dead() {
    // The link r4-r1 fails while r2-r3 loses all: r2 and r3 cannot tell each other of it before the dead interval is over.
    for protocol in ["ospf", "ospf6"] {
        let mut plan = ring(|_| json!({protocol: {}}), all_lost(), 60);
        plan["flows"][0]["ip"] = json!(if protocol == "ospf6" { 6 } else { 4 });
        for direction in ["forward", "backward"] {
            plan["links"][4][direction]["changes"] = json!([{"at": 6 * SECOND, "up": false}]);
        }
        let run = run(&plan);
        let dead: Vec<_> =
            run.events().into_iter().filter(|one| one.2.ends_with("(InactivityTimer)")).collect();
        assert_eq!(dead.len(), 2, "{dead:?}");
    }
}

#[test]
fn a_neighbour_that_begins_anew_becomes_adjacent_again() {
    // One direction is lost for longer than the dead interval: r3 forgets r2, which hears of it by r3's Hello.
    let timers = json!({"hello_interval": SECOND, "dead_interval": 3 * SECOND});
    let mut plan = ring(ospf(timers), json!([]), 30);
    plan["links"][2]["forward"]["changes"] =
        json!([{"at": 5 * SECOND, "up": false}, {"at": 12 * SECOND, "up": true}]);
    let run = run(&plan);
    let events = run.events();
    let details: Vec<&str> = events.iter().filter(|one| one.1 == "adjacency").map(|one| one.2).collect();
    assert!(details[0].starts_with("r3 ") && details[0].ends_with("Full -> Deleted (InactivityTimer)"));
    assert!(details.iter().any(|one| one.starts_with("r2 ") && one.ends_with("-> Init (1-WayReceived)")));
    for router in ["r2", "r3"] {
        let last = details.iter().rfind(|one| one.starts_with(router)).expect("a change");
        assert!(last.contains("-> Full"), "{details:?}");
    }
    let ways = routes(&run, "r1", "10.0.5.0/24");
    assert_eq!(ways.last().map(|way| way.1), Some("10.0.1.2 eth1"));
}

fn bgp(settings: Value) -> impl Fn(usize) -> Value {
    move |number| {
        // The way over r4 is as long; r1 keeps the older.
        json!({"bgp": with(json!({"as": 100 * number}), settings.clone())})
    }
}

#[test]
fn bgp_finds_the_other_way_when_a_session_ends() {
    let both = |settings: Value| run(&ring(bgp(settings), cut(), 30));
    let run = both(json!({}));
    let before = routes(&run, "r2", "10.0.5.0/24");
    assert_eq!(before[0].1, "10.0.2.2 eth1");
    assert_eq!(before.last().map(|way| way.1), Some("10.0.1.1 eth0"));
    let events = run.events();
    let down: Vec<&str> = events.iter().filter(|one| one.1 == "session").map(|one| one.2).collect();
    let expected =
        ["r2 BGP neighbour 10.0.2.2", "r2 BGP neighbour fd00:0:0:2::2", "r3 BGP neighbour 10.0.2.1"];
    for (said, expected) in down.iter().zip(expected) {
        assert_eq!(*said, format!("{expected}: Down Interface down"));
    }
    assert_eq!(down.len(), 4);
    // Without a carrier that is lost, the hold time passes.
    let slow = run_with_loss(json!({"keepalive": SECOND, "hold_time": 3 * SECOND}));
    let down = slow.events().into_iter().find(|one| one.1 == "session").expect("a session that ends");
    assert!((7 * SECOND as i64..=8 * SECOND as i64 + 10).contains(&down.0), "{down:?}");
}

fn run_with_loss(settings: Value) -> Run {
    run(&ring(bgp(settings), all_lost(), 20))
}

#[test]
fn sessions_prefixes_and_communities_are_as_asked_for() {
    let one = |number: usize, key: &'static str, value: Value| {
        move |router| {
            let set = if router == number { json!({key: value}) } else { json!({}) };
            bgp(set)(router)
        }
    };
    let at_r1 = |run: &Run, prefix: &str| -> Vec<String> {
        routes(run, "r1", prefix).iter().map(|way| way.1.to_owned()).collect()
    };
    let plain = run(&ring(one(3, "networks", json!(["10.9.0.0/16"])), json!([]), 3));
    assert_eq!(at_r1(&plain, "10.9.0.0/16").len(), 1);
    // Without the session to r2, r1 hears of r3 by r4 alone.
    let apart = run(&ring(one(1, "neighbours", json!(["r4"])), json!([]), 3));
    assert_eq!(at_r1(&apart, "10.0.5.0/24"), ["10.0.4.1 eth2"]);
    let known = |communities: Value| {
        let plan = ring(one(3, "communities", communities), json!([]), 3);
        tcplab_sim::Simulation::new(&parse(&plan)).is_ok()
    };
    assert!(known(json!(["300:20"])), "an ordinary community changes nothing");
    assert!(!known(json!(["no-export"])), "r2 and r4 keep b's network to themselves, so a has no route");
    assert!(!known(json!(["no-advertise"])));
}

#[test]
fn as_many_equal_paths_are_used_as_are_allowed() {
    let equal = |settings: Value| {
        let routing = move |_| json!({"ospf": with(json!({"cost": 1}), settings.clone())});
        let run = run(&ring(routing, json!([]), 3));
        routes(&run, "r1", "10.0.5.0/24")[0].1.split(", ").count()
    };
    assert_eq!((equal(json!({})), equal(json!({"maximum_paths": 1}))), (2, 1));
}

#[test]
fn routers_of_one_system_know_networks_beyond_their_neighbours() {
    // r1, r2 and r4 are a system with OSPF; r3 is another. r1 is not its neighbour.
    let routing = |number| match number {
        3 => json!({"bgp": {"as": 200}}),
        4 => json!({"bgp": {"as": 100}, "ospf": {"cost": 50}}),
        _ => json!({"bgp": {"as": 100}, "ospf": {}}),
    };
    let run = run(&ring(routing, cut(), 20));
    let ways = routes(&run, "r1", "10.0.5.0/24");
    assert!(ways.iter().all(|way| way.2 == "bgp"), "{ways:?}");
    assert_eq!(ways.last().map(|way| way.1), Some("10.0.4.1 eth2"));
    let after = unanswered(&run);
    assert!(after.iter().all(|ms| *ms < 6_000), "{after:?}");
}

#[test]
fn a_session_within_a_system_may_pass_a_router_that_forwards_by_bgp() {
    // r1 and r3 are a system. The way between them is over r4 of another, which knows the networks of r3 by BGP.
    let routing = |number| match number {
        // r4 hears nothing of it by r3, and so sends nothing there that is for it.
        1 => json!({"ospf": {"cost": 1}, "bgp": {"as": 100, "communities": ["no-export"]}}),
        2 => json!({"ospf": {"cost": 50}}),
        3 => json!({"ospf": {"cost": 1}, "bgp": {"as": 100, "networks": ["10.9.0.0/16"]}}),
        _ => json!({"ospf": {"cost": 1}, "bgp": {"as": 200, "neighbours": ["r3"]}}),
    };
    let run = run(&ring(routing, json!([]), 3));
    assert_eq!(routes(&run, "r4", "10.0.2.0/24"), [(0, "10.0.3.1 eth0", "bgp")]);
    assert_eq!(routes(&run, "r1", "10.9.0.0/16"), [(0, "10.0.4.1 eth2", "bgp")]);
}

#[test]
fn static_routes_of_one_distance_share_and_lose_a_dead_link() {
    let routing = |number: usize| {
        let to = |to: &str, via: &str| json!({"to": to, "via": via});
        match number {
            1 => json!({"static": [to("b", "r2"), to("b", "r4")]}),
            3 => json!({"static": [to("a", "r2"), to("a", "r4")]}),
            _ => json!({"static": [to("a", "r1"), to("b", "r3")]}),
        }
    };
    let run = run(&ring(routing, cut(), 10));
    assert_eq!(routes(&run, "r1", "10.0.5.0/24"), [(0, "10.0.1.2 eth1, 10.0.4.1 eth2", "static")]);
    let r3 = routes(&run, "r3", "10.0.0.0/24");
    assert_eq!(
        r3.iter().map(|way| way.1).collect::<Vec<_>>(),
        ["10.0.2.1 eth0, 10.0.3.2 eth1", "10.0.3.2 eth1"]
    );
    // The kernel takes the dead way out of the group at once: nobody waits for zebra.
    assert_eq!(r3[1].0, 5_002 * MS as i64);
    // r2 has no other way: what r1 sends there is lost for good.
    assert_eq!(routes(&run, "r2", "10.0.5.0/24").last().map(|way| way.1), Some(""));
}

#[test]
fn packets_that_go_round_are_discarded_when_their_time_to_live_is_over() {
    let routing = |number: usize| {
        let to = |to: &str, via: &str, distance: u32| json!({"to": to, "via": via, "distance": distance});
        match number {
            1 => json!({"static": [to("b", "r2", 1)]}),
            // Where r3 is not at hand r2 sends back to r1, which knows no better.
            2 => json!({"static": [to("b", "r3", 1), to("b", "r1", 5), to("a", "r1", 1)]}),
            _ => json!({"static": [to("a", "r2", 1)]}),
        }
    };
    let run = run(&ring(routing, cut(), 8));
    let stats = run.stats.routing.expect("routing protocols");
    let lost = unanswered(&run);
    // 2 s of probes, less those that are still on their way and those of the first 12 ms. A dead link took the first, and the
    // second found no route: the kernel's had gone with the carrier, and zebra's next one was not there yet.
    assert!((stats.ttl_exceeded as i64 - lost.len() as i64).abs() <= 15, "{stats:?} {}", lost.len());
    assert!(stats.ttl_exceeded > 180 && stats.no_route == 1, "{stats:?}");
}

#[test]
fn version_6_has_routes_of_its_own() {
    let mut plan = ring(|number| json!({"ospf6": {"cost": if number == 4 { 50 } else { 1 }}}), cut(), 10);
    plan["flows"][0]["ip"] = json!(6);
    let run = run(&plan);
    let ways = routes(&run, "r1", "fd00:0:0:5::/64");
    assert_eq!(ways.len(), 2, "{ways:?}");
    assert!(routes(&run, "r1", "10.0.5.0/24").is_empty());
    assert!((10..=40).contains(&outage(&run)));
}

#[test]
fn areas_know_each_other_through_the_backbone() {
    // r1-r2 and a's network are of area 1, r3-r4 and b's of area 2; r2-r3 and r4-r1 of the backbone.
    let routing = |number: usize| {
        let of = |link: &str, area: u32| json!({"link": link, "area": area});
        let interfaces = match number {
            1 => json!([of("a-r1", 1), of("r1-r2", 1)]),
            2 => json!([of("r1-r2", 1)]),
            3 => json!([of("r3-r4", 2), of("r3-b", 2)]),
            _ => json!([of("r3-r4", 2)]),
        };
        json!({"ospf": {"interfaces": interfaces, "cost": if number == 4 { 50 } else { 1 }}})
    };
    let run = run(&ring(routing, json!([]), 5));
    assert!(unanswered(&run).is_empty());
    assert_eq!(routes(&run, "r4", "10.0.0.0/24").len(), 1);
}

#[test]
fn a_border_router_advertises_the_networks_of_each_area_into_all_others() {
    // r1 is of area 2 by a, of area 1 by r2 and of the backbone by r4. r2-r3 is of area 1 too.
    let routing = |number: usize| {
        let of = |link: &str, area: u32| json!({"link": link, "area": area});
        let interfaces = match number {
            1 => json!([of("a-r1", 2), of("r1-r2", 1)]),
            2 => json!([of("r1-r2", 1), of("r2-r3", 1)]),
            3 => json!([of("r2-r3", 1)]),
            _ => json!([]),
        };
        json!({"ospf": {"interfaces": interfaces, "cost": if number == 4 { 50 } else { 1 }}})
    };
    let run = run(&ring(routing, json!([]), 3));
    assert_eq!(routes(&run, "r2", "10.0.0.0/24"), [(0, "10.0.1.1 eth0", "ospf")]);
}

#[test]
fn a_router_of_several_areas_without_the_backbone_hears_the_summaries_of_all() {
    // r1 is of area 1 by r2 and of area 2 by r4; r2-r3-r4 is the backbone.
    let routing = |number: usize| {
        let of = |link: &str, area: u32| json!({"link": link, "area": area});
        let interfaces = match number {
            1 => json!([of("a-r1", 1), of("r1-r2", 1), of("r4-r1", 2)]),
            2 => json!([of("r1-r2", 1)]),
            4 => json!([of("r4-r1", 2)]),
            _ => json!([]),
        };
        json!({"ospf": {"interfaces": interfaces, "cost": if number == 4 { 50 } else { 1 }}})
    };
    let mut plan = ring(routing, json!([]), 10);
    for direction in ["forward", "backward"] {
        plan["links"][1][direction]["changes"] = cut();
    }
    let run = run(&plan);
    let ways: Vec<&str> = routes(&run, "r1", "10.0.5.0/24").iter().map(|way| way.1).collect();
    assert_eq!(ways, ["10.0.1.2 eth1", "", "10.0.4.1 eth2"]);
    // It is not a border router: nobody hears in area 2 of what is in area 1.
    assert_eq!(routes(&run, "r4", "10.0.0.0/24").last().map(|way| way.1), Some(""));
}

#[test]
fn what_never_converges_and_what_is_not_modelled_is_refused() {
    let refused = |plan: &Value| {
        let Err(error) = tcplab_sim::Simulation::new(&parse(plan)) else { panic!("it was not refused") };
        error.to_string()
    };
    let partly = |number| if number == 3 { json!({"static": []}) } else { json!({"ospf": {}}) };
    let said = refused(&ring(partly, json!([]), 5));
    assert!(said.starts_with("flows.probe: a does not reach b after 60 s: r1 has no route"), "{said}");
    // r1 and r2 send what is for b to each other.
    let round = |number| json!({"static": [json!({"to": "b", "via": if number == 1 { "r2" } else { "r1" }, "distance": 1})]});
    let said = refused(&ring(round, json!([]), 5));
    assert!(said.starts_with("flows.probe: a does not reach b after 60 s: r"), "{said}");
    assert!(said.contains(" is in a routing loop"), "{said}");
    let mut plan = ring(ospf(json!({})), json!([]), 5);
    plan["nodes"][2]["routing"]["frr"] = json!({"file": "r1.conf", "text": "router ospf"});
    assert_eq!(refused(&plan), "nodes.r1.frr: the simulator does not read FRR's own language");
}

#[test]
fn equal_plans_give_equal_tables_and_other_seeds_other_phases() {
    let once = |seed: u64| {
        let mut plan = ring(ospf(json!({"bfd": true})), all_lost(), 8);
        plan["seed"] = json!(seed);
        run(&plan).tables
    };
    assert!(once(1) == once(1));
    assert!(once(1).events != once(2).events);
}
