//! `airtcp sim` and `airtcp sweep` give bit-identical results, whether they are interrupted or distributed.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};

use airtcp_testkit::machine::{Ended, TempDir, airtcp, run};
use serde_json::Value;

use super::helpers::{SWEEP, good, merged, refused, root, rows_by_run, shell, uninterrupted};

#[test]
fn sim_output_is_bit_identical_per_seed() {
    let dir = TempDir::new("sweep");
    let simulate = |seed: &str, number: u32| {
        let files = ["decisions", "trace"].map(|name| dir.path(&format!("{name}-{number}")));
        let flows = ["--recipe", "newreno+judges", "--recipe", "sack", "--for", "40s", "--stagger", "1s"];
        let output = ["--score", "--json", "--decisions", &files[0], "--trace", &files[1]];
        let args = [&["sim", "-s", "rtt-last-hop-congestion", "--seed", seed][..], &flows, &output].concat();
        (good(&args).stdout, files.map(|file| fs::read_to_string(file).unwrap()))
    };
    let [first, second, other] = [simulate("7", 1), simulate("7", 2), simulate("8", 3)];
    assert!(first == second);
    assert!(first.0 != other.0 && first.1[0] != other.1[0] && first.1[1] != other.1[1]);
    let report: Value = serde_json::from_str(&first.0).unwrap();
    let judges = &report["report"]["flows"][0]["judges"];
    assert!(judges.as_array().unwrap().iter().any(|judge| judge["name"] == "vegas"), "{judges}");
    let [decisions, trace] = &first.1;
    assert!(
        decisions.lines().any(|line| line.starts_with("{\"connection\":2,") && line.contains("\"lost\""))
    );
    let point: Value = serde_json::from_str(trace.lines().last().unwrap()).unwrap();
    assert!(point["cwnd"].as_f64() > Some(0.0) && point["rto_seconds"].as_f64() > Some(0.0), "{point}");
}

#[test]
fn sim_tables_show_losses_by_flow_and_cause() {
    let args = ["--recipe=newreno", "--recipe=newreno+sifest", "--for=60s", "--from=5s", "--score"];
    let shown = good(&[&["sim", "-s", "sifest-fairness"][..], &args].concat()).stdout;
    for words in [
        "recipes with profile default",
        "newreno+sifest",
        "retransmitted segments",
        "Jain's index",
        "by the radio link",
        "radio down queue",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let both = ["--recipe=newreno", "--recipe=newreno@linux", "--for=20s"];
    let shown = good(&[&["sim", "-s", "sifest-fairness"][..], &both].concat()).stdout;
    assert!(shown.contains("newreno@default ") && shown.contains("newreno@linux "), "{shown}");
    assert!(!shown.contains("with profile"), "{shown}");
    let scenario = run(&["sim", "-s", "sifest-fairness", "--set", "raido.down.rate=1kbit"]);
    assert_eq!(scenario.code, 2);
    assert!(scenario.stderr.contains("did you mean `radio`?"), "{}", scenario.stderr);
    let late = refused(&["sim", "-s", "leo", "--for=5s", "--from=9s"], 2);
    assert!(late.contains("no time left to measure"), "{late}");
}

#[test]
fn row_command_reproduces_its_run() {
    let dir = TempDir::new("sweep");
    let rows = uninterrupted(&dir, &dir.write("s.toml", SWEEP));
    assert_eq!(rows.lines().count(), 12);
    for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let command = format!("{} --json", row["command"].as_str().unwrap());
        let again = Ended::of(shell(&command, &[]).output().unwrap());
        assert_eq!(again.lines[0]["report"], row["report"], "{command}: {}", again.stderr);
    }
}

