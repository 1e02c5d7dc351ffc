//! Payload from one socket to another, inside the kernel.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SpliceFFlags, fcntl, splice};
use nix::unistd::pipe2;
use socket2::Socket;

/// Bytes a pipe shall hold. Where the user may have no more pages in pipes (pipe(7), pipe-user-pages-soft) it holds less.
const PIPE: i32 = 256 << 10;
/// Pipes that wait for their next use.
const SPARE: usize = 64;

/// A pipe, through which splice(2) moves pages.
#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
}

/// Pipes that hold nothing. A direction has one only while it has bytes in it, so that idle connections have none.
#[derive(Debug, Default)]
pub(crate) struct Pipes(Vec<Pipe>);

impl Pipes {
    fn take(&mut self) -> io::Result<Pipe> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (out, into) = pipe2(OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)?;
        let _ = fcntl(&into, FcntlArg::F_SETPIPE_SZ(PIPE));
        Ok(Pipe { out, into })
    }

    fn give_back(&mut self, pipe: Pipe) {
        if self.0.len() < SPARE {
            self.0.push(pipe);
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
    /// Bytes in the pipe.
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
                let pipe = match self.pipe.take() {
                    Some(pipe) => pipe,
                    None => pipes.take()?,
                };
                let came = some(move_bytes(from, &pipe.into, PIPE as usize))?;
                match came {
                    Some(0) => self.source_ended = true,
                    Some(bytes) => {
                        self.held = bytes;
                        budget = budget.saturating_sub(bytes);
                    }
                    None => {
                        pipes.give_back(pipe);
                        return Ok(Moved::Waits);
                    }
                }
                if self.held == 0 { pipes.give_back(pipe) } else { self.pipe = Some(pipe) }
            }
            while self.held > 0 {
                let Some(pipe) = &self.pipe else { break };
                match some(move_bytes(&pipe.out, to, self.held))? {
                    Some(bytes) => self.held -= bytes,
                    None => return Ok(Moved::Waits),
                }
            }
            if self.source_ended {
                to.shutdown(std::net::Shutdown::Write)?;
                self.ended = true;
                return Ok(Moved::Ended);
            }
        }
    }

    /// Whether the source has ended and the destination has been shut down for writing.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }
}

fn move_bytes(from: impl AsFd, to: impl AsFd, bytes: usize) -> Result<usize, Errno> {
    let flags = SpliceFFlags::SPLICE_F_MOVE | SpliceFFlags::SPLICE_F_NONBLOCK;
    splice(from, None, to, None, bytes, flags)
}

/// None where there is nothing to do now.
fn some(result: Result<usize, Errno>) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
