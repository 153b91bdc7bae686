//! §IV-A and §IV-C: goodput of one flow over a radio link that damages packets.

use airtcp_sim::world::WorldError;

use super::comparison::{Comparison, percent_shown};
use super::sentences::{
    IDEAL, NR_HALF, above_newreno_plus, best, close_to_the_ideal, costs_22_and_52, gains_in_both_sets,
    improves_by_up_to_100, more_than_westwood, on_both, similar_observations, still_above_westwood,
    still_gains, up_to_130,
};
use super::setting::{Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, W};
use crate::{At, Effort, Finding, Judged, found};

pub(super) const TITLE: &str = "Goodput in Mbit/s by packet error rate";
const ON_NEWRENO: Variant = Scheme::PrOnNewReno.plain();
const PLUS_ON_NEWRENO: Variant = Scheme::PrOnNewReno.plus(Plus::Full);

/// Fig. 2a: NewReno, Westwood and NewReno+ under random loss.
pub fn against_newreno(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &[NR, W, NR_PLUS], extent)?;
    let fall = comparison.fall(NR);
    let claims = vec![
        found(
            At("§IV-A, Fig. 2a"),
            "“TCP-NR suffers severe performance deterioration as the packet error rate increases.”",
            (
                format!(
                    "fall from the lowest to the highest error rate: {} of the mean goodput",
                    percent_shown(&fall)
                ),
                Judged::considerably(&fall),
            ),
        ),
        found(
            At("§IV-A, Fig. 2a"),
            "“TCP-NR+ is observed to attain significant performance improvement over TCP-NR by up to 100%.”",
            improves_by_up_to_100(&comparison),
        ),
        found(
            At("§IV-A, Fig. 2a"),
            "“The performance gain is more significant than that of TCP-W, especially for the packet error \
             rate lower than 5%.”",
            more_than_westwood(&comparison, NR_PLUS),
        ),
    ];
    Ok(Finding {
        charts: vec![comparison.chart_with_ns2("Fig. 2(a)", &[NR, W, NR_PLUS])],
        tables: vec![comparison.table_with_ns2(TITLE)],
        claims,
        remarks: vec![
            format!("Gain of TCP-NR+ over TCP-NR, by error rate: {}.", comparison.gains_shown(NR_PLUS, NR)),
            format!("Gain of TCP-W over TCP-NR: {}.", comparison.gains_shown(W, NR)),
            format!("Gain of TCP-NR+ over TCP-W: {}.", comparison.gains_shown(NR_PLUS, W)),
        ],
        ..Finding::default()
    })
}

/// Fig. 2b: TCP-PR, Westwood and TCP-PR+ under random loss. NewReno+ is added because it appears in a
/// comparison in the text.
pub fn against_pr(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let senders = [W, PR, PR_PLUS, NR_PLUS, ON_NEWRENO, PLUS_ON_NEWRENO];
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, extent)?;
    let claims = vec![
        found(
            At("§IV-A, Fig. 2b"),
            "“We can derive similar observations from these plots.” (Here: as in Fig. 2a, TCP-PR \
             deteriorates severely. TCP-PR+ improves on it significantly, and by more than TCP-W does, \
             especially below 5 %.)",
            on_both(&comparison, similar_observations),
        ),
        found(
            At("§IV-A, Fig. 2b"),
            "“TCP-PR+ is observed to attain better performance than TCP-NR+ due to its proactive \
             postponement of any window reductions.”",
            on_both(&comparison, above_newreno_plus),
        ),
    ];
    Ok(Finding {
        charts: vec![comparison.chart("Fig. 2(b)", &[W, PR, PR_PLUS])],
        tables: vec![comparison.table(TITLE)],
        claims,
        remarks: vec![
            format!("Gain of TCP-PR+ over TCP-PR, by error rate: {}.", comparison.gains_shown(PR_PLUS, PR)),
            format!(
                "The same gain with TCP-PR on NewReno: {}.",
                comparison.gains_shown(PLUS_ON_NEWRENO, ON_NEWRENO)
            ),
            format!("Gain of TCP-PR+ over TCP-W: {}.", comparison.gains_shown(PR_PLUS, W)),
            "The paper's “up to 100%” refers to Fig. 2a and is not tested on Fig. 2b.".to_owned(),
        ],
        ..Finding::default()
    })
}

