//! When an ACK leaves: quick ACKs, the delayed-ACK timer, and ACKs of holes that are put together (ACK compression).

use airwire::time::{Duration, Instant};

use super::Moment;
use crate::profile::AckCompression;
use crate::profile::jiffies::{JIFFY, ticks, timer};

/// TCP_ATO_MIN and TCP_DELACK_MIN, 40 ms; half a second; TCP_DELACK_MAX, less than the least RTO. In ticks.
const ATO_MIN: u16 = 10;
const HALF_A_SECOND: u64 = 125;
const DELACK_MAX: u64 = 49;
/// TCP_FASTRETRANS_THRESH: so many duplicate ACKs of a hole leave at once.
const NEEDED_DUPACKS: u8 = 3;

/// Until when an ACK waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receive) enum Waiting {
    Not,
    /// The delayed-ACK timer, or that of compression, runs until then.
    Until(Instant),
}

/// What is owed to the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Owed {
    #[default]
    Nothing,
    /// An ACK, some time (ICSK_ACK_SCHED).
    Some,
    /// An ACK now (ICSK_ACK_NOW).
    AtOnce,
}

/// Segments without an ACK that were the end of something (ICSK_ACK_PUSHED, ICSK_ACK_PUSHED2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Pushed {
    #[default]
    None,
    One,
    Several,
}

#[derive(Debug, Default)]
pub(in crate::tcp::receive) struct Acks {
    owed: Owed,
    pushed: Pushed,
    /// How many more ACKs are quick.
    quick: u8,
    /// Data was answered with data: a delayed ACK may travel with the answer (pingpong mode).
    interactive: bool,
    /// How long an ACK may wait, in ticks. 0: no text has come.
    ato: u16,
    /// The tick in which text last came, the lower 32 bits.
    lrcvtime: u32,
}

/// ACKs of holes.
#[derive(Debug, Default)]
pub(in crate::tcp::receive) struct Compressed {
    /// So many are one that waits.
    acks: u32,
    until: Option<Instant>,
    /// How many left at once while RCV.NXT was this.
    sent: u8,
    rcv_nxt: u64,
}

/// A length of time, in nanoseconds.
fn ticks_of(nanos: u64) -> u16 {
    u16::try_from(nanos / JIFFY.as_nanos()).unwrap_or(u16::MAX)
}

impl Acks {
    pub(in crate::tcp::receive) fn owe(&mut self) {
        if self.owed == Owed::Nothing {
            self.owed = Owed::Some;
        }
    }

    pub(in crate::tcp::receive) fn owe_at_once(&mut self) {
        self.owed = Owed::AtOnce;
    }

    pub(in crate::tcp::receive) fn is_owed(&self) -> bool {
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

    /// The connection is open: from now on the peer is silent until text comes.
    pub(super) fn establish(&mut self, now: Instant) {
        self.lrcvtime = ticks(now) as u32;
    }

    /// tcp_incr_quickack()
    fn quicken(&mut self, quick: u32) {
        self.quick = self.quick.max(quick.min(u8::MAX.into()) as u8);
    }

    /// tcp_enter_quickack_mode()
    pub(in crate::tcp::receive) fn enter_quick_mode(&mut self, quick: u32) {
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

    /// An application that has read all lets the peer go on, if the peer has come to an end.
    pub(super) fn push_wants_ack(&self) -> bool {
        match self.pushed {
            Pushed::None => false,
            Pushed::One => !self.interactive,
            Pushed::Several => true,
        }
    }

    /// The timeout follows the time between segments. After a gap of more than an RTO the sender starts slowly
    /// (tcp_event_data_recv()).
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

    /// Text leaves: is it the answer to what came (tcp_event_data_sent())?
    pub(in crate::tcp::receive) fn on_text_sent(&mut self, now: Instant) {
        if (ticks(now) as u32).wrapping_sub(self.lrcvtime) < self.ato.into() {
            self.interactive = true;
        }
    }

    /// The peer has closed (tcp_fin()): what follows is the application's, if it does.
    pub(in crate::tcp::receive) fn on_fin(&mut self) {
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

    /// The timer has fired: if no answer has taken the ACK along, it waits longer next time (tcp_delack_timer_handler()).
    pub(in crate::tcp::receive) fn on_timer(&mut self, rto: u64) {
        if self.interactive {
            self.interactive = false;
            self.ato = ATO_MIN;
        } else {
            self.ato = (2 * self.ato).min(ticks_of(rto));
        }
    }

    /// An ACK has left, by itself or with text (tcp_event_ack_sent()).
    pub(in crate::tcp::receive) fn on_ack_sent(&mut self) {
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
    /// The first ACKs of a hole leave at once, the later ones together (tcp_comp_sack_*). `rtt` is in eighths of a
    /// microsecond.
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
        // A twentieth of the round trip.
        let delay = setting.delay.min(Duration::from_nanos(rtt * 125 / 20));
        let until = *self.until.get_or_insert(moment.now + delay + setting.slack);
        Waiting::Until(until)
    }

    /// An ACK waits because others like it do.
    pub(in crate::tcp::receive) fn is_compressing(&self) -> bool {
        self.acks > 0
    }

    /// An ACK has left.
    pub(super) fn end(&mut self) {
        (self.acks, self.until) = (0, None);
    }
}

/// Whether a segment is the end of something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::receive) enum PushNews {
    None,
    /// A full segment with PSH.
    Full,
    /// One that is not full.
    Small,
}
