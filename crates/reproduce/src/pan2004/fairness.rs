//! Two transfers share a radio link of 192 kbit/s (§4.3.2, Fig. 13).

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::world::WorldError;

use super::judging::{claim, percent};
use super::setting::{Channel, Setting};
use super::throughput::over_z;
use super::{between, clusters, only, planned, seeded};
use crate::chart::{Axis, Chart, Scale};
use crate::judge::{across, pooled_gains};
use crate::{Claim, Effort, Finding, Judged, Table, mean, shown};

/// The two flows of each run, by variant. An ordinary flow competes with the second one.
const PAIRS: [(&str, [&str; 2]); 9] = [
    ("Tahoe", ["tahoe", "tahoe"]),
    ("Tahoe", ["tahoe", "tahoe+sifest"]),
    ("Tahoe", ["tahoe", "tahoe+limited-transmit"]),
    ("Reno", ["reno", "reno"]),
    ("Reno", ["reno", "reno+sifest"]),
    ("NewReno", ["newreno", "newreno"]),
    ("NewReno", ["newreno", "newreno+sifest"]),
    ("SACK", ["sack", "sack"]),
    ("SACK", ["sack", "sack+sifest"]),
];

/// Packets of both flows of a pair in [`PAIRS`]: `[flow][z][seed]`.
type Both = [Vec<Vec<f64>>; 2];

