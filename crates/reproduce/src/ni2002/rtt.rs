//! Figs. 12 to 19: round-trip times over a last hop and over backbones.

use airtcp_sim::world::WorldError;

use super::observed::{
    Observed, Seen, all_three, denied, easy, increase_before_congestion, increase_over_the_least, known,
    possible, tables, watch,
};
use super::panels::NO_BOTTLENECK;
use super::setting::{
    Loss, Number, Place, Queues, Setting, Sources, Topology, VARIANTS, Variant, not, percent,
};
use super::traces;
use crate::{At, Claim, Effort, Finding, Found, Judged, cell, claim, mean};

const PER: f64 = 0.02;

/// A claim that is judged by RTTs as defined in §3.1. The RTTs of undisturbed segments are given for comparison.
fn by_rtts(
    at: At<'_>,
    sentence: &str,
    parts: impl Fn(fn(&Seen) -> &[Observed]) -> Vec<(String, Found)>,
) -> Claim {
    let whole = |runs| {
        let parts = parts(runs);
        let judged = Judged::all(parts.iter().map(|(_, (_, judged))| *judged));
        let shown =
            parts.into_iter().map(|(name, (shown, judged))| format!("{name}: {shown} ({})", judged.name()));
        (judged, shown.collect::<Vec<_>>().join("; "))
    };
    let ((judged, text), (by_own, own)) = (whole(|seen| &seen.text), whole(|seen| &seen.own));
    let ours = format!("{text}. Undisturbed segments: {own}; overall: {}.", by_own.name());
    claim(at, &format!("“{sentence}”"), ours, judged)
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
        ("congestion, 160 kbit/s per source, Tahoe", Place { sources: Sources::at(160), ..congested }),
        ("congestion, 300 kbit/s per source, Tahoe", Place { sources: Sources::at(300), ..congested }),
    ];
    places.extend(open.map(|(name, place)| (name.to_owned(), place, Variant::Tahoe)));
    let seen = watch(effort, &places)?;
    let (clear, congested, open) = (&seen[..4], &seen[4..8], &seen[8..]);
    let of = |seen: &[Seen], runs: fn(&Seen) -> &[Observed], by: &dyn Fn(&[Observed]) -> Found| {
        let by = |(variant, seen): (&Variant, &Seen)| (variant.to_string(), by(runs(seen)));
        VARIANTS.iter().zip(seen).map(by).collect::<Vec<_>>()
    };
    let overflows = |runs: &[Observed]| {
        let losses = known(runs, |run| Some(run.congestion));
        (format!("{} congestion losses per run", cell(&losses, 0)), Judged::above_zero(&mean(&losses)))
    };
    let claims = vec![
        by_rtts(
            At("§4.2.2, Figs. 12 and 13"),
            "From the figures we can see that in such a simple topology, the RTT will not increase \
             considerably with only wireless loss existing, but will increase a lot due to queue build-up \
             and result in packet loss due to buffer overflow finally.",
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
        by_rtts(
            At("§4.2.2, Figs. 12 and 13"),
            "Say, RTT variation computing can be used to distinguish the wireless packet loss from \
             congestion loss in such conditions.",
            |runs| of(congested, runs, &possible),
        ),
    ];
    let range = open.iter().map(|seen| {
        let by = if seen.name.starts_with("no") {
            denied(increase_over_the_least(&seen.text))
        } else {
            let parts = [increase_before_congestion(&seen.text), possible(&seen.text)];
            (parts.each_ref().map(|by| by.0.as_str()).join(", "), Judged::all(parts.iter().map(|by| by.1)))
        };
        format!("{}: {} ({})", seen.name, by.0, by.1.name())
    });
    let before_radio = known(&clear[0].text, |run| Some(run.before_radio? / run.mean - 1.0));
    let remarks = vec![
        format!("With alternative assumptions: {}.", range.collect::<Vec<_>>().join("; ")),
        format!(
            "Without congestion, the RTT increases for two reasons. The window of 20 segments exceeds the \
             capacity of the path of 0.5 Mbit/s, so that the sender itself causes a queue. In addition, RTTs \
             as defined in §3.1 include the time to repair losses. The RTT of Tahoe before radio losses \
             differs from its mean RTT by {} %. This difference is not judged, because random losses do not \
             depend on the RTT.",
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
        remarks,
        ..Finding::default()
    })
}

const NARROW: Topology = Topology::Narrow(Queues::Small);
const NARROW_LONG: Topology = Topology::Narrow(Queues::Long);

