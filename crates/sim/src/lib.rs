//! The world in virtual time: hosts and the paths between them, run as fast as the processor can, the same to the bit
//! every time.
//!
//! [`world`] is hosts, one path and the truth about every packet; [`run`] is one run with its numbers; [`sweep`] is
//! many of them.

#![warn(missing_docs)]

pub mod run;
pub mod sweep;
pub mod world;
