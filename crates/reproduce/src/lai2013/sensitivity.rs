//! Judges the claims that do not hold, or hold narrowly, on paths with other delays, rates, queues and segment sizes.
//! The paper does not give these values, and this figure shows which verdicts depend on them. `theorem` does the same
//! for Theorem 1.

use airtcp_sim::world::WorldError;

use super::fairness::Shares;
use super::grid::Grid;
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
struct Place {
    loses: Grid,
    reorders: Grid,
    shared: Shares,
}

/// A claim of the paper: the heading of its column, and the function that judges it.
type Sentence = (&'static str, fn(&Place) -> Judged);

/// The claims about goodput or fairness that do not hold in their own figure, or hold narrowly.
const SENTENCES: [Sentence; 11] = [
    ("Fig. 2a: up to 100 %", |place| improves_by_up_to_100(&place.loses).1),
    ("Fig. 2a: above TCP-W", |place| more_than_westwood(&place.loses, NR_PLUS).1),
    ("Fig. 2b: like Fig. 2a", |place| similar_observations(&place.loses, Scheme::Pr).1),
    ("Fig. 2c: PR near ideal", |place| close_to_the_ideal(&place.reorders, Scheme::Pr).1),
    ("Fig. 2c: 130 %, above TCP-W", |place| up_to_130(&place.reorders).1),
    ("Fig. 4: PR+ fairness", |place| place.shared.are_similar(PR_PLUS, PR)),
    ("half tax: 22 %, 52 %", |place| costs_22_and_52(&place.loses, Scheme::Pr).1),
    ("half tax: above TCP-W", |place| still_above_westwood(&place.loses, Scheme::Pr).1),
    ("half tax: gains", |place| still_gains(&place.loses, Scheme::Pr).1),
    ("RR+, DCR+ like PR+", |place| like_pr_plus(&place.loses).1),
    ("§V: excellent approximation", |place| is_an_excellent_approximation(&place.loses).1),
];

/// A gain: the heading of its column, and its text.
type Gain = (&'static str, fn(&Place) -> String);

const GAINS: [Gain; 7] = [
    ("TCP-NR+ over TCP-NR", |place| place.loses.gains_shown(NR_PLUS, NR)),
    ("TCP-NR+ over TCP-W", |place| place.loses.gains_shown(NR_PLUS, W)),
    ("TCP-PR+ over TCP-W", |place| place.loses.gains_shown(PR_PLUS, W)),
    ("TCP-NR+: half over full tax", |place| place.loses.gains_shown(NR_HALF, NR_PLUS)),
    ("TCP-PR+: half over full tax", |place| place.loses.gains_shown(Scheme::Pr.plus(Plus::Half), PR_PLUS)),
    ("reordering: TCP-NR+ over TCP-NR", |place| place.reorders.gains_shown(NR_PLUS, NR)),
    ("reordering: TCP-NR+ over TCP-W", |place| place.reorders.gains_shown(NR_PLUS, W)),
];

/// The name of a path, and the results on it.
type Row = (&'static str, Place);

fn run(effort: &Effort, site: Site, over: &Extent) -> Result<Place, WorldError> {
    let pluses = [Scheme::Rr, Scheme::Dcr].map(|scheme| scheme.plus(Plus::Full));
    let approximations = APPROXIMATIONS.map(|[plus, ideal, _]| [plus, ideal]);
    let mut loses: Vec<Variant> = vec![NR, W, NR_HALF, PR, Scheme::Pr.plus(Plus::Half)];
    loses.extend(approximations.into_iter().flatten().chain(pluses));
    // The delay of the dumbbell's access links changes by the same factor as the wire's.
    let dumbbell = Site { wire_ms: site.wire_ms * Site::DUMBBELL.wire_ms / Site::ORDINARY.wire_ms, ..site };
    Ok(Place {
        loses: Grid::run(effort, Radio::Loses, site, &loses, over)?,
        reorders: Grid::run(effort, Radio::Reorders, site, &[NR, W, NR_PLUS, PR, IDEAL], over)?,
        shared: Shares::run(effort, dumbbell, &[PR, PR_PLUS], over)?,
    })
}

/// Judges each claim on each path, at a few error rates. Cost: 324 short runs per seed.
pub fn paths(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let rates: Vec<_> = over.error_rates.iter().map(|percent| format!("{percent} %")).collect();
    let places = SITES
        .into_iter()
        .map(|(name, site)| Ok((name, run(effort, site, over)?)))
        .collect::<Result<Vec<Row>, WorldError>>()?;
    let verdict =
        |(heading, judge): Sentence| column(heading, move |(_, place): &&Row| judge(place).name().to_owned());
    let gain = |(heading, shown): (&str, fn(&Place) -> String)| {
        column(heading, move |(_, place): &&Row| shown(place))
    };
    let path = || column("path", |(name, _): &&Row| (*name).to_owned());
    let verdicts = Table::of(
        format!("Verdicts by path and claim, at error rates of {}", rates.join(", ")),
        [path()].into_iter().chain(SENTENCES.map(verdict)),
        &places,
    );
    let gains = Table::of(
        format!("Gains in goodput by path, at error rates of {}", rates.join(", ")),
        [path()].into_iter().chain(GAINS.map(gain)),
        &places,
    );
    Ok(Finding { tables: vec![verdicts, gains], ..Finding::default() })
}
