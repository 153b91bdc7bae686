//! Rules that all commands of all programs follow.

mod completion;
mod exits;
mod foreign;
mod log;
mod notices;
mod options;
mod prose;
mod tables;
mod typed;
mod workspace;
