//! What the sender's side of a path shows of a transfer, whoever sends: read from the capture of its device.

use std::path::Path;
use std::time::Duration;

use aircaptures::capture::{Capture, Next};
use aircaptures::ip::Found;
use aircaptures::packet::{Packet, Timestamp};
use airwire::segment::Flags;
use airwire::seq::Seq;
use serde::{Deserialize, Serialize};

use super::LabError;

/// What a capture on the sender's side shows of one connection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// The time that goodput is of: from the first SYN to the first ACK for all of the data, or where a connection goes by
    /// time, so long from the end of its handshake on.
    pub seconds: f64,
    /// Sequence space that was acknowledged, without SYN and FIN: all of it.
    pub acked_bytes: u64,
    /// Packets with payload that left, copies included.
    pub data_packets: u64,
    /// Packets with data, all of which was sent before.
    pub resent_packets: u64,
    /// Payload of these.
    pub resent_bytes: u64,
    /// Silence on the link, in both directions, that a retransmission ended: what waiting for timers has cost, as far as it
    /// is in the time that goodput is of.
    pub idle_seconds: f64,
    /// The longest of these silences.
    pub longest_idle_seconds: f64,
    /// ACKs that said that the receiver's window is closed.
    #[serde(default)]
    pub closed_windows: u64,
}

impl Findings {
    /// Of several connections of one sender. Their common time is not known here.
    pub(crate) fn of_several<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
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

/// A connection as a capture on its sender's side has it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) findings: Findings,
    /// From when on goodput is measured: the first SYN left, or where it goes by time, its answer came.
    pub(crate) from: Timestamp,
    /// Until when: the first ACK for all of the data came, or its time was up.
    pub(crate) to: Timestamp,
    /// Octets that were acknowledged, and when.
    pub(crate) progress: Vec<(Timestamp, u64)>,
}

impl Seen {
    /// Octets that were acknowledged until then.
    pub(crate) fn acked_until(&self, at: Timestamp) -> u64 {
        let later = self.progress.partition_point(|(when, _)| *when <= at);
        later.checked_sub(1).map_or(0, |last| self.progress[last].1)
    }

    /// Octets that goodput is of. What was in the sender's buffer when its time was up comes later, and is none of them.
    pub(crate) fn measured(&self) -> u64 {
        self.acked_until(self.to)
    }
}

/// Reads the capture's connections to these ports, in their order. `time`: how long each was to send, if not until it has sent
/// its octets.
pub(crate) fn read(path: &Path, ports: &[u16], time: Option<Duration>) -> Result<Vec<Seen>, LabError> {
    let mut capture = Capture::open(path, None).map_err(|error| LabError::Transfer(error.to_string()))?;
    let mut readers: Vec<_> = ports.iter().map(|port| (*port, Reader::of(time))).collect();
    loop {
        match capture.read() {
            Next::Frame(frame) => {
                if let Found::Tcp(packet) | Found::Flawed(packet, _) = frame.packet() {
                    readers.iter_mut().for_each(|(port, reader)| reader.take(&packet, *port));
                }
            }
            Next::LeftOut | Next::Nothing | Next::Flaw { .. } => {}
            Next::Damaged { detail, .. } => {
                return Err(LabError::Transfer(format!("{}: {detail}", path.display())));
            }
            Next::End => return Ok(readers.into_iter().map(|(_, reader)| reader.seen()).collect()),
        }
    }
}

/// Offsets count from the SYN, which has 0.
#[derive(Debug, Default)]
struct Reader {
    /// How long it is to send. `None`: until it has sent its octets.
    time: Option<Duration>,
    isn: Option<Seq>,
    started: Timestamp,
    last: Timestamp,
    /// Behind the highest octet that was sent, and acknowledged.
    max: u64,
    acked: u64,
    fin: Option<u64>,
    finished: Timestamp,
    findings: Findings,
    progress: Vec<(Timestamp, u64)>,
}

impl Reader {
    fn of(time: Option<Duration>) -> Self {
        Self { time, ..Self::default() }
    }

