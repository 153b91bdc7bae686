//! Figs. 12 and 13 (§7): the first segment of a window and its retransmission are lost. The rest of the
//! window arrives after the timeout. `data_size` contains Fig. 14 and `sack_edge` Fig. 15.
//!
//! The path is the path of Fig. 10. The paper shows the losses only as the sender sees them. Choice: a
//! handover begins after the lost segment, and delays the rest of the window until after the timeout.
//!
//! Nothing here is random, so intervals have no width ([`exact`]). A time of the paper is met within [`RESOLUTION`].

use airtcp::profile::Profile;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::readings;
use super::timeline::Timeline;
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim};

pub(super) const ONCE: &str = "segment 22";
pub(super) const TWICE: &str = "segment 22 retransmission 1";

/// With this handover and ns-2's timer, the 25th duplicate ACK comes 4.0 s after the timeout, as in the paper.
pub(super) const HANDOVER: &str = "4.23s";
/// For RFC 6298's timer, which is shorter. With `HANDOVER` it would fire a second time before any duplicate ACK.
pub(super) const SHORT_HANDOVER: &str = "3.3s";
pub(super) const HANDOVERS: [&str; 5] = [SHORT_HANDOVER, "3.6s", "3.9s", HANDOVER, "5s"];

pub(super) const WITHOUT: &str = "newreno";
pub(super) const FAST_TIMEOUT: &str = "newreno+fast-timeout";
pub(super) const PROPOSED: &str = "newreno+fast-timeout+loss-retransmission";
pub(super) const WITH_SACK: &str = "sack+fast-timeout+loss-retransmission";

/// The paper's times, in seconds after 9:00:00.
pub(super) const TIMEOUT: f64 = 10.7;
pub(super) const DUPACK_25: f64 = 14.7;
const SECOND_TIMEOUT: f64 = 15.4;
const ACCEPTABLE: f64 = 16.6;
/// Precision of a difference between two times that are printed in tenths of a second.
pub(super) const RESOLUTION: f64 = 0.1;
pub(super) const CALIBRATED: &str = "the duration of the handover, and the lost segment";

/// Why claims about the window after the recovery do not count.
const PRESCRIBED: &str = "the algorithm sets the window to this value";

/// A value that does not depend on the seed.
pub(super) fn exact(value: f64) -> Mean {
    Mean { mean: value, half_width: Some(0.0), samples: 1 }
}

pub(super) fn ns2(
    effort: &Effort,
    recipe: &str,
    drop: &[&str],
    handover: &str,
) -> Result<Timeline, WorldError> {
    Timeline::of(effort, Profile::ns2(), recipe, drop, handover)
}

pub(super) fn twice(effort: &Effort, recipe: &str) -> Result<Timeline, WorldError> {
    ns2(effort, recipe, &[ONCE, TWICE], handover(effort))
}

/// The duration of the handover in this reading.
pub(super) fn handover(effort: &Effort) -> &'static str {
    effort.value(readings::HANDOVER).unwrap_or(HANDOVER)
}

/// Runs a sender with the RFCs' timer instead of ns-2's.
pub(super) fn rfc(effort: &Effort, recipe: &str, drop: &[&str]) -> Result<Timeline, WorldError> {
    Timeline::of(effort, Profile::default(), recipe, drop, SHORT_HANDOVER)
}

fn none() -> String {
    "none".to_owned()
}

/// A row of a table of events: an event, with the paper's time and ours.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) paper: String,
    pub(super) ours: fn(&Timeline) -> String,
}

pub(super) fn events(title: &str, columns: &[(&str, &Timeline)], rows: &[Row]) -> Table {
    let heads: Vec<_> =
        ["seconds after first timeout", "paper"].into_iter().chain(columns.iter().map(|c| c.0)).collect();
    let mut table = Table::new(title, &heads);
    for Row { name, paper, ours } in rows {
        let cells = columns.iter().map(|(_, timeline)| ours(timeline));
        table.row([(*name).to_owned(), paper.clone()].into_iter().chain(cells));
    }
    table
}

/// Whether the sender has this number of timeouts.
pub(super) fn timeouts(timeline: &Timeline, times: usize) -> Judged {
    Judged::number(&exact(timeline.timeouts.len() as f64), times as f64, 0.0)
}

/// Whether a time after the first timeout agrees with a time of day in the paper.
pub(super) fn time(ours: f64, paper: f64) -> Judged {
    Judged::number(&exact(ours), paper - TIMEOUT, RESOLUTION)
}

/// Whether cwnd is half of its value before the timeout.
pub(super) fn half(timeline: &Timeline, cwnd: f64) -> Judged {
    Judged::similar(&exact(cwnd / (timeline.cwnd_prev() / 2.0) - 1.0))
}

fn is_in_congestion_avoidance((cwnd, ssthresh): (f64, f64)) -> Judged {
    Judged::between(&exact(cwnd - ssthresh), 0.0, f64::INFINITY)
}

fn second(timeline: &Timeline) -> f64 {
    timeline.timeouts.get(1).map_or(f64::NAN, |at| timeline.since(*at))
}

