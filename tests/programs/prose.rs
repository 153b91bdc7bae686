//! Documents, help texts, messages and comments are written in plain English: they contain at most six of the
//! phrases below per ten thousand words. `EXCEPTIONS` lists correct uses of these phrases, with the reasons.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use airtcp_testkit::programs::repository;

/// Maximum number of findings in ten thousand words.
const LIMIT: f64 = 6.0;

/// Words that begin a sentence without a subject. Only questions may begin with these words.
const FIRST_WORDS: [&str; 5] = ["of", "what", "who", "whoever", "whose"];

/// Phrases, with `*` for any word.
const PHRASES: [&str; 35] = [
    "nobody",
    "somebody",
    "anybody",
    "whoever",
    "anew",
    "hence",
    "beside",
    "befallen",
    "befalls",
    "so many",
    "so much",
    "so often",
    "so few",
    "that of",
    "those of",
    "is told",
    "are told",
    "was told",
    "be told",
    "tells apart",
    "told apart",
    "goes on",
    "go on",
    "gone on",
    "goes by",
    "stands for",
    "stands in",
    "stands at",
    "stands under",
    "stands behind",
    "stand in",
    "stand at",
    "in its way",
    "in their way",
    "again and again",
];

/// Words that may follow `is no`.
const AFTER_NO: [&str; 8] = ["longer", "more", "less", "fewer", "later", "larger", "shorter", "better"];

/// Correct uses of a phrase, as part of the file's name, part of the sentence, and the reason.
const EXCEPTIONS: [(&str, &str, &str); 0] = [];

#[derive(Default)]
struct Counts {
    words: usize,
    findings: Vec<String>,
}

impl Counts {
    /// Checks every sentence of a paragraph, without its code.
    fn add(&mut self, place: &str, paragraph: &str) {
        for (sentence, is_question) in sentences(&without_code(paragraph)) {
            self.add_sentence(place, &sentence, is_question);
        }
    }

    fn add_sentence(&mut self, place: &str, sentence: &str, is_question: bool) {
        let words: Vec<String> = sentence
            .split(|c: char| !(c.is_alphanumeric() || c == '\'' || c == '’'))
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        // A table cell or part of a message may continue a sentence: `of the timeouts`.
        let is_continued = sentence.trim_start().starts_with("of ");
        self.words += words.len();
        if EXCEPTIONS.iter().any(|(file, part, _)| place.contains(file) && sentence.contains(part)) {
            return;
        }
        if let Some(phrase) = suspicious(&words, is_question || is_continued) {
            self.findings.push(format!("{place}: [{phrase}] {}", sentence.trim()));
        }
    }

    fn check(&self) {
        let rate = 1e4 * self.findings.len() as f64 / self.words.max(1) as f64;
        println!("{} findings in {} words: {rate:.1} in 10,000", self.findings.len(), self.words);
        assert!(
            rate <= LIMIT,
            "rewrite, or add to EXCEPTIONS with the reason:\n{}",
            self.findings.join("\n")
        );
    }
}

/// Returns the first phrase that is not plain English.
fn suspicious(words: &[String], has_no_subject: bool) -> Option<String> {
    let first = words.first().map_or("", String::as_str);
    if !has_no_subject && words.len() > 2 && FIRST_WORDS.contains(&first) {
        return Some(format!("begins with {first}"));
    }
    let has = |phrase: &str| {
        let phrase: Vec<_> = phrase.split(' ').collect();
        words
            .windows(phrase.len())
            .any(|window| window.iter().zip(&phrase).all(|(word, expected)| word == expected))
    };
    if let Some(phrase) = PHRASES.iter().find(|phrase| has(phrase)) {
        return Some((*phrase).to_owned());
    }
    let no = words.windows(3).find(|window| {
        ["is", "are", "was", "were"].contains(&window[0].as_str())
            && window[1] == "no"
            && !AFTER_NO.contains(&window[2].as_str())
    });
    // `there is no …` is plain English.
    no.filter(|_| {
        !has("there is no") && !has("there are no") && !has("there was no") && !has("there were no")
    })
    .map(|window| window.join(" "))
}

/// Sentences, and whether each is a question.
fn sentences(text: &str) -> Vec<(String, bool)> {
    let mut all = Vec::new();
    let mut sentence = String::new();
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        let ends = matches!(c, '.' | '!' | '?' | ';' | ':' | '|')
            && characters.peek().is_none_or(|next| next.is_whitespace() || *next == '|');
        if ends || c == '|' {
            all.push((std::mem::take(&mut sentence), c == '?'));
        } else {
            sentence.push(c);
        }
    }
    all.push((sentence, false));
    all
}

/// Replaces each placeholder of a format string by a word.
fn without_placeholders(literal: &str) -> String {
    let mut text = String::new();
    for (index, part) in literal.split('{').enumerate() {
        match part.split_once('}') {
            Some((_, rest)) if index > 0 => text.extend(["x", rest]),
            _ => text += part,
        }
    }
    text
}

/// Replaces code by a word.
fn without_code(text: &str) -> String {
    text.split('`').enumerate().map(|(index, part)| if index % 2 == 0 { part } else { "x" }).collect()
}

fn files(directory: &Path, extension: &str, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.')
                && !["target", "node_modules", "corpus", "artifacts"].contains(&name.as_str())
            {
                files(&path, extension, paths);
            }
        } else if path.extension().is_some_and(|other| other == extension) {
            paths.push(path);
        }
    }
}

fn name(path: &Path) -> String {
    path.strip_prefix(repository().canonicalize().unwrap()).unwrap_or(path).display().to_string()
}

