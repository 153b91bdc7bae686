//! Packet scripts: the packetdrill language, run against a [`Host`](airtcp::host::Host) in virtual time.
//!
//! Two lines are ours: `recipe NAME` and `profile NAME` say against which host a script runs, and `include FILE`
//! takes in the lines of another. `[fd N]` before a packet names its connection where there are several, and
//! `write 4000`, `read 1000`, `shutdown`, `close` act on the latest one.
//!
//! The socket layer below the runner ([`sockets`], [`syscall`]) also serves the library that packetdrill itself
//! loads.

mod args;
pub mod ast;
mod check;
pub mod errno;
mod expr;
mod lex;
pub mod parse;
mod print;
mod run;
mod script_flow;
mod setup;
pub mod sockets;
pub mod sockopt;
pub mod syscall;
pub mod tcp_info;
pub mod tuning;
mod verdict;
pub mod wire;

pub use check::Push;
pub use run::run_file;
pub use setup::{End, RunOptions};
pub use verdict::{Failure, Passed, Problem, ScriptError, Step};

#[cfg(test)]
mod tests;
