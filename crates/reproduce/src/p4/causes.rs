//! §III D and §V: how often the marks tell why a segment was lost.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airtcp_sim::world::{Dropped, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};

use super::super::chart::{Axis, Chart, Curve, Scale};
use super::super::judge::across;
use super::super::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};
use super::measured::{share, watch};
use super::setting::{BIT_ERROR_RATES, Setting, Variant, Way};

/// What E-TCP said of its losses in one run.
#[derive(Clone, Copy, Default)]
struct Said {
    /// Of those that an ACK found.
    confusion: Confusion,
    /// Those that the timer found, about which it asks nobody.
    timeouts: u64,
    /// Those of them that the radio had lost.
    timeouts_by_radio: u64,
}

impl Said {
    /// Of all that the radio lost and the sender found, the share that was put down to it.
    fn radio_of_all(&self) -> Option<f64> {
        let right = self.confusion.count(Cause::Radio, Truth::Lost(Cause::Radio));
        let all = self.confusion.of(Truth::Lost(Cause::Radio)) + self.timeouts_by_radio;
        (all > 0).then(|| right as f64 / all as f64)
    }
}

/// By direction, then by bit error rate, then by seed.
fn run(effort: &Effort, length: Duration) -> Result<Vec<Vec<Vec<Said>>>, WorldError> {
    let setting = |way| BIT_ERROR_RATES.map(|(_, rate)| Setting::new(way, Variant::Etcp, rate));
    let settings = Way::ALL.into_iter().flat_map(setting);
    let said = watch(
        effort,
        settings,
        length,
        |run| run.score = true,
        |report, world| {
            let flow = &report.flows[0];
            let marks = flow.judges.iter().find(|judge| judge.name == "transit-marks");
            let timeouts: Vec<_> = world.decisions(0).iter().filter_map(timeout).collect();
            let by_radio = |(offset, at): &(u64, Instant)| {
                world.losses(0).why(*offset, *at).and_then(Dropped::cause) == Some(Cause::Radio)
            };
            Said {
                confusion: marks.map(|judge| judge.confusion).unwrap_or_default(),
                timeouts: timeouts.len() as u64,
                timeouts_by_radio: timeouts.iter().filter(|timeout| by_radio(timeout)).count() as u64,
            }
        },
    )?;
    Ok(said.chunks(BIT_ERROR_RATES.len()).map(<[_]>::to_vec).collect())
}

fn timeout(decision: &Decision) -> Option<(u64, Instant)> {
    match decision.what {
        What::Timeout { offset } => Some((offset, decision.at)),
        _ => None,
    }
}

/// Of the losses that had this cause, the share that was put down to it.
fn right(confusion: &Confusion, cause: Cause) -> Option<f64> {
    match cause {
        Cause::Congestion => confusion.congestion_accuracy(),
        Cause::Radio => confusion.radio_accuracy(),
    }
}

/// The same in each run that had such losses, at all bit error rates together.
fn rights(way: &[Vec<Said>], cause: Cause) -> Vec<f64> {
    let seeds = way.iter().map(Vec::len).min().unwrap_or(0);
    let together = |seed: usize| {
        let mut all = Confusion::default();
        way.iter().for_each(|rate| all += rate[seed].confusion);
        right(&all, cause)
    };
    (0..seeds).filter_map(together).collect()
}

/// [`Said::radio_of_all`], averaged over directions and bit error rates, seed by seed.
fn of_all_found(said: &[Vec<Vec<Said>>]) -> Vec<f64> {
    let points = said.iter().flatten();
    let points = points.map(|runs| runs.iter().filter_map(Said::radio_of_all).collect());
    across(&points.collect::<Vec<Vec<f64>>>())
}

