//! The virtual-time world: hosts and the paths between them, run as fast as the processor can, the same to
//! the bit every time.

pub mod calls;
pub mod exchange;
pub mod hostile;
pub mod pair;
pub mod run;
pub mod world;
