//! The congestion controls of Linux as functions of what a capture shows: how the window grows in a round trip,
//! and what it is after a loss.
//!
//! Windows are in segments, times in seconds. Each model reads the path's history from [`Path`], and keeps its
//! own variables in [`State`].

use super::Measured;
use crate::connection::findings::CongestionControl;

const CUBIC_C: f64 = 0.4;
/// Linux computes in 1/1024.
const CUBIC_BETA: f64 = 717.0 / 1024.0;
const BIC_BETA: f64 = 819.0 / 1024.0;
const NV_BETA: f64 = 819.0 / 1024.0;
const HTCP_MAX_BETA: f64 = 102.0 / 128.0;
const BIC_LOW_WINDOW: f64 = 14.0;
const BIC_MAX_INCREMENT: f64 = 16.0;
/// Steps in which the growth of a round trip is computed.
const BIC_STEPS: u32 = 4;
/// Illinois compares with the longest queueing delay that it has measured, which includes delays in the
/// sender. This is the factor between two assumptions about that delay.
const ILLINOIS_EXCESS: f64 = 1.3;
const ILLINOIS_MIN_WINDOW: f64 = 15.0;
const VEGAS: [f64; 2] = [2.0, 4.0];
const YEAH_MAX_QUEUE: f64 = 80.0;
const NV_PAD: f64 = 10.0;
/// Seconds. Linux chooses each period between 3.75 and 6.25 s at random.
const NV_PERIOD: f64 = 5.0;
/// HighSpeed TCP (RFC 3649, appendix B): the largest window of a row, and the part of the window that a loss removes,
/// in 1/256 as in Linux.
const HIGHSPEED: [(f64, f64); 20] = [
    (38.0, 128.0),
    (118.0, 112.0),
    (221.0, 104.0),
    (347.0, 98.0),
    (495.0, 93.0),
    (663.0, 89.0),
    (851.0, 86.0),
    (1058.0, 83.0),
    (1284.0, 81.0),
    (1529.0, 78.0),
    (1793.0, 76.0),
    (2076.0, 74.0),
    (2378.0, 72.0),
    (2699.0, 71.0),
    (3039.0, 69.0),
    (3399.0, 68.0),
    (3778.0, 66.0),
    (4177.0, 65.0),
    (4596.0, 64.0),
    (5036.0, 62.0),
];

/// The properties of the path that the rounds so far have shown.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Path {
    pub(super) base_rtt: f64,
    max_rtt: f64,
    /// The smoothed RTT, and its minimum.
    pub(super) srtt: f64,
    pub(super) min_srtt: f64,
    /// Seconds and round trips since the last recovery ended.
    pub(super) since_loss: f64,
    pub(super) rounds_since_loss: f64,
    /// Segments per second, filtered twice (Westwood+).
    pub(super) rate: [f64; 2],
    /// The sum of the segments and of the seconds since the last sample of the rate.
    pub(super) sample: [f64; 2],
    /// The last round trip.
    pub(super) last: Measured,
}

impl Path {
    /// `shortest_rtt` is the RTT of the handshake, or 0.
    pub(super) fn new(base_rtt: f64, shortest_rtt: f64) -> Self {
        Self { base_rtt, min_srtt: shortest_rtt, ..Self::default() }
    }

    /// Adds a round trip.
    pub(super) fn observe(&mut self, round: &Measured) {
        let rtts = [self.last.min_rtt, self.last.mean_rtt];
        self.last = *round;
        self.max_rtt = self.max_rtt.max(round.max_rtt);
        if round.min_rtt == 0.0 {
            [self.last.min_rtt, self.last.mean_rtt] = rtts;
        } else {
            self.base_rtt =
                if self.base_rtt > 0.0 { self.base_rtt.min(round.min_rtt) } else { round.min_rtt };
            let keep = (-round.acks / 8.0).exp();
            self.srtt = if self.srtt > 0.0 {
                keep * self.srtt + (1.0 - keep) * round.mean_rtt
            } else {
                round.mean_rtt
            };
            self.min_srtt = if self.min_srtt > 0.0 { self.min_srtt.min(self.srtt) } else { self.srtt };
        }
        self.sample[0] += round.acked;
        self.sample[1] += round.lasted;
        // The filter's window is a round trip, but at least 50 ms.
        if self.sample[1] >= 0.05 {
            let sample = self.sample[0] / self.sample[1];
            let [first, second] = &mut self.rate;
            if *first == 0.0 {
                (*first, *second) = (sample, sample);
            } else {
                *first = (7.0 * *first + sample) / 8.0;
                *second = (7.0 * *second + *first) / 8.0;
            }
            self.sample = [0.0; 2];
        }
    }

