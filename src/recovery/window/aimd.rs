//! Additive increase, multiplicative decrease (RFC 5681), with the variations of real stacks.

use super::{Loss, LossKind, Reduction, Window};
use crate::profile::recovery::{DecreaseFrom, ExitWindow, Growth, GrowthLimit, Rounding};
use crate::recovery::{Ack, RecoveryState, View};

/// The default window (RFC 5681 §3.1). Many other windows use its growth.
#[derive(Debug, Default)]
pub struct Aimd {
    /// Segments delivered towards the next increment in congestion avoidance (`snd_cwnd_cnt`).
    count: f64,
}

impl Window for Aimd {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.increase(view, ack, 1.0)
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        self.decrease(view, loss, view.rules.decrease.beta)
    }
}

impl Aimd {
    /// Returns the new cwnd: slow start below ssthresh, and above it `per_round_trip` segments per round
    /// trip, at most a doubling.
    pub(super) fn increase(&mut self, view: &View<'_>, ack: &Ack, per_round_trip: f64) -> Option<f64> {
        if !window_was_used(view, ack) {
            return None;
        }
        let (cwnd, ssthresh) = (view.cc.cwnd, view.cc.ssthresh);
        let increase = per_round_trip.min(cwnd.max(1.0));
        match view.rules.growth.amount {
            Growth::PerAck => {
                ack.advances().then(|| if cwnd < ssthresh { cwnd + 1.0 } else { cwnd + increase / cwnd })
            }
            Growth::Rfc5681 => {
                let acked = ack.acked.bytes as f64 / view.smss as f64;
                if !ack.advances() {
                    None
                } else if cwnd < ssthresh {
                    // Equation 2.
                    Some(cwnd + acked.min(1.0))
                } else {
                    // Equation 3.
                    Some(cwnd + increase * acked.min(1.0) / cwnd)
                }
            }
            Growth::Delivered if !may_raise(view, ack) => None,
            Growth::Delivered => self.by_delivered(newly_delivered(view, ack), cwnd, ssthresh, increase),
        }
    }

    /// Multiplies the window at the loss by `beta`.
    pub(super) fn decrease(&mut self, view: &View<'_>, loss: &Loss, beta: f64) -> Reduction {
        self.reduce_to(view, window_at_loss(view, loss) * beta)
    }

    /// Reduces the window to `reduced`, rounded as this host does.
    pub(super) fn reduce_to(&mut self, view: &View<'_>, reduced: f64) -> Reduction {
        self.count = 0.0;
        let (cwnd, ssthresh) = match view.rules.decrease.rounding {
            Rounding::Exact => (reduced, reduced),
            Rounding::WholeSsthresh => (reduced, reduced.floor()),
            Rounding::Whole => (reduced.floor(), reduced.floor()),
        };
        Reduction {
            cwnd: cwnd.max(view.rules.decrease.min_window),
            ssthresh: ssthresh.max(view.rules.decrease.min_ssthresh),
        }
    }

    /// Linux, tcp_reno_cong_avoid(): slow start uses the delivered segments up to ssthresh, and the rest
    /// counts towards whole windows.
    fn by_delivered(&mut self, delivered: f64, cwnd: f64, ssthresh: f64, increase: f64) -> Option<f64> {
        let mut remaining = delivered;
        let mut grown = cwnd;
        if grown < ssthresh {
            let to = (grown + remaining).min(ssthresh);
            remaining -= to - grown;
            grown = to;
        }
        if remaining > 0.0 {
            if self.count >= grown {
                self.count = 0.0;
                grown += 1.0;
            }
            self.count += remaining * increase;
            if self.count >= grown {
                let increments = (self.count / grown).floor();
                self.count -= increments * grown;
                grown += increments;
            }
        }
        (grown > cwnd).then_some(grown)
    }
}

/// Returns the number of segments that a new ACK counts for.
pub(super) fn counted(view: &View<'_>, ack: &Ack) -> f64 {
    match view.rules.growth.amount {
        Growth::PerAck => 1.0,
        Growth::Rfc5681 => (ack.acked.bytes as f64 / view.smss as f64).min(1.0),
        Growth::Delivered => newly_delivered(view, ack),
    }
}

