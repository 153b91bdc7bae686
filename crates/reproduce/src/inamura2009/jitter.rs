//! Figs. 5 and 6 (§5.2): jitter without loss. Which timers have spurious timeouts, and what these cost.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Sample, Tsp, percent};
use super::systems::{BLER, System, SystemRuns, TRANSFERS};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{of_repetitions, rare, with_one_more};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column, shown};

/// A row of Fig. 5: the system, the sender that represents it, and the paper's timeouts in ten transfers at each BLER.
struct Row {
    name: &'static str,
    sender: System,
    paper: [f64; BLER.len()],
}

/// The system whose timer is unknown. Another system's timer represents it.
const XP: &str = "Windows XP(SP2)";
const XP_IS_UNKNOWN: &str = "the timer of Windows XP is unknown, and FreeBSD 2.2.8's timer represents it";

impl Row {
    fn is_met(&self, samples: &[Sample]) -> Judged {
        Judged::all(samples.iter().zip(self.paper).map(|(sample, paper)| meets(&in_ten(sample), paper)))
    }
}

const ROWS: [Row; 7] = [
    Row { name: "FreeBSD2.2.8", sender: System::FreeBsd22, paper: [0.0, 0.0, 0.0, 1.0] },
    Row { name: "FreeBSD4.5", sender: System::FreeBsd45, paper: [0.0, 0.0, 1.0, 1.0] },
    Row { name: "Linux2.4+Eifel", sender: System::Linux24Eifel, paper: [0.0, 1.0, 0.0, 3.0] },
    Row { name: "Linux2.4-Eifel", sender: System::Linux24, paper: [0.0, 0.0, 1.0, 3.0] },
    Row { name: "Solaris8", sender: System::Solaris, paper: [5.0, 2.0, 6.0, 8.0] },
    Row { name: "Linux2.2", sender: System::Linux22, paper: [7.0, 6.0, 6.0, 6.0] },
    Row { name: XP, sender: System::FreeBsd22, paper: [0.0, 0.0, 0.0, 0.0] },
];

/// The paper's explanation of the difference between the systems.
const TIMER_START: &str = "“BSD's retransmission timer is restarted by the arrival of a new acknowledgment” \
                           (§5.2; RFC 6298 (5.3)). Linux 2.2's timer counts from the transmission of the \
                           oldest segment, so it fires about a round trip earlier. `timer-linux22` does the \
                           same. The paper does not describe the timer of Solaris 8; here, ACKs restart it. \
                           The formula also differs: with a window of two segments, `timer-linux22` waits \
                           1.75 times as long as RFC 6298.";

/// Timeouts of each seed, scaled to ten transfers.
fn in_ten(sample: &Sample) -> Vec<f64> {
    sample.values(|t| TRANSFERS * t.timeouts)
}

/// Mean number of timeouts, with the interval for rare events ([`rare`]).
fn rate(counts: &[f64]) -> Mean {
    rare(counts, TRANSFERS)
}

/// Variation of the mean of ten transfers: the tolerance for the paper's numbers.
pub(super) fn spread_of_ten(samples: &[f64]) -> f64 {
    of_repetitions(samples, TRANSFERS as u32)
}

fn meets(counts: &[f64], paper: f64) -> Judged {
    Judged::number(&rate(counts), paper, spread_of_ten(&with_one_more(counts, TRANSFERS)))
}

fn listed(samples: &[Sample]) -> String {
    samples.iter().map(|sample| shown(&rate(&in_ten(sample)), 1)).collect::<Vec<_>>().join(", ")
}

fn has_timeouts_at_every_bler(samples: &[Sample]) -> Judged {
    Judged::all(samples.iter().map(|sample| Judged::above_zero(&rate(&in_ten(sample)))))
}

/// Whether there are timeouts at 10 % and none at the lower BLERs. A rate that is certainly above zero at a lower BLER
/// contradicts the paper, although ten transfers could be without timeouts by chance.
fn has_timeouts_only_at_10(samples: &[Sample]) -> Judged {
    let (high, low) = samples.split_last().expect("one sample per BLER");
    let none = low.iter().map(|sample| match Judged::above_zero(&rate(&in_ten(sample))) {
        Judged::Holds => Judged::DoesNotHold,
        _ => meets(&in_ten(sample), 0.0),
    });
    Judged::all(none.chain([Judged::above_zero(&rate(&in_ten(high)))]))
}

