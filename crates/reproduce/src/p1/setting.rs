//! The set-up of P1 §4.1, and what its figures have in common.

use std::fmt;

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::knobs::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{FlowReport, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, WorldError};
use airwire::time::{Duration, Instant};

use super::super::Judged;

pub(super) const VARIANTS: [Variant; 4] = [Variant::Tahoe, Variant::Reno, Variant::NewReno, Variant::Sack];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variant {
    Tahoe,
    Reno,
    NewReno,
    Sack,
}

impl Variant {
    pub(super) const fn recipe(self) -> &'static str {
        match self {
            Self::Tahoe => "tahoe",
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Sack => "sack",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tahoe => "Tahoe",
            Self::Reno => "Reno",
            Self::NewReno => "NewReno",
            Self::Sack => "SACK",
        })
    }
}

/// The paths: Fig. 3, and the captions of Figs. 16 and 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    LastHop,
    Congestion,
    LongQueue,
    SmallQueue,
    Narrow,
}

impl Topology {
    pub(super) const ALL: [Self; 5] =
        [Self::LastHop, Self::Congestion, Self::LongQueue, Self::SmallQueue, Self::Narrow];

    const fn preset(self) -> &'static str {
        match self {
            Self::LastHop => "rtt-last-hop",
            Self::Congestion => "rtt-last-hop-congestion",
            Self::LongQueue => "rtt-broad-backbone-long",
            Self::SmallQueue => "rtt-broad-backbone-short",
            Self::Narrow => "rtt-narrow-backbone",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LastHop => "last hop, no congestion",
            Self::Congestion => "last hop, congestion",
            Self::LongQueue => "broad backbone, long queues",
            Self::SmallQueue => "broad backbone, small queues",
            Self::Narrow => "narrow backbone",
        }
    }

    /// A scenario: the preset with these changes to its stages.
    pub(super) fn path(self, changes: &str) -> String {
        format!("schema = 1\nextends = \"{}\"\n{changes}", self.preset())
    }

    pub(super) fn choice(self) -> String {
        let preset = self.preset();
        format!(
            "The path is the preset `{preset}`; what it takes where the paper is silent stands in it (`airlink show --source {preset}`)."
        )
    }
}

/// What the radio does to data, by its mean loss rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loss {
    Uniform(f64),
    /// The Gilbert model: nothing is lost in the good state, half of the packets in the bad one, which each packet ends
    /// with a probability of 24 %. The mean loss rate decides how often the bad state begins.
    TwoState(f64),
}

const BAD_LOSS: f64 = 0.5;
const BAD_TO_GOOD: f64 = 0.24;

impl Loss {
    /// A change to a preset's stage `radio-errors`.
    pub(super) fn stage(self) -> String {
        let model = match self {
            Self::Uniform(per) => format!("model = \"uniform\", per = {per:.6}"),
            Self::TwoState(per) => format!(
                "model = \"gilbert-elliott\", good = 0.0, bad = {BAD_LOSS}, good_to_bad = {:.6}, bad_to_good = {BAD_TO_GOOD}",
                good_to_bad(per)
            ),
        };
        format!("[[stage]]\nname = \"radio-errors\"\ndown = {{ {model} }}\n")
    }
}

/// The probability of a change from good to bad. The bad state has a share of per / BAD_LOSS of the packets, and a
/// stationary chain enters a state as often as it leaves it.
fn good_to_bad(per: f64) -> f64 {
    let bad = per / BAD_LOSS;
    BAD_TO_GOOD * bad / (1.0 - bad)
}

/// Length of an endless transfer's run, and the limit of the others.
pub(super) const SECONDS: u64 = 400;
/// Octets of a packet on the wire.
const PACKET: u16 = 1000;
/// Its data.
pub(super) const MSS: u16 = PACKET - 40;
/// ns-2's default window, in segments.
const WINDOW: usize = 20;

pub(super) const CHOICES: [&str; 3] = [
    "Packets of 1000 octets on the wire, a window of 20 of them, no delayed ACKs (§3.1), a clock of 100 ms, an RTO of at least 1 s, two packets after the SYN, no Limited Transmit: ns-2's defaults and profile `ns2`.",
    "Only what goes to the mobile host is damaged.",
    "Each run lasts 400 s, as in the paper; of the curves' loss rates it says that they were drawn at random.",
];

