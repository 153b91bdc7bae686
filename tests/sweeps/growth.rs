//! Changes to a sweep: the store keeps the results that are still in the plan.

use std::fs;

use serde_json::{Value, json};

use airtcp_testkit::machine::TempDir;

use super::helpers::{SWEEP, good, merged, refused, uninterrupted};

/// Returns the number of complete rows in all files of the store.
fn rows(store: &str) -> usize {
    let files = fs::read_dir(store).unwrap().map(|entry| entry.unwrap().path());
    let rows = files.filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    rows.map(|path| fs::read_to_string(path).unwrap().matches('\n').count()).sum()
}

#[test]
fn extended_sweep_keeps_existing_results() {
    let dir = TempDir::new("sweep");
    let (file, store) = (dir.write("s.toml", SWEEP), dir.path("s.results"));
    let run_sweep = |args: &[&str]| good(&[&["sweep", "run", &file][..], args].concat()).stderr;
    run_sweep(&[]);
    assert_eq!(rows(&store), 12);

    // Two more seeds, and another recipe in the first place.
    let grown = SWEEP.replace("seeds = 3", "seeds = 5").replace("[\"reno\",", "[\"sack\", \"reno\",");
    dir.write("s.toml", &grown);
    let summary = good(&["sweep", "summary", &store]);
    assert_eq!(summary.stderr, "", "the store still has every run of its plan");
    let stderr = run_sweep(&[]);
    assert!(stderr.contains("s.toml has changed: seeds 4 and 5 are new; recipe sack is new\n"), "{stderr}");
    assert!(stderr.contains("12 of 30 runs have results already\n"), "{stderr}");
    assert_eq!(rows(&store), 30, "no run was repeated");
    assert!(merged(&store) == uninterrupted(&dir, &file));

    // Fewer seeds and recipes: the other results stay, but are ignored.
    dir.write("s.toml", &SWEEP.replace("seeds = 3", "seeds = [5, 2]"));
    let stderr = run_sweep(&[]);
    for words in ["seeds 1, 3 and 4 are no longer in the plan; recipe sack is no longer", "22 other results"]
    {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert_eq!(rows(&store), 30);
    fs::remove_dir_all(dir.path("uninterrupted")).unwrap();
    assert!(merged(&store) == uninterrupted(&dir, &file));
    let summary = good(&["sweep", "summary", &store, "--json"]).lines;
    assert!(summary.len() == 4 && summary.iter().all(|line| line["runs"] == 2), "{summary:?}");

    // The extended sweep again.
    dir.write("s.toml", &grown);
    assert!(run_sweep(&[]).contains("30 of 30 runs have results already\n"));
    assert_eq!(rows(&store), 30);
}

#[test]
fn run_identity_depends_on_content_not_name() {
    let dir = TempDir::new("sweep");
    let (file, store) = (dir.write("s.toml", SWEEP), dir.path("s.results"));
    let run_sweep = || good(&["sweep", "run", &file]).stderr;
    run_sweep();
    let before = merged(&store);

    // Another size makes different runs with the same names.
    dir.write("s.toml", &SWEEP.replace("30k", "20k"));
    let planned = good(&["sweep", "plan", &file]).stdout;
    assert!(planned.ends_with(&format!("; 0 done, in {store}\n")), "{planned}");
    let stderr = run_sweep();
    for words in
        ["all 4 points are different", "0 of 12 runs have", "12 other results are not part of the sweep"]
    {
        assert!(stderr.contains(words), "{words}: {stderr}");
    }
    assert!(merged(&store) != before);

    // One more axis, one of whose values is the previous default, and a different notation for the same size.
    let flows = SWEEP.replace("30k", "30000").replace("[axes]\n", "[axes]\nflows = [1, 2]\n");
    dir.write("s.toml", &flows);
    let planned = good(&["sweep", "plan", &file, "--json"]).lines;
    assert_eq!(planned.len(), 24);
    assert!(planned.iter().all(|run| run["done"] == (run["point"]["flows"] == "1")), "{planned:?}");
    let stderr = run_sweep();
    assert!(stderr.contains("axis flows is new") && stderr.contains("12 of 24 runs have"), "{stderr}");
    let summary = good(&["sweep", "summary", &store, "--csv"]).stdout;
    assert!(summary.starts_with("flows,recipe,radio.down.delay,runs,"), "{summary}");
    assert_eq!(summary.lines().count(), 9, "{summary}");

    // The content of a scenario identifies a run, not the scenario's name.
    let scenario = preset();
    dir.write("path.toml", &scenario);
    let named = SWEEP.replace("sifest-random", "path.toml");
    dir.write("s.toml", &named);
    assert!(run_sweep().contains("12 of 12 runs have"), "the same path from a file");
    dir.write("path.toml", &scenario.replace("rate = \"128kbit\"", "rate = \"96kbit\""));
    assert!(run_sweep().contains("0 of 12 runs have"), "{scenario}");
}

#[test]
fn recipe_spelling_does_not_change_run() {
    let dir = TempDir::new("sweep");
    let (first, second) = ("newreno+limited-transmit", "limited-transmit+newreno");
    let sweep = |recipes: &str| SWEEP.replace("[\"reno\", [\"newreno\", \"newreno+sifest\"]]", recipes);
    let both = dir.write("both.toml", &sweep(&format!("[\"{first}\", \"{second}\"]")));
    for again in ["first", "again"] {
        let stderr = good(&["sweep", "run", &both]).stderr;
        assert_eq!(stderr.contains("12 of 12 runs have"), again == "again", "{again}: {stderr}");
    }
    let table = good(&["sweep", "summary", &both]).stdout;
    assert!(table.contains(first) && table.contains(second), "{table}");

    // The two spellings run on different machines.
    let stores = [("a", first), ("b", second)].map(|(name, recipe)| {
        let file = dir.write(&format!("{name}.toml"), &sweep(&format!("[\"{recipe}\"]")));
        good(&["sweep", "run", &file]);
        dir.path(&format!("{name}.results"))
    });
    let all = good(&["sweep", "merge", &stores[0], &stores[1], "--output", "-"]).stdout;
    assert_eq!(all.lines().count(), 6, "{all}");
}

/// Returns the scenario of [`SWEEP`] as a file.
fn preset() -> String {
    let program = airtcp_testkit::programs::program("airlink");
    let shown = std::process::Command::new(program).args(["show", "sifest-random"]).output().unwrap();
    String::from_utf8(shown.stdout).unwrap()
}

#[test]
fn damaged_row_is_ignored_and_run_repeated() {
    let dir = TempDir::new("sweep");
    let (file, store) = (dir.write("s.toml", SWEEP), dir.path("s.results"));
    good(&["sweep", "run", &file, "--quiet"]);
    let before = merged(&store);
    let path = format!("{store}/rows-1-of-1.0001.jsonl");
    let damaged = fs::read_to_string(&path).unwrap().replacen("{\"format\":2", "{\"fo", 1);
    fs::write(&path, &damaged).unwrap();
    let words = "rows-1-of-1.0001.jsonl:1: ignored a damaged row; `airtcp sweep run` repeats its run";
    let summary = good(&["sweep", "summary", &store]).stderr;
    assert!(summary.contains(words) && summary.contains("1 of 12 runs have no result yet"), "{summary}");
    let stderr = good(&["sweep", "run", &file]).stderr;
    assert!(stderr.contains(words) && stderr.contains("11 of 12 runs have results already"), "{stderr}");
    assert!(merged(&store) == before, "the run was repeated");
    assert_eq!(fs::read_to_string(&path).unwrap(), damaged, "the damaged file is not changed");
    assert_eq!(good(&["sweep", "summary", &store]).stderr, "", "the damaged row is not reported again");
}

/// Rows of format 1 had only a number in the plan, and did not describe their run.
#[test]
fn format_1_store_is_read_and_updated() {
    let dir = TempDir::new("sweep");
    let (file, store) = (dir.write("s.toml", SWEEP), dir.path("s.results"));
    good(&["sweep", "run", &file, "--quiet"]);
    let (now, summary) = (merged(&store), good(&["sweep", "summary", &store]).stdout);
    let path = format!("{store}/rows-1-of-1.0001.jsonl");
    let old: String = fs::read_to_string(&path)
        .unwrap()
        .lines()
        .map(|line| {
            let (head, tail) = line.split_once(",\"what\":\"").unwrap();
            let (_, tail) = tail.split_once("\",").unwrap();
            format!("{head},{tail}\n").replace("{\"format\":2", "{\"format\":1")
        })
        .collect();
    assert!(!old.contains("\"what\""));
    let manifest: Value =
        serde_json::from_str(&fs::read_to_string(format!("{store}/manifest.json")).unwrap()).unwrap();
    let manifest = json!({
        "format": 1, "airtcp": manifest["airtcp"], "plan": manifest["plan"], "runs": 12, "seeds": 3,
        "description": "", "metrics": manifest["metrics"],
    });
    let make_old = || {
        fs::write(&path, &old).unwrap();
        fs::write(format!("{store}/manifest.json"), manifest.to_string()).unwrap();
    };
    make_old();
    assert_eq!(good(&["sweep", "summary", &store]).stdout, summary);
    let read: Vec<Value> = good(&["sweep", "merge", &store, "--output", "-"]).lines;
    assert!(read.len() == 12 && read.iter().zip(0..).all(|(row, run)| row["run"] == run), "{read:?}");

    // Only the original file determines which runs the rows of format 1 belong to.
    let grown = SWEEP.replace("seeds = 3", "seeds = 4");
    dir.write("s.toml", &grown);
    let stderr = refused(&["sweep", "run", &file], 2);
    assert!(stderr.contains("with the old file to update the results directory"), "{stderr}");
    dir.write("s.toml", SWEEP);
    assert!(good(&["sweep", "run", &file]).stderr.contains("0 runs in"));
    assert!(merged(&store) == now);
    dir.write("s.toml", &grown);
    assert!(good(&["sweep", "run", &file]).stderr.contains("12 of 16 runs have results already"));
}