    /// Returns the segments of a window that wait in the queue, for an RTT.
    fn queue(&self, window: f64, rtt: f64) -> f64 {
        if rtt > self.base_rtt { window * (rtt - self.base_rtt) / rtt } else { 0.0 }
    }
}

/// A model's own variables. Their meaning depends on the model.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// The window before the last loss, as the model remembers it.
    max: f64,
    /// Another possible value of `max`, because the flight may differ from the window by one segment.
    other_max: Option<f64>,
    /// The window after it.
    pub(super) start: f64,
    /// The part of the window that the last loss has left.
    pub(super) kept: f64,
    a: f64,
    b: f64,
    c: f64,
    nv: Nv,
    /// Ratio of the longest queueing delay that Illinois has measured to the longest one in the capture.
    excess: f64,
    /// The queue a round trip before `b`, in YeAH.
    queue_before: f64,
}

/// One congestion control.
pub(super) struct Model {
    pub(super) name: CongestionControl,
    /// Added to the error of a model that has more freedom than others.
    pub(super) handicap: f64,
    /// Updates the state after a round trip with this window at its end.
    pub(super) learn: fn(&mut State, &Path, f64),
    /// Returns the growth of this window in a round trip.
    pub(super) grow: fn(&mut State, &Path, f64, &Measured) -> f64,
    /// Returns the possible windows after a loss.
    pub(super) reduce: fn(&mut State, &Path, f64) -> [f64; 2],
    /// The part of the window that a reduction without a loss leaves, in a model that has such reductions.
    pub(super) kept_without_loss: Option<f64>,
}

pub(super) const MODELS: &[Model] = &[
    model(CongestionControl::Reno, 0.0, nothing, reno, reno_loss),
    model(CongestionControl::Reno, 0.0, nothing, reno_per_ack, reno_loss),
    Model { kept_without_loss: Some(0.5), ..model(CongestionControl::Reno, 0.01, nothing, reno, halve) },
    model(CongestionControl::Cubic, 0.0, nothing, cubic, cubic_loss),
    model(CongestionControl::Cubic, 0.01, nothing, cubic_per_ack, cubic_loss),
    model(CongestionControl::Bic, 0.01, nothing, bic, bic_loss),
    Model {
        kept_without_loss: Some(0.707),
        ..model(CongestionControl::Cdg, 0.02, cdg_learn, reno, cdg_loss)
    },
    model(CongestionControl::HighSpeed, 0.005, nothing, highspeed, highspeed_loss),
    model(CongestionControl::HTcp, 0.01, htcp_learn::<1>, htcp::<1>, htcp_loss::<1>),
    model(CongestionControl::HTcp, 0.01, htcp_learn::<10>, htcp::<10>, htcp_loss::<10>),
    model(CongestionControl::Hybla, 0.01, nothing, hybla, halve),
    model(CongestionControl::Illinois, 0.0, illinois_learn, illinois, illinois_loss),
    model(CongestionControl::Nv, 0.01, nv_learn, nv, nv_loss),
    model(CongestionControl::Scalable, 0.0, nothing, scalable, scalable_loss),
    model(CongestionControl::Vegas, 0.01, vegas_learn, vegas, halve),
    model(CongestionControl::Veno, 0.005, nothing, veno, veno_loss),
    model(CongestionControl::Westwood, 0.01, nothing, reno, westwood_loss),
    model(CongestionControl::Yeah, 0.01, yeah_learn, yeah, yeah_loss),
];

