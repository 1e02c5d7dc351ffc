//! Figures that tcplab's own congestion controls publish of each connection in the running kernel.
//!
//! The figures are the head of the controls' state, which is in BPF socket storage and comes with an inet_diag dump
//! (`bpf_sk_storage_diag_put`).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Commands of bpf(2).
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_GET_FD_BY_ID: libc::c_long = 14;
const BPF_OBJ_GET_INFO_BY_FD: libc::c_long = 15;
/// Attributes of a request, nested (SK_DIAG_BPF_STORAGE_REQ_MAP_FD).
const REQ_MAP_FD: u16 = 1;
/// Attributes of an answer: one for each map, in it the map's number and the socket's value.
const STORAGE: u16 = 1;
const MAP_ID: u16 = 2;
const MAP_VALUE: u16 = 3;
/// Nested attributes may carry flags in the upper two bits of their type.
const TYPE: u16 = (1 << 14) - 1;

/// `struct tl_telemetry` of `cc/include/tcplab_cc.h`, with which every control's state begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Telemetry {
    /// Bandwidth estimate, bit/s; 0: none.
    pub bandwidth: u64,
    /// Estimate of the minimum RTT, µs; 0: none.
    pub min_rtt: u32,
    /// Number of the phase.
    pub phase: u32,
    /// Pacing gain in 1/256; 0: none.
    pub pacing_gain: u32,
    /// Window gain in 1/256; 0: none.
    pub cwnd_gain: u32,
}

impl Telemetry {
    /// Bytes it takes.
    const SIZE: usize = 24;

    /// Reads one from the beginning of a control's state; none if that is too short.
    pub fn from_bytes(state: &[u8]) -> Option<Telemetry> {
        let words = state.get(8..Telemetry::SIZE)?.as_chunks::<4>().0;
        let word = |at: usize| u32::from_ne_bytes(words[at]);
        Some(Telemetry {
            bandwidth: u64::from_ne_bytes(*state.first_chunk()?),
            min_rtt: word(0),
            phase: word(1),
            pacing_gain: word(2),
            cwnd_gain: word(3),
        })
    }
}

/// A loaded control whose connections' state can be read.
#[derive(Debug)]
pub struct Published {
    map: OwnedFd,
    id: u32,
    /// Bytes of a connection's state.
    size: usize,
    registered: Box<str>,
    phases: Box<[Box<str>]>,
}

impl Published {
    /// Opens map number `id`, the state of the control `registered`, whose phases have the names `phases`.
    ///
    /// The kernel allows it to CAP_SYS_ADMIN, and the dump to CAP_BPF, both over the whole machine.
    pub fn open(id: u32, registered: &str, phases: &[String]) -> io::Result<Published> {
        // `union bpf_attr` of this command: the number, where a search would go on, flags.
        // SAFETY: it takes no pointers; the descriptor returned is ours.
        let map = unsafe { OwnedFd::from_raw_fd(bpf(BPF_MAP_GET_FD_BY_ID, &[id, 0, 0])? as RawFd) };
        // The head of `struct bpf_map_info`: kind, number, size of a key and of a value.
        let mut info = [0_u32; 4];
        let length = size_of_val(&info) as u32;
        let query = InfoQuery { object: map.as_raw_fd(), length, info: (&raw mut info) as u64 };
        // SAFETY: the kernel writes the given number of bytes at most.
        unsafe { bpf(BPF_OBJ_GET_INFO_BY_FD, &query)? };
        let phases = phases.iter().map(|phase| phase.as_str().into()).collect();
        Ok(Published { map, id, size: info[3] as usize, registered: registered.into(), phases })
    }

    /// The whole state of an open socket; none if the control never had it.
    fn state(&self, socket: RawFd) -> Option<Vec<u8>> {
        let mut state = vec![0; self.size];
        let (key, value) = ((&raw const socket) as u64, state.as_mut_ptr() as u64);
        let look_up = LookUp { map: [self.map.as_raw_fd(), 0], key, value, flags: 0 };
        // SAFETY: a key of socket storage is a descriptor, and the kernel writes as many bytes as a value has.
        unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &look_up).ok()? };
        Some(state)
    }

    /// The name of phase number `phase`; none if the control has no such phase.
    pub fn phase(&self, phase: u32) -> Option<&str> {
        self.phases.get(phase as usize).map(|name| &**name)
    }
}

/// Attributes of BPF_OBJ_GET_INFO_BY_FD; pointers have 8 bytes in all of them.
#[repr(C)]
struct InfoQuery {
    object: RawFd,
    length: u32,
    info: u64,
}

/// Attributes of BPF_MAP_LOOKUP_ELEM.
#[repr(C)]
struct LookUp {
    /// The map, and a word of padding.
    map: [RawFd; 2],
    key: u64,
    value: u64,
    flags: u64,
}

