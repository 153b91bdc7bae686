//! The gain of segment-in-flight estimation: Figs. 11a and 11b, and the numbers of §4.3.1.

use airtcp_numbers::statistics::gains;
use airtcp_sim::world::WorldError;

use super::judging::{Measured, acked, claim, gain, percent, points, saving};
use super::setting::{Channel, SECONDS};
use super::throughput::{curve_over_time, holding, over_z};
use super::{Curve, between, channels, grid, only, overall_rates, traced};
use crate::chart::{Axis, Chart, Scale};
use crate::judge::{deviation, one_run, one_run_gain, pooled_gains};
use crate::{Claim, Effort, Finding, Judged, Table, mean, shown};

/// One run of Fig. 11a.
#[derive(Clone)]
struct Seen {
    measured: Measured,
    /// Seconds spent waiting for timeouts.
    idle: f64,
    /// Packets acknowledged so far, every ten seconds.
    over_time: Vec<f64>,
}

/// Packet counts that the paper's text states for two senders, and the gain of the second over the first.
struct Stated<'a> {
    plain: (&'a [f64], f64),
    with: (&'a [f64], f64),
    gain: f64,
}

impl Stated<'_> {
    fn judged(&self) -> Judged {
        let number =
            |(samples, paper): (&[f64], f64)| Judged::number(&mean(samples), paper, one_run(samples));
        Judged::all([number(self.plain), number(self.with), self.judged_gain()])
    }

    fn judged_gain(&self) -> Judged {
        let (with, plain) = (self.with.0, self.plain.0);
        Judged::number(&gain(with, plain), self.gain, one_run_gain(with, plain))
    }

    fn ours(&self) -> String {
        let (with, plain) = (self.with.0, self.plain.0);
        format!(
            "{} packets without, {} with: {} more (± {:.1} % with one run each)",
            shown(&mean(plain), 0),
            shown(&mean(with), 0),
            percent(&gain(with, plain)),
            100.0 * one_run_gain(with, plain)
        )
    }
}

const MODERATE: Channel = Channel::new(0.01, 0.15);
const HEAVY: Channel = Channel::new(0.08, 0.08);

