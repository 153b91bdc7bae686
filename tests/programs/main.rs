//! Rules that all commands of both programs follow.

mod completion;
mod exits;
mod foreign;
mod log;
mod notices;
mod options;
mod prose;
mod tables;
mod typed;
