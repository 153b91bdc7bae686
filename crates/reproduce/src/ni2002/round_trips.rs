//! The round-trip times of a run, and the round-trip times before its losses.

use std::collections::BTreeMap;

use airtcp_sim::world::{DevicePacket, Losses, PacketKind};
use airwire::Cause;
use airwire::time::{Duration, Instant};

/// The round-trip time of a segment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundTrip {
    /// The offset of the segment's first byte.
    pub(super) offset: u64,
    pub(super) sent: Instant,
    pub(super) rtt: Duration,
}

/// Round-trip times as defined in §3.1: "the duration from the time when P_i is transmitted, until the time when first
/// acknowledgement for P_i is received by the sender", except "if a TO occurs while waiting". ACKs are cumulative, so a
/// segment that arrives above a hole is acknowledged only after the repair. For a segment that a fast retransmission
/// repaired, the time starts with the first copy.
pub(super) fn as_defined(packets: &[DevicePacket], timeouts: &[Instant]) -> Vec<RoundTrip> {
    let mut outstanding: BTreeMap<u64, (Instant, u64)> = BTreeMap::new();
    let mut round_trips = Vec::new();
    for DevicePacket { at, kind } in packets {
        match *kind {
            // A SYN and a FIN occupy one sequence number.
            PacketKind::Sent { offset, len: len @ 2.., copy: 1 } => {
                outstanding.insert(offset, (*at, len));
            }
            PacketKind::Ack { ack, .. } => {
                while let Some(first) = outstanding.first_entry()
                    && first.key() + first.get().1 <= ack
                {
                    let (offset, (sent, _)) = first.remove_entry();
                    let before = timeouts.partition_point(|timeout| *timeout < sent);
                    if timeouts.get(before).is_none_or(|timeout| timeout > at) {
                        round_trips.push(RoundTrip { offset, sent, rtt: *at - sent });
                    }
                }
            }
            PacketKind::Sent { .. } => {}
        }
    }
    round_trips
}

/// Round-trip times of segments that were sent once and arrived in order, from the departure to the ACK that the
/// segment caused. Segments that arrived above a hole are left out, because their ACK waited for the repair.
pub(super) fn undisturbed(packets: &[DevicePacket]) -> Vec<RoundTrip> {
    /// The first byte after the SYN.
    const FIRST: u64 = 1;
    let mut outstanding: BTreeMap<u64, Option<(Instant, u64)>> = BTreeMap::new();
    let mut una = FIRST;
    let mut round_trips = Vec::new();
    for DevicePacket { at, kind } in packets {
        match *kind {
            PacketKind::Sent { offset, len, copy: 1 } => {
                outstanding.insert(offset, Some((*at, len)));
            }
            PacketKind::Sent { offset, .. } => {
                outstanding.insert(offset, None);
            }
            PacketKind::Ack { ack, .. } if ack > una => {
                if let Some(Some((sent, len))) = outstanding.get(&una)
                    && una + len == ack
                {
                    round_trips.push(RoundTrip { offset: una, sent: *sent, rtt: *at - *sent });
                }
                outstanding = outstanding.split_off(&ack);
                una = ack;
            }
            PacketKind::Ack { .. } => {}
        }
    }
    round_trips
}

/// The round-trip time just before a lost segment was sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RttBeforeLoss {
    pub(super) cause: Cause,
    /// The round-trip time of the last measured segment before the loss, in multiples of the minimum.
    pub(super) rtt: f64,
    /// The relative change of `rtt` since the segment sent one round trip earlier: 0.1 is 10 % longer.
    pub(super) change: Option<f64>,
}

/// The round-trip times before losses. Only losses of first copies count, because no round-trip times are measured just
/// before a retransmission. The lost segment's own round-trip time is known only after the repair and is not used.
pub(super) fn rtts_before_losses(
    round_trips: &[RoundTrip],
    losses: &Losses,
    least: f64,
) -> Vec<RttBeforeLoss> {
    let last_of = |count: usize| count.checked_sub(1).map(|i| round_trips[i]);
    let first_copies = losses.as_slice().iter().filter(|lost| lost.copy == 1);
    first_copies
        .filter_map(|lost| {
            let round_trip =
                last_of(round_trips.partition_point(|round_trip| round_trip.offset < lost.offset))?;
            let rtt = round_trip.rtt.as_secs_f64();
            let earlier = Instant::ZERO + round_trip.sent.saturating_since(Instant::ZERO + round_trip.rtt);
            let earlier = last_of(round_trips.partition_point(|round_trip| round_trip.sent <= earlier));
            let change = earlier.map(|earlier| rtt / earlier.rtt.as_secs_f64() - 1.0);
            Some(RttBeforeLoss { cause: lost.cause()?, rtt: rtt / least, change })
        })
        .collect()
}

/// The share of all pairs in which the value of `a` is above the value of `b`. Ties count half. `None` without pairs.
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

    fn sent(at: u64, offset: u64, copy: u32) -> DevicePacket {
        DevicePacket { at: Instant::from_millis(at), kind: PacketKind::Sent { offset, len: 1000, copy } }
    }

    fn ack(at: u64, ack: u64) -> DevicePacket {
        DevicePacket {
            at: Instant::from_millis(at),
            kind: PacketKind::Ack { ack, duplicate: false, sacked: vec![] },
        }
    }

    #[test]
    fn round_trips_come_from_unretransmitted_in_order_segments() {
        let packets = [
            sent(0, 1, 1),
            sent(0, 1001, 1),
            sent(10, 2001, 1),
            sent(10, 3001, 1),
            ack(100, 1001),
            // The second segment was lost. The ACK of the following ones waits for its repair.
            sent(300, 1001, 2),
            ack(400, 4001),
            sent(400, 4001, 1),
            ack(510, 5001),
        ];
        let expected = [(1, 0, 100), (4001, 400, 110)];
        let round_trip = |(offset, sent, rtt)| RoundTrip {
            offset,
            sent: Instant::from_millis(sent),
            rtt: Duration::from_millis(rtt),
        };
        assert_eq!(undisturbed(&packets), expected.map(round_trip));
        // As defined in §3.1, the second, third and fourth segments wait for the repair.
        let expected = [(1, 0, 100), (1001, 0, 400), (2001, 10, 390), (3001, 10, 390), (4001, 400, 110)];
        assert_eq!(as_defined(&packets, &[]), expected.map(round_trip));
        // A timeout at 300 ms, while these three were unacknowledged.
        let timeouts = [Instant::from_millis(300)];
        assert_eq!(as_defined(&packets, &timeouts), [(1, 0, 100), (4001, 400, 110)].map(round_trip));
    }

    #[test]
    fn superiority_is_one_above_and_half_for_equals() {
        assert_eq!(superiority(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(superiority(&[1.0, 2.0], &[1.0, 2.0]), Some(0.5));
        assert_eq!(superiority(&[1.0, 4.0], &[2.0, 3.0]), Some(0.5));
        assert_eq!(superiority(&[], &[1.0]), None);
    }
}
