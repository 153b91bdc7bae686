//! Packets acknowledged within 100 s, by loss rate (Fig. 5) and by clustering of the losses (Fig. 6).

use airtcp_numbers::statistics::gains;
use airtcp_sim::world::WorldError;

use super::judging::{Measured, gain, packets, percent, reduction};
use super::readings::{DELAYED_ACKS, REPETITIONS};
use super::senders::{
    Curve, NEWRENO, RENO, SACK, TAHOE, VARIANTS, change_column, over_z, overall_rates, planned, run, seeded,
    traced, within, z_column,
};
use super::setting::{self, Channel, SECONDS, Setting};
use crate::chart::{Axis, Chart, Curve as Line, Scale};
use crate::grid::Grid;
use crate::judge::{across, deviation, gain_of_repetitions, of_repetitions, trends};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, claim, column, mean, named, shown, unnamed};

type Cells = Grid<Curve, f64, Measured>;
/// Voice packets that arrived, and voice packets that were sent, by z.
type Voice = Grid<(), f64, [f64; 2]>;

const TAHOE_ND: Curve = Curve::undelayed("Tahoe ND", "tahoe");
const RENO_ND: Curve = Curve::undelayed("Reno ND", "reno");

pub(super) fn figure_5(effort: &Effort) -> Result<Finding, WorldError> {
    const CURVES: [Curve; 6] = [TAHOE, RENO, NEWRENO, SACK, TAHOE_ND, RENO_ND];
    let rates = overall_rates();
    let cells = run(effort, &CURVES, &rates, Channel::overall)?;
    let voice = voice(effort, &rates)?;
    let arrived = |voice: &[f64; 2]| voice[0];
    let columns = CURVES.map(|curve| cells.column(curve.name, curve, 0, packets));
    let columns = [z_column()].into_iter().chain(columns);
    let table = Table::of(
        "Packets acknowledged in 100 s, and voice packets that arrived, by loss rate z:",
        columns.chain([voice.column("voice", (), 0, arrived)]),
        rates,
    );
    let mut curves = CURVES.map(|curve| cells.line(curve, curve.name, |z| z, packets)).to_vec();
    curves.push(voice.line((), "CBR", |z| z, arrived));
    let (clusters, sentence) = by_clusters(effort)?;
    Ok(Finding {
        tables: vec![table, clusters],
        charts: vec![over_z("Fig. 5: Packet vs. Throughput Loss", "packets received in 100 s", curves)],
        claims: claims_5(&cells, &voice),
        remarks: vec![sentence],
        ..Finding::default()
    })
}

fn claims_5(cells: &Cells, voice: &Voice) -> Vec<Claim> {
    let gain = |more, less| cells.pooled(more, less, packets);
    let nd = [gain(TAHOE_ND, TAHOE), gain(RENO_ND, RENO)];
    let (sack_over, tahoe_over) = (gain(SACK, NEWRENO), gain(TAHOE, RENO));
    vec![
        exponential(cells),
        proportional(voice),
        claim(
            At("§3.2.1, Fig. 5"),
            "“Figure 5 shows that without *delack* (ND), TCP can better maintain *ack self-clocking* and get \
             a relatively higher throughput.”",
            format!(
                "Gain without delayed ACKs, averaged over z: Tahoe {}, Reno {}",
                percent(&nd[0]),
                percent(&nd[1])
            ),
            Judged::all(nd.map(|gain| Judged::better(&gain))),
        )
        .fixing(DELAYED_ACKS),
        claim(
            At("§3.3.1"),
            "“Fig. 5 does show that in most cases SACK outperforms NewReno”",
            format!("SACK's gain over NewReno, averaged over z: {}", percent(&sack_over)),
            Judged::better(&sack_over),
        ),
        claim(
            At("§3.3.1"),
            "“Tahoe is chosen as a representative TCP variant since it is more robust than Reno over \
             wireless links.”",
            format!(
                "Tahoe's gain over Reno, averaged over z: {}; without delayed ACKs: {}",
                percent(&tahoe_over),
                percent(&gain(TAHOE_ND, RENO_ND))
            ),
            Judged::better(&tahoe_over),
        ),
    ]
}

