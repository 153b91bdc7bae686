//! Tests of the core through its interface: requests and answers.

use serde_json::{Value, json};

use super::{Core, Limits, Progress};

fn answer_to(core: &mut Core, request: &Value) -> Value {
    serde_json::from_slice(&core.answer(request.to_string().as_bytes(), &mut |_| {})).unwrap()
}

fn ask(core: &mut Core, request: &Value) -> Value {
    let answer = answer_to(core, request);
    assert!(answer["troubles"].is_null(), "{request}: {answer}");
    answer["ok"].clone()
}

fn troubles(setup: &Value) -> Vec<Value> {
    let answer = answer_to(&mut Core::default(), &json!({ "ask": "check", "setup": setup }));
    answer["troubles"].as_array().unwrap_or_else(|| panic!("{setup} has no troubles")).clone()
}

fn check(setup: &Value) -> Value {
    ask(&mut Core::default(), &json!({ "ask": "check", "setup": setup }))
}

/// Runs one sender of a setup.
fn run(setup: &Value, sender: usize) -> Value {
    ask(&mut Core::default(), &json!({ "ask": "run", "slot": 0, "setup": setup, "senders": [sender] }))
}

fn counter(run: &Value, name: &str) -> u64 {
    run["report"]["flows"][0]["counters"][name].as_u64().unwrap()
}

fn goodput(run: &Value) -> f64 {
    run["report"]["flows"][0]["goodput_bit_per_s"].as_f64().unwrap()
}

fn lost(run: &Value) -> usize {
    run["flows"][0]["lost"].as_array().unwrap().len()
}

#[test]
fn every_invalid_field_is_reported() {
    let setup = json!({
        "preset": "wcdma-384", "set": ["wire.down.rte=1Mbit", "no"], "senders": ["sack", "newrno"],
        "seed": "-1", "bytes": "2Q", "time": "0s", "direction": "sideways", "receiver": "nodelack", "buffer": "0",
    });
    let found = troubles(&setup);
    let fields: Vec<_> =
        found.iter().map(|it| (it["field"].as_str().unwrap(), it["index"].as_u64().unwrap())).collect();
    let expected = [
        ("bytes", 0),
        ("time", 0),
        ("direction", 0),
        ("receiver", 0),
        ("buffer", 0),
        ("seed", 0),
        ("senders", 1),
        ("set", 0),
        ("set", 1),
    ];
    assert_eq!(fields, expected, "{found:#?}");
    assert!(found[6]["message"].as_str().unwrap().contains("did you mean `newreno`?"), "{}", found[6]);
    assert!(found[7]["help"].as_str().unwrap().contains("did you mean `rate`?"), "{}", found[7]);
}

#[test]
fn scenario_error_matches_command_line_with_position() {
    let text = "schema = 1\n[[stage]]\nkind = \"lnk\"\n";
    let found = troubles(&json!({ "text": text, "senders": ["sack"] }));
    let error = airlink::Scenario::parse(text, "./scenario.toml").unwrap_err();
    let [problem] = error.problems() else { panic!("{error}") };
    let place = problem.position.as_ref().unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["message"], problem.message.as_str());
    assert_eq!((found[0]["line"].as_u64(), found[0]["column"].as_u64()), (Some(3), Some(8)));
    assert_eq!((place.line, place.column), (3, 8));
}

#[test]
fn page_reports_command_line_warnings() {
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nboth.rate = \"1Mbit\"\n[[stage]]\nkind = \"loss\"\n\
                down = { model = \"gilbert-elliott\", mean = \"1%\", burst = 20, step = \"packet\" }\n";
    let checked = check(&json!({ "text": text, "senders": ["sack"] }));
    let warnings = airlink::Scenario::parse(text, "x").unwrap().warnings();
    assert!(!warnings.is_empty());
    assert_eq!(checked["remarks"], json!(warnings));
}

