//! The result of a figure: Markdown for people, data for programs.

use std::fmt::Write;

use airtcp_numbers::statistics::Mean;
use serde::Serialize;

/// The result of a figure. All texts are Markdown.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Finding {
    /// Our numbers, with the paper's beside them where it has any.
    pub tables: Vec<Table>,
    /// What the paper concludes from the figure.
    pub claims: Vec<Claim>,
    /// What was chosen where the paper is silent, a sentence for each.
    pub choices: Vec<String>,
    /// What else a reader should know: why a claim does not hold, what an independent simulator says.
    pub remarks: Vec<String>,
}

/// A table of text.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Printed above the table.
    pub title: String,
    /// Headings.
    pub columns: Vec<String>,
    /// Each has as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(title: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            columns: columns.iter().map(|&name| name.to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
}

/// A statement of the paper, and whether it holds here.
#[derive(Clone, Debug, Serialize)]
pub struct Claim {
    /// What it is about.
    pub kind: ClaimKind,
    /// In the paper's words, or close to them, with its number if it has one.
    pub paper: String,
    /// What was found here.
    pub ours: String,
    /// Whether it holds.
    pub judged: Judged,
}

/// What a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClaimKind {
    /// Which of two is better.
    Direction,
    /// By how much.
    Ratio,
    /// How a curve runs: an optimum inside, a crossing, a step.
    Shape,
}

/// Whether a claim holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judged {
    /// Yes, by the interval.
    Holds,
    /// The direction holds but the extent does not, or only some of several statements hold.
    HoldsInPart,
    /// The opposite holds, by the interval, or the effect is clearly smaller than the paper's.
    DoesNotHold,
    /// The intervals are too wide to tell.
    Undecided,
}

impl Judged {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::HoldsInPart => "holds in part",
            Self::DoesNotHold => "does not hold",
            Self::Undecided => "undecided",
        }
    }

    /// Whether the mean is above zero, by its 95 % interval.
    pub fn above_zero(mean: &Mean) -> Self {
        match mean.half_width {
            Some(width) if mean.mean - width > 0.0 => Self::Holds,
            Some(width) if mean.mean + width < 0.0 => Self::DoesNotHold,
            _ => Self::Undecided,
        }
    }
}

/// Two effects are about as large if neither is more than this many times the other.
const ABOUT: f64 = 1.5;

impl Judged {
    /// Whether there is an effect, by the interval, and whether it is about as large as the paper's. If the interval
    /// contains zero but nothing about as large as the paper's effect, the claim does not hold.
    pub fn extent(ours: &Mean, paper: f64) -> Self {
        match (Self::above_zero(ours), ours.half_width) {
            (Self::Holds, _) if !(paper / ABOUT..=paper * ABOUT).contains(&ours.mean) => Self::HoldsInPart,
            (Self::Undecided, Some(width)) if ours.mean + width < paper / ABOUT => Self::DoesNotHold,
            (judged, _) => judged,
        }
    }

    /// Judges a claim that makes several statements; undecided if there are none.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: Vec<_> = parts.into_iter().collect();
        let any = |judged| parts.contains(&judged);
        if any(Self::DoesNotHold) && (any(Self::Holds) || any(Self::HoldsInPart)) {
            Self::HoldsInPart
        } else if any(Self::DoesNotHold) {
            Self::DoesNotHold
        } else if any(Self::Undecided) || parts.is_empty() {
            Self::Undecided
        } else if any(Self::HoldsInPart) {
            Self::HoldsInPart
        } else {
            Self::Holds
        }
    }
}

/// A mean with its interval, as tables show it.
pub fn shown(mean: &Mean, digits: usize) -> String {
    match mean.half_width {
        Some(width) => format!("{:.digits$} ± {width:.digits$}", mean.mean),
        None => format!("{:.digits$}", mean.mean),
    }
}

/// The mean of samples; NaN if there are none.
pub(crate) fn mean(samples: &[f64]) -> Mean {
    Mean::of(samples).unwrap_or(Mean { mean: f64::NAN, half_width: None, samples: 0 })
}

/// The mean of samples as a cell of a table; a dash if there are none.
pub(crate) fn cell(samples: &[f64], digits: usize) -> String {
    Mean::of(samples).map_or_else(|| "–".to_owned(), |mean| shown(&mean, digits))
}

impl Finding {
    /// The finding as Markdown, without a heading.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            // Writing into a string does not fail.
            let _ = writeln!(text, "{}\n", table.title);
            let _ = writeln!(text, "| {} |", table.columns.join(" | "));
            let _ = writeln!(text, "|{}", "---|".repeat(table.columns.len()));
            for row in &table.rows {
                let _ = writeln!(text, "| {} |", row.join(" | "));
            }
            text.push('\n');
        }
        if !self.claims.is_empty() {
            text.push_str("| the paper | here | |\n|---|---|---|\n");
            for Claim { paper, ours, judged, .. } in &self.claims {
                let _ = writeln!(text, "| {paper} | {ours} | **{}** |", judged.name());
            }
            text.push('\n');
        }
        for remark in &self.remarks {
            let _ = writeln!(text, "{remark}\n");
        }
        for choice in &self.choices {
            let _ = writeln!(text, "- Chosen: {choice}");
        }
        if !self.choices.is_empty() {
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_that_holds_zero_decides_nothing() {
        let judged = |samples: &[f64]| Judged::above_zero(&Mean::of(samples).unwrap());
        assert_eq!(judged(&[5.0, 6.0, 7.0]), Judged::Holds);
        assert_eq!(judged(&[-5.0, -6.0, -7.0]), Judged::DoesNotHold);
        assert_eq!(judged(&[-5.0, 6.0, 1.0]), Judged::Undecided);
        assert_eq!(judged(&[5.0]), Judged::Undecided, "of one sample nothing is known");
    }

    #[test]
    fn an_extent_is_the_papers_within_a_factor() {
        let judged = |mean, width| Judged::extent(&Mean { mean, half_width: Some(width), samples: 30 }, 24.0);
        assert_eq!(judged(17.0, 3.0), Judged::Holds);
        assert_eq!(judged(35.0, 3.0), Judged::Holds);
        assert_eq!(judged(15.0, 3.0), Judged::HoldsInPart);
        assert_eq!(judged(37.0, 3.0), Judged::HoldsInPart);
        assert_eq!(judged(10.0, 11.0), Judged::Undecided);
        assert_eq!(judged(2.0, 3.0), Judged::DoesNotHold, "whatever there is, it is not that much");
        assert_eq!(judged(-24.0, 3.0), Judged::DoesNotHold);
    }

    #[test]
    fn several_statements_are_as_good_as_they_are() {
        use Judged::{DoesNotHold, Holds, HoldsInPart, Undecided};
        for (parts, whole) in [
            (&[Holds, Holds][..], Holds),
            (&[Holds, HoldsInPart], HoldsInPart),
            (&[Holds, DoesNotHold, Undecided], HoldsInPart),
            (&[Holds, Undecided], Undecided),
            (&[Undecided, DoesNotHold], DoesNotHold),
            (&[DoesNotHold, DoesNotHold], DoesNotHold),
            (&[], Undecided),
        ] {
            assert_eq!(Judged::all(parts.iter().copied()), whole, "{parts:?}");
        }
    }
}
