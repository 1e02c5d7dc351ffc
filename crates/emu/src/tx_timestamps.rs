//! When each frame left its node: the kernel's own timestamps.
//!
//! A TAP device does not report when a frame was put into it, and the emulator reads it when it wakes up and has time.
//! So a packet socket in the node's namespace (packet(7)) notes each frame that leaves through the device, before the
//! device gets the frame. The note is the time and the first bytes, in memory shared with the kernel. Frames read
//! from the device are then found again in these notes, in order.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes of a frame that are noted: Ethernet, IP and TCP headers without options, by which it is found again.
const KEPT: usize = 54;
/// One note: the kernel's header, and what is kept of the frame.
const NOTE: usize = 128;
/// Notes of one device. A frame that finds none free goes without.
const NOTES: usize = 4096;
const BLOCK: usize = 1 << 16;
const SIZE: usize = NOTE * NOTES;
/// How many notes are searched for a frame. Those passed over are of frames that the device had no room for.
const SEARCHED: usize = 64;

const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
const TPACKET_V2: libc::c_int = 1;
const TP_STATUS_KERNEL: u32 = 0;
const TP_STATUS_USER: u32 = 1;

/// `struct tpacket2_hdr`.
#[repr(C)]
struct Note {
    status: AtomicU32,
    len: u32,
    kept: u32,
    mac: u16,
    net: u16,
    sec: u32,
    nsec: u32,
    vlan: [u16; 2],
    padding: [u8; 4],
}

/// `struct tpacket_req`.
#[repr(C)]
struct Request {
    block_size: libc::c_uint,
    block_count: libc::c_uint,
    frame_size: libc::c_uint,
    frame_count: libc::c_uint,
}

/// A socket in a device's namespace that takes no notes yet.
#[derive(Debug)]
pub(crate) struct Idle {
    socket: OwnedFd,
    interface: libc::c_int,
}

/// The notes of one device.
#[derive(Debug)]
pub(crate) struct TxTimestamps {
    /// Notes are taken while it is open.
    _socket: OwnedFd,
    notes: NonNull<u8>,
    next: usize,
}

// SAFETY: the memory belongs to this value alone, whichever thread has it; the kernel shares it by `status`.
unsafe impl Send for TxTimestamps {}

impl Idle {
    /// For the interface of this index in the namespace of the calling thread.
    pub(crate) fn of(interface: libc::c_int) -> io::Result<Idle> {
        // SAFETY: takes no pointers; a valid descriptor has no other owner.
        let socket = unsafe {
            // Without a protocol nothing is noted until it is bound.
            let fd = libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        filter(&socket)?;
        set(&socket, libc::SOL_PACKET, PACKET_VERSION, &TPACKET_V2)?;
        Ok(Idle { socket, interface })
    }

    /// Notes what leaves from now on. The calling thread may be in any namespace, and waits for RCU, about 12 ms.
    pub(crate) fn begin(self) -> io::Result<TxTimestamps> {
        let Idle { socket, interface } = self;
        let ring = Request {
            block_size: BLOCK as libc::c_uint,
            block_count: (SIZE / BLOCK) as libc::c_uint,
            frame_size: NOTE as libc::c_uint,
            frame_count: NOTES as libc::c_uint,
        };
        set(&socket, libc::SOL_PACKET, PACKET_RX_RING, &ring)?;
        // SAFETY: the kernel chooses where; the result is checked.
        let memory = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(std::ptr::null_mut(), SIZE, access, libc::MAP_SHARED, socket.as_raw_fd(), 0)
        };
        let notes = NonNull::new(memory.cast()).filter(|_| memory != libc::MAP_FAILED);
        let notes = notes.ok_or_else(io::Error::last_os_error)?;
        let timestamps = TxTimestamps { _socket: socket, notes, next: 0 };
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = interface;
        // SAFETY: the address is valid in its whole length.
        let bound = unsafe {
            let address = std::ptr::from_ref(&address).cast();
            libc::bind(timestamps._socket.as_raw_fd(), address, size_of::<libc::sockaddr_ll>() as u32)
        };
        if bound == 0 { Ok(timestamps) } else { Err(io::Error::last_os_error()) }
    }
}

impl TxTimestamps {
    /// When `frame`, which was read from the device, was put into it: CLOCK_REALTIME, ns. None: no timestamp.
    #[inline]
    pub(crate) fn find(&mut self, frame: &[u8]) -> Option<u64> {
        for ahead in 0..SEARCHED {
            let place = (self.next + ahead) % NOTES;
            let note = self.note(place);
            if note.status.load(Ordering::Acquire) & TP_STATUS_USER == 0 {
                return None;
            }
            if self.is_of(note, place, frame) {
                let time = u64::from(note.sec) * 1_000_000_000 + u64::from(note.nsec);
                self.return_slots(ahead + 1);
                return Some(time);
            }
        }
        // Either the device lost very many frames, or this one found no note free. Both are signs of overload, and so
        // the search ends at once: some frames that follow may go without a timestamp.
        self.return_slots(SEARCHED);
        None
    }

    /// Has the kernel use the next `count` notes again.
    #[inline]
    fn return_slots(&mut self, count: usize) {
        for ahead in 0..count {
            self.note((self.next + ahead) % NOTES).status.store(TP_STATUS_KERNEL, Ordering::Release);
        }
        self.next = (self.next + count) % NOTES;
    }

    #[inline]
    fn is_of(&self, note: &Note, place: usize, frame: &[u8]) -> bool {
        let (at, kept) = (usize::from(note.mac), note.kept as usize);
        if note.len as usize != frame.len() || kept > frame.len() || at + kept > NOTE {
            return false;
        }
        // SAFETY: these bytes lie inside the note, and the kernel has handed it over.
        let bytes = unsafe { std::slice::from_raw_parts(self.notes.as_ptr().add(place * NOTE + at), kept) };
        bytes == &frame[..kept]
    }

    #[inline]
    fn note(&self, place: usize) -> &Note {
        debug_assert!(place < NOTES);
        // SAFETY: the memory holds `NOTES` notes, each beginning with this header, all of whose bit patterns are valid.
        unsafe { &*self.notes.as_ptr().add(place * NOTE).cast::<Note>() }
    }
}

impl Drop for TxTimestamps {
    fn drop(&mut self) {
        // SAFETY: mapped in `begin` with this size, and used no more.
        unsafe { libc::munmap(self.notes.as_ptr().cast(), SIZE) };
    }
}

/// Only what leaves the node is noted, and of it the first bytes.
fn filter(socket: &OwnedFd) -> io::Result<()> {
    /// Offset at which a filter finds what the kernel knows of a packet: whether it comes, leaves, ...
    const PACKET_TYPE: u32 = (-0x1000i32 + 4) as u32;
    const OUTGOING: u32 = libc::PACKET_OUTGOING as u32;
    let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut steps = [
        step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, PACKET_TYPE),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, OUTGOING),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, KEPT as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set(socket, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

fn set<T>(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let len = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is valid in its whole length for the call.
    let done =
        unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), len) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
