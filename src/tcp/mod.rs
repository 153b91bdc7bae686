//! One TCP connection (RFC 9293), sans-I/O: bytes and time go in, bytes and the next deadline come out.
//!
//! `connection` is plain data and the commands of an application; `input` walks RFC 9293 §3.10.7 step by
//! step; `ack` takes acknowledgments in; `receive` is the receiving side; `output` decides in one place what
//! leaves next; `timers` is what happens when nothing happens. Which segment is lost, why, and what the
//! window does about it are not decided here: that is [`crate::recovery`].

pub mod buffer;
pub mod info;

mod ack;
mod alarm;
pub(crate) mod connection;
pub(crate) mod icmp;
pub(crate) mod input;
mod output;
mod receive;
mod timers;

pub use connection::{Connection, Ended, KeepAlive, Linger, SocketOptions, State};
pub use info::{CaState, Info, Statistics};
