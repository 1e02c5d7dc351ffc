//! Payload from one socket to another, inside the kernel.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::unistd::pipe2;
use socket2::Socket;

/// Bytes a pipe shall hold. Where the user may have no more pages in pipes (pipe(7), pipe-user-pages-soft) it holds less.
const PIPE: i32 = 256 << 10;
/// Size of a read without a pipe, bytes.
const COPY: usize = 64 << 10;
/// Pipes that wait for their next use.
const SPARE: usize = 64;

/// A pipe, through which splice(2) moves pages.
#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    _counted: Arc<()>,
}

/// Pipes that hold nothing. A direction has one only while it has bytes in it, so that idle connections have none.
#[derive(Debug)]
pub(crate) struct Pipes {
    spare: Vec<Pipe>,
    /// Each pipe has a clone.
    counted: Arc<()>,
    /// Pipes there may be, spare ones included.
    maximum: usize,
    /// Where a read without a pipe goes: only what is not written at once is kept.
    scratch: Vec<u8>,
}

impl Pipes {
    pub(crate) fn at_most(maximum: usize) -> Pipes {
        Pipes { spare: Vec::new(), counted: Arc::default(), maximum, scratch: Vec::new() }
    }

    /// None where readers that are slow hold all of them.
    fn take(&mut self) -> io::Result<Option<Pipe>> {
        if let Some(pipe) = self.spare.pop() {
            return Ok(Some(pipe));
        }
        if Arc::strong_count(&self.counted) > self.maximum {
            return Ok(None);
        }
        let (out, into) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        let _ = fcntl(&into, FcntlArg::F_SETPIPE_SZ(PIPE));
        Ok(Some(Pipe { out, into, _counted: Arc::clone(&self.counted) }))
    }

    fn give_back(&mut self, pipe: Pipe) {
        if self.spare.len() < SPARE {
            self.spare.push(pipe);
        }
    }
}

/// How far a direction came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// One of the sockets has nothing to give, or no room: wait for its next event.
    Waits,
    /// There may be more: others first.
    More,
    /// The source has ended, and the destination has been shut down for writing.
    Ended,
}

/// One direction of a split connection.
#[derive(Debug, Default)]
pub(crate) struct Direction {
    pipe: Option<Pipe>,
    /// Bytes read where there was no pipe, and not all written.
    copied: Vec<u8>,
    /// Bytes in the pipe, or at the end of `copied`, that are not written yet.
    held: usize,
    source_ended: bool,
    ended: bool,
}

impl Direction {
    /// Moves up to `budget` bytes, and the end of the stream after the last of them.
    pub(crate) fn advance(
        &mut self,
        from: &Socket,
        to: &Socket,
        pipes: &mut Pipes,
        mut budget: usize,
    ) -> io::Result<Moved> {
        if self.ended {
            return Ok(Moved::Ended);
        }
        loop {
            // Only an empty pipe is filled, so that a refusal always speaks of the socket.
            if self.held == 0 && !self.source_ended {
                if budget == 0 {
                    return Ok(Moved::More);
                }
                match self.fill(from, to, pipes)? {
                    Some(0) => self.source_ended = true,
                    Some(bytes) => budget = budget.saturating_sub(bytes),
                    None => return Ok(Moved::Waits),
                }
            }
            while self.held > 0 {
                let wrote = match &self.pipe {
                    Some(pipe) => move_bytes(&pipe.out, to, self.held),
                    None => to.send(&self.copied[self.copied.len() - self.held..]),
                };
                match some(wrote)? {
                    Some(bytes) => self.held -= bytes,
                    None => return Ok(Moved::Waits),
                }
            }
            self.copied = Vec::new();
            if self.source_ended {
                to.shutdown(std::net::Shutdown::Write)?;
                self.ended = true;
                return Ok(Moved::Ended);
            }
        }
    }

    /// Reads what has come, into a pipe if there is one; how many bytes. Those to be written are held.
    fn fill(&mut self, mut from: &Socket, to: &Socket, pipes: &mut Pipes) -> io::Result<Option<usize>> {
        let Some(pipe) = self.pipe.take().map_or_else(|| pipes.take(), |pipe| Ok(Some(pipe)))? else {
            pipes.scratch.resize(COPY, 0);
            let Some(came) = some(from.read(&mut pipes.scratch))? else { return Ok(None) };
            // An error is found again when the rest is written.
            let wrote = if came > 0 { to.send(&pipes.scratch[..came]).unwrap_or(0) } else { 0 };
            self.copied = pipes.scratch[wrote..came].to_vec();
            self.held = self.copied.len();
            return Ok(Some(came));
        };
        let came = some(move_bytes(from, &pipe.into, PIPE as usize))?;
        self.held = came.unwrap_or(0);
        if self.held == 0 {
            pipes.give_back(pipe);
        } else {
            self.pipe = Some(pipe);
        }
        Ok(came)
    }

    /// Whether the source has ended and the destination has been shut down for writing.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, bytes: usize) -> io::Result<usize> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    Ok(splice(from, None, to, None, bytes, flags)?)
}

/// None where there is nothing to do now.
fn some(result: io::Result<usize>) -> io::Result<Option<usize>> {
    use io::ErrorKind::{Interrupted, WouldBlock};
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
