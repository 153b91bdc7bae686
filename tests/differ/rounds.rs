//! Plays all exchanges. An exchange that was disturbed, or that has an unexplained difference, is repeated
//! several times in parallel. The repetitions show whether the kernel itself always answers in the same way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airlink::reactor::Clock;
use airwire::time::Duration;

use crate::compare::{Difference, Verdict, answers_vary, compare, script};
use crate::kernel::{Kernel, Played};
use crate::ours;
use crate::plan::{Generator, Plan};
use crate::play::Record;
use crate::rows::{Row, most_in};

/// Number of parallel exchanges at the beginning. It decreases if the machine is late.
const AT_ONCE: usize = 250;
/// Number of repetitions of an exchange with an unexplained difference. The difference is an error if the kernel
/// gives the same answer in all of them.
const REPETITIONS: usize = 5;
/// Number of plays without result after which an exchange is given up.
const MAX_FRUITLESS_PLAYS: usize = 6;
/// Maximum number of exchanges in a full run in which the kernel's own answers vary.
const MOST_VARYING: usize = 20;
/// Time after which no exchange is repeated: a fixed part, and a part for each exchange. An idle machine needs
/// a tenth of this time. A busy machine plays few exchanges in parallel, and repeats most of them.
const TIME: (Duration, Duration) = (Duration::from_secs(60), Duration::from_millis(40));
/// Maximum share of exchanges that may be given up, in per cent.
const GIVEN_UP: usize = 10;
/// Bounds of a full run, in per cent: the share of the decided exchanges that are identical, the share that a
/// difference cuts, and the share of those with retransmissions that are identical.
const LEAST_IDENTICAL: usize = 95;
const MOST_CUT: usize = 1;
const LEAST_IDENTICAL_RETRANSMITTED: usize = 90;
/// Maximum number of exchanges with unexplained differences in a full run. New seeds had up to three.
const MOST_UNEXPLAINED: usize = 5;

pub(crate) struct Task {
    pub seed: u64,
    pub numbers: Vec<u64>,
    pub rows: Vec<Row>,
    /// The row whose differences are printed.
    pub shown: Option<String>,
    /// Whether this is a full run, in which a row that explains nothing is an error.
    pub is_full: bool,
    /// Whether every unexplained difference is an error. Otherwise their number has a bound.
    pub is_strict: bool,
}

struct Exchange {
    number: u64,
    plan: Arc<Plan>,
    plays: usize,
    /// Number of plays that were late, or in which timers and events raced.
    fruitless_plays: usize,
    /// The plays with an unexplained difference.
    unexplained: Vec<Divergence>,
    /// Whether the machine was late in the last play. Parallel plays would make it later.
    was_late: bool,
    /// Whether the kernel has retransmitted data.
    retransmitted: bool,
    end: End,
}

enum End {
    Open,
    Same,
    Differs(Box<Divergence>),
    /// There was an unexplained difference, but the kernel did not always give this answer.
    Varies(Box<Divergence>),
    GivenUp,
}

/// The records of an exchange that differs, for the report.
struct Divergence {
    kernel: Record,
    ours: Record,
    differences: Vec<Difference>,
    steps: usize,
    skipped: usize,
}

impl Divergence {
    /// Returns the step of the first difference that no row explains.
    fn unexplained_step(&self, rows: &[Row]) -> Option<usize> {
        let unexplained = self.differences.iter().find(|difference| difference.row(rows).is_none());
        unexplained.map(|difference| difference.step)
    }

    /// Returns whether nothing after the difference was compared.
    fn is_cut_by(&self, difference: &Difference) -> bool {
        self.steps < self.kernel.steps.len() && difference.step + 1 == self.steps
    }
}

impl Task {
    pub(crate) fn run(&self) -> Result<(), String> {
        let mut kernel = Kernel::new()?;
        let mut exchanges: Vec<Exchange> = self.numbers.iter().map(|number| self.exchange(*number)).collect();
        let mut at_once = AT_ONCE;
        let clock = Clock::start();
        let until = clock.now() + TIME.0 + TIME.1 * exchanges.len() as u64;
        while clock.now() < until {
            let open: Vec<usize> =
                (0..exchanges.len()).filter(|at| matches!(exchanges[*at].end, End::Open)).collect();
            if open.is_empty() {
                break;
            }
            // An exchange takes up to five seconds, so its repetitions run in parallel.
            let due: Vec<usize> = open
                .into_iter()
                .flat_map(|at| std::iter::repeat_n(at, exchanges[at].plays_at_once()))
                .collect();
            let plans: Vec<Arc<Plan>> = due.iter().map(|at| Arc::clone(&exchanges[*at].plan)).collect();
            let played = kernel.play(&plans, at_once)?;
            let late = played.iter().filter(|played| played.late).count();
            if late * 5 > played.len() {
                at_once = (at_once / 2).max(20);
                let all = played.len();
                eprintln!("{late} of {all} plays were late: from now on, at most {at_once} run in parallel");
            }
            for (at, played) in due.into_iter().zip(played) {
                if matches!(exchanges[at].end, End::Open) {
                    exchanges[at].judge(played, &self.rows)?;
                }
            }
        }
        self.report(&exchanges)
    }

