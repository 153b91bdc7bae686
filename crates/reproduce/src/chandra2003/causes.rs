//! §III D and §V: how often the marks identify the cause of a loss.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airtcp_sim::world::{Dropped, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};

use super::measured::{share, watch};
use super::setting::{BIT_ERROR_RATES, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::judge::across;
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

/// E-TCP's verdicts on the losses of one run.
#[derive(Clone, Copy, Default)]
struct Said {
    /// Losses that ACKs detected.
    confusion: Confusion,
    /// Losses that a timeout detected. E-TCP does not ask for their cause.
    timeouts: u64,
    /// Timeouts whose segment was lost on the radio link.
    timeouts_by_radio: u64,
}

impl Said {
    /// The share of detected radio losses, including those that timeouts detected, that was attributed to the radio.
    fn radio_of_all(&self) -> Option<f64> {
        let right = self.confusion.count(Cause::Radio, Truth::Lost(Cause::Radio));
        let all = self.confusion.of(Truth::Lost(Cause::Radio)) + self.timeouts_by_radio;
        (all > 0).then(|| right as f64 / all as f64)
    }
}

/// Results by direction, bit error rate and seed.
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

/// The share of losses with this cause that was attributed correctly.
fn right(confusion: &Confusion, cause: Cause) -> Option<f64> {
    match cause {
        Cause::Congestion => confusion.congestion_accuracy(),
        Cause::Radio => confusion.radio_accuracy(),
    }
}

/// [`right`] per seed, with the losses at all bit error rates pooled. Seeds without such losses are left out.
fn rights(way: &[Vec<Said>], cause: Cause) -> Vec<f64> {
    let seeds = way.iter().map(Vec::len).min().unwrap_or(0);
    let together = |seed: usize| {
        let mut all = Confusion::default();
        way.iter().for_each(|rate| all += rate[seed].confusion);
        right(&all, cause)
    };
    (0..seeds).filter_map(together).collect()
}

/// [`Said::radio_of_all`] per seed, averaged over directions and bit error rates.
fn of_all_found(said: &[Vec<Vec<Said>>]) -> Vec<f64> {
    let points = said.iter().flatten();
    let points = points.map(|runs| runs.iter().filter_map(Said::radio_of_all).collect());
    across(&points.collect::<Vec<Vec<f64>>>())
}

pub fn causes(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let said = run(effort, length)?;
    let mut table = Table::new(
        format!(
            "Losses detected in {} s: by ACKs, with the share attributed correctly, and by timeouts",
            length.as_secs_f64()
        ),
        &[
            "direction",
            "BER",
            "radio losses",
            "radio losses correct",
            "congestion losses",
            "congestion losses correct",
            "not lost",
            "timeouts",
            "timeouts from radio loss",
            "radio correct incl. timeouts",
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
            "{}: {} of radio losses and {} of congestion losses correct",
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
            "“Our proposed schemes allow the transport protocol to distinguish between congestion and \
             corruption losses.”",
            "§V",
            format!("{}; {}; {}", words(0), words(1), words(2)),
            whole(&shares),
        ),
        claim(
            "“With these two bits of information, the sender will be able to determine where the losses have \
             occurred.”",
            "§III D.4",
            words(2),
            whole(&shares[2..]),
        ),
        claim(
            "“We propose a new enhanced type of TCP called E-TCP (Enhanced TCP) that can differentiate \
             packet losses either due to corruption or congestion and take appropriate action to overcome \
             the losses.”",
            "§III",
            format!(
                "averaged over directions and BERs, E-TCP attributes {} of all radio losses to the radio. \
                 Timeouts detect the others; the paper does not mention timeouts.",
                share(&mean(&found))
            ),
            Judged::similar(&mean(&found.iter().map(|share| share - 1.0).collect::<Vec<_>>())),
        ),
    ];
    Ok(Finding {
        tables: vec![table],
        charts: vec![chart(&said)],
        claims,
        remarks: vec![
            "As in the paper, a base station records sequence numbers and not transmissions. If the original \
             passes the station and the retransmission is lost before it, the marks show a loss after the \
             station."
                .to_owned(),
        ],
        ..Finding::default()
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
                Cause::Radio => "radio",
                Cause::Congestion => "congestion",
            };
            Curve::line(
                format!("{}, {lost}", way.name()),
                points.map(|((_, rate), shares)| (*rate, &shares[..])),
            )
        })
    });
    Chart {
        title: "Share of losses attributed correctly, by cause".to_owned(),
        x: Axis::new("bit error rate", Scale::Logarithmic),
        y: Axis::new("attributed correctly (%)", Scale::FromZero),
        curves: lines.collect(),
    }
}
