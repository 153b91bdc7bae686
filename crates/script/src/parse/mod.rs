//! The parser: builds a [`Script`] from tokens and handles settings, times and includes. Submodules
//! parse packets and calls.

mod call;
mod packet;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use airfiles::{PathSource, limits};
use airwire::time::Duration;

use super::ast::{Action, Flag, Named, Position, Script, ScriptEvent, TimeBase, When};
use super::lex::{self, Token, TokenKind};
use super::python::Block;

/// Error: the script cannot be parsed. No line has run.
#[derive(Debug, thiserror::Error)]
#[error("{position}: {message}")]
pub struct ParseError {
    /// The position of the error.
    pub position: Position,
    /// The cause of the error.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(position: Position, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }
}

/// Maximum include depth. Deeper nesting means that a file includes itself.
const MAX_DEPTH: usize = 8;

/// Names and their values, from `--define=NAME=VALUE`.
pub(crate) type Defines = BTreeMap<String, String>;

/// Reads a script and all its includes. The caller's definitions override the script's.
pub(crate) fn load(path: &Path, defines: Defines) -> Result<Script, ParseError> {
    let read = airfiles::read_text(path, PathSource::User, limits::WRITTEN_BY_HAND).map_err(|error| {
        let position = Position::of_line(Rc::new(path.to_owned()), 0);
        ParseError::new(position, format!("cannot read the script: {error}"))
    })?;
    text(path, &read, defines)
}

/// Returns whether the file name, with all symbolic links resolved, ends in `.pkt`.
fn is_script(path: &Path) -> bool {
    path.canonicalize().is_ok_and(|path| path.extension().is_some_and(|extension| extension == "pkt"))
}

/// Parses a script from its text.
pub(crate) fn text(path: &Path, text: &str, defines: Defines) -> Result<Script, ParseError> {
    let own = Rc::new(path.to_owned());
    let mut script = Script::default();
    file(&mut script, &own, text, 0, &defines)?;
    // Move the includes' flags to the front, so that the script's own flags come later and take
    // effect.
    script.settings.flags.sort_by_key(|flag| flag.position.file == own);
    Ok(script)
}

/// Parses a script that is not in a file.
#[cfg(test)]
pub(crate) fn parse(script: &str) -> Result<Script, ParseError> {
    text(Path::new("test.pkt"), script, Defines::new())
}

fn file(
    script: &mut Script,
    path: &Rc<PathBuf>,
    text: &str,
    depth: usize,
    defines: &Defines,
) -> Result<(), ParseError> {
    let tokens = lex::tokens(text).map_err(|error| ParseError {
        position: Position { column: error.column, ..Position::of_line(Rc::clone(path), error.line) },
        message: error.message,
    })?;
    Parser {
        file: Rc::clone(path),
        text,
        tokens,
        at: 0,
        depth,
        outer_defines: defines,
        defines: Defines::new(),
    }
    .file(script)
}

struct Parser<'a> {
    file: Rc<PathBuf>,
    text: &'a str,
    /// Ends with `TokenKind::End`.
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    /// Definitions from the caller or the including file.
    outer_defines: &'a Defines,
    /// Definitions in this file.
    defines: Defines,
}

