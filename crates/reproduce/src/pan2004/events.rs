//! Events of single packets (§3.3, Figs. 7 to 9): their frequency, their duration, and a drawing of each kind.

use airtcp_numbers::statistics::gains;
use airtcp_sim::run::{Run, run_watched};
use airtcp_sim::world::{Watch, WorldError};
use serde::Serialize;

use super::clusters;
use super::judging::{Measured, percent};
use super::senders::{Curve, NEWRENO, RENO, SACK, TAHOE, VARIANTS, traced};
use super::setting::{Channel, Interpretation, MIN_FLIGHT, MODERATE, RARE, SECONDS, Setting};
use super::trace::{Packet, Pair, RepeatedTimeouts, Trace};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::grid::Grid;
use crate::judge::of_repetitions;
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, cell, claim, column, mean, named, unnamed};

/// Number of seeds that are searched for an event to draw.
const SEEDS_SEARCHED: u64 = 400;

/// A chart of the first event in the first run that has one. `when` returns the event's time and packet number.
fn first_event_chart(
    title: &str,
    setting: &Setting,
    seconds: f64,
    when: impl Fn(&Trace) -> Option<(f64, u64)>,
) -> Result<Option<Chart>, WorldError> {
    let plan = Setting { watch: Watch::Packets, ..setting.clone() }.plan()?;
    for seed in 1..=SEEDS_SEARCHED {
        let (_, mut world) = run_watched(&Run { seed, ..plan.clone() }, |_| {})?;
        let trace = Trace::of(&mut world, 0, setting.interpretation.mss());
        let Some((at, number)) = when(&trace) else { continue };
        let (from, to) = (at - 0.5, at + seconds);
        let near = |at: f64, packet: u64| at >= from && at <= to && packet.abs_diff(number) < 40;
        let dots = |packets: &[Packet], wanted: &dyn Fn(&Packet) -> bool| -> Vec<(f64, f64)> {
            let shown = packets.iter().filter(|packet| near(packet.at, packet.number) && wanted(packet));
            shown.map(|packet| (packet.at, packet.number as f64)).collect()
        };
        let acks = trace.acks.iter().filter(|(at, packet)| near(*at, *packet));
        return Ok(Some(Chart {
            title: format!("{title} (seed {seed})"),
            x: Axis::new("runtime, s", Scale::ValueRange),
            y: Axis::new("packet number", Scale::ValueRange),
            curves: vec![
                Line::dots("packet", dots(&trace.sent, &|packet| packet.copy == 1)),
                Line::dots("resent", dots(&trace.sent, &|packet| packet.copy > 1)),
                Line::dots("lost", dots(&trace.lost, &|_| true)),
                Line::dots("ack", acks.map(|(at, packet)| (*at, *packet as f64))),
            ],
        }));
    }
    Ok(None)
}

/// The events of Fig. 7 by sender and α = β.
type Pairs = Grid<Curve, f64, Vec<Pair>>;

/// The mean over the events of each seed. `None` for seeds without such an event.
fn by_seed(cells: &Pairs, curve: Curve, change: f64, value: fn(&Pair) -> f64) -> Vec<Option<f64>> {
    let seeds = cells.samples(curve, change).iter();
    seeds.map(|pairs| average(&pairs.iter().map(value).collect::<Vec<_>>())).collect()
}

fn duration(pair: &Pair) -> f64 {
    pair.seconds
}

fn has_timeout(pair: &Pair) -> f64 {
    f64::from(u8::from(pair.by_timeout))
}

