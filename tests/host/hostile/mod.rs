//! Hostile input. The host never panics, no byte is lost or changed, and no packet causes more than one
//! answer.

mod attack;
mod blind;
mod memory;
mod paths;
mod ports;
mod strangers;
mod time_wait;