impl Parser<'_> {
    fn file(&mut self, script: &mut Script) -> Result<(), ParseError> {
        let mut substituted = false;
        loop {
            match self.peek().clone() {
                TokenKind::End => return Ok(()),
                TokenKind::Flag(name, value) => {
                    if let ("define", Some(value)) = (name.as_str(), &value) {
                        let (name, value) = definition(value).map_err(|message| self.error(message))?;
                        self.defines.insert(name, value);
                    }
                    script.settings.flags.push(Flag { position: self.position(), name, value });
                    self.at += 1;
                }
                TokenKind::Directive(word, argument) => self.directive(script, &word, argument)?,
                _ => {
                    if !std::mem::replace(&mut substituted, true) {
                        self.substitute();
                    }
                    let event = self.event()?;
                    script.events.push(event);
                }
            }
        }
    }

    fn directive(&mut self, script: &mut Script, word: &str, name: String) -> Result<(), ParseError> {
        if name.is_empty() {
            return Err(self.error(format!("`{word}` needs a name on the same line")));
        }
        let named = Named { position: self.position(), name, depth: self.depth };
        match word {
            "recipe" => self.name(&mut script.settings.recipe, word, named)?,
            "profile" => self.name(&mut script.settings.profile, word, named)?,
            _ => self.include(script, &named.name)?,
        }
        self.at += 1;
        Ok(())
    }

    /// Sets the recipe or profile. The outermost file takes precedence, and a repetition within one
    /// file is an error.
    fn name(&self, slot: &mut Option<Named>, word: &str, named: Named) -> Result<(), ParseError> {
        match slot {
            Some(old) if old.position.file == named.position.file => {
                Err(self.error(format!("`{word}` was already given at {}", old.position)))
            }
            Some(old) if old.depth < named.depth => Ok(()),
            _ => {
                *slot = Some(named);
                Ok(())
            }
        }
    }

    /// Includes a file from the directory of the including file, or from an `include` directory
    /// there or in a parent directory.
    fn include(&self, script: &mut Script, name: &str) -> Result<(), ParseError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("includes are nested more than {MAX_DEPTH} deep at `{name}`")));
        }
        let directory = self.file.parent().unwrap_or_else(|| Path::new(""));
        let candidates = std::iter::once(directory.join(name))
            .chain(directory.ancestors().map(|ancestor| ancestor.join("include").join(name)));
        let Some((path, text)) = candidates.into_iter().find_map(|path| {
            let text = airfiles::read_text(&path, PathSource::File, limits::WRITTEN_BY_HAND).ok()?;
            Some((path, text))
        }) else {
            return Err(self.error(format!(
                "`{name}` found neither in {} nor in an `include` directory there or above",
                if directory.as_os_str().is_empty() { Path::new(".") } else { directory }.display()
            )));
        };
        let mut defines = self.defines.clone();
        defines.extend(self.outer_defines.clone());
        let path = Rc::new(path);
        file(script, &path, &text, self.depth + 1, &defines).map_err(|error| {
            match *error.position.file == *path {
                true if !is_script(&path) => {
                    // The file may be any file on the system, so the message must not quote its
                    // content.
                    let message = "not a line of a packet script, and the file name does not end in .pkt";
                    ParseError::new(error.position, message)
                }
                _ => error,
            }
        })
    }

    fn event(&mut self) -> Result<ScriptEvent, ParseError> {
        let position = self.line();
        let first = self.at;
        let when = self.when()?;
        let action = match self.peek().clone() {
            TokenKind::Punct('<' | '>') => self.packet()?,
            TokenKind::Word(_) => Action::Call(self.call()?),
            TokenKind::Shell(command) => {
                self.at += 1;
                Action::Shell(command.trim().to_owned())
            }
            TokenKind::Code(code) => {
                let position = self.line();
                let block = Block::parse(&code).map_err(|(line, message)| {
                    ParseError::new(Position { line: position.line + line, ..position.clone() }, message)
                })?;
                self.at += 1;
                Action::Code(block, position.line)
            }
            other => {
                return Err(self.error(format!(
                    "expected a packet (`<` or `>`), a call, `%{{` or a shell line, found {other}"
                )));
            }
        };
        const RANGE: &str =
            "`...` between two times is only for calls that block, `~` only for packets that the host sends";
        let problem = match (when, &action) {
            (When::Blocking(..), Action::Call(_)) | (When::Window(..) | When::Any, Action::Outbound(..)) => {
                None
            }
            (When::Blocking(..) | When::Window(..), _) => Some(RANGE),
            (When::Any, _) => Some("`*` is only for packets that the host sends; give a time"),
            (When::At(..), _) | (When::Immediately, Action::Shell(_) | Action::Code(..)) => None,
            (When::Immediately, _) => Some("expected a time such as +0 or 0.100 before this"),
        };
        if let Some(message) = problem {
            return Err(ParseError::new(position, message));
        }
        let text = &self.text[self.tokens[first].start..self.tokens[self.at - 1].end];
        let without_comments = text.lines().filter_map(|line| line.split("//").next());
        let words: Vec<&str> = without_comments.flat_map(str::split_whitespace).collect();
        Ok(ScriptEvent { position, when, action, text: words.join(" ") })
    }

    fn when(&mut self) -> Result<When, ParseError> {
        match self.peek() {
            TokenKind::Shell(_) | TokenKind::Code(_) | TokenKind::Punct('<' | '>') => {
                return Ok(When::Immediately);
            }
            TokenKind::Punct('*') => {
                self.at += 1;
                return Ok(When::Any);
            }
            _ => {}
        }
        let (base, start) = self.time()?;
        let window = match self.peek() {
            TokenKind::Ellipsis => false,
            TokenKind::Punct('~') => true,
            _ => return Ok(When::At(base, start)),
        };
        self.at += 1;
        // Both times have the same base, even if only the first one has a `+`.
        let (end_base, end) = self.time()?;
        if end < start || (end_base, base) == (TimeBase::Previous, TimeBase::Start) {
            return Err(self.error("the end of this range is before its start"));
        }
        Ok(if window { When::Window(base, start, end) } else { When::Blocking(base, start, end) })
    }

    fn time(&mut self) -> Result<(TimeBase, Duration), ParseError> {
        let base = if self.eat('+') { TimeBase::Previous } else { TimeBase::Start };
        let TokenKind::Number(text) = self.peek() else {
            return Err(self.error(format!("expected a time such as +0 or 0.100, found {}", self.peek())));
        };
        let Some(time) = seconds(text) else {
            return Err(
                self.error(format!("`{text}` is not a time in seconds such as 0.100, up to {MAX_SECONDS}"))
            );
        };
        self.at += 1;
        Ok((base, time))
    }

    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    /// Returns the token after the current one.
    fn peek_next(&self) -> &TokenKind {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    fn eat(&mut self, c: char) -> bool {
        let found = *self.peek() == TokenKind::Punct(c);
        self.at += usize::from(found);
        found
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Word(found) if found == word);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, c: char) -> Result<(), ParseError> {
        if self.eat(c) {
            return Ok(());
        }
        Err(self.error(format!("expected `{c}`, found {}", self.peek())))
    }

    fn word(&mut self, what: &str) -> Result<String, ParseError> {
        let TokenKind::Word(word) = self.peek().clone() else {
            return Err(self.error(format!("expected {what}, found {}", self.peek())));
        };
        self.at += 1;
        Ok(word)
    }

    /// Parses `WORD N` if the next token is `word`.
    fn optional<T: TryFrom<i64>>(&mut self, word: &str, what: &str) -> Result<Option<T>, ParseError> {
        if self.eat_word(word) { self.integer(what).map(Some) } else { Ok(None) }
    }

    /// Parses an integer that fits the type. `what` describes it in the error message.
    fn integer<T: TryFrom<i64>>(&mut self, what: &str) -> Result<T, ParseError> {
        let negative = self.eat('-');
        let TokenKind::Number(text) = self.peek() else {
            return Err(self.error(format!("expected {what}, found {}", self.peek())));
        };
        let value = match text.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok(),
            None => text.parse::<i64>().ok(),
        };
        let value = value.map(|value| if negative { -value } else { value });
        let Some(value) = value.and_then(|value| T::try_from(value).ok()) else {
            return Err(self.error(format!("`{text}` is not {what}")));
        };
        self.at += 1;
        Ok(value)
    }

    /// Replaces defined names in all tokens after the flags. This happens once, so that values are
    /// not themselves replaced.
    fn substitute(&mut self) {
        for token in &mut self.tokens[self.at..] {
            if let TokenKind::Word(word) = &token.kind
                && let Some(value) = self.outer_defines.get(word).or_else(|| self.defines.get(word))
            {
                token.kind = lex::defined(value);
            }
        }
    }

    fn position(&self) -> Position {
        let token = &self.tokens[self.at];
        Position { column: lex::column(self.text, token.start), ..self.line() }
    }

    fn line(&self) -> Position {
        Position::of_line(Rc::clone(&self.file), self.tokens[self.at].line)
    }

    fn error(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.position(), message)
    }
}

/// Splits `NAME=VALUE`.
pub(crate) fn definition(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`--define={text}`: expected NAME=VALUE")),
    }
}

/// Maximum time of one line. The sum over thousands of lines fits the clock.
const MAX_SECONDS: u64 = 1_000_000;

/// Parses decimal seconds, exact to the nanosecond.
fn seconds(text: &str) -> Option<Duration> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    if whole > MAX_SECONDS {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(Duration::from_nanos(whole.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

#[cfg(test)]
mod tests;
