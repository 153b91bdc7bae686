//! One TCP connection (RFC 9293), sans-I/O: bytes and time go in, bytes and the next deadline come out.
//!
//! | module | |
//! |---|---|
//! | `connection` | the connection, and the commands of an application |
//! | `socket`, `variables`, `statistics`, `send_buffer`, `buffer`, `reassembly` | the plain data it is made of |
//! | `input` | a segment arrives: RFC 9293 §3.10.7, step by step |
//! | `stateless` | a handshake of which nothing is kept |
//! | `ack` | the acknowledgment in it |
//! | `receive`, `alarm` | the receiving side |
//! | `output` | decides, in one place, what leaves next |
//! | `pacer`, `defer` | when text waits though the windows permit it: for its turn, or for company |
//! | `timers` | what happens when nothing happens |
//! | `memory` | what is stored, offered, taken and given up where memory is short |
//! | `icmp` | what an ICMP error changes |
//! | `info` | what the connection tells about itself |
//! | `told` | what it tells about each step, if anybody listens |
//!
//! Which segment is lost, why, and what the window does about it is not decided here: that is
//! [`crate::recovery`].

mod ack;
mod alarm;
mod buffer;
pub(crate) mod connection;
mod defer;
pub(crate) mod icmp;
mod info;
pub(crate) mod input;
mod memory;
pub(crate) mod output;
mod pacer;
mod reassembly;
mod receive;
mod send_buffer;
mod socket;
mod stateless;
mod statistics;
mod timers;
mod told;
mod variables;

pub use connection::Connection;
pub use icmp::{IcmpError, Unreachable};
pub use info::{CaState, Info};
pub use socket::{Ended, KeepAlive, Linger, Patience, Push, SocketOptions, State, Threshold, Unanswered};
pub use statistics::Statistics;
