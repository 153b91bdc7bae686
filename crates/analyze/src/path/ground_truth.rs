//! airlink's record of each packet (docs/reference/link-views.md), compared with the captures.
//!
//! A packet of the captures is found in the events by when it enters and how long it is: both list packets in the
//! same order, and the events have some more, which are not TCP.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use airwire::Cause;

use super::Way;
use super::findings::TruthFindings;
use crate::airlink_events::{AirlinkEvent, EventReader, EventsError};
use aircaptures::packet::Packet;

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
    Left(Whole),
    Dropped(DropReason),
}

/// What a packet is when it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whole {
    #[default]
    Yes,
    /// A receiver drops it. The radio has lost it, as where airtcp looks for the truth about a loss.
    No,
    /// No checksum finds what was changed.
    NobodyKnows,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    whole: Whole,
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
            "truncated" => return self.damage(event.packet, Whole::No),
            "corrupted" => {
                let whole = if event.found { Whole::No } else { Whole::NobodyKnows };
                return self.damage(event.packet, whole);
            }
            "left" => End::Left(self.inside.get(&event.packet).map_or(Whole::Yes, |state| state.whole)),
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

    fn damage(&mut self, packet: u64, whole: Whole) {
        if let Some(state) = self.inside.get_mut(&packet).filter(|state| state.whole != Whole::No) {
            state.whole = whole;
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
            End::Left(Whole::Yes | Whole::NobodyKnows) => None,
            End::Left(Whole::No) => Some(DropReason::Loss(Cause::Radio)),
            End::Dropped(why) => Some(why),
        }
    }

    fn count(&mut self, end: End, said: Said) {
        let findings = &mut self.findings;
        let lost = match end {
            // Its headers were changed, and what arrived is another packet for all that the captures can know.
            End::Left(Whole::NobodyKnows) if said != Said::Arrived => return findings.arrived_as_others += 1,
            End::Left(Whole::Yes | Whole::NobodyKnows) => None,
            End::Left(Whole::No) => Some(DropReason::Loss(Cause::Radio)),
            End::Dropped(why) => Some(why),
        };
        match (lost, said) {
            (None, Said::Arrived) => findings.arrivals_found += 1,
            (None, Said::Lost { .. }) => findings.losses_invented += 1,
            (None, Said::Nothing) => findings.arrivals_not_told += 1,
            (Some(_), Said::Arrived) => findings.losses_missed += 1,
            (Some(_), Said::Nothing) => findings.losses_not_told += 1,
            (Some(why), Said::Lost { gap }) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of a packet to which this happened and then left.
    fn compared(happened: &str, said: Said) -> (Option<DropReason>, TruthFindings) {
        let findings = TruthFindings { radio_between: vec![0], ..TruthFindings::default() };
        let mut told = Told { findings, ..Told::default() };
        for line in [
            r#"{"t":1,"event":"entered","packet":7,"direction":"down","bytes":100}"#,
            happened,
            r#"{"t":3,"event":"left","packet":7,"direction":"down","bytes":100}"#,
        ] {
            told.take(&serde_json::from_str(line).unwrap(), 1);
        }
        let why = told.compare(7, said);
        (why, told.findings)
    }

    /// [docs/reference/scenario/other-stages.md](../../../../docs/reference/scenario/other-stages.md#corrupt): it counts as one of the radio.
    #[test]
    fn who_leaves_so_that_a_receiver_drops_it_is_lost() {
        let none = TruthFindings { radio_between: vec![0], ..TruthFindings::default() };
        for happened in [
            r#"{"t":2,"event":"truncated","packet":7,"direction":"down","stage":"x","from":100,"to":50}"#,
            r#"{"t":2,"event":"corrupted","packet":7,"direction":"down","stage":"x","bits":[3],"found":true}"#,
        ] {
            let (why, found) = compared(happened, Said::Lost { gap: 0 });
            assert_eq!(why, Some(DropReason::Loss(Cause::Radio)));
            assert_eq!(found, TruthFindings { losses_found: 1, radio_between: vec![1], ..none.clone() });
            let (_, missed) = compared(happened, Said::Arrived);
            assert_eq!(missed, TruthFindings { losses_missed: 1, ..none.clone() });
        }
        let unseen = r#"{"t":2,"event":"corrupted","packet":7,"direction":"down","stage":"x","bits":[3,19],"found":false}"#;
        let (why, found) = compared(unseen, Said::Arrived);
        assert_eq!((why, found), (None, TruthFindings { arrivals_found: 1, ..none.clone() }));
        let (why, found) = compared(unseen, Said::Lost { gap: 0 });
        assert_eq!((why, found), (None, TruthFindings { arrived_as_others: 1, ..none }));
    }
}
