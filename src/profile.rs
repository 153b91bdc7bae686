//! Profiles: everything besides loss recovery in which standard TCP stacks differ, as plain data.
//!
//! `default` follows the RFCs. `linux` and `freebsd` look on the wire like those systems, and `ns2` like that
//! simulator's one-way agents. Each has a file of its own, which names the kernel function or the clause for
//! each setting. A recipe's options change single fields.

mod acks;
mod freebsd;
mod handshake;
mod icmp;
pub(crate) mod jiffies;
mod linux;
mod name;
mod ns2;
mod persist;
pub mod recovery;
mod rfc;
mod sending;
#[cfg(feature = "serde")]
mod serial;
mod timers;
mod validation;

use airwire::options::Layout;

pub use acks::{AckCompression, AckPolicy, AckRules, Acks, LinuxAcks, ReceiveMemory, ShutRead, WindowUpdate};
pub use handshake::{DataOnSyn, FastOpenRules, HalfOpen, Handshake, SackOffer, SynFin};
pub use icmp::{Icmp, MtuLimits, MtuProbing, MtuSearch, OpeningErrors};
pub use name::ProfileName;
pub use persist::{Persist, WindowProbe};
pub use recovery::RecoveryRules;
pub use sending::{Nagle, SendWindowUpdate, Sending};
pub use timers::{RtoEvents, Timer, Timers, UserTimeoutFrom};
pub use validation::{Challenge, Resets, TimeWaitRules, Validation};

/// Everything besides loss recovery in which standard TCP stacks differ. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(deny_unknown_fields))]
pub struct Profile {
    /// The name that [`Profile::by_name`] looks up.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "serial::name"))]
    pub name: Name,
    /// Order and padding of TCP options on the wire.
    pub layout: Layout,
    /// Hop limit of outgoing packets.
    pub ttl: u8,
    /// The options and retransmissions of SYNs, and the data and flags accepted in a SYN.
    pub handshake: Handshake,
    /// The segments that a synchronised connection accepts, and the answers to all others.
    pub validation: Validation,
    /// The timing and the content of ACKs and window updates.
    pub acks: Acks,
    /// The division of data into segments, and the segments that wait.
    pub sending: Sending,
    /// Window probes.
    pub persist: Persist,
    /// The computation of timeouts, the number of retries, and the length of TIME-WAIT.
    pub timers: Timers,
    /// The effect of ICMP errors, and path MTU discovery with and without such errors.
    pub icmp: Icmp,
    /// The details of loss recovery in which stacks with the same algorithm differ.
    pub recovery: RecoveryRules,
    /// Parameters of algorithms, by their names in recipes. Values in a recipe override them.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "serial::parameters"))]
    pub parameters: &'static [(&'static str, f64)],
}

/// An alias, because serde expects a field of type `&'static str` to borrow from the input.
type Name = &'static str;

impl Profile {
    /// The names that [`Profile::by_name`] accepts.
    pub const NAMES: [&'static str; 4] = [
        ProfileName::Default.as_str(),
        ProfileName::Linux.as_str(),
        ProfileName::FreeBsd.as_str(),
        ProfileName::Ns2.as_str(),
    ];

    /// Returns the profile with this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        let known = ProfileName::ALL.into_iter().find(|known| known.as_str() == name);
        known.map(ProfileName::profile)
    }

    /// Returns the profile after a change.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}
