//! Chooses the names from the errors of the replay and from certain signs.

use super::replay::{Candidate, MAX_ERROR, Replay};
use super::signs::{hybla_starts, min_rtt_probes};
use super::{Observed, models};
use crate::connection::findings::{Confidence, CongestionControl, CongestionControlFindings};

/// The largest error of a model that can still be the right one.
const MAX_BEST_ERROR: f64 = 0.5;
/// The largest error of such a model in its growth, or in its reductions.
const MAX_WORST_ERROR: f64 = 0.6;
/// A model leads if the next error is at least this multiple of its own error. Such a model can have a larger error,
/// because its deviations are noise.
const LEAD: f64 = 1.8;
const MAX_ERROR_OF_LEADER: f64 = 1.0;
/// The largest mean error of the reductions without a loss that a model with such reductions can have.
const MAX_ERROR_OF_FALLS: f64 = 1.5;
/// The ratio of these errors of two models that excludes one of them.
const RATIO_OF_FALLS: f64 = 2.0;
/// BBR is possible only if the mean window after a loss is at least this fraction of the window before.
const MIN_KEPT_BY_BBR: f64 = 0.65;
/// A model is certain if its error is below this value and the errors of the others are far larger.
const SMALL_ERROR: f64 = 0.3;
/// Minimum number of rounds.
const MIN_ROUNDS: usize = 24;
/// Minimum growth in segments that shows a congestion control without a loss.
const MIN_GROWN: f64 = 10.0;
/// A model is as good as the best one if its error is below the best error times the factor plus the margin: with
/// several losses, with one or two, and without any.
const FACTOR: f64 = 1.5;
const MARGIN: f64 = 0.03;
const MARGIN_WITH_FEW_LOSSES: f64 = 0.08;
const MARGIN_WITHOUT_LOSSES: f64 = 0.12;
/// Maximum number of names to choose from.
const MAX_NAMES: usize = 3;
/// The amount by which Hybla's small initial window reduces its error.
const HYBLA_BONUS: f64 = 0.4;

/// The error of one candidate.
struct Score<'a> {
    candidate: &'a Candidate,
    /// The mean of the errors of the growth and of the reductions, with the handicap of the model.
    error: f64,
    /// The larger of the two errors.
    worst: f64,
}

/// Names the congestion control of a sender.
pub(in crate::connection) fn identify(observed: &Observed) -> CongestionControlFindings {
    let is_dctcp = observed.syn_is_ecn_capable;
    if observed.rounds.len() < MIN_ROUNDS && !is_dctcp {
        return CongestionControlFindings::default();
    }
    let segment = f64::from(observed.segment.max(1));
    let replay = Replay::run(observed, segment);
    let scores = scores(&replay, observed);
    let best = scores.first().map_or(MAX_ERROR, |best| best.error);
    let probes = min_rtt_probes(&observed.rounds, segment);
    let reduces = replay.losses >= 3 && replay.kept.mean().is_some_and(|kept| kept < MIN_KEPT_BY_BBR);
    if probes >= 2 && !(reduces && best <= MAX_BEST_ERROR) || probes == 1 && best > MAX_BEST_ERROR && !reduces
    {
        let times = if probes == 1 { "once".to_owned() } else { format!("{probes} times") };
        return named(
            &[CongestionControl::Bbr],
            if probes >= 2 { Confidence::High } else { Confidence::Medium },
            format!(
                "{times}, at most four segments are in flight for 0.2 s without a loss, then as many as before"
            ),
        );
    }
    if is_dctcp {
        return named(
            &[CongestionControl::Dctcp],
            Confidence::High,
            "the SYN is ECN-capable (RFC 8257)".to_owned(),
        );
    }
    by_replay(&replay, &scores)
}

fn named(names: &[CongestionControl], confidence: Confidence, evidence: String) -> CongestionControlFindings {
    CongestionControlFindings {
        name: names.first().copied(),
        or: names.iter().skip(1).copied().collect(),
        confidence,
        evidence: Some(evidence),
    }
}

