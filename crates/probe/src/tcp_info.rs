//! `struct tcp_info` as the kernel fills it (`tcp_get_info`), by getsockopt or by inet_diag.

use std::mem::offset_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::OnceLock;

/// The kernel's figures of one TCP socket. Times are microseconds, rates bytes per second, as the kernel has
/// them.
///
/// A kernel older than a field leaves it zero.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the names are the kernel's own, without their `tcpi_`
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time: u32,
}

/// `TCP_INFINITE_SSTHRESH`: no loss has set a threshold yet.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// States after the peer's FIN (`TCP_TIME_WAIT`, `TCP_CLOSE`, `TCP_CLOSE_WAIT`, `TCP_LAST_ACK`, `TCP_CLOSING`).
const PEER_CLOSED: [u8; 5] = [6, 7, 8, 9, 11];

impl TcpInfo {
    /// `TCP_SYN_SENT` as `state`: the SYN is not answered yet.
    pub const SYN_SENT: u8 = 2;

    /// Reads what the kernel wrote, which may be shorter or longer than this struct.
    pub fn from_bytes(bytes: &[u8]) -> TcpInfo {
        let mut info = TcpInfo::default();
        info.copy(bytes);
        info
    }

    /// Becomes what the kernel wrote.
    pub(crate) fn copy(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(size_of::<TcpInfo>());
        if len < size_of::<TcpInfo>() {
            *self = TcpInfo::default();
        }
        // SAFETY: TcpInfo is repr(C) of plain integers without padding, any bytes are valid in it, and
        // `len` is within both.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), std::ptr::from_mut(self).cast::<u8>(), len) };
    }

    /// The figures of an open TCP socket (`TCP_INFO`).
    pub fn of(fd: RawFd) -> std::io::Result<TcpInfo> {
        TcpInfo::read(fd).map(|(info, _)| info)
    }

    /// The figures, and how many of their bytes the kernel has.
    fn read(fd: RawFd) -> std::io::Result<(TcpInfo, usize)> {
        let mut info = TcpInfo::default();
        let mut len = size_of::<TcpInfo>() as libc::socklen_t;
        // SAFETY: `info` has `len` writable bytes and any bytes are valid in it.
        let result = unsafe {
            libc::getsockopt(
                fd,
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                std::ptr::from_mut(&mut info).cast(),
                &mut len,
            )
        };
        if result == 0 { Ok((info, len as usize)) } else { Err(std::io::Error::last_os_error()) }
    }

    /// Whether the kernel counts retransmission timeouts (`total_rto`): Linux does since 6.7.
    pub fn counts_rtos() -> bool {
        static COUNTED: OnceLock<bool> = OnceLock::new();
        *COUNTED.get_or_init(|| {
            // SAFETY: socket(2) takes no pointers; the descriptor it returns is owned by nobody else.
            let any = unsafe {
                let fd = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
                (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
            };
            any.and_then(|socket| TcpInfo::read(socket.as_raw_fd()).ok())
                .is_some_and(|(_, len)| len > offset_of!(TcpInfo, total_rto))
        })
    }

    /// Segments in the network by the sender's reckoning (`tcp_packets_in_flight`).
    pub fn in_flight(&self) -> u32 {
        (self.unacked + self.retrans).saturating_sub(self.sacked + self.lost)
    }

    /// The slow-start threshold in segments, once a loss has set one.
    pub fn ssthresh(&self) -> Option<u32> {
        (self.snd_ssthresh < INFINITE_SSTHRESH).then_some(self.snd_ssthresh)
    }

    /// Smoothed RTT in ns, once there is a sample.
    pub fn srtt(&self) -> Option<u64> {
        (self.rtt != 0).then_some(u64::from(self.rtt) * 1000)
    }

    /// Minimum RTT in ns, once there is a sample.
    pub fn min_rtt(&self) -> Option<u64> {
        (self.min_rtt != u32::MAX && self.min_rtt != 0).then_some(u64::from(self.min_rtt) * 1000)
    }

    /// Whether the latest delivery rate sample was limited by the application.
    pub fn app_limited(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether both ends have agreed on ECN (`TCPI_OPT_ECN`).
    pub fn has_ecn(&self) -> bool {
        self.options & 8 != 0
    }

    /// Payload bytes sent for the first time.
    pub fn first_sent(&self) -> u64 {
        self.bytes_sent.saturating_sub(self.bytes_retrans)
    }

    /// Payload bytes that arrived in order. The kernel counts a FIN as one more (`tcp_rcv_nxt_update`).
    pub fn payload_received(&self) -> u64 {
        self.bytes_received.saturating_sub(u64::from(PEER_CLOSED.contains(&self.state)))
    }

    /// The congestion state by name (`enum tcp_ca_state`).
    pub fn ca_state_name(&self) -> &'static str {
        match self.ca_state {
            0 => "open",
            1 => "disorder",
            2 => "cwr",
            3 => "recovery",
            _ => "loss",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_is_the_kernels() {
        assert_eq!(std::mem::offset_of!(TcpInfo, pacing_rate), 104);
        assert_eq!(std::mem::offset_of!(TcpInfo, min_rtt), 148);
        assert_eq!(std::mem::offset_of!(TcpInfo, delivery_rate), 160);
        assert_eq!(std::mem::offset_of!(TcpInfo, bytes_sent), 200);
        assert_eq!(std::mem::offset_of!(TcpInfo, snd_wnd), 228);
        assert_eq!(std::mem::offset_of!(TcpInfo, total_rto), 240);
    }

    #[test]
    fn a_fin_is_not_payload() {
        use std::io::Write;
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut sender =
            std::net::TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        let (receiver, _) = listener.accept().expect("a connection");
        let received = || TcpInfo::of(receiver.as_raw_fd()).expect("figures");
        sender.write_all(&[0; 1000]).expect("room");
        let wait_for = |seen: &dyn Fn(TcpInfo) -> bool| {
            let waits = (0..1000).take_while(|_| !seen(received()));
            waits.for_each(|_| std::thread::sleep(std::time::Duration::from_millis(1)));
        };
        wait_for(&|info| info.bytes_received == 1000);
        assert_eq!(received().payload_received(), 1000);
        drop(sender);
        wait_for(&|info| info.state != 1);
        assert_eq!((received().bytes_received, received().payload_received()), (1001, 1000));
    }

    #[test]
    fn a_shorter_struct_leaves_the_rest_zero() {
        let info = TcpInfo::from_bytes(&[1, 4, 2]);
        assert_eq!((info.state, info.ca_state, info.retransmits, info.rto), (1, 4, 2, 0));
        assert_eq!(info.ca_state_name(), "loss");
    }

    #[test]
    fn values_the_kernel_uses_for_unknown_are_none() {
        let fresh =
            TcpInfo { snd_ssthresh: INFINITE_SSTHRESH, min_rtt: u32::MAX, rtt: 0, ..TcpInfo::default() };
        assert_eq!((fresh.ssthresh(), fresh.min_rtt(), fresh.srtt()), (None, None, None));
    }
}
