//! The gain of segment-in-flight estimation: Figs. 11a and 11b, and the numbers of §4.3.1.

use airtcp_numbers::statistics::{Mean, differences, gains};
use airtcp_sim::world::WorldError;
use serde::Serialize;

use super::judging::{Measured, gain, negated, packets, percent};
use super::readings::REPETITIONS;
use super::senders::{
    Curve, LIMITED, LIW, NEWRENO, RENO, SACK, SIFEST, TAHOE, change_column, over_z, overall_rates, run,
    traced, within, z_column,
};
use super::setting::{Channel, HEAVY, MODERATE, SECONDS};
use super::throughput::{curve_over_time, holding};
use super::trace::Trace;
use crate::chart::{Axis, Chart, Scale};
use crate::grid::Grid;
use crate::judge::{deviation, gain_of_repetitions, of_repetitions};
use crate::{At, Claim, Effort, Finding, Judged, Table, cell, claim, column, mean};

/// One run of Fig. 11a.
#[derive(Clone, Serialize)]
struct Fig11aRun {
    #[serde(flatten)]
    measured: Measured,
    #[serde(rename = "idle time, s")]
    idle: f64,
    /// Periods of at least [`NOTICEABLE`] seconds without an ACK of new data.
    #[serde(rename = "flat segments of the ACK curve")]
    flat: f64,
    #[serde(rename = "mean cwnd, segments")]
    window: f64,
    #[serde(rename = "packets acknowledged every ten seconds")]
    over_time: Vec<f64>,
}

/// Minimum length of a flat part of the curve in Fig. 11a, in seconds. The figure shows 100 s. The flat parts
/// that §4.3.1 mentions have about 5 s.
const NOTICEABLE: f64 = 2.0;

/// Our samples and the paper's packet counts of a plain sender and one with sifest, and the paper's gain.
struct Stated {
    plain: (Vec<f64>, f64),
    with: (Vec<f64>, f64),
    gain: f64,
}

/// Whether the paper's number is met, if it is a mean over `repetitions` runs.
fn number((samples, paper): &(Vec<f64>, f64), repetitions: u32) -> Judged {
    Judged::number(&mean(samples), *paper, of_repetitions(samples, repetitions))
}

impl Stated {
    fn judged(&self, repetitions: u32) -> Judged {
        let packets = [&self.plain, &self.with].map(|stated| number(stated, repetitions));
        Judged::all(packets.into_iter().chain([self.judged_gain(repetitions)]))
    }

    fn judged_gain(&self, repetitions: u32) -> Judged {
        let (with, plain) = (&self.with.0, &self.plain.0);
        Judged::effect(&gain(with, plain), self.gain, gain_of_repetitions(with, plain, repetitions))
    }

    fn ours(&self) -> String {
        let (with, plain) = (&self.with.0, &self.plain.0);
        format!(
            "{} packets without, {} with: {} more (± {:.1} % with one run each)",
            cell(plain, 0),
            cell(with, 0),
            percent(&gain(with, plain)),
            100.0 * gain_of_repetitions(with, plain, 1)
        )
    }
}

/// A sender on a channel.
type Sender = (Curve, Channel);
type Cells = Grid<Sender, (), Fig11aRun>;

const fn moderate(name: &'static str, recipe: &'static str) -> Sender {
    (Curve::new(name, recipe), MODERATE)
}

const PLAIN_TAHOE: Sender = (TAHOE, MODERATE);
const TAHOE_SIFEST: Sender = moderate("Tahoe, sifest", "tahoe+sifest");
const TAHOE_LIW: Sender = moderate("Tahoe, sifest, LIW", "tahoe+sifest+liw");
const TAHOE_LIMITED: Sender = moderate("Tahoe, Limited Transmit", "tahoe+limited-transmit");
const PLAIN_RENO: Sender = (RENO, MODERATE);
const RENO_SIFEST: Sender = moderate("Reno, sifest", "reno+sifest");
const PLAIN_NEWRENO: Sender = (NEWRENO, MODERATE);
const NEWRENO_SIFEST: Sender = moderate("NewReno, sifest", "newreno+sifest");
const PLAIN_SACK: Sender = (SACK, MODERATE);
const SACK_SIFEST: Sender = moderate("SACK, sifest", "sack+sifest");
const HEAVY_NEWRENO: Sender = (Curve::new("NewReno, x = y = 0.08", "newreno"), HEAVY);
const HEAVY_SIFEST: Sender = (Curve::new("NewReno, sifest, x = y = 0.08", "newreno+sifest"), HEAVY);

