//! Reads frames from files, standard input and interfaces.
//!
//! A file may be compressed with gzip or zstd. `libpcap` is used for interfaces, filters, and variants of pcap that nobody
//! writes any more. It could read the usual files as well, but takes twice the time, refuses pcapng files whose interfaces
//! differ in link type or snap length (as they do in a capture of several interfaces), and ends at the first damaged block.
//! WebAssembly has no libpcap: there captures are read out of memory, without filters, and as they are.

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
        "{name} is not a supported capture ({error}); use pcap or pcapng (`editcap` and `mergecap` convert other formats)"
    )]
    NotACapture {
        /// As a person typed it.
        name: String,
        /// What libpcap says.
        error: String,
    },
    /// The headers of its frames cannot be read.
    #[error(
        "{name}: unsupported link type {link}; supported are Ethernet, Linux cooked and NFLOG, raw IP, BSD loopback, PPP, 802.11 (radiotap, PPI) and IP over InfiniBand"
    )]
    LinkType {
        /// As a person typed it.
        name: String,
        /// libpcap's name of the link type, or its number.
        link: String,
    },
    /// The filter is not of tcpdump's language.
    #[error("invalid filter `{filter}`: {error} (see `man pcap-filter`)")]
    Filter {
        /// The filter.
        filter: String,
        /// What libpcap says.
        error: String,
    },
    /// There is no such interface.
    #[error("unknown interface `{name}`; available are {there}")]
    NoInterface {
        /// As a person typed it.
        name: String,
        /// The names that there are.
        there: String,
    },
    /// Capturing needs privileges.
    #[error("no permission to capture on {name}; run as root, or with CAP_NET_RAW")]
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
    #[cfg(not(target_family = "wasm"))]
    filters: libpcap::Filters,
    /// Frames that were read, those that the filter left out included.
    number: u64,
}

enum Source {
    Pcap(savefile::Reader<Box<dyn Read>>),
    Pcapng(pcapng::Reader<Box<dyn Read>>),
    #[cfg(not(target_family = "wasm"))]
    Libpcap(libpcap::Source),
}

impl Source {
    /// A file of one of the usual formats, compressed or not. `Err` has what was read of any other, and whether that was
    /// compressed.
    fn of(mut input: Box<dyn Read>) -> io::Result<Result<(Self, LinkType), Unusual>> {
        let mut begin = beginning(&mut input)?;
        let is_compressed = decompress(&mut begin, &mut input)?;
        // The interfaces of a pcapng file come later; a filter that is wrong for Ethernet is wrong for all of them.
        Ok(if begin.starts_with(&pcapng::MAGIC) {
            let whole = Box::new(Cursor::new(begin).chain(input));
            Ok((Self::Pcapng(pcapng::Reader::new(whole)), LinkType::ETHERNET))
        } else if let Some(header) = savefile::Header::parse(&begin) {
            let link = LinkType(header.link.0);
            Ok((Self::Pcap(savefile::Reader::new(input, header)), link))
        } else {
            Err(Unusual { is_empty: begin.is_empty(), is_compressed })
        })
    }
}

/// A file that is neither pcap nor pcapng as they are written today.
struct Unusual {
    is_empty: bool,
    #[cfg_attr(target_family = "wasm", expect(dead_code, reason = "there no other reader is tried"))]
    is_compressed: bool,
}

impl Unusual {
    fn error(&self, name: String) -> CaptureError {
        let error = if self.is_empty { "the file is empty" } else { "unknown file format" }.to_owned();
        CaptureError::NotACapture { name, error }
    }
}

impl Capture {
    /// Reads a capture that is in memory already, or comes from somewhere else; `name` is for errors.
    pub fn of(name: &str, input: impl Read + 'static) -> Result<Self, CaptureError> {
        let name = name.to_owned();
        let source = Source::of(Box::new(input))
            .map_err(|error| CaptureError::File { path: PathBuf::from(&name), error })?;
        let (source, link) = source.map_err(|unusual| unusual.error(name.clone()))?;
        known(&name, link)?;
        Ok(Self {
            name,
            source,
            #[cfg(not(target_family = "wasm"))]
            filters: libpcap::Filters::default(),
            number: 0,
        })
    }

    /// Opens a file, or standard input for `-`; either may be compressed with gzip or zstd. The filter is in tcpdump's
    /// language.
    #[cfg(not(target_family = "wasm"))]
    pub fn open(path: &Path, filter: Option<&str>) -> Result<Self, CaptureError> {
        let name = path.display().to_string();
        let unreadable = |error| CaptureError::File { path: path.to_owned(), error };
        let is_stdin = path == Path::new(STANDARD_INPUT);
        let input: Box<dyn Read> =
            if is_stdin { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(unreadable)?) };
        let (source, link) = match Source::of(input).map_err(unreadable)? {
            Ok((source, link)) => (source, link),
            Err(unusual) if is_stdin || unusual.is_compressed => return Err(unusual.error(name)),
            Err(_) => {
                let (source, link) = libpcap::Source::open(path, &name)?;
                (Source::Libpcap(source), link)
            }
        };
        known(&name, link)?;
        let filters = libpcap::Filters::new(filter, link)?;
        Ok(Self { name, source, filters, number: 0 })
    }

    /// Captures on an interface from now on, not promiscuously. [`read`](Self::read) does not block then.
    #[cfg(not(target_family = "wasm"))]
    pub fn listen(interface: &str, filter: Option<&str>) -> Result<Self, CaptureError> {
        let source = Source::Libpcap(libpcap::Source::listen(interface, filter)?);
        Ok(Self { name: interface.to_owned(), source, filters: libpcap::Filters::default(), number: 0 })
    }

    /// The file or interface, as a person typed it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Of an interface: becomes readable when there is something to read. `None` for a file.
    #[cfg(not(target_family = "wasm"))]
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.source {
            Source::Libpcap(source) => source.descriptor(),
            _ => None,
        }
    }

    /// Frames that were on the interface but were not captured, so far; 0 for a file.
    #[cfg(not(target_family = "wasm"))]
    pub fn lost(&mut self) -> u64 {
        match &mut self.source {
            Source::Libpcap(source) => source.lost(),
            _ => 0,
        }
    }

    /// The next frame, or what happened instead.
    pub fn read(&mut self) -> Next<'_> {
        let number = &mut self.number;
        let next = match &mut self.source {
            Source::Pcap(reader) => reader.read(number),
            Source::Pcapng(reader) => reader.read(number),
            #[cfg(not(target_family = "wasm"))]
            Source::Libpcap(source) => source.read(number),
        };
        // Filtered here and not in libpcap, so that frames that are left out have numbers.
        #[cfg(not(target_family = "wasm"))]
        if let Next::Frame(frame) = &next
            && !self.filters.want(frame)
        {
            return Next::LeftOut;
        }
        next
    }
}

/// Goes on with what is in a compressed file. Says whether it is one.
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

/// As much of a file as tells what it is.
fn beginning(input: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    input.take(savefile::HEADER as u64).read_to_end(&mut begin)?;
    Ok(begin)
}

fn known(name: &str, link: LinkType) -> Result<(), CaptureError> {
    if link.is_known() {
        return Ok(());
    }
    #[cfg(not(target_family = "wasm"))]
    let link = libpcap::name_of(link);
    #[cfg(target_family = "wasm")]
    let link = link.0.to_string();
    Err(CaptureError::LinkType { name: name.to_owned(), link })
}
