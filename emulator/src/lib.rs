//! airlink is *the network*: everything below IP. See `DESIGN` in the README for where a line belongs.

pub mod capture;
pub mod cli;
pub mod driver;
pub mod machine;
pub mod netns;
pub mod packet;
pub mod path;
pub mod prefix;
pub mod reactor;
pub mod rlc;
pub mod rng;
pub mod stage;
pub mod stages;
pub mod time;
pub mod tun;
pub mod units;
