//! The kernel settings of a namespace.

use std::collections::BTreeMap;

use tcplab_plan::{Node, NodeKind};

use super::Interface;

pub(super) fn sysctls(node: &Node, interfaces: &[Interface]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut set = |name: String, value: &str| {
        found.insert(name, value.to_owned());
    };
    let names: Vec<&str> =
        ["all", "default"].into_iter().chain(interfaces.iter().map(|one| one.name.as_str())).collect();
    if node.kind == NodeKind::Switch {
        set("net.ipv6.conf.all.disable_ipv6".to_owned(), "1");
    } else {
        quiet6(interfaces, &mut set);
    }
    for name in &names {
        // Forward and reverse paths may differ; the greater of both settings counts (ip-sysctl, rp_filter).
        set(format!("net.ipv4.conf.{name}.rp_filter"), "0");
    }
    if node.kind == NodeKind::Router {
        set("net.ipv4.ip_forward".to_owned(), "1");
        set("net.ipv6.conf.all.forwarding".to_owned(), "1");
        for name in &names {
            set(format!("net.ipv4.conf.{name}.send_redirects"), "0");
        }
    }
    if !node.multipath.is_empty() || node.routing.is_some() {
        // By addresses, protocol and ports (ip-sysctl, "Layer 4").
        set("net.ipv4.fib_multipath_hash_policy".to_owned(), "1");
        set("net.ipv6.fib_multipath_hash_policy".to_owned(), "1");
        // Each router divides in a way of its own, or the second of two would see one half of the hashes only.
        set("net.ipv4.fib_multipath_hash_seed".to_owned(), &(crc32(node.name.as_bytes()) | 1).to_string());
    }
    if node.kind == NodeKind::Host {
        tcp(node, &mut set);
    }
    found.extend(node.sysctls.clone());
    found
}

fn tcp(node: &Node, set: &mut impl FnMut(String, &str)) {
    let tcp = &node.tcp;
    for (name, value) in tcp.sysctls() {
        set(name, &value);
    }
    let settings = [
        ("wmem", format!("4096 16384 {}", tcp.send_buffer_max)),
        ("rmem", format!("4096 {} {}", tcp.receive_buffer_initial, tcp.receive_buffer_max)),
        // A connection must not begin with what an earlier one has learnt of the path.
        ("no_metrics_save", "1".to_owned()),
    ];
    for (name, value) in settings {
        set(format!("net.ipv4.tcp_{name}"), &value);
    }
}

/// Settings by which IPv6 sends no packet of its own accord.
///
/// No link-local addresses, so nobody to solicit routers or to redirect; no waiting for duplicate address detection. What
/// is left, the multicast reports, the interfaces' flags forbid (`netlink::silence`). Routing protocols talk from
/// link-local addresses.
fn quiet6(interfaces: &[Interface], set: &mut impl FnMut(String, &str)) {
    set("net.ipv6.conf.all.disable_ipv6".to_owned(), "0");
    set("net.ipv6.conf.default.disable_ipv6".to_owned(), "0");
    let own = interfaces.iter().map(|one| (one.name.as_str(), one.silent));
    for (name, is_silent) in [("all", true), ("default", true)].into_iter().chain(own) {
        set(format!("net.ipv6.conf.{name}.addr_gen_mode"), if is_silent { "1" } else { "0" });
        set(format!("net.ipv6.conf.{name}.accept_dad"), "0");
        set(format!("net.ipv6.conf.{name}.accept_ra"), "0");
    }
}

/// The checksum of Ethernet (IEEE 802.3, section 3.2.9).
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    let step = |crc: u32, _| if crc & 1 == 1 { (crc >> 1) ^ POLYNOMIAL } else { crc >> 1 };
    !bytes.iter().fold(u32::MAX, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), step))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_checksum_has_its_check_value() {
        assert_eq!(super::crc32(b"123456789"), 0xcbf4_3926);
    }
}
