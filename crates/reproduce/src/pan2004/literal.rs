//! The effect of the choices of `sifest` where §4.2 is open. `sifest-literal` follows the wording of the paper.

use airlink::scenario::Scenario;
use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

use super::judging::{Measured, acked, gain, negated, percent, values};
use super::senders::measured;
use super::setting::{Channel, HEAVY, MODERATE, Setting};
use crate::{At, Claim, Counts, Effort, Judged, Table, claim, mean, shown};

/// Compares `sifest` with `sifest-literal`: the effect of all choices together. Returns a table and a remark.
pub(super) fn all_choices(effort: &Effort) -> Result<(Table, String), WorldError> {
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
        "`sifest` compared with `sifest-literal`, which follows §4.2 to the letter: it decides by the clock \
         only and never holds a retransmission back. Acknowledged packets, gains over the plain sender, and \
         counts for plain / `sifest` / `sifest-literal`:",
        &[
            "sender",
            "plain",
            "sifest",
            "sifest-literal",
            "sifest's gain",
            "sifest-literal's gain",
            "timeouts",
            "fast retransmissions",
        ],
    );
    let mut gains_over_literal = Vec::new();
    for ((name, ..), runs) in SENDERS.iter().zip(found.chunks(3)) {
        let packets: Vec<_> = runs.iter().map(|seeds| acked(seeds)).collect();
        let shares = [1, 2].map(|with| percent(&gain(&packets[with], &packets[0])));
        let counts = |value: fn(&Measured) -> f64| {
            let means = runs.iter().map(|seeds| format!("{:.1}", mean(&values(seeds, value)).mean));
            means.collect::<Vec<_>>().join(" / ")
        };
        let row = [(*name).to_owned()].into_iter().chain(packets.iter().map(|p| shown(&mean(p), 0)));
        let row = row.chain(shares);
        table.row(row.chain([counts(|one| one.timeouts), counts(|one| one.succeeded)]));
        gains_over_literal.push(format!("{name}: {}", percent(&mean(&gains(&packets[1], &packets[2])))));
    }
    Ok((table, format!("Gain of `sifest` over `sifest-literal`: {}.", gains_over_literal.join("; "))))
}

/// The printed condition, with which one packet in flight needs no duplicate ACK.
pub(super) fn any_ack(effort: &Effort) -> Result<Claim, WorldError> {
    let recipes = SENDERS.map(|(_, sender)| [sender.to_owned(), format!("{sender}+sifest+sifest-any-ack")]);
    let settings: Vec<_> = recipes.iter().flatten().map(|recipe| Setting::new(recipe, MODERATE)).collect();
    let found = measured(effort, &settings)?;
    let gains: Vec<Mean> = found.chunks(2).map(|runs| gain(&acked(&runs[1]), &acked(&runs[0]))).collect();
    let shown = SENDERS.iter().zip(&gains).map(|((name, _), gain)| format!("{name} {}", percent(gain)));
    let shown = format!("gain over the plain sender: {}", shown.collect::<Vec<_>>().join(", "));
    let judged = Judged::all(gains.iter().map(Judged::better));
    let sentence = "“When a TCP sender already has (*sifest<sub>-</sub> - 1*) *dupacks*, or the number of *dupacks* \
                    has exceeded the fixed threshold, and if the most unacknowledged packet has not been resent in \
                    the last *rtt*, this packet is resent immediately according to Fast Retransmit.” (Here: \
                    `sifest-any-ack` needs no duplicate ACK if *sifest<sub>-</sub>* is one. The sender is still \
                    faster than without sifest.)";
    let why = "the sentence prescribes the condition, and does not name the case of one packet";
    Ok(claim(At("§4.2"), sentence, shown, judged).not_counted(Counts::Own(why.to_owned())))
}

