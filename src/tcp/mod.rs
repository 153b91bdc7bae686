//! One TCP connection (RFC 9293), sans-I/O: bytes and time go in, bytes and the next deadline come out.
//!
//! | module | contents |
//! |---|---|
//! | `connection` | the connection, which routes to its parts, and the application's commands |
//! | `lifecycle` | its state, and how it ended |
//! | `negotiated` | the parameters that the SYNs settled |
//! | `sender` | the sending half: send buffer, data in flight, retransmission, recovery |
//! | `receiver` | the receiving half: receive buffer, reassembly, ACKs, advertised window |
//! | `context` | what both halves read of the connection |
//! | `input` | processing of segments: RFC 9293 §3.10.7, step by step |
//! | `time_wait` | TIME-WAIT, and the rules of the profiles for it |
//! | `stateless` | handshakes for which no state is kept |
//! | `fast_open` | data in the SYN (TCP Fast Open) |
//! | `output` | the order of segments, and their headers |
//! | `timers` | the order in which deadlines are handled |
//! | `icmp` | effects of ICMP errors |
//! | `info`, `statistics`, `socket` | state reported to the application, and its options |
//! | `event_log` | log events |
//!
//! [`crate::recovery`] decides which segments are lost, why, and how the window reacts.

pub(crate) mod connection;
mod context;
mod event_log;
pub(crate) mod fast_open;
pub(crate) mod icmp;
mod info;
pub(crate) mod input;
mod lifecycle;
mod negotiated;
pub(crate) mod output;
mod receiver;
mod sender;
mod socket;
mod stateless;
mod statistics;
mod time_wait;
mod timers;

pub use connection::Connection;
pub use fast_open::{FastOpenFailure, FastOpenKeys};
pub use icmp::{IcmpError, Unreachable};
pub use info::{CaState, Info};
pub use socket::{
    Ended, FastOpenOptions, KeepAlive, Linger, Patience, Push, SocketOptions, State, Threshold, Unanswered,
};
pub use statistics::Statistics;
