//! Analyses the TCP connections in a capture of any origin.
//!
//! The entry point is [`read`]: it reads an open [`Capture`](aircaptures::Capture) to its end and calls a
//! function with each connection's [`ConnectionFindings`]. Findings can be serialized, and `Display` formats
//! them as text.
//!
//! ```
//! use std::path::Path;
//!
//! use aircaptures::Capture;
//! use airtcp_analyze::connection::findings::PartialAcks;
//! use airtcp_analyze::{Traces, read};
//!
//! // 300 kB from a NewReno sender over a lossy radio link, captured at the sender.
//! let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pcaps/newreno.pcap");
//! let mut capture = Capture::open(&path, Some("tcp"))?;
//! let mut connections = Vec::new();
//! let totals = read(&mut capture, Traces::None, &mut |finished| connections.push(finished.ended.findings));
//!
//! assert_eq!(totals.connections, 1);
//! let [data, _] = &connections[0].directions;
//! assert_eq!(data.acked_bytes, 300_000);
//! assert_eq!((data.retransmissions.fast, data.retransmissions.timeout), (12, 19));
//! assert_eq!(data.sender.partial_acks, PartialAcks::NewReno);
//! # Ok::<(), aircaptures::CaptureError>(())
//! ```
//!
//! - [`survey`] reads one capture, including a running capture on an interface.
//! - [`path`] reads several captures of one path and matches each packet across all captures.
//! - [`connection::findings`] contains all results for a connection. [`trace`] contains every packet, for
//!   graphs.
//! - [`comments`] writes a copy of the capture with comments that explain why each packet was sent.
//! - [`decisions`] reads the sender's decision log, and [`airlink_events`] reads the emulator's event log.
//! - [`connections`] assigns packets to connections. The crate `aircaptures` reads frames and their headers.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

pub mod airlink_events;
pub mod comments;
mod compact;
pub mod connection;
pub mod connections;
mod damage;
pub mod decisions;
mod endpoints;
mod fingerprint;
#[cfg(not(target_family = "wasm"))]
pub mod path;
mod recent;
mod resolution;
mod rtt;
pub mod survey;
#[cfg(test)]
mod test_support;
mod text;
pub mod trace;

pub use connection::{ConnectionFindings, Ended};
pub use connections::{Finished, Limits, Traces};
pub use survey::{Survey, Totals, read};
pub use trace::Trace;
