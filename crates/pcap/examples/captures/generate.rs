//! A capture as tcpdump with a snap length of 128 writes it: many bulk flows side by side, with losses, SACK and
//! timestamps, from handshake to FIN.

use std::io::{self, Write};

use tcplab_pcap::build::{Ethernet, FrameBuffer, Ipv4, Keep, Tcp, TcpOptions};

const SNAP_LEN: usize = 128;
const MSS: u32 = 1448;
/// Packets of one flow, about.
const PACKETS_A_FLOW: u64 = 3000;
/// Flows at a time.
const ABREAST: usize = 16;
/// Between one packet of the capture and the next.
const GAP_NS: u64 = 4_000;
const RTT_NS: u64 = 20_000_000;
const ONE_IN: u64 = 500;

const SYN: u8 = 2;
const FIN: u8 = 1;
const ACK: u8 = 16;

/// Writes a pcap file of `packets` packets.
pub fn write(out: &mut impl Write, packets: u64) -> io::Result<()> {
    for word in [0xa1b2_3c4d, 0x0004_0002, 0, 0, SNAP_LEN as u32, 1] {
        out.write_all(&word.to_le_bytes())?;
    }
    let mut capture = Capture { out, buffer: FrameBuffer::new(Keep::Headers), now: 0, packets: 0 };
    let mut flows: Vec<Flow> = (0..ABREAST).map(|number| Flow::new(number as u32)).collect();
    let mut begun = ABREAST as u32;
    let mut turn = 0;
    while capture.packets < packets {
        let flow = &mut flows[turn % ABREAST];
        turn += 1;
        if !flow.step(&mut capture)? {
            *flow = Flow::new(begun);
            begun += 1;
        }
    }
    Ok(())
}

struct Capture<'w, W> {
    out: &'w mut W,
    buffer: FrameBuffer,
    now: u64,
    packets: u64,
}

/// A sender that keeps a window of 64 segments out, and a receiver that acknowledges every second.
struct Flow {
    number: u32,
    state: State,
    sent: u32,
    acked: u32,
    /// Sequence numbers that FINs have taken: the sender's, the receiver's.
    fin_sent: u32,
    peer_sent: u32,
    /// The segment lost and not yet retransmitted.
    hole: Option<u32>,
    packets: u64,
    random: u64,
}

#[derive(Clone, Copy)]
enum State {
    Syn,
    SynAck,
    Open,
    Fin,
    Over,
}

impl Flow {
    fn new(number: u32) -> Flow {
        let random = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Flow {
            number,
            state: State::Syn,
            sent: 0,
            acked: 0,
            fin_sent: 0,
            peer_sent: 0,
            hole: None,
            packets: 0,
            random,
        }
    }

    fn chance(&mut self) -> bool {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.is_multiple_of(ONE_IN)
    }

    /// Writes the flow's next packets; false when it is over.
    fn step(&mut self, capture: &mut Capture<'_, impl Write>) -> io::Result<bool> {
        match self.state {
            State::Syn => {
                self.packet(capture, true, SYN, 0, 0, &[])?;
                self.state = State::SynAck;
            }
            State::SynAck => {
                self.packet(capture, false, SYN | ACK, 0, 0, &[])?;
                self.packet(capture, true, ACK, 1, 0, &[])?;
                self.state = State::Open;
            }
            State::Open => {
                self.data(capture)?;
                if self.packets > PACKETS_A_FLOW {
                    self.state = State::Fin;
                }
            }
            State::Fin => {
                let end = 1 + self.sent * MSS;
                self.acked = self.sent;
                self.packet(capture, false, ACK, 1, 0, &[])?;
                self.fin_sent = 1;
                self.packet(capture, true, FIN | ACK, end, 0, &[])?;
                self.packet(capture, false, FIN | ACK, 1, 0, &[])?;
                self.peer_sent = 1;
                self.packet(capture, true, ACK, end + 1, 0, &[])?;
                self.state = State::Over;
            }
            State::Over => return Ok(false),
        }
        Ok(true)
    }

    fn data(&mut self, capture: &mut Capture<'_, impl Write>) -> io::Result<()> {
        if self.sent - self.acked >= 64 {
            if let Some(hole) = self.hole.take() {
                self.packet(capture, true, ACK, 1 + hole * MSS, MSS, &[])?;
            }
            self.acked = self.sent;
            return self.packet(capture, false, ACK, 1, 0, &[]);
        }
        let next = self.sent;
        self.sent += 1;
        if self.hole.is_none() && self.chance() {
            self.hole = Some(next);
            self.acked = next;
        }
        self.packet(capture, true, ACK, 1 + next * MSS, MSS, &[])?;
        match self.hole {
            Some(hole) if hole != next => {
                let blocks = [(1 + (hole + 1) * MSS, 1 + self.sent * MSS)];
                self.packet(capture, false, ACK, 1, 0, &blocks)
            }
            None if self.sent.is_multiple_of(2) => {
                self.acked = self.sent.saturating_sub(32).max(self.acked);
                self.packet(capture, false, ACK, 1, 0, &[])
            }
            _ => Ok(()),
        }
    }

    fn packet(
        &mut self,
        capture: &mut Capture<'_, impl Write>,
        forward: bool,
        flags: u8,
        seq: u32,
        len: u32,
        sack: &[(u32, u32)],
    ) -> io::Result<()> {
        capture.now += GAP_NS;
        capture.packets += 1;
        self.packets += 1;
        let client = [10, 1, (self.number >> 8) as u8, self.number as u8];
        let server = [10, 2, 0, 1];
        let ms = (capture.now / 1_000_000) as u32;
        let echo = ms.saturating_sub((RTT_NS / 1_000_000) as u32);
        let syn = flags & SYN != 0;
        let options = TcpOptions {
            mss: syn.then_some(1460),
            window_scale: syn.then_some(7),
            sack_permitted: syn,
            timestamps: Some((ms, echo)),
            sack,
            accecn: None,
        };
        let (source_port, destination_port) = if forward { (40_000, 5201) } else { (5201, 40_000) };
        let ack = if forward { 1 + self.peer_sent } else { 1 + self.acked * MSS + self.fin_sent };
        let ack = if flags & ACK != 0 { ack } else { 0 };
        let tcp = Tcp { source_port, destination_port, seq, ack, flags: flags.into(), window: 2000, options };
        let (source, destination) = if forward { (client, server) } else { (server, client) };
        let ip = Ipv4 { source, destination, identification: self.packets as u16, ttl: 64, traffic_class: 0 };
        let ethernet = Ethernet { source: [2, 0, 0, 0, 0, 1], destination: [2, 0, 0, 0, 0, 2] };
        let frame = capture.buffer.tcp(&ethernet, &ip, &tcp, len);
        let captured = SNAP_LEN.min(frame.original_len as usize);
        let words = [
            1_700_000_000 + (capture.now / 1_000_000_000) as u32,
            (capture.now % 1_000_000_000) as u32,
            captured as u32,
            frame.original_len,
        ];
        let mut record = [0; 16 + SNAP_LEN];
        for (bytes, word) in record.chunks_exact_mut(4).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        let built = frame.bytes.len().min(captured);
        record[16..16 + built].copy_from_slice(&frame.bytes[..built]);
        capture.out.write_all(&record[..16 + captured])
    }
}
