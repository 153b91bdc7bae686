//! Hosts in memory, without a link between them: every recipe, every timer, and hostile peers.

mod catalogue;
mod changes;
mod hostile;
mod patience;
mod timers;
mod transfer;
