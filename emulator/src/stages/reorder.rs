//! Holds some packets back, so that a number of later packets overtakes them or a time passes.

use std::collections::{BTreeMap, BTreeSet};

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::{Affects, Chooser};
use super::duplex::{OneWay, OneWaySettings};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{Event, Outbox};

/// The settings of one direction: either `distance`, which is 1 by default, or `time`.
///
/// With `distance`, a chosen packet follows after this number of later packets that are not chosen. With
/// `time`, it is held for this time, and packets that arrive in the meantime overtake it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderConfig {
    /// Probability that a packet of the affected kind is chosen.
    pub chance: Probability,
    /// Number of packets that overtake a chosen one.
    pub distance: Option<u32>,
    /// With `distance`: upper bound of the distance, which is uniform between `distance` and this.
    pub distance_up_to: Option<u32>,
    /// With `distance`: maximum time for which a chosen packet is held. Defaults to 100 ms.
    pub at_most: Option<Duration>,
    /// In place of `distance`: time for which a chosen packet is held.
    pub time: Option<Duration>,
    /// With `time`: upper bound of the time, which is uniform between `time` and this.
    pub time_up_to: Option<Duration>,
    /// The kind of packets that can be chosen.
    #[serde(default)]
    pub affects: Affects,
}

/// Default of `at_most`: longer than most gaps in a stream, shorter than most retransmission timers.
const DEFAULT_AT_MOST: Duration = Duration::from_millis(100);

/// The condition on which a chosen packet is released.
#[derive(Clone, Copy, Debug)]
enum HoldRule {
    Distance { min: u32, max: u32, at_most: Duration },
    Time { min: Duration, max: Duration },
}

impl ReorderConfig {
    fn hold_rule(&self) -> Result<HoldRule, Invalid> {
        let invalid = |key: &str, message: &str| Err(Invalid::new(key, message));
        match (self.distance, self.time) {
            (Some(_), Some(_)) => {
                invalid("time", "`distance` and `time` cannot be combined: remove one of them")
            }
            (Some(0), None) => invalid("distance", "must be at least 1"),
            (None, Some(Duration::ZERO)) => invalid("time", "must be above 0: write for example \"10ms\""),
            (_, None) if self.time_up_to.is_some() => {
                invalid("time_up_to", "valid only with `time`: remove it, or add `time`")
            }
            (distance, None) => {
                let min = distance.unwrap_or(1);
                let max = self.distance_up_to.unwrap_or(min);
                let at_most = self.at_most.unwrap_or(DEFAULT_AT_MOST);
                if max < min {
                    return invalid("distance_up_to", &format!("must be at least `distance` ({min})"));
                }
                if at_most.is_zero() {
                    return invalid("at_most", "must be above 0: write for example \"100ms\"");
                }
                Ok(HoldRule::Distance { min, max, at_most })
            }
            (None, Some(min)) => {
                let only_with_distance = "valid only with `distance`, but `time` is set: remove one of them";
                if self.distance_up_to.is_some() {
                    return invalid("distance_up_to", only_with_distance);
                }
                if self.at_most.is_some() {
                    return invalid("at_most", only_with_distance);
                }
                let max = self.time_up_to.unwrap_or(min);
                if max < min {
                    return invalid("time_up_to", &format!("must be at least `time` ({min})"));
                }
                Ok(HoldRule::Time { min, max })
            }
        }
    }
}

impl OneWaySettings for ReorderConfig {
    type Stage = Reorder;

    fn validate(&self) -> Result<(), Invalid> {
        self.hold_rule().map(|_rule| ())
    }

    fn does_nothing(&self) -> Option<&'static str> {
        (self.chance.value() == 0.0).then_some("`chance` is 0")
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Reorder, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Reorder::new(self, stream("chosen"), stream("kept")).map_err(|invalid| invalid.to_string())
    }
}

