//! Fig. 14 (§7.2): throughput against data size, with the losses of Figs. 12 and 13.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::handover::{FIRST, MSS, SEGMENTS};
use super::story::Story;
use super::twice_lost::{
    FAST_TIMEOUT, HANDOVERS, ONCE, PROPOSED, TWICE, WITH_SACK, WITHOUT, exact, ns2, twice,
};
use crate::chart::{Axis, Chart, Curve, Scale, Style};
use crate::judge::SIMILAR;
use crate::{At, Claim, Effort, Finding, Judged, Table, claim, column};

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

/// A sender whose retransmission is lost, by recipe.
struct Stories {
    fast: Story,
    proposed: Story,
    sack: Story,
    plain: Story,
}

/// Cost: nineteen short transfers.
pub(super) fn figure_14(effort: &Effort) -> Result<Finding, WorldError> {
    let stories = Stories {
        fast: twice(effort, FAST_TIMEOUT)?,
        proposed: twice(effort, PROPOSED)?,
        sack: twice(effort, WITH_SACK)?,
        plain: twice(effort, WITHOUT)?,
    };
    let (by_handover, gains) = by_handover(effort)?;
    Ok(Finding {
        tables: vec![by_size(&stories), by_handover],
        charts: vec![chart(&stories)],
        claims: claims(&stories, &gains),
        ..Finding::default()
    })
}

fn by_size(stories: &Stories) -> Table {
    let of = |heading, story| {
        column(heading, move |segments: &u64| format!("{:.1}", Story::throughput(story, octets(*segments))))
    };
    Table::of(
        "Throughput in kbit/s from the first SYN until the data is acknowledged (profile `ns2`; proposal: \
         Fast Timeout with loss retransmission)",
        [
            column("data size", |segments: &u64| format!("{:.0} kB", octets(*segments) as f64 / 1e3)),
            of("Fast Timeout", &stories.fast),
            of("proposal", &stories.proposed),
            of("proposal with SACK", &stories.sack),
            of("NewReno", &stories.plain),
            column("gain over Fast Timeout", |segments: &u64| {
                let [more, less] =
                    [&stories.proposed, &stories.fast].map(|story| story.throughput(octets(*segments)));
                format!("{:.1}", more - less)
            }),
        ],
        SIZES,
    )
}

/// The largest gains of the proposal by handover duration, and those over Fast Timeout.
fn by_handover(effort: &Effort) -> Result<(Table, Vec<f64>), WorldError> {
    let mut by_handover = Table::new(
        "Largest gain of the proposal in kbit/s, by handover duration",
        &["handover", "second retransmission, s", "over Fast Timeout", "over NewReno"],
    );
    let mut gains = Vec::new();
    for handover in HANDOVERS {
        let of = |recipe| ns2(effort, recipe, &[ONCE, TWICE], handover);
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
    Ok((by_handover, gains))
}

fn claims(stories: &Stories, gains: &[f64]) -> Vec<Claim> {
    let Stories { fast, proposed, sack, plain } = stories;
    let (most, at) = largest_gain(proposed, fast);
    let (least, largest) =
        gains.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), gain| (a.min(*gain), b.max(*gain)));
    let behind = gain(proposed, fast, MBYTE);
    let longer = exact(fast.afterwards(MBYTE) / proposed.afterwards(MBYTE) - 1.0);
    let equivalent = SIZES.map(|segments| gain(sack, proposed, octets(segments)));
    let apart = equivalent.iter().map(|gain| gain.mean.abs()).fold(0.0, f64::max);
    let (superior, over_plain) = (pooled(proposed, fast), pooled(proposed, plain));
    vec![
        claim(
            At("§7.2, Fig. 14"),
            "“the throughput of the proposed algorithms is superior to the fast timeout algorithm.”",
            format!("by {:.1} %, averaged over all sizes", 100.0 * superior.mean),
            Judged::better(&superior),
        ),
        claim(
            At("§7.2, Fig. 14"),
            "“The proposed algorithm overcomes Fast timeout at most around 33 kbps of improvement in \
             throughput for single set of recovery in our simulation settings.”",
            format!(
                "{most:.1} kbit/s, at {:.0} kB; {least:.1} to {largest:.1} kbit/s over all handover \
                 durations. “Around” allows the same tolerance as “similar”.",
                at as f64 / 1e3
            ),
            Judged::number(&exact(most), GAIN, SIMILAR * GAIN),
        ),
        claim(
            At("§7.2, Fig. 14"),
            "“the fast timeout algorithm needs excessive data size to recovery the throughput.” (Here: after \
             1 Mbyte, the throughputs are still not similar.)",
            format!("the proposal is {:.1} % faster over 1 Mbyte", 100.0 * behind.mean),
            Judged::between(&behind, SIMILAR, f64::INFINITY),
        ),
        claim(
            At("§7.2, Fig. 14"),
            "“Then, it spends much time for sending data rather than the others after the loss \
             retransmission.”",
            format!(
                "Fast Timeout takes {:.1} % longer than the proposal for the next 1 Mbyte",
                100.0 * longer.mean
            ),
            Judged::considerably(&longer),
        ),
        claim(
            At("§7.2, Fig. 14"),
            "“Moreover, the proposed algorithm achieves the performance equivalent to the proposed algorithm \
             can with SACK option …”",
            format!("at most {:.1} % difference", 100.0 * apart),
            Judged::all(equivalent.iter().map(Judged::similar)),
        ),
        claim(
            At("§7.2, Fig. 13"),
            "“This allows it to achieve better throughput than conventional TCP.”",
            format!("by {:.1} % compared with `newreno`, averaged over all sizes", 100.0 * over_plain.mean),
            Judged::better(&over_plain),
        ),
    ]
}

fn chart(stories: &Stories) -> Chart {
    Chart {
        title: "Throughput comparison between the fast timeout and the proposed algorithm".to_owned(),
        x: Axis::new("data size, kB", Scale::FromZero),
        y: Axis::new("throughput, kbit/s", Scale::FromZero),
        curves: vec![
            curve("Fast Timeout", &stories.fast),
            curve("proposal", &stories.proposed),
            curve("proposal with SACK", &stories.sack),
            curve("NewReno", &stories.plain),
        ],
    }
}

fn curve(name: &str, story: &Story) -> Curve {
    let sizes = (1..=SEGMENTS / 25).map(|n| octets(25 * n));
    let points = sizes.map(|octets| (octets as f64 / 1e3, story.throughput(octets)));
    Curve { style: Style::Line, ..Curve::dots(name, points) }
}
