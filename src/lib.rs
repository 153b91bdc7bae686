//! airtcp is *the host*: everything above IP. A TCP whose loss recovery is put together from named parts.
//!
//! * [`recovery`] holds the algorithms: six questions, one answer each.
//! * [`flight`], [`rtt`], [`profile`], [`ranges`] are what they look at.
//! * [`tcp`] is one connection, [`host`] many behind one address.
//! * [`relay`] carries the streams of one connection over to another.
//!
//! It knows no clock, no socket and no randomness of its own: a driver hands in the time and the bytes.

#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

pub mod flight;
pub mod host;
pub mod profile;
pub mod ranges;
pub mod recovery;
pub mod relay;
pub mod rtt;
pub mod tcp;
