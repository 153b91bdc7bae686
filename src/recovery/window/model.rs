//! What decides the window by a model of the path, rather than by rules about ACKs and losses.

use airwire::time::Instant;

use crate::recovery::View;
use crate::recovery::rate::{LostSegment, RateSample, Totals};

/// A model of the path, which a window may go by: it hears of every departure ([`Window::on_sent`](super::Window::on_sent)), every loss and every
/// ACK, and says what the window is in every state.
pub trait Model {
    /// The handshake is over, and may have measured a round trip.
    fn begin(&mut self, view: &View<'_>);

    /// A segment was taken for lost. When an ACK showed it, before [`Self::on_sample`].
    fn on_lost(&mut self, _view: &View<'_>, _lost: &LostSegment) {}

    /// The window after an ACK. Whatever else the ACK means has been applied.
    fn on_sample(&mut self, view: &View<'_>, sample: &RateSample) -> Modelled;

    /// The retransmission timer has fired, and what follows from that has been applied.
    fn on_timeout(&mut self, view: &View<'_>, totals: &Totals);

    /// A segment has left when nothing was in flight, because the application had nothing to send. `None`: the window
    /// stays.
    fn on_restart_from_idle(&mut self, view: &View<'_>) -> Option<f64>;
}

/// What a model makes of an ACK.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Modelled {
    /// cwnd from here on.
    pub cwnd: f64,
    /// ssthresh from here on.
    pub ssthresh: f64,
    /// What leaves in the next round trip says nothing about how fast the path is: the model keeps the flight small on
    /// purpose.
    pub ignores_rates: bool,
}

/// 64 bits that look random, and are the same in each run: of the moment and of what is delivered by then. Two flows on
/// one path hear of their segments at different moments, and so draw differently.
pub(super) fn scatter(now: Instant, delivered: f64) -> u64 {
    // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014.
    let mut bits = now.as_nanos().wrapping_add(delivered.to_bits()).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
