//! Properties that hold for every valid recipe of the catalogue, alone and in pairs, on any path.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use airtcp::profile::Profile;
use airtcp::recovery::catalogue::{self, Question};
use airtcp::recovery::parameter::Range;
use airtcp::recovery::{Decision, Recipe, RecoveryState, TRANSITIONS, Transition, What};
use airtcp::tcp::SocketOptions;
use airtcp_testkit::exchange::{Exchange, ExchangeSpec};
use airtcp_testkit::pair::{Impairments, Pair, Peer};
use airtcp_testkit::sample::{sample, size};
use airwire::Cause;
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

use crate::common::plan;

/// Time during which the path has impairments, and the time limit after that.
const BAD: Duration = Duration::from_secs(4);
const LIMIT: Duration = Duration::from_secs(400);

/// Returns every name of the catalogue alone, with a value if it takes one, and a sample of `pairs`
/// combinations of two names. In `make nightly`, the sample is all combinations.
fn recipes(draw: &str, pairs: usize) -> Vec<(String, Recipe)> {
    let words: Vec<String> = catalogue::rows()
        .map(|row| match row.range() {
            // The geometric mean, because users rarely choose either end of the range.
            Some(Range { min, max, .. }) => format!("{}={:.3}", row.name, (min.max(1e-3) * max).sqrt()),
            None => row.name.to_owned(),
        })
        .collect();
    let parsed = |text: String| {
        let recipe: Recipe = text.parse().ok()?;
        Some((recipe.canonical(), recipe))
    };
    let alone: BTreeMap<String, Recipe> = words.iter().cloned().filter_map(parsed).collect();
    let texts =
        words.iter().enumerate().flat_map(|(i, a)| words[i..].iter().map(move |b| format!("{a}+{b}")));
    let together: BTreeMap<String, Recipe> =
        texts.filter_map(parsed).filter(|(name, _)| !alone.contains_key(name)).collect();
    alone.into_iter().chain(sample(draw, together, pairs)).collect()
}

