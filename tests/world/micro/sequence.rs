//! One flow in virtual time in the form that the papers use: a time-sequence graph of segments, counted from
//! 1, next to cwnd and ssthresh. A test prints it when it fails.

use std::fmt::{self, Display, Formatter};

use airlink::scenario::Scenario;
use airtcp::profile::{AckPolicy, Profile};
use airtcp::recovery::{Counters, Decision, What};
use airtcp_sim::world::{DevicePacket, Flow, HostSpec, Length, PacketKind, Watch, World, WorldConfig};
use airwire::time::{Duration, Instant};

/// One transfer. Its receiver does not delay ACKs, as in P0 §3.1, so that each event has one ACK.
pub(crate) struct Run<'a> {
    pub(crate) profile: Profile,
    pub(crate) recipe: &'a str,
    pub(crate) scenario: String,
    pub(crate) mss: u16,
    pub(crate) segments: u64,
    /// The receive window in segments.
    pub(crate) rwnd: usize,
}

impl Run<'_> {
    pub(crate) fn sequence(self) -> Sequence {
        let Self { profile, recipe, scenario, mss, segments, rwnd } = self;
        let host = |profile: Profile| {
            profile.with(|it| {
                it.handshake.mss = Some(mss);
                it.acks.policy = AckPolicy::EVERY;
            })
        };
        let header = if profile.handshake.timestamps { 12 } else { 0 };
        let data = u64::from(mss - header);
        let mut world = World::new(WorldConfig {
            scenario: Scenario::parse(&scenario, "micro").unwrap(),
            seed: 1,
            fixed: HostSpec { profile: host(profile), recipe: recipe.parse().unwrap() },
            mobile: HostSpec { profile: host(HostSpec::receiver().profile), ..HostSpec::receiver() },
            flows: vec![Flow {
                watch: Watch::Packets,
                receive_buffer: Some(rwnd * usize::from(mss)),
                ..Flow::down(Length::Octets(segments * data))
            }],
        })
        .unwrap();
        let complete = world.run_to_end(Duration::from_secs(600)).unwrap();
        let sequence = Sequence::of(&mut world, data, segments);
        assert!(complete, "{recipe} does not finish\n{sequence}");
        sequence
    }
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Event {
    /// `copy` is 1 for the first transmission.
    Sent {
        segment: u64,
        copy: u32,
    },
    Dropped {
        segment: u64,
        copy: u32,
    },
    /// Acknowledges everything up to and including this segment.
    Ack {
        segment: u64,
    },
    /// The n-th consecutive duplicate ACK, and the right edge of its SACK blocks.
    Dupack {
        n: u64,
        edge: u64,
    },
    Timeout {
        segment: u64,
    },
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Row {
    /// Time in seconds.
    pub(crate) at: f64,
    pub(crate) event: Event,
    pub(crate) cwnd: f64,
    pub(crate) ssthresh: f64,
}

pub(crate) struct Sequence {
    pub(crate) rows: Vec<Row>,
    pub(crate) counters: Counters,
}

impl Sequence {
    fn of(world: &mut World, data: u64, segments: u64) -> Self {
        let segment = |offset: u64| (offset - 1) / data + 1;
        let decisions = world.decisions(0).to_vec();
        let timeouts = decisions.iter().filter_map(|decision| match decision.what {
            What::Timeout { offset } => Some((decision.at, Event::Timeout { segment: segment(offset) })),
            _ => None,
        });
        let packets = packet_events(world.device_packets(0), data, segments);
        let losses = world.losses(0).as_slice().iter();
        let drops =
            losses.map(|lost| (lost.at, Event::Dropped { segment: segment(lost.offset), copy: lost.copy }));
        let events = timeouts.chain(packets).chain(drops);
        let mut rows: Vec<Row> =
            events.map(|(at, event)| Row { at: at.as_secs_f64(), event, cwnd: 0.0, ssthresh: 0.0 }).collect();
        rows.sort_by(|a, b| a.at.total_cmp(&b.at));
        set_windows(&mut rows, &decisions);
        Self { rows, counters: world.result(0).counters }
    }

    /// Returns the time at which copy `copy` of `segment` was sent.
    pub(crate) fn sent(&self, segment: u64, copy: u32) -> Option<f64> {
        self.row(Event::Sent { segment, copy }).map(|row| row.at)
    }

    pub(crate) fn row(&self, event: Event) -> Option<Row> {
        self.rows.iter().copied().find(|row| row.event == event)
    }

    /// Returns the times at which the timer expired.
    pub(crate) fn timeouts(&self) -> Vec<f64> {
        self.rows.iter().filter(|row| matches!(row.event, Event::Timeout { .. })).map(|row| row.at).collect()
    }

    /// Returns the retransmitted segments in order.
    pub(crate) fn resent(&self) -> Vec<u64> {
        let retransmitted = |row: &Row| match row.event {
            Event::Sent { segment, copy } if copy > 1 => Some(segment),
            _ => None,
        };
        self.rows.iter().filter_map(retransmitted).collect()
    }

    /// Returns the last row at or before `at`.
    pub(crate) fn at(&self, at: f64) -> Option<Row> {
        self.rows.iter().copied().rfind(|row| row.at <= at)
    }

    /// Returns the first row at which everything up to `segment` is acknowledged.
    pub(crate) fn acked(&self, segment: u64) -> Option<Row> {
        let covers = |row: &&Row| matches!(row.event, Event::Ack { segment: to } if to >= segment);
        self.rows.iter().find(covers).copied()
    }
}

/// Returns the data segments and the ACKs at the sender's device. A segment has `data` bytes.
fn packet_events(packets: &[DevicePacket], data: u64, segments: u64) -> Vec<(Instant, Event)> {
    let is_data = |offset: u64| (1..=segments * data).contains(&offset);
    let (mut n, mut una) = (0, 0);
    let event = |packet: &DevicePacket| match &packet.kind {
        PacketKind::Sent { offset, copy, .. } if is_data(*offset) => {
            Some(Event::Sent { segment: (*offset - 1) / data + 1, copy: *copy })
        }
        PacketKind::Sent { .. } => None,
        // A duplicate ACK by its content. A sender may not count it as one (ns-2's Sack1 after a timeout).
        PacketKind::Ack { ack, duplicate, sacked } if *duplicate || *ack == una && !sacked.is_empty() => {
            n += 1;
            let edge = sacked.iter().map(|(_, right)| right.div_ceil(data) - 1).max().unwrap_or(0);
            Some(Event::Dupack { n, edge })
        }
        PacketKind::Ack { ack, .. } => {
            (n, una) = (0, *ack);
            Some(Event::Ack { segment: (*ack - 1) / data })
        }
    };
    let times = packets.iter().map(|packet| packet.at);
    times.zip(packets.iter().map(event)).filter_map(|(at, event)| Some((at, event?))).collect()
}

/// Sets the windows of each row to their values after the event.
fn set_windows(rows: &mut [Row], decisions: &[Decision]) {
    let mut decisions = decisions.iter().peekable();
    let mut window = (0.0, 0.0);
    for row in rows {
        while let Some(decision) = decisions.next_if(|decision| decision.at.as_secs_f64() <= row.at) {
            if let What::Window { cwnd, ssthresh, .. } = decision.what {
                window = (cwnd, ssthresh);
            }
        }
        (row.cwnd, row.ssthresh) = window;
    }
}

impl Display for Sequence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const COLUMNS: u64 = 64;
        let titles = format!("{:>10} {:<24} {:>7} {:>8}", "s", "event", "cwnd", "ssthresh");
        writeln!(f, "{titles}  segment (modulo {COLUMNS})")?;
        let mut una = 1;
        for Row { at, event, cwnd, ssthresh } in &self.rows {
            let (text, segment, mark) = match *event {
                Event::Sent { segment, copy: 1 } => (format!("sent {segment}"), segment, '.'),
                Event::Sent { segment, copy } => (format!("retransmit {segment} ({copy})"), segment, 'R'),
                Event::Dropped { segment, copy } => (format!("dropped {segment} ({copy})"), segment, 'x'),
                Event::Ack { segment } => {
                    una = segment + 1;
                    (format!("ack {segment}"), segment, '-')
                }
                Event::Dupack { n, edge: 0 } => (format!("dupack {n}"), una, '='),
                Event::Dupack { n, edge } => (format!("dupack {n}, SACK to {edge}"), edge, 'S'),
                Event::Timeout { segment } => (format!("timeout {segment}"), segment, 'T'),
            };
            let indent = " ".repeat((segment.saturating_sub(1) % COLUMNS) as usize);
            writeln!(f, "{at:>10.4} {text:<24} {cwnd:>7.2} {ssthresh:>8.2}  {indent}{mark}")?;
        }
        write!(f, "{:?}", self.counters)
    }
}