/// Fig. 5 with the paper's numbers in parentheses, and a verdict for each row.
fn incident_table(title: &str, grid: &SystemRuns) -> Table {
    let at = |(index, bler): (usize, u32)| {
        column(format!("BLER {bler} %"), move |row: &Row| {
            let ours = rate(&in_ten(&grid.of(row.sender)[index]));
            format!("{} ({})", shown(&ours, 1), row.paper[index])
        })
    };
    let names = [
        column("system", |row: &Row| row.name.to_owned()),
        column("recipe", |row: &Row| format!("`{}`", row.sender.recipe())),
    ];
    let verdict = column("verdict", |row: &Row| row.is_met(grid.of(row.sender)).name().to_owned());
    let columns = names.into_iter().chain(BLER.into_iter().enumerate().map(at));
    Table::of(title, columns.chain([verdict]), ROWS)
}

/// Cost: 52 transfers for each seed.
pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    let senders: Vec<_> = System::ALL.into_iter().chain([System::Linux22OneSecond]).collect();
    let grid = SystemRuns::run(effort, &senders)?;
    let delayed = SystemRuns::run_with_tsp(effort, &System::ALL, Tsp::EachReport)?;
    let counts = incident_table("Timeouts in ten transfers of 1 Mbyte (in parentheses: the paper)", &grid);
    let spurious = grid
        .table("Spurious timeouts in ten transfers (the segment was not lost)", |_, _, sample| {
            shown(&sample.mean(|t| TRANSFERS * t.spurious), 1)
        });

    let each_report_delayed = incident_table(
        "Timeouts in ten transfers if TSP delays each report, as in §2.2 (in parentheses: the paper)",
        &delayed,
    );

    let lost = if grid.most_lost() == 0.0 { "No packet was lost" } else { "Some packets were lost" };
    let remarks = vec![
        TIMER_START.to_owned(),
        format!("{lost} in these transfers (“packet loss was prevented by setting MAX DAT to 10”, §5.2)."),
    ];
    let claims = rows_claims(&grid).chain(claims_5(&grid)).collect();
    let charts = vec![incidents(&grid)];
    Ok(Finding {
        tables: vec![counts, spurious, each_report_delayed],
        charts,
        claims,
        remarks,
        ..Finding::default()
    })
}

/// A claim for each row of Fig. 5.
fn rows_claims(grid: &SystemRuns) -> impl Iterator<Item = Claim> {
    ROWS.into_iter().map(|row| {
        let (samples, [one, two, five, ten]) = (grid.of(row.sender), row.paper);
        let sentence = format!(
            "“{} {one} {two} {five} {ten}” (Here: timeouts in ten transfers at BLER 1, 2, 5 and 10 %.)",
            row.name
        );
        let counts = match row.name {
            XP => Counts::ByConstruction(XP_IS_UNKNOWN.to_owned()),
            _ => Counts::Repeats("the sentences of §5.2 about this table".to_owned()),
        };
        claim(At("Fig. 5"), &sentence, listed(samples), row.is_met(samples)).not_counted(counts)
    })
}

