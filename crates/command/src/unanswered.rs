//! Reports that a peer does not answer: R1 is reached, but R2 is not (RFC 9293 §3.8.3).

use std::io;

use airtcp::tcp::{Connection, Unanswered};
use airwire::time::Instant;
use serde_json::json;

use crate::reporter::Reporter;

/// Reports each period without an answer once, for one connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct UnansweredReports {
    reported: Option<Instant>,
}

impl UnansweredReports {
    /// Reports a new period without an answer. `number` identifies the connection if there are several.
    pub fn report(
        &mut self,
        now: Instant,
        number: Option<u64>,
        connection: &Connection,
        reporter: &Reporter,
    ) -> io::Result<()> {
        let Some(Unanswered { retransmissions, since, error }) = connection.unanswered() else {
            return Ok(());
        };
        if self.reported.replace(since) == Some(since) {
            return Ok(());
        }
        let remote = connection.remote();
        let seconds = (now - since).as_secs_f64();
        let data = json!({
            "connection": number,
            "remote": remote,
            "retransmissions": retransmissions,
            "seconds": seconds,
            "error": error.map(|error| error.to_string()),
        });
        let number = number.map(|number| format!("#{number} ")).unwrap_or_default();
        let error = error.map(|error| format!(" ({error})")).unwrap_or_default();
        let text = format!(
            "{number}{remote}: no answer to {retransmissions} retransmissions in {seconds:.1} s{error}; still trying"
        );
        reporter.progress("unanswered", &data, &text)
    }
}
