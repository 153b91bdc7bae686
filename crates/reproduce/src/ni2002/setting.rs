//! The set-up of Ni et al. 2002 (§4.1), which its figures share.

use std::fmt;

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::recovery::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp_sim::run::{FlowReport, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, WorldError};
use airwire::time::{Duration, Instant};

use crate::{Judged, cell};

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

/// The topologies of Fig. 3 and of the captions of Figs. 14 to 19.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    LastHop,
    Congestion,
    LongQueue,
    SmallQueue,
    /// A narrow backbone between the two congested wires of the broad one.
    Narrow(Queues),
    /// Another reading of "narrow": the cross traffic shares the backbone with the flow.
    Shared,
}

/// The queues at the two congested wires (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queues {
    /// 20 packets.
    Long,
    /// 3 and 5 packets.
    Small,
}

impl Topology {
    pub(super) const ALL: [Self; 7] = [
        Self::LastHop,
        Self::Congestion,
        Self::LongQueue,
        Self::SmallQueue,
        Self::Narrow(Queues::Small),
        Self::Narrow(Queues::Long),
        Self::Shared,
    ];

    const fn preset(self) -> &'static str {
        match self {
            Self::LastHop => "rtt-last-hop",
            Self::Congestion => "rtt-last-hop-congestion",
            Self::LongQueue | Self::Narrow(Queues::Long) => "rtt-broad-backbone-long",
            Self::SmallQueue | Self::Narrow(Queues::Small) => "rtt-broad-backbone-short",
            Self::Shared => "rtt-narrow-backbone",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::LastHop => "last hop, no congestion",
            Self::Congestion => "last hop, congestion",
            Self::LongQueue => "broad backbone, long queues",
            Self::SmallQueue => "broad backbone, small queues",
            Self::Narrow(Queues::Small) => "narrow backbone, small queues",
            Self::Narrow(Queues::Long) => "narrow backbone, long queues",
            Self::Shared => "narrow backbone, shared with cross traffic",
        }
    }

    /// The preset's stages with cross traffic, each with the rate per source in kbit/s.
    const fn traffic(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::LastHop => &[],
            Self::Congestion => &[("cross-traffic", 200)],
            Self::Shared => &[("cross-traffic", 160)],
            Self::LongQueue | Self::SmallQueue | Self::Narrow(_) => {
                &[("cross-traffic-1", 200), ("cross-traffic-2", 160)]
            }
        }
    }
}

/// Rate of the narrow backbone, in kbit/s.
pub(super) const NARROW: u32 = 250;

/// The sources of the cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sources {
    pub(super) number: Number,
    /// Rate of each source while it is on, in kbit/s. `None` means the rates of the preset.
    pub(super) rate: Option<u32>,
    pub(super) initial_state: InitialState,
}

/// "The number of ON/OFF sources in our experiments is set to be 5" (§4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// Five at each bottleneck.
    FiveEach,
    /// Three at the first bottleneck and two at the second, if there are two.
    FiveInAll,
}

/// The state in which a source starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InitialState {
    /// As in ns-2.
    Off,
    On,
}

impl Sources {
    pub(super) const CHOSEN: Self =
        Self { number: Number::FiveEach, rate: None, initial_state: InitialState::Off };

    pub(super) const fn at(rate: u32) -> Self {
        Self { rate: Some(rate), ..Self::CHOSEN }
    }
}

/// The path of a flow: topology, radio losses and cross traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Place {
    pub(super) topology: Topology,
    pub(super) loss: Loss,
    pub(super) sources: Sources,
    /// Changes to other stages, in the format of a scenario.
    pub(super) links: &'static str,
}

impl Place {
    pub(super) const fn new(topology: Topology, loss: Loss) -> Self {
        Self { topology, loss, sources: Sources::CHOSEN, links: "" }
    }