/// The two comparisons of §3.3.1 with longer clusters, because §3.3.1 is about several losses in one window.
fn by_clusters(effort: &Effort) -> Result<(Table, String), WorldError> {
    const CHANGES: [f64; 4] = [0.3, 0.1, 0.03, 0.01];
    let cells = run(effort, &VARIANTS, &CHANGES, |change| Channel::overall(0.05).changing(change))?;
    let gain = |more, less| {
        let cells = &cells;
        move |change: &f64| cells.gain(more, less, *change, packets)
    };
    let (tahoe, sack) = (gain(TAHOE, RENO), gain(SACK, NEWRENO));
    let columns = VARIANTS.map(|curve| cells.column(curve.name, curve, 0, packets));
    let gains = [
        column("Tahoe over Reno", |change: &f64| percent(&tahoe(change))),
        column("SACK over NewReno", |change: &f64| percent(&sack(change))),
    ];
    let table = Table::of(
        "Packets acknowledged in 100 s at z = 5 %, and gains, with longer clusters of errors (smaller α = \
         β):",
        [change_column()].into_iter().chain(columns).chain(gains),
        CHANGES,
    );
    let sentence = format!(
        "At z = 5 %, Tahoe outperforms Reno at {}, and SACK outperforms NewReno at {}.",
        holding(&CHANGES, |change| Judged::better(&tahoe(&change))),
        holding(&CHANGES, |change| Judged::better(&sack(&change)))
    );
    Ok((table, sentence))
}

/// The values of α = β at which a claim holds, as part of a sentence.
pub(super) fn holding(changes: &[f64], judge: impl Fn(f64) -> Judged) -> String {
    let holding = changes.iter().filter(|change| judge(**change) == Judged::Holds);
    let named: Vec<_> = holding.map(f64::to_string).collect();
    if named.is_empty() {
        "no value of α = β".to_owned()
    } else {
        format!("α = β = {}", named.join(", "))
    }
}

/// Runs the voice stream alone.
fn voice(effort: &Effort, rates: &[f64]) -> Result<Voice, WorldError> {
    let plan = |(), z| Ok(Setting { recipes: Vec::new(), ..Setting::new("tahoe", Channel::overall(z)) });
    Grid::run(&[()], rates, plan, |settings| {
        effort.sample_named(
            "voice packets behind and before the radio link",
            &planned(settings)?,
            seeded,
            |_, report| setting::voice(report),
        )
    })
}

/// An exponential decrease is steepest at low loss rates, so its middle lies below the straight line between its ends.
fn exponential(cells: &Cells) -> Claim {
    let fall_and_sag = |curve| {
        let points = cells.of(curve, packets);
        let last = points.len() - 1;
        let chord = across(&[points[0].clone(), points[last].clone()]);
        (reduction(&points[last], &points[0]), gain(&chord, &points[last / 2]))
    };
    let found = VARIANTS.map(fall_and_sag);
    let parts = found.iter().flat_map(|(fall, sag)| [Judged::considerably(fall), Judged::better(sag)]);
    claim(
        At("§3.2.1, Fig. 5"),
        "“the throughput of FTP traffic, no matter transported by which TCP variants, degrades dramatically \
         in a negative-exponential manner, even when there are only few packet losses.” (Here: each of the \
         four curves falls by at least 20 % from the first z to the last, and its middle lies below the \
         straight line between its ends.)",
        format!(
            "Tahoe falls by {} from z = 1 % to 13 %. At 7 % the straight line lies above the curve by {} for \
             Tahoe, {} for Reno, {} for NewReno and {} for SACK",
            percent(&found[0].0),
            percent(&found[0].1),
            percent(&found[1].1),
            percent(&found[2].1),
            percent(&found[3].1)
        ),
        Judged::all(parts),
    )
}

