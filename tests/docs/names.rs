//! Subcommands, options, make and cargo targets, and scripts that commands name must exist. This includes
//! commands that a sentence mentions, and illustrations.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

use airtcp_testkit::programs::{program, repository};
use libtest_mimic::Failed;
use serde_json::Value;

use super::markdown::Page;

const PROGRAMS: [&str; 3] = ["airtcp", "airtcp-serve", "airlink"];

/// The names that exist. Each is looked up once.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// By program and subcommands.
    helps: Mutex<BTreeMap<Vec<String>, Help>>,
    cargo: OnceLock<BTreeSet<(String, String)>>,
}

/// The contents of `--help`.
#[derive(Clone, Debug, Default)]
struct Help {
    subcommands: BTreeSet<String>,
    options: BTreeSet<String>,
    /// Lines that begin with one of the programs.
    examples: Vec<String>,
}

pub(crate) fn check(page: &Page, known: &Known) -> Result<(), Failed> {
    let mut errors = Vec::new();
    let mut check = |line: usize, words: &[String]| {
        if let Err(error) = known.check(words) {
            errors.push(format!("line {line}: {}: {error}", words.join(" ")));
        }
    };
    for command in &page.commands {
        simple_commands(&command.text).iter().for_each(|words| check(command.line, words));
    }
    for (line, text) in &page.mentioned {
        for words in simple_commands(text).iter().filter(|words| !is_prose(words)) {
            check(*line, words);
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n").into()) }
}

/// Checks the examples in the help of every subcommand.
pub(crate) fn check_examples(known: &Known) -> Result<(), Failed> {
    let mut errors = Vec::new();
    let mut checked = 0;
    let mut paths: Vec<Vec<String>> = PROGRAMS.map(|program| vec![program.to_owned()]).to_vec();
    while let Some(path) = paths.pop() {
        let help = known.help(&path)?;
        let deeper = help.subcommands.iter().filter(|name| *name != "help");
        paths.extend(deeper.map(|name| [&path[..], std::slice::from_ref(name)].concat()));
        for words in help.examples.iter().flat_map(|line| simple_commands(line)) {
            checked += 1;
            if let Err(error) = known.check(&words) {
                errors.push(format!("{} --help: {}: {error}", path.join(" "), words.join(" ")));
            }
        }
    }
    if checked < 50 {
        errors.push(format!("only {checked} commands were found in all examples"));
    }
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n").into()) }
}

/// Returns whether code in a sentence is not a command, but a quoted error or a file name.
fn is_prose(words: &[String]) -> bool {
    let is_sentence = words.len() > 2 && words.iter().all(|word| !word.starts_with('-'));
    is_sentence || words.first().is_some_and(|word| word.contains('/'))
}

impl Known {
    fn check(&self, words: &[String]) -> Result<(), String> {
        // Assignments of variables precede a command.
        let assignments =
            words.iter().take_while(|word| word.contains('=') && !word.starts_with('-')).count();
        let words = &words[assignments..];
        match words.first().map(String::as_str) {
            Some("make") => return check_make_targets(&words[1..]),
            Some("cargo") => return self.check_cargo_targets(&words[1..]),
            Some(script) if script.contains('/') && (script.ends_with(".sh") || script.ends_with(".py")) => {
                // `./` refers to the directory of the page, to which the user has changed.
                let exists = script.starts_with("./") || repository().join(script).exists();
                return if exists { Ok(()) } else { Err("the script does not exist".to_owned()) };
            }
            _ => {}
        }
        for (at, word) in words.iter().enumerate() {
            // Some words are followed by another command.
            let begins = at == 0 || ["--", "sudo", "exec", "parallel"].contains(&words[at - 1].as_str());
            if begins && PROGRAMS.contains(&word.as_str()) {
                self.options(word, &words[at + 1..])?;
            }
        }
        Ok(())
    }

    fn options(&self, program: &str, words: &[String]) -> Result<(), String> {
        let mut path = vec![program.to_owned()];
        let mut help = self.help(&path)?;
        for word in words {
            if word == "--" {
                return Ok(());
            }
            let name = match word.strip_prefix("--") {
                Some(_) => word.split('=').next().map(str::to_owned),
                // `-v` of `-vv`, and `-s` of `-s4`.
                None => word
                    .strip_prefix('-')
                    .and_then(|letters| letters.chars().next())
                    .map(|first| format!("-{first}")),
            };
            if let Some(name) = name {
                if !help.options.contains(&name) && !is_hidden(&path, &name)? {
                    return Err(format!("`{}` has no option `{name}`", path.join(" ")));
                }
            } else if help.subcommands.contains(word) {
                // A subcommand may follow an argument: `airlink ctl NAME watch`.
                path.push(word.clone());
                help = self.help(&path)?;
            } else if path.len() == 1
                && program != "airtcp-serve"
                && !placeholder(word)
                && !is_hidden(&path, word)?
            {
                return Err(format!("`{program}` has no subcommand `{word}`"));
            }
        }
        Ok(())
    }

    fn help(&self, path: &[String]) -> Result<Help, String> {
        let mut helps = self.helps.lock().map_err(|_| "the check of another page has panicked".to_owned())?;
        if let Some(help) = helps.get(path) {
            return Ok(help.clone());
        }
        let output = Command::new(program(&path[0]))
            .args(&path[1..])
            .arg("--help")
            .output()
            .map_err(|error| format!("{}: {error}", path[0]))?;
        let help = Help::read(&String::from_utf8_lossy(&output.stdout));
        helps.insert(path.to_vec(), help.clone());
        Ok(help)
    }

    fn check_cargo_targets(&self, words: &[String]) -> Result<(), String> {
        let targets = self.cargo.get_or_init(cargo_targets);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let kind = match word.as_str() {
                "-p" | "--exclude" => "package",
                "--test" => "test",
                "--bench" => "bench",
                "--example" => "example",
                "--bin" => "bin",
                "--" => return Ok(()),
                _ => continue,
            };
            let Some(name) = words.next().filter(|name| !placeholder(name)) else { continue };
            if !targets.contains(&(kind.to_owned(), name.clone())) {
                return Err(format!("there is no {kind} `{name}`"));
            }
        }
        Ok(())
    }
}

impl Help {
    fn read(text: &str) -> Self {
        let mut help = Self::default();
        let (mut commands, mut options) = (false, false);
        for line in text.lines() {
            if !line.starts_with(' ') {
                // Subcommands are listed in groups, before the options.
                options |= line == "Options:";
                commands = line.ends_with(':') && !options;
                continue;
            }
            let words = line.trim_start();
            if words.split_once(' ').is_some_and(|(program, _)| PROGRAMS.contains(&program)) {
                help.examples.push(words.to_owned());
            } else if commands {
                // Lines with more indentation continue a description.
                if line.starts_with("  ") && !line.starts_with("   ") {
                    let name = words.split_whitespace().next().filter(|name| !name.starts_with(['<', '[']));
                    help.subcommands.extend(name.map(str::to_owned));
                }
            } else if words.starts_with('-') {
                let options = words.split([' ', ',', '[', '=']).filter(|word| word.starts_with('-'));
                help.options.extend(options.map(|option| option.trim_end_matches('.').to_owned()));
            }
        }
        help
    }
}

/// Returns whether the program accepts a word that its help does not list. The program handles `--help` only
/// after it has checked all words.
fn is_hidden(path: &[String], word: &str) -> Result<bool, String> {
    let output = Command::new(program(&path[0])).args(&path[1..]).args([word, "--help"]).output();
    let output = output.map_err(|error| format!("{}: {error}", path[0]))?;
    let error = String::from_utf8_lossy(&output.stderr);
    Ok(!error.contains("unexpected argument") && !error.contains("unrecognized subcommand"))
}

/// Checks that the Makefile has these targets.
fn check_make_targets(words: &[String]) -> Result<(), String> {
    let makefile = std::fs::read_to_string(repository().join("Makefile")).unwrap_or_default();
    let target = |word: &&String| !word.starts_with('-') && !word.contains('=') && *word != "…";
    for word in words.iter().filter(target) {
        if !makefile.lines().any(|line| line.split(':').next() == Some(word) && line.contains(':')) {
            return Err(format!("the Makefile has no `{word}`"));
        }
    }
    Ok(())
}

fn cargo_targets() -> BTreeSet<(String, String)> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version=1", "--offline", "--locked"])
        .current_dir(repository())
        .output();
    let found: Value = output
        .map(|output| serde_json::from_slice(&output.stdout))
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut known = BTreeSet::new();
    for package in found["packages"].as_array().into_iter().flatten() {
        known.insert(("package".to_owned(), text(&package["name"])));
        for target in package["targets"].as_array().into_iter().flatten() {
            for kind in target["kind"].as_array().into_iter().flatten() {
                known.insert((text(kind), text(&target["name"])));
            }
        }
    }
    known
}

