//! Datagrams that came damaged: the kernel counts them among a socket's drops, though no reader was missing.

use std::fs;

/// Datagrams with a wrong checksum in this thread's network namespace so far, of both versions of IP
/// (`UDP_MIB_CSUMERRORS`).
pub(super) fn count() -> u64 {
    let of = |file: &str| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap_or_default();
    in_snmp(&of("snmp")) + in_snmp6(&of("snmp6"))
}

/// Two lines begin with `Udp:`, the first has the names, the second the numbers.
fn in_snmp(text: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, numbers) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    let mut columns = names.split_whitespace().zip(numbers.split_whitespace());
    columns.find(|(name, _)| *name == "InCsumErrors").and_then(|(_, number)| number.parse().ok()).unwrap_or(0)
}

/// A name and a number a line.
fn in_snmp6(text: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp6InCsumErrors"));
    lines.next().and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_are_found_by_their_names() {
        let snmp = "Tcp: InSegs InCsumErrors\nTcp: 4 9\nUdp: InDatagrams NoPorts InCsumErrors IgnoredMulti\n\
                    Udp: 5 6 7 8\nUdpLite: InDatagrams InCsumErrors\nUdpLite: 0 3\n";
        assert_eq!(in_snmp(snmp), 7);
        assert_eq!(in_snmp6("Udp6InDatagrams \t5\nUdp6InCsumErrors                \t11\n"), 11);
        assert_eq!((in_snmp(""), in_snmp6("")), (0, 0));
    }

    #[test]
    fn this_machine_has_them() {
        assert!(fs::read_to_string("/proc/thread-self/net/snmp").unwrap().contains("InCsumErrors"));
    }
}
