//! The settings of a host: how they are written, which of two counts, and what they make of its TCP.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tcplab_plan::{Ecn, TcpSettings, Timing};
use tcplab_units::Span;

use super::{Amount, kinds};
use crate::expand::{segment, set_buffers};

/// The network interfaces of a host, each of which has a queue that all flows share. Short form: the rate
/// (`nic: 1 Gbit/s`).
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-short" = "rate"))]
pub(crate) struct Nic {
    /// Rate at which each sends Ethernet frames (IP length + 14 bytes).
    #[schemars(with = "kinds::Rate")]
    pub(crate) rate: u64,
    /// Packets that may wait for it (txqueuelen); default: 1000.
    #[schemars(with = "Option<kinds::Packets>")]
    pub(crate) queue: Option<u64>,
}

/// The settings of a host's TCP; defaults are Linux's.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct HostSettings {
    /// Send and receive buffer of every socket, as SO_SNDBUF and SO_RCVBUF; default: auto-tuned.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) window: Option<Amount>,
    /// Send buffer alone.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) send_buffer: Option<Amount>,
    /// Receive buffer alone.
    #[schemars(with = "Option<kinds::Window>")]
    pub(crate) receive_buffer: Option<Amount>,
    /// Largest auto-tuned send buffer (`tcp_wmem[2]`, 4 MiB).
    #[schemars(with = "Option<kinds::PositiveSize>", extend("default" = "4 MiB"))]
    pub(crate) send_buffer_max: Option<u64>,
    /// Receive buffer where auto-tuning starts (`tcp_rmem[1]`, 128 KiB).
    #[schemars(with = "Option<kinds::PositiveSize>", extend("default" = "128 KiB"))]
    pub(crate) receive_buffer_initial: Option<u64>,
    /// Largest auto-tuned receive buffer (`tcp_rmem[2]`, 6 MiB).
    #[schemars(with = "Option<kinds::PositiveSize>", extend("default" = "6 MiB"))]
    pub(crate) receive_buffer_max: Option<u64>,
    /// Largest TCP payload announced, options not counted; default: the link's MTU minus 40 B.
    #[schemars(with = "Option<kinds::PositiveSize>")]
    pub(crate) mss: Option<u64>,
    /// Initial congestion window (`10 packets`, RFC 6928).
    #[schemars(with = "Option<kinds::InitialWindow>", extend("default" = "10 packets"))]
    pub(crate) initial_window: Option<u32>,
    /// Explicit congestion notification: `off`, `on` (offered), `passive` (accepted when offered; default).
    #[schemars(extend("default" = "passive"))]
    pub(crate) ecn: Option<Ecn>,
    /// Selective acknowledgments (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) sack: Option<bool>,
    /// TCP timestamps, RFC 7323 (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) timestamps: Option<bool>,
    /// Delayed acknowledgments (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) delayed_ack: Option<bool>,
    /// TCP segmentation offload: bursts leave the host as one (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) tso: Option<bool>,
    /// Generic segmentation offload: the same, done in software (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) gso: Option<bool>,
    /// Generic receive offload: neighbouring segments are merged, fewer ACKs are sent (default off).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "off"))]
    pub(crate) gro: Option<bool>,
    /// Nagle's algorithm (default on; off is TCP_NODELAY).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) nagle: Option<bool>,
    /// Pace every control, as the fq queue discipline does (default off: only controls that ask for it).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "off"))]
    pub(crate) pacing: Option<bool>,
    /// Minimum retransmission timeout (default 200 ms).
    #[schemars(with = "Option<kinds::PositiveTime>", extend("default" = "200 ms"))]
    pub(crate) rto_min: Option<u64>,
    /// Slow start after an idle period (default on).
    #[schemars(with = "Option<kinds::Switch>", extend("default" = "on"))]
    pub(crate) slow_start_after_idle: Option<bool>,
    /// How long it takes to notice what arrives (default `ideal`: no time). `linux` is as measured on Linux: some 25 µs, and
    /// what arrives meanwhile is handled with it. Its timers fire with ticks of 4 ms. For the simulator: real hosts take the
    /// time that they take.
    #[schemars(extend("default" = "ideal"))]
    pub(crate) timing: Option<Timing>,
    /// How fast its network interfaces send; what they have not sent yet waits in the host, where its TCP sees it.
    pub(crate) nic: Option<Nic>,
    /// Kernel settings by name, for engines with a kernel.
    #[schemars(with = "Option<kinds::Sysctls>")]
    pub(crate) sysctls: Option<BTreeMap<String, String>>,
    /// CPUs the host's processes are pinned to (`1` or `[0, 1]`), for engines with real ones.
    #[schemars(with = "Option<kinds::Cpus>")]
    pub(crate) cpus: Option<Vec<u32>>,
}

macro_rules! each_setting {
    ($($key:ident),* $(,)?) => {
        impl HostSettings {
            /// Names of those that are given.
            pub(crate) fn keys(&self) -> Vec<&'static str> {
                let mut keys = Vec::new();
                $(if self.$key.is_some() { keys.push(stringify!($key)); })*
                keys
            }

            /// These, and those of all hosts where they are silent; of kernel settings each counts by itself.
            pub(crate) fn or(&self, common: HostSettings) -> HostSettings {
                let mut both = HostSettings { $($key: self.$key.clone().or(common.$key.clone()),)* };
                if let (Some(mut sysctls), Some(own)) = (common.sysctls, &self.sysctls) {
                    sysctls.extend(own.clone());
                    both.sysctls = Some(sysctls);
                }
                both
            }
        }
    };
}

each_setting!(
    window,
    send_buffer,
    receive_buffer,
    send_buffer_max,
    receive_buffer_initial,
    receive_buffer_max,
    mss,
    initial_window,
    ecn,
    sack,
    timestamps,
    delayed_ack,
    tso,
    gso,
    gro,
    nagle,
    pacing,
    rto_min,
    slow_start_after_idle,
    timing,
    nic,
    sysctls,
    cpus,
);

impl HostSettings {
    /// Puts what is given into the settings of an endpoint. The rest is the node's: it has nothing to do with TCP.
    pub(crate) fn fill(&self, tcp: &mut TcpSettings, bdp: Option<u128>) {
        let HostSettings {
            window,
            send_buffer,
            receive_buffer,
            send_buffer_max,
            receive_buffer_initial,
            receive_buffer_max,
            mss,
            initial_window,
            ecn,
            sack,
            timestamps,
            delayed_ack,
            tso,
            gso,
            gro,
            nagle,
            pacing,
            rto_min,
            slow_start_after_idle,
            timing: _,
            nic: _,
            sysctls: _,
            cpus: _,
        } = self;
        set_buffers(tcp, window.as_ref(), send_buffer.as_ref(), receive_buffer.as_ref(), bdp);
        macro_rules! set {
            ($($key:ident),*) => { $(if let Some(value) = *$key { tcp.$key = value; })* };
        }
        set!(
            send_buffer_max,
            receive_buffer_initial,
            receive_buffer_max,
            initial_window,
            ecn,
            sack,
            timestamps
        );
        set!(delayed_ack, gro, nagle, pacing, slow_start_after_idle);
        if let Some(mss) = *mss {
            tcp.mss = segment(mss);
        }
        if let Some(rto_min) = *rto_min {
            tcp.rto_min = Span::from_ns(rto_min);
        }
        if tso.is_some() || gso.is_some() {
            // TCP builds bursts if either the card or the kernel cuts them up; with neither, `gso_max_segs` is 1.
            tcp.tso = tso.unwrap_or(true) || gso.unwrap_or(true);
        }
    }
}
