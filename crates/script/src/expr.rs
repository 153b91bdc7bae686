//! The expression language between `%{` and `}%`: asserts on TCP_INFO in Python syntax.
//!
//! It supports arithmetic (`+ - * / // %`), chained comparisons, `and or not`, parentheses, and
//! `abs min max`. Newlines or `;` separate asserts. Text after a comma at the end of an assert is
//! its message and is ignored.

use std::fmt;

/// An `assert` statement and its source text.
#[derive(Debug)]
pub(crate) struct Check {
    text: String,
    expr: Expr,
}

#[derive(Clone, Debug, PartialEq)]
enum Expr {
    Number(f64),
    Name(String),
    Not(Box<Self>),
    Negate(Box<Self>),
    Binary(Box<Self>, Op, Box<Self>),
    /// `a < b <= c`.
    Chain(Box<Self>, Vec<(Op, Self)>),
    Call(String, Vec<Self>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    LessEqual,
    GreaterEqual,
    Less,
    Greater,
    Add,
    Subtract,
    Multiply,
    FloorDivide,
    Divide,
    Remainder,
}

/// Longer operators come first, so that they match before their prefixes.
const OPERATORS: [(&str, Op); 14] = [
    ("==", Op::Equal),
    ("!=", Op::NotEqual),
    ("<=", Op::LessEqual),
    (">=", Op::GreaterEqual),
    ("//", Op::FloorDivide),
    ("<", Op::Less),
    (">", Op::Greater),
    ("+", Op::Add),
    ("-", Op::Subtract),
    ("*", Op::Multiply),
    ("/", Op::Divide),
    ("%", Op::Remainder),
    ("or", Op::Or),
    ("and", Op::And),
];

/// Source of the values of names.
pub(crate) trait Names {
    fn value(&self, name: &str) -> Option<f64>;
}

impl<F: Fn(&str) -> Option<f64>> Names for F {
    fn value(&self, name: &str) -> Option<f64> {
        self(name)
    }
}

/// Parses a whole block. An error contains its line number, counted from the opening `%{`.
pub(crate) fn checks(code: &str) -> Result<Vec<Check>, (usize, String)> {
    let mut checks = Vec::new();
    for (line, statement) in statements(code) {
        let Some(text) = statement.strip_prefix("assert") else {
            return Err((line, format!("expected `assert EXPRESSION`, found `{statement}`")));
        };
        let mut parser = Parser { rest: text };
        let expr = parser.binary(0).map_err(|message| (line, format!("{message} in `{statement}`")))?;
        parser.skip();
        if !parser.rest.is_empty() && !parser.rest.starts_with(',') {
            return Err((line, format!("unexpected `{}` in `{statement}`", parser.rest)));
        }
        checks.push(Check { text: statement.to_owned(), expr });
    }
    Ok(checks)
}

/// Splits a block at newlines and semicolons outside parentheses. Comments and blank statements are
/// dropped.
fn statements(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut depth, mut line, mut begun, mut comment) = (0_usize, 0, 0, false);
    let mut quote = None;
    let mut current = String::new();
    for c in code.chars().chain(['\n']) {
        match (c, quote) {
            (_, Some(open)) => quote = Some(open).filter(|&open| open != c && c != '\n'),
            ('#', None) => comment = true,
            ('(', None) if !comment => depth += 1,
            (')', None) if !comment => depth = depth.saturating_sub(1),
            ('\'' | '"', None) if !comment => quote = Some(c),
            _ => {}
        }
        let ends = c == '\n' || (c == ';' && !comment && quote.is_none());
        if ends && depth == 0 {
            if !current.trim().is_empty() {
                found.push((begun, current.trim().to_owned()));
            }
            current.clear();
        } else if !comment {
            if current.trim().is_empty() {
                begun = line;
            }
            current.push(if c == '\n' { ' ' } else { c });
        }
        if c == '\n' {
            comment = false;
            line += 1;
        }
    }
    if !current.trim().is_empty() {
        found.push((begun, current.trim().to_owned()));
    }
    found
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    /// Parses operators of this precedence level and above. Comparisons chain as in Python.
    fn binary(&mut self, level: u8) -> Result<Expr, String> {
        if level == 2 && self.word("not") {
            return Ok(Expr::Not(Box::new(self.binary(2)?)));
        }
        if level > Op::Remainder.level() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        let mut chain = Vec::new();
        while let Some(op) = self.operator(level) {
            let right = self.binary(level + 1)?;
            if op.level() == Op::Equal.level() {
                chain.push((op, right));
            } else {
                left = Expr::Binary(Box::new(left), op, Box::new(right));
            }
        }
        Ok(if chain.is_empty() { left } else { Expr::Chain(Box::new(left), chain) })
    }

