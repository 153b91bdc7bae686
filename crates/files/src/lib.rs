//! Safe handling of files whose names, and of text whose content, come from another user.
//!
//! * [`read`], [`read_text`], [`open`]: reading a whole file fails above a [limit](limits). A path
//!   that comes from another *file* (a trace in a scenario, an include in a script) must name a
//!   regular file, because opening a pipe blocks and opening some devices has side effects.
//! * [`create`], [`create_private`], [`write()`]: safe in world-writable directories such as
//!   `/tmp`.
//! * [`Shown`], [`Showing`]: control characters in foreign text are escaped and cannot affect a
//!   terminal.

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
