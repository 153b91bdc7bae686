//! Bad input: whatever arrives, nothing panics, no octet is lost or changed, and no packet is answered by more
//! than one.

mod bugs;
pub(crate) mod hand;
mod memory;
mod paths;
mod ports;
mod siege;
mod strangers;
pub(crate) mod world;
