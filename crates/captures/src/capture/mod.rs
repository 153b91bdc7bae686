//! Reads frames from files, standard input and interfaces.
//!
//! Files may be compressed with gzip or zstd. This module reads pcap and pcapng files itself. It uses
//! `libpcap` only for interfaces, filters and historic variants of pcap, because libpcap
//!
//! * takes twice the time,
//! * refuses pcapng files whose interfaces differ in link type or snap length, as in captures of several
//!   interfaces, and
//! * stops at the first damaged block.
//!
//! libpcap does not exist on WebAssembly. There, captures are read from memory, without filters and without
//! decompression.

mod buffer;
#[cfg(not(target_family = "wasm"))]
mod compressed;
#[cfg(not(target_family = "wasm"))]
mod libpcap;
mod pcapng;
mod savefile;

#[cfg(not(target_family = "wasm"))]
use std::fs::File;
use std::io::{self, Cursor, Read};
#[cfg(not(target_family = "wasm"))]
use std::os::fd::BorrowedFd;
#[cfg(not(target_family = "wasm"))]
use std::path::Path;
use std::path::PathBuf;

#[cfg(not(target_family = "wasm"))]
use compressed::Compression;

use super::encapsulation::{Bytes, End, HeaderParser, Layer};
use super::icmp::{self, IcmpError};
use super::ip::{self, Context, Found};
use super::link_layer::LinkType;
use super::packet::Timestamp;
use super::problem::Problem;

/// A frame of a capture.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    /// The frame number in the whole file, counted from 1 as in Wireshark. Frames that the filter rejects
    /// also count.
    pub number: u64,
    /// The capture time.
    pub at: Timestamp,
    /// The link type, which determines the format of the headers.
    pub link: LinkType,
    /// The captured bytes of the frame.
    pub data: &'a [u8],
    /// The length of the frame on the wire.
    pub length: u32,
    /// The snap length that the file declares, if any: the maximum number of captured bytes of a frame.
    pub snap_length: Option<u32>,
}

impl<'a> Frame<'a> {
    /// Returns the ICMP error about a TCP packet, if the frame contains one.
    pub fn icmp(&self) -> Option<IcmpError> {
        let bytes = Bytes::new(self.data, self.length as usize);
        let ((protocol, ip), message) = HeaderParser::default().icmp(self.link, bytes)?;
        icmp::read(protocol, ip.src, message.captured())
    }

    /// Returns the captured part of a TCP packet's payload. The payload of an IP fragment is empty.
    pub fn payload(&self) -> &'a [u8] {
        let (bytes, mut parser) = (Bytes::new(self.data, self.length as usize), HeaderParser::default());
        let tcp = match parser.parse_common(self.link, bytes) {
            Some((_, tcp)) => tcp,
            None => match parser.parse(Layer::Link(self.link), bytes) {
                Ok(End::Tcp(_, tcp)) => tcp,
                _ => return &[],
            },
        };
        let header = tcp.captured().get(12).map_or(0, |byte| usize::from(byte >> 4) * 4);
        tcp.captured().get(header..).unwrap_or_default()
    }

    /// Returns the captured part of the outermost IP packet, including its header.
    pub fn ip(&self) -> Option<&'a [u8]> {
        let bytes = Bytes::new(self.data, self.length as usize);
        HeaderParser::default().outermost_ip(self.link, bytes).map(|ip| ip.captured())
    }

    /// Reads the headers in the frame.
    ///
    /// A fragment is reported as a problem. [`Fragments`](crate::fragments::Fragments) reassembles fragments.
    pub fn packet(&self) -> Found {
        let bytes = Bytes::new(self.data, self.length as usize);
        ip::without_reassembly(self.context(), Layer::Link(self.link), bytes)
    }

    pub(crate) fn context(&self) -> Context {
        Context { number: self.number, at: self.at, on_wire: self.length as usize }
    }
}

/// The result of [`Capture::read`].
#[derive(Debug)]
pub enum Next<'a> {
    /// A frame that passed the filter.
    Frame(Frame<'a>),
    /// A frame that did not pass the filter.
    Filtered,
    /// The interface currently has no frame.
    NoFrame,
    /// Part of the file is damaged. Reading continues behind the damage.
    Flaw {
        /// The kind of problem.
        problem: Problem,
        /// The number of the next frame.
        frame: u64,
        /// A description of the details.
        detail: String,
    },
    /// The rest of the file is damaged. All earlier frames are valid.
    Damaged {
        /// The number that the next frame would have had.
        frame: u64,
        /// A description of the damage.
        detail: String,
    },
    /// There are no more frames.
    End,
}

