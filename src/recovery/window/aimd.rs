//! Additive increase, multiplicative decrease (RFC 5681), with the knobs in which real stacks differ.

use super::super::knobs::{DecreaseFrom, ExitWindow, Growth, GrowthLimit, Rounding};
use super::super::{Ack, View};
use super::{Loss, LossKind, Reduction, Window};

#[derive(Debug, Default)]
pub struct Aimd {
    /// Segments delivered towards the next increment in congestion avoidance (`snd_cwnd_cnt`).
    count: f64,
}

impl Window for Aimd {
    fn name(&self) -> &'static str {
        "aimd"
    }

    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        if !window_was_used(view, ack) {
            return None;
        }
        let (cwnd, ssthresh) = (view.cc.cwnd, view.cc.ssthresh);
        match view.knobs.growth {
            Growth::PerAck => {
                ack.advances().then(|| if cwnd < ssthresh { cwnd + 1.0 } else { cwnd + 1.0 / cwnd })
            }
            Growth::Rfc5681 => {
                let acked = ack.acked.bytes as f64 / view.smss as f64;
                match () {
                    () if !ack.advances() => None,
                    () if cwnd < ssthresh => Some(cwnd + acked.min(1.0)),
                    // Equation 3.
                    () => Some(cwnd + acked.min(1.0) / cwnd),
                }
            }
            // A duplicate ACK delivers too, but opens nothing (RFC 5681 §3.1).
            Growth::Delivered if !ack.advances() => None,
            Growth::Delivered => self.by_delivered(view.segments(ack.delivered), cwnd, ssthresh),
        }
    }

    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        self.count = 0.0;
        let window = (view.cc.cwnd + view.cc.inflation).min(view.rwnd_segments());
        let from = match (loss.window_when_sent, view.knobs.decrease_from) {
            (Some(then), _) => then,
            (None, DecreaseFrom::FlightSize) if loss.kind == LossKind::EcnEcho => view.cc.cwnd,
            (None, DecreaseFrom::FlightSize) => view.flight_size(),
            (None, DecreaseFrom::Cwnd) => view.cc.cwnd,
            (None, DecreaseFrom::Window) if view.knobs.rounding == Rounding::Whole => window.floor(),
            (None, DecreaseFrom::Window) => window,
        };
        let reduced = from * view.knobs.beta;
        let (cwnd, ssthresh) = match view.knobs.rounding {
            Rounding::Exact => (reduced.max(2.0), reduced.max(2.0)),
            Rounding::WholeSsthresh => (reduced, reduced.floor().max(2.0)),
            Rounding::Whole if view.knobs.decrease_from == DecreaseFrom::Window => {
                (reduced.floor(), reduced.floor().max(2.0))
            }
            Rounding::Whole => (reduced.floor().max(2.0), reduced.floor().max(2.0)),
        };
        Reduction { cwnd, ssthresh }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        let flight = view.segments(view.flight.outstanding());
        match view.knobs.exit_window {
            ExitWindow::Ssthresh => view.cc.ssthresh,
            ExitWindow::Flight => view.cc.ssthresh.min(flight.max(1.0) + 1.0),
            ExitWindow::Outstanding => view.cc.ssthresh.min(flight + 1.0),
            ExitWindow::Keep => view.cc.cwnd,
        }
    }
}

impl Aimd {
    /// tcp_reno_cong_avoid(): slow start takes what it needs up to ssthresh, the rest counts in whole windows.
    fn by_delivered(&mut self, delivered: f64, cwnd: f64, ssthresh: f64) -> Option<f64> {
        let mut left = delivered;
        let mut grown = cwnd;
        if grown < ssthresh {
            let to = (grown + left).min(ssthresh);
            left -= to - grown;
            grown = to;
        }
        if left > 0.0 {
            if self.count >= grown {
                self.count = 0.0;
                grown += 1.0;
            }
            self.count += left;
            if self.count >= grown {
                let whole = (self.count / grown).floor();
                self.count -= whole * grown;
                grown += whole;
            }
        }
        (grown > cwnd).then_some(grown)
    }
}

fn window_was_used(view: &View<'_>, ack: &Ack) -> bool {
    let before = view.segments(ack.flight_before);
    match view.knobs.growth_limit {
        GrowthLimit::None => true,
        GrowthLimit::CwndLimited => before + 1.0 > view.cc.cwnd,
        GrowthLimit::TwiceThePeak => {
            view.cc.cwnd_limited || (view.in_slow_start() && view.cc.cwnd < 2.0 * view.cc.peak_flight)
        }
    }
}
