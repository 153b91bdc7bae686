//! Hosts in memory, with packets passed directly between them: every recipe, every timer, and hostile peers.

mod catalogue;
mod changes;
mod duplicates;
mod events;
mod fast_open;
mod hostile;
mod mtu_search;
mod path_mtu;
mod patience;
mod pieces;
mod transfer;
mod turns;
mod window_edge;
