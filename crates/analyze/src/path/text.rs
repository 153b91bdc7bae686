//! Formats findings as text. Counts of 0 are omitted.

use std::fmt;

use super::Clock;
use super::findings::{FlowFindings, PathFindings, Transit, TruthFindings};
use super::sender_log::SenderComparison;
use crate::connection::findings::RttFindings;
use crate::text::{Seconds, list};

/// Maximum number of connections shown. The connections with the most data are selected.
const MAX_CONNECTIONS: usize = 20;

impl fmt::Display for PathFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the path")?;
        for (at, capture) in self.captures.iter().enumerate() {
            write!(f, "  {}  {}: {} TCP packets", at + 1, capture.name, capture.tcp_packets)?;
            match capture.clock {
                Clock::Same => {}
                Clock::Given { ahead_ns } => write!(f, "; its clock is {}", Ahead(ahead_ns))?,
                Clock::Estimated { ahead_ns } => write!(
                    f,
                    "; its clock is estimated to be {}, because packets would otherwise arrive before they leave; the \
                     estimate assumes the same minimum delay in both directions (--clock-offset sets the offset)",
                    Ahead(ahead_ns)
                )?,
            }
            writeln!(f)?;
            if capture.negative_delays > 0 {
                let early = capture.negative_delays;
                writeln!(f, "     {early} packets arrived in it before they left: the clocks differ")?;
            }
            for (problem, found) in capture.problems.iter() {
                writeln!(f, "     {} × {problem} (at frame {})", found.count, found.first_frame)?;
            }
        }
        if self.matched == 0 {
            return writeln!(
                f,
                "  no packet appears in two captures: they were made at different times or have different packets, or a \
                 device between them translates addresses or terminates the connections"
            );
        }
        let flows = self.connections.iter().flat_map(|connection| &connection.directions);
        let mut flows: Vec<_> = flows.filter(|flow| flow.data.entered + flow.acks.entered > 0).collect();
        let left_out = flows.len().saturating_sub(2 * MAX_CONNECTIONS);
        if left_out > 0 {
            flows.sort_by_key(|flow| std::cmp::Reverse(flow.bytes));
            flows.truncate(2 * MAX_CONNECTIONS);
        }
        for flow in flows {
            write!(f, "{flow}")?;
        }
        if left_out > 0 {
            writeln!(f, "  and {left_out} more directions with less data (--json lists all)")?;
        }
        match &self.truth {
            Some(truth) => write!(f, "{truth}"),
            None => Ok(()),
        }
    }
}

/// The nanoseconds by which a clock is ahead of another.
struct Ahead(i64);

impl fmt::Display for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = Seconds(self.0.unsigned_abs() as f64 / 1e9);
        write!(f, "{seconds} {}", if self.0 < 0 { "behind" } else { "ahead" })
    }
}

impl fmt::Display for FlowFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {} → {}, from capture {}", self.from, self.to, self.enters_at + 1)?;
        let mut row = |name: &str, text: String| writeln!(f, "    {name:<17}{text}");
        if self.matched == 0 {
            return row("", "no packet appears in two captures".to_owned());
        }
        for (name, transit) in [("data", &self.data), ("pure ACKs", &self.acks)] {
            if transit.entered > 0 {
                row(name, transit.to_string())?;
            }
        }
        if self.retransmitted > 0 {
            row(
                "retransmissions",
                format!("{}; for {} an earlier copy had arrived", self.retransmitted, self.spurious),
            )?;
        }
        row("delay", delay(&self.delay))?;
        if self.delay_between.len() > 1 {
            for (gap, part) in self.delay_between.iter().enumerate() {
                row(&format!("  {} to {}", gap + 1, gap + 2), delay(part))?;
            }
        }
        Ok(())
    }
}

fn delay(delay: &RttFindings) -> String {
    let figures = [
        ("min", delay.min_seconds),
        ("median", delay.median_seconds),
        ("90 %", delay.p90_seconds),
        ("99 %", delay.p99_seconds),
        ("max", delay.max_seconds),
    ];
    let figures: Vec<_> = figures
        .iter()
        .filter_map(|(name, seconds)| Some(format!("{name} {}", Seconds((*seconds)?))))
        .collect();
    if figures.is_empty() { "not measured".to_owned() } else { figures.join(", ") }
}

