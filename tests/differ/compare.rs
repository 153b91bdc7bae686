//! Finds the differences between two records, and describes each with words.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use airwire::time::Duration;

use crate::observed::Observed;
use crate::plan::{Opening, Plan};
use crate::play::{Record, Step};
use crate::rows::Row;

/// A difference between the kernel and airtcp.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The step in which they differ.
    pub step: usize,
    /// The index of the segment in the step.
    pub index: usize,
    /// The field, `-`, and the side with the greater value, as a key in `expected.toml`.
    pub key: String,
    /// The words that `expected.toml` can match.
    pub words: BTreeSet<String>,
}

impl Difference {
    /// Returns the key and the words that differences of the same kind have in common.
    pub(crate) fn signature(&self) -> String {
        let prefixes = ["kernel:", "ours:", "event:", "call:", "state:", "seq:", "ack:", "stamp:"];
        let words = self.words.iter().filter(|word| prefixes.iter().any(|prefix| word.starts_with(prefix)));
        [&self.key].into_iter().chain(words).map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Returns the index of the first row that explains the difference.
    pub(crate) fn row(&self, rows: &[Row]) -> Option<usize> {
        rows.iter().position(|row| row.explains(&self.key, &self.words))
    }
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// The first `steps` steps, except for `skipped` of them, were compared, with these differences. Later
    /// steps cannot be compared, because the two peers have received different segments.
    Compared { steps: usize, skipped: usize, differences: Vec<Difference> },
    /// A timer and an event are so close together that their order is random.
    Undecided,
}

/// Compares the kernel's record with airtcp's.
pub(crate) fn compare(plan: &Plan, kernel: &Record, ours: &Record, rows: &[Row]) -> Verdict {
    let mut differences = Vec::new();
    let mut before = BTreeSet::new();
    let mut clock = Timers::default();
    let (mut resume, mut skipped) = (0, 0);
    for (at, (theirs, mine)) in kernel.steps.iter().zip(&ours.steps).enumerate() {
        let known = before.clone();
        note_words(mine, &mut before);
        if at < resume {
            skipped += 1;
            continue;
        }
        let end = kernel.steps.get(at + 1).map_or(kernel.end, |next| next.at);
        let found = match first_difference(theirs, mine, &mut clock, end) {
            Found::Undecided => return Verdict::Undecided,
            Found::Same => None,
            Found::Differs(first) => Some(first),
        };
        if let Some(first) = found {
            let words = words(plan, &known, theirs, mine, first.index);
            let difference = Difference { step: at, index: first.index, key: first.key(), words };
            let lasts = difference.row(rows).is_some_and(|row| rows[row].lasts);
            differences.push(difference);
            match agree_again(kernel, ours, at).filter(|_| !lasts) {
                Some(next) => resume = next,
                None => return Verdict::Compared { steps: at + 1, skipped, differences },
            }
        }
    }
    Verdict::Compared { steps: kernel.steps.len(), skipped, differences }
}

/// Adds the words of a step to the words of earlier steps.
fn note_words(step: &Step, before: &mut BTreeSet<String>) {
    before.extend(step.words.iter().map(|word| format!("before:{word}")));
    if let Some(state) = step.state {
        let events = step.words.iter().filter_map(|word| word.strip_prefix("event:"));
        before
            .extend(events.map(|event| format!("before:{event} in {}", state.trim_start_matches("state:"))));
    }
}

/// Returns the first step after a difference in step `at` from which the records can be compared again. Up to
/// that step the peer has sent the same segments in both records, and has received the same data.
fn agree_again(kernel: &Record, ours: &Record, at: usize) -> Option<usize> {
    let steps = kernel.steps.iter().zip(&ours.steps).enumerate().skip(at);
    let mut same_so_far =
        steps.take_while(|(index, (theirs, mine))| *index == at || theirs.text == mine.text);
    same_so_far.find(|(_, (theirs, mine))| theirs.view == mine.view).map(|(index, _)| index + 1)
}

/// Returns true if the kernel's answers in `step` differ between two plays of an exchange, although everything
/// before was the same. Echoed timestamps are not compared, because the peer's clock differs between plays.
pub(crate) fn answers_vary(first: &Record, other: &Record, step: usize) -> bool {
    let mut timers = Timers::default();
    for (at, (a, b)) in first.steps.iter().zip(&other.steps).enumerate().take(step + 1) {
        let b = b.played_at(a.at).with_echoes_of(a);
        let end = first.steps.get(at + 1).map_or(first.end, |next| next.at);
        match first_difference(a, &b, &mut timers, end) {
            Found::Undecided => return false,
            Found::Differs(_) if at == step => return true,
            Found::Differs(_) if a.outcome != b.outcome || a.view != b.view => return false,
            Found::Differs(_) | Found::Same => {}
        }
    }
    false
}

enum Found {
    Same,
    Differs(FirstDifference),
    Undecided,
}

/// The first difference in a step.
struct FirstDifference {
    /// The index of the segment in the step.
    index: usize,
    field: &'static str,
    /// The order of the kernel's value and airtcp's.
    order: Ordering,
}

impl FirstDifference {
    fn key(&self) -> String {
        format!("{}-{}", self.field, if self.order.is_gt() { "kernel" } else { "ours" })
    }
}

fn first_difference(kernel: &Step, ours: &Step, timers: &mut Timers, end: Duration) -> Found {
    if kernel.outcome != ours.outcome {
        return Found::Differs(FirstDifference {
            index: 0,
            field: "result",
            order: kernel.outcome.cmp(&ours.outcome),
        });
    }
    for index in 0..kernel.segments.len().max(ours.segments.len()) {
        let begin = timers.begin(kernel.at);
        let pair = (kernel.segments.get(index), ours.segments.get(index));
        let field = match pair {
            (Some(theirs), Some(mine)) => theirs.differs(mine).or_else(|| {
                (!same_time(theirs, mine, timers.begin_of(theirs, begin)))
                    .then(|| ("time", theirs.at.cmp(&mine.at)))
            }),
            (Some(_), None) => Some(("missing", Ordering::Greater)),
            (None, _) => Some(("extra", Ordering::Less)),
        };
        let Some((field, order)) = field else {
            timers.observe(&kernel.segments[index]);
            continue;
        };
        let races = |segment: Option<&Observed>| {
            segment.is_some_and(|segment| {
                let wait = segment.at - timers.begin_of(segment, begin);
                !segment.prompt && end <= segment.at + slack(wait)
            })
        };
        if races(pair.0) || races(pair.1) || timers.is_limit_over_about(pair) {
            return Found::Undecided;
        }
        return Found::Differs(FirstDifference { index, field, order });
    }
    Found::Same
}

/// Times at which the next timer may have been started: the last segment that was received, the last expiry of
/// a timer, and the last SYN, whose timer nothing else restarts.
#[derive(Default)]
struct Timers {
    received: Option<Duration>,
    fired: Option<Duration>,
    syn: Option<Duration>,
    /// Times of the ACKs that answered an event at once.
    answers: Vec<Duration>,
}

/// Minimum time between two ACKs of unacceptable segments (tcp_invalid_ratelimit).
const ANSWER_INTERVAL: Duration = Duration::from_millis(500);

impl Timers {
    fn observe(&mut self, segment: &Observed) {
        self.received = Some(segment.at);
        if !segment.prompt {
            self.fired = Some(segment.at);
        }
        if segment.kind() == "syn" {
            self.syn = Some(segment.at);
        }
        if segment.prompt && segment.kind() == "ack" {
            self.answers.push(segment.at);
        }
    }