const fn model(
    name: CongestionControl,
    handicap: f64,
    learn: fn(&mut State, &Path, f64),
    grow: fn(&mut State, &Path, f64, &Measured) -> f64,
    reduce: fn(&mut State, &Path, f64) -> [f64; 2],
) -> Model {
    Model { name, handicap, learn, grow, reduce, kept_without_loss: None }
}

/// Describes the window of a congestion control.
pub(super) fn description(model: &Model) -> &'static str {
    match model.name {
        CongestionControl::Reno if model.kept_without_loss.is_some() => {
            "halves the window at a loss, and without one as TCP-LP does, adds one segment per round trip"
        }
        CongestionControl::Reno => "halves the window at a loss, adds one segment per round trip",
        CongestionControl::Cubic => "leaves 0.7 of the window at a loss, grows with the cube of the time",
        CongestionControl::Bbr => "paces at the measured rate",
        CongestionControl::Bic => {
            "leaves 0.8 of the window at a loss, approaches the window before it by halves"
        }
        CongestionControl::Cdg => "reduces the window to 0.7 while the RTT grows, without a loss",
        CongestionControl::Dctcp => "reduces the window by the share of congestion marks",
        CongestionControl::HighSpeed => "reduces the window less and grows faster, the larger it is",
        CongestionControl::HTcp => "grows faster, the longer the last loss was ago",
        CongestionControl::Hybla => "grows with the square of the RTT",
        CongestionControl::Illinois => "grows fast while the queue is short, and slowly while it is long",
        CongestionControl::Nv => "keeps about ten segments in the queue, leaves 0.8 of the window at a loss",
        CongestionControl::Scalable => "leaves 7/8 of the window at a loss, grows by 1 % per round trip",
        CongestionControl::Vegas => "keeps two to four segments in the queue",
        CongestionControl::Veno => {
            "leaves 0.8 of the window at a loss without a queue, grows half as fast with a queue"
        }
        CongestionControl::Westwood => "reduces the window to the rate times the minimum RTT at a loss",
        CongestionControl::Yeah => "removes the queue at a loss, grows faster while the queue is short",
    }
}

impl State {
    /// Returns the state with the other window before the last loss, or with a longer queueing delay.
    pub(super) fn alternative(&mut self) -> Option<Self> {
        if let Some(max) = self.other_max.take() {
            return Some(Self { max, ..*self });
        }
        (self.excess == 1.0).then_some(Self { excess: ILLINOIS_EXCESS, ..*self })
    }
}

fn nothing(_: &mut State, _: &Path, _: f64) {}

fn reno(_: &mut State, _: &Path, window: f64, round: &Measured) -> f64 {
    round.acked / window
}

/// RFC 5681 §3.1, equation (3): one ACK counts once, even if it covers two segments.
fn reno_per_ack(_: &mut State, _: &Path, window: f64, round: &Measured) -> f64 {
    round.acks / window
}

/// Linux rounds half of the window down. Others count bytes, or add segments in flight beyond the window.
fn reno_loss(_: &mut State, _: &Path, window: f64) -> [f64; 2] {
    [(window / 2.0).floor(), (window / 2.0).ceil()]
}

fn halve(_: &mut State, _: &Path, window: f64) -> [f64; 2] {
    [(window / 2.0).floor(); 2]
}

/// Hayes and Armitage 2011. `a` is the shadow window, which does not take part in the reductions without a loss.
fn cdg_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    let shadow = (state.a.max(window) / 2.0).floor().min(window);
    state.a = shadow;
    [(window / 2.0).floor(), shadow]
}

fn cdg_learn(state: &mut State, _: &Path, window: f64) {
    state.a = (state.a + 1.0).max(window);
}

/// RFC 9438.
fn cubic(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    cubic_growth(state, path, window, round, 1.0)
}

