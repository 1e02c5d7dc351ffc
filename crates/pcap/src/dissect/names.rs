//! Names of numbers (IANA's registries), as far as a lab meets them.

/// The name of an EtherType.
pub(super) fn ether_type(number: u16) -> &'static str {
    match number {
        0x0800 => "IPv4",
        0x0806 => "ARP",
        0x8035 => "RARP",
        0x8100 => "802.1Q VLAN",
        0x88a8 => "802.1ad service VLAN",
        0x9100 => "VLAN (0x9100)",
        0x9200 => "VLAN (0x9200)",
        0x86dd => "IPv6",
        0x8847 | 0x8848 => "MPLS",
        0x8863 => "PPPoE discovery",
        0x8864 => "PPPoE",
        0x888e => "802.1X",
        0x88cc => "LLDP",
        0x88f7 => "PTP",
        0x88e5 => "MACsec",
        0x9000 => "loopback test",
        _ => "unknown",
    }
}

/// The name of an IP protocol number.
pub(super) fn ip_protocol(number: u8) -> &'static str {
    match number {
        0 => "hop-by-hop options",
        1 => "ICMP",
        2 => "IGMP",
        4 => "IPv4",
        6 => "TCP",
        17 => "UDP",
        33 => "DCCP",
        41 => "IPv6",
        43 => "routing header",
        44 => "fragment header",
        47 => "GRE",
        50 => "ESP",
        51 => "AH",
        58 => "ICMPv6",
        59 => "no next header",
        60 => "destination options",
        89 => "OSPF",
        103 => "PIM",
        112 => "VRRP",
        115 => "L2TP",
        132 => "SCTP",
        136 => "UDP-Lite",
        _ => "unknown",
    }
}

/// An ECN codepoint (RFC 3168 section 5).
pub(super) fn ecn(bits: u8) -> &'static str {
    match bits & 3 {
        0 => "Not-ECT",
        1 => "ECT(1)",
        2 => "ECT(0)",
        _ => "CE: congestion experienced",
    }
}

/// A differentiated services codepoint (RFC 2474, 2597, 3246, 8622).
pub(super) fn dscp(value: u8) -> &'static str {
    match value {
        0 => "default",
        1 => "LE",
        8 => "CS1",
        10 => "AF11",
        12 => "AF12",
        14 => "AF13",
        16 => "CS2",
        18 => "AF21",
        20 => "AF22",
        22 => "AF23",
        24 => "CS3",
        26 => "AF31",
        28 => "AF32",
        30 => "AF33",
        32 => "CS4",
        34 => "AF41",
        36 => "AF42",
        38 => "AF43",
        40 => "CS5",
        46 => "EF",
        48 => "CS6",
        56 => "CS7",
        _ => "unassigned",
    }
}

/// The packet type of a Linux cooked capture.
pub(super) fn cooked_type(number: u16) -> &'static str {
    match number {
        0 => "to us",
        1 => "broadcast",
        2 => "multicast",
        3 => "to somebody else",
        4 => "sent by us",
        _ => "unknown",
    }
}
