//! Figs. 12 to 15 (§7): the first segment of a window is lost, the rest of the window is held up until the timer has
//! fired, and what the timer sends again is lost too.
//!
//! The path is that of Fig. 10. The paper shows the losses only as the sender sees them. Choice: a handover holds up
//! what follows the lost segment until the timeout is over.

use airtcp::profile::Profile;
use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::handover::{FIRST, MSS, SEGMENTS};
use super::story::Story;
use crate::{Claim, Counts, Effort, Finding, Judged, Table};

const ONCE: &str = "segment 22";
const TWICE: &str = "segment 22 retransmission 1";

/// So long that, with ns-2's timer, the 25th duplicate ACK comes 4.0 s after the timeout, as in the paper.
const HANDOVER: &str = "4.23s";
/// RFC 6298's timer is shorter: with `HANDOVER` its second timeout would come before any duplicate ACK.
const SHORT_HANDOVER: &str = "3.3s";

const WITHOUT: &str = "newreno";
const FAST_TIMEOUT: &str = "newreno+fast-timeout";
const PROPOSED: &str = "newreno+fast-timeout+loss-retransmission";
const WITH_SACK: &str = "sack+fast-timeout+loss-retransmission";

/// The paper's times, in seconds after 9:00:00.
const TIMEOUT: f64 = 10.7;
const DUPACK_25: f64 = 14.7;
const SECOND_TIMEOUT: f64 = 15.4;
const ACCEPTABLE: f64 = 16.6;
const SACK_EDGE: f64 = 14.5;

fn profiles() -> [Profile; 2] {
    [Profile::ns2(), Profile::default()]
}

fn stories(recipe: &str, drop: &[&str]) -> Result<[Story; 2], WorldError> {
    let [ns2, rfc] = profiles();
    Ok([Story::of(ns2, recipe, drop, HANDOVER)?, Story::of(rfc, recipe, drop, SHORT_HANDOVER)?])
}

fn choices(own: &[&str]) -> Vec<String> {
    let common = [
        "No losses are stated. \"The 25th duplicate ACK\" is FlightSize + DupThresh, so FlightSize is 22: segment 22 of a slow start from one segment.".to_owned(),
        "A loss alone is found by duplicate ACKs before any timer fires. So a handover holds up the rest of the window beyond the timeout, and the retransmission is lost.".to_owned(),
        format!(
            "The handover lasts {HANDOVER} in profile `ns2` (the paper ran ns-2.26), so that the 25th duplicate ACK comes as long after the timeout as in the paper, {:.1} s; and {SHORT_HANDOVER} in `default` (the RFCs), whose shorter timer would fire a second time before. All times are counted from the first timeout (paper: 9:00:{TIMEOUT}), because nothing says when its connection began.",
            DUPACK_25 - TIMEOUT
        ),
        "1460 octets in a segment of 1500, an ACK for each, an initial window of one, a receiver's window of 128 segments, no bound to the queue. Nothing here is random: the number of seeds is without effect.".to_owned(),
    ];
    own.iter().map(|&choice| choice.to_owned()).chain(common).collect()
}

fn none() -> String {
    "none".to_owned()
}

/// An event of a figure: a row of its table.
struct Row {
    name: &'static str,
    paper: String,
    ours: fn(&Story) -> String,
}

fn events(title: &str, columns: &[(&str, &Story)], rows: &[Row]) -> Table {
    let heads: Vec<_> =
        ["seconds after the first timeout", "paper"].into_iter().chain(columns.iter().map(|c| c.0)).collect();
    let mut table = Table::new(title, &heads);
    for Row { name, paper, ours } in rows {
        let cells = columns.iter().map(|(_, story)| ours(story));
        table.row([(*name).to_owned(), paper.clone()].into_iter().chain(cells));
    }
    table
}

const fn yes(holds: bool) -> Judged {
    if holds { Judged::Holds } else { Judged::DoesNotHold }
}

/// A time holds if it is within a tenth of the paper's, and in part from half to twice it.
fn close(ours: f64, paper: f64) -> Judged {
    match ours / paper {
        ratio if (0.9..=1.1).contains(&ratio) => Judged::Holds,
        ratio if (0.5..=2.0).contains(&ratio) => Judged::HoldsInPart,
        _ => Judged::DoesNotHold,
    }
}

