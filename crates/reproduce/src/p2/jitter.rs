//! Figs. 5 to 7 (§5.2): delay without loss. Which timers take it for loss, what that costs, and what Eifel wins back.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::super::mean;
use super::setting::{Point, Sample, choices, sample};
use crate::{Claim, Counts, Effort, Finding, Judged, Table, shown};

/// "FTP was used to transfer 1 Mbyte": 2^20 octets, because the same sentence has "64 Kbyte buffers".
const FILE: u64 = 1 << 20;
const TRANSFERS: f64 = 10.0;
/// In per cent.
const BLER: [u32; 4] = [1, 2, 5, 10];

#[derive(Clone, Copy, PartialEq, Eq)]
enum System {
    Bsd,
    Linux24,
    Linux24Eifel,
    Solaris,
    Linux22,
}

impl System {
    const ALL: [Self; 5] = [Self::Bsd, Self::Linux24, Self::Linux24Eifel, Self::Solaris, Self::Linux22];

    const fn recipe(self) -> &'static str {
        match self {
            Self::Bsd => "timer-bsd",
            Self::Linux24 => "timer-linux24",
            Self::Linux24Eifel => "timer-linux24+eifel",
            Self::Solaris => "timer-solaris",
            Self::Linux22 => "timer-linux22",
        }
    }

    const fn systems(self) -> &'static str {
        match self {
            Self::Bsd => "FreeBSD 2.2.8 / 4.5 / Windows XP",
            Self::Linux24 => "Linux 2.4 − Eifel",
            Self::Linux24Eifel => "Linux 2.4 + Eifel",
            Self::Solaris => "Solaris 8",
            Self::Linux22 => "Linux 2.2",
        }
    }

    /// Fig. 5: incidents in ten transfers, by BLER.
    const fn paper(self) -> [&'static str; BLER.len()] {
        match self {
            Self::Bsd => ["0 / 0 / 0", "0 / 0 / 0", "0 / 1 / 0", "1 / 1 / 0"],
            Self::Linux24 => ["0", "0", "1", "3"],
            Self::Linux24Eifel => ["0", "1", "0", "3"],
            Self::Solaris => ["5", "2", "6", "8"],
            Self::Linux22 => ["7", "6", "6", "6"],
        }
    }
}

/// Samples by sender and BLER.
struct Grid {
    senders: Vec<System>,
    samples: Vec<Sample>,
}