    fn exchange(&self, number: u64) -> Exchange {
        let plan = Arc::new(Generator::new(self.seed, number).plan());
        Exchange {
            number,
            plan,
            plays: 0,
            fruitless_plays: 0,
            unexplained: Vec::new(),
            was_late: false,
            retransmitted: false,
            end: End::Open,
        }
    }

    fn report(&self, exchanges: &[Exchange]) -> Result<(), String> {
        let mut shares = Shares::default();
        let mut found = Found::new(&self.rows);
        for exchange in exchanges {
            shares.add(exchange);
            match &exchange.end {
                End::Differs(case) => self.sort_differences(exchange, case, &mut found),
                End::Varies(case) => {
                    let mut differences = case.differences.iter();
                    let varying = differences.find(|difference| difference.row(&self.rows).is_none());
                    found.varying.extend(varying.map(|difference| (exchange.number, difference.signature())));
                }
                End::Open | End::Same | End::GivenUp => {}
            }
        }
        eprintln!("{}", shares.headline());
        for (number, signature) in &found.varying {
            eprintln!("the kernel's answers vary in exchange {number}: {signature}");
        }
        let uses = &found.uses;
        let mut errors: Vec<String> = uses.iter().flat_map(|uses| uses.report(exchanges.len())).collect();
        errors.extend(self.judge_unexplained(found.unexplained));
        if self.is_full {
            errors.extend(uses.iter().filter_map(Uses::unused));
            errors.extend(shares.errors());
        }
        let (number, most) = (found.varying.len(), most_in(MOST_VARYING, exchanges.len()));
        if number > most {
            errors.push(format!("the kernel's answers vary in {number} instead of {most} exchanges"));
        }
        if shares.given_up * 100 > exchanges.len() * GIVEN_UP {
            let given_up = shares.given_up;
            errors.push(format!("{given_up} exchanges could not be decided: is this machine too busy?"));
        }
        if errors.is_empty() { Ok(()) } else { Err(errors.join("\n")) }
    }

    /// Assigns the differences of an exchange to the rows that explain them. Prints the differences of the
    /// shown row.
    fn sort_differences<'a>(&'a self, exchange: &'a Exchange, case: &'a Divergence, found: &mut Found<'a>) {
        let is_shown = |row: usize| {
            self.shown.as_deref().is_some_and(|shown| shown == "all" || shown == self.rows[row].name())
        };
        let mut counted = BTreeSet::new();
        for difference in &case.differences {
            let Some(row) = difference.row(&self.rows) else {
                let group = found.unexplained.entry(difference.signature()).or_default();
                group.push((exchange, case, difference));
                continue;
            };
            found.uses[row].add(case, difference, counted.insert((row, &difference.key)));
            if is_shown(row) {
                eprintln!("{}", self.describe(&difference.key, &[(exchange, case, difference)]));
            }
        }
    }

    /// Prints the differences that no row explains, or returns them as errors if there are too many.
    fn judge_unexplained(&self, groups: BTreeMap<String, Vec<Unexplained<'_>>>) -> Vec<String> {
        let most = if self.is_strict { 0 } else { most_in(MOST_UNEXPLAINED, self.numbers.len()) };
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
        let cases = groups.iter().flat_map(|(_, cases)| cases);
        let number = cases.map(|(exchange, ..)| exchange.number).collect::<BTreeSet<_>>().len();
        eprintln!("{number} of at most {most} exchanges have unexplained differences");
        let mut described: Vec<_> =
            groups.iter().map(|(signature, cases)| self.describe(signature, cases)).collect();
        if number <= most {
            described.drain(..).for_each(|text| eprintln!("{text}"));
        }
        described
    }

    /// Describes a group of similar differences by the earliest one.
    fn describe(&self, signature: &str, cases: &[Unexplained<'_>]) -> String {
        let (exchange, case, difference) =
            cases.iter().min_by_key(|(_, _, difference)| difference.step).expect("a group has cases");
        format!(
            "\n{} × {signature}\n{}to repeat it: AIRTCP_DIFFER_SEED={} AIRTCP_DIFFER_ONLY={} cargo test -p airtcp-tests \
             --no-default-features --features kernel --test differ -- short_run",
            cases.len(),
            script(&exchange.plan, &case.kernel, &case.ours, difference),
            self.seed,
            exchange.number
        )
    }
}