/// Returns whether an ACK may open the window, regardless of how much of the window was in use.
pub(super) fn may_raise(view: &View<'_>, ack: &Ack) -> bool {
    match view.rules.growth.amount {
        Growth::PerAck | Growth::Rfc5681 => ack.advances(),
        // Linux 6.18, tcp_may_raise_cwnd(): a duplicate ACK also delivers data, but does not open the window.
        // While the sender responds to an ECN echo, no ACK does (tcp_cong_control()).
        Growth::Delivered => ack.advances() && view.cc.state() != RecoveryState::Cwr,
    }
}

/// Returns the segments that this ACK is the first to report, without those that duplicate ACKs have
/// announced. At least one segment counts, the one that filled the hole (Linux 6.18,
/// tcp_remove_reno_sacks()).
pub(super) fn newly_delivered(view: &View<'_>, ack: &Ack) -> f64 {
    let delivered = view.segments(ack.delivered);
    (delivered - f64::from(view.cc.announced)).max(delivered.min(1.0))
}

/// Returns the window that the multiplicative decrease is applied to.
pub(super) fn window_at_loss(view: &View<'_>, loss: &Loss) -> f64 {
    let window = (view.cc.cwnd + view.cc.inflation()).min(view.rwnd_segments());
    match (loss.window_when_sent, view.rules.decrease.from) {
        (Some(then), _) => then,
        (None, DecreaseFrom::FlightSize) if loss.kind == LossKind::EcnEcho => view.cc.cwnd,
        // In fast recovery, new segments replace those that have arrived, and FlightSize counts both. Only as
        // many as the larger of cwnd and the rest of the episode's window are known to be in the network.
        (None, DecreaseFrom::FlightSize) if view.cc.state() == RecoveryState::Recovery => {
            let una = view.flight.una();
            let rest = view.cc.recover.unwrap_or(una).saturating_sub(una) as f64 / view.smss as f64;
            view.flight_size().min(view.cc.cwnd.max(rest))
        }
        (None, DecreaseFrom::FlightSize) => view.flight_size(),
        (None, DecreaseFrom::Cwnd) => view.cc.cwnd,
        (None, DecreaseFrom::Window) if view.rules.decrease.rounding == Rounding::Whole => window.floor(),
        (None, DecreaseFrom::Window) => window,
    }
}

/// Returns cwnd at the end of fast recovery. `target` is the window to return to.
pub(super) fn exit_window(view: &View<'_>, target: f64) -> f64 {
    let flight = view.segments(view.flight.outstanding());
    match view.rules.fast_recovery.exit_window {
        ExitWindow::Ssthresh => target,
        ExitWindow::Flight => target.min(flight.max(1.0) + 1.0),
        ExitWindow::Outstanding => target.min(flight + 1.0),
        ExitWindow::Keep => view.cc.cwnd,
    }
}

/// Returns whether the window was in use, which is the condition for growth.
pub(super) fn window_was_used(view: &View<'_>, ack: &Ack) -> bool {
    let before = view.segments(ack.flight_before);
    match view.rules.growth.limit {
        GrowthLimit::None => true,
        GrowthLimit::CwndLimited => before + 1.0 > view.cc.cwnd,
        GrowthLimit::TwiceThePeak => {
            view.cc.cwnd_limited || (view.in_slow_start() && view.cc.cwnd < 2.0 * view.cc.peak_flight)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::recovery::testing::{BareSender, RTT};

    /// Two segments are outstanding, so half of the flight is one. Chandra et al. 2003, Table 2: "Minimum
    /// slow-start threshold 1".
    #[test]
    fn min_ssthresh_limits_reduction() {
        for (recipe, ssthresh, cwnd) in
            [("reno", 2.0, 2.0), ("reno+min-ssthresh=1", 1.0, 1.0), ("reno+min-ssthresh=3", 3.0, 2.0)]
        {
            let under_way = || BareSender::new(recipe).under_way(2.0, 2.0, RTT);
            let mut sender = under_way();
            sender.timeout();
            assert_eq!(sender.cc().ssthresh, ssthresh, "{recipe}, timeout");
            let mut sender = under_way();
            sender.dupacks(3);
            assert_eq!(
                (sender.cc().ssthresh, sender.cc().cwnd),
                (ssthresh, cwnd),
                "{recipe}, duplicate ACKs"
            );
        }
    }
}
