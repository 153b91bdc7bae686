//! What a picture consists of, in points of 1/96 inch from the top left corner: `svg` writes it down,
//! `png` fills in its pixels.

use super::font;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Colour(pub u8, pub u8, pub u8);

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
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

    /// Its outline.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    Move(Point),
    Line(Point),
    /// A whole one.
    Circle(Point, f64),
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub dash: Dash,
    /// So that a line of no length is a dot.
    pub round: bool,
}

impl Stroke {
    pub fn solid(colour: Colour, width: f64) -> Self {
        Self { colour, width, dash: Dash::Solid, round: false }
    }
}

/// Told apart without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dash {
    Solid,
    Long,
    Short,
    Dotted,
    Mixed,
}

impl Dash {
    pub const ALL: [Self; 5] = [Self::Solid, Self::Long, Self::Short, Self::Mixed, Self::Dotted];

    /// Lengths of strokes and gaps.
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

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fill {
    pub colour: Colour,
    /// From 0 to 1.
    pub opacity: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub steps: Vec<Step>,
    pub stroke: Option<Stroke>,
    pub fill: Option<Fill>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    Level,
    /// Read from below.
    Upwards,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// On the baseline.
    pub at: Point,
    pub size: f64,
    pub anchor: Anchor,
    pub turn: Turn,
    pub colour: Colour,
    pub text: String,
}

impl Text {
    pub fn new(x: f64, y: f64, size: f64, colour: Colour, text: impl Into<String>) -> Self {
        let at = Point { x, y };
        Self { at, size, anchor: Anchor::Start, turn: Turn::Level, colour, text: text.into() }
    }

    pub fn anchored(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// How far the baseline's begin is in front of `at`.
    pub fn lead(&self) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => font::width(&self.text, self.size) / 2.0,
            Anchor::End => font::width(&self.text, self.size),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Shape(Shape),
    Text(Text),
    /// Things of one kind, of which only what is inside `clip` is seen.
    Group {
        class: &'static str,
        clip: Option<Rect>,
        items: Vec<Self>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    pub width: f64,
    pub height: f64,
    pub title: String,
    pub items: Vec<Item>,
}