/// A difference that no row explains.
type Unexplained<'a> = (&'a Exchange, &'a Divergence, &'a Difference);

/// The differences of all exchanges.
struct Found<'a> {
    /// The differences that each row explains.
    uses: Vec<Uses<'a>>,
    /// The unexplained differences by signature.
    unexplained: BTreeMap<String, Vec<Unexplained<'a>>>,
    /// The exchanges in which the kernel's own answers vary, with the signature of the first unexplained
    /// difference.
    varying: Vec<(u64, String)>,
}

impl<'a> Found<'a> {
    fn new(rows: &'a [Row]) -> Self {
        Self { uses: rows.iter().map(Uses::of).collect(), unexplained: BTreeMap::new(), varying: Vec::new() }
    }
}

/// The differences that a row explains.
struct Uses<'a> {
    row: &'a Row,
    /// Number of exchanges by key.
    used: BTreeMap<&'a str, usize>,
    /// Number of exchanges that the row has cut.
    cut: usize,
}

impl<'a> Uses<'a> {
    fn of(row: &'a Row) -> Self {
        Self { row, used: row.most.keys().map(|key| (key.as_str(), 0)).collect(), cut: 0 }
    }

    /// Adds a difference. One exchange may repeat it many times, so only its first occurrence counts.
    fn add(&mut self, case: &Divergence, difference: &'a Difference, is_first: bool) {
        *self.used.entry(&difference.key).or_default() += usize::from(is_first);
        self.cut += usize::from(case.is_cut_by(difference));
    }

    /// Prints the numbers of differences. Returns an error for each key with too many.
    fn report(&self, exchanges: usize) -> Vec<String> {
        let Self { row, used, cut } = self;
        let name = row.name();
        eprintln!("{name}: {cut} exchanges cut");
        let mut errors = Vec::new();
        for (key, used) in used {
            let most = most_in(row.most[*key], exchanges);
            eprintln!("{used:>6} of at most {most} × {key}");
            if *used > most {
                errors.push(format!("expected.toml: {used} × {key} instead of {most} in row `{name}`"));
            }
        }
        errors
    }

    /// Returns an error if the row explains no difference although every full run must have one.
    fn unused(&self) -> Option<String> {
        let is_unused = !self.row.rare && self.used.values().all(|used| *used == 0);
        let (name, reason) = (self.row.name(), &self.row.reason);
        is_unused.then(|| format!("expected.toml: no difference matches the row `{name}`: {reason}"))
    }
}

/// Numbers of exchanges and steps by result.
#[derive(Default)]
struct Shares {
    plays: usize,
    same: usize,
    differ: usize,
    /// Exchanges in which the kernel's own answers vary.
    vary: usize,
    given_up: usize,
    /// Number of exchanges that a difference has cut.
    cut: usize,
    /// Steps of all exchanges that were not given up.
    steps: usize,
    /// Steps after the differences that cut them.
    steps_cut: usize,
    /// Exchanges with a retransmission that were not given up, and the identical ones among them.
    retransmitted: usize,
    retransmitted_same: usize,
}

impl Shares {
    fn add(&mut self, exchange: &Exchange) {
        self.plays += exchange.plays;
        match &exchange.end {
            End::Open | End::GivenUp => {
                self.given_up += 1;
                return;
            }
            End::Same => {
                self.same += 1;
                self.retransmitted_same += usize::from(exchange.retransmitted);
            }
            End::Varies(_) => self.vary += 1,
            End::Differs(case) => {
                let left = case.kernel.steps.len() - case.steps;
                self.differ += 1;
                self.cut += usize::from(left > 0);
                self.steps_cut += left + case.skipped;
            }
        }
        self.retransmitted += usize::from(exchange.retransmitted);
        // The first step is the opening.
        self.steps += exchange.plan.events.len() + 1;
    }

