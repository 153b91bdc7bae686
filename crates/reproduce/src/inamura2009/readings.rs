//! Details of the experiments that the paper leaves open.

use crate::reading::{Factor, Value};

/// Fig. 10 shows how the sender sees the losses, and not what delays the segments after the lost one.
pub(super) const HANDOVER: &str = "the duration of the handover";

pub(crate) static FACTORS: [Factor; 1] = [
    // With 4.23 s the 25th duplicate ACK comes when it comes in Fig. 13, with 3.6 s the second timeout and the
    // acceptable ACK come when they come in Fig. 12.
    Factor { name: HANDOVER, chosen: "4.23s", others: &[Value::named("3.6s")] },
];
