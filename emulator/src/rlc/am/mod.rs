//! Acknowledged mode as LTE (3GPP TS 36.322) and NR (TS 38.322) share it: the windows of both directions,
//! polling, retransmission counts, STATUS reporting and its timers.
//!
//! The two generations count different units. In LTE, a sequence number belongs to a PDU, which is sent with
//! the size of its grant. In NR, it belongs to an SDU. In this module, a *unit* is the PDU (LTE) or SDU (NR)
//! with one sequence number. Both can be transmitted in segments, which have octet offsets within the unit.
//! `Generation` lists the rules that differ.

pub(in crate::rlc) mod polling;
pub(in crate::rlc) mod receive_window;
pub(in crate::rlc) mod receiver;
pub(in crate::rlc) mod report;
pub(in crate::rlc) mod send_window;
pub(in crate::rlc) mod status;
pub(in crate::rlc) mod status_reporting;
#[cfg(test)]
pub(in crate::rlc) mod testing;
pub(in crate::rlc) mod transmitter;

use airwire::time::Duration;
pub use status::{Nack, NackSegment, Status};

/// Settings of AM that both generations have, with the defaults of a data bearer of srsRAN's gNB (5QI 9).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AmParameters {
    /// pollPDU: number of new PDUs after which a PDU polls. `None`: infinity.
    pub poll_pdu: Option<u32>,
    /// pollByte: number of new octets after which a PDU polls. `None`: infinity.
    pub poll_byte: Option<u64>,
    /// t-PollRetransmit: time after which an unanswered poll is repeated.
    pub t_poll_retransmit: Duration,
    /// maxRetxThreshold: value of RETX_COUNT at which RRC is informed.
    pub max_retx_threshold: u32,
    /// t-StatusProhibit: least time between STATUS PDUs.
    pub t_status_prohibit: Duration,
}

impl Default for AmParameters {
    fn default() -> Self {
        Self {
            poll_pdu: Some(16),
            poll_byte: None,
            t_poll_retransmit: Duration::from_millis(100),
            max_retx_threshold: 32,
            t_status_prohibit: Duration::from_millis(10),
        }
    }
}

/// Counters of an AM entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct AmStats {
    /// Data PDUs with octets that had not been transmitted before.
    pub pdus_new: u64,
    /// Data PDUs with octets that had been transmitted before.
    pub pdus_retransmitted: u64,
    /// Data PDUs that polled.
    pub polls: u64,
    /// Expiries of t-PollRetransmit.
    pub poll_timeouts: u64,
    /// STATUS PDUs sent.
    pub statuses_sent: u64,
    /// STATUS PDUs received and accepted.
    pub statuses_received: u64,
    /// Received data PDUs without new octets, or outside the window.
    pub duplicates: u64,
    /// Expiries of t-Reordering or t-Reassembly.
    pub reassembly_timeouts: u64,
    /// Received PDUs that were refused with a [`ReceiveError`].
    pub refused: u64,
}

/// The rules in which the generations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rlc) enum Generation {
    Lte,
    Nr,
}

/// Reason for discarding a received PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReceiveError {
    /// The PDU has no octets.
    #[error("an empty PDU")]
    Empty,
    /// The PDU ends within its header.
    #[error("the PDU ends within its header")]
    HeaderTruncated,
    /// A data PDU has no data.
    #[error("a data PDU without data")]
    NoData,
    /// The control PDU type (CPT) is reserved.
    #[error("control PDU type {0} is reserved")]
    ControlType(u8),
    /// A segment that is not the first one has the offset 0 (NR).
    #[error("a segment in the middle or at the end of an SDU has the offset 0")]
    SegmentOffset,
    /// A Length Indicator is 0, which is reserved (LTE).
    #[error("length indicator 0 is reserved")]
    LengthIndicatorZero,
    /// The Length Indicators exceed the data (LTE).
    #[error("the length indicators claim {claimed} octets or more where {octets} follow the header")]
    LengthIndicators {
        /// Sum of the Length Indicators, plus 1 for the last element.
        claimed: usize,
        /// Octets after the header.
        octets: usize,
    },
    /// A NACK range is 0 (NR).
    #[error("a NACK range of 0")]
    NackRange,
    /// SOend of a NACK is before SOstart.
    #[error("a NACK ends at octet {end}, before it starts at octet {start}")]
    NackSegment {
        /// SOstart.
        start: u32,
        /// SOend.
        end: u32,
    },
    /// A NACK_SN is not below ACK_SN.
    #[error("NACK_SN {nack_sn} is not below ACK_SN {ack_sn}")]
    NackAhead {
        /// NACK_SN.
        nack_sn: u32,
        /// ACK_SN.
        ack_sn: u32,
    },
    /// ACK_SN is above the next sequence number to send.
    #[error("ACK_SN {0} acknowledges what was not sent")]
    AckAhead(u32),
    /// A segment contradicts an earlier one about the length of the SDU (NR) or PDU (LTE).
    #[error("a segment of SN {0} contradicts an earlier one about the length")]
    Contradiction(u32),
}
