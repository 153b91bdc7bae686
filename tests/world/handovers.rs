//! E-TCP over handovers: the mobile moves to a base station that does not know the connection, a case that P4
//! §V leaves open. The tests compare the attribution by transit marks with the ground truth.

use airlink::scenario::Scenario;
use airtcp::recovery::confusion::{Confusion, Truth};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, World, WorldConfig, score};
use airtcp_testkit::sample::sample;
use airwire::Cause;
use airwire::time::{Duration, Instant};

/// Seconds between handovers.
const EVERY: u64 = 40;
const HANDOVERS: u64 = 4;
/// Seconds after a handover until the new station has certainly learned the flow, because the data has
/// advanced by more than a flight.
const LEARNED: u64 = 12;
/// Upper bound on the bytes in flight of a flow; the stations are configured with it.
const WINDOW: usize = 94 * 1460;

const RADIO: Truth = Truth::Lost(Cause::Radio);
const CONGESTION: Truth = Truth::Lost(Cause::Congestion);

/// A row of P4's Table 1 with handovers: the preset, its stations, its radio links, the lossy stages, and the
/// direction of the data.
struct Way {
    preset: &'static str,
    stations: &'static [&'static str],
    radios: &'static [&'static str],
    errors: &'static [&'static str],
    direction: &'static str,
}

const WAYS: [Way; 3] = [
    Way {
        preset: "etcp-fixed-mobile",
        stations: &["station"],
        radios: &["radio"],
        errors: &["radio-errors"],
        direction: "down",
    },
    Way {
        preset: "etcp-mobile-fixed",
        stations: &["station"],
        radios: &["radio"],
        errors: &["radio-errors-up"],
        direction: "up",
    },
    Way {
        preset: "etcp-mobile-mobile",
        stations: &["station-1", "station-2"],
        radios: &["radio-1", "radio-2"],
        errors: &["radio-errors-1", "radio-errors-2"],
        direction: "down",
    },
];

impl Way {
    /// Returns P4's path with 1 Mbit/s, without the errors of the wire, which are neither congestion nor the
    /// radio link. All stations change at the same time, and for 100 ms no packet passes.
    fn scenario(&self) -> String {
        let when = format!("at = [\"{EVERY}s\"], every = \"{EVERY}s\"");
        let mut text = format!(
            "schema = 1\nextends = \"{}\"\n[[stage]]\nname = \"wire-errors\"\nremove = true\n\
             [[stage]]\nname = \"wire\"\nboth.rate = \"1Mbit\"\n",
            self.preset
        );
        for stage in self.errors {
            text += &format!(
                "[[stage]]\nname = \"{stage}\"\n{}.per = \"{}%\"\n",
                self.direction,
                2 / self.errors.len()
            );
        }
        for station in self.stations {
            text += &format!(
                "[[stage]]\nname = \"{station}\"\nmax_flight = \"{WINDOW}B\"\nhandover = {{ {when} }}\n"
            );
        }
        for radio in self.radios {
            text += &format!(
                "[[stage]]\nkind = \"outage\"\nname = \"gap-{radio}\"\nafter = \"{radio}\"\n\
                 both = {{ {when}, lasts = \"100ms\", packets = \"dropped\" }}\n"
            );
        }
        text
    }

    fn run(&self, scenario: &str, recipe: &str, seed: u64, seconds: u64) -> World {
        let host = || HostSpec::sender(recipe.parse().unwrap());
        let flow =
            if self.direction == "up" { Flow::up(Length::Endless) } else { Flow::down(Length::Endless) };
        let flow = Flow { receive_buffer: Some(WINDOW), ..flow };
        let mut world = World::new(WorldConfig {
            scenario: Scenario::parse(scenario, "test").unwrap(),
            seed,
            fixed: host(),
            mobile: host(),
            flows: vec![Flow { watch: Watch::Decisions, ..flow }],
        })
        .unwrap();
        world.run_until(Instant::from_secs(seconds)).unwrap();
        world
    }
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

/// Returns this many combinations of direction and recipe, or all of them in `make nightly`.
fn ways_and_recipes(draw: &str, recipes: &[&'static str], count: usize) -> Vec<(&'static Way, &'static str)> {
    let all = WAYS.iter().flat_map(|way| recipes.iter().map(move |recipe| (way, *recipe)));
    sample(draw, all, count)
}

#[test]
fn new_station_marks_correctly_after_handover() {
    for (way, recipe) in ways_and_recipes("handovers", &["etcp", "newreno+transit-marks"], 1) {
        let mut phases_of_all = [Confusion::default(); 3];
        for seed in 1..=3 {
            let mut world = way.run(&way.scenario(), recipe, seed, (HANDOVERS + 1) * EVERY);
            let stats = world.path().stats();
            for station in way.stations {
                assert_eq!(stats[station]["handovers"], HANDOVERS);
                assert_eq!(stats[station]["transit"]["learned_without_handshake"], HANDOVERS, "{stats}");
            }
            for (all, phase) in phases_of_all.iter_mut().zip(phases(&mut world)) {
                *all += phase;
            }
        }
        let [before, soon, later] = phases_of_all;
        println!("{:<18} {recipe:<22} before: {before}; soon after: {soon}; later: {later}", way.preset);
        for phase in [before, soon, later] {
            assert_eq!(phase.count(Cause::Radio, CONGESTION), 0, "{} {recipe}: {phase}", way.preset);
        }
        for phase in [before, later] {
            assert!(phase.of(RADIO) > 50 && phase.of(CONGESTION) > 0, "{} {recipe}: {phase}", way.preset);
            assert_eq!(phase.count(Cause::Congestion, RADIO), 0, "{} {recipe}: {phase}", way.preset);
        }
    }
}

/// The unmodified preset, with P4's 56 kbit/s and 15.64 % loss.
#[test]
fn preset_marks_stay_correct_after_each_handover() {
    let way = &WAYS[0];
    let mut world = way.run("schema = 1\nextends = \"etcp-handover\"", "etcp", 1, 299);
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

/// The short queue is full at one handover or another. Only the queue drops packets here.
#[test]
fn queue_drops_near_handover_never_count_as_radio() {
    let recipes = ["etcp", "newreno+transit-marks", "sack+transit-marks"];
    for (way, recipe) in ways_and_recipes("short queue", &recipes, 2) {
        let mut text = format!("schema = 1\nextends = \"{}\"\n", way.preset);
        for stage in way.errors.iter().chain(&["wire-errors"]) {
            text += &format!("[[stage]]\nname = \"{stage}\"\nremove = true\n");
        }
        text += "[[stage]]\nname = \"wire\"\nboth = { rate = \"1Mbit\", queue = { packets = 6 } }\n";
        for station in way.stations {
            text += &format!(
                "[[stage]]\nname = \"{station}\"\nmax_flight = \"{WINDOW}B\"\n\
                 handover = {{ at = [\"2s\"], every = \"730ms\" }}\n"
            );
        }
        let confusion = way.run(&text, recipe, 1, 300).confusion(0, "transit-marks");
        println!("{:<18} {recipe:<22} {confusion}", way.preset);
        assert!(confusion.count(Cause::Congestion, CONGESTION) > 50, "{} {recipe}: {confusion}", way.preset);
        assert_eq!(confusion.count(Cause::Radio, CONGESTION), 0, "{} {recipe}: {confusion}", way.preset);
    }
}
