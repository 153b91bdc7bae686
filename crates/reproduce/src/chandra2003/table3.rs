//! Table 3: packets received at a bit error rate of 1e-3.

use airtcp_numbers::statistics::{differences, gains};
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{count, gain, percent};
use super::setting::{Errors, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{self, one_run_gain};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

/// Received packets with Reno and with E-TCP, and the paper's gain in percent.
const PAPER: [(f64, f64, f64); 3] =
    [(2624.0, 3176.0, 21.04), (2722.0, 3341.0, 22.74), (2735.0, 3459.0, 26.47)];
const SENTENCES: [&str; 3] = [
    "“Table 3 shows that E-TCP had sent on average about 21.04% more packets compared with Reno-TCP.”",
    "“On average, about 22.74% more packets have been received successfully by implementing E-TCP.”",
    "“Our simulation results show that 26.47% more packets were received successfully at the receiver.”",
];
const SENDERS: [Variant; 4] = [Variant::Reno, Variant::Etcp, Variant::EtcpEarly, Variant::NewReno];

/// One row of the table.
struct Row {
    way: Way,
    errors: Errors,
    /// By sender in the order of `SENDERS`, then by seed.
    packets: Vec<Vec<f64>>,
    timeouts: Vec<Vec<f64>>,
}

impl Row {
    fn name(&self) -> String {
        match self.errors {
            Errors::InTotal => self.way.name().to_owned(),
            Errors::OnEachRadio => format!("{}, 1e-3 on each radio", self.way.name()),
        }
    }

    fn gains(&self) -> Vec<f64> {
        gains(&self.packets[1], &self.packets[0])
    }
}

fn rows(effort: &Effort, length: Duration) -> Result<Vec<Row>, WorldError> {
    let in_total = Way::ALL.map(|way| (way, Errors::InTotal));
    let cases: Vec<_> = in_total.into_iter().chain([(Way::MobileToMobile, Errors::OnEachRadio)]).collect();
    let settings: Vec<_> = cases
        .iter()
        .flat_map(|(way, errors)| {
            SENDERS.map(|sender| Setting { errors: *errors, ..Setting::new(*way, sender, 1e-3) })
        })
        .collect();
    let counts = count(effort, &settings, length)?;
    let of = |samples: &[Vec<f64>], row: usize| samples[row * SENDERS.len()..][..SENDERS.len()].to_vec();
    let row = |(row, (way, errors)): (usize, (Way, Errors))| Row {
        way,
        errors,
        packets: of(&counts.packets, row),
        timeouts: of(&counts.timeouts, row),
    };
    Ok(cases.into_iter().enumerate().map(row).collect())
}

pub fn table3(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let rows = rows(effort, length)?;
    Ok(Finding {
        tables: vec![packets(&rows, length), timeouts(&rows, length)],
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

fn packets(rows: &[Row], length: Duration) -> Table {
    let mut table = Table::new(
        format!("Packets received in {} s, and the paper's numbers", length.as_secs_f64()),
        &[
            "direction",
            "Reno-TCP (paper)",
            "E-TCP (paper)",
            "gain (paper)",
            "Reno-TCP",
            "E-TCP",
            "gain",
            "E-TCP, first mark",
            "gain, first mark",
            "NewReno",
        ],
    );
    for (index, row) in rows.iter().enumerate() {
        let [reno, etcp, early, newreno] = &row.packets[..] else { continue };
        let paper = PAPER.get(index).map_or_else(
            || ["–"; 3].map(str::to_owned),
            |(reno, etcp, gain)| [format!("{reno:.0}"), format!("{etcp:.0}"), format!("{gain} %")],
        );
        let ours = [
            cell(reno, 0),
            cell(etcp, 0),
            percent(&gain(etcp, reno)),
            cell(early, 0),
            percent(&gain(early, reno)),
            cell(newreno, 0),
        ];
        table.row([row.name()].into_iter().chain(paper).chain(ours));
    }
    table
}

/// E-TCP does not change the response to timeouts, so their number limits its gain.
fn timeouts(rows: &[Row], length: Duration) -> Table {
    let mut table = Table::new(
        format!("Timeouts in {} s. E-TCP responds to them like Reno-TCP", length.as_secs_f64()),
        &["direction", "Reno-TCP", "E-TCP", "E-TCP, first mark", "NewReno"],
    );
    for row in rows {
        table.row([row.name()].into_iter().chain(row.timeouts.iter().map(|samples| cell(samples, 0))));
    }
    table
}

fn chart(rows: &[Row], length: Duration) -> Chart {
    let bars = |name: &str, sender: usize| {
        let points = rows.iter().enumerate().map(move |(at, row)| (at as f64, &row.packets[sender][..]));
        Curve::bars(name, points)
    };
    let printed = |value: fn(&(f64, f64, f64)) -> f64| {
        PAPER.iter().enumerate().map(move |(at, row)| (at as f64, value(row)))
    };
    Chart {
        title: "Number of received packets at the receiver under BER 1e-3".to_owned(),
        x: Axis::new("direction", Scale::Names(rows.iter().map(Row::name).collect())),
        y: Axis::new(format!("packets received in {} s", length.as_secs_f64()), Scale::FromZero),
        curves: vec![
            bars("E-TCP", 1).beside(printed(|row| row.1)),
            bars("Reno-TCP", 0).beside(printed(|row| row.0)),
            bars("E-TCP, first mark", 2),
        ],
    }
}

fn claims(rows: &[Row]) -> Vec<Claim> {
    let [one, back, both, each, ..] = rows else { return Vec::new() };
    let mut claims: Vec<_> = [one, back, both]
        .into_iter()
        .zip(SENTENCES)
        .zip(PAPER)
        .map(|((row, paper), (.., number))| {
            let (ours, off) = (mean(&row.gains()), one_run_gain(&row.packets[1], &row.packets[0]));
            let aside = if row.way == Way::MobileToMobile {
                format!(" With 1e-3 on each radio link: {}.", percent(&mean(&each.gains())))
            } else {
                String::new()
            };
            Claim {
                paper: paper.to_owned(),
                place: format!("§IV, Table 3, {}", row.way.name()),
                counts: Counts::Yes,
                ours: format!(
                    "{} with E-TCP; {} if it acts on the first mark. One pair of runs can deviate by {:.0} \
                     %.{aside}",
                    percent(&ours),
                    percent(&gain(&row.packets[2], &row.packets[0])),
                    100.0 * off
                ),
                judged: Judged::number(&ours, number / 100.0, off),
            }
        })
        .collect();
    let all = [one, back, both].map(Row::gains);
    let pooled = mean(&judge::across(&all));
    claims.push(Claim {
        paper: "“Our simulation results show significant improvements to TCP performance can be achieved.”"
            .to_owned(),
        place: "Abstract".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "E-TCP over Reno-TCP: {} on average over the three directions, at the highest BER",
            percent(&pooled)
        ),
        judged: Judged::considerably(&pooled),
    });
    let above = |more: &Row, less: &Row, sender: usize| gain(&more.packets[sender], &less.packets[sender]);
    let steps = [above(back, one, 0), above(both, back, 0), above(back, one, 1), above(both, back, 1)];
    claims.push(Claim {
        paper: "“Reno-TCP 2624 2722 2735”, “E-TCP 3176 3341 3459”: both receive more packets from M to F \
                than from F to M, and even more from M to M"
            .to_owned(),
        place: "Table 3".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "M to F over F to M, and M to M over M to F: Reno-TCP {} and {}, E-TCP {} and {}",
            percent(&steps[0]),
            percent(&steps[1]),
            percent(&steps[2]),
            percent(&steps[3])
        ),
        judged: Judged::all(steps.iter().map(Judged::better)),
    });
    let steps =
        [(1, 0), (2, 1)].map(|(more, less): (usize, usize)| mean(&differences(&all[more], &all[less])));
    claims.push(Claim {
        paper:
            "“% 21.04 22.74 26.47”: the gain is larger from M to F than from F to M, and largest from M to M"
                .to_owned(),
        place: "Table 3".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "the gain grows by {} and by {} of Reno-TCP's packets",
            percent(&steps[0]),
            percent(&steps[1])
        ),
        judged: Judged::all(steps.iter().map(Judged::above_zero)),
    });
    claims
}
