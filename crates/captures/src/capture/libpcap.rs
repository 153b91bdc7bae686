//! libpcap's part: interfaces, tcpdump filters, and files that only libpcap can read.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use pcap::{Active, BpfProgram, Device, Linktype, Offline, Precision};

use super::{CaptureError, Frame, LinkType, Next, Timestamp, check_link_type};

/// A file or interface opened by libpcap.
pub(super) enum Source {
    File(pcap::Capture<Offline>, LinkType),
    Interface(pcap::Capture<Active>, LinkType),
}

impl Source {
    /// Opens a file. `name` is the name as the user typed it.
    pub(super) fn open(path: &Path, name: &str) -> Result<(Self, LinkType), CaptureError> {
        let capture = pcap::Capture::from_file_with_precision(path, Precision::Nano)
            .map_err(|error| CaptureError::NotACapture { name: name.to_owned(), error: text(&error) })?;
        let link = LinkType(capture.get_datalink().0);
        Ok((Self::File(capture, link), link))
    }

    pub(super) fn listen(interface: &str, filter: Option<&str>) -> Result<Self, CaptureError> {
        let name = interface.to_owned();
        let failed = |error: &pcap::Error| CaptureError::Interface { name: name.clone(), error: text(error) };
        let known_names = || Device::list().unwrap_or_default().into_iter().map(|device| device.name);
        let capture = pcap::Capture::from_device(interface)
            .map_err(|error| failed(&error))?
            .promisc(false)
            .snaplen(SNAP_LENGTH)
            .buffer_size(BUFFER)
            .timeout(READ_TIMEOUT_MS)
            .precision(Precision::Nano)
            .open();
        let capture = match capture {
            Ok(capture) => capture,
            Err(_) if !known_names().any(|known| known == interface) => {
                let available = known_names().collect::<Vec<_>>().join(", ");
                return Err(CaptureError::NoInterface { name, available });
            }
            Err(error) if is_permission_error(&text(&error)) => {
                return Err(CaptureError::Permission { name });
            }
            Err(error) => return Err(failed(&error)),
        };
        let mut capture = capture.setnonblock().map_err(|error| failed(&error))?;
        let link = LinkType(capture.get_datalink().0);
        check_link_type(interface, link)?;
        if let Some(filter) = filter {
            capture.filter(filter, true).map_err(|error| refused(filter, &error))?;
        }
        Ok(Self::Interface(capture, link))
    }

    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Interface(capture, _) => Some(capture.as_fd()),
            Self::File(..) => None,
        }
    }

    pub(super) fn lost(&mut self) -> u64 {
        match self {
            Self::Interface(capture, _) => {
                capture.stats().map_or(0, |stats| u64::from(stats.dropped) + u64::from(stats.if_dropped))
            }
            Self::File(..) => 0,
        }
    }

    pub(super) fn read(&mut self, number: &mut u64) -> Next<'_> {
        match self {
            Self::File(capture, link) => next(capture.next_packet(), *link, number),
            Self::Interface(capture, link) => next(capture.next_packet(), *link, number),
        }
    }
}

/// Returns libpcap's name of the link type, or its number if libpcap does not know it.
pub(super) fn name_of(link: LinkType) -> String {
    Linktype(link.0).get_name().unwrap_or_else(|_| link.0.to_string())
}

/// Bytes captured per frame: enough for all headers.
const SNAP_LENGTH: i32 = 256;
const BUFFER: i32 = 16 << 20;
/// Milliseconds for which the kernel may hold frames back, to deliver many at once.
const READ_TIMEOUT_MS: i32 = 100;

fn next<'a>(read: Result<pcap::Packet<'a>, pcap::Error>, link: LinkType, number: &mut u64) -> Next<'a> {
    match read {
        Ok(packet) => {
            *number += 1;
            let header = packet.header;
            // With nanosecond precision, libpcap stores nanoseconds in `tv_usec`.
            let at = header.ts.tv_sec.saturating_mul(1_000_000_000).saturating_add(header.ts.tv_usec);
            let (at, length) = (Timestamp(at), header.len.max(header.caplen));
            Next::Frame(Frame { number: *number, at, link, data: packet.data, length, snap_length: None })
        }
        Err(pcap::Error::NoMorePackets) => Next::End,
        Err(pcap::Error::TimeoutExpired) => Next::NoFrame,
        Err(error) => Next::Damaged { frame: *number + 1, detail: text(&error) },
    }
}

/// Returns libpcap's own message, without the crate's additions.
fn text(error: &pcap::Error) -> String {
    match error {
        pcap::Error::PcapError(text) => text.clone(),
        error => error.to_string(),
    }
}

fn is_permission_error(error: &str) -> bool {
    let error = error.to_lowercase();
    error.contains("permission") || error.contains("not permitted")
}

fn refused(filter: &str, error: &pcap::Error) -> CaptureError {
    CaptureError::Filter { filter: filter.to_owned(), error: text(error) }
}

/// One filter expression, compiled for each link type that occurs.
#[derive(Default)]
pub(super) struct Filters {
    text: Option<String>,
    /// The compiled programs. `None` if the expression is not applicable to the link type, such as a hardware
    /// address on raw IP.
    programs: Vec<(LinkType, Option<BpfProgram>)>,
}

impl Filters {
    pub(super) fn new(text: Option<&str>, link: LinkType) -> Result<Self, CaptureError> {
        let Some(text) = text else { return Ok(Self::default()) };
        let program = Self::compile(text, link).map_err(|error| refused(text, &error))?;
        Ok(Self { text: Some(text.to_owned()), programs: vec![(link, Some(program))] })
    }

    fn compile(text: &str, link: LinkType) -> Result<BpfProgram, pcap::Error> {
        // libpcap's number for raw IP differs from the number in files.
        let dlt = if link == LinkType::RAW { 12 } else { link.0 };
        pcap::Capture::dead(Linktype(dlt))?.compile(text, true)
    }

    /// Returns whether the frame passes. `less` and `greater` refer to the captured length.
    pub(super) fn accepts(&mut self, frame: &Frame<'_>) -> bool {
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
