//! Measures response times: from the last new byte of `ends[0]` to the next new byte of `ends[1]`.

use super::findings::ResponseTimeFindings;
use crate::compact::CompactOption;

#[derive(Debug, Default)]
pub(super) struct ResponseTimes {
    /// The time when the pending request last grew.
    request_at: CompactOption,
    /// Seconds.
    sum: f32,
    /// Microseconds, at most about an hour.
    first: u32,
    longest: u32,
    count: u32,
}

impl ResponseTimes {
    /// Records that an end sends new data.
    pub(super) fn new_data(&mut self, at: i64, from: usize) {
        if from == 0 {
            self.request_at = CompactOption::time(at);
            return;
        }
        let Some(request_at) = std::mem::take(&mut self.request_at).as_time() else { return };
        let delay = (at - request_at).max(0);
        let micros = u32::try_from(delay / 1000).unwrap_or(u32::MAX);
        if self.count == 0 {
            self.first = micros;
        }
        self.count = self.count.saturating_add(1);
        self.sum += delay as f32 / 1e9;
        self.longest = self.longest.max(micros);
    }

    pub(super) fn findings(&self) -> ResponseTimeFindings {
        let seconds = |micros: u32| (self.count > 0).then(|| f64::from(micros) / 1e6);
        // Rounded to microseconds, because a 32-bit sum is not more precise.
        ResponseTimeFindings {
            count: u64::from(self.count),
            first_seconds: seconds(self.first),
            mean_seconds: (self.count > 0)
                .then(|| (f64::from(self.sum) / f64::from(self.count) * 1e6).round() / 1e6),
            max_seconds: seconds(self.longest),
        }
    }
}