/// Judges the relative difference between the voice's loss rate and z. It is zero if the loss is proportional to z.
fn proportional(voice: &Voice) -> Claim {
    let difference = |z: &f64| voice.at((), *z, |[arrived, sent]| (1.0 - arrived / sent) / z - 1.0);
    let all: Vec<_> = voice.points().iter().map(difference).collect();
    let all = mean(&across(&all));
    let low_rates: Vec<_> = voice.points().iter().copied().filter(|z| within(0.0, 0.04)(*z)).collect();
    let low = mean(&across(&low_rates.iter().map(difference).collect::<Vec<_>>()));
    claim(
        At("§3.2.1, Fig. 5"),
        "“In contrast, the throughput degradation for the UDP-transported CBR is proportional to *z*.”",
        format!(
            "Relative difference between the voice's loss rate and z: {} for all z, {} up to z = 4 %",
            percent(&all),
            percent(&low)
        ),
        Judged::all([Judged::similar(&all), Judged::similar(&low)]),
    )
    .not_counted(Counts::ByConstruction(
        "the channel loses a share z of all packets, and the voice stream does not retransmit".to_owned(),
    ))
}

/// Values of α = β in Fig. 6.
const FIG_6_CHANGES: [f64; 5] = [0.3, 0.1, 0.03, 0.01, 0.003];

pub(super) fn figure_6(effort: &Effort) -> Result<Finding, WorldError> {
    let random = Channel::new(0.03, 0.03);
    let clustered = FIG_6_CHANGES.map(|change| Channel::new(0.0, 0.06).changing(change));
    let channels: Vec<_> = [random].into_iter().chain(clustered).collect();
    let packets = run(effort, &[TAHOE], &channels, |channel| channel)?.of(TAHOE, packets);
    let charts = vec![over_time(effort, &channels[..2])?, over_clusters(&FIG_6_CHANGES, &packets)];
    Ok(Finding {
        tables: vec![table_6(&packets)],
        charts,
        claims: claims_6(&packets),
        remarks: vec![remark_6(&packets[0], &packets[1])],
        ..Finding::default()
    })
}

/// `packets`: Tahoe's packets with random errors, then with each clustered channel, by seed.
fn table_6(packets: &[Vec<f64>]) -> Table {
    let mut table = Table::new(
        "Tahoe's acknowledged packets after 100 s, at z = 3 %:",
        &["errors", "the paper", "here", "gain over random", "SD of one run"],
    );
    let row = |errors: String, paper: &str, samples: &[f64], gain: String| {
        [errors, paper.to_owned(), shown(&mean(samples), 0), gain, format!("{:.0}", deviation(samples))]
    };
    table.row(row("random, x = y = 0.03".to_owned(), "1443", &packets[0], String::new()));
    for (index, change) in FIG_6_CHANGES.iter().enumerate() {
        let paper = if index == 0 { "1262 (−12.5 %)" } else { "" };
        let errors = format!("clustered, x = 0, y = 0.06, α = β = {change}");
        table.row(row(errors, paper, &packets[index + 1], percent(&gain(&packets[index + 1], &packets[0]))));
    }
    table
}

/// `packets`: as in [`table_6`].
fn claims_6(packets: &[Vec<f64>]) -> Vec<Claim> {
    let reduction_at = |index: usize| reduction(&packets[index], &packets[0]);
    let less = reduction_at(1);
    let (at_random, in_clusters) = (&packets[0], &packets[1]);
    let falls = mean(&trends(&packets[1..]).iter().map(|trend| -trend).collect::<Vec<_>>());
    let numbers = |repetitions: u32| {
        let number = |samples: &[f64], paper| {
            Judged::number(&mean(samples), paper, of_repetitions(samples, repetitions))
        };
        let effect = Judged::effect(&less, 0.125, gain_of_repetitions(in_clusters, at_random, repetitions));
        Judged::all([number(at_random, 1443.0), number(in_clusters, 1262.0), effect])
    };
    vec![
        claim(
            At("§3.2.2, Fig. 6"),
            "“The number of received FTP packets over the randomized error link is 1443 when the simulation \
             ends, and that over the clustered link is only 1262, or about 12.5% less.”",
            format!(
                "Random errors: {} packets; clustered: {}; reduction: {} (± {:.1} % with one run each)",
                shown(&mean(at_random), 0),
                shown(&mean(in_clusters), 0),
                percent(&less),
                100.0 * gain_of_repetitions(in_clusters, at_random, 1)
            ),
            numbers(REPETITIONS.chosen),
        )
        .repeated(REPETITIONS, numbers),
        claim(
            At("§3.2.2, Fig. 6"),
            "“The results in Fig. 6 show that TCP performs poorly in a clustered error environment.”",
            format!(
                "Reduction compared with the random link: {} at α = β = 0.3, {} at 0.03",
                percent(&less),
                percent(&reduction_at(3))
            ),
            Judged::better(&less),
        ),
        claim(
            At("§3.2.2"),
            "“the stronger a lossy link exhibits clustered error behaviors, the more degradation TCP \
             suffers.”",
            format!(
                "From α = β = 0.3 to 0.003 the packets fall by {}, by a straight line fitted to the five \
                 points",
                percent(&falls)
            ),
            Judged::better(&falls),
        ),
    ]
}

