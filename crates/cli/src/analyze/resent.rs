//! Each packet that was sent again: why, and the state at that moment.

use airtcp_analyze::trace::{Fate, Loss, Proof, Sending, Trace};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Resent {
    frame: u64,
    /// Since the capture's first packet.
    seconds: f64,
    /// Sequence space, from the SYN, which is at 0.
    start: u64,
    end: u64,
    why: Sending,
    /// Duplicate ACKs that had arrived for it.
    dupacks: u32,
    /// Segments, without this one.
    in_flight: u32,
    fate: Fate,
}

pub(super) fn of(trace: &Trace) -> Vec<Resent> {
    let resent = trace.segments.iter().filter(|segment| segment.sending != Sending::New);
    let told = resent.map(|segment| Resent {
        frame: segment.number,
        seconds: segment.at as f64 / 1e9,
        start: segment.start,
        end: segment.end,
        why: segment.sending,
        dupacks: segment.dupacks,
        in_flight: segment.in_flight,
        fate: segment.fate,
    });
    told.collect()
}

pub(super) fn table(resent: &[Resent]) -> String {
    let mut text = format!(
        "{:>9}  {:>12}  {:>12}  {:<11}  {:>14}  {:>18}\n",
        "frame", "seconds", "octet", "why", "duplicate ACKs", "segments in flight"
    );
    for Resent { frame, seconds, start, why, dupacks, in_flight, fate, .. } in resent {
        let why = match why {
            Sending::New => "new",
            Sending::Fast => "fast",
            Sending::Timeout => "timeout",
            Sending::Tail => "tail",
            Sending::Probe => "probe",
            Sending::Unexplained => "unexplained",
        };
        let fate = match fate {
            Fate::Unknown | Fate::Arrived { .. } => String::new(),
            Fate::Lost(Loss::Between { before }) => format!("  lost before capture {}", before + 1),
            Fate::Lost(Loss::Airlink(cause)) => format!("  lost, {}", cause.name()),
            Fate::Unneeded { proof: Proof::Timestamp } => "  a mistake, by timestamp".to_owned(),
            Fate::Unneeded { proof: Proof::Dsack } => "  a mistake, by D-SACK".to_owned(),
            Fate::Unneeded { proof: Proof::Arrival } => "  a mistake, by arrival".to_owned(),
            Fate::Unneeded { proof: Proof::Acked } => "  a mistake, acknowledged before".to_owned(),
        };
        text += &format!(
            "{frame:>9}  {seconds:>12.6}  {start:>12}  {why:<11}  {dupacks:>14}  {in_flight:>18}{fate}\n"
        );
    }
    text
}
