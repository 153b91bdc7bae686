//! The scenario reference in the documentation agrees with the code.

use std::path::PathBuf;

use airlink::scenario::presets;

use super::*;

struct Row {
    keys: Vec<String>,
    default: String,
}

/// All pages about the format of scenarios, concatenated.
fn reference() -> String {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/scenario");
    let entries = std::fs::read_dir(&directory).unwrap();
    let mut pages: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.iter().map(|page| std::fs::read_to_string(page).unwrap() + "\n").collect()
}

/// Each heading without its level, and the lines below it. Comments in code blocks are not headings.
fn sections(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut sections = vec![("", Vec::new())];
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.starts_with("```");
        if line.starts_with('#') && !in_code {
            sections.push((line.trim_start_matches('#').trim(), Vec::new()));
        } else if let Some((_, lines)) = sections.last_mut() {
            lines.push(line);
        }
    }
    sections
}

/// The rows of the table below this heading. Exactly one page must have the heading.
fn rows(reference: &str, heading: &str) -> Vec<Row> {
    let found: Vec<_> = sections(reference).into_iter().filter(|(other, _)| *other == heading).collect();
    let [(_, lines)] = &found[..] else { panic!("{} headings {heading}, not one", found.len()) };
    let rows: Vec<Row> = lines.iter().filter_map(|line| row(line)).collect();
    assert!(!rows.is_empty(), "no table below {heading}");
    rows
}

/// Parses a table row if its first cell lists keys.
fn row(line: &str) -> Option<Row> {
    let cells: Vec<&str> = line.starts_with("| `").then(|| line.split('|').map(str::trim).collect())?;
    let keys = cells[1].split(", ").map(|key| key.trim_matches('`').to_owned()).collect();
    Some(Row { keys, default: cells[2].to_owned() })
}

