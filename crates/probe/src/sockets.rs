//! Sampling sockets: who owns which, and one dump for all of them.

use std::collections::HashMap;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, PoisonError};

use crate::diag::{ControlInfo, DiagError, Dump, Family, Socket};
use crate::{Filter, Published, TcpInfo};

/// Gains of Linux's BBR v1 in 1/256, as `bbr_get_info` reports them: 2/ln 2 to start up, its inverse to
/// drain.
const BBR_HIGH_GAIN: u32 = 256 * 2885 / 1000 + 1;
const BBR_DRAIN_GAIN: u32 = 256 * 1000 / 2885;
const BBR_UNIT: u32 = 256;

/// With more ranges the kernel's filter costs more than it saves: its check of the filter at every dump takes
/// quadratic time (`inet_diag_bc_audit`). Sockets without an owner are left out here anyway.
const FILTER_RANGES: usize = 8;

/// The flow of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Flow name.
    pub flow: Arc<str>,
    /// Stream number.
    pub stream: u64,
    /// The socket was asked to pace, whatever its control.
    pub paced: bool,
    /// It has opened its connection: the kernel counts its SYN among the bytes acknowledged.
    pub opened: bool,
    /// Bytes it sends before the payload.
    pub greeting: u64,
}

#[derive(Debug, Default)]
struct Owners {
    by_ports: HashMap<(u16, u16), Arc<Owner>>,
    /// Sockets of another program, known by the server's port only: stream numbers in order of creation.
    by_remote: HashMap<u16, Arc<str>>,
    ipv6: usize,
    changes: u64,
    /// The controls that the sampler reads; none: no sampler has looked.
    controls: Option<Arc<[Published]>>,
}

/// The sending sockets of a node, by their local and remote port.
#[derive(Debug, Default)]
pub struct Registry(Mutex<Owners>);

impl Registry {
    /// Says that the socket with these ports belongs to `owner`.
    pub fn add(&self, local: u16, remote: u16, ipv6: bool, owner: Owner) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.by_ports.insert((local, remote), Arc::new(owner));
        owners.ipv6 += usize::from(ipv6);
        owners.changes += 1;
    }

    /// Says that all connections to `remote` but the first, which carries control messages, are streams of
    /// `flow`.
    pub fn add_foreign(&self, remote: u16, flow: Arc<str>) {
        let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.by_remote.insert(remote, flow);
        owners.ipv6 += 1;
        owners.changes += 1;
    }

    /// Forgets a socket, whose control is `cc`. One that was sampled is shown to `each` a last time. The latest sample is of some
    /// time ago, and a connection that has ended is in no dump any more.
    pub fn remove(
        &self,
        (local_port, remote_port): (u16, u16),
        socket: RawFd,
        cc: &str,
        each: impl FnOnce(&Sample<'_>),
    ) {
        let (owner, controls) = {
            let mut owners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            owners.changes += 1;
            let owner = owners.by_ports.remove(&(local_port, remote_port));
            let (Some(owner), Some(controls)) = (owner, owners.controls.clone()) else { return };
            (owner, controls)
        };
        let Ok(info) = TcpInfo::of(socket) else { return };
        let (control, state) = ControlInfo::of(socket, cc, &controls);
        let last = Socket { local_port, remote_port, info: &info, cc, control, state: &state };
        each(&sample(&last, Some(&owner), &controls));
    }
}

/// One sample of one socket.
#[derive(Debug)]
pub struct Sample<'a> {
    /// Whose it is; none for a socket of an unknown program.
    pub owner: Option<&'a Owner>,
    /// Local port.
    pub local_port: u16,
    /// Remote port.
    pub remote_port: u16,
    /// The kernel's figures.
    pub info: &'a TcpInfo,
    /// Its control's own report.
    pub control: ControlInfo,
    /// The whole state of a control of tcplab's; else empty.
    pub state: &'a [u8],
    /// Pacing rate in bit/s, where the socket paces.
    pub pacing_rate: Option<f64>,
    /// The control's phase, where it has any.
    pub phase: Option<&'a str>,
}

