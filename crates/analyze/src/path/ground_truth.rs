//! What airlink says about each packet (docs/views.md), read beside the captures.
//!
//! A packet of the captures is found in the events by when it enters and how long it is: both list packets in the
//! same order, and the events have some more, which are not TCP.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use airwire::Cause;

use super::Way;
use super::findings::TruthFindings;
use crate::airlink_events::{AirlinkEvent, EventReader, EventsError};
use crate::packet::Packet;

/// Nanoseconds by which a capture that airlink did not make may see a packet earlier or later than airlink.
const NEAR: i64 = 20_000_000;

/// Why airlink dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    Loss(Cause),
    /// A stage could not carry it.
    Refused,
}

/// What the captures say of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Arrived,
    Lost {
        gap: usize,
    },
    /// The captures end too early to tell.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left,
    Dropped(DropReason),
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    end: Option<End>,
    said: Option<Said>,
}

#[derive(Clone, Copy, Debug)]
struct Entered {
    event: u64,
    at: i64,
    bytes: u64,
}

pub(super) struct GroundTruth {
    events: EventReader,
    /// The time of the last event that was read.
    read_to: i64,
    has_ended: bool,
    told: Told,
}

/// What the events up to here say.
#[derive(Default)]
struct Told {
    /// Packets that are not yet found in a capture: those that go forth, and those that go back.
    entered: [VecDeque<Entered>; 2],
    inside: BTreeMap<u64, State>,
    findings: TruthFindings,
}

impl GroundTruth {
    pub(super) fn open(path: &Path, captures: usize) -> Result<Self, EventsError> {
        let findings = TruthFindings {
            congestion_between: vec![0; captures - 1],
            radio_between: vec![0; captures - 1],
            ..TruthFindings::default()
        };
        Ok(Self {
            events: EventReader::open(path)?,
            read_to: i64::MIN,
            has_ended: false,
            told: Told { findings, ..Told::default() },
        })
    }

    /// Reads all events up to [`NEAR`] after `at`.
    pub(super) fn read_until(&mut self, at: i64) -> Result<(), EventsError> {
        let zero = self.events.wall_zero();
        while !self.has_ended && self.read_to <= at.saturating_add(NEAR) {
            match self.events.read()? {
                Some(event) => {
                    self.read_to = zero.saturating_add(event.t);
                    self.told.take(&event, self.read_to);
                }
                None => self.has_ended = true,
            }
        }
        Ok(())
    }

    /// The number that a packet has in the events.
    pub(super) fn entered(&mut self, way: Way, at: i64, packet: &Packet) -> Option<u64> {
        self.told.entered(way, at, packet)
    }

    /// Returns why it was dropped, if it was.
    pub(super) fn compare(&mut self, event: u64, said: Said) -> Option<DropReason> {
        self.told.compare(event, said)
    }

    pub(super) fn finish(self) -> TruthFindings {
        self.told.findings
    }
}

impl Told {
    fn take(&mut self, event: &AirlinkEvent<'_>, at: i64) {
        let end = match &*event.what {
            // A packet of a traffic source enters at a stage: no capture has it.
            "entered" if event.stage.is_none() => {
                let way = usize::from(event.direction != "down");
                self.entered[way].push_back(Entered { event: event.packet, at, bytes: event.bytes });
                self.inside.insert(event.packet, State::default());
                return;
            }
            "left" => End::Left,
            "dropped" => End::Dropped(match event.cause.as_deref() {
                Some("congestion") => DropReason::Loss(Cause::Congestion),
                Some("radio") => DropReason::Loss(Cause::Radio),
                _ => DropReason::Refused,
            }),
            _ => return,
        };
        let Some(state) = self.inside.get_mut(&event.packet) else { return };
        state.end = Some(end);
        if let Some(said) = state.said {
            self.inside.remove(&event.packet);
            self.count(end, said);
        }
    }

    fn entered(&mut self, way: Way, at: i64, packet: &Packet) -> Option<u64> {
        let waiting = &mut self.entered[usize::from(way == Way::Back)];
        while let Some(old) = waiting.front().filter(|entered| entered.at < at - NEAR) {
            self.inside.remove(&old.event);
            waiting.pop_front();
        }
        // With IPv4 or IPv6, with or without options.
        let lengths = u64::from(packet.len) + 40..=u64::from(packet.len) + 120;
        let fits = |entered: &Entered| lengths.contains(&entered.bytes) && entered.at <= at + NEAR;
        let exact = waiting.iter().position(|entered| entered.at == at && fits(entered));
        let found = exact.or_else(|| waiting.iter().position(fits)).and_then(|place| waiting.remove(place));
        match found {
            Some(_) => self.findings.known += 1,
            None => self.findings.unknown += 1,
        }
        found.map(|entered| entered.event)
    }

    fn compare(&mut self, event: u64, said: Said) -> Option<DropReason> {
        let state = self.inside.get_mut(&event)?;
        let Some(end) = state.end else {
            state.said = Some(said);
            return None;
        };
        self.inside.remove(&event);
        self.count(end, said);
        match end {
            End::Left => None,
            End::Dropped(why) => Some(why),
        }
    }

    fn count(&mut self, end: End, said: Said) {
        let findings = &mut self.findings;
        match (end, said) {
            (End::Left, Said::Arrived) => findings.arrivals_found += 1,
            (End::Left, Said::Lost { .. }) => findings.losses_invented += 1,
            (End::Left, Said::Nothing) => findings.arrivals_not_told += 1,
            (End::Dropped(_), Said::Arrived) => findings.losses_missed += 1,
            (End::Dropped(_), Said::Nothing) => findings.losses_not_told += 1,
            (End::Dropped(why), Said::Lost { gap }) => {
                findings.losses_found += 1;
                match why {
                    DropReason::Loss(Cause::Congestion) => findings.congestion_between[gap] += 1,
                    DropReason::Loss(Cause::Radio) => findings.radio_between[gap] += 1,
                    DropReason::Refused => {}
                }
            }
        }
    }
}
