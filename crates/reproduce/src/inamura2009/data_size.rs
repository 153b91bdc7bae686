//! Fig. 14 (§7.2): throughput against data size, with the losses of Figs. 12 and 13.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::handover::{FIRST, MSS, SEGMENTS};
use super::story::Story;
use super::twice_lost::{
    FAST_TIMEOUT, HANDOVERS, ONCE, PROPOSED, TWICE, WITH_SACK, WITHOUT, counted, exact, ns2, twice,
};
use crate::chart::{Axis, Chart, Curve, Drawn, Scale};
use crate::judge::SIMILAR;
use crate::{Effort, Finding, Judged, Table};

/// Data sizes in segments. All of them include the loss.
const SIZES: [u64; 11] = [50, 75, 100, 150, 200, 300, 500, 720, 1000, 1500, 2000];
/// The data size of §5.2: 1 Mbyte.
const MBYTE: u64 = 1 << 20;
/// "Around 33 kbps".
const GAIN: f64 = 33.0;

/// Payload bytes in this number of segments.
fn octets(segments: u64) -> u64 {
    segments * u64::from(MSS)
}

/// The largest gain of `more` over `less` in kbit/s, and the data size in bytes where it occurs.
fn largest_gain(more: &Story, less: &Story) -> (f64, u64) {
    (FIRST + 1..=SEGMENTS)
        .map(octets)
        .map(|octets| (more.throughput(octets) - less.throughput(octets), octets))
        .fold((f64::NEG_INFINITY, 0), |best, gain| if gain.0 > best.0 { gain } else { best })
}

/// Gain of `more` over `less` at one data size, as a share.
fn gain(more: &Story, less: &Story, octets: u64) -> Mean {
    exact(more.throughput(octets) / less.throughput(octets) - 1.0)
}

/// Gain averaged over all sizes.
fn pooled(more: &Story, less: &Story) -> Mean {
    let gains = SIZES.map(|segments| gain(more, less, octets(segments)).mean);
    exact(gains.iter().sum::<f64>() / gains.len() as f64)
}

/// Cost: nineteen short transfers.
pub(super) fn figure_14(_: &Effort) -> Result<Finding, WorldError> {
    let (fast, proposed, sack) = (twice(FAST_TIMEOUT)?, twice(PROPOSED)?, twice(WITH_SACK)?);
    let plain = twice(WITHOUT)?;
    let mut curves = Table::new(
        "Throughput in kbit/s from the first SYN until the data is acknowledged (profile `ns2`; proposal: \
         Fast Timeout with loss retransmission)",
        &["data size", "Fast Timeout", "proposal", "proposal with SACK", "NewReno", "gain over Fast Timeout"],
    );
    for segments in SIZES {
        let octets = octets(segments);
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
        "Largest gain of the proposal in kbit/s, by handover duration",
        &["handover", "second retransmission, s", "over Fast Timeout", "over NewReno"],
    );
    let mut gains = Vec::new();
    for handover in HANDOVERS {
        let of = |recipe| ns2(recipe, &[ONCE, TWICE], handover);
        let proposed = of(PROPOSED)?;
        let over = |recipe| Ok::<_, WorldError>(largest_gain(&proposed, &of(recipe)?).0);
        let over_fast = over(FAST_TIMEOUT)?;
        by_handover.row([
            handover.to_owned(),
            proposed.third_told(),
            format!("{over_fast:.1}"),
            format!("{:.1}", over(WITHOUT)?),
        ]);
        gains.push(over_fast);
    }
    let (most, at) = largest_gain(&proposed, &fast);
    let (least, largest) =
        gains.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), gain| (a.min(*gain), b.max(*gain)));
    let behind = gain(&proposed, &fast, MBYTE);
    let longer = exact(fast.afterwards(MBYTE) / proposed.afterwards(MBYTE) - 1.0);
    let equivalent = SIZES.map(|segments| gain(&sack, &proposed, octets(segments)));
    let apart = equivalent.iter().map(|gain| gain.mean.abs()).fold(0.0, f64::max);
    let (superior, over_plain) = (pooled(&proposed, &fast), pooled(&proposed, &plain));
    let claims = vec![
        counted(
            "§7.2, Fig. 14",
            "“the throughput of the proposed algorithms is superior to the fast timeout algorithm.”",
            format!("by {:.1} %, averaged over all sizes", 100.0 * superior.mean),
            Judged::better(&superior),
        ),
        counted(
            "§7.2, Fig. 14",
            "“The proposed algorithm overcomes Fast timeout at most around 33 kbps of improvement in \
             throughput for single set of recovery in our simulation settings.”",
            format!(
                "{most:.1} kbit/s, at {:.0} kB; {least:.1} to {largest:.1} kbit/s over all handover \
                 durations. “Around” allows the same tolerance as “similar”.",
                at as f64 / 1e3
            ),
            Judged::number(&exact(most), GAIN, SIMILAR * GAIN),
        ),
        counted(
            "§7.2, Fig. 14",
            "“the fast timeout algorithm needs excessive data size to recovery the throughput.” (Here: after \
             1 Mbyte, the throughputs are still not similar.)",
            format!("the proposal is {:.1} % faster over 1 Mbyte", 100.0 * behind.mean),
            Judged::between(&behind, SIMILAR, f64::INFINITY),
        ),
        counted(
            "§7.2, Fig. 14",
            "“Then, it spends much time for sending data rather than the others after the loss \
             retransmission.”",
            format!(
                "Fast Timeout takes {:.1} % longer than the proposal for the next 1 Mbyte",
                100.0 * longer.mean
            ),
            Judged::considerably(&longer),
        ),
        counted(
            "§7.2, Fig. 14",
            "“Moreover, the proposed algorithm achieves the performance equivalent to the proposed algorithm \
             can with SACK option …”",
            format!("at most {:.1} % difference", 100.0 * apart),
            Judged::all(equivalent.iter().map(Judged::similar)),
        ),
        counted(
            "§7.2, Fig. 13",
            "“This allows it to achieve better throughput than conventional TCP.”",
            format!("by {:.1} % compared with `newreno`, averaged over all sizes", 100.0 * over_plain.mean),
            Judged::better(&over_plain),
        ),
    ];
    let chart = Chart {
        title: "Throughput comparison between the fast timeout and the proposed algorithm".to_owned(),
        x: Axis::new("data size, kB", Scale::FromZero),
        y: Axis::new("throughput, kbit/s", Scale::FromZero),
        curves: vec![
            curve("Fast Timeout", &fast),
            curve("proposal", &proposed),
            curve("proposal with SACK", &sack),
            curve("NewReno", &plain),
        ],
    };
    Ok(Finding { tables: vec![curves, by_handover], charts: vec![chart], claims, ..Finding::default() })
}

fn curve(name: &str, story: &Story) -> Curve {
    let sizes = (1..=SEGMENTS / 25).map(|n| octets(25 * n));
    let points = sizes.map(|octets| (octets as f64 / 1e3, story.throughput(octets)));
    Curve { drawn: Drawn::Line, ..Curve::dots(name, points) }
}
