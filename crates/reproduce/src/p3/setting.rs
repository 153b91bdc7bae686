//! What P3 ran its senders on (§IV), and what it does not say.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::knobs::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

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
    /// Where nothing but differences are asked for that show at any rate.
    pub const FEW: Self = Self::of(&[2, 4, 8]);
    /// For many paths: fewer and shorter.
    pub const SENSITIVITY: Self =
        Self { error_rates: &[2, 6], from: Instant::from_secs(50), until: Instant::from_secs(250) };
    /// With the rates at which curves cross, as §IV C says.
    pub const UNDERESTIMATION: Self = Self::of(&[1, 2, 4, 7, 12]);
    /// Equation (1): the same, where congestion is left.
    pub const MODEL: Self = Self { error_rates: &[1, 2, 4], ..Self::THEOREM };
    /// Theorem 1, at ten megabits and more: shorter, because there are five times as many packets.
    pub const THEOREM: Self =
        Self { error_rates: &[0, 1, 2, 4, 8], from: Instant::from_secs(60), until: Instant::from_secs(120) };

    /// §IV has 2000 s, of which the last 1000 count. Shorter runs have wider intervals; more seeds make up for that.
    const fn of(error_rates: &'static [u32]) -> Self {
        Self { error_rates, from: Instant::from_secs(200), until: Instant::from_secs(600) }
    }

    /// How much a run of this length scatters that has `one_run` of these runs' scatter, if it is as long as the
    /// paper's, of which 1000 s count.
    pub fn scaled_to_the_paper(&self, one_run: f64) -> f64 {
        one_run * (self.until.saturating_since(self.from).as_secs_f64() / 1000.0).sqrt()
    }
}

/// A sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    pub scheme: Scheme,
    /// The "+" of the paper.
    pub plus: Plus,
}

/// What it is without the rebate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    NewReno,
    /// NewReno that is told which losses are congestion: the ideal differentiator (§II-B 2).
    IdealDifferentiator,
    /// TCP-PR that is told likewise.
    IdealPr,
    /// With its time-varying filter.
    Westwood,
    /// The same with another time constant, in milliseconds.
    WestwoodTau(u16),
    /// With the constant coefficients of its published procedure.
    WestwoodConstant,
    /// On SACK.
    Pr,
    PrOnNewReno,
    Rr,
    Dcr,
}

/// How much of the tax is given back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plus {
    None,
    /// All of it.
    Full,
    /// §IV C: "under-estimated (by 50%)".
    Half,
    /// All, without the bounds of ε.
    Unclamped,
    /// All, after timeouts too.
    AtTimeouts,
    /// All, with both: Algorithm 2 to the letter.
    Literal,
    /// All, with this α, in hundredths.
    Alpha(u8),
    /// (4) and (5) in the place of their approximations.
    Ideal,
}

impl Scheme {
    pub const fn plain(self) -> Variant {
        Variant { scheme: self, plus: Plus::None }
    }

    pub const fn plus(self, plus: Plus) -> Variant {
        Variant { scheme: self, plus }
    }
}

pub const NR: Variant = Scheme::NewReno.plain();
pub const NR_PLUS: Variant = Scheme::NewReno.plus(Plus::Full);
pub const W: Variant = Scheme::Westwood.plain();
pub const PR: Variant = Scheme::Pr.plain();
pub const PR_PLUS: Variant = Scheme::Pr.plus(Plus::Full);

impl Variant {
    /// As the paper calls it.
    pub fn name(self) -> String {
        let scheme = match self.scheme {
            Scheme::NewReno => "TCP-NR",
            Scheme::IdealDifferentiator => "ideal differentiator",
            Scheme::IdealPr => "ideal differentiator, as TCP-PR",
            Scheme::Westwood => "TCP-W",
            Scheme::WestwoodConstant => "TCP-W, constant filter",
            Scheme::WestwoodTau(ms) => return format!("TCP-W, τ = {} s", f64::from(ms) / 1e3),
            Scheme::Pr | Scheme::PrOnNewReno => "TCP-PR",
            Scheme::Rr => "RR-TCP",
            Scheme::Dcr => "TCP-DCR",
        };
        let plus = match self.plus {
            Plus::None => String::new(),
            Plus::Full => "+".to_owned(),
            Plus::Half => "+, half the tax".to_owned(),
            Plus::Unclamped => "+, ε unbounded".to_owned(),
            Plus::AtTimeouts => "+, also at timeouts".to_owned(),
            Plus::Literal => "+, both".to_owned(),
            Plus::Alpha(hundredths) => format!("+, α = 0.{hundredths}"),
            Plus::Ideal => ", ideally compensated".to_owned(),
        };
        let base = if self.scheme == Scheme::PrOnNewReno { " on NewReno" } else { "" };
        format!("{scheme}{plus}{base}")
    }

