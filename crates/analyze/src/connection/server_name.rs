//! Determines the client's name for its server from the first bytes that it sends: the server name of a TLS
//! ClientHello (RFC 6066 §3), or the Host of an HTTP request (RFC 9110 §7.2).
//!
//! Both may be truncated or split into several segments. Parsed bytes are dropped, and at most a few
//! hundred unparsed bytes are stored.

use super::findings::{Name, NamedBy};
use crate::compact::{ALLOCATOR_OVERHEAD, heap_of_vec};

/// Maximum number of bytes stored between two segments.
const MAX_UNPARSED: usize = 512;
/// Length of the longest DNS name with a port.
const MAX_NAME: usize = 253 + 6;
/// Number of lines of an HTTP request that are searched for the Host field.
const MAX_LINES: u8 = 100;

/// The state of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerName {
    search: Option<Box<Search>>,
    /// The ends whose first data has passed, or is no longer relevant.
    has_data: [bool; 2],
}

#[derive(Clone, Debug)]
enum Search {
    Parsing(Parser),
    Found(Name),
}

#[derive(Clone, Debug)]
struct Parser {
    from: usize,
    /// The offset of the next expected byte.
    next: u64,
    position: Position,
    /// The bytes that have not been parsed yet.
    octets: Vec<u8>,
}

#[derive(Clone, Debug)]
enum Position {
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
    Advance(Position, usize),
    NeedMore,
    Found(Name),
    NotFound,
}

impl ServerName {
    /// Returns whether the payload of this end's segments is needed.
    pub(super) fn wants(&self, from: usize) -> bool {
        match self.search.as_deref() {
            None => !self.has_data[from],
            Some(Search::Parsing(parser)) => parser.from == from,
            Some(Search::Found(_)) => false,
        }
    }

    /// Processes the captured bytes of a segment at `start` with `len` bytes of payload.
    pub(super) fn add(&mut self, from: usize, start: u64, octets: &[u8], len: usize) {
        if self.search.is_none() {
            self.has_data[from] = true;
            let position = match octets {
                // A handshake record (RFC 8446 §5.1) that contains a ClientHello (§4).
                [22, 3, _, _, _, 1, ..] => Position::Hello,
                _ if is_request(octets) => Position::Lines { left: MAX_LINES },
                _ => return,
            };
            let parser = Parser { from, next: start, position, octets: Vec::new() };
            self.search = Some(Box::new(Search::Parsing(parser)));
        }
        let Some(Search::Parsing(parser)) = self.search.as_deref_mut() else { return };
        // Bytes after a hole are ignored until the hole is filled.
        let Some(parsed) = parser.next.checked_sub(start) else { return };
        let new = octets.get(parsed as usize..).unwrap_or_default();
        parser.next += new.len() as u64;
        match parser.parse(new) {
            Step::Found(name) => self.search = Some(Box::new(Search::Found(name))),
            // The rest of a truncated segment will never be captured.
            Step::NeedMore | Step::Advance(..) if octets.len() == len => {}
            Step::NotFound | Step::NeedMore | Step::Advance(..) => {
                *self = Self { search: None, has_data: [true; 2] }
            }
        }
    }

    pub(super) fn heap(&self) -> usize {
        let own = size_of::<Search>() + ALLOCATOR_OVERHEAD;
        match self.search.as_deref() {
            None => 0,
            Some(Search::Parsing(parser)) => own + heap_of_vec::<u8>(parser.octets.capacity()),
            Some(Search::Found(name)) => own + ALLOCATOR_OVERHEAD + name.name.len(),
        }
    }

    pub(super) fn into_name(self) -> Option<Name> {
        match *self.search? {
            Search::Found(name) => Some(name),
            Search::Parsing(_) => None,
        }
    }
}

/// Returns whether the bytes begin with an HTTP method (RFC 9110 §9.3, RFC 5789).
fn is_request(octets: &[u8]) -> bool {
    let methods = ["GET ", "POST ", "HEAD ", "PUT ", "DELETE ", "OPTIONS ", "PATCH ", "CONNECT ", "TRACE "];
    methods.iter().any(|method| octets.starts_with(method.as_bytes()))
}

impl Parser {
    fn parse(&mut self, new: &[u8]) -> Step {
        let mut all = std::mem::take(&mut self.octets);
        all.extend_from_slice(new);
        let mut at = 0;
        loop {
            match self.position.step(&all[at..]) {
                Step::Advance(position, used) => {
                    self.position = position;
                    at += used;
                }
                Step::NeedMore if all.len() - at > MAX_UNPARSED => return Step::NotFound,
                Step::NeedMore => {
                    self.octets = all[at..].to_vec();
                    return Step::NeedMore;
                }
                end => return end,
            }
        }
    }
}