fn third_dupack(story: &Story) -> String {
    story.dupacks.get(2).map_or_else(none, |at| format!("{:.2}", story.since(*at)))
}

fn second_timeout(story: &Story) -> String {
    story.timeouts.get(1).map_or_else(none, |at| format!("{:.2}", story.since(*at)))
}

fn acceptable(story: &Story) -> String {
    format!("{:.2}", story.since(story.acked))
}

fn window(story: &Story) -> String {
    format!("{:.1} / {:.1}", story.cwnd, story.ssthresh)
}

/// Cost: four short transfers.
pub(super) fn figure_12(_: &Effort) -> Result<Finding, WorldError> {
    let [plain, plain_rfc] = stories(WITHOUT, &[ONCE, TWICE])?;
    let [ns2, rfc] = stories(FAST_TIMEOUT, &[ONCE, TWICE])?;
    let table = events(
        "The retransmission is lost",
        &[
            ("`fast-timeout`, ns2", &ns2),
            ("`fast-timeout`, default", &rfc),
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
            Row { name: "cwnd / ssthresh then", paper: "– / 2".to_owned(), ours: window },
        ],
    );
    let waited = |story: &Story| story.timeouts.get(1).map_or(0.0, |at| story.since(*at));
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the sender waits for the second timeout".to_owned(),
            ours: format!(
                "{} and {} timeouts; the third copy leaves at {}",
                ns2.timeouts.len(),
                rfc.timeouts.len(),
                ns2.third()
            ),
            judged: yes([&ns2, &rfc].iter().all(|s| s.timeouts.len() == 2 && s.trigger().is_none())),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("it comes {:.1} s after the first", SECOND_TIMEOUT - TIMEOUT),
            ours: format!("{:.2} s", waited(&ns2)),
            judged: close(waited(&ns2), SECOND_TIMEOUT - TIMEOUT),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "ssthresh is 2 then".to_owned(),
            ours: format!("{:.0}; without Fast Timeout {:.0}", ns2.ssthresh, plain.ssthresh),
            judged: match ns2.ssthresh {
                2.0 => Judged::Holds,
                // Less than the half of the window that the proposal keeps.
                ssthresh if ssthresh < 11.0 => Judged::HoldsInPart,
                _ => Judged::DoesNotHold,
            },
        },
    ];
    let remarks = vec![format!(
        "Fig. 8 step 6 sets cwnd to half of what it was at the third duplicate ACK, so half of the window at the second timeout is {:.0} with RFC 2581's \
         rule (ns2), and {:.0} with RFC 5681's, which holds ssthresh while the same segment times out again. An ssthresh of 2, \"according to RFC2581\", \
         is what a sender has whose window is still one segment: that is `newreno` without Fast Timeout ({:.0}, second timeout after {} s).",
        ns2.ssthresh,
        rfc.ssthresh,
        plain.ssthresh,
        second_timeout(&plain)
    )];
    Ok(Finding { charts: Vec::new(), tables: vec![table], claims, choices: choices(&[]), remarks })
}

/// Cost: two short transfers.
pub(super) fn figure_13(_: &Effort) -> Result<Finding, WorldError> {
    let [ns2, rfc] = stories(PROPOSED, &[ONCE, TWICE])?;
    let table = events(
        "The retransmission is lost, and the sender counts",
        &[("ns2", &ns2), ("default", &rfc)],
        &[
            Row {
                name: "third copy of the first segment",
                paper: format!("{:.1} (duplicate ACK 25)", DUPACK_25 - TIMEOUT),
                ours: Story::third,
            },
            Row { name: "second timeout", paper: "none".to_owned(), ours: second_timeout },
            Row { name: "acceptable ACK", paper: format!("{:.1}", ACCEPTABLE - TIMEOUT), ours: acceptable },
            Row { name: "cwnd / ssthresh then", paper: "half of before".to_owned(), ours: window },
        ],
    );
    let both = [&ns2, &rfc];
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the 25th duplicate ACK makes it retransmit the segment at once".to_owned(),
            ours: format!("ns2: {}; default: {}", ns2.third(), rfc.third()),
            judged: yes(both.iter().all(|s| s.trigger() == Some(25))),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "no second timeout".to_owned(),
            ours: format!("timeouts: {} and {}", ns2.timeouts.len(), rfc.timeouts.len()),
            judged: yes(both.iter().all(|s| s.timeouts.len() == 1)),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the sender holds one half of the previous cwnd".to_owned(),
            ours: format!("{:.1} and {:.1} of 22", ns2.cwnd, rfc.cwnd),
            judged: yes(both.iter().all(|s| (11.0..12.0).contains(&s.cwnd))),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("the acceptable ACK comes by {:.1} s after the timeout", ACCEPTABLE - TIMEOUT),
            ours: format!("{} s", acceptable(&ns2)),
            judged: close(ns2.since(ns2.acked), ACCEPTABLE - TIMEOUT),
        },
    ];
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![table],
        claims,
        choices: choices(&[]),
        remarks: Vec::new(),
    })
}

