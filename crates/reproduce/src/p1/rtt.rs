//! Figs. 12 to 19: round-trip times, and whether those before a congestion loss differ from those before a radio
//! loss.
//!
//! The paper reads that off its pictures. Here it is a number: in what share of all pairs of a congestion loss and a
//! radio loss of one run is the round-trip time before the congestion loss the longer one? (Mann and Whitney's
//! statistic, the area under the ROC curve.) It needs no threshold: 1 is a scheme that never errs, 0.5 a coin.

use std::collections::BTreeMap;

use airtcp_numbers::statistics::average;
use airtcp_sim::run::run_watched;
use airtcp_sim::world::{Losses, Seen, Sighting, Watch, WorldError};
use airwire::Cause;
use airwire::time::{Duration, Instant};
use rayon::prelude::*;

use super::super::{Claim, Counts, Effort, Finding, Judged, Table, cell};
use super::setting::{CHOICES, Loss, Setting, Topology, VARIANTS, Variant, above_zero, paired};

/// An increase to so many times the least round-trip time is considerable.
const CONSIDERABLE: f64 = 2.0;
/// From `EASY` on it is easy to distinguish the two; below `IMPOSSIBLE` it is not possible.
const EASY: f64 = 0.9;
const IMPOSSIBLE: f64 = 0.7;
/// A round-trip time that changes by at most this share within one round trip is constant.
const CONSTANT: f64 = 0.05;
/// Something happens if it does before at least this share of the losses.
const HAPPENS: f64 = 0.1;
const PER: f64 = 0.02;

/// The round trip of a segment that was sent once.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Trip {
    sent: Instant,
    took: Duration,
}

/// Round trips, from the departure of P_i to the ACK that it caused (§3.1). Two kinds of segments are left out: those
/// that arrive above a hole, because the ACK that covers them tells how long the repair took; and those sent again.
fn trips(sightings: &[Sighting]) -> Vec<Trip> {
    /// The octet after the SYN.
    const FIRST: u64 = 1;
    let mut outside: BTreeMap<u64, Option<(Instant, u64)>> = BTreeMap::new();
    let mut una = FIRST;
    let mut trips = Vec::new();
    for Sighting { at, seen } in sightings {
        match *seen {
            Seen::Sent { offset, len, copy: 1 } => {
                outside.insert(offset, Some((*at, len)));
            }
            Seen::Sent { offset, .. } => {
                outside.insert(offset, None);
            }
            Seen::Ack { ack, .. } if ack > una => {
                if let Some(Some((sent, len))) = outside.get(&una)
                    && una + len == ack
                {
                    trips.push(Trip { sent: *sent, took: *at - *sent });
                }
                outside = outside.split_off(&ack);
                una = ack;
            }
            Seen::Ack { .. } => {}
        }
    }
    trips
}

/// How long round trips were when a segment was sent that got lost.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Before {
    cause: Cause,
    /// The round trip of the last segment before it that was measured, in multiples of the least one.
    rtt: f64,
    /// Its change against the segment sent one round trip earlier: 0.1 is a tenth longer.
    change: Option<f64>,
}

/// Only first copies count: just before a retransmission no round trips are measured.
fn before_losses(trips: &[Trip], losses: &Losses, least: f64) -> Vec<Before> {
    let last_at =
        |at: Instant| trips.partition_point(|trip| trip.sent <= at).checked_sub(1).map(|i| trips[i]);
    let first_copies = losses.as_slice().iter().filter(|lost| lost.copy == 1);
    first_copies
        .filter_map(|lost| {
            let trip = last_at(lost.sent)?;
            let took = trip.took.as_secs_f64();
            let earlier = Instant::ZERO + trip.sent.saturating_since(Instant::ZERO + trip.took);
            let change = last_at(earlier).map(|earlier| took / earlier.took.as_secs_f64() - 1.0);
            Some(Before { cause: lost.cause()?, rtt: took / least, change })
        })
        .collect()
}

