//! Fig. 15 (§7.2): the losses of Figs. 12 and 13 with SACK, and further losses in the same window.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::handover::{FIRST, SND_HIGH};
use super::timeline::Timeline;
use super::twice_lost::{
    CALIBRATED, DUPACK_25, ONCE, PROPOSED, RESOLUTION, Row, TIMEOUT, TWICE, WITH_SACK, acceptable, events,
    exact, half, handover, ns2, rfc, second_timeout, time, timeouts, twice, window,
};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column};

/// SACK and Fast Timeout without loss retransmission.
const WITHOUT_RETRANSMISSION: &str = "sack+fast-timeout";
/// The paper's time of the second retransmission, in seconds after 9:00:00.
const SACK_EDGE: f64 = 14.5;

/// Further lost segments, which the paper does not name.
const OTHERS: [&[&str]; 4] = [
    &["segment 30", "segment 37"],
    &["segment 23"],
    &["segment 26", "segment 27", "segment 28", "segment 29"],
    &["segment 43"],
];

/// The timelines with further losses, each by its index in [`OTHERS`], and without further losses.
struct Timelines {
    sack: Vec<Timeline>,
    counting: Vec<Timeline>,
    fast: Vec<Timeline>,
    default: Timeline,
    alone: Timeline,
    counting_alone: Timeline,
}

impl Timelines {
    fn run(effort: &Effort) -> Result<Self, WorldError> {
        let losses = OTHERS.map(|others| [&[ONCE, TWICE], others].concat());
        let with_losses = |recipe: &str| {
            losses
                .iter()
                .map(|drop| ns2(effort, recipe, drop, handover(effort)))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            sack: with_losses(WITH_SACK)?,
            counting: with_losses(PROPOSED)?,
            fast: with_losses(WITHOUT_RETRANSMISSION)?,
            default: rfc(effort, WITH_SACK, &losses[0])?,
            alone: twice(effort, WITH_SACK)?,
            counting_alone: twice(effort, PROPOSED)?,
        })
    }
}

/// Cost: fifteen short transfers.
pub(super) fn figure_15(effort: &Effort) -> Result<Finding, WorldError> {
    let timelines = Timelines::run(effort)?;
    let title = "Fig. 15: time-sequence graph, proposed algorithm with SACK";
    Ok(Finding {
        tables: vec![table(&timelines), swept(&timelines)],
        charts: vec![timelines.sack[0].sequence_chart(title, &[])],
        claims: claims(&timelines),
        ..Finding::default()
    })
}

fn table(timelines: &Timelines) -> Table {
    let Timelines { sack, counting, default, alone, counting_alone, .. } = timelines;
    events(
        "Segments 30 and 37 are also lost (columns with one loss: only segment 22, profile `ns2`)",
        &[
            ("SACK, ns2", &sack[0]),
            ("SACK, default", default),
            ("SACK, one loss", alone),
            ("no SACK, ns2", &counting[0]),
            ("no SACK, one loss", counting_alone),
        ],
        &[
            Row {
                name: "second retransmission",
                paper: format!("{:.1}", SACK_EDGE - TIMEOUT),
                ours: Timeline::second_retransmission_shown,
            },
            Row { name: "second timeout", paper: "none".to_owned(), ours: second_timeout },
            Row { name: "acceptable ACK", paper: String::new(), ours: acceptable },
            Row {
                name: "cwnd / ssthresh at acceptable ACK",
                paper: "half of previous cwnd".to_owned(),
                ours: window,
            },
        ],
    )
}

