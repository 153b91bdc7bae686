//! Measures a transfer from the capture on the sender's side, for any sender.

use std::path::Path;
use std::time::Duration;

use aircaptures::capture::{Capture, Frame, Next};
use aircaptures::ip::Found;
use aircaptures::packet::{Packet, Timestamp};
use airwire::segment::Flags;
use airwire::seq::Seq;
use serde::{Deserialize, Serialize};

use super::LabError;

/// The findings about one connection in a capture on the sender's side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The time that goodput refers to. It lasts from the first SYN to the first ACK for all data. If the
    /// connection is limited by time, it is that time from the end of the handshake.
    pub seconds: f64,
    /// Acknowledged sequence space without SYN and FIN, over the whole connection.
    pub acked_bytes: u64,
    /// Packets with payload, including retransmissions.
    pub data_packets: u64,
    /// Packets whose data was all sent before.
    pub resent_packets: u64,
    /// Payload of the retransmitted packets.
    pub resent_bytes: u64,
    /// Silence in both directions that ended with a retransmission, within the time that goodput refers to:
    /// the cost of waiting for timers.
    pub idle_seconds: f64,
    /// The longest of these silences.
    pub longest_idle_seconds: f64,
    /// ACKs that closed the receiver's window.
    #[serde(default)]
    pub closed_windows: u64,
}

impl Findings {
    /// Sums up several connections of one sender. Their common time is not known here.
    pub(crate) fn sum<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            seconds: 0.0,
            acked_bytes: sum.acked_bytes + one.acked_bytes,
            data_packets: sum.data_packets + one.data_packets,
            resent_packets: sum.resent_packets + one.resent_packets,
            resent_bytes: sum.resent_bytes + one.resent_bytes,
            idle_seconds: sum.idle_seconds + one.idle_seconds,
            longest_idle_seconds: sum.longest_idle_seconds.max(one.longest_idle_seconds),
            closed_windows: sum.closed_windows + one.closed_windows,
        })
    }
}

