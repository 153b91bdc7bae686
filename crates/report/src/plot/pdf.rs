//! PDF output, from the same drawing as SVG. The file contains its font, so that text remains text on every
//! machine and journals accept it.

use std::collections::{BTreeMap, BTreeSet};

use pdf_writer::types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, UnicodeCmap};
use pdf_writer::{Content, Finish, Name, Pdf, Rect as Box, Ref, Str, TextStr};

use super::draw::{Colour, Drawing, Fill, Item, Point, Rect, Shape, Step, Stroke, Text, TextDirection};
use super::font;
use super::palette::WHITE;

/// PDF points (1/72 inch) per point of the drawing (1/96 inch).
const SCALE: f32 = 0.75;
/// The prefix of six letters marks a subset of a font.
const FONT_NAME: Name<'static> = Name(b"AIRTCP+DejaVuSans");
const FONT: Name<'static> = Name(b"F");
const IDENTITY: SystemInfo<'static> =
    SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

pub(super) fn pdf(drawing: &Drawing) -> Vec<u8> {
    let mut ids = (1..).map(Ref::new);
    let mut id = move || ids.next().expect("a picture has few objects");
    let [catalog, pages, page, info, contents, type0, cid, descriptor, file, cmap] = [(); 10].map(|()| id());
    let [width, height] = [drawing.width, drawing.height].map(|points| points as f32 * SCALE);

    let mut writer = Writer { content: Content::new(), opacities: BTreeSet::new(), glyphs: BTreeMap::new() };
    // The drawing's y axis points down.
    writer.content.transform([SCALE, 0.0, 0.0, -SCALE, 0.0, height]);
    writer.content.set_line_join(LineJoinStyle::RoundJoin);
    let paper = Rect { left: 0.0, top: 0.0, width: drawing.width, height: drawing.height };
    writer.path(&paper.steps());
    writer.fill_colour(WHITE);
    writer.content.fill_nonzero();
    writer.items(&drawing.items);
    let Writer { content, opacities, glyphs } = writer;

    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    pdf.document_info(info).title(TextStr(&drawing.title));
    let mut described = pdf.page(page);
    described.parent(pages).media_box(Box::new(0.0, 0.0, width, height)).contents(contents);
    let mut resources = described.resources();
    resources.fonts().pair(FONT, type0);
    let states: Vec<(u8, Ref)> = opacities.into_iter().map(|percent| (percent, id())).collect();
    let names: Vec<_> = states.iter().map(|(percent, state)| (state_name(*percent), *state)).collect();
    resources.ext_g_states().pairs(names.iter().map(|(name, state)| (Name(name.as_bytes()), *state)));
    resources.finish();
    described.finish();
    pdf.stream(contents, &content.finish());
    for (percent, state) in states {
        pdf.ext_graphics(state).non_stroking_alpha(f32::from(percent) / 100.0);
    }

    pdf.type0_font(type0)
        .base_font(FONT_NAME)
        .encoding_predefined(Name(b"Identity-H"))
        .descendant_font(cid)
        .to_unicode(cmap);
    let mut described = pdf.cid_font(cid);
    described
        .subtype(CidFontType::Type2)
        .base_font(FONT_NAME)
        .system_info(IDENTITY)
        .font_descriptor(descriptor)
        .cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = described.widths();
    for glyph in glyphs.keys() {
        widths.consecutive(*glyph, [thousandths(font::glyph_width(*glyph))]);
    }
    widths.finish();
    described.finish();
    let [left, bottom, right, top] = font::bounds().map(thousandths);
    let [ascent, descent, capital] = font::heights().map(thousandths);
    pdf.font_descriptor(descriptor)
        .name(FONT_NAME)
        .flags(FontFlags::NON_SYMBOLIC)
        .bbox(Box::new(left, bottom, right, top))
        .italic_angle(0.0)
        .ascent(ascent)
        .descent(descent)
        .cap_height(capital)
        // The width of the vertical strokes of a regular sans-serif font.
        .stem_v(80.0)
        .font_file2(file);
    pdf.stream(file, font::BYTES).pair(Name(b"Length1"), font::BYTES.len() as i32);
    let mut characters = UnicodeCmap::<u16>::new(Name(b"Custom"), IDENTITY);
    for (glyph, character) in glyphs {
        characters.pair(glyph, character);
    }
    pdf.cmap(cmap, &characters.finish());
    pdf.finish()
}

fn thousandths(ems: f64) -> f32 {
    (ems * 1000.0) as f32
}

fn state_name(percent: u8) -> String {
    format!("A{percent}")
}

struct Writer {
    content: Content,
    /// Opacities of areas in percent, each with a graphics state.
    opacities: BTreeSet<u8>,
    /// The glyphs in use, and the characters that they show.
    glyphs: BTreeMap<u16, char>,
}

