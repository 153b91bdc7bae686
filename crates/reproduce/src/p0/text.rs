//! The formulas of P0 §2.3, and the numbers of packets that its text gives.

use airtcp_numbers::statistics::differences;
use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};
use super::judging::{acked, deviation, gain, gain_claim, signed};
use super::setting::{self, Channel};
use super::{Curve, grid};

/// Average throughput from a loss at the window W to the next one, in segments per round trip, if three duplicate ACKs
/// find the loss: 3W/4.
pub(super) fn throughput_by_dupacks(w: f64) -> f64 {
    3.0 * w / 4.0
}

/// The same if a timeout finds it: W − 2 segments in log2(W/2) round trips of slow start, then 3W²/8 in W/2.
pub(super) fn throughput_by_timeout(w: f64) -> f64 {
    (w - 2.0 + 3.0 * w * w / 8.0) / ((w / 2.0).log2() + w / 2.0)
}

/// Th_timeout − Th_dupack, in the form at the end of §2.3.
pub(super) fn throughput_difference(w: f64) -> f64 {
    ((7.0 - 3.0 * w.log2()) / 4.0 * w - 2.0) / (w.log2() - 1.0 + w / 2.0)
}

/// A number of packets that the text gives.
struct Stated {
    curve: Curve,
    channel: Channel,
    paper: f64,
}

pub(super) fn numbers(effort: &Effort) -> Result<Finding, WorldError> {
    const MODERATE: Channel = Channel::new(0.01, 0.15);
    const HEAVY: Channel = Channel::new(0.08, 0.08);
    const RANDOM: Channel = Channel::new(0.03, 0.03);
    const CLUSTERED: Channel = Channel::new(0.0, 0.06);
    const fn stated(name: &'static str, recipe: &'static str, channel: Channel, paper: f64) -> Stated {
        Stated { curve: Curve::new(name, recipe), channel, paper }
    }
    let ordinary = [
        stated("Tahoe", "tahoe", MODERATE, 932.0),
        stated("Reno", "reno", MODERATE, 831.0),
        stated("NewReno", "newreno", HEAVY, 970.0),
        stated("Tahoe", "tahoe", RANDOM, 1443.0),
        stated("Tahoe", "tahoe", CLUSTERED, 1262.0),
    ];
    let mut table = Table::new(
        "Packets acknowledged after 100 s by ordinary senders:",
        &["sender", "x", "y", "the paper, one run", "here", "SD of one run", "the paper's distance in SD"],
    );
    let mut distances = Vec::new();
    let mut spreads = Vec::new();
    for Stated { curve, channel, paper } in &ordinary {
        let packets = acked(&grid(effort, &[*curve], &[*channel])?[0][0]);
        let distance = (paper - mean(&packets).mean) / deviation(&packets);
        distances.push(distance);
        spreads.push(deviation(&packets) / mean(&packets).mean);
        table.row([
            curve.name.to_owned(),
            channel.x.to_string(),
            channel.y.to_string(),
            format!("{paper}"),
            shown(&mean(&packets), 0),
            format!("{:.0}", deviation(&packets)),
            format!("{distance:+.1}"),
        ]);
    }

    const NEWRENO: [Curve; 3] = [
        Curve::new("NewReno", "newreno"),
        Curve::new("NewReno, sifest", "newreno+sifest"),
        Curve::new("NewReno, Limited Transmit", "newreno+limited-transmit"),
    ];
    let found = grid(effort, &NEWRENO, &[HEAVY])?;
    let newreno: Vec<Vec<f64>> = found.iter().map(|curve| acked(&curve[0])).collect();
    let mut gains = Table::new("§4.3.1, x = y = 0.08:", &["sender", "the paper, one run", "here", "gain"]);
    for (index, paper) in ["970", "1116 (+15.1 %)", ""].into_iter().enumerate() {
        let over = signed(&mean(&gain(&newreno[index], &newreno[0])), 1);
        gains.row([
            NEWRENO[index].name.to_owned(),
            paper.to_owned(),
            shown(&mean(&newreno[index]), 0),
            if index == 0 { String::new() } else { format!("{over} %") },
        ]);
    }

    let mut analysis = Table::new(
        "§2.3, segments per round trip after a loss at the window W:",
        &["W", "found by a timeout", "by three duplicate ACKs", "difference"],
    );
    for w in [2.0, 4.0, 8.0, 16.0, 32.0, 64.0] {
        analysis.row([
            format!("{w}"),
            format!("{:.2}", throughput_by_timeout(w)),
            format!("{:.2}", throughput_by_dupacks(w)),
            format!("{:+.2}", throughput_difference(w)),
        ]);
    }

    let limited = mean(&differences(&newreno[1], &newreno[2]));
    let claims = vec![
        gain_claim(
            "over a randomized link, x = y = 0.08, sifest gives NewReno 15.1 % more (1116 for 970)",
            15.1,
            &mean(&gain(&newreno[1], &newreno[0])),
        ),
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "NewReno: Limited Transmit only alleviates what sifest avoids (§5)".to_owned(),
            ours: format!("sifest − Limited Transmit is {} packets", signed(&limited, 0)),
            judged: Judged::above_zero(&limited),
        },
        analytic(),
    ];
    let farthest = distances.iter().fold(0.0, |most: f64, distance| most.max(distance.abs()));
    // Enough runs to tell 10 % between the means of two independent samples, at 95 %.
    let pairs = spreads[0].powi(2) * 2.0 * (1.96_f64 / 0.1).powi(2);
    let remarks = vec![format!(
        "The paper's single runs are at most {farthest:.1} standard deviations from ours. At x = 0.01, y = 0.15 a single run of Tahoe varies by {:.0} %: a difference of 10 % between two senders takes about {pairs:.0} runs of each to be told from none.",
        100.0 * spreads[0]
    )];
    let choices = setting::choices();
    Ok(Finding { charts: Vec::new(), tables: vec![table, gains, analysis], claims, choices, remarks })
}

fn analytic() -> Claim {
    let less = (3..=1000).all(|w| throughput_difference(f64::from(w)) < 0.0);
    let equal = throughput_difference(2.0).abs() < 1e-12;
    let share = |w: f64| 100.0 * throughput_difference(w) / throughput_by_dupacks(w);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "Th_timeout < Th_dupack when W > 2, and no difference at W = 2 (§2.3)".to_owned(),
        ours: format!(
            "so it is for all W up to 1000; {:+.0} % at W = 4, {:+.0} % at 16: the formula counts neither the wait for the timer nor the backoff, which cost more",
            share(4.0),
            share(16.0)
        ),
        judged: if less && equal { Judged::Holds } else { Judged::DoesNotHold },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's last line is the difference of the two above it.
    #[test]
    fn the_difference_is_that_of_the_two_throughputs() {
        for w in 2..=200 {
            let w = f64::from(w);
            let difference = throughput_by_timeout(w) - throughput_by_dupacks(w);
            assert!((difference - throughput_difference(w)).abs() < 1e-9, "W = {w}");
        }
    }

    /// By hand, W = 4: (4 − 2 + 6) / (1 + 2) and 3.
    #[test]
    fn a_timeout_costs_throughput_above_a_window_of_two() {
        assert_eq!((throughput_by_timeout(4.0), throughput_by_dupacks(4.0)), (8.0 / 3.0, 3.0));
        assert_eq!(throughput_difference(2.0), 0.0);
        assert_eq!(analytic().judged, Judged::Holds);
    }
}