fn swept(timelines: &Timelines) -> Table {
    type Row<'a> = ((&'a &'a [&'a str], &'a Timeline), &'a Timeline);
    Table::of(
        "Seconds from the timeout to the second retransmission, by further losses (profile `ns2`)",
        [
            column("further lost segments", |((others, _), _): &Row<'_>| others.join(", ")),
            column("SACK", |((_, sack), _): &Row<'_>| sack.second_retransmission_shown()),
            column("cwnd / ssthresh afterwards", |((_, sack), _): &Row<'_>| window(sack)),
            column("no SACK", |(_, counting): &Row<'_>| counting.second_retransmission_shown()),
        ],
        OTHERS.iter().zip(&timelines.sack).zip(&timelines.counting),
    )
}

/// The delay of each timeline's second retransmission compared with `reference`.
fn delays(timelines: &[Timeline], reference: &Timeline) -> Vec<Mean> {
    timelines
        .iter()
        .map(|timeline| exact(timeline.second_retransmission() - reference.second_retransmission()))
        .collect()
}

fn range(times: &[Mean]) -> String {
    let (low, high) = times.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), time| {
        (low.min(time.mean), high.max(time.mean))
    });
    format!("{low:.2} to {high:.2} s")
}

/// Seconds from the third duplicate ACK, which begins the recovery, to the second retransmission.
fn recovery_time(timeline: &Timeline) -> f64 {
    timeline.dupacks.get(2).map_or(f64::NAN, |at| timeline.second_retransmission() - timeline.since(*at))
}

fn claims(timelines: &Timelines) -> Vec<Claim> {
    [claims_about_further_losses(timelines), claims_about_duplicate_acks(timelines)].concat()
}

fn claims_about_further_losses(timelines: &Timelines) -> Vec<Claim> {
    let Timelines { sack, fast, alone, .. } = timelines;
    let octets = 1 << 20;
    let sack_delays = delays(sack, alone);
    let timing = sack.iter().map(|timeline| exact(recovery_time(timeline) / recovery_time(alone) - 1.0));
    let over_fast: Vec<_> = sack
        .iter()
        .zip(fast)
        .map(|(sack, fast)| exact(sack.throughput(octets) / fast.throughput(octets) - 1.0))
        .collect();
    let least = over_fast.iter().map(|gain| gain.mean).fold(f64::INFINITY, f64::min);
    vec![
        claim(
            At("§7.2, Fig. 15"),
            "“It is shown that the proposed algorithm can retransmit the unacknowledged segment since the \
             right edge of the SACK block in the sender advances the value SND.HIGH at 9:00:14.5.”",
            format!(
                "second retransmission, seconds after the timeout: {}",
                sack[0].second_retransmission_shown()
            ),
            Judged::all([timeouts(&sack[0], 1), time(sack[0].second_retransmission(), SACK_EDGE)]),
        )
        .not_counted(Counts::Calibrated(CALIBRATED.to_owned())),
        claim(
            At("§7.2, Fig. 15"),
            "“Moreover, the sender retransmits it at the correct timing even if some outstanding segments \
             are lost.” (Here: as early as if no other segment is lost.)",
            format!(
                "{} later than without other losses ({:.2} s after the third duplicate ACK)",
                range(&sack_delays),
                recovery_time(alone)
            ),
            Judged::all(timing.map(|difference| Judged::similar(&difference))),
        ),
        claim(
            At("§7.2, Fig. 15"),
            "“As a result, a sender using the proposed algorithms holds one half of the previous cwnd value \
             and so avoids unnecessary throughput degradation.”",
            format!(
                "cwnd {:.1} at the acceptable ACK, {:.0} before the timeout; {} timeout; throughput of 1 \
                 Mbyte at least {:+.0} % compared with `{WITHOUT_RETRANSMISSION}` and the same losses",
                sack[0].window().0,
                sack[0].cwnd_prev(),
                sack[0].timeouts.len(),
                100.0 * least
            ),
            Judged::all(
                sack.iter()
                    .flat_map(|timeline| [half(timeline, timeline.window().0), timeouts(timeline, 1)])
                    .chain(over_fast.iter().map(Judged::better)),
            ),
        ),
    ]
}

fn claims_about_duplicate_acks(timelines: &Timelines) -> Vec<Claim> {
    let Timelines { sack, counting, alone, counting_alone, .. } = timelines;
    let counting_delays = delays(counting, counting_alone);
    let [edge, count] =
        [alone, counting_alone].map(|timeline| timeline.trigger().map_or(f64::NAN, |nth| nth as f64));
    let flight_size = (SND_HIGH - FIRST + 1) as f64;
    let earlier = counting[0].second_retransmission() - sack[0].second_retransmission();
    vec![
        claim(
            At("§7, Fig. 11"),
            "“The right edge in the SACK block advances the value SND.HIGH, when the sender receives the 6th \
             duplicate ACK.” (Here: after as many duplicate ACKs as outstanding segments, six in Fig. 11.)",
            format!("duplicate ACK {edge:.0}, with {flight_size:.0} outstanding segments"),
            Judged::number(&exact(edge), flight_size, 0.0),
        )
        .not_counted(Counts::ByConstruction("Fig. 11 defines this rule".to_owned())),
        claim(
            At("§7, Fig. 11"),
            "“In this case, there is no outstanding segment or acknowledgment loss, so that the sender using \
             the SACK enhanced algorithm retransmits the first unacknowledged segment using the same timing \
             as the basic loss retransmission algorithm.”",
            format!(
                "duplicate ACK {edge:.0} with SACK; {count:.0} without SACK, which is DupThresh more and \
                 {:.2} s later",
                counting_alone.second_retransmission() - alone.second_retransmission()
            ),
            Judged::number(&exact(count - edge), 0.0, 0.0),
        )
        .not_counted(Counts::ByConstruction(
            "without SACK, Figs. 8 and 9 require DupThresh more duplicate ACKs".to_owned(),
        )),
        claim(
            At("§7"),
            "“In these case, the sender will retransmit the first unacknowledged segment later than the \
             desired timing.” (Here: without SACK, if other segments are lost.)",
            format!("{} later than without other losses", range(&counting_delays)),
            Judged::all(counting_delays.iter().map(Judged::above_zero)),
        ),
        claim(
            At("Figs. 13, 15"),
            "the right edge of the SACK block reveals the loss 0.2 s earlier than the number of duplicate \
             ACKs",
            format!("{earlier:.2} s earlier, with the same losses"),
            Judged::number(&exact(earlier), DUPACK_25 - SACK_EDGE, RESOLUTION),
        )
        .not_counted(Counts::Own(
            "the difference between 9:00:14.7 (Fig. 13) and 9:00:14.5 (Fig. 15)".to_owned(),
        )),
    ]
}
