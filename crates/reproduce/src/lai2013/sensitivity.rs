//! Judges the claims that do not hold, or hold narrowly, on paths with other delays, rates, queues and segment sizes.
//! The paper does not give these values, and this figure shows which verdicts depend on them. `theorem` does the same
//! for Theorem 1.

use airtcp_sim::world::WorldError;

use super::comparison::Comparison;
use super::fairness::Shares;
use super::sentences::{
    APPROXIMATIONS, IDEAL, NR_HALF, close_to_the_ideal, costs_22_and_52, improves_by_up_to_100,
    is_an_excellent_approximation, like_pr_plus, more_than_westwood, similar_observations,
    still_above_westwood, still_gains, up_to_130,
};
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, W};
use crate::{Effort, Finding, Judged, Table, column};

const SITES: [(&str, Site); 9] = [
    ("reference path", Site::ORDINARY),
    ("wire delay 10 ms", Site { wire_ms: 10, ..Site::ORDINARY }),
    ("wire delay 200 ms", Site { wire_ms: 200, ..Site::ORDINARY }),
    ("radio rate 1 Mbit/s", Site { radio_mbit: 1, ..Site::ORDINARY }),
    ("radio rate 10 Mbit/s", Site { radio_mbit: 10, ..Site::ORDINARY }),
    ("queue of 15 packets", Site { queue: 15, ..Site::ORDINARY }),
    ("queue of 200 packets", Site { queue: 200, ..Site::ORDINARY }),
    ("MSS 536 bytes", Site { mss: 536, ..Site::ORDINARY }),
    ("MSS 1460 bytes", Site { mss: 1460, ..Site::ORDINARY }),
];

/// The results on one path: Fig. 1 without and with link-layer retransmission, and the dumbbell of Fig. 3.
struct PathResults {
    loses: Comparison,
    reorders: Comparison,
    shared: Shares,
}

/// A claim of the paper: the heading of its column, and the function that judges it.
type Sentence = (&'static str, fn(&PathResults) -> Judged);

/// The claims about goodput or fairness that do not hold in their own figure, or hold narrowly.
const SENTENCES: [Sentence; 11] = [
    ("Fig. 2a: up to 100 %", |path| improves_by_up_to_100(&path.loses).1),
    ("Fig. 2a: above TCP-W", |path| more_than_westwood(&path.loses, NR_PLUS).1),
    ("Fig. 2b: like Fig. 2a", |path| similar_observations(&path.loses, Scheme::Pr).1),
    ("Fig. 2c: PR near ideal", |path| close_to_the_ideal(&path.reorders, Scheme::Pr).1),
    ("Fig. 2c: 130 %, above TCP-W", |path| up_to_130(&path.reorders).1),
    ("Fig. 4: PR+ fairness", |path| path.shared.are_similar(PR_PLUS, PR)),
    ("half tax: 22 %, 52 %", |path| costs_22_and_52(&path.loses, Scheme::Pr).1),
    ("half tax: above TCP-W", |path| still_above_westwood(&path.loses, Scheme::Pr).1),
    ("half tax: gains", |path| still_gains(&path.loses, Scheme::Pr).1),
    ("RR+, DCR+ like PR+", |path| like_pr_plus(&path.loses).1),
    ("§V: excellent approximation", |path| is_an_excellent_approximation(&path.loses).1),
];

/// A gain: the heading of its column, and its text.
type Gain = (&'static str, fn(&PathResults) -> String);

const GAINS: [Gain; 7] = [
    ("TCP-NR+ over TCP-NR", |path| path.loses.gains_shown(NR_PLUS, NR)),
    ("TCP-NR+ over TCP-W", |path| path.loses.gains_shown(NR_PLUS, W)),
    ("TCP-PR+ over TCP-W", |path| path.loses.gains_shown(PR_PLUS, W)),
    ("TCP-NR+: half over full tax", |path| path.loses.gains_shown(NR_HALF, NR_PLUS)),
    ("TCP-PR+: half over full tax", |path| path.loses.gains_shown(Scheme::Pr.plus(Plus::Half), PR_PLUS)),
    ("reordering: TCP-NR+ over TCP-NR", |path| path.reorders.gains_shown(NR_PLUS, NR)),
    ("reordering: TCP-NR+ over TCP-W", |path| path.reorders.gains_shown(NR_PLUS, W)),
];

/// The name and the results of a path.
type Row = (&'static str, PathResults);

fn run(effort: &Effort, site: Site, extent: &Extent) -> Result<PathResults, WorldError> {
    let pluses = [Scheme::Rr, Scheme::Dcr].map(|scheme| scheme.plus(Plus::Full));
    let approximations = APPROXIMATIONS.map(|[plus, ideal, _]| [plus, ideal]);
    let mut loses: Vec<Variant> = vec![NR, W, NR_HALF, PR, Scheme::Pr.plus(Plus::Half)];
    loses.extend(approximations.into_iter().flatten().chain(pluses));
    // The delay of the dumbbell's access links changes by the same factor as the wire's.
    let dumbbell = Site { wire_ms: site.wire_ms * Site::DUMBBELL.wire_ms / Site::ORDINARY.wire_ms, ..site };
    Ok(PathResults {
        loses: Comparison::run(effort, Radio::Loses, site, &loses, extent)?,
        reorders: Comparison::run(effort, Radio::Reorders, site, &[NR, W, NR_PLUS, PR, IDEAL], extent)?,
        shared: Shares::run(effort, dumbbell, &[PR, PR_PLUS], extent)?,
    })
}

/// Judges each claim on each path, at a few error rates. Cost: 324 short runs per seed.
pub fn sensitivity_to_paths(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let rates: Vec<_> = extent.error_rates.iter().map(|percent| format!("{percent} %")).collect();
    let results = SITES
        .into_iter()
        .map(|(name, site)| Ok((name, run(effort, site, extent)?)))
        .collect::<Result<Vec<Row>, WorldError>>()?;
    let verdict =
        |(heading, judge): Sentence| column(heading, move |(_, path): &&Row| judge(path).name().to_owned());
    let gain = |(heading, shown): (&str, fn(&PathResults) -> String)| {
        column(heading, move |(_, path): &&Row| shown(path))
    };
    let path = || column("path", |(name, _): &&Row| (*name).to_owned());
    let verdicts = Table::of(
        format!("Verdicts by path and claim, at error rates of {}", rates.join(", ")),
        [path()].into_iter().chain(SENTENCES.map(verdict)),
        &results,
    );
    let gains = Table::of(
        format!("Gains in goodput by path, at error rates of {}", rates.join(", ")),
        [path()].into_iter().chain(GAINS.map(gain)),
        &results,
    );
    Ok(Finding { tables: vec![verdicts, gains], ..Finding::default() })
}
