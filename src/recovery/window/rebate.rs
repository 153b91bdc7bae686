//! The tax-rebate (Lai et al. 2013, §III): AIMD that compensates for losses without congestion, the *tax*.
//!
//! At every multiplicative decrease, γ and ε are computed by (8)–(15) with α = 0.25 (`rebate-alpha`). Their
//! inputs are the average window W, the average number of packets between two decreases Np, and the tax T.
//! Algorithm 1 then adds 1 + γ segments per round trip, and Algorithm 2 keeps (1 + ε)/2 of the window. The
//! first decrease of a connection and slow start are unchanged.
//!
//! T is the sum of the loss rates that base stations report (`Ack::loss_report`; an ACK without room for the
//! report does not change the value). If the detector mistakes reordering for loss (TCP-NR+), the reordering
//! rate is added: the share of packets that the receiver saw reordered by more than three, if the receiver
//! reports it (`reordering-alarm`). An unmodified kernel does not report it. Then the rate counts the fast
//! retransmissions that timestamps or D-SACK prove to be spurious. `tax` sets T to a fixed value, and
//! `tax-scale` multiplies T in both cases. Without any of this T is zero, and every decision is the same as
//! in [`Aimd`].
//!
//! Choice: the paper leaves these points open.
//! - The averages begin with their first sample. The first decrease does not provide one, but Np counts from
//!   there.
//! - An ssthresh that was never set counts as cwnd in (8).
//! - ε is at least 0, and at most so large that ssthresh does not exceed cwnd. By (5), ε lies between 0 and
//!   1, because q^c does not exceed q, but its estimate (15) may lie outside. `rebate-unclamped` uses the
//!   unlimited estimate.
//! - A fast retransmission of a segment that was retransmitted before never counts as spurious: with three
//!   transmissions, two may arrive without any reordering.
//! - Np counts retransmissions, like the count of data packets in ns-2.
//! - Growth is the same as in AIMD, which adds a fraction of a segment at once, while Algorithm 1 waits for a
//!   whole segment. In both, an ACK adds at most one segment.
//! - A timeout ends an interval, enters the averages, and can be the first decrease. But ssthresh is halved
//!   without a rebate, like after a timeout in ns-2; `rebate-at-timeouts` applies the rebate. An ECN echo is
//!   a decrease like any other.
//! - If the factor is not 1/2 (option `beta`), it is also multiplied by 1 + ε.
//! - `rebate-ideal` is the ideal that the rebate approximates, for virtual time: γ and ε by (4) and (5), from
//!   the tax, W by (9), and the true q^c ([`Truth`]) over about the last [`MEMORY`] packets.
//! - An undo of a reduction also restores γ and the averages.

use airwire::Cause;

use super::{Aimd, Loss, LossKind, Reduction, Window};
use crate::recovery::parameter::{Arguments, Parameter};
use crate::recovery::{Ack, Entered, Transmission, TransmissionKind, Truth, View};

pub(crate) const TAX: Parameter = Parameter::number(
    "tax",
    (0.0, 0.99, ""),
    "rebate: fixed rate of losses without congestion",
    "Lai et al. 2013, §IV A",
);

pub(crate) const TAX_SCALE: Parameter = Parameter {
    subject: "tax scale",
    ..Parameter::number(
        "tax-scale",
        (0.0, 10.0, ""),
        "rebate: factor for the tax (1)",
        "Lai et al. 2013, §IV C",
    )
};

pub(crate) const ALPHA: Parameter = Parameter::number(
    "rebate-alpha",
    (0.01, 1.0, ""),
    "rebate: weight of the newest sample in the averages (0.25)",
    "Lai et al. 2013, §III A, (9) and (14)",
);

pub(crate) const UNCLAMPED: Parameter = Parameter::word(
    "rebate-unclamped",
    "rebate clamp",
    "rebate: epsilon as estimated, even if ssthresh then exceeds cwnd or is less than half of it",
    "Lai et al. 2013, Algorithm 2 to the letter",
);

pub(crate) const AT_TIMEOUTS: Parameter = Parameter::word(
    "rebate-at-timeouts",
    "rebate at timeouts",
    "rebate: a timeout reduces ssthresh no more than any other decrease",
    "Lai et al. 2013, Algorithm 2; the paper does not mention timeouts",
);

pub(crate) const IDEAL: Parameter = Parameter::word(
    "rebate-ideal",
    "rebate ideal",
    "rebate: the ideal compensator, with the true rate of congestion losses; virtual time only",
    "Lai et al. 2013, §II-B, (4) and (5)",
);

/// α of (9) and (14), unless the recipe or the profile sets it.
const RECOMMENDED: f64 = 0.25;
/// Number of packets for which the ideal compensator remembers a congestion loss.
const MEMORY: f64 = 4096.0;

#[derive(Debug)]
pub(crate) struct Rebate {
    aimd: Aimd,
    tax: Tax,
    choices: Choices,
    /// q^c as the path reports it. `None`: the path does not report losses, or the recipe does not use them.
    congestion: Option<f64>,
    /// Data packets sent so far.
    npack: u64,
    estimates: Estimates,
    /// The estimates before the last reduction.
    before: Estimates,
}

