//! Reads packet captures of any origin.
//!
//! * [`Capture`] reads frames from files and interfaces.
//! * [`link_layer`] has the link types.
//! * [`ip`] reads the IP and TCP headers of a packet, also inside tunnels.
//! * [`fragments`] reassembles IP fragments.
//! * [`other`] names packets that are not TCP, and [`problem`] names packets that cannot be read.
//!
//! The crate `airtcp-analyze` interprets the packets.
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

/// Defines an enum and its `Display`, with the text of each variant. The text may contain the variant's number.
macro_rules! text_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $(($number:ident: $type:ty))? => $text:literal,)*
    }) => {
        $(#[$meta])*
        pub enum $name {
            $($(#[$doc])* $variant $(($type))?,)*
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self {
                    $(Self::$variant $(($number))? => write!(f, $text),)*
                }
            }
        }
    };
}

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
