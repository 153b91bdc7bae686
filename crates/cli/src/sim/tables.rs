//! The tables of a run for people: a row for each flow.

use airtcp::sender::shared;
use airtcp_numbers::units::{show_bytes, show_rate};
use airtcp_sim::run::{FlowReport, Judge, Report};

/// More flows than this are not listed one by one.
const LISTED: usize = 50;

pub(super) fn tables(report: &Report) -> String {
    let mut text = String::new();
    let listed = &report.flows[..report.flows.len().min(LISTED)];
    let common = shared(report.flows.iter().map(|flow| flow.profile));
    let name = |flow: &FlowReport| match common {
        Some(_) => flow.recipe.clone(),
        None => format!("{}@{}", flow.recipe, flow.profile),
    };
    let width = listed.iter().map(|flow| name(flow).len()).max().unwrap_or_default().max("recipe".len());
    let mut line = |line: String| text.push_str(&(line.trim_end().to_owned() + "\n"));
    if let Some(profile) = common {
        line(format!("recipes with profile {profile}"));
    }
    line(format!(
        "{:>4}  {:<width$}  {:>10}  {:>13}  {:>9}  {:>13}  {:>8}",
        "flow", "recipe", "delivered", "goodput", "took", "segments: all", "resent"
    ));
    for (number, flow) in listed.iter().enumerate() {
        let took = match (flow.took_seconds, &flow.ended) {
            (Some(seconds), _) => format!("{seconds:.3} s"),
            (None, Some(why)) => why.clone(),
            (None, None) => String::new(),
        };
        line(format!(
            "{:>4}  {:<width$}  {:>10}  {:>13}  {took:>9}  {:>13}  {:>8}",
            number + 1,
            name(flow),
            show_bytes(flow.delivered),
            goodput(flow),
            flow.data_segments,
            flow.counters.resent(),
        ));
    }
    if report.flows.len() > LISTED {
        line(format!("      … and {} more: --json has them all", report.flows.len() - LISTED));
    }
    line(String::new());
    line(
        "(0/1/2/3+): so many duplicate ACKs had come before the timeout; failed: as many as could come"
            .to_owned(),
    );
    line(format!(
        "{:>4}  {:<24}  {:>6}  {:>16}  {:<40}  {:<18}  {:>10}  {:>6}",
        "flow",
        "timeouts: all (0/1/2/3+)",
        "failed",
        "fast retransmits",
        "segments resent: fast/rec./timeout/probe",
        "spurious t.o./f.r.",
        "reductions",
        "undone"
    ));
    for (number, flow) in listed.iter().enumerate() {
        line(events(number + 1, flow));
    }
    for (number, flow) in listed.iter().enumerate() {
        for Judge { name, confusion } in &flow.judges {
            line(format!("{:>4}  {name}: {confusion}", number + 1));
        }
    }
    let all: f64 = report.flows.iter().map(|flow| flow.goodput_bit_per_s).sum();
    if report.flows.len() > 1 {
        line(format!("together {}, Jain's index {:.4}", show_rate(all), report.jain));
    }
    line(format!(
        "dropped by queues {} packets, by the radio {}{}",
        report.dropped_by_queues,
        report.dropped_by_radio,
        if report.complete { "" } else { "; not every flow is complete" }
    ));
    text
}

/// On a path without a delay or a rate no time may have passed: then there is none.
fn goodput(flow: &FlowReport) -> String {
    if flow.took_seconds == Some(0.0) {
        return "-".to_owned();
    }
    show_rate(flow.goodput_bit_per_s)
}

fn events(number: usize, flow: &FlowReport) -> String {
    let counters = &flow.counters;
    let [zero, one, two, more] = counters.timeouts_by_dupacks;
    let timeouts = format!("{} ({zero}/{one}/{two}/{more})", counters.timeouts);
    let resent = format!(
        "{}/{}/{}/{}",
        counters.resent_fast, counters.resent_recovery, counters.resent_timeout, counters.resent_probe
    );
    let spurious = format!("{}/{}", counters.spurious_timeouts, counters.spurious_fast_retransmits);
    format!(
        "{number:>4}  {timeouts:<24}  {:>6}  {:>16}  {resent:<40}  {spurious:<18}  {:>10}  {:>6}",
        counters.failed_dupack, counters.fast_retransmits, counters.window_reductions, counters.undone
    )
}