#[test]
fn sender_without_its_information_is_reported_twice() {
    let path = |station: &str| {
        format!(
            "schema = 1\n[[stage]]\nkind = \"link\"\nboth = {{ rate = \"1Mbit\", delay = \"10ms\" }}\n\
             [[stage]]\nkind = \"station\"\n{station}\n"
        )
    };
    let setup = |station: &str| json!({ "text": path(station), "senders": ["reno", "etcp"], "bytes": "20k" });
    let remarks = |setup: &Value| check(setup)["remarks"].clone();
    let (silent, marking) = (setup("radio = \"fixed\""), setup("transit_marks = true"));
    let expected = [
        "station: the stage does nothing: neither `transit_marks` nor `loss_report` is true",
        "etcp: transit-marks: no transit marks will arrive: no `station` of the path has `transit_marks = true`; it \
         works like `always-congestion`",
    ];
    assert_eq!(remarks(&silent), json!(expected));
    assert_eq!(remarks(&marking), json!([]));
    let notices = |setup: &Value, sender: usize| {
        let run = run(setup, sender);
        let facts = &run["flows"][0]["run"]["facts"];
        (run["report"]["flows"][0]["notices"].clone(), facts.to_string().contains("0 transit marks received"))
    };
    let missing = "transit-marks: 0 transit marks received; it works like `always-congestion`";
    assert_eq!(notices(&silent, 1), (json!([missing]), true));
    for (setup, sender) in [(&silent, 0), (&marking, 1)] {
        assert_eq!(notices(setup, sender), (Value::Null, false));
    }
}

#[test]
fn contradictory_or_incomplete_setup_is_rejected() {
    let contradiction = troubles(&json!({ "preset": "lossless", "senders": ["sack+reno"] }));
    assert!(contradiction[0]["message"].as_str().unwrap().contains("choose one"), "{contradiction:?}");
    let empty = troubles(&json!({ "preset": "lossless", "senders": [] }));
    assert_eq!(empty[0]["field"], "senders");
    let unknown = troubles(&json!({ "preset": "losless", "senders": ["sack"] }));
    assert_eq!(unknown[0]["field"], "scenario");
}

#[test]
fn scenario_cannot_include_host_files() {
    // A page has no access to files, but the same code also runs outside of a browser.
    let text = "schema = 1\nextends = \"/etc/hostname\"\n";
    let found = troubles(&json!({ "text": text, "senders": ["sack"] }));
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let error = found[0].to_string();
    assert!(host.trim().is_empty() || !error.contains(host.trim()), "{error}");
}

#[test]
fn commands_match_setup_and_quote_scenario_text() {
    let commands = |setup: Value| {
        let checked = check(&setup);
        checked["commands"].as_array().unwrap().iter().map(|it| it.as_str().unwrap().to_owned()).collect()
    };
    let set = ["wire.down.rate=1Mbit"];
    let preset: Vec<String> = commands(json!({
        "preset": "wcdma-384", "set": set, "senders": ["newreno", "sack+eifel@linux"], "seed": "7", "bytes": "20k",
    }));
    let expected = |sender: &str| {
        format!(
            "airtcp sim --scenario wcdma-384 --set wire.down.rate=1Mbit --seed 7 --recipe {sender} --bytes 20000"
        )
    };
    assert_eq!(preset, [expected("newreno"), expected("sack+eifel@linux")]);
    // The text of a link contains a line that would end the usual here-document.
    let quoted: Vec<String> = commands(json!({
        "text": "schema = 1\ndescription = '''\nEND\ntouch /tmp/x\n'''\n[[stage]]\nkind = \"link\"\nboth.rate = \"1Mbit\"\n",
        "senders": ["sack"],
    }));
    assert!(
        quoted[0].starts_with("cat > ./scenario.toml <<'END_'\n") && quoted[0].ends_with("\nEND_"),
        "{}",
        quoted[0]
    );
    assert!(quoted[1].contains("--scenario ./scenario.toml"), "{}", quoted[1]);
}

