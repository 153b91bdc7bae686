//! Compares airlink's record of each packet (docs/reference/link-views.md) with the captures.
//!
//! A captured packet is matched to its events by the time when it enters and by its length. Captures and
//! events list packets in the same order, but the events also include packets that are not TCP.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;

use aircaptures::packet::Packet;
use airwire::Cause;
use airwire::direction::{Direction, PerDirection};

use super::findings::TruthFindings;
use crate::airlink_events::{AirlinkEvent, EventReader, EventsError};

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
pub(super) enum Observed {
    Arrived,
    Lost {
        gap: usize,
    },
    /// The captures end too early to decide.
    Undetermined,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Left(Integrity),
    Dropped(DropReason),
}

impl End {
    /// Returns why the packet did not arrive, or `None` if it arrived.
    fn drop_reason(self) -> Option<DropReason> {
        match self {
            Self::Left(Integrity::Intact | Integrity::Unknown) => None,
            Self::Left(Integrity::Damaged) => Some(DropReason::Loss(Cause::Radio)),
            Self::Dropped(reason) => Some(reason),
        }
    }
}

/// The integrity of a packet that leaves the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Integrity {
    #[default]
    Intact,
    /// A receiver drops the packet. It counts as lost by the radio link, as in airtcp's ground truth.
    Damaged,
    /// The packet is changed, but no checksum detects it.
    Unknown,
}

/// A packet on the path.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    integrity: Integrity,
    end: Option<End>,
    observed: Option<Observed>,
}

/// The event of a packet that enters.
#[derive(Clone, Copy, Debug)]
struct Entry {
    packet: u64,
    at: i64,
    bytes: u64,
}

pub(super) struct GroundTruth {
    events: EventReader,
    /// The time of the last event that was read.
    read_to: i64,
    has_ended: bool,
    pub(super) packets: Packets,
}

/// The packets on the path, according to the events read so far.
#[derive(Default)]
pub(super) struct Packets {
    /// Packets that are not yet matched to a captured packet: downwards and upwards.
    unmatched: PerDirection<VecDeque<Entry>>,
    on_path: BTreeMap<u64, State>,
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
            packets: Packets { findings, ..Packets::default() },
        })
    }

    /// Reads all events up to [`NEAR`] after `at`.
    pub(super) fn read_until(&mut self, at: i64) -> Result<(), EventsError> {
        let zero = self.events.wall_zero();
        while !self.has_ended && self.read_to <= at.saturating_add(NEAR) {
            match self.events.read()? {
                Some(event) => {
                    self.read_to = zero.saturating_add(event.t);
                    self.packets.process(&event, self.read_to);
                }
                None => self.has_ended = true,
            }
        }
        Ok(())
    }

    pub(super) fn finish(self) -> TruthFindings {
        self.packets.findings
    }
}

impl Packets {
    fn process(&mut self, event: &AirlinkEvent<'_>, at: i64) {
        let end = match &*event.what {
            // Packets of a traffic source enter at a stage. They are not in any capture.
            "entered" if event.stage.is_none() => {
                let direction = if event.direction == "down" { Direction::Down } else { Direction::Up };
                let entry = Entry { packet: event.packet, at, bytes: event.bytes };
                self.unmatched[direction].push_back(entry);
                self.on_path.insert(event.packet, State::default());
                return;
            }
            "truncated" => return self.set_integrity(event.packet, Integrity::Damaged),
            "corrupted" => {
                let integrity = if event.found { Integrity::Damaged } else { Integrity::Unknown };
                return self.set_integrity(event.packet, integrity);
            }
            "left" => End::Left(self.on_path.get(&event.packet).copied().unwrap_or_default().integrity),
            "dropped" => End::Dropped(match event.cause.as_deref() {
                Some("congestion") => DropReason::Loss(Cause::Congestion),
                Some("radio") => DropReason::Loss(Cause::Radio),
                _ => DropReason::Refused,
            }),
            _ => return,
        };
        let Some(state) = self.on_path.get_mut(&event.packet) else { return };
        state.end = Some(end);
        if let Some(observed) = state.observed {
            self.on_path.remove(&event.packet);
            self.count(end, observed);
        }
    }

