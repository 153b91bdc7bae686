//! §III D and §V: how often the marks identify the cause of a loss.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp::recovery::{Decision, What};
use airtcp_sim::run::{Report, Run};
use airtcp_sim::world::{Dropped, World, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};
use serde::Serialize;

use super::measured::{share, watch};
use super::setting::{BIT_ERROR_RATES, Ber, Setting, Variant, Way};
use crate::chart::{Axis, Chart, Curve, Scale};
use crate::grid::Grid;
use crate::judge::across;
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, cell, claim, column, mean};

/// E-TCP's verdicts on the losses of one run.
#[derive(Clone, Copy, Default, Serialize)]
struct Verdicts {
    #[serde(rename = "verdicts on losses that ACKs detected")]
    confusion: Confusion,
    /// Losses that a timeout detected. E-TCP does not attribute them.
    timeouts: u64,
    #[serde(rename = "timeouts after radio losses")]
    timeouts_by_radio: u64,
}

impl Verdicts {
    fn of(report: &Report, world: &mut World) -> Self {
        let marks = report.flows[0].judges.iter().find(|judge| judge.name == "transit-marks");
        let timeouts: Vec<_> = world.decisions(0).iter().filter_map(as_timeout).collect();
        let by_radio = |(offset, at): &(u64, Instant)| {
            world.losses(0).why(*offset, *at).and_then(Dropped::cause) == Some(Cause::Radio)
        };
        Self {
            confusion: marks.map(|judge| judge.confusion).unwrap_or_default(),
            timeouts: timeouts.len() as u64,
            timeouts_by_radio: timeouts.iter().filter(|timeout| by_radio(timeout)).count() as u64,
        }
    }

    /// The share of the losses with this cause that ACKs detected and that was attributed correctly.
    fn accuracy(&self, cause: Cause) -> Option<f64> {
        accuracy(&self.confusion, cause)
    }

    /// The share of detected radio losses, including those that timeouts detected, that was attributed to the radio.
    fn radio_accuracy_with_timeouts(&self) -> Option<f64> {
        let correct = self.confusion.count(Cause::Radio, Truth::Lost(Cause::Radio));
        let all = self.confusion.of(Truth::Lost(Cause::Radio)) + self.timeouts_by_radio;
        (all > 0).then(|| correct as f64 / all as f64)
    }
}

/// E-TCP's verdicts by direction and bit error rate.
type Runs = Grid<Way, Ber, Verdicts>;

fn run(effort: &Effort, length: Duration) -> Result<Runs, WorldError> {
    let plan = |direction, (_, rate): Ber| Ok(Setting::new(direction, Variant::Etcp, rate));
    let score = |run: &mut Run| run.score = true;
    Grid::run(&Way::ALL, &BIT_ERROR_RATES, plan, |settings| {
        watch(effort, settings, length, score, Verdicts::of)
    })
}

/// The offset and the time of a timeout. `None` for other decisions.
fn as_timeout(decision: &Decision) -> Option<(u64, Instant)> {
    match decision.what {
        What::Timeout { offset } => Some((offset, decision.at)),
        _ => None,
    }
}

/// The share of losses with this cause that was attributed correctly.
fn accuracy(confusion: &Confusion, cause: Cause) -> Option<f64> {
    match cause {
        Cause::Congestion => confusion.congestion_accuracy(),
        Cause::Radio => confusion.radio_accuracy(),
    }
}

/// [`accuracy`] per seed, with the losses at all bit error rates pooled. Seeds without such losses are left out.
fn accuracies(direction: &[Vec<Verdicts>], cause: Cause) -> Vec<f64> {
    let seeds = direction.iter().map(Vec::len).min().unwrap_or(0);
    let pooled = |seed: usize| {
        let mut all = Confusion::default();
        direction.iter().for_each(|rate| all += rate[seed].confusion);
        accuracy(&all, cause)
    };
    (0..seeds).filter_map(pooled).collect()
}

/// The values of the runs that have one.
fn known(runs: &[Verdicts], value: impl Fn(&Verdicts) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(value).collect()
}

/// [`Verdicts::radio_accuracy_with_timeouts`] per seed, averaged over directions and bit error rates.
fn radio_accuracies_with_timeouts(verdicts: &Runs) -> Vec<f64> {
    let points = Way::ALL.iter().flat_map(|direction| verdicts.row(*direction));
    across(&points.map(|runs| known(runs, Verdicts::radio_accuracy_with_timeouts)).collect::<Vec<_>>())
}

