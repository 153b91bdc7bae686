//! Windows that a model of the path decides. The model learns about transmissions and losses, and is asked
//! after all other steps for an ACK, in every state (Linux 6.18, tcp_cong_control()).

use super::*;
use crate::recovery::rate::Delivered;

// These functions are separate from the code that every sender runs per ACK and transmission, because few
// senders have a model.

impl Recovery {
    /// Returns whether this sender's window uses rate samples.
    pub(crate) fn samples_rates(&self) -> bool {
        self.rates.is_some()
    }

    pub(super) fn begin_model(&mut self, path: &Path<'_>) {
        let Some(rates) = &mut self.rates else { return };
        let view = view_of(&self.cc, &self.profile, path);
        rates.begin(view.now, view.rtt.min());
        if let Some(model) = self.answers.window.model() {
            model.begin(&view);
        }
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
    fn on_its_way(&self, path: &Path<'_>) -> f64 {
        let view = view_of(&self.cc, &self.profile, path);
        let announced = self.rates.as_ref().map_or(0.0, |rates| rates.announced());
        // A timeout also declares all announced segments lost.
        let announced = if self.cc.phase() == Phase::Restarted { 0.0 } else { announced };
        (view.segments(view.flight.pipe()) - announced).max(0.0)
    }

    #[inline(never)]
    pub(super) fn tell_model_of_departure(&mut self, path: &Path<'_>, departure: &Departure) {
        let in_flight = self.on_its_way(path);
        let Some(rates) = &mut self.rates else { return };
        let view = view_of(&self.cc, &self.profile, path);
        let restarts = rates.totals().in_flight == 0.0 && rates.is_app_limited();
        rates.on_sent(&view, departure, in_flight);
        let Some(model) = self.answers.window.model().filter(|_| restarts) else { return };
        if let Some(cwnd) = model.on_restart_from_idle(&view) {
            let (by, ssthresh) = (self.answers.window.name(), self.cc.ssthresh);
            self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "restart from idle");
        }
    }

    /// Reports newly lost segments to the model and returns their total size.
    fn tell_model_of_losses(&mut self, path: &Path<'_>) -> f64 {
        let Some(rates) = &mut self.rates else { return 0.0 };
        let view = view_of(&self.cc, &self.profile, path);
        let lost = rates.newly_lost(&view);
        if let Some(model) = self.answers.window.model() {
            lost.iter().for_each(|segment| model.on_lost(&view, segment));
        }
        lost.iter().map(|segment| segment.size).sum()
    }

    /// Informs the model that a timer fired: the retransmission timer (`timed_out`) or a detector's timer.
    /// The amount in flight may have changed.
    pub(super) fn tell_model_of_timer(&mut self, path: &Path<'_>, timed_out: bool) {
        if !self.samples_rates() {
            return;
        }
        self.tell_model_of_losses(path);
        let in_flight = self.on_its_way(path);
        let Some(rates) = &mut self.rates else { return };
        rates.set_in_flight(in_flight);
        let Some(model) = self.answers.window.model().filter(|_| timed_out) else { return };
        model.on_timeout(&view_of(&self.cc, &self.profile, path), rates.totals());
    }

    /// Returns what an ACK reports as delivered.
    fn delivery_of(&self, path: &Path<'_>, ack: &Ack) -> Delivered {
        let covered = view_of(&self.cc, &self.profile, path).segments(ack.delivered);
        if self.answers.has_scoreboard() {
            Delivered::Reported(covered)
        } else if ack.advances() {
            Delivered::Covered(covered)
        } else if ack.duplicate && self.cc.dupacks() > 0 && !self.is_about_copies(path) {
            Delivered::Announced
        } else {
            Delivered::Reported(0.0)
        }
    }

    #[inline(never)]
    pub(super) fn ask_model(&mut self, path: &Path<'_>, ack: &Ack) {
        let delivered = self.delivery_of(path, ack);
        let Some(rates) = &mut self.rates else { return };
        let newly_acked = rates.on_ack(&view_of(&self.cc, &self.profile, path), delivered);
        let newly_lost = self.tell_model_of_losses(path);
        let in_flight = self.on_its_way(path);
        let Some(rates) = &mut self.rates else { return };
        let view = view_of(&self.cc, &self.profile, path);
        let sample = rates.sample(&view, ack, in_flight, (newly_acked, newly_lost));
        let Some(model) = self.answers.window.model() else { return };
        let Modelled { cwnd, ssthresh, ignores_rates } = model.on_sample(&view, &sample);
        if ignores_rates {
            rates.mark_app_limited();
        }
        let by = self.answers.window.name();
        self.set_window(path.now, Question::Window, by, cwnd, ssthresh, "rate sample");
    }

    /// Processes a write by the application. If everything it wrote before was sent and there was room for
    /// more, transmissions from now on say nothing about the rate of the path (Linux 6.18,
    /// tcp_rate_check_app_limited()).
    #[inline(never)]
    pub(crate) fn on_write(&mut self, path: &Path<'_>) {
        let has_room = self.on_its_way(path) < self.cc.cwnd;
        let Some(rates) = &mut self.rates else { return };
        let all_resent = path.flight.lost_and_not_resent().segments == 0;
        if path.unsent < path.smss && has_room && all_resent {
            rates.mark_app_limited();
        }
    }
}