    /// Returns an error for each bound of a full run that is exceeded.
    fn errors(&self) -> Vec<String> {
        let decided = self.same + self.differ + self.vary;
        let bounds = [
            (self.same * 100 < decided * LEAST_IDENTICAL, "identical", "at least", LEAST_IDENTICAL),
            (self.cut * 100 > decided * MOST_CUT, "cut", "at most", MOST_CUT),
            (
                self.retransmitted_same * 100 < self.retransmitted * LEAST_IDENTICAL_RETRANSMITTED,
                "identical with retransmissions",
                "at least",
                LEAST_IDENTICAL_RETRANSMITTED,
            ),
        ];
        let exceeded = bounds.into_iter().filter(|(is_exceeded, ..)| *is_exceeded);
        exceeded.map(|(_, what, limit, share)| format!("{what}: not {limit} {share} %")).collect()
    }

    fn headline(&self) -> String {
        let Self { plays, same, differ, vary, given_up, cut, .. } = self;
        let Self { steps, steps_cut, retransmitted, retransmitted_same, .. } = self;
        let exchanges = same + differ + vary + given_up;
        let share = |part: usize, of: usize| format!("{:.1} %", 100.0 * part as f64 / of.max(1) as f64);
        format!(
            "{exchanges} exchanges, {plays} plays: {} identical (at least {LEAST_IDENTICAL} % of the decided ones in a \
             full run), {} cut after a difference (at most {MOST_CUT} %), {} different but compared to the end, {vary} \
             exchanges in which the kernel's own answers vary, {} given up because timers and events raced or the \
             machine was late; {} of {steps} steps were not compared; {} of {retransmitted} exchanges with \
             retransmissions are identical (at least {LEAST_IDENTICAL_RETRANSMITTED} %)",
            share(*same, exchanges),
            share(*cut, exchanges),
            share(differ - cut, exchanges),
            share(*given_up, exchanges),
            share(*steps_cut, *steps),
            share(*retransmitted_same, *retransmitted),
        )
    }
}

impl Exchange {
    /// Number of parallel plays that may be needed to decide it.
    fn plays_at_once(&self) -> usize {
        if self.plays == 0 || self.was_late {
            return 1;
        }
        match self.unexplained.len() {
            0 => MAX_FRUITLESS_PLAYS - self.fruitless_plays,
            plays => 1 + REPETITIONS - plays,
        }
    }

    fn judge(&mut self, played: Played, rows: &[Row]) -> Result<(), String> {
        self.plays += 1;
        let Played { record, begun, local, peer, late } = played;
        self.was_late = late;
        if late {
            self.note_fruitless_play();
            return Ok(());
        }
        let times: Vec<_> = record.steps[1..].iter().map(|step| step.at).collect();
        let ours = ours::play(&self.plan, begun, (&times, record.end), local, peer)
            .map_err(|error| format!("exchange {}: {error}", self.number))?;
        self.retransmitted = record.retransmitted;
        let Verdict::Compared { steps, skipped, differences } = compare(&self.plan, &record, &ours, rows)
        else {
            self.note_fruitless_play();
            return Ok(());
        };
        self.decide(Divergence { kernel: record, ours, differences, steps, skipped }, rows);
        Ok(())
    }

    fn note_fruitless_play(&mut self) {
        self.fruitless_plays += 1;
        if self.fruitless_plays >= MAX_FRUITLESS_PLAYS {
            self.end = End::GivenUp;
        }
    }

    /// Decides the exchange from this play and the earlier ones, if they suffice.
    fn decide(&mut self, play: Divergence, rows: &[Row]) {
        let is_explained = play.unexplained_step(rows).is_none();
        let Some(step) = self.unexplained.first().and_then(|first| first.unexplained_step(rows)) else {
            match play.differences.is_empty() {
                true => self.end = End::Same,
                false if is_explained => self.end = End::Differs(Box::new(play)),
                false => self.unexplained.push(play),
            }
            return;
        };
        let varies = match is_explained {
            true => play.steps > step && play.skipped == 0,
            false => answers_vary(&self.unexplained[0].kernel, &play.kernel, step),
        };
        if is_explained && !varies {
            self.note_fruitless_play();
            return;
        }
        self.unexplained.push(play);
        if varies {
            self.end = End::Varies(Box::new(self.unexplained.swap_remove(0)));
        } else if self.unexplained.len() > REPETITIONS {
            self.end = End::Differs(Box::new(self.unexplained.swap_remove(0)));
        }
    }
}
