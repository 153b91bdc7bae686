//! The scenes: the paths, the senders and the claims about them.

use super::claim::{Claim, Statement};

/// An event on a radio link, and senders that handle it differently.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// The name on the command line.
    pub name: &'static str,
    /// One sentence for the heading.
    pub title: &'static str,
    /// The path, as TOML.
    pub(super) scenario: &'static str,
    /// Bytes per transfer.
    pub(super) bytes: u64,
    /// The senders. The first one is the reference, and the last one is a kernel sender.
    pub(super) senders: &'static [&'static str],
    pub(super) claims: &'static [Claim],
}

/// All scenes, in playing order.
pub static SCENES: [Scene; 4] = [
    Scene {
        name: "handover",
        title: "A handover: the radio link pauses for two seconds and loses nothing",
        scenario: include_str!("handover.toml"),
        bytes: 300_000,
        senders: &["newreno", "newreno+frto", "newreno+eifel", "linux:cubic"],
        claims: &[
            Claim {
                because: "The timestamp in the ACK shows Eifel that the original had arrived, so the timeout was spurious",
                sender: "newreno+eifel",
                than: "newreno",
                statement: Statement::RetransmitsLess,
            },
            Claim {
                because: "Fewer retransmissions leave room for new data",
                sender: "newreno+eifel",
                than: "newreno",
                statement: Statement::Faster,
            },
            Claim {
                because: "F-RTO sends new data after the timeout, and the next two ACKs show that nothing was lost",
                sender: "newreno+frto",
                than: "newreno",
                statement: Statement::RetransmitsLess,
            },
            Claim {
                because: "The kernel's tail loss probe postpones the timeout, and F-RTO and D-SACK undo a spurious one",
                sender: "linux:cubic",
                than: "newreno",
                statement: Statement::Faster,
            },
        ],
    },
    Scene {
        name: "lost-again",
        title: "A lost retransmission: a segment is lost, and so is its retransmission",
        scenario: include_str!("lost-again.toml"),
        bytes: 300_000,
        senders: &["sack", "sack+fast-timeout", "sack+fast-timeout+loss-retransmission", "linux:cubic"],
        claims: &[
            Claim {
                because: "Duplicate ACKs beyond the number of outstanding segments show that the retransmission was lost",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack",
                statement: Statement::HasFewerTimeouts,
            },
            Claim {
                because: "It does not wait for the timer, whose timeout doubles with each expiry",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack",
                statement: Statement::Faster,
            },
            Claim {
                because: "Fast Timeout alone detects only one lost retransmission",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack+fast-timeout",
                statement: Statement::Faster,
            },
        ],
    },
    Scene {
        name: "marks",
        title: "A lossy radio link: 5 % of the data packets are lost after the base station",
        scenario: include_str!("marks.toml"),
        bytes: 500_000,
        senders: &["reno", "reno+transit-marks", "sack", "sack+transit-marks", "linux:cubic"],
        claims: &[
            Claim {
                because: "The marks show which losses the radio link caused, and the sender keeps its window for them (E-TCP)",
                sender: "reno+transit-marks",
                than: "reno",
                statement: Statement::Faster,
            },
            Claim {
                because: "The marks help a SACK sender in the same way",
                sender: "sack+transit-marks",
                than: "sack",
                statement: Statement::Faster,
            },
            Claim {
                because: "The kernel treats every loss as congestion",
                sender: "sack+transit-marks",
                than: "linux:cubic",
                statement: Statement::Faster,
            },
        ],
    },
    Scene {
        name: "tiny-window",
        title: "Tiny windows: too few segments are in flight for three duplicate ACKs",
        scenario: include_str!("tiny-window.toml"),
        bytes: 60_000,
        senders: &["newreno", "sack", "sack+sifest", "linux:cubic"],
        claims: &[
            Claim {
                because: "sifest estimates the number of segments in flight and needs fewer duplicate ACKs when there are few",
                sender: "sack+sifest",
                than: "sack",
                statement: Statement::HasFewerTimeouts,
            },
            Claim {
                because: "The minimum timeout of profile linux is short, so a timeout costs little here",
                sender: "sack+sifest",
                than: "sack",
                statement: Statement::AsFast,
            },
            Claim {
                because: "The kernel sends a tail loss probe before its timer expires (RACK-TLP)",
                sender: "linux:cubic",
                than: "sack+sifest",
                statement: Statement::HasFewerTimeouts,
            },
        ],
    },
];