fn claims_5(grid: &SystemRuns) -> [Claim; 7] {
    let more = |more, fewer| grid.more_timeouts(more, fewer);
    let resilient = [System::FreeBsd22, System::FreeBsd45]
        .map(|freebsd| [System::Linux22, System::Solaris].map(|other| more(other, freebsd)));
    let fewer_than_linux = more(System::Linux22, System::Solaris);
    let conservative = more(System::Linux22, System::Linux24);
    let minimum = more(System::Linux22, System::Linux22OneSecond);
    let freebsds = [System::FreeBsd22, System::FreeBsd45].map(|freebsd| grid.of(freebsd));
    [
        claim(
            At("§5.2"),
            "“Linux2.2 exhibits RTO events at all BLER values examined.”",
            format!("{} in ten transfers", listed(grid.of(System::Linux22))),
            has_timeouts_at_every_bler(grid.of(System::Linux22)),
        ),
        claim(
            At("§5.2"),
            "“This is also true for Solaris but the number of events is fewer.”",
            format!(
                "{} in ten transfers; over all BLERs {} fewer than Linux 2.2 in forty transfers",
                listed(grid.of(System::Solaris)),
                shown(&fewer_than_linux, 1)
            ),
            Judged::all([
                has_timeouts_at_every_bler(grid.of(System::Solaris)),
                Judged::above_zero(&fewer_than_linux),
            ]),
        ),
        claim(
            At("§5.2"),
            "“FreeBSD prevents any RTO event, except at the BLER value of 10%.” (Here: FreeBSD 2.2.8. In \
             Fig. 5, FreeBSD 4.5 also has a timeout at 5 %.)",
            format!(
                "in ten transfers, FreeBSD 2.2.8 has {}; FreeBSD 4.5 has {}",
                listed(freebsds[0]),
                listed(freebsds[1])
            ),
            has_timeouts_only_at_10(freebsds[0]),
        ),
        claim(
            At("§5.2"),
            "“Table 5 shows that Windows XP and FreeBSD are resilient against jitter.” (Here: both FreeBSD \
             timers have fewer timeouts than the timers of Linux 2.2 and Solaris 8.)",
            format!(
                "fewer timeouts in forty transfers than Linux 2.2 and Solaris 8: FreeBSD 2.2.8 {} and {}, \
                 FreeBSD 4.5 {} and {}",
                shown(&resilient[0][0], 1),
                shown(&resilient[0][1], 1),
                shown(&resilient[1][0], 1),
                shown(&resilient[1][1], 1)
            ),
            Judged::all(resilient.iter().flatten().map(Judged::above_zero)),
        ),
        claim(
            At("§5.2"),
            "“Linux2.4 changed RTO implementation to conform BSD algorithm that leads its behavior more \
             conservative as BSD does.” (Here: Linux 2.4 has fewer timeouts than Linux 2.2.)",
            format!("{} fewer timeouts in forty transfers", shown(&conservative, 1)),
            Judged::above_zero(&conservative),
        ),
        claim(
            At("§5.2"),
            "“FreeBSD has larger minimum value than Linux2.2, which makes it less aggressive than Linux.” \
             (Here: Linux 2.2 has fewer timeouts with a minimum RTO of 1 s.)",
            format!("{} fewer timeouts in forty transfers with `min-rto=1000`", shown(&minimum, 1)),
            Judged::above_zero(&minimum),
        ),
        claim(
            At("§5.2"),
            "“For Windows XP, The RTO outcome is similar to the FreeBSD …”",
            "identical".to_owned(),
            Judged::Holds,
        )
        .not_counted(Counts::ByConstruction(XP_IS_UNKNOWN.to_owned())),
    ]
}

fn incidents(grid: &SystemRuns) -> Chart {
    let curve = |(i, bler): (usize, &u32)| {
        let values: Vec<_> = ROWS.iter().map(|row| in_ten(&grid.of(row.sender)[i])).collect();
        let points = values.iter().enumerate().map(|(x, samples)| (x as f64, samples.as_slice()));
        Curve::bars(format!("BLER {bler} %"), points)
            .with_paper_values(ROWS.iter().enumerate().map(|(x, row)| (x as f64, row.paper[i])))
    };
    Chart {
        title: "The number of incidents of RTO vs BLER".to_owned(),
        x: Axis::new("", Scale::Names(ROWS.iter().map(|row| row.name.to_owned()).collect())),
        y: Axis::new("timeouts in ten transfers", Scale::FromZero),
        curves: BLER.iter().enumerate().map(curve).collect(),
    }
}

/// Seconds that a timeout costs, from the seeds with timeouts in `sample` and without timeouts in `without`.
fn cost_of_timeouts(sample: &Sample, without: &Sample) -> Vec<f64> {
    std::iter::zip(sample.transfers(), without.transfers())
        .filter(|(with, without)| with.timeouts > 0.0 && without.timeouts == 0.0)
        .map(|(with, without)| (with.seconds - without.seconds) / with.timeouts)
        .collect()
}

