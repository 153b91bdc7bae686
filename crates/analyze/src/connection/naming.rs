//! Determines the client's name for its server from the first bytes that it sends: the server name of a TLS
//! ClientHello (RFC 6066 §3), or the Host of an HTTP request (RFC 9110 §7.2).
//!
//! Both may be truncated or split into several segments. Parsed bytes are dropped, and at most a few
//! hundred unparsed bytes are kept.

use super::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};
use super::findings::{Name, NamedBy};

/// Maximum number of bytes kept between two segments.
const KEPT: usize = 512;
/// Length of the longest DNS name with a port.
const LONGEST: usize = 253 + 6;
/// Number of lines of an HTTP request that are searched for the Host field.
const LINES: u8 = 100;

/// The state of one connection.
#[derive(Debug, Default)]
pub(super) struct Naming {
    known: Option<Box<Known>>,
    /// The ends whose first data was seen, or is no longer relevant.
    heard: [bool; 2],
}

#[derive(Debug)]
enum Known {
    Reading(Reading),
    Named(Name),
}

#[derive(Debug)]
struct Reading {
    from: usize,
    /// The offset of the next expected byte.
    next: u64,
    place: Place,
    /// The bytes that have not been parsed yet.
    octets: Vec<u8>,
}

#[derive(Debug)]
enum Place {
    /// Before the extensions of a ClientHello.
    Hello,
    /// In the extensions: `skip` bytes of an irrelevant extension remain, and `left` bytes of all extensions.
    Extensions { skip: usize, left: usize },
    /// In an HTTP request, of which at most `left` more lines are parsed.
    Lines { left: u8 },
    /// In a line that is too long for a Host field.
    LongLine { left: u8 },
}

enum Step {
    On(Place, usize),
    /// More bytes are needed.
    Wait,
    Found(Name),
    Nothing,
}

impl Naming {
    /// Returns whether the payload of this end's segments is needed.
    pub(super) fn wants(&self, from: usize) -> bool {
        match self.known.as_deref() {
            None => !self.heard[from],
            Some(Known::Reading(reading)) => reading.from == from,
            Some(Known::Named(_)) => false,
        }
    }

    /// Processes the captured bytes of a segment at `start` with `len` bytes of payload.
    pub(super) fn take(&mut self, from: usize, start: u64, octets: &[u8], len: usize) {
        if self.known.is_none() {
            self.heard[from] = true;
            let place = match octets {
                // A handshake record (RFC 8446 §5.1) that contains a ClientHello (§4).
                [22, 3, _, _, _, 1, ..] => Place::Hello,
                _ if is_request(octets) => Place::Lines { left: LINES },
                _ => return,
            };
            let reading = Reading { from, next: start, place, octets: Vec::new() };
            self.known = Some(Box::new(Known::Reading(reading)));
        }
        let Some(Known::Reading(reading)) = self.known.as_deref_mut() else { return };
        // Bytes after a hole are ignored until the hole is filled.
        let Some(known) = reading.next.checked_sub(start) else { return };
        let new = octets.get(known as usize..).unwrap_or_default();
        reading.next += new.len() as u64;
        match reading.take(new) {
            Step::Found(name) => self.known = Some(Box::new(Known::Named(name))),
            // The rest of a truncated segment will never be captured.
            Step::Wait | Step::On(..) if octets.len() == len => {}
            Step::Nothing | Step::Wait | Step::On(..) => *self = Self { known: None, heard: [true; 2] },
        }
    }

    pub(super) fn heap(&self) -> usize {
        let own = size_of::<Known>() + ALLOCATOR_OVERHEAD;
        match self.known.as_deref() {
            None => 0,
            Some(Known::Reading(reading)) => own + heap_of_vec::<u8>(reading.octets.capacity()),
            Some(Known::Named(name)) => own + ALLOCATOR_OVERHEAD + name.name.len(),
        }
    }

    pub(super) fn into_name(self) -> Option<Name> {
        match *self.known? {
            Known::Named(name) => Some(name),
            Known::Reading(_) => None,
        }
    }
}