pub(super) fn figure_11a(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 12] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("Tahoe, sifest", "tahoe+sifest"),
        Curve::new("Tahoe, sifest, LIW", "tahoe+sifest+liw"),
        Curve::new("Reno", "reno"),
        Curve::new("Reno, sifest", "reno+sifest"),
        Curve::new("NewReno", "newreno"),
        Curve::new("NewReno, sifest", "newreno+sifest"),
        Curve::new("SACK", "sack"),
        Curve::new("SACK, sifest", "sack+sifest"),
        Curve::new("Tahoe, Limited Transmit", "tahoe+limited-transmit"),
        Curve::new("NewReno, x = y = 0.08", "newreno"),
        Curve::new("NewReno, sifest, x = y = 0.08", "newreno+sifest"),
    ];
    const PAPER: [&str; 12] = [
        "932",
        "1111 (+19.2 %)",
        "1245 (+33.6 %)",
        "831",
        "1059 (+27.4 %)",
        "",
        "",
        "",
        "",
        "",
        "970",
        "1116 (+15.1 %)",
    ];
    /// Index of the plain sender that each is compared with.
    const PLAIN: [usize; 12] = [0, 0, 0, 3, 3, 5, 5, 7, 7, 0, 10, 10];
    let times: Vec<f64> = (0..=10).map(|step| (step * SECONDS / 10) as f64).collect();
    let settings: Vec<_> = CURVES
        .iter()
        .zip(PLAIN)
        .map(|(curve, plain)| curve.over(if plain == 10 { HEAVY } else { MODERATE }))
        .collect();
    let found = {
        let times = times.clone();
        traced(effort, &settings, move |measured, trace| Seen {
            measured: *measured,
            idle: trace.idle(),
            over_time: times.iter().map(|at| trace.acked(*at)).collect(),
        })?
    };
    let of = |value: &dyn Fn(&Seen) -> f64| -> Vec<Vec<f64>> {
        found.iter().map(|seeds| seeds.iter().map(value).collect()).collect()
    };
    let packets = of(&|seen| seen.measured.acked);
    let idle = of(&|seen| seen.idle);
    let (timeouts, fast) = (of(&|seen| seen.measured.timeouts), of(&|seen| seen.measured.succeeded));

    let mut table = Table::new(
        "Acknowledged packets after 100 s, at x = 0.01, y = 0.15 unless stated otherwise, and gains over the plain sender:",
        &[
            "sender",
            "the paper",
            "here",
            "gain",
            "SD of one run",
            "idle before timeouts, s",
            "timeouts",
            "fast retransmissions",
        ],
    );
    for (index, Curve { name, .. }) in CURVES.iter().enumerate() {
        let plain = PLAIN[index];
        let over = percent(&gain(&packets[index], &packets[plain]));
        table.row([
            (*name).to_owned(),
            PAPER[index].to_owned(),
            shown(&mean(&packets[index]), 0),
            if index == plain { String::new() } else { over },
            format!("{:.0}", deviation(&packets[index])),
            shown(&mean(&idle[index]), 1),
            format!("{:.1}", mean(&timeouts[index]).mean),
            format!("{:.1}", mean(&fast[index]).mean),
        ]);
    }
    let (clusters, sentence) = by_clusters(effort)?;

    let pair = |plain: usize, paper: f64, with: usize, paper_with: f64| Stated {
        plain: (&packets[plain], paper),
        with: (&packets[with], paper_with),
        gain: paper_with / paper - 1.0,
    };
    let (tahoe, reno, newreno) =
        (pair(0, 932.0, 1, 1111.0), pair(3, 831.0, 4, 1059.0), pair(10, 970.0, 11, 1116.0));
    let (liw, liw_alone) = (pair(0, 932.0, 2, 1245.0), pair(1, 1111.0, 2, 1245.0));
    let more = gain(&packets[1], &packets[0]);
    let less_idle = saving(&idle[1], &idle[0]);
    let larger = gain(&packets[2], &packets[1]);
    let random = gain(&packets[11], &packets[10]);
    let claims = vec![
        claim(
            "§4.3.1, Fig. 11a",
            "“As shown in Fig. 11(a) where *x* = 0.01 and *y* = 0.15, the *sifest* algorithm improves the TCP performance in terms of a higher throughput and lower idle periods.”",
            format!(
                "sifest gives Tahoe {} more packets and {} less idle time before timeouts",
                percent(&more),
                percent(&less_idle)
            ),
            Judged::all([Judged::better(&more), Judged::better(&less_idle)]),
        ),
        claim(
            "§4.3.1, Fig. 11a",
            "“the number of acknowledged packets is 932 for Tahoe, and 1111 for the *sifest*-enhanced Tahoe, which is 19.2% higher.”",
            tahoe.ours(),
            tahoe.judged(),
        ),
        claim(
            "§4.3.1, Fig. 11a",
            "“Integrating with LIW, the *sifest*-enhanced Tahoe performs even better.”",
            format!("{} more packets than with sifest alone", percent(&larger)),
            Judged::better(&larger),
        ),
        claim(
            "§4.3.1, Fig. 11a",
            "“The number of acknowledged packets for the hybrid SIF/LIW Tahoe is 1245, which is 33.6% higher than the plain Tahoe and 12.1% higher than the Tahoe enhanced with the *sifest* algorithm alone.”",
            format!("{}; {} more than with sifest alone", liw.ours(), percent(&larger)),
            Judged::all([
                Judged::number(&mean(&packets[2]), 1245.0, one_run(&packets[2])),
                liw.judged_gain(),
                liw_alone.judged_gain(),
            ]),
        ),
        others(&packets),
        claim(
            "§4.3.1",
            "“For example, when *x* = 0.01 and *y* = 0.15, 1059 or 831 packets are received for Reno with or without the *sifest* algorithm, respectively.”",
            reno.ours(),
            reno.judged(),
        ),
        claim(
            "§4.3.1",
            "“Furthermore, *sifest* also improves the TCP performance over randomized lossy links.”",
            format!("NewReno at x = y = 0.08: {} more packets with sifest", percent(&random)),
            Judged::better(&random),
        ),
        claim(
            "§4.3.1",
            "“When *x* = *y* = 0.08, 1116 or 970 packets are received when the simulation ends for NewReno with or without the *sifest* algorithm, respectively.”",
            newreno.ours(),
            newreno.judged(),
        ),
    ];
    let paper = [932.0, 1111.0, 1245.0];
    let curves = (0..3).map(|index| {
        let seeds: Vec<_> = found[index].iter().map(|seen| seen.over_time.clone()).collect();
        curve_over_time(CURVES[index].name, &times, &seeds).beside([(SECONDS as f64, paper[index])])
    });
    let chart = Chart {
        title: "Fig. 11(a): End-to-End Performance Comparisons".to_owned(),
        x: Axis::new("runtime, s", Scale::FromZero),
        y: Axis::new("packets acknowledged", Scale::FromZero),
        curves: curves.collect(),
    };
    Ok(Finding {
        tables: vec![table, clusters],
        charts: vec![chart],
        claims,
        remarks: vec![sentence],
        ..Finding::default()
    })
}

/// "quite similar": each gain differs from Tahoe's by at most 10 % of the plain sender's packets.
fn others(packets: &[Vec<f64>]) -> Claim {
    let of = |with: usize, plain: usize| gains(&packets[with], &packets[plain]);
    let tahoe = of(1, 0);
    let others = [of(4, 3), of(6, 5), of(8, 7)];
    let apart = others.each_ref().map(|other| {
        let apart: Vec<f64> = other.iter().zip(&tahoe).map(|(other, tahoe)| other - tahoe).collect();
        mean(&apart)
    });
    let [reno, newreno, sack] = others.map(|other| percent(&mean(&other)));
    claim(
        "§4.3.1",
        "“The performance gains due to the *sifest* algorithm for other TCP variants are quite similar.”",
        format!(
            "Gain with sifest: Tahoe {}, Reno {reno}, NewReno {newreno}, SACK {sack}",
            percent(&mean(&tahoe))
        ),
        Judged::all(apart.map(|apart| Judged::similar(&apart))),
    )
}

