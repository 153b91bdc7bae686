//! Figs. 12 to 19: round-trip times over a last hop and over backbones.

use airtcp_sim::world::WorldError;

use super::observed::{
    Observed, PlaceRuns, all_three, easy, increase_before_congestion, increase_over_minimum, known, negated,
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
    parts: impl Fn(fn(&PlaceRuns) -> &[Observed]) -> Vec<(String, Found)>,
) -> Claim {
    let whole = |runs| {
        let parts = parts(runs);
        let judged = Judged::all(parts.iter().map(|(_, (_, judged))| *judged));
        let shown =
            parts.into_iter().map(|(name, (shown, judged))| format!("{name}: {shown} ({})", judged.name()));
        (judged, shown.collect::<Vec<_>>().join("; "))
    };
    let ((judged, text), (by_own, own)) = (whole(|place| &place.text), whole(|place| &place.own));
    let ours = format!("{text}. Undisturbed segments: {own}; overall: {}.", by_own.name());
    claim(at, &format!("“{sentence}”"), ours, judged)
}

fn place(topology: Topology, loss: Loss) -> NamedPlace {
    (topology.name().to_owned(), Place::new(topology, loss), Variant::Tahoe)
}

/// A path with a name, and the version that runs over it.
type NamedPlace = (String, Place, Variant);

pub(super) fn figures_12_and_13(effort: &Effort) -> Result<Finding, WorldError> {
    let places = places_12_and_13();
    let runs = watch(effort, &places)?;
    let (clear, congested, variants) = (&runs[..4], &runs[4..8], &runs[8..]);
    let charts = [
        ("Fig. 12: only wireless loss, no congestion, last-hop", 0),
        ("Fig. 13: congestion & wireless loss, last-hop", 4),
    ]
    .map(|(title, first)| {
        let settings = VARIANTS.iter().zip(&places[first..]).map(|(variant, (_, place, _))| {
            Ok((format!("TCP {variant}"), Setting::new(place, variant.recipe())?))
        });
        traces::round_trips(title, &settings.collect::<Result<Vec<_>, WorldError>>()?)
    });
    Ok(Finding {
        charts: charts.into_iter().collect::<Result<_, _>>()?,
        tables: tables(&runs),
        claims: claims_12_and_13(clear, congested),
        remarks: remarks_12_and_13(clear, variants),
        ..Finding::default()
    })
}

/// The four versions without congestion, then with congestion, then variants with Tahoe.
fn places_12_and_13() -> Vec<NamedPlace> {
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
    let variants = [
        ("no congestion, 10 Mbit/s on both links, Tahoe", Place { links: NO_BOTTLENECK, ..clear }),
        ("no congestion, two-state loss, Tahoe", Place { loss: two_state, ..clear }),
        ("congestion, two-state loss, Tahoe", Place { loss: two_state, ..congested }),
        ("congestion, 160 kbit/s per source, Tahoe", Place { sources: Sources::at(160), ..congested }),
        ("congestion, 300 kbit/s per source, Tahoe", Place { sources: Sources::at(300), ..congested }),
    ];
    places.extend(variants.map(|(name, place)| (name.to_owned(), place, Variant::Tahoe)));
    places
}

