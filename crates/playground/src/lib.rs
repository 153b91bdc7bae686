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
mod ladder;
mod moment;
#[cfg(not(target_family = "wasm"))]
pub mod page;
mod path_events;
mod request;
mod run;
mod seeds;
mod words;

use request::Request;
use run::StoredRun;
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

/// Answers the page's requests. Stores the displayed runs for later requests.
#[derive(Default)]
pub struct Core {
    runs: Vec<Option<StoredRun>>,
    limits: Limits,
}

/// Memory limits in bytes. A stranger may have written the scenario, and a module loses all runs if its
/// memory is exhausted.
#[derive(Clone, Copy)]
struct Limits {
    /// All stored runs together: captures, decisions and decision logs.
    stored: u64,
    /// The packets inside the path of a run.
    packets: u64,
    /// The decisions and losses of a run. The answer to the page takes several times as much.
    records: u64,
}

impl Default for Limits {
    /// A browser gives a module at most 4 GB.
    fn default() -> Self {
        Self { stored: 1_500_000_000, packets: 256_000_000, records: 128_000_000 }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Completed share of the run, from 0 to 1.
    pub share: f64,
    /// Virtual time in seconds.
    pub seconds: f64,
}

/// Callback that receives the progress of a run from time to time.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);

/// Maximum number of stored runs.
const SLOTS: usize = 16;

impl Core {
    /// Answers one request. Answers are JSON, `{"ok": …}` or `{"troubles": […]}`, except captures and
    /// decision logs, which are returned as files.
    pub fn answer(&mut self, request: &[u8], progress: OnProgress<'_>) -> Vec<u8> {
        match self.respond(request, progress) {
            Ok(Answer::Json(value)) => json!({ "ok": value }),
            Ok(Answer::File(content)) => return content,
            Err(troubles) => json!({ "troubles": troubles }),
        }
        .to_string()
        .into_bytes()
    }

    fn respond(&mut self, request: &[u8], progress: OnProgress<'_>) -> Result<Answer, Vec<Trouble>> {
        let request: Request = serde_json::from_slice(request)
            .map_err(|error| vec![Trouble::new("run", 0, format!("invalid request: {error}"))])?;
        Ok(Answer::Json(match request {
            Request::Completions { word } => words::completions(&word),
            Request::Explain { sender } => words::explain(&sender).map_err(|trouble| vec![trouble])?,
            Request::Check { setup } => {
                let checked = setup.read()?;
                json!({ "commands": checked.commands(), "remarks": checked.remarks() })
            }
            Request::Run { slot, setup, senders } => {
                let checked = setup.read()?;
                // The new run replaces an earlier one.
                *self.slot(slot)? = None;
                let (json, stored) = run::run(&checked, &senders, self.limits_of_run(), progress)?;
                *self.slot(slot)? = Some(stored);
                json
            }
            Request::Goodput { setup, sender, ahead: seed_offset } => {
                json!(seeds::goodput(&setup.read()?, sender, seed_offset, self.limits, progress)?)
            }
            Request::Compare { names, goodputs } => seeds::compare(&names, &goodputs),
            Request::Moment { slot, flow, micros } => moment::moment(self.stored_run(slot)?, flow, micros)?,
            Request::Capture { slot } => return Ok(Answer::File(self.stored_run(slot)?.capture.to_vec())),
            Request::Decisions { slot } => {
                return Ok(Answer::File(self.stored_run(slot)?.log.clone().into_bytes()));
            }
        }))
    }

    /// Returns the limits of another run in addition to the stored ones.
    fn limits_of_run(&self) -> Limits {
        let stored: u64 = self.runs.iter().flatten().map(StoredRun::memory).sum();
        Limits { stored: self.limits.stored.saturating_sub(stored), ..self.limits }
    }

    fn slot(&mut self, slot: usize) -> Result<&mut Option<StoredRun>, Vec<Trouble>> {
        if slot >= SLOTS {
            let message = format!("at most {SLOTS} runs can be shown at the same time");
            return Err(vec![Trouble::new("run", slot, message)]);
        }
        if self.runs.len() <= slot {
            self.runs.resize_with(slot + 1, || None);
        }
        Ok(&mut self.runs[slot])
    }

    fn stored_run(&self, slot: usize) -> Result<&StoredRun, Vec<Trouble>> {
        let run = self.runs.get(slot).and_then(Option::as_ref);
        run.ok_or_else(|| vec![Trouble::new("run", slot, "this run is no longer in memory; run it again")])
    }
}

enum Answer {
    Json(serde_json::Value),
    File(Vec<u8>),
}

#[cfg(test)]
mod tests;
