//! The sentences below a scene's table. Each is shown only if the runs support it.

use airtcp_numbers::statistics::{Mean, average, differences};
use airtcp_numbers::verdict::{Comparison, MARGIN, Verdict};
use serde::{Deserialize, Serialize};

use super::Row;
use super::seeds::Runs;

/// A claim about a sender compared with another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) sender: &'static str,
    /// The sender with which it is compared.
    pub(super) than: &'static str,
    pub(super) statement: Statement,
    /// The mechanism, as a sentence without figures and without a full stop.
    pub(super) because: &'static str,
}

/// The statement. It holds if the 95 % interval of the paired differences supports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statement {
    Faster,
    /// The whole interval is within [`MARGIN`] of zero.
    AsFast,
    RetransmitsLess,
    HasFewerTimeouts,
}

/// A claim in words, with figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sentence {
    /// True if the runs support the claim.
    pub holds: bool,
    /// The claim with its figures.
    pub text: String,
}

impl Claim {
    /// Checks the claim. `rows` and `runs` are in the order of the senders. Both contain the senders of the
    /// claim, which a test verifies for every scene.
    pub(super) fn check(&self, rows: &[Row], runs: &[Runs]) -> Sentence {
        let index =
            |name| rows.iter().position(|row| row.sender == name).expect("a claim is about its scene");
        let (own, other) = (index(self.sender), index(self.than));
        let [sender, than] = [&rows[own], &rows[other]].map(Row::virtual_name);
        let because = self.because;
        let goodput = Comparison::of(&runs[own].kbit_per_s, &runs[other].kbit_per_s);
        let (holds, statement) = match self.statement {
            Statement::Faster => (
                goodput.verdict == Verdict::Better,
                format!("{sender} is faster than {than}: {}", percent(goodput.gain)),
            ),
            Statement::AsFast => (
                goodput.gain.is_some_and(is_equivalent),
                format!(
                    "{sender} is as fast as {than} within {:.0} %: {}",
                    100.0 * MARGIN,
                    percent(goodput.gain)
                ),
            ),
            Statement::RetransmitsLess => {
                let (less, figures) = fewer(&runs[own].resent, &runs[other].resent);
                (less, format!("{sender} retransmits less than {than}: {figures} segments"))
            }
            Statement::HasFewerTimeouts => {
                let (less, figures) = fewer(&runs[own].timeouts, &runs[other].timeouts);
                (less, format!("{sender} has fewer timeouts than {than}: {figures}"))
            }
        };
        Sentence { holds, text: format!("{statement}. {because}.") }
    }
}

fn is_equivalent(gain: Mean) -> bool {
    gain.half_width.is_some_and(|half| gain.mean.abs() + half <= MARGIN)
}

fn percent(gain: Option<Mean>) -> String {
    let Some(gain) = gain else { return "?".to_owned() };
    let half = gain.half_width.map_or_else(String::new, |half| format!(" ± {:.1}", 100.0 * half));
    format!("{:+.1}{half} %", 100.0 * gain.mean)
}

/// Returns whether the interval of the differences lies below zero, and both means as text.
fn fewer(own: &[f64], other: &[f64]) -> (bool, String) {
    let difference = Mean::of(&differences(own, other));
    let holds = difference.is_some_and(|it| it.half_width.is_some_and(|half| it.mean + half < 0.0));
    let [own, other] = [own, other].map(|values| average(values).unwrap_or_default());
    let half = difference.and_then(|it| it.half_width).unwrap_or(f64::INFINITY);
    (holds, format!("{own:.1} instead of {other:.1} (± {half:.1})"))
}
