//! Splits Python code into tokens.

use super::Problem;
use super::value::Value;

#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Line, counted from the one with `%{`.
    pub(super) line: usize,
    /// Position in the code, in bytes.
    pub(super) start: usize,
    pub(super) end: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum Kind {
    /// The beginning of a line outside brackets that is not blank, with its indentation in columns.
    Line(usize),
    Name(String),
    Number(Value),
    Text(String),
    Operator(&'static str),
    End,
}

/// Longer operators come first, so that they match before their prefixes.
const OPERATORS: [&str; 42] = [
    "**=", "//=", ">>=", "<<=", "==", "!=", "<=", ">=", "//", "**", "<<", ">>", "+=", "-=", "*=", "/=", "%=",
    "&=", "|=", "^=", ":=", "<", ">", "=", "+", "-", "*", "/", "%", "&", "|", "^", "~", "(", ")", "[", "]",
    "{", "}", ",", ":", ";",
];

pub(super) fn tokens(code: &str) -> Result<Vec<Token>, Problem> {
    // The first line follows `%{`, so its indentation has no meaning.
    let mut lexer = Lexer { code, at: 0, line: 0, brackets: 0, pending_indentation: Some(0) };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let (line, start) = (lexer.line, lexer.at);
        let kind = lexer.kind()?;
        if kind != Kind::End
            && let Some(indentation) = lexer.pending_indentation.take()
        {
            tokens.push(Token { kind: Kind::Line(indentation), line, start, end: start });
        }
        let ends = kind == Kind::End;
        tokens.push(Token { kind, line, start, end: lexer.at });
        if ends {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    code: &'a str,
    at: usize,
    line: usize,
    /// Number of open brackets, in which newlines are blanks.
    brackets: usize,
    /// The indentation of the line, until its first token has been read.
    pending_indentation: Option<usize>,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.code[self.at..]
    }

    /// Skips blanks, comments, and line ends in brackets or after a backslash.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let length = if let Some(next) = rest.strip_prefix('\n') {
                self.line += 1;
                if self.brackets == 0 {
                    self.pending_indentation = Some(indentation(next));
                }
                1
            } else if let Some(end) = ["\\\n", "\\\r\n"].into_iter().find(|end| rest.starts_with(end)) {
                self.line += 1;
                end.len()
            } else if rest.starts_with([' ', '\t', '\r', '\x0c']) {
                1
            } else if rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else {
                return;
            };
            self.at += length;
        }
    }

    fn kind(&mut self) -> Result<Kind, Problem> {
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(Kind::End) };
        if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            if rest[length..].starts_with(['\'', '"']) {
                let prefix = &rest[..length];
                return Err(self.error(format!("strings with the prefix `{prefix}` are not supported")));
            }
            self.at += length;
            return Ok(Kind::Name(rest[..length].to_owned()));
        }
        if first.is_ascii_digit() || (first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            return self.number();
        }
        if first == '\'' || first == '"' {
            return self.text(first);
        }
        let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
        let Some(operator) = operator else {
            return Err(self.error(format!("`{first}` is not supported")));
        };
        match operator {
            "(" | "[" | "{" => self.brackets += 1,
            ")" | "]" | "}" => self.brackets = self.brackets.saturating_sub(1),
            _ => {}
        }
        self.at += operator.len();
        Ok(Kind::Operator(operator))
    }

    fn number(&mut self) -> Result<Kind, Problem> {
        let rest = self.rest();
        let run = |text: &str| text.find(|c| !(is_word(c) || c == '.')).unwrap_or(text.len());
        let mut length = run(rest);
        let radix = match rest.get(..2) {
            Some("0x" | "0X") => Some(16),
            Some("0o" | "0O") => Some(8),
            Some("0b" | "0B") => Some(2),
            _ => None,
        };
        // The sign of an exponent: 1e-3.
        if radix.is_none() && rest[..length].ends_with(['e', 'E']) && rest[length..].starts_with(['+', '-']) {
            length += 1 + run(&rest[length + 1..]);
        }
        let digits = rest[..length].replace('_', "");
        let value = match radix {
            Some(radix) => i128::from_str_radix(&digits[2..], radix).ok().map(Value::Int),
            None if digits.contains(['.', 'e', 'E']) => digits.parse().ok().map(Value::Float),
            None => digits.parse().ok().map(Value::Int),
        };
        let Some(value) = value else {
            return Err(self.error(format!("`{}` is not a number", &rest[..length])));
        };
        self.at += length;
        Ok(Kind::Number(value))
    }

    fn text(&mut self, quote: char) -> Result<Kind, Problem> {
        let rest = self.rest();
        if rest.starts_with("'''") || rest.starts_with("\"\"\"") {
            return Err(self.error("strings in triple quotes are not supported".to_owned()));
        }
        let mut text = String::new();
        let mut chars = rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                '\n' => break,
                '\\' => match chars.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, c @ ('\\' | '\'' | '"'))) => text.push(c),
                    _ => return Err(self.error("this `\\` in a string is not supported".to_owned())),
                },
                c if c == quote => {
                    self.at += at + 1;
                    return Ok(Kind::Text(text));
                }
                c => text.push(c),
            }
        }
        Err(self.error(format!("the closing `{quote}` is missing")))
    }

    fn error(&self, message: String) -> Problem {
        (self.line, message)
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the indentation of a line. As in Python, a tab reaches to the next multiple of 8.
fn indentation(line: &str) -> usize {
    let blanks = line.chars().take_while(|c| [' ', '\t'].contains(c));
    blanks
        .fold(0, |columns: usize, c| if c == '\t' { (columns + 1).next_multiple_of(8) } else { columns + 1 })
}
