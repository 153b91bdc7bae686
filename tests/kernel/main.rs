//! Hosts and programs over TUN devices, with this machine's kernel as the peer.

mod by_time;
mod cli;
mod fast_open;
mod files;
mod kernel;
mod logs;
mod offload;
mod privileges;
mod serve;
mod tun;
