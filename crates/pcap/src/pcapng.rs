//! Writing pcapng (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

use tcplab_units::Time;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;

const LINKTYPE_ETHERNET: u16 = 1;

const OPT_END: u16 = 0;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const ISB_IFRECV: u16 = 4;
const ISB_IFDROP: u16 = 5;

/// Timestamps count 10^−9 s.
const NANOSECONDS: u8 = 9;

/// An interface packets are captured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface<'a> {
    /// Its name, as readers show it.
    pub name: &'a str,
    /// At most this many bytes of a packet are kept; 0: all of them.
    pub snap_len: u32,
}

/// An interface of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceId(u32);

/// Writes one capture, as a stream of blocks in the order of the least significant byte first.
///
/// Give it a buffered writer: it makes two or three small writes a packet.
#[derive(Debug)]
pub struct Writer<W: Write> {
    out: W,
    /// The run's start in ns since 1970.
    epoch_ns: u64,
    interfaces: Vec<State>,
}

#[derive(Clone, Copy, Debug)]
struct State {
    snap_len: u32,
    received: u64,
    last: Time,
}

impl<W: Write> Writer<W> {
    /// Begins a capture of a run that started `epoch_ns` nanoseconds after 1970 (0 for simulated time).
    ///
    /// # Errors
    /// Whatever `out` answers.
    pub fn new(out: W, epoch_ns: u64) -> io::Result<Writer<W>> {
        let mut writer = Writer { out, epoch_ns, interfaces: Vec::new() };
        let mut body = Vec::new();
        body.extend_from_slice(&BYTE_ORDER_MAGIC.to_le_bytes());
        body.extend_from_slice(&1u16.to_le_bytes());
        body.extend_from_slice(&0u16.to_le_bytes());
        // The section's length is not known yet.
        body.extend_from_slice(&u64::MAX.to_le_bytes());
        push_option(&mut body, SHB_USERAPPL, concat!("tcplab ", env!("CARGO_PKG_VERSION")).as_bytes());
        push_option(&mut body, OPT_END, &[]);
        writer.write_block(SECTION_HEADER, &body)?;
        Ok(writer)
    }

    /// Describes an interface; its packets may follow.
    ///
    /// # Errors
    /// Whatever the output answers.
    pub fn add_interface(&mut self, interface: Interface<'_>) -> io::Result<InterfaceId> {
        let mut body = Vec::new();
        body.extend_from_slice(&LINKTYPE_ETHERNET.to_le_bytes());
        body.extend_from_slice(&0u16.to_le_bytes());
        body.extend_from_slice(&interface.snap_len.to_le_bytes());
        push_option(&mut body, IF_NAME, interface.name.as_bytes());
        push_option(&mut body, IF_TSRESOL, &[NANOSECONDS]);
        push_option(&mut body, OPT_END, &[]);
        self.write_block(INTERFACE_DESCRIPTION, &body)?;
        let id = InterfaceId(self.interfaces.len() as u32);
        self.interfaces.push(State { snap_len: interface.snap_len, received: 0, last: Time::ZERO });
        Ok(id)
    }

