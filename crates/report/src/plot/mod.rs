//! Plots: series over axes, in panels above each other, as SVG and as PNG.
//!
//! [`figure`] lays out what [`axis`] and `layer` make of the data; what comes of it is a [`draw::Drawing`], which knows
//! nothing of data any more. Equal data give equal files.

pub mod axis;
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Svg,
    Png,
}

impl Format {
    pub const ALL: [Self; 2] = [Self::Svg, Self::Png];

    /// By the end of a file's name.
    pub fn of(path: &std::path::Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?.to_lowercase();
        Self::ALL.into_iter().find(|format| format.to_string() == extension)
    }

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