    fn begin(&self, event: Duration) -> Duration {
        [self.received, self.fired].into_iter().flatten().fold(event, Duration::min)
    }

    /// Returns when the timer that sends `segment` may have been started; `begin` unless it is a SYN.
    fn begin_of(&self, segment: &Observed, begin: Duration) -> Duration {
        self.syn.filter(|_| segment.kind() == "syn").map_or(begin, |syn| syn.min(begin))
    }

    /// Returns whether only one side sends an ACK, at about the time at which the limit on such ACKs ends. The
    /// kernel counts this time in ticks of up to 10 ms.
    fn is_limit_over_about(&self, pair: (Option<&Observed>, Option<&Observed>)) -> bool {
        let ((Some(ack), None) | (None, Some(ack))) = pair else { return false };
        let is_close =
            |answer: &Duration| (ack.at - *answer).abs_diff(ANSWER_INTERVAL) <= slack(Duration::ZERO);
        ack.prompt && ack.kind() == "ack" && self.answers.iter().any(is_close)
    }
}

/// Tolerance for a timer: the kernel counts ticks of up to 10 ms, and its timer wheel is coarser for longer
/// times.
fn slack(wait: Duration) -> Duration {
    Duration::from_millis(12) + Duration::from_nanos(wait.as_nanos() / 7)
}

/// Segments that leave within this time were not caused by a timer.
const AT_ONCE: Duration = Duration::from_millis(12);

fn same_time(kernel: &Observed, ours: &Observed, begin: Duration) -> bool {
    kernel.at.abs_diff(ours.at)
        <= if kernel.prompt || ours.prompt { slack(Duration::ZERO) } else { slack(kernel.at - begin) }
}

fn words(
    plan: &Plan,
    before: &BTreeSet<String>,
    kernel: &Step,
    ours: &Step,
    index: usize,
) -> BTreeSet<String> {
    let mut words = before.clone();
    words.extend(ours.words.iter().cloned());
    words.insert(if plan.opening == Opening::Passive { "passive" } else { "active" }.to_owned());
    words.extend(ours.state.map(str::to_owned));
    for (who, step) in [("kernel", kernel), ("ours", ours)] {
        let segment = step.segments.get(index);
        words.insert(format!("{who}:{}", segment.map_or("nothing", Observed::kind)));
        if let Some(segment) = segment {
            let wait = segment.at - step.at;
            let when = match () {
                () if segment.prompt || wait < AT_ONCE => "at-once",
                () if wait < Duration::from_millis(170) => "delayed",
                () => "late",
            };
            words.insert(format!("{who}-{when}"));
            if !segment.sack.is_empty() {
                words.insert(format!("{who}-sack"));
            }
        }
    }
    words
}

/// The exchange as a script up to the step of the difference, with both answers in that step.
pub(crate) fn script(plan: &Plan, kernel: &Record, ours: &Record, difference: &Difference) -> String {
    let mut text = format!("// {:?}; the peer offers {:?}\n", plan.opening, plan.offers);
    let mut last = Duration::ZERO;
    for (at, (theirs, mine)) in kernel.steps.iter().zip(&ours.steps).enumerate().take(difference.step + 1) {
        let state = mine.state.map_or("", |state| state.trim_start_matches("state:"));
        text += &format!("{:>9}  {:<70} // {state}\n", gap(theirs.at - last), theirs.text);
        last = theirs.at;
        if at < difference.step {
            for segment in &theirs.segments {
                text += &format!("{:>9}  > {segment}\n", gap(segment.at - theirs.at));
            }
            continue;
        }
        for index in 0..theirs.segments.len().max(mine.segments.len()).max(1) {
            let mark = if index == difference.index { "=>" } else { "  " };
            for (who, step) in [("kernel", theirs), ("airtcp", mine)] {
                let line = match step.segments.get(index) {
                    Some(segment) => format!("{:>9}  > {segment}", gap(segment.at - step.at)),
                    None => format!("{:>9}  nothing", ""),
                };
                text += &format!("{mark} {who} {line}\n");
            }
        }
        if theirs.outcome != mine.outcome {
            text += &format!("=> kernel {:?}, airtcp {:?}\n", theirs.outcome, mine.outcome);
        }
    }
    text
}

fn gap(time: Duration) -> String {
    format!("+{:.4}", time.as_secs_f64())
}
