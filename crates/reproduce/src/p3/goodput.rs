//! §IV A and C: one flow over a radio link that damages packets.

use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged};
use super::grid::{Grid, percent_shown};
use super::setting::{
    Extent, NR, NR_PLUS, PR, PR_PLUS, Plus, Radio, Scheme, Site, Variant, W, choice_of_pr, choices,
};

pub(super) const TITLE: &str = "Goodput in Mbit/s, against the packet error rate";
const ON_NEWRENO: Variant = Scheme::PrOnNewReno.plain();
const PLUS_ON_NEWRENO: Variant = Scheme::PrOnNewReno.plus(Plus::Full);

fn claim(paper: &str, place: &str, ours: String, judged: Judged) -> Claim {
    Claim { paper: paper.to_owned(), place: place.to_owned(), counts: Counts::Yes, ours, judged }
}

/// Whether the error rate is one of those that the paper calls low.
fn low(percent: u32) -> bool {
    percent < 5
}

/// Fig. 2a.
pub fn against_newreno(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let grid = Grid::run(effort, Radio::Loses, Site::ORDINARY, &[NR, W, NR_PLUS], over)?;
    let all = grid.rates(|_| true);
    let fall = grid.fall(NR);
    let (up_to, number) = grid.up_to(NR_PLUS, NR, 1.0);
    let improvement = grid.pooled(NR_PLUS, NR, &all);
    let (more, especially) = more_than_westwood(&grid, NR_PLUS);
    let claims = vec![
        claim(
            "“TCP-NR suffers severe performance deterioration as the packet error rate increases.”",
            "§IV-A, Fig. 2a",
            format!("falls by {} of its mean", percent_shown(&fall)),
            Judged::considerably(&fall),
        ),
        claim(
            "“TCP-NR+ is observed to attain significant performance improvement over TCP-NR by up to 100%.”",
            "§IV-A, Fig. 2a",
            format!("{}; {up_to}", percent_shown(&improvement)),
            Judged::all([Judged::considerably(&improvement), number]),
        ),
        claim(
            "“The performance gain is more significant than that of TCP-W, especially for the packet error rate \
             lower than 5%.”",
            "§IV-A, Fig. 2a",
            format!("TCP-NR+ over TCP-W: {more}"),
            especially,
        ),
    ];
    Ok(Finding {
        charts: vec![grid.chart("Fig. 2(a)", &[NR, W, NR_PLUS])],
        tables: vec![grid.table_beside_ns2(TITLE)],
        claims,
        choices: choices(),
        remarks: vec![
            format!("TCP-NR+ over TCP-NR: {}.", grid.gains_shown(NR_PLUS, NR)),
            format!("TCP-W over TCP-NR: {}.", grid.gains_shown(W, NR)),
            format!("TCP-NR+ over TCP-W: {}.", grid.gains_shown(NR_PLUS, W)),
        ],
    })
}

/// Fig. 2b, with NewReno+ too: the text compares with it.
pub fn against_pr(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let senders = [W, PR, PR_PLUS, NR_PLUS, ON_NEWRENO, PLUS_ON_NEWRENO];
    let grid = Grid::run(effort, Radio::Loses, Site::ORDINARY, &senders, over)?;
    let all = grid.rates(|_| true);
    let (fall, improvement) = (grid.fall(PR), grid.pooled(PR_PLUS, PR, &all));
    let (more, especially) = more_than_westwood(&grid, PR_PLUS);
    let better = grid.pooled(PR_PLUS, NR_PLUS, &all);
    let on_newreno = grid.pooled(PLUS_ON_NEWRENO, NR_PLUS, &all);
    let similar = Judged::all([Judged::considerably(&fall), Judged::considerably(&improvement), especially]);
    let claims = vec![
        claim(
            "“We can derive similar observations from these plots.” (as of Fig. 2a: severe deterioration of TCP-PR, a \
             significant improvement over it, and a gain more significant than TCP-W's, especially below 5 %)",
            "§IV-A, Fig. 2b",
            format!(
                "TCP-PR falls by {}; TCP-PR+ over it {}; over TCP-W {more}",
                percent_shown(&fall),
                percent_shown(&improvement)
            ),
            similar,
        ),
        claim(
            "“TCP-PR+ is observed to attain better performance than TCP-NR+ due to its proactive postponement of any \
             window reductions.”",
            "§IV-A, Fig. 2b",
            format!("{}; on NewReno {}", percent_shown(&better), percent_shown(&on_newreno)),
            Judged::better(&better),
        ),
    ];
    Ok(Finding {
        charts: vec![grid.chart("Fig. 2(b)", &[W, PR, PR_PLUS])],
        tables: vec![grid.table(TITLE)],
        claims,
        choices: vec![choice_of_pr()],
        remarks: vec![
            format!("TCP-PR+ over TCP-PR: {}.", grid.gains_shown(PR_PLUS, PR)),
            format!("The same on NewReno: {}.", grid.gains_shown(PLUS_ON_NEWRENO, ON_NEWRENO)),
            format!("TCP-PR+ over TCP-W: {}.", grid.gains_shown(PR_PLUS, W)),
            "The paper's “up to 100%” is of Fig. 2a, and is not asked of Fig. 2b.".to_owned(),
        ],
    })
}

