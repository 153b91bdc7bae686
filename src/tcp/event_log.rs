//! Log events of a connection ([`crate::events`]).
//!
//! State changes, refusals and offers are recorded where they happen. Timers and windows change in many
//! places, and only their values at the end of a step matter, so these are compared with the previous step.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::connection::Connection;
use super::socket::{Ended, State};
use crate::events::{EventKind, Refusal, Refused, Timer};

/// The deadlines in the order of [`Timer::ALL`].
type Deadlines = [Option<Instant>; Timer::ALL.len()];

/// Events recorded and not yet taken, and the values that were last reported.
#[derive(Debug)]
pub(super) struct EventLog {
    events: Vec<EventKind>,
    deadlines: Deadlines,
    peer_window_is_closed: bool,
    own_window_is_closed: bool,
    pmtu: u32,
    end_is_logged: bool,
}

/// Values at the end of a step.
struct Windows {
    /// SND.WND; `None` if nothing can be sent.
    peer: Option<u64>,
    /// RCV.WND; `None` if nothing can arrive.
    own: Option<u64>,
    pmtu: u32,
}

impl EventLog {
    pub(super) fn new(pmtu: u32) -> Self {
        Self {
            events: Vec::new(),
            deadlines: Deadlines::default(),
            peer_window_is_closed: false,
            own_window_is_closed: false,
            pmtu,
            end_is_logged: false,
        }
    }

    fn note_due_timers(&mut self, now: Instant, deadlines: Deadlines) {
        for (timer, until) in std::iter::zip(Timer::ALL, deadlines) {
            if until.is_some_and(|until| until <= now) {
                self.events.push(EventKind::TimerFired { timer });
                // A timer that is set again is reported, even with the same deadline.
                self.deadlines[timer as usize] = None;
            }
        }
    }

    fn note_end(&mut self, ended: Option<Ended>) {
        if !std::mem::replace(&mut self.end_is_logged, true) {
            self.events.push(EventKind::Ended(ended));
        }
    }

    fn note_windows(&mut self, Windows { peer, own, pmtu }: &Windows) {
        if let Some(bytes) = peer.filter(|peer| self.peer_window_is_closed != (*peer == 0)) {
            self.peer_window_is_closed = bytes == 0;
            self.events.push(EventKind::PeerWindow { bytes });
        }
        if let Some(bytes) = own.filter(|own| self.own_window_is_closed != (*own == 0)) {
            self.own_window_is_closed = bytes == 0;
            self.events.push(EventKind::OwnWindow { bytes });
        }
        if self.pmtu != *pmtu {
            self.events.push(EventKind::Pmtu { from: self.pmtu, to: *pmtu });
            self.pmtu = *pmtu;
        }
    }

    fn note_timers(&mut self, deadlines: Deadlines) {
        for (timer, until) in std::iter::zip(Timer::ALL, deadlines) {
            let before = std::mem::replace(&mut self.deadlines[timer as usize], until);
            match until {
                _ if before == until => {}
                Some(until) => self.events.push(EventKind::TimerSet { timer, until }),
                None => self.events.push(EventKind::TimerStopped { timer }),
            }
        }
    }
}

impl Connection {
    #[inline]
    pub(super) fn log(&mut self, event: impl FnOnce() -> EventKind) {
        if let Some(log) = &mut self.event_log {
            log.events.push(event());
        }
    }

    /// Changes the state.
    pub(super) fn enter(&mut self, state: State) {
        let from = self.lifecycle.enter(state);
        self.log_state(from);
    }

    /// Records that the state has changed.
    pub(super) fn log_state(&mut self, from: State) {
        let to = self.state();
        if from != to {
            self.log(|| EventKind::State { from, to });
        }
    }

    /// Records that `segment` was refused.
    #[cold]
    pub(super) fn refuse(&mut self, segment: &Segment<'_>, why: Refusal) {
        if self.event_log.is_some() {
            let own = (self.sender.iss(), self.sender.una());
            let peer = (self.receiver.irs(), self.receiver.nxt());
            // Before the peer's SYN, its stream has no offsets.
            let seq_known = self.state() != State::SynSent;
            let refused = Refused::of(segment, own, peer);
            let segment = Refused { seq: refused.seq.filter(|_| seq_known), ..refused };
            self.log(|| EventKind::Refused { why, segment });
        }
    }

    /// Records the timers that are due. Must be called before [`Connection::handle_deadline`].
    pub(crate) fn log_due_timers(&mut self, now: Instant) {
        if self.event_log.is_some() {
            let deadlines = self.deadlines();
            self.event_log.iter_mut().for_each(|log| log.note_due_timers(now, deadlines));
        }
    }

    /// Passes all events of a step to `each`. Decisions follow the events that caused them. The end of the
    /// connection comes last.
    pub(crate) fn take_events(&mut self, mut each: impl FnMut(EventKind)) {
        let Some(mut log) = self.event_log.take() else { return };
        log.events.drain(..).for_each(&mut each);
        self.sender.recovery_mut().take_events().into_iter().map(EventKind::Decided).for_each(&mut each);
        if self.state() == State::Closed {
            log.note_end(self.ended());
        } else {
            log.note_windows(&self.windows());
            log.note_timers(self.deadlines());
        }
        log.events.drain(..).for_each(each);
        self.event_log = Some(log);
    }

    fn windows(&self) -> Windows {
        let state = self.state();
        Windows {
            peer: state.may_send_data().then(|| self.sender.wnd()),
            own: state.may_receive_data().then(|| self.receiver.wnd()),
            pmtu: self.sender.longest_packet(&self.negotiated),
        }
    }

    fn deadlines(&self) -> Deadlines {
        let (sender, cx) = (&self.sender, self.context());
        [
            sender.rto_deadline(),
            sender.detection_deadline(cx),
            sender.persist_deadline(),
            self.receiver.deadline(),
            self.lifecycle.keepalive_deadline(),
            self.lifecycle.linger_deadline(),
            sender.cork_deadline(),
            sender.user_deadline(cx),
        ]
    }
}
