//! Reads the PDUs of a capture in the framings `rlc-lte` and `rlc-nr`.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::{Generation, Mode};
use crate::settings::Time;
use crate::trace::Direction;

/// A transmitted PDU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Number of the frame in the capture, from 1.
    pub number: u64,
    /// Beginning of the first transmission, since 1970.
    pub at: Time,
    /// Time from `at` to the arrival. `None`: the capture does not contain it.
    pub delay: Option<Time>,
    /// Whether the PDU does not arrive.
    pub lost: bool,
    /// Number of this transmission of the PDU, at most 65535.
    pub transmission: u16,
    /// Direction of the PDU.
    pub direction: Direction,
    /// UE ID, which changes with each re-establishment.
    pub ue: u16,
    /// DRB identity.
    pub bearer: u8,
    /// Format of the PDU.
    pub generation: Generation,
    /// Mode of RLC.
    pub mode: Mode,
    /// The PDU.
    pub pdu: Vec<u8>,
}

/// Magic number of a pcap file with nanoseconds, in the byte order of the writer.
const NANOSECONDS: u32 = 0xa1b2_3c4d;
/// LINKTYPE_RAW: the packet begins with the IP header.
const RAW: u32 = 101;
/// Size of the file header.
const HEADER: usize = 24;
const NETWORK: [u8; 4] = [192, 0, 2, 1];
/// UDP source port of a PDU that does not arrive.
const LOST: u16 = 50_002;
/// The Internet Timestamp option (RFC 791) with one timestamp.
const TIMESTAMP: [u8; 4] = [68, 8, 9, 0];
/// The timestamp is not the time since midnight.
const NON_STANDARD: u32 = 1 << 31;

/// Reads the frames of a capture.
pub fn read(path: &Path) -> Result<Vec<Frame>> {
    let file = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let (mut at, mut frames) = (HEADER, Vec::new());
    while at < file.len() {
        let (frame, next) = record(&file, at, frames.len() as u64 + 1)?;
        frames.push(frame);
        at = next;
    }
    Ok(frames)
}

/// Whether the first frame of a capture has the framing `rlc-lte` or `rlc-nr`.
pub fn is_lte_or_nr(path: &Path) -> Result<bool> {
    let file = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(record(&file, HEADER, 1).is_ok())
}

/// Reads the record at an offset of the file. Returns its frame and the offset of the next record.
fn record(file: &[u8], at: usize, number: u64) -> Result<(Frame, usize)> {
    let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    ensure!(word(0) == Some(NANOSECONDS) && word(20) == Some(RAW), "not a capture of airlink");
    let header = (word(at), word(at + 4), word(at + 8));
    let (Some(seconds), Some(nanoseconds), Some(length)) = header else { bail!("frame {number} is cut") };
    let packet = at + 16..at + 16 + length as usize;
    let octets = file.get(packet.clone()).with_context(|| format!("frame {number} is cut"))?;
    let time = Time::from(seconds) * 1_000_000_000 + Time::from(nanoseconds);
    Ok((frame(number, time, octets).with_context(|| format!("frame {number}"))?, packet.end))
}

fn frame(number: u64, at: Time, packet: &[u8]) -> Result<Frame> {
    let header = usize::from(packet.first().context("empty")? & 0x0f) * 4;
    ensure!(packet.len() > header + 8 && header >= 20 && packet[9] == 17, "not a UDP datagram");
    let word = |at: usize| u16::from_be_bytes([packet[at], packet[at + 1]]);
    let delay = packet[20..header].strip_prefix(&TIMESTAMP).and_then(|time| {
        let time = u32::from_be_bytes(time.try_into().ok()?);
        (time & NON_STANDARD != 0).then_some(Time::from(time & !NON_STANDARD))
    });
    let (mode, generation, tags) = framing(&packet[header + 8..])?;
    let direction = if packet[12..16] == NETWORK { Direction::Down } else { Direction::Up };
    let lost = word(header) == LOST;
    let (transmission, pdu) = (word(4), Vec::new());
    let mut frame =
        Frame { number, at, delay, lost, transmission, direction, ue: 0, bearer: 0, generation, mode, pdu };
    frame.read_tags(tags)?;
    ensure!(frame.has_known_format(), "{:?}", frame.generation);
    Ok(frame)
}

/// Reads the beginning of the framing. Returns the mode, the generation and the tags.
fn framing(payload: &[u8]) -> Result<(Mode, Generation, &[u8])> {
    let (mode, generation, tags) = if let Some(rest) = payload.strip_prefix(b"rlc-nr") {
        let (&[mode, sn], tags) = rest.split_first_chunk().context("no mode")?;
        (mode, Generation::Nr(sn), tags)
    } else if let Some(rest) = payload.strip_prefix(b"rlc-lte") {
        let (&[mode], tags) = rest.split_first_chunk().context("no mode")?;
        (mode, Generation::Lte(10), tags)
    } else {
        bail!("neither rlc-lte nor rlc-nr");
    };
    let mode = match mode {
        2 => Mode::Unacknowledged,
        4 => Mode::Acknowledged,
        _ => bail!("neither acknowledged nor unacknowledged mode"),
    };
    Ok((mode, generation, tags))
}

impl Frame {
    /// Reads the tags of the framing. The last one contains the PDU.
    fn read_tags(&mut self, mut tags: &[u8]) -> Result<()> {
        loop {
            let (&[tag], rest) = tags.split_first_chunk().context("no payload tag")?;
            if tag == 1 {
                self.pdu = rest.to_vec();
                return Ok(());
            }
            let octets = self.tag(tag, rest)?;
            tags = rest.get(octets..).context("a tag without its value")?;
        }
    }

    /// Whether the mode has sequence numbers of this size.
    const fn has_known_format(&self) -> bool {
        match self.mode {
            Mode::Acknowledged => {
                matches!(self.generation, Generation::Lte(10 | 16) | Generation::Nr(12 | 18))
            }
            Mode::Unacknowledged => {
                matches!(self.generation, Generation::Lte(5 | 10) | Generation::Nr(6 | 12))
            }
        }
    }

    /// Handles a tag of the framing. Returns the size of its value.
    fn tag(&mut self, tag: u8, value: &[u8]) -> Result<usize> {
        let octet = *value.first().context("a tag without its value")?;
        let word = value.first_chunk().map(|word| u16::from_be_bytes(*word));
        match (self.generation, tag) {
            (Generation::Lte(_), 2) => self.generation = Generation::Lte(octet),
            (Generation::Lte(_), 3) | (Generation::Nr(_), 2) => {
                ensure!((octet == 1) == (self.direction == Direction::Down), "direction {octet}");
            }
            (Generation::Lte(_), 4) => {}
            (Generation::Lte(_), 5) | (Generation::Nr(_), 3) => {
                self.ue = word.context("no UE ID")?;
                return Ok(2);
            }
            (Generation::Lte(_), 6) => return Ok(2),
            (Generation::Lte(_), 7) => {
                self.bearer = word.context("no channel ID")? as u8;
                return Ok(2);
            }
            (Generation::Nr(_), 4) => {}
            (Generation::Nr(_), 5) => self.bearer = octet,
            _ => bail!("tag {tag}"),
        }
        Ok(1)
    }
}
