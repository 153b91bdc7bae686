//! The events that a connection logs.

use airwire::segment::Segment;
use airwire::time::Instant;

use super::Connection;
use crate::events::{EventKind, Refusal, Refused};
use crate::tcp::event_log::{Deadlines, Windows};
use crate::tcp::socket::State;

impl Connection {
    #[inline]
    pub(in crate::tcp) fn log(&mut self, event: impl FnOnce() -> EventKind) {
        if let Some(log) = &mut self.event_log {
            log.push(event());
        }
    }

    /// Changes the state.
    pub(in crate::tcp) fn enter(&mut self, state: State) {
        let from = self.cx.lifecycle.enter(state);
        self.log_state(from);
    }

    /// Records that the state has changed.
    pub(in crate::tcp) fn log_state(&mut self, from: State) {
        let to = self.state();
        if from != to {
            self.log(|| EventKind::State { from, to });
        }
    }

    /// Records that `segment` was refused.
    #[cold]
    pub(in crate::tcp) fn refuse(&mut self, segment: &Segment<'_>, why: Refusal) {
        if self.event_log.is_some() {
            let own = (self.sender.iss(), self.sender.una());
            let peer = (self.receiver.irs(), self.receiver.nxt());
            // Offsets in the peer's stream begin with its SYN.
            let has_irs = self.state() != State::SynSent;
            let refused = Refused::of(segment, own, peer);
            let segment = Refused { seq: refused.seq.filter(|_| has_irs), ..refused };
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

    /// Removes all events of a step and passes them to `each`. Decisions follow the events that caused them.
    /// The end of the connection is the last event.
    pub(crate) fn take_events(&mut self, mut each: impl FnMut(EventKind)) {
        let Some(mut log) = self.event_log.take() else { return };
        log.drain(&mut each);
        self.sender.recovery_mut().take_events().into_iter().map(EventKind::Decided).for_each(&mut each);
        if self.state() == State::Closed {
            log.note_end(self.ended());
        } else {
            log.note_windows(&self.windows());
            log.note_timers(self.deadlines());
        }
        log.drain(each);
        self.event_log = Some(log);
    }

    fn windows(&self) -> Windows {
        let state = self.state();
        Windows {
            peer: state.may_send_data().then(|| self.sender.wnd()),
            own: state.may_receive_data().then(|| self.receiver.wnd()),
            pmtu: self.sender.longest_packet(&self.cx.negotiated),
        }
    }

    fn deadlines(&self) -> Deadlines {
        let (sender, cx) = (&self.sender, &self.cx);
        [
            sender.rto_deadline(),
            sender.detection_deadline(cx),
            sender.persist_deadline(),
            self.receiver.deadline(),
            self.cx.lifecycle.keepalive_deadline(),
            self.cx.lifecycle.linger_deadline(),
            sender.cork_deadline(),
            sender.user_deadline(cx),
        ]
    }
}
