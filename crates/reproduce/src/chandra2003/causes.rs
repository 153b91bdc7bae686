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
struct Said {
    /// Losses that ACKs detected.
    #[serde(rename = "verdicts on losses that ACKs detected")]
    confusion: Confusion,
    /// Losses that a timeout detected. E-TCP does not ask for their cause.
    timeouts: u64,
    /// Timeouts whose segment was lost on the radio link.
    #[serde(rename = "timeouts after radio losses")]
    timeouts_by_radio: u64,
}

impl Said {
    fn of(report: &Report, world: &mut World) -> Self {
        let marks = report.flows[0].judges.iter().find(|judge| judge.name == "transit-marks");
        let timeouts: Vec<_> = world.decisions(0).iter().filter_map(timeout).collect();
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
    fn right(&self, cause: Cause) -> Option<f64> {
        right(&self.confusion, cause)
    }

    /// The share of detected radio losses, including those that timeouts detected, that was attributed to the radio.
    fn radio_of_all(&self) -> Option<f64> {
        let right = self.confusion.count(Cause::Radio, Truth::Lost(Cause::Radio));
        let all = self.confusion.of(Truth::Lost(Cause::Radio)) + self.timeouts_by_radio;
        (all > 0).then(|| right as f64 / all as f64)
    }
}

/// E-TCP's verdicts by direction and bit error rate.
type All = Grid<Way, Ber, Said>;

fn run(effort: &Effort, length: Duration) -> Result<All, WorldError> {
    let plan = |way, (_, rate): Ber| Ok(Setting::new(way, Variant::Etcp, rate));
    let score = |run: &mut Run| run.score = true;
    Grid::run(&Way::ALL, &BIT_ERROR_RATES, plan, |settings| watch(effort, settings, length, score, Said::of))
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

/// The values of the runs that have one.
fn known(runs: &[Said], value: impl Fn(&Said) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(value).collect()
}

/// [`Said::radio_of_all`] per seed, averaged over directions and bit error rates.
fn of_all_found(said: &All) -> Vec<f64> {
    let points = Way::ALL.iter().flat_map(|way| said.row(*way));
    across(&points.map(|runs| known(runs, Said::radio_of_all)).collect::<Vec<_>>())
}

fn table(said: &All, length: Duration) -> Table {
    type Row = (Way, Ber);
    let runs = |(way, ber): &Row| said.samples(*way, *ber);
    let number = |value: fn(&Said) -> u64| {
        move |row: &Row| cell(&runs(row).iter().map(|said| value(said) as f64).collect::<Vec<_>>(), 1)
    };
    let right = |cause: Cause| {
        move |row: &Row| match &known(runs(row), |said| said.right(cause))[..] {
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
            column("direction", |(way, _): &Row| way.name().to_owned()),
            column("BER", |(_, (name, _)): &Row| (*name).to_owned()),
            column("radio losses", number(|said| said.confusion.of(Truth::Lost(Cause::Radio)))),
            column("radio losses correct", right(Cause::Radio)),
            column("congestion losses", number(|said| said.confusion.of(Truth::Lost(Cause::Congestion)))),
            column("congestion losses correct", right(Cause::Congestion)),
            column("not lost", number(|said| said.confusion.of(Truth::NotLost))),
            column("timeouts", number(|said| said.timeouts)),
            column("timeouts from radio loss", number(|said| said.timeouts_by_radio)),
            column("radio correct incl. timeouts", |row: &Row| {
                share(&mean(&known(runs(row), Said::radio_of_all)))
            }),
        ],
        Way::cases(),
    )
}

pub fn causes(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let said = run(effort, length)?;
    Ok(Finding {
        tables: vec![table(&said, length)],
        charts: vec![chart(&said)],
        claims: claims(&said),
        remarks: vec![
            "As in the paper, a base station records sequence numbers and not transmissions. If the original \
             passes the station and the retransmission is lost before it, the marks show a loss after the \
             station."
                .to_owned(),
        ],
        ..Finding::default()
    })
}

fn claims(said: &All) -> Vec<Claim> {
    let shares = Way::ALL.map(|way| Cause::ALL.map(|cause| rights(said.row(way), cause)));
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
    let found = of_all_found(said);
    vec![
        claim(
            At("§V"),
            "“Our proposed schemes allow the transport protocol to distinguish between congestion and \
             corruption losses.”",
            format!("{}; {}; {}", words(0), words(1), words(2)),
            whole(&shares),
        ),
        claim(
            At("§III D.4"),
            "“With these two bits of information, the sender will be able to determine where the losses have \
             occurred.”",
            words(2),
            whole(&shares[2..]),
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
                share(&mean(&found))
            ),
            Judged::similar(&mean(&found.iter().map(|share| share - 1.0).collect::<Vec<_>>())),
        ),
    ]
}

fn chart(said: &All) -> Chart {
    let lines = Way::ALL.into_iter().flat_map(|way| {
        Cause::ALL.map(|cause| {
            let percent = |runs: &Vec<Said>| known(runs, |said| Some(100.0 * said.right(cause)?));
            let shares: Vec<_> = said.row(way).iter().map(percent).collect();
            let lost = match cause {
                Cause::Radio => "radio",
                Cause::Congestion => "congestion",
            };
            let points = BIT_ERROR_RATES.iter().zip(&shares);
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
