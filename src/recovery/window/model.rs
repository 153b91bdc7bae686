//! Models of the path that control a window, in place of rules about ACKs and losses.

use airwire::time::Instant;

use crate::recovery::View;
use crate::recovery::rate::{LostSegment, RateSample, Totals};

/// A model of the path that controls a window. It observes every transmission
/// ([`Window::on_sent`](super::Window::on_sent)), every loss and every ACK, and determines the window in
/// every state.
pub trait Model {
    /// Called when the handshake is complete, which may have measured a round-trip time.
    fn begin(&mut self, view: &View<'_>);

    /// Called for each segment that is marked lost. If an ACK revealed the loss, [`Self::on_sample`] follows.
    fn on_lost(&mut self, _view: &View<'_>, _lost: &LostSegment) {}

    /// Returns the window after an ACK. All other effects of the ACK have been applied.
    fn on_sample(&mut self, view: &View<'_>, sample: &RateSample) -> Modelled;

    /// Called after the retransmission timer has fired and the effects of the timeout have been applied.
    fn on_timeout(&mut self, view: &View<'_>, totals: &Totals);

    /// Called when a segment was sent while nothing was in flight, because the application had no data.
    /// Returns the new cwnd. `None`: cwnd does not change.
    fn on_restart_from_idle(&mut self, view: &View<'_>) -> Option<f64>;
}

/// The result of a model for an ACK.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Modelled {
    /// New cwnd.
    pub cwnd: f64,
    /// New ssthresh.
    pub ssthresh: f64,
    /// Whether rate samples from the next round trip must be ignored, because the model deliberately keeps
    /// the flight small.
    pub ignores_rates: bool,
}

/// Returns 64 pseudo-random bits, derived from the time and the delivered amount, so that runs are
/// reproducible. Two flows on one path receive ACKs at different times, so their values differ.
pub(super) fn scatter(now: Instant, delivered: f64) -> u64 {
    // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    let mut bits = now.as_nanos().wrapping_add(delivered.to_bits()).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
