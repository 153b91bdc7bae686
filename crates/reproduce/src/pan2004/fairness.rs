//! Two transfers share a radio link of 192 kbit/s (§4.3.2, Fig. 13).

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::world::WorldError;

use super::clusters;
use super::judging::percent;
use super::senders::{over_z, planned, seeded, within};
use super::setting::{Channel, Setting};
use crate::grid::Grid;
use crate::judge::pooled_gains;
use crate::{At, Claim, Effort, Finding, Judged, Table, claim, column, mean};

/// The recipes of the two flows of a run.
type Pair = [&'static str; 2];
/// The name of a variant, and its pairs of flows: two ordinary ones, and an ordinary one against one with sifest.
type Row = (&'static str, [Pair; 2]);
/// Acknowledged packets of both flows, by z.
type Cells = Grid<Pair, f64, [f64; 2]>;

const ORDINARY: Pair = ["tahoe", "tahoe"];
const AGAINST_SIFEST: Pair = ["tahoe", "tahoe+sifest"];
const AGAINST_LIMITED: Pair = ["tahoe", "tahoe+limited-transmit"];
const VARIANTS: [Row; 3] = [
    ("Reno", [["reno", "reno"], ["reno", "reno+sifest"]]),
    ("NewReno", [["newreno", "newreno"], ["newreno", "newreno+sifest"]]),
    ("SACK", [["sack", "sack"], ["sack", "sack+sifest"]]),
];

fn first(both: &[f64; 2]) -> f64 {
    both[0]
}

fn second(both: &[f64; 2]) -> f64 {
    both[1]
}

fn run_pairs(effort: &Effort, pairs: &[Pair], rates: &[f64]) -> Result<Cells, WorldError> {
    let plan = |pair: Pair, z| {
        let recipes = pair.map(str::to_owned).to_vec();
        Ok(Setting { recipes, radio: 192, ..Setting::new(pair[0], Channel::overall(z)) })
    };
    Grid::run(pairs, rates, plan, |settings| {
        effort.sample_named(
            "packets acknowledged of both flows",
            &planned(settings)?,
            seeded,
            |(setting, _), report| [0, 1].map(|flow| setting.acknowledged(&report.flows[flow])),
        )
    })
}

/// The gain of the second flow over its ordinary competitor, averaged over z.
fn gain_over_competitor(cells: &Cells, pair: Pair) -> Mean {
    mean(&pooled_gains(&cells.of(pair, second), &cells.of(pair, first)))
}

pub(super) fn figure_13(effort: &Effort) -> Result<Finding, WorldError> {
    let rates: Vec<f64> = (1..=13).map(|percent| f64::from(percent) / 100.0).collect();
    let cells = run_pairs(effort, &[ORDINARY, AGAINST_SIFEST, AGAINST_LIMITED], &rates)?;
    // In the paper, the only statement about the other variants is that they are similar. Four values of z
    // are enough to judge this.
    let pairs = VARIANTS.map(|(_, pairs)| pairs).concat();
    let others = run_pairs(effort, &pairs, &[0.01, 0.05, 0.09, 0.13])?;
    let flow = |heading: &str, pair, flow: fn(&[f64; 2]) -> f64| cells.column(heading, pair, 0, flow);
    let table = Table::of(
        "Acknowledged packets of two competing Tahoe flows after 100 s: two ordinary ones (A and B), an \
         ordinary one against one with sifest, and an ordinary one against one with Limited Transmit:",
        [
            column("z", |z: &f64| format!("{:.0} %", 100.0 * z)),
            flow("Tahoe A", ORDINARY, first),
            flow("Tahoe B", ORDINARY, second),
            flow("ordinary against sifest", AGAINST_SIFEST, first),
            flow("sifest", AGAINST_SIFEST, second),
            flow("ordinary against Limited Transmit", AGAINST_LIMITED, first),
            flow("Limited Transmit", AGAINST_LIMITED, second),
        ],
        rates,
    );
    let variants = Table::of(
        "Other variants, averaged over z = 1, 5, 9 and 13 %: gain of the sifest flow over its ordinary \
         competitor, and change of the ordinary flow when its competitor uses sifest:",
        [
            column("variant", |(name, _): &Row| (*name).to_owned()),
            column("sifest's gain", |(_, [_, with]): &Row| percent(&gain_over_competitor(&others, *with))),
            column("ordinary flow's change", |(_, [without, with]): &Row| {
                percent(&others.pooled(*with, *without, first))
            }),
        ],
        VARIANTS,
    );
    let line = |name: &str, pair, flow: fn(&[f64; 2]) -> f64| cells.line(pair, name, |z| z, flow);
    let curves = vec![
        line("Tahoe A", ORDINARY, first),
        line("Tahoe B", ORDINARY, second),
        line("ordinary Tahoe", AGAINST_SIFEST, first),
        line("sifest-enhanced Tahoe", AGAINST_SIFEST, second),
    ];
    Ok(Finding {
        tables: vec![table, variants, clusters::fairness(effort)?],
        charts: vec![over_z("Fig. 13: Fairness Validation", "packets acknowledged in 100 s", curves)],
        claims: claims(&cells, &others),
        remarks: vec![format!(
            "Change of the ordinary flow when its competitor uses Limited Transmit: {}.",
            percent(&cells.pooled(AGAINST_LIMITED, ORDINARY, first))
        )],
        ..Finding::default()
    })
}

fn claims(cells: &Cells, others: &Cells) -> Vec<Claim> {
    let (low, high) = (cells.only(within(0.0, 0.0699)), cells.only(within(0.07, 1.0)));
    let difference = gain_over_competitor(cells, ORDINARY);
    // The difference at each z is a share of A's mean at that z.
    let [few, many] =
        [&low, &high].map(|cells| pooled_gains(&cells.of(ORDINARY, second), &cells.of(ORDINARY, first)));
    let change = mean(&differences(&many, &few));
    let gain = gain_over_competitor(&high, AGAINST_SIFEST);
    let [cost, cost_high] = [cells, &high].map(|cells| cells.pooled(AGAINST_SIFEST, ORDINARY, first));
    vec![
        claim(
            At("§4.3.2, Fig. 13"),
            "“Due to the phase effect between any two competing TCP connections, Fig. 13 shows that there is \
             a slight performance difference between Tahoe A and Tahoe B, but the difference is almost \
             independent of *z*.” (Here: the difference is at most 10 % in either direction, and so is its \
             change from low to high z.)",
            format!(
                "B's gain over A: {}. Gain at z ≥ 7 % minus gain at lower z: {}",
                percent(&difference),
                percent(&change)
            ),
            Judged::all([Judged::similar(&difference), Judged::similar(&change)]),
        ),
        claim(
            At("§4.3.2, Fig. 13"),
            "“Fig. 13 illustrates the *sif*est-enhanced Tahoe A outperforms the ordinary Tahoe B \
             significantly when *z* goes higher.”",
            format!("{} more packets with sifest, averaged over z ≥ 7 %", percent(&gain)),
            Judged::considerably(&gain),
        ),
        claim(
            At("§4.3.2, Fig. 13"),
            "“However, the ordinary Tahoe B that is competing with the *sif*est-enhanced Tahoe A has almost \
             the same performance as that when it runs with an ordinary Tahoe.”",
            format!(
                "Change of the ordinary flow when its competitor uses sifest: {} averaged over all z, {} \
                 over z ≥ 7 %",
                percent(&cost),
                percent(&cost_high)
            ),
            Judged::similar(&cost),
        ),
        other_variants(others),
    ]
}

/// "Similar simulation evaluations": in each variant, sifest changes the packets of the ordinary competitor by at most
/// 10 %.
fn other_variants(others: &Cells) -> Claim {
    let costs = VARIANTS.map(|(_, [without, with])| others.pooled(with, without, first));
    let [reno, newreno, sack] = costs.each_ref().map(percent);
    claim(
        At("§4.3.2"),
        "“Similar simulation evaluations indicate that the *sif*est-enhanced Reno, NewReno and SACK also \
         have the fairness and compatibility properties with ordinary TCP variants.”",
        format!(
            "Change of the ordinary flow when its competitor uses sifest: Reno {reno}, NewReno {newreno}, \
             SACK {sack}"
        ),
        Judged::all(costs.iter().map(Judged::similar)),
    )
}