impl Writer {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Shape(shape) => self.shape(shape),
                Item::Text(text) => self.text(text),
                Item::Group { clip: Some(clip), items, .. } => {
                    self.content.save_state();
                    self.path(&clip.steps());
                    self.content.clip_nonzero().end_path();
                    self.items(items);
                    self.content.restore_state();
                }
                Item::Group { clip: None, items, .. } => self.items(items),
            }
        }
    }

    fn fill_colour(&mut self, colour: Colour) {
        let [red, green, blue] = parts(colour);
        self.content.set_fill_rgb(red, green, blue);
    }

    fn shape(&mut self, Shape { steps, stroke, fill }: &Shape) {
        if let Some(Fill { colour, opacity }) = fill {
            self.content.save_state();
            let percent = (opacity.clamp(0.0, 1.0) * 100.0).round() as u8;
            if percent < 100 {
                self.opacities.insert(percent);
                self.content.set_parameters(Name(state_name(percent).as_bytes()));
            }
            self.fill_colour(*colour);
            self.path(steps);
            self.content.fill_nonzero().restore_state();
        }
        if let Some(Stroke { colour, width, dash, round }) = stroke {
            let [red, green, blue] = parts(*colour);
            let cap = if *round { LineCapStyle::RoundCap } else { LineCapStyle::ButtCap };
            self.content
                .set_stroke_rgb(red, green, blue)
                .set_line_width(*width as f32)
                .set_line_cap(cap)
                .set_dash_pattern(dash.lengths().iter().copied(), 0.0);
            self.path(steps);
            self.content.stroke();
        }
    }

    fn path(&mut self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Move(Point { x, y }) => self.content.move_to(*x as f32, *y as f32),
                Step::Line(Point { x, y }) => self.content.line_to(*x as f32, *y as f32),
                Step::Circle(centre, radius) => self.circle(*centre, *radius),
                Step::Close => self.content.close_path(),
            };
        }
    }

    /// Approximates the circle by four Bézier curves, with an error below 0.03 % of the radius.
    fn circle(&mut self, centre: Point, radius: f64) -> &mut Content {
        const HANDLE: f64 = 0.552_284_75;
        let at = |x: f64, y: f64| ((centre.x + x * radius) as f32, (centre.y + y * radius) as f32);
        let (x, y) = at(1.0, 0.0);
        self.content.move_to(x, y);
        let mut from = (1.0, 0.0);
        for to in [(0.0, 1.0), (-1.0, 0.0), (0.0, -1.0), (1.0, 0.0)] {
            let (x1, y1) = at(from.0 + HANDLE * to.0, from.1 + HANDLE * to.1);
            let (x2, y2) = at(to.0 + HANDLE * from.0, to.1 + HANDLE * from.1);
            let (x3, y3) = at(to.0, to.1);
            self.content.cubic_to(x1, y1, x2, y2, x3, y3);
            from = to;
        }
        self.content.close_path()
    }

    fn text(&mut self, text: &Text) {
        let (x, y, lead) = (text.at.x as f32, text.at.y as f32, text.anchor_offset() as f32);
        let matrix = match text.direction {
            TextDirection::Horizontal => [1.0, 0.0, 0.0, -1.0, x - lead, y],
            TextDirection::Upwards => [0.0, -1.0, -1.0, 0.0, x, y + lead],
        };
        let mut codes = Vec::new();
        for (glyph, character) in font::glyphs(&text.text) {
            self.glyphs.entry(glyph).or_insert(character);
            codes.extend(glyph.to_be_bytes());
        }
        self.fill_colour(text.colour);
        self.content
            .begin_text()
            .set_font(FONT, text.size as f32)
            .set_text_matrix(matrix)
            .show(Str(&codes))
            .end_text();
    }
}

/// Returns red, green and blue from 0 to 1.
fn parts(Colour(red, green, blue): Colour) -> [f32; 3] {
    [red, green, blue].map(|part| f32::from(part) / 255.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::draw::Dash;
    use crate::plot::palette::BLUE;

    fn drawing() -> Drawing {
        let line = Stroke { colour: BLUE, width: 1.0, dash: Dash::Long, round: true };
        let area = Fill { colour: BLUE, opacity: 0.25 };
        let steps = vec![Step::Circle(Point { x: 20.0, y: 20.0 }, 10.0)];
        let shape = Item::Shape(Shape { steps, stroke: Some(line), fill: Some(area) });
        let text = Item::Text(Text {
            direction: TextDirection::Upwards,
            ..Text::new(5.0, 30.0, 10.0, BLUE, "goodput ± 95 %")
        });
        let clip = Some(Rect { left: 0.0, top: 0.0, width: 40.0, height: 40.0 });
        let items = vec![Item::Group { class: "data", clip, items: vec![shape] }, text];
        Drawing { width: 96.0, height: 48.0, title: "a title".to_owned(), items }
    }

    #[test]
    fn pdf_has_page_size_font_and_opacity() {
        let file = pdf(&drawing());
        assert_eq!(file, pdf(&drawing()), "equal drawings give equal files");
        assert!(file.starts_with(b"%PDF-1.7") && file.ends_with(b"%%EOF"));
        let text = String::from_utf8_lossy(&file);
        for part in ["/MediaBox [0 0 72 36]", "/FontFile2", "/ca 0.25", "(a title)", "/Identity-H"] {
            assert!(text.contains(part), "{part} is missing");
        }
        // The table that programs use to copy text maps each glyph to its character.
        assert!(text.contains("<00B1>"), "no ± in the table of characters");
    }
}
