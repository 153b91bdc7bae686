//! E-TCP over handovers: the mobile moves to a base station that does not know the connection, a case that P4
//! §V does not describe. The tests compare the attribution by transit marks with the ground truth.

use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp_sim::world::{Flow, World, score};
use airtcp_testkit::sample::sample;
use airwire::Cause;
use airwire::time::{Duration, Instant};

use crate::etcp::{EtcpPath, FIXED_TO_MOBILE, extended, run};

/// Seconds between handovers.
const EVERY: u64 = 40;
const HANDOVERS: u64 = 4;
/// Seconds after a handover until the new station has certainly learned the flow, because the data has
/// advanced by more than a flight.
const LEARNED: u64 = 12;
/// Upper bound on the bytes in flight of a flow; the stations are configured with this bound.
const WINDOW: usize = 94 * 1460;

const RADIO: Truth = Truth::Lost(Cause::Radio);
const CONGESTION: Truth = Truth::Lost(Cause::Congestion);

/// Returns the path with 2 % loss and handovers. All stations change at the same time, and for 100 ms no
/// packet passes.
fn scenario(path: &EtcpPath) -> String {
    let when = format!("at = [\"{EVERY}s\"], every = \"{EVERY}s\"");
    let mut text = path.scenario(&format!("{}%", 2 / path.errors.len()));
    for station in path.stations {
        text += &format!(
            "[[stage]]\nname = \"{station}\"\nmax_flight = \"{WINDOW}B\"\nhandover = {{ {when} }}\n"
        );
    }
    for radio in path.radios {
        text += &format!(
            "[[stage]]\nkind = \"outage\"\nname = \"gap-{radio}\"\nafter = \"{radio}\"\n\
             both = {{ {when}, lasts = \"100ms\", packets = \"dropped\" }}\n"
        );
    }
    text
}

/// Runs a flow whose receiver limits it to [`WINDOW`].
fn run_path(path: &EtcpPath, scenario: &str, recipe: &str, seed: u64, seconds: u64) -> World {
    run(scenario, recipe, Flow { receive_buffer: Some(WINDOW), ..path.flow() }, seed, seconds)
}

/// Returns the attributions before the first handover, soon after a handover, and later, compared with the
/// ground truth.
fn phases(world: &mut World) -> [Confusion; 3] {
    let mut phases = [Confusion::default(); 3];
    let decisions = world.decisions(0).to_vec();
    let all = score(&decisions, world.losses(0), "transit-marks");
    // Score the trace from its beginning to the end of each period, and attribute the increase to the period.
    let mut before = Confusion::default();
    for period in 0..=HANDOVERS {
        let begins = Instant::from_secs(period * EVERY);
        for (phase, ends) in [(1, LEARNED), (2, EVERY)] {
            let upto = decisions.partition_point(|decision| decision.at < begins + Duration::from_secs(ends));
            let so_far = score(&decisions[..upto], world.losses(0), "transit-marks");
            let into = &mut phases[if period == 0 { 0 } else { phase }];
            for judged in Cause::ALL {
                for truth in Truth::ALL {
                    for _ in before.count(judged, truth)..so_far.count(judged, truth) {
                        into.add(judged, truth);
                    }
                }
            }
            before = so_far;
        }
    }
    assert_eq!(before.total(), all.total());
    phases
}

/// Returns this many combinations of direction and recipe. In `make nightly`, returns all combinations.
fn paths_and_recipes(
    draw: &str,
    recipes: &[&'static str],
    count: usize,
) -> Vec<(&'static EtcpPath, &'static str)> {
    let all = EtcpPath::ALL.into_iter().flat_map(|path| recipes.iter().map(move |recipe| (path, *recipe)));
    sample(draw, all, count)
}

#[test]
fn new_station_marks_correctly_after_handover() {
    for (path, recipe) in paths_and_recipes("handovers", &["etcp", "newreno+transit-marks"], 1) {
        let mut phases_of_all = [Confusion::default(); 3];
        for seed in 1..=3 {
            let mut world = run_path(path, &scenario(path), recipe, seed, (HANDOVERS + 1) * EVERY);
            let stats = world.path().stats();
            for station in path.stations {
                assert_eq!(stats[station]["handovers"], HANDOVERS);
                assert_eq!(stats[station]["transit"]["learned_without_handshake"], HANDOVERS, "{stats}");
            }
            for (all, phase) in phases_of_all.iter_mut().zip(phases(&mut world)) {
                *all += phase;
            }
        }
        let [before, soon, later] = phases_of_all;
        println!("{:<18} {recipe:<22} before: {before}; soon after: {soon}; later: {later}", path.preset);
        for phase in [before, soon, later] {
            assert_eq!(phase.count(Cause::Radio, CONGESTION), 0, "{} {recipe}: {phase}", path.preset);
        }
        for phase in [before, later] {
            assert!(phase.of(RADIO) > 50 && phase.of(CONGESTION) > 0, "{} {recipe}: {phase}", path.preset);
            assert_eq!(phase.count(Cause::Congestion, RADIO), 0, "{} {recipe}: {phase}", path.preset);
        }
    }
}

/// The unmodified preset, with P4's 56 kbit/s and 15.64 % loss.
#[test]
fn preset_marks_stay_correct_after_each_handover() {
    let mut world = run_path(&FIXED_TO_MOBILE, &extended("etcp-handover", ""), "etcp", 1, 299);
    assert_eq!(world.path().stats()["station"]["handovers"], 9);
    let decisions = world.decisions(0).to_vec();
    let within = |from: u64, to: u64| {
        let at = |second| decisions.partition_point(|decision| decision.at < Instant::from_secs(second));
        score(&decisions[at(from)..at(to)], world.losses(0), "transit-marks")
    };
    // With a full queue, a round trip takes up to 4 s.
    let mut settled = Confusion::default();
    for period in 1..10 {
        settled += within(period * 30 + 5, period * 30 + 30);
    }
    let (before, all) = (within(0, 30), within(0, 299));
    println!("before: {before}; from 5 s after each handover: {settled}; all: {all}");
    assert_eq!((settled.count(Cause::Congestion, RADIO), all.count(Cause::Radio, CONGESTION)), (0, 0));
    assert!(settled.count(Cause::Radio, RADIO) > 20, "{settled}");
}

/// The short queue is full at some of the handovers. Only the queue drops packets here.
#[test]
fn queue_drops_near_handover_never_count_as_radio() {
    let recipes = ["etcp", "newreno+transit-marks", "sack+transit-marks"];
    for (path, recipe) in paths_and_recipes("short queue", &recipes, 2) {
        let mut text = extended(path.preset, "");
        for stage in path.errors.iter().chain(&["wire-errors"]) {
            text += &format!("[[stage]]\nname = \"{stage}\"\nremove = true\n");
        }
        text += "[[stage]]\nname = \"wire\"\nboth = { rate = \"1Mbit\", queue = { packets = 6 } }\n";
        for station in path.stations {
            text += &format!(
                "[[stage]]\nname = \"{station}\"\nmax_flight = \"{WINDOW}B\"\n\
                 handover = {{ at = [\"2s\"], every = \"730ms\" }}\n"
            );
        }
        let confusion = run_path(path, &text, recipe, 1, 300).confusion(0, "transit-marks");
        println!("{:<18} {recipe:<22} {confusion}", path.preset);
        assert!(confusion.count(Cause::Congestion, CONGESTION) > 50, "{} {recipe}: {confusion}", path.preset);
        assert_eq!(confusion.count(Cause::Radio, CONGESTION), 0, "{} {recipe}: {confusion}", path.preset);
    }
}
