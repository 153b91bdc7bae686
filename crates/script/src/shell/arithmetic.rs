//! Shell arithmetic, `$((15 * 1024 * 1024))`: the integer operators of POSIX except assignments.

use std::collections::BTreeMap;

/// Maximum depth of parentheses and unary operators.
const MAX_DEPTH: usize = 50;

/// Binary operators with their precedence, from `||` to the multiplications. Longer operators come
/// first, so that they match before their prefixes.
const OPERATORS: [(&str, u8); 18] = [
    ("||", 0),
    ("&&", 1),
    ("==", 5),
    ("!=", 5),
    ("<=", 6),
    (">=", 6),
    ("<<", 7),
    (">>", 7),
    ("|", 2),
    ("^", 3),
    ("&", 4),
    ("<", 6),
    (">", 6),
    ("+", 8),
    ("-", 8),
    ("*", 9),
    ("/", 9),
    ("%", 9),
];
const LEVELS: u8 = 10;

/// Returns the expression if `rest` begins with `$((`, without the outer parentheses.
pub(super) fn inside(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix("$((")?;
    let mut depth = 0_usize;
    for (at, c) in rest.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            ')' => return rest[at..].starts_with("))").then(|| &rest[..at]),
            _ => {}
        }
    }
    None
}

/// Evaluates an expression. `None` if it contains an unknown variable or anything else that airtcp
/// does not support.
pub(super) fn value(text: &str, variables: &BTreeMap<String, String>) -> Option<i64> {
    let mut parser = Parser { rest: text, variables, depth: 0 };
    let value = parser.choice()?;
    parser.skip();
    parser.rest.is_empty().then_some(value)
}

struct Parser<'a> {
    rest: &'a str,
    variables: &'a BTreeMap<String, String>,
    depth: usize,
}

impl Parser<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn eat(&mut self, text: &str) -> bool {
        self.skip();
        self.rest.strip_prefix(text).map(|rest| self.rest = rest).is_some()
    }

    /// Parses `a ? b : c`.
    fn choice(&mut self) -> Option<i64> {
        let condition = self.binary(0)?;
        if !self.eat("?") {
            return Some(condition);
        }
        self.deeper()?;
        let then = self.choice()?;
        let otherwise = if self.eat(":") { self.choice()? } else { return None };
        self.depth -= 1;
        Some(if condition != 0 { then } else { otherwise })
    }

    /// Parses operators of this precedence level and above.
    fn binary(&mut self, level: u8) -> Option<i64> {
        if level == LEVELS {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            left = apply(left, operator, self.binary(level + 1)?)?;
        }
        Some(left)
    }

    fn operator(&mut self, level: u8) -> Option<&'static str> {
        self.skip();
        let &(operator, found) = OPERATORS.iter().find(|(operator, _)| self.rest.starts_with(operator))?;
        if found != level {
            return None;
        }
        self.rest = &self.rest[operator.len()..];
        Some(operator)
    }

    fn unary(&mut self) -> Option<i64> {
        self.deeper()?;
        let value = if self.eat("-") {
            self.unary()?.wrapping_neg()
        } else if self.eat("+") {
            self.unary()?
        } else if self.eat("!") {
            i64::from(self.unary()? == 0)
        } else if self.eat("~") {
            !self.unary()?
        } else if self.eat("(") {
            let inside = self.choice()?;
            self.eat(")").then_some(inside)?
        } else {
            self.atom()?
        };
        self.depth -= 1;
        Some(value)
    }

    fn deeper(&mut self) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH).then_some(())
    }

    /// Parses a number, or a variable with or without `$`.
    fn atom(&mut self) -> Option<i64> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let braced = self.eat("${");
        let variable = braced || self.eat("$");
        let length = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        self.rest = rest;
        if braced && !self.eat("}") {
            return None;
        }
        if !variable && word.starts_with(|c: char| c.is_ascii_digit()) {
            return number(word);
        }
        number(self.variables.get(word)?.trim())
    }
}

/// Parses a constant: decimal, `0x` and hexadecimal, or `0` and octal.
fn number(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => i64::from_str_radix(digits, 8).ok()?,
        None => digits.parse().ok()?,
    };
    Some(if negative { -value } else { value })
}

/// Applies an operator. Numbers wrap, as in a shell. `None` for a division by zero.
fn apply(a: i64, operator: &str, b: i64) -> Option<i64> {
    Some(match operator {
        "||" => i64::from(a != 0 || b != 0),
        "&&" => i64::from(a != 0 && b != 0),
        "==" => i64::from(a == b),
        "!=" => i64::from(a != b),
        "<=" => i64::from(a <= b),
        ">=" => i64::from(a >= b),
        "<" => i64::from(a < b),
        ">" => i64::from(a > b),
        "|" => a | b,
        "^" => a ^ b,
        "&" => a & b,
        "<<" => a.wrapping_shl(b as u32),
        ">>" => a.wrapping_shr(b as u32),
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" if b != 0 => a.wrapping_div(b),
        "%" if b != 0 => a.wrapping_rem(b),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluated(text: &str) -> Option<i64> {
        let variables = [("MB", "1048576"), ("EMPTY", ""), ("1", "7")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        value(text, &variables)
    }

    #[test]
    fn operators_have_precedence_of_shell() {
        for (text, expected) in [
            ("15*1024*1024", 15_728_640),
            (" 1 + 2 * 3 - 4 / 3 % 2", 6),
            ("(1 + 2) * -3", -9),
            ("15 * $MB + ${MB} + MB", 17 * 1_048_576),
            ("1 << 4 | 1", 17),
            ("0x10 + 010", 24),
            ("-7 / 2", -3),
            ("2 > 1 && 3 <= 3 || 0", 1),
            ("~0 & 6 ^ 1", 7),
            ("!5 ? 10 : 20", 20),
            ("$1 == 7 ? 1 : 2 > 3 ? 4 : 5", 1),
        ] {
            assert_eq!(evaluated(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn unsupported_arithmetic_has_no_value() {
        for text in ["", "1 +", "UNKNOWN * 2", "EMPTY", "1 / 0", "x = 3", "2 ** 3", "1 2", "08", "${MB"] {
            assert_eq!(evaluated(text), None, "{text}");
        }
        assert_eq!(evaluated(&"(".repeat(10_000)), None);
        assert_eq!(evaluated(&"-".repeat(10_000)), None);
    }

    #[test]
    fn expression_ends_at_matching_parentheses() {
        assert_eq!(inside("$((2 * (3 + 4))) 5"), Some("2 * (3 + 4)"));
        assert_eq!(inside("$((1))"), Some("1"));
        assert_eq!(inside("$(uname)"), None);
        assert_eq!(inside("$((1)"), None);
    }
}
