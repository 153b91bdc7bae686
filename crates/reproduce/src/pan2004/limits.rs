//! Small receiver windows and short transfers (§4.1, §5), with sifest and with Limited Transmit (RFC 3042). §5
//! explains how the two differ.

use airtcp_sim::world::WorldError;

use super::judging::{claim, gain, percent, saving, turned};
use super::setting::{Channel, Load, Setting};
use super::{clusters, planned, seeded, traced};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::judge::pooled_gains;
use crate::{Claim, Counts, Effort, Finding, Judged, Table, mean, shown};

const CHANNEL: Channel = Channel::new(0.01, 0.15);
/// Receiver windows in segments: [`SMALL`] small ones, then the window of all other figures.
const WINDOWS: [usize; 5] = [3, 4, 5, 6, 16];
const SMALL: usize = 4;
/// Segments per page.
const PAGES: [u64; 4] = [2, 4, 8, 12];
/// By variant: plain, with Limited Transmit, with sifest.
const SENDERS: [(&str, [&str; 3]); 2] = [
    ("Tahoe", ["tahoe", "tahoe+limited-transmit", "tahoe+sifest"]),
    ("NewReno", ["newreno", "newreno+limited-transmit", "newreno+sifest"]),
];
const NAMES: [&str; 3] = ["plain", "Limited Transmit", "sifest"];

/// One bulk transfer.
#[derive(Clone, Copy)]
struct Seen {
    acked: f64,
    timeouts: f64,
    /// Timeouts after at least one duplicate ACK.
    announced: f64,
    /// Mean time from a loss to the retransmission, in seconds.
    wait: f64,
    idle: f64,
}

/// Samples of a variant: `[sender][window or page][seed]`.
type Grid = [Vec<Vec<f64>>; 3];

