//! The send buffer of a datagram socket behind an interface of its host.

/// The send buffer, memory of the kernel (Linux `net.core.wmem_default`).
const SEND_BUFFER: u64 = 212_992;
/// A descriptor and the shared info of a packet (`sk_buff`, `skb_shared_info`), whole cache lines.
const SKB: u64 = 256;
const SHARED_INFO: u64 = 320;
const CACHE_LINE: u64 = 64;
/// Room for the Ethernet header, and its alignment (`LL_RESERVED_SPACE` + 15).
const HEAD_ROOM: u64 = 31;
const UDP_HEADER: u64 = 8;
/// The smallest piece of memory that holds a packet (`kmalloc`).
const PIECE_MIN: u64 = 512;

/// Memory of the datagrams of a socket that wait in the host.
#[derive(Debug, Default)]
pub(crate) struct SendRoom {
    used: u64,
    blocked: bool,
}

impl SendRoom {
    /// Whether the socket takes a datagram; if not, it blocks.
    pub(crate) fn takes(&mut self) -> bool {
        self.blocked = self.used >= SEND_BUFFER;
        !self.blocked
    }

    /// A datagram of `bytes`, IP header included, waits in the host.
    pub(crate) fn charge(&mut self, bytes: u32) {
        self.used += memory_of(bytes);
    }

    /// It has left; whether a sender that was blocked wakes up, which takes half of the buffer (`sock_writeable`).
    pub(crate) fn release(&mut self, bytes: u32) -> bool {
        self.used = self.used.saturating_sub(memory_of(bytes));
        self.blocked && 2 * self.used < SEND_BUFFER
    }
}

/// Memory of a packet (`truesize`; `__ip_append_data`, `sock_alloc_send_pskb`).
fn memory_of(bytes: u32) -> u64 {
    let data = (u64::from(bytes) + UDP_HEADER + HEAD_ROOM).next_multiple_of(CACHE_LINE);
    (data + SHARED_INFO).next_power_of_two().max(PIECE_MIN) + SKB
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ss -um` shows them of single datagrams that wait.
    #[test]
    fn small_datagrams_take_a_third_of_the_memory_of_whole_ones() {
        assert_eq!([16, 100, 1472].map(|payload| memory_of(payload + 20)), [768, 768, 2304]);
    }

    #[test]
    fn a_blocked_sender_waits_for_half_of_the_buffer() {
        let mut room = SendRoom::default();
        let mut packets = 0;
        while room.takes() {
            room.charge(1492);
            packets += 1;
        }
        assert_eq!(packets, 93);
        let left = (0..packets).position(|_| room.release(1492)).map(|number| packets - 1 - number);
        assert_eq!(left, Some(46));
    }
}
