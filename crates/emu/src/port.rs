//! The way out of the emulator: groups of packets written into a TAP device.

use std::io;

use crate::arena::Arena;
use crate::coalescing::{Group, HEADERS, PIECES};
use crate::frame::{self, Keep};
use crate::tap::Tap;
use crate::virtio;

/// Buffers for writes, reused for each frame.
#[derive(Debug)]
pub(crate) struct Port {
    headers: [u8; HEADERS],
    frame: Vec<u8>,
}

const NOTHING: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

impl Port {
    pub(crate) fn new() -> Port {
        Port { headers: [0; HEADERS], frame: Vec::with_capacity(2048) }
    }

    /// Writes `group` into `tap`.
    #[inline]
    pub(crate) fn write(&mut self, tap: &Tap, group: &Group, arena: &Arena) -> io::Result<()> {
        if group.first().is_corrupt() {
            return self.write_damaged(tap, group, arena);
        }
        let len = group.write_headers(arena, &mut self.headers);
        let mut parts = [NOTHING; PIECES + 1];
        parts[0] = part(&self.headers[..len]);
        let mut count = 1;
        for (to, payload) in parts[1..].iter_mut().zip(group.payload(arena)) {
            *to = part(payload);
            count += usize::from(!payload.is_empty());
        }
        tap.write(&parts[..count])
    }

    /// A damaged packet goes out with the checksum it had before, for the receiver to find out.
    #[cold]
    fn write_damaged(&mut self, tap: &Tap, group: &Group, arena: &Arena) -> io::Result<()> {
        frame::write(group.first(), arena, Keep::Full, &mut self.frame);
        if !frame::damage(group.first(), &mut self.frame) {
            return Ok(());
        }
        let header = virtio::Header::default().bytes();
        tap.write(&[part(&header), part(&self.frame)])
    }
}

fn part(bytes: &[u8]) -> libc::iovec {
    libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() }
}
