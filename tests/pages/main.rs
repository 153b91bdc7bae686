//! The HTML pages in a browser: the report and the playground.

#![expect(clippy::disallowed_methods, reason = "the tests wait for other programs")]

mod playground;
mod report;
