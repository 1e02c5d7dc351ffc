//! Captures at the host.

mod lab;

use lab::{Lab, SECOND};
use serde_json::json;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Captured and original length of each packet of a pcapng file.
fn packets(file: &[u8]) -> Vec<(u32, u32)> {
    let (mut at, mut packets) = (0, Vec::new());
    while at + 12 <= file.len() {
        if word(file, at) == 6 {
            packets.push((word(file, at + 20), word(file, at + 24)));
        }
        at += word(file, at + 4) as usize;
    }
    packets
}

fn run(name: &str, what: &str) -> Vec<(u32, u32)> {
    let mut lab = Lab::new(name);
    let flow = json!({"name": "bulk", "from": "a", "to": "b", "kind": "tcp", "cc": {"name": "reno"},
        "bytes": 3_000_000});
    lab.flow(flow, json!({}));
    let files = lab.a.command(json!({"do": "capture", "what": what}))["files"].clone();
    let (done, _) = lab.run(2 * SECOND);
    lab.assert_no_errors();
    let path = files[0].as_str().unwrap();
    assert!(path.ends_with("a.eth0.pcapng"), "{path}");
    let packets = packets(&std::fs::read(path).unwrap());
    let facts = &done["facts"]["captures"]["eth0"];
    assert_eq!(facts["packets"].as_u64(), Some(packets.len() as u64));
    assert_eq!(facts["drops"], 0);
    packets
}

#[test]
fn headers_are_kept_of_every_packet_super_packets_included() {
    skip_if_unable!();
    let packets = run("headers", "headers");
    let payload: u64 = packets.iter().map(|(_, len)| u64::from(len.saturating_sub(66))).sum();
    assert!((3_000_000..3_100_000).contains(&payload), "{payload}");
    assert!(packets.iter().all(|(kept, _)| *kept <= 134));
    assert!(packets.iter().any(|(_, len)| *len > 10_000), "segmentation is left to the device");
}

#[test]
fn whole_packets_are_kept_when_asked() {
    skip_if_unable!();
    let packets = run("whole", "full");
    assert!(packets.iter().all(|(kept, len)| kept == len));
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    skip_if_unable!();
    let mut lab = Lab::new("nointerface");
    let answer = lab.a.ask(json!({"do": "capture", "what": "full", "interfaces": ["eth7"]}));
    assert_eq!(answer["event"], "error");
    assert!(answer["message"].as_str().unwrap().contains("eth7"), "{answer}");
}
