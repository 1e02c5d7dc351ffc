//! Traffic on real sockets: bulk transfers, evenly paced datagrams, requests, web pages, echoes and pings.
//!
//! One end of a flow is [prepared](prepare) first, which opens its listening sockets, and started
//! when the run's zero of time is known. Each stream has a thread of its own, so that its CPU time is known
//! and a blocking call costs one system call. Events are handed to a [`Sink`] as plain rows.

mod bulk;
mod collect;
mod config;
mod conversation;
mod counter;
pub mod echo;
mod endpoint;
mod error;
pub mod http;
mod iperf3;
mod pattern;
mod ping;
mod request;
mod rows;
mod run;
mod socket;
mod tcp;
mod udp;

pub use config::{End, Role, SocketOptions, Target};
pub use endpoint::{PATIENCE, Prepared, prepare};
pub use error::TrafficError;
pub use rows::{Exchange, Fetch, Interval, Ping, Sink, Summary};
pub use run::{Clock, Context, Handle, Totals};
pub use socket::{Clamped, available_controls, tcp as tcp_socket};
