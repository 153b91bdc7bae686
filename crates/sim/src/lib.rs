//! Hosts in virtual time, joined by emulated paths. Runs are as fast as the processor allows, and
//! reproducible to the bit.
//!
//! * [`world`] contains the hosts, a path and the clock, and knows the ground truth about every
//!   packet. Advance it event by event to inspect its state.
//! * [`mod@run`] executes a run from beginning to end and returns its numbers: goodput, fairness,
//!   counters. `airtcp sim` uses it.
//! * [`sweep`] executes many runs, one for each combination of axis values and each seed, and
//!   stores the results on disk. `airtcp sweep` uses it.
//! * [`inputs`] reports recipes whose information a path or its receivers do not supply.
//!
//! `airtcp` supplies the hosts and `airlink` the paths. Both work with a virtual and with a real clock. In
//! this example, two recipes share the path of a preset:
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
pub mod inputs;
pub mod run;
pub mod sweep;
pub mod world;

pub use run::{FlowReport, Report, Run, Until, jain, run, run_watched};
pub use world::{Flow, FlowResult, HostSpec, Length, Watch, World, WorldConfig, WorldError};
