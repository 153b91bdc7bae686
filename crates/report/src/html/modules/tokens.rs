//! A JavaScript tokenizer that separates names from strings, comments and regular expressions.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    Number,
    /// A string in quotes.
    Text,
    /// A template without expressions, or a part of a template between its expressions.
    Template,
    Regex,
    /// A single character, or `=>`, `?.` and `...`.
    Sign,
}

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// The byte offset at which the token begins.
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

/// The token that begins at this byte offset does not end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Endless(pub(super) usize);

/// Splits a text into tokens and skips comments.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, Endless> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    // For each open brace: true if it opens an expression inside a template.
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
                // In `a ?.5 : b` the dot belongs to the number.
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

/// Length in bytes of the longest prefix whose characters all fit.
fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

fn number(text: &str) -> usize {
    let digits = run(text, |c| is_of_word(c) || c == '.');
    // The sign belongs to the exponent in 1e-6, but not in 0xe-6.
    let exponent = text[..digits].ends_with(['e', 'E']) && !text.starts_with("0x");
    match text[digits..].strip_prefix(['+', '-']) {
        Some(rest) if exponent => digits + 1 + run(rest, |c| c.is_ascii_digit()),
        _ => digits,
    }
}

/// Length of a string, which must end on its line.
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

/// Length of a template's text, from its start or from the end of an expression, up to the template's end or
/// the next expression.
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

/// Length of a regular expression, including its flags.
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

/// Returns true if a `/` after this token is a division. A `}` may end a block or an object; it counts as a
/// value because the pages have no regular expression after one.
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
    fn strings_comments_and_regexes_are_not_words() {
        let text = "a('b \\' c', \"it's\") // d\n/* e */ f.replace(/[/'\"]g\\/h/gu, x / y / z);";
        let kinds = tokens(text).unwrap();
        let words: Vec<_> = kinds.iter().filter(|it| it.kind == Kind::Word).map(|it| it.text).collect();
        assert_eq!(words, ["a", "f", "replace", "x", "y", "z"]);
        let regexes: Vec<_> = kinds.iter().filter(|it| it.kind == Kind::Regex).map(|it| it.text).collect();
        assert_eq!(regexes, ["/[/'\"]g\\/h/gu"]);
    }

    #[test]
    fn nested_template_literals_are_tokenized() {
        assert_eq!(
            texts("`a ${b({ c: `d ${e}` })} f\\``; g"),
            ["`a ${", "b", "(", "{", "c", ":", "`d ${", "e", "}`", "}", ")", "} f\\``", ";", "g"]
        );
    }

    #[test]
    fn numbers_and_operators_are_tokenized() {
        assert_eq!(texts("1e-6+0xe-1 .5"), ["1e-6", "+", "0xe", "-", "1", ".", "5"]);
        assert_eq!(
            texts("a?.b ?? [...c] => d ?.5 : 1"),
            ["a", "?.", "b", "?", "?", "[", "...", "c", "]", "=>", "d", "?", ".", "5", ":", "1"]
        );
        assert_eq!(texts("'µs'; …"), ["'µs'", ";", "…"]);
    }

    #[test]
    fn unterminated_token_is_reported_with_position() {
        for (text, at) in [("a 'b\n'", 2), ("/* a", 0), ("f(`a ${b", 8), ("{", 1), ("= /a", 2), ("`", 0)] {
            assert_eq!(tokens(text), Err(Endless(at)), "{text}");
        }
    }
}