impl fmt::Display for Transit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} packets, {} arrived, {} lost", self.entered, self.arrived, self.lost)?;
        let mut lost = Vec::new();
        if self.lost_between.len() > 1 {
            let between = self.lost_between.iter().enumerate().filter(|(_, lost)| **lost > 0);
            lost.extend(between.map(|(gap, lost)| format!("{lost} between {} and {}", gap + 1, gap + 2)));
        }
        let causes = [
            (self.lost_by_congestion, "by congestion"),
            (self.lost_by_radio, "on the radio link"),
            (self.refused, "refused"),
        ];
        let causes = list(&causes);
        lost.extend((!causes.is_empty()).then_some(causes));
        if !lost.is_empty() {
            write!(f, " ({})", lost.join("; "))?;
        }
        let more = list(&[
            (self.undetermined, "unknown"),
            (self.reordered, "reordered"),
            (self.duplicated, "duplicated"),
            (self.unmatched_arrivals, "not seen at the sender's end"),
            (self.missed, "missed by a capture"),
        ]);
        if more.is_empty() { Ok(()) } else { write!(f, "; {more}") }
    }
}

impl fmt::Display for TruthFindings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "comparison with airlink's events")?;
        if self.known == 0 {
            return writeln!(
                f,
                "  none of the packets is in the events: they are from another run, or the first capture was not made \
                 at the fixed end"
            );
        }
        let unknown = match self.unknown {
            0 => String::new(),
            unknown => format!("; {unknown} are not in the events"),
        };
        writeln!(f, "  {} packets compared{unknown}", self.known)?;
        writeln!(f, "  {:<10}{:>8}{:>8}{:>10}", "packets", "right", "wrong", "unknown")?;
        for (name, right, wrong, undetermined) in [
            ("losses", self.losses_found, self.losses_missed, self.losses_undetermined),
            ("arrivals", self.arrivals_found, self.false_losses, self.arrivals_undetermined),
        ] {
            writeln!(f, "  {name:<10}{right:>8}{wrong:>8}{undetermined:>10}")?;
        }
        let right = self.losses_found + self.arrivals_found;
        let undetermined = match self.losses_undetermined + self.arrivals_undetermined {
            0 => String::new(),
            packets => format!(", {packets} unknown"),
        };
        match (self.losses_missed + self.false_losses, right) {
            (0, 0) => {}
            (0, _) => writeln!(f, "  passed {right} of {right}{undetermined}")?,
            (wrong, _) => writeln!(f, "  failed {wrong} of {}{undetermined}", right + wrong)?,
        }
        if self.altered_arrivals > 0 {
            let others = self.altered_arrivals;
            writeln!(
                f,
                "  {others} packets left with changed headers that no checksum detects: not compared"
            )?;
        }
        if self.congestion_between.len() > 1 {
            let between = self.congestion_between.iter().zip(&self.radio_between).enumerate();
            for (gap, (congestion, radio)) in between.filter(|(_, (a, b))| *a + *b > 0) {
                let causes = list(&[(*congestion, "by congestion"), (*radio, "on the radio link")]);
                writeln!(f, "  lost between {} and {}: {causes}", gap + 1, gap + 2)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for SenderComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "comparison with the sender's counters, {} → {}", self.from, self.to)?;
        writeln!(f, "  {:<36}{:>8}{:>9}", "", "sender", "capture")?;
        for compared in self.counts.iter().filter(|compared| compared.sender + compared.capture > 0) {
            writeln!(f, "  {:<36}{:>8}{:>9}", compared.what, compared.sender, compared.capture)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_listed_by_place_and_cause() {
        let none = Transit { entered: 9, arrived: 9, ..Transit::default() };
        assert_eq!(none.to_string(), "9 packets, 9 arrived, 0 lost");
        let some = Transit { arrived: 6, lost: 3, lost_by_radio: 2, lost_by_congestion: 1, ..none };
        assert!(some.to_string().contains("(1 by congestion, 2 on the radio link)"), "{some}");
    }

    #[test]
    fn ground_truth_check_counts_unknown_fates_separately() {
        let passed =
            TruthFindings { known: 12, losses_found: 2, arrivals_found: 8, ..TruthFindings::default() };
        let last =
            |findings: TruthFindings| findings.to_string().trim_end().lines().last().unwrap().to_owned();
        assert_eq!(last(passed.clone()), "  passed 10 of 10");
        let some = TruthFindings { losses_undetermined: 1, arrivals_undetermined: 2, ..passed };
        assert_eq!(last(some.clone()), "  passed 10 of 10, 3 unknown");
        assert_eq!(last(TruthFindings { losses_missed: 1, ..some }), "  failed 1 of 11, 3 unknown");
    }
}
