//! airlink is *the network*: everything below IP. It emulates links, radio bearers and base stations, bit for bit
//! where a standard says how, and says of every packet what became of it.
//!
//! A [`Scenario`] is a text that names the stages of a path: links, lossy channels, outages, local retransmission,
//! UMTS bearers, base stations, background traffic. Built, it is a [`Path`]: a sans-I/O machine that is handed the
//! time and whole IP packets, and hands back packets and its next deadline. The same path runs in virtual time, where
//! a run repeats to the bit, and in real time between TUN devices.
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
//! // The fixed side sends 1250 octets at 1 s.
//! let sent = Instant::ZERO + Duration::from_secs(1);
//! path.handle_packet(sent, FIXED, vec![0; 1250]);
//!
//! // Whatever happens within the next second: 10 ms on the transmitter and 20 ms on the wire.
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
//! [`machine`] says how any machine is driven, [`stage`] what a stage of a path is and what it reports, [`path`] how
//! packets go from stage to stage. Then read a stage: [`stages::outage`] is the shortest, [`rlc`] by far the longest.
//! `docs/explanation/architecture.md` says where a line of code belongs, `docs/reference/scenario/README.md` what a scenario can say.
//!
//! The crate is `airlink` and so is its program; the directory is `emulator/`. It knows nothing of the crate `airtcp`.
//!
//! # Features
//!
//! - `devices`: what runs machines in real time, on Linux only: TUN devices, namespaces, processes, the clock.
//! - `program` (default): the program `airlink`; it needs `devices`.
//!
//! Without either, only what reads or writes files needs an operating system, and the library compiles to WebAssembly.

#![warn(missing_docs)]

pub mod capture;
pub mod fading;
pub mod fit;
pub mod machine;
pub mod maths;
pub mod output;
pub mod packet;
pub mod path;
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
pub use stage::{Event, Record, Recording, Stage, Why};
