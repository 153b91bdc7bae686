//! `airtcp sim` and `airtcp sweep`: the same to the bit, whatever stops it and however it is distributed.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use airtcp_testkit::machine::{Ended, airtcp, run};
use airtcp_testkit::programs::program;
use serde_json::Value;

/// A directory that is removed with all that is in it.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("airtcp-sweep-{}-{number}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Twelve short runs.
const SWEEP: &str = "schema = 1\nseeds = 3\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"30k\"\n\
                     [axes]\nrecipe = [\"reno\", [\"newreno\", \"newreno+sifest\"]]\n\
                     radio.down.delay = [\"25ms\", \"0.1s\"]\n";

fn good(args: &[&str]) -> Ended {
    let ended = run(args);
    assert_eq!(ended.code, 0, "{args:?}: {}", ended.stderr);
    ended
}

/// Refused with this code in one line, which is handed back.
fn refused(args: &[&str], code: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.code, code, "{args:?}: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{args:?}: {}", ended.stderr);
    ended.stderr
}

fn merged(store: &str) -> String {
    good(&["sweep", "merge", store, "--output", "-"]).stdout
}

/// What a sweep comes to that nothing disturbs.
fn undisturbed(dir: &Dir, file: &str) -> String {
    let store = dir.path("undisturbed");
    good(&["sweep", "run", file, "--store", &store, "--quiet"]);
    merged(&store)
}

/// With the program on its PATH, as a person has it.
fn shell(script: &str, arguments: &[&str]) -> Command {
    let program = program("airtcp");
    let path =
        format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).args(arguments).env("PATH", path).stdin(Stdio::null());
    command
}

fn root(of: &str) -> PathBuf {
    airtcp_testkit::programs::repository().join(of)
}

#[test]
fn a_run_is_the_same_to_the_bit_and_another_seed_is_another_run() {
    let dir = Dir::new();
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
    assert!(point["cwnd"].as_f64() > Some(0.0) && point["rto"].as_f64() > Some(0.0), "{point}");
}

#[test]
fn the_tables_of_a_run_tell_who_lost_what_and_why() {
    let args = ["--recipe=newreno", "--recipe=newreno+sifest", "--for=60s", "--from=5s", "--score"];
    let shown = good(&[&["sim", "-s", "sifest-fairness"][..], &args].concat()).stdout;
    for words in [
        "recipes with profile default",
        "newreno+sifest",
        "timeouts (0/1/2/3+)",
        "Jain's index",
        "by the radio",
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
    assert!(late.contains("nothing is left to measure"), "{late}");
}

#[test]
fn the_command_in_a_row_repeats_its_run() {
    let dir = Dir::new();
    let rows = undisturbed(&dir, &dir.write("s.toml", SWEEP));
    assert_eq!(rows.lines().count(), 12);
    for row in rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        let command = format!("{} --json", row["command"].as_str().unwrap());
        let again = Ended::of(shell(&command, &[]).output().unwrap());
        assert_eq!(again.lines[0]["report"], row["report"], "{command}: {}", again.stderr);
    }
}

