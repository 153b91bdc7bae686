//! Judges how an RLC AM bearer behaves (3GPP TS 25.322) from a capture of its PDUs alone, in the order of transmission,
//! as tshark decodes them. It keeps its own books of both ends, and shares no code with what it judges.
//!
//! The carrier's UDP source port tells which PDUs the channel damaged, so the states of both ends can be rebuilt.

#![warn(missing_docs)]

mod check;
pub mod judgement;
pub mod settings;
pub mod trace;

use std::path::Path;

use check::Checker;
use judgement::Judgement;
use settings::{Direction, Time};

/// When a capture ended. If that is not known, silence after the last PDU is no violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nobody says.
    Unknown,
    /// At this time, since 1970.
    At(Time),
    /// So long after its first PDU.
    After(Time),
}

/// Judges all PDUs in this capture, or those of one radio bearer. `lost_port` is the UDP source port of PDUs that the
/// channel damaged.
pub fn judge(
    pcap: &Path,
    down: Direction,
    up: Direction,
    lost_port: u16,
    bearer: Option<u8>,
    end: End,
) -> anyhow::Result<Judgement> {
    let pdus = trace::read(pcap, lost_port, bearer, [&down, &up])?;
    anyhow::ensure!(!pdus.is_empty(), "no RLC PDUs in {}", pcap.display());
    let mut checker = Checker::new(down, up);
    for pdu in &pdus {
        checker.pdu(pdu);
    }
    let until = match end {
        End::Unknown => None,
        End::At(time) => Some(time),
        End::After(time) => Some(pdus[0].at + time),
    };
    Ok(checker.finish(until))
}
