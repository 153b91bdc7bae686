//! Windows that a model of the path decides. The model learns about transmissions and losses, and is asked
//! after all other steps for an ACK, in every state (Linux 6.18, tcp_cong_control()).

use super::*;
use crate::recovery::rate::Delivered;
use crate::recovery::window::Model;

// The functions of this file are separate from the code that every sender runs per ACK and transmission,
// because few senders have a model.

impl Recovery {
    /// Returns whether this sender's window uses rate samples.
    pub(crate) fn samples_rates(&self) -> bool {
        self.rates.is_some()
    }

    /// Discards the SACK information in the scoreboard, because the receiver may have reneged (RFC 2018 §8).
    pub(crate) fn forget_sacks(&mut self, path: &mut Path<'_>) {
        if let Some(rates) = &mut self.rates {
            rates.before_forgetting(path.flight);
        }
        path.flight.forget_sacks();
    }

    /// Returns the segments in flight. Unlike the amount that counts against the window, this excludes
    /// deliveries that duplicate ACKs announced.
    fn segments_in_flight(&self, path: &Path<'_>) -> f64 {
        let view = self.view(path);
        let announced = self.rates.as_ref().map_or(0.0, |rates| rates.announced());
        // A timeout also declares all announced segments lost.
        let announced = if self.cc.state() == RecoveryState::Loss { 0.0 } else { announced };
        (view.segments(view.flight.pipe()) - announced).max(0.0)
    }

    /// Processes a write by the application. If everything it wrote before was sent and there was room for
    /// more, transmissions from now on say nothing about the rate of the path (Linux 6.18,
    /// tcp_rate_check_app_limited()).
    #[inline(never)]
    pub(crate) fn on_write(&mut self, path: &Path<'_>) {
        let has_room = self.segments_in_flight(path) < self.cc.cwnd;
        let Some(rates) = &mut self.rates else { return };
        let all_resent = path.flight.lost_and_not_resent().segments == 0;
        if path.unsent < path.smss && has_room && all_resent {
            rates.mark_app_limited();
        }
    }
}

impl Event<'_, '_> {
    /// Passes the model, its rate samples and the current state to `question`, if there is a model.
    fn with_model<T>(
        &mut self,
        question: impl FnOnce(&mut dyn Model, &mut RateSampler, &View<'_>) -> T,
    ) -> Option<T> {
        let Recovery { answers, cc, handshake, profile, rates, .. } = &mut *self.sender;
        let view = self.path.view(cc, handshake, &profile.recovery);
        Some(question(answers.window.model()?, rates.as_deref_mut()?, &view))
    }

    pub(super) fn begin_model(&mut self) {
        self.with_model(|model, rates, view| {
            rates.begin(view.now, view.rtt.min());
            model.begin(view);
        });
    }

    #[inline(never)]
    pub(super) fn model_on_sent(&mut self, transmission: &Transmission) {
        let in_flight = self.segments_in_flight(self.path);
        let restarted = self.with_model(|model, rates, view| {
            let restarts = rates.totals().in_flight == 0.0 && rates.is_app_limited();
            rates.on_sent(view, transmission, in_flight);
            if restarts { model.on_restart_from_idle(view) } else { None }
        });
        if let Some(cwnd) = restarted.flatten() {
            self.set_cwnd(self.answers.window.author(), cwnd, "restart from idle");
        }
    }

    /// Reports newly lost segments to the model and returns their total size.
    fn model_on_losses(&mut self) -> f64 {
        let size = self.with_model(|model, rates, view| {
            let lost = rates.newly_lost(view);
            lost.iter().for_each(|segment| model.on_lost(view, segment));
            lost.iter().map(|segment| segment.size).sum()
        });
        size.unwrap_or(0.0)
    }

    /// Informs the model that a timer fired: the retransmission timer (`timed_out`) or a detector's timer.
    /// The amount in flight may have changed.
    pub(super) fn model_on_timer(&mut self, timed_out: bool) {
        if !self.samples_rates() {
            return;
        }
        self.model_on_losses();
        let in_flight = self.segments_in_flight(self.path);
        self.with_model(|model, rates, view| {
            rates.set_in_flight(in_flight);
            if timed_out {
                model.on_timeout(view, rates.totals());
            }
        });
    }

    /// Returns what an ACK reports as delivered.
    fn delivery_of(&self, ack: &Ack) -> Delivered {
        let covered = self.view().segments(ack.delivered);
        if self.answers.has_scoreboard() {
            Delivered::Reported(covered)
        } else if ack.advances() {
            Delivered::Covered(covered)
        } else if ack.duplicate && self.cc.dupacks() > 0 && !self.is_about_copies(self.path) {
            Delivered::Announced
        } else {
            Delivered::Reported(0.0)
        }
    }

    #[inline(never)]
    pub(super) fn ask_model(&mut self, ack: &Ack) {
        let delivered = self.delivery_of(ack);
        let newly_acked = self.with_model(|_, rates, view| rates.on_ack(view, delivered));
        let newly_lost = self.model_on_losses();
        let in_flight = self.segments_in_flight(self.path);
        let modelled = self.with_model(|model, rates, view| {
            let newly_acked = newly_acked.unwrap_or_default();
            let sample = rates.sample(view, ack, in_flight, (newly_acked, newly_lost));
            let modelled = model.on_sample(view, &sample);
            if modelled.ignores_rates {
                rates.mark_app_limited();
            }
            modelled
        });
        if let Some(Modelled { cwnd, ssthresh, .. }) = modelled {
            self.set_window(self.answers.window.author(), Reduction { cwnd, ssthresh }, "rate sample");
        }
    }
}
