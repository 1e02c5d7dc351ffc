//! Capture files: packets built from plain header fields, written as pcapng.
//!
//! Payloads are zero bytes: what is captured here is protocol behaviour, and a capture compresses well.
//! Nothing is allocated for a packet; one `FrameBuffer` and one `Writer` serve a whole capture.

pub mod frame;

mod pcapng;

pub use frame::FrameBuffer;
pub use pcapng::{Interface, InterfaceId, Writer};
