//! What P3 ran its senders on (§IV), and what it does not say.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::knobs::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

const MSS: u16 = 1000;

/// The error rates of a figure, and how long it runs.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// In percent.
    pub error_rates: &'static [u32],
    /// Goodput counts from here on.
    pub from: Instant,
    pub until: Instant,
}

impl Extent {
    pub const FULL: Self = Self::of(&[0, 2, 4, 6, 8, 10, 12]);
    /// With the rates at which curves cross, as §IV C says.
    pub const UNDERESTIMATION: Self = Self::of(&[1, 2, 4, 7, 12]);

    /// §IV has 2000 s, of which the last 1000 count. Shorter runs have wider intervals; more seeds make up for that.
    const fn of(error_rates: &'static [u32]) -> Self {
        Self { error_rates, from: Instant::from_secs(200), until: Instant::from_secs(600) }
    }
}

/// A sender of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    NewReno,
    Sack1,
    Westwood,
    NewRenoPlus(Tax),
    Pr,
    PrPlus(Tax),
}

/// How much of the tax the sender knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tax {
    All,
    /// §IV C: "under-estimated (by 50%)".
    Half,
}

impl Variant {
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "NewReno",
            Self::Sack1 => "Sack1",
            Self::Westwood => "Westwood",
            Self::NewRenoPlus(Tax::All) => "NewReno+",
            Self::NewRenoPlus(Tax::Half) => "NewReno+, half the tax",
            Self::Pr => "PR",
            Self::PrPlus(Tax::All) => "PR+",
            Self::PrPlus(Tax::Half) => "PR+, half the tax",
        }
    }

    /// The recipe, where `percent` of the packets are damaged.
    pub fn recipe(self, percent: u32) -> Result<Recipe, WorldError> {
        let rebate = |tax| {
            let known = format!("rebate+tax={}", f64::from(percent) / 100.0);
            if tax == Tax::Half { known + "+tax-scale=0.5" } else { known }
        };
        let name = match self {
            Self::NewReno => "newreno".to_owned(),
            Self::Sack1 => "sack".to_owned(),
            Self::Westwood => "newreno+westwood".to_owned(),
            Self::NewRenoPlus(tax) => format!("newreno+{}", rebate(tax)),
            Self::Pr => "sack+pr".to_owned(),
            Self::PrPlus(tax) => format!("sack+pr+{}", rebate(tax)),
        };
        Ok(name.parse()?)
    }

    fn host(self, percent: u32) -> Result<HostSpec, WorldError> {
        Ok(HostSpec { profile: like_ns2(), recipe: self.recipe(percent)? })
    }
}

/// As ns-2's one-way agents were in its runs of this paper.
fn like_ns2() -> Profile {
    let mut profile = Profile { mss: Some(MSS), recv_buffer: 1000 * usize::from(MSS), ..Profile::ns2() };
    profile.timer.limits.min = Duration::from_millis(200);
    profile.recovery.initial_window = InitialWindow::Segments(2);
    profile.recovery.limited_transmit = true;
    profile
}

fn receiver() -> HostSpec {
    let ordinary = HostSpec::receiver();
    let profile = Profile {
        mss: Some(MSS),
        recv_buffer: 1000 * usize::from(MSS),
        timestamps: false,
        ack: AckPolicy::EVERY,
        ..ordinary.profile
    };
    HostSpec { profile, ..ordinary }
}

/// A path of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Radio {
    /// Fig. 1 without link-layer retransmission.
    Loses,
    /// Fig. 1 with link-layer retransmission, three times at most.
    Reorders,
    /// Fig. 3, the dumbbell's bottleneck.
    Shared,
}

/// The sender is given the tax, so no station reports it: the option would take room in each segment.
const NO_REPORTS: &str = "[[stage]]\nname = \"station\"\nremove = true\n";

impl Radio {
    fn scenario(self, percent: u32) -> Result<Scenario, WorldError> {
        // An ns-2 queue of 50 counts the packet under transmission.
        let path = match self {
            Self::Loses => {
                "extends = \"tax-rebate\"\n\
                 [[stage]]\nname = \"wire\"\nboth.delay = \"50ms\"\n\
                 [[stage]]\nname = \"radio\"\nboth = { delay = \"10ms\", queue.packets = 49 }\n"
            }
            Self::Reorders => {
                "extends = \"tax-rebate-llrtx\"\n\
                 [[stage]]\nname = \"wire\"\nboth.delay = \"50ms\"\n\
                 [[stage]]\nname = \"radio\"\nboth = { delay = \"10ms\", queue.packets = 49 }\n"
            }
            Self::Shared => {
                "extends = \"tax-rebate-fairness\"\n\
                 [[stage]]\nname = \"access\"\nboth = { rate = \"100Mbit\", delay = \"20ms\" }\n\
                 [[stage]]\nname = \"radio\"\nboth = { rate = \"2Mbit\", delay = \"20ms\", queue.packets = 49 }\n"
            }
        };
        let mut scenario =
            Scenario::parse(&format!("schema = 1\n{path}{NO_REPORTS}"), "the path of Lai et al.")?;
        let rate = if self == Self::Reorders { "radio.down.per" } else { "radio-errors.down.per" };
        scenario.set(rate, &format!("{percent}%"))?;
        Ok(scenario)
    }
}

/// A run with a flow of each sender; they differ in nothing but their recipes. Its seed is still to be set.
pub fn plan(radio: Radio, percent: u32, senders: &[Variant], extent: &Extent) -> Result<Run, WorldError> {
    let flow = |(index, sender): (usize, &Variant)| {
        Ok(Flow {
            recipe: Some(sender.recipe(percent)?),
            // Equal flows that begin at the same time would stay in step.
            start: Instant::from_millis(100 * index as u64),
            ..Flow::down(Length::Endless)
        })
    };
    let first = senders.first().copied().unwrap_or(Variant::NewReno);
    Ok(Run {
        scenario: radio.scenario(percent)?,
        seed: 0,
        fixed: first.host(percent)?,
        mobile: receiver(),
        flows: senders.iter().enumerate().map(flow).collect::<Result<_, WorldError>>()?,
        until: Until::At(extent.until),
        from: extent.from,
        score: false,
    })
}

/// What every figure has to choose.
pub fn choices() -> Vec<String> {
    [
        "The paper gives no rates, delays or queues: 10 Mbit/s and 50 ms of wire, then 2 Mbit/s and 10 ms of radio \
         with a queue of 50 packets, as in the runs of ns-2 that stand beside. Data only are damaged.",
        "1000 octets of data and 40 of headers, a receiver's window of 1000 segments, an ACK for every segment, a \
         timer of 10 ms ticks with a least timeout of 200 ms, an initial window of two, Limited Transmit: profile \
         `ns2`.",
        "The tax is set by hand (\"perfect knowledge\"): the packet error rate.",
        "Each run lasts 600 s and the last 400 s count, where the paper had 2000 s and 1000 s (20 runs of each), and \
         ns-2's runs too.",
    ]
    .map(str::to_owned)
    .to_vec()
}

pub fn choice_of_pr() -> String {
    "PR works on SACK (RFC 6675's scoreboard), which tells for each segment whether it has arrived, as its to-be-ack \
     list wants; beta is 3 and alpha 0.995. Which implementation the paper ran is not said."
        .to_owned()
}

pub fn choice_of_westwood() -> String {
    "Westwood repairs like NewReno.".to_owned()
}