    fn operator(&mut self, level: u8) -> Option<Op> {
        self.skip();
        let &(spelling, op) = OPERATORS.iter().find(|(spelling, _)| self.rest.starts_with(spelling))?;
        let is_word = spelling.starts_with(char::is_alphabetic);
        if op.level() != level || (is_word && self.rest[spelling.len()..].starts_with(is_name)) {
            return None;
        }
        self.rest = &self.rest[spelling.len()..];
        Some(op)
    }

    fn word(&mut self, word: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(is_name) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn punct(&mut self, c: char) -> bool {
        self.skip();
        self.rest.strip_prefix(c).map(|rest| self.rest = rest).is_some()
    }

    fn unary(&mut self) -> Result<Expr, String> {
        if self.punct('-') {
            return Ok(Expr::Negate(Box::new(self.unary()?)));
        }
        if self.punct('(') {
            let inside = self.binary(0)?;
            return if self.punct(')') { Ok(inside) } else { Err("`)` is missing".to_owned()) };
        }
        let length = self.rest.find(|c: char| !(is_name(c) || c == '.')).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            let value = match word.strip_prefix("0x") {
                Some(hex) => u32::from_str_radix(hex, 16).ok().map(f64::from),
                None => word.parse().ok(),
            };
            return value.map(Expr::Number).ok_or_else(|| format!("`{word}` is not a number"));
        }
        if word.is_empty() {
            return Err(match self.rest.chars().next() {
                Some(c) => format!("expected a value, found `{c}`"),
                None => "expected a value".to_owned(),
            });
        }
        if !self.punct('(') {
            return Ok(Expr::Name(word.to_owned()));
        }
        let mut args = vec![self.binary(0)?];
        while self.punct(',') {
            args.push(self.binary(0)?);
        }
        if !self.punct(')') {
            return Err("`)` is missing".to_owned());
        }
        match (word, args.len()) {
            ("abs", 1) | ("min" | "max", _) => Ok(Expr::Call(word.to_owned(), args)),
            _ => Err(format!(
                "unknown function `{word}` with {} arguments; known are abs, min, max",
                args.len()
            )),
        }
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

impl Op {
    /// Returns the precedence level: `or` binds most loosely. `not` is parsed between `and` and the
    /// comparisons.
    fn level(self) -> u8 {
        match self {
            Self::Or => 0,
            Self::And => 1,
            Self::Equal
            | Self::NotEqual
            | Self::LessEqual
            | Self::GreaterEqual
            | Self::Less
            | Self::Greater => 2,
            Self::Add | Self::Subtract => 3,
            Self::Multiply | Self::FloorDivide | Self::Divide | Self::Remainder => 4,
        }
    }

    fn apply(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Or => f64::from(u8::from(a != 0.0 || b != 0.0)),
            Self::And => f64::from(u8::from(a != 0.0 && b != 0.0)),
            Self::Equal => f64::from(u8::from(a == b)),
            Self::NotEqual => f64::from(u8::from(a != b)),
            Self::LessEqual => f64::from(u8::from(a <= b)),
            Self::GreaterEqual => f64::from(u8::from(a >= b)),
            Self::Less => f64::from(u8::from(a < b)),
            Self::Greater => f64::from(u8::from(a > b)),
            Self::Add => a + b,
            Self::Subtract => a - b,
            Self::Multiply => a * b,
            Self::FloorDivide => (a / b).floor(),
            Self::Divide => a / b,
            Self::Remainder => a.rem_euclid(b),
        }
    }
}

impl Check {
    /// Evaluates the assert. If it is false, the error contains its text and the values of the
    /// names in it.
    pub(crate) fn hold(&self, names: &dyn Names) -> Result<(), String> {
        if self.expr.value(names)? != 0.0 {
            return Ok(());
        }
        let mut used = Vec::new();
        self.expr.names(&mut used);
        let values: Vec<String> = used
            .iter()
            .filter_map(|name| names.value(name).map(|value| format!("{name} is {value}")))
            .collect();
        Err(format!("`{}` does not hold: {}", self.text, values.join(", ")))
    }
}

impl Expr {
    fn value(&self, names: &dyn Names) -> Result<f64, String> {
        Ok(match self {
            Self::Number(value) => *value,
            Self::Name(name) => match name.as_str() {
                "True" => 1.0,
                "False" => 0.0,
                _ => names
                    .value(name)
                    .ok_or_else(|| format!("`{name}` is not a member of TCP_INFO that airtcp supports"))?,
            },
            Self::Not(inner) => f64::from(u8::from(inner.value(names)? == 0.0)),
            Self::Negate(inner) => -inner.value(names)?,
            Self::Binary(a, op, b) => op.apply(a.value(names)?, b.value(names)?),
            Self::Chain(first, rest) => {
                let mut left = first.value(names)?;
                for (op, right) in rest {
                    let right = right.value(names)?;
                    if op.apply(left, right) == 0.0 {
                        return Ok(0.0);
                    }
                    left = right;
                }
                1.0
            }
            Self::Call(name, args) => {
                let mut values = args.iter().map(|arg| arg.value(names)).collect::<Result<Vec<_>, _>>()?;
                values.sort_by(f64::total_cmp);
                match name.as_str() {
                    "abs" => values[0].abs(),
                    "min" => values[0],
                    _ => values[values.len() - 1],
                }
            }
        })
    }

