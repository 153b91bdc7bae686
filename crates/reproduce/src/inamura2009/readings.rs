//! Details of the experiments that the paper leaves open.

use crate::reading::{Factor, Value};

/// Fig. 10 shows the losses from the sender's view. It does not show what delays the segments after the lost one.
pub(super) const HANDOVER: &str = "the duration of the handover";

pub(crate) static FACTORS: [Factor; 1] = [
    // With 4.23 s, the 25th duplicate ACK arrives at the time of Fig. 13. With 3.6 s, the second timeout and the
    // acceptable ACK occur at the times of Fig. 12.
    Factor { name: HANDOVER, chosen: "4.23s", others: &[Value::named("3.6s")] },
];
