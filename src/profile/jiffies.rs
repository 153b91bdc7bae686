//! The clock of the kernel's timers: profile `linux` waits in whole ticks, as CONFIG_HZ=250 has them.

use airwire::time::{Duration, Instant};

/// One tick.
pub(crate) const JIFFY: Duration = Duration::from_millis(4);

/// The tick that it is.
pub(crate) fn ticks(now: Instant) -> u64 {
    now.as_nanos() / JIFFY.as_nanos()
}

/// The same for a length of time, rounded up.
pub(crate) fn ticks_in(time: Duration) -> u64 {
    time.as_nanos().div_ceil(JIFFY.as_nanos())
}

/// When a timer fires that was set for a tick: in the one behind it, so that it is never early.
pub(crate) fn timer(tick: u64) -> Instant {
    Instant::from_nanos((tick + 1) * JIFFY.as_nanos())
}