    fn names(&self, into: &mut Vec<String>) {
        match self {
            Self::Number(_) => {}
            Self::Name(name) => {
                if !into.contains(name) {
                    into.push(name.clone());
                }
            }
            Self::Not(inner) | Self::Negate(inner) => inner.names(into),
            Self::Binary(a, _, b) => {
                a.names(into);
                b.names(into);
            }
            Self::Chain(first, rest) => {
                first.names(into);
                rest.iter().for_each(|(_, expr)| expr.names(into));
            }
            Self::Call(_, args) => args.iter().for_each(|expr| expr.names(into)),
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(name: &str) -> Option<f64> {
        match name {
            "tcpi_snd_cwnd" => Some(10.0),
            "tcpi_rtt" => Some(100_000.0),
            _ => None,
        }
    }

    fn holds(code: &str) -> Result<(), String> {
        checks(code)
            .map_err(|(line, message)| format!("{line}: {message}"))?
            .iter()
            .try_for_each(|c| c.hold(&names))
    }

    #[test]
    fn assertions_follow_python_semantics() {
        for code in [
            "assert tcpi_snd_cwnd == 10",
            "assert 1 + 2 * 3 == 7 and not 2 > 3",
            "assert (1 + 2) * 3 == 9, 'a message (with; a parenthesis'; assert True",
            "assert 9 < tcpi_snd_cwnd <= 10 < 11",
            "assert -7 // 2 == -4 and -7 % 3 == 2 and 7 / 2 == 3.5",
            "assert abs(tcpi_rtt - 101000) <= 1000 or False",
            "\n  assert True; assert 0xff == 255 # comment\n assert (1 ==\n 1)\n",
            "assert min(3, 2, 4) == 2 and max(1, 2) == 2",
            "assert not 1 == 2",
            "assert 5 - 2 - 1 == 2",
        ] {
            assert_eq!(holds(code), Ok(()), "{code}");
        }
    }

    #[test]
    fn failed_assertion_shows_values_of_names() {
        assert_eq!(
            holds("assert tcpi_snd_cwnd == 9").unwrap_err(),
            "`assert tcpi_snd_cwnd == 9` does not hold: tcpi_snd_cwnd is 10"
        );
        assert!(holds("assert 1 < tcpi_snd_cwnd < 10").is_err());
    }

    #[test]
    fn expression_errors_name_line_and_word() {
        assert_eq!(holds("\nassert 1 +").unwrap_err(), "1: expected a value in `assert 1 +`");
        assert_eq!(holds("print(1)").unwrap_err(), "0: expected `assert EXPRESSION`, found `print(1)`");
        assert!(holds("assert tcpi_nothing == 1").unwrap_err().contains("`tcpi_nothing`"));
        assert!(holds("assert 1 2").unwrap_err().contains("unexpected `2`"));
    }
}
