//! The default answer (RFC 5681 §3.1, RFC 6298 §5): restart from the loss window, go back N, and back off the
//! timer.

use super::{Reaction, Timeout};
use crate::recovery::View;

/// Restart from the loss window and go back N (RFC 5681 §3.1, RFC 6298 §5).
#[derive(Debug, Default)]
pub struct Restart;

impl Timeout for Restart {
    fn on_timeout(&mut self, view: &View<'_>) -> Reaction {
        Reaction::Restart { cwnd: view.rules.timeout.loss_window }
    }
}
