//! Types that the network below a TUN device (`airlink`) and the TCP above it (`airtcp`) share.
//!
//! * [`time`] and [`rng`]: integer nanoseconds and seeded randomness. The caller supplies both.
//! * [`segment`], [`options`], [`checksum`], [`seq`]: the wire format of TCP/IP.
//! * [`view`], [`rewrite`]: headers of packets that may be truncated, and changes in place.
//! * [`text`]: the text of segments, as bytes or as a part of a known stream.
//! * [`piece`]: segments that leave in one write.
//! * [`marks`], [`experiment`]: bits and options that base stations and receivers add to TCP headers.
//! * [`fast_open`]: the option of TCP Fast Open.
//! * [`dump`]: packets in tcpdump's format, for logs.
//! * [`units`]: rates, sizes, probabilities and times as people write them.
//! * [`cause`]: the cause of a packet loss.
//!
//! This example writes a segment and parses it again:
//!
//! ```
//! use airwire::options::{Layout, Options};
//! use airwire::segment::{self, BadPacket, Ecn, Flags, Header};
//! use airwire::seq::Seq;
//!
//! let syn = Header {
//!     src: "192.0.2.1:50000".parse()?,
//!     dst: "192.0.2.2:80".parse()?,
//!     seq: Seq(1_000),
//!     ack: Seq(0),
//!     flags: Flags::SYN,
//!     window: 65_535,
//!     ecn: Ecn::NotEct,
//!     tos: 0,
//!     ttl: 64,
//!     dont_fragment: true,
//!     ident: 1,
//! };
//! let offered = Options { mss: Some(1460), sack_permitted: true, ..Options::default() };
//! let mut options = Vec::new();
//! offered.write(Layout::Linux, &mut options);
//! let mut packet = Vec::new();
//! segment::emit(&mut packet, &syn, &options, (b"", b""));
//!
//! let read = segment::parse(&packet)?;
//! assert_eq!((read.seq, read.flags, read.options), (Seq(1_000), Flags::SYN, offered));
//! assert_eq!(read.seq_len(), 1, "a SYN has a sequence number of its own");
//!
//! // A segment with one flipped bit is rejected.
//! *packet.last_mut().unwrap() ^= 1;
//! let damaged = segment::parse(&packet);
//! assert_eq!(damaged.unwrap_err(), BadPacket::TcpChecksum);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod cause;
pub mod checksum;
pub mod direction;
pub mod dump;
pub mod experiment;
pub mod fast_open;
mod flags;
pub mod marks;
pub mod options;
pub mod piece;
pub mod rewrite;
pub mod rng;
pub mod segment;
pub mod seq;
pub mod text;
pub mod time;
pub mod units;
pub mod view;

pub use cause::Cause;
