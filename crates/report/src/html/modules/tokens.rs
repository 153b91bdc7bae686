//! JavaScript in words and signs: as much of its grammar as tells names from strings, comments and regular expressions.

/// What a piece of a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    /// A string in quotes.
    Text,
    /// A template without expressions, or a part of one beside its expressions.
    Template,
    Regex,
    /// One character, or `=>`, `?.` and `...`.
    Sign,
}

/// A piece of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// Where it begins, in octets.
    pub(super) at: usize,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Sign) && self.text == text
    }

    pub(super) fn end(&self) -> usize {
        self.at + self.text.len()
    }
}

/// Something that begins at this octet has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endless(pub(super) usize);

/// All pieces of a text but its comments.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Endless> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // For each open brace, whether an expression in a template is in it.
    let mut braces = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = match c {
            _ if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            '/' if rest.starts_with("//") => {
                at += rest.find('\n').unwrap_or(rest.len());
                continue;
            }
            '/' if rest.starts_with("/*") => {
                at += rest.find("*/").ok_or(Endless(at))? + 2;
                continue;
            }
            '/' if !ends_a_value(tokens.last()) => (Kind::Regex, regex(rest).ok_or(Endless(at))?),
            '\'' | '"' => (Kind::Text, quoted(rest, c).ok_or(Endless(at))?),
            '`' => (Kind::Template, template(rest, &mut braces).ok_or(Endless(at))?),
            '}' if braces.pop() == Some(true) => {
                (Kind::Template, template(rest, &mut braces).ok_or(Endless(at))?)
            }
            _ if is_of_word(c) && !c.is_ascii_digit() => (Kind::Word, run(rest, is_of_word)),
            _ if c.is_ascii_digit() => (Kind::Number, number(rest)),
            _ => {
                if c == '{' {
                    braces.push(false);
                }
                let long = ["...", "=>", "?."].into_iter().find(|sign| rest.starts_with(sign));
                // In `a ?.5 : b` the point belongs to the number.
                let long =
                    long.filter(|sign| *sign != "?." || !rest[2..].starts_with(|c: char| c.is_ascii_digit()));
                (Kind::Sign, long.map_or_else(|| c.len_utf8(), str::len))
            }
        };
        tokens.push(Token { kind, text: &rest[..length], at });
        at += length;
    }
    if braces.is_empty() { Ok(tokens) } else { Err(Endless(text.len())) }
}

fn is_of_word(c: char) -> bool {
    c == '_' || c == '$' || c == '#' || c.is_alphanumeric()
}

/// How many octets fit.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

fn number(text: &str) -> usize {
    let digits = run(text, |c| is_of_word(c) || c == '.');
    // 1e-6, but not 0xe-6.
    let exponent = text[..digits].ends_with(['e', 'E']) && !text.starts_with("0x");
    match text[digits..].strip_prefix(['+', '-']) {
        Some(rest) if exponent => digits + 1 + run(rest, |c| c.is_ascii_digit()),
        _ => digits,
    }
}

/// The length of a string that ends in its line.
fn quoted(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '\n' => return None,
            _ if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The length of a template from its begin, or from the end of an expression in it, to its end or the next expression.
fn template(text: &str, braces: &mut Vec<bool>) -> Option<usize> {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '`' => return Some(at + 1),
            '$' if chars.peek().is_some_and(|(_, next)| *next == '{') => {
                braces.push(true);
                return Some(at + 2);
            }
            _ => {}
        }
    }
    None
}

/// The length of a regular expression with its flags.
fn regex(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let mut in_class = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => _ = chars.next(),
            '\n' => return None,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return Some(at + 1 + run(&text[at + 1..], is_of_word)),
            _ => {}
        }
    }
    None
}

/// A `/` behind a value divides. A `}` may end a block or an object: no regular expression of ours stands behind either.
fn ends_a_value(last: Option<&Token<'_>>) -> bool {
    let Some(Token { kind, text, .. }) = last else { return false };
    match kind {
        Kind::Word => {
            !["return", "typeof", "case", "of", "in", "await", "yield", "void", "else", "do"].contains(text)
        }
        Kind::Number | Kind::Text | Kind::Regex => true,
        Kind::Template => text.ends_with('`'),
        Kind::Sign => matches!(*text, ")" | "]" | "}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).unwrap().iter().map(|token| token.text).collect()
    }

    #[test]
    fn strings_comments_and_regular_expressions_are_no_names() {
        let text = "a('b \\' c', \"it's\") // d\n/* e */ f.replace(/[/'\"]g\\/h/gu, x / y / z);";
        let kinds = tokens(text).unwrap();
        let words: Vec<_> = kinds.iter().filter(|it| it.kind == Kind::Word).map(|it| it.text).collect();
        assert_eq!(words, ["a", "f", "replace", "x", "y", "z"]);
        let regexes: Vec<_> = kinds.iter().filter(|it| it.kind == Kind::Regex).map(|it| it.text).collect();
        assert_eq!(regexes, ["/[/'\"]g\\/h/gu"]);
    }

    #[test]
    fn a_template_has_expressions_and_these_have_templates() {
        assert_eq!(
            texts("`a ${b({ c: `d ${e}` })} f\\``; g"),
            ["`a ${", "b", "(", "{", "c", ":", "`d ${", "e", "}`", "}", ")", "} f\\``", ";", "g"]
        );
    }

    #[test]
    fn numbers_and_signs() {
        assert_eq!(texts("1e-6+0xe-1 .5"), ["1e-6", "+", "0xe", "-", "1", ".", "5"]);
        assert_eq!(
            texts("a?.b ?? [...c] => d ?.5 : 1"),
            ["a", "?.", "b", "?", "?", "[", "...", "c", "]", "=>", "d", "?", ".", "5", ":", "1"]
        );
        assert_eq!(texts("'µs'; …"), ["'µs'", ";", "…"]);
    }

    #[test]
    fn what_does_not_end_is_said() {
        for (text, at) in [("a 'b\n'", 2), ("/* a", 0), ("f(`a ${b", 8), ("{", 1), ("= /a", 2), ("`", 0)] {
            assert_eq!(tokens(text), Err(Endless(at)), "{text}");
        }
    }
}
