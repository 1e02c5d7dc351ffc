//! Capture files: read, written, and explained.
//!
//! **Reading.** [`Reader`] gives the packets of a pcap or pcapng capture, plain or compressed, mapped or from a
//! pipe. [`parse`](parse::parse) copies a packet's header fields into one [`Segment`]. [`Analysis`] makes flows
//! of them:
//!
//! ```no_run
//! use tcplab_pcap::{Analysis, Reader, flow::{Direction, Options}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut reader = Reader::open("run.pcapng".as_ref())?;
//! let mut analysis = Analysis::new(Options::default());
//! while let Some(packet) = reader.next_packet() {
//!     analysis.packet(&packet);
//! }
//! let (flows, counts, ()) = analysis.finish();
//! for flow in &flows {
//!     println!("{} {} -> {} {:?}", flow.number, flow.endpoints[0], flow.endpoints[1],
//!         flow.goodput(Direction::Forward));
//! }
//! println!("{counts:?}, {}", reader.ending().map_or("more to come".to_owned(), ToString::to_string));
//! # Ok(())
//! # }
//! ```
//!
//! [`summarise`] does the same on several cores, and its flows stay small until they are looked at. An [`Observer`](flow::Observer) is shown every segment with what
//! the analysis made of it ([`flow::Seen`]), for figures and lists. [`pairing`] matches the captures of both ends
//! of a path.
//!
//! Times are nanoseconds since 1970 (`i64`), sizes bytes. Nothing in a capture makes this crate panic; what
//! can't be read is counted by reason.
//!
//! **Writing.** Packets are built from plain header fields and written as pcapng. Payloads are zero bytes: what
//! is captured here is protocol behaviour, and a capture compresses well. Nothing is allocated for a packet; one
//! [`FrameBuffer`] and one [`Writer`] serve a whole capture. Its file is a [`PartFile`] until it is whole.

pub mod build;
pub mod dissect;
pub mod filter;
pub mod flow;
pub mod list;
pub mod pairing;
pub mod parse;
pub mod read;

mod parallel;
mod partial_file;
mod pcapng;
mod quantiles;
mod summarise;

pub use build::FrameBuffer;
pub use flow::{Analysis, FlowSummary, Flows, Observer};
pub use parse::{Segment, parse};
pub use partial_file::PartFile;
pub use pcapng::{Interface, InterfaceId, Writer};
pub use quantiles::Quantiles;
pub use read::{Packet, Reader};
pub use summarise::{Summary, summarise};
