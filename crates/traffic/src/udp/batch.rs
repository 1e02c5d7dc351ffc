//! The datagrams of one system call.

use std::io;
use std::mem::size_of;
use std::os::fd::AsRawFd;

use socket2::Socket;

use super::HEADER;
use super::offload::has_gso;

/// Maximum number of datagrams of one system call, and of one message that the kernel cuts (`UDP_MAX_SEGMENTS`).
pub(super) const BATCH: usize = 64;
/// Maximum payload of a message that the kernel cuts, bytes: what one IPv4 packet could carry.
const MAX_BYTES: usize = 65_507;
/// Headers of IP and UDP, bytes.
const HEADERS_V4: usize = 28;
const HEADERS_V6: usize = 48;
/// Room for one number of 16 bits, `CMSG_SPACE(2)`.
const CONTROL: usize = 24;

/// The messages of one system call. All but the datagrams' headers is one payload, which they share.
///
/// Where the kernel can (UDP_SEGMENT, Linux 4.18), datagrams that leave at the same instant are one message. It passes
/// the stack once and is cut where it leaves the host: by the device, or just before it. The wire carries the same packets.
pub(super) struct Batch {
    headers: Vec<[u8; HEADER]>,
    payload: Vec<u8>,
    /// The number of the last datagram, and its payload behind the header: what is left.
    last: Option<(u64, usize)>,
    /// Header and payload of each datagram, side by side, so that those of a message follow one another.
    vectors: Vec<[libc::iovec; 2]>,
    messages: Vec<libc::mmsghdr>,
    /// The size that messages are cut to, as all of them carry it.
    control: Box<Control>,
    /// Datagrams of one message.
    segments: usize,
}

#[repr(align(8))]
struct Control([u8; CONTROL]);

impl Batch {
    /// Datagrams of `payload` bytes to where `socket` is connected, with at most `bytes` in all.
    pub(super) fn new(payload: u32, bytes: Option<u64>, socket: &Socket) -> Batch {
        // SAFETY: all-zero iovec and mmsghdr are valid and empty.
        let (vectors, messages) =
            unsafe { (vec![std::mem::zeroed::<[libc::iovec; 2]>(); BATCH], vec![std::mem::zeroed(); BATCH]) };
        let size = payload as usize;
        let last = bytes.map(|bytes| (bytes / u64::from(payload), (bytes % u64::from(payload)) as usize));
        Batch {
            headers: vec![[0; HEADER]; BATCH],
            payload: vec![0x55; size.saturating_sub(HEADER)],
            last: last.map(|(number, size)| (number, size.saturating_sub(HEADER))),
            vectors,
            messages,
            control: Box::new(segment_size(payload as u16)),
            segments: if can_cut(socket, size) { (MAX_BYTES / size.max(1)).clamp(1, BATCH) } else { 1 },
        }
    }

    /// Sends datagrams `first`, `first + 1`, … stamped `time`; how many the kernel took.
    pub(super) fn send(&mut self, socket: &Socket, first: u64, count: usize, time: u64) -> io::Result<u64> {
        let count = count.min(BATCH);
        for i in 0..count {
            self.headers[i][..8].copy_from_slice(&(first + i as u64).to_be_bytes());
            self.headers[i][8..].copy_from_slice(&time.to_be_bytes());
            let last = self.last.filter(|&(number, _)| number == first + i as u64);
            let size = last.map_or(self.payload.len(), |(_, size)| size);
            self.vectors[i] = [
                libc::iovec { iov_base: self.headers[i].as_mut_ptr().cast(), iov_len: HEADER },
                libc::iovec { iov_base: self.payload.as_mut_ptr().cast(), iov_len: size },
            ];
        }
        match self.send_messages(socket, count) {
            // A path whose packets have become smaller, or a device that cannot compute checksums.
            Err(error) if self.segments > 1 && is_refusal(&error) => {
                self.segments = 1;
                self.send_messages(socket, count)
            }
            sent => sent,
        }
    }