impl Grid {
    fn run(effort: &Effort, senders: &[System]) -> Result<Self, WorldError> {
        let points = senders
            .iter()
            .flat_map(|sender| BLER.map(|bler| (sender, bler)))
            .map(|(sender, bler)| {
                let bler = [("channel.errors.bler", format!("{bler}%"))];
                Point::new("wcdma-384-jitter", &bler, sender.recipe(), FILE)
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self { senders: senders.to_vec(), samples: sample(effort, &points)? })
    }

    /// The samples of one sender, by BLER.
    fn of(&self, sender: System) -> &[Sample] {
        let index = self.senders.iter().position(|known| *known == sender).expect("one of those that ran");
        &self.samples[index * BLER.len()..][..BLER.len()]
    }

    fn at_10(&self, sender: System) -> &Sample {
        &self.of(sender)[BLER.len() - 1]
    }

    /// How many more timeouts one sender has than another, in ten transfers at each BLER together.
    fn more_timeouts(&self, more: System, fewer: System) -> Mean {
        let sum = |sender: System, seed: usize| {
            self.of(sender).iter().map(|sample| sample.transfers()[seed].timeouts).sum::<f64>()
        };
        let seeds = self.samples[0].transfers().len();
        let of_seed = |seed| TRANSFERS * (sum(more, seed) - sum(fewer, seed));
        mean(&(0..seeds).map(of_seed).collect::<Vec<_>>())
    }
}

fn columns() -> [String; 6] {
    let [a, b, c, d] = BLER.map(|bler| format!("BLER {bler} %"));
    ["sender".to_owned(), "recipe".to_owned(), a, b, c, d]
}

fn table(title: &str, grid: &Grid, cell: impl Fn(System, usize, &Sample) -> String) -> Table {
    let mut table = Table::new(title, &columns().each_ref().map(String::as_str));
    for &sender in &grid.senders {
        let cells = grid.of(sender).iter().enumerate().map(|(i, sample)| cell(sender, i, sample));
        table.row([sender.systems().to_owned(), format!("`{}`", sender.recipe())].into_iter().chain(cells));
    }
    table
}

const OWN: [&str; 2] = [
    "TSP 500 ms and MaxDAT 10 as in §5.2; 1 Mbyte is 2^20 octets. A seed is a transfer; the paper made ten at each point.",
    "The systems are represented by their timers alone. There is one BSD timer here, so FreeBSD 2.2.8 and 4.5 and Windows XP share a row; all have timestamps.",
];

/// When each system's timer starts.
const TIMER_START: &str = "The paper puts the difference between the systems down to when the timer starts: BSD's anew with each ACK \
     (RFC 6298 (5.3)), Linux 2.2's with the transmission of the oldest segment, about a round trip earlier. So it is here; of Solaris 8 nothing \
     is said, and its timer is restarted by ACKs. The rest is arithmetic: with a window of two `timer-linux22` waits 1.75 times as long as RFC 6298.";

/// Cost: 600 transfers at full effort.
pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    let grid = Grid::run(effort, &System::ALL)?;
    let in_ten = |sample: &Sample| sample.mean(|t| TRANSFERS * t.timeouts);
    let counts = table("Timeouts in ten transfers of 1 Mbyte (paper)", &grid, |sender, i, sample| {
        format!("{} ({})", shown(&in_ten(sample), 1), sender.paper()[i])
    });
    let spurious =
        table("Of these, spurious", &grid, |_, _, sample| shown(&sample.mean(|t| TRANSFERS * t.spurious), 1));

    let linux = grid.more_timeouts(System::Linux22, System::Bsd);
    let solaris = grid.more_timeouts(System::Solaris, System::Bsd);
    let aggressive = grid.more_timeouts(System::Linux22, System::Linux24);
    let linux24 = in_ten(grid.at_10(System::Linux24));
    let eifel = grid.more_timeouts(System::Linux24Eifel, System::Linux24);
    let linux22: Vec<_> = grid.of(System::Linux22).iter().map(in_ten).collect();
    let bsd: Vec<_> = grid.of(System::Bsd).iter().map(in_ten).collect();
    let fewest = linux22.iter().map(|mean| mean.mean).fold(f64::INFINITY, f64::min);
    let listed = |means: &[Mean]| means.iter().map(|mean| shown(mean, 1)).collect::<Vec<_>>().join(", ");
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Linux 2.2 has more timeouts than FreeBSD (25 to 1 in forty transfers)".to_owned(),
            ours: format!("{} more in forty", shown(&linux, 1)),
            judged: Judged::above_zero(&linux),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Linux 2.2 has them at every BLER: 7, 6, 6, 6 in ten".to_owned(),
            ours: format!("{}; the least is {fewest:.1}", listed(&linux22)),
            judged: Judged::all(
                linux22.iter().zip([7.0, 6.0, 6.0, 6.0]).map(|(ours, paper)| Judged::extent(ours, paper)),
            ),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Solaris 8 has more timeouts than FreeBSD (21 to 1)".to_owned(),
            ours: format!("{} more in forty", shown(&solaris, 1)),
            judged: Judged::above_zero(&solaris),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Linux 2.4 is as conservative as BSD: fewer than Linux 2.2 (4 to 25)".to_owned(),
            ours: format!("{} fewer in forty", shown(&aggressive, 1)),
            judged: Judged::above_zero(&aggressive),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Linux 2.4 has 3 in ten at BLER 10 %".to_owned(),
            ours: format!("{} in ten", shown(&linux24, 1)),
            judged: Judged::extent(&linux24, 3.0),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "FreeBSD has none except at BLER 10 %, and there 1 in ten".to_owned(),
            ours: format!("{} in ten", listed(&bsd)),
            judged: rare(&bsd),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "almost the same number with Eifel as without (4 and 4)".to_owned(),
            ours: format!("a difference of {} in forty", shown(&eifel, 1)),
            judged: same(&eifel),
        },
    ];
    let remarks = vec![TIMER_START.to_owned()];
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![counts, spurious],
        claims,
        choices: choices(&OWN),
        remarks,
    })
}

