//! Locates the first received byte that differs from the sent data, and the packets that carried it.

use std::fmt;
use std::path::Path;

use aircaptures::capture::Frame;
use aircaptures::ip::Found;
use aircaptures::packet::Packet;
use airwire::segment::Flags;
use airwire::seq::Seq;
use serde::{Deserialize, Serialize};

use super::LabError;
use super::agent::Received;
use super::capture::for_each_frame;
use super::pattern::byte_at;
use super::testbed::PathSide;
use super::workload::Stream;

/// The first byte that differs from the sent data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The offset of the byte.
    pub at: u64,
    /// The byte that was sent. `None` if the stream should have ended earlier.
    pub expected: Option<u8>,
    /// The byte that was received. `None` if the stream ended earlier.
    pub received: Option<u8>,
    /// The packets with this byte in the capture on the sender's side, in order.
    pub left: Vec<Carried>,
    /// The packets with this byte in the capture on the receiver's side, in order.
    pub arrived: Vec<Carried>,
    /// The name of the capture on the sender's side.
    pub left_in: String,
    /// The name of the capture on the receiver's side.
    pub arrived_in: String,
}

/// A packet that carried the byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// The packet's number in the capture, as in Wireshark.
    pub packet: u64,
    /// The byte in this packet. `None` if the capture did not keep it.
    pub byte: Option<u8>,
}

/// Compares the received data with the test pattern. Returns the offset, the expected byte and the received
/// byte of the first difference. `None` if exactly the first `sent` bytes of the pattern arrived.
pub(crate) fn first(received: &Received, sent: u64) -> Option<(u64, Option<u8>, Option<u8>)> {
    match received.first_difference {
        Some(first) if first.at < sent => Some((first.at, Some(first.expected), Some(first.received))),
        _ if received.bytes < sent => Some((received.bytes, Some(byte_at(received.bytes)), None)),
        _ if received.bytes > sent => Some((sent, None, None)),
        _ => None,
    }
}

/// Searches both captures of the transfer for the packets.
pub(crate) fn locate(
    directory: &Path,
    stream: &Stream<'_>,
    (at, expected, received): (u64, Option<u8>, Option<u8>),
) -> Result<Difference, LabError> {
    let left_in = PathSide::sending(stream.direction).capture();
    let arrived_in = PathSide::receiving(stream.direction).capture();
    Ok(Difference {
        at,
        expected,
        received,
        left: carried(&directory.join(left_in), stream.port(), at)?,
        arrived: carried(&directory.join(arrived_in), stream.port(), at)?,
        left_in: left_in.to_owned(),
        arrived_in: arrived_in.to_owned(),
    })
}

/// The packets to this port that carry the byte at offset `at`.
fn carried(path: &Path, port: u16, at: u64) -> Result<Vec<Carried>, LabError> {
    let (mut isn, mut found) = (None, Vec::new());
    for_each_frame(path, |frame| {
        let (Found::Tcp(packet) | Found::Flawed(packet, _)) = frame.packet() else { return };
        if packet.dst.port() != port {
            return;
        }
        if packet.flags.contains(Flags::SYN) {
            isn = Some(packet.seq);
        }
        found.extend(isn.and_then(|isn| in_packet(frame, &packet, isn, at)));
    })?;
    Ok(found)
}

fn in_packet(frame: &Frame<'_>, packet: &Packet, isn: Seq, at: u64) -> Option<Carried> {
    // The SYN has offset 0, so the first data byte has offset 1.
    let start = packet.seq.offset(isn, at + 1)?;
    let offset = (at + 1).checked_sub(start).filter(|offset| *offset < u64::from(packet.len))?;
    // The payload ends the frame, because a TUN device does not pad.
    let is_complete = frame.data.len() == frame.length as usize;
    let payload = frame.data.len().checked_sub(packet.len as usize).filter(|_| is_complete);
    let byte = payload.and_then(|payload| frame.data.get(payload + offset as usize).copied());
    Some(Carried { packet: frame.number, byte })
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, expected, received, left, arrived, left_in, arrived_in } = self;
        match (expected, received) {
            (Some(expected), Some(received)) => {
                write!(f, "byte at offset {at} is {received:#04x}, expected {expected:#04x}")?;
            }
            (Some(_), None) => write!(f, "only {at} bytes arrived")?,
            (None, _) => return write!(f, "more than the {at} bytes sent arrived"),
        }
        let wrong = |packets: &[Carried]| packets.iter().any(|it| it.byte.is_some() && it.byte != *expected);
        let right = |packets: &[Carried]| packets.iter().any(|it| it.byte == *expected);
        write!(f, "; {}; {}", describe(left_in, left), describe(arrived_in, arrived))?;
        f.write_str(match () {
            () if left.is_empty() => ": the sender did not send it",
            () if wrong(left) => ": the sender sent it like this",
            () if arrived.is_empty() => ": the path lost it",
            () if wrong(arrived) => ": the path changed it",
            () if right(arrived) => ": it left the path unchanged, so the receiver changed or lost it",
            () => "",
        })
    }
}

