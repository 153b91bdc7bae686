use std::fs;

use airtcp_numbers::statistics::Mean;
use airtcp_testkit::sample::{is_everything, size};

use super::claim::Statement;
use super::seeds::Runs;
use super::*;

/// Seeds that the demo does not use by default. Equivalence within 5 % needs all these seeds. For a large
/// difference, a few are enough.
fn other_seeds(scene: &Scene) -> RangeInclusive<u64> {
    let claims_equivalence = scene.claims.iter().any(|claim| claim.statement == Statement::AsFast);
    7_001..=if claims_equivalence { 7_100 } else { size(7_020, 7_100) }
}

fn runs(kbit_per_s: &[f64], resent: &[f64]) -> Runs {
    Runs {
        kbit_per_s: kbit_per_s.to_vec(),
        resent: resent.to_vec(),
        timeouts: vec![0.0; resent.len()],
        notices: None,
    }
}

/// A row in which only the sender's name matters.
fn row(sender: &str) -> Row {
    let none = Mean { mean: 0.0, half_width: None, samples: 1 };
    let real = serde_json::json!({
        "sender": sender, "receiver": "linux", "seed": 1, "failure": null, "bytes": 1, "kbit_per_s": 100.0,
        "repair": { "fast": 1, "timeout": 2, "probe": 0, "timeouts": 1, "spurious": 0 },
        "capture": serde_json::to_value(crate::capture::Findings::default()).unwrap(),
        "sent": null, "received": null,
    });
    Row {
        sender: sender.to_owned(),
        modelled_by: None,
        in_virtual_time: SceneMeans { kbit_per_s: none, resent: none, timeouts: none },
        against: None,
        faster_than: None,
        notices: Vec::new(),
        real: serde_json::from_value(real).unwrap(),
    }
}

#[test]
fn every_scene_is_complete() {
    for scene in &SCENES {
        let (_, senders) = scene.resolve();
        assert_eq!(senders.last().map(|last| last.name.as_str()), Some("linux:cubic"), "{}", scene.name);
        assert!(!scene.claims.is_empty(), "{}", scene.name);
        for claim in scene.claims {
            for name in [claim.sender, claim.than] {
                assert!(senders.iter().any(|sender| sender.name == name), "{}: {name}", scene.name);
            }
            assert_ne!(claim.sender, claim.than, "{}", scene.name);
            assert!(!claim.because.ends_with('.') && !claim.because.contains(|c: char| c.is_ascii_digit()));
        }
        assert!(std::ptr::eq(find(scene.name).unwrap(), scene));
    }
    assert!(find("nothing").unwrap_err().contains("handover"));
}

/// The claims must follow from the path and not from the choice of seeds.
#[test]
fn claims_hold_with_other_seeds() {
    for scene in &SCENES {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, other_seeds(scene), &|_, _| {})
            .expect("every run finishes");
        let rows: Vec<_> = senders.iter().map(|sender| row(&sender.name)).collect();
        for claim in scene.claims {
            let sentence = claim.check(&rows, &runs);
            assert!(sentence.holds, "{}: {}", scene.name, sentence.text);
        }
    }
}

#[test]
fn claims_without_support_do_not_hold() {
    let rows = [row("newreno+eifel"), row("newreno")];
    let claim =
        |statement| claim::Claim { sender: "newreno+eifel", than: "newreno", statement, because: "So" };
    let holds = |statement, own: &Runs, other: &Runs| {
        claim(statement).check(&rows, &[own.clone(), other.clone()]).holds
    };
    let slow = runs(&[100.0, 110.0, 90.0, 100.0], &[9.0, 11.0, 10.0, 10.0]);
    let fast = runs(&[120.0, 131.0, 110.0, 121.0], &[1.0, 2.0, 1.0, 2.0]);
    let wide = runs(&[300.0, 20.0, 90.0, 110.0], &[30.0, 0.0, 2.0, 3.0]);
    assert!(holds(Statement::Faster, &fast, &slow) && holds(Statement::RetransmitsLess, &fast, &slow));
    assert!(!holds(Statement::Faster, &slow, &fast) && !holds(Statement::RetransmitsLess, &slow, &fast));
    // The mean is larger, but the interval contains zero.
    assert!(!holds(Statement::Faster, &wide, &slow) && !holds(Statement::AsFast, &wide, &slow));
    assert!(!holds(Statement::RetransmitsLess, &wide, &slow));
    assert!(!holds(Statement::Faster, &slow, &slow) && holds(Statement::AsFast, &slow, &slow));
    assert!(!holds(Statement::HasFewerTimeouts, &fast, &slow), "neither has a timeout");
    assert_eq!(
        claim(Statement::RetransmitsLess).check(&rows, &[fast, slow]).text,
        "newreno+eifel retransmits less than newreno: 1.5 instead of 10.0 (± 0.9) segments. So."
    );
}

