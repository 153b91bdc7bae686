//! Details of the simulations (§IV) that the paper leaves open.

use airwire::time::Duration;

use crate::reading::{Factor, Repetitions, Value};

/// "obtained under 95% confidence levels" (§IV), without the number of runs.
pub(super) const REPETITIONS: Repetitions = Repetitions { chosen: 10, others: &[30] };

/// The reference of "could maintain": Reno-TCP, or the same sender with few errors.
pub(super) const REFERENCE: &str = "the reference of “maintain”";
pub(super) const BER_1E_6: &str = "BER 1e-6";

pub(crate) static FACTORS: [Factor; 1] = [Factor {
    name: "the minimum RTO",
    chosen: "1 s",
    others: &[Value {
        name: "200 ms",
        apply: |run| {
            for host in [&mut run.fixed, &mut run.mobile] {
                host.profile.timers.rto.limits.min = Duration::from_millis(200);
            }
            Ok(())
        },
    }],
}];
