//! §IV A and C: one flow over a radio link that damages packets.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged};
use super::grid::{Grid, percent_shown};
use super::setting::{Extent, Radio, Tax, Variant, choice_of_pr, choice_of_westwood, choices};

const NR_PLUS: Variant = Variant::NewRenoPlus(Tax::All);
const PR_PLUS: Variant = Variant::PrPlus(Tax::All);
const TITLE: &str = "Goodput in Mbit/s, against the packet error rate";

/// Fig. 2a.
pub fn against_newreno(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let senders = [Variant::NewReno, Variant::Sack1, Variant::Westwood, NR_PLUS];
    let grid = Grid::run(effort, Radio::Loses, &senders, over)?;
    let mut claims = vec![deteriorates(&grid, over)];
    claims.extend(gains_up_to(&grid, NR_PLUS, Variant::NewReno, "up to 100%", 1.0));
    claims.extend(more_than_westwood(&grid, NR_PLUS));
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![grid.table(TITLE)],
        claims,
        choices: [choices(), vec![choice_of_westwood()]].concat(),
        remarks: vec![
            format!("NewReno+ over NewReno: {}.", grid.gains_shown(NR_PLUS, Variant::NewReno)),
            format!("Westwood over NewReno: {}.", grid.gains_shown(Variant::Westwood, Variant::NewReno)),
        ],
    })
}

/// Fig. 2b, with NewReno and NewReno+ too: the text compares with them.
pub fn against_pr(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let senders = [Variant::NewReno, Variant::Westwood, NR_PLUS, Variant::Pr, PR_PLUS];
    let grid = Grid::run(effort, Radio::Loses, &senders, over)?;
    let mut claims = Vec::new();
    claims.push(above(
        &grid,
        (PR_PLUS, Variant::Pr),
        &grid.lossy(),
        "\"similar observations\": TCP-PR+ gains over TCP-PR",
    ));
    claims.extend(more_than_westwood(&grid, PR_PLUS));
    claims.push(above(
        &grid,
        (PR_PLUS, NR_PLUS),
        &grid.lossy(),
        "TCP-PR+ attains better performance than TCP-NR+",
    ));
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![grid.table(TITLE)],
        claims,
        choices: [choices(), vec![choice_of_westwood(), choice_of_pr()]].concat(),
        remarks: vec![
            format!("PR over NewReno: {}.", grid.gains_shown(Variant::Pr, Variant::NewReno)),
            format!("PR+ over NewReno+: {}.", grid.gains_shown(PR_PLUS, NR_PLUS)),
        ],
    })
}

/// Fig. 2c.
pub fn out_of_order(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let senders = [Variant::NewReno, Variant::Westwood, NR_PLUS, Variant::Pr];
    let grid = Grid::run(effort, Radio::Reorders, &senders, over)?;
    let others = [Variant::NewReno, Variant::Westwood, NR_PLUS];
    let best = others.map(|other| grid.is_above(Variant::Pr, other, &grid.lossy()));
    let mut claims = vec![Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "TCP-PR(+) attains the best performance".to_owned(),
        ours: others
            .map(|other| format!("over {}: {}", other.name(), grid.gains_shown(Variant::Pr, other)))
            .join("; "),
        judged: Judged::all(best),
    }];
    claims.extend(gains_up_to(&grid, NR_PLUS, Variant::NewReno, "up to 130%", 1.3));
    claims.extend(more_than_westwood(&grid, NR_PLUS));
    let mut choices = choices();
    choices.extend([choice_of_westwood(), choice_of_pr()]);
    choices.push(
        "A damaged packet leaves again 20 ms after it left, when about five others have overtaken it on a busy link; \
         after three retransmissions it is lost."
            .to_owned(),
    );
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![grid.table_alone(TITLE)],
        claims,
        choices,
        remarks: vec![format!(
            "Westwood over NewReno: {}.",
            grid.gains_shown(Variant::Westwood, Variant::NewReno)
        )],
    })
}

/// §IV C.
pub fn underestimated(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let (nr_half, pr_half) = (Variant::NewRenoPlus(Tax::Half), Variant::PrPlus(Tax::Half));
    let senders = [Variant::NewReno, nr_half, NR_PLUS, Variant::Pr, pr_half, PR_PLUS, Variant::Westwood];
    let grid = Grid::run(effort, Radio::Loses, &senders, over)?;
    let mut claims = Vec::new();
    for (half, whole, paper) in [(nr_half, NR_PLUS, 0.22), (pr_half, PR_PLUS, 0.52)] {
        claims.extend(loses_up_to(&grid, half, whole, paper));
    }
    for (half, up_to) in [(nr_half, 2), (pr_half, 7)] {
        claims.push(above_westwood_up_to(&grid, half, up_to));
    }
    for (half, plain) in [(nr_half, Variant::NewReno), (pr_half, Variant::Pr)] {
        let statement =
            format!("under-estimated, a non-trivial gain over {} at every error rate", plain.name());
        claims.push(above(&grid, (half, plain), &grid.lossy(), &statement));
    }
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![grid.table(TITLE)],
        claims,
        choices: [choices(), vec![choice_of_westwood(), choice_of_pr()]].concat(),
        remarks: Vec::new(),
    })
}

