//! airtcp as a shared library that packetdrill loads with `--so_filename`.
//!
//! packetdrill then runs its scripts against an airtcp host in virtual time: it passes packets to
//! `netdev_send`, takes packets from `netdev_receive`, and reads the time from this library.
//! [`stack`] contains the logic. [`ffi`] translates between the stack and the C functions, and `memory`
//! accesses the caller's memory.

pub mod ffi;
mod memory;
pub mod stack;
