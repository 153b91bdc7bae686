//! Events of single packets (§3.3, Figs. 7 to 9): their frequency, their duration, and a drawing of each kind.

use airtcp_numbers::statistics::gains;
use airtcp_sim::run::{Run, run_watched};
use airtcp_sim::world::{Watch, WorldError};

use super::judging::{Measured, claim, percent};
use super::setting::{Channel, Reading, SECONDS, Setting};
use super::trace::{Again, Packet, Pair, Trace};
use super::{clusters, traced};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::judge::one_run;
use crate::{Claim, Counts, Effort, Finding, Judged, Table, cell, mean};

/// x and y of Figs. 7 and 8.
pub(super) const RARE: Channel = Channel::new(0.01, 0.09);
/// x and y of Fig. 9.
const RESENT: Channel = Channel::new(0.01, 0.15);
const VARIANTS: [(&str, &str); 4] =
    [("Tahoe", "tahoe"), ("Reno", "reno"), ("NewReno", "newreno"), ("SACK", "sack")];

/// Number of seeds that are searched for an event to draw.
const TRIES: u64 = 400;

/// A chart of the first event in the first run that has one. `when` returns the event's time and packet number.
fn drawn(
    title: &str,
    setting: &Setting,
    seconds: f64,
    when: impl Fn(&Trace) -> Option<(f64, u64)>,
) -> Result<Option<Chart>, WorldError> {
    let plan = Setting { watch: Watch::Packets, ..setting.clone() }.plan()?;
    for seed in 1..=TRIES {
        let (_, mut world) = run_watched(&Run { seed, ..plan.clone() }, |_| {})?;
        let trace = Trace::of(&mut world, 0, setting.reading.mss());
        let Some((at, number)) = when(&trace) else { continue };
        let (from, to) = (at - 0.5, at + seconds);
        let near = |at: f64, packet: u64| at >= from && at <= to && packet.abs_diff(number) < 40;
        let packets = |of: &[Packet], wanted: &dyn Fn(&Packet) -> bool| -> Vec<(f64, f64)> {
            let of = of.iter().filter(|packet| near(packet.at, packet.number) && wanted(packet));
            of.map(|packet| (packet.at, packet.number as f64)).collect()
        };
        let acks = trace.acks.iter().filter(|(at, packet)| near(*at, *packet));
        return Ok(Some(Chart {
            title: format!("{title} (seed {seed})"),
            x: Axis::new("runtime, s", Scale::Around),
            y: Axis::new("packet number", Scale::Around),
            curves: vec![
                Line::dots("packet", packets(&trace.sent, &|packet| packet.copy == 1)),
                Line::dots("resent", packets(&trace.sent, &|packet| packet.copy > 1)),
                Line::dots("lost", packets(&trace.lost, &|_| true)),
                Line::dots("ack", acks.map(|(at, packet)| (*at, *packet as f64))),
            ],
        }));
    }
    Ok(None)
}

