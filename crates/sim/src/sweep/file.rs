//! The parser for sweep files, which contain fixed options, axes, and the number of seeds. Errors
//! have line numbers.

use std::fmt;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::metric::Metric;
use super::setup::Key;
use super::suggestion::suggestion;

/// Version of the file format.
const SCHEMA: i64 = 1;

/// Error in a sweep file. It is printed as `FILE:LINE: MESSAGE`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct FileError {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// Line number from 1. `None` if the error does not concern a specific line.
    pub line: Option<usize>,
    /// The cause of the error and, where possible, a suggestion.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file)?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.message)
    }
}

/// The content of a sweep file, from which a plan is made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct File {
    pub(super) description: String,
    pub(super) seeds: Vec<u64>,
    pub(super) metrics: Vec<Metric>,
    pub(super) fixed: Vec<Assignment>,
    pub(super) axes: Vec<Axis>,
}

/// A value for an option of a run or for a setting of its scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Assignment {
    pub(super) target: Target,
    /// The values as a user would type them. Only `recipe` may have several, one for each flow.
    pub(super) values: Vec<String>,
    pub(super) line: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Target {
    Option(Key),
    /// A setting of the scenario, such as `radio.down.channel.errors.bler`.
    Setting(String),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) steps: Vec<Step>,
}

/// A value of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    /// The name in tables.
    pub(super) label: String,
    pub(super) assignments: Vec<Assignment>,
}

/// Name of the axis that varies several options at once. Its values are tables with a `name`.
const CASES: &str = "case";
const MAX_SEEDS: i64 = 1_000_000;
const TOP_LEVEL_KEYS: [&str; 6] = ["schema", "description", "seeds", "metrics", "fixed", "axes"];

impl File {
    /// Parses a sweep file. `name` identifies it in errors.
    pub(super) fn parse(text: &str, name: &str) -> Result<Self, FileError> {
        Parser { text, name }.file()
    }
}

type Value<'a> = toml::Spanned<DeValue<'a>>;

struct Entry<'t, 'a> {
    name: String,
    at: Range<usize>,
    value: &'t Value<'a>,
}

struct Parser<'a> {
    text: &'a str,
    name: &'a str,
}

