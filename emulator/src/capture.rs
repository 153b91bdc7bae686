//! Capture files in pcap format with nanosecond timestamps, one file per capture point.

use std::path::Path;
use std::time::SystemTime;

use airwire::time::Instant;

use crate::output::{Output, OutputError};

/// A receiver of every packet that passes a capture point. Drivers call it, not machines.
pub trait Tap {
    /// Receives a packet that passes at this time. The implementation must store errors for a later report.
    fn packet(&mut self, at: Instant, packet: &[u8]);
}

/// `None` ignores packets.
impl<T: Tap> Tap for Option<T> {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        if let Some(tap) = self {
            tap.packet(at, packet);
        }
    }
}

/// Stores all packets, for tests.
impl Tap for Vec<(Instant, Vec<u8>)> {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.push((at, packet.to_vec()));
    }
}

/// A pcap file in memory, for targets without a file system.
#[derive(Clone, Debug)]
pub struct InMemory(Vec<u8>);

impl Default for InMemory {
    fn default() -> Self {
        Self(file_header().to_vec())
    }
}

impl InMemory {
    /// Returns the size of the file so far, in bytes.
    pub fn size(&self) -> usize {
        self.0.len()
    }

    /// Returns the bytes that [`Capture`] would have written with `Instant::ZERO` at 1970-01-01.
    pub fn into_octets(self) -> Vec<u8> {
        self.0
    }
}

impl Tap for InMemory {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.0.extend(packet_header(std::time::Duration::from_nanos(at.as_nanos()), packet));
        self.0.extend_from_slice(captured(packet));
    }
}

/// A pcap file of whole IP packets.
#[derive(Debug)]
pub struct Capture {
    output: Output,
    /// Wall-clock time at `Instant::ZERO`, since 1970.
    zero: std::time::Duration,
    /// The first failure of the [`Tap`]. The capture writes nothing after a failure.
    failed: Option<OutputError>,
}

/// Magic number of pcap files with nanosecond timestamps.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// Longer than any packet except transport blocks of more than four layers, which are cut. tcpdump refuses a
/// larger number.
const SNAPLEN: u32 = 262_144;
const LINKTYPE_RAW: u32 = 101;

fn file_header() -> [u8; 24] {
    let mut header = [0; 24];
    header[..4].copy_from_slice(&MAGIC.to_ne_bytes());
    header[4..6].copy_from_slice(&VERSION[0].to_ne_bytes());
    header[6..8].copy_from_slice(&VERSION[1].to_ne_bytes());
    // Time zone and timestamp accuracy stay 0, as in all other writers.
    header[16..20].copy_from_slice(&SNAPLEN.to_ne_bytes());
    header[20..].copy_from_slice(&LINKTYPE_RAW.to_ne_bytes());
    header
}

/// The bytes of a packet that a file contains.
fn captured(packet: &[u8]) -> &[u8] {
    &packet[..packet.len().min(SNAPLEN as usize)]
}

/// Builds the header of a packet record. `wall` is the time since 1970.
fn packet_header(wall: std::time::Duration, packet: &[u8]) -> [u8; 16] {
    let captured = captured(packet).len() as u32;
    let mut header = [0; 16];
    // The 32-bit seconds last until 2106. Readers that use a signed number, such as libpcap 1.10, stop at
    // 2038.
    header[..4].copy_from_slice(&(wall.as_secs() as u32).to_ne_bytes());
    header[4..8].copy_from_slice(&wall.subsec_nanos().to_ne_bytes());
    header[8..12].copy_from_slice(&captured.to_ne_bytes());
    header[12..].copy_from_slice(&(packet.len() as u32).to_ne_bytes());
    header
}

impl Capture {
    /// Creates a file in which `Instant::ZERO` corresponds to the wall-clock time `zero`. In virtual time,
    /// use `SystemTime::UNIX_EPOCH`, so that a repeated run writes an identical file. Only its owner may read
    /// a new file.
    pub fn create(path: impl AsRef<Path>, zero: SystemTime) -> Result<Self, OutputError> {
        let mut output = Output::create_private(path.as_ref())?;
        output.write(&file_header())?;
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Ok(Self { output, zero, failed: None })
    }

    /// Writes a packet into the buffered file.
    pub fn write(&mut self, at: Instant, packet: &[u8]) -> Result<(), OutputError> {
        let wall = self.zero + std::time::Duration::from_nanos(at.as_nanos());
        self.output.write(&packet_header(wall, packet))?;
        self.output.write(captured(packet))
    }

