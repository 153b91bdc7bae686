//! Shell completions and manual pages, generated from a clap definition.
//!
//! clap's generators do most of the work. This crate adds values that only the program can list, such as
//! recipes, and preserves the line breaks of examples.
//!
//! ```
//! use airhelp::completion::{Candidate, print};
//!
//! let mut out = Vec::new();
//! print(&[Candidate::new("sack", "selective acknowledgements")], &mut out)?;
//! assert_eq!(out, b"sack\tselective acknowledgements\n");
//! # Ok::<(), std::io::Error>(())
//! ```

#![warn(missing_docs)]

pub mod command_line;
pub mod completion;
pub mod groups;
pub mod man;
pub mod markdown;
pub mod options;