/// Fig. 2c.
pub fn out_of_order(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let ideal = Scheme::IdealDifferentiator.plain();
    let senders = [NR, W, NR_PLUS, PR, ON_NEWRENO, ideal];
    let grid = Grid::run(effort, Radio::Reorders, Site::ORDINARY, &senders, over)?;
    let all = grid.rates(|_| true);
    let leads = [NR, W, NR_PLUS].map(|other| (other, grid.pooled(PR, other, &all)));
    let needless = [NR_PLUS, W].map(|sender| (sender, grid.needless(sender)));
    let (up_to, number) = grid.up_to(NR_PLUS, NR, 1.3);
    let more = grid.pooled(NR_PLUS, W, &all);
    let claims = vec![
        claim(
            "“TCP-PR(+) attains the best performance.”",
            "§IV-A, Fig. 2c",
            leads
                .iter()
                .map(|(other, lead)| format!("over {} {}", other.name(), percent_shown(lead)))
                .collect::<Vec<_>>()
                .join(", "),
            Judged::all(leads.iter().map(|(_, lead)| Judged::better(lead))),
        ),
        claim(
            "“This is due to its accuracy in differentiating between packet reordering and packet loss, making it a \
             very close approximation of the ideal differentiator in this scenario.”",
            "§IV-A, Fig. 2c",
            format!(
                "over NewReno that knows the truth: {}; TCP-PR on NewReno: {}",
                grid.gains_shown(PR, ideal),
                grid.gains_shown(ON_NEWRENO, ideal)
            ),
            grid.everywhere(PR, ideal, Judged::similar),
        ),
        claim(
            "“On the other hand, TCP-NR+ and TCP-W tend to trigger packet retransmissions spuriously with packet \
             reordering.”",
            "§IV-A, Fig. 2c",
            needless
                .iter()
                .map(|(sender, share)| {
                    format!("{} sends {:.1} % again for nothing", sender.name(), share.mean * 100.0)
                })
                .collect::<Vec<_>>()
                .join(", "),
            Judged::all(needless.iter().map(|(_, share)| Judged::above_zero(share))),
        ),
        claim(
            "“However, TCP-NR+ exhibits a performance gain over TCP-NR of up to 130%, which is greater than that \
             achieved by TCP-W.”",
            "§IV-A, Fig. 2c",
            format!("{up_to}; over TCP-W {}", percent_shown(&more)),
            Judged::all([number, Judged::better(&more)]),
        ),
    ];
    Ok(Finding {
        charts: vec![grid.chart("Fig. 2(c), with TCP-PR for TCP-PR(+)", &[NR, W, NR_PLUS, PR])],
        tables: vec![grid.table(TITLE)],
        claims,
        choices: vec![
            choice_of_pr(),
            "A damaged packet leaves again 20 ms after it left, when about five others have overtaken it on a busy \
             link; after three retransmissions it is lost."
                .to_owned(),
            "The ideal differentiator is NewReno with the attribution `oracle`, which airlink tells of every loss: it \
             repairs like NewReno and reduces its window for queues' drops alone."
                .to_owned(),
        ],
        remarks: vec![
            format!("TCP-NR+ over TCP-NR: {}.", grid.gains_shown(NR_PLUS, NR)),
            format!("TCP-W over TCP-NR: {}.", grid.gains_shown(W, NR)),
        ],
    })
}

