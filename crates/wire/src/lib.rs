//! What both sides of a TUN device must agree on: below it is the network (`airlink`), above it the TCP (`airtcp`).
//!
//! * [`time`] and [`rng`]: integer nanoseconds and seeded randomness, both handed in from outside.
//! * [`segment`], [`options`], [`checksum`], [`seq`]: TCP/IP as it is on the wire.
//! * [`marks`], [`experiment`]: what base stations and receivers add to it.
//! * [`units`]: rates, sizes, probabilities and times as people write them.
//! * [`cause`]: what kind of loss it was.

pub mod cause;
pub mod checksum;
pub mod experiment;
pub mod marks;
pub mod options;
pub mod rng;
pub mod segment;
pub mod seq;
pub mod time;
pub mod units;

pub use cause::Cause;
