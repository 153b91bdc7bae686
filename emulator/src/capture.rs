//! Packets as nanosecond pcap files, one per capture point, for tcpdump, tcptrace and Wireshark.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use pcap::{Linktype, Packet, PacketHeader, Precision, Savefile};

use crate::time::Instant;

/// A place where packets go past and somebody may look at them. Drivers call it; machines never know.
pub trait Tap {
    fn packet(&mut self, at: Instant, packet: &[u8]);
}

/// Nobody looks.
impl<T: Tap> Tap for Option<T> {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        if let Some(tap) = self {
            tap.packet(at, packet);
        }
    }
}

/// For tests: everything is kept.
impl Tap for Vec<(Instant, Vec<u8>)> {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        self.push((at, packet.to_vec()));
    }
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the capture {}: {source}; is the directory there, writable and not full?", path.display())]
pub struct CaptureError {
    path: PathBuf,
    source: pcap::Error,
}

pub struct Capture {
    file: Savefile,
    path: PathBuf,
    /// Wall time at `Instant::ZERO`, since 1970.
    zero: std::time::Duration,
}

/// `dead()` wants libpcap's DLT, not the LINKTYPE 101 that it then writes into the file.
const DLT_RAW: Linktype = Linktype(12);

impl Capture {
    /// A file for whole IP packets, in which `Instant::ZERO` is the wall time `zero`.
    /// In virtual time that is `SystemTime::UNIX_EPOCH`, so that files repeat to the byte.
    pub fn create(path: impl AsRef<Path>, zero: SystemTime) -> Result<Self, CaptureError> {
        let path = path.as_ref().to_path_buf();
        let zero = zero.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let dead = pcap::Capture::dead_with_precision(DLT_RAW, Precision::Nano);
        match dead.and_then(|dead| dead.savefile(&path)) {
            Ok(file) => Ok(Self { file, path, zero }),
            Err(source) => Err(CaptureError { path, source }),
        }
    }

    /// Writes out what is buffered. Dropping does so too, but cannot report that the disk is full.
    pub fn flush(&mut self) -> Result<(), CaptureError> {
        self.file.flush().map_err(|source| CaptureError { path: self.path.clone(), source })
    }
}

impl Tap for Capture {
    fn packet(&mut self, at: Instant, packet: &[u8]) {
        let wall = self.zero + std::time::Duration::from_nanos(at.as_nanos());
        // In a file of nanosecond precision the field called tv_usec holds nanoseconds.
        let ts = libc::timeval { tv_sec: wall.as_secs() as i64, tv_usec: i64::from(wall.subsec_nanos()) };
        // An IP packet is at most 65575 bytes (a v6 header and its 16-bit length).
        let len = packet.len() as u32;
        self.file.write(&Packet::new(&PacketHeader { ts, caplen: len, len }, packet));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::time::Duration;

    /// UDP 10.0.0.1:1234 > 10.0.0.2:5678, 4 bytes of payload.
    const UDP: [u8; 32] = [
        0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2, 0x04, 0xd2, 0x16, 0x2e,
        0, 12, 0, 0, 1, 2, 3, 4,
    ];

    fn temporary(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("airlink-{}-{name}", std::process::id()))
    }

    #[test]
    fn tcpdump_reads_the_packets_and_every_nanosecond() {
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
    fn dropping_keeps_what_was_buffered() {
        let path = temporary("drop.pcap");
        Capture::create(&path, SystemTime::UNIX_EPOCH).unwrap().packet(Instant::ZERO, &UDP);
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(bytes.len(), 24 + 16 + UDP.len());
        assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_ne_bytes(), "the magic number of nanosecond files");
        assert_eq!(bytes[20..24], 101_u32.to_ne_bytes(), "LINKTYPE_RAW");
    }

    #[test]
    fn an_unwritable_path_is_named() {
        let error = Capture::create("/nonexistent/x.pcap", SystemTime::UNIX_EPOCH).err().unwrap();
        assert!(error.to_string().contains("/nonexistent/x.pcap"), "{error}");
    }
}