#[test]
fn invalid_transfer_is_left_out_and_reported() {
    let scene = find("tiny-window").unwrap();
    let (_, senders) = scene.resolve();
    let own = runs(&[50.0, 60.0, 70.0], &[3.0, 4.0, 5.0]);
    let result = |invalid: &[&str]| {
        let transfer = |sender: &Sender| {
            let mut real = row(&sender.name).real;
            real.invalid = invalid.contains(&sender.name.as_str()).then(|| "packets were late".to_owned());
            real
        };
        SceneResult::of(
            scene,
            &senders,
            &vec![own.clone(); senders.len()],
            senders.iter().map(transfer).collect(),
        )
    };
    let text = result(&[]).text(Some(80));
    assert!(!text.contains("left out") && text.contains("100 %"), "{text}");
    let invalid = result(&["sack"]);
    let text = invalid.text(Some(80));
    assert!(text.ends_with("sack is invalid and left out: packets were late\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let (_, real) = text.split_once("\nTUN devices").unwrap();
    let line = |name: &str| real.lines().find(|line| line.starts_with(&format!("{name} "))).unwrap();
    assert!(!line("sack").contains("100.0") && line("newreno").contains("100.0"), "{text}");
    assert_eq!((invalid.rows[1].faster_than, invalid.rows[0].faster_than), (None, Some(1.0)));
    let chart = invalid.chart(&vec![Vec::new(); senders.len()]);
    assert_eq!(chart.senders.iter().map(|sender| sender.transfers.len()).collect::<Vec<_>>(), [1, 0, 1, 1]);
}

/// Only recipes send in virtual time, so the sentence names the recipe.
#[test]
fn sentence_names_recipe_that_models_kernel_sender() {
    let scene = find("handover").unwrap();
    let (_, senders) = scene.resolve();
    let slow = runs(&[100.0, 110.0, 90.0], &[9.0, 11.0, 10.0]);
    let fast = runs(&[220.0, 231.0, 210.0], &[1.0, 2.0, 1.0]);
    let transfers = senders.iter().map(|sender| row(&sender.name).real).collect();
    let result = SceneResult::of(scene, &senders, &[slow, fast.clone(), fast.clone(), fast], transfers);
    let expected = "linux (for linux:cubic) is faster than newreno: +120.3";
    let sentences = result.sentences;
    assert!(sentences.iter().any(|sentence| sentence.text.starts_with(expected)), "{sentences:?}");
}

/// Periodic events on a path must hit every part of a transfer with the same probability.
#[test]
fn start_range_is_multiple_of_outage_period() {
    for scene in &SCENES {
        let table: toml::Table = scene.scenario.parse().unwrap();
        let stages = table["stage"].as_array().unwrap().iter();
        let settings = stages.flat_map(|stage| ["both", "down", "up"].map(|key| stage.get(key))).flatten();
        let periods: Vec<_> = settings
            .flat_map(|settings| [Some(settings), settings.get("channel").and_then(|it| it.get("outage"))])
            .filter_map(|outage| outage?.get("every")?.as_str())
            .collect();
        assert_eq!(periods.is_empty(), !["handover", "lost-again"].contains(&scene.name), "{}", scene.name);
        for every in periods {
            let seconds: u64 = every.strip_suffix('s').unwrap().parse().unwrap();
            let range = seeds::START_RANGE.as_nanos();
            assert!(range.is_multiple_of(seconds * 1_000_000_000), "{}: {every}", scene.name);
        }
    }
}

/// RLC retransmits everything that the handover interrupts, and does not give up.
#[test]
fn handover_scene_loses_no_rlc_data() {
    let scene = find("handover").unwrap();
    let (scenario, senders) = scene.resolve();
    let mut stalled = 0;
    for (sender, seed) in
        senders.iter().flat_map(|sender| (7_001..=size(7_010, 7_020)).map(move |seed| (sender, seed)))
    {
        let transfer = seeds::transfer(&scenario, scene.bytes, seeds::host(&sender.kind).unwrap(), seed);
        let (mut world, _) = transfer.run(|_| {}).unwrap();
        let radio = &world.path().stats()["radio"];
        for direction in ["down", "up"] {
            let lost = ["rlc_reset", "rlc_discard"].map(|why| radio[direction][why].as_u64().unwrap());
            assert_eq!(lost, [0, 0], "{}, seed {seed}, {direction}: {radio}", sender.name);
        }
        stalled += u64::from(radio["down"]["blocks_lost_in_outage"].as_u64().unwrap() > 0);
    }
    let (half, all) = size((20, 40), (40, 80));
    assert!(stalled > half, "most transfers meet a handover: {stalled} of {all}");
}

#[test]
fn typical_seed_is_nearest_to_all_medians() {
    let goodput = |kbit_per_s: &[f64]| runs(kbit_per_s, &[0.0; 5]);
    let one = goodput(&[10.0, 50.0, 30.0, 20.0, 40.0]);
    assert_eq!(seeds::typical(std::slice::from_ref(&one)), 2);
    // For the other sender, the third seed is the fastest.
    let other = goodput(&[10.0, 20.0, 90.0, 30.0, 40.0]);
    assert_eq!(seeds::typical(&[one, other]), 3);
    assert_eq!(seeds::typical(&[goodput(&[7.0; 5])]), 0, "all seeds are equal");
    let mut two_timeouts = goodput(&[10.0, 50.0, 30.0, 20.0, 40.0]);
    two_timeouts.timeouts = vec![1.0, 0.0, 0.0, 1.0, 0.0];
    assert_eq!(seeds::typical(&[two_timeouts]), 3, "a run with a timeout is preferred");
}

/// The guide quotes the simulated runs of the demo.
#[test]
fn demo_page_quotes_current_figures() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/getting-started/demo.md");
    let page = fs::read_to_string(page).unwrap();
    // The transfers of the other scenes are too long to run 200 times for every change.
    let is_short = |scene: &&Scene| scene.name == "tiny-window";
    for scene in SCENES.iter().filter(|scene| is_everything() || is_short(scene)) {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, 1..=200, &|_, _| {}).unwrap();
        let transfers = senders.iter().map(|sender| row(&sender.name).real).collect();
        let text = SceneResult::of(scene, &senders, &runs, transfers).text(Some(80));
        let (simulated, _) = text.split_once("\nTUN devices").unwrap();
        assert!(page.contains(simulated), "{}: run `make demo` and copy this:\n{simulated}", scene.name);
    }
}
