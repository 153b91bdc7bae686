//! Log events of a connection ([`crate::events`]).
//!
//! State changes, refusals and offers are recorded where they happen. Timers and windows change in many
//! places, and only their values at the end of a step matter, so these are compared with the previous step.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::connection::Connection;
use super::socket::State;
use crate::events::{Agreement, Refusal, Refused, Timer, What};

type Deadlines = [Option<Instant>; Timer::ALL.len()];

/// Events recorded and not yet taken, and the values that were last reported.
#[derive(Debug)]
pub(super) struct Told {
    news: Vec<What>,
    deadlines: Deadlines,
    peer_window_is_closed: bool,
    own_window_is_closed: bool,
    pmtu: u32,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    ToCome,
    Told,
}

impl Told {
    pub(super) fn new(pmtu: u32) -> Self {
        Self {
            news: Vec::new(),
            deadlines: Deadlines::default(),
            peer_window_is_closed: false,
            own_window_is_closed: false,
            pmtu,
            end: End::ToCome,
        }
    }
}

impl Connection {
    #[inline]
    pub(super) fn tell(&mut self, what: impl FnOnce() -> What) {
        if let Some(told) = &mut self.told {
            told.news.push(what());
        }
    }

    /// Changes the state. No other function does.
    pub(super) fn enter(&mut self, state: State) {
        let from = std::mem::replace(&mut self.state, state);
        if from != state {
            self.tell(|| What::State { from, to: state });
        }
    }

    /// Records that `segment` was refused.
    #[cold]
    pub(super) fn refuse(&mut self, segment: &Segment<'_>, why: Refusal) {
        if self.told.is_some() {
            let own = (self.snd.iss, self.flight.una());
            let peer = (self.rcv.irs, self.rcv_nxt());
            // Before the peer's SYN, its stream has no offsets.
            let seq_known = self.state != State::SynSent;
            let refused = Refused::of(segment, own, peer);
            let segment = Refused { seq: refused.seq.filter(|_| seq_known), ..refused };
            self.tell(|| What::Refused { why, segment });
        }
    }

    pub(super) fn agreement(&self) -> Agreement {
        Agreement {
            smss: self.snd.smss,
            own_scale: self.rcv.scale,
            peer_scale: self.snd.scale,
            sack: self.sack_enabled,
            timestamps: self.ts_enabled,
            ecn: self.ecn_enabled,
        }
    }

    /// Records the timers that are due. Must be called before [`Connection::handle_deadline`].
    pub(crate) fn tell_due_timers(&mut self, now: Instant) {
        if self.told.is_none() {
            return;
        }
        for (timer, until) in std::iter::zip(Timer::ALL, self.deadlines()) {
            if until.is_some_and(|until| until <= now) {
                self.tell(|| What::TimerFired { timer });
                if let Some(told) = &mut self.told {
                    // A timer that is set again is reported, even with the same deadline.
                    told.deadlines[timer as usize] = None;
                }
            }
        }
    }

    /// Passes all events of a step to `each`. Decisions follow the events that caused them. The end of the
    /// connection comes last.
    pub(crate) fn take_told(&mut self, mut each: impl FnMut(What)) {
        let Some(told) = &mut self.told else { return };
        told.news.drain(..).for_each(&mut each);
        self.recovery.take_events().into_iter().map(What::Decided).for_each(&mut each);
        match self.state {
            State::Closed => self.tell_end(),
            _ => {
                self.tell_windows();
                self.tell_timers();
            }
        }
        if let Some(told) = &mut self.told {
            told.news.drain(..).for_each(each);
        }
    }

    fn tell_end(&mut self) {
        let ended = self.ended;
        if let Some(told) = self.told.as_mut().filter(|told| told.end == End::ToCome) {
            told.end = End::Told;
            told.news.push(What::Ended(ended));
        }
    }

    fn tell_windows(&mut self) {
        let (peer, own) = (self.snd.wnd, self.rcv.adv.saturating_sub(self.rcv_nxt()));
        let (pmtu, open) = (self.longest_packet(), self.state.may_receive_data());
        let sends = self.state.may_send_data();
        let Some(told) = &mut self.told else { return };
        if sends && told.peer_window_is_closed != (peer == 0) {
            told.peer_window_is_closed = peer == 0;
            told.news.push(What::PeerWindow { octets: peer });
        }
        if open && told.own_window_is_closed != (own == 0) {
            told.own_window_is_closed = own == 0;
            told.news.push(What::OwnWindow { octets: own });
        }
        if told.pmtu != pmtu {
            told.news.push(What::Pmtu { from: told.pmtu, to: pmtu });
            told.pmtu = pmtu;
        }
    }

    fn tell_timers(&mut self) {
        let now = self.deadlines();
        let Some(told) = &mut self.told else { return };
        for (timer, until) in std::iter::zip(Timer::ALL, now) {
            let before = std::mem::replace(&mut told.deadlines[timer as usize], until);
            match until {
                _ if before == until => {}
                Some(until) => told.news.push(What::TimerSet { timer, until }),
                None => told.news.push(What::TimerStopped { timer }),
            }
        }
    }

    /// Returns the deadlines in the order of [`Timer::ALL`].
    fn deadlines(&self) -> Deadlines {
        let timers = &self.timers;
        [
            timers.rto,
            self.detection_deadline(),
            timers.persist,
            timers.delayed_ack,
            timers.keepalive,
            timers.linger,
            timers.cork,
            self.user_deadline(),
        ]
    }
}