    /// The path as a scenario.
    pub(super) fn path(&self) -> String {
        let Self { topology, loss, sources, links } = self;
        let mut path = format!("schema = 1\nextends = \"{}\"\n{}{links}", topology.preset(), loss.stage());
        if let Topology::Narrow(_) = topology
            && links.is_empty()
        {
            path += &format!("[[stage]]\nname = \"backbone\"\nboth.rate = \"{NARROW}kbit\"\n");
        }
        for (i, (stage, rate)) in topology.traffic().iter().enumerate() {
            let number = match sources.number {
                Number::FiveInAll if topology.traffic().len() == 2 => [3, 2][i],
                _ => 5,
            };
            let initial_state = match sources.initial_state {
                InitialState::Off => "off",
                InitialState::On => "on",
            };
            let rate = sources.rate.unwrap_or(*rate);
            path += &format!(
                "[[stage]]\nname = \"{stage}\"\ndown.sources = {number}\ndown.rate = \
                 \"{rate}kbit\"\ndown.begins = \"{initial_state}\"\n"
            );
        }
        path
    }
}

/// The scenario of the congested last hop with 2 % of two-state loss.
pub(crate) fn congested_last_hop() -> String {
    Place::new(Topology::Congestion, Loss::two_state(0.02)).path()
}

/// The scenario of the narrow backbone with the same loss, between two congested wires with long queues.
pub(crate) fn narrow_backbone() -> String {
    Place::new(Topology::Narrow(Queues::Long), Loss::two_state(0.02)).path()
}

/// The error model of the radio link for data, with its mean loss rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Loss {
    Uniform(f64),
    /// The Gilbert model. The mean loss rate decides how often the bad state begins.
    TwoState(f64, Bad),
}

/// The bad state of the Gilbert model. The good state loses no packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bad {
    /// Loss rate in the bad state.
    pub(super) loss: f64,
    /// The probability that a packet ends the bad state.
    pub(super) ends: f64,
}

impl Bad {
    /// As in the presets: two losses per bad state on average.
    pub(super) const CHOSEN: Self = Self { loss: 0.5, ends: 0.24 };
}

impl Loss {
    pub(super) const fn two_state(per: f64) -> Self {
        Self::TwoState(per, Bad::CHOSEN)
    }

    /// A change to a preset's stage `radio-errors`.
    fn stage(self) -> String {
        let model = match self {
            Self::Uniform(per) => format!("model = \"uniform\", per = {per:.6}"),
            Self::TwoState(per, bad) => format!(
                "model = \"gilbert-elliott\", good = 0.0, bad = {:.6}, good_to_bad = {:.6}, bad_to_good = \
                 {:.6}",
                bad.loss,
                good_to_bad(per, bad),
                bad.ends
            ),
        };
        format!("[[stage]]\nname = \"radio-errors\"\ndown = {{ {model} }}\n")
    }
}

/// The probability of a change from good to bad. A share of `per / loss` of the packets falls into the bad
/// state, and a stationary chain enters and leaves a state equally often.
pub(super) fn good_to_bad(per: f64, bad: Bad) -> f64 {
    let share = per / bad.loss;
    bad.ends * share / (1.0 - share)
}

/// Length of the runs with endless transfers, and the time limit of finite transfers.
pub(super) const SECONDS: u64 = 400;
/// Size of a packet on the wire, in bytes.
const PACKET: u16 = 1000;
/// Payload of a packet, in bytes.
pub(crate) const MSS: u16 = PACKET - 40;
/// ns-2's default window, in segments.
const WINDOW: usize = 20;

/// The segments whose round-trip times a sender measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// One segment at a time, in ticks, as the ns-2 senders of the paper's throughput figures.
    OneAtATime,
    /// Every segment that was sent once, as the judges require.
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
    pub(super) fn new(place: &Place, recipe: &str) -> Result<Self, WorldError> {
        Ok(Self {
            scenario: Scenario::parse(&place.path(), "Ni et al., Fig. 3")?,
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
            mobile: HostSpec { profile: receiver(), recipe: Recipe::default() },
            flows: vec![flow],
            until,
            from: Instant::ZERO,
            score: self.score,
        }
    }
}

