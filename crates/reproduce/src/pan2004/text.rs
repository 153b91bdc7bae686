//! The formulas of §2.3, and other interpretations of its setup (§3.1) and of sifest (§4.2).

use airtcp_sim::world::WorldError;

use super::judging::{acked, gain, percent};
use super::literal;
use super::senders::measured;
use super::setting::{Channel, HEAVY, Interpretation, MODERATE, Setting};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::judge::deviation;
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, mean, shown};

/// Average throughput from a loss at window W to the next loss, in segments per round trip, if three duplicate ACKs
/// detect the loss: 3W/4.
pub(super) fn throughput_by_dupacks(w: f64) -> f64 {
    3.0 * w / 4.0
}

/// The same if a timeout detects the loss: W − 2 segments in log2(W/2) round trips of slow start, then 3W²/8 in W/2.
pub(super) fn throughput_by_timeout(w: f64) -> f64 {
    (w - 2.0 + 3.0 * w * w / 8.0) / ((w / 2.0).log2() + w / 2.0)
}

/// Th_timeout − Th_dupack, in the form at the end of §2.3.
pub(super) fn throughput_difference(w: f64) -> f64 {
    ((7.0 - 3.0 * w.log2()) / 4.0 * w - 2.0) / (w.log2() - 1.0 + w / 2.0)
}

const WINDOWS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

pub(super) fn formulas_and_interpretations(effort: &Effort) -> Result<Finding, WorldError> {
    let mut analysis = Table::new(
        "Throughput after a loss at window W by the formulas of §2.3, in segments per round trip:",
        &["W", "timeout", "three duplicate ACKs", "difference"],
    );
    for w in WINDOWS {
        analysis.row([
            format!("{w}"),
            format!("{:.2}", throughput_by_timeout(w)),
            format!("{:.2}", throughput_by_dupacks(w)),
            format!("{:+.2}", throughput_difference(w)),
        ]);
    }
    let (set_ups, set_ups_remark) = set_ups(effort)?;
    let (all_choices, all_choices_remark) = literal::all_choices(effort)?;
    let queues = literal::queue_losses(effort)?;
    let (each_choice, each_choice_remark) = literal::each_choice(effort)?;
    let curve = |name: &str, formula: fn(f64) -> f64| Line::dots(name, WINDOWS.map(|w| (w, formula(w))));
    let chart = Chart {
        title: "Fig. 2: Timeout v.s. Triple-dupack (the formulas)".to_owned(),
        x: Axis::new("window W at the loss, segments", Scale::Logarithmic),
        y: Axis::new("segments per round trip", Scale::FromZero),
        curves: vec![curve("triple-dupack", throughput_by_dupacks), curve("timeout", throughput_by_timeout)],
    };
    Ok(Finding {
        tables: vec![analysis, set_ups, all_choices, queues, each_choice],
        charts: vec![chart],
        claims: vec![literal::any_ack(effort)?, analytic()],
        remarks: vec![set_ups_remark, all_choices_remark, each_choice_remark],
        ..Finding::default()
    })
}

