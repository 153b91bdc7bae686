//! airtcp is *the host*: everything above IP. A TCP whose loss recovery is put together from named parts.
//!
//! * [`tcp`] is one connection, [`host`] many behind one address.
//! * [`recovery`] holds the algorithms: six questions, one answer each.
//!
//! Everything here is sans-I/O; the drivers are in the commands, the clock and the devices in `airlink`.

pub mod host;
pub mod recovery;
pub mod sim;
pub mod tcp;