/// CUBIC whose Reno-friendly window grows with the number of ACKs.
fn cubic_per_ack(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    cubic_growth(state, path, window, round, round.acks / round.acked.max(1.0))
}

/// `share` is the growth of the Reno-friendly window, relative to the RFC.
fn cubic_growth(state: &State, path: &Path, window: f64, round: &Measured, share: f64) -> f64 {
    let rise = (state.max - state.start).max(0.0);
    let origin = state.max.max(state.start);
    let k = (rise / CUBIC_C).cbrt();
    let t = path.since_loss + path.base_rtt;
    let target = origin + CUBIC_C * (t - k).powi(3);
    // The Reno-friendly window grows by 0.53 segments per round trip.
    let friendly = state.start + 0.53 * share * path.rounds_since_loss;
    let most = if state.max == 0.0 { round.acked / 20.0 } else { 0.0 };
    let wanted = (target - window).max(friendly.floor() - window).max(0.0);
    (round.acked / window * wanted).max(most).min(round.acked / 2.0)
}

fn cubic_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    let [full, reduced] = [window, window * 0.85];
    let is_ambiguous = (window - state.max).abs() <= 1.0;
    (state.max, state.other_max) = match window < state.max {
        true => (reduced, is_ambiguous.then_some(full)),
        false => (full, is_ambiguous.then_some(reduced)),
    };
    // The window may exceed the flight by one segment.
    [window, window + 1.0].map(|window| (window * CUBIC_BETA).floor())
}

/// Xu, Harfoush and Rhee 2004, with the integer arithmetic of Linux. The more segments an ACK covers, the
/// fewer segments an increment needs.
fn bic(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    // The ACK that ends a recovery covers a whole window, and counts as much as the round trip after it.
    let twice = if path.rounds_since_loss == 0.0 && window > BIC_LOW_WINDOW { 2.0 } else { 1.0 };
    let per_ack = (round.acked / round.acks.max(1.0)).max(1.0);
    let mut end = window;
    for _ in 0..BIC_STEPS {
        end += twice * round.acked / f64::from(BIC_STEPS) / bic_increment_after(state, end.floor(), per_ack);
    }
    end - window
}

/// Returns the number of segments after which the window grows by one.
fn bic_increment_after(state: &State, window: f64, per_ack: f64) -> f64 {
    let above = window - state.max;
    let count = if window <= BIC_LOW_WINDOW {
        return window.max(1.0);
    } else if above < 0.0 {
        match (-above / 4.0).floor() {
            step if step > BIC_MAX_INCREMENT => window / BIC_MAX_INCREMENT,
            step if step <= 1.0 => window * 5.0,
            step => window / step,
        }
    } else if above < 4.0 {
        window * 5.0
    } else if above < 48.0 {
        window * 3.0 / above
    } else {
        window / BIC_MAX_INCREMENT
    };
    let count = if state.max == 0.0 { count.min(20.0) } else { count };
    (count.floor() / per_ack).floor().max(1.0)
}

fn bic_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    let (full, reduced) = (window, (window * 0.9).floor());
    let is_ambiguous = (window - state.max).abs() <= 1.0;
    (state.max, state.other_max) = match window < state.max {
        true => (reduced, Some(if is_ambiguous { full } else { reduced - 1.0 })),
        false => (full, Some(if is_ambiguous { reduced } else { full - 1.0 })),
    };
    // The flight may differ from the window by one segment.
    [
        window * if window <= BIC_LOW_WINDOW + 1.5 { 0.5 } else { BIC_BETA },
        window * if window + 1.0 <= BIC_LOW_WINDOW { 0.5 } else { BIC_BETA },
    ]
    .map(f64::floor)
}

fn highspeed_index(window: f64) -> usize {
    HIGHSPEED.iter().position(|(most, _)| window <= *most).unwrap_or(HIGHSPEED.len() - 1)
}

/// RFC 3649. Linux counts ACKs, not segments.
fn highspeed(_: &mut State, _: &Path, window: f64, round: &Measured) -> f64 {
    (highspeed_index(window) + 1) as f64 * round.acks / window
}

