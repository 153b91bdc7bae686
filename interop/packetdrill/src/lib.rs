//! airtcp as a shared library that packetdrill loads with `--so_filename`.
//!
//! packetdrill then plays its scripts against an airtcp host in virtual time: it hands packets to
//! `netdev_send`, takes them from `netdev_receive`, and asks this library for the time. [`stack`] is all of the
//! logic; [`ffi`] turns C's calls into it and back, with the caller's memory by way of `memory`.

pub mod ffi;
mod memory;
pub mod stack;