    /// From the end of its handshake until its time is up. `None`: it goes by octets, or has not been answered.
    fn its_time(&self) -> Option<(Timestamp, Timestamp)> {
        // What is acknowledged first is the SYN.
        let (time, (from, _)) = (self.time?, self.progress.first()?);
        Some((*from, Timestamp(from.0.saturating_add(time.as_nanos() as i64))))
    }

    fn take(&mut self, packet: &Packet, port: u16) {
        let forth = packet.dst.port() == port;
        if !forth && packet.src.port() != port {
            return;
        }
        if self.isn.is_none() {
            if !forth || !packet.flags.contains(Flags::SYN) {
                return;
            }
            self.isn = Some(packet.seq);
            (self.started, self.last) = (packet.at, packet.at);
        }
        let until = self.its_time().map_or(packet.at, |(_, to)| to.min(packet.at));
        let silence = until.since(std::mem::replace(&mut self.last, packet.at)).max(0.0);
        if forth {
            self.sent(packet, silence);
        } else if let Some(ack) = packet.ack {
            let closed = packet.window == 0
                && ![Flags::SYN, Flags::RST].iter().any(|flag| packet.flags.contains(*flag));
            self.findings.closed_windows += u64::from(closed);
            self.acked(packet.at, ack);
        }
    }

    fn offset(&self, number: Seq) -> Option<u64> {
        number.offset(self.isn?, self.acked)
    }

    fn sent(&mut self, packet: &Packet, silence: f64) {
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

    fn acked(&mut self, at: Timestamp, ack: Seq) {
        let Some(ack) = self.offset(ack) else { return };
        if ack <= self.acked || ack > self.max {
            return;
        }
        // What acknowledges the FIN alone acknowledges no data.
        if self.fin.is_none_or(|fin| self.acked < fin) {
            self.finished = at;
            self.progress.push((at, ack - 1));
        }
        self.acked = ack;
    }

    fn seen(mut self) -> Seen {
        let fin = u64::from(self.fin.is_some_and(|fin| self.acked > fin));
        let (from, to) = self.its_time().unwrap_or((self.started, self.finished));
        self.findings.acked_bytes = self.acked.saturating_sub(1 + fin);
        self.findings.seconds = to.since(from).max(0.0);
        let Self { findings, mut progress, .. } = self;
        // The ACK for the last octet may be one for the FIN, too.
        if let Some((_, octets)) = progress.last_mut() {
            *octets = findings.acked_bytes;
        }
        Seen { findings, from, to, progress }
    }
}

#[cfg(test)]
mod tests {
    use airwire::options::Options;
    use airwire::segment::Ecn;

    use super::*;

    const PORT: u16 = 9000;
    /// The sequence number wraps soon.
    const ISN: Seq = Seq(u32::MAX - 500);

    fn packet(at: f64, ports: [u16; 2], seq: Seq, ack: Option<Seq>, len: u32) -> Packet {
        let [src, dst] = ports.map(|port| ([127, 0, 0, 1], port).into());
        let (flags, options) = (Flags::NONE, Options::default());
        let at = Timestamp((at * 1e9) as i64);
        Packet {
            number: 0,
            at,
            src,
            dst,
            seq,
            ack,
            flags,
            window: 0,
            ecn: Ecn::NotEct,
            len,
            ip_id: None,
            options,
            options_cut: false,
        }
    }

    fn syn(at: f64) -> Packet {
        Packet { flags: Flags::SYN, ..packet(at, [1000, PORT], ISN, None, 0) }
    }

    fn data(at: f64, seq: u64, len: u32) -> Packet {
        packet(at, [1000, PORT], ISN.at(seq), Some(Seq(1)), len)
    }

    fn fin(at: f64, seq: u64, len: u32) -> Packet {
        Packet { flags: Flags::FIN, ..data(at, seq, len) }
    }

    fn ack(at: f64, ack: u64) -> Packet {
        packet(at, [PORT, 1000], Seq(1), Some(ISN.at(ack)), 0)
    }