    /// The recipe, where `percent` of the packets are damaged.
    pub fn recipe(self, percent: u32) -> Result<Recipe, WorldError> {
        let scheme = match self.scheme {
            Scheme::NewReno => "newreno",
            Scheme::IdealDifferentiator => "newreno+oracle",
            Scheme::IdealPr => "sack+pr+oracle",
            Scheme::Westwood => "newreno+westwood+westwood-tau=500",
            Scheme::WestwoodConstant => "newreno+westwood",
            Scheme::WestwoodTau(ms) => return Ok(format!("newreno+westwood+westwood-tau={ms}").parse()?),
            Scheme::Pr => "sack+pr",
            Scheme::PrOnNewReno => "newreno+pr",
            Scheme::Rr => "sack+rr",
            Scheme::Dcr => "sack+dcr",
        };
        let rule = match self.plus {
            Plus::None => return Ok(scheme.parse()?),
            Plus::Full => String::new(),
            Plus::Half => "+tax-scale=0.5".to_owned(),
            Plus::Unclamped => "+rebate-unclamped".to_owned(),
            Plus::AtTimeouts => "+rebate-at-timeouts".to_owned(),
            Plus::Literal => "+rebate-unclamped+rebate-at-timeouts".to_owned(),
            Plus::Alpha(hundredths) => format!("+rebate-alpha={}", f64::from(hundredths) / 100.0),
            Plus::Ideal => "+rebate-ideal".to_owned(),
        };
        Ok(format!("{scheme}+rebate+tax={}{rule}", f64::from(percent) / 100.0).parse()?)
    }

    fn host(self, percent: u32, site: Site) -> Result<HostSpec, WorldError> {
        Ok(HostSpec { profile: like_ns2(site.mss), recipe: self.recipe(percent)? })
    }
}

/// What the paper does not say of its networks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// One way over the wire, in milliseconds. The radio link has 10 more, the dumbbell's 20.
    pub wire_ms: u32,
    /// Of the radio link, in Mbit/s; the wire has five times as much, the dumbbell's access links fifty times.
    pub radio_mbit: u32,
    /// In front of the radio link, in packets.
    pub queue: u32,
    /// In octets.
    pub mss: u16,
}

impl Site {
    /// That of ns-2's runs for this paper, with which ours are compared.
    pub const ORDINARY: Self = Self { wire_ms: 50, radio_mbit: 2, queue: 50, mss: 1000 };
    pub const DUMBBELL: Self = Self { wire_ms: 20, ..Self::ORDINARY };
}

/// As ns-2's one-way agents were in its runs of this paper.
fn like_ns2(mss: u16) -> Profile {
    let mut profile = Profile { mss: Some(mss), recv_buffer: 1000 * usize::from(mss), ..Profile::ns2() };
    profile.timer.limits.min = Duration::from_millis(200);
    profile.recovery.initial_window = InitialWindow::Segments(2);
    profile.recovery.limited_transmit = true;
    profile
}

