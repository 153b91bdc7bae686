//! The tables of a run, with a row per flow.

use airtcp::sender::shared;
use airtcp_numbers::table::{Column, Table, wrapped_lines};
use airtcp_numbers::units::{show_bytes, show_rate};
use airtcp_sim::run::{FlowReport, Judge, Report};

/// Maximum number of flows to list.
pub(super) const LISTED: usize = 50;

pub(super) fn tables(report: &Report, width: Option<usize>) -> String {
    let listed = &report.flows[..report.flows.len().min(LISTED)];
    let common = shared(report.flows.iter().map(|flow| flow.profile));
    let mut text = common.map(|profile| format!("recipes with profile {profile}\n")).unwrap_or_default();
    let mut results = Table::new([
        Column::new("flow"),
        Column::new("recipe").left(),
        Column::new("delivered"),
        Column::new("goodput"),
        Column::new("time"),
        Column::new("all").of("segments"),
        Column::new("retrans").of("segments"),
    ]);
    for (number, flow) in listed.iter().enumerate() {
        let time = match (flow.took_seconds, &flow.ended) {
            (Some(seconds), _) => format!("{seconds:.3} s"),
            (None, Some(why)) => why.clone(),
            (None, None) => "-".to_owned(),
        };
        results.push([
            (number + 1).to_string(),
            recipe(flow, common.is_some()),
            show_bytes(flow.delivered),
            goodput(flow),
            time,
            flow.data_segments.to_string(),
            flow.counters.resent().to_string(),
        ]);
    }
    text += &results.render(width);
    let mut line = |line: String| text += &(line + "\n");
    if report.flows.len() > LISTED {
        line(format!("      … and {} more: --json has them all", report.flows.len() - LISTED));
    }
    line(String::new());
    line(events(listed).render(width));
    for (number, flow) in listed.iter().enumerate() {
        for Judge { name, confusion } in &flow.judges {
            let judge = format!("{:>4}  {name}: {confusion}", number + 1);
            line(wrapped_lines(&judge, width).trim_end().to_owned());
        }
    }
    let all: f64 = report.flows.iter().map(|flow| flow.goodput_bit_per_s).sum();
    if report.flows.len() > 1 {
        line(format!("total {}, Jain's index {:.4}", show_rate(all), report.jain));
    }
    line(format!(
        "dropped packets: {} by queues, {} by the radio link{}",
        report.dropped_by_queues,
        report.dropped_by_radio,
        if report.complete { "" } else { "; not every flow is complete" }
    ));
    text + &wrapped_lines(&report.notices().join("\n"), width)
}

/// Formats a recipe, with its profile unless all flows have the same one.
pub(super) fn recipe(flow: &FlowReport, is_common: bool) -> String {
    match is_common {
        true => flow.recipe.clone(),
        false => format!("{}@{}", flow.recipe, flow.profile),
    }
}

/// Formats the goodput. On a path without delay and rate limit no time may pass, and the goodput is
/// undefined.
fn goodput(flow: &FlowReport) -> String {
    if flow.took_seconds == Some(0.0) {
        return "-".to_owned();
    }
    show_rate(flow.goodput_bit_per_s)
}

fn events(flows: &[FlowReport]) -> Table {
    const LOSSES: &str = "losses found by";
    const TIMEOUTS: &str = "timeouts after dup. ACKs";
    const RETRANSMISSIONS: &str = "retransmitted segments";
    const SPURIOUS: &str = "spurious retransm.";
    const WINDOW: &str = "window reductions";
    let mut table = Table::new([
        Column::new("flow"),
        Column::new("ACKs").of(LOSSES),
        Column::new("timeout").of(LOSSES),
        Column::new("0").of(TIMEOUTS).optional(1),
        Column::new("1").of(TIMEOUTS).optional(1),
        Column::new("2").of(TIMEOUTS).optional(1),
        Column::new("3+").of(TIMEOUTS).optional(1),
        Column::new("all").of(TIMEOUTS).optional(1),
        Column::new("fast").of(RETRANSMISSIONS),
        Column::new("partial").of(RETRANSMISSIONS),
        Column::new("timeout").of(RETRANSMISSIONS),
        Column::new("probe").of(RETRANSMISSIONS),
        Column::new("fast").of(SPURIOUS).optional(2),
        Column::new("timeout").of(SPURIOUS).optional(2),
        Column::new("all").of(WINDOW).optional(0),
        Column::new("undone").of(WINDOW).optional(0),
    ]);
    for (number, FlowReport { counters, .. }) in flows.iter().enumerate() {
        let [zero, one, two, more] = counters.timeouts_by_dupacks.map(u64::from);
        table.push(
            [
                number as u64 + 1,
                counters.fast_retransmits,
                counters.timeouts,
                zero,
                one,
                two,
                more,
                counters.failed_dupack.into(),
                counters.resent_fast,
                counters.resent_recovery,
                counters.resent_timeout,
                counters.resent_probe,
                counters.spurious_fast_retransmits,
                counters.spurious_timeouts,
                counters.window_reductions,
                counters.undone,
            ]
            .map(|number| number.to_string()),
        );
    }
    table
}
