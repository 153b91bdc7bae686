//! When ACKs are sent: quick ACKs, the delayed-ACK timer and ACK compression.

use airwire::time::{Duration, Instant};

use super::Moment;
use crate::profile::AckCompression;
use crate::profile::jiffies::{JIFFY, ticks, timer};

/// In ticks: TCP_ATO_MIN and TCP_DELACK_MIN (40 ms), half a second, and TCP_DELACK_MAX, which is below the
/// minimum RTO.
const ATO_MIN: u16 = 10;
const HALF_A_SECOND: u64 = 125;
const DELACK_MAX: u64 = 49;
/// TCP_FASTRETRANS_THRESH: number of duplicate ACKs for a hole that are sent at once.
const NEEDED_DUPACKS: u8 = 3;

/// How long an ACK waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receiver) enum Waiting {
    Not,
    /// The timer for delayed or compressed ACKs runs until then.
    Until(Instant),
}

/// Whether an ACK is owed to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Owed {
    #[default]
    Nothing,
    /// An ACK that may be delayed (ICSK_ACK_SCHED).
    Some,
    /// An ACK that must be sent now (ICSK_ACK_NOW).
    AtOnce,
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
    owed: Owed,
    pushed: Pushed,
    /// Number of quick ACKs left.
    quick: u8,
    /// Data was answered with data, so a delayed ACK may be carried by the answer (pingpong mode).
    interactive: bool,
    /// ACK timeout in ticks. 0: no data has arrived.
    ato: u16,
    /// The tick in which data last arrived, lower 32 bits.
    lrcvtime: u32,
}

/// Compression of ACKs that report holes.
#[derive(Debug, Default)]
pub(in crate::tcp::receiver) struct Compressed {
    /// Number of ACKs merged into the one that waits.
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
    pub(in crate::tcp::receiver) fn owe(&mut self) {
        if self.owed == Owed::Nothing {
            self.owed = Owed::Some;
        }
    }

    pub(in crate::tcp::receiver) fn owe_at_once(&mut self) {
        self.owed = Owed::AtOnce;
    }

    pub(in crate::tcp::receiver) fn is_owed(&self) -> bool {
        self.owed != Owed::Nothing
    }

    pub(super) fn is_mandated(&self) -> bool {
        self.owed == Owed::AtOnce
    }

    pub(super) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    pub(super) fn end_quick(&mut self) {
        self.quick = 0;
    }

    pub(super) fn one_more_quick(&mut self) {
        self.quick |= 1;
    }

    /// Starts measuring the time since the last data when the connection opens.
    pub(super) fn establish(&mut self, now: Instant) {
        self.lrcvtime = ticks(now) as u32;
    }

    /// tcp_incr_quickack()
    fn quicken(&mut self, quick: u32) {
        self.quick = self.quick.max(quick.min(u8::MAX.into()) as u8);
    }

    /// tcp_enter_quickack_mode()
    pub(in crate::tcp::receiver) fn enter_quick_mode(&mut self, quick: u32) {
        self.quicken(quick);
        self.interactive = false;
        self.ato = ATO_MIN;
    }

    pub(super) fn note_push(&mut self, small_or_pushed: PushNews) {
        self.pushed = match (small_or_pushed, self.pushed) {
            (PushNews::None, known) => known,
            (PushNews::Small, Pushed::None) => Pushed::One,
            (PushNews::Small, _) => Pushed::Several,
            (PushNews::Full, Pushed::None) => Pushed::One,
            (PushNews::Full, known) => known,
        };
    }

    /// Returns true if a read that empties the buffer should send an ACK, because the peer's data ended with
    /// a push and the peer may be waiting.
    pub(super) fn push_wants_ack(&self) -> bool {
        match self.pushed {
            Pushed::None => false,
            Pushed::One => !self.interactive,
            Pushed::Several => true,
        }
    }

