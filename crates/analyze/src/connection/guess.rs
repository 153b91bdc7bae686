//! What kind of sender it looks like: evidence is counted as it comes and weighed at the end.

use super::congestion::UNLIMITED_ROUNDS;
use super::findings::{AfterTimeout, CongestionFindings, Evidence, PartialAcks, SenderFindings};

/// How often something was seen that tells senders apart.
#[derive(Debug, Default)]
pub(super) struct Guess {
    /// After a timeout: segments sent again that SACK had reported, or one after the other without SACK.
    pub(super) went_back: u32,
    /// After a timeout: what SACK had reported was left out.
    pub(super) left_out: u32,
    /// In fast recovery: segments above the first unacknowledged one, without SACK.
    pub(super) tahoe: u32,
    /// A partial ACK was followed by duplicates or a timeout for the next hole.
    pub(super) reno: u32,
    /// A partial ACK brought the next segment at once.
    pub(super) newreno: u32,
    /// In fast recovery: a hole above the first unacknowledged segment, which SACK showed.
    pub(super) sack: u32,
    /// Upon an ACK, what had been sent again already: it can tell that a copy is lost, as RACK can.
    pub(super) resent_copies: u32,
    /// New data left upon the first or second duplicate ACK.
    pub(super) limited_transmit: u32,
    /// None did although there was room.
    pub(super) no_limited_transmit: u32,
}

impl Guess {
    pub(super) fn after_timeout(&self) -> AfterTimeout {
        match (self.went_back, self.left_out) {
            (0, 0) => AfterTimeout::CannotBeTold,
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
            PartialAcks::CannotBeTold
        } else if self.newreno >= self.reno {
            PartialAcks::NewReno
        } else {
            PartialAcks::Reno
        }
    }

    pub(super) fn limited_transmit(&self) -> Evidence {
        match (self.limited_transmit, self.no_limited_transmit) {
            (0, 0) => Evidence::CannotBeTold,
            (yes, no) if yes >= no => Evidence::Yes,
            _ => Evidence::No,
        }
    }
}

/// The sender's window as its flight shows it, from round trip to round trip.
///
/// A round ends with the first ACK for something that was sent after it began.
#[derive(Debug, Default)]
pub(super) struct Rounds {
    end: u64,
    /// Most in flight in this round, and in the one before.
    now: u32,
    before: u32,
    max: u32,
    growth: Growth,
    /// Since something else than the window limited the sender.
    unlimited: u8,
}

/// The beginning of the connection, as long as the window grows.
#[derive(Debug, Default)]
struct Growth {
    first: u32,
    last: u32,
    rounds: u16,
    over: bool,
}

/// The least factor by which a window grows from one round to the next in slow start.
const GROWS: f64 = 1.2;

impl Rounds {
    pub(super) fn flight(&mut self, bytes: u32) {
        self.now = self.now.max(bytes);
        self.max = self.max.max(bytes);
    }

    /// New data up to `una` are acknowledged, and up to `max` have been sent. Returns what was in flight in the round that
    /// this ends.
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

    /// Another limit than the sender's window: what comes after it does not show how the window grows.
    pub(super) fn limited(&mut self) {
        self.growth.over = true;
        self.unlimited = 0;
    }

    /// Ends the round, so that the next shows what is in flight from now on.
    pub(super) fn restart(&mut self, max: u64) {
        (self.now, self.end) = (0, max);
    }

    /// The most in flight within a round trip, if nothing but the window has limited it.
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

/// What left before the first ACK for data.
#[derive(Debug, Default)]
pub(super) struct Beginning {
    pub(super) bytes: u64,
    pub(super) segments: u32,
    /// The first ACK has come, or the capture began too late or elsewhere.
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
        // These go by what leaves just after an ACK, which a capture at the receiver does not see.
        partial_acks: if flight_is_known { guess.partial_acks() } else { PartialAcks::CannotBeTold },
        limited_transmit: if flight_is_known { guess.limited_transmit() } else { Evidence::CannotBeTold },
        congestion,
    }
}
