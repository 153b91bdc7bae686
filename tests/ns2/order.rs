//! Compares two sequences of transmissions, and prints both around their first difference.

use std::fmt::Write;

use crate::vector::Flow;
use crate::world::Log;

/// Tolerance in seconds. A sender that models ns-2's ticks is this precise; without the model, an RTT sample
/// is off by a whole tick.
const TOLERANCE: f64 = 20e-6;

const BEFORE: usize = 8;
const AFTER: usize = 12;

/// Reports the first difference only, because the later ones are usually its consequences.
pub(crate) fn compare(flow: &Flow, log: &Log) -> Result<(), String> {
    if let Some(fault) = &log.fault {
        return Err(format!("flow {}: {fault}\n{}", flow.flow, around(flow, log, log.tx.len())));
    }
    let recorded = &flow.tx.0;
    for (index, (&(micros, number), (at, ours))) in recorded.iter().zip(&log.tx).enumerate() {
        let what = if number != ours.number {
            "different segment"
        } else if (at - micros as f64 / 1e6).abs() > TOLERANCE {
            "different time"
        } else {
            continue;
        };
        return Err(format!(
            "flow {}: {what} at transmission {index}\n{}",
            flow.flow,
            around(flow, log, index)
        ));
    }
    if recorded.len() != log.tx.len() {
        let what = format!("{} transmissions instead of {}", log.tx.len(), recorded.len());
        let index = recorded.len().min(log.tx.len());
        return Err(format!("flow {}: {what}\n{}", flow.flow, around(flow, log, index)));
    }
    Ok(())
}

fn around(flow: &Flow, log: &Log, index: usize) -> String {
    let mut text = format!("{:>5}  {:>11} {:>5}   {:>11} {:>5}\n", "", "ns-2", "", "airtcp", "");
    let mut shown_until = log.tx.get(index.saturating_sub(BEFORE)).map_or(0.0, |(at, _)| *at);
    let count = flow.tx.0.len().max(log.tx.len());
    for i in index.saturating_sub(BEFORE)..count.min(index + AFTER) {
        if let Some((at, _)) = log.tx.get(i) {
            for (arrived, ack) in log.arrivals.iter().filter(|(t, _)| *t > shown_until && t <= at) {
                _ = writeln!(text, "{:>27} {arrived:>11.6}   ACK of {ack}", "");
            }
            shown_until = *at;
        }
        let theirs =
            flow.tx.0.get(i).map_or(String::new(), |&(t, n)| format!("{:.6} {n:>5}", t as f64 / 1e6));
        let ours =
            log.tx.get(i).map_or(String::new(), |(t, s)| format!("{t:.6} {:>5}   {}", s.number, s.note));
        let mark = if i == index { ">" } else { " " };
        _ = writeln!(text, "{mark}{i:>4}  {theirs:>17}   {ours:>17}");
    }
    text
}
