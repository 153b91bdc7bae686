//! PNG output, from the same drawing as SVG.

use std::io;

use tiny_skia::{FillRule, Mask, Paint, Path, PathBuilder, Pixmap, StrokeDash, Transform};
use ttf_parser::OutlineBuilder;

use super::draw::{Colour, Drawing, Fill, Item, Rect, Shape, Step, Stroke, Text, TextDirection};
use super::font;

/// Pixels per point of 1/96 inch: 288 dpi, which looks smooth in print.
const SCALE: f32 = 3.0;
/// Maximum width and height in pixels. Larger pictures get a lower resolution.
const MAX_PIXELS: f32 = 8000.0;

pub(super) fn png(drawing: &Drawing) -> io::Result<Vec<u8>> {
    let longest = drawing.width.max(drawing.height) as f32;
    let scale = SCALE.min(MAX_PIXELS / longest);
    let pixels = |points: f64| (points as f32 * scale).ceil().max(1.0) as u32;
    let (width, height) = (pixels(drawing.width), pixels(drawing.height));
    let mut pixmap = Pixmap::new(width, height)
        .ok_or_else(|| io::Error::other(format!("a picture of {width} × {height} pixels is too large")))?;
    pixmap.fill(tiny_skia::Color::WHITE);
    let mut canvas = Canvas { pixmap, transform: Transform::from_scale(scale, scale), mask: None };
    canvas.items(&drawing.items);
    // All pixels are opaque because the background is white, so red, green and blue are enough.
    let rgb: Vec<u8> = canvas.pixmap.data().chunks_exact(4).flat_map(|pixel| &pixel[..3]).copied().collect();
    encode(&rgb, width, height, scale, &drawing.title).map_err(io::Error::other)
}

fn encode(
    rgb: &[u8],
    width: u32,
    height: u32,
    scale: f32,
    title: &str,
) -> Result<Vec<u8>, png::EncodingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::High);
    let per_metre = (f64::from(scale) * 96.0 / 0.0254).round() as u32;
    let unit = png::Unit::Meter;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit }));
    encoder.add_itxt_chunk("Title".to_owned(), title.to_owned())?;
    let mut writer = encoder.write_header()?;
    writer.write_image_data(rgb)?;
    writer.finish()?;
    Ok(file)
}

struct Canvas {
    pixmap: Pixmap,
    transform: Transform,
    mask: Option<Mask>,
}

impl Canvas {
    fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Shape(shape) => self.shape(shape),
                Item::Text(text) => self.text(text),
                Item::Group { clip: Some(clip), items, .. } => {
                    let outer = self.mask.take();
                    self.mask = self.clip(clip);
                    self.items(items);
                    self.mask = outer;
                }
                Item::Group { clip: None, items, .. } => self.items(items),
            }
        }
    }

    fn clip(&self, rect: &Rect) -> Option<Mask> {
        let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height())?;
        mask.fill_path(&path(&rect.steps())?, FillRule::Winding, true, self.transform);
        Some(mask)
    }

    fn shape(&mut self, Shape { steps, stroke, fill }: &Shape) {
        let Some(path) = path(steps) else { return };
        if let Some(Fill { colour, opacity }) = fill {
            self.fill(&path, *colour, *opacity);
        }
        if let Some(Stroke { colour, width, dash, round }) = stroke {
            let line_cap = if *round { tiny_skia::LineCap::Round } else { tiny_skia::LineCap::Butt };
            let stroke = tiny_skia::Stroke {
                width: *width as f32,
                line_cap,
                line_join: tiny_skia::LineJoin::Round,
                dash: StrokeDash::new(dash.lengths().to_vec(), 0.0),
                ..tiny_skia::Stroke::default()
            };
            let paint = paint(*colour, 1.0);
            self.pixmap.stroke_path(&path, &paint, &stroke, self.transform, self.mask.as_ref());
        }
    }

    fn fill(&mut self, path: &Path, colour: Colour, opacity: f64) {
        let paint = paint(colour, opacity);
        self.pixmap.fill_path(path, &paint, FillRule::Winding, self.transform, self.mask.as_ref());
    }

    fn text(&mut self, text: &Text) {
        let scale = text.size / font::units_per_em();
        let (at, lead) = (text.at, text.anchor_offset());
        let mut paths = Vec::new();
        font::outline(
            &text.text,
            |before| Letter {
                path: PathBuilder::new(),
                scale: scale as f32,
                x: (before * text.size - lead) as f32,
                direction: text.direction,
                at: (at.x as f32, at.y as f32),
            },
            |letter| paths.extend(letter.path.finish()),
        );
        for path in paths {
            self.fill(&path, text.colour, 1.0);
        }
    }
}

fn paint(Colour(red, green, blue): Colour, opacity: f64) -> Paint<'static> {
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    paint
}

fn path(steps: &[Step]) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for step in steps {
        match step {
            Step::Move(point) => builder.move_to(point.x as f32, point.y as f32),
            Step::Line(point) => builder.line_to(point.x as f32, point.y as f32),
            Step::Circle(centre, radius) => {
                builder.push_circle(centre.x as f32, centre.y as f32, *radius as f32);
            }
            Step::Close => builder.close(),
        }
    }
    builder.finish()
}

/// Converts a letter's outline into a path at the letter's position.
struct Letter {
    path: PathBuilder,
    scale: f32,
    /// Position along the baseline.
    x: f32,
    direction: TextDirection,
    at: (f32, f32),
}

impl Letter {
    fn position(&self, x: f32, y: f32) -> (f32, f32) {
        let (along, up) = (self.x + x * self.scale, y * self.scale);
        match self.direction {
            TextDirection::Horizontal => (self.at.0 + along, self.at.1 - up),
            TextDirection::Upwards => (self.at.0 - up, self.at.1 - along),
        }
    }
}

impl OutlineBuilder for Letter {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.position(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.position(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.position(x1, y1), self.position(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) =
            (self.position(x1, y1), self.position(x2, y2), self.position(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}
