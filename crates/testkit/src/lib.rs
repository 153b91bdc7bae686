//! What tests, benches and fuzz targets share; no program needs it.
//!
//! * [`pair`], [`exchange`], [`hostile`], [`siege`], [`calls`]: hosts in memory, treated well and badly.
//! * [`pieces`]: what the kernel makes of segments in one.
//! * [`promises`]: the table of `make siege`. [`frames`]: captures made by hand; [`markup`]: whether text with tags is well formed.
//! * `machine`, `programs`, `browser` (feature `machine`): this machine's kernel, the programs, headless Chromium.

#![warn(missing_docs)]

pub mod calls;
pub mod exchange;
pub mod frames;
pub mod hostile;
pub mod markup;
pub mod pair;
pub mod pieces;
pub mod promises;
pub mod sample;
pub mod siege;

#[cfg(feature = "machine")]
pub mod browser;
#[cfg(feature = "machine")]
pub mod machine;
#[cfg(feature = "machine")]
pub mod programs;
