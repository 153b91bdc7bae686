//! What is wrong with a scenario, and where: file, line and column, the line itself with a caret, and what to write
//! instead.

use std::fmt;
use std::sync::Arc;

/// A text that settings were read from.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) echo: Echo,
}

/// Whether errors repeat what stands in a text. A scenario may name any file as the one that it extends, and whoever
/// wrote it may see the errors: a password is not to be among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Echo {
    Lines,
    Places,
}

/// Octets `start..end` of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) source: Arc<Source>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Everything that is wrong with a scenario; at least one thing is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File and place in it. `None`: it is not in a text, or no place in particular.
    pub place: Option<Place>,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
}

/// Where in a text something is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of the file, or the name of the preset.
    pub file: String,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// The line as it stands there. `None` of a file that nowhere says `schema =`: it may be anything.
    pub text: Option<String>,
    /// How many characters are meant.
    pub width: usize,
}

impl Source {
    /// A text of this program, or one that a person has typed.
    pub(super) fn new(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), text: text.to_owned(), echo: Echo::Lines })
    }

    /// A file, which may be something other than a scenario.
    pub(super) fn of_file(name: &str, text: String) -> Arc<Self> {
        let is_schema = |line: &str| {
            let rest = line.trim_start().strip_prefix("schema");
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let echo = if text.lines().any(is_schema) { Echo::Lines } else { Echo::Places };
        Arc::new(Self { name: name.to_owned(), text, echo })
    }
}

impl Location {
    pub(super) fn place(&self) -> Place {
        let text = &self.source.text;
        let floor = |mut at: usize| {
            at = at.min(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            at
        };
        let (start, end) = (floor(self.start), floor(self.end.max(self.start)));
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        Place {
            file: self.source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: match self.source.echo {
                Echo::Lines => Some(text[line_start..line_end].trim_end_matches('\r').to_owned()),
                Echo::Places => None,
            },
            width: text[start..end.min(line_end)].chars().count().max(1),
        }
    }
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { place: None, message: message.into(), help: None }
    }

    pub(super) fn at(mut self, location: &Location) -> Self {
        self.place = Some(location.place());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl ScenarioError {
    /// There is at least one.
    pub(super) fn several(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// In the order of their places.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl From<Problem> for ScenarioError {
    fn from(problem: Problem) -> Self {
        Self { problems: vec![problem] }
    }
}

impl std::error::Error for ScenarioError {}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Place { file, line, column, .. }) = &self.place {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        write!(f, "{}", self.message)?;
        if let Some(Place { line, column, text: Some(text), width, .. }) = &self.place {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            // Tabs stay tabs, so that the caret stands below what it means.
            let before: String =
                text.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n  {number} | {text}\n  {margin} | {before}{}", "^".repeat(*width))?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n  {help}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_below_what_it_means() {
        let source = Source::new("x.toml", "a = 1\n\tdown = { dely = 5 }\n");
        let start = source.text.find("dely").unwrap();
        let location = Location { source, start, end: start + 4 };
        let shown = Problem::new("no").at(&location).help("yes").to_string();
        assert_eq!(shown, "x.toml:2:11: no\n  2 | \tdown = { dely = 5 }\n    | \t         ^^^^\n  yes");
    }

    #[test]
    fn a_place_is_found_at_the_very_end_and_within_letters_of_several_octets() {
        let source = Source::new("x", "é = ü");
        let end = Location { source: source.clone(), start: 99, end: 120 }.place();
        assert_eq!((end.line, end.column, end.width), (1, 6, 1));
        let inside = Location { source, start: 1, end: 2 }.place();
        assert_eq!((inside.line, inside.column), (1, 1));
    }
}
