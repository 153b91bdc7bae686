//! Definitions that the page's script shares with Rust: the codes in the columns of a run, and the looks.

use airtcp_analyze::trace::{Fate, Loss, Proof, Sending};
use airwire::Cause;

use crate::looks;

/// The source of the module `codes.js`.
pub(super) fn module() -> String {
    let sendings = SENDINGS.iter().map(|(_, name)| *name).enumerate();
    let fates = FATES.into_iter().enumerate();
    let codes = sendings.chain(fates).map(|(code, name)| format!("export const {name} = {code};\n"));
    let looks = looks::for_script();
    let looks = looks.iter().map(|(name, value)| format!("export const {name} = {value};\n"));
    codes.chain(looks).collect()
}

/// The column `sending` holds indices into this list. The names become constants of the script.
const SENDINGS: [(Sending, &str); 6] = [
    (Sending::New, "NEW"),
    (Sending::Fast, "FAST"),
    (Sending::Timeout, "TIMEOUT"),
    (Sending::Tail, "TAIL"),
    (Sending::Probe, "PROBE"),
    (Sending::Unexplained, "UNEXPLAINED"),
];

/// The column `fate` holds indices into this list. The names become constants of the script.
const FATES: [&str; 9] = [
    "UNKNOWN",
    "ARRIVED",
    "LOST_BETWEEN",
    "LOST_CONGESTION",
    "LOST_RADIO",
    "SPURIOUS_TIMESTAMP",
    "SPURIOUS_DSACK",
    "SPURIOUS_ARRIVAL",
    "SPURIOUS_ACKED",
];

/// The code of a variant, which must be in the list.
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
        Fate::Spurious { proof: Proof::Timestamp } => "SPURIOUS_TIMESTAMP",
        Fate::Spurious { proof: Proof::Dsack } => "SPURIOUS_DSACK",
        Fate::Spurious { proof: Proof::Arrival } => "SPURIOUS_ARRIVAL",
        Fate::Spurious { proof: Proof::Acked } => "SPURIOUS_ACKED",
    };
    code(FATES.iter().position(|known| *known == name))
}
