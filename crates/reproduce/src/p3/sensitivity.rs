//! What does not hold, on other paths and with other segments: a verdict hangs on what the paper does not say, or not.

use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table};
use super::grid::{Grid, percent_shown};
use super::setting::{Extent, NR, NR_PLUS, PR_PLUS, Plus, Radio, Scheme, Site, W};

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

/// The comparisons behind Figs 2a and 2c and §IV-C, each at the same few error rates.
pub fn paths(effort: &Effort, over: &Extent) -> Result<Finding, WorldError> {
    let (nr_half, pr_half) = (Scheme::NewReno.plus(Plus::Half), Scheme::Pr.plus(Plus::Half));
    let rates: Vec<_> = over.error_rates.iter().map(|percent| format!("{percent} %")).collect();
    let mut table = Table::new(
        format!("Gains at error rates of {}", rates.join(", ")),
        &[
            "path",
            "TCP-NR+ over TCP-NR",
            "TCP-NR+ over TCP-W",
            "half the tax: TCP-NR+",
            "half the tax: TCP-PR+",
            "reordering: TCP-NR+ over TCP-NR",
            "reordering: TCP-NR+ over TCP-W",
        ],
    );
    let (mut lost, mut reordered) = (Vec::new(), Vec::new());
    for (name, site) in SITES {
        let loses =
            Grid::run(effort, Radio::Loses, site, &[NR, W, NR_PLUS, nr_half, PR_PLUS, pr_half], over)?;
        let reorders = Grid::run(effort, Radio::Reorders, site, &[NR, W, NR_PLUS], over)?;
        table.row([
            name.to_owned(),
            loses.gains_shown(NR_PLUS, NR),
            loses.gains_shown(NR_PLUS, W),
            loses.gains_shown(nr_half, NR_PLUS),
            loses.gains_shown(pr_half, PR_PLUS),
            reorders.gains_shown(NR_PLUS, NR),
            reorders.gains_shown(NR_PLUS, W),
        ]);
        let all = loses.rates(|_| true);
        lost.push((name, loses.pooled(NR_PLUS, W, &all)));
        reordered.push((name, reorders.pooled(NR_PLUS, W, &all)));
    }
    let claim = |what: &str, found: &[(&str, airtcp_numbers::statistics::Mean)]| {
        let above: Vec<_> = found
            .iter()
            .filter(|(_, more)| Judged::better(more) != Judged::DoesNotHold)
            .map(|(name, more)| format!("{name} ({})", percent_shown(more)))
            .collect();
        let ours = match above.is_empty() {
            true => "on no path".to_owned(),
            false => format!("above it, or undecided: {}", above.join(", ")),
        };
        Claim {
            paper: format!("TCP-NR+ gains more than TCP-W {what}, on every path."),
            place: String::new(),
            counts: Counts::Own("over which range the verdict of the figure holds".to_owned()),
            ours,
            judged: Judged::all(found.iter().map(|(_, more)| Judged::better(more))),
        }
    };
    Ok(Finding {
        tables: vec![table],
        claims: vec![
            claim("under random loss (Fig. 2a)", &lost),
            claim("under reordering (Fig. 2c)", &reordered),
        ],
        choices: vec!["Each path differs from the chosen one in what its name says. Runs of 250 s, of which the last 200 count; ten seeds \
             at most.".to_owned()],
        ..Finding::default()
    })
}
