//! Code that tests, benchmarks and fuzz targets share. The programs do not use it.
//!
//! * [`pair`], [`exchange`], [`hostile`], [`attack`], [`calls`]: hosts in memory, also under attack.
//! * [`pieces`]: segmentation offload in software, which splits a piece into packets as the kernel does.
//! * [`promises`]: the table of `make siege`. [`sample`]: the number of cases that a test tries.
//! * [`frames`]: synthetic captures. [`markup`]: checks that text with tags is well formed.
//! * [`temporary`]: files and directories of tests. [`wireshark`]: tshark.
//! * `machine`, `programs`, `browser` (feature `machine`): the kernel, the programs, headless Chromium.
//!
//! ```
//! use airtcp_testkit::temporary::TempDir;
//!
//! // The directory is removed at the end of the test, even if the test fails.
//! let directory = TempDir::new("example");
//! let path = directory.write("scenario.toml", "schema = 1\n");
//! assert_eq!(std::fs::read_to_string(path)?, "schema = 1\n");
//! # Ok::<(), std::io::Error>(())
//! ```

#![warn(missing_docs)]

pub mod attack;
pub mod calls;
pub mod exchange;
pub mod frames;
pub mod hostile;
pub mod markup;
pub mod pair;
pub mod pieces;
pub mod promises;
pub mod sample;
pub mod temporary;
pub mod wireshark;

#[cfg(feature = "machine")]
pub mod browser;
#[cfg(feature = "machine")]
pub mod machine;
#[cfg(feature = "machine")]
pub mod programs;
