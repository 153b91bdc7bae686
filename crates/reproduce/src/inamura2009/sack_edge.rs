//! Fig. 15 (§7.2): the losses of Figs. 12 and 13 with SACK, and further losses in the same window.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;

use super::handover::{FIRST, SND_HIGH};
use super::story::Story;
use super::twice_lost::{
    CALIBRATED, DUPACK_25, ONCE, PROPOSED, RESOLUTION, Row, TIMEOUT, TWICE, WITH_SACK, acceptable, events,
    exact, half, handover, ns2, rfc, second_timeout, time, timeouts, twice, window,
};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column};

/// SACK and Fast Timeout without loss retransmission.
const WITHOUT_ITS_SACK: &str = "sack+fast-timeout";
/// The paper's time of the second retransmission, in seconds after 9:00:00.
const SACK_EDGE: f64 = 14.5;

/// Further lost segments. The paper does not say which ones are lost.
const OTHERS: [&[&str]; 4] = [
    &["segment 30", "segment 37"],
    &["segment 23"],
    &["segment 26", "segment 27", "segment 28", "segment 29"],
    &["segment 43"],
];

/// The senders with further losses, each by the index in [`OTHERS`], and without them.
struct Stories {
    sack: Vec<Story>,
    counting: Vec<Story>,
    fast: Vec<Story>,
    default: Story,
    alone: Story,
    counting_alone: Story,
}

impl Stories {
    fn run(effort: &Effort) -> Result<Self, WorldError> {
        let losses = OTHERS.map(|others| [&[ONCE, TWICE], others].concat());
        let of = |recipe: &str| {
            losses
                .iter()
                .map(|drop| ns2(effort, recipe, drop, handover(effort)))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            sack: of(WITH_SACK)?,
            counting: of(PROPOSED)?,
            fast: of(WITHOUT_ITS_SACK)?,
            default: rfc(effort, WITH_SACK, &losses[0])?,
            alone: twice(effort, WITH_SACK)?,
            counting_alone: twice(effort, PROPOSED)?,
        })
    }
}

/// Cost: fifteen short transfers.
pub(super) fn figure_15(effort: &Effort) -> Result<Finding, WorldError> {
    let stories = Stories::run(effort)?;
    let title = "Fig. 15: time-sequence graph, proposed algorithm with SACK";
    Ok(Finding {
        tables: vec![table(&stories), swept(&stories)],
        charts: vec![stories.sack[0].sequence_chart(title)],
        claims: claims(&stories),
        ..Finding::default()
    })
}

fn table(stories: &Stories) -> Table {
    let Stories { sack, counting, default, alone, counting_alone, .. } = stories;
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
                ours: Story::third_told,
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

fn swept(stories: &Stories) -> Table {
    type Row<'a> = ((&'a &'a [&'a str], &'a Story), &'a Story);
    Table::of(
        "Seconds from the timeout to the second retransmission, by further losses (profile `ns2`)",
        [
            column("further lost segments", |((others, _), _): &Row<'_>| others.join(", ")),
            column("SACK", |((_, sack), _): &Row<'_>| sack.third_told()),
            column("cwnd / ssthresh afterwards", |((_, sack), _): &Row<'_>| window(sack)),
            column("no SACK", |(_, counting): &Row<'_>| counting.third_told()),
        ],
        OTHERS.iter().zip(&stories.sack).zip(&stories.counting),
    )
}

/// The time from the second retransmission in `than` to the one in each story.
fn late(stories: &[Story], than: &Story) -> Vec<Mean> {
    stories.iter().map(|story| exact(story.third() - than.third())).collect()
}

fn range(times: &[Mean]) -> String {
    let (low, high) = times.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), time| {
        (low.min(time.mean), high.max(time.mean))
    });
    format!("{low:.2} to {high:.2} s")
}

/// Counted from the third duplicate ACK, which begins the recovery.
fn took(story: &Story) -> f64 {
    story.dupacks.get(2).map_or(f64::NAN, |at| story.third() - story.since(*at))
}

fn claims(stories: &Stories) -> Vec<Claim> {
    [claims_about_further_losses(stories), claims_about_duplicate_acks(stories)].concat()
}

fn claims_about_further_losses(stories: &Stories) -> Vec<Claim> {
    let Stories { sack, fast, alone, .. } = stories;
    let octets = 1 << 20;
    let sack_late = late(sack, alone);
    let timing = sack.iter().map(|story| exact(took(story) / took(alone) - 1.0));
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
            format!("second retransmission, seconds after the timeout: {}", sack[0].third_told()),
            Judged::all([timeouts(&sack[0], 1), time(sack[0].third(), SACK_EDGE)]),
        )
        .not_counted(Counts::Calibrated(CALIBRATED.to_owned())),
        claim(
            At("§7.2, Fig. 15"),
            "“Moreover, the sender retransmits it at the correct timing even if some outstanding segments \
             are lost.” (Here: as early as if no other segment is lost.)",
            format!(
                "{} later than without other losses ({:.2} s after the third duplicate ACK)",
                range(&sack_late),
                took(alone)
            ),
            Judged::all(timing.map(|late| Judged::similar(&late))),
        ),
        claim(
            At("§7.2, Fig. 15"),
            "“As a result, a sender using the proposed algorithms holds one half of the previous cwnd value \
             and so avoids unnecessary throughput degradation.”",
            format!(
                "cwnd {:.1} at the acceptable ACK, {:.0} before the timeout; {} timeout; throughput of 1 \
                 Mbyte at least {:+.0} % compared with `{WITHOUT_ITS_SACK}` and the same losses",
                sack[0].window().0,
                sack[0].cwnd_prev(),
                sack[0].timeouts.len(),
                100.0 * least
            ),
            Judged::all(
                sack.iter()
                    .flat_map(|story| [half(story, story.window().0), timeouts(story, 1)])
                    .chain(over_fast.iter().map(Judged::better)),
            ),
        ),
    ]
}

fn claims_about_duplicate_acks(stories: &Stories) -> Vec<Claim> {
    let Stories { sack, counting, alone, counting_alone, .. } = stories;
    let counting_late = late(counting, counting_alone);
    let [edge, count] =
        [alone, counting_alone].map(|story| story.trigger().map_or(f64::NAN, |nth| nth as f64));
    let flight_size = (SND_HIGH - FIRST + 1) as f64;
    let earlier = counting[0].third() - sack[0].third();
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
                counting_alone.third() - alone.third()
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
            format!("{} later than without other losses", range(&counting_late)),
            Judged::all(counting_late.iter().map(Judged::above_zero)),
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
