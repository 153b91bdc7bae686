//! Errors in a scenario. Each has its file, line and column, the line with a caret, and advice.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text from which settings were read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) quoting: Quoting,
}

/// Whether errors quote lines of the text or only name positions. A scenario can extend any file, and its
/// author may see the errors, so quotes could reveal secrets such as passwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quoting {
    Lines,
    Positions,
}

/// Bytes `start..end` of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Location {
    pub(super) source: Arc<Source>,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// All problems of a scenario. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    problems: Vec<Problem>,
}

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// File and position. `None`: the problem does not have a position in a text.
    pub position: Option<TextPosition>,
    /// Description of the problem.
    pub message: String,
    /// Advice on what to write instead.
    pub help: Option<String>,
}

/// Position of a problem in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPosition {
    /// Path of the file, or name of the preset.
    pub file: String,
    /// Line number, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The line. `None` for a file without a `schema =` line, which may not be a scenario at all.
    pub text: Option<String>,
    /// Number of characters to mark.
    pub width: usize,
}

impl Source {
    /// A text from this program or typed by the user.
    pub(super) fn new(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), text: text.to_owned(), quoting: Quoting::Lines })
    }

    /// The text of a file, which may not be a scenario.
    pub(super) fn of_file(name: &str, text: String) -> Arc<Self> {
        let is_schema = |line: &str| {
            let rest = line.trim_start().strip_prefix("schema");
            rest.is_some_and(|rest| rest.trim_start().starts_with('='))
        };
        let quoting = if text.lines().any(is_schema) { Quoting::Lines } else { Quoting::Positions };
        Arc::new(Self { name: name.to_owned(), text, quoting })
    }
}

impl Location {
    pub(super) fn new(source: &Arc<Source>, bytes: Range<usize>) -> Self {
        Self { source: source.clone(), start: bytes.start, end: bytes.end }
    }

    pub(super) fn text_position(&self) -> TextPosition {
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
        TextPosition {
            file: self.source.name.clone(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            text: match self.source.quoting {
                Quoting::Lines => Some(text[line_start..line_end].trim_end_matches('\r').to_owned()),
                Quoting::Positions => None,
            },
            width: text[start..end.min(line_end)].chars().count().max(1),
        }
    }
}

impl Problem {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { position: None, message: message.into(), help: None }
    }

    pub(super) fn at(mut self, location: &Location) -> Self {
        self.position = Some(location.text_position());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl ScenarioError {
    /// Creates an error from at least one problem.
    pub(super) fn several(problems: Vec<Problem>) -> Self {
        Self { problems }
    }

    /// The problems, in order of position.
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
        let problems: Vec<String> = self.problems.iter().map(Problem::to_string).collect();
        f.write_str(&problems.join("\n"))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(TextPosition { file, line, column, .. }) = &self.position {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        write!(f, "{}", self.message)?;
        if let Some(TextPosition { line, column, text: Some(text), width, .. }) = &self.position {
            let number = line.to_string();
            let margin = " ".repeat(number.len());
            // Keep tabs, so that the caret is below the marked text.
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
    fn carets_underline_offending_text() {
        let source = Source::new("x.toml", "a = 1\n\tdown = { dely = 5 }\n");
        let start = source.text.find("dely").unwrap();
        let location = Location::new(&source, start..start + 4);
        let shown = Problem::new("no").at(&location).help("yes").to_string();
        assert_eq!(shown, "x.toml:2:11: no\n  2 | \tdown = { dely = 5 }\n    | \t         ^^^^\n  yes");
    }

    #[test]
    fn place_is_clamped_to_text_and_character_boundaries() {
        let source = Source::new("x", "é = ü");
        let end = Location::new(&source, 99..120).text_position();
        assert_eq!((end.line, end.column, end.width), (1, 6, 1));
        let inside = Location::new(&source, 1..2).text_position();
        assert_eq!((inside.line, inside.column), (1, 1));
    }
}