/// A heading of any level, and the table that it describes: kind of stage, path of keys, and the required settings. There
/// is one set of settings for every variant with its own keys.
const TABLES: &[(&str, &str, &str, &[&str])] = &[
    ("`link`", "link", "down", &[""]),
    ("`steps`", "link", "down.steps", &["every = '1s', within = '1ms'"]),
    ("`queue`", "link", "down.queue", &[""]),
    ("`loss`", "loss", "down", &["model = 'none'"]),
    ("States of `markov`", "loss", "down.states", &["name = 'a', to = {}"]),
    ("`reorder`", "reorder", "down", &["chance = 0"]),
    ("`duplicate`", "duplicate", "down", &["chance = 0"]),
    ("`corrupt`", "corrupt", "down", &["chance = 0"]),
    ("`truncate`", "truncate", "down", &["chance = 0"]),
    ("`policer`", "policer", "down", &["rate = '1kbit', burst = '100B'"]),
    ("`outage`", "outage", "down", &["at = ['1s'], lasts = '1s', packets = 'dropped'"]),
    ("`arq`", "arq", "down", &["per = '0%', retries = 0, rate = '1Mbit'"]),
    ("`rlc`", "rlc", "down", &[""]),
    ("`rlc`: `rrc`", "rlc", "rrc", &[""]),
    ("`rlc`: `rrc.inactivity`", "rlc", "rrc.inactivity", &["after = '1s', promotion = '1s'"]),
    ("`rlc`: `rrc.reestablishment`", "rlc", "rrc.reestablishment", &[""]),
    ("`rlc`: `rrc.reestablishment.scheduled`", "rlc", "rrc.reestablishment.scheduled", &["at = ['1s']"]),
    ("`rlc`: `hsdpa`", "rlc", "hsdpa", &[""]),
    ("`rlc`: `hsdpa.fading`", "rlc", "hsdpa.fading", &["speed = '3km/h', carrier = '2GHz'"]),
    ("`rlc`: `hsdpa.others`", "rlc", "hsdpa.others", &["mobiles = 1, source = 'full-buffer'"]),
    ("`rlc`: `sender`", "rlc", "down.sender", &[""]),
    (
        "`rlc`: `sender.discard`",
        "rlc",
        "down.sender.discard",
        &[
            "",
            "mode = 'reset-after-max-dat', max_dat = 2",
            "mode = 'mrw-after-max-dat', max_dat = 2, timer_mrw = '1s', max_mrw = 1",
            "mode = 'timer', timer_discard = '1s', timer_mrw = '1s', max_mrw = 1",
        ],
    ),
    ("`rlc`: `sender.poll`", "rlc", "down.sender.poll", &[""]),
    ("`rlc`: `receiver`", "rlc", "down.receiver", &[""]),
    ("`rlc`: `format`", "rlc", "down.format", &[""]),
    ("`rlc`: `format.flexible`", "rlc", "down.format.flexible", &[""]),
    ("`rlc`: `channel`", "rlc", "down.channel", &[""]),
    (
        "`rlc`: `channel.switching`",
        "rlc",
        "down.channel.switching",
        &[
            "",
            "mode = 'scheduled', changes = []",
            "mode = 'by-occupancy', between = [], above = '1B', above_for = '1s', below = '0B', below_for = '1s', takes = '1s'",
        ],
    ),
    (
        "`rlc`: `channel.errors`",
        "rlc",
        "down.channel.errors",
        &[
            "",
            "model = 'independent', bler = 0",
            "model = 'per-tti', bler = 0",
            "model = 'gilbert-elliott', good = 0, bad = 0, good_to_bad = 0, bad_to_good = 0",
            "model = 'rayleigh', speed = '1m/s', carrier = '1GHz', margin = '0dB'",
            "model = 'shadowing', speed = '1m/s', margin = '0dB', deviation = '1dB', decorrelation = '1m'",
            "model = 'listed', lost = []",
        ],
    ),
    ("`nr`", "nr", "", &[""]),
    ("`nr`: directions", "nr", "down", &[""]),
    ("`nr`: `states`", "nr", "down.states", &["tbs = '1B', mean = '1s'"]),
    ("`nr`: `harq`", "nr", "down.harq", &[""]),
    ("`nr`: `grant`", "nr", "up.grant", &[""]),
    ("`nr`: `rlc`", "nr", "down.rlc", &[""]),
    ("`nr`: `pdcp`", "nr", "down.pdcp", &[""]),
    ("`nr`: `dedicated`", "nr", "dedicated", &[""]),
    ("`nr`: `handover`", "nr", "handover", &["interruption = '1ms'"]),
    (
        "`nr`: `handover.cell`",
        "nr",
        "handover.cell",
        &["slot = '1ms', pattern = 'D', down = {tbs='1B'}, up = {tbs='1B'}"],
    ),
    ("`nr`: `handover.cell.down`", "nr", "handover.cell.down", &["tbs = '1B'"]),
    ("`nr`: `rlf`", "nr", "rlf", &[""]),
    ("`nr`: `drx`", "nr", "drx", &["inactivity = '1s', cycle = '1s', on = '1ms'"]),
    ("`nr`: `others`", "nr", "others", &["users = 1"]),
    ("`lte`: `harq`", "lte", "down.harq", &[""]),
    ("`lte`: `grant`", "lte", "up.grant", &[""]),
    ("`lte`: `rlc`", "lte", "down.rlc", &[""]),
    ("`lte`: `pdcp`", "lte", "down.pdcp", &[""]),
    ("`station`", "station", "", &[""]),
    ("`handover`", "station", "handover", &["at = ['1s']"]),
    (
        "`traffic`",
        "traffic",
        "down",
        &["source = 'cbr', rate = '1kbit', packet = '100B', leaves_after = 'end'"],
    ),
];