/// Whether there are none below BLER 10 %, and about one in ten, as in the paper, at 10 %.
fn rare(in_ten: &[Mean]) -> Judged {
    let [low @ .., high] = in_ten else { return Judged::Undecided };
    let some = |judged| low.iter().any(|mean| mean.mean > 0.0 && Judged::above_zero(mean) == judged);
    if some(Judged::Holds) {
        Judged::DoesNotHold
    } else if some(Judged::Undecided) {
        Judged::Undecided
    } else {
        Judged::extent(high, 1.0)
    }
}

/// Whether the interval cannot tell a difference from zero.
fn same(difference: &Mean) -> Judged {
    match Judged::above_zero(difference) {
        Judged::Undecided if difference.half_width.is_some() => Judged::Holds,
        Judged::Undecided => Judged::Undecided,
        _ => Judged::DoesNotHold,
    }
}

/// Why a single timeout is expensive.
const FIRST_WINDOW: &str = "One that hits the first window, before there is a variance worth the name, leaves an ssthresh of two segments, \
     and with delayed ACKs the window grows by half a segment in a round trip from there.";

/// Seconds that a timeout costs, from the seeds with timeouts in `sample` and none in `without`.
fn cost_of_timeouts(sample: &Sample, without: &Sample) -> Vec<f64> {
    std::iter::zip(sample.transfers(), without.transfers())
        .filter(|(with, without)| with.timeouts > 0.0 && without.timeouts == 0.0)
        .map(|(with, without)| (with.seconds - without.seconds) / with.timeouts)
        .collect()
}

/// Cost: 600 transfers at full effort.
pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    let grid = Grid::run(effort, &System::ALL)?;
    let throughput = table("Throughput of 1 Mbyte in kbit/s", &grid, |_, _, sample| {
        shown(&sample.mean(|t| t.kbit_per_s), 1)
    });
    let below = |sender: System| grid.at_10(System::Bsd).minus(grid.at_10(sender), |t| t.kbit_per_s);
    let linux = below(System::Linux22);
    let costs: Vec<_> = [System::Linux24, System::Solaris, System::Linux22]
        .into_iter()
        .flat_map(|sender| cost_of_timeouts(grid.at_10(sender), grid.at_10(System::Bsd)))
        .collect();
    let noise = grid.of(System::Bsd)[0].minus(grid.at_10(System::Bsd), |t| t.kbit_per_s);
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "timeouts decrease the throughput, of Linux 2.2 most".to_owned(),
            ours: format!(
                "at BLER 10 % below BSD by {} (Linux 2.2), {} (Solaris 8), {} kbit/s (Linux 2.4)",
                shown(&linux, 1),
                shown(&below(System::Solaris), 1),
                shown(&below(System::Linux24), 1)
            ),
            judged: Judged::all(
                [System::Solaris, System::Linux24]
                    .map(|other| {
                        Judged::above_zero(
                            &grid.at_10(other).minus(grid.at_10(System::Linux22), |t| t.kbit_per_s),
                        )
                    })
                    .into_iter()
                    .chain([Judged::above_zero(&linux)]),
            ),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "throughput falls with BLER".to_owned(),
            ours: format!("BSD: {} kbit/s less at 10 % than at 1 %", shown(&noise, 1)),
            judged: Judged::above_zero(&noise),
        },
    ];
    let mut remarks = Vec::new();
    if let Some(cost) = Mean::of(&costs) {
        remarks.push(format!(
            "At BLER 10 % a timeout that BSD does not have with the same seed costs {} s of a transfer. {FIRST_WINDOW}",
            shown(&cost, 1)
        ));
    }
    remarks.push(TIMER_START.to_owned());
    Ok(Finding { charts: Vec::new(), tables: vec![throughput], claims, choices: choices(&OWN), remarks })
}

