//! airlink is *the network*: everything below IP. `docs/design.md` says where a line belongs.
//!
//! The machines of a path need no operating system. What runs them in real time (devices, namespaces, processes, the
//! clock) comes with the feature `devices`.

pub mod capture;
pub mod machine;
pub mod maths;
pub mod output;
pub mod packet;
pub mod path;
pub mod prefix;
pub mod rlc;
pub mod scenario;
pub mod settings;
pub mod simulate;
pub mod stage;
pub mod stages;
mod suggest;
pub mod views;

#[cfg(feature = "devices")]
pub mod addresses;
#[cfg(feature = "devices")]
pub mod control;
#[cfg(feature = "devices")]
pub mod driver;
#[cfg(feature = "devices")]
mod interface;
#[cfg(feature = "devices")]
pub mod lateness;
#[cfg(feature = "devices")]
pub mod netns;
#[cfg(feature = "devices")]
pub mod program;
#[cfg(feature = "devices")]
pub mod reactor;
#[cfg(feature = "devices")]
pub mod tun;
