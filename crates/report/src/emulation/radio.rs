//! Reads from airlink's capture of radio PDUs (docs/views.md) how many were sent, sent again and damaged.

use std::net::Ipv4Addr;
use std::path::Path;

use pcap::{Capture, Linktype, Precision};

use super::{Bins, Count, EmulationError};

const NETWORK: [u8; 4] = Ipv4Addr::new(192, 0, 2, 1).octets();
const MOBILE: [u8; 4] = Ipv4Addr::new(192, 0, 2, 2).octets();
const INTACT: u16 = 50_000;
const DAMAGED: u16 = 50_002;

/// The PDUs of a radio link.
#[derive(Clone, Debug, PartialEq)]
pub struct Radio {
    /// From the network to the mobile.
    pub down: RadioDirection,
    /// From the mobile to the network.
    pub up: RadioDirection,
}

/// PDUs of one direction. Their times are in nanoseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioDirection {
    /// All that were sent.
    pub all: Count,
    /// Those that were not sent for the first time.
    pub again: Count,
    /// Those that arrived damaged.
    pub damaged: Count,
}

impl RadioDirection {
    fn new() -> Self {
        let count = |what: &str| Count { what: what.to_owned(), bins: Bins::default() };
        Self { all: count("sent"), again: count("again"), damaged: count("damaged") }
    }
}

impl Radio {
    /// Reads a file of `airlink --radio-pcap`.
    pub fn read(path: &Path) -> Result<Self, EmulationError> {
        let failed = |error: pcap::Error| match error {
            pcap::Error::IoError(kind) => EmulationError::Read { path: path.to_owned(), error: kind.into() },
            error => EmulationError::Read { path: path.to_owned(), error: std::io::Error::other(error) },
        };
        let mut capture = Capture::from_file_with_precision(path, Precision::Nano).map_err(failed)?;
        // libpcap's numbers for LINKTYPE_RAW, which depend on the system.
        if ![Linktype(12), Linktype(14), Linktype(101)].contains(&capture.get_datalink()) {
            return Err(EmulationError::NoRadio(path.to_owned()));
        }
        let mut radio = Self { down: RadioDirection::new(), up: RadioDirection::new() };
        loop {
            let packet = match capture.next_packet() {
                Ok(packet) => packet,
                Err(pcap::Error::NoMorePackets) => return Ok(radio),
                Err(error) => return Err(failed(error)),
            };
            let no_radio = || EmulationError::NoRadio(path.to_owned());
            let header: &[u8; 28] = packet.data.first_chunk().ok_or_else(no_radio)?;
            // With this precision the second field counts nanoseconds.
            let at = packet.header.ts.tv_sec * 1_000_000_000 + packet.header.ts.tv_usec;
            radio.take(header, at).ok_or_else(no_radio)?;
        }
    }

    /// Takes in the headers of IP and UDP. IP's identification counts the transmissions of a PDU. `None` if airlink did not
    /// write them.
    fn take(&mut self, header: &[u8; 28], at: i64) -> Option<()> {
        let word = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
        let side = match [header[12], header[13], header[14], header[15]] {
            NETWORK => &mut self.down,
            MOBILE => &mut self.up,
            _ => return None,
        };
        let damaged = match (header[0], word(20)) {
            (0x45, INTACT) => false,
            (0x45, DAMAGED) => true,
            _ => return None,
        };
        side.all.bins.add(at, 1.0);
        if word(4) > 1 {
            side.again.bins.add(at, 1.0);
        }
        if damaged {
            side.damaged.bins.add(at, 1.0);
        }
        Some(())
    }

    /// Both directions with their names.
    pub fn sides(&self) -> [(&'static str, &RadioDirection); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}
