//! Reads frames from files, standard input and interfaces.
//!
//! A file may be compressed with gzip or zstd. libpcap is used for interfaces, filters, and variants of pcap that nobody
//! writes any more. It could read the usual files as well, but takes twice the time, refuses pcapng files whose interfaces
//! differ in link type or snap length (as they do in a capture of several interfaces), and ends at the first damaged block.

mod buffer;
mod compressed;
mod pcapng;
mod savefile;

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use compressed::Compression;
use pcap::{Active, BpfProgram, Device, Linktype, Offline, Precision};

use super::encapsulation::{End, Layer, Octets, Walk};
use super::icmp::{self, IcmpError};
use super::ip::{self, Context, Found};
use super::link_layer::LinkType;
use super::packet::Timestamp;
use super::problem::Problem;

/// A frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// Counted from 1 in the whole file, whatever a filter leaves out: Wireshark's number.
    pub number: u64,
    /// When it was captured.
    pub at: Timestamp,
    /// What its headers look like.
    pub link: LinkType,
    /// As much of it as the capture kept.
    pub data: &'a [u8],
    /// Its length on the wire.
    pub length: u32,
    /// The most octets of a frame that the file says it keeps, if it says so.
    pub snap_length: Option<u32>,
}

impl<'a> Frame<'a> {
    /// The ICMP error about a TCP packet in it.
    pub fn icmp(&self) -> Option<IcmpError> {
        let octets = Octets::new(self.data, self.length as usize);
        let (protocol, ip, message) = Walk::default().icmp(self.link, octets)?;
        icmp::read(protocol, ip.src, message.kept())
    }

    /// As much of a TCP packet's payload as was kept. Of a packet that was split it is none.
    pub fn payload(&self) -> &'a [u8] {
        let (octets, mut walk) = (Octets::new(self.data, self.length as usize), Walk::default());
        let tcp = match walk.straight(self.link, octets) {
            Some((_, tcp)) => tcp,
            None => match walk.follow(Layer::Link(self.link), octets) {
                Ok(End::Tcp(_, tcp)) => tcp,
                _ => return &[],
            },
        };
        let header = tcp.kept().get(12).map_or(0, |octet| usize::from(octet >> 4) * 4);
        tcp.kept().get(header..).unwrap_or_default()
    }

    /// The outermost IP packet, header included: as much of it as was kept.
    pub fn ip(&self) -> Option<&'a [u8]> {
        let octets = Octets::new(self.data, self.length as usize);
        Walk::default().outermost_ip(self.link, octets).map(|ip| ip.kept())
    }

    /// Reads the headers inside. A fragment is a problem here: [`Fragments`](crate::fragments::Fragments) puts them
    /// together.
    pub fn packet(&self) -> Found {
        let octets = Octets::new(self.data, self.length as usize);
        ip::alone(self.context(), Layer::Link(self.link), octets)
    }

    pub(crate) fn context(&self) -> Context {
        Context { number: self.number, at: self.at, on_wire: self.length as usize }
    }
}

/// What [`Capture::read`] returns.
#[derive(Debug)]
pub enum Next<'a> {
    /// A frame that passed the filter.
    Frame(Frame<'a>),
    /// A frame that did not pass the filter.
    LeftOut,
    /// The interface has no frame for now.
    Nothing,
    /// Something is wrong in the file; reading goes on behind it.
    Flaw {
        /// What kind of thing.
        problem: Problem,
        /// The number of the next frame.
        frame: u64,
        /// More about it, in words.
        detail: String,
    },
    /// Reading ends here; what was read before it is good.
    Damaged {
        /// The number that the next frame would have.
        frame: u64,
        /// What is wrong, in words.
        detail: String,
    },
    /// There are no more frames.
    End,
}

