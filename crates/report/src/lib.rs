//! Graphs of connections: SVG, PNG, xplot files, and one HTML page.
//!
//! All graphs show the [`Trace`]s that `airtcp_analyze` extracts from a capture. Start with [`Gallery`],
//! which fills a directory with pictures, or with [`html::Page`], which writes one file with tables and
//! zoomable graphs.
//!
//! ```
//! use airtcp_analyze::trace::{Fate, Sending, SentSegment, Trace};
//! use airtcp_report::emulation::EmulatedPath;
//! use airtcp_report::panels::{Picture, Range, figure};
//! use airtcp_report::plot::Format;
//!
//! let segment = SentSegment {
//!     at: 0,
//!     number: 1,
//!     start: 1,
//!     end: 1449,
//!     sending: Sending::New,
//!     dupacks: 0,
//!     in_flight: 0,
//!     fate: Fate::Unknown,
//! };
//! let trace = Trace { segments: vec![segment], ..Trace::default() };
//!
//! let figure = figure(&trace, &[Picture::TimeSequence], &EmulatedPath::default(), Range::default());
//! let svg = Format::Svg.render(&figure.expect("a segment is shown").draw())?;
//! assert!(svg.starts_with(b"<svg"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! - [`captures`] makes a page from any capture.
//! - [`panels`] selects the parts of a trace to show; [`emulation`] reads airlink's log of the path.
//! - [`plot`] draws series over axes and knows nothing about TCP.
//! - [`xplot`](mod@xplot) writes files for the program xplot.

#![warn(missing_docs)]

#[cfg(not(target_family = "wasm"))]
pub mod captures;
pub mod emulation;
pub mod html;
mod looks;
pub mod panels;
pub mod plot;
pub mod xplot;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use airtcp_analyze::trace::Trace;
use emulation::EmulatedPath;
use panels::{Picture, Range};
use plot::Format;
use xplot::Graph;

/// Error: a file or directory cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct WriteError {
    /// The file or directory.
    pub path: PathBuf,
    /// The operating system's error.
    #[source]
    pub error: io::Error,
}

/// A directory for pictures of traces. Each trace gets its own file names.
#[derive(Debug)]
pub struct Gallery {
    directory: PathBuf,
    names: BTreeSet<String>,
}

impl Gallery {
    /// Creates the directory if it does not exist.
    pub fn create(directory: &Path) -> Result<Self, WriteError> {
        fs::create_dir_all(directory).map_err(|error| WriteError { path: directory.to_owned(), error })?;
        Ok(Self { directory: directory.to_owned(), names: BTreeSet::new() })
    }

    /// Writes one picture with all panels and one picture per panel, and skips panels without data. Returns
    /// the paths of the files.
    pub fn pictures(
        &mut self,
        trace: &Trace,
        formats: &[Format],
        emulated: &EmulatedPath,
        range: Range,
    ) -> Result<Vec<PathBuf>, WriteError> {
        let stem = self.stem(trace);
        let all = ("all", &Picture::ALL[..]);
        let single = Picture::ALL.iter().map(|picture| (picture.name(), std::slice::from_ref(picture)));
        let mut files = Vec::new();
        for (name, pictures) in [all].into_iter().chain(single) {
            let Some(figure) = panels::figure(trace, pictures, emulated, range) else { continue };
            let drawing = figure.draw();
            for format in formats {
                let path = self.directory.join(format!("{stem}.{name}.{format}"));
                write(&path, format.render(&drawing))?;
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Writes the files for xplot and returns their paths.
    pub fn xplot(&mut self, trace: &Trace) -> Result<Vec<PathBuf>, WriteError> {
        let stem = self.stem(trace);
        let mut files = Vec::new();
        for graph in Graph::ALL {
            let path = self.directory.join(format!("{stem}.{}.xpl", graph.name()));
            write(&path, Ok(xplot::xplot(trace, graph).into_bytes()))?;
            files.push(path);
        }
        Ok(files)
    }

    /// Returns the prefix of a trace's file names: `10.0.0.2.9000-10.0.0.1.40000`, followed by a number if an earlier
    /// trace has the same name.
    fn stem(&mut self, trace: &Trace) -> String {
        let name: String = trace
            .name
            .replace(" → ", "-")
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
                ':' => '.',
                _ => '_',
            })
            .collect();
        let name = match name.trim_start_matches(['.', '-']) {
            "" => "trace".to_owned(),
            name => name.chars().take(120).collect(),
        };
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = [name.clone()].into_iter().chain(numbered).find(|name| !self.names.contains(name));
        let stem = free.unwrap_or(name);
        self.names.insert(stem.clone());
        stem
    }
}

fn write(path: &Path, content: io::Result<Vec<u8>>) -> Result<(), WriteError> {
    content
        .and_then(|content| airfiles::write(path, content))
        .map_err(|error| WriteError { path: path.to_owned(), error })
}
