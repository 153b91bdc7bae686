//! Counts the PDUs of a radio link over time: transmitted, retransmitted and damaged.

use super::Bins;

/// The PDUs of a radio link in both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Radio {
    /// The direction from the network to the mobile.
    pub down: RadioDirection,
    /// The direction from the mobile to the network.
    pub up: RadioDirection,
}

/// The PDUs of one direction. Times are in nanoseconds since 1970.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RadioDirection {
    /// All transmissions.
    pub sent: Bins,
    /// Retransmissions.
    pub retransmitted: Bins,
    /// Transmissions that arrived damaged.
    pub damaged: Bins,
}

impl Radio {
    /// Returns both directions with their names.
    pub fn sides(&self) -> [(&'static str, &RadioDirection); 2] {
        [("down", &self.down), ("up", &self.up)]
    }
}

/// Reads airlink's capture of radio PDUs (docs/reference/link-views.md). Captures are not available in a
/// browser.
#[cfg(not(target_family = "wasm"))]
mod reading {
    use std::net::Ipv4Addr;
    use std::path::Path;

    use aircaptures::link_layer::LinkType;
    use aircaptures::{Capture, CaptureError, Next};

    use super::Radio;
    use crate::emulation::EmulationError;

    const NETWORK: [u8; 4] = Ipv4Addr::new(192, 0, 2, 1).octets();
    const MOBILE: [u8; 4] = Ipv4Addr::new(192, 0, 2, 2).octets();
    const INTACT: u16 = 50_000;
    const DAMAGED: u16 = 50_002;

    impl Radio {
        /// Reads a file of `airlink --radio-pcap`.
        ///
        /// # Errors
        ///
        /// Returns an error if the file cannot be read, or if it is not a capture of radio PDUs.
        pub fn read(path: &Path) -> Result<Self, EmulationError> {
            let no_radio = || EmulationError::NoRadio(path.to_owned());
            let failed = |error| EmulationError::Read { path: path.to_owned(), error };
            let mut capture = Capture::open(path, None).map_err(|error| match error {
                CaptureError::File { error, .. } => failed(error),
                _ => no_radio(),
            })?;
            let mut radio = Self::default();
            loop {
                let frame = match capture.read() {
                    Next::Frame(frame) => frame,
                    Next::Filtered | Next::NoFrame => continue,
                    Next::Flaw { detail, .. } | Next::Damaged { detail, .. } => {
                        return Err(failed(std::io::Error::other(detail)));
                    }
                    Next::End => return Ok(radio),
                };
                if frame.link != LinkType::RAW || radio.add(frame.data, frame.at.0).is_none() {
                    return Err(no_radio());
                }
            }
        }

        /// Counts a PDU by its IP and UDP headers. The IP identification is the number of the PDU's
        /// transmission. Returns `None` if airlink did not write the headers.
        fn add(&mut self, packet: &[u8], at: i64) -> Option<()> {
            let ip: &[u8; 20] = packet.first_chunk()?;
            let udp = packet.get(usize::from(ip[0] & 0x0f) * 4..)?.first_chunk::<8>()?;
            let side = match [ip[12], ip[13], ip[14], ip[15]] {
                NETWORK => &mut self.down,
                MOBILE => &mut self.up,
                _ => return None,
            };
            let damaged = match (ip[0] >> 4, u16::from_be_bytes([udp[0], udp[1]])) {
                (4, INTACT) => false,
                (4, DAMAGED) => true,
                _ => return None,
            };
            side.sent.add(at, 1.0);
            if u16::from_be_bytes([ip[4], ip[5]]) > 1 {
                side.retransmitted.add(at, 1.0);
            }
            if damaged {
                side.damaged.add(at, 1.0);
            }
            Some(())
        }
    }
}
