//! What each sender's transfers add up to: the row of a table.

mod columns;

use airtcp::sender::shared;
use airtcp_numbers::statistics::{Mean, median};
use airtcp_numbers::verdict::Comparison;
pub(crate) use columns::{columns, csv, table};
use serde::{Deserialize, Serialize};

use super::sender::{Repair, Sender};
use super::transfer::Outcome;

/// What a sender's transfers add up to. Means are of those that succeeded and that the machine did not spoil, and `None` if
/// there are none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// A recipe, with its profile where those of the experiment differ, or `linux:` and a congestion control.
    pub sender: String,
    /// The sender's. `None`: it is the kernel's own, or the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// Transfers in which every octet arrived and nothing else.
    pub succeeded: usize,
    pub failed: usize,
    /// Goodput from the first SYN to the last ACK.
    pub kbit_per_s: Option<Mean>,
    /// The median of the same. `None`: none succeeded, or the file is older than this field.
    #[serde(default)]
    pub median_kbit_per_s: Option<f64>,
    /// Goodput beside that of the sender that all are compared with, of the rounds in which both succeeded. `None`: it is
    /// that sender, or the file is older than this field.
    #[serde(default)]
    pub against: Option<Comparison>,
    /// Goodput of those that compete with it. `None`: nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside_kbit_per_s: Option<Mean>,
    /// What part of all octets it had, from 0 to 1, while all were sending. `None`: nobody competes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Mean>,
    /// Jain's index of its own connections. `None`: it has one in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Mean>,
    /// Goodput towards the mobile side, where it sends both ways.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_kbit_per_s: Option<Mean>,
    /// And towards the fixed side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_kbit_per_s: Option<Mean>,
    /// Segments sent again, as the sender counts them: a mean. `None`: none succeeded, or another one of the kernel's senders
    /// shared its counters.
    pub fast: Option<f64>,
    pub timeout: Option<f64>,
    pub probe: Option<f64>,
    /// Of the retransmission timer.
    pub timeouts: Option<f64>,
    /// Timeouts that the sender has noticed to be a mistake.
    pub spurious: Option<f64>,
    /// As the capture on the sender's side shows it.
    pub resent_packets: f64,
    /// Silence on the sender's side that ended with a retransmission.
    pub idle_seconds: Option<Mean>,
}

/// What a table says over its rows, if all recipes in it have the same profile. Otherwise the rows say it.
pub(crate) fn profile<'a>(profiles: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    let profile = shared(profiles.into_iter().flatten())?;
    Some(format!("recipes with profile {profile}"))
}

/// A sentence for each sender that is compared with `against`.
pub(super) fn verdicts(rows: &[Row], against: &str) -> String {
    let said = rows.iter().filter_map(|row| Some(row.against?.sentence(&row.sender, against) + "\n"));
    said.collect()
}

/// What was made again, and what counts for nothing, because the machine has spoiled it. `None`: nothing.
pub(super) fn spoiled(transfers: &[Outcome]) -> Option<String> {
    let again: Vec<_> = transfers.iter().flat_map(|outcome| &outcome.made_again).collect();
    let left: Vec<_> = transfers.iter().filter_map(|outcome| outcome.spoiled.as_ref()).collect();
    let example = left.first().or_else(|| again.first())?;
    Some(format!(
        "this machine has spoiled transfers: {} were made again, {} are left out; for example, {example}",
        again.len(),
        left.len()
    ))
}

/// A row for each sender, in this order; all others are compared with the one at `against`. Transfers of one sender are in
/// the order of the rounds.
pub(super) fn rows(senders: &[Sender], against: usize, transfers: &[Outcome]) -> Vec<Row> {
    let of = |sender: &Sender| {
        let name = sender.name.clone();
        transfers.iter().filter(move |outcome| outcome.sender == name)
    };
    let counts = |outcome: &Outcome| outcome.failure.is_none() && outcome.spoiled.is_none();
    let goodput = |outcome: &Outcome| counts(outcome).then_some(outcome.kbit_per_s);
    let theirs: Vec<_> =
        senders.get(against).map(|sender| of(sender).map(goodput).collect()).unwrap_or_default();
    senders
        .iter()
        .enumerate()
        .map(|(at, sender)| {
            let all: Vec<_> = of(sender).collect();
            let failed = all.iter().filter(|outcome| outcome.failure.is_some()).count();
            let good: Vec<_> = all.iter().filter(|outcome| counts(outcome)).collect();
            let values = |value: &dyn Fn(&Outcome) -> f64| -> Vec<f64> {
                good.iter().map(|outcome| value(outcome)).collect()
            };
            let mean = |value: &dyn Fn(&Outcome) -> f64| Mean::of(&values(value));
            let known = |value: &dyn Fn(&Outcome) -> Option<f64>| -> Option<Mean> {
                Mean::of(&good.iter().filter_map(|outcome| value(outcome)).collect::<Vec<_>>())
            };
            let count = |value: &dyn Fn(&Repair) -> u64| -> Option<f64> {
                known(&|outcome| Some(value(outcome.repair.as_ref()?) as f64)).map(|mean| mean.mean)
            };
            // Rounds in which both succeeded.
            let pairs = all.iter().zip(&theirs).filter_map(|(outcome, other)| goodput(outcome).zip(*other));
            let (own, others): (Vec<_>, Vec<_>) = pairs.unzip();
            Row {
                sender: sender.name.clone(),
                profile: sender.profile(),
                succeeded: all.len() - failed,
                failed,
                kbit_per_s: mean(&|outcome| outcome.kbit_per_s),
                median_kbit_per_s: median(&values(&|outcome| outcome.kbit_per_s)),
                against: (at != against).then(|| Comparison::of(&own, &others)),
                beside_kbit_per_s: known(&|outcome| outcome.together.beside_kbit_per_s),
                share: known(&|outcome| outcome.together.share),
                fairness: known(&|outcome| outcome.together.fairness),
                down_kbit_per_s: known(&|outcome| outcome.together.down_kbit_per_s),
                up_kbit_per_s: known(&|outcome| outcome.together.up_kbit_per_s),
                fast: count(&|repair| repair.fast),
                timeout: count(&|repair| repair.timeout),
                probe: count(&|repair| repair.probe),
                timeouts: count(&|repair| repair.timeouts),
                spurious: count(&|repair| repair.spurious),
                resent_packets: mean(&|outcome| outcome.capture.resent_packets as f64)
                    .map_or(0.0, |mean| mean.mean),
                idle_seconds: mean(&|outcome| outcome.capture.idle_seconds),
            }
        })
        .collect()
}

/// The first column to the left, the others to the right.
pub(super) fn aligned(rows: &[impl AsRef<[String]>]) -> String {
    let mut width: Vec<usize> = Vec::new();
    for row in rows {
        for (column, cell) in row.as_ref().iter().enumerate() {
            width.resize(width.len().max(column + 1), 0);
            width[column] = width[column].max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        for (column, (cell, width)) in row.as_ref().iter().zip(&width).enumerate() {
            let gap = " ".repeat(width - cell.chars().count());
            let (before, after) = if column == 0 { ("", gap.as_str()) } else { (gap.as_str(), "") };
            text.push_str(&format!("{before}{cell}{after}  "));
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}
