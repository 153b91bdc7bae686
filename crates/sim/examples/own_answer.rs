//! A custom answer: a window that keeps 0.8 of its size after a loss, compared with NewReno on a lossy link.
//!
//! `cargo run -p airtcp-sim --example own_answer`

use airlink::scenario::Scenario;
use airtcp::recovery::catalogue::{Build, Row};
use airtcp::recovery::window::{Aimd, Loss, Reduction, Window};
use airtcp::recovery::{Ack, Recipe, View};
use airtcp_sim::{Flow, HostSpec, Length, Run, Until, run};
use airwire::time::Instant;

/// Answers "How much may be in flight?". It grows like AIMD, and keeps 0.8 of the window after a loss instead
/// of half.
#[derive(Debug, Default)]
struct Gentle {
    growth: Aimd,
}

impl Window for Gentle {
    fn on_ack(&mut self, view: &View<'_>, ack: &Ack) -> Option<f64> {
        self.growth.on_ack(view, ack)
    }

    fn on_loss(&mut self, view: &View<'_>, _loss: &Loss) -> Reduction {
        let reduced = (0.8 * view.flight_size()).max(2.0);
        Reduction { cwnd: reduced, ssthresh: reduced }
    }

    fn on_exit(&mut self, view: &View<'_>) -> f64 {
        view.cc.ssthresh
    }
}

/// The row of the answer in the catalogue.
static GENTLE: Row = Row::answer(
    "gentle",
    Build::Window(|_given| Box::<Gentle>::default()),
    "keeps 0.8 of the window after a loss",
    "an example",
);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let newreno: Recipe = "newreno".parse()?;
    let gentle = newreno.clone().with(&GENTLE)?;
    for recipe in [newreno, gentle] {
        let report = run(&Run {
            scenario: Scenario::load("sifest-random")?,
            seed: 1,
            fixed: HostSpec::sender(recipe),
            mobile: HostSpec::receiver(),
            flows: vec![Flow::down(Length::Endless)],
            until: Until::At(Instant::from_secs(100)),
            from: Instant::ZERO,
            score: false,
        })?;
        let flow = &report.flows[0];
        println!(
            "{:<16} {:>6.1} kbit/s, {} timeouts",
            flow.recipe,
            flow.goodput_bit_per_s / 1e3,
            flow.counters.timeouts
        );
    }
    Ok(())
}