    fn findings(packets: &[Packet]) -> Findings {
        let mut reader = Reader::default();
        packets.iter().for_each(|packet| reader.take(packet, PORT));
        reader.seen().findings
    }

    #[test]
    fn what_was_acknowledged_is_known_at_any_time() {
        let mut reader = Reader::default();
        let packets = [
            syn(10.0),
            ack(10.1, 1),
            data(10.1, 1, 1000),
            ack(10.3, 1001),
            fin(10.3, 1001, 500),
            ack(10.5, 1502),
        ];
        packets.iter().for_each(|packet| reader.take(packet, PORT));
        let seen = reader.seen();
        let until = |at: f64| seen.acked_until(Timestamp((at * 1e9) as i64));
        assert_eq!([9.0, 10.2, 10.3, 10.4, 10.5, 99.0].map(until), [0, 0, 1000, 1000, 1500, 1500]);
    }

    #[test]
    fn who_goes_by_time_is_measured_for_that_time_and_not_until_the_buffer_is_empty() {
        let packets = [
            syn(10.0),
            ack(10.5, 1),
            data(10.5, 1, 1000),
            ack(11.0, 1001),
            data(11.0, 1001, 2000),
            ack(12.5, 2001),
            // Two seconds from the handshake on it has nothing more to send, and this is on its way.
            data(13.5, 2001, 1000),
            ack(14.0, 3001),
            fin(14.0, 3001, 0),
            ack(14.5, 3002),
        ];
        let seen = |time| {
            let mut reader = Reader::of(time);
            packets.iter().for_each(|packet| reader.take(packet, PORT));
            reader.seen()
        };
        let by_time = seen(Some(Duration::from_secs(2)));
        assert_eq!((by_time.findings.seconds, by_time.measured()), (2.0, 2000));
        assert_eq!(by_time.findings.acked_bytes, 3000, "all of it has to arrive");
        // Silent from 12.5 to 13.5, and of that nothing is in its time.
        assert_eq!((by_time.findings.resent_packets, by_time.findings.idle_seconds), (1, 0.0));
        let by_octets = seen(None);
        assert_eq!((by_octets.findings.seconds, by_octets.measured()), (4.0, 3000));
        assert!((by_octets.findings.idle_seconds - 1.0).abs() < 1e-9);
        assert_eq!(Reader::of(Some(Duration::from_secs(2))).seen().findings, Findings::default());
    }

    #[test]
    fn a_transfer_without_loss_waits_for_nothing() {
        let found =
            findings(&[syn(10.0), ack(10.1, 1), data(10.1, 1, 1000), fin(10.2, 1001, 500), ack(10.5, 1502)]);
        assert_eq!((found.acked_bytes, found.data_packets, found.resent_packets), (1500, 2, 0));
        assert_eq!(found.idle_seconds, 0.0);
        assert!((found.seconds - 0.5).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_silence_before_a_retransmission_is_idle_time_and_no_other_is() {
        let found = findings(&[
            syn(10.0),
            ack(10.1, 1),
            data(10.1, 1, 1000),
            data(10.2, 1001, 1000),
            // The application had nothing to say.
            data(12.2, 2001, 1000),
            data(13.2, 1, 1000),
            ack(13.3, 3001),
        ]);
        assert_eq!((found.resent_packets, found.resent_bytes), (1, 1000));
        assert!((found.idle_seconds - 1.0).abs() < 1e-9, "{found:?}");
        assert_eq!(found.acked_bytes, 3000);
    }

    #[test]
    fn a_lost_syn_and_an_ack_for_the_fin_alone_are_no_data() {
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
    fn other_connections_are_none_of_its_business() {
        let other = packet(10.05, [1001, 9001], Seq(7), None, 500);
        let found = findings(&[syn(10.0), ack(10.1, 1), data(10.1, 1, 100), other, ack(10.2, 101)]);
        assert_eq!((found.acked_bytes, found.data_packets), (100, 1));
    }
}