/// Tahoe only, as in the paper.
pub(super) fn figures_14_to_19(effort: &Effort) -> Result<Finding, WorldError> {
    let loss = Loss::two_state(PER);
    let main = [Topology::LongQueue, Topology::SmallQueue, NARROW, NARROW_LONG, Topology::Congestion];
    let mut places: Vec<_> = main.iter().map(|topology| place(*topology, loss)).collect();
    for topology in main {
        for rate in [160, 300] {
            let place = Place { sources: Sources::at(rate), ..Place::new(topology, loss) };
            places.push((format!("{}, {rate} kbit/s per source", topology.name()), place, Variant::Tahoe));
        }
    }
    let loads = places.len();
    for topology in &main[..4] {
        let sources = Sources { number: Number::FiveInAll, ..Sources::CHOSEN };
        let place = Place { sources, ..Place::new(*topology, loss) };
        places.push((
            format!("{}, 3 and 2 sources instead of 5 and 5", topology.name()),
            place,
            Variant::Tahoe,
        ));
        let place = Place::new(*topology, Loss::Uniform(PER));
        places.push((format!("{}, uniform loss", topology.name()), place, Variant::Tahoe));
    }
    for (rate, links) in [
        (125, "[[stage]]\nname = \"backbone\"\nboth.rate = \"125kbit\"\n"),
        (500, "[[stage]]\nname = \"backbone\"\nboth.rate = \"500kbit\"\n"),
    ] {
        let place = Place { links, ..Place::new(NARROW, loss) };
        places.push((format!("{}, backbone of {rate} kbit/s", NARROW.name()), place, Variant::Tahoe));
    }
    places.push(place(Topology::Shared, loss));
    let seen = watch(effort, &places)?;
    let [long, small, narrow, narrow_long, ..] = seen.as_slice() else { return Ok(Finding::default()) };
    let named = |name: &str, by: Found| (name.to_owned(), by);
    let with_queues_of_20 = |claim: Claim, (shown, judged): Found| Claim {
        result: format!("{} Narrow backbone, queues of 20: {shown} ({}).", claim.result, judged.name()),
        ..claim
    };
    let claims = vec![
        by_rtts(
            At("§4.2.2, Fig. 17"),
            "Indeed, the congestion loss due to a long intermediate queue length will cause a considerable \
             increase in RTT and it is easy to distinguish the wireless packet loss from congestion \
             loss(Fig.17).",
            |runs| {
                vec![
                    named("RTT increase", increase_before_congestion(runs(long))),
                    named("easy to distinguish", easy(runs(long))),
                ]
            },
        ),
        with_queues_of_20(
            by_rtts(
                At("§4.2.2, Figs. 18 and 19"),
                "But a small queue length will not result in considerable increase in RTT(Fig.18) and a \
                 narrow wireless backbone will make RTT variation both increase, decrease and constant \
                 during congestion (Fig.19).",
                |runs| {
                    vec![
                        named("small queues", denied(increase_before_congestion(runs(small)))),
                        named("narrow backbone", all_three(runs(narrow))),
                    ]
                },
            ),
            all_three(&narrow_long.text),
        ),
        with_queues_of_20(
            by_rtts(
                At("§4.2.2, Figs. 18 and 19"),
                "In such a circumstance, it is not possible to distinguish wireless packet loss from \
                 congestion loss by RTT variation metrics.",
                |runs| {
                    vec![
                        named("small queues", denied(possible(runs(small)))),
                        named("narrow backbone", denied(possible(runs(narrow)))),
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
        remarks: vec![range(&seen, narrow_long, loads)],
        ..Finding::default()
    })
}

/// The abstract's claim that the schemes fail in some environments. §5 repeats it: "only simple RTT variation
/// discrimination scheme can not perform well across all kinds of simulation topologies and background competing
/// environments".
fn everywhere(seen: &[Seen]) -> Claim {
    by_rtts(
        At("abstract; §5"),
        "Moreover they do not work well under all kinds of simulation topologies and background load \
         environments.",
        |runs| {
            let judged: Vec<_> = seen.iter().map(|seen| possible(runs(seen)).1).collect();
            let by = |wanted| judged.iter().filter(|judged| **judged == wanted).count();
            let shown = format!(
                "the causes can be distinguished in {}, cannot in {}, undecided in {}",
                by(Judged::Holds),
                by(Judged::DoesNotHold),
                by(Judged::Undecided)
            );
            vec![(
                format!("{} combinations of topology and load", seen.len()),
                (shown, not(Judged::all(judged))),
            )]
        },
    )
}

/// The verdicts with alternative assumptions.
fn range(seen: &[Seen], narrow_long: &Seen, loads: usize) -> String {
    let others =
        std::iter::once(narrow_long).chain(&seen[loads..]).chain(&seen[5..loads]).filter_map(|seen| {
            let runs = &seen.text;
            let by = if seen.name.starts_with(Topology::LongQueue.name()) {
                let parts = [increase_before_congestion(runs), easy(runs)];
                ("RTT increase, easy to distinguish", Judged::all(parts.iter().map(|by| by.1)))
            } else if seen.name.starts_with(Topology::SmallQueue.name()) {
                let parts = [denied(increase_before_congestion(runs)), denied(possible(runs))];
                ("no RTT increase, not distinguishable", Judged::all(parts.iter().map(|by| by.1)))
            } else if seen.name.starts_with("narrow") {
                let parts = [all_three(runs), denied(possible(runs))];
                return Some(format!(
                    "{}: RTT rises, falls and is constant ({}), not distinguishable ({})",
                    seen.name,
                    parts[0].1.name(),
                    parts[1].1.name()
                ));
            } else {
                return None;
            };
            Some(format!("{}: {} ({})", seen.name, by.0, by.1.name()))
        });
    format!("With alternative assumptions: {}.", others.collect::<Vec<_>>().join("; "))
}

/// Figs. 14 to 16 (sequence numbers) and 17 to 19 (round-trip times).
fn charts(places: &[(String, Place, Variant)]) -> Result<Vec<crate::chart::Chart>, WorldError> {
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