    fn send_messages(&mut self, socket: &Socket, count: usize) -> io::Result<u64> {
        let messages = count.div_ceil(self.segments);
        for (message, start) in (0..count).step_by(self.segments).enumerate() {
            let datagrams = self.segments.min(count - start);
            let header: &mut libc::msghdr = &mut self.messages[message].msg_hdr;
            header.msg_iov = self.vectors[start].as_mut_ptr();
            header.msg_iovlen = (2 * datagrams) as _;
            let cut = datagrams > 1;
            header.msg_control = if cut { self.control.0.as_mut_ptr().cast() } else { std::ptr::null_mut() };
            header.msg_controllen = if cut { CONTROL } else { 0 } as _;
        }
        // SAFETY: the messages are set up above, all over memory that outlives the call; the vectors of a message lie
        // in one allocation, `2 * datagrams` of them from its first.
        let sent = unsafe {
            libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), messages as libc::c_uint, 0)
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok((sent as usize * self.segments).min(count) as u64)
    }
}

/// The errors by which the kernel says that it does not cut this message (`udp_send_skb`).
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO))
}

/// Whether the kernel cuts messages into datagrams of this size, which must each fit a packet, and takes them whole until then.
fn can_cut(socket: &Socket, size: usize) -> bool {
    let v6 = socket.peer_addr().is_ok_and(|to| to.is_ipv6());
    let (level, name, headers) = if v6 {
        (libc::IPPROTO_IPV6, libc::IPV6_MTU, HEADERS_V6)
    } else {
        (libc::IPPROTO_IP, libc::IP_MTU, HEADERS_V4)
    };
    let mtu = option(socket, level, name).and_then(|mtu| usize::try_from(mtu).ok());
    option(socket, libc::SOL_UDP, libc::UDP_SEGMENT).is_some()
        && mtu.is_some_and(|mtu| size + headers <= mtu)
        && has_gso(socket)
}

/// An option whose value is an int; none where the kernel does not know it.
fn option(socket: &Socket, level: libc::c_int, name: libc::c_int) -> Option<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value is an int of the given length.
    let result = unsafe {
        let value = std::ptr::from_mut(&mut value).cast();
        libc::getsockopt(socket.as_raw_fd(), level, name, value, &mut len)
    };
    (result == 0).then_some(value)
}

/// The control message that has a message cut into datagrams of `size` bytes.
fn segment_size(size: u16) -> Control {
    let mut control = Control([0; CONTROL]);
    // SAFETY: the buffer is aligned for the header, which may be all zero, and has room for it and the number behind it.
    unsafe {
        let at = control.0.as_mut_ptr();
        let header = &mut *at.cast::<libc::cmsghdr>();
        header.cmsg_len = libc::CMSG_LEN(size_of::<u16>() as u32) as _;
        header.cmsg_level = libc::SOL_UDP;
        header.cmsg_type = libc::UDP_SEGMENT;
        at.add(size_of::<libc::cmsghdr>()).cast::<u16>().write_unaligned(size);
    }
    control
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::UdpSocket;
    use std::time::Duration;

    /// Sends `count` datagrams in one call; number and length of each as it arrives.
    fn arrived(payload: u32, count: usize, change: impl FnOnce(&mut Batch)) -> Vec<(u64, usize)> {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        sender.connect(receiver.local_addr().unwrap()).unwrap();
        let sender = Socket::from(sender);
        let mut batch = Batch::new(payload, None, &sender);
        change(&mut batch);
        assert_eq!(batch.send(&sender, 7, count, 0).unwrap(), count as u64);
        let mut buffer = vec![0; 1 << 16];
        let mut next = || {
            let length = receiver.recv(&mut buffer).unwrap();
            (u64::from_be_bytes(buffer[..8].try_into().unwrap()), length)
        };
        (0..count).map(|_| next()).collect()
    }

    fn expected(payload: usize, count: usize) -> Vec<(u64, usize)> {
        (7..).map(|number| (number, payload)).take(count).collect()
    }

    #[test]
    fn datagrams_arrive_one_by_one_however_many_leave_in_a_message() {
        for (payload, count) in [(16, 64), (1448, 1), (1448, 2), (1448, 64), (40_000, 3)] {
            let whole = arrived(payload, count, |_| {});
            assert_eq!(whole, expected(payload as usize, count), "{payload} B");
        }
    }

    #[test]
    fn a_kernel_that_will_not_cut_a_message_gets_its_datagrams_one_by_one() {
        // More than a message may carry, which the kernel refuses.
        let whole = arrived(40_000, 3, |batch| batch.segments = 3);
        assert_eq!(whole, expected(40_000, 3));
    }
}
