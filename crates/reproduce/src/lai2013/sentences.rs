//! The claims about goodput at several error rates. Each function judges one claim on the results of one path. The
//! figures judge the claims on the path of the figure, and `sensitivity` judges them on other paths.

use super::grid::{Grid, percent_shown};
use super::setting::{NR, NR_PLUS, PR, Plus, Scheme, Variant, W};
use crate::{Found, Judged};

pub(super) const NR_HALF: Variant = Scheme::NewReno.plus(Plus::Half);
/// The ideal differentiator of Fig. 2c. Few packets are lost there; it knows which are only late and waits for them.
pub(super) const IDEAL: Variant = Scheme::IdealPr.plain();
/// The rebate, the ideal compensator and the ideal differentiator: with NewReno, then with TCP-PR.
pub(super) const APPROXIMATIONS: [[Variant; 3]; 2] = [
    [NR_PLUS, Scheme::NewReno.plus(Plus::Ideal), Scheme::IdealDifferentiator.plain()],
    [Scheme::Pr.plus(Plus::Full), Scheme::Pr.plus(Plus::Ideal), Scheme::IdealPr.plain()],
];

/// Judges a claim with both implementations of TCP-PR, because the paper does not say which one it ran. The one on SACK
/// decides. The one on NewReno is only reported.
pub(super) fn on_both(grid: &Grid, find: fn(&Grid, Scheme) -> Found) -> Found {
    let (ours, judged) = find(grid, Scheme::Pr);
    let (on_newreno, also) = find(grid, Scheme::PrOnNewReno);
    (format!("{ours}. TCP-PR on NewReno: {on_newreno} ({})", also.name()), judged)
}

/// Whether the paper calls this error rate low (§IV-A).
fn low(percent: u32) -> bool {
    percent < 5
}

/// Fig. 2a: "significant performance improvement over TCP-NR by up to 100%".
pub(super) fn improves_by_up_to_100(grid: &Grid) -> Found {
    let improvement = grid.pooled(NR_PLUS, NR, &grid.rates(|_| true));
    let (up_to, number) = grid.up_to(NR_PLUS, NR, 1.0);
    let judged = Judged::all([Judged::considerably(&improvement), number]);
    (format!("mean gain over TCP-NR {}; {up_to}", percent_shown(&improvement)), judged)
}

