//! Packets by what became of them.

use crate::parse::Unparsed;
use crate::read::Packet;

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All packets.
    pub packets: u64,
    /// Their bytes on the link.
    pub frame_bytes: u64,
    /// TCP segments.
    pub tcp: u64,
    /// UDP datagrams.
    pub udp: u64,
    /// Not IP.
    pub not_ip: u64,
    /// IP with another payload than TCP and UDP.
    pub other_protocol: u64,
    /// The capture's link type is not known.
    pub link_type: u64,
    /// Cut by the snap length in the middle of a header.
    pub header_cut: u64,
    /// A header contradicts itself.
    pub malformed: u64,
    /// IP fragments.
    pub fragments: u64,
    /// Fragments whose datagram never came together.
    pub fragments_incomplete: u64,
    /// TCP headers whose options were cut by the snap length.
    pub options_cut: u64,
    /// First packet's, last packet's time (ns since 1970); none without packets.
    pub first: Option<i64>,
    /// See `first`.
    pub last: Option<i64>,
}

impl Counts {
    #[inline]
    pub(super) fn packet(&mut self, packet: &Packet<'_>) {
        self.packets += 1;
        self.frame_bytes += u64::from(packet.original_len);
        self.first = Some(self.first.map_or(packet.time, |first| first.min(packet.time)));
        self.last = Some(self.last.map_or(packet.time, |last| last.max(packet.time)));
    }

    #[cold]
    pub(super) fn unparsed(&mut self, reason: &Unparsed) {
        *match reason {
            Unparsed::LinkType => &mut self.link_type,
            Unparsed::NotIp => &mut self.not_ip,
            Unparsed::OtherProtocol | Unparsed::TooBig(_) => &mut self.other_protocol,
            Unparsed::HeaderCut => &mut self.header_cut,
            Unparsed::Malformed => &mut self.malformed,
        } += 1;
    }

    /// Adds what was counted of other packets of the same capture.
    pub(crate) fn add(&mut self, other: &Counts) {
        let Counts {
            packets,
            frame_bytes,
            tcp,
            udp,
            not_ip,
            other_protocol,
            link_type,
            header_cut,
            malformed,
            fragments,
            fragments_incomplete,
            options_cut,
            first,
            last,
        } = other;
        self.packets += packets;
        self.frame_bytes += frame_bytes;
        self.tcp += tcp;
        self.udp += udp;
        self.not_ip += not_ip;
        self.other_protocol += other_protocol;
        self.link_type += link_type;
        self.header_cut += header_cut;
        self.malformed += malformed;
        self.fragments += fragments;
        self.fragments_incomplete += fragments_incomplete;
        self.options_cut += options_cut;
        self.first = self.first.into_iter().chain(*first).min();
        self.last = self.last.max(*last);
    }
}
