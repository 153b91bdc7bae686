//! No congestion control: only the receiver's window limits the sender, as in RFC 793.
//!
//! For paths of known capacity, and for measurements that congestion control must not influence.

use super::{Loss, Reduction, Window};
use crate::recovery::{Ack, View};

/// More than any receiver can advertise (RFC 7323: 2^30 bytes).
const NO_LIMIT: f64 = (1_u64 << 30) as f64;

#[derive(Debug, Default)]
pub(crate) struct ReceiverWindow;

impl Window for ReceiverWindow {
    fn initial(&self, _segments: f64) -> f64 {
        NO_LIMIT
    }

    fn on_ack(&mut self, view: &View<'_>, _ack: &Ack) -> Option<f64> {
        (view.cc.cwnd < NO_LIMIT).then_some(NO_LIMIT)
    }

    fn on_loss(&mut self, view: &View<'_>, _loss: &Loss) -> Reduction {
        Reduction { cwnd: NO_LIMIT, ssthresh: view.cc.ssthresh }
    }

    fn on_exit(&mut self, _view: &View<'_>) -> f64 {
        NO_LIMIT
    }
}
