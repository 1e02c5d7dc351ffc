//! Captures at the wire: packets of MTU size as they pass interfaces, with the exact times of the model.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tcplab_link::Event;
use tcplab_pcap::{Interface, InterfaceId, Writer};
use tcplab_units::Time;

use crate::arena::Arena;
use crate::frame::{self, Keep};
use crate::wire::Wire;

/// The captures of a run. Their frames go to `writer` as bytes of their files.
#[derive(Debug)]
pub(crate) struct Captures {
    keep: Keep,
    files: Vec<CaptureFile>,
    /// By direction: the file of the interface that sends into it, and of the one that receives from it.
    by_direction: Vec<[Option<usize>; 2]>,
    /// Recent packets, which arrive direction by direction and not in order of time.
    seen: Vec<Seen>,
    bytes: Vec<u8>,
    scratch: Vec<u8>,
}

#[derive(Debug)]
struct CaptureFile {
    name: String,
    packets: u64,
    writer: Writer<Shared>,
    interface: InterfaceId,
    buffer: Shared,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Time,
    file: usize,
    from: usize,
    kept: usize,
    len: u32,
}

/// Memory that the writer of a capture fills and others empty.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captures {
    /// Captures of interfaces, each with the name its file shows and the file's own, in a run that starts `epoch` ns after 1970.
    pub(crate) fn new(
        keep: Keep,
        interfaces: &[[String; 2]],
        by_direction: Vec<[Option<usize>; 2]>,
        epoch: u64,
    ) -> io::Result<Captures> {
        let files = interfaces.iter().map(|[name, file]| {
            let buffer = Shared::default();
            let mut writer = Writer::new(buffer.clone(), epoch)?;
            let interface = writer.add_interface(Interface { name, snap_len: 0 })?;
            Ok(CaptureFile { name: file.clone(), packets: 0, writer, interface, buffer })
        });
        let files = files.collect::<io::Result<_>>()?;
        Ok(Captures { keep, files, by_direction, seen: Vec::new(), bytes: Vec::new(), scratch: Vec::new() })
    }

    /// Something happened to `packet` in a direction.
    pub(crate) fn on(&mut self, event: Event, at: Time, packet: &Wire, direction: usize, arena: &Arena) {
        let file = match event {
            Event::Depart => self.by_direction[direction][0],
            Event::Deliver => self.by_direction[direction][1],
            _ => None,
        };
        let Some(file) = file else { return };
        frame::write(
            packet,
            arena,
            if packet.is_corrupt() { Keep::Full } else { self.keep },
            &mut self.scratch,
        );
        if packet.is_corrupt() {
            frame::damage(packet, &mut self.scratch);
            if self.keep == Keep::Headers {
                self.scratch.truncate(usize::from(packet.layout.header));
            }
        }
        let from = self.bytes.len();
        self.bytes.extend_from_slice(&self.scratch);
        let len = tcplab_link::Packet::frame_len(packet);
        self.seen.push(Seen { at, file, from, kept: self.scratch.len(), len });
    }

    /// All events before `until` are known: writes them in order of time.
    pub(crate) fn settle(&mut self, until: Time) -> io::Result<()> {
        if self.seen.is_empty() {
            return Ok(());
        }
        self.seen.sort_by_key(|seen| seen.at);
        let settled = self.seen.partition_point(|seen| seen.at < until);
        for seen in self.seen.drain(..settled) {
            let file = &mut self.files[seen.file];
            let bytes = &self.bytes[seen.from..seen.from + seen.kept];
            file.packets += 1;
            file.writer.write_packet(file.interface, seen.at, bytes, seen.len)?;
        }
        self.make_room();
        Ok(())
    }

    /// Forgets the bytes that are written.
    fn make_room(&mut self) {
        let needed = self.seen.iter().map(|seen| seen.from).min().unwrap_or(self.bytes.len());
        // Moving what is still needed costs no more than writing what is not.
        if needed >= self.bytes.len() / 2 {
            self.bytes.drain(..needed);
            self.seen.iter_mut().for_each(|seen| seen.from -= needed);
        }
    }

    /// The run is over.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.settle(Time::NEVER)?;
        for file in &mut self.files {
            file.writer.write_statistics(file.interface, 0)?;
        }
        Ok(())
    }

    /// Bytes to append to each file now.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
        let taken = self.files.iter().map(|file| std::mem::take(&mut *file.buffer.bytes()));
        taken.enumerate().filter(|(_, bytes)| !bytes.is_empty())
    }

    /// Packets captured so far, by file.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.files.iter().map(|file| (file.name.clone(), file.packets)).collect()
    }

    /// Bytes that wait to be taken.
    pub(crate) fn waiting(&self) -> usize {
        self.files.iter().map(|file| file.buffer.bytes().len()).sum()
    }
}