/// The reason why a capture cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", .path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        error: io::Error,
    },
    /// The file is neither pcap nor pcapng.
    #[error(
        "{name} is not a supported capture ({error}); use pcap or pcapng (`editcap` and `mergecap` convert other formats)"
    )]
    NotACapture {
        /// The file name as the user typed it.
        name: String,
        /// libpcap's error message.
        error: String,
    },
    /// The link type is not supported.
    #[error(
        "{name}: unsupported link type {link}; supported are Ethernet, Linux cooked and NFLOG, raw IP, BSD loopback, PPP, 802.11 (radiotap, PPI) and IP over InfiniBand"
    )]
    LinkType {
        /// The name as the user typed it.
        name: String,
        /// libpcap's name of the link type, or its number.
        link: String,
    },
    /// The filter is not a valid pcap-filter expression.
    #[error("invalid filter `{filter}`: {error} (see `man pcap-filter`)")]
    Filter {
        /// The filter expression.
        filter: String,
        /// libpcap's error message.
        error: String,
    },
    /// The interface does not exist.
    #[error("unknown interface `{name}`; available are {available}")]
    NoInterface {
        /// The name as the user typed it.
        name: String,
        /// The names of the existing interfaces.
        available: String,
    },
    /// The process does not have the privileges to capture.
    #[error("no permission to capture on {name}; run as root, or with CAP_NET_RAW")]
    Permission {
        /// The name of the interface.
        name: String,
    },
    /// The interface cannot be opened for another reason.
    #[error("cannot capture on {name}: {error}")]
    Interface {
        /// The name of the interface.
        name: String,
        /// libpcap's error message.
        error: String,
    },
}

/// The file name that denotes standard input.
pub const STANDARD_INPUT: &str = "-";

/// An open file or interface.
pub struct Capture {
    name: String,
    source: Source,
    #[cfg(not(target_family = "wasm"))]
    filters: libpcap::Filters,
    /// Number of frames read so far, including frames that the filter rejected.
    number: u64,
}

enum Source {
    Pcap(savefile::Reader<Box<dyn Read>>),
    Pcapng(pcapng::Reader<Box<dyn Read>>),
    #[cfg(not(target_family = "wasm"))]
    Libpcap(libpcap::Source),
}

impl Source {
    /// Detects the format of a file, which may be compressed. Returns an inner `Err` if the format is not
    /// supported here.
    fn of(mut input: Box<dyn Read>) -> io::Result<Result<(Self, LinkType), UnknownFormat>> {
        let mut begin = beginning(&mut input)?;
        let is_compressed = decompress(&mut begin, &mut input)?;
        // The interfaces of a pcapng file are not known yet. A filter that does not compile for Ethernet is
        // reported now; it would not compile for the other link types either.
        Ok(if begin.starts_with(&pcapng::MAGIC) {
            let input = Box::new(Cursor::new(begin).chain(input));
            Ok((Self::Pcapng(pcapng::Reader::new(input)), LinkType::ETHERNET))
        } else if let Some(header) = savefile::Header::parse(&begin) {
            let link = LinkType(header.link.0);
            Ok((Self::Pcap(savefile::Reader::new(input, header)), link))
        } else {
            Err(UnknownFormat { is_empty: begin.is_empty(), is_compressed })
        })
    }
}

/// A file that is neither a pcap nor a pcapng file in its present format.
struct UnknownFormat {
    is_empty: bool,
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "there no other reader is tried"))]
    is_compressed: bool,
}

impl UnknownFormat {
    fn error(&self, name: String) -> CaptureError {
        let error = if self.is_empty { "the file is empty" } else { "unknown file format" }.to_owned();
        CaptureError::NotACapture { name, error }
    }
}

