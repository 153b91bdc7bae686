//! A recording: the packets that the kernel's receiver received and sent, with the kernel's timestamps.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use airwire::options::{Options, Timestamps};
use airwire::segment::{self, Flags, Segment};
use airwire::time::Duration;
use airwire::view::View;

/// A line of `list.txt`.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub name: String,
    pub receiver: String,
    /// Whether the recording was held out: not examined while the model was developed.
    pub held_out: bool,
}

/// One packet at its original length; its payload is replaced by zeros.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Time since the first packet.
    pub at: Duration,
    pub bytes: Vec<u8>,
    pub src: SocketAddr,
    pub flags: Flags,
    pub seq: u32,
    pub timestamps: Option<Timestamps>,
}

impl Packet {
    fn new(at: Duration, bytes: Vec<u8>) -> Option<Self> {
        let (src, flags, seq, timestamps) =
            parse(&bytes, |it| (it.src, it.flags, it.seq.0, it.options.timestamps))?;
        Some(Self { at, bytes, src, flags, seq, timestamps })
    }
}

pub(crate) struct Recording {
    /// The packets in the order in which the kernel processed them.
    pub packets: Vec<Packet>,
    /// The address and port of the receiver.
    pub receiver: SocketAddr,
}

/// Parses `list.txt`.
pub(crate) fn list(text: &str) -> Vec<Entry> {
    let mut held_out = false;
    let mut entries = Vec::new();
    for line in text.lines() {
        held_out |= line.contains("held out:");
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let mut fields = line.split('|').map(|field| field.trim().to_owned());
        let (Some(name), Some(receiver)) = (fields.next(), fields.next()) else { continue };
        entries.push(Entry { name, receiver, held_out });
    }
    entries
}

impl Recording {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let file = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let packets =
            packets(&file).ok_or_else(|| format!("{}: not a pcap file of raw IP", path.display()))?;
        let syn = packets.first().and_then(|packet| parse(&packet.bytes, |segment| segment.dst));
        let receiver =
            syn.ok_or_else(|| format!("{}: the recording does not begin with a SYN", path.display()))?;
        Ok(Self { packets, receiver })
    }

    /// Returns the phase of the kernel's millisecond timestamp clock at the start of the recording.
    ///
    /// With this offset added, each arrival falls into the millisecond that the timestamp of its immediate
    /// ACK shows, because the kernel reads the clock once for both.
    pub(crate) fn phase(&self) -> Duration {
        const TOGETHER: Duration = Duration::from_micros(100);
        const MILLISECOND: i128 = 1_000_000;
        let (mut arrival, mut first, mut phase) = (None, None, i128::MIN);
        for packet in &self.packets {
            if packet.src != self.receiver {
                arrival = Some(packet.at);
                continue;
            }
            let (Some(at), Some(stamps)) = (arrival, packet.timestamps) else { continue };
            if packet.at.saturating_sub(at) <= TOGETHER {
                let ticks = stamps.val.wrapping_sub(*first.get_or_insert(stamps.val));
                phase = phase.max(i128::from(ticks) * MILLISECOND - i128::from(at.as_nanos()));
            }
        }
        Duration::from_nanos(if phase == i128::MIN { 0 } else { phase.rem_euclid(MILLISECOND) as u64 })
    }
}

