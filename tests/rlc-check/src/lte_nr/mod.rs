//! RLC of LTE (3GPP TS 36.322) and NR (TS 38.322). In unacknowledged mode, only formats and the order of segments
//! are checked.
//!
//! The capture shows for each PDU when its first transmission begins and when it arrives. This determines the
//! state of both ends. At the same time, arrivals are handled first, then timers, then transmissions. A
//! *unit* is the PDU (LTE) or SDU (NR) with one sequence number.

pub mod capture;
mod checker;
pub mod codec;
mod ranges;
mod receiver;
mod sender;
pub mod settings;
#[cfg(test)]
mod tests;
mod um;

use std::path::Path;

use anyhow::ensure;
use capture::Frame;
use checker::Checker;
use settings::DirectionSettings;

use crate::End;
use crate::findings::Findings;

/// Generation of the RLC protocol, with the size of its sequence numbers in bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// LTE: 10 or 16 bits, in unacknowledged mode 5 or 10.
    Lte(u8),
    /// NR: 12 or 18 bits, in unacknowledged mode 6 or 12.
    Nr(u8),
}

/// Mode of RLC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// AM.
    Acknowledged,
    /// UM.
    Unacknowledged,
}

impl Generation {
    /// The number of sequence numbers.
    const fn modulus(self) -> u64 {
        let (Self::Lte(bits) | Self::Nr(bits)) = self;
        1 << bits
    }

    /// AM_Window_Size.
    const fn window(self) -> u64 {
        self.modulus() / 2
    }

    /// The number at or above `base` that has the sequence number `sn`.
    const fn at_or_above(self, base: u64, sn: u32) -> u64 {
        let modulus = self.modulus();
        base + (sn as u64 + modulus - base % modulus) % modulus
    }
}

/// Checks all PDUs of a bearer in this capture, or of the bearer with this DRB identity.
pub fn check(
    pcap: &Path,
    down: DirectionSettings,
    up: DirectionSettings,
    bearer: Option<u8>,
    end: End,
) -> anyhow::Result<Findings> {
    let mut frames = capture::read(pcap)?;
    frames.retain(|frame| bearer.is_none_or(|bearer| bearer == frame.bearer));
    check_frames(&frames, down, up, end)
}

/// Checks the PDUs of a bearer. Each direction is in the order of transmission.
pub fn check_frames(
    frames: &[Frame],
    down: DirectionSettings,
    up: DirectionSettings,
    end: End,
) -> anyhow::Result<Findings> {
    let mut order: Vec<&Frame> = frames.iter().collect();
    order.sort_by_key(|frame| frame.at);
    let Some(first) = order.first() else { anyhow::bail!("no PDUs of LTE or NR") };
    let is_uniform =
        order.iter().all(|frame| (frame.bearer, frame.generation) == (first.bearer, first.generation));
    ensure!(is_uniform, "the capture has several bearers; select one");
    if first.mode == Mode::Unacknowledged {
        return Ok(um::check(first.generation, &order));
    }
    let mut checker = Checker::new(first.generation, [down, up]);
    for frame in &order {
        checker.frame(frame);
    }
    Ok(checker.finish(match end {
        End::Unknown => None,
        End::At(time) => Some(time),
        End::After(time) => Some(first.at + time),
    }))
}