/// Returns whether a word is a placeholder, which consists of capitals.
fn placeholder(word: &str) -> bool {
    let letters = word.trim_matches(['[', ']', '…', '<', '>']);
    letters.chars().all(|letter| letter.is_uppercase() || "-_…./0123456789".contains(letter))
}

/// Splits a line into its commands, and each command into words. Quotes may contain spaces.
fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), String::new());
    let mut quote = None;
    for letter in text.replace("\\\n", " ").chars() {
        match (quote, letter) {
            (Some(end), _) if letter == end => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (Some(_), _) => word.push(letter),
            (None, '#') if word.is_empty() => break,
            (None, ' ' | '\n') => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()))
            }
            (None, ';' | '|' | '&' | '(' | ')' | '>' | '<') => {
                words.extend(Some(std::mem::take(&mut word)).filter(|word| !word.is_empty()));
                commands.push(std::mem::take(&mut words));
            }
            (None, _) => word.push(letter),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Tests of this file.
pub(crate) mod tests {
    use libtest_mimic::{Failed, Trial};

    use super::{Known, simple_commands};

    pub(crate) fn trials() -> Vec<Trial> {
        vec![Trial::test(
            "names: missing options and targets are reported",
            missing_options_and_targets_are_reported,
        )]
    }

    fn missing_options_and_targets_are_reported() -> Result<(), Failed> {
        let known = Known::default();
        let check = |text: &str| simple_commands(text).iter().try_for_each(|words| known.check(words));
        for good in [
            "airtcp lab run --scenario geo --recipe sack --runs=3 -v",
            "airlink run -s geo -- wget --quiet --no-such http://x",
            "parallel airtcp sweep run x.toml --jobs 1 --shard {}/8 ::: $(seq 8)",
            "make test && cargo test --test docs -- --anything",
            "airtcp script FILE…",
            "airtcp-serve --listen 80 --forward localhost:8080",
            "airtcp algorithms --markdown",
            "AIRTCP_PAIRS=5 make pairs",
            "airlink ctl radio watch --every 200ms",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in [
            "airtcp lab run --scenarios geo",
            "airtcp algorithms --markup",
            "airtcp sim -Z",
            "true; airtcp lab walk --scenario geo",
            "airtcp fly",
            "airtcp-serve --listens 80",
            "airlink run -s geo -- airtcp sink --no-such",
            "airlink ctl radio watch --never",
            "sudo airlink show --no-such",
            "make nothing",
            "cargo test --test no-such",
            "interop/no-such.sh",
        ] {
            assert!(check(bad).is_err(), "{bad}");
        }
        Ok(())
    }
}