fn claims_12_and_13(clear: &[PlaceRuns], congested: &[PlaceRuns]) -> Vec<Claim> {
    let by_variant =
        |places: &[PlaceRuns], runs: fn(&PlaceRuns) -> &[Observed], judge: &dyn Fn(&[Observed]) -> Found| {
            let found = |(variant, place): (&Variant, &PlaceRuns)| (variant.to_string(), judge(runs(place)));
            VARIANTS.iter().zip(places).map(found).collect::<Vec<_>>()
        };
    let overflows = |runs: &[Observed]| {
        let losses = known(runs, |run| Some(run.congestion));
        (format!("{} congestion losses per run", cell(&losses, 0)), Judged::above_zero(&mean(&losses)))
    };
    vec![
        by_rtts(
            At("§4.2.2, Figs. 12 and 13"),
            "From the figures we can see that in such a simple topology, the RTT will not increase \
             considerably with only wireless loss existing, but will increase a lot due to queue build-up \
             and result in packet loss due to buffer overflow finally.",
            |runs| {
                let only_wireless = by_variant(clear, runs, &|runs| negated(increase_over_minimum(runs)));
                let build_up = by_variant(congested, runs, &increase_before_congestion);
                let overflow = by_variant(congested, runs, &overflows);
                [("Fig. 12", only_wireless), ("Fig. 13", build_up), ("Fig. 13", overflow)]
                    .into_iter()
                    .flat_map(|(figure, found)| {
                        found.into_iter().map(move |(name, found)| (format!("{figure} {name}"), found))
                    })
                    .collect()
            },
        ),
        by_rtts(
            At("§4.2.2, Figs. 12 and 13"),
            "Say, RTT variation computing can be used to distinguish the wireless packet loss from \
             congestion loss in such conditions.",
            |runs| by_variant(congested, runs, &possible),
        ),
    ]
}

fn remarks_12_and_13(clear: &[PlaceRuns], variants: &[PlaceRuns]) -> Vec<String> {
    let verdicts = variants.iter().map(|place| {
        let (shown, judged) = if place.name.starts_with("no") {
            negated(increase_over_minimum(&place.text))
        } else {
            let parts = [increase_before_congestion(&place.text), possible(&place.text)];
            let shown = parts.each_ref().map(|(shown, _)| shown.as_str()).join(", ");
            (shown, Judged::all(parts.iter().map(|(_, judged)| *judged)))
        };
        format!("{}: {shown} ({})", place.name, judged.name())
    });
    let before_radio = known(&clear[0].text, |run| Some(run.before_radio? / run.mean - 1.0));
    vec![
        format!("With alternative assumptions: {}.", verdicts.collect::<Vec<_>>().join("; ")),
        format!(
            "Without congestion, the RTT increases for two reasons. The window of 20 segments exceeds the \
             capacity of the path of 0.5 Mbit/s, so that the sender itself causes a queue. In addition, RTTs \
             as defined in §3.1 include the time to repair losses. The RTT of Tahoe before radio losses \
             differs from its mean RTT by {} %. This difference is not judged, because random losses do not \
             depend on the RTT.",
            percent(&before_radio, 0)
        ),
    ]
}

const NARROW: Topology = Topology::Narrow(Queues::Small);
const NARROW_LONG: Topology = Topology::Narrow(Queues::Long);
/// The topologies of Figs. 14 to 19, the narrow backbone with queues of 20, and the congested last hop.
const MAIN: [Topology; 5] =
    [Topology::LongQueue, Topology::SmallQueue, NARROW, NARROW_LONG, Topology::Congestion];

/// Tahoe only, as in the paper.
pub(super) fn figures_14_to_19(effort: &Effort) -> Result<Finding, WorldError> {
    let loads = loads_14_to_19();
    let number_of_loads = loads.len();
    let places = [loads, variants_14_to_19()].concat();
    let runs = watch(effort, &places)?;
    let [long, small, narrow, narrow_long, ..] = runs.as_slice() else { return Ok(Finding::default()) };
    let charts = charts(&places)?;
    Ok(Finding {
        charts,
        tables: tables(&runs),
        claims: claims_14_to_19([long, small, narrow, narrow_long], &runs[..number_of_loads]),
        remarks: vec![range(&runs, narrow_long, number_of_loads)],
        ..Finding::default()
    })
}

/// The topologies with the preset's cross traffic, then each topology with two other rates.
fn loads_14_to_19() -> Vec<NamedPlace> {
    let loss = Loss::two_state(PER);
    let mut places: Vec<_> = MAIN.iter().map(|topology| place(*topology, loss)).collect();
    for topology in MAIN {
        for rate in [160, 300] {
            let place = Place { sources: Sources::at(rate), ..Place::new(topology, loss) };
            places.push((format!("{}, {rate} kbit/s per source", topology.name()), place, Variant::Tahoe));
        }
    }
    places
}

