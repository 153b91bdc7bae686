//! Splits shell text into simple commands, removes quotes and substitutes variables.

use std::collections::BTreeMap;

use super::arithmetic;

/// A simple command.
#[derive(Debug)]
pub(super) struct Simple {
    pub(super) words: Vec<String>,
    /// Target of `> FILE`. `None` if the output is discarded (/dev/null) or redirected to another descriptor.
    pub(super) output: Option<String>,
    pub(super) joined: Joined,
    /// Whether the output is piped to the next command.
    pub(super) piped: bool,
    /// Line of the first word, from 1.
    pub(super) line: usize,
    /// The command as written.
    pub(super) text: String,
}

/// The connection of a command with the previous one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Joined {
    /// A newline, `;`, `&`, `&&` or `|`.
    Follows,
    /// `||`.
    Or,
}

pub(super) struct Lexer<'a> {
    text: &'a str,
    at: usize,
    joined: Joined,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0, joined: Joined::Follows }
    }

    pub(super) fn next(&mut self, variables: &BTreeMap<String, String>) -> Option<Simple> {
        loop {
            self.skip(|c| c.is_whitespace() || c == ';' || c == '&');
            if self.rest().is_empty() {
                return None;
            }
            if self.rest().starts_with('#') {
                self.skip(|c| c != '\n');
                continue;
            }
            let simple = self.simple(variables);
            if !simple.text.is_empty() {
                return Some(simple);
            }
        }
    }

    fn simple(&mut self, variables: &BTreeMap<String, String>) -> Simple {
        let start = self.at;
        let line = 1 + self.text[..start].matches('\n').count();
        let joined = std::mem::replace(&mut self.joined, Joined::Follows);
        let (mut words, mut output, mut piped) = (Vec::new(), None, false);
        let end = loop {
            self.skip(|c| c.is_whitespace() && c != '\n');
            let (rest, end) = (self.rest(), self.at);
            let operator = ["\\\n", "&&", "||", "\n", ";", "&", "|", "#", "(", ")"]
                .into_iter()
                .find(|operator| rest.starts_with(operator));
            match operator {
                None if rest.is_empty() => break end,
                None => {}
                Some("#") => {
                    self.skip(|c| c != '\n');
                    continue;
                }
                Some(bracket @ ("(" | ")")) => {
                    self.at += 1;
                    words.push(bracket.to_owned());
                    continue;
                }
                Some(operator) => {
                    self.at += operator.len();
                    match operator {
                        "\\\n" => continue,
                        "||" => self.joined = Joined::Or,
                        "|" => piped = true,
                        _ => {}
                    }
                    break end;
                }
            }
            if let Some(length) = redirection(rest) {
                let input = rest[..length].contains('<');
                self.at += length;
                self.skip(|c| c == ' ' || c == '\t');
                let target = self.word(variables);
                if !input && target != "/dev/null" && !rest[..length].ends_with('&') {
                    output = Some(target);
                }
                continue;
            }
            words.push(self.word(variables));
        };
        let text = self.text[start..end].split_whitespace().collect::<Vec<_>>().join(" ");
        Simple { words, output, joined, piped, line, text }
    }

    fn word(&mut self, variables: &BTreeMap<String, String>) -> String {
        let (mut word, mut quote) = (String::new(), None);
        while let Some(c) = self.rest().chars().next() {
            match (c, quote) {
                (c, Some(open)) if c == open => quote = None,
                ('"' | '\'', None) => quote = Some(c),
                ('\\', None | Some('"')) => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        None => break,
                        Some('\n') => {}
                        Some(escaped) if quote.is_none() || "\"\\$`".contains(escaped) => word.push(escaped),
                        Some(other) => word.extend(['\\', other]),
                    }
                    self.at += self.rest().chars().next().map_or(0, char::len_utf8);
                    continue;
                }
                ('$', None | Some('"')) => {
                    let (value, length) = expanded(self.rest(), variables);
                    // An unknown variable remains as written, so that it is not mistaken for a number.
                    word.push_str(value.as_deref().unwrap_or_else(|| &self.rest()[..length]));
                    self.at += length;
                    continue;
                }
                (c, None) if c.is_whitespace() || ";&|<>()".contains(c) => break,
                (c, _) => word.push(c),
            }
            self.at += c.len_utf8();
        }
        word
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self, is: impl Fn(char) -> bool) {
        self.at += self.rest().find(|c| !is(c)).unwrap_or_else(|| self.rest().len());
    }
}

/// Returns the length of a redirection operator: `>`, `2>`, `>>`, `>&`, `&>`, `<`.
fn redirection(rest: &str) -> Option<usize> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let operator =
        [">>", ">&", ">|", ">", "<<", "<&", "<"].into_iter().find(|op| rest[digits..].starts_with(op))?;
    Some(digits + operator.len())
}

/// Returns the value of the variable or arithmetic expression after a `$`, if it is known, and the
/// length of the whole text that it replaces.
fn expanded(rest: &str, variables: &BTreeMap<String, String>) -> (Option<String>, usize) {
    if let Some(inside) = arithmetic::inside(rest) {
        let value = arithmetic::value(inside, variables).map(|value| value.to_string());
        return (value, "$((".len() + inside.len() + "))".len());
    }
    let (name, length) = variable(rest);
    (variables.get(name).cloned(), length)
}

/// Returns the name of the variable after a `$`, and the length of the whole reference.
fn variable(rest: &str) -> (&str, usize) {
    if let Some(inside) = rest.strip_prefix("${")
        && let Some(end) = inside.find('}')
    {
        return (&inside[..end], end + 3);
    }
    let name = rest[1..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len() - 1);
    let length = if name == 0 && rest[1..].starts_with(['@', '*']) { 1 } else { name };
    (&rest[1..1 + length], 1 + length)
}