/// In what share of the pairs the one of `a` is above the one of `b`; equal ones count half. `None` without pairs.
fn superiority(a: &[f64], b: &[f64]) -> Option<f64> {
    let above = |x: f64| {
        b.iter()
            .map(|y| {
                if x > *y {
                    1.0
                } else if x == *y {
                    0.5
                } else {
                    0.0
                }
            })
            .sum::<f64>()
    };
    let pairs = (a.len() * b.len()) as f64;
    (pairs > 0.0).then(|| a.iter().map(|x| above(*x)).sum::<f64>() / pairs)
}

/// What one run showed.
#[derive(Clone, Debug, Default)]
struct Observed {
    least_ms: f64,
    /// In multiples of the least.
    mean: f64,
    p95: f64,
    before_congestion: Option<f64>,
    before_radio: Option<f64>,
    by_rtt: Option<f64>,
    by_change: Option<f64>,
    /// The shares of the congestion losses before which it rises, falls and is constant.
    trends: Option<[f64; 3]>,
    congestion: f64,
    radio: f64,
}

impl Observed {
    fn of(sightings: &[Sighting], losses: &Losses) -> Option<Self> {
        let trips = trips(sightings);
        let mut took: Vec<_> = trips.iter().map(|trip| trip.took.as_secs_f64()).collect();
        took.sort_by(f64::total_cmp);
        let least = *took.first()?;
        let before = before_losses(&trips, losses, least);
        let of = |cause: Cause| before.iter().filter(move |before| before.cause == cause);
        let rtts = |cause| of(cause).map(|before| before.rtt).collect::<Vec<_>>();
        let changes = |cause| of(cause).filter_map(|before| before.change).collect::<Vec<_>>();
        let (congestion, radio) = (rtts(Cause::Congestion), rtts(Cause::Radio));
        let at_congestion = changes(Cause::Congestion);
        let share = |is: fn(f64) -> bool| {
            at_congestion.iter().filter(|change| is(**change)).count() as f64 / at_congestion.len() as f64
        };
        Some(Self {
            least_ms: 1e3 * least,
            mean: average(&took)? / least,
            p95: took[(took.len() - 1) * 95 / 100] / least,
            before_congestion: average(&congestion),
            before_radio: average(&radio),
            by_rtt: superiority(&congestion, &radio),
            by_change: superiority(&at_congestion, &changes(Cause::Radio)),
            trends: (!at_congestion.is_empty())
                .then(|| [share(|c| c > CONSTANT), share(|c| c < -CONSTANT), share(|c| c.abs() <= CONSTANT)]),
            congestion: losses.count(Cause::Congestion) as f64,
            radio: losses.count(Cause::Radio) as f64,
        })
    }
}

fn watch(effort: &Effort, path: &str, variant: Variant) -> Result<Vec<Observed>, WorldError> {
    let setting = Setting { watch: Watch::Packets, ..Setting::new(path, variant.recipe())? };
    let seeds: Vec<_> = effort.seeds().collect();
    seeds
        .into_par_iter()
        .map(|seed| {
            let (_, world) = run_watched(&setting.run(seed), |_| {})?;
            Ok(Observed::of(world.sightings(0), world.losses(0)).unwrap_or_default())
        })
        .collect()
}

fn column(runs: &[Observed], of: impl Fn(&Observed) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(of).collect()
}

fn table() -> Table {
    Table::new(
        "round-trip times in multiples of the least one; losses per run of 400 s",
        &[
            "",
            "least, ms",
            "mean",
            "95 % are below",
            "before radio losses",
            "before congestion losses",
            "told apart by RTT",
            "by its change",
            "radio losses",
            "congestion losses",
        ],
    )
}

fn row(table: &mut Table, name: String, runs: &[Observed]) {
    table.row([
        name,
        cell(&column(runs, |run| Some(run.least_ms)), 0),
        cell(&column(runs, |run| Some(run.mean)), 2),
        cell(&column(runs, |run| Some(run.p95)), 2),
        cell(&column(runs, |run| run.before_radio), 2),
        cell(&column(runs, |run| run.before_congestion), 2),
        cell(&column(runs, |run| run.by_rtt), 2),
        cell(&column(runs, |run| run.by_change), 2),
        cell(&column(runs, |run| Some(run.radio)), 0),
        cell(&column(runs, |run| Some(run.congestion)), 0),
    ]);
}

