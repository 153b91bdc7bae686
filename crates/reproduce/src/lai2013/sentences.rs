//! The claims about goodput at several error rates. Each function judges one claim on the results of one path. The
//! figures judge the claims on the path of the figure, and `sensitivity` judges them on other paths.

use super::comparison::{Comparison, percent_shown};
use super::setting::{NR, NR_PLUS, PR, Plus, Scheme, Variant, W};
use crate::{Found, Judged};

pub(super) const NR_HALF: Variant = Scheme::NewReno.plus(Plus::Half);
/// The ideal differentiator of Fig. 2c. Few packets are lost there. The sender knows which packets are late,
/// and waits.
pub(super) const IDEAL: Variant = Scheme::IdealPr.plain();
/// The rebate, the ideal compensator and the ideal differentiator: with NewReno, then with TCP-PR.
pub(super) const APPROXIMATIONS: [[Variant; 3]; 2] = [
    [NR_PLUS, Scheme::NewReno.plus(Plus::Ideal), Scheme::IdealDifferentiator.plain()],
    [Scheme::Pr.plus(Plus::Full), Scheme::Pr.plus(Plus::Ideal), Scheme::IdealPr.plain()],
];

/// Judges a claim with both implementations of TCP-PR, because the paper does not say which one it ran. TCP-PR on SACK
/// decides. TCP-PR on NewReno is only reported.
pub(super) fn on_both(comparison: &Comparison, judge: fn(&Comparison, Scheme) -> Found) -> Found {
    let (ours, judged) = judge(comparison, Scheme::Pr);
    let (on_newreno, also) = judge(comparison, Scheme::PrOnNewReno);
    (format!("{ours}. TCP-PR on NewReno: {on_newreno} ({})", also.name()), judged)
}

/// Whether the paper calls this error rate low (§IV-A).
fn low(percent: u32) -> bool {
    percent < 5
}

/// Fig. 2a: "significant performance improvement over TCP-NR by up to 100%".
pub(super) fn improves_by_up_to_100(comparison: &Comparison) -> Found {
    let improvement = comparison.pooled(NR_PLUS, NR, &comparison.rates(|_| true));
    let (up_to, number) = comparison.up_to(NR_PLUS, NR, 1.0);
    let judged = Judged::all([Judged::considerably(&improvement), number]);
    (format!("mean gain over TCP-NR {}; {up_to}", percent_shown(&improvement)), judged)
}

/// Fig. 2a: the gain is above TCP-W's, "especially for the packet error rate lower than 5%".
pub(super) fn more_than_westwood(comparison: &Comparison, sender: Variant) -> Found {
    let (below, above) = (comparison.rates(low), comparison.rates(|percent| !low(percent)));
    let more = comparison.pooled(sender, W, &comparison.rates(|_| true));
    let [low, high] = [&below, &above].map(|rates| percent_shown(&comparison.pooled(sender, W, rates)));
    let especially = comparison.contrast(sender, W, &below, &above);
    (
        format!(
            "mean gain of {} over TCP-W {} ({low} below 5 %, {high} above)",
            sender.name(),
            percent_shown(&more)
        ),
        Judged::all([Judged::better(&more), Judged::above_zero(&especially)]),
    )
}

/// Fig. 2b: TCP-PR and TCP-PR+ behave like TCP-NR and TCP-NR+ in Fig. 2a.
pub(super) fn similar_observations(comparison: &Comparison, pr: Scheme) -> Found {
    let (plain, plus) = (pr.plain(), pr.plus(Plus::Full));
    let fall = comparison.fall(plain);
    let improvement = comparison.pooled(plus, plain, &comparison.rates(|_| true));
    let (more, especially) = more_than_westwood(comparison, plus);
    let judged = Judged::all([Judged::considerably(&fall), Judged::considerably(&improvement), especially]);
    (
        format!(
            "fall of TCP-PR {} of its mean goodput; mean gain of TCP-PR+ over TCP-PR {}; {more}",
            percent_shown(&fall),
            percent_shown(&improvement)
        ),
        judged,
    )
}

/// Fig. 2b: TCP-PR+ is above TCP-NR+.
pub(super) fn above_newreno_plus(comparison: &Comparison, pr: Scheme) -> Found {
    let better = comparison.pooled(pr.plus(Plus::Full), NR_PLUS, &comparison.rates(|_| true));
    (format!("mean gain over TCP-NR+ {}", percent_shown(&better)), Judged::better(&better))
}

/// Fig. 2c: TCP-PR(+) is the best.
pub(super) fn best(comparison: &Comparison, pr: Scheme) -> Found {
    let leads = [NR, W, NR_PLUS]
        .map(|other| (other, comparison.pooled(pr.plain(), other, &comparison.rates(|_| true))));
    let shown = leads.iter().map(|(other, lead)| format!("over {} {}", other.name(), percent_shown(lead)));
    let judged = Judged::all(leads.iter().map(|(_, lead)| Judged::better(lead)));
    (format!("mean gain of TCP-PR {}", shown.collect::<Vec<_>>().join(", ")), judged)
}

