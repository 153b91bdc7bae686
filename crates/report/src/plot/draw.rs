//! What a picture consists of, in points of 1/96 inch from the top left corner. `svg` and `png` make files of it.

use super::font;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

/// A place in a picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Rect {
    pub fn right(&self) -> f64 {
        self.left + self.width
    }

    pub fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The outline.
    pub fn steps(&self) -> [Step; 5] {
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
pub enum Step {
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
pub struct Stroke {
    /// Of the line.
    pub colour: Colour,
    /// In points.
    pub width: f64,
    /// Solid or not.
    pub dash: Dash,
    /// With round ends, so that a line of no length is a dot.
    pub round: bool,
}

impl Stroke {
    /// A line without dashes and with flat ends.
    pub fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: Dash::Solid, round: false }
    }
}

/// Dashes, by which lines are told apart without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Long,
    Short,
    Dotted,
    Mixed,
}

impl Dash {
    /// All, in the order in which lines of a panel take them.
    pub const ALL: [Self; 5] = [Self::Solid, Self::Long, Self::Short, Self::Mixed, Self::Dotted];

    /// The lengths of strokes and gaps in turn; none for a solid line.
    pub fn lengths(self) -> &'static [f32] {
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
pub struct Fill {
    /// Of the area.
    pub colour: Colour,
    /// From 0 to 1.
    pub opacity: f64,
}

/// Lines and areas of one look.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// The path.
    pub steps: Vec<Step>,
    /// How its line is drawn, if it is.
    pub stroke: Option<Stroke>,
    /// How its inside is filled, if it is.
    pub fill: Option<Fill>,
}

/// Which part of a text is at its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// The direction of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// From left to right.
    Level,
    /// From the bottom to the top.
    Upwards,
}

/// A line of letters.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// A point of the baseline, which `anchor` says more about.
    pub at: Point,
    /// Of the font, in points.
    pub size: f64,
    pub anchor: Anchor,
    pub turn: Turn,
    pub colour: Colour,
    pub text: String,
}

impl Text {
    /// A level text that begins at (x, y).
    pub fn new(x: f64, y: f64, size: f64, colour: Colour, text: impl Into<String>) -> Self {
        let at = Point { x, y };
        Self { at, size, anchor: Anchor::Start, turn: Turn::Level, colour, text: text.into() }
    }

    /// The same text with another part of it at its point.
    pub fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// How far in front of `at` the baseline begins.
    pub fn lead(&self) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font::width(&self.text, self.size) / 2.0,
            Anchor::End => font::width(&self.text, self.size),
        }
    }
}

/// Something in a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
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

/// A whole picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// In points.
    pub width: f64,
    /// In points.
    pub height: f64,
    /// What a program says that cannot show the picture.
    pub title: String,
    /// The first one is drawn first.
    pub items: Vec<Item>,
}
