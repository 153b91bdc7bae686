//! What does not hold in P3's figures, on other paths and with other segments: each verdict hangs on what the paper does
//! not say, or not. Theorem 1 has its own paths in its figure.

use airtcp_sim::world::WorldError;

use super::super::{Effort, Finding, Judged, Table};
use super::fairness::Shares;
use super::grid::Grid;
use super::sentences::{
    APPROXIMATIONS, IDEAL, NR_HALF, close_to_the_ideal, costs_22_and_52, improves_by_up_to_100,
    is_an_excellent_approximation, like_pr_plus, more_than_westwood, similar_observations,
    still_above_westwood, still_gains, up_to_130,
};
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, W};

const SITES: [(&str, Site); 9] = [
    ("as chosen", Site::ORDINARY),
    ("wire of 10 ms", Site { wire_ms: 10, ..Site::ORDINARY }),
    ("wire of 200 ms", Site { wire_ms: 200, ..Site::ORDINARY }),
    ("radio of 1 Mbit/s", Site { radio_mbit: 1, ..Site::ORDINARY }),
    ("radio of 10 Mbit/s", Site { radio_mbit: 10, ..Site::ORDINARY }),
    ("queue of 15", Site { queue: 15, ..Site::ORDINARY }),
    ("queue of 200", Site { queue: 200, ..Site::ORDINARY }),
    ("MSS 536", Site { mss: 536, ..Site::ORDINARY }),
    ("MSS 1460", Site { mss: 1460, ..Site::ORDINARY }),
];

/// One path: Fig. 1 without and with link-layer retransmission, and the dumbbell.
struct Place {
    loses: Grid,
    reorders: Grid,
    shared: Shares,
}

/// A sentence of the paper: what stands over its column, and its verdict.
type Sentence = (&'static str, fn(&Place) -> Judged);

/// Each sentence about goodput or fairness that does not hold in its figure, or is close to that.
const SENTENCES: [Sentence; 11] = [
    ("2a: by up to 100 %", |place| improves_by_up_to_100(&place.loses).1),
    ("2a: more than TCP-W", |place| more_than_westwood(&place.loses, NR_PLUS).1),
    ("2b: similar observations", |place| similar_observations(&place.loses, Scheme::Pr).1),
    ("2c: PR close to the ideal", |place| close_to_the_ideal(&place.reorders, Scheme::Pr).1),
    ("2c: up to 130 %, more than TCP-W", |place| up_to_130(&place.reorders).1),
    ("4: PR+ as fair", |place| place.shared.are_similar(PR_PLUS, PR)),
    ("half the tax: 22 and 52 %", |place| costs_22_and_52(&place.loses, Scheme::Pr).1),
    ("half the tax: above TCP-W", |place| still_above_westwood(&place.loses, Scheme::Pr).1),
    ("half the tax: gains", |place| still_gains(&place.loses, Scheme::Pr).1),
    ("RR+, DCR+ as PR+", |place| like_pr_plus(&place.loses).1),
    ("an excellent approximation", |place| is_an_excellent_approximation(&place.loses).1),
];

fn run(effort: &Effort, site: Site, over: &Extent) -> Result<Place, WorldError> {
    let pluses = [Scheme::Rr, Scheme::Dcr].map(|scheme| scheme.plus(Plus::Full));
    let approximations = APPROXIMATIONS.map(|[plus, ideal, _]| [plus, ideal]);
    let mut loses: Vec<Variant> = vec![NR, W, NR_HALF, PR, Scheme::Pr.plus(Plus::Half)];
    loses.extend(approximations.into_iter().flatten().chain(pluses));
    // The dumbbell's wires are as much shorter or longer as the other path's.
    let dumbbell = Site { wire_ms: site.wire_ms * Site::DUMBBELL.wire_ms / Site::ORDINARY.wire_ms, ..site };
    Ok(Place {
        loses: Grid::run(effort, Radio::Loses, site, &loses, over)?,
        reorders: Grid::run(effort, Radio::Reorders, site, &[NR, W, NR_PLUS, PR, IDEAL], over)?,
        shared: Shares::run(effort, dumbbell, &[PR, PR_PLUS], over)?,
    })
}

/// Each sentence on each path, at a few error rates. Cost: 324 short runs for each seed.
pub fn paths(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let rates: Vec<_> = over.error_rates.iter().map(|percent| format!("{percent} %")).collect();
    let columns = std::iter::once("path").chain(SENTENCES.iter().map(|(column, _)| *column));
    let mut verdicts = Table::new(
        format!("Whether it holds, at error rates of {}", rates.join(", ")),
        &columns.collect::<Vec<_>>(),
    );
    let mut gains = Table::new(
        format!("Gains at error rates of {}", rates.join(", ")),
        &[
            "path",
            "TCP-NR+ over TCP-NR",
            "TCP-NR+ over TCP-W",
            "TCP-PR+ over TCP-W",
            "half the tax: TCP-NR+",
            "half the tax: TCP-PR+",
            "reordering: TCP-NR+ over TCP-NR",
            "reordering: TCP-NR+ over TCP-W",
        ],
    );
    for (name, site) in SITES {
        let place = run(effort, site, over)?;
        let Place { loses, reorders, .. } = &place;
        gains.row([
            name.to_owned(),
            loses.gains_shown(NR_PLUS, NR),
            loses.gains_shown(NR_PLUS, W),
            loses.gains_shown(PR_PLUS, W),
            loses.gains_shown(NR_HALF, NR_PLUS),
            loses.gains_shown(Scheme::Pr.plus(Plus::Half), PR_PLUS),
            reorders.gains_shown(NR_PLUS, NR),
            reorders.gains_shown(NR_PLUS, W),
        ]);
        let judged = SENTENCES.map(|(_, judge)| judge(&place).name().to_owned());
        verdicts.row([name.to_owned()].into_iter().chain(judged));
    }
    Ok(Finding {
        tables: vec![verdicts, gains],
        choices: vec![
            "Each path differs from the chosen one in what its name says; so does the dumbbell, which keeps its delay otherwise. Runs of \
             250 s, of which the last 200 count; ten seeds at most. With two error rates “up to” is the larger of two."
                .to_owned(),
        ],
        ..Finding::default()
    })
}
