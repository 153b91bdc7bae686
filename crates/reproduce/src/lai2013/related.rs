//! The paper's sentences about related work (§II-A) and about ad hoc networks (footnote 2).

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::world::WorldError;

use super::comparison::{Comparison, percent_shown};
use super::goodput::TITLE;
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Radio, Scheme, Site, Variant, W};
use crate::judge::SIMILAR;
use crate::{At, Claim, Effort, Finding, Judged, claim, mean};

/// Senders that detect spurious retransmissions, each with the same sender without the detection.
const DETECTORS: [(Variant, Variant); 2] =
    [(Scheme::Eifel.plain(), NR), (Scheme::Dsack.plain(), Scheme::Sack.plain())];
/// Senders that estimate the network load.
const ESTIMATORS: [Variant; 4] = [W, Scheme::Veno.plain(), Scheme::Jtcp.plain(), Scheme::Fit.plain()];

/// §II-A: the senders that Fig. 2 does not have, with random loss and with reordering.
pub fn related_work(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let mut senders = vec![NR, Scheme::Eifel.plain(), Scheme::Sack.plain(), Scheme::Dsack.plain()];
    senders.extend(ESTIMATORS);
    let loses = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, over)?;
    let reorders = Comparison::run(effort, Radio::Reorders, Site::ORDINARY, &senders, over)?;
    let of = |title: &str, of: &Comparison| of.table(&format!("{TITLE}, {title}"));
    let charts = [("random loss", &loses), ("reordering", &reorders)]
        .map(|(title, grid)| grid.chart(&format!("§II-A with {title} (not drawn in the paper)"), &senders));
    Ok(Finding {
        tables: vec![of("random loss", &loses), of("link-layer retransmission", &reorders)],
        charts: charts.to_vec(),
        claims: vec![detection(&loses, &reorders), estimation(&loses, &reorders)],
        ..Finding::default()
    })
}

/// "will not work properly": no gain of more than 10 % over the same sender without the detection.
fn detection(loses: &Comparison, reorders: &Comparison) -> Claim {
    let gain = |grid: &Comparison, (with, without)| grid.pooled(with, without, &grid.rates(|_| true));
    let shown = DETECTORS.map(|pair| {
        let [loses, reorders] = [loses, reorders].map(|grid| percent_shown(&gain(grid, pair)));
        let (with, without) = pair;
        format!(
            "{} over {}: {loses} with random loss, {reorders} with reordering",
            with.name(),
            without.name()
        )
    });
    claim(
        At("§II-A"),
        "“However, such detection scheme will not work properly if the occurrences of non-congestive loss are \
         non-negligible.” (Here: with random loss, Eifel and SACK with DSACK gain at most 10 % over the same \
         sender without the detection.)",
        shown.join("; "),
        Judged::all(DETECTORS.map(|pair| Judged::between(&gain(loses, pair), f64::NEG_INFINITY, SIMILAR))),
    )
}

/// "problematic": the gain over NewReno is smaller with reordering than with loss.
fn estimation(loses: &Comparison, reorders: &Comparison) -> Claim {
    let gains = |grid: &Comparison, sender| grid.gains(sender, NR, &grid.rates(|_| true));
    let less = |sender| mean(&differences(&gains(loses, sender), &gains(reorders, sender)));
    let shown = ESTIMATORS.map(|sender| {
        let [loses, reorders] = [loses, reorders].map(|grid| percent_shown(&mean(&gains(grid, sender))));
        format!("{} {loses} with random loss, {reorders} with reordering", sender.name())
    });
    claim(
        At("§II-A"),
        "“This is problematic over reordering channels since packet reordering always contributes to RTT \
         variation.” (Here: the senders that estimate the load gain less over TCP-NR with reordering than with \
         random loss.)",
        format!("gain over TCP-NR: {}", shown.join("; ")),
        Judged::all(ESTIMATORS.map(|sender| Judged::above_zero(&less(sender)))),
    )
}

/// Footnote 2: several radio links with link-layer retransmission.
pub fn ad_hoc(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    const SENDERS: [Variant; 4] = [NR, NR_PLUS, PR, PR_PLUS];
    let run = |radio| Comparison::run(effort, radio, Site::ORDINARY, &SENDERS, over);
    let (one, three) = (run(Radio::Reorders)?, run(Radio::ReordersOnHops)?);
    let gains = |grid: &Comparison, sender| grid.gains(sender, NR, &grid.rates(|_| true));
    let pluses = [NR_PLUS, PR_PLUS];
    let apart: [Mean; 2] = pluses.map(|plus| mean(&differences(&gains(&three, plus), &gains(&one, plus))));
    let shown = pluses.map(|plus| {
        let [one, three] = [&one, &three].map(|grid| percent_shown(&mean(&gains(grid, plus))));
        format!("{} {three} with three radio links, {one} with one", plus.name())
    });
    let claims = vec![claim(
        At("§IV, footnote 2"),
        "“The performance of the tax-rebate approach is found to be similar to its performance under packet \
         reordering in infrastructure-based networks reported in this paper.” (Here: over three radio links, \
         its gain over TCP-NR differs by at most 10 percentage points from the gain over one.)",
        format!("gain over TCP-NR: {}", shown.join("; ")),
        Judged::all(apart.iter().map(Judged::similar)),
    )];
    Ok(Finding {
        tables: vec![
            one.table(&format!("{TITLE}, one radio link")),
            three.table(&format!("{TITLE}, three radio links")),
        ],
        charts: vec![three.chart("Three radio links that reorder (not drawn in the paper)", &SENDERS)],
        claims,
        ..Finding::default()
    })
}