/// Returns the errors of the candidates, the smallest first.
fn scores<'a>(replay: &'a Replay, observed: &Observed) -> Vec<Score<'a>> {
    let mut scores = Vec::new();
    let falls = replay.candidates.iter().filter_map(|candidate| candidate.falls.mean());
    let most_falls = falls.map(|error| RATIO_OF_FALLS * error).fold(MAX_ERROR_OF_FALLS, f64::min);
    for candidate in &replay.candidates {
        let name = candidate.model.name;
        let has_falls = candidate.falls.mean().is_some_and(|error| error <= most_falls);
        if candidate.model.kept_without_loss.is_some() && !has_falls {
            continue;
        }
        let Some(growth) = candidate.growth.mean() else { continue };
        let reduction = candidate.reduction.mean().unwrap_or(growth);
        let bonus = match hybla_starts(observed.initial_segments, replay.path.base_rtt) {
            Some(false) if name == CongestionControl::Hybla => continue,
            Some(true) if name == CongestionControl::Hybla => HYBLA_BONUS,
            _ => 0.0,
        };
        let error = ((growth + reduction) / 2.0 - bonus + candidate.model.handicap).max(0.0);
        scores.push(Score { candidate, error, worst: growth.max(reduction) });
    }
    scores.sort_by(|a, b| a.error.total_cmp(&b.error));
    // Some have two models.
    let mut seen = Vec::new();
    scores.retain(|score| {
        let is_first = !seen.contains(&score.name());
        seen.push(score.name());
        is_first
    });
    scores
}

impl Score<'_> {
    fn name(&self) -> CongestionControl {
        self.candidate.model.name
    }
}

/// Returns the candidates that predict the rounds best.
fn by_replay(replay: &Replay, scores: &[Score<'_>]) -> CongestionControlFindings {
    let (losses, rounds) = (replay.losses, replay.growth_rounds);
    let (is_enough, margin) = match losses {
        0 => (rounds >= 60, MARGIN_WITHOUT_LOSSES),
        1 | 2 => (rounds >= 40, MARGIN_WITH_FEW_LOSSES),
        _ => (rounds >= 5 && rounds + 3 * losses >= 33, MARGIN),
    };
    let second = scores.get(1).map_or(MAX_ERROR, |second| second.error);
    let is_good = |best: &&Score<'_>| {
        let leads = best.error <= MAX_ERROR_OF_LEADER && second >= LEAD * best.error;
        is_enough && (best.error <= MAX_BEST_ERROR && best.worst <= MAX_WORST_ERROR || leads)
    };
    let Some(best) = scores.first().filter(is_good) else {
        return CongestionControlFindings::default();
    };
    let keeps_queue =
        matches!(best.name(), CongestionControl::Vegas | CongestionControl::Nv | CongestionControl::Cdg);
    if losses == 0 && replay.grown < MIN_GROWN && !keeps_queue {
        return CongestionControlFindings::default();
    }
    let near = |times: f64| {
        let limit = times * (FACTOR * best.error + margin);
        scores.iter().filter(move |score| score.error < limit)
    };
    let names: Vec<_> = near(1.0).map(Score::name).collect();
    if names.len() > MAX_NAMES {
        return CongestionControlFindings::default();
    }
    let is_clear = best.error <= SMALL_ERROR && near(2.0).count() == 1;
    let mut evidence = format!(
        "{}; predicts {losses} losses and {rounds} round trips with a mean error of {:.2} tolerances",
        models::description(best.candidate.model),
        best.error,
    );
    if let Some(next) = scores.get(1) {
        evidence += &format!(" ({}: {:.2})", next.name(), next.error);
    }
    named(&names, if is_clear { Confidence::High } else { Confidence::Medium }, evidence)
}
