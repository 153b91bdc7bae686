//! Plots series over axes, in panels one above the other, as SVG and as PNG.
//!
//! A [`figure::Figure`] holds the data. Laid out it becomes a [`draw::Drawing`], which consists of lines and letters alone,
//! and which a [`Format`] makes a file of. Equal data gives equal files.

pub mod axis;
pub mod breaks;
pub mod draw;
pub mod figure;
mod font;
mod layer;
mod notes;
pub mod palette;
mod png;
mod svg;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io;

use draw::Drawing;
pub use layer::{Data, Series};

/// The format of a picture. `Display` is the end of a file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With the letters as text, which a program can read.
    Svg,
    /// In colour, for programs that know no SVG.
    Png,
}

impl Format {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Svg, Self::Png];

    /// The format that the end of a file's name stands for, in small or capital letters.
    pub fn of(path: &std::path::Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_lowercase();
        Self::ALL.into_iter().find(|format| format.to_string() == extension)
    }

    /// The content of the file.
    pub fn render(self, drawing: &Drawing) -> io::Result<Vec<u8>> {
        match self {
            Self::Svg => Ok(svg::svg(drawing).into_bytes()),
            Self::Png => png::png(drawing),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Svg => "svg",
            Self::Png => "png",
        })
    }
}
