//! When ACKs are sent: quick ACKs, the delayed-ACK timer and ACK compression.

use airwire::time::{Duration, Instant};

use super::AckState;
use crate::profile::AckCompression;
use crate::profile::jiffies::{self, JIFFY, ticks};

/// In ticks: TCP_ATO_MIN and TCP_DELACK_MIN (40 ms), half a second, and TCP_DELACK_MAX, which is below the
/// minimum RTO.
const ATO_MIN: u16 = 10;
const HALF_A_SECOND: u64 = 125;
const DELACK_MAX: u64 = 49;
/// TCP_FASTRETRANS_THRESH: number of duplicate ACKs for a hole that are sent at once.
const NEEDED_DUPACKS: u8 = 3;

/// How long an ACK is delayed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receiver) enum AckDelay {
    None,
    /// The timer for delayed or compressed ACKs runs until then.
    Until(Instant),
}

/// Whether an ACK is scheduled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Scheduled {
    #[default]
    No,
    /// An ACK that may be delayed (ICSK_ACK_SCHED).
    Delayable,
    /// An ACK that must be sent now (ICSK_ACK_NOW).
    Now,
}

/// Unacknowledged segments that ended a burst of data: small ones, or full-sized ones with PSH
/// (ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pushed {
    #[default]
    None,
    One,
    Several,
}

#[derive(Debug, Default)]
pub(in crate::tcp::receiver) struct Acks {
    scheduled: Scheduled,
    pushed: Pushed,
    /// Number of quick ACKs left.
    quick: u8,
    /// Data was answered with data, so the next answer may carry a delayed ACK.
    pingpong: bool,
    /// ACK timeout in ticks. 0: no data has arrived.
    ato: u16,
    /// The tick in which data last arrived, lower 32 bits.
    lrcvtime: u32,
}

/// Compression of ACKs that report holes.
#[derive(Debug, Default)]
pub(in crate::tcp::receiver) struct Compressed {
    /// Number of ACKs merged into the one that is delayed.
    acks: u32,
    until: Option<Instant>,
    /// Number of ACKs sent at once at this value of RCV.NXT.
    sent: u8,
    rcv_nxt: u64,
}

/// Converts nanoseconds to ticks.
fn ticks_of(nanos: u64) -> u16 {
    u16::try_from(nanos / JIFFY.as_nanos()).unwrap_or(u16::MAX)
}

impl Acks {
    pub(in crate::tcp::receiver) fn schedule(&mut self) {
        if self.scheduled == Scheduled::No {
            self.scheduled = Scheduled::Delayable;
        }
    }

    pub(in crate::tcp::receiver) fn schedule_now(&mut self) {
        self.scheduled = Scheduled::Now;
    }

    pub(in crate::tcp::receiver) fn is_scheduled(&self) -> bool {
        self.scheduled != Scheduled::No
    }

    pub(super) fn is_due_now(&self) -> bool {
        self.scheduled == Scheduled::Now
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }

    pub(super) fn end_quick(&mut self) {
        self.quick = 0;
    }

    /// Makes at least one more ACK quick.
    pub(super) fn ensure_quick(&mut self) {
        self.quick |= 1;
    }

    /// Starts measuring the time since the last data when the connection opens.
    pub(super) fn establish(&mut self, now: Instant) {
        self.lrcvtime = ticks(now) as u32;
    }

    /// Makes the last arrival a very old one.
    pub(in crate::tcp::receiver) fn forget_last_arrival(&mut self, now: Instant) {
        self.lrcvtime = (ticks(now) as u32).wrapping_sub(1 << 31);
    }

    /// tcp_incr_quickack()
    fn raise_quick(&mut self, quick: u32) {
        self.quick = self.quick.max(quick.min(u8::MAX.into()) as u8);
    }

    /// tcp_enter_quickack_mode()
    pub(in crate::tcp::receiver) fn enter_quick_ack_mode(&mut self, quick: u32) {
        self.raise_quick(quick);
        self.pingpong = false;
        self.ato = ATO_MIN;
    }

    pub(super) fn note_burst_end(&mut self, end: BurstEnd) {
        self.pushed = match (end, self.pushed) {
            (BurstEnd::None, known) => known,
            (BurstEnd::Small, Pushed::None) => Pushed::One,
            (BurstEnd::Small, _) => Pushed::Several,
            (BurstEnd::Full, Pushed::None) => Pushed::One,
            (BurstEnd::Full, known) => known,
        };
    }

    /// Returns true if a read that empties the buffer is acknowledged, because the end of a burst of data has
    /// arrived and the peer may wait for the ACK.
    pub(super) fn read_triggers_ack(&self) -> bool {
        match self.pushed {
            Pushed::None => false,
            Pushed::One => !self.pingpong,
            Pushed::Several => true,
        }
    }

