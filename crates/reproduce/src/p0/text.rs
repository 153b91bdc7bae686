//! The formulas of P0 §2.3; the other readings of its set-up (§3.1), and of sifest (§4.2).

use airlink::scenario::Scenario;
use airtcp_numbers::statistics::gains;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

use super::super::chart::{Axis, Chart, Curve as Line, Scale};
use super::super::judge::deviation;
use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};
use super::judging::{acked, claim, gain, percent, values};
use super::measured;
use super::setting::{self, Channel, Reading, Setting};

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

const WINDOWS: [f64; 6] = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
const MODERATE: Channel = Channel::new(0.01, 0.15);
const HEAVY: Channel = Channel::new(0.08, 0.08);

pub(super) fn readings(effort: &Effort) -> Result<Finding, WorldError> {
    let mut analysis = Table::new(
        "§2.3, segments per round trip after a loss at the window W:",
        &["W", "found by a timeout", "by three duplicate ACKs", "difference"],
    );
    for w in WINDOWS {
        analysis.row([
            format!("{w}"),
            format!("{:.2}", throughput_by_timeout(w)),
            format!("{:.2}", throughput_by_dupacks(w)),
            format!("{:+.2}", throughput_difference(w)),
        ]);
    }
    let (set_ups, of_set_ups) = set_ups(effort)?;
    let (letters, of_letters) = letters(effort)?;
    let queues = over_queues(effort)?;
    let curve = |name: &str, of: fn(f64) -> f64| Line::dots(name, WINDOWS.map(|w| (w, of(w))));
    let chart = Chart {
        title: "Fig. 2: Timeout v.s. Triple-dupack (the formulas)".to_owned(),
        x: Axis::new("window W at the loss, segments", Scale::Logarithmic),
        y: Axis::new("segments per round trip", Scale::FromZero),
        curves: vec![curve("triple-dupack", throughput_by_dupacks), curve("timeout", throughput_by_timeout)],
    };
    Ok(Finding {
        tables: vec![analysis, set_ups, letters, queues],
        charts: vec![chart],
        claims: vec![analytic()],
        choices: setting::choices(),
        remarks: vec![of_set_ups, of_letters],
    })
}

/// The paper's numbers for ordinary senders under each reading of §3.1, and what sifest gains there.
fn set_ups(effort: &Effort) -> Result<(Table, String), WorldError> {
    const STATED: [(&str, Channel, f64); 5] = [
        ("tahoe", MODERATE, 932.0),
        ("reno", MODERATE, 831.0),
        ("newreno", HEAVY, 970.0),
        ("tahoe", Channel::new(0.03, 0.03), 1443.0),
        ("tahoe", Channel::new(0.0, 0.06), 1262.0),
    ];
    let settings: Vec<_> = Reading::ALL
        .iter()
        .flat_map(|reading| {
            let senders = STATED.map(|(recipe, channel, _)| (recipe, channel));
            let all = senders.into_iter().chain([("tahoe+sifest", MODERATE)]);
            all.map(|(recipe, channel)| Setting { reading: *reading, ..Setting::new(recipe, channel) })
        })
        .collect();
    let found = measured(effort, &settings)?;
    let mut table = Table::new(
        "§3.1 in other readings: packets acknowledged after 100 s by ordinary senders, the paper's distance from that in standard deviations of one run, and what sifest gives Tahoe:",
        &[
            "reading",
            "Tahoe, y = 0.15: 932",
            "Reno, y = 0.15: 831",
            "NewReno, x = y = 0.08: 970",
            "Tahoe, x = y = 0.03: 1443",
            "Tahoe, x = 0, y = 0.06: 1262",
            "farthest",
            "sifest (19.2 %)",
        ],
    );
    let mut nearest: Option<(f64, Reading)> = None;
    let mut better = Vec::new();
    for (reading, runs) in Reading::ALL.iter().zip(found.chunks(STATED.len() + 1)) {
        let packets: Vec<_> = runs.iter().map(|seeds| acked(seeds)).collect();
        let distances: Vec<f64> = STATED
            .iter()
            .zip(&packets)
            .map(|((.., paper), packets)| (paper - mean(packets).mean) / deviation(packets))
            .collect();
        let farthest = distances.iter().fold(0.0, |most: f64, distance| most.max(distance.abs()));
        if nearest.is_none_or(|(least, _)| farthest < least) {
            nearest = Some((farthest, *reading));
        }
        let over = gain(&packets[STATED.len()], &packets[0]);
        if Judged::better(&over) == Judged::Holds {
            better.push(reading.name());
        }
        let cells = distances
            .iter()
            .zip(&packets)
            .map(|(distance, packets)| format!("{} ({distance:+.1})", shown(&mean(packets), 0)));
        let row = [reading.name().to_owned()].into_iter().chain(cells);
        table.row(row.chain([format!("{farthest:.1}"), percent(&over)]));
    }
    let nearest = nearest.map_or("none", |(_, reading)| reading.name());
    let sentence = format!(
        "Nearest to the paper's five numbers is the reading “{nearest}”. sifest makes Tahoe faster in {} of {} readings: {}.",
        better.len(),
        Reading::ALL.len(),
        better.join("; ")
    );
    Ok((table, sentence))
}