/// Fig. 2c: link-layer retransmission and reordering. Also the summary of both sets of experiments.
pub fn out_of_order(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    // The path of Fig. 2a.
    let first_set = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &[NR, NR_PLUS], extent)?;
    let ideal_newreno = Scheme::IdealDifferentiator.plain();
    let senders = [NR, W, NR_PLUS, PR, ON_NEWRENO, IDEAL, ideal_newreno];
    let comparison = Comparison::run(effort, Radio::Reorders, Site::ORDINARY, &senders, extent)?;
    let spurious = [NR_PLUS, W].map(|sender| (sender, comparison.spurious(sender)));
    let claims = vec![
        found(At("§IV-A, Fig. 2c"), "“TCP-PR(+) attains the best performance.”", on_both(&comparison, best)),
        found(
            At("§IV-A, Fig. 2c"),
            "“This is due to its accuracy in differentiating between packet reordering and packet loss, \
             making it a very close approximation of the ideal differentiator in this scenario.”",
            on_both(&comparison, close_to_the_ideal),
        ),
        found(
            At("§IV-A, Fig. 2c"),
            "“On the other hand, TCP-NR+ and TCP-W tend to trigger packet retransmissions spuriously with \
             packet reordering.”",
            (
                spurious
                    .iter()
                    .map(|(sender, share)| {
                        format!("{}: {:.1} % spurious retransmissions", sender.name(), share.mean * 100.0)
                    })
                    .collect::<Vec<_>>()
                    .join(", "),
                Judged::all(spurious.iter().map(|(_, share)| Judged::above_zero(share))),
            ),
        ),
        found(
            At("§IV-A, Fig. 2c"),
            "“However, TCP-NR+ exhibits a performance gain over TCP-NR of up to 130%, which is greater than \
             that achieved by TCP-W.”",
            up_to_130(&comparison),
        ),
        found(
            At("§IV-A"),
            "“To summarize, TCP-NR+ attains a significant performance gain over TCP-NR in both sets of \
             experiments, but it is relatively less robust against packet reordering.” (Here: than \
             TCP-PR(+).)",
            gains_in_both_sets(&first_set, &comparison),
        ),
    ];
    Ok(Finding {
        charts: vec![comparison.chart("Fig. 2(c), TCP-PR(+) drawn as TCP-PR", &[NR, W, NR_PLUS, PR])],
        tables: vec![comparison.table(TITLE)],
        claims,
        remarks: vec![
            format!("Gain of TCP-NR+ over TCP-NR, by error rate: {}.", comparison.gains_shown(NR_PLUS, NR)),
            format!("Gain of TCP-W over TCP-NR: {}.", comparison.gains_shown(W, NR)),
            "Three more sentences of the paper summarize claims of Figs. 2 and 4 and of \
             `p3-underestimation`. They are not counted again: “TCP-PR+ proves to be an effective unified \
             solution for both packet reordering and random loss.” (§IV-A), “In most scenarios, significant \
             performance gains are attained.” (abstract), “Our simulation results show that the tax-rebate \
             approach offers significant performance gains in a variety of scenarios while preserving \
             inter-flow fairness.” (§V)"
                .to_owned(),
        ],
        ..Finding::default()
    })
}

/// §IV-C: senders that underestimate the tax by half.
pub fn underestimated(effort: &Effort, extent: &Extent) -> Result<Finding, WorldError> {
    let (pr_half, half_on_newreno) = (Scheme::Pr.plus(Plus::Half), Scheme::PrOnNewReno.plus(Plus::Half));
    let senders =
        [NR, NR_HALF, NR_PLUS, PR, pr_half, PR_PLUS, ON_NEWRENO, half_on_newreno, PLUS_ON_NEWRENO, W];
    let comparison = Comparison::run(effort, Radio::Loses, Site::ORDINARY, &senders, extent)?;
    let claims = vec![
        found(
            At("§IV-C"),
            "“We have observed that tax under-estimation can lead to performance degradation of TCP-NR+ (up \
             to 22%) and TCP-PR+ (up to 52%).”",
            on_both(&comparison, costs_22_and_52),
        ),
        found(
            At("§IV-C"),
            "“Nevertheless, they still maintain better performance than TCP-W under low packet error rate \
             (up to 2% for TCP-NR+ and 7% for TCP-PR+).”",
            on_both(&comparison, still_above_westwood),
        ),
        found(
            At("§IV-C"),
            "“Moreover, they attain non-trivial performance gains over their counterparts without \
             enhancements under the range of the packet error rates simulated.”",
            on_both(&comparison, still_gains),
        ),
    ];
    let curves = [NR, NR_HALF, NR_PLUS, PR, pr_half, PR_PLUS, W];
    Ok(Finding {
        charts: vec![
            comparison.chart("Goodput with half of the tax (§IV-C, not drawn in the paper)", &curves),
        ],
        tables: vec![comparison.table_with_ns2(TITLE)],
        claims,
        remarks: vec![
            format!(
                "Gain of TCP-NR+ with half the tax over TCP-W, by error rate: {}.",
                comparison.gains_shown(NR_HALF, W)
            ),
            format!("Gain of TCP-PR+ with half the tax over TCP-W: {}.", comparison.gains_shown(pr_half, W)),
        ],
        ..Finding::default()
    })
}
