//! Log events of a connection ([`crate::events`]).
//!
//! State changes, refusals and offers are recorded where they happen. Timers and windows change in many
//! places, so their values are compared with the previous ones at the end of each step.

use airwire::time::Instant;

use super::socket::Ended;
use crate::events::{EventKind, Timer};

/// The deadlines in the order of [`Timer::ALL`].
pub(super) type Deadlines = [Option<Instant>; Timer::ALL.len()];

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
pub(super) struct Windows {
    /// SND.WND; `None` if nothing can be sent.
    pub(super) peer: Option<u64>,
    /// RCV.WND; `None` if nothing can arrive.
    pub(super) own: Option<u64>,
    pub(super) pmtu: u32,
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

    pub(super) fn push(&mut self, event: EventKind) {
        self.events.push(event);
    }

    /// Removes the recorded events and passes them to `each`.
    pub(super) fn drain(&mut self, each: impl FnMut(EventKind)) {
        self.events.drain(..).for_each(each);
    }

    pub(super) fn note_due_timers(&mut self, now: Instant, deadlines: Deadlines) {
        for (timer, until) in std::iter::zip(Timer::ALL, deadlines) {
            if until.is_some_and(|until| until <= now) {
                self.events.push(EventKind::TimerFired { timer });
                // If the timer is set again, that is reported even with the same deadline.
                self.deadlines[timer as usize] = None;
            }
        }
    }

    pub(super) fn note_end(&mut self, ended: Option<Ended>) {
        if !std::mem::replace(&mut self.end_is_logged, true) {
            self.events.push(EventKind::Ended(ended));
        }
    }

    pub(super) fn note_windows(&mut self, Windows { peer, own, pmtu }: &Windows) {
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

    pub(super) fn note_timers(&mut self, deadlines: Deadlines) {
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