/// When a sender measures round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// One segment at a time, in ticks, as ns-2's senders did for the paper's throughput.
    OneAtATime,
    /// Every segment that was sent once, as the judges need it.
    EverySegment,
}

/// One flow from the fixed host to the mobile, over a path of the paper.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) scenario: Scenario,
    pub(super) recipe: Recipe,
    pub(super) timing: Timing,
    pub(super) length: Length,
    pub(super) watch: Watch,
    pub(super) score: bool,
}

impl Setting {
    pub(super) fn new(path: &str, recipe: &str) -> Result<Self, WorldError> {
        Ok(Self {
            scenario: Scenario::parse(path, "Ni et al., Fig. 3")?,
            recipe: recipe.parse()?,
            timing: Timing::OneAtATime,
            length: Length::Endless,
            watch: Watch::Results,
            score: false,
        })
    }

    pub(super) fn run(&self, seed: u64) -> Run {
        let flow = Flow {
            receive_buffer: Some(WINDOW * usize::from(MSS)),
            watch: self.watch,
            ..Flow::down(self.length)
        };
        let until = match self.length {
            Length::Octets(_) => Until::Complete(Duration::from_secs(SECONDS)),
            Length::Endless => Until::At(Instant::from_secs(SECONDS)),
        };
        Run {
            scenario: self.scenario.clone(),
            seed,
            fixed: HostSpec { profile: sender(self.timing), recipe: self.recipe.clone() },
            mobile: HostSpec { profile: receiver(), recipe: Recipe::ordinary() },
            flows: vec![flow],
            until,
            from: Instant::ZERO,
            score: self.score,
        }
    }
}

/// In kbit/s: "the average number of bits successfully transmitted to the mobile host in one second". ns-2 counts whole
/// packets, with their headers.
pub(super) fn throughput(flow: &FlowReport) -> f64 {
    flow.goodput_bit_per_s * f64::from(PACKET) / f64::from(MSS) / 1e3
}

fn sender(timing: Timing) -> Profile {
    let mut profile = Profile { mss: Some(MSS), window_scale: None, ..Profile::ns2() };
    let tick = Duration::from_millis(100);
    profile.timer.style = match timing {
        Timing::OneAtATime => {
            TimerStyle::Ns2 { tick, phase: Duration::from_nanos(55_588_072), min_before_backoff: true }
        }
        Timing::EverySegment => TimerStyle::Rfc6298 { granularity: tick },
    };
    profile.timer.limits = RtoLimits { min: Duration::from_secs(1), ..profile.timer.limits };
    profile.recovery.initial_window = InitialWindow::Segments(2);
    profile
}

/// Without window scaling, so that its window is exactly the room that it has.
fn receiver() -> Profile {
    Profile {
        mss: Some(MSS),
        window_scale: None,
        timestamps: false,
        ack: AckPolicy::EVERY,
        ..HostSpec::receiver().profile
    }
}

/// Whether the mean is above zero.
pub(super) fn above_zero(samples: &[f64]) -> Judged {
    Mean::of(samples).map_or(Judged::Undecided, |mean| Judged::above_zero(&mean))
}

/// `of` each pair of the same seed.
pub(super) fn paired(a: &[f64], b: &[f64], of: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| of(*a, *b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The preset's own numbers: 1 % and 24 % make a bad state of 4 % of the time.
    #[test]
    fn a_mean_rate_of_two_per_cent_is_the_presets_channel() {
        assert!((good_to_bad(0.02) - 0.01).abs() < 1e-12);
        let bad = good_to_bad(0.08) / (good_to_bad(0.08) + BAD_TO_GOOD);
        assert!((bad * BAD_LOSS - 0.08).abs() < 1e-12);
    }

    #[test]
    fn every_topology_takes_every_channel() {
        for topology in Topology::ALL {
            for loss in [Loss::Uniform(0.04), Loss::TwoState(0.04)] {
                assert!(
                    Setting::new(&topology.path(&loss.stage()), "newreno+judges").is_ok(),
                    "{topology:?}"
                );
            }
        }
    }
}
