//! Safe handling of file names and text of other users.
//!
//! * [`read`], [`read_text`] and [`open`] fail for a file that is longer than a [limit](limits). A path in
//!   another *file* (a trace in a scenario, an include in a script) must name a regular file, because opening
//!   a pipe blocks and opening some devices has side effects.
//! * [`create`], [`create_private`] and [`write()`] are safe in world-writable directories such as `/tmp`.
//! * [`Escaped`] and [`EscapingWriter`] escape control characters, so that text cannot control a terminal.
//!
//! ```
//! assert_eq!(airfiles::Escaped("\u{1b}[2J").to_string(), "\\u001b[2J");
//! ```

#![warn(missing_docs)]

mod escaping;
pub mod limits;
mod reading;
#[cfg(all(test, unix))]
mod testing;
mod writing;

pub use escaping::{Escaped, EscapingWriter};
pub use reading::{PathSource, open, read, read_result, read_text};
pub use writing::{create, create_private, write};