#[test]
fn profiles_are_varied_by_name_or_behind_a_recipe() {
    let dir = Dir::new();
    let head = "schema = 1\nseeds = 2\n[fixed]\nscenario = \"sifest-random\"\nbytes = \"30k\"\n[axes]\n";
    let reports = |name: &str, axes: &str| -> Vec<Value> {
        let file = dir.write(&format!("{name}.toml"), &format!("{head}{axes}\n"));
        let store = dir.path(name);
        good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
        merged(&store).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let behind = reports("behind", "recipe = [\"newreno\", \"newreno@ns2\", [\"newreno\", \"newreno@ns2\"]]");
    let profiles = |row: &Value| -> Vec<String> {
        let flows = row["report"]["flows"].as_array().unwrap();
        assert!(flows.iter().all(|flow| flow["recipe"] == "newreno"), "{row}");
        flows.iter().map(|flow| flow["profile"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(profiles(&behind[0]), ["default"]);
    assert_eq!(profiles(&behind[2]), ["ns2"]);
    assert_eq!(profiles(&behind[4]), ["default", "ns2"]);
    assert!(behind[2]["command"].as_str().unwrap().ends_with("--recipe newreno@ns2 --bytes 30000"));
    // Another way to say it is no other run, and another profile is one.
    let by_name = reports("named", "profile = [\"default\", \"ns2\"]");
    for run in 0..4 {
        assert_eq!(by_name[run]["report"], behind[run]["report"], "{run}");
    }
    assert_ne!(
        behind[0]["report"]["flows"][0]["took_seconds"],
        behind[2]["report"]["flows"][0]["took_seconds"]
    );

    let heading = |store: &str| {
        let shown = good(&["sweep", "summary", &dir.path(store), "--metric", "goodput"]).stdout;
        let line = shown.lines().next().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        (line, shown)
    };
    let (line, shown) = heading("behind");
    assert_eq!(line, "recipe profiles runs goodput");
    assert!(shown.contains("default ns2"), "{shown}");
    // The axis says it.
    assert_eq!(heading("named").0, "profile runs goodput");
    reports("one", "flows = [1, 2]");
    assert_eq!(heading("one").0, "recipes with profile default");
}

#[test]
fn the_merged_result_is_the_same_for_every_number_of_shards() {
    let dir = Dir::new();
    let file = dir.write("s.toml", SWEEP);
    let whole = undisturbed(&dir, &file);
    for shards in [2, 5] {
        let stores: Vec<String> =
            (1..=shards).map(|shard| dir.path(&format!("{shard}-of-{shards}"))).collect();
        let output = dir.path("merged");
        for (store, shard) in stores.iter().zip(1..) {
            // Not all are there yet.
            if shard > 1 {
                let parts: Vec<&str> = stores[..shard - 1].iter().map(String::as_str).collect();
                let told = refused(&[&["sweep", "merge", "-o", &output][..], &parts].concat(), 1);
                assert!(told.contains("of 12 runs are missing"), "{told}");
            }
            let shard = format!("--shard={shard}/{shards}");
            good(&["sweep", "run", &file, "--store", store, "--quiet", "--jobs", "1", &shard]);
        }
        let parts: Vec<&str> = stores.iter().map(String::as_str).collect();
        good(&[&["sweep", "merge", "--output", &output][..], &parts].concat());
        assert!(fs::read_to_string(&output).unwrap() == whole, "{shards} shards");
        let [store, file] =
            [&dir.path("undisturbed"), &output].map(|of| good(&["sweep", "summary", of, "--csv"]).stdout);
        assert_eq!(store, file);
        assert_eq!(store.lines().count(), 5, "{store}");
    }
}

/// How many rows each run has, in all files of a store.
fn rows_by_run(store: &str) -> BTreeMap<u64, u32> {
    let mut counts = BTreeMap::new();
    for entry in fs::read_dir(store).into_iter().flatten().flatten() {
        let text = fs::read_to_string(entry.path()).unwrap_or_default();
        let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
        for row in whole.lines().flat_map(serde_json::from_str::<Value>) {
            if let Some(run) = row["run"].as_u64() {
                *counts.entry(run).or_default() += 1;
            }
        }
    }
    counts
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another process is waited for")]
fn a_sweep_that_is_killed_goes_on_without_repeating_a_run() {
    let dir = Dir::new();
    let text = SWEEP.replace("seeds = 3", "seeds = 60").replace("30k", "200k");
    let (file, store) = (dir.write("s.toml", &text), dir.path("store"));
    let args = ["sweep", "run", &file, "--store", &store, "--quiet", "--jobs", "1"];
    let mut child = airtcp(&args).stdin(Stdio::null()).spawn().unwrap();
    while rows_by_run(&store).len() < 10 {
        assert_eq!(child.try_wait().unwrap(), None, "it ended too early to be killed");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
    let kept = rows_by_run(&store);
    assert!((10..240).contains(&kept.len()), "{}", kept.len());
    // As if it had been in the middle of a line.
    let rows = format!("{store}/rows-1-of-1.0001.jsonl");
    fs::OpenOptions::new().append(true).open(rows).unwrap().write_all(b"{\"format\":1,\"pl").unwrap();
    let told = good(&["sweep", "run", &file, "--store", &store]).stderr;
    assert!(told.contains(&format!("{} of 240 runs have results already", kept.len())), "{told}");
    let counts = rows_by_run(&store);
    assert_eq!(counts.len(), 240);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert!(merged(&store) == undisturbed(&dir, &file));
    // Nothing is left to be done.
    good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
    assert_eq!(rows_by_run(&store), counts);
}

#[test]
fn a_full_disk_loses_nothing() {
    assert!(nix::unistd::geteuid().is_root(), "this test mounts a small file system: run it as root");
    let dir = Dir::new();
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
    let told: Vec<_> = ended.stderr.lines().collect();
    assert!(told[0].contains("of 48 results are kept") && told[0].contains("No space left"), "{told:?}");
    assert_eq!(told[1], "code 1");
    assert!(told[2].ends_with("of 48 runs have results already"), "{told:?}");
    assert!(ended.stdout == undisturbed(&dir, &file));
    let full = refused(&["sweep", "merge", &dir.path("undisturbed"), "-o", "/nonexistent/rows"], 1);
    assert!(full.contains("cannot write /nonexistent/rows: No such file"), "{full}");
}

#[test]
fn what_cannot_be_is_told_in_one_line() {
    let dir = Dir::new();
    let file = dir.write("s.toml", SWEEP);
    let store = dir.path("store");
    good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
    let before = merged(&store);

    let axis = dir.write("axis.toml", &SWEEP.replace("recipe =", "recipes ="));
    let told = refused(&["sweep", "run", &axis], 2);
    assert!(
        told.contains("axis.toml:7: there is no axis or option `recipes`: did you mean `recipe`?"),
        "{told}"
    );
    let setting = dir.write("setting.toml", &SWEEP.replace("radio.down.delay", "radio.down.dealy"));
    let told = refused(&["sweep", "plan", &setting], 2);
    assert!(told.contains("setting.toml:8: ") && told.contains("did you mean `delay`?"), "{told}");
    let broken = dir.write("broken.toml", "schema = 1\nseeds = [1,, 2]\n");
    let told = refused(&["sweep", "slurm", &broken], 2);
    assert!(told.contains("broken.toml:2: this is not TOML: "), "{told}");
    let told = refused(&["sweep", "run", &dir.path("none.toml")], 1);
    assert!(told.contains("none.toml: No such file"), "{told}");

    let told = refused(&["sweep", "run", &file, "--shard", "9/8"], 2);
    assert!(told.contains("--shard: shard 9/8 is out of range: the first number goes from 1 to 8"), "{told}");
    let script = good(&["sweep", "slurm", &file, "--tasks", "13"]).stdout;
    assert!(script.contains("12 runs of plan") && script.contains("--array=1-12\n"), "{script}");

    let other = dir.write("other.toml", &SWEEP.replace("seeds = 3", "seeds = 4"));
    let told = refused(&["sweep", "run", &other, "--store", &store], 2);
    assert!(told.contains("has results of another plan"), "{told}");
    let told = refused(&["sweep", "run", &file, "--store", &dir.path("")], 2);
    assert!(told.contains("is not a result store"), "{told}");
    assert!(merged(&store) == before);

    let manifest = format!("{store}/manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    for (ours, theirs) in [("\"format\": 1", "\"format\": 2"), (env!("CARGO_PKG_VERSION"), "99.0.0")] {
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

    let rows = format!("{store}/rows-1-of-1.0001.jsonl");
    let whole = fs::read_to_string(&rows).unwrap();
    fs::write(&rows, whole.replacen("{\"format\":1", "{\"fo", 1)).unwrap();
    let told = refused(&["sweep", "run", &file, "--store", &store], 1);
    assert!(told.contains("rows-1-of-1.0001.jsonl:1: this row is damaged: delete the line"), "{told}");
    fs::write(&rows, whole.split_once('\n').unwrap().1).unwrap();
    good(&["sweep", "run", &file, "--store", &store, "--quiet"]);
    assert!(merged(&store) == before, "the one that was deleted has been run again");
}

#[test]
fn gnu_parallel_fills_one_store() {
    let version = Command::new("parallel").arg("--version").stdin(Stdio::null()).output();
    assert!(
        version.is_ok_and(|output| output.stdout.starts_with(b"GNU parallel")),
        "this test needs GNU parallel: apt-get install parallel"
    );
    let dir = Dir::new();
    let file = dir.write("s.toml", SWEEP);
    let script = "parallel airtcp sweep run \"$1\" --jobs 1 --shard {}/8 ::: $(seq 8)";
    let ended = Ended::of(shell(script, &[&file]).output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(merged(&dir.path("s.results")) == undisturbed(&dir, &file));
}

#[test]
fn each_job_of_the_array_runs_its_part() {
    let dir = Dir::new();
    // A name that a shell would take apart.
    let file = dir.write("it's one.toml", SWEEP);
    let script =
        good(&["sweep", "slurm", &file, "--tasks", "3", "--cpus", "2", "--at-once", "2", "--time", "90"]);
    for line in ["--array=1-3%2", "--cpus-per-task=2", "--time=90", "--job-name=it_s_one"] {
        assert!(script.stdout.contains(&format!("#SBATCH {line}\n")), "{}", script.stdout);
    }
    let script = dir.write("job.sh", &script.stdout);
    for task in ["1", "2", "3"] {
        let job = Command::new("sh").arg(&script).env("SLURM_ARRAY_TASK_ID", task).output().unwrap();
        assert!(job.status.success(), "{job:?}");
    }
    assert!(merged(&dir.path("it's one.results")) == undisturbed(&dir, &file));
}

#[test]
#[ignore = "starts a Slurm of its own: apt-get install slurmctld slurmd slurm-client munge"]
fn slurm_fills_one_store() {
    assert!(nix::unistd::geteuid().is_root(), "munged and slurmctld are started as root");
    let dir = Dir::new();
    let file = dir.write("s.toml", SWEEP);
    let script = "cd \"$2\" && airtcp sweep slurm \"$1\" --tasks 4 > job.sh
        exec sh \"$3\" \"$2/slurm\" sbatch --wait job.sh";
    let slurm = root("interop/slurm.sh");
    let arguments = [&file, dir.0.to_str().unwrap(), slurm.to_str().unwrap()];
    let ended = Ended::of(shell(script, &arguments).output().unwrap());
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    assert!(merged(&dir.path("s.results")) == undisturbed(&dir, &file));
}

#[test]
fn the_example_in_the_documentation_runs() {
    let dir = Dir::new();
    let text = fs::read_to_string(root("docs/sweeps.md")).unwrap();
    let example = text.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let (file, store) = (dir.write("loss.toml", example), dir.path("loss.results"));
    good(&["sweep", "run", &file, "--quiet"]);
    let lines: Vec<Value> = good(&["sweep", "summary", &store, "--json"]).lines;
    assert_eq!(lines.len(), 6);
    // What it is about: spurious timeouts, and Eifel taking them back.
    let goodput = |recipe: &str| {
        let of = |line: &&Value| {
            line["point"]["recipe"] == recipe && line["point"]["radio.down.channel.errors.bler"] == "10%"
        };
        lines.iter().find(of).and_then(|line| line["means"]["goodput"]["mean"].as_f64()).unwrap()
    };
    assert!(goodput("newreno+eifel") > goodput("newreno"), "{lines:?}");
    // Pairs: the difference of the means, with an interval of its own.
    let lines: Vec<Value> =
        good(&["sweep", "summary", &store, "--json", "--against", "recipe=newreno"]).lines;
    assert_eq!(lines.len(), 4);
    let eifel = lines.iter().find(|line| {
        line["point"]["recipe"] == "newreno+eifel" && line["point"]["radio.down.channel.errors.bler"] == "10%"
    });
    let difference = eifel.unwrap()["means"]["goodput"]["mean"].as_f64().unwrap();
    let expected = goodput("newreno+eifel") - goodput("newreno");
    assert!((difference - expected).abs() < 1e-6 * expected, "{difference}, not {expected}");
    for (base, words) in [("speed=1", "no axis"), ("recipe=reno", "never `reno`")] {
        let told = refused(&["sweep", "summary", &store, "--against", base], 2);
        assert!(told.contains(words), "{told}");
    }
    for metric in ["stages.radio.down.sender.pdus_resent", "flows.0.counters.dsacks", "goodput@1"] {
        let shown = good(&["sweep", "summary", &store, "--metric", metric]);
        assert_eq!(shown.stderr, "", "{metric}");
    }
}

#[test]
fn a_sweep_is_drawn_with_a_line_for_each_recipe() {
    let dir = Dir::new();
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
    for words in [">radio.down.delay (ms)<", ">goodput (kbit/s)<", ">newreno newreno+sifest<"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(draw(&dir.path("loss.results"), "b.svg") == svg);
    assert!(draw(&file, "c.png").starts_with(b"\x89PNG"));
    let plot =
        |more: &[&str]| refused(&[&["sweep", "plot", &file, "--output", "x.svg"][..], more].concat(), 2);
    let told = plot(&["--x", "delay", "--y", "goodput"]);
    assert!(told.contains("no axis `delay`") && told.contains("recipe, radio.down.delay"), "{told}");
    let told = plot(&["--x", "recipe", "--y", "goodput"]);
    assert!(told.contains("--only radio.down.delay=25ms"), "{told}");
    let told = plot(&["--x", "recipe", "--y", "stages.none", "--by", "radio.down.delay"]);
    assert!(told.contains("no run has a number `stages.none`") && told.contains("goodput, "), "{told}");
}

#[test]
fn the_examples_are_sweeps() {
    let mut checked = 0;
    for entry in fs::read_dir(root("docs/examples")).unwrap() {
        let path = entry.unwrap().path();
        let plan = good(&["sweep", "plan", path.to_str().unwrap()]).stdout;
        assert!(plan.lines().last().unwrap().contains(" runs: "), "{plan}");
        checked += 1;
    }
    assert!(checked >= 2);
}