/// Compares plain senders with the paper's numbers in each interpretation of §3.1, and shows the gain of sifest.
fn set_ups(effort: &Effort) -> Result<(Table, String), WorldError> {
    const STATED: [(&str, Channel, f64); 5] = [
        ("tahoe", MODERATE, 932.0),
        ("reno", MODERATE, 831.0),
        ("newreno", HEAVY, 970.0),
        ("tahoe", Channel::new(0.03, 0.03), 1443.0),
        ("tahoe", Channel::new(0.0, 0.06), 1262.0),
    ];
    let settings: Vec<_> = Interpretation::ALL
        .iter()
        .flat_map(|interpretation| {
            let senders = STATED.map(|(recipe, channel, _)| (recipe, channel));
            let all = senders.into_iter().chain([("tahoe+sifest", MODERATE)]);
            all.map(|(recipe, channel)| Setting {
                interpretation: *interpretation,
                ..Setting::new(recipe, channel)
            })
        })
        .collect();
    let found = measured(effort, &settings)?;
    let mut table = Table::new(
        "Interpretations of §3.1: acknowledged packets of plain senders after 100 s, in parentheses the \
         distance to the paper's number in standard deviations of one run, the largest such distance, and \
         Tahoe's gain with sifest. Headings include the paper's numbers:",
        &[
            "interpretation",
            "Tahoe, y = 0.15: 932",
            "Reno, y = 0.15: 831",
            "NewReno, x = y = 0.08: 970",
            "Tahoe, x = y = 0.03: 1443",
            "Tahoe, x = 0, y = 0.06: 1262",
            "largest distance",
            "sifest: 19.2 %",
        ],
    );
    let mut nearest: Option<(f64, Interpretation)> = None;
    let mut better = Vec::new();
    for (interpretation, runs) in Interpretation::ALL.iter().zip(found.chunks(STATED.len() + 1)) {
        let packets: Vec<_> = runs.iter().map(|seeds| acked(seeds)).collect();
        let distances: Vec<f64> = STATED
            .iter()
            .zip(&packets)
            .map(|((.., paper), packets)| (paper - mean(packets).mean) / deviation(packets))
            .collect();
        let farthest = distances.iter().fold(0.0, |most: f64, distance| most.max(distance.abs()));
        if nearest.is_none_or(|(least, _)| farthest < least) {
            nearest = Some((farthest, *interpretation));
        }
        let sifest_gain = gain(&packets[STATED.len()], &packets[0]);
        if Judged::better(&sifest_gain) == Judged::Holds {
            better.push(interpretation.name());
        }
        let cells = distances
            .iter()
            .zip(&packets)
            .map(|(distance, packets)| format!("{} ({distance:+.1})", shown(&mean(packets), 0)));
        let row = [interpretation.name().to_owned()].into_iter().chain(cells);
        table.row(row.chain([format!("{farthest:.1}"), percent(&sifest_gain)]));
    }
    let nearest = nearest.map_or("none", |(_, interpretation)| interpretation.name());
    let sentence = format!(
        "The interpretation “{nearest}” is closest to the paper's five numbers. sifest makes Tahoe faster in \
         {} of {} interpretations: {}.",
        better.len(),
        Interpretation::ALL.len(),
        better.join("; ")
    );
    Ok((table, sentence))
}

fn analytic() -> Claim {
    let less = (3..=1000).all(|w| throughput_difference(f64::from(w)) < 0.0);
    let equal = throughput_difference(2.0).abs() < 1e-12;
    let share = |w: f64| 100.0 * throughput_difference(w) / throughput_by_dupacks(w);
    claim(
        At("§2.3"),
        "“we have Th<sub>timeout</sub> < Th<sub>dupack</sub> when *W* > 2, which is the case for practical \
         networking scenarios.”",
        format!(
            "True for all W up to 1000: {:+.0} % at W = 4, {:+.0} % at W = 16. The formula ignores the wait \
             for the timer and the backoff, which cost more",
            share(4.0),
            share(16.0)
        ),
        if less && equal { Judged::Holds } else { Judged::DoesNotHold },
    )
    .not_counted(Counts::ByConstruction("the claim is algebra".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line of §2.3 is the difference between the two throughputs above it.
    #[test]
    fn throughput_difference_matches_subtraction() {
        for w in 2..=200 {
            let w = f64::from(w);
            let difference = throughput_by_timeout(w) - throughput_by_dupacks(w);
            assert!((difference - throughput_difference(w)).abs() < 1e-9, "W = {w}");
        }
    }

    /// By hand for W = 4: (4 − 2 + 6) / (1 + 2) with a timeout, and 3 with three duplicate ACKs.
    #[test]
    fn timeout_costs_throughput_for_windows_above_two() {
        assert_eq!((throughput_by_timeout(4.0), throughput_by_dupacks(4.0)), (8.0 / 3.0, 3.0));
        assert_eq!(throughput_difference(2.0), 0.0);
        assert_eq!(analytic().judged, Judged::Holds);
    }
}
