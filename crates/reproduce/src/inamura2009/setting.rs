//! The set-up of §2 and §5: a server sends a file over a W-CDMA bearer of 384 kbit/s.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::recovery::{Decision, Recipe, What};
use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::{Report, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Losses, Watch, World, WorldError};
use airwire::time::{Duration, Instant};
use serde::Serialize;

use crate::{Effort, mean};

/// §2.3: “the MAX DAT parameter defines the maximum number of retransmission attempts for a single PDU”. TS 25.322
/// permits MaxDAT − 1 transmissions of a PDU, including the first.
pub(super) const fn max_dat(attempts: u32) -> u32 {
    attempts + 2
}

/// The two possible meanings of TSP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tsp {
    /// The timer delays the next report (TS 25.322).
    NextReport,
    /// The timer delays each report (§2.2).
    EachReport,
}

impl Tsp {
    /// Settings of stage `radio` for a TSP of this length.
    pub(super) fn settings(self, length: &str) -> [(&'static str, String); 2] {
        let off = "off".to_owned();
        let (prohibit, delay) = match self {
            Self::NextReport => (length.to_owned(), off),
            Self::EachReport => (off, length.to_owned()),
        };
        [("receiver.timer_status_prohibit", prohibit), ("receiver.status_delay", delay)]
    }
}

/// Send and receive buffers of both hosts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Buffers {
    /// "The sender and receiver OSs used 64 Kbyte buffers" (§5.2).
    Kbytes64,
    /// Larger than any file, so that they never limit the window.
    Unlimited,
}

impl Buffers {
    const fn octets(self) -> usize {
        match self {
            Self::Kbytes64 => 65_535,
            Self::Unlimited => 8 << 20,
        }
    }

    const fn window_scale(self) -> Option<u8> {
        match self {
            Self::Kbytes64 => None,
            Self::Unlimited => Some(0),
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Kbytes64 => "64 KB",
            Self::Unlimited => "no limit",
        }
    }
}

/// A transfer over a bearer, which is run with all seeds.
pub(super) struct Point {
    scenario: Scenario,
    recipe: Recipe,
    octets: u64,
    buffers: Buffers,
}

impl Point {
    /// Creates a transfer. `settings` has keys and values of stage `radio`, for both directions.
    pub(super) fn new(
        preset: &str,
        settings: &[(&str, String)],
        recipe: &str,
        octets: u64,
        buffers: Buffers,
    ) -> Result<Self, WorldError> {
        let mut scenario = Scenario::load(preset)?;
        for (key, value) in settings {
            scenario.set(&format!("radio.both.{key}"), value)?;
        }
        Ok(Self { scenario, recipe: format!("newreno+iw=2+{recipe}").parse()?, octets, buffers })
    }

    /// Changes a setting of stage `radio` in one direction.
    pub(super) fn set(&mut self, key: &str, value: &str) -> Result<(), WorldError> {
        self.scenario.set(&format!("radio.{key}"), value)?;
        Ok(())
    }

    fn plan(&self, seed: u64) -> Run {
        let (buffer, window_scale) = (self.buffers.octets(), self.buffers.window_scale());
        let host = Profile::default().with(|it| {
            it.handshake.window_scale = window_scale;
            it.sending.send_buffer = buffer;
        });
        let bsd = AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED };
        let receiver = HostSpec::receiver();
        Run {
            scenario: self.scenario.clone(),
            seed,
            fixed: HostSpec { profile: host, recipe: self.recipe.clone() },
            mobile: HostSpec {
                profile: receiver.profile.with(|it| {
                    it.handshake.window_scale = window_scale;
                    it.acks.policy = bsd;
                }),
                recipe: receiver.recipe,
            },
            flows: vec![Flow {
                receive_buffer: Some(buffer),
                watch: Watch::Decisions,
                // Each seed starts at another phase of a clock with ticks of 500 ms.
                start: Instant::from_millis(309 * seed % 500),
                ..Flow::down(Length::Octets(self.octets))
            }],
            until: Until::Complete(Duration::from_secs(1800)),
            from: Instant::ZERO,
            score: false,
        }
    }
}

/// Measurements of one transfer.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Transfer {
    #[serde(rename = "throughput, kbit/s")]
    pub(super) kbit_per_s: f64,
    #[serde(rename = "time, s")]
    pub(super) seconds: f64,
    pub(super) timeouts: f64,
    /// Timeouts whose segment was not lost.
    #[serde(rename = "spurious timeouts")]
    pub(super) spurious: f64,
    #[serde(rename = "undone timeouts")]
    pub(super) undone: f64,
    /// Downlink PDU retransmissions per new PDU.
    #[serde(rename = "PDU retransmissions per new PDU")]
    pub(super) repeated: f64,
    /// STATUS PDUs for the downlink.
    #[serde(rename = "STATUS PDUs")]
    pub(super) statuses: f64,
    /// Number of times that the window of the downlink RLC sender was full.
    #[serde(rename = "full RLC windows")]
    pub(super) stalls: f64,
    /// Share of the downlink packets that RLC gave up.
    #[serde(rename = "share of packets that RLC gave up")]
    pub(super) lost: f64,
}

impl Transfer {
    fn of(report: &Report, world: &mut World) -> Self {
        let flow = &report.flows[0];
        let down =
            |key: &str| report.stages["radio"]["down"].pointer(key).and_then(|n| n.as_f64()).unwrap_or(0.0);
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let decisions = world.decisions(0).to_vec();
        Self {
            kbit_per_s: flow.goodput_bit_per_s / 1e3,
            seconds: flow.took_seconds.unwrap_or(report.seconds),
            timeouts: flow.counters.timeouts as f64,
            spurious: spurious_timeouts(&decisions, world.losses(0)) as f64,
            undone: flow.counters.undone as f64,
            repeated: ratio(down("/sender/pdus_resent"), down("/sender/pdus_new")),
            statuses: down("/receiver/statuses_sent"),
            stalls: down("/sender/window_stalls"),
            lost: ratio(down("/rlc_discard") + down("/rlc_reset"), down("/packets")),
        }
    }
}

