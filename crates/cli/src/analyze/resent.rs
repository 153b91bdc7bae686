//! `--resent`: lists each retransmission with its cause and the state of the connection at that moment.

use airtcp_analyze::trace::{Fate, Loss, Proof, Sending, Trace};
use airtcp_numbers::table::{Column, Table};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Resent {
    pub(super) frame: u64,
    /// Seconds since the capture's first packet.
    pub(super) seconds: f64,
    /// Relative sequence number: the SYN is at 0.
    pub(super) start: u64,
    pub(super) end: u64,
    why: Sending,
    /// Duplicate ACKs that had arrived for this segment.
    pub(super) dupacks: u32,
    /// Segments in flight, without this one.
    pub(super) in_flight: u32,
    fate: Fate,
}

impl Resent {
    /// Why the segment was sent again.
    pub(super) fn cause(&self) -> &'static str {
        match self.why {
            Sending::New => "new",
            Sending::Fast => "fast",
            Sending::Timeout => "timeout",
            Sending::Tail => "tail",
            Sending::Probe => "probe",
            Sending::Unexplained => "unexplained",
        }
    }

    /// The outcome of the retransmission. Empty if it arrived, or if the capture does not show its outcome.
    pub(super) fn outcome(&self) -> String {
        match self.fate {
            Fate::Unknown | Fate::Arrived { .. } => String::new(),
            Fate::Lost(Loss::Between { before }) => format!("lost before capture {}", before + 1),
            Fate::Lost(Loss::Airlink(cause)) => format!("lost: {}", cause.name()),
            Fate::Spurious { proof: Proof::Timestamp } => "spurious (timestamp)".to_owned(),
            Fate::Spurious { proof: Proof::Dsack } => "spurious (D-SACK)".to_owned(),
            Fate::Spurious { proof: Proof::Arrival } => "spurious (original arrived)".to_owned(),
            Fate::Spurious { proof: Proof::Acked } => "spurious (already acknowledged)".to_owned(),
        }
    }
}

pub(super) fn of(trace: &Trace) -> Vec<Resent> {
    let resent = trace.segments.iter().filter(|segment| segment.sending != Sending::New);
    let resent = resent.map(|segment| Resent {
        frame: segment.number,
        seconds: segment.at as f64 / 1e9,
        start: segment.start,
        end: segment.end,
        why: segment.sending,
        dupacks: segment.dupacks,
        in_flight: segment.in_flight,
        fate: segment.fate,
    });
    resent.collect()
}

pub(super) fn table(resent: &[Resent], width: Option<usize>) -> String {
    let mut table = Table::new([
        Column::new("frame"),
        Column::new("seconds"),
        Column::new("sequence").of("bytes"),
        Column::new("cause").left(),
        Column::new("dup. ACKs"),
        Column::new("in flight").of("segments"),
        Column::new("outcome").left(),
    ]);
    for retransmission in resent {
        let Resent { frame, seconds, start, dupacks, in_flight, .. } = retransmission;
        table.push([
            frame.to_string(),
            format!("{seconds:.6}"),
            start.to_string(),
            retransmission.cause().to_owned(),
            dupacks.to_string(),
            in_flight.to_string(),
            retransmission.outcome(),
        ]);
    }
    table.render(width)
}
