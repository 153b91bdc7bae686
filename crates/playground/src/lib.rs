//! The playground: simulations in virtual time, on one self-contained HTML page.
//!
//! [`Core`] answers JSON requests with JSON. It depends neither on a browser nor on a clock. Compiled to
//! WebAssembly (`abi`), it runs in a worker of the page; tests and the program call it directly. It reads the
//! same text with the same functions as `airtcp sim`, and a run has the same decisions and the same packets,
//! byte for byte.
//!
//! ```
//! let mut core = airtcp_playground::Core::default();
//! let request = r#"{"ask":"explain","sender":"newreno+eifel"}"#;
//! let answer = core.answer(request.as_bytes(), &mut |_| {});
//! assert!(String::from_utf8_lossy(&answer).contains("RFC 6582"));
//! ```

#![warn(missing_docs)]

#[cfg(target_family = "wasm")]
mod abi;
#[cfg(not(target_family = "wasm"))]
mod about;
mod below;
mod ladder;
mod moment;
#[cfg(not(target_family = "wasm"))]
pub mod page;
mod request;
mod run;
mod seeds;
mod words;

use request::Request;
use run::Kept;
use serde::Serialize;
use serde_json::json;

/// The scenes of the guided tour as JSON: setups and texts.
pub const SCENES: &str = include_str!("../page/scenes.json");

/// An error in the user's input, and its place on the page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// The field: `scenario`, `set`, `senders`, `seed`, `bytes`, `time`, `direction`, `receiver`, `buffer` or
    /// `run`.
    pub field: &'static str,
    /// Index of the value, if the field has several.
    pub index: usize,
    /// Error message.
    pub message: String,
    /// Suggestion for a valid input.
    pub help: Option<String>,
    /// Line in the field's text, from 1.
    pub line: Option<usize>,
    /// Column in characters, from 1.
    pub column: Option<usize>,
}

impl Trouble {
    fn new(field: &'static str, index: usize, message: impl ToString) -> Self {
        Self { field, index, message: message.to_string(), help: None, line: None, column: None }
    }
}

/// Answers the page's requests. It keeps the displayed runs, because later requests refer to them.
#[derive(Default)]
pub struct Core {
    kept: Vec<Option<Kept>>,
    limits: Limits,
}

/// Memory limits in bytes. The scenario may come from a stranger, and a module that runs out of memory loses
/// all runs.
#[derive(Clone, Copy)]
struct Limits {
    /// All kept runs together: captures, decisions and decision logs.
    kept: u64,
    /// The packets inside the path of a run.
    packets: u64,
    /// The decisions and losses of a run. The answer to the page takes several times as much.
    records: u64,
}

impl Default for Limits {
    /// A browser gives a module at most 4 GB.
    fn default() -> Self {
        Self { kept: 1_500_000_000, packets: 256_000_000, records: 128_000_000 }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reached {
    /// Completed share of the run, from 0 to 1.
    pub share: f64,
    /// Virtual time in seconds.
    pub seconds: f64,
}

/// Callback that receives the progress of a run from time to time.
pub type Progress<'a> = &'a mut dyn FnMut(Reached);

/// Maximum number of runs to keep.
const SLOTS: usize = 16;

impl Core {
    /// Answers one request. Answers are JSON, `{"ok": …}` or `{"troubles": […]}`, except captures and
    /// decision logs, which are returned as files.
    pub fn answer(&mut self, request: &[u8], progress: Progress<'_>) -> Vec<u8> {
        match self.answered(request, progress) {
            Ok(Answer::Json(value)) => json!({ "ok": value }),
            Ok(Answer::File(octets)) => return octets,
            Err(troubles) => json!({ "troubles": troubles }),
        }
        .to_string()
        .into_bytes()
    }

    fn answered(&mut self, request: &[u8], progress: Progress<'_>) -> Result<Answer, Vec<Trouble>> {
        let request: Request = serde_json::from_slice(request)
            .map_err(|error| vec![Trouble::new("run", 0, format!("invalid request: {error}"))])?;
        Ok(Answer::Json(match request {
            Request::Completions { word } => words::completions(&word),
            Request::Explain { sender } => words::explain(&sender).map_err(|trouble| vec![trouble])?,
            Request::Check { setup } => {
                let ready = setup.read()?;
                json!({ "commands": ready.commands(), "remarks": ready.remarks() })
            }
            Request::Run { slot, setup, senders } => {
                let ready = setup.read()?;
                // The new run takes the place of an earlier one.
                *self.slot(slot)? = None;
                let (shown, kept) = run::run(&ready, &senders, self.limits_of_run(), progress)?;
                *self.slot(slot)? = Some(kept);
                shown
            }
            Request::Goodput { setup, sender, ahead } => {
                json!(seeds::goodput(&setup.read()?, sender, ahead, self.limits, progress)?)
            }
            Request::Compare { names, goodputs } => seeds::compare(&names, &goodputs),
            Request::Moment { slot, flow, micros } => moment::moment(self.kept(slot)?, flow, micros)?,
            Request::Capture { slot } => return Ok(Answer::File(self.kept(slot)?.capture.to_vec())),
            Request::Decisions { slot } => {
                return Ok(Answer::File(self.kept(slot)?.log.clone().into_bytes()));
            }
        }))
    }

    /// Returns the limits of another run next to the kept ones.
    fn limits_of_run(&self) -> Limits {
        let kept: u64 = self.kept.iter().flatten().map(Kept::memory).sum();
        Limits { kept: self.limits.kept.saturating_sub(kept), ..self.limits }
    }

    fn slot(&mut self, slot: usize) -> Result<&mut Option<Kept>, Vec<Trouble>> {
        if slot >= SLOTS {
            return Err(vec![Trouble::new(
                "run",
                slot,
                format!("at most {SLOTS} runs can be shown at the same time"),
            )]);
        }
        if self.kept.len() <= slot {
            self.kept.resize_with(slot + 1, || None);
        }
        Ok(&mut self.kept[slot])
    }

    fn kept(&self, slot: usize) -> Result<&Kept, Vec<Trouble>> {
        let kept = self.kept.get(slot).and_then(Option::as_ref);
        kept.ok_or_else(|| vec![Trouble::new("run", slot, "this run is no longer in memory; run it again")])
    }
}

enum Answer {
    Json(serde_json::Value),
    File(Vec<u8>),
}

#[cfg(test)]
mod tests;