    /// Writes the packet seen `at` on `interface`: `captured`, its first bytes, of `original_len` in all.
    ///
    /// # Errors
    /// Whatever the output answers.
    pub fn write_packet(
        &mut self,
        interface: InterfaceId,
        at: Time,
        captured: &[u8],
        original_len: u32,
    ) -> io::Result<()> {
        let timestamp = self.epoch_ns.saturating_add(at.as_ns());
        let state = &mut self.interfaces[interface.0 as usize];
        state.received += 1;
        state.last = state.last.max(at);
        let kept = match state.snap_len {
            0 => captured,
            snap_len => &captured[..captured.len().min(snap_len as usize)],
        };
        let padding = kept.len().wrapping_neg() % 4;
        let block_len = (32 + kept.len() + padding) as u32;
        let words = [
            ENHANCED_PACKET,
            block_len,
            interface.0,
            (timestamp >> 32) as u32,
            timestamp as u32,
            kept.len() as u32,
            original_len,
        ];
        let mut header = [0; 28];
        for (bytes, word) in header.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let mut trailer = [0; 7];
        trailer[padding..padding + 4].copy_from_slice(&block_len.to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(kept)?;
        self.out.write_all(&trailer[..padding + 4])
    }

    /// Records that `dropped` packets of `interface` never came through; once, at the capture's end.
    ///
    /// # Errors
    /// Whatever the output answers.
    pub fn write_statistics(&mut self, interface: InterfaceId, dropped: u64) -> io::Result<()> {
        let state = self.interfaces[interface.0 as usize];
        let timestamp = self.epoch_ns.saturating_add(state.last.as_ns());
        let mut body = Vec::new();
        body.extend_from_slice(&interface.0.to_le_bytes());
        body.extend_from_slice(&((timestamp >> 32) as u32).to_le_bytes());
        body.extend_from_slice(&(timestamp as u32).to_le_bytes());
        push_option(&mut body, ISB_IFRECV, &state.received.to_le_bytes());
        push_option(&mut body, ISB_IFDROP, &dropped.to_le_bytes());
        push_option(&mut body, OPT_END, &[]);
        self.write_block(INTERFACE_STATISTICS, &body)
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    /// Whatever the output answers.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    /// Writes a block whose body's length is a multiple of four.
    fn write_block(&mut self, kind: u32, body: &[u8]) -> io::Result<()> {
        let len = (body.len() + 12) as u32;
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&len.to_le_bytes())?;
        self.out.write_all(body)?;
        self.out.write_all(&len.to_le_bytes())
    }
}

/// Appends an option, padded to four bytes; a value too long for its length field is cut.
fn push_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    body.extend_from_slice(&code.to_le_bytes());
    body.extend_from_slice(&(value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a little-endian file: kind and body; checks both lengths of each.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().expect("four bytes"));
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let len = word(&file[4..]) as usize;
            assert_eq!(len % 4, 0);
            assert_eq!(word(&file[len - 4..]) as usize, len);
            blocks.push((word(file), &file[8..len - 4]));
            file = &file[len..];
        }
        blocks
    }

    fn capture(snap_len: u32) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new(), 0).expect("memory takes all");
        let eth0 = writer.add_interface(Interface { name: "a:path", snap_len }).expect("memory takes all");
        let at = Time::from_ns(0x1_0000_0002);
        writer.write_packet(eth0, at, &[1, 2, 3, 4, 5, 6], 1514).expect("memory takes all");
        writer.write_statistics(eth0, 7).expect("memory takes all");
        writer.finish().expect("memory takes all")
    }

    #[test]
    fn a_capture_is_section_interface_packets_statistics() {
        let file = capture(0);
        let kinds: Vec<u32> = blocks(&file).iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION_HEADER, INTERFACE_DESCRIPTION, ENHANCED_PACKET, INTERFACE_STATISTICS]);
    }

    #[test]
    fn the_interface_has_a_name_and_nanoseconds() {
        let file = capture(96);
        let body = [
            &[1, 0, 0, 0, 96, 0, 0, 0][..],
            &[2, 0, 6, 0, b'a', b':', b'p', b'a', b't', b'h', 0, 0],
            &[9, 0, 1, 0, 9, 0, 0, 0],
            &[0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(blocks(&file)[1].1, body);
    }

    #[test]
    fn a_packet_has_its_time_in_two_words_and_both_lengths() {
        let file = capture(0);
        let body = [
            &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0][..],
            &[6, 0, 0, 0, 0xea, 0x05, 0, 0],
            &[1, 2, 3, 4, 5, 6, 0, 0],
        ]
        .concat();
        assert_eq!(blocks(&file)[2].1, body);
    }

    #[test]
    fn the_snap_length_cuts_what_is_kept_and_not_the_original_length() {
        let file = capture(5);
        let body = [
            &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0][..],
            &[5, 0, 0, 0, 0xea, 0x05, 0, 0],
            &[1, 2, 3, 4, 5, 0, 0, 0],
        ]
        .concat();
        assert_eq!(blocks(&file)[2].1, body);
    }

    #[test]
    fn statistics_tell_received_and_dropped() {
        let file = capture(0);
        let body = [
            &[0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0][..],
            &[4, 0, 8, 0, 1, 0, 0, 0, 0, 0, 0, 0],
            &[5, 0, 8, 0, 7, 0, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0],
        ]
        .concat();
        assert_eq!(blocks(&file)[3].1, body);
    }

    #[test]
    fn a_full_disk_is_an_error() {
        #[derive(Debug)]
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let error = Writer::new(Full, 0).expect_err("nothing can be written");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