/// Timeouts whose segment was not lost: the path dropped no copy that was sent between the previous timeout
/// of the segment and this timeout.
fn spurious_timeouts(decisions: &[Decision], losses: &Losses) -> usize {
    let timeouts: Vec<_> = decisions
        .iter()
        .filter_map(|decision| match decision.what {
            What::Timeout { offset } => Some((decision.at, offset)),
            _ => None,
        })
        .collect();
    let is_spurious = |&(nth, (at, offset)): &(usize, (Instant, u64))| {
        let previous = timeouts[..nth].iter().rev().find(|(_, earlier)| *earlier == offset);
        let since = previous.map_or(Instant::ZERO, |(at, _)| *at);
        !losses.as_slice().iter().any(|dropped| {
            let covers = (dropped.offset..dropped.offset + dropped.len).contains(&offset);
            covers && (since..at).contains(&dropped.sent)
        })
    };
    timeouts.iter().copied().enumerate().filter(is_spurious).count()
}

/// The transfers of one point, ordered by seed.
pub(super) struct Sample(Vec<Transfer>);

pub(super) fn sample(effort: &Effort, points: &[Point]) -> Result<Vec<Sample>, WorldError> {
    let samples = effort.watch(points, Point::plan, |_, report, world| Transfer::of(report, world))?;
    Ok(samples.into_iter().map(Sample).collect())
}

impl Sample {
    pub(super) fn transfers(&self) -> &[Transfer] {
        &self.0
    }

    pub(super) fn values(&self, value: impl Fn(&Transfer) -> f64) -> Vec<f64> {
        self.0.iter().map(value).collect()
    }

    pub(super) fn throughputs(&self) -> Vec<f64> {
        self.values(|t| t.kbit_per_s)
    }

    pub(super) fn mean(&self, value: impl Fn(&Transfer) -> f64) -> Mean {
        mean(&self.values(value))
    }

    /// Differences between runs with the same seed.
    pub(super) fn differences(&self, other: &Self, value: impl Fn(&Transfer) -> f64) -> Vec<f64> {
        self.0.iter().zip(&other.0).map(|(a, b)| value(a) - value(b)).collect()
    }

    /// Mean difference between runs with the same seed.
    pub(super) fn minus(&self, other: &Self, value: impl Fn(&Transfer) -> f64) -> Mean {
        mean(&self.differences(other, value))
    }

    /// Throughput gain over `other`, as a share of the throughput of `other`.
    pub(super) fn gain(&self, other: &Self) -> Mean {
        mean(&gains(&self.throughputs(), &other.throughputs()))
    }
}

/// A gain in percent, with its sign; a dash if the reference is zero.
pub(super) fn percent(gain: &Mean) -> String {
    match gain.half_width {
        _ if gain.mean.is_nan() => "–".to_owned(),
        Some(width) => format!("{:+.1} ± {:.1} %", 100.0 * gain.mean, 100.0 * width),
        None => format!("{:+.1} %", 100.0 * gain.mean),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decisions and losses of a transfer of 30 kB on a path that drops the segments in `drop`.
    fn run(drop: &str, recipe: &str) -> (Vec<Decision>, Losses) {
        let text = format!(
            "schema = 1\n[[stage]]\nkind = \"outage\"\nname = \"pause\"\ndown = {{ at = [\"300ms\"], lasts = \"2s\", packets = \"requeued\" }}\n\
             [[stage]]\nkind = \"loss\"\nname = \"list\"\ndown = {{ model = \"list\", drop = [{drop}] }}\n\
             [[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = {{ rate = \"1Mbit\", delay = \"100ms\" }}\n"
        );
        let point = Point {
            scenario: Scenario::parse(&text, "test").unwrap(),
            recipe: recipe.parse().unwrap(),
            octets: 30_000,
            buffers: Buffers::Kbytes64,
        };
        let mut plan = point.plan(1);
        plan.flows[0].start = Instant::ZERO;
        let (_, mut world) = airtcp_sim::run::run_watched(&plan, |_| {}).unwrap();
        (world.decisions(0).to_vec(), world.losses(0).clone())
    }

    fn timeouts(decisions: &[Decision]) -> usize {
        decisions.iter().filter(|decision| matches!(decision.what, What::Timeout { .. })).count()
    }

    #[test]
    fn timeout_for_delayed_segment_is_spurious() {
        let (decisions, losses) = run("", "newreno+iw=2");
        assert!(timeouts(&decisions) > 0);
        assert_eq!(spurious_timeouts(&decisions, &losses), timeouts(&decisions));
    }

    #[test]
    fn timeout_for_lost_segment_is_not_spurious() {
        // The last segment: only the timer detects its loss.
        let (decisions, losses) = run("\"segment 21\"", "newreno+iw=2");
        let late = run("", "newreno+iw=2");
        assert_eq!(timeouts(&decisions), timeouts(&late.0) + 1);
        assert_eq!(spurious_timeouts(&decisions, &losses), timeouts(&late.0));
    }

    #[test]
    fn max_dat_counts_retransmissions_like_paper() {
        assert_eq!(max_dat(10), 12);
    }

    #[test]
    fn gain_over_zero_is_dash() {
        assert_eq!(percent(&mean(&gains(&[1.0], &[0.0]))), "–");
        assert_eq!(percent(&mean(&gains(&[3.0], &[2.0]))), "+50.0 %");
    }
}
