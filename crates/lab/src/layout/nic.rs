//! An interface that sends at a rate, with a queue in packets.

use tcplab_plan::Nic;

use super::netem::ETHERNET_HEADER;

/// Commands of tc(8). tbf's bucket holds a frame, or what passes within a millisecond: it cuts longer bursts into frames.
pub(super) fn commands(interface: &str, nic: Nic, mtu: u32) -> Vec<Vec<String>> {
    let frame = u64::from(mtu) + ETHERNET_HEADER;
    let (rate, queue) = (nic.rate.bits_per_sec(), nic.queue);
    let burst = frame.max(rate / 8 / 1000);
    let limit = u64::from(queue) * frame;
    let lines = [
        format!("root handle 1: tbf rate {rate}bit burst {burst} limit {limit}"),
        format!("parent 1:1 pfifo limit {queue}"),
    ];
    let command = |line: &String| format!("qdisc add dev {interface} {line}");
    lines.iter().map(|line| command(line).split(' ').map(str::to_owned).collect()).collect()
}
