//! Files that somebody else names, and text that somebody else wrote.
//!
//! * [`read`], [`read_text`], [`open`]: nothing that is read whole is longer than its [limit](limits), and what a *file*
//!   names (a trace in a scenario, an include in a script) is an ordinary file, not a pipe that blocks or a device.
//! * [`create`], [`create_private`], [`write()`]: a directory that all may write to, such as `/tmp`, is no trap.
//! * [`Shown`], [`Showing`]: foreign text does nothing to a terminal.

#![warn(missing_docs)]

pub mod limits;
mod reading;
mod showing;
#[cfg(all(test, unix))]
mod testing;
mod writing;

pub use reading::{By, open, read, read_kept, read_text};
pub use showing::{Showing, Shown};
pub use writing::{create, create_private, write};