/// A scenario with `settings` in the table at `path`.
fn with(kind: &str, path: &str, settings: &str) -> String {
    let settings = match path {
        "" => settings.replace(", ", "\n"),
        "down.states" if kind == "nr" => format!("down.states = [{{ {settings} }}]"),
        "handover.cell" => format!("handover = {{ interruption = '1ms', cell = {{ {settings} }} }}"),
        "handover.cell.down" => format!(
            "handover = {{ interruption = '1ms', cell = {{ slot = '1ms', pattern = 'D', up = {{ tbs = '1B' }}, down = {{ {settings} }} }} }}"
        ),
        "down.states" => format!("down = {{ model = 'markov', states = [{{ {settings} }}] }}"),
        // Without a variant, `down` has the default one.
        "down.sender.discard" | "down.channel.errors" | "down.channel.switching" if settings.is_empty() => {
            "down = {}".to_owned()
        }
        // Flexible PDUs require a shared downlink.
        "down.format.flexible" => format!("hsdpa = {{}}\n{path} = {{ {settings} }}"),
        _ => format!("{path} = {{ {settings} }}"),
    };
    format!("{}[[stage]]\nkind = 'link'\nname = 'end'", stage(kind, &settings))
}

#[test]
fn reference_lists_exactly_the_keys_and_defaults() {
    let reference = reference();
    for (heading, kind, path, variants) in TABLES {
        let rows = rows(&reference, heading);
        let mut documented: Vec<&str> = rows.iter().flat_map(|row| &row.keys).map(String::as_str).collect();
        documented.sort_unstable();
        let mut known: Vec<String> = variants
            .iter()
            .filter(|variant| variants.len() == 1 || !variant.is_empty())
            .flat_map(|variant| keys_known(kind, path, variant))
            .collect();
        known.sort_unstable();
        known.dedup();
        assert_eq!(documented, known, "{heading}");

        let minimal = parse(&with(kind, path, variants[0]));
        for Row { keys, default } in &rows {
            for key in keys {
                let steps = [kind, *path, key].into_iter().filter(|step| !step.is_empty());
                let full_key = steps.collect::<Vec<_>>().join(".");
                let is_required = variants[0].contains(&format!("{key} = "));
                let expected = match minimal.get(&full_key) {
                    _ if is_required => "needed".to_owned(),
                    Err(_) => "–".to_owned(),
                    Ok(serde_json::Value::Object(table)) if table.is_empty() => "`{}`".to_owned(),
                    Ok(serde_json::Value::Object(_)) => String::new(),
                    Ok(value) => format!("`{}`", value.to_string().replace(',', ", ")),
                };
                assert_eq!(*default, expected, "{heading}: {key}");
            }
        }
        for needed in variants[0].split(", ").filter(|_| !variants[0].is_empty()) {
            let rest: Vec<&str> = variants[0].split(", ").filter(|setting| *setting != needed).collect();
            let message = problems(&with(kind, path, &rest.join(", ")))[0].to_string();
            assert!(message.contains("missing"), "{heading}, without {needed}: {message}");
        }
    }
}

/// The keys that the error message for an unknown key lists.
fn keys_known(kind: &str, path: &str, variant: &str) -> Vec<String> {
    let settings = if variant.is_empty() { "zzz = 0".to_owned() } else { format!("zzz = 0, {variant}") };
    let problem = problems(&with(kind, path, &settings)).remove(0);
    let help = problem.help.unwrap_or_else(|| panic!("no keys: {}", problem.message));
    let mut keys: Vec<String> = help.rsplit(": ").next().unwrap().split(", ").map(str::to_owned).collect();
    // The message omits `mode` and `model`, which are read before the other keys.
    keys.extend(variant.split(" = ").next().filter(|tag| ["mode", "model"].contains(tag)).map(str::to_owned));
    keys
}

#[test]
fn reference_lists_every_preset() {
    // The page may have several tables in any order.
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/presets.md");
    let page = std::fs::read_to_string(file).unwrap();
    let mut listed: Vec<(String, String)> =
        page.lines().filter_map(row).map(|mut row| (row.keys.remove(0), row.default)).collect();
    let mut all: Vec<(String, String)> = presets::ALL
        .iter()
        .map(|preset| (preset.name.to_owned(), Scenario::load(preset.name).unwrap().description))
        .collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}
