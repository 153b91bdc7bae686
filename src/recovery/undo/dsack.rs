//! D-SACK (RFC 3708): an episode was spurious if the receiver has reported every retransmission as a
//! duplicate (RFC 2883).
//!
//! All retransmissions between the beginning and the end of the episode count, both after a timeout and after
//! a fast retransmission. A further reduction while that window is still being acknowledged belongs to the
//! same episode. The network duplicates packets if a D-SACK reports data in the window that was not
//! retransmitted, or if there are more D-SACKs than retransmissions. Then the episode allows no conclusion
//! (RFC 3708 §3). D-SACKs of data below the episode concern earlier retransmissions and are ignored. If a
//! D-SACK is lost, the episode is not undone.
//!
//! RFC 3708 leaves the response open; this one follows RFC 4015 (`response.rs`). The last D-SACK arrives one
//! round trip after the retransmission was sent, when recovery may already be over. Therefore:
//! - Choice: an undo never reduces cwnd or ssthresh. Slow start up to the previous flight restores the window
//!   without a burst, as in Blanton and Allman 2002.
//! - Choice: segments that still wait for retransmission are not retransmitted (RFC 4015 step (8)). The
//!   segments retransmitted so far were not missing, and a real loss will be detected again.
//! - Choice: nothing is undone while a later episode of another kind is being repaired. The ACK that ends the
//!   episode may itself report the last duplicate. Then the episode is undone instead of ended.
//!
//! An unmodified Linux receiver reports duplicates unless tcp_dsack = 0. With a receiver that never does,
//! this sender behaves as without `dsack`. The same holds if the peer does not permit SACK, which the
//! decision trace reports once.

use std::collections::VecDeque;

use super::response::{Adaptation, Before};
use super::{Restore, Undo};
use crate::recovery::window::{LossKind, Reduction};
use crate::recovery::{Ack, Congestion, RecoveryState, Transmission, TransmissionKind, View};

/// Maximum number of retransmissions to remember per episode, because a receiver may never report any.
const COPIES: usize = 1 << 16;

#[derive(Debug, Default)]
pub(crate) struct Dsack {
    episode: Option<WatchedEpisode>,
    adaptation: Option<Adaptation>,
}

#[derive(Debug)]
struct WatchedEpisode {
    before: Before,
    /// SND.UNA when the episode began.
    una: u64,
    /// SND.MAX at the last reduction.
    max: u64,
    /// Retransmissions that have not been reported as duplicates.
    copies: VecDeque<(u64, u64)>,
    evidence: Evidence,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    /// Nothing has been retransmitted yet.
    None,
    /// All reports so far concern retransmissions.
    Copies,
    /// No conclusion: the network duplicates packets, or there are too many retransmissions to remember.
    Void,
}

impl Undo for Dsack {
    fn on_reduction(&mut self, view: &View<'_>, before: &Congestion, kind: LossKind) {
        let (una, max) = (view.flight.una(), view.flight.max());
        match &mut self.episode {
            Some(episode) if una < episode.max => {
                episode.max = max;
                episode.before.on_further_reduction(kind);
            }
            _ => {
                let before = Before::new(view, before, kind);
                self.episode = Some(WatchedEpisode {
                    before,
                    una,
                    max,
                    copies: VecDeque::new(),
                    evidence: Evidence::None,
                });
            }
        }
    }

    fn on_sent(&mut self, transmission: &Transmission) {
        if transmission.kind == TransmissionKind::New {
            return;
        }
        if let Some(episode) = self.episode.as_mut().filter(|episode| transmission.start < episode.max) {
            episode.on_copy(transmission);
        }
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<Restore> {
        let timer = self.adaptation.and_then(|adaptation| adaptation.with_sample(view, ack));
        if timer.is_some() {
            self.adaptation = None;
        }
        let (window, resume) = match self.mistaken(view, ack) {
            Some(window) => (Some(window), view.cc.state() != RecoveryState::Open),
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
    /// Returns the restored cwnd and ssthresh if this ACK reports the last retransmission.
    fn mistaken(&mut self, view: &View<'_>, ack: &Ack) -> Option<Reduction> {
        let episode = self.episode.as_mut()?;
        episode.on_report(ack.dsack?);
        let episode = self.episode.take_if(|episode| episode.is_mistake())?;
        let over = view.flight.una() >= episode.max;
        let another_is_repaired = match view.cc.state() {
            RecoveryState::Open => false,
            RecoveryState::Cwr => true,
            // `recover` is the end of this episode if the ACK ends it.
            RecoveryState::Recovery | RecoveryState::Loss => {
                view.cc.recover.is_some_and(|recover| recover > episode.max)
            }
        };
        if over && another_is_repaired {
            return None;
        }
        self.adaptation = episode.before.adaptation(view).or(self.adaptation);
        let Reduction { cwnd, ssthresh } = episode.before.reversed(view, ack)?;
        let window = Reduction { cwnd: cwnd.max(view.cc.cwnd), ssthresh: ssthresh.max(view.cc.ssthresh) };
        let restored = window == Reduction { cwnd: view.cc.cwnd, ssthresh: view.cc.ssthresh };
        let nothing_left = over && restored && view.cc.state() == RecoveryState::Open;
        (!nothing_left).then_some(window)
    }
}

impl WatchedEpisode {
    fn on_copy(&mut self, transmission: &Transmission) {
        match self.evidence {
            Evidence::Void => return,
            _ if self.copies.len() == COPIES => {
                self.evidence = Evidence::Void;
                self.copies = VecDeque::new();
                return;
            }
            _ => self.evidence = Evidence::Copies,
        }
        self.copies.push_back((transmission.start, transmission.end));
    }

    /// Handles a report that the receiver got these bytes twice. One report may cover several
    /// retransmissions.
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
                    // The receiver needed a part of this retransmission, so the report of the rest proves
                    // nothing.
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
