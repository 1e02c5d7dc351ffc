//! The sending half of a connection: its parts, each of which alone changes its state.

use tcplab_control::Control;

use crate::Config;
use crate::chrono::Chrono;
use crate::connection::Counters;
use crate::cwnd::CwndUse;
use crate::persist::Persist;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rate::LatestRate;
use crate::rtt::Rtt;
use crate::sack::SackCache;
use crate::scoreboard::Scoreboard;
use crate::small_queue::SmallQueue;
use crate::sndbuf::SendBuffer;
use crate::tlp::TailLoss;
use crate::undo::Undo;

/// Sequence and window, as far as controls do not see them, and the parts. The pacing rate is in `TcpSock`, where controls see
/// it. Arriving data need the end of `buffer`, what follows it, and the timeout (see `Connection`).
#[repr(C)]
pub(crate) struct Sender {
    pub chrono: Chrono,
    /// First timeout since something was last acknowledged, microseconds.
    pub first_timeout_us: u64,
    pub buffer: SendBuffer,
    /// End of what the application has written.
    pub write_seq: u32,
    /// The peer's window.
    pub wnd: u32,
    /// Segment that last updated the window.
    pub wl1: u32,
    /// End of the highest SACKed segment.
    pub highest_sack: u32,
    /// End of the last segment that was not full (Minshall).
    pub small_end: u32,
    pub wscale: u8,
    /// The peer discarded what it had SACKed.
    pub reneged: bool,
    /// The application will write no more.
    pub closing: bool,
    pub fin_queued: bool,
    pub fin_sent: bool,
    pub fin_acked: bool,
    /// A timeout may prove spurious (RFC 5682).
    pub frto: bool,
    pub rtt: Rtt,
    // For ACKs.
    /// When data was last sent, microseconds.
    pub last_sent_us: u64,
    pub tail_loss: TailLoss,
    pub persist: Persist,
    pub small_queue: SmallQueue,
    pub rack: Rack,
    pub cwnd_use: CwndUse,
    pub latest_rate: LatestRate,
    pub control: Control,
    pub counters: Counters,
    pub board: Scoreboard,
    // Rarely needed.
    /// Largest payload the peer takes, options subtracted.
    pub mss: u32,
    /// Largest window the peer ever advertised.
    pub max_window: u32,
    /// Duplicates the peer has reported, segments.
    pub dsack_segments: u64,
    pub prr: Prr,
    pub undo: Undo,
    pub sack_cache: SackCache,
}

impl Sender {
    /// That of an end whose SYN has the number `isn`, with nothing sent.
    pub(crate) fn new(config: &Config, control: Control, isn: u32) -> Sender {
        let after_syn = isn.wrapping_add(1);
        Sender {
            write_seq: after_syn,
            wnd: 0,
            mss: 0,
            max_window: 0,
            wl1: 0,
            wscale: 0,
            highest_sack: 0,
            reneged: false,
            dsack_segments: 0,
            small_end: isn,
            last_sent_us: 0,
            first_timeout_us: 0,
            closing: false,
            fin_queued: false,
            fin_sent: false,
            fin_acked: false,
            frto: false,
            rtt: Rtt::new(config.rto_min),
            buffer: SendBuffer::new(config, after_syn),
            tail_loss: TailLoss::default(),
            prr: Prr::default(),
            small_queue: SmallQueue::default(),
            counters: Counters::default(),
            chrono: Chrono::new(),
            board: Scoreboard::new(),
            persist: Persist::default(),
            rack: Rack::new(),
            cwnd_use: CwndUse::default(),
            latest_rate: LatestRate::default(),
            control,
            undo: Undo::default(),
            sack_cache: SackCache::default(),
        }
    }
}