impl<'a> Parser<'a> {
    fn file(&self) -> Result<File, FileError> {
        let document = DeTable::parse(self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            self.wrong(&at, format!("invalid TOML: {}", error.message().trim().replace('\n', ", ")))
        })?;
        let mut file = File {
            description: String::new(),
            seeds: Vec::new(),
            metrics: Vec::new(),
            fixed: Vec::new(),
            axes: Vec::new(),
        };
        let mut schema = None;
        for (key, value) in document.get_ref() {
            let at = value.span();
            match key.get_ref().as_ref() {
                "schema" => schema = Some(self.integer(value)?),
                "description" => file.description = self.text(value)?,
                "seeds" => file.seeds = self.seeds(value)?,
                "metrics" => file.metrics = self.metrics(value)?,
                "fixed" => {
                    for Entry { name, at, value } in self.flatten(self.table(value, "fixed")?) {
                        file.fixed.push(self.assignment(&name, &at, value)?);
                    }
                }
                "axes" => {
                    for Entry { name, at, value } in self.flatten(self.table(value, "axes")?) {
                        file.axes.push(self.axis(&name, &at, value)?);
                    }
                }
                other => {
                    let help = suggestion(other, TOP_LEVEL_KEYS);
                    return Err(
                        self.wrong(&key.span(), format!("unknown key `{other}` in a sweep file{help}"))
                    );
                }
            }
            if schema.is_some_and(|schema| schema != SCHEMA) {
                return Err(self.wrong(
                    &at,
                    format!("unsupported schema; this program reads sweep files of schema {SCHEMA}"),
                ));
            }
        }
        let missing =
            |what: &str| FileError { file: self.name.to_owned(), line: None, message: what.to_owned() };
        if schema.is_none() {
            return Err(missing(&format!("`schema = {SCHEMA}` is missing")));
        }
        if file.seeds.is_empty() {
            return Err(missing(
                "`seeds` is missing; give the number of runs per point, for example `seeds = 30`",
            ));
        }
        // Restore the order of the file, which TOML tables do not keep.
        file.fixed.sort_by_key(|assignment| assignment.line);
        file.axes.sort_by_key(|axis| axis.line);
        Ok(file)
    }

    /// Flattens nested tables, because a dotted key in TOML is a nested table, but in a sweep file one
    /// name.
    fn flatten<'t>(&self, table: &'t DeTable<'a>) -> Vec<Entry<'t, 'a>> {
        let mut entries = Vec::new();
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(inner) => entries.extend(self.flatten(inner).into_iter().map(|mut entry| {
                    entry.name = format!("{}.{}", key.get_ref(), entry.name);
                    entry
                })),
                _ => entries.push(Entry { name: key.get_ref().to_string(), at: key.span(), value }),
            }
        }
        entries
    }

    fn axis(&self, name: &str, at: &Range<usize>, value: &Value<'a>) -> Result<Axis, FileError> {
        let DeValue::Array(items) = value.get_ref() else {
            let message =
                format!("the axis `{name}` needs a list of values; put a single value into [fixed]");
            return Err(self.wrong(&value.span(), message));
        };
        if items.is_empty() {
            return Err(
                self.wrong(&value.span(), format!("the axis `{name}` has no values; list at least one"))
            );
        }
        let mut steps: Vec<Step> = Vec::new();
        for item in items {
            let step = if name == CASES { self.case(item)? } else { self.step(name, at, item)? };
            if steps.iter().any(|other| other.label == step.label) {
                let message = format!("the axis `{name}` has the value {} twice", step.label);
                return Err(self.wrong(&item.span(), message));
            }
            steps.push(step);
        }
        Ok(Axis { name: name.to_owned(), line: self.line(at), steps })
    }

    fn step(&self, name: &str, at: &Range<usize>, item: &Value<'a>) -> Result<Step, FileError> {
        let mut assignment = self.assignment(name, at, item)?;
        assignment.line = self.line(&item.span());
        Ok(Step { label: assignment.values.join(" "), assignments: vec![assignment] })
    }

    fn case(&self, item: &Value<'a>) -> Result<Step, FileError> {
        let mut step = Step { label: String::new(), assignments: Vec::new() };
        for Entry { name, at, value } in self.flatten(self.table(item, CASES)?) {
            match name.as_str() {
                "name" => step.label = self.text(value)?,
                _ => step.assignments.push(self.assignment(&name, &at, value)?),
            }
        }
        if step.label.is_empty() {
            return Err(self.wrong(&item.span(), "a case needs a `name`".to_owned()));
        }
        Ok(step)
    }

    fn assignment(&self, name: &str, at: &Range<usize>, value: &Value<'a>) -> Result<Assignment, FileError> {
        let target = match Key::by_name(name) {
            Some(key) => Target::Option(key),
            None if name.contains('.') => Target::Setting(name.to_owned()),
            None => {
                let known = Key::ALL.into_iter().map(|(name, _)| name).chain([CASES]);
                let help = suggestion(name, known);
                let message = format!(
                    "unknown axis or option `{name}`{help}; settings of a scenario have the form STAGE.KEY"
                );
                return Err(self.wrong(at, message));
            }
        };
        let values = match (value.get_ref(), &target) {
            (DeValue::Array(items), Target::Option(Key::Recipe)) => {
                items.iter().map(|item| self.text(item)).collect::<Result<_, _>>()?
            }
            (_, Target::Setting(_)) => vec![self.as_setting(value)?],
            (_, Target::Option(_)) => vec![self.scalar(value)?],
        };
        Ok(Assignment { target, values, line: self.line(at) })
    }

    /// Returns a value in the notation of `--set`. A string loses its quotes unless its text would
    /// then parse as another type.
    fn as_setting(&self, value: &Value<'a>) -> Result<String, FileError> {
        let written = self.text[value.span()].to_owned();
        Ok(match value.get_ref() {
            DeValue::String(text) if DeValue::parse(text).is_err() => text.to_string(),
            _ => written.split_whitespace().collect::<Vec<_>>().join(" "),
        })
    }

    fn scalar(&self, value: &Value<'a>) -> Result<String, FileError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) => {
                Ok(self.text[value.span()].replace('_', ""))
            }
            _ => Err(self.wrong(&value.span(), "expected a string or a number".to_owned())),
        }
    }

    fn text(&self, value: &Value<'a>) -> Result<String, FileError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.wrong(&value.span(), "expected a string in quotes".to_owned())),
        }
    }

    fn integer(&self, value: &Value<'a>) -> Result<i64, FileError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        number.ok_or_else(|| self.wrong(&value.span(), "expected a whole number".to_owned()))
    }

    fn seeds(&self, value: &Value<'a>) -> Result<Vec<u64>, FileError> {
        let wrong = |message: &str| self.wrong(&value.span(), message.to_owned());
        let seeds: Vec<u64> = match value.get_ref() {
            DeValue::Array(items) => items
                .iter()
                .map(|item| {
                    u64::try_from(self.integer(item)?).map_err(|_| wrong("a seed cannot be negative"))
                })
                .collect::<Result<_, _>>()?,
            _ => match self.integer(value)? {
                count @ 1..=MAX_SEEDS => (1..=count as u64).collect(),
                _ => return Err(wrong("expected a number of seeds from 1 to 1000000, or a list of seeds")),
            },
        };
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        match (seeds.is_empty(), sorted.len() == seeds.len()) {
            (true, _) => Err(wrong("the list of seeds is empty")),
            (_, false) => Err(wrong("the list has the same seed twice")),
            _ => Ok(seeds),
        }
    }

    fn metrics(&self, value: &Value<'a>) -> Result<Vec<Metric>, FileError> {
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.wrong(&value.span(), "expected a list of metrics".to_owned()));
        };
        let metric = |item| self.text(item)?.parse().map_err(|error: String| self.wrong(&item.span(), error));
        items.iter().map(metric).collect()
    }

    fn table<'t>(&self, value: &'t Value<'a>, name: &str) -> Result<&'t DeTable<'a>, FileError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(&value.span(), format!("expected a table for `{name}`"))),
        }
    }

    fn line(&self, at: &Range<usize>) -> usize {
        let before = self.text.as_bytes().iter().take(at.start);
        before.filter(|octet| **octet == b'\n').count() + 1
    }

    fn wrong(&self, at: &Range<usize>, message: String) -> FileError {
        FileError { file: self.name.to_owned(), line: Some(self.line(at)), message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match File::parse(text, "s.toml") {
            Ok(file) => panic!("{file:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn file_errors_name_line_and_suggestion() {
        for (text, words) in [
            ("schema = 1\nseeds = = 3\n", "s.toml:2: invalid TOML"),
            ("schema = 1\nseed = 3\n", "s.toml:2: unknown key `seed` in a sweep file: did you mean `seeds`?"),
            (
                "schema = 2\nseeds = 3\n",
                "s.toml:1: unsupported schema; this program reads sweep files of schema 1",
            ),
            ("schema = 1\n", "s.toml: `seeds` is missing"),
            ("seeds = 1\n", "s.toml: `schema = 1` is missing"),
            ("schema = 1\nseeds = 0\n", "s.toml:2: expected a number of seeds"),
            ("schema = 1\nseeds = [1, 1]\n", "s.toml:2: the list has the same seed twice"),
            (
                "schema = 1\nseeds = 1\n[axes]\nrecipes = [\"sack\"]\n",
                "s.toml:4: unknown axis or option `recipes`: did you mean `recipe`?",
            ),
            (
                "schema = 1\nseeds = 1\n[axes]\nrecipe = \"sack\"\n",
                "s.toml:4: the axis `recipe` needs a list",
            ),
            (
                "schema = 1\nseeds = 1\n[axes]\nflows = []\n",
                "s.toml:4: the axis `flows` has no values; list at least one",
            ),
            (
                "schema = 1\nseeds = 1\n[axes]\nflows = [1,\n2,\n1]\n",
                "s.toml:6: the axis `flows` has the value 1 twice",
            ),
            ("schema = 1\nseeds = 1\n[axes]\ncase = [{ flows = 2 }]\n", "s.toml:4: a case needs a `name`"),
            (
                "schema = 1\nseeds = 1\nmetrics = [\"goodputs\"]\n",
                "s.toml:3: unknown metric `goodputs`: did you mean `goodput`?",
            ),
        ] {
            let problem = problem(text);
            assert!(problem.starts_with(words), "{problem}");
            assert_eq!(problem.lines().count(), 1, "{problem}");
        }
    }

    #[test]
    fn axes_keep_file_order_and_values_are_parsed() {
        let text = "schema = 1\nseeds = [7, 3]\n[fixed]\nbytes = 100_000\nwire.down.queue = { packets = 5 }\n\
                    [axes]\nradio.down.per = [\"5%\", 0.1]\nrecipe = [\"reno\", [\"reno\", \"sack\"]]\n\
                    case = [{ name = \"short\", \"wire.up.delay\" = \"1ms\", flows = 2 }]\n";
        let file = File::parse(text, "s.toml").unwrap();
        assert_eq!(file.seeds, [7, 3]);
        let axes: Vec<_> = file.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(axes, ["radio.down.per", "recipe", "case"]);
        let labels: Vec<_> = file.axes.iter().flat_map(|axis| &axis.steps).map(|step| &step.label).collect();
        assert_eq!(labels, ["5%", "0.1", "reno", "reno sack", "short"]);
        assert_eq!(file.fixed[0].values, ["100000"]);
        let queue = Target::Setting("wire.down.queue.packets".to_owned());
        assert_eq!((&file.fixed[1].target, file.fixed[1].values[0].as_str()), (&queue, "5"));
    }
}