/// A sender, the paper's number, and the plain sender for comparison.
type Row = (Sender, &'static str, Sender);

const ROWS: [Row; 12] = [
    (PLAIN_TAHOE, "932", PLAIN_TAHOE),
    (TAHOE_SIFEST, "1111 (+19.2 %)", PLAIN_TAHOE),
    (TAHOE_LIW, "1245 (+33.6 %)", PLAIN_TAHOE),
    (PLAIN_RENO, "831", PLAIN_RENO),
    (RENO_SIFEST, "1059 (+27.4 %)", PLAIN_RENO),
    (PLAIN_NEWRENO, "", PLAIN_NEWRENO),
    (NEWRENO_SIFEST, "", PLAIN_NEWRENO),
    (PLAIN_SACK, "", PLAIN_SACK),
    (SACK_SIFEST, "", PLAIN_SACK),
    (TAHOE_LIMITED, "", PLAIN_TAHOE),
    (HEAVY_NEWRENO, "970", HEAVY_NEWRENO),
    (HEAVY_SIFEST, "1116 (+15.1 %)", HEAVY_NEWRENO),
];

fn acked(one: &Fig11aRun) -> f64 {
    one.measured.acked
}

fn gain_over(cells: &Cells, sender: Sender, plain: Sender) -> Mean {
    cells.gain(sender, plain, (), acked)
}

pub(super) fn figure_11a(effort: &Effort) -> Result<Finding, WorldError> {
    let times: Vec<f64> = (0..=10).map(|step| (step * SECONDS / 10) as f64).collect();
    let measure = |measured: &Measured, trace: &Trace| Fig11aRun {
        measured: *measured,
        idle: trace.idle(),
        flat: trace.flat_periods(NOTICEABLE, SECONDS as f64) as f64,
        window: trace.mean_window(SECONDS as f64),
        over_time: times.iter().map(|at| trace.acked(*at)).collect(),
    };
    let senders = ROWS.map(|(sender, ..)| sender);
    let plan = |(curve, channel): Sender, ()| Ok(curve.over(channel));
    let cells = Grid::run(&senders, &[()], plan, |settings| traced(effort, settings, measure))?;
    let (clusters, sentence) = by_clusters(effort)?;
    let senders = [(PLAIN_TAHOE, 932.0), (TAHOE_SIFEST, 1111.0), (TAHOE_LIW, 1245.0)];
    let curves = senders.map(|(sender, paper)| {
        let seeds: Vec<_> = cells.samples(sender, ()).iter().map(|one| one.over_time.clone()).collect();
        curve_over_time(sender.0.name, &times, &seeds).with_paper_values([(SECONDS as f64, paper)])
    });
    let chart = Chart {
        title: "Fig. 11(a): End-to-End Performance Comparisons".to_owned(),
        x: Axis::new("runtime, s", Scale::FromZero),
        y: Axis::new("packets acknowledged", Scale::FromZero),
        curves: curves.to_vec(),
    };
    Ok(Finding {
        tables: vec![table(&cells), clusters],
        charts: vec![chart],
        claims: claims(&cells),
        remarks: vec![sentence],
        ..Finding::default()
    })
}

fn table(cells: &Cells) -> Table {
    let samples = |sender: &Sender, value: fn(&Fig11aRun) -> f64| cells.at(*sender, (), value);
    Table::of(
        "Acknowledged packets after 100 s, at x = 0.01, y = 0.15 unless stated otherwise, and gains over the \
         plain sender:",
        [
            column("sender", |((curve, _), ..): &Row| curve.name.to_owned()),
            column("the paper", |(_, paper, _): &Row| (*paper).to_owned()),
            column("here", |(sender, ..): &Row| cell(&samples(sender, acked), 0)),
            column("gain", |(sender, _, plain): &Row| match sender == plain {
                true => String::new(),
                false => percent(&gain_over(cells, *sender, *plain)),
            }),
            column("SD of one run", |(sender, ..): &Row| {
                format!("{:.0}", deviation(&samples(sender, acked)))
            }),
            column("idle before timeouts, s", |(sender, ..): &Row| cell(&samples(sender, |one| one.idle), 1)),
            column("timeouts", |(sender, ..): &Row| {
                format!("{:.1}", mean(&samples(sender, |one| one.measured.timeouts)).mean)
            }),
            column("fast retransmissions", |(sender, ..): &Row| {
                format!("{:.1}", mean(&samples(sender, |one| one.measured.succeeded)).mean)
            }),
        ],
        ROWS,
    )
}

fn claims(cells: &Cells) -> Vec<Claim> {
    let pair = |plain, paper: f64, with, paper_with: f64| Stated {
        plain: (cells.at(plain, (), acked), paper),
        with: (cells.at(with, (), acked), paper_with),
        gain: paper_with / paper - 1.0,
    };
    let tahoe = pair(PLAIN_TAHOE, 932.0, TAHOE_SIFEST, 1111.0);
    let reno = pair(PLAIN_RENO, 831.0, RENO_SIFEST, 1059.0);
    let newreno = pair(HEAVY_NEWRENO, 970.0, HEAVY_SIFEST, 1116.0);
    let liw = pair(PLAIN_TAHOE, 932.0, TAHOE_LIW, 1245.0);
    let liw_alone = pair(TAHOE_SIFEST, 1111.0, TAHOE_LIW, 1245.0);
    let with_liw = |repetitions| {
        let packets = number(&liw.with, repetitions);
        Judged::all([packets, liw.judged_gain(repetitions), liw_alone.judged_gain(repetitions)])
    };
    let more = gain_over(cells, TAHOE_SIFEST, PLAIN_TAHOE);
    let less_idle = negated(&cells.gain(TAHOE_SIFEST, PLAIN_TAHOE, (), |one| one.idle));
    let larger = gain_over(cells, TAHOE_LIW, TAHOE_SIFEST);
    let random = gain_over(cells, HEAVY_SIFEST, HEAVY_NEWRENO);
    vec![
        claim(
            At("§4.3.1, Fig. 11a"),
            "“As shown in Fig. 11(a) where *x* = 0.01 and *y* = 0.15, the *sifest* algorithm improves the \
             TCP performance in terms of a higher throughput and lower idle periods.”",
            format!(
                "sifest gives Tahoe {} more packets and {} less idle time before timeouts",
                percent(&more),
                percent(&less_idle)
            ),
            Judged::all([Judged::better(&more), Judged::better(&less_idle)]),
        ),
        avoids_timeouts(cells),
        claim(
            At("§4.3.1, Fig. 11a"),
            "“the number of acknowledged packets is 932 for Tahoe, and 1111 for the *sifest*-enhanced Tahoe, \
             which is 19.2% higher.”",
            tahoe.ours(),
            tahoe.judged(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, |repetitions| tahoe.judged(repetitions)),
        claim(
            At("§4.3.1, Fig. 11a"),
            "“Integrating with LIW, the *sifest*-enhanced Tahoe performs even better.”",
            format!("{} more packets than with sifest alone", percent(&larger)),
            Judged::better(&larger),
        ),
        claim(
            At("§4.3.1, Fig. 11a"),
            "“The number of acknowledged packets for the hybrid SIF/LIW Tahoe is 1245, which is 33.6% higher \
             than the plain Tahoe and 12.1% higher than the Tahoe enhanced with the *sifest* algorithm \
             alone.”",
            format!("{}; {} more than with sifest alone", liw.ours(), percent(&larger)),
            with_liw(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, with_liw),
        other_variants(cells),
        claim(
            At("§4.3.1"),
            "“For example, when *x* = 0.01 and *y* = 0.15, 1059 or 831 packets are received for Reno with or \
             without the *sifest* algorithm, respectively.”",
            reno.ours(),
            reno.judged(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, |repetitions| reno.judged(repetitions)),
        claim(
            At("§4.3.1"),
            "“Furthermore, *sifest* also improves the TCP performance over randomized lossy links.”",
            format!("NewReno at x = y = 0.08: {} more packets with sifest", percent(&random)),
            Judged::better(&random),
        ),
        claim(
            At("§4.3.1"),
            "“When *x* = *y* = 0.08, 1116 or 970 packets are received when the simulation ends for NewReno \
             with or without the *sifest* algorithm, respectively.”",
            newreno.ours(),
            newreno.judged(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, |repetitions| newreno.judged(repetitions)),
    ]
}

/// "most": at least half.
fn avoids_timeouts(cells: &Cells) -> Claim {
    let fewer = negated(&cells.gain(TAHOE_SIFEST, PLAIN_TAHOE, (), |seen| seen.flat));
    let larger = cells.gain(TAHOE_SIFEST, PLAIN_TAHOE, (), |seen| seen.window);
    let more = gain_over(cells, TAHOE_SIFEST, PLAIN_TAHOE);
    claim(
        At("§4.3.1, Fig. 11a"),
        "“If the link quality is not too bad, the *sifest*-enhanced Tahoe can successfully avoid most \
         noticeable sender timeouts, keeping the *cwnd* comparatively large, and consequently yielding a \
         higher throughput.” (Here: sifest avoids at least half of the flat segments of 2 s or more in the \
         *ack* curve, and the mean cwnd is larger.)",
        format!(
            "{} fewer flat segments, {} larger mean cwnd, {} more packets",
            percent(&fewer),
            percent(&larger),
            percent(&more)
        ),
        Judged::all([Judged::between(&fewer, 0.5, 1.0), Judged::better(&larger), Judged::better(&more)]),
    )
}

/// "quite similar": each gain differs from Tahoe's by at most 10 % of the plain sender's packets.
fn other_variants(cells: &Cells) -> Claim {
    let gains = |with, plain| gains(&cells.at(with, (), acked), &cells.at(plain, (), acked));
    let tahoe = gains(TAHOE_SIFEST, PLAIN_TAHOE);
    let others = [
        gains(RENO_SIFEST, PLAIN_RENO),
        gains(NEWRENO_SIFEST, PLAIN_NEWRENO),
        gains(SACK_SIFEST, PLAIN_SACK),
    ];
    let from_tahoe = others.each_ref().map(|other| mean(&differences(other, &tahoe)));
    let [reno, newreno, sack] = others.map(|other| percent(&mean(&other)));
    claim(
        At("§4.3.1"),
        "“The performance gains due to the *sifest* algorithm for other TCP variants are quite similar.”",
        format!(
            "Gain with sifest: Tahoe {}, Reno {reno}, NewReno {newreno}, SACK {sack}",
            percent(&mean(&tahoe))
        ),
        Judged::all(from_tahoe.iter().map(Judged::similar)),
    )
}

/// The gain with longer clusters of errors. The paper states α = β only for Fig. 5.
fn by_clusters(effort: &Effort) -> Result<(Table, String), WorldError> {
    const CHANGES: [f64; 4] = [0.3, 0.1, 0.03, 0.01];
    let cells = run(effort, &[TAHOE, SIFEST, LIW], &CHANGES, |change| MODERATE.changing(change))?;
    let gain = |more, less| {
        let cells = &cells;
        move |change: &f64| cells.gain(more, less, *change, packets)
    };
    let (with, with_liw, larger) = (gain(SIFEST, TAHOE), gain(LIW, TAHOE), gain(LIW, SIFEST));
    let table = Table::of(
        "Tahoe's acknowledged packets at z = 8 %, and gains over plain Tahoe, with longer clusters of errors \
         (smaller α = β):",
        [
            change_column(),
            cells.column("Tahoe", TAHOE, 0, packets),
            column("gain with sifest", |change: &f64| percent(&with(change))),
            column("gain with sifest, LIW", |change: &f64| percent(&with_liw(change))),
        ],
        CHANGES,
    );
    let sentence = format!(
        "Tahoe is better with sifest than without at {}. It is better still with sifest and LIW at {}.",
        holding(&CHANGES, |change| Judged::better(&with(&change))),
        holding(&CHANGES, |change| Judged::better(&larger(&change)))
    );
    Ok((table, sentence))
}

pub(super) fn figure_11b(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 4] = [TAHOE, SIFEST, LIW, LIMITED];
    let cells = run(effort, &CURVES, &overall_rates(), Channel::overall)?;
    let gain = |curve| {
        let cells = &cells;
        move |z: &f64| percent(&cells.gain(curve, TAHOE, *z, packets))
    };
    let columns = CURVES.map(|curve| cells.column(curve.name, curve, 0, packets));
    let gains = [column("sifest's gain", gain(SIFEST)), column("Limited Transmit's gain", gain(LIMITED))];
    let table = Table::of(
        "Tahoe's acknowledged packets after 100 s, and gains over plain Tahoe:",
        [z_column()].into_iter().chain(columns).chain(gains),
        overall_rates(),
    );
    let (few, many) = (cells.only(within(0.0, 0.03)), cells.only(within(0.07, 1.0)));
    let (low, high) = (few.pooled(SIFEST, TAHOE, packets), many.pooled(SIFEST, TAHOE, packets));
    let claims = vec![
        claim(
            At("§4.3.1, Fig. 11b"),
            "“When the error rate is comparatively low (*e.g.*, *z* ≤ 0.03), the difference between Tahoe \
             and the *sifest*-enhanced Tahoe is quite trivial”",
            format!("{} more packets with sifest, averaged over z ≤ 3 %", percent(&low)),
            Judged::similar(&low),
        ),
        claim(
            At("§4.3.1, Fig. 11b"),
            "“When *z* ≥ 0.07, the enhancement due to the *sifest* algorithm becomes quite obvious”",
            format!("{} more packets with sifest, averaged over z ≥ 7 %", percent(&high)),
            Judged::considerably(&high),
        ),
    ];
    let remarks = vec![format!(
        "The paper cites Limited Transmit (RFC 3042) but does not run it. With a receiver window of 16 \
         segments it gains {} for z ≤ 3 % and {} for z ≥ 7 %. `p0-limits` runs it under the conditions in \
         which, according to §5, it suffers.",
        percent(&few.pooled(LIMITED, TAHOE, packets)),
        percent(&many.pooled(LIMITED, TAHOE, packets))
    )];
    let curves = [TAHOE, SIFEST, LIW].map(|curve| cells.line(curve, curve.name, |z| z, packets)).to_vec();
    let title = "Fig. 11(b): End-to-End Performance Comparisons";
    let charts = vec![over_z(title, "packets acknowledged in 100 s", curves)];
    Ok(Finding { tables: vec![table], charts, claims, remarks, ..Finding::default() })
}
