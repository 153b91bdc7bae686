//! Details of the setup that the text of the paper leaves open.

use airtcp::profile::{AckPolicy, Timer};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use crate::reading::{Factor, Repetitions, Value};

/// Figs. 5 and 10 to 12 say "ND" where each segment is acknowledged at once, and leave it open elsewhere.
pub(super) const DELAYED_ACKS: &str = "delayed ACKs";

/// "different initial randomization seeds are used" (§3.1), without their number. Figs. 6 and 11 look like single runs.
pub(super) const REPETITIONS: Repetitions = Repetitions { chosen: 1, others: &[10] };

pub(crate) static FACTORS: [Factor; 2] = [
    // §3.1 has "about 500 ms", and the timeouts of Fig. 9 are multiples of 100 ms. ns-2's own clock has 10
    // ms.
    Factor {
        name: "the timer tick",
        chosen: "100 ms",
        others: &[
            Value { name: "10 ms", apply: |run| tick(run, 10) },
            Value { name: "500 ms", apply: |run| tick(run, 500) },
        ],
    },
    Factor {
        name: DELAYED_ACKS,
        chosen: "yes",
        others: &[Value { name: "no", apply: each_segment_acknowledged }],
    },
];

fn tick(run: &mut Run, milliseconds: u64) -> Result<(), WorldError> {
    let timer = &mut run.fixed.profile.timers.rto;
    let ns2 = Timer::ns2(Duration::from_millis(milliseconds));
    timer.style = ns2.style;
    timer.limits.min = ns2.limits.min;
    Ok(())
}

fn each_segment_acknowledged(run: &mut Run) -> Result<(), WorldError> {
    run.mobile.profile.acks.policy = AckPolicy::EVERY;
    Ok(())
}
