//! Checks the behaviour of an RLC bearer. The only input is a capture of its PDUs in the order of
//! transmission, from which the checker reconstructs the state of both ends. It shares no code with the
//! implementation that it checks.
//!
//! [`check`] is for UMTS (3GPP TS 25.322), whose PDUs tshark decodes. [`lte_nr`] is for LTE and NR.
//!
//! The UDP source port of a PDU shows whether the channel damaged it. The reconstruction depends on that.

#![warn(missing_docs)]

mod checker;
pub mod findings;
pub mod lte_nr;
pub mod settings;
pub mod trace;

use std::path::Path;

use checker::Checker;
use findings::Findings;
use settings::{DirectionSettings, Time};

/// End of a capture. If the end is unknown, a missing reaction to the last PDUs is not a violation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end is unknown.
    Unknown,
    /// A time since 1970.
    At(Time),
    /// A duration after the first PDU.
    After(Time),
}

/// Checks all PDUs of UMTS in this capture, or only the PDUs of one radio bearer. `lost_port` is the UDP source
/// port of PDUs that the channel damaged.
pub fn check(
    pcap: &Path,
    down: DirectionSettings,
    up: DirectionSettings,
    lost_port: u16,
    bearer: Option<u8>,
    end: End,
) -> anyhow::Result<Findings> {
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