fn choices(more: &[String]) -> Vec<String> {
    let own = [
        format!(
            "\"Considerable\" is {CONSIDERABLE} times the least round-trip time of the run, in the mean; {EASY} told apart is easy, below {IMPOSSIBLE} is impossible, between the two is in part."
        ),
        "Told apart: how often the round-trip time before a congestion loss is above that before a radio loss (ties are half). Before a loss: of the last segment sent before the lost one that was measured. Its change: against the one sent a round trip earlier.".to_owned(),
        "A round trip is that of a segment sent once which arrived in order; others measure the repair.".to_owned(),
    ];
    CHOICES.map(str::to_owned).into_iter().chain(own).chain(more.iter().cloned()).collect()
}

/// Whether the two are told apart with at least `EASY`.
fn easy(samples: &[f64]) -> Judged {
    let above = |bound: f64| above_zero(&samples.iter().map(|x| x - bound).collect::<Vec<_>>());
    match (above(EASY), above(IMPOSSIBLE)) {
        (Judged::Holds, _) => Judged::Holds,
        (Judged::DoesNotHold, Judged::Holds) => Judged::HoldsInPart,
        (_, Judged::DoesNotHold) => Judged::DoesNotHold,
        _ => Judged::Undecided,
    }
}

/// Whether the two are told apart with less than `IMPOSSIBLE`.
fn impossible(samples: &[f64]) -> Judged {
    let below = |bound: f64| above_zero(&samples.iter().map(|x| bound - x).collect::<Vec<_>>());
    match (below(IMPOSSIBLE), below(EASY)) {
        (Judged::Holds, _) => Judged::Holds,
        (Judged::DoesNotHold, Judged::Holds) => Judged::HoldsInPart,
        (_, Judged::DoesNotHold) => Judged::DoesNotHold,
        _ => Judged::Undecided,
    }
}

pub(super) fn figures_12_and_13(effort: &Effort) -> Result<Finding, WorldError> {
    let runs = |topology: Topology| {
        let path = topology.path(&Loss::Uniform(PER).stage());
        VARIANTS.map(|variant| watch(effort, &path, variant)).into_iter().collect::<Result<Vec<_>, _>>()
    };
    let (clear, congested) = (runs(Topology::LastHop)?, runs(Topology::Congestion)?);
    let mut table = table();
    for (topology, runs) in [(Topology::LastHop, &clear), (Topology::Congestion, &congested)] {
        for (variant, runs) in VARIANTS.iter().zip(runs) {
            row(&mut table, format!("{}, {variant}", topology.name()), runs);
        }
    }
    let means = |runs: &[Observed]| column(runs, |run| Some(run.mean));
    let of_each = |runs: &[Vec<Observed>], of: &dyn Fn(&[Observed]) -> Vec<f64>| {
        let shown =
            VARIANTS.iter().zip(runs).map(|(variant, runs)| format!("{variant} {}", cell(&of(runs), 2)));
        shown.collect::<Vec<_>>().join(", ")
    };
    let judged = |runs: &[Vec<Observed>], of: &dyn Fn(&[Observed]) -> Judged| {
        Judged::all(runs.iter().map(|runs| of(runs)))
    };
    let more = clear
        .iter()
        .zip(&congested)
        .map(|(clear, congested)| paired(&means(congested), &means(clear), |a, b| a - b));
    let more: Vec<_> = more.collect();
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Fig. 12: \"the RTT will not increase considerably with only wireless loss existing\"".to_owned(),
            ours: format!("mean over least: {}", of_each(&clear, &means)),
            judged: judged(&clear, &|runs| {
                above_zero(&means(runs).iter().map(|mean| CONSIDERABLE - mean).collect::<Vec<_>>())
            }),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Fig. 13: \"but will increase a lot due to queue build-up\"".to_owned(),
            ours: format!("mean over least: {}", of_each(&congested, &means)),
            judged: judged(&congested, &|runs| {
                above_zero(&means(runs).iter().map(|mean| mean - CONSIDERABLE).collect::<Vec<_>>())
            }),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "more with congestion (Fig. 13) than without (Fig. 12)".to_owned(),
            ours: format!(
                "by {} of the least",
                VARIANTS.iter().zip(&more).map(|(variant, more)| format!("{variant} {}", cell(more, 2))).collect::<Vec<_>>().join(", ")
            ),
            judged: Judged::all(more.iter().map(|more| above_zero(more))),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "Fig. 13: \"RTT variation computing can be used to distinguish the wireless packet loss from congestion loss in such conditions\"".to_owned(),
            ours: format!("told apart: {}", of_each(&congested, &|runs| column(runs, |run| run.by_rtt))),
            judged: judged(&congested, &|runs| easy(&column(runs, |run| run.by_rtt))),
        },
    ];
    Ok(Finding {
charts: Vec::new(),
        tables: vec![table],
        claims,
        choices: choices(&[
            Topology::LastHop.choice(),
            Topology::Congestion.choice(),
            "Uniform loss of 2 % in both.".to_owned(),
        ]),
        remarks: vec![
            "Without congestion the sender still makes a queue of its own: 20 segments are more than the path of 0.5 Mbit/s holds.".to_owned(),
        ],
    })
}