fn third_dupack(timeline: &Timeline) -> String {
    timeline.dupacks.get(2).map_or_else(none, |at| format!("{:.2}", timeline.since(*at)))
}

pub(super) fn second_timeout(timeline: &Timeline) -> String {
    if timeline.timeouts.len() < 2 { none() } else { format!("{:.2}", second(timeline)) }
}

pub(super) fn acceptable(timeline: &Timeline) -> String {
    format!("{:.2}", timeline.since(timeline.acked))
}

pub(super) fn window(timeline: &Timeline) -> String {
    let (cwnd, ssthresh) = timeline.window();
    format!("{cwnd:.1} / {ssthresh:.1}")
}

/// Cost: sixteen short transfers.
pub(super) fn figure_12(effort: &Effort) -> Result<Finding, WorldError> {
    let (plain, plain_rfc) = (twice(effort, WITHOUT)?, rfc(effort, WITHOUT, &[ONCE, TWICE])?);
    let (fast, fast_rfc) = (twice(effort, FAST_TIMEOUT)?, rfc(effort, FAST_TIMEOUT, &[ONCE, TWICE])?);
    let table = events(
        "Events if the retransmission is lost",
        &[
            ("`fast-timeout`, ns2", &fast),
            ("`fast-timeout`, default", &fast_rfc),
            ("`newreno`, ns2", &plain),
            ("`newreno`, default", &plain_rfc),
        ],
        &[
            Row { name: "duplicate ACK 3", paper: String::new(), ours: third_dupack },
            Row {
                name: "second timeout",
                paper: format!("{:.1}", SECOND_TIMEOUT - TIMEOUT),
                ours: second_timeout,
            },
            Row { name: "acceptable ACK", paper: format!("{:.1}", ACCEPTABLE - TIMEOUT), ours: acceptable },
            Row { name: "cwnd / ssthresh at acceptable ACK", paper: "– / 2".to_owned(), ours: window },
        ],
    );
    let charts = vec![
        fast.sequence_chart(
            "Fig. 12 (a): time-sequence graph, Fast Timeout",
            &[0.0, SECOND_TIMEOUT - TIMEOUT],
        ),
        fast.window_chart(
            "Fig. 12 (b): sender state variables, Fast Timeout",
            Some((ACCEPTABLE - TIMEOUT, 2.0)),
        ),
    ];
    Ok(Finding {
        tables: vec![table, by_handover(effort)?],
        charts,
        claims: claims_12(effort, &fast, &plain)?,
        remarks: remarks_12(&fast, &fast_rfc, &plain),
        ..Finding::default()
    })
}

fn by_handover(effort: &Effort) -> Result<Table, WorldError> {
    let mut by_handover = Table::new(
        "`fast-timeout` by handover duration, in seconds after the first timeout (profile `ns2`; in \
         parentheses: the paper)",
        &[
            "handover",
            "duplicate ACK 3",
            "second timeout (4.7)",
            "acceptable ACK (5.9)",
            "ssthresh afterwards (2)",
            "proposal: second retransmission (4.0)",
        ],
    );
    for handover in HANDOVERS {
        let timeline = ns2(effort, FAST_TIMEOUT, &[ONCE, TWICE], handover)?;
        by_handover.row([
            handover.to_owned(),
            third_dupack(&timeline),
            second_timeout(&timeline),
            acceptable(&timeline),
            format!("{:.1}", timeline.window().1),
            format!("{:.2}", ns2(effort, PROPOSED, &[ONCE, TWICE], handover)?.second_retransmission()),
        ]);
    }
    Ok(by_handover)
}

fn claims_12(effort: &Effort, fast: &Timeline, plain: &Timeline) -> Result<Vec<Claim>, WorldError> {
    // §1: only the first segment is lost, and duplicate ACKs come after the timeout.
    let alone = [rfc(effort, WITHOUT, &[ONCE])?, rfc(effort, "newreno+eifel", &[ONCE])?];
    let eifel = exact(alone[1].throughput(1 << 20) / alone[0].throughput(1 << 20) - 1.0);
    let (cwnd, ssthresh) = fast.window();
    Ok(vec![
        claim(
            At("§7.2, Fig. 12"),
            "“it has to wait a long time, from 9:00:10.7 to 9:00:15.4, following the exponential backoff \
             algorithm.”",
            format!(
                "{} timeouts; the second is {} s after the first",
                fast.timeouts.len(),
                second_timeout(fast)
            ),
            Judged::all([timeouts(fast, 2), time(second(fast), SECOND_TIMEOUT)]),
        ),
        claim(
            At("§7.2, Fig. 12"),
            "“According to RFC2581, the ssthresh is set as ssthresh ← max(cwnd/2, 2) = 2”",
            format!("ssthresh {ssthresh:.0}; without Fast Timeout {:.0}", plain.window().1),
            Judged::number(&exact(ssthresh), 2.0, 0.0),
        ),
        claim(
            At("§7.2, Fig. 12"),
            "“so the sender enters the congestion avoidance phase directly when the sender receives the \
             acceptable ACK at 9:00:16.6.”",
            format!(
                "{} s after the first timeout, with cwnd {cwnd:.0} and ssthresh {ssthresh:.0}",
                acceptable(fast)
            ),
            Judged::all([
                time(fast.since(fast.acked), ACCEPTABLE),
                is_in_congestion_avoidance(fast.window()),
            ]),
        ),
        claim(
            At("§1"),
            "“As a result, these STO detection algorithms, such as the Eifel, only work as conventional TCP” \
             (Here: Eifel makes no difference if the segment that timed out was lost, and duplicate ACKs \
             follow.)",
            format!(
                "`eifel` changes the throughput of 1 Mbyte by {:+.1} % (profile `default`)",
                100.0 * eifel.mean
            ),
            Judged::similar(&eifel),
        ),
    ])
}

