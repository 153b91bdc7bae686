//! Reads captures, whoever made them.
//!
//! [`Capture`] reads frames from files and interfaces, [`link_layer`] knows where their first header begins, [`ip`] reads
//! the last two of a TCP packet, whatever tunnels are around it, and [`fragments`] puts together what IP has split. What
//! is no TCP is an [`other`], what cannot be read a [`problem`]. What it all means is for `airtcp-analyze`.
//!
//! ```
//! use std::path::Path;
//!
//! use aircaptures::{Capture, Next, ip::Found};
//!
//! let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pcaps/newreno.pcap");
//! let mut capture = Capture::open(&path, Some("tcp"))?;
//! let Next::Frame(frame) = capture.read() else { panic!("the file is empty") };
//! let Found::Tcp(packet) = frame.packet() else { panic!("no TCP in the first frame") };
//! assert_eq!((packet.number, packet.len), (1, 0));
//! # Ok::<(), aircaptures::CaptureError>(())
//! ```

#![warn(missing_docs)]

pub mod capture;
mod encapsulation;
pub mod fragments;
pub mod icmp;
pub mod ip;
pub mod link_layer;
pub mod other;
pub mod packet;
pub mod problem;

pub use capture::{Capture, CaptureError, Frame, Next};
