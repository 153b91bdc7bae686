//! What an analysis looks like: pictures, and files for other programs that show such.
//!
//! [`plot`] knows axes and series and nothing of TCP; [`panels`] make these of a [`Trace`] and of what [`emulation`] reads;
//! [`xplot`] writes the files of the program of that name.

pub mod emulation;
pub mod html;
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

#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct WriteError {
    pub path: PathBuf,
    pub error: io::Error,
}

/// A directory into which pictures of traces are put, each trace's under its own name.
#[derive(Debug)]
pub struct Gallery {
    directory: PathBuf,
    names: BTreeSet<String>,
}

impl Gallery {
    /// Makes the directory if there is none.
    pub fn create(directory: &Path) -> Result<Self, WriteError> {
        fs::create_dir_all(directory).map_err(|error| WriteError { path: directory.to_owned(), error })?;
        Ok(Self { directory: directory.to_owned(), names: BTreeSet::new() })
    }

    /// All panels in one picture, and each alone. Hands back the files.
    pub fn pictures(
        &mut self,
        trace: &Trace,
        formats: &[Format],
        emulated: &EmulatedPath,
        range: Range,
    ) -> Result<Vec<PathBuf>, WriteError> {
        let stem = self.stem(trace);
        let all = ("all", &Picture::ALL[..]);
        let alone = Picture::ALL.iter().map(|picture| (picture.name(), std::slice::from_ref(picture)));
        let mut files = Vec::new();
        for (what, pictures) in [all].into_iter().chain(alone) {
            let Some(figure) = panels::figure(trace, pictures, emulated, range) else { continue };
            let drawing = figure.draw();
            for format in formats {
                let path = self.directory.join(format!("{stem}.{what}.{format}"));
                write(&path, format.render(&drawing))?;
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Files for xplot. Hands them back.
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

    /// `10.0.0.2.9000-10.0.0.1.40000`, and a number if there was such a connection before.
    fn stem(&mut self, trace: &Trace) -> String {
        let name: String = trace
            .name
            .replace(" → ", "-")
            .chars()
            .map(|c| match c {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => c,
                ':' => '.',
                '[' | ']' => '_',
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
        .and_then(|content| fs::write(path, content))
        .map_err(|error| WriteError { path: path.to_owned(), error })
}