impl Position {
    fn step(&self, octets: &[u8]) -> Step {
        match *self {
            Self::Hello => hello(octets),
            Self::Extensions { left: 0, .. } => Step::NotFound,
            Self::Extensions { skip: 0, left } => extension(octets, left),
            Self::Extensions { .. } if octets.is_empty() => Step::NeedMore,
            Self::Extensions { skip, left } => {
                let used = skip.min(octets.len());
                Step::Advance(Self::Extensions { skip: skip - used, left: left.saturating_sub(used) }, used)
            }
            Self::Lines { left: 0 } | Self::LongLine { left: 0 } => Step::NotFound,
            Self::Lines { left } => line(octets, left),
            Self::LongLine { left } => match octets.iter().position(|byte| *byte == b'\n') {
                Some(end) => Step::Advance(Self::Lines { left: left - 1 }, end + 1),
                None if octets.is_empty() => Step::NeedMore,
                None => Step::Advance(Self::LongLine { left }, octets.len()),
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
    extensions()
        .map_or(Step::NeedMore, |(used, left)| Step::Advance(Position::Extensions { skip: 0, left }, used))
}

/// Parses an extension. The server name extension contains a list with a name of type `host_name` (RFC 6066
/// §3).
fn extension(octets: &[u8], left: usize) -> Step {
    const SERVER_NAME: usize = 0;
    const HEAD: usize = 4;
    const HOST_NAME: u8 = 0;
    let (Some(kind), Some(len)) = (word(octets, 0), word(octets, 2)) else { return Step::NeedMore };
    if kind != SERVER_NAME {
        return Step::Advance(Position::Extensions { skip: len, left: left.saturating_sub(HEAD) }, HEAD);
    }
    let (Some(&kind), Some(len)) = (octets.get(HEAD + 2), word(octets, HEAD + 3)) else {
        return Step::NeedMore;
    };
    if kind != HOST_NAME || len == 0 || len > MAX_NAME {
        return Step::NotFound;
    }
    match octets.get(HEAD + 5..HEAD + 5 + len) {
        Some(name) => Step::Found(Name::new(NamedBy::TlsServerName, name)),
        None => Step::NeedMore,
    }
}

/// Parses a line of an HTTP request (RFC 9112 §2.1, §5).
fn line(octets: &[u8], left: u8) -> Step {
    let Some(end) = octets.iter().position(|byte| *byte == b'\n') else {
        // A Host field is never this long, so the rest of the line is skipped.
        return if octets.len() > MAX_UNPARSED {
            Step::Advance(Position::LongLine { left }, octets.len())
        } else {
            Step::NeedMore
        };
    };
    let line = octets[..end].strip_suffix(b"\r").unwrap_or(&octets[..end]);
    if line.is_empty() {
        return Step::NotFound;
    }
    match line.split_first_chunk::<5>() {
        Some((field, value)) if field.eq_ignore_ascii_case(b"host:") => match value.trim_ascii() {
            host if host.is_empty() || host.len() > MAX_NAME => Step::NotFound,
            host => Step::Found(Name::new(NamedBy::HttpHost, host)),
        },
        _ => Step::Advance(Position::Lines { left: left - 1 }, end + 1),
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
        let mut server_name = ServerName::default();
        let mut start = 1;
        for piece in pieces {
            if server_name.wants(0) {
                server_name.add(0, start, piece, piece.len());
            }
            assert!(server_name.heap() < 2 * MAX_UNPARSED + 200, "{}", server_name.heap());
            start += piece.len() as u64;
        }
        server_name.into_name().map(|name| name.name)
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
        for (captured, name) in [(96, None), (200, Some("www.example.org"))] {
            let mut server_name = ServerName::default();
            server_name.add(0, 1, &hello[..captured.min(hello.len())], hello.len());
            assert_eq!(server_name.into_name().map(|name| name.name).as_deref(), name);
        }
    }

    #[test]
    fn retransmission_fills_hole_in_name() {
        let hello = hello_of("www.example.org", 1200);
        let (one, other) = hello.split_at(700);
        let mut server_name = ServerName::default();
        server_name.add(0, 1, one, 700);
        server_name.add(0, 1300, &other[599..], other.len() - 599);
        server_name.add(0, 1, one, 700);
        server_name.add(0, 701, other, other.len());
        assert_eq!(server_name.into_name().unwrap().name, "www.example.org");
    }
}
