//! The senders and paths of the simulations (§IV), and the choices for values that the paper does not give.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::recovery::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

/// The error rates of a figure, and the length of its runs.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Packet error rates in percent.
    pub error_rates: &'static [u32],
    /// Start of the measurement. Earlier data does not count.
    pub from: Instant,
    /// End of the runs.
    pub until: Instant,
}

impl Extent {
    /// The error rates of the paper's figures.
    pub const FULL: Self = Self::of(&[0, 2, 4, 6, 8, 10, 12]);
    /// For claims about differences that are visible at any error rate.
    pub const FEW: Self = Self::of(&[2, 4, 8]);
    /// For many paths: fewer error rates and shorter runs.
    pub const SENSITIVITY: Self =
        Self { error_rates: &[2, 6], from: Instant::from_secs(50), until: Instant::from_secs(250) };
    /// For §IV-C, including the error rates at which, in this section, the curves cross.
    pub const UNDERESTIMATION: Self = Self::of(&[1, 2, 4, 7, 12]);
    /// For equation (1): the runs of `THEOREM`, at error rates that leave some congestion losses.
    pub const MODEL: Self = Self { error_rates: &[1, 2, 4], ..Self::THEOREM };
    /// For Theorem 1 at 10 Mbit/s and more. The runs are shorter because they have five times as many packets.
    pub const THEOREM: Self =
        Self { error_rates: &[0, 1, 2, 4, 8], from: Instant::from_secs(60), until: Instant::from_secs(120) };

    /// The paper's runs last 2000 s, of which the last 1000 s count (§IV). More seeds compensate for shorter runs.
    const fn of(error_rates: &'static [u32]) -> Self {
        Self { error_rates, from: Instant::from_secs(200), until: Instant::from_secs(600) }
    }

    /// Converts the variation of one run of this length into the variation of one run of the paper's length, of which
    /// 1000 s count. The variation is inversely proportional to the square root of the measured time.
    pub fn scaled_to_the_paper(&self, variation: f64) -> f64 {
        variation * (self.until.saturating_since(self.from).as_secs_f64() / 1000.0).sqrt()
    }
}

/// A sender: a TCP variant, with or without the rebate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variant {
    /// The TCP variant.
    pub scheme: Scheme,
    /// The "+" of the paper.
    pub plus: Plus,
}

/// The TCP variant without the rebate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme {
    /// NewReno.
    NewReno,
    /// NewReno that knows which losses are due to congestion: the ideal differentiator (§II-B 2).
    IdealDifferentiator,
    /// TCP-PR that knows which losses are due to congestion.
    IdealPr,
    /// Westwood with the time-varying filter.
    Westwood,
    /// Westwood with the time-varying filter and another time constant, in milliseconds.
    WestwoodTau(u16),
    /// Westwood with the constant coefficients of its published procedure.
    WestwoodConstant,
    /// TCP-PR on SACK.
    Pr,
    /// TCP-PR on NewReno.
    PrOnNewReno,
    /// RR-TCP.
    Rr,
    /// TCP-DCR.
    Dcr,
    /// NewReno with the Eifel algorithm.
    Eifel,
    /// SACK (RFC 2018).
    Sack,
    /// SACK that detects spurious retransmissions by DSACK (RFC 2883).
    Dsack,
    /// TCP Veno.
    Veno,
    /// JTCP.
    Jtcp,
    /// TCP-FIT.
    Fit,
}

/// The variant of the rebate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plus {
    /// No rebate.
    None,
    /// The rebate for the whole tax, with the default rules.
    Full,
    /// §IV-C: "under-estimated (by 50%)".
    Half,
    /// The whole tax, without bounds for ε.
    Unclamped,
    /// The whole tax, also after timeouts.
    AtTimeouts,
    /// The whole tax, without bounds for ε and also after timeouts: Algorithm 2 to the letter.
    Literal,
    /// The whole tax, with this α in hundredths.
    Alpha(u8),
    /// The ideal compensator: (4) and (5) instead of their approximations.
    Ideal,
}

