//! Two transfers share a radio link of 192 kbit/s (P0 §4.3.2, Fig. 13).

use airtcp_numbers::statistics::{Mean, differences};
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};
use super::judging::{across, gain, line, signed};
use super::seeded;
use super::setting::{self, Channel, Setting, acknowledged};

/// A change of at most this, in per cent, counts as slight.
const HARMLESS: f64 = 5.0;

pub(super) fn figure_13(effort: &Effort) -> Result<Finding, WorldError> {
    const BESIDE: [&str; 3] = ["tahoe", "tahoe+sifest", "tahoe+limited-transmit"];
    let rates: Vec<f64> = (1..=13).map(|percent| f64::from(percent) / 100.0).collect();
    let mut plans = Vec::new();
    for other in BESIDE {
        for z in &rates {
            let setting = Setting {
                recipes: vec!["tahoe", other],
                radio: 192,
                ..Setting::new("tahoe", Channel::overall(*z))
            };
            plans.push(setting.plan()?);
        }
    }
    let found =
        effort.sample(&plans, seeded, |_, report| [0, 1].map(|flow| acknowledged(&report.flows[flow])))?;
    let of = |beside: usize, flow: usize| -> Vec<Vec<f64>> {
        let points = &found[beside * rates.len()..][..rates.len()];
        points.iter().map(|samples| samples.iter().map(|both| both[flow]).collect()).collect()
    };
    let mut table = Table::new(
        "Packets acknowledged after 100 s, of an ordinary Tahoe and of the flow beside it:",
        &["z", "Tahoe A", "Tahoe B", "ordinary", "with sifest", "ordinary", "with Limited Transmit"],
    );
    let columns: Vec<_> = (0..3).flat_map(|beside| [of(beside, 0), of(beside, 1)]).collect();
    for (point, z) in rates.iter().enumerate() {
        let cells = columns.iter().map(|column| shown(&mean(&column[point]), 0));
        table.row([format!("{:.0} %", 100.0 * z)].into_iter().chain(cells));
    }

    let [a, b, ordinary, sifest, beside_limited, _] = &columns[..] else { return Ok(Finding::default()) };
    let phase = each(gain, b, a);
    let phase_mean = mean(&across(&phase));
    let (slope, _) =
        line(&rates.iter().zip(&phase).map(|(z, point)| (*z, mean(point).mean)).collect::<Vec<_>>());
    let high: Vec<usize> = (0..rates.len()).filter(|point| rates[*point] > 0.07 - 1e-9).collect();
    let ahead = each(gain, sifest, ordinary);
    let ahead_high: Vec<Vec<f64>> = high.iter().map(|point| ahead[*point].clone()).collect();
    let judged: Vec<_> = ahead_high.iter().map(|point| Judged::above_zero(&mean(point))).collect();
    let cost = mean(&across(&each(gain, ordinary, a)));
    let limited_cost = mean(&across(&each(gain, beside_limited, a)));
    let cost_high = {
        let points = each(gain, ordinary, a);
        mean(&across(&high.iter().map(|point| points[*point].clone()).collect::<Vec<_>>()))
    };
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "two ordinary Tahoes differ slightly, and almost independently of z".to_owned(),
            ours: format!(
                "B − A is {} % of A on average, and changes by {:+.1} % from z = 1 % to 13 %",
                signed(&phase_mean, 1),
                slope * 0.12
            ),
            judged: within(&phase_mean),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "with sifest a flow outperforms the ordinary one significantly when z goes higher"
                .to_owned(),
            ours: format!("{} % more for z ≥ 7 %", signed(&mean(&across(&ahead_high)), 1)),
            judged: Judged::all(judged),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the ordinary Tahoe beside it has almost the same performance as beside an ordinary one"
                .to_owned(),
            ours: format!(
                "{} % on average over z, {} % for z ≥ 7 %",
                signed(&cost, 1),
                signed(&cost_high, 1)
            ),
            judged: within(&cost),
        },
    ];
    let total = |beside: usize| -> Vec<Vec<f64>> {
        each(|a, b| a.iter().zip(b).map(|(a, b)| a + b).collect(), &of(beside, 0), &of(beside, 1))
    };
    let both = mean(&across(&each(differences, &total(1), &total(0))));
    let remarks = vec![
        format!("Beside Limited Transmit the ordinary flow has {} %.", signed(&limited_cost, 1)),
        format!("Both flows together have {} packets when one of them has sifest.", signed(&both, 0)),
    ];
    let mut choices = setting::choices();
    choices.push("both transfers begin at once, and share one channel, whose state moves with the packets of both; the one with sifest is the second (the text calls it A and B in turn).".to_owned());
    choices.push(format!("slightly, and almost the same, mean: the interval lies within ±{HARMLESS} %; in part, if the mean does."));
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices, remarks })
}

/// Applies `f` to the samples of both at each z.
fn each(f: fn(&[f64], &[f64]) -> Vec<f64>, a: &[Vec<f64>], b: &[Vec<f64>]) -> Vec<Vec<f64>> {
    a.iter().zip(b).map(|(a, b)| f(a, b)).collect()
}

fn within(change: &Mean) -> Judged {
    let Some(width) = change.half_width else { return Judged::Undecided };
    match change.mean.abs() {
        off if off + width <= HARMLESS => Judged::Holds,
        off if off <= HARMLESS => Judged::HoldsInPart,
        off if off - width > HARMLESS => Judged::DoesNotHold,
        _ => Judged::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_small_by_its_whole_interval() {
        let of = |mean, width| within(&Mean { mean, half_width: Some(width), samples: 9 });
        assert_eq!(of(-2.0, 1.0), Judged::Holds);
        assert_eq!(of(-4.0, 3.0), Judged::HoldsInPart);
        assert_eq!(of(-6.0, 3.0), Judged::Undecided);
        assert_eq!(of(9.0, 3.0), Judged::DoesNotHold);
    }
}
