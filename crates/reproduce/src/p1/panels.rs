//! What Figs. 4 to 7 are runs of, and what else was run beside them.

use airtcp_sim::world::WorldError;

use super::super::Effort;
use super::setting::{
    Bad, Begins, Loss, Number, Place, Setting, Sources, Topology, VARIANTS, Variant, throughput,
};

/// "In each set, PER is randomly generated"; the rates here are chosen.
const RATES: [f64; 5] = [0.01, 0.02, 0.04, 0.06, 0.08];
/// The same for what is varied beside them.
pub(super) const FEW: [f64; 2] = [0.02, 0.08];
/// The last hop as it was in ns-2's runs.
const RADIO_IS_THE_BOTTLENECK: &str = "[[stage]]\nname = \"wire\"\nboth = { rate = \"10Mbit\", delay = \"5ms\", queue = { packets = 19 } }\n\
     [[stage]]\nname = \"radio\"\nboth = { rate = \"500kbit\", delay = \"30ms\", queue = { packets = 19 } }\n";
/// Nowhere is a queue, not even one of the sender's own.
pub(super) const NO_BOTTLENECK: &str = "[[stage]]\nname = \"wire\"\nboth.rate = \"10Mbit\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"10Mbit\"\n";

/// A panel of a figure, or one that the paper does not have.
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

/// Figs. 4a, 4b, 5, 6 and 7.
pub(super) fn figures() -> Vec<Panel> {
    let two_state =
        |name, topology| Panel::new(name, &RATES, move |per| Place::new(topology, Loss::two_state(per)));
    vec![
        Panel::new(
            "Fig. 4 (a): only wireless loss, no congestion, last hop, uniform error model",
            &RATES,
            |per| Place::new(Topology::LastHop, Loss::Uniform(per)),
        ),
        two_state("Fig. 4 (b): the same, two-state model", Topology::LastHop),
        two_state("Fig. 5: congestion and two-state wireless loss, last hop", Topology::Congestion),
        two_state("Fig. 6: the same, broad wireless backbone, with small queue", Topology::SmallQueue),
        two_state("Fig. 7: the same, broad wireless backbone, with long queue", Topology::LongQueue),
    ]
}

/// Bad states for Fig. 4 (b), by the mean number of losses in one.
pub(super) const BURSTS: [(&str, Bad); 3] = [
    ("bursts of 0.6 losses on average", Bad { loss: 0.3, ends: 0.5 }),
    ("bursts of 2 losses in a row", Bad { loss: 1.0, ends: 0.5 }),
    ("bursts of 4 losses in a row", Bad { loss: 1.0, ends: 0.25 }),
];

/// What the paper leaves open, one at a time.
pub(super) fn variations() -> Vec<Panel> {
    let bursts = BURSTS.map(|(name, bad)| {
        Panel::new(format!("Fig. 4 (b), {name}"), &FEW, move |per| {
            Place::new(Topology::LastHop, Loss::TwoState(per, bad))
        })
    });
    let links = [
        ("wire 10 Mbit/s and 5 ms, radio 0.5 Mbit/s and 30 ms", RADIO_IS_THE_BOTTLENECK),
        ("10 Mbit/s on both links", NO_BOTTLENECK),
    ]
    .map(|(name, links)| {
        Panel::new(format!("Fig. 4 (a), {name}"), &FEW, move |per| Place {
            links,
            ..Place::new(Topology::LastHop, Loss::Uniform(per))
        })
    });
    let loads = [
        ("sources of 160 kbit/s", Sources::at(160)),
        ("sources of 300 kbit/s", Sources::at(300)),
        ("sources that begin by sending", Sources { begins: Begins::On, ..Sources::CHOSEN }),
    ];
    let mut panels: Vec<_> = bursts.into_iter().chain(links).collect();
    for (figure, topology) in
        [("Fig. 5", Topology::Congestion), ("Fig. 6", Topology::SmallQueue), ("Fig. 7", Topology::LongQueue)]
    {
        for (name, sources) in loads {
            panels.push(Panel::new(format!("{figure}, {name}"), &FEW, move |per| Place {
                sources,
                ..Place::new(topology, Loss::two_state(per))
            }));
        }
        if topology != Topology::Congestion {
            let sources = Sources { number: Number::FiveInAll, ..Sources::CHOSEN };
            panels.push(Panel::new(format!("{figure}, three sources and two"), &FEW, move |per| Place {
                sources,
                ..Place::new(topology, Loss::two_state(per))
            }));
        }
    }
    panels
}

#[derive(Clone, Copy)]
pub(super) struct Measured {
    kbit_per_s: f64,
    pub(super) reductions: f64,
    pub(super) timeouts: f64,
    pub(super) queue_drops: f64,
}

/// One rate of a panel.
pub(super) struct Point {
    pub(super) per: f64,
    /// In the order of `VARIANTS`, by seed.
    of: Vec<Vec<Measured>>,
}

impl Point {
    pub(super) fn samples(&self, variant: Variant, of: impl Fn(&Measured) -> f64) -> Vec<f64> {
        let at = VARIANTS.iter().position(|known| *known == variant).unwrap_or_default();
        self.of[at].iter().map(of).collect()
    }

    pub(super) fn throughput(&self, variant: Variant) -> Vec<f64> {
        self.samples(variant, |measured| measured.kbit_per_s)
    }
}

pub(super) fn run(effort: &Effort, panels: &[Panel]) -> Result<Vec<Vec<Point>>, WorldError> {
    let mut settings = Vec::new();
    for panel in panels {
        for per in panel.rates {
            for variant in VARIANTS {
                settings.push(Setting::new(&(panel.place)(*per), variant.recipe())?);
            }
        }
    }
    let samples = effort.sample(
        &settings,
        |setting, seed| setting.run(seed),
        |_, report| {
            let flow = &report.flows[0];
            Measured {
                kbit_per_s: throughput(flow),
                reductions: flow.counters.window_reductions as f64,
                timeouts: flow.counters.timeouts as f64,
                queue_drops: report.dropped_by_queues as f64,
            }
        },
    )?;
    let mut samples = samples.into_iter();
    let mut point = |per: &f64| Point { per: *per, of: samples.by_ref().take(VARIANTS.len()).collect() };
    Ok(panels.iter().map(|panel| panel.rates.iter().map(&mut point).collect()).collect())
}