impl Capture {
    /// Reads a capture from memory or another source. Errors contain `name`.
    pub fn of(name: &str, input: impl Read + 'static) -> Result<Self, CaptureError> {
        let name = name.to_owned();
        let source = Source::of(Box::new(input))
            .map_err(|error| CaptureError::File { path: PathBuf::from(&name), error })?;
        let (source, link) = source.map_err(|unknown| unknown.error(name.clone()))?;
        check_link_type(&name, link)?;
        Ok(Self {
            name,
            source,
            #[cfg(not(target_family = "wasm"))]
            filters: libpcap::Filters::default(),
            number: 0,
        })
    }

    /// Opens a file, or standard input for `-`. Both may be compressed with gzip or zstd. The filter is a
    /// pcap-filter expression.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(path: &Path, filter: Option<&str>) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let unreadable = |error| CaptureError::File { path: path.to_owned(), error };
        let is_stdin = path == Path::new(STANDARD_INPUT);
        let input: Box<dyn Read> =
            if is_stdin { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(unreadable)?) };
        let (source, link) = match Source::of(input).map_err(unreadable)? {
            Ok((source, link)) => (source, link),
            Err(unknown) if is_stdin || unknown.is_compressed => return Err(unknown.error(name)),
            Err(_) => {
                let (source, link) = libpcap::Source::open(path, &name)?;
                (Source::Libpcap(source), link)
            }
        };
        check_link_type(&name, link)?;
        let filters = libpcap::Filters::new(filter, link)?;
        Ok(Self { name, source, filters, number: 0 })
    }

    /// Starts a capture on an interface, not in promiscuous mode. [`read`](Self::read) does not block.
    #[cfg(not(target_family = "wasm"))]
    pub fn listen(interface: &str, filter: Option<&str>) -> Result<Self, CaptureError> {
        let source = Source::Libpcap(libpcap::Source::listen(interface, filter)?);
        Ok(Self { name: interface.to_owned(), source, filters: libpcap::Filters::default(), number: 0 })
    }

    /// Returns the name of the file or interface as the user typed it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns a descriptor that becomes readable when an interface has frames. Returns `None` for a file.
    #[cfg(not(target_family = "wasm"))]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Libpcap(source) => source.descriptor(),
            _ => None,
        }
    }

    /// Returns the number of frames that the interface received but the capture missed. It is 0 for a file.
    #[cfg(not(target_family = "wasm"))]
    pub fn lost(&mut self) -> u64 {
        match &mut self.source {
            Source::Libpcap(source) => source.lost(),
            _ => 0,
        }
    }

    /// Reads the next frame, or reports why there is none.
    pub fn read(&mut self) -> Next<'_> {
        let number = &mut self.number;
        let next = match &mut self.source {
            Source::Pcap(reader) => reader.read(number),
            Source::Pcapng(reader) => reader.read(number),
            #[cfg(not(target_family = "wasm"))]
            Source::Libpcap(source) => source.read(number),
        };
        // The filter is applied here and not in libpcap, so that rejected frames are counted.
        #[cfg(not(target_family = "wasm"))]
        if let Next::Frame(frame) = &next
            && !self.filters.accepts(frame)
        {
            return Next::Filtered;
        }
        next
    }
}

/// If the file is compressed, replaces the input by its decompressed contents. Returns whether it is
/// compressed.
#[cfg(not(target_family = "wasm"))]
fn decompress(begin: &mut Vec<u8>, input: &mut Box<dyn Read>) -> io::Result<bool> {
    let Some(compression) = Compression::of(begin) else { return Ok(false) };
    let packed = std::mem::replace(input, Box::new(io::empty()));
    *input = compression.decompress(Box::new(Cursor::new(std::mem::take(begin)).chain(packed)));
    *begin = beginning(input)?;
    Ok(true)
}

#[cfg(target_family = "wasm")]
fn decompress(_: &mut Vec<u8>, _: &mut Box<dyn Read>) -> io::Result<bool> {
    Ok(false)
}

/// Reads the first bytes of a file, from which its format is detected.
fn beginning(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    input.take(savefile::HEADER as u64).read_to_end(&mut begin)?;
    Ok(begin)
}

fn check_link_type(name: &str, link: LinkType) -> Result<(), CaptureError> {
    if link.is_known() {
        return Ok(());
    }
    #[cfg(not(target_family = "wasm"))]
    let link = libpcap::name_of(link);
    #[cfg(target_family = "wasm")]
    let link = link.0.to_string();
    Err(CaptureError::LinkType { name: name.to_owned(), link })
}