/// Returns whether the bytes begin with an HTTP method (RFC 9110 §9.3, RFC 5789).
fn is_request(octets: &[u8]) -> bool {
    let methods = ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "];
    methods.iter().any(|method| octets.starts_with(method.as_bytes()))
}

impl Reading {
    fn take(&mut self, new: &[u8]) -> Step {
        let mut all = std::mem::take(&mut self.octets);
        all.extend_from_slice(new);
        let mut at = 0;
        loop {
            match self.place.step(&all[at..]) {
                Step::On(place, used) => {
                    self.place = place;
                    at += used;
                }
                Step::Wait if all.len() - at > KEPT => return Step::Nothing,
                Step::Wait => {
                    self.octets = all[at..].to_vec();
                    return Step::Wait;
                }
                end => return end,
            }
        }
    }
}

impl Place {
    fn step(&self, octets: &[u8]) -> Step {
        match *self {
            Self::Hello => hello(octets),
            Self::Extensions { left: 0, .. } => Step::Nothing,
            Self::Extensions { skip: 0, left } => extension(octets, left),
            Self::Extensions { .. } if octets.is_empty() => Step::Wait,
            Self::Extensions { skip, left } => {
                let used = skip.min(octets.len());
                Step::On(Self::Extensions { skip: skip - used, left: left.saturating_sub(used) }, used)
            }
            Self::Lines { left: 0 } | Self::LongLine { left: 0 } => Step::Nothing,
            Self::Lines { left } => line(octets, left),
            Self::LongLine { left } => match octets.iter().position(|octet| *octet == b'\n') {
                Some(end) => Step::On(Self::Lines { left: left - 1 }, end + 1),
                None if octets.is_empty() => Step::Wait,
                None => Step::On(Self::LongLine { left }, octets.len()),
            },
        }
    }
}

fn word(octets: &[u8], at: usize) -> Option<usize> {
    Some(usize::from(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?])))
}

/// Skips a ClientHello (RFC 8446 §4.1.2) up to its extensions: record header, message header, version and
/// random, session ID, cipher suites, compression methods.
fn hello(octets: &[u8]) -> Step {
    let extensions = || {
        let session = 5 + 4 + 2 + 32;
        let suites = session + 1 + usize::from(*octets.get(session)?);
        let compression = suites + 2 + word(octets, suites)?;
        let extensions = compression + 1 + usize::from(*octets.get(compression)?);
        Some((extensions + 2, word(octets, extensions)?))
    };
    extensions().map_or(Step::Wait, |(used, left)| Step::On(Place::Extensions { skip: 0, left }, used))
}

/// Parses an extension. The server name extension contains a list with a name of type `host_name` (RFC 6066
/// §3).
fn extension(octets: &[u8], left: usize) -> Step {
    const SERVER_NAME: usize = 0;
    const HEAD: usize = 4;
    const HOST_NAME: u8 = 0;
    let (Some(kind), Some(len)) = (word(octets, 0), word(octets, 2)) else { return Step::Wait };
    if kind != SERVER_NAME {
        return Step::On(Place::Extensions { skip: len, left: left.saturating_sub(HEAD) }, HEAD);
    }
    let (Some(&kind), Some(len)) = (octets.get(HEAD + 2), word(octets, HEAD + 3)) else { return Step::Wait };
    if kind != HOST_NAME || len == 0 || len > LONGEST {
        return Step::Nothing;
    }
    match octets.get(HEAD + 5..HEAD + 5 + len) {
        Some(name) => Step::Found(Name::new(NamedBy::TlsServerName, name)),
        None => Step::Wait,
    }
}