impl Sample<'_> {
    /// Whether its connection was established. One that we open may never be: the SYN counts among the bytes acknowledged.
    pub fn was_established(&self) -> bool {
        let is_ours = self.owner.is_some_and(|owner| owner.opened);
        self.info.state != TcpInfo::SYN_SENT && (self.info.bytes_acked > 0 || !is_ours)
    }

    /// Payload acknowledged, without a greeting, and the SYN and the FIN that the kernel counts too.
    pub fn payload_acked(&self) -> u64 {
        let syn = u64::from(self.owner.is_some_and(|owner| owner.opened));
        let acked = self.info.bytes_acked.saturating_sub(syn).min(self.info.first_sent());
        acked.saturating_sub(self.owner.map_or(0, |owner| owner.greeting))
    }
}

/// Samples the sockets of one namespace.
#[derive(Debug)]
pub struct Sampler {
    dump: Dump,
    controls: Arc<[Published]>,
    every_socket: bool,
    changes: u64,
    filter: Filter,
    by_ports: HashMap<(u16, u16), Arc<Owner>>,
    foreign: HashMap<u16, Foreign>,
    families: Vec<Family>,
}

/// The lowest port that connections get by default (net.ipv4.ip_local_port_range).
const FIRST_EPHEMERAL: u16 = 32_768;

#[derive(Debug)]
struct Foreign {
    flow: Arc<str>,
    /// Local port of each connection seen, in order of creation.
    seen: Vec<(u16, Owner)>,
}

impl Sampler {
    /// Opens one in the namespace of the calling thread; `every_socket` shows those of unknown programs too.
    /// Reads the figures that `controls` publish with each sample.
    pub fn open(every_socket: bool, controls: Vec<Published>) -> Result<Sampler, DiagError> {
        let controls: Arc<[Published]> = controls.into();
        Ok(Sampler {
            dump: Dump::with_controls(controls.clone())?,
            controls,
            every_socket,
            changes: 0,
            filter: Filter::default(),
            by_ports: HashMap::new(),
            foreign: HashMap::new(),
            families: if every_socket { vec![Family::V4, Family::V6] } else { Vec::new() },
        })
    }

