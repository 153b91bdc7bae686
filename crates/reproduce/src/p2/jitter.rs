//! Figs. 5 and 6 (§5.2): delay without loss. Which timers take it for loss, and what that costs.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::setting::{Sample, Tsp, percent};
use super::systems::{BLER, Grid, System, TRANSFERS};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::{one_run, rare, with_one_more};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, shown};

/// A row of Fig. 5: the system, who stands for it here, and its incidents in ten transfers at each BLER.
struct Row {
    name: &'static str,
    sender: System,
    paper: [f64; BLER.len()],
}

/// Of its timer nothing is known: another system's stands for it.
const XP: &str = "Windows XP(SP2)";
const XP_IS_UNKNOWN: &str = "of its timer nothing is known, and FreeBSD 2.2.8's stands for it";

impl Row {
    fn is_met(&self, samples: &[Sample]) -> Judged {
        Judged::all(samples.iter().zip(self.paper).map(|(sample, paper)| is_number(&in_ten(sample), paper)))
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

const CHOICES: [&str; 4] = [
    "TSP 500 ms, MAX DAT 10 (retransmissions) and buffers of 64 KB as in §5.2; 1 Mbyte is 2^20 octets. A seed is a transfer; the paper made ten at each point, so one run of the paper's length scatters as the mean of ten transfers.",
    "The systems are represented by their timers alone; all have timestamps. FreeBSD 2.2's counts half seconds, FreeBSD 4.5's hundredths (its tcp_timer.h 1.18 of 1999); both have a least timeout of 1 s and measure with each ACK. Two ticks of half a second may be over after little more than one of them. FreeBSD 4.5 takes back a timeout if an ACK comes within half a round trip of it, which is left out.",
    "Windows XP's timer is not published, and who measured it found no equation for it (S. Rewaskar, end2end-interest, February 2006). “For Windows XP, The RTO outcome is similar to the FreeBSD as in our investigation that suggests it implements BSD behavior”: so FreeBSD 2.2.8's timer stands for it, and what the paper says of XP is not counted.",
    "Linux 2.4's Eifel is `eifel-linux`: its detection and response are the kernel's, without RFC 3522's step (5).",
];

/// Of Figs. 5 to 7.
pub(super) fn choices() -> Vec<String> {
    CHOICES.map(str::to_owned).to_vec()
}

/// What the paper puts the difference between the systems down to.
const TIMER_START: &str = "“BSD's retransmission timer is restarted by the arrival of a new acknowledgment” (§5.2; RFC 6298 (5.3)); Linux 2.2's counts from the \
     transmission of the oldest segment, about a round trip earlier. So it is here; of Solaris 8 nothing is said, and its timer is restarted by ACKs. The \
     rest is arithmetic: with a window of two `timer-linux22` waits 1.75 times as long as RFC 6298.";

pub(super) fn counted(place: &str, paper: &str, ours: String, judged: Judged) -> Claim {
    Claim { paper: paper.to_owned(), place: place.to_owned(), counts: Counts::Yes, ours, judged }
}

/// Timeouts in ten transfers.
fn in_ten(sample: &Sample) -> Vec<f64> {
    sample.values(|t| TRANSFERS * t.timeouts)
}

/// Their mean. Timeouts are rare.
fn rate(counts: &[f64]) -> Mean {
    rare(counts, TRANSFERS)
}

/// How far a number of the paper may be off that comes of ten transfers.
pub(super) fn of_ten(samples: &[f64]) -> f64 {
    one_run(samples) / TRANSFERS.sqrt()
}

fn is_number(counts: &[f64], paper: f64) -> Judged {
    Judged::number(&rate(counts), paper, of_ten(&with_one_more(counts, TRANSFERS)))
}

fn listed(samples: &[Sample]) -> String {
    samples.iter().map(|sample| shown(&rate(&in_ten(sample)), 1)).collect::<Vec<_>>().join(", ")
}

fn at_every_bler(samples: &[Sample]) -> Judged {
    Judged::all(samples.iter().map(|sample| Judged::above_zero(&rate(&in_ten(sample)))))
}

/// None at the lower BLERs, and some at 10 %. That ten transfers may have none by chance does not prevent them.
fn except_at_10(samples: &[Sample]) -> Judged {
    let (high, low) = samples.split_last().expect("one for each BLER");
    let none = low.iter().map(|sample| match Judged::above_zero(&rate(&in_ten(sample))) {
        Judged::Holds => Judged::DoesNotHold,
        _ => is_number(&in_ten(sample), 0.0),
    });
    Judged::all(none.chain([Judged::above_zero(&rate(&in_ten(high)))]))
}

/// The rows of Fig. 5, with the paper's numbers and whether they are met.
fn incident_table(title: &str, grid: &Grid) -> Table {
    let blers = BLER.map(|bler| format!("BLER {bler} %"));
    let blers = blers.iter().map(String::as_str);
    let columns: Vec<_> = ["", "recipe"].into_iter().chain(blers).chain(["the paper's numbers"]).collect();
    let mut table = Table::new(title, &columns);
    for row in &ROWS {
        let samples = grid.of(row.sender);
        let cells = samples.iter().zip(row.paper);
        let cells = cells.map(|(sample, paper)| format!("{} ({paper})", shown(&rate(&in_ten(sample)), 1)));
        let names = [row.name.to_owned(), format!("`{}`", row.sender.recipe())];
        table.row(names.into_iter().chain(cells).chain([row.is_met(samples).name().to_owned()]));
    }
    table
}

/// Cost: 52 transfers for each seed.
pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    let senders: Vec<_> = System::ALL.into_iter().chain([System::Linux22OneSecond]).collect();
    let grid = Grid::run(effort, &senders)?;
    let delayed = Grid::read(effort, &System::ALL, Tsp::EachReport)?;
    let counts = incident_table("Timeouts in ten transfers of 1 Mbyte (paper)", &grid);
    let spurious = grid
        .table("Spurious timeouts in ten transfers: of segments that were not lost", |_, _, sample| {
            shown(&sample.mean(|t| TRANSFERS * t.spurious), 1)
        });

    let read = incident_table(
        "If TSP delays each report instead (§2.2): timeouts in ten transfers (paper)",
        &delayed,
    );

    let more = |more, fewer| grid.more_timeouts(more, fewer);
    let resilient = [System::FreeBsd22, System::FreeBsd45]
        .map(|freebsd| [System::Linux22, System::Solaris].map(|other| more(other, freebsd)));
    let fewer_than_linux = more(System::Linux22, System::Solaris);
    let conservative = more(System::Linux22, System::Linux24);
    let minimum = more(System::Linux22, System::Linux22OneSecond);
    let freebsds = [System::FreeBsd22, System::FreeBsd45].map(|freebsd| grid.of(freebsd));
    let mut claims: Vec<_> = ROWS
        .iter()
        .map(|row| {
            let (samples, [one, two, five, ten]) = (grid.of(row.sender), row.paper);
            let paper =
                format!("“{} {one} {two} {five} {ten}”: RTOs in ten transfers at 1, 2, 5 and 10 %", row.name);
            let claim = counted("Fig. 5", &paper, listed(samples), row.is_met(samples));
            match row.name {
                XP => Claim { counts: Counts::ByConstruction(XP_IS_UNKNOWN.to_owned()), ..claim },
                _ => claim,
            }
        })
        .collect();
    claims.extend([
        counted(
            "§5.2",
            "“Linux2.2 exhibits RTO events at all BLER values examined.”",
            format!("{} in ten", listed(grid.of(System::Linux22))),
            at_every_bler(grid.of(System::Linux22)),
        ),
        counted(
            "§5.2",
            "“This is also true for Solaris but the number of events is fewer.”",
            format!("{} in ten; {} fewer in forty", listed(grid.of(System::Solaris)), shown(&fewer_than_linux, 1)),
            Judged::all([at_every_bler(grid.of(System::Solaris)), Judged::above_zero(&fewer_than_linux)]),
        ),
        counted(
            "§5.2",
            "“FreeBSD prevents any RTO event, except at the BLER value of 10%.” (FreeBSD 2.2.8; by Fig. 5 itself 4.5 had one at 5 %)",
            format!("2.2.8: {} in ten; 4.5: {}", listed(freebsds[0]), listed(freebsds[1])),
            except_at_10(freebsds[0]),
        ),
        counted(
            "§5.2",
            "“Table 5 shows that Windows XP and FreeBSD are resilient against jitter.” FreeBSD's timers have fewer timeouts than Linux 2.2's and Solaris'.",
            format!(
                "2.2.8 has {} and {} fewer in forty, 4.5 {} and {}",
                shown(&resilient[0][0], 1),
                shown(&resilient[0][1], 1),
                shown(&resilient[1][0], 1),
                shown(&resilient[1][1], 1)
            ),
            Judged::all(resilient.iter().flatten().map(Judged::above_zero)),
        ),
        counted(
            "§5.2",
            "“Linux2.4 changed RTO implementation to conform BSD algorithm that leads its behavior more conservative as BSD does.” It has fewer than Linux 2.2.",
            format!("{} fewer in forty", shown(&conservative, 1)),
            Judged::above_zero(&conservative),
        ),
        counted(
            "§5.2",
            "“FreeBSD has larger minimum value than Linux2.2, which makes it less aggressive than Linux.” So a minimum of 1 s spares Linux 2.2 timeouts.",
            format!("{} fewer in forty with `min-rto=1000`", shown(&minimum, 1)),
            Judged::above_zero(&minimum),
        ),
        Claim {
            counts: Counts::ByConstruction(XP_IS_UNKNOWN.to_owned()),
            ..counted(
                "§5.2",
                "“For Windows XP, The RTO outcome is similar to the FreeBSD …”",
                "the same".to_owned(),
                Judged::Holds,
            )
        },
    ]);
    let lost = if grid.most_lost() == 0.0 { "No packet was lost" } else { "Some packets were lost" };
    let remarks = vec![
        TIMER_START.to_owned(),
        format!(
            "{lost} in any of these transfers (“packet loss was prevented by setting MAX DAT to 10”, §5.2)."
        ),
    ];
    let charts = vec![incidents(&grid)];
    Ok(Finding { tables: vec![counts, spurious, read], charts, claims, choices: Vec::new(), remarks })
}

fn incidents(grid: &Grid) -> Chart {
    let curve = |(i, bler): (usize, &u32)| {
        let values: Vec<_> = ROWS.iter().map(|row| in_ten(&grid.of(row.sender)[i])).collect();
        let points = values.iter().enumerate().map(|(x, samples)| (x as f64, samples.as_slice()));
        Curve::bars(format!("BLER {bler} %"), points)
            .beside(ROWS.iter().enumerate().map(|(x, row)| (x as f64, row.paper[i])))
    };
    Chart {
        title: "The number of incidents of RTO vs BLER".to_owned(),
        x: Axis::new("", Scale::Names(ROWS.iter().map(|row| row.name.to_owned()).collect())),
        y: Axis::new("RTOs in ten transfers", Scale::FromZero),
        curves: BLER.iter().enumerate().map(curve).collect(),
    }
}

/// Seconds that a timeout costs, from the seeds with timeouts in `sample` and none in `without`.
fn cost_of_timeouts(sample: &Sample, without: &Sample) -> Vec<f64> {
    std::iter::zip(sample.transfers(), without.transfers())
        .filter(|(with, without)| with.timeouts > 0.0 && without.timeouts == 0.0)
        .map(|(with, without)| (with.seconds - without.seconds) / with.timeouts)
        .collect()
}

pub(super) fn throughputs(grid: &Grid) -> Table {
    grid.table("Throughput of 1 Mbyte in kbit/s", |_, _, sample| shown(&sample.mean(|t| t.kbit_per_s), 1))
}

/// Cost: 28 transfers for each seed.
pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    let senders: Vec<_> = System::ALL.into_iter().chain([System::Patient]).collect();
    let grid = Grid::run(effort, &senders)?;
    let without = grid.gain(System::Patient, System::Linux22);
    let others = [System::FreeBsd22, System::FreeBsd45, System::Linux24, System::Solaris];
    let above = others.map(|other| grid.gain(other, System::Linux22));
    let apart = grid.gain(System::FreeBsd45, System::FreeBsd22);
    let spared = [System::FreeBsd22, System::FreeBsd45].map(|freebsd| grid.gain(System::Patient, freebsd));
    let of_others =
        others.iter().zip(&above).map(|(other, gain)| format!("{} {}", other.name(), percent(gain)));
    let claims = vec![
        counted(
            "§5.2, Fig. 6",
            "“The results show that the throughput is decreased by the RTO events, especially in Linux2.2.” Without them Linux 2.2 would be faster, and all others are faster than it.",
            format!(
                "over all BLERs, a timer that never fires has {} over Linux 2.2; {}",
                percent(&without),
                of_others.collect::<Vec<_>>().join(", ")
            ),
            Judged::all(std::iter::once(&without).chain(&above).map(Judged::better)),
        ),
        counted(
            "§5.2, Fig. 6",
            "“Comparing the difference between FreeBSD2.2.8 and 4.5 is small due to the fact that the incidents of RTO itself are small.” Their throughput is similar, and so is that of a timer that never fires.",
            format!(
                "over all BLERs, 4.5 has {} over 2.2.8; a timer that never fires has {} over 2.2.8 and {} over 4.5",
                percent(&apart),
                percent(&spared[0]),
                percent(&spared[1])
            ),
            Judged::all(std::iter::once(&apart).chain(&spared).map(Judged::similar)),
        ),
    ];
    let costs: Vec<_> = [System::Linux24, System::Solaris, System::Linux22]
        .into_iter()
        .flat_map(|sender| cost_of_timeouts(grid.at_10(sender), grid.at_10(System::Patient)))
        .collect();
    let lost = [System::FreeBsd22, System::FreeBsd45, System::Linux24, System::Solaris, System::Linux22]
        .map(|sender| format!("{} {}", sender.name(), percent(&grid.gain(System::Patient, sender))));
    let mut remarks =
        vec![format!("What a timer that never fires has over each, over all BLERs: {}.", lost.join("; "))];
    if let Some(cost) = Mean::of(&costs) {
        remarks.push(format!(
            "At BLER 10 % a timeout costs {} s of a transfer, of Linux 2.4, Solaris and Linux 2.2 together. One that hits the first window, before there is a variance worth the name, leaves an ssthresh of two segments, and with delayed ACKs the window grows by half a segment in a round trip from there.",
            shown(&cost, 1)
        ));
    }
    let charts = vec![grid.throughput_chart("Throughput vs BLER", &System::ALL)];
    Ok(Finding { tables: vec![throughputs(&grid)], charts, claims, choices: Vec::new(), remarks })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_in_a_few_transfers_is_not_none_ever() {
        assert_eq!(is_number(&[0.0; 4], 1.0), Judged::Undecided);
        assert_eq!(is_number(&[0.0; 30], 1.0), Judged::Holds, "one in ten transfers is what may come of it");
        assert_eq!(is_number(&[0.0; 30], 5.0), Judged::DoesNotHold);
        assert_eq!(Judged::above_zero(&rate(&[0.0; 30])), Judged::Undecided);
    }
}