pub(super) fn throughputs(grid: &SystemRuns) -> Table {
    grid.table("Throughput of 1 Mbyte in kbit/s", |_, _, sample| shown(&sample.mean(|t| t.kbit_per_s), 1))
}

/// Cost: 28 transfers for each seed.
pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    let senders: Vec<_> = System::ALL.into_iter().chain([System::NeverFires]).collect();
    let grid = SystemRuns::run(effort, &senders)?;
    let without = grid.gain(System::NeverFires, System::Linux22);
    let others = [System::FreeBsd22, System::FreeBsd45, System::Linux24, System::Solaris];
    let above = others.map(|other| grid.gain(other, System::Linux22));
    let difference = grid.gain(System::FreeBsd45, System::FreeBsd22);
    let without_timeouts =
        [System::FreeBsd22, System::FreeBsd45].map(|freebsd| grid.gain(System::NeverFires, freebsd));
    let of_others =
        others.iter().zip(&above).map(|(other, gain)| format!("{} {}", other.name(), percent(gain)));
    let claims = vec![
        claim(
            At("§5.2, Fig. 6"),
            "“The results show that the throughput is decreased by the RTO events, especially in Linux2.2.” \
             (Here: Linux 2.2 is faster without timeouts, and all other systems are faster than Linux 2.2.)",
            format!(
                "throughput compared with Linux 2.2, over all BLERs: timer never fires {}; {}",
                percent(&without),
                of_others.collect::<Vec<_>>().join(", ")
            ),
            Judged::all(std::iter::once(&without).chain(&above).map(Judged::better)),
        ),
        claim(
            At("§5.2, Fig. 6"),
            "“Comparing the difference between FreeBSD2.2.8 and 4.5 is small due to the fact that the \
             incidents of RTO itself are small.” (Here: their throughput is similar, and a timer that never \
             fires is similar to both.)",
            format!(
                "throughput over all BLERs: FreeBSD 4.5 {} compared with 2.2.8; timer never fires {} \
                 compared with 2.2.8 and {} with 4.5",
                percent(&difference),
                percent(&without_timeouts[0]),
                percent(&without_timeouts[1])
            ),
            Judged::all(std::iter::once(&difference).chain(&without_timeouts).map(Judged::similar)),
        ),
    ];
    let costs: Vec<_> = [System::Linux24, System::Solaris, System::Linux22]
        .into_iter()
        .flat_map(|sender| cost_of_timeouts(grid.at_10(sender), grid.at_10(System::NeverFires)))
        .collect();
    let gains = [System::FreeBsd22, System::FreeBsd45, System::Linux24, System::Solaris, System::Linux22]
        .map(|sender| format!("{} {}", sender.name(), percent(&grid.gain(System::NeverFires, sender))));
    let mut remarks = vec![format!(
        "Gain of a timer that never fires over each system, over all BLERs: {}.",
        gains.join("; ")
    )];
    if let Some(cost) = Mean::of(&costs) {
        remarks.push(format!(
            "At BLER 10 %, a timeout costs {} s of transfer time (Linux 2.4, Solaris 8 and Linux 2.2 \
             together). A timeout in the first window, when the timer has hardly measured any variation, \
             leaves an ssthresh of two segments. From there, with delayed ACKs, the window grows by half a \
             segment per round trip.",
            shown(&cost, 1)
        ));
    }
    let charts = vec![grid.throughput_chart("Throughput vs BLER", &System::ALL)];
    Ok(Finding { tables: vec![throughputs(&grid)], charts, claims, remarks, ..Finding::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absence_in_few_transfers_is_undecided() {
        assert_eq!(meets(&[0.0; 4], 1.0), Judged::Undecided);
        assert_eq!(meets(&[0.0; 30], 1.0), Judged::Holds, "ten transfers may have one timeout by chance");
        assert_eq!(meets(&[0.0; 30], 5.0), Judged::DoesNotHold);
        assert_eq!(Judged::above_zero(&rate(&[0.0; 30])), Judged::Undecided);
    }
}