fn highspeed_loss(_: &mut State, _: &Path, window: f64) -> [f64; 2] {
    [window - (window * HIGHSPEED[highspeed_index(window)].1 / 256.0).floor(); 2]
}

/// Leith and Shorten 2004. `b` is the maximum RTT in ticks, which fades. A tick of Linux lasts 1 to 10 ms.
fn htcp_learn<const MS: u32>(state: &mut State, path: &Path, _: f64) {
    state.b = state.b.max(ticks::<MS>(path.last.max_rtt));
}

fn htcp<const MS: u32>(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    let over = (path.since_loss - 1.0).max(0.0);
    let factor = (1.0 + 10.0 * over + (over / 2.0).powi(2)).floor();
    // The factor is proportional to the RTT. Linux computes it in integers.
    let scale = (800.0 / f64::from(MS) / ticks::<MS>(path.base_rtt).max(1.0)).floor().clamp(4.0, 80.0);
    let factor = (factor * 8.0 / scale).floor().max(1.0);
    let kept = if state.kept > 0.0 { state.kept } else { 0.5 };
    let alpha = 2.0 * (1.0 - kept) * factor;
    // An ACK increases the window by at most one segment. The ACK that increases the window does not count
    // towards the next increase.
    let per_ack = round.acked / round.acks.max(1.0);
    round.acks / ((window / (alpha * per_ack)).ceil() + 1.0)
}

fn htcp_loss<const MS: u32>(state: &mut State, path: &Path, window: f64) -> [f64; 2] {
    let (least, most) = (ticks::<MS>(path.base_rtt), state.b);
    let ratio = if most > 0.0 { (least / most).clamp(0.5, HTCP_MAX_BETA) } else { 0.5 };
    if most > least {
        state.b = least + ((most - least) * 0.95).floor();
    }
    // The factor is 1/2 if the throughput has just changed.
    [window * ratio, window / 2.0].map(f64::floor)
}

/// Converts seconds to ticks of this number of milliseconds, rounded up.
fn ticks<const MS: u32>(seconds: f64) -> f64 {
    (seconds * 1e3 / f64::from(MS)).ceil()
}

/// Caini and Firrincieli 2004.
fn hybla(_: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    // `rho` is in eighths. The increment per ACK is an integer, in 1/128 of a segment.
    let rho = (8.0 * path.min_srtt / 0.025).floor().max(8.0);
    (2.0 * rho * rho / window).floor() / 128.0 * round.acks
}

/// Liu, Başar and Srikant 2008. `a` is α, `b` the queueing delay as a share of the longest one, and `max` the window.
/// `c` counts the round trips with a short queue since there was a longer one, from 1.
fn illinois_learn(state: &mut State, path: &Path, window: f64) {
    state.excess = state.excess.max(1.0);
    let (queue, most) = (path.last.mean_rtt - path.base_rtt, (path.max_rtt - path.base_rtt) * state.excess);
    state.b = if most > 0.0 { queue / most } else { 0.0 };
    state.max = window;
    if window < ILLINOIS_MIN_WINDOW {
        state.a = 1.0;
    } else if state.b > 0.01 {
        let (queue, most) = (queue - 0.01 * most, 0.99 * most);
        state.a = most * 10.0 / (most + queue * (10.0 - 0.3) / 0.3);
        state.c = state.c.max(1.0);
    } else if state.c == 0.0 || state.c >= 5.0 {
        (state.a, state.c) = (10.0, 0.0);
    } else {
        state.c += 1.0;
    }
}

fn illinois(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    // α of the last round trip applies to this one, and changes at its end.
    let mut next = *state;
    illinois_learn(&mut next, path, window);
    let alpha = next.a;
    // The window grows at an ACK. Segments that the ACK covers beyond the increment do not count towards the
    // next one.
    let per_ack = (round.acked / round.acks.max(1.0)).max(1.0);
    let acks = (window / (alpha * per_ack)).ceil().max(1.0);
    // The ACK that ends a recovery covers the whole window before it.
    let recovered = if path.rounds_since_loss == 0.0 { (alpha * state.max / window).floor() } else { 0.0 };
    recovered + round.acks / acks * (acks * per_ack * alpha / window).floor().max(1.0)
}

