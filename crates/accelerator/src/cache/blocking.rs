//! Reads and writes that block.

use std::io;

use socket2::Socket;

/// Reads what there is, up to `maximum` bytes; 0: the other end has closed.
pub(super) fn fill(socket: &Socket, buffer: &mut Vec<u8>, maximum: usize) -> io::Result<usize> {
    buffer.reserve(maximum);
    loop {
        match socket.recv(&mut buffer.spare_capacity_mut()[..maximum]) {
            Ok(bytes) => {
                // SAFETY: the kernel has written so many bytes there.
                unsafe { buffer.set_len(buffer.len() + bytes) };
                return Ok(bytes);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes all parts, one after the other.
pub(super) fn send(socket: &Socket, parts: &[&[u8]]) -> io::Result<()> {
    let mut slices: Vec<io::IoSlice<'_>> = parts.iter().map(|part| io::IoSlice::new(part)).collect();
    let mut left = slices.as_mut_slice();
    io::IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match socket.send_vectored(left) {
            Ok(sent) => io::IoSlice::advance_slices(&mut left, sent),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
