//! The lexer of scripts: splits a text into tokens with line numbers.

use std::fmt;

/// A token. `line` counts from 1.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Token {
    pub(crate) line: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum TokenKind {
    /// A number as written: `12`, `.1`, `0.250`, `0x10`.
    Number(String),
    Word(String),
    Text(String),
    /// `...`
    Ellipsis,
    Punct(char),
    /// `` `shell` ``
    Shell(String),
    /// `%{ code }%`
    Code(String),
    /// `--name=value` or `--name`; only at the start of a line.
    Flag(String, Option<String>),
    /// `recipe NAME`, `profile NAME`, `include FILE`; only at the start of a line.
    Directive(String, String),
    End,
}

#[derive(Clone, PartialEq, Debug)]
pub(crate) struct LexError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
}

/// Returns the column of a byte offset, in characters from 1.
pub(crate) fn column(text: &str, at: usize) -> usize {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..at].chars().count() + 1
}

const DIRECTIVES: [&str; 3] = ["recipe", "profile", "include"];

/// Splits the whole text at once, because scripts are small.
pub(crate) fn tokens(text: &str) -> Result<Vec<Token>, LexError> {
    let mut lexer = Lexer { text, at: 0, line: 1, line_start: true };
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next_token()?;
        let done = token.kind == TokenKind::End;
        tokens.push(token);
        if done {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    /// Whether there were only blanks since the last newline.
    line_start: bool,
}

impl Lexer<'_> {
    fn next_token(&mut self) -> Result<Token, LexError> {
        self.skip_blanks()?;
        let (line, start, line_start) = (self.line, self.at, self.line_start);
        self.line_start = false;
        let kind = self.kind(line_start)?;
        Ok(Token { line, start, end: self.at, kind })
    }

    fn kind(&mut self, line_start: bool) -> Result<TokenKind, LexError> {
        let rest = &self.text[self.at..];
        let Some(first) = rest.chars().next() else {
            return Ok(TokenKind::End);
        };
        if line_start && let Some(kind) = self.whole_line(rest) {
            return Ok(kind);
        }
        if rest.starts_with("...") {
            self.at += 3;
            return Ok(TokenKind::Ellipsis);
        }
        if rest.starts_with("%{") {
            return Ok(TokenKind::Code(self.delimited(2, "}%")?));
        }
        match first {
            '`' => Ok(TokenKind::Shell(self.delimited(1, "`")?)),
            '"' => Ok(TokenKind::Text(self.delimited(1, "\"")?)),
            '0'..='9' => Ok(self.number(rest)),
            '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) => Ok(self.number(rest)),
            c if c.is_ascii_alphabetic() || c == '_' => {
                let word: String = rest.chars().take_while(|&c| is_word(c)).collect();
                self.at += word.len();
                Ok(TokenKind::Word(word))
            }
            c if "<>()[]{}:,=+*~.|-".contains(c) => {
                self.at += 1;
                Ok(TokenKind::Punct(c))
            }
            c => Err(self.error(format!("unexpected `{c}`"))),
        }
    }

    /// Parses the tokens that are only recognised at the start of a line: flags and the three
    /// directives.
    fn whole_line(&mut self, rest: &str) -> Option<TokenKind> {
        let line = rest.split('\n').next().unwrap_or_default();
        if let Some(flag) = line.strip_prefix("--") {
            let name: String = flag.chars().take_while(|&c| is_word(c) || c == '-').collect();
            let after = &flag[name.len()..];
            let (value, length) = match after.trim_start().strip_prefix('=') {
                None => (None, 0),
                Some(value) => {
                    let value = value.trim_start();
                    let length = flag_value_len(value);
                    (Some(unquoted(&value[..length]).to_owned()), after.len() - value.len() + length)
                }
            };
            self.at += 2 + name.len() + length;
            // Several flags may share a line.
            self.line_start = true;
            return Some(TokenKind::Flag(name.replace('-', "_"), value));
        }
        let word = line.split_whitespace().next()?;
        if !DIRECTIVES.contains(&word) {
            return None;
        }
        self.at += line.len();
        let argument = line[word.len()..].split("//").next().unwrap_or_default();
        Some(TokenKind::Directive(word.to_owned(), argument.trim().to_owned()))
    }

    fn number(&mut self, rest: &str) -> TokenKind {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let length = if rest.starts_with("0x") || rest.starts_with("0X") {
            2 + rest[2..].bytes().take_while(u8::is_ascii_hexdigit).count()
        } else {
            let whole = digits(rest);
            let fraction = rest[whole..].strip_prefix('.').map_or(0, digits);
            whole + if fraction > 0 { 1 + fraction } else { 0 }
        };
        self.at += length;
        TokenKind::Number(rest[..length].to_owned())
    }

    /// Returns the text between an opening delimiter of `open` bytes and `close`. Counts the
    /// newlines inside.
    fn delimited(&mut self, open: usize, close: &str) -> Result<String, LexError> {
        let inside = &self.text[self.at + open..];
        let Some(length) = inside.find(close) else {
            return Err(self.error(format!("the closing `{close}` is missing")));
        };
        let inside = inside[..length].to_owned();
        self.line += inside.matches('\n').count();
        self.at += open + length + close.len();
        Ok(inside)
    }

    fn skip_blanks(&mut self) -> Result<(), LexError> {
        loop {
            let rest = &self.text[self.at..];
            let after_blank = self.at == 0 || self.text[..self.at].ends_with(char::is_whitespace);
            if rest.starts_with('\n') {
                self.line += 1;
                self.at += 1;
                self.line_start = true;
            } else if let Some(blank) = rest.chars().next().filter(|c| c.is_whitespace()) {
                self.at += blank.len_utf8();
            } else if rest.starts_with("//") || (rest.starts_with('#') && after_blank) {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else if rest.starts_with("/*") {
                let line_start = self.line_start;
                self.delimited(2, "*/")?;
                self.line_start = line_start;
            } else {
                return Ok(());
            }
        }
    }

    fn error(&self, message: String) -> LexError {
        LexError { line: self.line, column: column(self.text, self.at), message }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Returns the length of a value up to the next blank outside quotes: `CC="new reno"` is one value.
fn flag_value_len(rest: &str) -> usize {
    let mut open = None;
    for (at, c) in rest.char_indices() {
        match open {
            Some(quote) if quote == c => open = None,
            Some(_) => {}
            None if c.is_whitespace() => return at,
            None if c == '"' || c == '`' => open = Some(c),
            None => {}
        }
    }
    rest.len()
}

/// Removes quotes that surround the whole value.
fn unquoted(value: &str) -> &str {
    value.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(value)
}

/// Returns the token that replaces a name given with `--define`. As in packetdrill, this is a
/// string, a shell line or a word.
pub(crate) fn defined(value: &str) -> TokenKind {
    match value.strip_prefix('`').and_then(|value| value.strip_suffix('`')) {
        Some(command) => TokenKind::Shell(command.to_owned()),
        None if value.starts_with('"') => TokenKind::Text(unquoted(value).to_owned()),
        None => TokenKind::Word(value.to_owned()),
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(text) | Self::Word(text) => write!(f, "`{text}`"),
            Self::Text(text) => write!(f, "\"{text}\""),
            Self::Ellipsis => f.write_str("`...`"),
            Self::Punct(c) => write!(f, "`{c}`"),
            Self::Shell(_) => f.write_str("a shell line"),
            Self::Code(_) => f.write_str("`%{`"),
            Self::Flag(name, _) => write!(f, "`--{name}`"),
            Self::Directive(word, _) => write!(f, "`{word}`"),
            Self::End => f.write_str("the end of the file"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<TokenKind> {
        tokens(text).unwrap().into_iter().map(|token| token.kind).collect()
    }

    #[test]
    fn ellipsis_between_numbers_is_not_parsed_as_fraction() {
        let number = |text: &str| TokenKind::Number(text.to_owned());
        assert_eq!(kinds(".1...0.2"), [number(".1"), TokenKind::Ellipsis, number("0.2"), TokenKind::End]);
        assert_eq!(kinds("0...2"), [number("0"), TokenKind::Ellipsis, number("2"), TokenKind::End]);
    }

    #[test]
    fn comments_are_skipped_and_their_lines_counted() {
        let tokens = tokens("# one\n// two\n/* three\n four */ x # five\ny").unwrap();
        assert_eq!((tokens[0].line, &tokens[0].kind), (4, &TokenKind::Word("x".into())));
        assert_eq!((tokens[1].line, &tokens[1].kind), (5, &TokenKind::Word("y".into())));
    }

    #[test]
    fn directives_and_flags_need_start_of_line() {
        assert_eq!(
            kinds("recipe newreno+sifest // why\n--mtu=1500 --strict-segments\n+0 recipe"),
            [
                TokenKind::Directive("recipe".into(), "newreno+sifest".into()),
                TokenKind::Flag("mtu".into(), Some("1500".into())),
                TokenKind::Flag("strict_segments".into(), None),
                TokenKind::Punct('+'),
                TokenKind::Number("0".into()),
                TokenKind::Word("recipe".into()),
                TokenKind::End,
            ]
        );
    }

    #[test]
    fn quoted_flag_value_is_one_token() {
        let flag = |name: &str, value: &str| TokenKind::Flag(name.into(), Some(value.into()));
        assert_eq!(
            kinds("--define=CC=\"new reno\" --so_flags = \"a=1,b=2\"\n--ip_version=ipv4-mapped-ipv6"),
            [
                flag("define", "CC=\"new reno\""),
                flag("so_flags", "a=1,b=2"),
                flag("ip_version", "ipv4-mapped-ipv6"),
                TokenKind::End,
            ]
        );
    }

    #[test]
    fn unclosed_block_error_reports_its_line() {
        let error = tokens("\n\n%{ assert 1").unwrap_err();
        assert_eq!((error.line, error.column), (3, 1));
        assert_eq!(error.message, "the closing `}%` is missing");
    }
}
