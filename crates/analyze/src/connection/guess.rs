//! Infers the characteristics of a sender. Evidence is counted as it arrives and evaluated at the end.

use super::congestion::UNLIMITED_ROUNDS;
use super::findings::{AfterTimeout, CongestionFindings, Evidence, PartialAcks, SenderFindings};

/// Counts of events that distinguish senders.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// After a timeout: retransmissions of SACKed segments, or without SACK, of successive segments.
    pub(super) went_back: u32,
    /// After a timeout: SACKed segments that were skipped.
    pub(super) left_out: u32,
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
    pub(super) resent_copies: u32,
    /// New data sent on the first or second duplicate ACK.
    pub(super) limited_transmit: u32,
    /// Cases in which new data was not sent on them, although the receiver's window had space.
    pub(super) no_limited_transmit: u32,
}

impl Guess {
    pub(super) fn after_timeout(&self) -> AfterTimeout {
        match (self.went_back, self.left_out) {
            (0, 0) => AfterTimeout::Undetermined,
            (back, out) if back >= out => AfterTimeout::GoBackN,
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

/// Estimates the sender's window from the maximum flight in each round trip.
///
/// A round ends with the first ACK for data that was sent after the round began.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    end: u64,
    /// The maximum flight in this round, and in the previous round.
    now: u32,
    before: u32,
    max: u32,
    growth: Growth,
    /// Number of rounds since something other than the window limited the sender.
    unlimited: u8,
}

/// The growth at the start of the connection, as long as the window grows.
#[derive(Debug, Default)]
struct Growth {
    first: u32,
    last: u32,
    rounds: u16,
    over: bool,
}

/// Minimum factor by which a window grows per round in slow start.
const GROWS: f64 = 1.2;

impl Rounds {
    pub(super) fn flight(&mut self, bytes: u32) {
        self.now = self.now.max(bytes);
        self.max = self.max.max(bytes);
    }

    /// Records that new data up to `una` was acknowledged, with data up to `max` sent. If this ends a round,
    /// returns the maximum flight in it.
    pub(super) fn acknowledged(&mut self, una: u64, max: u64) -> Option<u32> {
        if una <= self.end {
            return None;
        }
        let most = self.now;
        self.unlimited = self.unlimited.saturating_add(1);
        let growth = &mut self.growth;
        if !growth.over && self.now > 0 {
            if growth.first == 0 {
                (growth.first, growth.last) = (self.now, self.now);
            } else if self.now as f64 >= growth.last as f64 * GROWS {
                growth.last = self.now;
                growth.rounds = growth.rounds.saturating_add(1);
            } else {
                growth.over = true;
            }
        }
        (self.before, self.now, self.end) = (self.now, 0, max);
        Some(most)
    }

    /// Records a limit other than the sender's window. Afterwards, the flight does not show how the window
    /// grows.
    pub(super) fn limited(&mut self) {
        self.growth.over = true;
        self.unlimited = 0;
    }

    /// Starts a new round, so that its flight is measured from now on.
    pub(super) fn restart(&mut self, max: u64) {
        (self.now, self.end) = (0, max);
    }

    /// Returns the maximum flight within a round trip, if only the window has limited it.
    pub(super) fn window(&self) -> Option<u32> {
        (self.unlimited >= UNLIMITED_ROUNDS).then(|| self.before.max(self.now))
    }

    pub(super) fn reduced(&mut self, flight: u32) {
        self.growth.over = true;
        (self.before, self.now) = (flight, flight);
    }

    pub(super) fn estimate(&self) -> u64 {
        u64::from(self.before.max(self.now))
    }

    pub(super) fn max(&self) -> u64 {
        u64::from(self.max)
    }

    pub(super) fn growth(&self) -> Option<f64> {
        let Growth { first, last, rounds, .. } = self.growth;
        (rounds > 0).then(|| (last as f64 / first as f64).powf(1.0 / f64::from(rounds)))
    }
}

/// The data sent before the first ACK for data.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) bytes: u64,
    pub(super) segments: u32,
    /// Whether the first ACK has arrived.
    pub(super) over: bool,
}

pub(super) fn findings(
    guess: &Guess,
    rounds: &Rounds,
    beginning: Option<&Beginning>,
    mss_option: Option<u16>,
    longest: u32,
    flight_is_known: bool,
    congestion: CongestionFindings,
) -> SenderFindings {
    let beginning = beginning.filter(|beginning| beginning.segments > 0 && flight_is_known);
    SenderFindings {
        mss_option,
        longest_segment_bytes: longest,
        initial_window_bytes: beginning.map(|beginning| beginning.bytes),
        initial_window_segments: beginning.map(|beginning| u64::from(beginning.segments)),
        growth_per_round_trip: rounds.growth().filter(|_| flight_is_known),
        after_timeout: guess.after_timeout(),
        // These depend on the packets sent just after an ACK, which a capture at the receiver does not show.
        partial_acks: if flight_is_known { guess.partial_acks() } else { PartialAcks::Undetermined },
        limited_transmit: if flight_is_known { guess.limited_transmit() } else { Evidence::Undetermined },
        congestion,
    }
}
