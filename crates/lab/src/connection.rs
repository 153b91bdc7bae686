//! Results of the single connections of a transfer and of their interaction, from the captures on the
//! senders' sides.

use std::path::Path;
use std::time::Duration;

use aircaptures::packet::Timestamp;
use airlink::packet::{Direction, PerDirection};
use serde::{Deserialize, Serialize};

use super::LabError;
use super::agent::Received;
use super::capture::{self, Findings, MeasuredConnection};
use super::difference::Difference;
use super::testbed::PathSide;
use super::workload::{Role, Stream};

/// The results of a connection.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Connection {
    /// The sender.
    pub sender: String,
    /// The tested sender or a competitor.
    pub role: Role,
    /// The direction of the data.
    pub direction: Direction,
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
pub struct Interaction {
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
) -> Result<Vec<MeasuredConnection>, LabError> {
    let mut connections = vec![MeasuredConnection::default(); streams.len()];
    for direction in Direction::BOTH {
        let streams: Vec<_> = streams.iter().filter(|stream| stream.direction == direction).collect();
        if streams.is_empty() {
            continue;
        }
        let ports: Vec<_> = streams.iter().map(|stream| stream.port()).collect();
        let measured = capture::read(&directory.join(PathSide::sending(direction).capture()), &ports, time)?;
        for (stream, connection) in streams.iter().zip(measured) {
            connections[usize::from(stream.index)] = connection;
        }
    }
    Ok(connections)
}

/// The time in which all connections were sending. `None` for a single connection, or if their times do not
/// overlap.
pub(crate) fn time_together(connections: &[MeasuredConnection]) -> Option<(Timestamp, Timestamp)> {
    let from = connections.iter().map(|connection| connection.from).max()?;
    let to = connections.iter().map(|connection| connection.to).min()?;
    (connections.len() > 1 && from < to).then_some((from, to))
}

/// Seconds from the earliest start to the latest end of the connections' measurements.
pub(crate) fn seconds(connections: &[&MeasuredConnection]) -> f64 {
    let measured = || connections.iter().filter(|connection| connection.findings.seconds > 0.0);
    let from = measured().map(|connection| connection.from).min();
    let to = measured().map(|connection| connection.to).max();
    from.zip(to).map_or(0.0, |(from, to)| to.since(from))
}

/// The goodput for this number of bytes in this time; 0 if the time is 0.
pub(crate) fn kbit_per_s(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e3 } else { 0.0 }
}

/// Computes the interaction. `bytes` has the bytes of each connection while all connections were sending;
/// `None` if they never were.
pub(crate) fn interaction(
    streams: &[Stream<'_>],
    connections: &[MeasuredConnection],
    bytes: Option<&[u64]>,
) -> Interaction {
    let indices = |fits: &dyn Fn(&Stream<'_>) -> bool| -> Vec<usize> {
        (0..streams.len()).filter(|&index| fits(&streams[index])).collect()
    };
    let goodput = |indices: &[usize]| -> Option<f64> {
        let chosen: Vec<_> = indices.iter().map(|&index| &connections[index]).collect();
        let bytes = chosen.iter().map(|connection| connection.measured()).sum();
        (!chosen.is_empty()).then(|| kbit_per_s(bytes, seconds(&chosen)))
    };
    let tested = PerDirection::from_fn(|direction| {
        indices(&|stream| stream.role == Role::Tested && stream.direction == direction)
    });
    let competitors = indices(&|stream| stream.role == Role::Competitor);
    let both_directions = !tested.down.is_empty() && !tested.up.is_empty();
    let share = bytes.filter(|_| !competitors.is_empty()).and_then(|bytes| {
        let others: u64 = competitors.iter().map(|&index| bytes[index]).sum();
        let all: u64 = bytes.iter().sum();
        (all > 0).then(|| (all - others) as f64 / all as f64)
    });
    let fairness = bytes.and_then(|bytes| {
        let shares = |indices: &[usize]| indices.iter().map(|&index| bytes[index] as f64).collect::<Vec<_>>();
        tested.iter().filter_map(|(_, indices)| jain(&shares(indices))).min_by(f64::total_cmp)
    });
    Interaction {
        competitor_kbit_per_s: goodput(&competitors),
        share,
        fairness,
        down_kbit_per_s: goodput(&tested.down).filter(|_| both_directions),
        up_kbit_per_s: goodput(&tested.up).filter(|_| both_directions),
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
    use crate::sender::{TypedSender, resolve};
    use crate::workload::{Directions, Workload};

    #[test]
    fn jain_index_matches_known_shares() {
        assert_eq!(jain(&[7.0, 7.0, 7.0]), Some(1.0));
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1.0, 3.0]), Some(0.8));
        assert_eq!((jain(&[5.0]), jain(&[0.0, 0.0])), (None, None));
    }

    fn measured(from: i64, to: i64, bytes: u64) -> MeasuredConnection {
        let at = |second: i64| Timestamp(second * 1_000_000_000);
        let findings = Findings { seconds: (to - from) as f64, acked_bytes: bytes, ..Findings::default() };
        MeasuredConnection { findings, from: at(from), to: at(to), progress: vec![(at(to), bytes)] }
    }

    #[test]
    fn shares_cover_time_when_all_flows_send() {
        let typed: Vec<TypedSender> = ["newreno", "sack"].iter().map(|text| text.parse().unwrap()).collect();
        let senders = resolve(&typed, None).unwrap();
        let workload = Workload {
            directions: Directions::Both,
            competitors: vec![senders[1].clone()],
            flows: 2,
            ..Workload::plain(0)
        };
        let streams = workload.streams(&senders[0]);
        let all = [
            measured(10, 20, 10_000),
            measured(11, 22, 20_000),
            measured(10, 30, 40_000),
            measured(10, 42, 1_000),
            measured(10, 42, 1_000),
            measured(10, 42, 2_000),
        ];
        let second = 1_000_000_000;
        assert_eq!(time_together(&all), Some((Timestamp(11 * second), Timestamp(20 * second))));
        assert_eq!(time_together(&all[..1]), None);
        let interaction = interaction(&streams, &all, Some(&[1000, 3000, 4000, 500, 500, 1000]));
        assert_eq!((interaction.share, interaction.fairness), (Some(0.5), Some(0.8)));
        // 30 kB from second 10 to second 22, and 2 kB from second 10 to second 42.
        assert_eq!(interaction.down_kbit_per_s, Some(20.0));
        assert_eq!(interaction.up_kbit_per_s, Some(0.5));
        assert_eq!(interaction.competitor_kbit_per_s, Some(10.5));
    }

    #[test]
    fn single_connection_has_no_share() {
        let senders = resolve(&["newreno".parse().unwrap()], None).unwrap();
        let workload = Workload::plain(0);
        let streams = workload.streams(&senders[0]);
        assert_eq!(interaction(&streams, &[measured(0, 9, 100)], None), Interaction::default());
    }
}
