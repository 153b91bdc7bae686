//! What the script of a page must know as Rust does: the codes in the columns of a run, and what things look like.

use airtcp_analyze::trace::{Fate, Loss, Proof, Sending};
use airwire::Cause;

use crate::looks;

/// The module `codes.js`.
pub(super) fn module() -> String {
    let sendings = SENDINGS.iter().map(|(_, name)| *name).enumerate();
    let fates = FATES.into_iter().enumerate();
    let codes = sendings.chain(fates).map(|(code, name)| format!("export const {name} = {code};\n"));
    let looks = looks::for_script();
    let looks = looks.iter().map(|(name, value)| format!("export const {name} = {value};\n"));
    codes.chain(looks).collect()
}

/// The values of the column `sending` are indices in this list, the names constants of the script.
const SENDINGS: [(Sending, &str); 6] = [
    (Sending::New, "NEW"),
    (Sending::Fast, "FAST"),
    (Sending::Timeout, "TIMEOUT"),
    (Sending::Tail, "TAIL"),
    (Sending::Probe, "PROBE"),
    (Sending::Unexplained, "UNEXPLAINED"),
];

/// The values of the column `fate` are indices in this list, the names constants of the script.
const FATES: [&str; 9] = [
    "UNKNOWN",
    "ARRIVED",
    "LOST_BETWEEN",
    "LOST_CONGESTION",
    "LOST_RADIO",
    "UNNEEDED_TIMESTAMP",
    "UNNEEDED_DSACK",
    "UNNEEDED_ARRIVAL",
    "UNNEEDED_ACKED",
];

/// The index of a variant that is in the list.
fn code(index: Option<usize>) -> i64 {
    index.expect("the list has every variant") as i64
}

pub(super) fn of_sending(sending: Sending) -> i64 {
    code(SENDINGS.iter().position(|(known, _)| *known == sending))
}

pub(super) fn of_fate(fate: Fate) -> i64 {
    let name = match fate {
        Fate::Unknown => "UNKNOWN",
        Fate::Arrived { .. } => "ARRIVED",
        Fate::Lost(Loss::Between { .. }) => "LOST_BETWEEN",
        Fate::Lost(Loss::Airlink(Cause::Congestion)) => "LOST_CONGESTION",
        Fate::Lost(Loss::Airlink(Cause::Radio)) => "LOST_RADIO",
        Fate::Unneeded { proof: Proof::Timestamp } => "UNNEEDED_TIMESTAMP",
        Fate::Unneeded { proof: Proof::Dsack } => "UNNEEDED_DSACK",
        Fate::Unneeded { proof: Proof::Arrival } => "UNNEEDED_ARRIVAL",
        Fate::Unneeded { proof: Proof::Acked } => "UNNEEDED_ACKED",
    };
    code(FATES.iter().position(|known| *known == name))
}
