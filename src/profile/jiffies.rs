//! The clock of the Linux kernel's timers. Profile `linux` waits in whole ticks, as with CONFIG_HZ=250.

use airwire::time::{Duration, Instant};

/// Number of ticks per second.
pub(crate) const HZ: u32 = 250;
/// One tick.
pub(crate) const JIFFY: Duration = Duration::from_millis(4);

/// Returns the current tick.
pub(crate) fn ticks(now: Instant) -> u64 {
    now.as_nanos() / JIFFY.as_nanos()
}

/// Converts a duration to ticks, rounded up.
pub(crate) fn ticks_in(time: Duration) -> u64 {
    time.as_nanos().div_ceil(JIFFY.as_nanos())
}

/// Returns when a timer set for `tick` fires: at the end of that tick, so it is never early.
pub(crate) fn timer(tick: u64) -> Instant {
    Instant::from_nanos((tick + 1) * JIFFY.as_nanos())
}