/// What the choices of `sifest` are worth: beside it the paper's text by the letter.
fn letters(effort: &Effort) -> Result<(Table, String), WorldError> {
    const SENDERS: [(&str, Channel, [&str; 3]); 5] = [
        ("Tahoe, y = 0.15", MODERATE, ["tahoe", "tahoe+sifest", "tahoe+sifest-literal"]),
        ("Reno, y = 0.15", MODERATE, ["reno", "reno+sifest", "reno+sifest-literal"]),
        ("NewReno, y = 0.15", MODERATE, ["newreno", "newreno+sifest", "newreno+sifest-literal"]),
        ("SACK, y = 0.15", MODERATE, ["sack", "sack+sifest", "sack+sifest-literal"]),
        ("NewReno, x = y = 0.08", HEAVY, ["newreno", "newreno+sifest", "newreno+sifest-literal"]),
    ];
    let settings: Vec<_> = SENDERS
        .iter()
        .flat_map(|(_, channel, recipes)| recipes.map(|recipe| Setting::new(recipe, *channel)))
        .collect();
    let found = measured(effort, &settings)?;
    let mut table = Table::new(
        "§4.2 by the letter (`sifest-literal`: by the clock alone, and nothing holds a retransmission back) beside `sifest` with its choices:",
        &[
            "sender",
            "plain",
            "sifest",
            "sifest-literal",
            "sifest's gain",
            "the letter's",
            "timeouts of the three",
            "fast retransmits",
        ],
    );
    let mut apart = Vec::new();
    for ((name, ..), runs) in SENDERS.iter().zip(found.chunks(3)) {
        let packets: Vec<_> = runs.iter().map(|seeds| acked(seeds)).collect();
        let shares = [1, 2].map(|with| percent(&gain(&packets[with], &packets[0])));
        let counts = |value: fn(&super::judging::Measured) -> f64| {
            let of = runs.iter().map(|seeds| format!("{:.1}", mean(&values(seeds, value)).mean));
            of.collect::<Vec<_>>().join(" / ")
        };
        let row = [(*name).to_owned()].into_iter().chain(packets.iter().map(|p| shown(&mean(p), 0)));
        let row = row.chain(shares);
        table.row(row.chain([counts(|one| one.timeouts), counts(|one| one.succeeded)]));
        apart.push(format!("{name} {}", percent(&mean(&gains(&packets[1], &packets[2])))));
    }
    Ok((table, format!("The choices of `sifest` are worth, over the letter: {}.", apart.join("; "))))
}

/// The same three where nothing is lost but to a queue that overflows, for there the choices say when to wait.
fn over_queues(effort: &Effort) -> Result<Table, WorldError> {
    const QUEUES: [u32; 3] = [10, 20, 50];
    const RECIPES: [&str; 6] =
        ["reno", "reno+sifest", "reno+sifest-literal", "newreno", "newreno+sifest", "newreno+sifest-literal"];
    const OCTETS: u64 = 2_000_000;
    let plan = |queue: u32, recipe: &str| {
        let path = format!(
            "schema = 1\n[[stage]]\nkind = \"link\"\nboth = {{ rate = \"2Mbit\", delay = \"50ms\", queue = {{ packets = {queue} }} }}\n"
        );
        Ok::<_, WorldError>(Run {
            scenario: Scenario::parse(&path, "a queue")?,
            seed: 0,
            fixed: HostSpec::sender(recipe.parse()?),
            mobile: HostSpec::receiver(),
            flows: vec![Flow::down(Length::Octets(OCTETS))],
            until: Until::Complete(Duration::from_secs(600)),
            from: Instant::ZERO,
            score: false,
        })
    };
    let plans: Vec<Run> = QUEUES
        .iter()
        .flat_map(|queue| RECIPES.map(|recipe| plan(*queue, recipe)))
        .collect::<Result<_, _>>()?;
    let found = effort.sample(
        &plans,
        |plan, seed| Run { seed, ..plan.clone() },
        |_, report| {
            let flow = &report.flows[0];
            [
                flow.took_seconds.unwrap_or(report.seconds),
                flow.counters.resent() as f64,
                report.dropped_by_queues as f64,
            ]
        },
    )?;
    let mut table = Table::new(
        "The same over 2 Mbit/s and a round trip of 100 ms, where nothing is lost but to a queue of so many packets: seconds for 2 MB, segments sent again, and packets lost, by the plain sender / `sifest` / `sifest-literal`:",
        &["queue", "sender", "seconds", "sent again", "lost"],
    );
    for (index, runs) in found.chunks(3).enumerate() {
        let of = |value: usize, digits: usize| {
            let means = runs.iter().map(|seeds| {
                let samples: Vec<f64> = seeds.iter().map(|seed| seed[value]).collect();
                format!("{:.digits$}", mean(&samples).mean)
            });
            means.collect::<Vec<_>>().join(" / ")
        };
        let name = ["Reno", "NewReno"][index % 2];
        table.row([QUEUES[index / 2].to_string(), name.to_owned(), of(0, 1), of(1, 0), of(2, 0)]);
    }
    Ok(table)
}

fn analytic() -> Claim {
    let less = (3..=1000).all(|w| throughput_difference(f64::from(w)) < 0.0);
    let equal = throughput_difference(2.0).abs() < 1e-12;
    let share = |w: f64| 100.0 * throughput_difference(w) / throughput_by_dupacks(w);
    Claim {
        counts: Counts::ByConstruction("it is algebra".to_owned()),
        ..claim(
            "§2.3",
            "“we have Th<sub>timeout</sub> < Th<sub>dupack</sub> when *W* > 2, which is the case for practical networking scenarios.”",
            format!(
                "so it is for all W up to 1000; {:+.0} % at W = 4, {:+.0} % at 16: the formula counts neither the wait for the timer nor the backoff, which cost more",
                share(4.0),
                share(16.0)
            ),
            if less && equal { Judged::Holds } else { Judged::DoesNotHold },
        )
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
