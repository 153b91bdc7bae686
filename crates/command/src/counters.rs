//! Counters of a connection and its device, as parts of JSON events.

use airlink::tun::DeviceError;
use airtcp::recovery::Recipe;
use airtcp::tcp::Connection;
use airtcp_tun::{Driver, Traffic};
use serde::Serialize;

/// The result of the handshake.
#[derive(Serialize)]
pub struct Handshake {
    /// Bytes of data in a full-sized segment.
    pub mss: u32,
    /// MSS option of our SYN.
    pub advertised_mss: u32,
    /// Whether SACK was negotiated.
    pub sack: bool,
    /// Whether timestamps were negotiated.
    pub timestamps: bool,
    /// Whether ECN was negotiated.
    pub ecn: bool,
    /// Shift count of the windows that we advertise.
    pub our_window_scale: u8,
    /// Shift count of the peer's windows.
    pub peer_window_scale: u8,
    /// The SYN's acknowledgment, in either direction, also covered data in the SYN (TCP Fast Open).
    pub syn_data: bool,
}

/// Retransmissions, by their cause.
#[derive(Serialize)]
pub struct Retransmissions {
    /// Number of retransmitted segments.
    pub segments: u64,
    /// Number of retransmitted bytes.
    pub bytes: u64,
    /// Fast retransmissions.
    pub fast: u64,
    /// Further retransmissions during fast recovery.
    pub recovery: u64,
    /// Retransmissions after timeouts.
    pub timeout: u64,
    /// Tail loss probes.
    pub probe: u64,
    /// Retransmissions of a SYN or SYN,ACK.
    pub handshake: u64,
}

/// Timeouts, mistakes, and other counters of loss recovery.
#[derive(Serialize)]
pub struct Timeouts {
    /// Number of timeouts.
    pub timeouts: u64,
    /// Timeouts after 0, 1, 2, and 3 or more duplicate ACKs (x-dupack in Pan et al. 2004, §4.1).
    pub timeouts_by_dupacks: [u64; 4],
    /// Timeouts after all segments outstanding in the current pass, except the first, had caused a duplicate ACK.
    pub failed_dupack: u64,
    /// Timeouts that timestamps prove spurious (RFC 3522).
    pub spurious_timeouts: u64,
    /// Episodes that began without a timeout.
    pub fast_retransmits: u64,
    /// Fast retransmissions that the sender detected as spurious.
    pub spurious_fast_retransmits: u64,
    /// Window reductions that were undone.
    pub undone: u64,
    /// Number of D-SACKs received.
    pub dsacks: u64,
    /// Duplicate ACKs that the repair counted.
    pub duplicate_acks: u64,
    /// Number of window reductions.
    pub window_reductions: u64,
    /// Losses that were attributed to the radio link and did not reduce the window.
    pub attributed_to_radio: u64,
    /// Retransmissions that were declared lost without a timeout.
    pub lost_retransmissions: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
}

/// Segments in both directions.
#[derive(Serialize)]
pub struct Arrivals {
    /// Segments sent.
    pub segments_out: u64,
    /// Segments received.
    pub segments_in: u64,
    /// Received segments that contained duplicate data.
    pub duplicate_segments: u64,
    /// Segments received above RCV.NXT.
    pub out_of_order_segments: u64,
}

/// The traffic of the TUN device.
#[derive(Serialize)]
pub struct Device {
    /// Name of the device.
    pub name: String,
    /// Packets read from the device.
    pub packets_in: u64,
    /// Bytes read from the device.
    pub bytes_in: u64,
    /// Packets that the kernel accepted.
    pub packets_out: u64,
    /// Bytes that the kernel accepted.
    pub bytes_out: u64,
    /// Packets that the kernel refused because the interface was down.
    pub refused: u64,
    /// Number of times a packet had to wait because the device was full.
    pub waits: u64,
    /// Packets that the kernel dropped before the program read them.
    pub dropped_by_kernel: u64,
}

/// Returns a sentence for each part of the recipe whose information did not arrive on the connection.
pub fn notices(recipe: &Recipe, connection: &Connection) -> Vec<String> {
    let inputs = connection.recovery().inputs();
    recipe.notices(|need| inputs.lacks(need))
}

impl Handshake {
    /// Returns the values of a connection.
    pub fn of(connection: &Connection) -> Self {
        let info = connection.info();
        Self {
            mss: info.snd_mss,
            advertised_mss: info.advmss + if info.timestamps { 12 } else { 0 },
            sack: info.sack,
            timestamps: info.timestamps,
            ecn: info.ecn,
            our_window_scale: info.rcv_wscale,
            peer_window_scale: info.snd_wscale,
            syn_data: info.syn_data,
        }
    }
}

impl Retransmissions {
    /// Returns the values of a connection.
    pub fn of(connection: &Connection) -> Self {
        let counters = connection.recovery().counters();
        let segments = u64::from(connection.info().total_retrans);
        Self {
            segments,
            bytes: connection.statistics().bytes_resent,
            fast: counters.resent_fast,
            recovery: counters.resent_recovery,
            timeout: counters.resent_timeout,
            probe: counters.resent_probe,
            handshake: segments - counters.resent(),
        }
    }
}

impl Timeouts {
    /// Returns the values of a connection.
    pub fn of(connection: &Connection) -> Self {
        let counters = connection.recovery().counters();
        Self {
            timeouts: counters.timeouts,
            timeouts_by_dupacks: counters.timeouts_by_dupacks.map(u64::from),
            failed_dupack: u64::from(counters.failed_dupack),
            spurious_timeouts: counters.spurious_timeouts,
            fast_retransmits: counters.fast_retransmits,
            spurious_fast_retransmits: counters.spurious_fast_retransmits,
            undone: counters.undone,
            dsacks: counters.dsacks,
            duplicate_acks: counters.dupacks,
            window_reductions: counters.window_reductions,
            attributed_to_radio: counters.attributed_to_radio,
            lost_retransmissions: counters.lost_retransmissions,
            window_probes: connection.statistics().window_probes.into(),
        }
    }
}

impl Arrivals {
    /// Returns the values of a connection.
    pub fn of(connection: &Connection) -> Self {
        let statistics = connection.statistics();
        Self {
            segments_out: statistics.segments_out,
            segments_in: statistics.segments_in,
            duplicate_segments: statistics.duplicate_segments_in,
            out_of_order_segments: statistics.out_of_order_segments_in,
        }
    }
}

impl Device {
    /// Returns the values of a device.
    ///
    /// # Errors
    /// If the kernel does not report its drops.
    pub fn of(driver: &Driver) -> Result<Self, DeviceError> {
        let Traffic { packets_in, bytes_in, packets_out, bytes_out, refused, waits } = driver.traffic();
        Ok(Self {
            name: driver.device().to_owned(),
            packets_in,
            bytes_in,
            packets_out,
            bytes_out,
            refused,
            waits,
            dropped_by_kernel: driver.kernel_drops()?,
        })
    }
}
