//! The scenes: what happens on the path, who sends, and what is claimed of them.

use super::claim::{Claim, Says};

/// Something that happens on a radio link, and senders that know better or worse what to do.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// As it is typed.
    pub name: &'static str,
    /// What happens.
    pub title: &'static str,
    /// The path, as a file has it.
    pub(super) scenario: &'static str,
    /// Octets of a transfer.
    pub(super) bytes: u64,
    /// The first is the one that the others are compared with; the kernel's own is the last.
    pub(super) senders: &'static [&'static str],
    pub(super) claims: &'static [Claim],
}

/// All of them, in the order in which they are played.
pub static SCENES: [Scene; 4] = [
    Scene {
        name: "handover",
        title: "A handover: for two seconds no block gets through, RLC repeats them, and nothing is lost",
        scenario: include_str!("handover.toml"),
        bytes: 300_000,
        senders: &["newreno", "newreno+frto", "newreno+eifel", "linux:cubic"],
        claims: &[
            Claim {
                because: "The timestamp of an ACK tells Eifel which copy it answers: the timeout was a mistake",
                sender: "newreno+eifel",
                than: "newreno",
                says: Says::SendsLessAgain,
            },
            Claim {
                because: "What does not leave twice makes room for new data",
                sender: "newreno+eifel",
                than: "newreno",
                says: Says::Faster,
            },
            Claim {
                because: "F-RTO waits for two more ACKs before it believes the timer",
                sender: "newreno+frto",
                than: "newreno",
                says: Says::SendsLessAgain,
            },
            Claim {
                because: "The kernel's probe (RACK-TLP) puts the timer off, and what is a mistake all the same is taken back",
                sender: "linux:cubic",
                than: "newreno",
                says: Says::Faster,
            },
        ],
    },
    Scene {
        name: "lost-again",
        title: "A lost retransmission: the first segment of a window is lost, and what the timer sends for it as well",
        scenario: include_str!("lost-again.toml"),
        bytes: 300_000,
        senders: &["sack", "sack+fast-timeout", "sack+fast-timeout+loss-retransmission", "linux:cubic"],
        claims: &[
            Claim {
                because: "More duplicate ACKs than segments outstanding tell that the copy is lost too, before the timer does",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack",
                says: Says::HasFewerTimeouts,
            },
            Claim {
                because: "Each timeout waits twice as long as the last one",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack",
                says: Says::Faster,
            },
            Claim {
                because: "Fast Timeout without it sees one lost copy only",
                sender: "sack+fast-timeout+loss-retransmission",
                than: "sack+fast-timeout",
                says: Says::Faster,
            },
        ],
    },
    Scene {
        name: "marks",
        title: "A lossy radio: 5 % of the data are lost behind the base station",
        scenario: include_str!("marks.toml"),
        bytes: 500_000,
        senders: &["reno", "reno+transit-marks", "sack", "sack+transit-marks", "linux:cubic"],
        claims: &[
            Claim {
                because: "The marks tell which losses are the radio's, and for these the window stays (E-TCP)",
                sender: "reno+transit-marks",
                than: "reno",
                says: Says::Faster,
            },
            Claim {
                because: "So do they for a sender that knows what is missing",
                sender: "sack+transit-marks",
                than: "sack",
                says: Says::Faster,
            },
            Claim {
                because: "The kernel takes every loss for congestion",
                sender: "sack+transit-marks",
                than: "linux:cubic",
                says: Says::Faster,
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
                because: "sifest estimates how many segments are in flight, and asks for fewer duplicate ACKs where they are few",
                sender: "sack+sifest",
                than: "sack",
                says: Says::HasFewerTimeouts,
            },
            Claim {
                because: "The timer of profile linux is short here, so that a timeout costs little",
                sender: "sack+sifest",
                than: "sack",
                says: Says::AsFast,
            },
            Claim {
                because: "The kernel sends a probe before its timer fires (RACK-TLP)",
                sender: "linux:cubic",
                than: "sack+sifest",
                says: Says::HasFewerTimeouts,
            },
        ],
    },
];