/// A transfer of 2 MB whose only losses are overflows of a queue of `queue` packets.
fn overflowing(queue: u32, recipe: &str) -> Result<Run, WorldError> {
    const BYTES: u64 = 2_000_000;
    let path = format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nboth = {{ rate = \"2Mbit\", delay = \"50ms\", queue = {{ \
         packets = {queue} }} }}\n"
    );
    Ok(Run {
        scenario: Scenario::parse(&path, "a queue")?,
        seed: 0,
        fixed: HostSpec::sender(recipe.parse()?),
        mobile: HostSpec::receiver(),
        flows: vec![Flow::down(Length::Octets(BYTES))],
        until: Until::Complete(Duration::from_secs(600)),
        from: Instant::ZERO,
        score: false,
    })
}

/// Seconds, retransmitted segments and lost packets of each run.
fn queue_runs(effort: &Effort, plans: &[Run]) -> Result<Vec<Vec<[f64; 3]>>, WorldError> {
    effort.sample_named(
        "time in s, retransmissions and lost packets",
        plans,
        |plan, seed| Run { seed, ..plan.clone() },
        |_, report| {
            let flow = &report.flows[0];
            [
                flow.took_seconds.unwrap_or(report.seconds),
                flow.counters.resent() as f64,
                report.dropped_by_queues as f64,
            ]
        },
    )
}

/// Runs the same senders over queues. Only overflows cause losses there, so sifest should not change the sender.
pub(super) fn queue_losses(effort: &Effort) -> Result<Table, WorldError> {
    const QUEUES: [u32; 3] = [10, 20, 50];
    const RECIPES: [&str; 6] =
        ["reno", "reno+sifest", "reno+sifest-literal", "newreno", "newreno+sifest", "newreno+sifest-literal"];
    let plans: Vec<Run> = QUEUES
        .iter()
        .flat_map(|queue| RECIPES.map(|recipe| overflowing(*queue, recipe)))
        .collect::<Result<_, _>>()?;
    let found = queue_runs(effort, &plans)?;
    let mut table = Table::new(
        "The same senders over 2 Mbit/s with an RTT of 100 ms, where only queue overflows cause losses. \
         Seconds for 2 MB, retransmissions and lost packets of plain / `sifest` / `sifest-literal`, by queue \
         length in packets:",
        &["queue", "sender", "seconds", "retransmissions", "losses"],
    );
    for (index, runs) in found.chunks(3).enumerate() {
        let triple = |value: usize, digits: usize| {
            let means = runs.iter().map(|seeds| {
                let samples: Vec<f64> = seeds.iter().map(|seed| seed[value]).collect();
                format!("{:.digits$}", mean(&samples).mean)
            });
            means.collect::<Vec<_>>().join(" / ")
        };
        let name = ["Reno", "NewReno"][index % 2];
        table.row([QUEUES[index / 2].to_string(), name.to_owned(), triple(0, 1), triple(1, 0), triple(2, 0)]);
    }
    Ok(table)
}

/// The choices of `sifest`: for each one, the parameter that restores the paper's wording, and this wording.
const CHOICES: [(&str, &str); 9] = [
    ("sifest-any-ack", "“(*sifest<sub>-</sub> - 1) *dupacks*” can be zero"),
    ("sifest-idle-clock", "“idle for more than one *rtt*”: nothing sent for that time"),
    ("sifest-by-clock", "“not been resent in the last *rtt*”: by the clock only"),
    ("sifest-all-copies", "retransmissions after a timeout count each time"),
    ("sifest-new-data", "only “a new data packet” counts"),
    ("sifest-empty-path", "after a timeout the path counts as empty, even if ACKs just arrived"),
    ("sifest-3-in-vain", "duplicate ACKs of spurious retransmissions count towards “the fixed threshold”"),
    ("sifest-in-vain", "duplicate ACKs of spurious retransmissions count towards threshold and estimate"),
    ("sifest-no-recover", "three *dupacks* suffice even below `recover`"),
];
/// The parameters that together make `sifest-literal`.
#[cfg(test)]
const LITERAL: [&str; 5] =
    ["sifest-idle-clock", "sifest-by-clock", "sifest-all-copies", "sifest-in-vain", "sifest-no-recover"];
const SENDERS: [(&str, &str); 4] =
    [("Tahoe", "tahoe"), ("Reno", "reno"), ("NewReno", "newreno"), ("SACK", "sack")];

/// The effect of each choice: one parameter at a time restores the paper's wording.
pub(super) fn each_choice(effort: &Effort) -> Result<(Table, String), WorldError> {
    let rows: Vec<(String, &str)> = CHOICES
        .iter()
        .map(|(parameter, wording)| (format!("sifest+{parameter}"), *wording))
        .chain([(
            "sifest-literal".to_owned(),
            "five of these together: `sifest-idle-clock`, `sifest-by-clock`, `sifest-all-copies`, \
             `sifest-in-vain` and `sifest-no-recover`",
        )])
        .collect();
    let detectors = || std::iter::once("sifest").chain(rows.iter().map(|(detector, _)| detector.as_str()));
    let recipes: Vec<String> = SENDERS
        .iter()
        .flat_map(|(_, sender)| detectors().map(move |detector| format!("{sender}+{detector}")))
        .collect();
    let settings: Vec<_> = recipes.iter().map(|recipe| Setting::new(recipe, MODERATE)).collect();
    let over_radio = measured(effort, &settings)?;
    let queued = |sender: &str| -> Result<Vec<Run>, WorldError> {
        detectors().map(|detector| overflowing(10, &format!("{sender}+{detector}"))).collect()
    };
    let plans = [queued("reno")?, queued("newreno")?].concat();
    let over_queue = queue_runs(effort, &plans)?;

    let mut columns = vec!["parameter", "paper's wording"];
    columns.extend(SENDERS.map(|(name, _)| name));
    columns.extend(["Reno, queue", "NewReno, queue"]);
    let mut table = Table::new(
        "Effect of each choice of `sifest`: one parameter at a time restores the paper's wording. Gain over \
         `sifest` in packets at x = 0.01, y = 0.15; and seconds for 2 MB and retransmissions with the queue \
         of 10, where `sifest` equals the plain sender:",
        &columns,
    );
    let (mut effective, mut ineffective) = (Vec::new(), Vec::new());
    let runs = rows.len() + 1;
    for (at, (detector, wording)) in rows.iter().enumerate() {
        let name = detector.strip_prefix("sifest+").unwrap_or(detector);
        let more: Vec<Mean> =
            over_radio.chunks(runs).map(|sender| gain(&acked(&sender[at + 1]), &acked(&sender[0]))).collect();
        let queue = over_queue.chunks(runs).map(|sender| {
            let value =
                |value: usize| mean(&sender[at + 1].iter().map(|run| run[value]).collect::<Vec<_>>()).mean;
            format!("{:.1}, {:.0}", value(0), value(1))
        });
        let row = [format!("`{name}`"), (*wording).to_owned()].into_iter().chain(more.iter().map(percent));
        table.row(row.chain(queue));
        let is_sure =
            |more: &Mean| [more, &negated(more)].iter().any(|more| Judged::above_zero(more) == Judged::Holds);
        let changed: Vec<_> = SENDERS.iter().zip(&more).filter(|(_, more)| is_sure(more)).collect();
        if changed.is_empty() {
            ineffective.push(format!("`{name}`"));
        } else {
            let changes: Vec<_> =
                changed.iter().map(|((sender, _), more)| format!("{sender} {}", percent(more))).collect();
            effective.push(format!("`{name}` ({})", changes.join(", ")));
        }
    }
    let named = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join("; ") };
    let sentence = format!(
        "Over the radio link, these parameters alone change the number of acknowledged packets (the interval \
         excludes zero): {}. These do not: {}.",
        named(&effective),
        named(&ineffective)
    );
    Ok((table, sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With these parameters, `sifest` behaves like `sifest-literal`.
    #[test]
    fn literal_sifest_equals_its_parameters_together() {
        let together = format!("sifest+{}", LITERAL.join("+"));
        for (name, sender) in SENDERS {
            let settings = ["sifest", "sifest-literal", &together]
                .map(|detector| Setting::new(&format!("{sender}+{detector}"), HEAVY));
            let found = measured(&Effort::new(3), &settings).unwrap();
            let counts = |at: usize| -> Vec<_> {
                found[at].iter().map(|one| [one.acked, one.timeouts, one.succeeded]).collect()
            };
            assert_eq!(counts(1), counts(2), "{name}");
            assert_ne!(counts(0), counts(1), "{name}");
        }
    }
}