/// Throughput in kbit/s: "the average number of bits successfully transmitted to the mobile host in one second" (§3.1).
/// Like ns-2, it counts whole packets with their headers.
pub(super) fn throughput(flow: &FlowReport) -> f64 {
    flow.goodput_bit_per_s * f64::from(PACKET) / f64::from(MSS) / 1e3
}

fn sender(timing: Timing) -> Profile {
    let mut profile = Profile::ns2().with(|it| {
        it.handshake.mss = Some(MSS);
        it.handshake.window_scale = None;
    });
    let tick = Duration::from_millis(100);
    profile.timers.rto.style = match timing {
        Timing::OneAtATime => {
            TimerStyle::Ns2 { tick, phase: Duration::from_nanos(55_588_072), min_before_backoff: true }
        }
        Timing::EverySegment => TimerStyle::Rfc6298 { granularity: tick },
    };
    profile.timers.rto.limits = RtoLimits { min: Duration::from_secs(1), ..profile.timers.rto.limits };
    profile.recovery.initial.window = InitialWindow::Segments(2);
    profile
}

/// The receiver does not scale its window, so it advertises exactly the free buffer space.
fn receiver() -> Profile {
    HostSpec::receiver().profile.with(|it| {
        it.handshake.mss = Some(MSS);
        it.handshake.window_scale = None;
        it.handshake.timestamps = false;
        it.acks.policy = AckPolicy::EVERY;
    })
}

/// The verdict on the negation of a sentence.
pub(super) fn not(judged: Judged) -> Judged {
    match judged {
        Judged::Holds => Judged::DoesNotHold,
        Judged::DoesNotHold => Judged::Holds,
        undecided => undecided,
    }
}

/// Holds if at least one of the verdicts holds.
pub(super) fn any(verdicts: impl IntoIterator<Item = Judged>) -> Judged {
    not(Judged::all(verdicts.into_iter().map(not)))
}

/// Shares in percent, as a table cell.
pub(super) fn percent(shares: &[f64], digits: usize) -> String {
    cell(&shares.iter().map(|share| 100.0 * share).collect::<Vec<_>>(), digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the preset: with 1 % and 24 %, 4 % of the packets meet the bad state.
    #[test]
    fn two_percent_loss_matches_preset_channel() {
        assert!((good_to_bad(0.02, Bad::CHOSEN) - 0.01).abs() < 1e-12);
        let enters = good_to_bad(0.08, Bad::CHOSEN);
        assert!((enters / (enters + Bad::CHOSEN.ends) * Bad::CHOSEN.loss - 0.08).abs() < 1e-12);
    }

    #[test]
    fn every_topology_accepts_every_channel_and_source() {
        for topology in Topology::ALL {
            for loss in [Loss::Uniform(0.04), Loss::two_state(0.04)] {
                for number in [Number::FiveEach, Number::FiveInAll] {
                    let sources = Sources { number, initial_state: InitialState::On, ..Sources::at(300) };
                    let place = Place { sources, ..Place::new(topology, loss) };
                    assert!(Setting::new(&place, "newreno+judges").is_ok(), "{topology:?}");
                }
            }
        }
    }

    #[test]
    fn denial_of_undecided_sentence_is_undecided() {
        assert_eq!(not(Judged::Holds), Judged::DoesNotHold);
        assert_eq!(not(Judged::Undecided), Judged::Undecided);
        assert_eq!(any([Judged::DoesNotHold, Judged::Holds]), Judged::Holds);
        assert_eq!(any([Judged::DoesNotHold, Judged::Undecided]), Judged::Undecided);
        assert_eq!(any([Judged::DoesNotHold, Judged::DoesNotHold]), Judged::DoesNotHold);
    }
}
