//! Table 3: packets received at a bit error rate of 1e-3.

use airtcp_numbers::statistics::{self, differences};
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{Received, count, packets, percent};
use super::readings::REPETITIONS;
use super::setting::Variant::{Etcp, EtcpEarly, NewReno, Reno};
use super::setting::{CASES, Case, Errors, Setting, Variant};
use crate::chart::{Axis, Chart, Scale};
use crate::grid::Grid;
use crate::judge::{across, gain_of_repetitions};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column, mean};

/// Received packets with Reno and with E-TCP, and the paper's gain in percent.
type Paper = (f64, f64, f64);

const PAPER: [Paper; 3] = [(2624.0, 3176.0, 21.04), (2722.0, 3341.0, 22.74), (2735.0, 3459.0, 26.47)];
const SENTENCES: [&str; 3] = [
    "“Table 3 shows that E-TCP had sent on average about 21.04% more packets compared with Reno-TCP.”",
    "“On average, about 22.74% more packets have been received successfully by implementing E-TCP.”",
    "“Our simulation results show that 26.47% more packets were received successfully at the receiver.”",
];
const SENDERS: [Variant; 4] = [Reno, Etcp, EtcpEarly, NewReno];

type Rows = Grid<Variant, Case, Received>;

fn name((direction, errors): Case) -> String {
    match errors {
        Errors::InTotal => direction.name().to_owned(),
        Errors::OnEachRadio => format!("{}, 1e-3 on each radio", direction.name()),
    }
}

fn run(effort: &Effort, length: Duration) -> Result<Rows, WorldError> {
    let plan =
        |sender, (direction, errors): Case| Ok(Setting { errors, ..Setting::new(direction, sender, 1e-3) });
    Grid::run(&SENDERS, &CASES, plan, |settings| count(effort, settings, length))
}