/// bpf(2).
///
/// # Safety
/// Pointers among the attributes are valid for what the command reads and writes there.
unsafe fn bpf<T>(command: libc::c_long, attributes: &T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are initialised and of the given size; the rest is the caller's to assure.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// The same as `read` of an open socket, also of one whose connection has ended, which is in no dump any more.
pub(crate) fn of(socket: RawFd, cc: &str, controls: &[Published]) -> Option<(usize, Telemetry, Vec<u8>)> {
    let at = controls.iter().position(|control| *control.registered == *cc)?;
    let state = controls[at].state(socket)?;
    Some((at, Telemetry::from_bytes(&state)?, state))
}

/// The attributes that ask for the state of `controls`.
pub(crate) fn request(controls: &[Published]) -> Vec<u8> {
    let mut out = Vec::with_capacity(8 * controls.len());
    for control in controls {
        out.extend_from_slice(&8u16.to_ne_bytes());
        out.extend_from_slice(&REQ_MAP_FD.to_ne_bytes());
        out.extend_from_slice(&control.map.as_raw_fd().to_ne_bytes());
    }
    out
}

/// Gauges that the control `cc` publishes of a socket, which of `controls` it is, and its whole state. `answer` holds
/// the state of every control the socket ever had.
pub(crate) fn read<'a>(
    answer: &'a [u8],
    cc: &str,
    controls: &[Published],
) -> Option<(usize, Telemetry, &'a [u8])> {
    let at = controls.iter().position(|control| *control.registered == *cc)?;
    let of_map = |id: u32| {
        let storages = Attributes(answer).filter(|(kind, _)| *kind == STORAGE);
        let mut ours = storages.filter(|(_, storage)| {
            Attributes(storage).any(|(kind, value)| kind == MAP_ID && value == id.to_ne_bytes())
        });
        Attributes(ours.next()?.1).find(|(kind, _)| *kind == MAP_VALUE).map(|(_, value)| value)
    };
    let state = of_map(controls[at].id)?;
    Some((at, Telemetry::from_bytes(state)?, state))
}

/// Netlink attributes: type and value.
pub(crate) struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let half = |at: usize| Some(u16::from_ne_bytes([*self.0.get(at)?, *self.0.get(at + 1)?]));
        let len = usize::from(half(0)?);
        let kind = half(2)? & TYPE;
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = (4 + value.len() as u16).to_ne_bytes().to_vec();
        out.extend_from_slice(&kind.to_ne_bytes());
        out.extend_from_slice(value);
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn storage(id: u32, state: &[u8]) -> Vec<u8> {
        let inner = [attribute(MAP_ID, &id.to_ne_bytes()), attribute(MAP_VALUE, state)].concat();
        attribute(STORAGE | 1 << 15, &inner)
    }

    fn state(bandwidth: u64, words: [u32; 4]) -> Vec<u8> {
        let mut out = bandwidth.to_ne_bytes().to_vec();
        words.iter().for_each(|word| out.extend_from_slice(&word.to_ne_bytes()));
        out.extend_from_slice(&[0xff; 9]);
        out
    }

    fn control(id: u32, registered: &str) -> Published {
        let map = std::fs::File::open("/dev/null").unwrap().into();
        Published { map, id, size: 0, registered: registered.into(), phases: Box::new(["FIRST".into()]) }
    }

    #[test]
    fn the_state_of_the_control_in_use_is_read() {
        let answer = [storage(7, &state(1, [2, 3, 4, 5])), storage(9, &state(10, [20, 0, 40, 50]))].concat();
        let controls = [control(7, "tl_bbr2"), control(9, "tl_bbr2_1")];
        let expected = Telemetry { bandwidth: 10, min_rtt: 20, phase: 0, pacing_gain: 40, cwnd_gain: 50 };
        let ours = state(10, [20, 0, 40, 50]);
        assert_eq!(read(&answer, "tl_bbr2_1", &controls), Some((1, expected, &*ours)));
        assert_eq!(controls[1].phase(0), Some("FIRST"));
        assert_eq!(controls[1].phase(3), None);
        assert_eq!(read(&answer, "cubic", &controls), None);
    }

    #[test]
    fn a_damaged_answer_tells_nothing() {
        let controls = [control(7, "tl_reno")];
        let whole = storage(7, &state(1, [2, 3, 4, 5]));
        for length in 0..whole.len() - 4 {
            assert_eq!(read(&whole[..length], "tl_reno", &controls), None, "{length} bytes");
        }
        assert_eq!(read(&storage(7, &[0; 20]), "tl_reno", &controls), None);
    }
}