/// Cost: 240 transfers at full effort.
pub(super) fn figure_7(effort: &Effort) -> Result<Finding, WorldError> {
    const GAIN: f64 = 25.0;
    let grid = Grid::run(effort, &[System::Linux24, System::Linux24Eifel])?;
    let mut throughput = table("Throughput of 1 Mbyte in kbit/s", &grid, |_, _, sample| {
        shown(&sample.mean(|t| t.kbit_per_s), 1)
    });
    let gains: Vec<_> = std::iter::zip(grid.of(System::Linux24Eifel), grid.of(System::Linux24))
        .map(|(with, without)| with.minus(without, |t| t.kbit_per_s))
        .collect();
    throughput.row(
        ["gain (paper at 10 %: about 25)".to_owned(), String::new()]
            .into_iter()
            .chain(gains.iter().map(|gain| shown(gain, 1))),
    );

    let gain = gains[gains.len() - 1];
    let with = grid.at_10(System::Linux24Eifel);
    let count = |of: fn(&super::setting::Transfer) -> f64| with.transfers().iter().map(of).sum::<f64>();
    let (timeouts, undone) = (count(|t| t.timeouts), count(|t| t.undone));
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Eifel improves the throughput by about 25 kbit/s at BLER 10 %".to_owned(),
            ours: format!("{} kbit/s", shown(&gain, 1)),
            judged: Judged::extent(&gain, GAIN),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "all timeouts are detected and answered by Eifel".to_owned(),
            ours: format!("{undone} undone of {timeouts} at BLER 10 %"),
            judged: match undone / timeouts {
                share if share >= 0.95 => Judged::Holds,
                share if share >= 0.5 => Judged::HoldsInPart,
                share if share >= 0.0 => Judged::DoesNotHold,
                _ => Judged::Undecided,
            },
        },
    ];
    // What a timeout has to cost: the seconds that 25 kbit/s save in a transfer, over the paper's 0.3 timeouts in one.
    let without = grid.at_10(System::Linux24).mean(|t| t.kbit_per_s).mean;
    let bits = FILE as f64 * 8e-3;
    let implied = (bits / without - bits / (without + GAIN)) / 0.3;
    let mut remarks = vec![format!(
        "The paper counts 3 timeouts in ten transfers (Fig. 5). For 25 kbit/s on the average of these, each has to cost {implied:.0} s. {FIRST_WINDOW}"
    )];
    let saved: Vec<_> = std::iter::zip(grid.at_10(System::Linux24).transfers(), with.transfers())
        .filter(|(_, with)| with.undone > 0.0)
        .map(|(without, with)| (without.seconds - with.seconds) / with.undone)
        .collect();
    if let Some(saved) = Mean::of(&saved) {
        remarks.push(format!("Here one that Eifel undoes would have cost {} s.", shown(&saved, 1)));
    }
    if undone < timeouts {
        remarks.push(format!(
            "{} of {timeouts} timeouts at BLER 10 % are not found to be spurious. If both segments of the first window are late, one ACK covers all that is \
             outstanding; RFC 3522 step (5) takes that for no proof, unless the receiver is known to report duplicates.",
            timeouts - undone
        ));
    }
    Ok(Finding { charts: Vec::new(), tables: vec![throughput], claims, choices: choices(&OWN), remarks })
}