/// Fig. 2a: the gain is above TCP-W's, "especially for the packet error rate lower than 5%".
pub(super) fn more_than_westwood(grid: &Grid, sender: Variant) -> Found {
    let (below, above) = (grid.rates(low), grid.rates(|percent| !low(percent)));
    let more = grid.pooled(sender, W, &grid.rates(|_| true));
    let [low, high] = [&below, &above].map(|rates| percent_shown(&grid.pooled(sender, W, rates)));
    let especially = grid.contrast(sender, W, &below, &above);
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
pub(super) fn similar_observations(grid: &Grid, pr: Scheme) -> Found {
    let (plain, plus) = (pr.plain(), pr.plus(Plus::Full));
    let fall = grid.fall(plain);
    let improvement = grid.pooled(plus, plain, &grid.rates(|_| true));
    let (more, especially) = more_than_westwood(grid, plus);
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
pub(super) fn above_newreno_plus(grid: &Grid, pr: Scheme) -> Found {
    let better = grid.pooled(pr.plus(Plus::Full), NR_PLUS, &grid.rates(|_| true));
    (format!("mean gain over TCP-NR+ {}", percent_shown(&better)), Judged::better(&better))
}

/// Fig. 2c: TCP-PR(+) is the best.
pub(super) fn best(grid: &Grid, pr: Scheme) -> Found {
    let leads = [NR, W, NR_PLUS].map(|other| (other, grid.pooled(pr.plain(), other, &grid.rates(|_| true))));
    let shown = leads.iter().map(|(other, lead)| format!("over {} {}", other.name(), percent_shown(lead)));
    let judged = Judged::all(leads.iter().map(|(_, lead)| Judged::better(lead)));
    (format!("mean gain of TCP-PR {}", shown.collect::<Vec<_>>().join(", ")), judged)
}

/// Fig. 2c: TCP-PR(+) is close to the ideal differentiator.
pub(super) fn close_to_the_ideal(grid: &Grid, pr: Scheme) -> Found {
    let shown = format!("compared with *{}*: {}", IDEAL.name(), grid.gains_shown(pr.plain(), IDEAL));
    (shown, grid.everywhere(pr.plain(), IDEAL, Judged::similar))
}

/// Fig. 2c: a gain of "up to 130%", and more than TCP-W's.
pub(super) fn up_to_130(grid: &Grid) -> Found {
    let (up_to, number) = grid.up_to(NR_PLUS, NR, 1.3);
    let more = grid.pooled(NR_PLUS, W, &grid.rates(|_| true));
    (
        format!("{up_to}; mean gain over TCP-W {}", percent_shown(&more)),
        Judged::all([number, Judged::better(&more)]),
    )
}

/// §IV-A, "To summarize": significant gains in both sets of experiments, but less robust against reordering. The latter
/// is judged as a goodput below TCP-PR(+) with link-layer retransmission.
pub(super) fn gains_in_both_sets(first: &Grid, second: &Grid) -> Found {
    let gains = [first, second].map(|grid| grid.pooled(NR_PLUS, NR, &grid.rates(|_| true)));
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
pub(super) fn costs_22_and_52(grid: &Grid, pr: Scheme) -> Found {
    let (newreno, first) = grid.down_by_up_to(NR_HALF, NR_PLUS, 0.22);
    let (ours, second) = grid.down_by_up_to(pr.plus(Plus::Half), pr.plus(Plus::Full), 0.52);
    (
        format!("half compared with full tax, at worst: TCP-NR+ {newreno}; TCP-PR+ {ours}"),
        Judged::all([first, second]),
    )
}

/// §IV-C: with half of the tax, TCP-NR+ is above TCP-W up to 2 %, and TCP-PR+ up to 7 %.
pub(super) fn still_above_westwood(grid: &Grid, pr: Scheme) -> Found {
    let newreno = grid.pooled(NR_HALF, W, &grid.rates(|percent| percent <= 2));
    let ours = grid.pooled(pr.plus(Plus::Half), W, &grid.rates(|percent| percent <= 7));
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
pub(super) fn still_gains(grid: &Grid, pr: Scheme) -> Found {
    let gains = [(NR_HALF, NR), (pr.plus(Plus::Half), pr.plain())];
    let shown =
        gains.map(|(half, plain)| format!("gain over {}: {}", plain.name(), grid.gains_shown(half, plain)));
    (shown.join("; "), Judged::all(gains.map(|(half, plain)| grid.everywhere(half, plain, Judged::better))))
}

/// §III, footnote 1: the results of RR-TCP+ and TCP-DCR+ are similar to TCP-PR+.
pub(super) fn like_pr_plus(grid: &Grid) -> Found {
    let ours = [Scheme::Rr, Scheme::Dcr].map(|scheme| scheme.plus(Plus::Full));
    let pr = Scheme::Pr.plus(Plus::Full);
    let shown =
        ours.map(|plus| format!("{} compared with TCP-PR+: {}", plus.name(), grid.gains_shown(plus, pr)));
    let all = grid.rates(|_| true);
    (shown.join("; "), Judged::all(ours.map(|plus| Judged::similar(&grid.pooled(plus, pr, &all)))))
}

/// §V: the rebate approximates the ideal compensators.
pub(super) fn is_an_excellent_approximation(grid: &Grid) -> Found {
    let shown = APPROXIMATIONS.map(|[plus, ideal, _]| {
        format!("{} compared with its ideal compensator: {}", plus.name(), grid.gains_shown(plus, ideal))
    });
    let judged = APPROXIMATIONS.map(|[plus, ideal, _]| grid.everywhere(plus, ideal, Judged::similar));
    (shown.join("; "), Judged::all(judged))
}