/// One direction of the stage.
#[derive(Debug)]
pub struct Reorder {
    chooser: Chooser,
    rule: HoldRule,
    /// Draws one number for each packet: its distance or time.
    hold: Stream,
    /// Held packets by number, in order of arrival.
    held: BTreeMap<u64, Held>,
    /// Times at which held packets are released at the latest, each with the packet's number.
    due: BTreeSet<(Instant, u64)>,
    /// Values of `passed` at which held packets are released, each with the packet's number.
    release_count: BTreeSet<(u64, u64)>,
    packets: u64,
    /// Highest number of a forwarded packet.
    latest: u64,
    /// Packets that were forwarded without being held.
    passed: u64,
    chosen: u64,
    overtaken: u64,
    by_time: u64,
}

#[derive(Debug)]
struct Held {
    packet: Packet,
    latest_release: Instant,
    release_count: u64,
}

impl Reorder {
    /// Creates the stage, or returns an error if the settings are invalid. `chosen` selects packets, `hold`
    /// determines distances or times.
    pub fn new(config: &ReorderConfig, chosen: Stream, hold: Stream) -> Result<Self, Invalid> {
        Ok(Self {
            chooser: Chooser::new(config.chance, config.affects, chosen),
            rule: config.hold_rule()?,
            hold,
            held: BTreeMap::new(),
            due: BTreeSet::new(),
            release_count: BTreeSet::new(),
            packets: 0,
            latest: 0,
            passed: 0,
            chosen: 0,
            overtaken: 0,
            by_time: 0,
        })
    }

    /// Returns the time and the value of `passed` at which the packet is released. Draws one number with any
    /// settings.
    fn draw_release(&mut self, now: Instant) -> (Instant, u64) {
        match self.rule {
            HoldRule::Distance { min, max, at_most } => {
                let more = self.hold.below(u64::from(max - min) + 1);
                (now + at_most, self.passed + u64::from(min) + more)
            }
            HoldRule::Time { min, max } => {
                let more = self.hold.below((max - min).as_nanos() + 1);
                (now + min + Duration::from_nanos(more), u64::MAX)
            }
        }
    }

    fn release(&mut self, number: u64, out: &mut Outbox) {
        let Some(Held { packet, latest_release, release_count }) = self.held.remove(&number) else { return };
        self.due.remove(&(latest_release, number));
        self.release_count.remove(&(release_count, number));
        if self.latest > number {
            self.overtaken += 1;
            if out.records_events() {
                let later_held = self.held.range(number..).count() as u64;
                out.note(&packet, Event::Overtaken { packets: self.packets - number - later_held });
            }
        }
        self.latest = self.latest.max(number);
        out.forward(packet);
    }
}

impl OneWay for Reorder {
    type Config = ReorderConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        // The previous stage may forward a packet at the moment when a held one is due.
        self.handle_deadline(now, out);
        self.packets += 1;
        let (latest_release, release_count) = self.draw_release(now);
        if self.chooser.chooses(&packet) {
            out.note(&packet, Event::Held { until: latest_release });
            self.chosen += 1;
            self.due.insert((latest_release, self.packets));
            self.release_count.insert((release_count, self.packets));
            self.held.insert(self.packets, Held { packet, latest_release, release_count });
            return;
        }
        self.passed += 1;
        self.latest = self.packets;
        out.forward(packet);
        while let Some((_, number)) =
            self.release_count.first().copied().filter(|(count, _)| *count <= self.passed)
        {
            self.release(number, out);
        }
    }

    fn handle_deadline(&mut self, now: Instant, out: &mut Outbox) {
        while let Some((_, number)) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.by_time += 1;
            self.release(number, out);
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    fn held(&self) -> usize {
        self.held.len()
    }

    fn stats(&self) -> Value {
        json!({
            "packets_in": self.packets,
            "chosen": self.chosen,
            "overtaken": self.overtaken,
            "by_time": self.by_time,
            "held": self.held.len(),
        })
    }

    /// Packets that are already held keep their conditions.
    fn reconfigure(&mut self, _now: Instant, config: &ReorderConfig, _out: &mut Outbox) {
        self.chooser.set(config.chance, config.affects);
        if let Ok(rule) = config.hold_rule() {
            self.rule = rule;
        }
    }
}

#[cfg(test)]
mod tests;
