//! A ring of packets shared with the kernel (`packet(7)`, TPACKET_V3).

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a block: the kernel hands over whole blocks.
const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 16;
/// The kernel hands over a block that is not full after this time, ms.
const RETIRE: u32 = 50;
/// ETH_P_ALL in network byte order: packets of every protocol, both directions.
const EVERY_PROTOCOL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet in the ring.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// CLOCK_REALTIME, ns.
    pub at: u64,
    /// The captured bytes.
    pub bytes: &'a [u8],
    /// Its whole length.
    pub len: u32,
}

/// The ring of one interface.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    map: *mut u8,
    next: usize,
}

// SAFETY: the mapping belongs to this value alone and is touched by one thread at a time.
unsafe impl Send for Ring {}

impl Ring {
    /// Captures `interface`, keeping `snap_len` bytes of each packet.
    pub fn open(interface: &str, snap_len: u32) -> io::Result<Ring> {
        let name = CString::new(interface).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: `name` is a terminated string; socket(2) takes no pointers, and the descriptor is ours
        // alone.
        let (index, socket) = unsafe {
            let index = libc::if_nametoindex(name.as_ptr());
            if index == 0 {
                return Err(io::Error::last_os_error());
            }
            // Protocol 0: nothing arrives before the socket is bound to its interface.
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            (index, OwnedFd::from_raw_fd(fd))
        };
        let fd = socket.as_raw_fd();
        set(
            fd,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as libc::c_int),
        )?;
        // One instruction that accepts each packet up to `snap_len` bytes, so that no more is copied.
        let mut accept =
            [libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: snap_len }];
        let program = libc::sock_fprog { len: 1, filter: accept.as_mut_ptr() };
        set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: 2048,
            tp_frame_nr: (BLOCK / 2048 * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        // SAFETY: maps the ring just set up, in whole; the address is an all-zero sockaddr_ll filled for
        // AF_PACKET.
        let map = unsafe {
            let map = libc::mmap(
                std::ptr::null_mut(),
                BLOCK * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd,
                0,
            );
            if map == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            map.cast::<u8>()
        };
        let ring = Ring { socket, map, next: 0 };
        // SAFETY: as above.
        unsafe {
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = EVERY_PROTOCOL;
            address.sll_ifindex = index as i32;
            let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            if libc::bind(fd, std::ptr::from_ref(&address).cast(), len) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(ring)
    }

    /// Waits up to 100 ms for a block, and shows its packets to `each`. True if there was one.
    pub fn read(&mut self, mut each: impl FnMut(Packet<'_>) -> io::Result<()>) -> io::Result<bool> {
        // SAFETY: `next` is below BLOCKS, so the block lies within the mapping, and the kernel keeps its
        // header valid.
        let block = unsafe { self.map.add(self.next * BLOCK) };
        let header = block.cast::<libc::tpacket_block_desc>();
        // SAFETY: the status word is aligned and shared with the kernel, hence atomic.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).hdr.bh1.block_status) };
        if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
            let mut poll = libc::pollfd { fd: self.socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd.
            unsafe { libc::poll(&mut poll, 1, 100) };
            if status.load(Ordering::Acquire) & libc::TP_STATUS_USER == 0 {
                return Ok(false);
            }
        }
        // SAFETY: the kernel has handed the block over; offsets and lengths in it are its own and lie within
        // the block.
        let result = unsafe {
            let first = (*header).hdr.bh1;
            let mut packet = block.add(first.offset_to_first_pkt as usize);
            let mut result = Ok(());
            for _ in 0..first.num_pkts {
                let info = &*packet.cast::<libc::tpacket3_hdr>();
                let bytes =
                    std::slice::from_raw_parts(packet.add(info.tp_mac as usize), info.tp_snaplen as usize);
                let at = u64::from(info.tp_sec) * 1_000_000_000 + u64::from(info.tp_nsec);
                result = each(Packet { at, bytes, len: info.tp_len });
                if result.is_err() {
                    break;
                }
                packet = packet.add(info.tp_next_offset as usize);
            }
            result
        };
        status.store(libc::TP_STATUS_KERNEL, Ordering::Release);
        self.next = (self.next + 1) % BLOCKS;
        result.map(|()| true)
    }

    /// Packets that found the ring full since the last call.
    pub fn drops(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut len = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the struct has `len` writable bytes.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                std::ptr::from_mut(&mut statistics).cast(),
                &mut len,
            )
        };
        if result == 0 { Ok(u64::from(statistics.tp_drops)) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: unmaps what `open` mapped; nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), BLOCK * BLOCKS) };
    }
}

fn set<T>(fd: i32, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the value is readable in its whole size, which is what the option takes.
    let result = unsafe {
        libc::setsockopt(
            fd,
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