impl Scheme {
    /// Returns the sender without the rebate.
    pub const fn plain(self) -> Variant {
        Variant { scheme: self, plus: Plus::None }
    }

    /// Returns the sender with this variant of the rebate.
    pub const fn plus(self, plus: Plus) -> Variant {
        Variant { scheme: self, plus }
    }
}

/// TCP-NR.
pub const NR: Variant = Scheme::NewReno.plain();
/// TCP-NR+.
pub const NR_PLUS: Variant = Scheme::NewReno.plus(Plus::Full);
/// TCP-W.
pub const W: Variant = Scheme::Westwood.plain();
/// TCP-PR.
pub const PR: Variant = Scheme::Pr.plain();
/// TCP-PR+.
pub const PR_PLUS: Variant = Scheme::Pr.plus(Plus::Full);

impl Variant {
    /// The paper's name of the sender.
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
            Scheme::Eifel => "TCP-NR, Eifel",
            Scheme::Sack => "SACK",
            Scheme::Dsack => "SACK, DSACK",
            Scheme::Veno => "TCP Veno",
            Scheme::Jtcp => "JTCP",
            Scheme::Fit => "TCP-FIT",
        };
        let plus = match self.plus {
            Plus::None => String::new(),
            Plus::Full => "+".to_owned(),
            Plus::Half => "+, half the tax".to_owned(),
            Plus::Unclamped => "+, ε unbounded".to_owned(),
            Plus::AtTimeouts => "+, rebate at timeouts".to_owned(),
            Plus::Literal => "+, literal Algorithm 2".to_owned(),
            Plus::Alpha(hundredths) => format!("+, α = 0.{hundredths}"),
            Plus::Ideal => ", ideally compensated".to_owned(),
        };
        let base = if self.scheme == Scheme::PrOnNewReno { " on NewReno" } else { "" };
        format!("{scheme}{plus}{base}")
    }

    /// The recipe for a path that damages `percent` of the packets. The tax is set to this rate.
    pub fn recipe(self, percent: u32) -> Result<Recipe, WorldError> {
        let scheme = match self.scheme {
            Scheme::NewReno => "newreno",
            Scheme::IdealDifferentiator => "newreno+oracle",
            Scheme::IdealPr => "sack+pr+oracle",
            Scheme::Westwood => "newreno+westwood",
            Scheme::WestwoodConstant => "newreno+westwood+westwood-constant",
            Scheme::WestwoodTau(ms) => return Ok(format!("newreno+westwood+westwood-tau={ms}").parse()?),
            Scheme::Pr => "sack+pr",
            Scheme::PrOnNewReno => "newreno+pr",
            Scheme::Rr => "sack+rr",
            Scheme::Dcr => "sack+dcr",
            Scheme::Eifel => "newreno+eifel+timestamps",
            Scheme::Sack => "sack",
            Scheme::Dsack => "sack+dsack",
            Scheme::Veno => "newreno+veno",
            Scheme::Jtcp => "newreno+jtcp",
            Scheme::Fit => "newreno+tcp-fit",
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

/// The values of a path that the paper does not give.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Site {
    /// One-way delay of the wire, in milliseconds. The radio link adds 10 ms, or 20 ms in the dumbbell.
    pub wire_ms: u32,
    /// Rate of the radio link, in Mbit/s. The wire has 5 times this rate, the dumbbell's access links 50 times.
    pub radio_mbit: u32,
    /// Queue in front of the radio link, in packets.
    pub queue: u32,
    /// Maximum segment size in bytes.
    pub mss: u16,
}

impl Site {
    /// The path of the ns-2 runs with which these runs are compared.
    pub const ORDINARY: Self = Self { wire_ms: 50, radio_mbit: 2, queue: 50, mss: 1000 };
    /// The dumbbell of Fig. 3.
    pub const DUMBBELL: Self = Self { wire_ms: 20, ..Self::ORDINARY };
}

/// The settings of the one-way agents in the ns-2 runs.
fn like_ns2(mss: u16) -> Profile {
    let mut profile = Profile::ns2().with(|it| {
        it.handshake.mss = Some(mss);
        it.acks.recv_buffer = 1000 * usize::from(mss);
    });
    profile.timers.rto.limits.min = Duration::from_millis(200);
    profile.recovery.initial.window = InitialWindow::Segments(2);
    profile.recovery.detection.limited_transmit = true;
    profile
}

/// Only Eifel needs timestamps, which reduce the data in a segment.
fn receiver(mss: u16, senders: &[Variant]) -> HostSpec {
    let ordinary = HostSpec::receiver();
    let profile = ordinary.profile.with(|it| {
        it.handshake.mss = Some(mss);
        it.acks.recv_buffer = 1000 * usize::from(mss);
        it.handshake.timestamps = senders.iter().any(|sender| sender.scheme == Scheme::Eifel);
        it.acks.policy = AckPolicy::EVERY;
    });
    HostSpec { profile, ..ordinary }
}

/// A path of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Radio {
    /// Fig. 1 without link-layer retransmission.
    Loses,
    /// Fig. 1 with link-layer retransmission, three times at most.
    Reorders,
    /// The same with three radio links, each of which damages a third as many packets (footnote 2).
    ReordersOnHops,
    /// Fig. 3, the dumbbell's bottleneck.
    Shared,
}

