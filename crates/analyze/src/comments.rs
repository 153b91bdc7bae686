//! Why packets were sent, as comments in a pcapng file, which Wireshark shows beside them.
//!
//! ```text
//! resent fast dupacks=3 flight=9 | three-dupacks: 1 segment lost from 14481 on (three duplicate ACKs) | …
//! ```
//!
//! First what the capture tells of the packet, then what its sender's own log has for this moment. New data that
//! nobody decided anything about have no comment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use airlink::views::pcapng::{self, Writer};

use super::capture::{Capture, Next};
use super::connection::Ended;
use super::decisions::{Line, Log};
use super::link_layer::LinkType;
use super::trace::{Fate, Offset, Place, Proof, Sending, SentSegment, Trace};

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comments {
    by_frame: BTreeMap<u64, String>,
    log: Option<Log>,
    /// Whose log it is: the direction with most data.
    most: Option<(u64, Trace)>,
}

/// Between parts of a comment.
const BETWEEN: &str = " | ";
/// Octets of a comment. A length has 16 bits, and nobody reads as much.
const LONGEST: usize = 4000;
/// Two clocks are told apart from here on: times of logs and captures were rounded.
const ROUNDING: Offset = 2_000;
/// What a sender has decided to send leaves within this, even if the capture is made behind a busy machine.
const PROMPT: Offset = 200_000_000;
/// Libpcap's largest, and the same for all, since it reads no file in which they differ.
const SNAP_LENGTH: u32 = 262_144;

impl Comments {
    /// With the log of a sender in the capture, if there is one.
    pub fn new(log: Option<Log>) -> Self {
        Self { log, ..Self::default() }
    }

    /// A connection of which all was kept.
    pub fn take(&mut self, ended: &Ended) {
        let traces = ended.traces.iter().flatten();
        for (trace, findings) in traces.zip(&ended.findings.directions) {
            for segment in &trace.segments {
                if let Some(text) = why_sent(segment) {
                    self.add(segment.number, &text);
                }
            }
            let more = self.most.as_ref().is_none_or(|(bytes, _)| findings.sent_bytes > *bytes);
            if self.log.is_some() && more {
                self.most = Some((findings.sent_bytes, trace.clone()));
            }
        }
    }

    /// After the last connection. Hands back how many decisions are of a time before or after the connection.
    pub fn add_decisions(&mut self) -> usize {
        let Some(Log { lines, start }) = self.log.take() else { return 0 };
        let (_, trace) = self.most.take().unwrap_or_default();
        let seen = Seen::new(&trace);
        let mut elsewhere = 0;
        for moment in lines.chunk_by(|a, b| a.time == b.time) {
            let at = start - trace.origin + (moment[0].time * 1e9).round() as i64;
            let mut frames = vec![None; moment.len()];
            // What leads to a transmission stands before it.
            let (mut open, mut last) = (0, None);
            for (index, line) in moment.iter().enumerate() {
                if let Some(sent) = seen.transmission(at, line) {
                    last = Some(sent);
                    frames[open..=index].fill(last);
                    open = index + 1;
                }
            }
            frames[open..].fill(last.or_else(|| seen.nearest(at)));
            for (line, frame) in moment.iter().zip(frames) {
                match frame {
                    Some(frame) => self.add(frame, &format!("{}: {} ({})", line.by, line.detail(), line.why)),
                    None => elsewhere += 1,
                }
            }
        }
        elsewhere
    }

