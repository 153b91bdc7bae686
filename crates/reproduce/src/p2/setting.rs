//! The set-up of P2 §5: a server sends a file over a W-CDMA bearer of 384 kbit/s.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{Report, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

use crate::{Effort, mean};

/// "The sender and receiver OSs used 64 Kbyte buffers" (§5.2).
const BUFFER: usize = 65_535;

/// What the paper does not say, for §2 and §5 alike; a sentence for each.
pub(super) const CHOICES: [&str; 4] = [
    "The bearer is preset `wcdma-384`: RLC AM with PDUs of 42 octets, TTIs of 10 ms down and 20 ms up, a transmission window of 2047 PDUs, polls when the buffer runs empty and when half of the window is in use; the same BLER, TSP and MaxDAT in both directions.",
    "All senders are NewReno with profile `default`, an initial window of two segments and timestamps, 1500 octets of MTU, and differ in the timer only; the receiver acknowledges every second segment, or after 200 ms (BSD), and offers 65535 octets without window scaling.",
    "The throughput is the file over the time from the first SYN to the last octet, and a timeout is spurious if Eifel's detection says so, which listens in every run.",
    "The queue before the bearer has no bound (\"enough queue depth\", §7.1).",
];

pub(super) fn choices(own: &[&str]) -> Vec<String> {
    own.iter().chain(&CHOICES).map(|&choice| choice.to_owned()).collect()
}

/// One transfer over one bearer.
pub(super) struct Point {
    scenario: Scenario,
    recipe: Recipe,
    octets: u64,
}

impl Point {
    /// `settings` are those of stage `radio`, in both directions.
    pub(super) fn new(
        preset: &str,
        settings: &[(&str, String)],
        recipe: &str,
        octets: u64,
    ) -> Result<Self, WorldError> {
        let mut scenario = Scenario::load(preset)?;
        for (key, value) in settings {
            scenario.set(&format!("radio.both.{key}"), value)?;
        }
        Ok(Self { scenario, recipe: format!("newreno+iw=2+{recipe}").parse()?, octets })
    }

    fn plan(&self, seed: u64) -> Run {
        let host = Profile { window_scale: None, ..Profile::default() };
        let bsd = AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED };
        let receiver = HostSpec::receiver();
        Run {
            scenario: self.scenario.clone(),
            seed,
            fixed: HostSpec { profile: Profile { send_buffer: BUFFER, ..host }, recipe: self.recipe.clone() },
            mobile: HostSpec {
                profile: Profile { window_scale: None, ack: bsd, ..receiver.profile },
                recipe: receiver.recipe,
            },
            flows: vec![Flow { receive_buffer: Some(BUFFER), ..Flow::down(Length::Octets(self.octets)) }],
            until: Until::Complete(Duration::from_secs(1800)),
            from: Instant::ZERO,
            score: false,
        }
    }
}

/// What is measured in a transfer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub(super) kbit_per_s: f64,
    pub(super) seconds: f64,
    pub(super) timeouts: f64,
    pub(super) spurious: f64,
    pub(super) undone: f64,
    /// PDUs transmitted again on the way down, for each new one.
    pub(super) repeated: f64,
    /// Times that the RLC sender's window was full.
    pub(super) stalls: f64,
    /// The share of the packets on the way down that RLC gave up.
    pub(super) lost: f64,
}

impl Transfer {
    fn of(report: &Report) -> Self {
        let flow = &report.flows[0];
        let down =
            |key: &str| report.stages["radio"]["down"].pointer(key).and_then(|n| n.as_f64()).unwrap_or(0.0);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        Self {
            kbit_per_s: flow.goodput_bit_per_s / 1e3,
            seconds: flow.took_seconds.unwrap_or(report.seconds),
            timeouts: flow.counters.timeouts as f64,
            spurious: flow.counters.spurious_timeouts as f64,
            undone: flow.counters.undone as f64,
            repeated: ratio(down("/sender/pdus_resent"), down("/sender/pdus_new")),
            stalls: down("/sender/window_stalls"),
            lost: ratio(down("/rlc_discard") + down("/rlc_reset"), down("/packets")),
        }
    }
}

/// All transfers of a point, in the order of their seeds.
pub(super) struct Sample(Vec<Transfer>);

pub(super) fn sample(effort: &Effort, points: &[Point]) -> Result<Vec<Sample>, WorldError> {
    let samples = effort.sample(points, Point::plan, |_, report| Transfer::of(report))?;
    Ok(samples.into_iter().map(Sample).collect())
}

impl Sample {
    pub(super) fn transfers(&self) -> &[Transfer] {
        &self.0
    }

    pub(super) fn mean(&self, of: impl Fn(&Transfer) -> f64) -> Mean {
        mean(&self.0.iter().map(of).collect::<Vec<_>>())
    }

    /// The mean of the differences between runs with the same seed.
    pub(super) fn minus(&self, other: &Self, of: impl Fn(&Transfer) -> f64) -> Mean {
        mean(&self.0.iter().zip(&other.0).map(|(a, b)| of(a) - of(b)).collect::<Vec<_>>())
    }
}
