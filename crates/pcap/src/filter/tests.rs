use std::net::IpAddr;

use super::{Filter, FilterError, Subject};

fn subject(source: &str, source_port: u16, destination: &str, destination_port: u16) -> Subject {
    let address = |text: &str| text.parse::<IpAddr>().ok();
    Subject {
        source: address(source),
        destination: address(destination),
        source_port: Some(source_port),
        destination_port: Some(destination_port),
        protocol: Some(6),
        flow: Some(3),
    }
}

fn matches(filter: &str, subject: &Subject) -> bool {
    Filter::parse(filter).map(|filter| filter.matches(subject)).unwrap_or_else(|error| panic!("{error:?}"))
}

fn mistake(filter: &str) -> (usize, usize, String) {
    let FilterError { at, len, message } = Filter::parse(filter).expect_err(filter);
    (at, len, message)
}

#[test]
fn either_end_matches_unless_one_is_named() {
    let one = subject("10.0.0.1", 40000, "10.0.1.2", 5201);
    for filter in [
        "port 5201 and host 10.0.0.1",
        "tcp",
        "ip and not ip6",
        "src host 10.0.0.1 and dst port 5201",
        "src 10.0.0.1",
        "dst 10.0.1.2",
        "net 10.0.0.0/8",
        "dst net 10.0.1.0/24",
        "net 0.0.0.0/0",
        "port 5200-5210",
        "flow 3",
        "tcp port 5201",
        "ip host 10.0.1.2",
        "udp or tcp and port 5201",
        "!(udp || flow 4) && tcp",
    ] {
        assert!(matches(filter, &one), "{filter}");
    }
    for filter in [
        "udp",
        "icmp",
        "src port 5201",
        "dst host 10.0.0.1",
        "src net 10.0.1.0/24",
        "net fd00::/8",
        "host 10.0.0.3",
        "flow 1",
        "udp port 5201",
        "not tcp",
        "(udp or tcp) and port 80",
        "not not udp",
    ] {
        assert!(!matches(filter, &one), "{filter}");
    }
}

#[test]
fn prefixes_of_ipv6_are_compared_bit_by_bit() {
    let one = subject("fd00::8000:1", 1, "fd00::2", 2);
    assert!(matches("ip6 and src net fd00::8000:0/97", &one));
    assert!(!matches("dst net fd00::8000:0/97", &one));
    assert!(matches("net ::/0", &one));
}

#[test]
fn and_binds_tighter_than_or_and_not_tightest() {
    let one = subject("10.0.0.1", 1, "10.0.0.2", 2);
    assert!(matches("tcp or tcp and udp", &one));
    assert!(matches("not udp and tcp", &one));
    assert!(!matches("not (udp or tcp)", &one));
}

#[test]
fn a_mistake_has_its_place() {
    assert_eq!(mistake("port 5201 and hots 10.0.0.1").0, 14);
    assert_eq!(
        mistake("10.0.0.1"),
        (0, 8, "unknown filter primitive `10.0.0.1`: did you mean `host 10.0.0.1`?".to_owned())
    );
    assert_eq!(mistake("tcp and 80").2, "unknown filter primitive `80`: did you mean `port 80`?");
    assert_eq!(mistake("port").0, 4);
    assert_eq!(mistake("port 70000").0, 5);
    assert_eq!(mistake("port 9-3").2, "a range goes from the lower to the higher port, not `9-3`");
    assert_eq!(mistake("net 10.0.0.0/33").2, "a prefix has 0 to 32 bits, not `10.0.0.0/33`");
    assert_eq!(mistake("(tcp or udp"), (11, 0, "a `)` is missing".to_owned()));
    assert_eq!(mistake("tcp udp"), (4, 3, "expected `and`, `or` or the end, not `udp`".to_owned()));
    assert_eq!(mistake("tcp)").0, 3);
    assert_eq!(mistake("flow x").2, "expected the number of a flow, as 3, not `x`");
    assert_eq!(mistake("").0, 0);
    assert_eq!(mistake("tcp and").0, 7);
    assert_eq!(mistake("src tcp").0, 4);
    assert_eq!(mistake("tcp & & udp").0, 4);
}

#[test]
fn endless_nesting_is_refused() {
    let deep = "(".repeat(100_000);
    assert!(Filter::parse(&deep).is_err());
    assert!(Filter::parse(&"not ".repeat(100_000)).is_err());
    assert!(Filter::parse(&("tcp and ".repeat(100_000) + "tcp")).is_ok());
}

mod any_text {
    use proptest::prelude::*;

    use super::*;

    const WORDS: [&str; 24] = [
        "host", "net", "port", "src", "dst", "tcp", "udp", "icmp", "ip", "ip6", "flow", "and", "or", "not",
        "(", ")", "!", "&&", "||", "10.0.0.1", "fd00::/8", "80", "1-9", "é",
    ];

    proptest! {
        #[test]
        fn is_read_or_refused_at_a_place_within_it(
            words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..20),
            noise in ".{0,20}",
        ) {
            for text in [words.join(" "), words.concat(), noise] {
                match Filter::parse(&text) {
                    Ok(filter) => {
                        filter.matches(&subject("10.0.0.1", 80, "fd00::1", 81));
                    }
                    Err(error) => prop_assert!(error.at + error.len <= text.chars().count(), "{:?}", error),
                }
            }
        }
    }
}