fn illinois_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    let share = |excess: f64| 0.125 + 0.375 * ((state.b / excess - 0.1) / 0.7).clamp(0.0, 1.0);
    let removed = if state.max + 1.0 < ILLINOIS_MIN_WINDOW {
        [0.5; 2]
    } else if state.max < ILLINOIS_MIN_WINDOW {
        // The window may exceed the flight by one segment.
        [0.5, share(1.0)]
    } else {
        [share(1.0), share(ILLINOIS_EXCESS)]
    };
    removed.map(|removed| window - (window * removed).floor())
}

fn scalable(_: &mut State, _: &Path, window: f64, round: &Measured) -> f64 {
    round.acked / window.min(100.0)
}

/// Kelly 2003.
fn scalable_loss(_: &mut State, _: &Path, window: f64) -> [f64; 2] {
    [window - (window / 8.0).floor(); 2]
}

/// Brakmo and Peterson 1995. `a` is the window to which the RTTs belong.
fn vegas_learn(state: &mut State, _: &Path, window: f64) {
    state.a = window;
}

fn vegas(state: &mut State, path: &Path, _: f64, round: &Measured) -> f64 {
    let queue =
        (state.a.max(2.0) * (round.min_rtt - path.base_rtt).max(0.0) / path.base_rtt.max(1e-6)).floor();
    if queue > VEGAS[1] {
        -1.0
    } else if queue < VEGAS[0] {
        1.0
    } else {
        0.0
    }
}

/// Fu and Liew 2003.
fn veno(_: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    let share = if path.queue(window, round.mean_rtt) < 3.0 { 1.0 } else { 0.5 };
    share * round.acked / window
}

fn veno_loss(_: &mut State, path: &Path, window: f64) -> [f64; 2] {
    let queue = path.queue(window, path.last.mean_rtt);
    if queue < 2.0 {
        [window * 0.8; 2]
    } else if queue > 4.0 {
        [window * 0.5; 2]
    } else {
        [window * 0.8, window * 0.5]
    }
    .map(f64::floor)
}

/// Mascolo et al. 2001, with the filter of Westwood+.
fn westwood_loss(_: &mut State, path: &Path, _: f64) -> [f64; 2] {
    let window = |rtt: f64| (path.rate[1] * rtt).floor().max(2.0);
    // Linux measures the RTT in ticks of 1 to 10 ms.
    [window(path.base_rtt), window((path.base_rtt * 100.0).ceil() / 100.0)]
}

/// Baiocchi, Castellani and Vacirca 2007. `a` is the number of round trips in Reno's mode, and `b` the queue. `max`
/// is the window that Reno would have (`reno_count`), and `c` counts the round trips with a short queue.
fn yeah_learn(state: &mut State, path: &Path, window: f64) {
    let (queue, is_reno) = yeah_queue(path, window, &path.last);
    (state.b, state.queue_before) = (queue, state.b);
    if is_reno {
        state.a += 1.0;
        state.max = if state.max <= 2.0 { (window / 2.0).max(2.0) } else { state.max + 1.0 };
        return;
    }
    (state.a, state.c) = (0.0, state.c + 1.0);
    if state.c > 50.0 {
        (state.max, state.c) = (2.0, 0.0);
    }
}

/// Returns the segments in the queue, and whether it is too long for the fast mode.
fn yeah_queue(path: &Path, window: f64, round: &Measured) -> (f64, bool) {
    let queue = path.queue(window, round.min_rtt);
    (queue, queue > YEAH_MAX_QUEUE || round.min_rtt - path.base_rtt > path.base_rtt / 8.0)
}

