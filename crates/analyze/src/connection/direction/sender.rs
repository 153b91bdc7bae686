//! Counts evidence of how a sender recovers from losses: its reaction to partial ACKs, timeouts and duplicate
//! ACKs. Names its congestion control.

use super::{DirectionAnalysis, InitialFlight};
use crate::connection::congestion::{Observed, identify};
use crate::connection::findings::{AfterTimeout, CongestionControlFindings, Evidence, PartialAcks, RttOf};

/// Counts of events that distinguish senders.
#[derive(Clone, Debug, Default)]
pub(super) struct SenderEvidence {
    /// After a timeout: retransmissions of SACKed segments, or without SACK, of successive segments.
    pub(super) go_back_n: u32,
    /// After a timeout: SACKed segments that were skipped.
    pub(super) skipped_sacked: u32,
    /// In fast recovery without SACK: retransmissions above the first unacknowledged segment.
    pub(super) tahoe: u32,
    /// Partial ACKs that were followed by duplicate ACKs or a timeout for the next hole.
    pub(super) reno: u32,
    /// Partial ACKs that triggered an immediate retransmission of the next segment.
    pub(super) newreno: u32,
    /// In fast recovery: retransmissions of holes above the first unacknowledged segment that SACK revealed.
    pub(super) sack: u32,
    /// Second retransmissions that an ACK triggered. They show that the sender detects lost retransmissions,
    /// as RACK does.
    pub(super) repeated_retransmissions: u32,
    /// New data sent on the first or second duplicate ACK.
    pub(super) limited_transmit: u32,
    /// First or second duplicate ACKs on which the sender did not send new data, although the receiver's
    /// window had space.
    pub(super) no_limited_transmit: u32,
}

impl SenderEvidence {
    pub(super) fn after_timeout(&self) -> AfterTimeout {
        match (self.go_back_n, self.skipped_sacked) {
            (0, 0) => AfterTimeout::Undetermined,
            (back, skipped) if back >= skipped => AfterTimeout::GoBackN,
            _ => AfterTimeout::HolesOnly,
        }
    }

    pub(super) fn partial_acks(&self) -> PartialAcks {
        if self.sack > 0 {
            PartialAcks::Sack
        } else if self.tahoe > 0 {
            PartialAcks::Tahoe
        } else if self.newreno == 0 && self.reno == 0 {
            PartialAcks::Undetermined
        } else if self.newreno >= self.reno {
            PartialAcks::NewReno
        } else {
            PartialAcks::Reno
        }
    }

    pub(super) fn limited_transmit(&self) -> Evidence {
        match (self.limited_transmit, self.no_limited_transmit) {
            (0, 0) => Evidence::Undetermined,
            (yes, no) if yes >= no => Evidence::Yes,
            _ => Evidence::No,
        }
    }
}

impl DirectionAnalysis {
    /// Names the congestion control.
    pub(super) fn congestion_control(
        &self,
        rtt_of: RttOf,
        flight_is_known: bool,
        shortest_rtt: i64,
    ) -> CongestionControlFindings {
        self.observed(rtt_of, flight_is_known, shortest_rtt)
            .map(|observed| identify(&observed))
            .unwrap_or_default()
    }

    /// Returns what a capture at the sender, or one at the receiver with timestamps, shows of the congestion
    /// control. `shortest_rtt` is the minimum for packets of any length, in nanoseconds.
    pub(in crate::connection) fn observed(
        &self,
        rtt_of: RttOf,
        flight_is_known: bool,
        shortest_rtt: i64,
    ) -> Option<Observed> {
        let round_trips = self.round_trips.as_ref()?;
        let (is_visible, base_rtt) = match rtt_of {
            RttOf::RoundTrip => (flight_is_known, self.rtt.min()),
            RttOf::ReceiverDelay => {
                (round_trips.has_delays(), round_trips.base_rtt_behind_link(self.path_segment()))
            }
            RttOf::PartOfRoundTrip | RttOf::Unknown => (false, None),
        };
        // If the first segment was lost, duplicate ACKs precede the first ACK for new data.
        let InitialFlight { segments, echoing, .. } = self.initial_flight;
        let initial = match u16::from(echoing) {
            0 if !flight_is_known => 0,
            0 => segments,
            echoing if flight_is_known => echoing.min(segments),
            echoing => echoing,
        };
        is_visible.then(|| Observed {
            rounds: round_trips.windows(),
            segment: self.path_segment(),
            initial_segments: (self.numbering.syn_seen && initial > 0).then_some(initial.into()),
            base_rtt: base_rtt.and_then(|ns| u32::try_from(ns / 1000).ok()),
            shortest_rtt: u32::try_from(shortest_rtt / 1000).ok().filter(|rtt| *rtt > 0),
            syn_is_ecn_capable: self.syn_is_ecn_capable,
        })
    }
}
