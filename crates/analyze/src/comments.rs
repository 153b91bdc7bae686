//! Writes the reason for each packet as a comment into a pcapng file. Wireshark shows it with the packet.
//!
//! ```text
//! resent fast dupacks=3 flight=9 | three-dupacks: 1 segment lost from 14481 (three duplicate ACKs) | …
//! ```
//!
//! A comment begins with the analysis of the packet, followed by the sender's decisions at that time. New
//! data gets a comment only if there was a decision at that time.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airlink::views::pcapng::{self, Writer};

use super::connection::Ended;
use super::decisions::{Line, Log};
use super::trace::{Fate, Loss, Offset, Proof, Sending, SentSegment, Trace};
use aircaptures::capture::{Capture, Next};
use aircaptures::link_layer::LinkType;

/// The comments on the frames of a capture. A first pass over the capture collects them, and a second pass
/// writes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comments {
    by_frame: BTreeMap<u64, String>,
    log: Option<Log>,
    /// The direction with the most data, and its number of bytes. The log is assumed to belong to its sender.
    largest: Option<(u64, Trace)>,
}

/// Separator between the parts of a comment.
const SEPARATOR: &str = " | ";
/// Maximum length of a comment in bytes. The format allows 65,535, but such comments would not be readable.
const MAX_LENGTH: usize = 4000;
/// Nanoseconds by which the times of logs and captures may differ because of rounding.
const ROUNDING: Offset = 2_000;
/// Nanoseconds within which a packet passes the capture point after the sender's decision, even on a busy
/// machine.
const MAX_DELAY: Offset = 200_000_000;
/// libpcap's maximum. All interfaces have the same snap length, since libpcap rejects files in which they
/// differ.
const SNAP_LENGTH: u32 = 262_144;

impl Comments {
    /// Creates an empty set. `log` is the decision log of a sender whose packets are in the capture.
    pub fn new(log: Option<Log>) -> Self {
        Self { log, ..Self::default() }
    }

    /// Adds the comments for a connection whose traces were kept.
    pub fn add_connection(&mut self, ended: &Ended) {
        let traces = ended.traces.iter().flatten();
        for (trace, findings) in traces.zip(&ended.findings.directions) {
            for segment in &trace.segments {
                if let Some(text) = why_sent(segment) {
                    self.add(segment.number, &text);
                }
            }
            let is_larger = self.largest.as_ref().is_none_or(|(bytes, _)| findings.sent_bytes > *bytes);
            if self.log.is_some() && is_larger {
                self.largest = Some((findings.sent_bytes, trace.clone()));
            }
        }
    }

    /// Adds the log's decisions. It must be called after the last connection. Returns the number of decisions
    /// from before or after the connection, which do not belong to any packet.
    pub fn add_decisions(&mut self) -> usize {
        let Some(Log { lines, start }) = self.log.take() else { return 0 };
        let (_, trace) = self.largest.take().unwrap_or_default();
        let packets = PacketList::new(&trace);
        let mut unassigned = 0;
        for moment in lines.chunk_by(|a, b| a.time == b.time) {
            let at = start - trace.origin + (moment[0].time * 1e9).round() as i64;
            let mut frames = vec![None; moment.len()];
            // In the log, the decisions that lead to a transmission precede it.
            let (mut open, mut last) = (0, None);
            for (index, line) in moment.iter().enumerate() {
                if let Some(sent) = packets.transmission(at, line) {
                    last = Some(sent);
                    frames[open..=index].fill(last);
                    open = index + 1;
                }
            }
            frames[open..].fill(last.or_else(|| packets.nearest(at)));
            for (line, frame) in moment.iter().zip(frames) {
                match frame {
                    Some(frame) => self.add(frame, &format!("{}: {} ({})", line.by, line.detail(), line.why)),
                    None => unassigned += 1,
                }
            }
        }
        unassigned
    }

    fn add(&mut self, frame: u64, text: &str) {
        let comment = self.by_frame.entry(frame).or_default();
        if comment.len() + SEPARATOR.len() + text.len() > MAX_LENGTH {
            if !comment.ends_with('…') {
                comment.push_str(" | …");
            }
            return;
        }
        if !comment.is_empty() {
            comment.push_str(SEPARATOR);
        }
        // Comments must not contain line breaks.
        comment.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }

    /// Writes the capture with the comments to a file.
    pub fn save(&self, capture: &mut Capture, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(airfiles::create_private(path)?);
        self.write(capture, &mut file)?;
        file.flush()
    }

