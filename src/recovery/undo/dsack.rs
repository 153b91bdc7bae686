//! D-SACK (RFC 3708): a loss event was a mistake if the receiver has reported every copy sent again in it as a
//! duplicate (RFC 2883).
//!
//! All copies that left between the beginning of the event and its end count, after a timeout as after a fast
//! retransmit; a further reduction while that window is still being acknowledged belongs to the same event. A
//! D-SACK of something in the window that was not sent again, or more of them than copies, means that the network
//! duplicates: then nothing can be concluded about this event (RFC 3708 §3). D-SACKs of data below the event
//! report copies of earlier ones, and say nothing about it. If a D-SACK is lost, the event is not undone.
//!
//! The response is that of RFC 4015 (`response.rs`); RFC 3708 leaves it open. The last D-SACK comes a round trip after
//! the copy left, when recovery may be over. Hence:
//! - Choice: neither cwnd nor ssthresh becomes less than it is when the event is undone. What the event has cost
//!   comes back by slow start up to what was in flight before it, without a burst (as Blanton and Allman 2002
//!   restore it).
//! - Choice: what still waits to be sent again is not sent (RFC 4015 step (8)): nothing that was sent again was
//!   missing, and what is really lost will be found again.
//! - Choice: while a later event of another kind is being repaired, nothing is undone any more. The ACK that ends the
//!   event may itself report the last copy: it undoes what it would have ended.
//!
//! An unmodified Linux receiver reports duplicates unless tcp_dsack = 0. With a receiver that never does, this sender
//! behaves as without `dsack`; so it does with one that permits no SACK, and the trace says so once.

use std::collections::VecDeque;

use super::response::{Adaptation, Before};
use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, Departure, Phase, Transmission, View};

/// The most copies to remember of one event: a receiver may never report any.
const COPIES: usize = 1 << 16;

/// D-SACK (RFC 3708): every copy was reported as a duplicate.
#[derive(Debug, Default)]
pub(crate) struct Dsack {
    event: Option<Event>,
    adaptation: Option<Adaptation>,
}

#[derive(Debug)]
struct Event {
    before: Before,
    /// SND.UNA when it began.
    una: u64,
    /// SND.MAX at the last reduction.
    max: u64,
    /// Copies that left and have not been reported.
    copies: VecDeque<(u64, u64)>,
    evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// Nothing has been sent again yet.
    None,
    /// All reports so far were about copies.
    Copies,
    /// The network duplicates, or there is too much to remember.
    Void,
}

impl Undo for Dsack {
    fn name(&self) -> &'static str {
        "dsack"
    }

    fn needs_sack(&self) -> bool {
        true
    }

    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        let (una, max) = (view.flight.una(), view.flight.max());
        match &mut self.event {
            Some(event) if una < event.max => {
                event.max = max;
                event.before.on_further_reduction(kind);
            }
            _ => {
                let before = Before::new(view, before, kind);
                self.event =
                    Some(Event { before, una, max, copies: VecDeque::new(), evidence: Evidence::None });
            }
        }
    }

    fn on_sent(&mut self, _view: &View<'_>, departure: &Departure) {
        if departure.kind == Transmission::New {
            return;
        }
        if let Some(event) = self.event.as_mut().filter(|event| departure.start < event.max) {
            event.on_copy(departure);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let timer = self.adaptation.and_then(|adaptation| adaptation.with_sample(view, ack));
        if timer.is_some() {
            self.adaptation = None;
        }
        let (window, resume) = match self.mistaken(view, ack) {
            Some(window) => (Some(window), view.cc.phase() != Phase::Open),
            None => (None, false),
        };
        let why = match window {
            Some(_) => "every retransmission was reported as a duplicate",
            None => "first sample after a spurious timeout",
        };
        (window.is_some() || timer.is_some()).then_some(Restore {
            window,
            resume,
            reordered: false,
            timer,
            why,
        })
    }
}

impl Dsack {
    /// What cwnd and ssthresh become if this ACK reports the last copy.
    fn mistaken(&mut self, view: &View<'_>, ack: &Ack) -> Option<Reduction> {
        let event = self.event.as_mut()?;
        event.on_report(ack.dsack?);
        let event = self.event.take_if(|event| event.is_mistake())?;
        let over = view.flight.una() >= event.max;
        let another_is_repaired = match view.cc.phase() {
            Phase::Open => false,
            Phase::Reduced => true,
            // `recover` is the event's own end if this ACK ends it.
            Phase::Recovery | Phase::Restarted => view.cc.recover.is_some_and(|recover| recover > event.max),
        };
        if over && another_is_repaired {
            return None;
        }
        self.adaptation = event.before.adaptation(view).or(self.adaptation);
        let Reduction { cwnd, ssthresh } = event.before.reversed(view, ack)?;
        let window = Reduction { cwnd: cwnd.max(view.cc.cwnd), ssthresh: ssthresh.max(view.cc.ssthresh) };
        let restored = window == Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh };
        let nothing_left = over && restored && view.cc.phase() == Phase::Open;
        (!nothing_left).then_some(window)
    }
}

impl Event {
    fn on_copy(&mut self, departure: &Departure) {
        match self.evidence {
            Evidence::Void => return,
            _ if self.copies.len() == COPIES => {
                self.evidence = Evidence::Void;
                self.copies = VecDeque::new();
                return;
            }
            _ => self.evidence = Evidence::Copies,
        }
        self.copies.push_back((departure.start, departure.end));
    }

    /// The receiver has got these octets twice. It may put several copies into one report.
    fn on_report(&mut self, (left, right): (u64, u64)) {
        let mut at = left.max(self.una);
        if left >= self.max {
            return;
        }
        while at < right {
            let reported = self.copies.iter().position(|(start, end)| *start == at && *end <= right);
            match reported.and_then(|index| self.copies.remove(index)) {
                Some((_, end)) => at = end,
                None => {
                    // The rest of a copy that was needed in part proves nothing.
                    let part = self.copies.iter().any(|(start, end)| (*start..*end).contains(&at));
                    if !part {
                        self.evidence = Evidence::Void;
                    }
                    return;
                }
            }
        }
    }

    fn is_mistake(&self) -> bool {
        self.evidence == Evidence::Copies && self.copies.is_empty()
    }
}

#[cfg(test)]
mod tests;