/// The gain with longer clusters of errors. The paper states α = β only for Fig. 5.
fn by_clusters(effort: &Effort) -> Result<(Table, String), WorldError> {
    const CHANGES: [f64; 4] = [0.3, 0.1, 0.03, 0.01];
    const CURVES: [Curve; 3] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("sifest", "tahoe+sifest"),
        Curve::new("sifest, LIW", "tahoe+sifest+liw"),
    ];
    let outcomes = grid(effort, &CURVES, &CHANGES.map(|change| MODERATE.changing(change)))?;
    let mut table = Table::new(
        "Tahoe's acknowledged packets at z = 8 %, and gains over plain Tahoe, with longer clusters of errors (smaller α = β):",
        &["α = β", "Tahoe", "gain with sifest", "gain with sifest, LIW"],
    );
    let (mut better, mut larger) = (Vec::new(), Vec::new());
    for (point, change) in CHANGES.iter().enumerate() {
        let [plain, sifest, liw] = [0, 1, 2].map(|curve| acked(&outcomes[curve][point]));
        let gains = [gain(&sifest, &plain), gain(&liw, &plain)];
        better.push(Judged::better(&gains[0]));
        larger.push(Judged::better(&gain(&liw, &sifest)));
        let [alone, with] = gains.map(|gain| percent(&gain));
        table.row([change.to_string(), shown(&mean(&plain), 0), alone, with]);
    }
    let sentence = format!(
        "Tahoe is better with sifest than without at {}. It is better still with sifest and LIW at {}.",
        holding(&CHANGES, &better),
        holding(&CHANGES, &larger)
    );
    Ok((table, sentence))
}

pub(super) fn figure_11b(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 4] = [
        Curve::new("Tahoe", "tahoe"),
        Curve::new("sifest", "tahoe+sifest"),
        Curve::new("sifest, LIW", "tahoe+sifest+liw"),
        Curve::new("Limited Transmit", "tahoe+limited-transmit"),
    ];
    let rates = overall_rates();
    let outcomes = grid(effort, &CURVES, &channels(&rates))?;
    let packets: Vec<_> = outcomes.iter().map(|curve| points(curve, |one| one.acked)).collect();
    let of = |curve: usize, point: usize| gain(&packets[curve][point], &packets[0][point]);

    let mut table = Table::new(
        "Tahoe's acknowledged packets after 100 s, and gains over plain Tahoe:",
        &[
            "z",
            "Tahoe",
            "sifest",
            "sifest, LIW",
            "Limited Transmit",
            "sifest's gain",
            "Limited Transmit's gain",
        ],
    );
    for (point, z) in rates.iter().enumerate() {
        let curves = packets.iter().map(|curve| shown(&mean(&curve[point]), 0));
        let gains = [1, 3].map(|curve| percent(&of(curve, point)));
        table.row([format!("{:.1} %", 100.0 * z)].into_iter().chain(curves).chain(gains));
    }
    let pooled = |points: &[usize], curve: usize| {
        mean(&pooled_gains(&only(&packets[curve], points), &only(&packets[0], points)))
    };
    let (few, many) = (between(&rates, 0.0, 0.03), between(&rates, 0.07, 1.0));
    let (low, high) = (pooled(&few, 1), pooled(&many, 1));
    let claims = vec![
        claim(
            "§4.3.1, Fig. 11b",
            "“When the error rate is comparatively low (*e.g.*, *z* ≤ 0.03), the difference between Tahoe and the *sifest*-enhanced Tahoe is quite trivial”",
            format!("{} more packets with sifest, averaged over z ≤ 3 %", percent(&low)),
            Judged::similar(&low),
        ),
        claim(
            "§4.3.1, Fig. 11b",
            "“When *z* ≥ 0.07, the enhancement due to the *sifest* algorithm becomes quite obvious”",
            format!("{} more packets with sifest, averaged over z ≥ 7 %", percent(&high)),
            Judged::considerably(&high),
        ),
    ];
    let remarks = vec![format!(
        "The paper cites Limited Transmit (RFC 3042) but does not run it. With a receiver window of 16 segments it gains {} for z ≤ 3 % and {} for z ≥ 7 %. `p0-limits` runs it under the conditions in which, according to §5, it suffers.",
        percent(&pooled(&few, 3)),
        percent(&pooled(&many, 3))
    )];
    let lines = CURVES[..3].iter().zip(&packets).map(|(curve, points)| over_z(curve.name, &rates, points));
    let chart = Chart {
        title: "Fig. 11(b): End-to-End Performance Comparisons".to_owned(),
        x: Axis::new("overall packet loss rate z", Scale::FromZero),
        y: Axis::new("packets acknowledged in 100 s", Scale::FromZero),
        curves: lines.collect(),
    };
    Ok(Finding { tables: vec![table], charts: vec![chart], claims, remarks, ..Finding::default() })
}