pub(super) fn figure_7(effort: &Effort) -> Result<Finding, WorldError> {
    const CHANGES: [f64; 3] = [0.3, 0.1, 0.03];
    /// α = β, and the sender.
    type Row = (f64, Curve);
    let plan = |curve: Curve, change| Ok(curve.over(RARE.changing(change)));
    let cells = Grid::run(&VARIANTS, &CHANGES, plan, |settings| {
        traced(effort, settings, |_, trace| named("losses of two packets", trace.pairs())).map(unnamed)
    })?;
    let of = |value: fn(&Pair) -> f64| {
        let cells = &cells;
        move |(change, curve): &Row| cell(&known(&by_seed(cells, *curve, *change, value)), 2)
    };
    let table = Table::of(
        "Loss of two consecutive packets of one window, the first detected by three duplicate ACKs: seconds \
         until both are acknowledged, and share of events in which the second waits for a timeout (x = 0.01, \
         y = 0.09):",
        [
            column("α = β", |(change, _): &Row| change.to_string()),
            column("sender", |(_, curve): &Row| curve.name.to_owned()),
            column("events per run", |(change, curve): &Row| {
                cell(&cells.at(*curve, *change, |pairs| pairs.len() as f64), 1)
            }),
            column("seconds", of(duration)),
            column("share with timeout", of(has_timeout)),
        ],
        CHANGES.into_iter().flat_map(|change| VARIANTS.map(|curve| (change, curve))),
    );
    let longer = CHANGES.map(|change| {
        let [reno, tahoe] = [RENO, TAHOE].map(|curve| by_seed(&cells, curve, change, duration));
        let (reno, tahoe) = paired(&reno, &tahoe);
        mean(&gains(&reno, &tahoe))
    });
    let waits = mean(&known(&by_seed(&cells, RENO, CHANGES[0], has_timeout)));
    let claims = vec![
        claim(
            At("§3.3.1"),
            "“If multiple packet losses are consecutive, Tahoe usually outperforms Reno in error recovery.”",
            format!(
                "Reno takes {} longer than Tahoe at α = β = 0.3, {} at 0.1 and {} at 0.03",
                percent(&longer[0]),
                percent(&longer[1]),
                percent(&longer[2])
            ),
            Judged::better(&longer[0]),
        ),
        claim(
            At("§3.3.1, Fig. 7b"),
            "“After this Fast Retransmit, Reno halves its *cwnd* with *cwnd* inflating by sending packet \
             #619, and normally has to wait for a timeout to recover the second lost packet in the same \
             *swnd*.” (Here: in more than half of the events.)",
            format!("{} of the second packets wait for a timeout", percent(&waits)),
            Judged::between(&waits, 0.5, 1.0),
        ),
    ];
    let first = |trace: &Trace| trace.pairs().first().map(|pair| (pair.at, pair.first));
    let waiting =
        |trace: &Trace| trace.pairs().iter().find(|pair| pair.by_timeout).map(|pair| (pair.at, pair.first));
    let charts = [
        first_event_chart(
            "Fig. 7(a): Multiple Packet Losses, Tahoe",
            &Setting::new("tahoe", RARE),
            3.0,
            first,
        )?,
        first_event_chart(
            "Fig. 7(b): Multiple Packet Losses, Reno",
            &Setting::new("reno", RARE),
            3.0,
            waiting,
        )?,
    ];
    let charts = charts.into_iter().flatten().collect();
    Ok(Finding { tables: vec![table], charts, claims, ..Finding::default() })
}

fn average(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn known(values: &[Option<f64>]) -> Vec<f64> {
    values.iter().copied().flatten().collect()
}

/// The values of the seeds that have a value in both.
fn paired(one: &[Option<f64>], other: &[Option<f64>]) -> (Vec<f64>, Vec<f64>) {
    one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?))).unzip()
}

/// Half width of the range with 95 % of the single events, as part of a sentence.
fn spread(events: &[f64]) -> String {
    if events.len() < 2 { "–".to_owned() } else { format!("{:.1}", of_repetitions(events, 1)) }
}

/// One run of Fig. 8.
#[derive(Clone, Serialize)]
struct Fig8Run {
    #[serde(rename = "share of time with cwnd below four segments")]
    below: f64,
    #[serde(rename = "timeouts by duplicate ACKs before them")]
    by_dupacks: [f64; 4],
    timeouts: f64,
}

