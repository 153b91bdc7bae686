//! Compares means with ns-2's means.

use std::fmt::Write;

use airtcp_numbers::statistics::Mean;
use airtcp_sim::run::{self, Report, Run};

use super::tables::Published;

/// Known differences and their cause.
pub(crate) struct Cause<'a> {
    /// Name of the row, and the measured difference (airtcp minus ns-2).
    pub(crate) differences: &'a [(&'a str, f64)],
    pub(crate) why: &'a str,
}

/// A metric of a run, and its mean in ns-2.
pub(crate) struct Measure<'a> {
    name: String,
    theirs: Published,
    of: &'a dyn Fn(&Report) -> f64,
}

impl<'a> Measure<'a> {
    pub(crate) fn new(name: impl Into<String>, theirs: Published, of: &'a dyn Fn(&Report) -> f64) -> Self {
        Self { name: name.into(), theirs, of }
    }
}

struct Row {
    name: String,
    ours: Mean,
    theirs: f64,
    their_half_width: f64,
}

impl Row {
    fn difference(&self) -> f64 {
        self.ours.mean - self.theirs
    }

    /// Returns the half-width of the 95 % interval of the difference of two independent means.
    fn joint(&self) -> f64 {
        self.ours.half_width.unwrap_or(f64::INFINITY).hypot(self.their_half_width)
    }

    fn agrees(&self) -> bool {
        self.difference().abs() <= self.joint()
    }
}

/// The rows of a table.
pub(crate) struct Comparison {
    /// Number of seeds of ns-2's means. It is used for means without a recorded interval, whose runs are
    /// assumed to vary as ours do.
    their_seeds: u32,
    /// Rounding error of ns-2's means: half a unit of the last digit.
    rounding: f64,
    rows: Vec<Row>,
}

impl Comparison {
    pub(crate) fn new(their_seeds: u32, rounding: f64) -> Self {
        Self { their_seeds, rounding, rows: Vec::new() }
    }

    /// Runs `plan` with `seeds` seeds, and compares each of `measures` with ns-2's mean.
    pub(crate) fn add(&mut self, seeds: u64, plan: &Run, measures: &[Measure<'_>]) {
        let reports: Vec<_> =
            (1..=seeds).map(|seed| run::run(&Run { seed, ..plan.clone() }).unwrap()).collect();
        for Measure { name, theirs: Published(theirs, half_width), of } in measures {
            let samples: Vec<f64> = reports.iter().map(of).collect();
            let ours = Mean::of(&samples).expect("at least one seed");
            let scatter = ours.half_width.unwrap_or(f64::INFINITY) * (seeds as f64).sqrt();
            let interval = half_width.unwrap_or_else(|| scatter / f64::from(self.their_seeds).sqrt());
            let row =
                Row { name: name.clone(), ours, theirs: *theirs, their_half_width: interval + self.rounding };
            self.rows.push(row);
        }
    }

    /// Checks that every mean agrees with ns-2's, or has the known difference.
    pub(crate) fn check(&self, known: &[Cause<'_>]) {
        let mut table = String::new();
        let mut wrong = 0;
        for row in &self.rows {
            let cause = known.iter().find_map(|cause| {
                let (_, difference) = cause.differences.iter().find(|(name, _)| *name == row.name)?;
                Some((*difference, cause.why))
            });
            let width = row.ours.half_width.unwrap_or(f64::INFINITY);
            let (right, verdict) = match cause {
                None if row.agrees() => (true, ""),
                None => (false, "not within the joint interval"),
                Some(_) if row.agrees() => (false, "agrees now: remove its cause"),
                Some((known, why)) if (row.difference() - known).abs() <= width => (true, why),
                Some(_) => (false, "no longer the known difference"),
            };
            wrong += usize::from(!right);
            // Writing to a string does not fail.
            let _ = writeln!(
                table,
                "{} {:<42} {:9.3} ± {width:<7.3} ns-2 {:9.3} ± {:<7.3} difference {:+8.3} of {:<7.3} {verdict}",
                if right { " " } else { "!" },
                row.name,
                row.ours.mean,
                row.theirs,
                row.their_half_width,
                row.difference(),
                row.joint()
            );
        }
        println!("{table}");
        assert_eq!(wrong, 0, "{wrong} of {} means differ:\n{table}", self.rows.len());
    }
}