    /// Reads every socket once and shows it to `each`.
    pub fn sample(
        &mut self,
        registry: &Registry,
        mut each: impl FnMut(&Sample<'_>),
    ) -> Result<(), DiagError> {
        self.follow(registry);
        for i in 0..self.families.len() {
            let (dump, by_ports, foreign) = (&mut self.dump, &self.by_ports, &mut self.foreign);
            let (every_socket, controls) = (self.every_socket, &self.controls);
            dump.each(self.families[i], &self.filter, |socket| {
                let ports = (socket.local_port, socket.remote_port);
                let owner = match by_ports.get(&ports) {
                    Some(owner) => Some(&**owner),
                    None => match foreign.get_mut(&socket.remote_port) {
                        Some(program) => match program.owner(socket) {
                            Some(owner) => Some(owner),
                            None => return,
                        },
                        None => None,
                    },
                };
                if owner.is_some() || every_socket {
                    each(&sample(socket, owner, controls));
                }
            })?;
        }
        Ok(())
    }

    /// Takes over changes of the registry, rarely.
    fn follow(&mut self, registry: &Registry) {
        let mut owners = registry.0.lock().unwrap_or_else(PoisonError::into_inner);
        owners.controls.get_or_insert_with(|| self.controls.clone());
        if owners.changes == self.changes {
            return;
        }
        self.changes = owners.changes;
        self.by_ports.clone_from(&owners.by_ports);
        for (port, flow) in &owners.by_remote {
            self.foreign.entry(*port).or_insert_with(|| Foreign { flow: flow.clone(), seen: Vec::new() });
        }
        if !self.every_socket {
            let nobody = self.by_ports.is_empty() && self.foreign.is_empty();
            self.families = if nobody {
                Vec::new()
            } else if owners.ipv6 > 0 {
                vec![Family::V4, Family::V6]
            } else {
                vec![Family::V4]
            };
            let mut local: Vec<u16> = self.by_ports.keys().map(|(local, _)| *local).collect();
            let mut remote: Vec<u16> = self.foreign.keys().copied().collect();
            let filter = Filter { local: ranges(&mut local), remote: ranges(&mut remote) };
            let few = filter.local.len() + filter.remote.len() <= FILTER_RANGES;
            self.filter = if few { filter } else { Filter::default() };
        }
    }
}

impl Foreign {
    fn owner(&mut self, socket: &Socket<'_>) -> Option<&Owner> {
        let at = |seen: &[(u16, Owner)]| seen.iter().position(|(local, _)| *local == socket.local_port);
        if at(&self.seen).is_none() {
            let owner = Owner { flow: self.flow.clone(), stream: 0, paced: false, opened: true, greeting: 0 };
            self.seen.push((socket.local_port, owner));
            let highest = self.seen.iter().map(|(local, _)| *local).max().unwrap_or(0);
            self.seen.sort_by_key(|(local, _)| created(*local, highest));
            for (n, (_, owner)) in self.seen.iter_mut().enumerate() {
                owner.stream = (n as u64).saturating_sub(1);
            }
        }
        at(&self.seen).filter(|at| *at > 0).map(|at| &self.seen[at].1)
    }
}

/// Key that orders the connections of one program to one port by their creation. Linux takes ever higher local ports
/// for one destination (RFC 6056, section 3.3.4) until it begins again at the lowest. A socket's inode says less:
/// each CPU numbers those that it makes.
fn created(local: u16, highest: u16) -> u32 {
    let begun_again = highest - local > (u16::MAX - FIRST_EPHEMERAL) / 2;
    u32::from(local) + if begun_again { u32::from(u16::MAX) } else { 0 }
}

/// Ascending ranges that cover `ports`.
fn ranges(ports: &mut [u16]) -> Vec<std::ops::RangeInclusive<u16>> {
    ports.sort_unstable();
    let mut ranges: Vec<std::ops::RangeInclusive<u16>> = Vec::new();
    for &port in ports.iter() {
        match ranges.last_mut() {
            Some(last) if port - *last.end() <= 1 => *last = *last.start()..=port,
            _ => ranges.push(port..=port),
        }
    }
    ranges
}

fn sample<'a>(socket: &Socket<'a>, owner: Option<&'a Owner>, controls: &'a [Published]) -> Sample<'a> {
    // inet_diag does not report whether a socket paces: a control with a pacing gain does, others when asked.
    let gain = match socket.control {
        ControlInfo::Published { telemetry, .. } => telemetry.pacing_gain,
        ControlInfo::Bbr { pacing_gain, .. } => pacing_gain,
        _ => 0,
    };
    let paced = gain > 0 || owner.is_some_and(|o| o.paced) || socket.cc.contains("bbr");
    let known = socket.info.pacing_rate != u64::MAX;
    Sample {
        owner,
        local_port: socket.local_port,
        remote_port: socket.remote_port,
        info: socket.info,
        control: socket.control,
        state: socket.state,
        pacing_rate: (paced && known).then_some(socket.info.pacing_rate as f64 * 8.0),
        phase: match socket.control {
            ControlInfo::Bbr { pacing_gain, cwnd_gain, .. } => Some(bbr_phase(pacing_gain, cwnd_gain)),
            ControlInfo::Published { control, telemetry } => controls[control].phase(telemetry.phase),
            _ => None,
        },
    }
}

