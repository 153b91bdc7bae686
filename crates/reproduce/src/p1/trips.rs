//! Round trips of a run, and what they were before its losses.

use std::collections::BTreeMap;

use airtcp_sim::world::{Losses, Seen, Sighting};
use airwire::Cause;
use airwire::time::{Duration, Instant};

/// The round trip of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trip {
    /// Where the segment begins.
    pub(super) offset: u64,
    pub(super) sent: Instant,
    pub(super) took: Duration,
}

/// Round trips by the text: "the duration from the time when P_i is transmitted, until the time when first
/// acknowledgement for P_i is received by the sender", but not "if a TO occurs while waiting" (§3.1). ACKs are
/// cumulative, so what arrives above a hole waits for its repair; what was sent again by a fast retransmit counts from
/// its first copy.
pub(super) fn of_the_text(sightings: &[Sighting], timeouts: &[Instant]) -> Vec<Trip> {
    let mut outside: BTreeMap<u64, (Instant, u64)> = BTreeMap::new();
    let mut trips = Vec::new();
    for Sighting { at, seen } in sightings {
        match *seen {
            // A SYN and a FIN are one octet long.
            Seen::Sent { offset, len: len @ 2.., copy: 1 } => {
                outside.insert(offset, (*at, len));
            }
            Seen::Ack { ack, .. } => {
                while let Some(first) = outside.first_entry()
                    && first.key() + first.get().1 <= ack
                {
                    let (offset, (sent, _)) = first.remove_entry();
                    let before = timeouts.partition_point(|timeout| *timeout < sent);
                    if timeouts.get(before).is_none_or(|timeout| timeout > at) {
                        trips.push(Trip { offset, sent, took: *at - sent });
                    }
                }
            }
            Seen::Sent { .. } => {}
        }
    }
    trips
}

/// Round trips of segments that were sent once and arrived in order: from the departure to the ACK that it caused. The
/// ACK that covers what arrived above a hole tells how long the repair took.
pub(super) fn undisturbed(sightings: &[Sighting]) -> Vec<Trip> {
    /// The octet after the SYN.
    const FIRST: u64 = 1;
    let mut outside: BTreeMap<u64, Option<(Instant, u64)>> = BTreeMap::new();
    let mut una = FIRST;
    let mut trips = Vec::new();
    for Sighting { at, seen } in sightings {
        match *seen {
            Seen::Sent { offset, len, copy: 1 } => {
                outside.insert(offset, Some((*at, len)));
            }
            Seen::Sent { offset, .. } => {
                outside.insert(offset, None);
            }
            Seen::Ack { ack, .. } if ack > una => {
                if let Some(Some((sent, len))) = outside.get(&una)
                    && una + len == ack
                {
                    trips.push(Trip { offset: una, sent: *sent, took: *at - *sent });
                }
                outside = outside.split_off(&ack);
                una = ack;
            }
            Seen::Ack { .. } => {}
        }
    }
    trips
}

/// How long round trips were when a segment was sent that got lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Before {
    pub(super) cause: Cause,
    /// The round trip of the last segment before it that was measured, in multiples of the least one.
    pub(super) rtt: f64,
    /// Its change against the segment sent one round trip earlier: 0.1 is a tenth longer.
    pub(super) change: Option<f64>,
}

/// Only first copies count: just before a retransmission no round trips are measured. A segment that got lost may have a
/// round trip of its own, which is over when the loss is repaired: it tells nothing beforehand.
pub(super) fn before_losses(trips: &[Trip], losses: &Losses, least: f64) -> Vec<Before> {
    let last = |before: usize| before.checked_sub(1).map(|i| trips[i]);
    let first_copies = losses.as_slice().iter().filter(|lost| lost.copy == 1);
    first_copies
        .filter_map(|lost| {
            let trip = last(trips.partition_point(|trip| trip.offset < lost.offset))?;
            let took = trip.took.as_secs_f64();
            let earlier = Instant::ZERO + trip.sent.saturating_since(Instant::ZERO + trip.took);
            let earlier = last(trips.partition_point(|trip| trip.sent <= earlier));
            let change = earlier.map(|earlier| took / earlier.took.as_secs_f64() - 1.0);
            Some(Before { cause: lost.cause()?, rtt: took / least, change })
        })
        .collect()
}

/// In what share of the pairs the one of `a` is above the one of `b`; equal ones count half. `None` without pairs.
pub(super) fn superiority(a: &[f64], b: &[f64]) -> Option<f64> {
    let above = |x: f64| {
        b.iter()
            .map(|y| {
                if x > *y {
                    1.0
                } else if x == *y {
                    0.5
                } else {
                    0.0
                }
            })
            .sum::<f64>()
    };
    let pairs = (a.len() * b.len()) as f64;
    (pairs > 0.0).then(|| a.iter().map(|x| above(*x)).sum::<f64>() / pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: u64, offset: u64, copy: u32) -> Sighting {
        Sighting { at: Instant::from_millis(at), seen: Seen::Sent { offset, len: 1000, copy } }
    }

    fn ack(at: u64, ack: u64) -> Sighting {
        Sighting { at: Instant::from_millis(at), seen: Seen::Ack { ack, duplicate: false, sacked: vec![] } }
    }

    #[test]
    fn a_round_trip_is_that_of_a_segment_sent_once_that_arrived_in_order() {
        let sightings = [
            sent(0, 1, 1),
            sent(0, 1001, 1),
            sent(10, 2001, 1),
            sent(10, 3001, 1),
            ack(100, 1001),
            // The second was lost; what came after it waits for its repair.
            sent(300, 1001, 2),
            ack(400, 4001),
            sent(400, 4001, 1),
            ack(510, 5001),
        ];
        let expected = [(1, 0, 100), (4001, 400, 110)];
        let trip = |(offset, sent, took)| Trip {
            offset,
            sent: Instant::from_millis(sent),
            took: Duration::from_millis(took),
        };
        assert_eq!(undisturbed(&sightings), expected.map(trip));
        // By the text the third and the fourth wait for the repair, and so does the second.
        let expected = [(1, 0, 100), (1001, 0, 400), (2001, 10, 390), (3001, 10, 390), (4001, 400, 110)];
        assert_eq!(of_the_text(&sightings, &[]), expected.map(trip));
        // A timeout at 300 ms, while the three were waited for.
        let timeouts = [Instant::from_millis(300)];
        assert_eq!(of_the_text(&sightings, &timeouts), [(1, 0, 100), (4001, 400, 110)].map(trip));
    }

    #[test]
    fn superiority_is_one_for_all_above_and_a_half_for_equals() {
        assert_eq!(superiority(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(superiority(&[1.0, 2.0], &[1.0, 2.0]), Some(0.5));
        assert_eq!(superiority(&[1.0, 4.0], &[2.0, 3.0]), Some(0.5));
        assert_eq!(superiority(&[], &[1.0]), None);
    }
}
