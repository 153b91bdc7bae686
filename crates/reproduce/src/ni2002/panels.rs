//! The panels of Figs. 4 to 7, and variants of these panels with alternative assumptions.

use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::setting::{
    Bad, InitialState, Loss, Number, Place, Setting, Sources, Topology, VARIANTS, Variant, throughput,
};
use crate::Effort;
use crate::grid::Grid;

/// Packet error rates. The paper drew them at random: "In each set, PER is randomly generated" (§4.2.1).
const RATES: [f64; 5] = [0.01, 0.02, 0.04, 0.06, 0.08];
/// Packet error rates of the variants.
pub(super) const FEW_RATES: [f64; 2] = [0.02, 0.08];
/// The links of the ns-2.35 runs that are the reference for Fig. 4 (a).
const RADIO_IS_THE_BOTTLENECK: &str = "[[stage]]\nname = \"wire\"\nboth = { rate = \"10Mbit\", delay = \"5ms\", queue = { packets = 19 } }\n\
     [[stage]]\nname = \"radio\"\nboth = { rate = \"500kbit\", delay = \"30ms\", queue = { packets = 19 } }\n";
/// Links so fast that not even the sender's own window causes a queue.
pub(super) const NO_BOTTLENECK: &str = "[[stage]]\nname = \"wire\"\nboth.rate = \"10Mbit\"\n[[stage]]\nname \
                                        = \"radio\"\nboth.rate = \"10Mbit\"\n";

/// A panel of a figure, or a variant of one that the paper does not have.
pub(super) struct Panel {
    pub(super) name: String,
    rates: &'static [f64],
    place: Box<dyn Fn(f64) -> Place>,
}

impl Panel {
    fn new(name: impl Into<String>, rates: &'static [f64], place: impl Fn(f64) -> Place + 'static) -> Self {
        Self { name: name.into(), rates, place: Box::new(place) }
    }
}

/// Figs. 4 (a), 4 (b), 5, 6 and 7.
pub(super) fn figures() -> Vec<Panel> {
    let two_state =
        |name, topology| Panel::new(name, &RATES, move |per| Place::new(topology, Loss::two_state(per)));
    vec![
        Panel::new(
            "Fig. 4 (a): only wireless loss, no congestion, last hop, uniform error model",
            &RATES,
            |per| Place::new(Topology::LastHop, Loss::Uniform(per)),
        ),
        two_state(
            "Fig. 4 (b): only wireless loss, no congestion, last hop, two-state error model",
            Topology::LastHop,
        ),
        two_state("Fig. 5: congestion and two-state wireless loss, last hop", Topology::Congestion),
        two_state(
            "Fig. 6: congestion and two-state wireless loss, broad backbone, small queue",
            Topology::SmallQueue,
        ),
        two_state(
            "Fig. 7: congestion and two-state wireless loss, broad backbone, long queue",
            Topology::LongQueue,
        ),
    ]
}

/// Alternative bad states for Fig. 4 (b), named by the mean number of losses per bad state.
pub(super) const BURSTS: [(&str, Bad); 3] = [
    ("mean of 0.6 losses per bad state", Bad { loss: 0.3, ends: 0.5 }),
    ("mean of 2 consecutive losses per bad state", Bad { loss: 1.0, ends: 0.5 }),
    ("mean of 4 consecutive losses per bad state", Bad { loss: 1.0, ends: 0.25 }),
];

/// Variants that each change one assumption that the paper leaves open.
pub(super) fn variations() -> Vec<Panel> {
    let bursts = BURSTS.map(|(name, bad)| {
        Panel::new(format!("Fig. 4 (b), {name}"), &FEW_RATES, move |per| {
            Place::new(Topology::LastHop, Loss::TwoState(per, bad))
        })
    });
    let links = [
        ("wire 10 Mbit/s and 5 ms, radio 0.5 Mbit/s and 30 ms", RADIO_IS_THE_BOTTLENECK),
        ("10 Mbit/s on both links", NO_BOTTLENECK),
    ]
    .map(|(name, links)| {
        Panel::new(format!("Fig. 4 (a), {name}"), &FEW_RATES, move |per| Place {
            links,
            ..Place::new(Topology::LastHop, Loss::Uniform(per))
        })
    });
    let loads = [
        ("160 kbit/s per source", Sources::at(160)),
        ("300 kbit/s per source", Sources::at(300)),
        ("sources initially on", Sources { initial_state: InitialState::On, ..Sources::CHOSEN }),
    ];
    let mut panels: Vec<_> = bursts.into_iter().chain(links).collect();
    for (figure, topology) in
        [("Fig. 5", Topology::Congestion), ("Fig. 6", Topology::SmallQueue), ("Fig. 7", Topology::LongQueue)]
    {
        for (name, sources) in loads {
            panels.push(Panel::new(format!("{figure}, {name}"), &FEW_RATES, move |per| Place {
                sources,
                ..Place::new(topology, Loss::two_state(per))
            }));
        }
        if topology != Topology::Congestion {
            let sources = Sources { number: Number::FiveInAll, ..Sources::CHOSEN };
            panels.push(Panel::new(
                format!("{figure}, 3 and 2 sources instead of 5 and 5"),
                &FEW_RATES,
                move |per| Place { sources, ..Place::new(topology, Loss::two_state(per)) },
            ));
        }
    }
    panels
}

#[derive(Clone, Copy, Serialize)]
pub(super) struct Measured {
    #[serde(rename = "throughput, kbit/s")]
    pub(super) kbit_per_s: f64,
    #[serde(rename = "window reductions")]
    pub(super) reductions: f64,
    pub(super) timeouts: f64,
    #[serde(rename = "packets dropped by queues")]
    pub(super) queue_drops: f64,
}

/// The four versions on several panels, each by its index, at each packet error rate.
pub(super) type Cells = Grid<Variant, (usize, f64), Measured>;

pub(super) fn run(effort: &Effort, panels: &[Panel]) -> Result<Cells, WorldError> {
    let points: Vec<_> = panels
        .iter()
        .enumerate()
        .flat_map(|(index, panel)| panel.rates.iter().map(move |per| (index, *per)))
        .collect();
    let plan = |variant: Variant, (panel, per): (usize, f64)| {
        Setting::new(&(panels[panel].place)(per), variant.recipe())
    };
    Grid::run(&VARIANTS, &points, plan, |settings| {
        effort.sample(settings, Setting::run, |_, report| {
            let flow = &report.flows[0];
            Measured {
                kbit_per_s: throughput(flow),
                reductions: flow.counters.window_reductions as f64,
                timeouts: flow.counters.timeouts as f64,
                queue_drops: report.dropped_by_queues as f64,
            }
        })
    })
}
