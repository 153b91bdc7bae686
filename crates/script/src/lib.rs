//! Packet scripts: the packetdrill language, run against a [`Host`](airtcp::host::Host) in virtual time.
//!
//! Two lines are ours: `recipe NAME` and `profile NAME` say against which host a script runs, and `include FILE`
//! takes in the lines of another. `[fd N]` before a packet names its connection where there are several, and
//! `write 4000`, `read 1000`, `shutdown`, `close` act on the latest one.
//!
//! The socket layer below the runner ([`kernel`], [`syscall`]) also serves the library that packetdrill itself
//! loads.

mod args;
pub mod ast;
mod calls;
mod check;
pub mod errno;
mod expr;
mod flow;
pub mod kernel;
mod lex;
pub mod parse;
mod print;
mod report;
mod run;
mod setup;
pub mod sockopt;
pub mod syscall;
pub mod tcp_info;
pub mod tuning;
pub mod wire;

pub use check::Push;
pub use report::{Failure, Problem, Report, ScriptError, Step};
pub use run::run_file;
pub use setup::{End, RunOptions};

#[cfg(test)]
mod tests;
