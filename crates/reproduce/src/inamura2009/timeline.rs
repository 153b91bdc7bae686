//! The timeline of a sender when the first segment of a window is lost twice, for the figures of §7.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::recovery::{Decision, What};
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{DevicePacket, Flow, HostSpec, Length, PacketKind, Watch, World, WorldError};
use airwire::time::{Duration, Instant};

use super::handover::{FIRST, MSS, SEGMENTS, WINDOW, path};
use crate::Effort;
use crate::chart::{Axis, Chart, Curve, Scale, Style};

/// Events at the sender. All times are in seconds after the first SYN.
pub(super) struct Timeline {
    pub(super) timeouts: Vec<f64>,
    /// Retransmissions of [`FIRST`].
    pub(super) resent: Vec<f64>,
    /// Duplicate ACKs between the first timeout and the ACK of [`FIRST`].
    pub(super) dupacks: Vec<f64>,
    /// The acceptable ACK: the first one that acknowledges [`FIRST`].
    pub(super) acked: f64,
    /// The time of each ACK of new data, and the bytes acknowledged so far.
    progress: Vec<(f64, u64)>,
    /// The time and number of each segment sent, and whether it is a retransmission.
    sent: Vec<(f64, u64, bool)>,
    /// The time of each ACK, and the last segment that it covers.
    acks: Vec<(f64, u64)>,
    /// The time of each window change, cwnd and ssthresh.
    windows: Vec<(f64, f64, f64)>,
}

impl Timeline {
    pub(super) fn of(
        effort: &Effort,
        profile: Profile,
        recipe: &str,
        drop: &[&str],
        handover: &str,
    ) -> Result<Self, WorldError> {
        let host = |profile: Profile| {
            profile.with(|it| {
                it.handshake.mss = Some(MSS);
                it.acks.policy = AckPolicy::EVERY;
            })
        };
        let data = u64::from(MSS - if profile.handshake.timestamps { 12 } else { 0 });
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
        Ok(Self::from_world(&mut effort.once(&plan)?, data))
    }

    /// Reads the events of a run. `data` is the number of payload bytes per segment.
    fn from_world(world: &mut World, data: u64) -> Self {
        let first = (FIRST - 1) * data + 1;
        let decisions = world.decisions(0).to_vec();
        let is_timeout = |decision: &&Decision| matches!(decision.what, What::Timeout { .. });
        let timeouts: Vec<_> = decisions.iter().filter(is_timeout).map(|d| d.at.as_secs_f64()).collect();
        let begun = timeouts.first().copied().unwrap_or(f64::INFINITY);
        let window = |decision: &Decision| match decision.what {
            What::Window { cwnd, ssthresh, .. } => Some((decision.at.as_secs_f64(), cwnd, ssthresh)),
            _ => None,
        };
        let mut timeline = Self {
            timeouts,
            resent: Vec::new(),
            dupacks: Vec::new(),
            acked: f64::NAN,
            progress: Vec::new(),
            sent: Vec::new(),
            acks: Vec::new(),
            windows: decisions.iter().filter_map(window).collect(),
        };
        for DevicePacket { at, kind } in world.device_packets(0) {
            let at = at.as_secs_f64();
            match *kind {
                PacketKind::Sent { offset, copy, .. } => {
                    if offset == first && copy > 1 {
                        timeline.resent.push(at);
                    }
                    if offset > 0 {
                        timeline.sent.push((at, (offset - 1) / data + 1, copy > 1));
                    }
                }
                PacketKind::Ack { ack, .. } => {
                    timeline.acks.push((at, ack.saturating_sub(1) / data));
                    if ack == first && at > begun {
                        timeline.dupacks.push(at);
                    } else {
                        timeline.progress.push((at, ack.saturating_sub(1)));
                    }
                    if ack > first && timeline.acked.is_nan() {
                        timeline.acked = at;
                    }
                }
            }
        }
        timeline
    }

    /// Seconds from the first timeout to `at`.
    pub(super) fn since(&self, at: f64) -> f64 {
        at - self.timeouts.first().copied().unwrap_or(f64::NAN)
    }

    /// Number of the duplicate ACK that triggered the second retransmission of [`FIRST`].
    pub(super) fn trigger(&self) -> Option<usize> {
        let second = *self.resent.get(1)?;
        Some(self.dupacks.iter().position(|at| *at == second)? + 1)
    }

