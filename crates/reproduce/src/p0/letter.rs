//! sifest by the letter of P0 §4.2 beside the choices of `sifest`.

use airlink::scenario::Scenario;
use airtcp_numbers::statistics::gains;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

use super::super::{Effort, Table, mean, shown};
use super::judging::{acked, gain, percent, values};
use super::measured;
use super::setting::{Channel, Setting};

const MODERATE: Channel = Channel::new(0.01, 0.15);
const HEAVY: Channel = Channel::new(0.08, 0.08);

/// What the choices of `sifest` are worth: beside it the paper's text by the letter.
pub(super) fn letters(effort: &Effort) -> Result<(Table, String), WorldError> {
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
pub(super) fn over_queues(effort: &Effort) -> Result<Table, WorldError> {
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