pub(super) fn small_windows_and_sessions(effort: &Effort) -> Result<Finding, WorldError> {
    let recipes = || SENDERS.iter().flat_map(|(_, recipes)| recipes);
    let bulk: Vec<_> = recipes()
        .flat_map(|recipe| WINDOWS.map(|window| Setting { window, ..Setting::new(recipe, CHANNEL) }))
        .collect();
    let bulk = traced(effort, &bulk, |measured, trace| {
        let waits = trace.waits();
        Seen {
            acked: measured.acked,
            timeouts: measured.timeouts,
            announced: measured.timeouts - measured.by_dupacks[0],
            wait: waits.iter().sum::<f64>() / waits.len().max(1) as f64,
            idle: trace.idle(),
        }
    })?;
    let pages: Vec<_> = recipes()
        .flat_map(|recipe| {
            PAGES.map(|segments| Setting { load: Load::Pages(segments), ..Setting::new(recipe, CHANNEL) })
        })
        .collect();
    let pages = effort.sample(&planned(&pages)?, seeded, |_, report| {
        let took = report.flows.iter().map(|flow| flow.took_seconds.unwrap_or(report.seconds));
        took.sum::<f64>() / report.flows.len() as f64
    })?;
    let of = |variant: usize, value: fn(&Seen) -> f64| -> Grid {
        [0, 1, 2].map(|sender| {
            let first = (variant * 3 + sender) * WINDOWS.len();
            let points = bulk[first..][..WINDOWS.len()].iter();
            points.map(|seeds| seeds.iter().map(value).collect()).collect()
        })
    };
    let took = |variant: usize| -> Grid {
        [0, 1, 2].map(|sender| pages[(variant * 3 + sender) * PAGES.len()..][..PAGES.len()].to_vec())
    };

    let mut tables = Vec::new();
    for (variant, (name, _)) in SENDERS.iter().enumerate() {
        tables.push(windows_table(
            name,
            &of(variant, |s| s.acked),
            &of(variant, |s| s.wait),
            &of(variant, |s| s.idle),
        ));
        tables.push(pages_table(name, &took(variant)));
    }

    let (acked, pages) = (of(0, |seen| seen.acked), took(0));
    let more = |than: usize| mean(&pooled_gains(&acked[2][..SMALL], &acked[than][..SMALL]));
    let each_window: Vec<_> = (0..SMALL)
        .map(|at| format!("{}: {}", WINDOWS[at], percent(&gain(&acked[2][at], &acked[1][at]))))
        .collect();
    let sooner = |than: usize| turned(&mean(&pooled_gains(&pages[2], &pages[than])));
    let (wait, timeouts) = (of(0, |seen| seen.wait), of(0, |seen| seen.timeouts));
    let prompt = saving(&wait[2][SMALL], &wait[1][SMALL]);
    let prompt_small = turned(&mean(&pooled_gains(&wait[2][..SMALL], &wait[1][..SMALL])));
    let fewer = saving(&timeouts[1][SMALL], &timeouts[0][SMALL]);
    let announced = of(0, |seen| seen.announced);
    let waiting = mean(&announced[1][SMALL]);
    let claims = vec![
        claim(
            "§5",
            "“Moreover, the performance improvement also applies when the receiver only has small buffer (*e.g.*, a PDA) or the application is session limited (*e.g.*, multi-request-reply transactions).”",
            format!(
                "sifest gives Tahoe {} more packets at receiver windows of 3 to 6 segments, and pages take {} less time",
                percent(&more(0)),
                percent(&sooner(0))
            ),
            Judged::all([Judged::better(&more(0)), Judged::better(&sooner(0))]),
        ),
        claim(
            "§5, of Limited Transmit",
            "“This scheme can somehow alleviate the occurrence of timeout by triggering more *dupacks* to reach the fixed threshold of 3.”",
            format!(
                "Limited Transmit gives Tahoe {} fewer timeouts at a window of 16 segments",
                percent(&fewer)
            ),
            Judged::better(&fewer),
        ),
        claim(
            "§5, of Limited Transmit",
            "“However, this scheme still suffers when the receiver window is small or the application is session limited.” (Here: sifest performs better in both cases.)",
            format!(
                "sifest compared with Limited Transmit: Tahoe has {} more packets at windows of 3 to 6 segments ({}), and pages take {} less time",
                percent(&more(1)),
                each_window.join(", "),
                percent(&sooner(1))
            ),
            Judged::all([Judged::better(&more(1)), Judged::better(&sooner(1))]),
        ),
        claim(
            "§5, of Limited Transmit",
            "“More importantly, without an estimation of in-flight segments, the TCP sender still does not have the capability to retransmit the lost packets in a timely manner.” (Here: less time passes from a loss to its retransmission with sifest than with Limited Transmit.)",
            format!(
                "sifest takes {} less time than Limited Transmit at a window of 16 segments, {} less at 3 to 6",
                percent(&prompt),
                percent(&prompt_small)
            ),
            Judged::better(&prompt),
        ),
        Claim {
            counts: Counts::ByConstruction(
                "Limited Transmit waits for three duplicate ACKs while the timer runs".to_owned(),
            ),
            ..claim(
                "§5, of Limited Transmit",
                "“the armed timer for old packets inevitably runs the risk of unnecessary timeout when waiting for the extra *dupacks* triggered by new data packets.” (Here: Limited Transmit has timeouts after at least one duplicate ACK.)",
                format!(
                    "{} such timeouts in 100 s at a window of 16 segments; with sifest {}",
                    shown(&waiting, 1),
                    shown(&mean(&announced[2][SMALL]), 1)
                ),
                Judged::above_zero(&waiting),
            )
        },
    ];
    tables.push(clusters::small_windows(effort, CHANNEL, &WINDOWS[..SMALL])?);
    let lines = NAMES.iter().zip(&acked).map(|(name, points)| {
        Line::line(*name, WINDOWS.iter().map(|window| *window as f64).zip(points.iter().map(Vec::as_slice)))
    });
    let chart = Chart {
        title: "Tahoe with small receiver windows (not a figure of the paper)".to_owned(),
        x: Axis::new("receiver window, segments", Scale::FromZero),
        y: Axis::new("packets acknowledged in 100 s", Scale::FromZero),
        curves: lines.collect(),
    };
    Ok(Finding { tables, charts: vec![chart], claims, ..Finding::default() })
}

fn windows_table(name: &str, acked: &Grid, wait: &Grid, idle: &Grid) -> Table {
    let mut table = Table::new(
        format!(
            "{name}, bulk transfers: acknowledged packets after 100 s, mean seconds from a loss to its retransmission, seconds idle before timeouts, and gain of sifest over Limited Transmit in packets, by receiver window in segments:"
        ),
        &["window", "sender", "packets", "loss to retransmission", "idle", "sifest over Limited Transmit"],
    );
    for (point, window) in WINDOWS.iter().enumerate() {
        for (sender, kind) in NAMES.iter().enumerate() {
            let over = percent(&gain(&acked[2][point], &acked[1][point]));
            table.row([
                window.to_string(),
                (*kind).to_owned(),
                shown(&mean(&acked[sender][point]), 0),
                shown(&mean(&wait[sender][point]), 2),
                shown(&mean(&idle[sender][point]), 1),
                if sender == 2 { over } else { String::new() },
            ]);
        }
    }
    table
}

fn pages_table(name: &str, took: &Grid) -> Table {
    let mut table = Table::new(
        format!("{name}, pages: seconds from the SYN to the last byte, and time that sifest saves:"),
        &[
            "segments per page",
            "plain",
            "Limited Transmit",
            "sifest",
            "saved over plain",
            "saved over Limited Transmit",
        ],
    );
    for (point, segments) in PAGES.iter().enumerate() {
        let times = took.each_ref().map(|sender| shown(&mean(&sender[point]), 2));
        let less = [0, 1].map(|than| percent(&saving(&took[2][point], &took[than][point])));
        table.row([segments.to_string()].into_iter().chain(times).chain(less));
    }
    table
}
