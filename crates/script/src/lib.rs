//! Packet scripts: the packetdrill language, run against a [`Host`](airtcp::host::Host) in virtual
//! time. A script lists system calls, the packets that it sends, and the packets that it expects.
//! The result is a pass, or the first line that differs.
//!
//! ```
//! use std::path::Path;
//!
//! use airtcp_script::{RunOptions, run_text};
//!
//! let script = "\
//! 0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
//! +0 bind(3, ..., ...) = 0
//! +0 listen(3, 1) = 0
//! +.1 < S 0:0(0) win 1000 <mss 1000>
//! +0 > S. 0:0(0) ack 1 <...>
//! ";
//! let passed = run_text(script, Path::new("example.pkt"), &RunOptions::default())?;
//! assert_eq!((passed.events, passed.checked), (5, 1));
//! # Ok::<(), airtcp_script::ScriptError>(())
//! ```
//!
//! Extensions of the language: `recipe NAME` and `profile NAME` select the host that a script runs
//! against, and `include FILE` inserts the lines of another script. `[fd N]` before a packet
//! selects its connection if there are several. `write 4000`, `read 1000`, `shutdown` and `close`
//! act on the connection that was accepted or connected last.
//!
//! The socket layer below the runner ([`sockets`], [`syscall`]) also serves the shared library that
//! packetdrill itself loads.

#![warn(missing_docs)]

mod args;
mod ast;
mod check;
pub mod errno;
mod flags;
mod lex;
mod parse;
mod print;
mod python;
mod run;
mod script_flow;
mod setup;
mod shell;
pub mod sockets;
pub mod sockopt;
pub mod syscall;
pub mod tcp_info;
pub mod tuning;
mod verdict;
pub mod wire;

pub use ast::{Flags, Position, TcpOption};
pub use check::Push;
pub use flags::{FlagInfo, Tolerance, flags};
pub use parse::ParseError;
pub use run::{run_file, run_text};
pub use setup::{RunOptions, UnlistedPackets};
pub use verdict::{Failure, Passed, Problem, ScriptError, Step};

#[cfg(test)]
mod tests;
