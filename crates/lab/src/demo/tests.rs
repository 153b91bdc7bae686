use airtcp_numbers::statistics::Mean;

use super::claim::Says;
use super::seeds::Runs;
use super::*;

/// Runs that the demo itself does not make unless it is told to.
const OTHER_SEEDS: RangeInclusive<u64> = 7_001..=7_100;

fn runs(kbit_per_s: &[f64], resent: &[f64]) -> Runs {
    Runs { kbit_per_s: kbit_per_s.to_vec(), resent: resent.to_vec(), timeouts: vec![0.0; resent.len()] }
}

/// A row of which only the sender counts.
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
        in_virtual_time: Many { kbit_per_s: none, resent: none, timeouts: none },
        against: None,
        faster_than: None,
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

/// What is said is true of the path and not of the seeds.
#[test]
fn what_is_said_holds_with_other_seeds() {
    for scene in &SCENES {
        let (scenario, senders) = scene.resolve();
        let runs =
            seeds::run(&scenario, scene.bytes, &senders, OTHER_SEEDS, &|_, _| {}).expect("they are done");
        let rows: Vec<_> = senders.iter().map(|sender| row(&sender.name)).collect();
        for claim in scene.claims {
            let sentence = claim.check(&rows, &runs);
            assert!(sentence.holds, "{}: {}", scene.name, sentence.text);
        }
    }
}

#[test]
fn what_the_runs_do_not_carry_is_not_said() {
    let rows = [row("newreno+eifel"), row("newreno")];
    let claim = |says| claim::Claim { sender: "newreno+eifel", than: "newreno", says, because: "So" };
    let holds =
        |says, own: &Runs, other: &Runs| claim(says).check(&rows, &[own.clone(), other.clone()]).holds;
    let slow = runs(&[100.0, 110.0, 90.0, 100.0], &[9.0, 11.0, 10.0, 10.0]);
    let fast = runs(&[120.0, 131.0, 110.0, 121.0], &[1.0, 2.0, 1.0, 2.0]);
    let wide = runs(&[300.0, 20.0, 90.0, 110.0], &[30.0, 0.0, 2.0, 3.0]);
    assert!(holds(Says::Faster, &fast, &slow) && holds(Says::SendsLessAgain, &fast, &slow));
    assert!(!holds(Says::Faster, &slow, &fast) && !holds(Says::SendsLessAgain, &slow, &fast));
    // Its mean is larger, and its interval says nothing.
    assert!(!holds(Says::Faster, &wide, &slow) && !holds(Says::AsFast, &wide, &slow));
    assert!(!holds(Says::SendsLessAgain, &wide, &slow));
    assert!(!holds(Says::Faster, &slow, &slow) && holds(Says::AsFast, &slow, &slow));
    assert!(!holds(Says::HasFewerTimeouts, &fast, &slow), "neither has one");
    assert_eq!(
        claim(Says::SendsLessAgain).check(&rows, &[fast, slow]).text,
        "newreno+eifel sends less again than newreno: 1.5 instead of 10.0 (± 0.9) segments; over TUN 3 and 3. So."
    );
}

/// What README shows of virtual time is what the demo prints.
#[test]
fn readme_has_these_figures() {
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    for scene in &SCENES {
        let (scenario, senders) = scene.resolve();
        let runs = seeds::run(&scenario, scene.bytes, &senders, 1..=200, &|_, _| {}).unwrap();
        let mut transfers: Vec<_> = senders.iter().map(|sender| row(&sender.name).real).collect();
        transfers.iter_mut().for_each(|real| real.failure = Some("there was none".to_owned()));
        let played = Played::of(scene, &senders, &runs, transfers);
        let text = played.text();
        for line in text.lines().skip(2).take(senders.len()) {
            assert!(readme.contains(line), "{}: make demo anew for README: {line}", scene.name);
        }
    }
}