/// Fig. 2c: TCP-PR(+) is close to the ideal differentiator.
pub(super) fn close_to_the_ideal(comparison: &Comparison, pr: Scheme) -> Found {
    let shown = format!("compared with *{}*: {}", IDEAL.name(), comparison.gains_shown(pr.plain(), IDEAL));
    (shown, comparison.everywhere(pr.plain(), IDEAL, Judged::similar))
}

/// Fig. 2c: a gain of "up to 130%", and more than TCP-W's.
pub(super) fn up_to_130(comparison: &Comparison) -> Found {
    let (up_to, number) = comparison.up_to(NR_PLUS, NR, 1.3);
    let more = comparison.pooled(NR_PLUS, W, &comparison.rates(|_| true));
    (
        format!("{up_to}; mean gain over TCP-W {}", percent_shown(&more)),
        Judged::all([number, Judged::better(&more)]),
    )
}

/// §IV-A, "To summarize": significant gains in both sets of experiments, but less robust against reordering. Less
/// robust means a goodput below TCP-PR(+) with link-layer retransmission.
pub(super) fn gains_in_both_sets(first: &Comparison, second: &Comparison) -> Found {
    let gains = [first, second].map(|comparison| comparison.pooled(NR_PLUS, NR, &comparison.rates(|_| true)));
    let ahead = second.pooled(PR, NR_PLUS, &second.rates(|_| true));
    let [losing, reordering] = gains.each_ref().map(percent_shown);
    let parts = gains.iter().map(Judged::considerably).chain([Judged::better(&ahead)]);
    (
        format!(
            "mean gain of TCP-NR+ over TCP-NR {losing} without and {reordering} with link-layer \
             retransmission; with it, TCP-PR(+) over TCP-NR+ {}",
            percent_shown(&ahead)
        ),
        Judged::all(parts),
    )
}

/// §IV-C: half of the tax costs "up to 22%" (TCP-NR+) and "up to 52%" (TCP-PR+).
pub(super) fn costs_22_and_52(comparison: &Comparison, pr: Scheme) -> Found {
    let (newreno, first) = comparison.down_by_up_to(NR_HALF, NR_PLUS, 0.22);
    let (ours, second) = comparison.down_by_up_to(pr.plus(Plus::Half), pr.plus(Plus::Full), 0.52);
    (
        format!("half compared with full tax, at worst: TCP-NR+ {newreno}; TCP-PR+ {ours}"),
        Judged::all([first, second]),
    )
}

/// §IV-C: with half of the tax, TCP-NR+ is above TCP-W up to 2 %, and TCP-PR+ up to 7 %.
pub(super) fn still_above_westwood(comparison: &Comparison, pr: Scheme) -> Found {
    let newreno = comparison.pooled(NR_HALF, W, &comparison.rates(|percent| percent <= 2));
    let ours = comparison.pooled(pr.plus(Plus::Half), W, &comparison.rates(|percent| percent <= 7));
    (
        format!(
            "mean gain over TCP-W: TCP-NR+ {} at error rates up to 2 %, TCP-PR+ {} at error rates up to 7 %",
            percent_shown(&newreno),
            percent_shown(&ours)
        ),
        Judged::all([Judged::better(&newreno), Judged::better(&ours)]),
    )
}

/// §IV-C: with half of the tax, both still gain over the senders without the rebate at all error rates.
pub(super) fn still_gains(comparison: &Comparison, pr: Scheme) -> Found {
    let gains = [(NR_HALF, NR), (pr.plus(Plus::Half), pr.plain())];
    let shown = gains
        .map(|(half, plain)| format!("gain over {}: {}", plain.name(), comparison.gains_shown(half, plain)));
    (
        shown.join("; "),
        Judged::all(gains.map(|(half, plain)| comparison.everywhere(half, plain, Judged::better))),
    )
}

/// §III, footnote 1: the results of RR-TCP+ and TCP-DCR+ are similar to TCP-PR+.
pub(super) fn like_pr_plus(comparison: &Comparison) -> Found {
    let ours = [Scheme::Rr, Scheme::Dcr].map(|scheme| scheme.plus(Plus::Full));
    let pr = Scheme::Pr.plus(Plus::Full);
    let shown = ours
        .map(|plus| format!("{} compared with TCP-PR+: {}", plus.name(), comparison.gains_shown(plus, pr)));
    let all = comparison.rates(|_| true);
    (shown.join("; "), Judged::all(ours.map(|plus| Judged::similar(&comparison.pooled(plus, pr, &all)))))
}

/// §V: the rebate approximates the ideal compensators.
pub(super) fn is_an_excellent_approximation(comparison: &Comparison) -> Found {
    let shown = APPROXIMATIONS.map(|[plus, ideal, _]| {
        format!(
            "{} compared with its ideal compensator: {}",
            plus.name(),
            comparison.gains_shown(plus, ideal)
        )
    });
    let judged = APPROXIMATIONS.map(|[plus, ideal, _]| comparison.everywhere(plus, ideal, Judged::similar));
    (shown.join("; "), Judged::all(judged))
}
