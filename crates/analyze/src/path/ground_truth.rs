//! Compares airlink's record of each packet (docs/reference/link-views.md) with the captures.
//!
//! A captured packet is matched to its events by the time when it enters and by its length. Captures and
//! events list packets in the same order, but the events also include packets that are not TCP.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use airwire::Cause;

use super::Way;
use super::findings::TruthFindings;
use crate::airlink_events::{AirlinkEvent, EventReader, EventsError};
use aircaptures::packet::Packet;

/// Nanoseconds by which a packet's timestamps may differ between airlink and a capture made by another
/// program.
const NEAR: i64 = 20_000_000;

/// The reason why airlink dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DropReason {
    Loss(Cause),
    /// A stage could not carry the packet.
    Refused,
}

/// The result of the captures for one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Said {
    Arrived,
    Lost {
        gap: usize,
    },
    /// The captures end too early to decide.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left(Whole),
    Dropped(DropReason),
}

/// The integrity of a packet that leaves the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Whole {
    #[default]
    Yes,
    /// The packet is damaged, so a receiver drops it. It counts as lost by the radio link, as in airtcp's
    /// ground truth.
    No,
    /// The packet is changed, but no checksum detects it.
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

/// The state after the events read so far.
#[derive(Default)]
struct Told {
    /// Packets that are not yet matched to a captured packet: downwards and upwards.
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

    /// Returns the number of a captured packet in the events.
    pub(super) fn entered(&mut self, way: Way, at: i64, packet: &Packet) -> Option<u64> {
        self.told.entered(way, at, packet)
    }

    /// Compares the captures' result for a packet with the events. Returns the reason if airlink dropped it.
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
            // Packets of a traffic source enter at a stage. They are not in any capture.
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
        // The headers take 40 to 120 bytes: IPv4 or IPv6, with or without options.
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
            // The changed headers make the arriving packet a different packet for the captures.
            End::Left(Whole::NobodyKnows) if said != Said::Arrived => return findings.altered_arrivals += 1,
            End::Left(Whole::Yes | Whole::NobodyKnows) => None,
            End::Left(Whole::No) => Some(DropReason::Loss(Cause::Radio)),
            End::Dropped(why) => Some(why),
        };
        match (lost, said) {
            (None, Said::Arrived) => findings.arrivals_found += 1,
            (None, Said::Lost { .. }) => findings.false_losses += 1,
            (None, Said::Nothing) => findings.arrivals_undetermined += 1,
            (Some(_), Said::Arrived) => findings.losses_missed += 1,
            (Some(_), Said::Nothing) => findings.losses_undetermined += 1,
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

    /// Compares `said` with the events of a packet: it enters, then `happened` occurs, and then it leaves.
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

    /// The stage `corrupt` in docs/reference/scenario/other-stages.md: damaged packets count as lost by the
    /// radio link.
    #[test]
    fn detectably_damaged_packet_counts_as_lost() {
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
        assert_eq!((why, found), (None, TruthFindings { altered_arrivals: 1, ..none }));
    }
}
