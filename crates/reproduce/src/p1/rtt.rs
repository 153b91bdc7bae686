//! Figs. 12 to 19: round-trip times over a last hop and over backbones.

use airtcp_sim::world::WorldError;

use super::super::{Claim, Counts, Effort, Finding, Judged, cell, mean};
use super::observed::{
    By, Observed, Seen, all_three, column, denied, easy, increase_before_congestion, increase_over_the_least,
    possible, tables, watch,
};
use super::panels::NO_BOTTLENECK;
use super::setting::{
    Loss, Number, Place, Queues, Setting, Sources, Topology, VARIANTS, Variant, not, percent,
};
use super::traces;

const PER: f64 = 0.02;

/// Of both figures.
pub(super) fn choices() -> Vec<String> {
    [
        "The verdicts are by the round trips of §3.1: to the first cumulative ACK, without those that a timeout interrupts. They hold what a repair takes. Beside them stand those of segments that were sent once and arrived in order.",
        "An increase before congestion losses is the mean round trip before them over the mean of all; without congestion it is the mean of all over the least, for losses at random come whatever the round trip is. Before a loss: of the last segment before the lost one that has a round trip. Its change: against the one sent a round trip earlier; it is constant within 10 %, what is \"similar\" elsewhere.",
        "Told apart: how often the round-trip time before a congestion loss is above that before a radio loss (ties are half). It is possible if that, or the same of the change, is considerably above a coin's half, and easy if it is similar to 1.",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A claim that is judged by the round trips of §3.1, with what the undisturbed ones say beside it.
fn claim(paper: &str, place: &str, parts: impl Fn(fn(&Seen) -> &[Observed]) -> Vec<(String, By)>) -> Claim {
    let whole = |runs| {
        let parts = parts(runs);
        let judged = Judged::all(parts.iter().map(|(_, (judged, _))| *judged));
        let shown =
            parts.into_iter().map(|(name, (judged, shown))| format!("{name}: {shown} ({})", judged.name()));
        (judged, shown.collect::<Vec<_>>().join("; "))
    };
    let ((judged, text), (by_own, own)) = (whole(|seen| &seen.text), whole(|seen| &seen.own));
    Claim {
        paper: format!("“{paper}”"),
        place: place.to_owned(),
        counts: Counts::Yes,
        ours: format!("{text}. Of undisturbed segments: {own}; {} as a whole.", by_own.name()),
        judged,
    }
}

fn place(topology: Topology, loss: Loss) -> (String, Place, Variant) {
    (topology.name().to_owned(), Place::new(topology, loss), Variant::Tahoe)
}

pub(super) fn figures_12_and_13(effort: &Effort) -> Result<Finding, WorldError> {
    let mut places = Vec::new();
    for topology in [Topology::LastHop, Topology::Congestion] {
        for variant in VARIANTS {
            let place = Place::new(topology, Loss::Uniform(PER));
            places.push((format!("{}, {variant}", topology.name()), place, variant));
        }
    }
    let (uniform, two_state) = (Loss::Uniform(PER), Loss::two_state(PER));
    let clear = Place::new(Topology::LastHop, uniform);
    let congested = Place::new(Topology::Congestion, uniform);
    let open = [
        ("no congestion, 10 Mbit/s on both links, Tahoe", Place { links: NO_BOTTLENECK, ..clear }),
        ("no congestion, two-state loss, Tahoe", Place { loss: two_state, ..clear }),
        ("congestion, two-state loss, Tahoe", Place { loss: two_state, ..congested }),
        ("congestion, sources of 160 kbit/s, Tahoe", Place { sources: Sources::at(160), ..congested }),
        ("congestion, sources of 300 kbit/s, Tahoe", Place { sources: Sources::at(300), ..congested }),
    ];
    places.extend(open.map(|(name, place)| (name.to_owned(), place, Variant::Tahoe)));
    let seen = watch(effort, &places)?;
    let (clear, congested, open) = (&seen[..4], &seen[4..8], &seen[8..]);
    let of = |seen: &[Seen], runs: fn(&Seen) -> &[Observed], by: &dyn Fn(&[Observed]) -> By| {
        let by = |(variant, seen): (&Variant, &Seen)| (variant.to_string(), by(runs(seen)));
        VARIANTS.iter().zip(seen).map(by).collect::<Vec<_>>()
    };
    let overflows = |runs: &[Observed]| {
        let losses = column(runs, |run| Some(run.congestion));
        (Judged::above_zero(&mean(&losses)), format!("{} congestion losses", cell(&losses, 0)))
    };
    let claims = vec![
        claim(
            "From the figures we can see that in such a simple topology, the RTT will not increase considerably with only wireless loss existing, but will increase a lot due to queue build-up and result in packet loss due to buffer overflow finally.",
            "§4.2.2, Figs. 12 and 13",
            |runs| {
                let only_wireless = of(clear, runs, &|runs| denied(increase_over_the_least(runs)));
                let build_up = of(congested, runs, &increase_before_congestion);
                let overflow = of(congested, runs, &overflows);
                [("Fig. 12", only_wireless), ("Fig. 13", build_up), ("Fig. 13", overflow)]
                    .into_iter()
                    .flat_map(|(figure, of)| {
                        of.into_iter().map(move |(name, by)| (format!("{figure} {name}"), by))
                    })
                    .collect()
            },
        ),
        claim(
            "Say, RTT variation computing can be used to distinguish the wireless packet loss from congestion loss in such conditions.",
            "§4.2.2, Figs. 12 and 13",
            |runs| of(congested, runs, &possible),
        ),
    ];
    let range = open.iter().map(|seen| {
        let by = if seen.name.starts_with("no") {
            denied(increase_over_the_least(&seen.text))
        } else {
            let parts = [increase_before_congestion(&seen.text), possible(&seen.text)];
            (Judged::all(parts.iter().map(|by| by.0)), parts.map(|by| by.1).join(", "))
        };
        format!("{}: {} ({})", seen.name, by.1, by.0.name())
    });
    let before_radio = column(&clear[0].text, |run| Some(run.before_radio? / run.mean - 1.0));
    let remarks = vec![
        format!("With other choices: {}.", range.collect::<Vec<_>>().join("; ")),
        format!(
            "Without congestion the sender still makes a queue of its own, because 20 segments are more than the path of 0.5 Mbit/s holds, and §3.1's round trips hold the wait for a repair as well. Before radio losses Tahoe's are {} % longer than all of them: that could not be otherwise where losses are at random, and is not what is judged.",
            percent(&before_radio, 0)
        ),
    ];
    let charts = [
        ("Fig. 12: only wireless loss, no congestion, last-hop", 0),
        ("Fig. 13: congestion & wireless loss, last-hop", 4),
    ]
    .map(|(title, at)| {
        let settings = VARIANTS.iter().zip(&places[at..]).map(|(variant, (_, place, _))| {
            Ok((format!("TCP {variant}"), Setting::new(place, variant.recipe())?))
        });
        traces::round_trips(title, &settings.collect::<Result<Vec<_>, WorldError>>()?)
    });
    Ok(Finding {
        charts: charts.into_iter().collect::<Result<_, _>>()?,
        tables: tables(&seen),
        claims,
        choices: vec!["Uniform loss of 2 % in both.".to_owned()],
        remarks,
    })
}

const NARROW: Topology = Topology::Narrow(Queues::Small);
const NARROW_LONG: Topology = Topology::Narrow(Queues::Long);

/// The paper shows Tahoe only.
pub(super) fn figures_14_to_19(effort: &Effort) -> Result<Finding, WorldError> {
    let loss = Loss::two_state(PER);
    let main = [Topology::LongQueue, Topology::SmallQueue, NARROW, NARROW_LONG, Topology::Congestion];
    let mut places: Vec<_> = main.iter().map(|topology| place(*topology, loss)).collect();
    for topology in main {
        for rate in [160, 300] {
            let place = Place { sources: Sources::at(rate), ..Place::new(topology, loss) };
            places.push((format!("{}, sources of {rate} kbit/s", topology.name()), place, Variant::Tahoe));
        }
    }
    let loads = places.len();
    for topology in &main[..4] {
        let sources = Sources { number: Number::FiveInAll, ..Sources::CHOSEN };
        let place = Place { sources, ..Place::new(*topology, loss) };
        places.push((format!("{}, three sources and two", topology.name()), place, Variant::Tahoe));
        let place = Place::new(*topology, Loss::Uniform(PER));
        places.push((format!("{}, uniform loss", topology.name()), place, Variant::Tahoe));
    }
    for (rate, links) in [
        (125, "[[stage]]\nname = \"backbone\"\nboth.rate = \"125kbit\"\n"),
        (500, "[[stage]]\nname = \"backbone\"\nboth.rate = \"500kbit\"\n"),
    ] {
        let place = Place { links, ..Place::new(NARROW, loss) };
        places.push((format!("{}, {rate} kbit/s", NARROW.name()), place, Variant::Tahoe));
    }
    places.push(place(Topology::Shared, loss));
    let seen = watch(effort, &places)?;
    let [long, small, narrow, narrow_long, ..] = seen.as_slice() else { return Ok(Finding::default()) };
    let named = |name: &str, by: By| (name.to_owned(), by);
    let with_queues_of_20 = |claim: Claim, (judged, shown): By| Claim {
        ours: format!("{} With queues of 20 the narrow one: {shown} ({}).", claim.ours, judged.name()),
        ..claim
    };
    let claims = vec![
        claim(
            "Indeed, the congestion loss due to a long intermediate queue length will cause a considerable increase in RTT and it is easy to distinguish the wireless packet loss from congestion loss(Fig.17).",
            "§4.2.2, Fig. 17",
            |runs| {
                vec![
                    named("increase", increase_before_congestion(runs(long))),
                    named("easy", easy(runs(long))),
                ]
            },
        ),
        with_queues_of_20(
            claim(
                "But a small queue length will not result in considerable increase in RTT(Fig.18) and a narrow wireless backbone will make RTT variation both increase, decrease and constant during congestion (Fig.19).",
                "§4.2.2, Figs. 18 and 19",
                |runs| {
                    vec![
                        named("small queue", denied(increase_before_congestion(runs(small)))),
                        named("narrow", all_three(runs(narrow))),
                    ]
                },
            ),
            all_three(&narrow_long.text),
        ),
        with_queues_of_20(
            claim(
                "In such a circumstance, it is not possible to distinguish wireless packet loss from congestion loss by RTT variation metrics.",
                "§4.2.2, Figs. 18 and 19",
                |runs| {
                    vec![
                        named("small queue", denied(possible(runs(small)))),
                        named("narrow", denied(possible(runs(narrow)))),
                    ]
                },
            ),
            denied(possible(&narrow_long.text)),
        ),
        everywhere(&seen[..loads]),
    ];
    let charts = charts(&places)?;
    Ok(Finding {
        charts,
        tables: tables(&seen),
        claims,
        choices: vec![
            "Of the narrow backbone the paper does not say how long its queues are: its captions name them for the broad one alone (\"broad wireless backbone, with long queue\", \"with small queue\"), and §4.1 has both for a \"slow wireless backbone\". The text speaks of it in one sentence with the small ones, and these are judged; beside each verdict stands what it is with queues of 20.".to_owned(),
        ],
        remarks: vec![range(&seen, narrow_long, loads)],
    })
}

/// §5: "only simple RTT variation discrimination scheme can not perform well across all kinds of simulation topologies
/// and background competing environments" says the same.
fn everywhere(seen: &[Seen]) -> Claim {
    claim(
        "Moreover they do not work well under all kinds of simulation topologies and background load environments.",
        "abstract; §5",
        |runs| {
            let judged: Vec<_> = seen.iter().map(|seen| possible(runs(seen)).0).collect();
            let by = |wanted| judged.iter().filter(|judged| **judged == wanted).count();
            let shown = format!(
                "the two can be told apart in {}, they cannot in {}, it is undecided in {}",
                by(Judged::Holds),
                by(Judged::DoesNotHold),
                by(Judged::Undecided)
            );
            vec![(format!("of {} topologies and loads", seen.len()), (not(Judged::all(judged)), shown))]
        },
    )
}

/// Over which choices the verdicts hold.
fn range(seen: &[Seen], narrow_long: &Seen, loads: usize) -> String {
    let others =
        std::iter::once(narrow_long).chain(&seen[loads..]).chain(&seen[5..loads]).filter_map(|seen| {
            let runs = &seen.text;
            let by = if seen.name.starts_with(Topology::LongQueue.name()) {
                let parts = [increase_before_congestion(runs), easy(runs)];
                (Judged::all(parts.iter().map(|by| by.0)), "increase and easy")
            } else if seen.name.starts_with(Topology::SmallQueue.name()) {
                let parts = [denied(increase_before_congestion(runs)), denied(possible(runs))];
                (Judged::all(parts.iter().map(|by| by.0)), "no increase, not possible")
            } else if seen.name.starts_with("narrow") {
                let parts = [all_three(runs), denied(possible(runs))];
                return Some(format!(
                    "{}: all three changes {}, not possible {}",
                    seen.name,
                    parts[0].0.name(),
                    parts[1].0.name()
                ));
            } else {
                return None;
            };
            Some(format!("{}: {} {}", seen.name, by.1, by.0.name()))
        });
    format!("With other choices: {}.", others.collect::<Vec<_>>().join("; "))
}

/// Figs. 14 to 19.
fn charts(places: &[(String, Place, Variant)]) -> Result<Vec<super::super::chart::Chart>, WorldError> {
    let captions = [
        "congestion & wireless loss, broad wireless backbone, with long queue",
        "congestion & wireless loss, broad wireless backbone, with small queue",
        "congestion & wireless loss, narrow wireless backbone",
    ];
    let settings = places[..3]
        .iter()
        .map(|(_, place, variant)| Setting::new(place, variant.recipe()))
        .collect::<Result<Vec<_>, _>>()?;
    let mut charts = Vec::new();
    for (figure, (caption, setting)) in (14..).zip(captions.iter().zip(&settings)) {
        charts.push(traces::sequence(&format!("Fig. {figure}: {caption}"), setting)?);
    }
    for (figure, (caption, setting)) in (17..).zip(captions.iter().zip(&settings)) {
        let curves = [("TCP Tahoe".to_owned(), setting.clone())];
        charts.push(traces::round_trips(&format!("Fig. {figure}: {caption}"), &curves)?);
    }
    Ok(charts)
}