fn table(verdicts: &Runs, length: Duration) -> Table {
    type Row = (Way, Ber);
    let runs = |(direction, ber): &Row| verdicts.samples(*direction, *ber);
    let number = |value: fn(&Verdicts) -> u64| {
        move |row: &Row| cell(&runs(row).iter().map(|verdicts| value(verdicts) as f64).collect::<Vec<_>>(), 1)
    };
    let accuracy = |cause: Cause| {
        move |row: &Row| match &known(runs(row), |verdicts| verdicts.accuracy(cause))[..] {
            [] => "–".to_owned(),
            shares => share(&mean(shares)),
        }
    };
    Table::of(
        format!(
            "Losses detected in {} s: by ACKs, with the share attributed correctly, and by timeouts",
            length.as_secs_f64()
        ),
        [
            column("direction", |(direction, _): &Row| direction.name().to_owned()),
            column("BER", |(_, (name, _)): &Row| (*name).to_owned()),
            column("radio losses", number(|verdicts| verdicts.confusion.of(Truth::Lost(Cause::Radio)))),
            column("radio losses correct", accuracy(Cause::Radio)),
            column(
                "congestion losses",
                number(|verdicts| verdicts.confusion.of(Truth::Lost(Cause::Congestion))),
            ),
            column("congestion losses correct", accuracy(Cause::Congestion)),
            column("not lost", number(|verdicts| verdicts.confusion.of(Truth::NotLost))),
            column("timeouts", number(|verdicts| verdicts.timeouts)),
            column("timeouts from radio loss", number(|verdicts| verdicts.timeouts_by_radio)),
            column("radio correct incl. timeouts", |row: &Row| {
                share(&mean(&known(runs(row), Verdicts::radio_accuracy_with_timeouts)))
            }),
        ],
        Way::cases(),
    )
}

/// Measures how often the marks identify the cause of a loss (§III D and §V).
pub fn causes(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let verdicts = run(effort, length)?;
    Ok(Finding {
        tables: vec![table(&verdicts, length)],
        charts: vec![chart(&verdicts)],
        claims: claims(&verdicts),
        remarks: vec![
            "As in the paper, a base station records sequence numbers and not transmissions. If the original \
             passes the station and the retransmission is lost before it, the marks show a loss after the \
             station."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn claims(verdicts: &Runs) -> Vec<Claim> {
    let shares = Way::ALL.map(|direction| Cause::ALL.map(|cause| accuracies(verdicts.row(direction), cause)));
    let all_correct = |directions: &[[Vec<f64>; 2]]| {
        let missing = |samples: &Vec<f64>| mean(&samples.iter().map(|share| share - 1.0).collect::<Vec<_>>());
        Judged::all(directions.iter().flatten().map(|samples| Judged::similar(&missing(samples))))
    };
    let words = |direction: usize| {
        let shown = |cause: Cause| share(&mean(&shares[direction][cause as usize]));
        format!(
            "{}: {} of radio losses and {} of congestion losses correct",
            Way::ALL[direction].name(),
            shown(Cause::Radio),
            shown(Cause::Congestion)
        )
    };
    let radio = radio_accuracies_with_timeouts(verdicts);
    vec![
        claim(
            At("§V"),
            "“Our proposed schemes allow the transport protocol to distinguish between congestion and \
             corruption losses.”",
            format!("{}; {}; {}", words(0), words(1), words(2)),
            all_correct(&shares),
        ),
        claim(
            At("§III D.4"),
            "“With these two bits of information, the sender will be able to determine where the losses have \
             occurred.”",
            words(2),
            all_correct(&shares[2..]),
        )
        .not_counted(Counts::Repeats(
            "“to distinguish between congestion and corruption losses” (§V)".to_owned(),
        )),
        claim(
            At("§III"),
            "“We propose a new enhanced type of TCP called E-TCP (Enhanced TCP) that can differentiate \
             packet losses either due to corruption or congestion and take appropriate action to overcome \
             the losses.”",
            format!(
                "averaged over directions and BERs, E-TCP attributes {} of all radio losses to the radio. \
                 Timeouts detect the others; the paper does not mention timeouts.",
                share(&mean(&radio))
            ),
            Judged::similar(&mean(&radio.iter().map(|share| share - 1.0).collect::<Vec<_>>())),
        ),
    ]
}

fn chart(verdicts: &Runs) -> Chart {
    let lines = Way::ALL.into_iter().flat_map(|direction| {
        Cause::ALL.map(|cause| {
            let percent =
                |runs: &Vec<Verdicts>| known(runs, |verdicts| Some(100.0 * verdicts.accuracy(cause)?));
            let shares: Vec<_> = verdicts.row(direction).iter().map(percent).collect();
            let lost = match cause {
                Cause::Radio => "radio",
                Cause::Congestion => "congestion",
            };
            let points = BIT_ERROR_RATES.iter().zip(&shares);
            Curve::line(
                format!("{}, {lost}", direction.name()),
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