/// The choices that the paper leaves open.
#[derive(Debug, Clone, Copy)]
struct Choices {
    alpha: f64,
    clamp: Clamp,
    at_timeouts: AtTimeouts,
    formula: Formula,
}

/// Whether ε is limited to the range of (5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clamp {
    Bounded,
    AsEstimated,
}

/// How a timeout sets ssthresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtTimeouts {
    Halved,
    Rebated,
}

/// The equations for γ and ε.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Formula {
    /// Equations (10) and (15).
    TaxRebate,
    /// Equations (4) and (5).
    Ideal,
}

impl Default for Choices {
    fn default() -> Self {
        Self {
            alpha: RECOMMENDED,
            clamp: Clamp::Bounded,
            at_timeouts: AtTimeouts::Halved,
            formula: Formula::TaxRebate,
        }
    }
}

impl Choices {
    fn new(arguments: &Arguments<'_>) -> Self {
        let default = Self::default();
        Self {
            alpha: arguments.number(&ALPHA).unwrap_or(default.alpha),
            clamp: if arguments.has(&UNCLAMPED) { Clamp::AsEstimated } else { default.clamp },
            at_timeouts: if arguments.has(&AT_TIMEOUTS) { AtTimeouts::Rebated } else { default.at_timeouts },
            formula: if arguments.has(&IDEAL) { Formula::Ideal } else { default.formula },
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Estimates {
    /// Whether the first decrease is over (`first_decrease` = 0).
    decreased: bool,
    w: Option<f64>,
    np: Option<f64>,
    /// `npackLM`.
    npack_lm: u64,
    gamma: f64,
}

/// The tax T, and the measurements for its computation.
#[derive(Debug)]
struct Tax {
    /// The fixed value. `None`: T is measured.
    known: Option<f64>,
    /// Factor for T, whether fixed or measured (§IV C).
    scale: f64,
    /// q^w, as last reported by base stations.
    reported: f64,
    /// Whether the detector mistakes reordering for loss, so that reordering is taxed.
    reordering: bool,
    alarms: Option<Alarms>,
    /// Number of fast retransmissions proven to be spurious.
    false_alarms: u64,
    /// The last fast retransmission of a segment that had been sent once, until it is proven to be spurious
    /// or the segment is retransmitted again.
    resent: Option<(u64, u64)>,
}

#[derive(Debug, Clone, Copy)]
struct Alarms {
    /// The last value of the receiver's counter.
    last: u16,
    total: u64,
}

impl Rebate {
    pub(crate) fn new(arguments: &Arguments<'_>) -> Self {
        let tax = Tax::new(arguments.number(&TAX), arguments.number(&TAX_SCALE).unwrap_or(1.0));
        Self::with(tax, Choices::new(arguments))
    }

    fn with(tax: Tax, choices: Choices) -> Self {
        let estimates = Estimates::default();
        Self { aimd: Aimd::default(), tax, choices, congestion: None, npack: 0, estimates, before: estimates }
    }
}

impl Tax {
    fn new(known: Option<f64>, scale: f64) -> Self {
        Self { known, scale, reported: 0.0, reordering: false, alarms: None, false_alarms: 0, resent: None }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if let Some(rate) = ack.loss_report {
            self.reported = rate;
        }
        if let Some(count) = ack.reordered {
            let known = self.alarms.unwrap_or(Alarms { last: 0, total: 0 });
            let news = count.wrapping_sub(known.last);
            // An ACK that was overtaken has an old counter value.
            if news < 1 << 15 {
                self.alarms = Some(Alarms { last: count, total: known.total + u64::from(news) });
            }
        }
        if let Some((left, right)) = ack.dsack
            && self.resent.take_if(|(start, end)| left < *end && *start < right).is_some()
        {
            self.false_alarms += 1;
        }
    }

    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        let copies = view.flight.segment_at(transmission.start).map_or(0, |segment| segment.transmissions);
        match transmission.kind {
            // With three transmissions, two may arrive without any reordering.
            TransmissionKind::FastRetransmit => {
                self.resent = (copies == 2).then_some((transmission.start, transmission.end));
            }
            _ => drop(self.resent.take_if(|(start, _)| *start == transmission.start)),
        }
    }

    /// Returns T after `npack` packets.
    fn rate(&self, npack: u64) -> f64 {
        let measured = || {
            let reordered = self.alarms.map_or(self.false_alarms, |alarms| alarms.total);
            let counts = self.reordering && npack > 0;
            let q_r = if counts { reordered as f64 / npack as f64 } else { 0.0 };
            self.reported + q_r
        };
        (self.scale * self.known.unwrap_or_else(measured)).clamp(0.0, 1.0)
    }
}

impl Estimates {
    /// Applies (8)–(15) at a decrease and returns ε. If `ideal` contains q^c, (4) and (5) replace (10) and
    /// (15).
    fn update(&mut self, view: &View<'_>, npack: u64, tax: f64, alpha: f64, ideal: Option<f64>) -> f64 {
        let (cwnd, ssthresh) = (view.cc.cwnd, view.cc.ssthresh);
        let sample_w = if ssthresh.is_finite() { (cwnd + ssthresh) / 2.0 } else { cwnd };
        let sample_np = (npack - self.npack_lm) as f64;
        let average =
            |known: Option<f64>, sample| known.map_or(sample, |known| (1.0 - alpha) * known + alpha * sample);
        let (w, np) = (average(self.w, sample_w), average(self.np, sample_np));
        (self.w, self.np, self.npack_lm) = (Some(w), Some(np), npack);
        let (gamma, epsilon) = match ideal {
            Some(q_c) => ideal_compensator(w, q_c, (q_c + tax).min(0.99)),
            None => (w * tax, tax * (np - w)),
        };
        self.gamma = gamma;
        epsilon
    }
}

/// Returns γ and ε of the ideal compensator by (4) and (5) of Lai et al. 2013. `w`, `q_c` and `q` are Dx(t),
/// q^c and q^a.
pub fn ideal_compensator(w: f64, q_c: f64, q: f64) -> (f64, f64) {
    if q <= q_c {
        return (0.0, 0.0);
    }
    let none_marked = |share: f64| (1.0 - share).powf(w);
    let gamma = none_marked(q_c) / none_marked(q) - 1.0;
    (gamma, 1.0 - (1.0 - none_marked(q_c)) / (1.0 - none_marked(q)))
}

impl Window for Rebate {
    fn on_sent(&mut self, view: &View<'_>, transmission: &Transmission) {
        self.npack += 1;
        if let Some(q_c) = &mut self.congestion {
            *q_c *= 1.0 - 1.0 / MEMORY;
        }
        self.tax.on_sent(view, transmission);
    }

    fn on_truth(&mut self, truth: Truth) {
        match (truth, &mut self.congestion) {
            (Truth::Begins, q_c) if self.choices.formula == Formula::Ideal => *q_c = Some(0.0),
            (Truth::Lost { cause: Cause::Congestion, .. }, Some(q_c)) => *q_c += 1.0 / MEMORY,
            _ => {}
        }
    }

    fn observe(&mut self, _view: &View<'_>, ack: &Ack) {
        if ack.proves_spurious == Some(Entered::ByLossDetection) && self.tax.resent.take().is_some() {
            self.tax.false_alarms += 1;
        }
        self.tax.on_ack(ack);
    }

    /// Algorithm 1.
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.aimd.increase(view, ack, 1.0 + self.estimates.gamma)
    }

    /// Algorithm 2.
    fn on_loss(&mut self, view: &View<'_>, loss: &Loss) -> Reduction {
        self.tax.reordering = view.handshake.mistakes_reordering;
        self.before = self.estimates;
        let plain = self.aimd.on_loss(view, loss);
        if !self.estimates.decreased {
            (self.estimates.decreased, self.estimates.npack_lm) = (true, self.npack);
            return plain;
        }
        let tax = self.tax.rate(self.npack);
        let Choices { alpha, clamp, at_timeouts, .. } = self.choices;
        let epsilon = self.estimates.update(view, self.npack, tax, alpha, self.congestion);
        if loss.kind == LossKind::Timeout && at_timeouts == AtTimeouts::Halved {
            return plain;
        }
        let mut rebated = || self.aimd.decrease(view, loss, view.rules.decrease.beta * (1.0 + epsilon));
        if clamp == Clamp::AsEstimated {
            return rebated();
        }
        if epsilon <= 0.0 {
            return plain;
        }
        let rebated = rebated();
        let most = |plain: f64| view.cc.cwnd.max(plain);
        Reduction {
            cwnd: rebated.cwnd.min(most(plain.cwnd)),
            ssthresh: rebated.ssthresh.min(most(plain.ssthresh)),
        }
    }

    fn on_undo(&mut self) {
        self.estimates = self.before;
    }
}

/// Returns the throughput of TCP-NR+ in packets per second, by Theorem 1 (16) of Lai et al. 2013. `d` is the
/// round-trip time in seconds. The other arguments are the shares of packets that are reordered (q^r), lost
/// on the radio link (q^w), and lost to congestion (q^c).
pub fn theorem_1(d: f64, q_r: f64, q_w: f64, q_c: f64) -> f64 {
    let tax = q_r + q_w;
    let q = tax + q_c;
    if q_c <= 0.0 {
        // All losses are tax, which the rebate fully compensates, so the throughput has no bound.
        return f64::INFINITY;
    }
    let under_root = 8.0 * q * q_c / (3.0 * q + tax);
    // 2 / (√(tax² + x) − tax), transformed to avoid the difference of two nearly equal numbers.
    2.0 * ((tax * tax + under_root).sqrt() + tax) / under_root / d
}

#[cfg(test)]
mod tests;
