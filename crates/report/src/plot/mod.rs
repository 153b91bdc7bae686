//! Plots series over axes, in panels below each other, as SVG, PNG and PDF.
//!
//! A [`figure::Figure`] holds the data. Its layout is a [`draw::Drawing`], which consists only of shapes and
//! text. A [`Format`] renders it. Equal data gives identical files.

pub mod axis;
pub mod breaks;
pub mod draw;
pub mod figure;
mod font;
mod layer;
mod notes;
pub mod palette;
mod pdf;
mod png;
mod svg;

#[cfg(test)]
pub(crate) mod tests;

use std::fmt;
use std::io;

use draw::Drawing;
pub use layer::{Data, Series};

/// The format of a picture. `Display` writes the file name extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SVG. Letters remain text that programs can read.
    Svg,
    /// PNG in colour, for programs without SVG support.
    Png,
    /// PDF with an embedded font, for LaTeX.
    Pdf,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 3] = [Self::Svg, Self::Png, Self::Pdf];

    /// Returns the format for a file name extension, ignoring case.
    pub fn of(path: &std::path::Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_lowercase();
        Self::ALL.into_iter().find(|format| format.to_string() == extension)
    }

    /// Returns the content of the file.
    pub fn render(self, drawing: &Drawing) -> io::Result<Vec<u8>> {
        match self {
            Self::Svg => Ok(svg::svg(drawing).into_bytes()),
            Self::Png => png::png(drawing),
            Self::Pdf => Ok(pdf::pdf(drawing)),
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Svg => "svg",
            Self::Png => "png",
            Self::Pdf => "pdf",
        })
    }
}
