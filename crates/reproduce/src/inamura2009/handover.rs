//! The path of §7 (Fig. 10): the first segment of a window is lost, and a handover delays the following
//! segments.

/// The lost segment. In slow start from one segment, segments 22 to 43 are outstanding after the ACK of segment 21, and
/// cwnd is 22. Then "the 25th duplicate ACK" is FlightSize + DupThresh.
pub const FIRST: u64 = 22;
/// SND.HIGH: the last segment sent before the timeout.
pub const SND_HIGH: u64 = 43;

pub(crate) const MSS: u16 = 1460;
/// Receive window in segments, which never limits the sender here.
pub(crate) const WINDOW: usize = 128;
pub(super) const SEGMENTS: u64 = 2000;

/// A scenario that drops the packets in `drop`. `handover` is the duration of a handover that begins when segment 21
/// has passed. `None` means no handover.
pub fn path(drop: &[&str], handover: Option<&str>) -> String {
    let handover = handover.map_or_else(String::new, |duration| {
        format!(
            r#"
[[stage]]
kind = "outage"
name = "handover"
down = {{ at = ["5.77s"], lasts = "{duration}", packets = "requeued" }}
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