    /// Adapts the ACK timeout to the time between segments. After a gap of more than an RTO the sender
    /// restarts slowly, so ACKs become quick (tcp_event_data_recv()).
    pub(super) fn adapt(&mut self, now: Instant, rto: u64, quick: u32) {
        let (now, rto) = (ticks(now) as u32, ticks_of(rto));
        let gap = now.wrapping_sub(self.lrcvtime);
        let short = u16::try_from(gap).unwrap_or(u16::MAX);
        match self.ato {
            0 => {
                self.quicken(quick);
                self.ato = ATO_MIN;
            }
            ato if short <= ATO_MIN / 2 => self.ato = ato / 2 + ATO_MIN / 2,
            ato if short < ato => self.ato = (ato / 2 + short).min(rto),
            _ if gap > rto.into() => self.quicken(quick),
            _ => {}
        }
        self.lrcvtime = now;
    }

    /// Enters pingpong mode if data that is sent probably answers received data (tcp_event_data_sent()).
    pub(in crate::tcp::receiver) fn on_text_sent(&mut self, now: Instant) {
        if (ticks(now) as u32).wrapping_sub(self.lrcvtime) < self.ato.into() {
            self.interactive = true;
        }
    }

    /// Delays the ACK of the peer's FIN (tcp_fin()), because the application may send data or close too.
    pub(in crate::tcp::receiver) fn on_fin(&mut self) {
        self.owe();
        self.interactive = true;
    }

    /// tcp_send_delayed_ack()
    pub(super) fn delay(&self, moment: &Moment) -> Waiting {
        let now = ticks(moment.now);
        let mut ato = u64::from(self.ato);
        if self.ato > ATO_MIN {
            let waits_for_more = !self.interactive && self.pushed == Pushed::None;
            let most = if waits_for_more { HALF_A_SECOND } else { DELACK_MAX + 1 };
            let round_trip =
                moment.srtt.map_or(most, |srtt| srtt.div_ceil(JIFFY.as_nanos()).max(ATO_MIN.into()));
            ato = ato.min(most).min(round_trip);
        }
        let ato = ato.min(DELACK_MAX);
        let mut timeout = now + ato;
        if let Some(running) = moment.running.map(|at| ticks(at).saturating_sub(1)) {
            if running <= now + ato / 4 {
                return Waiting::Not;
            }
            timeout = timeout.min(running);
        }
        Waiting::Until(timer(timeout))
    }

    /// Handles the expiry of the delayed-ACK timer: if no data carried the ACK, the next one waits longer
    /// (tcp_delack_timer_handler()).
    pub(in crate::tcp::receiver) fn on_timer(&mut self, rto: u64) {
        if self.interactive {
            self.interactive = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = (2 * self.ato).min(ticks_of(rto));
        }
    }

    /// Records that an ACK was sent, with or without data (tcp_event_ack_sent()).
    pub(in crate::tcp::receiver) fn on_ack_sent(&mut self) {
        if self.quick > 0 && self.is_owed() {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        (self.owed, self.pushed) = (Owed::Nothing, Pushed::None);
    }
}

impl Compressed {
    /// Sends the first ACKs for a hole at once and merges later ones (tcp_comp_sack_*). `rtt` is in eighths
    /// of a microsecond.
    pub(super) fn compress(&mut self, moment: &Moment, setting: AckCompression, rtt: u64) -> Waiting {
        if self.acks >= setting.most {
            return Waiting::Not;
        }
        if self.rcv_nxt != moment.rcv_nxt {
            (self.rcv_nxt, self.sent) = (moment.rcv_nxt, 0);
        }
        if self.sent < NEEDED_DUPACKS {
            self.sent += 1;
            return Waiting::Not;
        }
        self.acks += 1;
        // A twentieth of the round-trip time.
        let delay = setting.delay.min(Duration::from_nanos(rtt * 125 / 20));
        let until = *self.until.get_or_insert(moment.now + delay + setting.slack);
        Waiting::Until(until)
    }

    /// Returns true if a compressed ACK waits.
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
pub(in crate::tcp::receiver) enum PushNews {
    None,
    /// A full-sized segment with PSH.
    Full,
    /// A segment that is not full-sized.
    Small,
}