    /// Flushes the buffer, and reports the first failure of the [`Tap`].
    pub fn flush(&mut self) -> Result<(), OutputError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => self.output.flush(),
        }
    }
}

impl Tap for Capture {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        if self.failed.is_none() {
            self.failed = self.write(at, packet).err();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use airwire::time::Duration;

    use super::*;

    /// UDP 10.0.0.1:1234 > 10.0.0.2:5678 with 4 bytes of payload.
    const UDP: [u8; 32] = [
        0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2, 0x04, 0xd2, 0x16, 0x2e,
        0, 12, 0, 0, 1, 2, 3, 4,
    ];

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("airlink-{}-{name}", std::process::id()))
    }

    #[test]
    fn packet_longer_than_snaplen_is_cut() {
        let mut capture = InMemory::default();
        capture.packet(Instant::ZERO, &[0x60; 300_000]);
        let file = capture.into_octets();
        assert_eq!(file.len(), 24 + 16 + SNAPLEN as usize);
        assert_eq!(file[32..40], [SNAPLEN.to_ne_bytes(), 300_000_u32.to_ne_bytes()].concat());
    }

    #[test]
    fn tcpdump_reads_packets_with_nanosecond_timestamps() {
        let path = temporary("tcpdump.pcap");
        let zero = SystemTime::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 999_999_990);
        {
            let mut capture = Capture::create(&path, zero).unwrap();
            capture.packet(Instant::from_nanos(1), &UDP);
            capture.packet(Instant::from_nanos(11) + Duration::from_secs(1), &UDP);
            capture.flush().unwrap();
        }
        let output = Command::new("tcpdump")
            .args(["-tt", "-n", "--nano", "-r"])
            .arg(&path)
            .output()
            .expect("this test needs tcpdump: apt-get install tcpdump");
        std::fs::remove_file(&path).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let expected = "1000000000.999999991 IP 10.0.0.1.1234 > 10.0.0.2.5678: UDP, length 4\n\
                        1000000002.000000001 IP 10.0.0.1.1234 > 10.0.0.2.5678: UDP, length 4\n";
        assert_eq!(text, expected, "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn in_memory_capture_equals_capture_file() {
        let path = temporary("memory.pcap");
        let mut memory = InMemory::default();
        {
            let mut file = Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap();
            for at in [1, 1_500_000_000] {
                file.packet(Instant::from_nanos(at), &UDP);
                memory.packet(Instant::from_nanos(at), &UDP);
            }
            file.flush().unwrap();
        }
        let octets = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(memory.into_octets(), octets);
    }

    #[test]
    fn drop_writes_buffered_packets() {
        let path = temporary("drop.pcap");
        Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap().packet(Instant::ZERO, &UDP);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + UDP.len());
        assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_ne_bytes(), "the magic number of nanosecond files");
        assert_eq!(bytes[20..24], 101_u32.to_ne_bytes(), "LINKTYPE_RAW");
    }

    #[test]
    fn libpcap_reads_longest_packet_and_latest_timestamp() {
        let path = temporary("libpcap.pcap");
        let mut capture = Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap();
        // The longest packet, and the latest time that libpcap can read.
        let long = vec![0x60; 65_575];
        let end = Instant::from_nanos((1 << 31) * 1_000_000_000 - 1);
        capture.packet(Instant::from_nanos(1), &UDP);
        capture.packet(end, &long);
        capture.flush().unwrap();
        let mut read = pcap::Capture::from_file_with_precision(&path, pcap::Precision::Nano).unwrap();
        std::fs::remove_file(&path).unwrap();
        let packets: Vec<_> = std::iter::from_fn(|| {
            let packet = read.next_packet().ok()?;
            Some((packet.header.ts.tv_sec, packet.header.ts.tv_usec, packet.data.to_vec()))
        })
        .collect();
        let expected = [(0, 1, UDP.to_vec()), ((1 << 31) - 1, 999_999_999, long)];
        assert!(packets == expected, "{} packets", packets.len());
    }

    #[test]
    fn write_error_on_full_disk_is_reported() {
        let mut capture = Capture::create("/dev/full", SystemTime::UNIX_EPOCH).unwrap();
        for _ in 0..100_000 {
            capture.packet(Instant::ZERO, &UDP);
        }
        let error = capture.flush().unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("No space left"), "{error}");
        let result = (0..100_000).try_for_each(|_| capture.write(Instant::ZERO, &UDP));
        assert!(result.is_err());
    }

    #[test]
    fn create_error_names_path() {
        let error = Capture::create("/nonexistent/x.pcap", SystemTime::UNIX_EPOCH).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/x.pcap"), "{error}");
    }
}