    fn add(&mut self, frame: u64, text: &str) {
        let comment = self.by_frame.entry(frame).or_default();
        if comment.len() + BETWEEN.len() + text.len() > LONGEST {
            if !comment.ends_with('…') {
                comment.push_str(" | …");
            }
            return;
        }
        if !comment.is_empty() {
            comment.push_str(BETWEEN);
        }
        // A line for a line.
        comment.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c }));
    }

    pub fn save(&self, capture: &mut Capture, path: &Path) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        self.write(capture, &mut file)?;
        file.flush()
    }

    /// The same frames with the comments. Interfaces are those of the link types, without their names.
    pub fn write(&self, capture: &mut Capture, out: &mut dyn Write) -> io::Result<()> {
        let mut writer = Writer::default();
        writer.section_header(concat!("airtcp ", env!("CARGO_PKG_VERSION")));
        let mut links: Vec<LinkType> = Vec::new();
        loop {
            let frame = match capture.read() {
                Next::Frame(frame) => frame,
                Next::LeftOut | Next::Flaw { .. } => continue,
                Next::Nothing | Next::Damaged { .. } | Next::End => break,
            };
            let interface = links.iter().position(|link| *link == frame.link).unwrap_or_else(|| {
                writer.interface_of(frame.link.in_files(), SNAP_LENGTH, None);
                links.push(frame.link);
                links.len() - 1
            });
            let kept = &frame.data[..frame.data.len().min(SNAP_LENGTH as usize)];
            writer.frame(&pcapng::Frame {
                interface: interface as u32,
                wall: frame.at.0.max(0) as u64,
                bytes: [kept, &[]],
                length: frame.length,
                way: None,
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
        Fate::Lost(Place::Between { before }) => Some(format!("lost before=capture-{before}")),
        Fate::Lost(Place::Congestion) => Some("lost cause=congestion".to_owned()),
        Fate::Lost(Place::Radio) => Some("lost cause=radio".to_owned()),
        Fate::Unneeded { proof: Proof::Timestamp } => Some("spurious proof=timestamp".to_owned()),
        Fate::Unneeded { proof: Proof::Dsack } => Some("spurious proof=dsack".to_owned()),
        Fate::Unneeded { proof: Proof::Arrival } => Some("spurious proof=arrival".to_owned()),
    };
    let parts: Vec<_> = [sending, fate].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// The packets of a direction and the ACKs for them, in the order of the capture.
struct Seen(Vec<Event>);

#[derive(Clone, Copy)]
struct Event {
    at: Offset,
    number: u64,
    /// Of the segment, if it is one.
    sent: Option<(u64, u64)>,
}

impl Seen {
    fn new(trace: &Trace) -> Self {
        let sent = trace.segments.iter().map(|it| Event {
            at: it.at,
            number: it.number,
            sent: Some((it.start, it.end)),
        });
        let acks = trace.acks.iter().map(|it| Event { at: it.at, number: it.number, sent: None });
        let mut events: Vec<_> = sent.chain(acks).collect();
        events.sort_by_key(|event| event.number);
        Self(events)
    }

    /// The first at this time or later.
    fn from(&self, at: Offset) -> usize {
        self.0.partition_point(|event| event.at < at - ROUNDING)
    }

    /// The packet that the decision was to send.
    fn transmission(&self, at: Offset, line: &Line) -> Option<u64> {
        if !matches!(line.what.as_str(), "resend" | "probe" | "timeout") {
            return None;
        }
        let offset = line.offset()?;
        let later = self.0[self.from(at)..].iter().take_while(|event| event.at <= at + PROMPT);
        let mut carries = later
            .filter(|event| event.sent.is_some_and(|(start, end)| (start..end).contains(&offset)))
            .map(|event| event.number);
        carries.next()
    }

    /// What was sent upon it; else the packet that it was decided upon. In virtual time all of these are at one instant.
    fn nearest(&self, at: Offset) -> Option<u64> {
        let (first, last) = (self.0.first()?, self.0.last()?);
        if !(first.at - PROMPT..=last.at + PROMPT).contains(&at) {
            return None;
        }
        let from = self.from(at);
        let at_once =
            self.0[from..].iter().take_while(|event| event.sent.is_none() && event.at <= at + ROUNDING);
        let next = from + at_once.count();
        let sent = self.0.get(next).filter(|event| event.sent.is_some() && event.at <= at + PROMPT);
        let event = sent.or_else(|| self.0.get(next.saturating_sub(1)));
        event.map(|event| event.number)
    }
}

#[cfg(test)]
mod tests;
