//! Over TUN devices to this machine's kernel, through the programs too.

mod cli;
mod kernel;
mod serve;
mod tun;
