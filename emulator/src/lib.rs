//! airlink is *the network*: everything below IP. `docs/design.md` says where a line belongs.

pub mod addresses;
pub mod capture;
pub mod cli;
pub mod control;
pub mod driver;
pub mod lateness;
pub mod machine;
pub mod maths;
pub mod netns;
pub mod output;
pub mod packet;
pub mod path;
pub mod prefix;
pub mod program;
pub mod reactor;
pub mod rlc;
pub mod rng;
pub mod scenario;
pub mod simulate;
pub mod stage;
pub mod stages;
pub mod time;
pub mod tun;
pub mod units;
pub mod views;