/// Parses a line of an HTTP request (RFC 9112 §2.1, §5).
fn line(octets: &[u8], left: u8) -> Step {
    let Some(end) = octets.iter().position(|octet| *octet == b'\n') else {
        // A Host field is never this long, so the rest of the line is skipped.
        return if octets.len() > KEPT {
            Step::On(Place::LongLine { left }, octets.len())
        } else {
            Step::Wait
        };
    };
    let line = octets[..end].strip_suffix(b"\r").unwrap_or(&octets[..end]);
    if line.is_empty() {
        return Step::Nothing;
    }
    match line.split_first_chunk::<5>() {
        Some((field, value)) if field.eq_ignore_ascii_case(b"host:") => match value.trim_ascii() {
            host if host.is_empty() || host.len() > LONGEST => Step::Nothing,
            host => Step::Found(Name::new(NamedBy::HttpHost, host)),
        },
        _ => Step::On(Place::Lines { left: left - 1 }, end + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello_of(name: &str, before: usize) -> Vec<u8> {
        let extension =
            |kind: u8, body: &[u8]| [&[0, kind], &(body.len() as u16).to_be_bytes()[..], body].concat();
        let len = name.len() as u16;
        let names = [&(len + 3).to_be_bytes()[..], &[0], &len.to_be_bytes(), name.as_bytes()].concat();
        let extensions =
            [extension(51, &vec![7; before]), extension(0, &names), extension(16, &[0; 5])].concat();
        let body = [&[3, 3][..], &[9; 32], &[32], &[8; 32], &[0, 4, 1, 2, 3, 4], &[1, 0]].concat();
        let body = [&body[..], &(extensions.len() as u16).to_be_bytes(), &extensions].concat();
        let message = [&[1, 0], &(body.len() as u16).to_be_bytes()[..], &body].concat();
        [&[22, 3, 1], &(message.len() as u16).to_be_bytes()[..], &message].concat()
    }

    fn named(pieces: &[&[u8]]) -> Option<String> {
        let mut naming = Naming::default();
        let mut start = 1;
        for piece in pieces {
            if naming.wants(0) {
                naming.take(0, start, piece, piece.len());
            }
            assert!(naming.heap() < 2 * KEPT + 200, "{}", naming.heap());
            start += piece.len() as u64;
        }
        naming.into_name().map(|name| name.name)
    }

    #[test]
    fn name_is_found_across_any_segment_boundary() {
        let hello = hello_of("www.example.org", 1200);
        let post = b"POST /a HTTP/1.1\r\nCookie: 123456789\r\nhOsT:  www.example.org \r\n\r\n".to_vec();
        for request in [hello, post] {
            for at in 8..request.len() {
                let (one, other) = request.split_at(at);
                assert_eq!(named(&[one, other]).as_deref(), Some("www.example.org"), "{at}");
            }
            let mut octets: Vec<_> = request[8..].chunks(1).collect();
            octets.insert(0, &request[..8]);
            assert_eq!(named(&octets).as_deref(), Some("www.example.org"));
        }
    }

    #[test]
    fn name_skips_long_lines_and_requires_host() {
        let cookie = format!("GET / HTTP/1.1\r\nCookie: {}\r\nHost: a.example\r\n\r\n", "x".repeat(5000));
        let pieces: Vec<_> = cookie.as_bytes().chunks(100).collect();
        assert_eq!(named(&pieces).as_deref(), Some("a.example"));
        assert_eq!(named(&[b"GET / HTTP/1.0\r\n\r\nHost: b.example\r\n"]), None);
        assert_eq!(named(&[b"SSH-2.0-OpenSSH\r\n"]), None);
    }

    #[test]
    fn control_characters_in_name_are_escaped() {
        assert_eq!(named(&[b"GET / HTTP/1.1\r\nHost: a\x1b[2Jb\r\n\r\n"]).as_deref(), Some("a\\u001b[2Jb"));
    }

    #[test]
    fn truncated_segment_yields_name_if_captured() {
        let hello = hello_of("www.example.org", 10);
        for (kept, name) in [(96, None), (200, Some("www.example.org"))] {
            let mut naming = Naming::default();
            naming.take(0, 1, &hello[..kept.min(hello.len())], hello.len());
            assert_eq!(naming.into_name().map(|name| name.name).as_deref(), name);
        }
    }

    #[test]
    fn retransmission_fills_hole_in_name() {
        let hello = hello_of("www.example.org", 1200);
        let (one, other) = hello.split_at(700);
        let mut naming = Naming::default();
        naming.take(0, 1, one, 700);
        naming.take(0, 1300, &other[599..], other.len() - 599);
        naming.take(0, 1, one, 700);
        naming.take(0, 701, other, other.len());
        assert_eq!(naming.into_name().unwrap().name, "www.example.org");
    }
}