/// Alternative assumptions about sources, losses and the narrow backbone.
fn variants_14_to_19() -> Vec<NamedPlace> {
    let loss = Loss::two_state(PER);
    let mut places = Vec::new();
    for topology in &MAIN[..4] {
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
    places
}

fn claims_14_to_19(
    [long, small, narrow, narrow_long]: [&PlaceRuns; 4],
    all_loads: &[PlaceRuns],
) -> Vec<Claim> {
    let named = |name: &str, found: Found| (name.to_owned(), found);
    let with_queues_of_20 = |claim: Claim, (shown, judged): Found| Claim {
        result: format!("{} Narrow backbone, queues of 20: {shown} ({}).", claim.result, judged.name()),
        ..claim
    };
    vec![
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
                        named("small queues", negated(increase_before_congestion(runs(small)))),
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
                        named("small queues", negated(possible(runs(small)))),
                        named("narrow backbone", negated(possible(runs(narrow)))),
                    ]
                },
            ),
            negated(possible(&narrow_long.text)),
        ),
        everywhere(all_loads),
    ]
}

/// The abstract's claim that the schemes fail in some environments. §5 repeats it: "only simple RTT variation
/// discrimination scheme can not perform well across all kinds of simulation topologies and background competing
/// environments".
fn everywhere(all_loads: &[PlaceRuns]) -> Claim {
    by_rtts(
        At("abstract; §5"),
        "Moreover they do not work well under all kinds of simulation topologies and background load \
         environments.",
        |runs| {
            let judged: Vec<_> = all_loads.iter().map(|place| possible(runs(place)).1).collect();
            let count = |wanted| judged.iter().filter(|judged| **judged == wanted).count();
            let shown = format!(
                "the causes can be distinguished in {}, cannot in {}, undecided in {}",
                count(Judged::Holds),
                count(Judged::DoesNotHold),
                count(Judged::Undecided)
            );
            vec![(
                format!("{} combinations of topology and load", all_loads.len()),
                (shown, not(Judged::all(judged))),
            )]
        },
    )
}

/// The verdicts with alternative assumptions. The first `loads` places of `all` differ in topology and in the rate of
/// the sources. The other places are variants.
fn range(all: &[PlaceRuns], narrow_long: &PlaceRuns, loads: usize) -> String {
    let verdict = |place: &PlaceRuns| {
        let runs = &place.text;
        let all_hold = |parts: [Found; 2]| Judged::all(parts.iter().map(|(_, judged)| *judged)).name();
        let verdict = if place.name.starts_with(Topology::LongQueue.name()) {
            let judged = all_hold([increase_before_congestion(runs), easy(runs)]);
            format!("RTT increase, easy to distinguish ({judged})")
        } else if place.name.starts_with(Topology::SmallQueue.name()) {
            let judged = all_hold([negated(increase_before_congestion(runs)), negated(possible(runs))]);
            format!("no RTT increase, not distinguishable ({judged})")
        } else if place.name.starts_with("narrow") {
            let [(_, all_three), (_, not_possible)] = [all_three(runs), negated(possible(runs))];
            format!(
                "RTT rises, falls and is constant ({}), not distinguishable ({})",
                all_three.name(),
                not_possible.name()
            )
        } else {
            return None;
        };
        Some(format!("{}: {verdict}", place.name))
    };
    let others = std::iter::once(narrow_long).chain(&all[loads..]).chain(&all[MAIN.len()..loads]);
    format!("With alternative assumptions: {}.", others.filter_map(verdict).collect::<Vec<_>>().join("; "))
}

/// Figs. 14 to 16 (sequence numbers) and 17 to 19 (round-trip times).
fn charts(places: &[NamedPlace]) -> Result<Vec<crate::chart::Chart>, WorldError> {
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