pub(crate) fn parse<T>(packet: &[u8], then: impl FnOnce(&Segment<'_>) -> T) -> Option<T> {
    let segment = segment::parse(packet).ok()?;
    Some(then(&segment))
}

/// Parses a capture of IP packets with nanosecond timestamps, in which each packet is cut to its headers.
fn packets(file: &[u8]) -> Option<Vec<Packet>> {
    const NANOSECONDS: u32 = 0xa1b2_3c4d;
    const RAW_IP: u32 = 101;
    let word = |at: usize| Some(u32::from_le_bytes(file.get(at..at + 4)?.try_into().ok()?));
    if word(0)? != NANOSECONDS || word(20)? != RAW_IP {
        return None;
    }
    let (mut at, mut begin, mut packets) = (24, None, Vec::new());
    while at < file.len() {
        let time = u64::from(word(at)?) * 1_000_000_000 + u64::from(word(at + 4)?);
        let (kept, whole) = (word(at + 8)? as usize, word(at + 12)? as usize);
        let mut bytes = file.get(at + 16..at + 16 + kept)?.to_vec();
        bytes.resize(whole, 0);
        clear_payload(&mut bytes)?;
        fix_checksum(&mut bytes)?;
        let begin = *begin.get_or_insert(time);
        packets.push(Packet::new(Duration::from_nanos(time - begin), bytes)?);
        at += 16 + kept;
    }
    Some(packets)
}

/// Returns the offsets of the TCP header and of the payload.
fn offsets(packet: &[u8]) -> Option<(usize, usize)> {
    let view = View::of(packet).ok()?;
    Some((view.transport, view.transport + view.tcp()?.header.len))
}

fn clear_payload(packet: &mut [u8]) -> Option<()> {
    let (_, text) = offsets(packet)?;
    packet.get_mut(text..)?.fill(0);
    Some(())
}

/// Recomputes the TCP checksum, since the payload is replaced and header fields may be changed. The zeros of
/// the payload add nothing to the sum.
fn fix_checksum(packet: &mut [u8]) -> Option<()> {
    let (tcp, text) = offsets(packet)?;
    packet.get_mut(tcp + 16..tcp + 18)?.fill(0);
    let words = |bytes: &[u8]| -> u32 {
        bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
    };
    let mut sum = words(&packet[12..20]) + 6 + (packet.len() - tcp) as u32 + words(packet.get(tcp..text)?);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    packet[tcp + 16..tcp + 18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    Some(())
}

/// Adapts a packet to a receiver with a different initial sequence number and timestamp clock: adds `ack` to
/// the ACK number and `echo` to the echoed timestamp.
pub(crate) fn translate(packet: &[u8], ack: u32, echo: u32) -> Option<Vec<u8>> {
    let mut packet = packet.to_vec();
    let (tcp, text) = offsets(&packet)?;
    let add = |packet: &mut [u8], at: usize, by: u32| {
        let old = u32::from_be_bytes(packet.get(at..at + 4)?.try_into().ok()?);
        packet[at..at + 4].copy_from_slice(&old.wrapping_add(by).to_be_bytes());
        Some(())
    };
    let is_ack = Flags(u16::from(packet[tcp + 13])).contains(Flags::ACK);
    if is_ack {
        add(&mut packet, tcp + 8, ack)?;
    }
    let mut at = tcp + 20;
    while is_ack && at + 1 < text {
        match packet[at] {
            0 => break,
            1 => at += 1,
            8 => {
                add(&mut packet, at + 6, echo)?;
                break;
            }
            _ => at += usize::from(packet[at + 1].max(2)),
        }
    }
    fix_checksum(&mut packet)?;
    Some(packet)
}

/// An ACK from the receiver, with numbers that do not depend on the connection.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ack {
    pub at: Duration,
    pub flags: Flags,
    /// Relative to the sender's initial sequence number.
    pub ack: u32,
    /// The unscaled value of the header field.
    pub window: u16,
    pub blocks: Vec<(u32, u32)>,
    /// The echoed timestamp of the sender.
    pub echo: Option<u32>,
    pub scale: Option<u8>,
}

impl Ack {
    /// Returns `None` if the packet is not from the receiver.
    pub(crate) fn of(at: Duration, packet: &[u8], receiver: SocketAddr, irs: u32) -> Option<Self> {
        parse(packet, |segment| {
            let Options { timestamps, sack, window_scale, .. } = segment.options;
            let blocks = sack.as_slice();
            (segment.src == receiver).then(|| Self {
                at,
                flags: segment.flags,
                ack: segment.ack.0.wrapping_sub(irs),
                window: segment.window,
                blocks: blocks.iter().map(|(l, r)| (l.0.wrapping_sub(irs), r.0.wrapping_sub(irs))).collect(),
                echo: timestamps.map(|Timestamps { ecr, .. }| ecr),
                scale: window_scale,
            })
        })?
    }
}

impl std::fmt::Display for Ack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:>12.6} {:?} ack {} win {}", self.at.as_secs_f64(), self.flags, self.ack, self.window)?;
        for (left, right) in &self.blocks {
            write!(f, " {left}:{right}")?;
        }
        Ok(())
    }
}
