//! Results of the single connections of a transfer and of their interaction, from the captures on the
//! senders' sides.

use std::path::Path;
use std::time::Duration;

use aircaptures::packet::Timestamp;
use serde::{Deserialize, Serialize};

use super::LabError;
use super::agent::Received;
use super::capture::{self, Findings, Seen};
use super::difference::Difference;
use super::workload::{Role, Stream, Way};

/// The results of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// The sender.
    pub sender: String,
    /// The tested sender or a competitor.
    pub role: Role,
    /// The direction of the data.
    pub direction: Way,
    /// The receiver's port.
    pub port: u16,
    /// All acknowledged bytes.
    pub bytes: u64,
    /// Bytes acknowledged within the time limit. `None` without a limit, or if the file is older than this
    /// field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in_time: Option<u64>,
    /// Goodput from the first SYN to the ACK for the last byte, or within the time limit; 0 if no data was
    /// acknowledged.
    pub kbit_per_s: f64,
    /// Bytes acknowledged while all connections of the transfer were sending. `None` for a single connection,
    /// or if the connections never all sent at the same time.
    pub bytes_together: Option<u64>,
    /// Findings from the capture on the sender's side.
    pub capture: Findings,
    /// SHA-256 of the sent data, if the sender reported it.
    pub sent: Option<String>,
    /// The received data, if the receiver reported it.
    pub received: Option<Received>,
    /// A sentence for each part of the sender's recipe whose information did not arrive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// The first difference between sent and received data. `None` if they are equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<Difference>,
}

/// The interaction of several connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Goodput of the competitors. `None` without competitors.
    pub competitor_kbit_per_s: Option<f64>,
    /// The tested sender's share of all bytes, from 0 to 1, while all connections were sending. `None`
    /// without competitors, or if the connections never all sent at the same time.
    pub share: Option<f64>,
    /// Jain's fairness index of the tested sender's connections while all connections were sending: 1 if they
    /// carry equal amounts, 1/N if one carries everything. With two directions it is the lower index. `None`
    /// for a single connection, or if the connections never all sent at the same time.
    pub fairness: Option<f64>,
    /// Goodput of the tested sender towards the mobile side, if it sends in both directions.
    pub down_kbit_per_s: Option<f64>,
    /// Goodput of the tested sender towards the fixed side, if it sends in both directions.
    pub up_kbit_per_s: Option<f64>,
}

/// Reads the connections of a transfer from the captures in its directory. `time` is the time limit of each
/// connection; `None` if connections are limited by bytes.
pub(crate) fn read(
    directory: &Path,
    streams: &[Stream<'_>],
    time: Option<Duration>,
) -> Result<Vec<Seen>, LabError> {
    let mut seen = vec![Seen::default(); streams.len()];
    for way in [Way::Down, Way::Up] {
        let own: Vec<_> = streams.iter().filter(|stream| stream.way == way).collect();
        if own.is_empty() {
            continue;
        }
        let ports: Vec<_> = own.iter().map(|stream| stream.port()).collect();
        let found = capture::read(&directory.join(way.sender_side().capture()), &ports, time)?;
        for (stream, one) in own.iter().zip(found) {
            seen[usize::from(stream.index)] = one;
        }
    }
    Ok(seen)
}

/// The time in which all connections were sending. `None` for a single connection, or if their times do not
/// overlap.
pub(crate) fn time_together(seen: &[Seen]) -> Option<(Timestamp, Timestamp)> {
    let from = seen.iter().map(|one| one.from).max()?;
    let to = seen.iter().map(|one| one.to).min()?;
    (seen.len() > 1 && from < to).then_some((from, to))
}

/// Seconds from the earliest start to the latest end of the connections' measurements.
pub(crate) fn seconds<'a>(seen: impl IntoIterator<Item = &'a Seen> + Clone) -> f64 {
    let moved = || seen.clone().into_iter().filter(|one| one.findings.seconds > 0.0);
    let from = moved().map(|one| one.from).min();
    let to = moved().map(|one| one.to).max();
    from.zip(to).map_or(0.0, |(from, to)| to.since(from))
}

/// The goodput for this number of bytes in this time; 0 if the time is 0.
pub(crate) fn kbit_per_s(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e3 } else { 0.0 }
}