#[test]
fn documents_are_plain_english() {
    let mut paths = Vec::new();
    files(&repository().canonicalize().unwrap(), "md", &mut paths);
    paths.sort();
    let mut counts = Counts::default();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let mut is_code = false;
        let mut paragraph = String::new();
        for line in text.lines().chain([""]) {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            } else if is_code || line.starts_with("<!--") {
                continue;
            } else if line.trim().is_empty() || line.starts_with(['|', '#', '-']) {
                counts.add(&name(path), &paragraph);
                paragraph = line.trim_start_matches(['#', '-', ' ']).to_owned();
            } else {
                paragraph += " ";
                paragraph += line.trim_start_matches([' ', '>', '*']);
            }
        }
    }
    assert!(counts.words > 20_000, "only {} words were found", counts.words);
    counts.check();
}

/// The help of each subcommand, without its examples. It fits a terminal of 80 columns.
#[test]
fn help_texts_are_plain_english() {
    let mut counts = Counts::default();
    let mut seen = BTreeSet::new();
    for program in ["airtcp", "airtcp-serve", "airlink"] {
        let mut commands: Vec<Vec<String>> = vec![Vec::new()];
        while let Some(command) = commands.pop() {
            if !seen.insert((program, command.clone())) {
                continue;
            }
            let arguments: Vec<&str> = command.iter().map(String::as_str).chain(["--help"]).collect();
            let output = std::process::Command::new(airtcp_testkit::programs::program(program))
                .args(&arguments)
                .env("COLUMNS", "80")
                .output()
                .unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            let place = format!("{program} {} --help", command.join(" "));
            let text = help.split("\nExamples").next().unwrap();
            let lists = text.split("\nOptions:").next().unwrap().lines().count();
            let mut is_list = false;
            let mut paragraph = String::new();
            for (index, line) in text.lines().chain([""]).enumerate() {
                let subcommand =
                    line.strip_prefix("  ").filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
                is_list = index < lists && (line.ends_with(':') || (is_list && line.starts_with("  ")));
                if let Some(subcommand) = subcommand.filter(|_| is_list) {
                    let name = subcommand.split_whitespace().next().unwrap();
                    if !["help", "airtcp", "airtcp-serve", "airlink"].contains(&name) {
                        commands.push(command.iter().cloned().chain([name.to_owned()]).collect());
                    }
                }
                assert!(line.chars().count() <= 80, "{place}: {line}");
                if line.trim().is_empty() || line.trim_start().starts_with('-') {
                    counts.add(&place, &paragraph);
                    paragraph.clear();
                } else {
                    paragraph += " ";
                    paragraph += line.trim();
                }
            }
        }
    }
    assert!(seen.len() > 40, "only {} commands were found", seen.len());
    assert!(counts.words > 5_000, "only {} words were found", counts.words);
    counts.check();
}

/// Texts in the code of the programs, without their tests.
#[test]
fn messages_are_plain_english() {
    let mut paths = Vec::new();
    for directory in ["src", "crates", "emulator/src"] {
        files(&repository().canonicalize().unwrap().join(directory), "rs", &mut paths);
    }
    paths.sort();
    let is_test = |name: &str| {
        ["/tests", "tests.rs", "crates/testkit", "/examples/"].iter().any(|part| name.contains(part))
    };
    let mut counts = Counts::default();
    for path in paths.iter().filter(|path| !is_test(&name(path))) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        let code: String = code
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let code = code.replace("\\\"", "'").replace("'\"'", "' '");
        for literal in code.split('"').skip(1).step_by(2) {
            let literal: Vec<_> = literal.split_whitespace().filter(|word| *word != "\\").collect();
            if literal.len() >= 3 {
                counts.add(&name(path), &without_placeholders(&literal.join(" ")));
            }
        }
    }
    assert!(counts.words > 10_000, "only {} words were found", counts.words);
    counts.check();
}

/// Comments and rustdoc of all Rust code, without the code in examples.
#[test]
fn comments_are_plain_english() {
    let mut paths = Vec::new();
    for directory in ["src", "crates", "emulator", "tests", "benches", "fuzz", "interop"] {
        files(&repository().canonicalize().unwrap().join(directory), "rs", &mut paths);
    }
    paths.sort();
    let mut counts = Counts::default();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        let mut is_code = false;
        let mut paragraph = String::new();
        for line in text.lines().chain([""]) {
            let comment =
                line.trim_start().strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim());
            if comment.is_some_and(|comment| comment.starts_with("```")) {
                is_code = !is_code;
                continue;
            }
            let comment = comment.filter(|_| !is_code).unwrap_or_default();
            // A line without text and an item of a list end a paragraph.
            if comment.is_empty() || comment.starts_with(['-', '|', '#']) {
                counts.add(&name(path), &paragraph);
                paragraph.clear();
            }
            paragraph += " ";
            paragraph += comment.trim_start_matches(['-', '|', '#', ' ']);
        }
    }
    assert!(counts.words > 100_000, "only {} words were found", counts.words);
    counts.check();
}

#[test]
fn suspicious_phrases_are_found() {
    let count = |text: &str| {
        let mut counts = Counts::default();
        counts.add("test", text);
        counts.findings.len()
    };
    assert_eq!(count("Of these none is left. What is lost is sent again."), 2);
    assert_eq!(count("Nobody waits | it stands in a table | that is no link"), 3);
    assert_eq!(count("What is lost? There is no link. It is no longer there. Run `that of nobody`."), 0);
}