/// Why a capture cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The file is neither pcap nor pcapng.
    #[error(
        "{name}: not a capture that can be read here ({error}): pcap or pcapng is wanted, `editcap` and `mergecap` convert others"
    )]
    NotACapture {
        /// As a person typed it.
        name: String,
        /// What libpcap says.
        error: String,
    },
    /// The headers of its frames cannot be read.
    #[error(
        "{name}: link type {link} is not known here: Ethernet, Linux cooked and NFLOG, raw IP, BSD loopback, PPP, 802.11 (radiotap, PPI) and IP over InfiniBand are"
    )]
    LinkType {
        /// As a person typed it.
        name: String,
        /// libpcap's name of the link type, or its number.
        link: String,
    },
    /// The filter is not of tcpdump's language.
    #[error(
        "the filter `{filter}` does not compile: {error} (the language is tcpdump's, see `man pcap-filter`)"
    )]
    Filter {
        /// The filter.
        filter: String,
        /// What libpcap says.
        error: String,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}`; there are: {there}")]
    NoInterface {
        /// As a person typed it.
        name: String,
        /// The names that there are.
        there: String,
    },
    /// Capturing needs privileges.
    #[error("not allowed to capture on {name}: run as root, or with CAP_NET_RAW")]
    Permission {
        /// The interface.
        name: String,
    },
    /// The interface refuses for another reason.
    #[error("cannot capture on {name}: {error}")]
    Interface {
        /// The interface.
        name: String,
        /// What libpcap says.
        error: String,
    },
}

/// The file name that stands for standard input.
pub const STANDARD_INPUT: &str = "-";

/// An open file or interface.
pub struct Capture {
    name: String,
    source: Source,
    filters: Filters,
    /// Frames that were read, those that the filter left out included.
    number: u64,
}

enum Source {
    Pcap(savefile::Reader<Box<dyn Read>>),
    Pcapng(pcapng::Reader<Box<dyn Read>>),
    Libpcap(pcap::Capture<Offline>, LinkType),
    Interface { capture: pcap::Capture<Active>, link: LinkType },
}

impl Capture {
    /// Opens a file, or standard input for `-`; either may be compressed with gzip or zstd. The filter is in tcpdump's
    /// language.
    pub fn open(path: &Path, filter: Option<&str>) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let unreadable = |error| CaptureError::File { path: path.to_owned(), error };
        let is_stdin = path == Path::new(STANDARD_INPUT);
        let mut input: Box<dyn Read> =
            if is_stdin { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(unreadable)?) };
        let mut begin = beginning(&mut input).map_err(unreadable)?;
        let compression = Compression::of(&begin);
        if let Some(compression) = compression {
            input = compression.decompress(Box::new(Cursor::new(begin).chain(input)));
            begin = beginning(&mut input).map_err(unreadable)?;
        }
        // The interfaces of a pcapng file come later; a filter that is wrong for Ethernet is wrong for all of them.
        let (source, link) = if begin.starts_with(&pcapng::MAGIC) {
            let whole = Box::new(Cursor::new(begin).chain(input));
            (Source::Pcapng(pcapng::Reader::new(whole)), LinkType::ETHERNET)
        } else if let Some(header) = savefile::Header::parse(&begin) {
            let link = known(&name, Linktype(header.link.0))?;
            (Source::Pcap(savefile::Reader::new(input, header)), link)
        } else if is_stdin || compression.is_some() {
            let error = if begin.is_empty() { "it is empty" } else { "unknown file format" }.to_owned();
            return Err(CaptureError::NotACapture { name, error });
        } else {
            let capture = pcap::Capture::from_file_with_precision(path, Precision::Nano)
                .map_err(|error| CaptureError::NotACapture { name: name.clone(), error: text(&error) })?;
            let link = known(&name, capture.get_datalink())?;
            (Source::Libpcap(capture, link), link)
        };
        let filters = Filters::new(filter, link)?;
        Ok(Self { name, source, filters, number: 0 })
    }

    /// Captures on an interface from now on, not promiscuously. [`read`](Self::read) does not block then.
    pub fn listen(interface: &str, filter: Option<&str>) -> Result<Self, CaptureError> {
        let name = interface.to_owned();
        let failed = |error: &pcap::Error| CaptureError::Interface { name: name.clone(), error: text(error) };
        let known_names = || Device::list().unwrap_or_default().into_iter().map(|device| device.name);
        let capture = pcap::Capture::from_device(interface)
            .map_err(|error| failed(&error))?
            .promisc(false)
            .snaplen(HEADERS)
            .buffer_size(BUFFER)
            .timeout(HOLD_MS)
            .precision(Precision::Nano)
            .open();
        let capture = match capture {
            Ok(capture) => capture,
            Err(_) if !known_names().any(|known| known == interface) => {
                let there = known_names().collect::<Vec<_>>().join(", ");
                return Err(CaptureError::NoInterface { name, there });
            }
            Err(error) if is_permission(&text(&error)) => return Err(CaptureError::Permission { name }),
            Err(error) => return Err(failed(&error)),
        };
        let mut capture = capture.setnonblock().map_err(|error| failed(&error))?;
        let link = known(interface, capture.get_datalink())?;
        if let Some(filter) = filter {
            capture.filter(filter, true).map_err(|error| refused(filter, &error))?;
        }
        let source = Source::Interface { capture, link };
        Ok(Self { name, source, filters: Filters::default(), number: 0 })
    }

    /// The file or interface, as a person typed it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of an interface: becomes readable when there is something to read. `None` for a file.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Interface { capture, .. } => Some(capture.as_fd()),
            _ => None,
        }
    }

    /// Frames that were on the interface but were not captured, so far; 0 for a file.
    pub fn lost(&mut self) -> u64 {
        match &mut self.source {
            Source::Interface { capture, .. } => {
                capture.stats().map_or(0, |stats| u64::from(stats.dropped) + u64::from(stats.if_dropped))
            }
            _ => 0,
        }
    }

    /// The next frame, or what happened instead.
    pub fn read(&mut self) -> Next<'_> {
        let Self { name: _, source, filters, number } = self;
        let next = match source {
            Source::Pcap(reader) => reader.read(number),
            Source::Libpcap(capture, link) => from_libpcap(capture.next_packet(), *link, number),
            Source::Interface { capture, link } => from_libpcap(capture.next_packet(), *link, number),
            Source::Pcapng(reader) => reader.read(number),
        };
        // Filtered here and not in libpcap, so that frames that are left out have numbers.
        match next {
            Next::Frame(frame) if !filters.want(&frame) => Next::LeftOut,
            next => next,
        }
    }
}

/// As much of a file as tells what it is.
fn beginning(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    input.take(savefile::HEADER as u64).read_to_end(&mut begin)?;
    Ok(begin)
}

/// Octets of a frame that are captured: enough for all headers of IP and TCP.
const HEADERS: i32 = 256;
const BUFFER: i32 = 16 << 20;
/// Milliseconds for which the kernel may hold frames back to hand out many at once.
const HOLD_MS: i32 = 100;

fn from_libpcap<'a>(
    read: Result<pcap::Packet<'a>, pcap::Error>,
    link: LinkType,
    number: &mut u64,
) -> Next<'a> {
    match read {
        Ok(packet) => {
            *number += 1;
            let header = packet.header;
            // With nanosecond precision libpcap has nanoseconds where the name says microseconds.
            let at = header.ts.tv_sec.saturating_mul(1_000_000_000).saturating_add(header.ts.tv_usec);
            let (at, length) = (Timestamp(at), header.len.max(header.caplen));
            Next::Frame(Frame { number: *number, at, link, data: packet.data, length, snap_length: None })
        }
        Err(pcap::Error::NoMorePackets) => Next::End,
        Err(pcap::Error::TimeoutExpired) => Next::Nothing,
        Err(error) => Next::Damaged { frame: *number + 1, detail: text(&error) },
    }
}

/// libpcap's words, without those that the crate puts around them.
fn text(error: &pcap::Error) -> String {
    match error {
        pcap::Error::PcapError(text) => text.clone(),
        error => error.to_string(),
    }
}

fn is_permission(error: &str) -> bool {
    let error = error.to_lowercase();
    error.contains("permission") || error.contains("not permitted")
}

fn known(name: &str, link: Linktype) -> Result<LinkType, CaptureError> {
    let found = LinkType(link.0);
    if found.is_known() {
        return Ok(found);
    }
    let link = link.get_name().unwrap_or_else(|_| link.0.to_string());
    Err(CaptureError::LinkType { name: name.to_owned(), link })
}

fn refused(filter: &str, error: &pcap::Error) -> CaptureError {
    CaptureError::Filter { filter: filter.to_owned(), error: text(error) }
}

/// One filter, compiled for each link type that turns up.
#[derive(Default)]
struct Filters {
    text: Option<String>,
    /// `None` for a link type on which the filter means nothing, such as a hardware address on raw IP.
    programs: Vec<(LinkType, Option<BpfProgram>)>,
}

impl Filters {
    fn new(text: Option<&str>, link: LinkType) -> Result<Self, CaptureError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let program = Self::compile(text, link).map_err(|error| refused(text, &error))?;
        Ok(Self { text: Some(text.to_owned()), programs: vec![(link, Some(program))] })
    }

    fn compile(text: &str, link: LinkType) -> Result<BpfProgram, pcap::Error> {
        // libpcap knows raw IP by another number than files do.
        let dlt = if link == LinkType::RAW { 12 } else { link.0 };
        pcap::Capture::dead(Linktype(dlt))?.compile(text, true)
    }

    /// Whether the frame passes. For `less` and `greater` the length that was kept counts.
    fn want(&mut self, frame: &Frame<'_>) -> bool {
        let Some(text) = &self.text else { return true };
        if !frame.link.is_known() {
            return true;
        }
        let at = self.programs.iter().position(|(link, _)| *link == frame.link).unwrap_or_else(|| {
            self.programs.push((frame.link, Self::compile(text, frame.link).ok()));
            self.programs.len() - 1
        });
        self.programs[at].1.as_ref().is_some_and(|program| program.filter(frame.data))
    }
}