    /// Writes the frames of the capture with the comments. The output has one interface per link type, and
    /// the names of the interfaces are lost.
    fn write(&self, capture: &mut Capture, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = Writer::default();
        writer.section_header(concat!("airtcp ", env!("CARGO_PKG_VERSION")));
        let mut links: Vec<LinkType> = Vec::new();
        loop {
            let frame = match capture.read() {
                Next::Frame(frame) => frame,
                Next::Filtered | Next::Flaw { .. } => continue,
                Next::NoFrame | Next::Damaged { .. } | Next::End => break,
            };
            let interface = links.iter().position(|link| *link == frame.link).unwrap_or_else(|| {
                writer.interface_of(frame.link.in_files(), SNAP_LENGTH, None);
                links.push(frame.link);
                links.len() - 1
            });
            let captured = &frame.data[..frame.data.len().min(SNAP_LENGTH as usize)];
            writer.frame(&pcapng::Frame {
                interface: interface as u32,
                wall: frame.at.0.max(0) as u64,
                bytes: [captured, &[]],
                length: frame.length,
                direction: None,
                comment: self.by_frame.get(&frame.number).map(String::as_str),
            });
            out.write_all(&writer.buffer)?;
            writer.buffer.clear();
        }
        out.write_all(&writer.buffer)
    }
}

fn why_sent(segment: &SentSegment) -> Option<String> {
    let SentSegment { dupacks, in_flight, .. } = segment;
    let sending = match segment.sending {
        Sending::New => None,
        Sending::Fast => Some(format!("resent fast dupacks={dupacks} flight={in_flight}")),
        Sending::Timeout => Some(format!("resent timeout dupacks={dupacks} flight={in_flight}")),
        Sending::Tail => Some(format!("resent tail dupacks={dupacks} flight={in_flight}")),
        Sending::Probe => Some("probe".to_owned()),
        Sending::Unexplained => Some(format!("resent dupacks={dupacks} flight={in_flight}")),
    };
    let fate = match segment.fate {
        Fate::Unknown | Fate::Arrived { .. } => None,
        Fate::Lost(Loss::Between { before }) => Some(format!("lost before=capture-{before}")),
        Fate::Lost(Loss::Airlink(cause)) => Some(format!("lost cause={}", cause.name())),
        Fate::Spurious { proof: Proof::Timestamp } => Some("spurious proof=timestamp".to_owned()),
        Fate::Spurious { proof: Proof::Dsack } => Some("spurious proof=dsack".to_owned()),
        Fate::Spurious { proof: Proof::Arrival } => Some("spurious proof=arrival".to_owned()),
        Fate::Spurious { proof: Proof::Acked } => Some("spurious proof=acked".to_owned()),
    };
    let parts: Vec<_> = [sending, fate].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The packets of a direction and their ACKs, in the order of the capture.
struct PacketList(Vec<ListedPacket>);

#[derive(Clone, Copy)]
struct ListedPacket {
    at: Offset,
    number: u64,
    /// The sequence space of a segment. `None` for an ACK.
    sent: Option<(u64, u64)>,
}

impl PacketList {
    fn new(trace: &Trace) -> Self {
        let sent = trace.segments.iter().map(|it| ListedPacket {
            at: it.at,
            number: it.number,
            sent: Some((it.start, it.end)),
        });
        let acks = trace.acks.iter().map(|it| ListedPacket { at: it.at, number: it.number, sent: None });
        let mut packets: Vec<_> = sent.chain(acks).collect();
        packets.sort_by_key(|packet| packet.number);
        Self(packets)
    }

    /// Returns the index of the first packet at or after this time.
    fn from(&self, at: Offset) -> usize {
        self.0.partition_point(|packet| packet.at < at - ROUNDING)
    }

    /// Returns the frame that the decision caused.
    fn transmission(&self, at: Offset, line: &Line) -> Option<u64> {
        if !matches!(line.what.as_str(), "resend" | "probe" | "timeout") {
            return None;
        }
        let offset = line.offset()?;
        let later = self.0[self.from(at)..].iter().take_while(|packet| packet.at <= at + MAX_DELAY);
        let mut transmissions = later
            .filter(|packet| packet.sent.is_some_and(|(start, end)| (start..end).contains(&offset)))
            .map(|packet| packet.number);
        transmissions.next()
    }

    /// Returns the frame that was sent after a decision. Without such a frame, returns the ACK that caused
    /// the decision. In virtual time, ACK, decision and frame have the same timestamp.
    fn nearest(&self, at: Offset) -> Option<u64> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        if !(first.at - MAX_DELAY..=last.at + MAX_DELAY).contains(&at) {
            return None;
        }
        let from = self.from(at);
        let acks =
            self.0[from..].iter().take_while(|packet| packet.sent.is_none() && packet.at <= at + ROUNDING);
        let next = from + acks.count();
        let sent = self.0.get(next).filter(|packet| packet.sent.is_some() && packet.at <= at + MAX_DELAY);
        let packet = sent.or_else(|| self.0.get(next.saturating_sub(1)));
        packet.map(|packet| packet.number)
    }
}

#[cfg(test)]
mod tests;