pub(super) fn figure_8(effort: &Effort) -> Result<Finding, WorldError> {
    const YS: [f64; 3] = [0.05, 0.09, 0.15];
    /// y, and the sender.
    type Row = (f64, Curve);
    let plan = |curve: Curve, y| Ok(curve.over(Channel::new(0.01, y)));
    let cells = Grid::run(&VARIANTS, &YS, plan, |settings| {
        traced(effort, settings, |measured, trace| {
            let Measured { by_dupacks, timeouts, .. } = *measured;
            Fig8Run { below: trace.share_below(MIN_FLIGHT, SECONDS as f64), by_dupacks, timeouts }
        })
    })?;
    let below = |curve, y| mean(&cells.at(curve, y, |run| run.below));
    let of = |heading: &str, value: fn(&Fig8Run) -> f64| {
        let cells = &cells;
        column(heading, move |(y, curve): &Row| cell(&cells.at(*curve, *y, value), 1))
    };
    let table = Table::of(
        "Share of time with cwnd below four segments, too few for three duplicate ACKs, and timeouts in 100 \
         s by the number of duplicate ACKs before them (x = 0.01):",
        [
            column("y", |(y, _): &Row| y.to_string()),
            column("sender", |(_, curve): &Row| curve.name.to_owned()),
            column("share of time", |(y, curve): &Row| percent(&below(*curve, *y))),
            of("timeouts", |run| run.timeouts),
            of("after 0", |run| run.by_dupacks[0]),
            of("after 1", |run| run.by_dupacks[1]),
            of("after 2", |run| run.by_dupacks[2]),
            of("after more", |run| run.by_dupacks[3]),
        ],
        YS.into_iter().flat_map(|y| VARIANTS.map(|curve| (y, curve))),
    );
    let [newreno, sack] = [NEWRENO, SACK].map(|curve| below(curve, YS[1]));
    let below = below(TAHOE, YS[1]);
    let claims = vec![
        claim(
            At("§3.3.1"),
            "“but both SACK and NewReno are challenged by the next unexpected behavior.” (Here: §3.3.2, a \
             tiny congestion window. Their cwnd is below four segments for at least 20 % of the time as \
             well.)",
            format!(
                "cwnd is below four segments for {} (NewReno) and {} (SACK) of the time at y = 0.09",
                percent(&newreno),
                percent(&sack)
            ),
            Judged::all([newreno, sack].iter().map(Judged::considerably)),
        ),
        claim(
            At("§3.3.2, Fig. 8"),
            "“Since congestion regulations are frequently enforced when TCP flows over lossy links, *cwnd* \
             remains very small over relatively long intervals.” (Here: below four segments for at least 20 \
             % of the time.)",
            format!("Tahoe's cwnd is below four segments for {} of the time at y = 0.09", percent(&below)),
            Judged::considerably(&below),
        ),
        claim(
            At("§3.3.2, Fig. 8"),
            "“In this situation, Fast Retransmit fates to fail since it is impossible for a triple-*dupack* \
             to return.”",
            "True in every run".to_owned(),
            Judged::Holds,
        )
        .not_counted(Counts::ByConstruction(
            "two packets in flight cause at most one duplicate ACK".to_owned(),
        )),
    ];
    let clusters = clusters::tiny_windows(effort)?;
    let charts = first_event_chart(
        "Fig. 8: Tiny Congestion Window",
        &Setting::new("tahoe", RARE),
        2.0,
        Trace::tiny_window_timeout,
    )?;
    let charts = charts.into_iter().collect();
    Ok(Finding { tables: vec![table, clusters], charts, claims, ..Finding::default() })
}

/// A sender, with an interpretation of the setup.
type Sender = (Curve, Interpretation);
/// Packets that three timeouts retransmit, and the share of lost retransmissions found without a timeout.
type TimeoutRuns = Grid<Sender, (), (Vec<RepeatedTimeouts>, Option<f64>)>;

const SENDERS: [Sender; 6] = [
    (TAHOE, Interpretation::Chosen),
    (RENO, Interpretation::Chosen),
    (NEWRENO, Interpretation::Chosen),
    (SACK, Interpretation::Chosen),
    (TAHOE, Interpretation::TicksOf500),
    (TAHOE, Interpretation::TicksOf10),
];

/// A value of all events of a sender in all runs.
fn events(cells: &TimeoutRuns, sender: Sender, value: fn(&RepeatedTimeouts) -> f64) -> Vec<f64> {
    cells.samples(sender, ()).iter().flat_map(|(events, _)| events.iter().map(value)).collect()
}

fn total(event: &RepeatedTimeouts) -> f64 {
    event.waits.iter().sum()
}

