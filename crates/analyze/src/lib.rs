//! What a capture says about the TCP connections in it, whoever made it.
//!
//! Begin with [`read`]: it reads an open [`Capture`](aircaptures::Capture) to its end and calls a function with each connection's
//! [`ConnectionFindings`]. These can be serialized, and `Display` says them to a person.
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
//! - [`survey`] reads one capture, also from an interface while it goes on.
//! - [`path`] reads several captures of one path and finds each packet again in all of them.
//! - [`connection::findings`] is everything that is said about a connection; [`trace`] is every packet of it, for
//!   pictures.
//! - [`comments`] writes why each packet was sent into a copy of the capture; [`decisions`] reads what the sender itself
//!   logged, and [`airlink_events`] what the emulator logged.
//! - [`connections`] sorts packets by connection. Below that, `aircaptures` reads frames and the headers in them.

#![warn(missing_docs)]
#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

pub mod airlink_events;
pub mod comments;
pub mod connection;
pub mod connections;
mod damage;
pub mod decisions;
mod endpoints;
#[cfg(not(target_family = "wasm"))]
pub mod path;
#[cfg(test)]
mod scenarios;
pub mod survey;
pub mod trace;

pub use connection::{ConnectionFindings, Ended};
pub use connections::{Finished, Limits, Traces};
pub use survey::{Survey, Totals, read};
pub use trace::Trace;