/// The shell must write exactly the typed scenario.
#[test]
fn shell_command_writes_scenario_verbatim() {
    let text = "schema = 1\ndescription = '''\n$(touch no) `touch no` \\ \"\nEND\n'''\n[[stage]]\nkind = \"link\"\nboth.rate = \"1Mbit\"";
    let setup = json!({ "text": text, "senders": ["sack"] });
    let checked = check(&setup);
    let directory = std::env::temp_dir().join(format!("airtcp-playground-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let command = checked["commands"][0].as_str().unwrap();
    let status =
        std::process::Command::new("sh").arg("-c").arg(command).current_dir(&directory).status().unwrap();
    let files: Vec<_> = std::fs::read_dir(&directory).unwrap().map(|it| it.unwrap().file_name()).collect();
    let written = std::fs::read_to_string(directory.join("scenario.toml")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(status.success());
    assert_eq!(written, format!("{text}\n"));
    assert_eq!(files, ["scenario.toml"]);
}

#[test]
fn lost_segments_are_listed_with_stage() {
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = { rate = \"1Mbit\", delay = \"20ms\" }\n\
                [[stage]]\nkind = \"loss\"\nname = \"radio\"\ndown = { model = \"list\", drop = [\"segment 20\", \"segment 20 retransmission 1\"] }\n";
    let run = run(&json!({ "text": text, "senders": ["newreno"], "bytes": "100k" }), 0);
    let listed = run["flows"][0]["lost"].as_array().unwrap();
    let losses: Vec<_> = listed
        .iter()
        .map(|it| (it["stage"].as_str().unwrap(), it["why"].as_str().unwrap(), it["copy"].as_u64().unwrap()))
        .collect();
    assert_eq!(losses, [("radio", "listed", 1), ("radio", "listed", 2)]);
}

#[test]
fn senders_on_shared_path_have_one_log() {
    let setup = json!({ "preset": "wcdma-384", "senders": ["newreno", "sack"], "bytes": "100k" });
    let mut core = Core::default();
    let run = ask(&mut core, &json!({ "ask": "run", "slot": 3, "setup": setup, "senders": [0, 1] }));
    assert_eq!(run["flows"].as_array().unwrap().len(), 2);
    let mut shared = setup.clone();
    shared["shared"] = json!(true);
    let checked = check(&shared);
    let commands = checked["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 1);
    assert!(commands[0].as_str().unwrap().contains("--recipe newreno --recipe sack"), "{commands:?}");
    let log = core.answer(br#"{"ask":"decisions","slot":3}"#, &mut |_| {});
    let log = String::from_utf8(log).unwrap();
    assert!(log.starts_with("{\"connection\":1,") && log.contains("\n{\"connection\":2,"));
    // Each flow has graphs of its own data.
    let names: Vec<_> = (0..2).map(|flow| run["flows"][flow]["run"]["connection"].clone()).collect();
    assert_ne!(names[0], names[1]);
}

#[test]
fn moment_reports_state_and_last_decision_per_question() {
    let setup = json!({ "preset": "etcp-fixed-mobile", "senders": ["newreno"], "time": "30s" });
    let mut core = Core::default();
    let run = ask(&mut core, &json!({ "ask": "run", "slot": 0, "setup": setup, "senders": [0] }));
    let log = core.answer(br#"{"ask":"decisions","slot":0}"#, &mut |_| {});
    let lines: Vec<Value> =
        String::from_utf8(log).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let entered = lines.iter().find(|line| line["what"] == "enter").unwrap();
    let origin = run["flows"][0]["run"]["origin"].as_f64().unwrap();
    let micros = ((entered["time"].as_f64().unwrap() * 1e9 - origin) / 1e3).ceil();
    let moment = |core: &mut Core, micros: f64| {
        ask(core, &json!({ "ask": "moment", "slot": 0, "flow": 0, "micros": micros }))
    };
    let then = moment(&mut core, micros);
    assert_eq!(then["state"]["name"], entered["episode"], "{then}");
    assert_eq!(then["answers"].as_array().unwrap().len(), 6);
    let window = &then["answers"][3];
    assert!(
        window["question"].as_str().unwrap().contains("in flight") && !window["last"].is_null(),
        "{window}"
    );
    let answers = then["answers"].as_array().unwrap();
    let time = |answer: &Value| answer["last"]["at"].as_i64();
    let latest: Vec<_> = answers.iter().filter(|answer| answer["latest"] == true).collect();
    assert_eq!(latest.len(), 1, "{then}");
    assert_eq!(time(latest[0]), answers.iter().filter_map(time).max());
    assert!(answers.iter().any(|answer| answer["last"]["offset"].is_u64()), "{then}");
    let before = moment(&mut core, 0.0);
    assert!(before["window"].is_null() || before["state"]["name"] == "open", "{before}");
    let gone = answer_to(&mut core, &json!({ "ask": "moment", "slot": 5, "flow": 0, "micros": 0 }));
    assert!(gone["troubles"][0]["message"].as_str().unwrap().contains("run it again"), "{gone}");
}

/// Runs a setup in a core with these limits, between two harmless runs. Returns the error.
fn refused_by(limits: Limits, setup: &Value) -> String {
    let mut core = Core { limits, ..Core::default() };
    let run =
        |slot: usize, setup: &Value| json!({ "ask": "run", "slot": slot, "setup": setup, "senders": [0] });
    let harmless = json!({ "preset": "lossless", "senders": ["newreno"], "bytes": "20k" });
    ask(&mut core, &run(0, &harmless));
    let refused = answer_to(&mut core, &run(1, setup));
    assert_eq!(refused["troubles"][0]["field"], "run", "{refused}");
    ask(&mut core, &json!({ "ask": "moment", "slot": 0, "flow": 0, "micros": 0 }));
    ask(&mut core, &run(1, &harmless));
    refused["troubles"][0]["message"].as_str().unwrap().to_owned()
}

#[test]
fn session_survives_run_that_needs_too_much_memory() {
    let flood = json!({
        "preset": "sifest-resent", "set": ["voice.down.rate=1Gbit"], "senders": ["newreno"], "bytes": "1",
    });
    let error = refused_by(Limits { packets: 1_000_000, ..Limits::default() }, &flood);
    assert!(error.contains("stage `to-home-agent` (down)") && error.contains("may take 1.0 MB"), "{error}");
    let long = json!({ "preset": "leo", "senders": ["newreno"], "time": "3h" });
    let error = refused_by(Limits { stored: 300_000, ..Limits::default() }, &long);
    assert!(error.contains("no room for a capture of more than"), "{error}");
    let error = refused_by(Limits { records: 100_000, ..Limits::default() }, &long);
    assert!(error.contains("decisions and losses take more than 100kB"), "{error}");
}

#[test]
fn number_of_senders_is_limited() {
    let setup = json!({ "preset": "lossless", "senders": vec!["newreno"; 101], "shared": true });
    let found = troubles(&setup);
    assert_eq!(found[0]["message"], "101 senders given; the page runs at most 100");
}

#[test]
fn progress_never_decreases() {
    let setup = json!({ "preset": "wcdma-384", "senders": ["newreno"], "time": "20s" });
    let request = json!({ "ask": "run", "slot": 0, "setup": setup, "senders": [0] }).to_string();
    let mut reports = Vec::new();
    Core::default().answer(request.as_bytes(), &mut |progress| reports.push(progress));
    assert!(reports.len() > 1, "{reports:?}");
    let is_ascending =
        |pair: &[Progress]| pair[0].share <= pair[1].share && pair[0].seconds <= pair[1].seconds;
    assert!(reports.windows(2).all(is_ascending), "{reports:?}");
    // The run has a limit of time, so its share is its time.
    assert!(reports.iter().all(|it| (0.0..=1.0).contains(&it.share)), "{reports:?}");
    assert!(reports.iter().all(|it| (it.seconds - 20.0 * it.share).abs() < 1e-9), "{reports:?}");
}

#[test]
fn multi_seed_goodputs_match_single_runs() {
    let setup = json!({ "preset": "sifest-random", "senders": ["newreno", "sack"], "bytes": "20k" });
    let mut core = Core::default();
    let mut goodputs = |sender: usize| -> Vec<f64> {
        let request = |ahead| json!({ "ask": "goodput", "setup": setup, "sender": sender, "ahead": ahead });
        (0..5).map(|ahead| ask(&mut core, &request(ahead)).as_f64().unwrap()).collect()
    };
    let goodputs = [goodputs(0), goodputs(1)];
    let mut second = setup.clone();
    second["seed"] = json!("2");
    assert_eq!(goodput(&run(&second, 0)), goodputs[0][1]);
    let compared =
        ask(&mut core, &json!({ "ask": "compare", "names": ["newreno", "<i>"], "goodputs": goodputs }));
    assert!(
        compared["senders"][1]["against"]["sentence"].as_str().unwrap().contains("in 5 pairs"),
        "{compared}"
    );
    let chart = compared["chart"].as_str().unwrap();
    assert!(chart.contains("&lt;i&gt;") && !chart.contains("<i>\""), "{chart}");
}

/// Reverses `airtcp_report::html::columns::column`.
fn decoded(column: &Value) -> Vec<i64> {
    const ALPHABET: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = column.as_str().unwrap().trim_end_matches('=');
    let bits = text.chars().flat_map(|letter| {
        let value = ALPHABET.find(letter).unwrap();
        (0..6).rev().map(move |bit| value >> bit & 1)
    });
    let bits: Vec<usize> = bits.collect();
    let bytes = bits.chunks_exact(8).map(|bits| bits.iter().fold(0, |byte, bit| byte << 1 | bit));
    let (mut values, mut sum, mut rest, mut shift) = (Vec::new(), 0, 0u64, 0);
    for byte in bytes {
        rest |= (byte as u64 & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            sum += (rest >> 1) as i64 ^ -((rest & 1) as i64);
            values.push(sum);
            (rest, shift) = (0, 0);
        }
    }
    values
}

#[test]
fn ladder_has_every_packet_with_its_outcome() {
    let text = "schema = 1\n[[stage]]\nkind = \"link\"\nname = \"wire\"\nboth = { rate = \"1Mbit\", delay = \"20ms\" }\n\
                [[stage]]\nkind = \"loss\"\nname = \"radio\"\ndown = { model = \"list\", drop = [\"segment 20\"] }\n\
                up = { model = \"list\", drop = [\"packet 9\"] }\n";
    let run = run(&json!({ "text": text, "senders": ["newreno"], "bytes": "100k" }), 0);
    let packets = &run["flows"][0]["packets"];
    let [sent, ended, ack, start, outcome, depth] =
        ["sent", "ended", "ack", "start", "outcome", "depth"].map(|name| decoded(&packets[name]));
    assert!(sent.is_sorted() && sent.iter().zip(&ended).all(|(sent, ended)| ended >= sent));
    let lost: Vec<_> = (0..sent.len()).filter(|index| outcome[*index] != 0).collect();
    let facts: Vec<_> = lost.iter().map(|index| (ack[*index], outcome[*index], depth[*index])).collect();
    // Each loss is in the middle of its stage: the second one for data, the first one for ACKs.
    assert_eq!(facts.len(), 2, "{facts:?}");
    assert!(facts.contains(&(0, 2, 75)) && facts.contains(&(1, 2, 25)), "{facts:?}");
    let data = lost.iter().find(|index| ack[**index] == 0).unwrap();
    assert_eq!(start[*data], 1 + 19 * 1448);
    let segments = decoded(&run["flows"][0]["run"]["segments"]["at"]);
    let of_sender: Vec<_> =
        (0..sent.len()).filter(|index| ack[*index] == 0).map(|index| sent[index]).collect();
    assert_eq!(of_sender, segments);
}

fn scenes() -> Vec<Value> {
    serde_json::from_str(super::SCENES).unwrap()
}

/// Returns a scene's setup with another choice of a knob.
fn setup_with_knob(scene: &Value, knob: usize, choice: usize) -> Value {
    let knob = &scene["knobs"][knob];
    setup_with_value(scene, knob, knob["choices"][choice]["value"].as_str().unwrap())
}

fn setup_with_value(scene: &Value, knob: &Value, value: &str) -> Value {
    let mut setup = scene["setup"].clone();
    match (knob["set"].as_str(), knob["field"].as_str()) {
        (Some(key), _) => {
            let mut set: Vec<Value> = setup["set"].as_array().cloned().unwrap_or_default();
            set.retain(|typed| !typed.as_str().unwrap().starts_with(&format!("{key}=")));
            set.push(json!(format!("{key}={value}")));
            setup["set"] = json!(set);
        }
        (_, Some(field)) => setup[field] = json!(value),
        _ => panic!("a knob changes a setting or a field: {knob}"),
    }
    setup
}

#[test]
fn every_scene_knob_yields_valid_setup() {
    let scenes = scenes();
    assert_eq!(scenes.len(), 10);
    for scene in &scenes {
        let knobs = scene["knobs"].as_array().unwrap();
        assert!(!knobs.is_empty(), "{}", scene["name"]);
        for (index, knob) in knobs.iter().enumerate() {
            for choice in 0..knob["choices"].as_array().unwrap().len() {
                check(&setup_with_knob(scene, index, choice));
            }
        }
    }
}

#[test]
fn both_ends_of_every_knob_range_are_valid() {
    let mut ranges = 0;
    for scene in &scenes() {
        for knob in scene["knobs"].as_array().unwrap() {
            let Some(format) = knob["number"]["value"].as_str() else { continue };
            for end in ["min", "max"] {
                let number =
                    knob["number"][end].as_f64().unwrap() * knob["number"]["times"].as_f64().unwrap_or(1.0);
                check(&setup_with_value(scene, knob, &format.replace("{}", &number.to_string())));
            }
            ranges += 1;
        }
    }
    assert!(ranges >= 5, "{ranges}");
}

#[test]
fn every_step_has_text_and_existing_sender() {
    for scene in &scenes() {
        let senders = scene["setup"]["senders"].as_array().unwrap().len() as u64;
        let steps = scene["steps"].as_array().unwrap();
        assert!(steps.len() > 2, "{}", scene["name"]);
        for step in steps {
            assert!(!step["text"].as_str().unwrap().is_empty());
            assert!(step["sender"].as_u64().unwrap_or(0) < senders, "{step}");
        }
    }
}

#[test]
fn knobs_are_labelled_in_plain_words() {
    for scene in &scenes() {
        for knob in scene["knobs"].as_array().unwrap() {
            let choices = knob["choices"].as_array().unwrap().iter().map(|choice| &choice["label"]);
            for label in choices.chain([&knob["label"]]) {
                let label = label.as_str().unwrap();
                assert!(!label.is_empty() && !label.contains(['"', '[', '{', '=', '_']), "{label}");
            }
        }
    }
}

#[test]
fn initial_knob_value_matches_scene_setup() {
    for scene in &scenes() {
        for (index, knob) in scene["knobs"].as_array().unwrap().iter().enumerate() {
            let given = knob["given"].as_u64().unwrap() as usize;
            let digest = |setup: &Value| run(setup, 0)["digest"].clone();
            assert_eq!(
                digest(&setup_with_knob(scene, index, given)),
                digest(&scene["setup"]),
                "{}: {}",
                scene["name"],
                knob["label"]
            );
        }
    }
}

#[test]
fn loss_triggers_fast_retransmit_except_for_last_segment() {
    let scene = &scenes()[0];
    let shown = run(&scene["setup"], 0);
    assert_eq!((counter(&shown, "fast_retransmits"), counter(&shown, "timeouts")), (1, 0));
    let fourth_before = run(&setup_with_knob(scene, 0, 1), 0);
    assert_eq!((counter(&fourth_before, "fast_retransmits"), counter(&fourth_before, "timeouts")), (1, 0));
    let last = run(&setup_with_knob(scene, 0, 2), 0);
    assert_eq!((lost(&last), counter(&last, "fast_retransmits"), counter(&last, "timeouts")), (1, 0, 1));
}

#[test]
fn reno_reduces_per_loss_and_stalls_on_three() {
    let scene = &scenes()[1];
    let reductions =
        |setup: &Value| [0, 1, 2].map(|sender| counter(&run(setup, sender), "window_reductions"));
    assert_eq!(reductions(&scene["setup"]), [2, 1, 1]);
    let timeouts = [0, 1, 2].map(|sender| counter(&run(&setup_with_knob(scene, 0, 1), sender), "timeouts"));
    assert_eq!(timeouts, [1, 0, 0]);
}

#[test]
fn sifest_gains_with_three_segments_but_not_two() {
    let scene = &scenes()[2];
    let gain = |setup: &Value| goodput(&run(setup, 1)) / goodput(&run(setup, 0));
    assert!(gain(&scene["setup"]) > 1.2, "{}", gain(&scene["setup"]));
    let two = gain(&setup_with_knob(scene, 0, 0));
    assert!((two - 1.0).abs() < 0.01, "{two}");
}

#[test]
fn eifel_undoes_only_spurious_timeouts() {
    let scene = &scenes()[3];
    let [newreno, eifel] = [0, 1].map(|sender| run(&scene["setup"], sender));
    assert_eq!(
        (lost(&newreno), counter(&newreno, "spurious_timeouts"), counter(&newreno, "undone")),
        (0, 1, 0)
    );
    assert!(counter(&newreno, "resent_timeout") > 20);
    assert_eq!((counter(&eifel, "resent_timeout"), counter(&eifel, "undone")), (1, 1));
    let dropped = run(&setup_with_knob(scene, 0, 1), 1);
    assert!(lost(&dropped) > 0);
    assert_eq!(counter(&dropped, "undone"), 0);
}

#[test]
fn lost_retransmission_causes_newreno_timeout() {
    let scene = &scenes()[4];
    let timeouts = [0, 1, 2].map(|sender| counter(&run(&scene["setup"], sender), "timeouts"));
    assert_eq!(timeouts, [1, 0, 0]);
}

#[test]
fn etcp_reduces_only_for_congestion() {
    let scene = &scenes()[5];
    let [newreno, etcp] = [0, 1].map(|sender| run(&scene["setup"], sender));
    assert!(2 * counter(&etcp, "window_reductions") < counter(&newreno, "window_reductions"));
    assert!(goodput(&etcp) > goodput(&newreno));
}

#[test]
fn status_report_interval_affects_duplicate_pdus_and_timeouts() {
    let scene = &scenes()[6];
    let repeat_share = |run: &Value| {
        let sender = &run["report"]["stages"]["radio"]["down"]["sender"];
        sender["pdus_resent"].as_f64().unwrap() / sender["pdus_new"].as_f64().unwrap()
    };
    let at = |value| run(&setup_with_knob(scene, 0, value), 0);
    let [often, best, seldom, late] = [0, 1, 2, 3].map(at);
    assert!(
        repeat_share(&often) > 0.5 && repeat_share(&often) > 2.0 * repeat_share(&seldom),
        "{} {}",
        repeat_share(&often),
        repeat_share(&seldom)
    );
    assert!(goodput(&best) > goodput(&often) && goodput(&best) > goodput(&seldom));
    assert_eq!((lost(&late), counter(&late, "timeouts") > 0), (0, true));
    assert!(!best["below"]["pdus"]["at"].as_str().unwrap().is_empty());
}

#[test]
fn early_rlc_reset_or_discard_loses_packets() {
    let scene = &scenes()[7];
    let [reset, discard, patient] = [0, 1, 2].map(|value| run(&setup_with_knob(scene, 0, value), 0));
    let resets = |run: &Value| {
        let incidents = run["below"]["incidents"].as_array().unwrap();
        incidents.iter().filter(|it| it["text"].as_str().unwrap().contains("RESET")).count()
    };
    assert!(lost(&reset) > 0 && resets(&reset) > 0, "{} {}", lost(&reset), resets(&reset));
    assert!(lost(&discard) > 0 && resets(&discard) == 0, "{} {}", lost(&discard), resets(&discard));
    assert_eq!((lost(&patient), resets(&patient)), (0, 0));
}

#[test]
fn harq_repairs_blocks_and_pdcp_holds_packets() {
    let scene = &scenes()[8];
    let runs = [0, 1, 2].map(|choice| run(&setup_with_knob(scene, 0, choice), 0));
    let held =
        runs.each_ref().map(|run| run["report"]["stages"]["radio"]["down"]["pdcp"]["held"].as_u64().unwrap());
    assert_eq!(held[0], 0);
    assert!(held[1] > 100 && held[2] > held[1], "{held:?}");
    for run in &runs {
        assert_eq!((lost(run), counter(run, "timeouts")), (0, 0));
        assert!(!run["below"]["pdus"]["at"].as_str().unwrap().is_empty());
    }
    let share = goodput(&runs[2]) / goodput(&runs[0]);
    assert!((0.6..0.9).contains(&share), "{share}");
}

#[test]
fn handover_loses_packets_unless_they_are_forwarded() {
    let scene = &scenes()[9];
    let [lost_there, forwarded] = [0, 1].map(|choice| run(&setup_with_knob(scene, 0, choice), 0));
    assert!(lost(&lost_there) > 10, "{}", lost(&lost_there));
    assert_eq!((lost(&forwarded), counter(&forwarded, "resent_timeout")), (0, 0));
    for run in [&lost_there, &forwarded] {
        let incidents = run["below"]["incidents"].as_array().unwrap();
        assert!(incidents.iter().any(|it| it["text"].as_str().unwrap().contains("handover to another cell")));
    }
    assert!(goodput(&forwarded) > 1.2 * goodput(&lost_there));
}

#[test]
fn page_is_one_script_with_worker() {
    let html = super::page::html(b"\0asm");
    assert!(
        html.contains("worker-src blob:") && html.contains("'wasm-unsafe-eval'"),
        "the content security policy"
    );
    assert_eq!(html.matches("<script type=\"module\">").count(), 1);
}