pub(super) fn figure_13(effort: &Effort) -> Result<Finding, WorldError> {
    let rates: Vec<f64> = (1..=13).map(|percent| f64::from(percent) / 100.0).collect();
    // The paper only says that the other variants are similar. Four values of z are enough to judge that.
    let some = [0.01, 0.05, 0.09, 0.13];
    let rates_of = |variant: &str| if variant == "Tahoe" { rates.clone() } else { some.to_vec() };
    let setting = |pair: [&'static str; 2], z: f64| Setting {
        recipes: pair.map(str::to_owned).to_vec(),
        radio: 192,
        ..Setting::new(pair[0], Channel::overall(z))
    };
    let settings: Vec<_> = PAIRS
        .iter()
        .flat_map(|(variant, pair)| rates_of(variant).into_iter().map(|z| setting(*pair, z)))
        .collect();
    let found = effort.sample(&planned(&settings)?, seeded, |(setting, _), report| {
        [0, 1].map(|flow| setting.acknowledged(&report.flows[flow]))
    })?;
    let mut rest = found.into_iter();
    let pairs: Vec<Both> = PAIRS
        .iter()
        .map(|(variant, _)| {
            let points: Vec<_> = rest.by_ref().take(rates_of(variant).len()).collect();
            [0, 1].map(|flow| {
                points.iter().map(|seeds| seeds.iter().map(|both| both[flow]).collect()).collect()
            })
        })
        .collect();

    let mut table = Table::new(
        "Acknowledged packets of two competing Tahoe flows after 100 s: two ordinary ones (A and B), an ordinary one against one with sifest, and an ordinary one against one with Limited Transmit:",
        &[
            "z",
            "Tahoe A",
            "Tahoe B",
            "ordinary against sifest",
            "sifest",
            "ordinary against Limited Transmit",
            "Limited Transmit",
        ],
    );
    for (point, z) in rates.iter().enumerate() {
        let cells = pairs[..3].iter().flatten().map(|curve| shown(&mean(&curve[point]), 0));
        table.row([format!("{:.0} %", 100.0 * z)].into_iter().chain(cells));
    }
    let mut variants = Table::new(
        "Other variants, averaged over z = 1, 5, 9 and 13 %: gain of the sifest flow over its ordinary competitor, and change of the ordinary flow when its competitor uses sifest:",
        &["variant", "sifest's gain", "ordinary flow's change"],
    );
    for (index, name) in [(3, "Reno"), (5, "NewReno"), (7, "SACK")] {
        let [ordinary, enhanced] = &pairs[index + 1];
        let cost = pooled_gains(ordinary, &pairs[index][0]);
        let ahead = pooled_gains(enhanced, ordinary);
        variants.row([name.to_owned(), percent(&mean(&ahead)), percent(&mean(&cost))]);
    }

    let [a, b] = &pairs[0];
    let [ordinary, sifest] = &pairs[1];
    let (low, high) = (between(&rates, 0.0, 0.0699), between(&rates, 0.07, 1.0));
    let apart = mean(&pooled_gains(b, a));
    // The difference at each z is a share of A's mean at that z. `moves` compares high with low z.
    let by_z: Vec<Vec<f64>> = a.iter().zip(b).map(|(a, b)| gains(b, a)).collect();
    let [few, many] = [&low, &high].map(|points| across(&only(&by_z, points)));
    let moves = mean(&many.iter().zip(&few).map(|(many, few)| many - few).collect::<Vec<_>>());
    let ahead = mean(&pooled_gains(&only(sifest, &high), &only(ordinary, &high)));
    let cost = mean(&pooled_gains(ordinary, a));
    let cost_high = mean(&pooled_gains(&only(ordinary, &high), &only(a, &high)));
    let claims = vec![
        claim(
            "§4.3.2, Fig. 13",
            "“Due to the phase effect between any two competing TCP connections, Fig. 13 shows that there is a slight performance difference between Tahoe A and Tahoe B, but the difference is almost independent of *z*.” (Here: the difference is at most 10 % in either direction, and so is its change from low to high z.)",
            format!(
                "B's gain over A: {}. Gain at z ≥ 7 % minus gain at lower z: {}",
                percent(&apart),
                percent(&moves)
            ),
            Judged::all([Judged::similar(&apart), Judged::similar(&moves)]),
        ),
        claim(
            "§4.3.2, Fig. 13",
            "“Fig. 13 illustrates the *sif*est-enhanced Tahoe A outperforms the ordinary Tahoe B significantly when *z* goes higher.”",
            format!("{} more packets with sifest, averaged over z ≥ 7 %", percent(&ahead)),
            Judged::considerably(&ahead),
        ),
        claim(
            "§4.3.2, Fig. 13",
            "“However, the ordinary Tahoe B that is competing with the *sif*est-enhanced Tahoe A has almost the same performance as that when it runs with an ordinary Tahoe.”",
            format!(
                "Change of the ordinary flow when its competitor uses sifest: {} averaged over all z, {} over z ≥ 7 %",
                percent(&cost),
                percent(&cost_high)
            ),
            Judged::similar(&cost),
        ),
        other_variants(&pairs),
    ];
    let beside_limited = mean(&pooled_gains(&pairs[2][0], a));
    let remarks = vec![format!(
        "Change of the ordinary flow when its competitor uses Limited Transmit: {}.",
        percent(&beside_limited)
    )];
    let names = ["Tahoe A", "Tahoe B", "ordinary Tahoe", "sifest-enhanced Tahoe"];
    let lines = names.iter().zip(pairs[..2].iter().flatten());
    let chart = Chart {
        title: "Fig. 13: Fairness Validation".to_owned(),
        x: Axis::new("overall packet loss rate z", Scale::FromZero),
        y: Axis::new("packets acknowledged in 100 s", Scale::FromZero),
        curves: lines.map(|(name, curve)| over_z(name, &rates, curve)).collect(),
    };
    let clusters = clusters::fairness(effort)?;
    Ok(Finding {
        tables: vec![table, variants, clusters],
        charts: vec![chart],
        claims,
        remarks,
        ..Finding::default()
    })
}

/// "Similar simulation evaluations": in each variant, sifest changes the ordinary competitor's packets by at most 10 %.
fn other_variants(pairs: &[Both]) -> Claim {
    let cost = |index: usize| mean(&pooled_gains(&pairs[index + 1][0], &pairs[index][0]));
    let costs: [Mean; 3] = [3, 5, 7].map(cost);
    let [reno, newreno, sack] = costs.each_ref().map(percent);
    claim(
        "§4.3.2",
        "“Similar simulation evaluations indicate that the *sif*est-enhanced Reno, NewReno and SACK also have the fairness and compatibility properties with ordinary TCP variants.”",
        format!(
            "Change of the ordinary flow when its competitor uses sifest: Reno {reno}, NewReno {newreno}, SACK {sack}"
        ),
        Judged::all(costs.iter().map(Judged::similar)),
    )
}
