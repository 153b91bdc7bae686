//! Scenarios for tests of this crate.

/// Delays all packets by two seconds once. No packet is lost.
pub(super) const LATE: &str = r#"
schema = 1
[[stage]]
kind = "link"
name = "wire"
both = { rate = "1Mbit", delay = "50ms" }
[[stage]]
kind = "outage"
both = { at = ["3s"], lasts = "2s", packets = "requeued" }
"#;