/// §IV C.
pub fn underestimated(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let (nr_half, pr_half) = (Scheme::NewReno.plus(Plus::Half), Scheme::Pr.plus(Plus::Half));
    let half_on_newreno = Scheme::PrOnNewReno.plus(Plus::Half);
    let senders =
        [NR, nr_half, NR_PLUS, PR, pr_half, PR_PLUS, ON_NEWRENO, half_on_newreno, PLUS_ON_NEWRENO, W];
    let grid = Grid::run(effort, Radio::Loses, Site::ORDINARY, &senders, over)?;
    let (nr_down, nr_number) = grid.down_by_up_to(nr_half, NR_PLUS, 0.22);
    let (pr_down, pr_number) = grid.down_by_up_to(pr_half, PR_PLUS, 0.52);
    let (on_newreno, _) = grid.down_by_up_to(half_on_newreno, PLUS_ON_NEWRENO, 0.52);
    let nr_over = grid.pooled(nr_half, W, &grid.rates(|percent| percent <= 2));
    let pr_over = grid.pooled(pr_half, W, &grid.rates(|percent| percent <= 7));
    let gains = [(nr_half, NR), (pr_half, PR)];
    let claims = vec![
        claim(
            "“We have observed that tax under-estimation can lead to performance degradation of TCP-NR+ (up to 22%) \
             and TCP-PR+ (up to 52%).”",
            "§IV-C",
            format!("TCP-NR+ {nr_down}; TCP-PR+ {pr_down}, on NewReno {on_newreno}"),
            Judged::all([nr_number, pr_number]),
        ),
        claim(
            "“Nevertheless, they still maintain better performance than TCP-W under low packet error rate (up to 2% for \
             TCP-NR+ and 7% for TCP-PR+).”",
            "§IV-C",
            format!("TCP-NR+ {}, TCP-PR+ {}", percent_shown(&nr_over), percent_shown(&pr_over)),
            Judged::all([Judged::better(&nr_over), Judged::better(&pr_over)]),
        ),
        claim(
            "“Moreover, they attain non-trivial performance gains over their counterparts without enhancements under \
             the range of the packet error rates simulated.”",
            "§IV-C",
            gains
                .map(|(half, plain)| format!("over {}: {}", plain.name(), grid.gains_shown(half, plain)))
                .join("; "),
            Judged::all(gains.map(|(half, plain)| grid.everywhere(half, plain, Judged::better))),
        ),
    ];
    let curves = [NR, nr_half, NR_PLUS, PR, pr_half, PR_PLUS, W];
    Ok(Finding {
        charts: vec![grid.chart("Half of the tax (§IV-C, not drawn in the paper)", &curves)],
        tables: vec![grid.table_beside_ns2(TITLE)],
        claims,
        choices: vec![choice_of_pr()],
        remarks: vec![
            format!("TCP-NR+ with half the tax over TCP-W: {}.", grid.gains_shown(nr_half, W)),
            format!("TCP-PR+ with half the tax over TCP-W: {}.", grid.gains_shown(pr_half, W)),
        ],
    })
}

/// The gain is "more significant than that of TCP-W, especially for the packet error rate lower than 5%": what was found,
/// and the verdict on both.
fn more_than_westwood(grid: &Grid, sender: Variant) -> (String, Judged) {
    let (below, above) = (grid.rates(low), grid.rates(|percent| !low(percent)));
    let more = grid.pooled(sender, W, &grid.rates(|_| true));
    let [low, high] = [&below, &above].map(|rates| percent_shown(&grid.pooled(sender, W, rates)));
    let especially = grid.contrast(sender, W, &below, &above);
    (
        format!("{} ({low} below 5 %, {high} above)", percent_shown(&more)),
        Judged::all([Judged::better(&more), Judged::above_zero(&especially)]),
    )
}