    /// Seconds from the first timeout to the second retransmission of [`FIRST`]. NaN if there was none.
    pub(super) fn second_retransmission(&self) -> f64 {
        self.resent.get(1).map_or(f64::NAN, |at| self.since(*at))
    }

    /// The time and the cause of the second retransmission, as text.
    pub(super) fn second_retransmission_shown(&self) -> String {
        if self.resent.len() < 2 {
            return "never".to_owned();
        }
        let cause = match self.trigger() {
            Some(nth) => format!("duplicate ACK {nth}"),
            None => "timeout".to_owned(),
        };
        format!("{:.2} ({cause})", self.second_retransmission())
    }

    /// cwnd and ssthresh at a time in seconds after the first timeout.
    pub(super) fn window_at(&self, since: f64) -> (f64, f64) {
        let before = self.windows.iter().rev().find(|(at, ..)| self.since(*at) <= since);
        before.map_or((f64::NAN, f64::NAN), |(_, cwnd, ssthresh)| (*cwnd, *ssthresh))
    }

    /// cwnd and ssthresh at the acceptable ACK.
    pub(super) fn window(&self) -> (f64, f64) {
        self.window_at(self.since(self.acked))
    }

    /// cwnd before the first timeout.
    pub(super) fn cwnd_prev(&self) -> f64 {
        self.window_at(-1e-9).0
    }

    /// Throughput in kbit/s from the first SYN until this number of bytes is acknowledged.
    pub(super) fn throughput(&self, octets: u64) -> f64 {
        octets as f64 * 8e-3 / self.reached(octets).0
    }

    /// Seconds from the acceptable ACK until this number of further bytes is acknowledged.
    pub(super) fn afterwards(&self, octets: u64) -> f64 {
        let acked = self.progress.iter().find(|(at, _)| *at >= self.acked).map_or(0, |(_, acked)| *acked);
        self.reached(acked + octets).0 - self.acked
    }

    /// The first ACK with which this number of bytes was acknowledged.
    fn reached(&self, octets: u64) -> (f64, u64) {
        *self.progress.iter().find(|(_, acked)| *acked >= octets).unwrap_or(&(f64::INFINITY, 0))
    }

    /// The time-sequence graph around the loss. `paper`: times of FIRST's retransmissions in the paper, in seconds after
    /// the first timeout.
    pub(super) fn sequence_chart(&self, title: &str, paper: &[f64]) -> Chart {
        let shown = |at: f64| (-4.0..9.0).contains(&self.since(at));
        let segments = |retransmissions: bool| {
            let sent = self.sent.iter();
            let sent = sent.filter(move |(at, _, resent)| *resent == retransmissions && shown(*at));
            sent.map(|(at, segment, _)| (self.since(*at), *segment as f64)).collect::<Vec<_>>()
        };
        let acks = self.acks.iter().filter(|(at, _)| shown(*at));
        Chart {
            title: title.to_owned(),
            x: Axis::new("seconds after the first timeout", Scale::ValueRange),
            y: Axis::new("segment", Scale::FromZero),
            curves: vec![
                Curve::dots("segments", segments(false)),
                Curve::dots("retransmissions (R)", segments(true))
                    .with_paper_values(paper.iter().map(|since| (*since, FIRST as f64))),
                Curve::dots("ACKs", acks.map(|(at, segment)| (self.since(*at), *segment as f64))),
            ],
        }
    }

    /// The sender's state variables around the loss. `paper`: an ssthresh in the paper, with its time in seconds after the
    /// first timeout.
    pub(super) fn window_chart(&self, title: &str, paper: Option<(f64, f64)>) -> Chart {
        let shown = |at: f64| (-4.0..9.0).contains(&self.since(at));
        let curve = |name: &str, value: fn(&(f64, f64, f64)) -> f64| {
            let windows = self.windows.iter().filter(|window| shown(window.0) && value(window).is_finite());
            let dots = Curve::dots(name, windows.map(|window| (self.since(window.0), value(window))));
            Curve { style: Style::Line, ..dots }
        };
        Chart {
            title: title.to_owned(),
            x: Axis::new("seconds after the first timeout", Scale::ValueRange),
            y: Axis::new("segments", Scale::FromZero),
            curves: vec![
                curve("cwnd", |window| window.1),
                curve("ssthresh", |window| window.2).with_paper_values(paper),
            ],
        }
    }
}