/// Calls `take` for each frame of a capture.
pub(crate) fn for_each_frame(path: &Path, mut take: impl FnMut(&Frame<'_>)) -> Result<(), LabError> {
    let mut capture = Capture::open(path, None).map_err(|error| LabError::Transfer(error.to_string()))?;
    loop {
        match capture.read() {
            Next::Frame(frame) => take(&frame),
            Next::Filtered | Next::NoFrame | Next::Flaw { .. } => {}
            Next::Damaged { detail, .. } => {
                return Err(LabError::Transfer(format!("{}: {detail}", path.display())));
            }
            Next::End => return Ok(()),
        }
    }
}

/// A connection in the capture on its sender's side.
#[derive(Clone, Debug, Default)]
pub(crate) struct MeasuredConnection {
    pub(crate) findings: Findings,
    /// The start of the goodput measurement: the first SYN, or the SYN's ACK if the connection is limited by
    /// time.
    pub(crate) from: Timestamp,
    /// The end of the goodput measurement: the first ACK for all data, or the end of the time limit.
    pub(crate) to: Timestamp,
    /// Times and the number of bytes acknowledged until then.
    pub(crate) progress: Vec<(Timestamp, u64)>,
}

impl MeasuredConnection {
    /// Bytes acknowledged until this time.
    pub(crate) fn acked_until(&self, at: Timestamp) -> u64 {
        let later = self.progress.partition_point(|(time, _)| *time <= at);
        later.checked_sub(1).map_or(0, |last| self.progress[last].1)
    }

    /// Bytes that count for goodput. Data that the sender still buffered at the end of the time limit does
    /// not count.
    pub(crate) fn measured(&self) -> u64 {
        self.acked_until(self.to)
    }
}

/// Reads the capture's connections to these ports, in the order of the ports. `time` is the time limit of
/// each connection; `None` if connections are limited by bytes.
pub(crate) fn read(
    path: &Path,
    ports: &[u16],
    time: Option<Duration>,
) -> Result<Vec<MeasuredConnection>, LabError> {
    let mut readers: Vec<_> = ports.iter().map(|port| (*port, ConnectionReader::new(time))).collect();
    for_each_frame(path, |frame| {
        if let Found::Tcp(packet) | Found::Flawed(packet, _) = frame.packet() {
            readers.iter_mut().for_each(|(port, reader)| reader.take(&packet, *port));
        }
    })?;
    Ok(readers.into_iter().map(|(_, reader)| reader.finish()).collect())
}

/// Reads one connection. Offsets count from the SYN, which has offset 0.
#[derive(Debug, Default)]
struct ConnectionReader {
    /// The time limit. `None` if the connection is limited by bytes.
    time: Option<Duration>,
    isn: Option<Seq>,
    started: Timestamp,
    last: Timestamp,
    /// The offset after the last byte that was sent.
    max: u64,
    /// The offset after the last byte that was acknowledged.
    acked: u64,
    fin: Option<u64>,
    /// The time of the last ACK for data.
    finished: Timestamp,
    findings: Findings,
    progress: Vec<(Timestamp, u64)>,
}

impl ConnectionReader {
    fn new(time: Option<Duration>) -> Self {
        Self { time, ..Self::default() }
    }

    /// The measured time of a connection with a time limit: from the end of its handshake. `None` without a
    /// limit, or if the SYN was not answered.
    fn measured_time(&self) -> Option<(Timestamp, Timestamp)> {
        // The first ACK acknowledges the SYN.
        let (time, (from, _)) = (self.time?, self.progress.first()?);
        Some((*from, Timestamp(from.0.saturating_add(time.as_nanos() as i64))))
    }

    fn take(&mut self, packet: &Packet, port: u16) {
        let from_sender = packet.dst.port() == port;
        if !from_sender && packet.src.port() != port {
            return;
        }
        if self.isn.is_none() {
            if !from_sender || !packet.flags.contains(Flags::SYN) {
                return;
            }
            self.isn = Some(packet.seq);
            (self.started, self.last) = (packet.at, packet.at);
        }
        let until = self.measured_time().map_or(packet.at, |(_, to)| to.min(packet.at));
        let silence = until.since(std::mem::replace(&mut self.last, packet.at)).max(0.0);
        if from_sender {
            self.take_data(packet, silence);
        } else if let Some(ack) = packet.ack {
            let closed = packet.window == 0
                && ![Flags::SYN, Flags::RST].iter().any(|flag| packet.flags.contains(*flag));
            self.findings.closed_windows += u64::from(closed);
            self.take_ack(packet.at, ack);
        }
    }

    fn offset(&self, number: Seq) -> Option<u64> {
        number.offset(self.isn?, self.acked)
    }

    fn take_data(&mut self, packet: &Packet, silence: f64) {
        let Some(start) = self.offset(packet.seq) else { return };
        let end = start + packet.seq_len();
        if end == start {
            return;
        }
        if packet.flags.contains(Flags::FIN) {
            self.fin = Some(end - 1);
        }
        self.findings.data_packets += u64::from(packet.len > 0);
        if end > self.max {
            self.max = end;
            return;
        }
        self.findings.idle_seconds += silence;
        self.findings.longest_idle_seconds = self.findings.longest_idle_seconds.max(silence);
        if packet.len > 0 {
            self.findings.resent_packets += 1;
            self.findings.resent_bytes += u64::from(packet.len);
        }
    }

    fn take_ack(&mut self, at: Timestamp, ack: Seq) {
        let Some(ack) = self.offset(ack) else { return };
        if ack <= self.acked || ack > self.max {
            return;
        }
        // An ACK for the FIN alone does not acknowledge data.
        if self.fin.is_none_or(|fin| self.acked < fin) {
            self.finished = at;
            self.progress.push((at, ack - 1));
        }
        self.acked = ack;
    }

    fn finish(mut self) -> MeasuredConnection {
        let fin = u64::from(self.fin.is_some_and(|fin| self.acked > fin));
        let (from, to) = self.measured_time().unwrap_or((self.started, self.finished));
        self.findings.acked_bytes = self.acked.saturating_sub(1 + fin);
        self.findings.seconds = to.since(from).max(0.0);
        let Self { findings, mut progress, .. } = self;
        // The ACK for the last byte may also acknowledge the FIN.
        if let Some((_, bytes)) = progress.last_mut() {
            *bytes = findings.acked_bytes;
        }
        MeasuredConnection { findings, from, to, progress }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use airwire::options::Options;
    use airwire::segment::Ecn;

    use super::*;

    const PORT: u16 = 9000;
    /// Close to the maximum, so that sequence numbers wrap.
    const ISN: Seq = Seq(u32::MAX - 500);

    /// A packet on the loopback interface, with its time in nanoseconds.
    pub(crate) fn packet(at: i64, ports: [u16; 2], seq: Seq, ack: Option<Seq>, len: u32) -> Packet {
        let [src, dst] = ports.map(|port| ([127, 0, 0, 1], port).into());
        Packet {
            number: 0,
            at: Timestamp(at),
            src,
            dst,
            seq,
            ack,
            flags: Flags::NONE,
            window: 0,
            ecn: Ecn::NotEct,
            len,
            ip_id: None,
            options: Options::default(),
            options_cut: false,
        }
    }

    fn nanos(seconds: f64) -> i64 {
        (seconds * 1e9) as i64
    }

    fn syn(at: f64) -> Packet {
        Packet { flags: Flags::SYN, ..packet(nanos(at), [1000, PORT], ISN, None, 0) }
    }

    fn data(at: f64, seq: u64, len: u32) -> Packet {
        packet(nanos(at), [1000, PORT], ISN.at(seq), Some(Seq(1)), len)
    }

    fn fin(at: f64, seq: u64, len: u32) -> Packet {
        Packet { flags: Flags::FIN, ..data(at, seq, len) }
    }

    fn ack(at: f64, ack: u64) -> Packet {
        packet(nanos(at), [PORT, 1000], Seq(1), Some(ISN.at(ack)), 0)
    }

    fn measured(packets: &[Packet], time: Option<Duration>) -> MeasuredConnection {
        let mut reader = ConnectionReader::new(time);
        packets.iter().for_each(|packet| reader.take(packet, PORT));
        reader.finish()
    }

    fn findings(packets: &[Packet]) -> Findings {
        measured(packets, None).findings
    }

    #[test]
    fn acked_bytes_are_known_at_any_time() {
        let packets = [
            syn(10.0),
            ack(10.1, 1),
            data(10.1, 1, 1000),
            ack(10.3, 1001),
            fin(10.3, 1001, 500),
            ack(10.5, 1502),
        ];
        let connection = measured(&packets, None);
        let until = |at| connection.acked_until(Timestamp(nanos(at)));
        assert_eq!([9.0, 10.2, 10.3, 10.4, 10.5, 99.0].map(until), [0, 0, 1000, 1000, 1500, 1500]);
    }

    #[test]
    fn timed_transfer_is_measured_within_its_time() {
        let packets = [
            syn(10.0),
            ack(10.5, 1),
            data(10.5, 1, 1000),
            ack(11.0, 1001),
            data(11.0, 1001, 2000),
            ack(12.5, 2001),
            // Two seconds after the handshake the application stops. This segment was still outstanding.
            data(13.5, 2001, 1000),
            ack(14.0, 3001),
            fin(14.0, 3001, 0),
            ack(14.5, 3002),
        ];
        let limit = Some(Duration::from_secs(2));
        let by_time = measured(&packets, limit);
        assert_eq!((by_time.findings.seconds, by_time.measured()), (2.0, 2000));
        assert_eq!(by_time.findings.acked_bytes, 3000, "data after the time limit is acknowledged too");
        // The silence from 12.5 to 13.5 s is outside the measured time.
        assert_eq!((by_time.findings.resent_packets, by_time.findings.idle_seconds), (1, 0.0));
        let by_bytes = measured(&packets, None);
        assert_eq!((by_bytes.findings.seconds, by_bytes.measured()), (4.0, 3000));
        assert!((by_bytes.findings.idle_seconds - 1.0).abs() < 1e-9);
        assert_eq!(measured(&[], limit).findings, Findings::default());
    }

    #[test]
    fn lossless_transfer_has_no_idle_time() {
        let found =
            findings(&[syn(10.0), ack(10.1, 1), data(10.1, 1, 1000), fin(10.2, 1001, 500), ack(10.5, 1502)]);
        assert_eq!((found.acked_bytes, found.data_packets, found.resent_packets), (1500, 2, 0));
        assert_eq!(found.idle_seconds, 0.0);
        assert!((found.seconds - 0.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn only_silence_before_retransmission_is_idle_time() {
        let found = findings(&[
            syn(10.0),
            ack(10.1, 1),
            data(10.1, 1, 1000),
            data(10.2, 1001, 1000),
            // The application had no data.
            data(12.2, 2001, 1000),
            data(13.2, 1, 1000),
            ack(13.3, 3001),
        ]);
        assert_eq!((found.resent_packets, found.resent_bytes), (1, 1000));
        assert!((found.idle_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.acked_bytes, 3000);
    }

    #[test]
    fn syn_and_fin_do_not_count_as_data() {
        let found = findings(&[
            syn(10.0),
            syn(11.0),
            ack(11.1, 1),
            data(11.1, 1, 100),
            fin(11.2, 101, 0),
            ack(11.3, 101),
            ack(12.0, 102),
        ]);
        assert_eq!((found.acked_bytes, found.data_packets, found.resent_packets), (100, 1, 0));
        assert!((found.idle_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert!((found.seconds - 1.3).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn packets_of_other_connections_are_ignored() {
        let other = packet(nanos(10.05), [1001, 9001], Seq(7), None, 500);
        let found = findings(&[syn(10.0), ack(10.1, 1), data(10.1, 1, 100), other, ack(10.2, 101)]);
        assert_eq!((found.acked_bytes, found.data_packets), (100, 1));
    }
}
