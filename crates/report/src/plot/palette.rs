//! Colours that colour-blind people can distinguish (Okabe and Ito, 2008), and marks that are distinguishable
//! in grey. The assignment of colours to items is defined elsewhere.

use super::draw::{Colour, Point, Step};

/// The colour of the background.
pub const WHITE: Colour = Colour(0xff, 0xff, 0xff);
/// Text, and marks on coloured areas.
pub const BLACK: Colour = Colour(0, 0, 0);
pub(crate) const ORANGE: Colour = Colour(0xe6, 0x9f, 0x00);
pub(crate) const SKY: Colour = Colour(0x56, 0xb4, 0xe9);
pub(crate) const GREEN: Colour = Colour(0x00, 0x9e, 0x73);
pub(crate) const BLUE: Colour = Colour(0x00, 0x72, 0xb2);
pub(crate) const VERMILION: Colour = Colour(0xd5, 0x5e, 0x00);
pub(crate) const PURPLE: Colour = Colour(0xcc, 0x79, 0xa7);
/// Frames and small text.
pub(crate) const GREY: Colour = Colour(0x59, 0x59, 0x59);
pub(crate) const PALE: Colour = Colour(0xdd, 0xdd, 0xdd);
/// Lines that other lines cover, and areas with black marks.
pub const SILVER: Colour = Colour(0x8a, 0x8a, 0x8a);

/// Returns the replacement for a colour that is too dark on a dark background.
pub(crate) fn on_dark(colour: Colour) -> Colour {
    match colour {
        BLACK => WHITE,
        BLUE => SKY,
        // The two blues must remain distinguishable.
        SKY => Colour(0x0f, 0x86, 0xc4),
        GREEN => Colour(0x1f, 0xc2, 0x96),
        VERMILION => Colour(0xff, 0x7a, 0x2e),
        PURPLE => Colour(0xe3, 0x9b, 0xc3),
        GREY => Colour(0xb0, 0xb0, 0xb0),
        SILVER => Colour(0x9a, 0x9a, 0x9a),
        other => other,
    }
}

/// The colours of the lines in one panel, in this order. Yellow is missing because it is hard to see on
/// white.
pub const LINES: [Colour; 7] = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, BLACK, SKY];

/// A small symbol at a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A dot, the smallest mark.
    Dot,
    /// A triangle that points up.
    Up,
    /// A triangle that points down.
    Down,
    /// A filled square.
    Square,
    /// A filled diamond.
    Diamond,
    /// A filled circle.
    Disc,
    /// A circle, large enough to surround the other marks.
    Ring,
    /// The outline of a square.
    OpenSquare,
    /// The outline of a square, large enough to surround the other marks.
    Frame,
    /// An x.
    Cross,
    /// An x in a circle.
    CrossInRing,
    /// A filled circle, larger than an x in a circle.
    Plate,
    /// An x in a square.
    CrossInSquare,
    /// A +.
    Plus,
    /// A short line down from the point.
    Tick,
}

impl Mark {
    /// The marks of the lines in one panel, in this order.
    pub const LINES: [Self; 7] =
        [Self::Disc, Self::Square, Self::Up, Self::Diamond, Self::Down, Self::OpenSquare, Self::Ring];

    /// Returns whether the mark is filled. Other marks are drawn as lines.
    pub(crate) fn filled(self) -> bool {
        matches!(self, Self::Up | Self::Down | Self::Square | Self::Diamond | Self::Disc | Self::Plate)
    }

    /// Returns half the size of the mark, in points.
    pub(crate) fn radius(self) -> f64 {
        match self {
            Self::Dot => 0.9,
            Self::Up | Self::Down | Self::Diamond => 3.4,
            Self::Square | Self::OpenSquare => 2.5,
            Self::Disc => 2.6,
            Self::Ring | Self::Frame => 4.8,
            Self::Cross | Self::Plus => 3.0,
            Self::CrossInRing | Self::CrossInSquare => 4.0,
            Self::Plate => 5.2,
            Self::Tick => 3.0,
        }
    }

    /// Appends the outline of the mark around a point.
    pub(crate) fn steps(self, Point { x, y }: Point, steps: &mut Vec<Step>) {
        let r = self.radius();
        let mut line = |points: &[(f64, f64)], close: bool| {
            for (index, (dx, dy)) in points.iter().enumerate() {
                let point = Point { x: x + dx, y: y + dy };
                steps.push(if index == 0 { Step::Move(point) } else { Step::Line(point) });
            }
            if close {
                steps.push(Step::Close);
            }
        };
        match self {
            Self::Dot => line(&[(0.0, 0.0), (0.0, 0.0)], false),
            Self::Up => line(&[(-r, r * 0.7), (0.0, -r), (r, r * 0.7)], true),
            Self::Down => line(&[(-r, -r * 0.7), (0.0, r), (r, -r * 0.7)], true),
            Self::Square | Self::OpenSquare | Self::Frame => {
                line(&[(-r, -r), (r, -r), (r, r), (-r, r)], true);
            }
            Self::Diamond => line(&[(-r, 0.0), (0.0, -r), (r, 0.0), (0.0, r)], true),
            Self::Disc | Self::Ring | Self::Plate => steps.push(Step::Circle(Point { x, y }, r)),
            Self::Cross => {
                line(&[(-r, -r), (r, r)], false);
                line(&[(-r, r), (r, -r)], false);
            }
            Self::CrossInRing => {
                let inside = r * std::f64::consts::FRAC_1_SQRT_2;
                line(&[(-inside, -inside), (inside, inside)], false);
                line(&[(-inside, inside), (inside, -inside)], false);
                steps.push(Step::Circle(Point { x, y }, r));
            }
            Self::CrossInSquare => {
                line(&[(-r, -r), (r, r)], false);
                line(&[(-r, r), (r, -r)], false);
                line(&[(-r, -r), (r, -r), (r, r), (-r, r)], true);
            }
            Self::Plus => {
                line(&[(-r * 1.2, 0.0), (r * 1.2, 0.0)], false);
                line(&[(0.0, -r * 1.2), (0.0, r * 1.2)], false);
            }
            Self::Tick => line(&[(0.0, 0.0), (0.0, r * 1.2)], false),
        }
    }
}
