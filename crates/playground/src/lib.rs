//! The playground: everything that virtual time can do, in a page that needs nothing else.
//!
//! [`Core`] answers requests, JSON for JSON: it knows neither a browser nor a clock. Compiled to WebAssembly (`abi`) it runs in
//! a worker of the page; tests and the program call it as it is. What it runs is what `airtcp sim` runs: the same text is
//! read by the same functions, and a run has the same decisions and the same packets, to the octet.
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

/// The scenes of the guided tour, as JSON: setups and sentences.
pub const SCENES: &str = include_str!("../page/scenes.json");

/// What is wrong with what a person asked for, and where on the page that stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Trouble {
    /// The field: `scenario`, `set`, `senders`, `seed`, `bytes`, `time`, `direction`, `receiver`, `buffer` or `run`.
    pub field: &'static str,
    /// Which one, where the field has several values.
    pub index: usize,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Where in the field's text, from 1.
    pub line: Option<usize>,
    /// In characters, from 1.
    pub column: Option<usize>,
}

impl Trouble {
    fn new(field: &'static str, index: usize, message: impl ToString) -> Self {
        Self { field, index, message: message.to_string(), help: None, line: None, column: None }
    }
}

/// Answers the page's requests. It keeps the runs on display, of which the page asks more.
#[derive(Default)]
pub struct Core {
    kept: Vec<Option<Kept>>,
}

/// Called now and then during a run with the share that is done, from 0 to 1.
pub type Progress<'a> = &'a mut dyn FnMut(f64);

/// The most runs that are kept.
const SLOTS: usize = 16;

impl Core {
    /// Answers one request. All answers are JSON, `{"ok": …}` or `{"troubles": […]}`, but captures and logs, which are the
    /// files themselves.
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
                json!({ "commands": ready.commands(), "remarks": ready.scenario.warnings() })
            }
            Request::Run { slot, setup, senders } => {
                let (shown, kept) = run::run(&setup.read()?, &senders, progress)?;
                *self.slot(slot)? = Some(kept);
                shown
            }
            Request::Goodput { setup, sender, ahead } => {
                json!(seeds::goodput(&setup.read()?, sender, ahead, progress)?)
            }
            Request::Compare { names, goodputs } => seeds::compare(&names, &goodputs),
            Request::Moment { slot, flow, micros } => moment::moment(self.kept(slot)?, flow, micros)?,
            Request::Capture { slot } => return Ok(Answer::File(self.kept(slot)?.capture.to_vec())),
            Request::Decisions { slot } => {
                return Ok(Answer::File(self.kept(slot)?.log.clone().into_bytes()));
            }
        }))
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