/// Calls `check` with every recipe of [`recipes`] and every seed, on all processors.
pub(crate) fn every_recipe(draw: &str, pairs: usize, seeds: u64, check: impl Fn(&Recipe, u64) + Sync) {
    let recipes = recipes(draw, pairs);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (recipes, check) = (&recipes, &check);
        let work = move |worker: usize| {
            for (name, recipe) in recipes.iter().skip(worker).step_by(workers) {
                for seed in 0..seeds {
                    let run = AssertUnwindSafe(|| check(recipe, seed));
                    if let Err(panic) = catch_unwind(run) {
                        eprintln!("recipe {name}, seed {seed}");
                        resume_unwind(panic);
                    }
                }
            }
        };
        let threads: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        for thread in threads {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// An exchange over a path of up to 4 Mbit/s with every impairment. The receiver's buffer may be small.
pub(crate) fn bad_world(recipe: &Recipe, seed: u64) -> (Exchange, Stream) {
    let mut draw = Stream::new(seed, &recipe.canonical());
    let path = Impairments {
        loss: draw.unit() * 0.08,
        duplicate: draw.unit() * 0.02,
        reorder: draw.unit() * 0.05,
        reorder_by: Duration::from_millis(1 + draw.below(80)),
        corrupt: draw.unit() * 0.01,
        truncate: 0.0,
        per_byte: Duration::from_micros(2 + draw.below(30)),
        delay: Duration::from_millis(1 + draw.below(60)),
        queue: 4 + draw.below(40) as usize,
        longest: None,
    };
    let profile = Profile::default();
    let mut pair = Pair::new(seed, (recipe, &Recipe::default()), (&profile, &profile), path);
    // In some of the exchanges, most ACKs are lost.
    pair.lossy = Some((Peer::Right, draw.unit() * draw.unit() * 0.6));
    pair.left.trace_decisions();
    let window = [4_000, 20_000, 200_000][draw.below(3) as usize];
    let options = SocketOptions { recv_buffer: Some(window), ..SocketOptions::of(&profile) };
    let spec = ExchangeSpec { options, ..plan("default", [150_000, 3_000]) };
    (Exchange::new(pair, spec).unwrap(), draw)
}

/// Runs the exchange on a path that first has impairments and delay spikes, and then is good. Returns the
/// sender's decisions.
fn run(mut exchange: Exchange, draw: &mut Stream) -> Vec<Decision> {
    let start = exchange.pair.now;
    let (bad, good_delay) = (exchange.pair.path.clone(), exchange.pair.path.delay);
    let (mut edge, mut spike_ends, mut trace) = (0, start, Vec::new());
    let mut is_bad = true;
    while !exchange.is_complete() {
        let now = exchange.pair.now;
        if is_bad && now > start + BAD {
            is_bad = false;
            exchange.pair.lossy = None;
            let per_byte = bad.per_byte;
            exchange.pair.path = Impairments { per_byte, ..Impairments::lossless(good_delay) };
        } else if is_bad && now > spike_ends {
            let spike =
                if draw.chance(0.01) { Duration::from_millis(draw.below(3000)) } else { Duration::ZERO };
            exchange.pair.path.delay = good_delay + spike;
            spike_ends = now + Duration::from_millis(30);
        }
        let alive = exchange.step().unwrap_or_else(|error| panic!("the streams differ: {error}"));
        assert!(alive || exchange.is_complete(), "the exchange is stalled at {now}");
        assert!(
            exchange.pair.now < start + BAD + LIMIT,
            "the exchange is incomplete at the time limit, {now}"
        );
        if let Some(sender) = exchange.connection(Peer::Left) {
            let flight = sender.flight();
            edge = edge.max(flight.una() + u64::from(sender.info().snd_wnd));
            // A window probe may carry one byte beyond the window.
            assert!(flight.max() <= edge + 1, "{} was sent, the window ends at {edge}", flight.max());
        }
        trace.extend(exchange.take_trace(Peer::Left));
    }
    exchange.audit().unwrap();
    trace
}

#[test]
fn every_recipe_delivers_exact_stream_within_window() {
    every_recipe("exact streams", 80, size(1, 3), |recipe, seed| {
        let (exchange, mut draw) = bad_world(recipe, seed);
        let trace = run(exchange, &mut draw);
        let possible = recipe.transitions(&recipe.tune(&Profile::default()));
        for transition in transitions(&trace) {
            assert!(
                possible.contains(&transition),
                "{transition:?} is missing from `airtcp explain`: {possible:?}"
            );
        }
        if !recipe.parts().any(|(row, _)| row.reduces_again.is_some()) {
            one_reduction_per_event(&trace);
        }
        for decision in &trace {
            let What::Window { cwnd, ssthresh, .. } = decision.what else { continue };
            assert!(cwnd.is_finite() && cwnd > 0.0 && ssthresh > 0.0, "{decision:?}");
        }
    });
}

/// Returns the sender's transitions between states. Also checks that every decision names the state that the
/// previous transition led to.
fn transitions(trace: &[Decision]) -> Vec<Transition> {
    let mut state = RecoveryState::Open;
    let mut transitions = Vec::new();
    for decision in trace {
        let to = match decision.what {
            What::Enter { state, .. } => Some(state),
            What::Leave { state: left } => {
                assert_eq!(left, state, "{decision:?}");
                Some(RecoveryState::Open)
            }
            _ => None,
        };
        if let Some(to) = to {
            let condition =
                TRANSITIONS.iter().map(|it| it.condition).find(|condition| condition.text() == decision.why);
            transitions.push(Transition {
                from: state,
                condition: condition.expect("the reason is a known condition"),
                to,
            });
            state = to;
        }
        assert_eq!(decision.state, state, "{decision:?}");
    }
    transitions
}

/// Checks that a loss event reduces the window only once. A loss event lasts until the data outstanding at
/// its start is acknowledged. Losses found during that time without a timeout belong to the event.
fn one_reduction_per_event(trace: &[Decision]) {
    let (mut event, mut radio_loss_at) = (None, None);
    for (index, decision) in trace.iter().enumerate() {
        match decision.what {
            // A timeout means that a retransmission of this event was also lost, which is a new loss.
            What::Timeout { .. } => event = None,
            What::Window { .. } if decision.question == Question::Undo => event = None,
            // A loss that was attributed to the radio link did not reduce the window.
            What::Cause { cause: Cause::Radio, .. } => radio_loss_at = Some(decision.at),
            What::Cause { offset, cause: Cause::Congestion } => {
                let Some(recover) = event else { continue };
                let around = &trace[index.saturating_sub(12)..(index + 4).min(trace.len())];
                assert!(offset >= recover, "a second reduction before {recover}: {around:#?}");
            }
            What::Enter { recover, .. } => {
                event = Some(recover).filter(|_| radio_loss_at != Some(decision.at))
            }
            What::Extend { recover } => event = Some(recover),
            _ => {}
        }
    }
}

/// A recipe with an add-on makes the same decisions as the plain recipe while the input of the add-on is
/// absent.
#[test]
fn add_on_without_input_changes_no_decision() {
    let seeds = size(4, 20);
    let traces = |text: &str, timestamps| -> Vec<Vec<(Instant, What)>> {
        let recipe: Recipe = text.parse().unwrap();
        (0..seeds).map(|seed| trace_of(&recipe, seed, timestamps)).collect()
    };
    for base in ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit", "newreno+frto"] {
        // Reports from base stations and reordering would raise the tax, so it is fixed at 0.
        for (parts, timestamps) in [(["rebate+tax=0", "transit-marks"].as_slice(), true), (&["eifel"], false)]
        {
            let plain = traces(base, timestamps);
            let decisions = plain.iter().flatten().count() as u64;
            assert!(decisions > 50 * seeds, "{base}: {decisions} decisions with {seeds} seeds");
            for part in parts {
                let with = traces(&format!("{base}+{part}"), timestamps);
                for (seed, (plain, with)) in plain.iter().zip(&with).enumerate() {
                    let differs = plain.iter().zip(with).position(|(a, b)| a != b);
                    let around = differs.map(|at| (&plain[at], &with[at]));
                    assert!(plain == with, "{base}+{part}, seed {seed}: {around:#?} of {}", plain.len());
                }
            }
        }
    }
}

/// Returns the decisions with their times, but without the algorithm and its wording, which differ.
fn trace_of(recipe: &Recipe, seed: u64, timestamps: bool) -> Vec<(Instant, What)> {
    let path = bad_world(&Recipe::default(), seed).0.pair.path;
    let profile = Profile::default();
    let receiver = profile.clone().with(|it| it.handshake.timestamps = timestamps);
    let mut pair = Pair::new(seed, (recipe, &Recipe::default()), (&profile, &receiver), path);
    pair.left.trace_decisions();
    let mut exchange = Exchange::new(pair, plan("default", [300_000, 0])).unwrap();
    let mut trace = Vec::new();
    while !exchange.is_complete() {
        assert!(exchange.step().unwrap() || exchange.is_complete(), "the exchange is stalled");
        trace.extend(exchange.take_trace(Peer::Left));
    }
    let is_compared = |decision: &Decision| !matches!(decision.what, What::Fallback { .. });
    trace.into_iter().filter(is_compared).map(|d| (d.at, d.what)).collect()
}