fn receiver(mss: u16) -> HostSpec {
    let ordinary = HostSpec::receiver();
    let profile = Profile {
        mss: Some(mss),
        recv_buffer: 1000 * usize::from(mss),
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
    fn scenario(self, percent: u32, site: Site) -> Result<Scenario, WorldError> {
        let Site { wire_ms, radio_mbit, queue, .. } = site;
        // An ns-2 queue of 50 counts the packet under transmission.
        let queue = queue - 1;
        let infrastructure = |preset: &str| {
            let wire_mbit = 5 * radio_mbit;
            format!(
                "extends = \"{preset}\"\n\
                 [[stage]]\nname = \"wire\"\nboth = {{ rate = \"{wire_mbit}Mbit\", delay = \"{wire_ms}ms\" }}\n\
                 [[stage]]\nname = \"radio\"\nboth = {{ rate = \"{radio_mbit}Mbit\", delay = \"10ms\", \
                 queue.packets = {queue} }}\n"
            )
        };
        let path = match self {
            Self::Loses => infrastructure("tax-rebate"),
            Self::Reorders => infrastructure("tax-rebate-llrtx"),
            Self::Shared => {
                let access_mbit = 50 * radio_mbit;
                format!(
                    "extends = \"tax-rebate-fairness\"\n\
                     [[stage]]\nname = \"access\"\nboth = {{ rate = \"{access_mbit}Mbit\", delay = \"{wire_ms}ms\" }}\n\
                     [[stage]]\nname = \"radio\"\nboth = {{ rate = \"{radio_mbit}Mbit\", delay = \"20ms\", \
                     queue.packets = {queue} }}\n"
                )
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
pub fn plan(
    radio: Radio,
    site: Site,
    percent: u32,
    senders: &[Variant],
    extent: &Extent,
) -> Result<Run, WorldError> {
    let flow = |(index, sender): (usize, &Variant)| {
        Ok(Flow {
            recipe: Some(sender.recipe(percent)?),
            // Equal flows that begin at the same time would stay in step.
            start: Instant::from_millis(100 * index as u64),
            ..Flow::down(Length::Endless)
        })
    };
    let first = senders.first().copied().unwrap_or(NR);
    Ok(Run {
        scenario: radio.scenario(percent, site)?,
        seed: 0,
        fixed: first.host(percent, site)?,
        mobile: receiver(site.mss),
        flows: senders.iter().enumerate().map(flow).collect::<Result<_, WorldError>>()?,
        until: Until::At(extent.until),
        from: extent.from,
        score: false,
    })
}

/// Of all figures.
pub(super) fn choices() -> Vec<String> {
    [
        "1000 octets of data and 40 of headers, a receiver's window of 1000 segments, an ACK for every segment, a \
         timer of 10 ms ticks with a least timeout of 200 ms, an initial window of two, Limited Transmit: profile \
         `ns2`.",
        "The tax is set by hand (\"perfect knowledge\"): the packet error rate.",
        "Each run lasts 600 s and the last 400 s count, where the paper had 2000 s and 1000 s (20 runs of each), and \
         ns-2's runs too. What one run of the paper's length scatters is reckoned from ours by the root of the length.",
        "A sentence about curves is judged by the average over the error rates above zero, seed by seed; one that \
         says \"all\" or \"the range … simulated\" at each of them; a number (\"up to\") where the mean is largest.",
        "In every decrease 0 ≤ ε, and never so large that ssthresh would exceed cwnd: by (5) ε lies between 0 and 1, \
         its estimate (15) need not. α = 0.25. A timeout halves ssthresh without a rebate, as the paper mentions \
         no timeouts. What either does is in the table of `p3-rules`.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Of those with one flow.
pub(super) fn choices_of_one_flow() -> Vec<String> {
    [
        "The paper gives no rates, delays or queues: 10 Mbit/s and 50 ms of wire, then 2 Mbit/s and 10 ms of radio \
         with a queue of 50 packets, as in the runs of ns-2 that stand beside. Data only are damaged. `p3-sensitivity` \
         has other paths.",
        "TCP-W repairs like NewReno and has the time-varying filter of Mascolo et al. (MobiCom 2001, §2.2), with virtual \
         samples of zero where no ACK comes. This paper does not say with which constants it ran: τ = 0.5 s and m = 2. \
         Other τ and the constant coefficients of its procedure are in the table of `p3-rules`.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Of those with TCP-PR.
pub(super) fn choices_of_pr() -> Vec<String> {
    vec![
        "PR works on SACK (RFC 6675's scoreboard), which tells for each segment whether it has arrived, as its to-be-ack \
         list wants; beta is 3 and alpha 0.995. Which implementation the paper ran is not said: on NewReno stands \
         beside in Figs. 2b, 2c and 4 and in `p3-underestimation`."
            .to_owned(),
    ]
}