pub(super) fn figure_7(effort: &Effort) -> Result<Finding, WorldError> {
    const CHANGES: [f64; 3] = [0.3, 0.1, 0.03];
    let over = |recipe, change| Setting::new(recipe, RARE.changing(change));
    let settings: Vec<_> =
        CHANGES.iter().flat_map(|change| VARIANTS.map(|(_, recipe)| over(recipe, *change))).collect();
    let found = traced(effort, &settings, |_, trace| trace.pairs())?;
    // The mean of each seed; `None` for seeds without such an event.
    let by_seed = |point: usize, of: &dyn Fn(&Pair) -> f64| -> Vec<Option<f64>> {
        let seeds = found[point].iter();
        seeds.map(|pairs| average(&pairs.iter().map(of).collect::<Vec<_>>())).collect()
    };
    let took = |point: usize| by_seed(point, &|pair| pair.took);
    let late = |point: usize| by_seed(point, &|pair| f64::from(u8::from(pair.by_timeout)));

    let mut table = Table::new(
        "Loss of two consecutive packets of one window, the first detected by three duplicate ACKs: seconds until both are acknowledged, and share of events in which the second waits for a timeout (x = 0.01, y = 0.09):",
        &["α = β", "sender", "events per run", "seconds", "share with timeout"],
    );
    let mut ahead = Vec::new();
    for (at, change) in CHANGES.iter().enumerate() {
        let first = at * VARIANTS.len();
        for (index, (name, _)) in VARIANTS.iter().enumerate() {
            let point = first + index;
            let events: Vec<f64> = found[point].iter().map(|pairs| pairs.len() as f64).collect();
            table.row([
                change.to_string(),
                (*name).to_owned(),
                cell(&events, 1),
                cell(&known(&took(point)), 2),
                cell(&known(&late(point)), 2),
            ]);
        }
        let (reno, tahoe) = both(&took(first + 1), &took(first));
        ahead.push(mean(&gains(&reno, &tahoe)));
    }
    let waits = mean(&known(&late(1)));
    let claims = vec![
        claim(
            "§3.3.1",
            "“If multiple packet losses are consecutive, Tahoe usually outperforms Reno in error recovery.”",
            format!(
                "Reno takes {} longer than Tahoe at α = β = 0.3, {} at 0.1 and {} at 0.03",
                percent(&ahead[0]),
                percent(&ahead[1]),
                percent(&ahead[2])
            ),
            Judged::better(&ahead[0]),
        ),
        claim(
            "§3.3.1, Fig. 7b",
            "“After this Fast Retransmit, Reno halves its *cwnd* with *cwnd* inflating by sending packet #619, and normally has to wait for a timeout to recover the second lost packet in the same *swnd*.” (Here: in more than half of the events.)",
            format!("{} of the second packets wait for a timeout", percent(&waits)),
            Judged::between(&waits, 0.5, 1.0),
        ),
    ];
    let first = |trace: &Trace| trace.pairs().first().map(|pair| (pair.at, pair.first));
    let waiting =
        |trace: &Trace| trace.pairs().iter().find(|pair| pair.by_timeout).map(|pair| (pair.at, pair.first));
    let charts = [
        drawn("Fig. 7(a): Multiple Packet Losses, Tahoe", &over("tahoe", 0.3), 3.0, first)?,
        drawn("Fig. 7(b): Multiple Packet Losses, Reno", &over("reno", 0.3), 3.0, waiting)?,
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

/// The values of the seeds that have both.
fn both(one: &[Option<f64>], other: &[Option<f64>]) -> (Vec<f64>, Vec<f64>) {
    one.iter().zip(other).filter_map(|(one, other)| Some(((*one)?, (*other)?))).unzip()
}

/// Half width of the range that holds 95 % of single events, as part of a sentence.
fn off(events: &[f64]) -> String {
    if events.len() < 2 { "–".to_owned() } else { format!("{:.1}", one_run(events)) }
}

/// One run of Fig. 8.
#[derive(Clone)]
struct Tiny {
    /// The share of time with cwnd below [`ENOUGH`].
    below: f64,
    by_dupacks: [f64; 4],
    timeouts: f64,
}

/// With fewer segments in flight, the loss of the first one cannot cause three duplicate ACKs.
pub(super) const ENOUGH: f64 = 4.0;

pub(super) fn figure_8(effort: &Effort) -> Result<Finding, WorldError> {
    const YS: [f64; 3] = [0.05, 0.09, 0.15];
    let settings: Vec<_> = YS
        .iter()
        .flat_map(|y| VARIANTS.map(|(_, recipe)| Setting::new(recipe, Channel::new(0.01, *y))))
        .collect();
    let found = traced(effort, &settings, |measured, trace| {
        let Measured { by_dupacks, timeouts, .. } = *measured;
        Tiny { below: trace.below(ENOUGH, SECONDS as f64), by_dupacks, timeouts }
    })?;
    let mut table = Table::new(
        "Share of time with cwnd below four segments, too few for three duplicate ACKs, and timeouts in 100 s by the number of duplicate ACKs before them (x = 0.01):",
        &["y", "sender", "share of time", "timeouts", "after 0", "after 1", "after 2", "after more"],
    );
    for (point, seeds) in found.iter().enumerate() {
        let of = |value: &dyn Fn(&Tiny) -> f64| seeds.iter().map(value).collect::<Vec<_>>();
        let by = (0..4).map(|dupacks| cell(&of(&|seen| seen.by_dupacks[dupacks]), 1));
        let (y, name) = (YS[point / VARIANTS.len()], VARIANTS[point % VARIANTS.len()].0);
        let head = [
            y.to_string(),
            name.to_owned(),
            percent(&mean(&of(&|seen| seen.below))),
            cell(&of(&|seen| seen.timeouts), 1),
        ];
        table.row(head.into_iter().chain(by));
    }
    let below = mean(&found[VARIANTS.len()].iter().map(|seen| seen.below).collect::<Vec<_>>());
    let claims = vec![
        claim(
            "§3.3.2, Fig. 8",
            "“Since congestion regulations are frequently enforced when TCP flows over lossy links, *cwnd* remains very small over relatively long intervals.” (Here: below four segments for at least 20 % of the time.)",
            format!("Tahoe's cwnd is below four segments for {} of the time at y = 0.09", percent(&below)),
            Judged::considerably(&below),
        ),
        Claim {
            counts: Counts::ByConstruction(
                "two packets in flight cause at most one duplicate ACK".to_owned(),
            ),
            ..claim(
                "§3.3.2, Fig. 8",
                "“In this situation, Fast Retransmit fates to fail since it is impossible for a triple-*dupack* to return.”",
                "True in every run".to_owned(),
                Judged::Holds,
            )
        },
    ];
    let clusters = clusters::tiny_windows(effort)?;
    let charts = drawn("Fig. 8: Tiny Congestion Window", &Setting::new("tahoe", RARE), 2.0, Trace::tiny)?;
    let charts = charts.into_iter().collect();
    Ok(Finding { tables: vec![table, clusters], charts, claims, ..Finding::default() })
}

pub(super) fn figure_9(effort: &Effort) -> Result<Finding, WorldError> {
    const READINGS: [Reading; 3] = [Reading::Chosen, Reading::TicksOf500, Reading::TicksOf10];
    let over = |recipe, reading| Setting { reading, ..Setting::new(recipe, RESENT) };
    let settings: Vec<_> = VARIANTS
        .iter()
        .map(|(_, recipe)| over(recipe, Reading::Chosen))
        .chain(READINGS[1..].iter().map(|reading| over("tahoe", *reading)))
        .collect();
    let found = traced(effort, &settings, |_, trace| (trace.thrice(), trace.copies_found()))?;
    let events = |point: usize| -> Vec<Again> {
        found[point].iter().flat_map(|(events, _)| events.iter().copied()).collect()
    };
    let names = VARIANTS.map(|(name, _)| name.to_owned());
    let others = READINGS[1..].iter().map(|reading| format!("Tahoe, {}", reading.name()));
    let mut table = Table::new(
        "Packets that three consecutive timeouts retransmit: seconds before each of the timeouts (x = 0.01, y = 0.15):",
        &["sender", "events per run", "first", "second", "third", "total"],
    );
    for (point, name) in names.into_iter().chain(others).enumerate() {
        let per_run: Vec<f64> = found[point].iter().map(|(events, _)| events.len() as f64).collect();
        let events = events(point);
        let of = |value: &dyn Fn(&Again) -> f64| cell(&events.iter().map(value).collect::<Vec<_>>(), 2);
        let waits = (0..3).map(|wait| of(&|event| event.waits[wait]));
        let row = [name, cell(&per_run, 1)].into_iter().chain(waits);
        table.row(row.chain([of(&|event| event.waits.iter().sum())]));
    }
    let tahoe = events(0);
    let waits: Vec<Vec<f64>> =
        (0..3).map(|wait| tahoe.iter().map(|event| event.waits[wait]).collect()).collect();
    let total: Vec<f64> = tahoe.iter().map(|event| event.waits.iter().sum()).collect();
    let numbers = waits.iter().zip([0.7, 1.4, 2.8]).map(|(waits, paper)| number(waits, paper));
    let without: Vec<_> = (0..4)
        .map(|point| mean(&found[point].iter().filter_map(|(_, found)| *found).collect::<Vec<_>>()))
        .collect();
    let calibrated =
        || Counts::Calibrated("the clock tick, because 0.7 s is not a multiple of 500 ms".to_owned());
    let claims = vec![
        Claim {
            counts: calibrated(),
            ..claim(
                "§3.3.3, Fig. 9",
                "“In Fig. 9 where *x* = 0.01 and *y* = 0.15, packet #618 is resent three times, triggered by consecutive timeouts and interleaved exponentially by 0.7*sec*, 1.4*sec* and 2.8*sec*.”",
                format!(
                    "{}, {} and {} s on average. The first of them varies by ± {} s between single events",
                    cell(&waits[0], 2),
                    cell(&waits[1], 2),
                    cell(&waits[2], 2),
                    off(&waits[0])
                ),
                Judged::all(numbers),
            )
        },
        Claim {
            counts: calibrated(),
            ..claim(
                "§3.3.3, Fig. 9",
                "“Once it occurs, the sender remains unnecessarily idle for a comparatively long time, *e.g.*, a total of 4.9*sec* in Fig. 9.”",
                format!("{} s on average. Single events vary by ± {} s", cell(&total, 1), off(&total)),
                number(&total, 4.9),
            )
        },
        Claim {
            counts: Counts::ByConstruction(
                "these senders do not start a fast retransmission below `recover`, where a lost retransmission lies"
                    .to_owned(),
            ),
            ..claim(
                "§3.3.3",
                "“Neither standard nor experimental TCP has the capability to detect and identify the loss of resent packets.” (Here: at most 10 % of the lost retransmissions are retransmitted again without a timeout.)",
                format!(
                    "Retransmitted again without a timeout: Tahoe {}, Reno {}, NewReno {}, SACK {}",
                    percent(&without[0]),
                    percent(&without[1]),
                    percent(&without[2]),
                    percent(&without[3])
                ),
                Judged::all(without.iter().map(Judged::similar)),
            )
        },
    ];
    let like_the_papers = |trace: &Trace| {
        let is_like = |event: &&Again| (event.waits[1] - 1.4).abs() < 0.02;
        trace.thrice().iter().find(is_like).map(|event| (event.at - event.waits[0], event.number))
    };
    let charts = drawn("Fig. 9: Resent Packet Loss", &over("tahoe", Reading::Chosen), 5.5, like_the_papers)?;
    let remarks = vec![format!(
        "The drawing shows the first event whose second timeout takes 1.4 s. With the 500 ms ticks of §3.1, no timeout is shorter than one second, and the three timeouts take {} s in total.",
        cell(&events(4).iter().map(|event| event.waits.iter().sum()).collect::<Vec<f64>>(), 1)
    )];
    let charts = charts.into_iter().collect();
    Ok(Finding { tables: vec![table], charts, claims, remarks, ..Finding::default() })
}

/// Judges the paper's number, which is from one event, by the variation of single events.
fn number(events: &[f64], paper: f64) -> Judged {
    Judged::number(&mean(events), paper, one_run(events))
}