fn above(grid: &Grid, (sender, other): (Variant, Variant), rates: &[u32], paper: &str) -> Claim {
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: paper.to_owned(),
        ours: grid.gains_shown(sender, other),
        judged: grid.is_above(sender, other, rates),
    }
}

fn deteriorates(grid: &Grid, over: &Extent) -> Claim {
    let rates = over.error_rates;
    let falls = rates.windows(2).filter_map(|pair| {
        let samples = grid.of(Variant::NewReno, pair[0]).iter().zip(grid.of(Variant::NewReno, pair[1]));
        Mean::of(&samples.map(|(before, after)| before - after).collect::<Vec<_>>())
    });
    let judged = Judged::all(falls.map(|fall| Judged::above_zero(&fall)));
    let left = |at: Option<&u32>| at.and_then(|at| Mean::of(grid.of(Variant::NewReno, *at)));
    let ours = match (left(rates.first()), left(rates.last())) {
        (Some(first), Some(last)) => format!("{:.3} down to {:.3} Mbit/s", first.mean, last.mean),
        _ => String::new(),
    };
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "TCP-NR suffers severe performance deterioration as the packet error rate increases"
            .to_owned(),
        ours,
        judged,
    }
}

fn gains_up_to(grid: &Grid, sender: Variant, over: Variant, words: &str, paper: f64) -> Option<Claim> {
    let (at, gain) = grid.largest_gain(sender, over)?;
    Some(Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: format!("{} improves on {} by {words}", sender.name(), over.name()),
        ours: format!("up to {}, at {at} %", percent_shown(&gain)),
        judged: Judged::extent(&gain, paper),
    })
}

/// The gain is "more significant than that of TCP-W, especially for the packet error rate lower than 5%". Both gains
/// are over the same TCP-NR, so the two senders may be compared directly.
fn more_than_westwood(grid: &Grid, sender: Variant) -> Vec<Claim> {
    let rates = grid.lossy();
    let low: Vec<_> = rates.iter().copied().filter(|percent| *percent < 5).collect();
    let high: Vec<_> = rates.iter().copied().filter(|percent| *percent >= 5).collect();
    let name = sender.name();
    let mut claims =
        vec![above(grid, (sender, Variant::Westwood), &rates, &format!("{name} gains more than TCP-W"))];
    let average = |rates: &[u32]| {
        let gains: Vec<_> = rates.iter().filter_map(|at| grid.gain(sender, Variant::Westwood, *at)).collect();
        let width = gains.iter().filter_map(|gain| gain.half_width).fold(0.0, f64::max);
        Some((Mean::of(&gains.iter().map(|gain| gain.mean).collect::<Vec<_>>())?.mean, width))
    };
    if let (Some((below, one)), Some((beyond, other))) = (average(&low), average(&high)) {
        let difference =
            Mean { mean: below - beyond, half_width: Some(one + other), samples: low.len() + high.len() };
        claims.push(Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("… {name} especially at error rates lower than 5%"),
            ours: format!(
                "over Westwood, {:+.0} % below 5 % and {:+.0} % above",
                below * 100.0,
                beyond * 100.0
            ),
            judged: Judged::above_zero(&difference),
        });
    }
    claims
}

fn loses_up_to(grid: &Grid, half: Variant, whole: Variant, paper: f64) -> Option<Claim> {
    // The loss is a share of what the sender has that knows the whole tax.
    let losses = grid.lossy().into_iter().filter_map(|at| {
        let gain = grid.gain(half, whole, at)?;
        Some((at, Mean { mean: -gain.mean, ..gain }))
    });
    let (at, loss) = losses.max_by(|(_, one), (_, other)| one.mean.total_cmp(&other.mean))?;
    Some(Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: format!("half the tax costs {} up to {:.0}%", whole.name(), paper * 100.0),
        ours: format!("up to {:.0} %, at {at} %", loss.mean * 100.0),
        judged: Judged::extent(&loss, paper),
    })
}

fn above_westwood_up_to(grid: &Grid, half: Variant, up_to: u32) -> Claim {
    let rates: Vec<_> = grid.lossy().into_iter().filter(|percent| *percent <= up_to).collect();
    let paper = format!("{}: still better than TCP-W up to an error rate of {up_to}%", half.name());
    above(grid, (half, Variant::Westwood), &rates, &paper)
}