fn yeah(state: &mut State, path: &Path, window: f64, round: &Measured) -> f64 {
    let (queue, is_reno) = yeah_queue(path, window, round);
    let growth = if is_reno { round.acked / window } else { round.acked / window.min(100.0) };
    if queue > YEAH_MAX_QUEUE && window > state.max {
        let reduced = (window - queue.min(window / 2.0)).max(state.max);
        return reduced - window;
    }
    growth
}

fn yeah_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    let [half, eighth] = [2.0, 8.0].map(|divisor: f64| (window / divisor).floor());
    let without = |queue: f64| window - queue.floor().min(half).max(eighth);
    let reduced = without(state.b);
    (state.max, state.c) = ((state.max / 2.0).max(2.0), 0.0);
    if state.a > 18.0 {
        [window - half; 2]
    } else if state.a >= 14.0 {
        [window - half, reduced]
    } else {
        // YeAH's round trips may begin earlier than the rounds.
        [reduced, without(state.b.min(state.queue_before))]
    }
}

/// The variables of TCP-NV since its last decision.
#[derive(Clone, Copy, Debug, Default)]
struct Nv {
    /// The minimum RTT in use. `next_min_rtt` is the minimum of the current period, which ends at
    /// `period_end`.
    min_rtt: f64,
    next_min_rtt: f64,
    period_end: f64,
    samples: f64,
    rounds: f64,
    /// The highest rate in segments per second.
    rate: f64,
    window_before: f64,
    may_grow: bool,
}

/// TCP-NV (Linux). It measures the minimum RTT again every five seconds. Such a minimum can include TCP-NV's
/// own queue, so the window rises slowly.
fn nv_learn(state: &mut State, path: &Path, window: f64) {
    let (nv, round) = (&mut state.nv, &path.last);
    nv.samples += round.acks;
    nv.rounds += 1.0;
    // TCP-NV computes moving averages of two RTTs, which exceed the minimum.
    let rtt = (round.mean_rtt + round.min_rtt) / 2.0;
    let least = |known: f64| if known > 0.0 { known.min(rtt) } else { rtt };
    (nv.min_rtt, nv.next_min_rtt) = (least(nv.min_rtt), least(nv.next_min_rtt));
    if nv.period_end == 0.0 {
        nv.period_end = round.ended + NV_PERIOD;
    } else if round.ended >= nv.period_end {
        (nv.min_rtt, nv.next_min_rtt, nv.period_end) = (nv.next_min_rtt, 0.0, round.ended + NV_PERIOD);
    }
    let before = std::mem::replace(&mut nv.window_before, window);
    nv.rate = nv.rate.max(if before > 0.0 { before } else { window } / rtt.max(1e-6));
}

/// TCP-NV's decision depends on the samples of the round trips since the last decision.
fn nv(state: &mut State, _: &Path, window: f64, round: &Measured) -> f64 {
    let nv = &mut state.nv;
    let most = (nv.rate * nv.min_rtt).floor() + NV_PAD;
    let is_over = window > most;
    let mut reduced = window;
    if is_over && nv.rounds >= 2.0 && nv.samples >= 60.0 {
        let excess = window - most;
        reduced = if excess > 2.0 { window - (excess * 0.3).floor().max(2.0) } else { most };
        nv.decided(false);
    } else if is_over && nv.rounds > 10.0 {
        nv.may_grow = false;
    } else if window <= most - 2.0 && nv.samples >= 20.0 {
        nv.decided(true);
    }
    reduced - window + if nv.may_grow { round.acked / reduced.max(4.0) } else { 0.0 }
}

impl Nv {
    fn decided(&mut self, may_grow: bool) {
        (self.samples, self.rounds, self.rate, self.may_grow) = (0.0, 0.0, 0.0, may_grow);
    }
}

fn nv_loss(state: &mut State, _: &Path, window: f64) -> [f64; 2] {
    // The first RTT after the loss is the minimum.
    let Nv { next_min_rtt, period_end, .. } = state.nv;
    state.nv = Nv { next_min_rtt, period_end, ..Nv::default() };
    [(window * NV_BETA).floor(); 2]
}