/// Runs Table 3: packets received with each sender in each direction.
pub fn table3(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let rows = run(effort, length)?;
    Ok(Finding {
        tables: vec![received(&rows, length), timeouts(&rows, length)],
        charts: vec![chart(&rows, length)],
        claims: claims(&rows),
        remarks: vec![
            "Timeouts limit the throughput at this BER. Marks help only between timeouts. Single runs vary \
             so much that the gain of one pair of runs says little, and the paper may have used one pair. If \
             its numbers are means of many runs, as \"on average\" suggests, they compare with the means \
             here."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn received(rows: &Rows, length: Duration) -> Table {
    let ours = |heading: &str, sender| rows.column(heading, sender, 0, packets);
    let gain = |sender| move |case: &Case| percent(&rows.gain(sender, Reno, *case, packets));
    let paper = |shown: fn(&Paper) -> String| {
        move |case: &Case| {
            let row = CASES.iter().zip(&PAPER).find(|(known, _)| *known == case);
            row.map_or_else(|| "–".to_owned(), |(_, paper)| shown(paper))
        }
    };
    Table::of(
        format!("Packets received in {} s, and the paper's numbers", length.as_secs_f64()),
        [
            column("direction", |case: &Case| name(*case)),
            column("Reno-TCP (paper)", paper(|(reno, ..)| format!("{reno:.0}"))),
            column("E-TCP (paper)", paper(|(_, etcp, _)| format!("{etcp:.0}"))),
            column("gain (paper)", paper(|(.., gain)| format!("{gain} %"))),
            ours("Reno-TCP", Reno),
            ours("E-TCP", Etcp),
            column("gain", gain(Etcp)),
            ours("E-TCP, first mark", EtcpEarly),
            column("gain, first mark", gain(EtcpEarly)),
            ours("NewReno", NewReno),
        ],
        CASES,
    )
}

/// E-TCP does not change the response to timeouts, so their number limits its gain.
fn timeouts(rows: &Rows, length: Duration) -> Table {
    let of = |sender: Variant| rows.column(sender.name(), sender, 0, |counts| counts.timeouts);
    Table::of(
        format!("Timeouts in {} s. E-TCP responds to them like Reno-TCP", length.as_secs_f64()),
        [column("direction", |case: &Case| name(*case))].into_iter().chain(SENDERS.map(of)),
        CASES,
    )
}

fn chart(rows: &Rows, length: Duration) -> Chart {
    let bars = |sender: Variant| rows.bars(sender, sender.name(), packets);
    let printed =
        |value: fn(&Paper) -> f64| PAPER.iter().enumerate().map(move |(at, row)| (at as f64, value(row)));
    Chart {
        title: "Number of received packets at the receiver under BER 1e-3".to_owned(),
        x: Axis::new("direction", Scale::Names(CASES.map(name).to_vec())),
        y: Axis::new(format!("packets received in {} s", length.as_secs_f64()), Scale::FromZero),
        curves: vec![
            bars(Etcp).with_paper_values(printed(|row| row.1)),
            bars(Reno).with_paper_values(printed(|row| row.0)),
            bars(EtcpEarly),
        ],
    }
}

/// The directions of Table 3, without the second reading of the bit error rate.
const DIRECTIONS: [Case; 3] = [CASES[0], CASES[1], CASES[2]];
const ON_EACH_RADIO: Case = CASES[3];

fn claims(rows: &Rows) -> Vec<Claim> {
    let sentences = DIRECTIONS.into_iter().zip(SENTENCES).zip(PAPER);
    let mut claims: Vec<_> =
        sentences.map(|((case, sentence), (.., gain))| gain_claim(rows, case, sentence, gain)).collect();
    claims.extend([significant_improvements(rows), order_of_packets(rows), order_of_gains(rows)]);
    claims
}

/// The sentence about one direction. `paper` is its gain in percent.
fn gain_claim(rows: &Rows, case: Case, sentence: &str, paper: f64) -> Claim {
    let ours = rows.gain(Etcp, Reno, case, packets);
    let [with, without] = [Etcp, Reno].map(|sender| rows.at(sender, case, packets));
    let judge = |repetitions| {
        let tolerance = gain_of_repetitions(&with, &without, repetitions);
        Judged::effect(&ours, paper / 100.0, tolerance)
    };
    let on_each_radio = if case.0 == ON_EACH_RADIO.0 {
        let gain = rows.gain(Etcp, Reno, ON_EACH_RADIO, packets);
        format!(" With 1e-3 on each radio link: {}.", percent(&gain))
    } else {
        String::new()
    };
    claim(
        At(&format!("§IV, Table 3, {}", case.0.name())),
        sentence,
        format!(
            "{} with E-TCP; {} if it acts on the first mark. One pair of runs can deviate by {:.0} \
             %.{on_each_radio}",
            percent(&ours),
            percent(&rows.gain(EtcpEarly, Reno, case, packets)),
            100.0 * gain_of_repetitions(&with, &without, 1)
        ),
        judge(REPETITIONS.chosen),
    )
    .repeated(REPETITIONS, judge)
}

/// Gains of E-TCP over Reno-TCP by direction, then by seed.
fn gains_by_direction(rows: &Rows) -> [Vec<f64>; 3] {
    DIRECTIONS.map(|case| statistics::gains(&rows.at(Etcp, case, packets), &rows.at(Reno, case, packets)))
}

/// The reason why claims about the same numbers as the sentences do not count.
fn repeats() -> Counts {
    Counts::Repeats("the sentences of §IV about Table 3".to_owned())
}

fn significant_improvements(rows: &Rows) -> Claim {
    let pooled = mean(&across(&gains_by_direction(rows)));
    claim(
        At("Abstract"),
        "“Our simulation results show significant improvements to TCP performance can be achieved.”",
        format!(
            "E-TCP over Reno-TCP: {} on average over the three directions, at the highest BER",
            percent(&pooled)
        ),
        Judged::considerably(&pooled),
    )
    .not_counted(repeats())
}

fn order_of_packets(rows: &Rows) -> Claim {
    let [to_mobile, to_fixed, between_mobiles] = DIRECTIONS;
    let gain = |sender, more, less| {
        mean(&statistics::gains(&rows.at(sender, more, packets), &rows.at(sender, less, packets)))
    };
    let steps = [
        gain(Reno, to_fixed, to_mobile),
        gain(Reno, between_mobiles, to_fixed),
        gain(Etcp, to_fixed, to_mobile),
        gain(Etcp, between_mobiles, to_fixed),
    ];
    claim(
        At("Table 3"),
        "“Reno-TCP 2624 2722 2735”, “E-TCP 3176 3341 3459”: both receive more packets from M to F than from \
         F to M, and even more from M to M",
        format!(
            "M to F over F to M, and M to M over M to F: Reno-TCP {} and {}, E-TCP {} and {}",
            percent(&steps[0]),
            percent(&steps[1]),
            percent(&steps[2]),
            percent(&steps[3])
        ),
        Judged::all(steps.iter().map(Judged::better)),
    )
    .not_counted(repeats())
}

fn order_of_gains(rows: &Rows) -> Claim {
    let [to_mobile, to_fixed, between_mobiles] = gains_by_direction(rows);
    let steps = [(&to_fixed, &to_mobile), (&between_mobiles, &to_fixed)]
        .map(|(more, less)| mean(&differences(more, less)));
    claim(
        At("Table 3"),
        "“% 21.04 22.74 26.47”: the gain is larger from M to F than from F to M, and largest from M to M",
        format!(
            "the gain grows by {} and by {} of Reno-TCP's packets",
            percent(&steps[0]),
            percent(&steps[1])
        ),
        Judged::all(steps.iter().map(Judged::above_zero)),
    )
    .not_counted(repeats())
}