pub fn causes(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let said = run(effort, length)?;
    let mut table = Table::new(
        format!(
            "Losses that ACKs find in {} s, by what they were, those judged right, and those that the timer finds",
            length.as_secs_f64()
        ),
        &[
            "direction",
            "BER",
            "lost on the radio",
            "judged right",
            "lost to congestion",
            "judged right",
            "not lost",
            "timeouts",
            "those by the radio",
            "of the radio's losses, put down to it",
        ],
    );
    for (way, rates) in Way::ALL.iter().zip(&said) {
        for ((name, _), runs) in BIT_ERROR_RATES.iter().zip(rates) {
            let counted =
                |truth| cell(&runs.iter().map(|said| said.confusion.of(truth) as f64).collect::<Vec<_>>(), 1);
            let judged_right = |cause| {
                let shares: Vec<_> = runs.iter().filter_map(|said| right(&said.confusion, cause)).collect();
                if shares.is_empty() { "–".to_owned() } else { share(&mean(&shares)) }
            };
            let number = |value: fn(&Said) -> u64| {
                cell(&runs.iter().map(|said| value(said) as f64).collect::<Vec<_>>(), 1)
            };
            let of_all: Vec<_> = runs.iter().filter_map(Said::radio_of_all).collect();
            table.row([
                way.name().to_owned(),
                (*name).to_owned(),
                counted(Truth::Lost(Cause::Radio)),
                judged_right(Cause::Radio),
                counted(Truth::Lost(Cause::Congestion)),
                judged_right(Cause::Congestion),
                counted(Truth::NotLost),
                number(|said| said.timeouts),
                number(|said| said.timeouts_by_radio),
                share(&mean(&of_all)),
            ]);
        }
    }
    let shares: Vec<_> = said.iter().map(|way| Cause::ALL.map(|cause| rights(way, cause))).collect();
    let whole = |ways: &[[Vec<f64>; 2]]| {
        let wrong = |samples: &Vec<f64>| mean(&samples.iter().map(|share| share - 1.0).collect::<Vec<_>>());
        Judged::all(ways.iter().flatten().map(|samples| Judged::similar(&wrong(samples))))
    };
    let words = |way: usize| {
        let of = |cause: Cause| share(&mean(&shares[way][cause as usize]));
        format!(
            "{}: right about {} of the radio's losses, {} of congestion's",
            Way::ALL[way].name(),
            of(Cause::Radio),
            of(Cause::Congestion)
        )
    };
    let claim = |paper: &str, place: &str, ours: String, judged| Claim {
        paper: paper.to_owned(),
        place: place.to_owned(),
        counts: Counts::Yes,
        ours,
        judged,
    };
    let found = of_all_found(&said);
    let claims = vec![
        claim(
            "“Our proposed schemes allow the transport protocol to distinguish between congestion and corruption losses.”",
            "§V",
            format!("{}; {}; {}", words(0), words(1), words(2)),
            whole(&shares),
        ),
        claim(
            "“With these two bits of information, the sender will be able to determine where the losses have occurred.”",
            "§III D.4",
            words(2),
            whole(&shares[2..]),
        ),
        claim(
            "“We propose a new enhanced type of TCP called E-TCP (Enhanced TCP) that can differentiate packet losses either due to \
             corruption or congestion and take appropriate action to overcome the losses.”",
            "§III",
            format!(
                "of what the radio lost, ACKs and timer together, it puts {} down to the radio and keeps the window, on average over \
                 directions and BERs; the rest is found by the timer, about which the paper says nothing",
                share(&mean(&found))
            ),
            Judged::similar(&mean(&found.iter().map(|share| share - 1.0).collect::<Vec<_>>())),
        ),
    ];
    Ok(Finding {
        tables: vec![table],
        charts: vec![chart(&said)],
        claims,
        choices: vec![format!(
            "{} s a run. To distinguish is to be right about nearly all losses of either kind: the share is similar \
             to the whole. A loss is judged when an ACK finds it.",
            length.as_secs_f64()
        )],
        remarks: vec![
            "A station remembers sequence numbers and not transmissions, as the paper's does. A copy that is sent again and lost on the \
             other side of the station than the first one is put down to where the first was lost."
                .to_owned(),
        ],
    })
}

fn chart(said: &[Vec<Vec<Said>>]) -> Chart {
    let lines = Way::ALL.iter().zip(said).flat_map(|(way, rates)| {
        Cause::ALL.map(|cause| {
            let shares: Vec<Vec<f64>> = rates
                .iter()
                .map(|runs| {
                    runs.iter()
                        .filter_map(|said| right(&said.confusion, cause))
                        .map(|share| 100.0 * share)
                        .collect()
                })
                .collect();
            let points = BIT_ERROR_RATES.iter().zip(&shares);
            let lost = match cause {
                Cause::Radio => "lost on the radio",
                Cause::Congestion => "lost to congestion",
            };
            Curve::line(
                format!("{}, {lost}", way.name()),
                points.map(|((_, rate), shares)| (*rate, &shares[..])),
            )
        })
    });
    Chart {
        title: "Losses judged right".to_owned(),
        x: Axis::new("bit error rate", Scale::Logarithmic),
        y: Axis::new("judged right (%)", Scale::FromZero),
        curves: lines.collect(),
    }
}
