//! What a command line's own definition says to shells and readers: completion scripts and manual pages.
//!
//! clap's generators do most of it. Here is what they do not know: values that only the program can list, such as
//! recipes, and pages whose examples stay as they were written.

#![warn(missing_docs)]

pub mod command_line;
pub mod completion;
pub mod man;
pub mod options;
