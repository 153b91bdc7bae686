//! The path of §7 (Fig. 10): the first segment of a window is lost, and a handover holds up what follows it.

/// The segment that is lost. In slow start from one segment, when the ACK of 21 comes, 22 to 43 are outstanding and
/// cwnd is 22. "The 25th duplicate ACK" is FlightSize + DupThresh then.
pub const FIRST: u64 = 22;
/// SND.HIGH: the last segment that was sent before the timeout.
pub const SND_HIGH: u64 = 43;

pub(super) const MSS: u16 = 1460;
/// The receiver's window, in segments: never the limit here.
pub(super) const WINDOW: usize = 128;
pub(super) const SEGMENTS: u64 = 2000;

/// `drop` is a scenario's loss list. `handover` is how long the handover lasts, which begins when segment 21 is
/// through; `None`: there is none.
pub fn path(drop: &[&str], handover: Option<&str>) -> String {
    let handover = handover.map_or_else(String::new, |lasts| {
        format!(
            r#"
[[stage]]
kind = "outage"
name = "handover"
down = {{ at = ["5.77s"], lasts = "{lasts}", packets = "requeued" }}
"#
        )
    });
    format!(
        r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = {{ rate = "10Mbit", delay = "50ms" }}
[[stage]]
kind = "loss"
name = "radio-errors"
down = {{ model = "list", drop = {drop:?} }}
{handover}
[[stage]]
kind = "link"
name = "radio"
both = {{ rate = "384kbit", delay = "500ms" }}
"#
    )
}
