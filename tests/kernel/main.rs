//! Over TUN devices to this machine's kernel, through the programs too.

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