/// Computes the interaction. `octets` has the bytes of each connection while all connections were sending;
/// `None` if they never were.
pub(crate) fn together(streams: &[Stream<'_>], seen: &[Seen], octets: Option<&[u64]>) -> Together {
    let of = |fits: &dyn Fn(&Stream<'_>) -> bool| -> Vec<usize> {
        (0..streams.len()).filter(|&at| fits(&streams[at])).collect()
    };
    let goodput = |places: Vec<usize>| -> Option<f64> {
        let own: Vec<_> = places.iter().map(|&at| &seen[at]).collect();
        let bytes = own.iter().map(|one| one.measured()).sum();
        (!own.is_empty()).then(|| kbit_per_s(bytes, seconds(own.iter().copied())))
    };
    let tested = |way: Way| of(&|stream| stream.role == Role::Tested && stream.way == way);
    let beside = of(&|stream| stream.role == Role::Competitor);
    let both_ways = !tested(Way::Down).is_empty() && !tested(Way::Up).is_empty();
    let share = octets.filter(|_| !beside.is_empty()).and_then(|octets| {
        let others: u64 = beside.iter().map(|&at| octets[at]).sum();
        let all: u64 = octets.iter().sum();
        (all > 0).then(|| (all - others) as f64 / all as f64)
    });
    let fairness = octets.and_then(|octets| {
        let of_way = |way| {
            let own: Vec<_> = tested(way).iter().map(|&at| octets[at] as f64).collect();
            jain(&own)
        };
        [Way::Down, Way::Up].into_iter().filter_map(of_way).min_by(f64::total_cmp)
    });
    Together {
        competitor_kbit_per_s: goodput(beside),
        share,
        fairness,
        down_kbit_per_s: both_ways.then(|| goodput(tested(Way::Down))).flatten(),
        up_kbit_per_s: both_ways.then(|| goodput(tested(Way::Up))).flatten(),
    }
}

/// Jain, Chiu and Hawe's fairness index (DEC-TR-301): the square of the sum, divided by N times the sum of
/// the squares. `None` for fewer than two connections, or without data.
fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares): (f64, f64) = (shares.iter().sum(), shares.iter().map(|share| share * share).sum());
    (shares.len() > 1 && squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::{Typed, resolve};
    use crate::workload::{Ways, Workload};

    #[test]
    fn jain_index_matches_known_shares() {
        assert_eq!(jain(&[7.0, 7.0, 7.0]), Some(1.0));
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[5.0]), jain(&[0.0, 0.0])), (None, None));
    }

    fn seen(from: i64, to: i64, bytes: u64) -> Seen {
        let at = |second: i64| Timestamp(second * 1_000_000_000);
        let findings = Findings { seconds: (to - from) as f64, acked_bytes: bytes, ..Findings::default() };
        Seen { findings, from: at(from), to: at(to), progress: vec![(at(to), bytes)] }
    }

    #[test]
    fn shares_cover_time_when_all_flows_send() {
        let typed: Vec<Typed> = ["newreno", "sack"].iter().map(|text| text.parse().unwrap()).collect();
        let senders = resolve(&typed, None).unwrap();
        let workload = Workload {
            ways: Ways::Both,
            competitors: vec![senders[1].clone()],
            flows: 2,
            ..Workload::plain(0)
        };
        let streams = workload.streams(&senders[0]);
        let all = [
            seen(10, 20, 10_000),
            seen(11, 22, 20_000),
            seen(10, 30, 40_000),
            seen(10, 42, 1_000),
            seen(10, 42, 1_000),
            seen(10, 42, 2_000),
        ];
        let second = 1_000_000_000;
        assert_eq!(time_together(&all), Some((Timestamp(11 * second), Timestamp(20 * second))));
        assert_eq!(time_together(&all[..1]), None);
        let together = together(&streams, &all, Some(&[1000, 3000, 4000, 500, 500, 1000]));
        assert_eq!((together.share, together.fairness), (Some(0.5), Some(0.8)));
        // 30 kB from second 10 to second 22, and 2 kB from second 10 to second 42.
        assert_eq!(together.down_kbit_per_s, Some(20.0));
        assert_eq!(together.up_kbit_per_s, Some(0.5));
        assert_eq!(together.competitor_kbit_per_s, Some(10.5));
    }

    #[test]
    fn single_connection_has_no_share() {
        let senders = resolve(&["newreno".parse().unwrap()], None).unwrap();
        let workload = Workload::plain(0);
        let streams = workload.streams(&senders[0]);
        assert_eq!(together(&streams, &[seen(0, 9, 100)], None), Together::default());
    }
}
