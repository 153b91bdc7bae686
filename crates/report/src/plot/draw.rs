//! What a picture consists of, in points of 1/96 inch from the top left corner. `svg` and `png` make files of it.

use super::font;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

impl Colour {
    /// As SVG and style sheets write it: `#0072b2`.
    pub(crate) fn hex(self) -> String {
        let Self(red, green, blue) = self;
        format!("#{red:02x}{green:02x}{blue:02x}")
    }
}

/// A place in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    /// To the right.
    pub(crate) x: f64,
    /// Down.
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

    /// The outline.
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
    /// Lifts the pen and goes there.
    Move(Point),
    /// Draws a straight line there.
    Line(Point),
    /// A whole circle around a point, with this radius.
    Circle(Point, f64),
    /// Draws a straight line to the last `Move`.
    Close,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Stroke {
    /// Of the line.
    pub(crate) colour: Colour,
    /// In points.
    pub(crate) width: f64,
    /// Solid or not.
    pub(crate) dash: Dash,
    /// With round ends, so that a line of no length is a dot.
    pub(crate) round: bool,
}

impl Stroke {
    /// A line without dashes and with flat ends.
    pub(crate) fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: Dash::Solid, round: false }
    }
}

/// Dashes, by which lines are told apart without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    /// Without gaps.
    Solid,
    /// Long dashes.
    Long,
    /// Short dashes.
    Short,
    /// Dots.
    Dotted,
    /// Long and short dashes in turn.
    Mixed,
}

impl Dash {
    /// All, in the order in which lines of a panel take them.
    pub const ALL: [Self; 5] = [Self::Solid, Self::Long, Self::Short, Self::Mixed, Self::Dotted];

    /// The lengths of strokes and gaps in turn; none for a solid line.
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

/// How an area is filled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fill {
    /// Of the area.
    pub(crate) colour: Colour,
    /// From 0 to 1.
    pub(crate) opacity: f64,
}

/// Lines and areas of one look.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// The path.
    pub(crate) steps: Vec<Step>,
    /// How its line is drawn, if it is.
    pub(crate) stroke: Option<Stroke>,
    /// How its inside is filled, if it is.
    pub(crate) fill: Option<Fill>,
}

/// Which part of a text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The direction of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// From left to right.
    Level,
    /// From the bottom to the top.
    Upwards,
}

/// A line of letters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Text {
    /// A point of the baseline, which `anchor` says more about.
    pub(crate) at: Point,
    /// Of the font, in points.
    pub(crate) size: f64,
    pub(crate) anchor: Anchor,
    pub(crate) turn: Turn,
    pub(crate) colour: Colour,
    pub(crate) text: String,
}

impl Text {
    /// A level text that begins at (x, y).
    pub(crate) fn new(x: f64, y: f64, size: f64, colour: Colour, text: impl Into<String>) -> Self {
        let at = Point { x, y };
        Self { at, size, anchor: Anchor::Start, turn: Turn::Level, colour, text: text.into() }
    }

    /// The same text with another part of it at its point.
    pub(crate) fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// How far in front of `at` the baseline begins.
    pub(crate) fn lead(&self) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font::width(&self.text, self.size) / 2.0,
            Anchor::End => font::width(&self.text, self.size),
        }
    }
}

/// Something in a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Item {
    Shape(Shape),
    Text(Text),
    /// Several items of one kind.
    Group {
        /// For programs that read the SVG.
        class: &'static str,
        /// Where they are seen; `None`: everywhere.
        clip: Option<Rect>,
        /// The first one is drawn first.
        items: Vec<Self>,
    },
}

/// A whole picture, which [`Format::render`](super::Format::render) makes a file of.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// In points.
    pub(crate) width: f64,
    /// In points.
    pub(crate) height: f64,
    /// What a program says that cannot show the picture.
    pub(crate) title: String,
    /// The first one is drawn first.
    pub(crate) items: Vec<Item>,
}