/// A figure of a backbone; the paper shows Tahoe only.
fn backbone(
    effort: &Effort,
    topology: Topology,
    claims: impl Fn(&[Observed]) -> Vec<Claim>,
) -> Result<Finding, WorldError> {
    let runs = watch(effort, &topology.path(&Loss::TwoState(PER).stage()), Variant::Tahoe)?;
    let mut table = table();
    row(&mut table, "Tahoe".to_owned(), &runs);
    let remark = format!(
        "A drop-tail queue drops when it is full: a round trip is {} times the least before congestion losses (95 % of all are below {}). The radio loses however full the queue is: {} times before its losses. How far that tells the two apart depends on how much of the round trip the queue makes up that drops.",
        cell(&column(&runs, |run| run.before_congestion), 2),
        cell(&column(&runs, |run| Some(run.p95)), 2),
        cell(&column(&runs, |run| run.before_radio), 2),
    );
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![table],
        claims: claims(&runs),
        choices: choices(&[topology.choice()]),
        remarks: vec![remark],
    })
}

fn increase(runs: &[Observed]) -> (Vec<f64>, String) {
    let before = column(runs, |run| run.before_congestion);
    let shown = format!("{} times the least before congestion losses", cell(&before, 2));
    (before, shown)
}

fn told_apart(runs: &[Observed]) -> (Vec<f64>, Vec<f64>, String) {
    let (by_rtt, by_change) = (column(runs, |run| run.by_rtt), column(runs, |run| run.by_change));
    let shown = format!("told apart by RTT {}, by its change {}", cell(&by_rtt, 2), cell(&by_change, 2));
    (by_rtt, by_change, shown)
}

pub(super) fn figures_14_and_17(effort: &Effort) -> Result<Finding, WorldError> {
    backbone(effort, Topology::LongQueue, |runs| {
        let (before, increase) = increase(runs);
        let (by_rtt, _, apart) = told_apart(runs);
        vec![
            Claim {
                place: String::new(),
                counts: Counts::Yes,
                paper: "\"the congestion loss due to a long intermediate queue length will cause a considerable increase in RTT\"".to_owned(),
                ours: increase,
                judged: above_zero(&before.iter().map(|rtt| rtt - CONSIDERABLE).collect::<Vec<_>>()),
            },
            Claim {
                place: String::new(),
                counts: Counts::Yes,
                paper: "\"and it is easy to distinguish the wireless packet loss from congestion loss\"".to_owned(),
                ours: apart,
                judged: easy(&by_rtt),
            },
        ]
    })
}

fn not_possible(runs: &[Observed]) -> Claim {
    let (by_rtt, by_change, ours) = told_apart(runs);
    Claim {
        place: String::new(),
        counts: Counts::Yes,
        paper: "\"it is not possible to distinguish wireless packet loss from congestion loss by RTT variation metrics\"".to_owned(),
        ours,
        // It is possible if one of the two does it.
        judged: match [impossible(&by_rtt), impossible(&by_change)] {
            either if either.contains(&Judged::DoesNotHold) => Judged::DoesNotHold,
            both => Judged::all(both),
        },
    }
}

