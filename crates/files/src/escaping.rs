//! Output of foreign text (file names, scenario contents, capture comments) to a terminal.
//!
//! Terminals obey control characters, which move the cursor, overwrite earlier output, and set window titles and
//! clipboards. Each control character is replaced by an escape as in JSON and TOML, such as `\u001b`.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

/// First byte of the UTF-8 encoding of U+0080 to U+00BF. The characters up to U+009F are control
/// characters.
const LATIN: u8 = 0xc2;

fn is_harmless(octet: u8) -> bool {
    matches!(octet, b'\n' | b'\t') || !(octet.is_ascii_control() || octet == LATIN)
}

/// Returns the number of bytes before the first byte that is not harmless. Whole chunks are tested without an
/// early exit, which is faster: the JSON of many connections is long.
fn harmless_len(octets: &[u8]) -> usize {
    const CHUNK: usize = 64;
    let are_harmless = |chunk: &&[u8]| chunk.iter().fold(true, |all, octet| all & is_harmless(*octet));
    let in_chunks = CHUNK * octets.chunks_exact(CHUNK).take_while(are_harmless).count();
    in_chunks + octets[in_chunks..].iter().take_while(|octet| is_harmless(**octet)).count()
}

/// Displays the inner value with control characters escaped, except line feeds and tabs.
#[derive(Clone, Copy, Debug)]
pub struct Escaped<T>(pub T);

impl<T: Display> Display for Escaped<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        struct Escaping<'a, 'b>(&'a mut fmt::Formatter<'b>);
        impl fmt::Write for Escaping<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                if text.bytes().all(is_harmless) {
                    return self.0.write_str(text);
                }
                text.chars().try_for_each(|c| match c {
                    '\n' | '\t' => self.0.write_char(c),
                    c if c.is_control() => write!(self.0, "\\u{:04x}", u32::from(c)),
                    c => self.0.write_char(c),
                })
            }
        }
        write!(Escaping(f), "{}", self.0)
    }
}

/// A writer that escapes control characters like [`Escaped`]. It passes UTF-8 on to `W` and accepts
/// it split at any byte.
#[derive(Debug)]
pub struct EscapingWriter<W> {
    to: W,
    /// Whether the last byte was [`LATIN`], which is not written until the next byte arrives.
    holds_latin: bool,
}

impl<W: Write> EscapingWriter<W> {
    /// Creates a writer that passes the escaped text to `to`.
    pub fn new(to: W) -> Self {
        Self { to, holds_latin: false }
    }
}

impl<W: Write> Write for EscapingWriter<W> {
    /// Writes part of the text. As with any writer, a call may accept fewer bytes than it is given.
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let Some(&first) = octets.first() else { return Ok(0) };
        if self.holds_latin {
            // `LATIN` was already counted as written.
            match first {
                0x80..=0x9f => write!(self.to, "\\u{first:04x}")?,
                _ => self.to.write_all(&[LATIN, first])?,
            }
            self.holds_latin = false;
            return Ok(1);
        }
        let harmless = harmless_len(octets);
        if harmless > 0 {
            return self.to.write(&octets[..harmless]);
        }
        match first {
            LATIN => self.holds_latin = true,
            control => write!(self.to, "\\u{control:04x}")?,
        }
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTILE: &str = "a\u{1b}]0;title\u{7}\r\u{9b}31mé\u{7f}\u{a0}Ü\tb\n";
    const ESCAPED: &str = "a\\u001b]0;title\\u0007\\u000d\\u009b31mé\\u007f\u{a0}Ü\tb\n";

    #[test]
    fn only_control_characters_are_escaped() {
        assert_eq!(Escaped(HOSTILE).to_string(), ESCAPED);
        assert_eq!(Escaped(format_args!("{HOSTILE}{:>5}", 1)).to_string(), format!("{ESCAPED}    1"));
    }

    #[test]
    fn escaping_is_independent_of_write_boundaries() {
        for at in 0..=HOSTILE.len() {
            let mut out = EscapingWriter::new(Vec::new());
            let (before, after) = HOSTILE.as_bytes().split_at(at);
            out.write_all(before).unwrap();
            out.write_all(after).unwrap();
            assert_eq!(String::from_utf8(out.to).unwrap(), ESCAPED, "cut at {at}");
        }
    }
}
