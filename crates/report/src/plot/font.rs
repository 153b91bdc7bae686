//! The embedded font, which makes pictures identical on every machine, even without installed fonts. The
//! font's licence is in its directory.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

/// The file of the font, for formats that contain it.
pub(super) const BYTES: &[u8] = include_bytes!("font/DejaVuSans-subset.ttf");

static FACE: LazyLock<Face<'static>> =
    LazyLock::new(|| Face::parse(BYTES, 0).expect("the font is part of the program"));

/// The fonts with which an SVG is displayed. The first two have the letter widths that the layout assumes;
/// the last two are narrower.
pub(super) const FAMILY: &str = "DejaVu Sans, Verdana, Helvetica, Arial, sans-serif";

/// Returns the glyph of a character, or an empty box if the font lacks it.
fn glyph(character: char) -> GlyphId {
    FACE.glyph_index(character).unwrap_or(GlyphId(0))
}

fn advance(glyph: GlyphId) -> f64 {
    f64::from(FACE.glyph_hor_advance(glyph).unwrap_or_default()) / f64::from(FACE.units_per_em())
}

pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(|character| advance(glyph(character))).sum::<f64>() * size
}

/// Returns the glyphs of a text with their characters.
pub(super) fn glyphs(text: &str) -> impl Iterator<Item = (u16, char)> {
    text.chars().map(|character| (glyph(character).0, character))
}

/// Returns the width of a glyph as a multiple of the font size.
pub(super) fn glyph_width(glyph: u16) -> f64 {
    advance(GlyphId(glyph))
}

/// Returns the box around all glyphs as multiples of the font size: left, bottom, right and top.
pub(super) fn bounds() -> [f64; 4] {
    let all = FACE.global_bounding_box();
    [all.x_min, all.y_min, all.x_max, all.y_max].map(|edge| f64::from(edge) / units_per_em())
}

/// Returns the ascent, the descent (negative) and the height of capitals as multiples of the font size.
pub(super) fn heights() -> [f64; 3] {
    let capital = FACE.capital_height().unwrap_or_else(|| FACE.ascender());
    [FACE.ascender(), FACE.descender(), capital].map(|height| f64::from(height) / units_per_em())
}

/// Truncates `text` to `room` and appends `…` if it does not fit.
pub(super) fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut fitted = text.to_owned();
    while fitted.pop().is_some() {
        let shorter = format!("{}…", fitted.trim_end());
        if width(&shorter, size) <= room {
            return shorter;
        }
    }
    String::new()
}

/// Draws the outlines of all letters. `builder` receives the width of the preceding text as a multiple of the
/// font size. The y axis of outlines points up.
pub(super) fn outline<B: OutlineBuilder>(
    text: &str,
    mut builder: impl FnMut(f64) -> B,
    mut done: impl FnMut(B),
) {
    let mut x = 0.0;
    for character in text.chars() {
        let glyph = glyph(character);
        let mut letter = builder(x);
        FACE.outline_glyph(glyph, &mut letter);
        done(letter);
        x += advance(glyph);
    }
}

pub(super) fn units_per_em() -> f64 {
    FACE.units_per_em().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_width_covers_known_and_unknown_characters() {
        assert!(width("WWW", 10.0) > width("iii", 10.0) * 2.0);
        assert!((width("12", 20.0) - 2.0 * width("12", 10.0)).abs() < 1e-9);
        assert!(width("漢", 10.0) > 3.0);
    }

    #[test]
    fn long_text_is_truncated_with_ellipsis() {
        assert_eq!(fitted("short", 10.0, 100.0), "short");
        let cut = fitted("much longer than this", 10.0, 60.0);
        assert!(cut.ends_with('…') && cut.len() > 4 && width(&cut, 10.0) <= 60.0, "{cut}");
        assert_eq!(fitted("nothing", 10.0, 1.0), "");
    }
}