/// Removes the base station. The sender knows the tax, and the option for reports would take room in each segment.
const NO_REPORTS: &str = "[[stage]]\nname = \"station\"\nremove = true\n";

/// The radio links on the path with several.
const HOPS: [&str; 3] = ["radio", "radio-2", "radio-3"];

impl Radio {
    fn scenario(self, percent: u32, site: Site) -> Result<Scenario, WorldError> {
        let Site { wire_ms, radio_mbit, queue, .. } = site;
        // ns-2 counts the packet in transmission as part of the queue.
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
        let hop = |name: &str| {
            format!(
                "[[stage]]\nkind = \"arq\"\nname = \"{name}\"\nboth = {{ per = \"0%\", retries = 3, rate = \
                 \"{radio_mbit}Mbit\", delay = \"10ms\", queue = {{ packets = {queue} }} }}\n"
            )
        };
        let path = match self {
            Self::Loses => infrastructure("tax-rebate"),
            Self::Reorders => infrastructure("tax-rebate-llrtx"),
            Self::ReordersOnHops => infrastructure("tax-rebate-llrtx") + &hop(HOPS[1]) + &hop(HOPS[2]),
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
        let (links, rate): (&[&str], f64) = match self {
            Self::Loses | Self::Shared => (&["radio-errors"], f64::from(percent)),
            Self::Reorders => (&["radio"], f64::from(percent)),
            Self::ReordersOnHops => (&HOPS, f64::from(percent) / HOPS.len() as f64),
        };
        for link in links {
            scenario.set(&format!("{link}.down.per"), &format!("{rate}%"))?;
        }
        Ok(scenario)
    }
}

/// A run with one flow per sender. The flows differ only in their recipes. The caller sets the seed.
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
            // Identical flows that start at the same time would stay synchronized.
            start: Instant::from_millis(100 * index as u64),
            ..Flow::down(Length::Endless)
        })
    };
    let first = senders.first().copied().unwrap_or(NR);
    Ok(Run {
        scenario: radio.scenario(percent, site)?,
        seed: 0,
        fixed: first.host(percent, site)?,
        mobile: receiver(site.mss, senders),
        flows: senders.iter().enumerate().map(flow).collect::<Result<_, WorldError>>()?,
        until: Until::At(extent.until),
        from: extent.from,
        score: false,
    })
}