/// Sizes of the data in segments; all reach beyond the loss.
const SIZES: [u64; 9] = [50, 75, 100, 150, 200, 300, 500, 1000, 2000];
const HANDOVERS: [&str; 4] = [SHORT_HANDOVER, "3.8s", HANDOVER, "5s"];

/// The largest gain of `more` over `less`, and at how many octets.
fn largest_gain(more: &Story, less: &Story) -> (f64, u64) {
    (FIRST + 1..=SEGMENTS)
        .map(|segments| segments * u64::from(MSS))
        .map(|octets| (more.throughput(octets) - less.throughput(octets), octets))
        .fold((f64::NEG_INFINITY, 0), |best, gain| if gain.0 > best.0 { gain } else { best })
}

/// Cost: sixteen short transfers.
pub(super) fn figure_14(_: &Effort) -> Result<Finding, WorldError> {
    const GAIN: f64 = 33.0;
    let tell = |recipe, handover| Story::of(Profile::ns2(), recipe, &[ONCE, TWICE], handover);
    let fast = tell(FAST_TIMEOUT, HANDOVER)?;
    let proposed = tell(PROPOSED, HANDOVER)?;
    let sack = tell(WITH_SACK, HANDOVER)?;
    let plain = tell(WITHOUT, HANDOVER)?;
    let mut curves = Table::new(
        "Throughput in kbit/s from the first SYN until so much is acknowledged (profile ns2)",
        &["data", "fast timeout", "proposed", "proposed with SACK", "NewReno", "gain over fast timeout"],
    );
    for segments in SIZES {
        let octets = segments * u64::from(MSS);
        let of = |story: &Story| format!("{:.1}", story.throughput(octets));
        curves.row([
            format!("{:.0} kB", octets as f64 / 1e3),
            of(&fast),
            of(&proposed),
            of(&sack),
            of(&plain),
            format!("{:.1}", proposed.throughput(octets) - fast.throughput(octets)),
        ]);
    }
    let mut by_handover = Table::new(
        "The largest gain, by how long the handover lasts",
        &[
            "handover",
            "duplicate ACK 25 after the timeout, s",
            "largest gain over fast timeout, kbit/s",
            "over NewReno",
        ],
    );
    for handover in HANDOVERS {
        let proposed = tell(PROPOSED, handover)?;
        let over = |recipe| Ok::<_, WorldError>(largest_gain(&proposed, &tell(recipe, handover)?).0);
        by_handover.row([
            handover.to_owned(),
            proposed.third(),
            format!("{:.1}", over(FAST_TIMEOUT)?),
            format!("{:.1}", over(WITHOUT)?),
        ]);
    }
    let (gain, at) = largest_gain(&proposed, &fast);
    let (over_plain, _) = largest_gain(&proposed, &plain);
    let end = SEGMENTS * u64::from(MSS);
    let gain_at_end = proposed.throughput(end) - fast.throughput(end);
    let (apart, where_apart) = (FIRST + 1..=SEGMENTS)
        .map(|segments| segments * u64::from(MSS))
        .map(|octets| ((sack.throughput(octets) / proposed.throughput(octets) - 1.0).abs(), octets))
        .fold((0.0, 0), |most, next| if next.0 > most.0 { next } else { most });
    let apart_at_gain = (sack.throughput(at) / proposed.throughput(at) - 1.0).abs();
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the proposal gains at most around 33 kbit/s over fast timeout, for one recovery"
                .to_owned(),
            ours: format!("{gain:.1} kbit/s, at {:.0} kB (over NewReno {over_plain:.1})", at as f64 / 1e3),
            // One run without chance: its interval has no width.
            judged: Judged::extent(&Mean { mean: gain, half_width: Some(0.0), samples: 1 }, GAIN),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "fast timeout needs much data to recover the throughput".to_owned(),
            ours: format!("of the gain, {gain_at_end:.1} kbit/s are left after {:.1} MB", end as f64 / 1e6),
            judged: yes(gain_at_end < gain && at < end),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "as good as the proposal with SACK".to_owned(),
            ours: format!(
                "{:.1} % apart at the most, at {:.0} kB; {:.1} % at {:.0} kB",
                100.0 * apart,
                where_apart as f64 / 1e3,
                100.0 * apart_at_gain,
                at as f64 / 1e3
            ),
            judged: match (apart <= 0.05, apart_at_gain <= 0.05) {
                (true, _) => Judged::Holds,
                (false, true) => Judged::HoldsInPart,
                (false, false) => Judged::DoesNotHold,
            },
        },
    ];
    let own = [
        "The axis' numbers are in the picture only; up to 2.9 MB. \"equivalent\" is within 5 % at every size.",
    ];
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![curves, by_handover],
        claims,
        choices: choices(&own),
        remarks: Vec::new(),
    })
}

