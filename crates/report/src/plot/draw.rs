//! The elements of a picture, in points of 1/96 inch from the top left corner. `svg` and `png` render them.

use super::font;

/// A colour: red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// Returns the notation of SVG and CSS: `#0072b2`.
    pub(crate) fn hex(self) -> String {
        let Self(red, green, blue) = self;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// A position in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// Distance from the left edge.
    pub(crate) x: f64,
    /// Distance from the top edge.
    pub(crate) y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rect {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

impl Rect {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// Returns the outline.
    pub(crate) fn steps(&self) -> [Step; 5] {
        let at = |x, y| Point { x, y };
        [
            Step::Move(at(self.left, self.top)),
            Step::Line(at(self.right(), self.top)),
            Step::Line(at(self.right(), self.bottom())),
            Step::Line(at(self.left, self.bottom())),
            Step::Close,
        ]
    }
}

/// A part of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// Moves the pen without drawing.
    Move(Point),
    /// Draws a straight line to the point.
    Line(Point),
    /// A full circle around the point, with this radius.
    Circle(Point, f64),
    /// Draws a straight line to the last `Move`.
    Close,
}

/// The style of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    /// The colour of the line.
    pub(crate) colour: Colour,
    /// The width in points.
    pub(crate) width: f64,
    /// The dash pattern.
    pub(crate) dash: Dash,
    /// Round ends, so that a line of zero length appears as a dot.
    pub(crate) round: bool,
}

impl Stroke {
    /// Creates a line without dashes and with flat ends.
    pub(crate) fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: Dash::Solid, round: false }
    }
}

/// Dash patterns, which distinguish lines without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// A solid line.
    Solid,
    /// Long dashes.
    Long,
    /// Short dashes.
    Short,
    /// Dots.
    Dotted,
    /// Alternating long and short dashes.
    Mixed,
}

impl Dash {
    /// All patterns, in the order in which the lines of a panel use them.
    pub const ALL: [Self; 5] = [Self::Solid, Self::Long, Self::Short, Self::Mixed, Self::Dotted];

    /// Returns alternating lengths of strokes and gaps; empty for a solid line.
    pub(crate) fn lengths(self) -> &'static [f32] {
        match self {
            Self::Solid => &[],
            Self::Long => &[7.0, 3.0],
            Self::Short => &[3.5, 2.5],
            Self::Dotted => &[1.2, 2.4],
            Self::Mixed => &[7.0, 2.5, 1.5, 2.5],
        }
    }
}

/// The fill of an area.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fill {
    /// The colour of the area.
    pub(crate) colour: Colour,
    /// Opacity from 0 to 1.
    pub(crate) opacity: f64,
}

/// Lines and areas with one style.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// The path.
    pub(crate) steps: Vec<Step>,
    /// The style of the line, if the path is stroked.
    pub(crate) stroke: Option<Stroke>,
    /// The style of the area, if the path is filled.
    pub(crate) fill: Option<Fill>,
}

/// The part of a text that is placed at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The direction of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextDirection {
    /// From left to right.
    Horizontal,
    /// From the bottom to the top.
    Upwards,
}

/// A line of text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    /// A point on the baseline, determined by `anchor`.
    pub(crate) at: Point,
    /// The font size in points.
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) direction: TextDirection,
    pub(crate) colour: Colour,
    pub(crate) text: String,
}

impl Text {
    /// Creates a horizontal text that begins at (x, y).
    pub(crate) fn new(x: f64, y: f64, size: f64, colour: Colour, text: impl Into<String>) -> Self {
        let at = Point { x, y };
        Self {
            at,
            size,
            anchor: Anchor::Start,
            direction: TextDirection::Horizontal,
            colour,
            text: text.into(),
        }
    }

    /// Returns the same text with another anchor.
    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Returns the distance from the start of the text to `at`.
    pub(crate) fn anchor_offset(&self) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font::width(&self.text, self.size) / 2.0,
            Anchor::End => font::width(&self.text, self.size),
        }
    }
}

/// An element of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Shape(Shape),
    Text(Text),
    /// Several elements of one kind.
    Group {
        /// The class in the SVG.
        class: &'static str,
        /// The visible area. `None` shows everything.
        clip: Option<Rect>,
        /// The elements in drawing order.
        items: Vec<Self>,
    },
}

/// A complete picture, which [`Format::render`](super::Format::render) converts to a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The width in points.
    pub(crate) width: f64,
    /// The height in points.
    pub(crate) height: f64,
    /// The text for programs that cannot show the picture.
    pub(crate) title: String,
    /// The elements in drawing order.
    pub(crate) items: Vec<Item>,
}
