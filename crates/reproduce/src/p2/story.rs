//! What one sender goes through when the first segment of a window is lost twice, as the figures of §7 show it.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::recovery::{Decision, What};
use airtcp_sim::run::{self, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Seen, Watch, World, WorldError};
use airwire::time::{Duration, Instant};

use super::handover::{FIRST, MSS, SEGMENTS, WINDOW, path};

/// What the sender saw. All times are in seconds after the first SYN.
pub(super) struct Story {
    pub(super) timeouts: Vec<f64>,
    /// When FIRST was sent again.
    pub(super) resent: Vec<f64>,
    /// ACKs after the first timeout that acknowledge nothing new, until FIRST is acknowledged.
    pub(super) dupacks: Vec<f64>,
    /// When FIRST was acknowledged, and the window then.
    pub(super) acked: f64,
    pub(super) cwnd: f64,
    pub(super) ssthresh: f64,
    /// Each ACK of new data: when it came, and how many octets were acknowledged then.
    progress: Vec<(f64, u64)>,
}

impl Story {
    pub(super) fn of(
        profile: Profile,
        recipe: &str,
        drop: &[&str],
        handover: &str,
    ) -> Result<Self, WorldError> {
        let host = |profile: Profile| Profile { mss: Some(MSS), ack: AckPolicy::EVERY, ..profile };
        let data = u64::from(MSS - if profile.timestamps { 12 } else { 0 });
        let receiver = HostSpec::receiver();
        let plan = Run {
            scenario: Scenario::parse(&path(drop, Some(handover)), "p2")?,
            seed: 1,
            fixed: HostSpec { profile: host(profile), recipe: format!("{recipe}+iw=1").parse()? },
            mobile: HostSpec { profile: host(receiver.profile), recipe: receiver.recipe },
            flows: vec![Flow {
                watch: Watch::Packets,
                receive_buffer: Some(WINDOW * usize::from(MSS)),
                ..Flow::down(Length::Octets(SEGMENTS * data))
            }],
            until: Until::Complete(Duration::from_secs(600)),
            from: Instant::ZERO,
            score: false,
        };
        let (_, mut world) = run::run_watched(&plan, |_| {})?;
        Ok(Self::told(&mut world, (FIRST - 1) * data + 1))
    }

    /// `first` is the offset of FIRST.
    fn told(world: &mut World, first: u64) -> Self {
        let decisions = world.decisions(0).to_vec();
        let is_timeout = |decision: &&Decision| matches!(decision.what, What::Timeout { .. });
        let timeouts: Vec<_> = decisions.iter().filter(is_timeout).map(|d| d.at.as_secs_f64()).collect();
        let begun = timeouts.first().copied().unwrap_or(f64::INFINITY);
        let (mut resent, mut dupacks, mut progress) = (Vec::new(), Vec::new(), Vec::new());
        let mut acked: Option<Instant> = None;
        for sighting in world.sightings(0) {
            let at = sighting.at.as_secs_f64();
            match sighting.seen {
                Seen::Sent { offset, copy, .. } if offset == first && copy > 1 => resent.push(at),
                Seen::Sent { .. } => {}
                Seen::Ack { ack, .. } if ack > first => {
                    acked.get_or_insert(sighting.at);
                    progress.push((at, ack - 1));
                }
                Seen::Ack { ack, .. } if ack == first && at > begun => dupacks.push(at),
                Seen::Ack { ack, .. } => progress.push((at, ack.saturating_sub(1))),
            }
        }
        let window = decisions.iter().rev().filter(|decision| acked.is_some_and(|at| decision.at <= at));
        let (cwnd, ssthresh) = window
            .filter_map(|decision| match decision.what {
                What::Window { cwnd, ssthresh, .. } => Some((cwnd, ssthresh)),
                _ => None,
            })
            .next()
            .unwrap_or_default();
        Self {
            timeouts,
            resent,
            dupacks,
            acked: acked.map_or(f64::NAN, |at| at.as_secs_f64()),
            cwnd,
            ssthresh,
            progress,
        }
    }

    /// How long after the first timeout this was.
    pub(super) fn since(&self, at: f64) -> f64 {
        at - self.timeouts.first().copied().unwrap_or(f64::NAN)
    }

    /// The duplicate ACK that made the sender send FIRST a third time.
    pub(super) fn trigger(&self) -> Option<usize> {
        let again = *self.resent.get(1)?;
        Some(self.dupacks.iter().position(|at| *at == again)? + 1)
    }

    /// When FIRST was sent the third time, and what caused it.
    pub(super) fn third(&self) -> String {
        let Some(again) = self.resent.get(1) else { return "never".to_owned() };
        let by = match self.trigger() {
            Some(nth) => format!("duplicate ACK {nth}"),
            None => "timeout".to_owned(),
        };
        format!("{:.2} ({by})", self.since(*again))
    }

    /// In kbit/s, from the first SYN until so many octets are acknowledged.
    pub(super) fn throughput(&self, octets: u64) -> f64 {
        let (at, _) = self.progress.iter().find(|(_, acked)| *acked >= octets).unwrap_or(&(f64::INFINITY, 0));
        octets as f64 * 8e-3 / at
    }
}