#[test]
fn profile_axis_and_recipe_suffix_are_equivalent() {
    let dir = TempDir::new("sweep");
    let head = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"30k\"\n[axes]\n";
    let reports = |name: &str, axes: &str| -> Vec<Value> {
        let file = dir.write(&format!("{name}.toml"), &format!("{head}{axes}\n"));
        let store = dir.path(name);
        good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
        merged(&store).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let by_suffix =
        reports("suffix", "recipe = [\"newreno\", \"newreno@ns2\", [\"newreno\", \"newreno@ns2\"]]");
    let profiles = |row: &Value| -> Vec<String> {
        let flows = row["report"]["flows"].as_array().unwrap();
        assert!(flows.iter().all(|flow| flow["recipe"] == "newreno"), "{row}");
        flows.iter().map(|flow| flow["profile"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(profiles(&by_suffix[0]), ["default"]);
    assert_eq!(profiles(&by_suffix[2]), ["ns2"]);
    assert_eq!(profiles(&by_suffix[4]), ["default", "ns2"]);
    assert!(by_suffix[2]["command"].as_str().unwrap().ends_with("--recipe newreno@ns2 --bytes 30000"));
    // A different notation is the same run; a different profile is a different run.
    let by_name = reports("named", "profile = [\"default\", \"ns2\"]");
    for run in 0..4 {
        assert_eq!(by_name[run]["report"], by_suffix[run]["report"], "{run}");
    }
    assert_ne!(
        by_suffix[0]["report"]["flows"][0]["took_seconds"],
        by_suffix[2]["report"]["flows"][0]["took_seconds"]
    );

    // Returns the headings of the summary table, and the whole output.
    let summary = |store: &str| {
        let text = good(&["sweep", "summary", &dir.path(store), "--metric", "goodput", "--wide"]).stdout;
        let heading = text.lines().find(|line| line.contains(" median")).unwrap_or_default();
        (heading.split_whitespace().collect::<Vec<_>>().join(" "), text)
    };
    let (heading, text) = summary("suffix");
    assert_eq!(heading, "recipe profiles runs mean median quartiles difference gain verdict");
    assert!(text.contains("default ns2"), "{text}");
    // The axis already names the profile.
    assert_eq!(summary("named").0, "profile runs mean median quartiles");
    reports("one", "flows = [1, 2]");
    let (heading, text) = summary("one");
    assert_eq!(heading, "flows runs mean median quartiles");
    assert!(text.starts_with("recipes with profile default\n\ngoodput, kbit/s: of all flows\n"), "{text}");
}

#[test]
fn merged_result_is_independent_of_shard_count() {
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    let expected = uninterrupted(&dir, &file);
    for shards in [2, 5] {
        let stores: Vec<String> =
            (1..=shards).map(|shard| dir.path(&format!("{shard}-of-{shards}"))).collect();
        let output = dir.path("merged");
        for (store, shard) in stores.iter().zip(1..) {
            // Merging fails while parts are missing.
            if shard > 1 {
                let parts: Vec<&str> = stores[..shard - 1].iter().map(String::as_str).collect();
                let stderr = refused(&[&["sweep", "merge", "-o", &output][..], &parts].concat(), 1);
                assert!(stderr.contains("of 12 runs are missing"), "{stderr}");
            }
            let shard = format!("--shard={shard}/{shards}");
            good(&["sweep", "run", &file, "--store", store, "--quiet", "--jobs", "1", &shard]);
        }
        let parts: Vec<&str> = stores.iter().map(String::as_str).collect();
        good(&[&["sweep", "merge", "--output", &output][..], &parts].concat());
        assert!(fs::read_to_string(&output).unwrap() == expected, "{shards} shards");
        let [store, file] = [&dir.path("uninterrupted"), &output]
            .map(|results| good(&["sweep", "summary", results, "--csv"]).stdout);
        assert_eq!(store, file);
        assert_eq!(store.lines().count(), 5, "{store}");
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn killed_sweep_resumes_without_repeating_runs() {
    let dir = TempDir::new("sweep");
    let text = SWEEP.replace("seeds = 3", "seeds = 30").replace("30k", "200k");
    let (file, store) = (dir.write("s.toml", &text), dir.path("store"));
    let args = ["sweep", "run", &file, "--store", &store, "--quiet", "--jobs", "1"];
    let mut child = airtcp(&args).stdin(Stdio::null()).spawn().unwrap();
    while rows_by_run(&store).len() < 10 {
        assert_eq!(child.try_wait().unwrap(), None, "the sweep ended before the test killed it");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // `kill` sends SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = rows_by_run(&store);
    assert!((10..120).contains(&kept.len()), "{}", kept.len());
    // Simulate an interruption in the middle of a line.
    let rows = format!("{store}/rows-1-of-1.0001.jsonl");
    fs::OpenOptions::new().append(true).open(rows).unwrap().write_all(b"{\"format\":1,\"pl").unwrap();
    let stderr = good(&["sweep", "run", &file, "--store", &store]).stderr;
    assert!(stderr.contains(&format!("{} of 120 runs have results already", kept.len())), "{stderr}");
    let counts = rows_by_run(&store);
    assert_eq!(counts.len(), 120);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert!(merged(&store) == uninterrupted(&dir, &file));
    // A further run has nothing to do.
    good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
    assert_eq!(rows_by_run(&store), counts);
}

#[test]
fn sweep_resumes_after_full_disk_without_loss() {
    assert!(nix::unistd::geteuid().is_root(), "this test mounts a small file system: run it as root");
    let dir = TempDir::new("sweep");
    let text = SWEEP.replace("seeds = 3", "seeds = 12");
    let (file, disk) = (dir.write("s.toml", &text), dir.path("disk"));
    fs::create_dir(&disk).unwrap();
    let script = "set -e
        mount -t tmpfs -o size=64k tmpfs \"$2\"
        airtcp sweep run \"$1\" --store \"$2/store\" --quiet && exit 9 || echo \"code $?\" >&2
        mount -o remount,size=20m \"$2\"
        airtcp sweep run \"$1\" --store \"$2/store\"
        airtcp sweep merge \"$2/store\" --output -";
    let isolated = format!("exec unshare --mount sh -c '{script}' sh \"$@\"");
    let ended = Ended::of(shell(&isolated, &[&file, &disk]).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let messages: Vec<_> = ended.stderr.lines().collect();
    assert!(
        messages[0].contains("of 48 results are kept") && messages[0].contains("No space left"),
        "{messages:?}"
    );
    assert_eq!(messages[1], "code 1");
    assert!(messages[2].ends_with("of 48 runs have results already"), "{messages:?}");
    assert!(ended.stdout == uninterrupted(&dir, &file));
    let full = refused(&["sweep", "merge", &dir.path("uninterrupted"), "-o", "/nonexistent/rows"], 1);
    assert!(full.contains("cannot write /nonexistent/rows: No such file"), "{full}");
}

#[test]
fn invalid_input_gives_one_line_error() {
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    let store = dir.path("store");
    good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
    let before = merged(&store);

    let axis = dir.write("axis.toml", &SWEEP.replace("recipe =", "recipes ="));
    let setting = dir.write("setting.toml", &SWEEP.replace("radio.down.delay", "radio.down.dealy"));
    let broken = dir.write("broken.toml", "schema = 1\nseeds = [1,, 2]\n");
    let missing = dir.path("none.toml");
    for (args, messages) in [
        (&["run", &axis][..], &["axis.toml:7: unknown axis or option `recipes`: did you mean `recipe`?"][..]),
        (&["plan", &setting], &["setting.toml:8: ", "did you mean `delay`?"]),
        (&["slurm", &broken, "--tasks", "2"], &["broken.toml:2: invalid TOML: "]),
        (&["run", &missing], &["none.toml: No such file"]),
        (
            &["run", &file, "--shard", "9/8"],
            &["--shard: shard 9/8 is out of range; the first number is from 1 to 8"],
        ),
        (&["run", &file, "--store", &dir.path("")], &["is not a results directory"]),
    ] {
        let stderr = refused(&[&["sweep"], args].concat(), 2);
        assert!(messages.iter().all(|message| stderr.contains(message)), "{args:?}: {stderr}");
    }
    let script = good(&["sweep", "slurm", &file, "--tasks", "13"]).stdout;
    assert!(script.contains("--array=1-12\n"), "{script}");

    let merged_file = dir.path("merged.jsonl");
    good(&["sweep", "merge", &store, "--output", &merged_file]);
    let other = dir.write("other.toml", &SWEEP.replace("30k", "20k"));
    good(&["sweep", "run", &other, "--quiet"]);
    let stderr = refused(&["sweep", "merge", &dir.path("other.results"), &merged_file, "--output", "-"], 2);
    assert!(stderr.contains("merged.jsonl was merged from results of another plan"), "{stderr}");
    assert!(!stderr.contains("--store"), "a merged file is not a store: {stderr}");

    assert!(merged(&store) == before);

    let manifest = format!("{store}/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (ours, theirs) in [("\"format\": 2", "\"format\": 3"), (env!("CARGO_PKG_VERSION"), "99.0.0")] {
        fs::write(&manifest, text.replace(ours, theirs)).unwrap();
        for command in ["run", "summary", "merge"] {
            let args = match command {
                "run" => vec!["sweep", "run", &file, "--store", &store],
                "summary" => vec!["sweep", "summary", &store],
                _ => vec!["sweep", "merge", &store, "--output", "-"],
            };
            assert!(refused(&args, 2).contains("was written by airtcp"), "{command}");
        }
    }
    fs::write(&manifest, &text).unwrap();
    assert!(merged(&store) == before);
}

#[test]
fn gnu_parallel_fills_one_store() {
    let version = Command::new("parallel").arg("--version").stdin(Stdio::null()).output();
    assert!(
        version.is_ok_and(|output| output.stdout.starts_with(b"GNU parallel")),
        "this test needs GNU parallel: apt-get install parallel"
    );
    let dir = TempDir::new("sweep");
    let file = dir.write("s.toml", SWEEP);
    let script = "parallel airtcp sweep run \"$1\" --jobs 1 --shard {}/8 ::: $(seq 8)";
    let ended = Ended::of(shell(script, &[&file]).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(merged(&dir.path("s.results")) == uninterrupted(&dir, &file));
}

#[test]
fn documentation_example_runs() {
    let dir = TempDir::new("sweep");
    let text = fs::read_to_string(root("docs/guides/sweeps.md")).unwrap();
    let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let copy = fs::read_to_string(root("docs/examples/loss.toml")).unwrap();
    assert!(copy == example, "docs/examples/loss.toml differs from docs/guides/sweeps.md");
    let (file, store) = (dir.write("loss.toml", example), dir.path("loss.results"));
    good(&["sweep", "run", &file, "--quiet"]);
    let lines: Vec<Value> = good(&["sweep", "summary", &store, "--json"]).lines;
    assert_eq!(lines.len(), 6);
    // The purpose of the example: Eifel detects the spurious timeouts.
    let line_of = |recipe: &str| {
        let is_wanted = |line: &&Value| {
            line["point"]["recipe"] == recipe && line["point"]["radio.down.channel.errors.bler"] == "10%"
        };
        lines.iter().find(is_wanted).unwrap()
    };
    let goodput = |recipe: &str| line_of(recipe)["means"]["goodput"]["mean"].as_f64().unwrap();
    assert!(goodput("newreno+eifel") > goodput("newreno"), "{lines:?}");
    // Comparison in pairs: the difference of the means has its own interval. The first recipe is the
    // reference.
    assert_eq!(line_of("newreno")["against"]["goodput"], Value::Null);
    let against = &line_of("newreno+eifel")["against"]["goodput"];
    let difference = against["difference"]["mean"].as_f64().unwrap();
    let expected = goodput("newreno+eifel") - goodput("newreno");
    assert!((difference - expected).abs() < 1e-6 * expected, "{difference}, not {expected}");
    let gain = against["gain"]["mean"].as_f64().unwrap();
    assert!((gain - expected / goodput("newreno")).abs() < 1e-9, "{against}");
    assert!(against["verdict"].is_string(), "{against}");
    let named: Vec<Value> =
        good(&["sweep", "summary", &store, "--json", "--against", "recipe=newreno"]).lines;
    assert!(named == lines, "recipe=newreno is the default reference");
    let median = line_of("newreno")["medians"]["goodput"].as_f64().unwrap();
    let quartiles = &line_of("newreno")["quartiles"]["goodput"];
    let [first, third] = [0, 1].map(|index| quartiles[index].as_f64().unwrap());
    assert!(first <= median && median <= third, "{quartiles}");
    let table = good(&["sweep", "summary", &store, "--wide"]).stdout;
    for words in ["compared with recipe=newreno", "took, s: ", &format!("{:.1}", median / 1e3)] {
        assert!(table.contains(words), "{words}: {table}");
    }
    let csv = good(&["sweep", "summary", &store, "--csv"]).stdout;
    for heading in [
        "goodput median (bit/s),goodput median low (bit/s),",
        "goodput gain ± (%),goodput verdict,",
        ",took (s),",
    ] {
        assert!(csv.contains(heading), "{heading}: {csv}");
    }
    for (base, words) in [("speed=1", "unknown axis"), ("recipe=reno", "unknown value `reno`")] {
        let stderr = refused(&["sweep", "summary", &store, "--against", base], 2);
        assert!(stderr.contains(words), "{stderr}");
    }
    for metric in ["stages.radio.down.sender.pdus_resent", "flows.0.counters.dsacks", "goodput@1"] {
        let shown = good(&["sweep", "summary", &store, "--metric", metric]);
        assert_eq!(shown.stderr, "", "{metric}");
    }
}

#[test]
fn plot_draws_one_curve_per_recipe() {
    let dir = TempDir::new("sweep");
    let file = dir.write("loss.toml", SWEEP);
    good(&["sweep", "run", &file, "--quiet"]);
    let draw = |source: &str, name: &str| {
        let axes = ["--x", "radio.down.delay", "--y", "goodput", "--by", "recipe"];
        good(&[&["sweep", "plot", source, "--output", &dir.path(name)][..], &axes].concat());
        fs::read(dir.path(name)).unwrap()
    };
    let svg = draw(&file, "a.svg");
    let text = String::from_utf8(svg.clone()).unwrap();
    assert_eq!(text.matches("class=\"interval\"").count(), 2);
    for words in [
        ">radio.down.delay (ms)<",
        ">goodput of all flows (kbit/s)<",
        ">newreno newreno+sifest<",
        ">over sifest-random, 3 seeds each, recipes with profile default<",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(draw(&dir.path("loss.results"), "b.svg") == svg);
    assert!(draw(&file, "c.png").starts_with(b"\x89PNG"));
    assert!(draw(&file, "d.pdf").starts_with(b"%PDF-"));
    let ecdf = dir.path("ecdf.svg");
    let only = ["--only", "radio.down.delay=25ms", "--legend", "newreno newreno+sifest=both"];
    let axes = ["sweep", "plot", &file, "--ecdf", "--y", "goodput", "--by", "recipe", "--output", &ecdf];
    good(&[&axes[..], &only].concat());
    let text = fs::read_to_string(&ecdf).unwrap();
    assert!(text.contains(">share of runs<") && text.contains(">both<"), "{text}");
    for (args, messages) in [
        (&["--x", "delay", "--y", "goodput"][..], &["no axis `delay`", "recipe, radio.down.delay"][..]),
        (&["--x", "recipe", "--y", "goodput"], &["--only radio.down.delay=25ms"]),
        (
            &["--x", "recipe", "--y", "stages.none", "--by", "radio.down.delay"],
            &["no run has the metric `stages.none`", "goodput, "],
        ),
    ] {
        let stderr = refused(&[&["sweep", "plot", &file, "--output", "x.svg"][..], args].concat(), 2);
        assert!(messages.iter().all(|message| stderr.contains(message)), "{args:?}: {stderr}");
    }
}

#[test]
fn plot_caption_names_only_drawn_data() {
    let dir = TempDir::new("sweep");
    let two_scenarios =
        SWEEP.replace("radio.down.delay = [\"25ms\", \"0.1s\"]", "scenario = [\"sifest-random\", \"leo\"]");
    let two_scenarios = dir.write("two.toml", &two_scenarios.replace("scenario = \"sifest-random\"\n", ""));
    fs::create_dir(dir.join("my links")).unwrap();
    let path = dir.write("my links/a.toml", "schema = 1\nextends = \"leo\"\n");
    assert!(path.contains(' '));
    let one_scenario = SWEEP.replace("sifest-random", "my links/a.toml").replace("seeds = 3", "seeds = 1");
    let one_scenario =
        dir.write("one.toml", &one_scenario.replace("radio.down.delay = [\"25ms\", \"0.1s\"]\n", ""));
    let plot = |file: &str, more: &[&str]| {
        good(&["sweep", "run", file, "--quiet"]);
        let output = dir.path("x.svg");
        let axes = ["sweep", "plot", file, "--x", "recipe", "--y", "goodput", "--output", &output];
        good(&[&axes[..], more].concat());
        fs::read_to_string(&output).unwrap()
    };
    let svg = plot(&two_scenarios, &["--only", "scenario=leo"]);
    assert!(svg.contains(">over leo, 3 seeds each, ") && svg.contains("bars for their 95 %"), "{svg}");
    let svg = plot(&one_scenario, &[]);
    assert!(svg.contains(">over my links/a.toml, one seed, without intervals, "), "{svg}");
    assert!(!svg.contains("bars for") && !svg.contains("class=\"interval\""), "{svg}");
}

#[test]
fn documentation_sweep_files_are_valid() {
    let mut checked = 0;
    for entry in fs::read_dir(root("docs/examples")).unwrap() {
        let path = entry.unwrap().path();
        if fs::read_to_string(&path).unwrap().contains("[[stage]]") {
            // This is a scenario. The pages that use it test it.
            continue;
        }
        let plan = good(&["sweep", "plan", path.to_str().unwrap()]).stdout;
        assert!(plan.lines().last().unwrap().contains(" runs: "), "{plan}");
        checked += 1;
    }
    assert!(checked >= 2);
}
