//! Small receiver windows and short transfers (§4.1, §5), with sifest and with Limited Transmit (RFC 3042). §5
//! explains how the two differ.

use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::clusters;
use super::judging::{Measured, negated, percent};
use super::senders::{planned, seeded, traced};
use super::setting::{Load, MODERATE, Setting};
use super::trace::Trace;
use crate::chart::{Axis, Chart, Scale};
use crate::grid::Grid;
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, cell, claim, column, mean, shown};

/// Receiver windows in segments: [`SMALL`] small ones, then [`FULL`].
const WINDOWS: [usize; 5] = [3, 4, 5, 6, 16];
const SMALL: usize = 4;
/// The window of all other figures.
const FULL: usize = WINDOWS[SMALL];
/// Segments per page.
const PAGE_SEGMENTS: [u64; 4] = [2, 4, 8, 12];
const TAHOES: [&str; 3] = ["tahoe", "tahoe+limited-transmit", "tahoe+sifest"];
/// By variant: plain, with Limited Transmit, with sifest.
const SENDERS: [(&str, [&str; 3]); 2] =
    [("Tahoe", TAHOES), ("NewReno", ["newreno", "newreno+limited-transmit", "newreno+sifest"])];
const NAMES: [&str; 3] = ["plain", "Limited Transmit", "sifest"];

/// Measurements of one bulk transfer.
#[derive(Clone, Copy, Serialize)]
struct Transfer {
    #[serde(rename = "packets acknowledged")]
    acked: f64,
    timeouts: f64,
    #[serde(rename = "timeouts after duplicate ACKs")]
    after_dupacks: f64,
    #[serde(rename = "time from loss to retransmission, s")]
    wait: f64,
    #[serde(rename = "idle time, s")]
    idle: f64,
}

/// Bulk transfers by recipe and receiver window.
type Bulk = Grid<&'static str, usize, Transfer>;
/// Mean seconds per page, by recipe and segments per page.
type Pages = Grid<&'static str, u64, f64>;

fn acked(transfer: &Transfer) -> f64 {
    transfer.acked
}

fn page_time(seconds: &f64) -> f64 {
    *seconds
}

