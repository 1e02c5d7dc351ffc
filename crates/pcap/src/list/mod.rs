//! The packet list: a capture's packets one by one, a line each.

mod columns;
mod observer;

use std::fmt::Write;

pub use columns::Layout;

use crate::dissect::{Captured, Dissector, Field, Summary};
use crate::filter::{Filter, Subject};
use crate::flow::{Analysis, Options};
use crate::read::{Packet, Reader};

use observer::{ListObserver, Note};

/// A packet of the list.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Its place in the capture, from 1.
    pub number: u64,
    /// When it was captured, ns since the capture's first packet.
    pub time: i64,
    /// Its length on the link, bytes.
    pub wire_len: u32,
    /// Its kind.
    pub summary: &'a Summary,
    /// The number of the flow it belongs to.
    pub flow: Option<u64>,
    /// Remarks on its place in the flow, such as `fast retransmission`; empty: none.
    pub note: &'static str,
}

/// A packet field by field.
#[derive(Clone, Debug)]
pub struct Details {
    /// Its place in the capture, from 1.
    pub number: u64,
    /// When it was captured, ns since 1970.
    pub time: i64,
    /// The same, since the capture's first packet.
    pub since_first: i64,
    /// Its length on the link, bytes.
    pub wire_len: u32,
    /// The link type's number.
    pub link_type: u16,
    /// The captured bytes.
    pub bytes: Vec<u8>,
    /// Its fields, in the order of the bytes.
    pub fields: Vec<Field>,
    /// The packet in a line.
    pub summary: Summary,
    /// The number of the flow it belongs to.
    pub flow: Option<u64>,
    /// Remarks on its place in the flow; empty: none.
    pub note: &'static str,
}

/// Lists a capture's packets while it is read.
#[derive(Debug)]
pub struct PacketList {
    reader: Reader,
    dissector: Dissector,
    analysis: Analysis<ListObserver>,
    filter: Option<Filter>,
    first_time: Option<i64>,
}

impl PacketList {
    /// The packets that `reader` still has, as far as the filter means them.
    pub fn new(reader: Reader, filter: Option<Filter>) -> PacketList {
        let analysis = Analysis::with_observer(Options::default(), ListObserver::default());
        PacketList { reader, dissector: Dissector::new(), analysis, filter, first_time: None }
    }

    /// The next packet; none at the capture's end.
    pub fn next_row(&mut self) -> Option<Row<'_>> {
        loop {
            let packet = self.reader.next_packet()?;
            let first = *self.first_time.get_or_insert(packet.time);
            let (number, time, wire_len) =
                (packet.number, packet.time.saturating_sub(first), packet.original_len);
            let Note { flow, text } = watched(&mut self.analysis, &packet);
            let summary = self.dissector.summary(&captured(&packet));
            if self.filter.as_ref().is_none_or(|filter| filter.matches(&subject(summary, flow))) {
                let summary = self.dissector.last();
                return Some(Row { number, time, wire_len, summary, flow, note: text });
            }
        }
    }

    /// Appends up to `count` lines to `text`; how many.
    pub fn write_lines(&mut self, text: &mut String, count: usize, layout: &mut Layout) -> usize {
        let mut written = 0;
        while written < count {
            let Some(row) = self.next_row() else { break };
            layout.write(text, &row);
            written += 1;
        }
        written
    }

    /// The packet with this number, field by field; none if the capture has no such packet.
    ///
    /// Packets before it are read for what its sequence numbers are relative to.
    pub fn details(&mut self, number: u64) -> Option<Details> {
        loop {
            let packet = self.reader.next_packet()?;
            let first = *self.first_time.get_or_insert(packet.time);
            let Note { flow, text } = watched(&mut self.analysis, &packet);
            if packet.number < number {
                self.dissector.summary(&captured(&packet));
                continue;
            }
            let (fields, summary) = self.dissector.fields(&captured(&packet));
            return Some(Details {
                number: packet.number,
                time: packet.time,
                since_first: packet.time.saturating_sub(first),
                wire_len: packet.original_len,
                link_type: packet.link.0,
                bytes: packet.bytes.to_vec(),
                fields,
                summary: summary.clone(),
                flow,
                note: text,
            });
        }
    }

    /// The reader, which knows what it read and how the capture ended.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }
}

fn captured<'a>(packet: &Packet<'a>) -> Captured<'a> {
    Captured { link_type: packet.link.0.into(), bytes: packet.bytes, wire_len: packet.original_len }
}

/// The kind of the packet in its flow. Flows that have ended are of no use here.
fn watched(analysis: &mut Analysis<ListObserver>, packet: &Packet<'_>) -> Note {
    analysis.observer().begin();
    analysis.packet(packet);
    analysis.drain().for_each(drop);
    analysis.observer().note()
}

fn subject(summary: &Summary, flow: Option<u64>) -> Subject {
    Subject {
        source: summary.source.ip(),
        destination: summary.destination.ip(),
        source_port: summary.ports.map(|(source, _)| source),
        destination_port: summary.ports.map(|(_, destination)| destination),
        protocol: summary.ip_protocol,
        flow,
    }
}

/// Seconds with the digits of a nanosecond clock that people read: microseconds, or nanoseconds if asked.
fn write_seconds(text: &mut String, ns: i64, width: usize) {
    let sign = if ns < 0 { "-" } else { "" };
    let micros = (ns.unsigned_abs() + 500) / 1000;
    let start = text.len();
    // Writing to a String cannot fail.
    let _ = write!(text, "{sign}{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    let missing = width.saturating_sub(text.len() - start);
    text.insert_str(start, &"                "[..missing.min(16)]);
}

#[cfg(test)]
mod tests;
