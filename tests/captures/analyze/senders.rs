//! The congestion control that the analysis infers, on paths of every kind, in virtual time, where the truth
//! is known.

use airtcp_testkit::machine::TempFile;
use serde_json::Value;

use super::*;

/// Rate in Mbit/s, round-trip time in ms, queue in packets, random loss in per cent.
type Path = (u32, u32, u32, f64);

const PATHS: [Path; 6] = [
    (2, 60, 20, 0.0),
    (5, 100, 60, 0.0),
    (5, 40, 40, 0.3),
    (10, 50, 80, 0.05),
    (10, 200, 120, 0.1),
    (20, 30, 50, 0.0),
];

/// The inferred congestion control of the sender, with the evidence.
fn judged(recipe: &str, (rate, rtt, queue, loss): Path, seed: u32) -> Value {
    let scenario = TempFile::new("scenario");
    let loss = format!(
        "[[stage]]\nkind = \"loss\"\nname = \"air\"\ndown = {{ model = \"uniform\", per = \"{loss}%\" }}\n"
    );
    let delay = rtt / 2;
    let text = format!(
        "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
         both = {{ rate = \"{rate}Mbit\", delay = \"{delay}ms\", queue = {{ packets = {queue} }} }}\n{loss}"
    );
    std::fs::write(scenario.path(), text).unwrap();
    let capture = TempFile::new("pcap");
    let seed = seed.to_string();
    let ended = run(&[
        "sim",
        "--scenario",
        scenario.path(),
        "--seed",
        &seed,
        "--recipe",
        recipe,
        "--for",
        "40s",
        "--pcap",
        capture.path(),
    ]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let direction = &analyze_path(capture.path(), &[])["connections"][0]["directions"][0];
    direction["sender"]["congestion_control"].clone()
}

/// The paths for this recipe, with their seeds. Fast paths take longest to simulate, so an ordinary run uses
/// slow paths: one without random loss and, for one recipe of each congestion control, one with random loss.
fn paths(recipe: &str) -> Vec<(u32, Path)> {
    let one_of_each = ["sack", "sack+cubic", "sack+bbr"].contains(&recipe);
    let is_tried =
        |(seed, _): &(u32, Path)| sample::is_everything() || *seed == 0 || *seed == 2 && one_of_each;
    (0..).zip(PATHS).filter(is_tried).collect()
}

/// Runs the recipe on its paths. Returns the wrong judgements and the number of correct ones.
fn judge(recipe: &str, truth: &str) -> (Vec<String>, usize) {
    let judgements: Vec<_> =
        paths(recipe).into_iter().map(|(seed, path)| (path, judged(recipe, path, seed))).collect();
    let right = judgements.iter().filter(|(_, judgement)| judgement["name"] == truth).count();
    let names = |judgement: &Value| {
        let or = judgement["or"].as_array().unwrap().clone();
        judgement["name"] == truth || judgement["name"].is_null() || or.contains(&truth.into())
    };
    let wrong = judgements
        .iter()
        .filter(|(_, judgement)| !names(judgement))
        .map(|(path, judgement)| format!("{recipe} on {path:?}: {judgement}"));
    (wrong.collect(), right)
}

#[test]
fn reno_and_cubic_are_recognised_without_mistakes() {
    for (recipe, truth) in [
        ("sack", "reno"),
        ("newreno+eifel", "reno"),
        ("sack+prr", "reno"),
        ("sack+cubic", "cubic"),
        ("newreno+cubic+hystart", "cubic"),
    ] {
        let (wrong, right) = judge(recipe, truth);
        assert_eq!(wrong, [""; 0]);
        let paths = paths(recipe).len();
        assert!(right * 2 > paths, "{recipe} is recognised on only {right} of {paths} paths");
    }
    // Without jitter, the window of JTCP is Reno's. `sack@linux` keeps 0.7 of its window as CUBIC does, but grows
    // like Reno. Both often cannot be recognised.
    for (recipe, truth) in [("sack+jtcp", "reno"), ("sack@linux", "cubic")] {
        let (wrong, right) = judge(recipe, truth);
        assert_eq!(wrong, [""; 0]);
        assert!(right > 0, "{recipe}");
    }
}

#[test]
fn bbr_is_recognised_without_mistakes() {
    let (wrong, right) = judge("sack+bbr", "bbr");
    assert_eq!(wrong, [""; 0]);
    assert!(right > 0);
}

#[test]
fn other_congestion_controls_stay_undetermined() {
    let recipes = ["tahoe", "sack+rack+bbr3", "sack+receiver-window"];
    for recipe in sample::sample("others", recipes, 3) {
        assert_eq!(judge(recipe, "none of these").0, [""; 0]);
    }
}
