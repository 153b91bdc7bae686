//! Hosts in memory that pass packets directly to each other. Tests of every recipe, every timer, and hostile
//! peers.

mod abbreviated;
mod catalogue;
mod changes;
mod close;
mod common;
mod duplicates;
mod events;
mod fast_open;
mod handshake;
mod hostile;
mod mtu_search;
mod options;
mod path_mtu;
mod patience;
mod pieces;
mod test_host;
mod transfer;
mod turns;
mod window;