/// Cost: six short transfers.
pub(super) fn figure_15(_: &Effort) -> Result<Finding, WorldError> {
    const OTHERS: [&str; 2] = ["segment 30", "segment 37"];
    let [ns2, rfc] = stories(WITH_SACK, &[ONCE, TWICE, OTHERS[0], OTHERS[1]])?;
    let [alone, _] = stories(WITH_SACK, &[ONCE, TWICE])?;
    let [counting, _] = stories(PROPOSED, &[ONCE, TWICE, OTHERS[0], OTHERS[1]])?;
    let table = events(
        "Segments 30 and 37 are lost as well",
        &[
            ("SACK, ns2", &ns2),
            ("SACK, default", &rfc),
            ("SACK, ns2, segment 22 alone", &alone),
            ("without SACK, ns2", &counting),
        ],
        &[
            Row {
                name: "third copy of the first segment",
                paper: format!("{:.1}", SACK_EDGE - TIMEOUT),
                ours: Story::third,
            },
            Row { name: "second timeout", paper: "none".to_owned(), ours: second_timeout },
            Row { name: "acceptable ACK", paper: String::new(), ours: acceptable },
            Row { name: "cwnd / ssthresh then", paper: "half of before".to_owned(), ours: window },
        ],
    );
    let both = [&ns2, &rfc];
    let third = |s: &Story| s.resent.get(1).map_or(f64::NAN, |at| s.since(*at));
    let claims = vec![
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper:
                "the right edge of the SACK blocks above SND.HIGH makes it retransmit, though others are lost"
                    .to_owned(),
            ours: format!("ns2: {}; default: {}", ns2.third(), rfc.third()),
            judged: yes(both.iter().all(|s| s.trigger().is_some() && s.timeouts.len() == 1)),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: format!("it does so {:.1} s after the timeout", SACK_EDGE - TIMEOUT),
            ours: format!("{:.2} s", third(&ns2)),
            judged: close(third(&ns2), SACK_EDGE - TIMEOUT),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "0.2 s earlier than the count of duplicate ACKs, which other losses delay".to_owned(),
            ours: format!(
                "{:.2} s before the sender that counts, with the same losses",
                third(&counting) - third(&ns2)
            ),
            judged: yes(third(&ns2) < third(&counting)),
        },
        Claim {
            place: String::new(),
            counts: Counts::Yes,
            paper: "the sender holds one half of the previous cwnd".to_owned(),
            ours: format!("ssthresh {:.1} and {:.1}, of 22", ns2.ssthresh, rfc.ssthresh),
            judged: yes(both.iter().all(|s| s.ssthresh == 11.0)),
        },
    ];
    let own = ["Which others are lost is not stated: segments 30 and 37."];
    Ok(Finding {
        charts: Vec::new(),
        tables: vec![table],
        claims,
        choices: choices(&own),
        remarks: Vec::new(),
    })
}
