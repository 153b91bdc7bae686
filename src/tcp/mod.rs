//! One TCP connection (RFC 9293), sans-I/O: its input is bytes and time, its output bytes and the next
//! deadline.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection, which routes to its parts, and the application's commands |
//! | `connection::input` | processing of segments: RFC 9293 §3.10.7, step by step |
//! | `connection::output` | the order of segments, and their headers |
//! | `connection::deadlines` | the order in which deadlines are handled |
//! | `connection::time_wait` | TIME-WAIT, and its rules in the profiles |
//! | `connection::request` | half-open connections of the profile `linux` |
//! | `connection::stateless` | handshakes for which no state is kept |
//! | `connection::{events, fast_open, icmp, info}` | its log events, data in the SYN, ICMP errors, reported state |
//! | `lifecycle` | its state, and how it ended |
//! | `negotiated` | the parameters that the SYNs have negotiated |
//! | `sender` | the sending half: send buffer, data in flight, retransmission, recovery |
//! | `receiver` | the receiving half: receive buffer, reassembly, ACKs, advertised window |
//! | `context` | the facts of the connection that both halves read |
//! | `fast_open`, `icmp`, `event_log` | the state of TCP Fast Open, ICMP errors, log events |
//! | `statistics`, `socket` | counters, and the options of a socket |
//!
//! [`crate::recovery`] decides which segments are lost, why, and how the window reacts.

pub(crate) mod connection;
mod context;
mod event_log;
pub(crate) mod fast_open;
pub(crate) mod icmp;
mod lifecycle;
mod negotiated;
mod receiver;
mod sender;
mod socket;
mod statistics;

pub use connection::Connection;
pub use connection::info::{CaState, Info};
pub use fast_open::{FastOpenFailure, FastOpenKeys};
pub use icmp::{IcmpError, Unreachable};
pub(crate) use negotiated::default_mss;
pub use socket::{
    Ended, FastOpenOptions, KeepAlive, Linger, Patience, Push, SocketOptions, State, Threshold, Unanswered,
};
pub use statistics::Statistics;
