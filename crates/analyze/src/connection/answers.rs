//! From a request to its answer: the last new octet of `ends[0]`, and the first one that `ends[1]` sends upon it.

use super::compact::CompactOption;
use super::findings::AnswerFindings;

#[derive(Debug, Default)]
pub(super) struct Answers {
    /// When the request that is not answered yet was last added to.
    asked: CompactOption,
    /// Seconds.
    sum: f32,
    /// Microseconds, an hour at most.
    first: u32,
    longest: u32,
    count: u32,
}

impl Answers {
    /// An end sends something new.
    pub(super) fn sent(&mut self, at: i64, from: usize) {
        if from == 0 {
            self.asked = CompactOption::time(at);
            return;
        }
        let Some(asked) = std::mem::take(&mut self.asked).as_time() else { return };
        let delay = (at - asked).max(0);
        let micros = u32::try_from(delay / 1000).unwrap_or(u32::MAX);
        if self.count == 0 {
            self.first = micros;
        }
        self.count = self.count.saturating_add(1);
        self.sum += delay as f32 / 1e9;
        self.longest = self.longest.max(micros);
    }

    pub(super) fn findings(&self) -> AnswerFindings {
        let seconds = |micros: u32| (self.count > 0).then(|| f64::from(micros) / 1e6);
        // To the microsecond, which a sum in 32 bits has for as long as it matters.
        AnswerFindings {
            count: u64::from(self.count),
            first_seconds: seconds(self.first),
            mean_seconds: (self.count > 0)
                .then(|| (f64::from(self.sum) / f64::from(self.count) * 1e6).round() / 1e6),
            max_seconds: seconds(self.longest),
        }
    }
}