fn remarks_12(fast: &Timeline, fast_rfc: &Timeline, plain: &Timeline) -> Vec<String> {
    let (_, ssthresh) = fast.window();
    vec![
        format!(
            "At the third duplicate ACK, step 6 of Fig. 8 sets cwnd to half of its value before the timeout. \
             The second timeout then sets ssthresh to half of this cwnd, {ssthresh:.0}, with RFC 2581's rule \
             (profile `ns2`). With RFC 5681's rule (profile `default`), ssthresh stays at {:.0} while the \
             same segment times out again. An ssthresh of 2 means that the window was still one segment at \
             the second timeout. This is the case for `newreno` without Fast Timeout (ssthresh {:.0}, second \
             timeout after {} s).",
            fast_rfc.window().1,
            plain.window().1,
            second_timeout(plain)
        ),
        "At the third duplicate ACK, step 5 of Fig. 8 restarts the timer with an RTO computed from twice the \
         SRTT. Here the exponential backoff also ends at this point. With the backoff, the second timeout \
         would come even later."
            .to_owned(),
    ]
}

/// Cost: two short transfers.
pub(super) fn figure_13(effort: &Effort) -> Result<Finding, WorldError> {
    let (ns2, rfc) = (twice(effort, PROPOSED)?, rfc(effort, PROPOSED, &[ONCE, TWICE])?);
    let table = events(
        "Events if the retransmission is lost and the sender counts duplicate ACKs",
        &[("ns2", &ns2), ("default", &rfc)],
        &[
            Row {
                name: "second retransmission",
                paper: format!("{:.1} (duplicate ACK 25)", DUPACK_25 - TIMEOUT),
                ours: Timeline::second_retransmission_shown,
            },
            Row { name: "second timeout", paper: "none".to_owned(), ours: second_timeout },
            Row { name: "acceptable ACK", paper: String::new(), ours: acceptable },
            Row { name: "cwnd / ssthresh at acceptable ACK", paper: String::new(), ours: window },
            Row {
                name: "cwnd / ssthresh after 5.9 s",
                paper: "half of previous cwnd".to_owned(),
                ours: |timeline| {
                    let (cwnd, ssthresh) = timeline.window_at(ACCEPTABLE - TIMEOUT);
                    format!("{cwnd:.1} / {ssthresh:.1}")
                },
            },
        ],
    );
    let (cwnd, _) = ns2.window_at(ACCEPTABLE - TIMEOUT);
    let trigger = ns2.trigger().map_or(f64::NAN, |nth| nth as f64);
    let claims = vec![
        claim(
            At("§7.2, Fig. 13"),
            "“It is shown that the sender detects the retransmitted segment loss by examining the 25th \
             duplicate ACK at 9:00:14.7, and it retransmits the unacknowledged segment immediately.”",
            format!(
                "second retransmission, seconds after the timeout: {}",
                ns2.second_retransmission_shown()
            ),
            Judged::all([
                Judged::number(&exact(trigger), 25.0, 0.0),
                time(ns2.second_retransmission(), DUPACK_25),
            ]),
        )
        .not_counted(Counts::Calibrated(CALIBRATED.to_owned())),
        claim(
            At("§7.2, Fig. 13"),
            "“Thus, the sender switches from the fast timeout algorithm to congestion avoidance and \
             transmits a series of segments.”",
            format!("{} timeout; cwnd / ssthresh {} at the acceptable ACK", ns2.timeouts.len(), window(&ns2)),
            Judged::all([timeouts(&ns2, 1), is_in_congestion_avoidance(ns2.window())]),
        )
        .not_counted(Counts::ByConstruction(PRESCRIBED.to_owned())),
        claim(
            At("§7.2, Fig. 13"),
            "“the sender holds one half of the previous cwnd value at 9:00:16.6”",
            format!("cwnd {cwnd:.1} at this time, {:.0} before the timeout", ns2.cwnd_prev()),
            half(&ns2, cwnd),
        )
        .not_counted(Counts::ByConstruction(PRESCRIBED.to_owned())),
    ];
    let charts = vec![
        ns2.sequence_chart(
            "Fig. 13 (a): time-sequence graph, proposed algorithms",
            &[0.0, DUPACK_25 - TIMEOUT],
        ),
        ns2.window_chart("Fig. 13 (b): sender state variables, proposed algorithms", None),
    ];
    Ok(Finding { tables: vec![table], charts, claims, ..Finding::default() })
}
