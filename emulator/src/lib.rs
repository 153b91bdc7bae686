//! airlink emulates a network path below IP: links, radio bearers and base stations. Where a standard defines
//! formats, they are bit-exact. The emulator reports what happened to every packet.
//!
//! A [`Scenario`] is a text that lists the stages of a path: links, lossy channels, outages, local
//! retransmission, bearers of UMTS, LTE and NR, base stations, background traffic. [`Scenario::build`] turns it into a
//! [`Path`], a sans-I/O machine that receives IP packets and the time, and returns packets and its next
//! deadline. The same path runs in virtual time, where runs are reproducible bit for bit, and in real time
//! between TUN devices.
//!
//! ```
//! use airlink::{Direction, FIXED, MOBILE, Machine, Path, Recording, Scenario, machine};
//! use airwire::time::{Duration, Instant};
//!
//! let scenario = Scenario::parse(
//!     r#"
//!         schema = 1
//!
//!         [[stage]]
//!         kind = "link"
//!         both = { rate = "1Mbit", delay = "20ms", queue = { packets = 50 } }
//!     "#,
//!     "example.toml",
//! )?;
//! let mut path: Path = scenario.build(None, Recording::Off, false)?;
//!
//! // The fixed side sends 1250 bytes at 1 s.
//! let sent = Instant::ZERO + Duration::from_secs(1);
//! path.handle_packet(sent, FIXED, vec![0; 1250]);
//!
//! // Collect all packets of the next second: 10 ms on the transmitter and 20 ms on the wire.
//! let mut arrivals = Vec::new();
//! machine::catch_up(&mut path, sent + Duration::from_secs(1), |at, port, packet| {
//!     arrivals.push((at - sent, port, packet.len()));
//! });
//! assert_eq!(arrivals, [(Duration::from_millis(30), MOBILE, 1250)]);
//! assert_eq!(path.totals()[Direction::Down].left, 1);
//! # Ok::<(), airlink::ScenarioError>(())
//! ```
//!
//! # Where to begin
//!
//! [`machine`] explains how to drive a machine, [`stage`] what a stage is and what it reports, and [`path`]
//! how packets move from stage to stage. Then read a stage: [`stages::outage`] is the shortest and [`rlc`] by
//! far the longest. `docs/explanation/architecture.md` explains the structure of the code, and
//! `docs/reference/scenario/README.md` the scenario format.
//!
//! The crate and its program are called `airlink`. The directory is `emulator/`. The crate does not depend on
//! `airtcp`.
//!
//! # Features
//!
//! - `devices`: runs machines in real time (Linux only): TUN devices, namespaces, processes, the clock.
//! - `program` (default): the program `airlink`. It requires `devices`.
//!
//! Without these features, only modules that read or write files need an operating system, and the library
//! compiles to WebAssembly.

#![warn(missing_docs)]

pub mod capture;
pub mod drb;
pub mod fading;
pub mod mac;
pub mod machine;
pub mod maths;
mod memory;
pub mod output;
pub mod packet;
pub mod path;
pub mod pdcp;
pub mod prefix;
pub mod rlc;
pub mod scenario;
pub mod settings;
pub mod simulate;
pub mod stage;
pub mod stages;
mod suggest;
mod totals;
pub mod views;

#[cfg(feature = "devices")]
pub mod addresses;
#[cfg(feature = "devices")]
pub mod control;
#[cfg(feature = "devices")]
pub mod driver;
#[cfg(feature = "devices")]
mod interface;
#[cfg(feature = "devices")]
pub mod lateness;
#[cfg(feature = "devices")]
pub mod netns;
#[cfg(feature = "devices")]
pub mod offload;
#[cfg(feature = "devices")]
pub mod program;
#[cfg(feature = "devices")]
pub mod reactor;
#[cfg(feature = "devices")]
pub mod tun;

pub use machine::{Machine, Port};
pub use packet::{Direction, PacketId};
pub use path::{FIXED, MOBILE, Path};
pub use scenario::{Scenario, ScenarioError};
pub use stage::{DropReason, Event, Record, Recording, Stage};