/// BBR's mode derived from its gains, since the kernel does not export the mode itself (`bbr_update_gains`). The names
/// are those of `cc/bbr1.c`.
fn bbr_phase(pacing_gain: u32, cwnd_gain: u32) -> &'static str {
    match (pacing_gain, cwnd_gain) {
        (BBR_HIGH_GAIN, _) => "STARTUP",
        (BBR_DRAIN_GAIN, BBR_HIGH_GAIN) => "DRAIN",
        (BBR_UNIT, BBR_UNIT) => "PROBE_RTT",
        _ => "PROBE_BW",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_ports_share_a_range() {
        assert_eq!(ranges(&mut [7, 5, 6, 9, 65535]), [5..=7, 9..=9, 65535..=65535]);
        assert_eq!(ranges(&mut []), []);
    }

    #[test]
    fn payload_acknowledged_is_without_syn_and_fin() {
        let acked = |opened, greeting, bytes_acked| {
            let owner = Owner { flow: "bulk".into(), stream: 0, paced: false, opened, greeting };
            let info = TcpInfo { bytes_acked, bytes_sent: 1500, bytes_retrans: 500, ..TcpInfo::default() };
            let (control, state) = (ControlInfo::None, &[][..]);
            let socket = Socket { local_port: 1, remote_port: 2, info: &info, cc: "cubic", control, state };
            sample(&socket, Some(&owner), &[]).payload_acked()
        };
        assert_eq!([0, 1, 501, 1001, 1002].map(|bytes| acked(true, 0, bytes)), [0, 0, 500, 1000, 1000]);
        assert_eq!([0, 500, 1000, 1001].map(|bytes| acked(false, 0, bytes)), [0, 500, 1000, 1000]);
        assert_eq!([0, 20, 31, 1002].map(|bytes| acked(true, 30, bytes)), [0, 0, 0, 970]);
    }

    #[test]
    fn a_connection_that_we_open_was_established_once_its_syn_is_acknowledged() {
        let was = |opened: Option<bool>, state, bytes_acked| {
            let flow: Arc<str> = "bulk".into();
            let owner = opened.map(|opened| Owner { flow, stream: 0, paced: false, opened, greeting: 0 });
            let info = TcpInfo { state, bytes_acked, ..TcpInfo::default() };
            let (control, state) = (ControlInfo::None, &[][..]);
            let socket = Socket { local_port: 1, remote_port: 2, info: &info, cc: "cubic", control, state };
            sample(&socket, owner.as_ref(), &[]).was_established()
        };
        let (established, given_up) = (1, 7);
        assert!(!was(Some(true), TcpInfo::SYN_SENT, 0) && !was(None, TcpInfo::SYN_SENT, 0));
        assert!(!was(Some(true), given_up, 0) && was(Some(true), given_up, 1001));
        assert!(was(Some(true), established, 1) && was(Some(false), established, 0));
        assert!(was(None, established, 0));
    }

    #[test]
    fn bbr_tells_its_phase_by_its_gains() {
        assert_eq!(bbr_phase(739, 739), "STARTUP");
        assert_eq!(bbr_phase(88, 739), "DRAIN");
        assert_eq!(bbr_phase(320, 512), "PROBE_BW");
        assert_eq!(bbr_phase(256, 512), "PROBE_BW");
        assert_eq!(bbr_phase(256, 256), "PROBE_RTT");
    }

    #[test]
    fn streams_of_another_program_are_numbered_by_creation_after_its_control_connection() {
        let mut program = Foreign { flow: "bulk".into(), seen: Vec::new() };
        let nothing = TcpInfo::default();
        let socket = |local_port| Socket {
            local_port,
            remote_port: 5201,
            info: &nothing,
            cc: "cubic",
            control: ControlInfo::None,
            state: &[],
        };
        assert_eq!(program.owner(&socket(50_000)), None);
        assert_eq!(program.owner(&socket(50_004)).map(|o| o.stream), Some(0));
        assert_eq!(program.owner(&socket(50_002)).map(|o| o.stream), Some(0));
        assert_eq!(program.owner(&socket(50_004)).map(|o| o.stream), Some(1));
        assert_eq!(program.owner(&socket(50_000)), None);
        // The range of ports has an end, after which the lowest come.
        assert_eq!(program.owner(&socket(32_770)).map(|o| o.stream), Some(2));
        assert_eq!(program.owner(&socket(50_000)), None);
    }
}
