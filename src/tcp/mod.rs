//! One TCP connection (RFC 9293), sans-I/O: bytes and time go in, bytes and the next deadline come out.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection and the application's commands |
//! | `negotiated` | the parameters that the SYNs settled |
//! | `socket`, `variables`, `statistics`, `send_buffer`, `buffer`, `reassembly` | its plain data |
//! | `input` | processing of segments: RFC 9293 §3.10.7, step by step |
//! | `time_wait` | TIME-WAIT, and the rules of the profiles for it |
//! | `stateless` | handshakes for which no state is kept |
//! | `ack` | processing of acknowledgments |
//! | `fast_open` | data in the SYN (TCP Fast Open) |
//! | `receive`, `alarm` | the receiving side |
//! | `output` | the decision what to send next |
//! | `pacer`, `defer` | delays of data that the windows allow: pacing and deferral |
//! | `timers` | timers |
//! | `memory` | storing, advertising and pruning when memory is short |
//! | `icmp`, `path_mtu` | effects of ICMP errors, path MTU discovery |
//! | `mtu_search` | path MTU discovery without ICMP errors |
//! | `info` | state reported to the application |
//! | `event_log` | log events |
//!
//! [`crate::recovery`] decides which segments are lost, why, and how the window reacts.

mod ack;
mod alarm;
mod buffer;
pub(crate) mod connection;
mod defer;
mod event_log;
pub(crate) mod fast_open;
pub(crate) mod icmp;
mod info;
pub(crate) mod input;
mod memory;
mod mtu_search;
mod negotiated;
pub(crate) mod output;
mod pacer;
mod path_mtu;
mod reassembly;
mod receive;
mod send_buffer;
mod socket;
mod stateless;
mod statistics;
mod time_wait;
mod timers;

mod variables;

pub use connection::Connection;
pub use fast_open::{FastOpenFailure, FastOpenKeys};
pub use icmp::{IcmpError, Unreachable};
pub use info::{CaState, Info};
pub use socket::{
    Ended, FastOpenOptions, KeepAlive, Linger, Patience, Push, SocketOptions, State, Threshold, Unanswered,
};
pub use statistics::Statistics;