    /// Adapts the ACK timeout to the time between segments. ACKs become quick after a gap of more than an
    /// RTO, because the sender then restarts with a small window (tcp_event_data_recv()).
    pub(super) fn adapt(&mut self, now: Instant, rto: u64, quick: u32) {
        let (now, rto) = (ticks(now) as u32, ticks_of(rto));
        let gap = now.wrapping_sub(self.lrcvtime);
        let short = u16::try_from(gap).unwrap_or(u16::MAX);
        match self.ato {
            0 => {
                self.raise_quick(quick);
                self.ato = ATO_MIN;
            }
            ato if short <= ATO_MIN / 2 => self.ato = ato / 2 + ATO_MIN / 2,
            ato if short < ato => self.ato = (ato / 2 + short).min(rto),
            _ if gap > rto.into() => self.raise_quick(quick),
            _ => {}
        }
        self.lrcvtime = now;
    }

    /// Enters pingpong mode if the data that is sent probably answers received data (tcp_event_data_sent()).
    pub(in crate::tcp::receiver) fn on_text_sent(&mut self, now: Instant) {
        if (ticks(now) as u32).wrapping_sub(self.lrcvtime) < self.ato.into() {
            self.pingpong = true;
        }
    }

    /// Delays the ACK of the peer's FIN (tcp_fin()), because the application may send data or close too.
    pub(in crate::tcp::receiver) fn on_fin(&mut self) {
        self.schedule();
        self.pingpong = true;
    }

    /// tcp_send_delayed_ack()
    pub(super) fn delay(&self, state: &AckState) -> AckDelay {
        let now = ticks(state.now);
        let mut ato = u64::from(self.ato);
        if self.ato > ATO_MIN {
            let expects_more = !self.pingpong && self.pushed == Pushed::None;
            let limit = if expects_more { HALF_A_SECOND } else { DELACK_MAX + 1 };
            let round_trip =
                state.srtt.map_or(limit, |srtt| srtt.div_ceil(JIFFY.as_nanos()).max(ATO_MIN.into()));
            ato = ato.min(limit).min(round_trip);
        }
        let ato = ato.min(DELACK_MAX);
        let mut timeout = now + ato;
        if let Some(timer) = state.timer.map(|at| ticks(at).saturating_sub(1)) {
            if timer <= now + ato / 4 {
                return AckDelay::None;
            }
            timeout = timeout.min(timer);
        }
        AckDelay::Until(jiffies::timer(timeout))
    }

    /// Handles the expiry of the delayed-ACK timer: if no data carried the ACK, the next one waits longer
    /// (tcp_delack_timer_handler()).
    pub(in crate::tcp::receiver) fn on_timer(&mut self, rto: u64) {
        if self.pingpong {
            self.pingpong = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = (2 * self.ato).min(ticks_of(rto));
        }
    }

    /// Records that an ACK was sent, with or without data (tcp_event_ack_sent()).
    pub(in crate::tcp::receiver) fn on_ack_sent(&mut self) {
        if self.quick > 0 && self.is_scheduled() {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        (self.scheduled, self.pushed) = (Scheduled::No, Pushed::None);
    }
}

impl Compressed {
    /// Sends the first ACKs for a hole at once and merges later ones (tcp_comp_sack_*). `rtt` is in eighths
    /// of a microsecond.
    pub(super) fn compress(&mut self, state: &AckState, setting: AckCompression, rtt: u64) -> AckDelay {
        if self.acks >= setting.most {
            return AckDelay::None;
        }
        if self.rcv_nxt != state.rcv_nxt {
            (self.rcv_nxt, self.sent) = (state.rcv_nxt, 0);
        }
        if self.sent < NEEDED_DUPACKS {
            self.sent += 1;
            return AckDelay::None;
        }
        self.acks += 1;
        // A twentieth of the round-trip time.
        let delay = setting.delay.min(Duration::from_nanos(rtt * 125 / 20));
        let until = *self.until.get_or_insert(state.now + delay + setting.slack);
        AckDelay::Until(until)
    }

    /// Returns true if a compressed ACK is delayed.
    pub(in crate::tcp::receiver) fn is_compressing(&self) -> bool {
        self.acks > 0
    }

    /// Ends compression after an ACK was sent.
    pub(super) fn end(&mut self) {
        (self.acks, self.until) = (0, None);
    }
}

/// Whether a segment ends a burst of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receiver) enum BurstEnd {
    None,
    /// A full-sized segment with PSH.
    Full,
    /// A segment that is not full-sized.
    Small,
}
