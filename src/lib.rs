//! airtcp is *the host*: everything above IP. A TCP whose loss recovery is put together from named parts.
//!
//! * [`tcp`] is one connection, [`host`] many behind one address.
//! * [`recovery`] holds the algorithms: six questions, one answer each.
//! * [`analyze`] reads captures, of anybody's connections.
//! * [`driver`] runs a host in real time over a TUN device.
//! * [`lab`] runs experiments between a host and other people's, over a path that `airlink` makes.
//! * [`report`] shows what was found.
//! * [`relay`] carries the streams of one connection over to another.
//! * [`sim`] runs hosts and links in virtual time; [`sweep`] does so many times.
//!
//! Everything else here is sans-I/O; the clock and the devices are in `airlink`.

#![cfg_attr(
    test,
    expect(clippy::single_range_in_vec_init, reason = "a list of SACK blocks may have one entry")
)]

pub mod analyze;
pub mod driver;
pub mod host;
pub mod lab;
pub mod recovery;
pub mod relay;
pub mod report;
pub mod reproduce;
pub mod script;
pub mod sim;
pub mod statistics;
pub mod sweep;
pub mod tcp;
pub mod units;
