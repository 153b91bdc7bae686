//! SVG 1.1 output.

use std::fmt::Write;

use super::draw::{Anchor, Drawing, Item, Rect, Shape, Step, Text, TextDirection};
use super::font;
use super::palette::WHITE;

pub(super) fn svg(drawing: &Drawing) -> String {
    let Drawing { width, height, title, items } = drawing;
    let mut writer = Writer { text: String::new(), clips: 0 };
    let (w, h) = (number(*width), number(*height));
    // The size in print. A viewer may scale it on screen.
    let [mm_w, mm_h] = [width, height].map(|points| number(points * 25.4 / 96.0));
    writer.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{mm_w}mm\" height=\"{mm_h}mm\" viewBox=\"0 0 {w} {h}\" \
         role=\"img\" font-family=\"{}\" stroke-linejoin=\"round\">",
        font::FAMILY
    ));
    writer.line(format_args!("<title>{}</title>", escaped(title)));
    writer.line(format_args!("<rect width=\"{w}\" height=\"{h}\" fill=\"{}\"/>", WHITE.hex()));
    writer.items(items);
    writer.line(format_args!("</svg>"));
    writer.text
}

struct Writer {
    text: String,
    clips: usize,
}

impl Writer {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.text, "{line}").expect("a String takes everything");
    }

    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Shape(shape) => self.shape(shape),
                Item::Text(text) => self.line(format_args!("{}", label(text))),
                Item::Group { class, clip, items } => {
                    let clip = clip.map(|rect| self.clip(&rect)).unwrap_or_default();
                    self.line(format_args!("<g class=\"{class}\"{clip}>"));
                    self.items(items);
                    self.line(format_args!("</g>"));
                }
            }
        }
    }

    fn clip(&mut self, Rect { left, top, width, height }: &Rect) -> String {
        self.clips += 1;
        let id = self.clips;
        let [x, y, w, h] = [left, top, width, height].map(|value| number(*value));
        self.line(format_args!(
            "<clipPath id=\"clip{id}\"><rect x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\"/></clipPath>"
        ));
        format!(" clip-path=\"url(#clip{id})\"")
    }

    fn shape(&mut self, Shape { steps, stroke, fill }: &Shape) {
        let mut attributes = match fill {
            Some(fill) if fill.opacity < 1.0 => {
                format!("fill=\"{}\" fill-opacity=\"{}\"", fill.colour.hex(), number(fill.opacity))
            }
            Some(fill) => format!("fill=\"{}\"", fill.colour.hex()),
            None => "fill=\"none\"".to_owned(),
        };
        if let Some(stroke) = stroke {
            attributes +=
                &format!(" stroke=\"{}\" stroke-width=\"{}\"", stroke.colour.hex(), number(stroke.width));
            if !stroke.dash.lengths().is_empty() {
                let lengths = stroke.dash.lengths().iter().map(|length| number((*length).into()));
                attributes += &format!(" stroke-dasharray=\"{}\"", lengths.collect::<Vec<_>>().join(" "));
            }
            if stroke.round {
                attributes += " stroke-linecap=\"round\"";
            }
        }
        self.line(format_args!("<path {attributes} d=\"{}\"/>", path(steps)));
    }
}

/// Writes the path data. An unchanged coordinate is omitted, because paths are the largest part of a picture.
fn path(steps: &[Step]) -> String {
    let mut text = String::new();
    let mut last = (String::new(), String::new());
    for step in steps {
        match step {
            Step::Move(point) => {
                last = (number(point.x), number(point.y));
                text += &format!("M{} {}", last.0, last.1);
            }
            Step::Line(point) => {
                let here = (number(point.x), number(point.y));
                text += &match (here.0 == last.0, here.1 == last.1) {
                    (true, true) => "h0".to_owned(),
                    (true, false) => format!("V{}", here.1),
                    (false, true) => format!("H{}", here.0),
                    (false, false) => format!("L{} {}", here.0, here.1),
                };
                last = here;
            }
            Step::Circle(centre, radius) => {
                let (x, y, r) = (number(centre.x - radius), number(centre.y), number(*radius));
                let across = number(2.0 * radius);
                text += &format!("M{x} {y}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 -{across} 0z");
            }
            Step::Close => text.push('z'),
        }
    }
    text
}

fn label(Text { at, size, anchor, direction, colour, text }: &Text) -> String {
    let (x, y) = (number(at.x), number(at.y));
    let position = match direction {
        TextDirection::Horizontal => format!("x=\"{x}\" y=\"{y}\""),
        TextDirection::Upwards => format!("transform=\"translate({x} {y}) rotate(-90)\""),
    };
    let anchor = match anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let (size, fill, text) = (number(*size), colour.hex(), escaped(text));
    format!("<text {position} font-size=\"{size}\"{anchor} fill=\"{fill}\">{text}</text>")
}

/// Writes a number with two decimals: a hundredth of a point is invisible even in print.
fn number(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

/// Escapes text for XML 1.0. Characters that XML does not allow become U+FFFD.
fn escaped(text: &str) -> String {
    text.chars().fold(String::new(), |mut text, character| {
        match character {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            '\u{0}'..'\u{20}' | '\u{fffe}' | '\u{ffff}' => text.push('\u{fffd}'),
            other => text.push(other),
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::draw::Point;

    #[test]
    fn path_data_uses_shortest_commands() {
        let at = |x, y| Point { x, y };
        let steps = [
            Step::Move(at(1.0, 2.0)),
            Step::Line(at(1.0, 3.504)),
            Step::Line(at(-0.001, 3.5)),
            Step::Line(at(4.0, 5.0)),
            Step::Line(at(4.0, 5.0)),
            Step::Close,
        ];
        assert_eq!(path(&steps), "M1 2V3.5H0L4 5h0z");
    }

    #[test]
    fn text_is_escaped_in_svg() {
        assert_eq!(escaped("<a> & \"b\"\u{7}"), "&lt;a&gt; &amp; &quot;b&quot;\u{fffd}");
    }
}
