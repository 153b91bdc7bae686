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

/// Judges all PDUs in this capture, or those of one radio bearer. `lost_port` is the UDP source port of PDUs that the
/// channel damaged, and `until` when the capture ended, if that is known.
pub fn judge(
    pcap: &Path,
    down: Direction,
    up: Direction,
    lost_port: u16,
    bearer: Option<u8>,
    until: Option<Time>,
) -> anyhow::Result<Judgement> {
    let pdus = trace::read(pcap, lost_port, bearer)?;
    anyhow::ensure!(!pdus.is_empty(), "no RLC PDUs in {}", pcap.display());
    let mut checker = Checker::new(down, up);
    for pdu in &pdus {
        checker.pdu(pdu);
    }
    Ok(checker.finish(until))
}