pub(super) fn figure_9(effort: &Effort) -> Result<Finding, WorldError> {
    let plan = |(curve, interpretation): Sender, ()| Ok(Setting { interpretation, ..curve.over(MODERATE) });
    let cells = Grid::run(&SENDERS, &[()], plan, |settings| {
        let name = "packets that three timeouts retransmit; share of lost copies found without a timeout";
        traced(effort, settings, |_, trace| {
            named(name, (trace.repeated_timeouts(), trace.share_found_without_timeout()))
        })
        .map(unnamed)
    })?;
    let waits = |heading: &str, wait: fn(&RepeatedTimeouts) -> f64| {
        let cells = &cells;
        column(heading, move |sender: &Sender| cell(&events(cells, *sender, wait), 2))
    };
    let table = Table::of(
        "Packets that three consecutive timeouts retransmit: seconds before each of the timeouts (x = 0.01, \
         y = 0.15):",
        [
            column("sender", |(curve, interpretation): &Sender| match interpretation {
                Interpretation::Chosen => curve.name.to_owned(),
                interpretation => format!("{}, {}", curve.name, interpretation.name()),
            }),
            column("events per run", |sender: &Sender| {
                cell(&cells.at(*sender, (), |(events, _)| events.len() as f64), 1)
            }),
            waits("first", |event| event.waits[0]),
            waits("second", |event| event.waits[1]),
            waits("third", |event| event.waits[2]),
            waits("total", total),
        ],
        SENDERS,
    );
    let like_in_figure = |trace: &Trace| {
        let is_like = |event: &&RepeatedTimeouts| (event.waits[1] - 1.4).abs() < 0.02;
        trace.repeated_timeouts().iter().find(is_like).map(|event| (event.at - event.waits[0], event.number))
    };
    let charts = first_event_chart(
        "Fig. 9: Resent Packet Loss",
        &Setting::new("tahoe", MODERATE),
        5.5,
        like_in_figure,
    )?;
    let remarks = vec![format!(
        "The drawing shows the first event whose second timeout takes 1.4 s. With the 500 ms ticks of §3.1, \
         no timeout is shorter than one second, and the three timeouts take {} s in total.",
        cell(&events(&cells, SENDERS[4], total), 1)
    )];
    let (tables, charts) = (vec![table], charts.into_iter().collect());
    Ok(Finding { tables, charts, claims: claims_9(&cells), remarks, ..Finding::default() })
}

fn claims_9(cells: &TimeoutRuns) -> Vec<Claim> {
    let waits: [fn(&RepeatedTimeouts) -> f64; 3] =
        [|event| event.waits[0], |event| event.waits[1], |event| event.waits[2]];
    let waits = waits.map(|wait| events(cells, SENDERS[0], wait));
    let total = events(cells, SENDERS[0], total);
    let numbers = waits.iter().zip([0.7, 1.4, 2.8]).map(|(waits, paper)| number(waits, paper));
    let found_without_timeout = VARIANTS.map(|curve| {
        let found = cells.samples((curve, Interpretation::Chosen), ()).iter().filter_map(|(_, found)| *found);
        mean(&found.collect::<Vec<_>>())
    });
    let calibrated =
        || Counts::Calibrated("the clock tick, because 0.7 s is not a multiple of 500 ms".to_owned());
    vec![
        claim(
            At("§3.3.3, Fig. 9"),
            "“In Fig. 9 where *x* = 0.01 and *y* = 0.15, packet #618 is resent three times, triggered by \
             consecutive timeouts and interleaved exponentially by 0.7*sec*, 1.4*sec* and 2.8*sec*.”",
            format!(
                "{}, {} and {} s on average. The first of them varies by ± {} s between single events",
                cell(&waits[0], 2),
                cell(&waits[1], 2),
                cell(&waits[2], 2),
                spread(&waits[0])
            ),
            Judged::all(numbers),
        )
        .not_counted(calibrated()),
        claim(
            At("§3.3.3, Fig. 9"),
            "“Once it occurs, the sender remains unnecessarily idle for a comparatively long time, *e.g.*, a \
             total of 4.9*sec* in Fig. 9.”",
            format!("{} s on average. Single events vary by ± {} s", cell(&total, 1), spread(&total)),
            number(&total, 4.9),
        )
        .not_counted(calibrated()),
        claim(
            At("§3.3.3"),
            "“Neither standard nor experimental TCP has the capability to detect and identify the loss of \
             resent packets.” (Here: at most 10 % of the lost retransmissions are retransmitted again \
             without a timeout.)",
            format!(
                "Retransmitted again without a timeout: Tahoe {}, Reno {}, NewReno {}, SACK {}",
                percent(&found_without_timeout[0]),
                percent(&found_without_timeout[1]),
                percent(&found_without_timeout[2]),
                percent(&found_without_timeout[3])
            ),
            Judged::all(found_without_timeout.iter().map(Judged::similar)),
        )
        .not_counted(Counts::ByConstruction(
            "these senders do not start a fast retransmission below `recover`, where a lost retransmission \
             lies"
                .to_owned(),
        )),
    ]
}

/// Judges the paper's number, which is from one event, by the variation of single events.
fn number(events: &[f64], paper: f64) -> Judged {
    Judged::number(&mean(events), paper, of_repetitions(events, 1))
}
