//! Hosts and the paths between them in virtual time: as fast as the processor can, and the same to the bit every time.
//!
//! * [`world`] has the hosts, one path and the clock, and knows the truth about every packet. Drive it event by event
//!   to look inside.
//! * [`mod@run`] takes a world from its beginning to its end and hands back the numbers: goodput, fairness, counters. It
//!   is what `airtcp sim` does.
//! * [`sweep`] is many runs: every combination of what a file varies, with every seed, kept on disk. It is what
//!   `airtcp sweep` does.
//!
//! Hosts are `airtcp`, paths are `airlink`, and neither knows that the clock is not real. Two recipes share the path of
//! a preset:
//!
//! ```
//! use airlink::scenario::Scenario;
//! use airtcp_sim::{Flow, HostSpec, Length, Run, Until, run};
//! use airwire::time::Instant;
//!
//! let flow = |recipe: &str| Flow { recipe: Some(recipe.parse().unwrap()), ..Flow::down(Length::Endless) };
//! let plan = Run {
//!     scenario: Scenario::load("sifest-fairness")?,
//!     seed: 1,
//!     fixed: HostSpec::sender("newreno".parse()?),
//!     mobile: HostSpec::receiver(),
//!     flows: vec![flow("newreno"), flow("sack+sifest")],
//!     until: Until::At(Instant::from_secs(30)),
//!     from: Instant::ZERO,
//!     score: false,
//! };
//! let report = run(&plan)?;
//! for flow in &report.flows {
//!     println!("{:<12} {:>6.1} kbit/s", flow.recipe, flow.goodput_bit_per_s / 1e3);
//!     assert!(flow.goodput_bit_per_s > 10e3);
//! }
//! assert_eq!(report, run(&plan)?, "an equal run has an equal report");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

#![warn(missing_docs)]

pub mod file;
pub mod run;
pub mod sweep;
pub mod world;

pub use run::{FlowReport, Report, Run, Until, jain, run, run_watched};
pub use world::{Flow, FlowResult, HostSpec, Length, Watch, World, WorldConfig, WorldError};