/// Describes the packets of a capture in words.
fn describe(file: &str, packets: &[Carried]) -> String {
    if packets.is_empty() {
        return format!("no packet of {file} has that byte");
    }
    let packets = packets.iter().map(|Carried { packet, byte }| match byte {
        Some(byte) => format!("packet {packet} with {byte:#04x}"),
        None => format!("packet {packet}"),
    });
    format!("in {file} it is in {}", packets.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::pattern::FirstDifference;
    use crate::sender::resolve;
    use crate::workload::Workload;

    fn received(bytes: u64, first: Option<u64>) -> Received {
        let first_difference = first.map(|at| FirstDifference { at, expected: 1, received: 2 });
        Received { bytes, sha256: String::new(), first_difference }
    }

    #[test]
    fn first_difference_is_byte_or_stream_end() {
        assert_eq!(first(&received(100, None), 100), None);
        assert_eq!(first(&received(100, Some(7)), 100), Some((7, Some(1), Some(2))));
        assert_eq!(first(&received(50, None), 100), Some((50, Some(byte_at(50)), None)));
        assert_eq!(first(&received(120, Some(100)), 100), Some((100, None, None)));
        assert_eq!(first(&received(120, None), 100), Some((100, None, None)));
    }

    #[test]
    fn difference_names_path_sender_or_receiver() {
        let with = |byte| vec![Carried { packet: 9, byte: Some(byte) }];
        let message = |left: Vec<Carried>, arrived: Vec<Carried>| {
            let (left_in, arrived_in) = ("fixed.pcap".to_owned(), "mobile.pcap".to_owned());
            let (at, expected, received) = (5000, Some(0x41), Some(0x58));
            Difference { at, expected, received, left, arrived, left_in, arrived_in }.to_string()
        };
        let expected = "byte at offset 5000 is 0x58, expected 0x41; in fixed.pcap it is in packet 9 with 0x41; \
                        in mobile.pcap it is in packet 9 with 0x58: the path changed it";
        assert_eq!(message(with(0x41), with(0x58)), expected);
        assert!(message(with(0x58), with(0x58)).ends_with(": the sender sent it like this"));
        assert!(message(with(0x41), with(0x41)).ends_with("so the receiver changed or lost it"));
        assert!(message(with(0x41), vec![]).contains("no packet of mobile.pcap has that byte"));
        assert!(message(vec![], vec![]).ends_with(": the sender did not send it"));
    }

    /// A capture of raw IPv4 packets to port 9000, with the given sequence numbers, flags and payloads.
    fn pcap(packets: &[(u32, u8, &[u8])]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, 101] {
            file.extend(word.to_le_bytes());
        }
        for (seq, flags, payload) in packets {
            let length = 40 + payload.len() as u32;
            for word in [1000, 0, length, length] {
                file.extend(word.to_le_bytes());
            }
            file.extend([0x45, 0]);
            file.extend((length as u16).to_be_bytes());
            file.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, 83, 0, 2, 100, 64, 0, 2, 0x13, 0x88]);
            file.extend(9000_u16.to_be_bytes());
            file.extend(seq.to_be_bytes());
            file.extend([0, 0, 0, 1, 0x50, *flags, 0xff, 0xff, 0, 0, 0, 0]);
            file.extend(*payload);
        }
        file
    }

    #[test]
    fn differing_byte_is_located_in_both_captures() {
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        // The sequence numbers wrap within the first packet.
        let isn = u32::MAX - 49;
        let right: Vec<u8> = (0..300).map(byte_at).collect();
        let mut wrong = right.clone();
        wrong[150] ^= 0x40;
        let at = |offset: usize| isn.wrapping_add(1 + offset as u32);
        let syn = (isn, SYN, &[][..]);
        let left = [
            syn,
            (at(0), ACK, &right[..100]),
            (at(100), ACK, &right[100..200]),
            (at(120), ACK, &right[120..220]),
        ];
        let arrived = [syn, (at(120), ACK, &wrong[120..220]), (at(0), ACK, &right[..100])];
        let directory = std::env::temp_dir().join(format!("airtcp-test-difference-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("fixed.pcap"), pcap(&left)).unwrap();
        fs::write(directory.join("mobile.pcap"), pcap(&arrived)).unwrap();
        let senders = resolve(&["newreno".parse().unwrap()], None).unwrap();
        let workload = Workload::plain(300);
        let streams = workload.streams(&senders[0]);
        let found = locate(&directory, &streams[0], (150, Some(right[150]), Some(wrong[150])));
        let beyond = locate(&directory, &streams[0], (250, Some(right[250]), None));
        fs::remove_dir_all(&directory).unwrap();
        let found = found.unwrap();
        let with = |packet, byte: u8| Carried { packet, byte: Some(byte) };
        assert_eq!(found.left, [with(3, right[150]), with(4, right[150])]);
        assert_eq!(found.arrived, [with(2, wrong[150])]);
        assert!(found.to_string().ends_with(": the path changed it"), "{found}");
        assert!(beyond.unwrap().to_string().ends_with(": the sender did not send it"));
    }
}
