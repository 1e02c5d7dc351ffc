//! Link headers: where does the IP header begin?

use super::Unparsed;
use crate::read::LinkType;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// IEEE 802.1Q, 802.1ad, and two numbers that were used for stacked tags before it.
const VLAN: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// Labels of MPLS (RFC 3032), unicast and multicast.
const MPLS: [u16; 2] = [0x8847, 0x8848];
/// A PPPoE session (RFC 2516).
const PPPOE: u16 = 0x8864;
/// More tags or labels than any network stacks.
const MAX_TAGS: usize = 8;

const ETHERNET_TYPE_AT: usize = 12;
/// Address family, packet type and so on before the protocol: 16 bytes in all.
const SLL_TYPE_AT: usize = 14;
/// Version 2 begins with the protocol, 20 bytes in all.
const SLL2_LEN: usize = 20;

/// Where the IP header begins.
#[inline(always)]
pub(super) fn ip_header(link: LinkType, bytes: &[u8]) -> Result<usize, Unparsed> {
    match link {
        LinkType::ETHERNET => behind_type(bytes, ETHERNET_TYPE_AT),
        LinkType::LINUX_SLL => behind_type(bytes, SLL_TYPE_AT),
        LinkType::LINUX_SLL2 => match type_at(bytes, 0)? {
            IPV4 | IPV6 => Ok(SLL2_LEN),
            tag if VLAN.contains(&tag) => behind_type(bytes, SLL2_LEN + 2),
            other => behind_label(bytes, other, SLL2_LEN),
        },
        LinkType::RAW | LinkType::RAW_OLD | LinkType::RAW_OPENBSD | LinkType::IPV4 | LinkType::IPV6 => Ok(0),
        // The family's number depends on the system; the IP header's version says the same.
        LinkType::NULL | LinkType::LOOP => loopback(bytes),
        _ => Err(Unparsed::LinkType),
    }
}

/// Goes behind the EtherType at `at` and any VLAN tags.
#[inline]
fn behind_type(bytes: &[u8], mut at: usize) -> Result<usize, Unparsed> {
    for _ in 0..=MAX_TAGS {
        match type_at(bytes, at)? {
            IPV4 | IPV6 => return Ok(at + 2),
            tag if VLAN.contains(&tag) => at += 4,
            other => return behind_label(bytes, other, at + 2),
        }
    }
    Err(Unparsed::Malformed)
}

/// Goes behind the labels of MPLS, or the headers of PPPoE and PPP, that begin at `at`.
#[cold]
fn behind_label(bytes: &[u8], kind: u16, at: usize) -> Result<usize, Unparsed> {
    match kind {
        // Six bytes of PPPoE, and PPP's protocol (RFC 1332, RFC 5072).
        PPPOE => match type_at(bytes, at + 6)? {
            0x0021 | 0x0057 => Ok(at + 8),
            _ => Err(Unparsed::NotIp),
        },
        kind if MPLS.contains(&kind) => {
            let (labels, _) = bytes.get(at..).unwrap_or_default().as_chunks::<4>();
            // The bottom of the stack has the bit S. No type follows: IP is known by its version (RFC 4928).
            let is_cut = labels.len() < MAX_TAGS;
            let bottom = labels.iter().take(MAX_TAGS).position(|label| label[2] & 1 != 0);
            let bottom = bottom.ok_or(if is_cut { Unparsed::HeaderCut } else { Unparsed::Malformed })?;
            let ip_at = at + 4 * (bottom + 1);
            match bytes.get(ip_at).ok_or(Unparsed::HeaderCut)? >> 4 {
                4 | 6 => Ok(ip_at),
                _ => Err(Unparsed::NotIp),
            }
        }
        _ => Err(Unparsed::NotIp),
    }
}

#[inline]
fn type_at(bytes: &[u8], at: usize) -> Result<u16, Unparsed> {
    let bytes = bytes.get(at..).and_then(<[u8]>::first_chunk).ok_or(Unparsed::HeaderCut)?;
    Ok(u16::from_be_bytes(*bytes))
}

/// 2 is IPv4 everywhere; IPv6 is 10 on Linux, 24, 28 or 30 on the BSDs; either byte order.
fn loopback(bytes: &[u8]) -> Result<usize, Unparsed> {
    let family = *bytes.first_chunk::<4>().ok_or(Unparsed::HeaderCut)?;
    match u32::from_le_bytes(family).min(u32::from_be_bytes(family)) {
        2 | 10 | 24 | 28 | 30 => Ok(4),
        _ => Err(Unparsed::NotIp),
    }
}