fn remark_6(at_random: &[f64], in_clusters: &[f64]) -> String {
    format!(
        "The paper's 12.5 % is the difference between two single runs. Here this difference has a standard \
         deviation of {:.1} %. At α = β = 0.3 a state lasts three packets on average, so the errors with x = \
         0 and y = 0.06 are hardly more clustered than random errors: two consecutive packets on the link \
         are lost with a probability of {:.2} %, compared with {:.2} % for random errors.",
        100.0 * deviation(in_clusters).hypot(deviation(at_random)) / mean(at_random).mean,
        100.0 * 0.03 * 0.7 * 0.06,
        100.0 * 0.03 * 0.03
    )
}

/// Fig. 6: packets over time on the random and on the clustered channel.
fn over_time(effort: &Effort, channels: &[Channel]) -> Result<Chart, WorldError> {
    let settings: Vec<_> = channels.iter().map(|channel| Setting::new("tahoe", *channel)).collect();
    let times: Vec<f64> = (0..=10).map(|step| (step * SECONDS / 10) as f64).collect();
    let found = traced(effort, &settings, |_, trace| {
        let acked: Vec<f64> = times.iter().map(|at| trace.acked(*at)).collect();
        named("packets acknowledged every ten seconds", acked)
    })
    .map(unnamed)?;
    let names = ["random", "clustered"].into_iter().zip([1443.0, 1262.0]);
    let curves = names.zip(&found).map(|((name, paper), seeds)| {
        curve_over_time(name, &times, seeds).with_paper_values([(SECONDS as f64, paper)])
    });
    Ok(Chart {
        title: "Fig. 6: Clustered vs. Random Error - Tahoe".to_owned(),
        x: Axis::new("runtime, s", Scale::FromZero),
        y: Axis::new("packets received", Scale::FromZero),
        curves: curves.collect(),
    })
}

/// A curve over time. Each seed has one value for each of the `times`.
pub(super) fn curve_over_time(name: &str, times: &[f64], seeds: &[Vec<f64>]) -> Line {
    let by_time: Vec<Vec<f64>> =
        (0..times.len()).map(|step| seeds.iter().map(|seed| seed[step]).collect()).collect();
    Line::line(name, times.iter().copied().zip(by_time.iter().map(Vec::as_slice)))
}

/// Gain of clustered over random errors, by the length of a state.
fn over_clusters(changes: &[f64], packets: &[Vec<f64>]) -> Chart {
    let lengths = changes.iter().map(|change| 1.0 / change);
    let gains: Vec<Vec<f64>> = packets[1..].iter().map(|samples| gains(samples, &packets[0])).collect();
    let curve = Line::line("Tahoe", lengths.zip(gains.iter().map(Vec::as_slice)));
    Chart {
        title: "Clustered compared with random errors, by the length of a state".to_owned(),
        x: Axis::new("packets per state, 1/α", Scale::Logarithmic),
        y: Axis::new("gain over random errors", Scale::ValueRange),
        curves: vec![curve.with_paper_values([(1.0 / changes[0], -0.125)])],
    }
}