pub(super) fn figures_15_and_18(effort: &Effort) -> Result<Finding, WorldError> {
    backbone(effort, Topology::SmallQueue, |runs| {
        let (before, increase) = increase(runs);
        vec![
            Claim {
                place: String::new(),
                counts: Counts::Yes,
                paper: "\"a small queue length will not result in considerable increase in RTT\"".to_owned(),
                ours: increase,
                judged: above_zero(&before.iter().map(|rtt| CONSIDERABLE - rtt).collect::<Vec<_>>()),
            },
            not_possible(runs),
        ]
    })
}

pub(super) fn figures_16_and_19(effort: &Effort) -> Result<Finding, WorldError> {
    backbone(effort, Topology::Narrow, |runs| {
        let trend = |i: usize| column(runs, |run| run.trends.map(|trends| trends[i]));
        let happens = |i| above_zero(&trend(i).iter().map(|share| share - HAPPENS).collect::<Vec<_>>());
        let percent = |i| cell(&trend(i).iter().map(|share| 100.0 * share).collect::<Vec<_>>(), 0);
        vec![
            Claim {
                place: String::new(),
                counts: Counts::Yes,
                paper: format!(
                    "\"a narrow wireless backbone will make RTT variation both increase, decrease and constant during congestion\" (each before at least {:.0} % of the congestion losses)",
                    100.0 * HAPPENS
                ),
                ours: format!(
                    "it rises before {} %, falls before {} %, is constant before {} %",
                    percent(0),
                    percent(1),
                    percent(2)
                ),
                judged: match [happens(0), happens(1), happens(2)] {
                    any if any.contains(&Judged::DoesNotHold) => Judged::DoesNotHold,
                    all => Judged::all(all),
                },
            },
            not_possible(runs),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: u64, offset: u64, copy: u32) -> Sighting {
        Sighting { at: Instant::from_millis(at), seen: Seen::Sent { offset, len: 1000, copy } }
    }

    fn ack(at: u64, ack: u64) -> Sighting {
        Sighting { at: Instant::from_millis(at), seen: Seen::Ack { ack, duplicate: false, sacked: vec![] } }
    }

    #[test]
    fn a_round_trip_is_that_of_a_segment_sent_once_that_arrived_in_order() {
        let sightings = [
            sent(0, 1, 1),
            sent(0, 1001, 1),
            sent(10, 2001, 1),
            sent(10, 3001, 1),
            ack(100, 1001),
            // The second was lost; what came after it waits for its repair.
            sent(300, 1001, 2),
            ack(400, 4001),
            sent(400, 4001, 1),
            ack(510, 5001),
        ];
        let expected = [(0, 100), (400, 110)];
        let trip =
            |(sent, took)| Trip { sent: Instant::from_millis(sent), took: Duration::from_millis(took) };
        assert_eq!(trips(&sightings), expected.map(trip));
    }

    #[test]
    fn superiority_is_one_for_all_above_and_a_half_for_equals() {
        assert_eq!(superiority(&[3.0, 4.0], &[1.0, 2.0]), Some(1.0));
        assert_eq!(superiority(&[1.0, 2.0], &[1.0, 2.0]), Some(0.5));
        assert_eq!(superiority(&[1.0, 4.0], &[2.0, 3.0]), Some(0.5));
        assert_eq!(superiority(&[], &[1.0]), None);
    }

    #[test]
    fn easy_and_impossible_leave_something_between_them() {
        assert_eq!(easy(&[0.94, 0.95, 0.96]), Judged::Holds);
        assert_eq!(
            (easy(&[0.79, 0.8, 0.81]), impossible(&[0.79, 0.8, 0.81])),
            (Judged::HoldsInPart, Judged::HoldsInPart)
        );
        assert_eq!((easy(&[0.5, 0.51]), impossible(&[0.5, 0.51])), (Judged::DoesNotHold, Judged::Holds));
        assert_eq!(impossible(&[0.94, 0.95, 0.96]), Judged::DoesNotHold);
    }
}