fn run_bulk(effort: &Effort, recipes: &[&'static str]) -> Result<Bulk, WorldError> {
    let plan = |recipe: &str, window| Ok(Setting { window, ..Setting::new(recipe, MODERATE) });
    let measure = |measured: &Measured, trace: &Trace| {
        let waits = trace.waits();
        Transfer {
            acked: measured.acked,
            timeouts: measured.timeouts,
            after_dupacks: measured.timeouts - measured.by_dupacks[0],
            wait: waits.iter().sum::<f64>() / waits.len().max(1) as f64,
            idle: trace.idle(),
        }
    };
    Grid::run(recipes, &WINDOWS, plan, |settings| traced(effort, settings, measure))
}

fn run_pages(effort: &Effort, recipes: &[&'static str]) -> Result<Pages, WorldError> {
    let plan = |recipe: &str, page| Ok(Setting { load: Load::Pages(page), ..Setting::new(recipe, MODERATE) });
    Grid::run(recipes, &PAGE_SEGMENTS, plan, |settings| {
        effort.sample_named("time per page, s", &planned(settings)?, seeded, |_, report| {
            let times = report.flows.iter().map(|flow| flow.took_seconds.unwrap_or(report.seconds));
            times.sum::<f64>() / report.flows.len() as f64
        })
    })
}

pub(super) fn small_windows_and_sessions(effort: &Effort) -> Result<Finding, WorldError> {
    let recipes = SENDERS.map(|(_, recipes)| recipes).concat();
    let (bulk, pages) = (run_bulk(effort, &recipes)?, run_pages(effort, &recipes)?);
    let tables = |(name, recipes)| [windows_table(name, recipes, &bulk), pages_table(name, recipes, &pages)];
    let mut tables = SENDERS.map(tables).concat();
    tables.push(clusters::small_windows(effort, MODERATE, &WINDOWS[..SMALL])?);
    let lines = NAMES.into_iter().zip(TAHOES);
    let chart = Chart {
        title: "Tahoe with small receiver windows (not a figure of the paper)".to_owned(),
        x: Axis::new("receiver window, segments", Scale::FromZero),
        y: Axis::new("packets acknowledged in 100 s", Scale::FromZero),
        curves: lines.map(|(name, recipe)| bulk.line(recipe, name, |w| w as f64, acked)).collect(),
    };
    let claims = claims(&bulk, &pages);
    Ok(Finding { tables, charts: vec![chart], claims, ..Finding::default() })
}

fn claims(bulk: &Bulk, pages: &Pages) -> Vec<Claim> {
    let [plain, limited, sifest] = TAHOES;
    let small = bulk.only(|window| window < FULL);
    let more = |reference| small.pooled(sifest, reference, acked);
    let each_window: Vec<_> = small
        .points()
        .iter()
        .map(|window| format!("{window}: {}", percent(&bulk.gain(sifest, limited, *window, acked))))
        .collect();
    let sooner = |reference| negated(&pages.pooled(sifest, reference, page_time));
    vec![
        claim(
            At("§5"),
            "“Moreover, the performance improvement also applies when the receiver only has small buffer \
             (*e.g.*, a PDA) or the application is session limited (*e.g.*, multi-request-reply \
             transactions).”",
            format!(
                "sifest gives Tahoe {} more packets at receiver windows of 3 to 6 segments, and pages take \
                 {} less time",
                percent(&more(plain)),
                percent(&sooner(plain))
            ),
            Judged::all([Judged::better(&more(plain)), Judged::better(&sooner(plain))]),
        ),
        alleviates_timeouts(bulk),
        claim(
            At("§5, of Limited Transmit"),
            "“However, this scheme still suffers when the receiver window is small or the application is \
             session limited.” (Here: sifest performs better in both cases.)",
            format!(
                "sifest compared with Limited Transmit: Tahoe has {} more packets at windows of 3 to 6 \
                 segments ({}), and pages take {} less time",
                percent(&more(limited)),
                each_window.join(", "),
                percent(&sooner(limited))
            ),
            Judged::all([Judged::better(&more(limited)), Judged::better(&sooner(limited))]),
        ),
        retransmits_later(bulk, &small),
        risks_timeouts(bulk),
    ]
}

fn alleviates_timeouts(bulk: &Bulk) -> Claim {
    let [plain, limited, _] = TAHOES;
    let fewer = negated(&bulk.gain(limited, plain, FULL, |transfer| transfer.timeouts));
    claim(
        At("§5, of Limited Transmit"),
        "“This scheme can somehow alleviate the occurrence of timeout by triggering more *dupacks* to \
         reach the fixed threshold of 3.”",
        format!("Limited Transmit gives Tahoe {} fewer timeouts at a window of 16 segments", percent(&fewer)),
        Judged::better(&fewer),
    )
}

fn retransmits_later(bulk: &Bulk, small: &Bulk) -> Claim {
    let [_, limited, sifest] = TAHOES;
    let wait = |transfer: &Transfer| transfer.wait;
    let less = negated(&bulk.gain(sifest, limited, FULL, wait));
    let less_at_small = negated(&small.pooled(sifest, limited, wait));
    claim(
        At("§5, of Limited Transmit"),
        "“More importantly, without an estimation of in-flight segments, the TCP sender still does not \
         have the capability to retransmit the lost packets in a timely manner.” (Here: less time passes \
         from a loss to its retransmission with sifest than with Limited Transmit.)",
        format!(
            "sifest takes {} less time than Limited Transmit at a window of 16 segments, {} less at 3 to 6",
            percent(&less),
            percent(&less_at_small)
        ),
        Judged::better(&less),
    )
}

fn risks_timeouts(bulk: &Bulk) -> Claim {
    let [_, limited, sifest] = TAHOES;
    let [with_limited, with_sifest] =
        [limited, sifest].map(|recipe| mean(&bulk.at(recipe, FULL, |transfer| transfer.after_dupacks)));
    claim(
        At("§5, of Limited Transmit"),
        "“the armed timer for old packets inevitably runs the risk of unnecessary timeout when waiting \
         for the extra *dupacks* triggered by new data packets.” (Here: Limited Transmit has timeouts \
         after at least one duplicate ACK.)",
        format!(
            "{} such timeouts in 100 s at a window of 16 segments; with sifest {}",
            shown(&with_limited, 1),
            shown(&with_sifest, 1)
        ),
        Judged::above_zero(&with_limited),
    )
    .not_counted(Counts::ByConstruction(
        "Limited Transmit waits for three duplicate ACKs while the timer runs".to_owned(),
    ))
}

fn windows_table(name: &str, recipes: [&'static str; 3], bulk: &Bulk) -> Table {
    /// A window, and the index of a sender.
    type Row = (usize, usize);
    let [_, limited, sifest] = recipes;
    let of = |heading: &str, digits: usize, value: fn(&Transfer) -> f64| {
        column(heading, move |(window, index): &Row| cell(&bulk.at(recipes[*index], *window, value), digits))
    };
    Table::of(
        format!(
            "{name}, bulk transfers: acknowledged packets after 100 s, mean seconds from a loss to its \
             retransmission, seconds idle before timeouts, and gain of sifest over Limited Transmit in \
             packets, by receiver window in segments:"
        ),
        [
            column("window", |(window, _): &Row| window.to_string()),
            column("sender", |(_, index): &Row| NAMES[*index].to_owned()),
            of("packets", 0, acked),
            of("loss to retransmission", 2, |transfer| transfer.wait),
            of("idle", 1, |transfer| transfer.idle),
            column("sifest over Limited Transmit", |(window, index): &Row| match recipes[*index] == sifest {
                true => percent(&bulk.gain(sifest, limited, *window, acked)),
                false => String::new(),
            }),
        ],
        WINDOWS.into_iter().flat_map(|window| [0, 1, 2].map(|index| (window, index))),
    )
}

fn pages_table(name: &str, [plain, limited, sifest]: [&'static str; 3], pages: &Pages) -> Table {
    let seconds = |recipe| move |page: &u64| cell(&pages.at(recipe, *page, page_time), 2);
    let saved = |than| move |page: &u64| percent(&negated(&pages.gain(sifest, than, *page, page_time)));
    Table::of(
        format!("{name}, pages: seconds from the SYN to the last byte, and time that sifest saves:"),
        [
            column("segments per page", u64::to_string),
            column("plain", seconds(plain)),
            column("Limited Transmit", seconds(limited)),
            column("sifest", seconds(sifest)),
            column("saved over plain", saved(plain)),
            column("saved over Limited Transmit", saved(limited)),
        ],
        PAGE_SEGMENTS,
    )
}
