//! The size of the segments we send (Linux `tcp_sync_mss`).

use crate::Connection;
use crate::handshake::TIMESTAMP_BYTES;

/// A peer with a window up to this (`TCP_MSS_DEFAULT`) is sent segments of the whole window.
const SMALL_WINDOW: u32 = 536;
/// Minimum of headers and payload that a segment is cut to.
const MIN_MSS: u32 = 68;
/// TCP's header without options.
const HEADER: u32 = 20;

impl Connection {
    /// Bytes of the options in every segment.
    pub(crate) fn option_bytes(&self) -> u32 {
        if self.timestamps_ok { TIMESTAMP_BYTES } else { 0 }
    }

    /// Largest payload announced to the peer (`advmss`).
    pub(crate) fn advertised_mss(&self) -> u32 {
        self.config.mss.saturating_sub(self.option_bytes())
    }

    /// The peer's largest window is known or has grown.
    pub(crate) fn sync_mss(&mut self) {
        self.sk.mss_cache = self.bound_to_half_window(self.snd.mss);
        self.size_send_chunks();
    }

    /// Payload of the next full segment: less where it carries the accurate ECN option (`tcp_current_mss`).
    pub(crate) fn current_mss(&self) -> u32 {
        self.sk.mss_cache - self.accecn_data_bytes()
    }

    /// At most half the largest window the peer ever announced, so that one half can be on its way while the other is
    /// acknowledged (RFC 9293, section 3.8.6.2.1; `tcp_bound_to_half_wnd`).
    pub(crate) fn bound_to_half_window(&self, bytes: u32) -> u32 {
        let window = self.snd.max_window;
        let max = if window > SMALL_WINDOW { window / 2 } else { window };
        if max == 0 || bytes <= max {
            return bytes;
        }
        max.max(MIN_MSS - HEADER - self.option_bytes())
    }
}
