//! Paths on which tests have transfers made.

/// Everything is late by two seconds once, and nothing is lost.
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