    fn set_integrity(&mut self, packet: u64, integrity: Integrity) {
        let state = self.on_path.get_mut(&packet);
        if let Some(state) = state.filter(|state| state.integrity != Integrity::Damaged) {
            state.integrity = integrity;
        }
    }

    /// Returns the number of a captured packet in the events.
    pub(super) fn find(&mut self, direction: Direction, at: i64, packet: &Packet) -> Option<u64> {
        let unmatched = &mut self.unmatched[direction];
        while let Some(old) = unmatched.pop_front_if(|entry| entry.at < at - NEAR) {
            self.on_path.remove(&old.packet);
        }
        // The headers take 40 to 120 bytes: IPv4 or IPv6, with or without options.
        let lengths = u64::from(packet.len) + 40..=u64::from(packet.len) + 120;
        let fits = |entry: &Entry| lengths.contains(&entry.bytes) && entry.at <= at + NEAR;
        let exact = unmatched.iter().position(|entry| entry.at == at && fits(entry));
        let index = exact.or_else(|| unmatched.iter().position(fits));
        let found = index.and_then(|index| unmatched.remove(index));
        match found {
            Some(_) => self.findings.known += 1,
            None => self.findings.unknown += 1,
        }
        found.map(|entry| entry.packet)
    }

    /// Compares the captures' result for a packet with the events. Returns the reason if airlink dropped it.
    pub(super) fn compare(&mut self, packet: u64, observed: Observed) -> Option<DropReason> {
        let state = self.on_path.get_mut(&packet)?;
        let Some(end) = state.end else {
            state.observed = Some(observed);
            return None;
        };
        self.on_path.remove(&packet);
        self.count(end, observed);
        end.drop_reason()
    }

    fn count(&mut self, end: End, observed: Observed) {
        let findings = &mut self.findings;
        if end == End::Left(Integrity::Unknown) && observed != Observed::Arrived {
            // The changed headers make the arriving packet a different packet for the captures.
            findings.altered_arrivals += 1;
            return;
        }
        match (end.drop_reason(), observed) {
            (None, Observed::Arrived) => findings.arrivals_found += 1,
            (None, Observed::Lost { .. }) => findings.false_losses += 1,
            (None, Observed::Undetermined) => findings.arrivals_undetermined += 1,
            (Some(_), Observed::Arrived) => findings.losses_missed += 1,
            (Some(_), Observed::Undetermined) => findings.losses_undetermined += 1,
            (Some(reason), Observed::Lost { gap }) => {
                findings.losses_found += 1;
                match reason {
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

    /// Compares `observed` with the events of a packet: it enters, then `happened` occurs, and then it leaves.
    fn compared(happened: &str, observed: Observed) -> (Option<DropReason>, TruthFindings) {
        let findings = TruthFindings { radio_between: vec![0], ..TruthFindings::default() };
        let mut packets = Packets { findings, ..Packets::default() };
        for line in [
            r#"{"t":1,"event":"entered","packet":7,"direction":"down","bytes":100}"#,
            happened,
            r#"{"t":3,"event":"left","packet":7,"direction":"down","bytes":100}"#,
        ] {
            packets.process(&serde_json::from_str(line).unwrap(), 1);
        }
        let reason = packets.compare(7, observed);
        (reason, packets.findings)
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
            let (why, found) = compared(happened, Observed::Lost { gap: 0 });
            assert_eq!(why, Some(DropReason::Loss(Cause::Radio)));
            assert_eq!(found, TruthFindings { losses_found: 1, radio_between: vec![1], ..none.clone() });
            let (_, missed) = compared(happened, Observed::Arrived);
            assert_eq!(missed, TruthFindings { losses_missed: 1, ..none.clone() });
        }
        let unseen = r#"{"t":2,"event":"corrupted","packet":7,"direction":"down","stage":"x","bits":[3,19],"found":false}"#;
        let (why, found) = compared(unseen, Observed::Arrived);
        assert_eq!((why, found), (None, TruthFindings { arrivals_found: 1, ..none.clone() }));
        let (why, found) = compared(unseen, Observed::Lost { gap: 0 });
        assert_eq!((why, found), (None, TruthFindings { altered_arrivals: 1, ..none }));
    }
}
