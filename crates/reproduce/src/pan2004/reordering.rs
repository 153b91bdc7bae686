//! Duplicate ACKs that reordering causes (§4.2). The paper's path keeps all packets in order. Here its radio link
//! retransmits damaged packets, so that they arrive after later ones.

use airtcp_numbers::statistics::{Mean, gains};
use airtcp_sim::run::Run;
use airtcp_sim::world::WorldError;
use airwire::time::Instant;
use serde::Serialize;

use super::judging::{Measured, percent};
use super::senders::{Curve, NEWRENO, SIFEST, TAHOE, over_z, traced};
use super::setting::{Channel, LinkLayer, SECONDS, Setting};
use super::trace::Trace;
use crate::grid::Grid;
use crate::judge::across;
use crate::lai2013::setting::{Extent, NR, Radio, Site, plan};
use crate::{At, Claim, Counts, Effort, Finding, Judged, Table, cell, claim, column, mean};

/// Share of damaged packets: the range of z in Fig. 5.
const DAMAGED: [f64; 5] = [0.01, 0.04, 0.07, 0.1, 0.13];
/// Maximum numbers of retransmissions on the radio link. Three, as in Fig. 2c of Lai et al., decide the
/// verdict. A single one leaves some losses, so that windows are smaller.
const TIMES: [u32; 2] = [3, 1];

/// Senders without sifest, with sifest, and with sifest to the letter.
type Family = [Curve; 3];
const TAHOES: Family = [TAHOE, SIFEST, Curve::new("sifest-literal", "tahoe+sifest-literal")];
const NEWRENOS: Family = [
    NEWRENO,
    Curve::new("NewReno, sifest", "newreno+sifest"),
    Curve::new("NewReno, sifest-literal", "newreno+sifest-literal"),
];
const FAMILIES: [Family; 2] = [TAHOES, NEWRENOS];

/// The number of link-layer retransmissions, and the share of damaged packets.
type Point = (u32, f64);

#[derive(Clone, Serialize)]
struct Seen {
    #[serde(rename = "packets acknowledged")]
    acked: f64,
    #[serde(rename = "fast retransmissions of late packets, share of packets sent")]
    mistaken: f64,
}

type Cells = Grid<Curve, Point, Seen>;

fn acked(seen: &Seen) -> f64 {
    seen.acked
}

pub(super) fn late_packets(effort: &Effort) -> Result<Finding, WorldError> {
    let points: Vec<Point> =
        TIMES.iter().flat_map(|times| DAMAGED.map(|damaged| (*times, damaged))).collect();
    let plan = |curve: Curve, (times, damaged)| {
        let link_layer = LinkLayer::Retransmits(times);
        Ok(Setting { link_layer, ..curve.over(Channel::new(damaged, damaged)) })
    };
    let look =
        |measured: &Measured, trace: &Trace| Seen { acked: measured.acked, mistaken: trace.mistaken() };
    let cells = Grid::run(&FAMILIES.concat(), &points, plan, |settings| traced(effort, settings, look))?;
    let charts = TIMES.map(|times| {
        let cells = cells.only(|point| point.0 == times);
        let curves = TAHOES.map(|curve| cells.line(curve, curve.name, |point| point.1, acked)).to_vec();
        let title = format!("Link-layer retransmissions: at most {times} (not a figure of the paper)");
        let mut chart = over_z(&title, "packets acknowledged in 100 s", curves);
        "share of packets that the radio link damages".clone_into(&mut chart.x.caption);
        chart
    });
    Ok(Finding {
        tables: vec![table(&cells)],
        charts: charts.to_vec(),
        claims: vec![negligible(&cells), on_fast_link(effort)?],
        ..Finding::default()
    })
}

/// Fast retransmissions of late packets, per packet sent, averaged over the shares of damaged packets.
fn mistaken(cells: &Cells, curve: Curve) -> Mean {
    mean(&across(&cells.of(curve, |seen| seen.mistaken)))
}

/// Our results with a maximum number of link-layer retransmissions.
struct WithRetransmissions {
    late: Mean,
    plain_late: Mean,
    gain: Mean,
}

impl WithRetransmissions {
    fn of(cells: &Cells, [plain, sifest, _]: Family, times: u32) -> Self {
        let cells = cells.only(|point| point.0 == times);
        Self {
            late: mistaken(&cells, sifest),
            plain_late: mistaken(&cells, plain),
            gain: cells.pooled(sifest, plain, acked),
        }
    }

    fn judged(&self) -> Judged {
        Judged::all([&self.late, &self.gain].map(Judged::similar))
    }

    fn shown(&self) -> String {
        let Self { late, plain_late, gain } = self;
        let [late, plain_late, gain] = [late, plain_late, gain].map(percent);
        format!(
            "{late} of the packets are retransmitted because they are late ({plain_late} without sifest), and \
             the number of acknowledged packets changes by {gain}"
        )
    }
}

fn negligible(cells: &Cells) -> Claim {
    let [often, once] = TIMES.map(|times| WithRetransmissions::of(cells, TAHOES, times));
    claim(
        At("§4.2"),
        "“However, when *sifest* is effective, since there are only a few in-flight segments and the \
         estimation is re-initialized periodically, the probability of *dupack* occurrence due to packet \
         recording is negligible according to our performance study.” (Here: the radio link retransmits \
         damaged packets. Tahoe with sifest retransmits at most 10 % of its packets because they are late, \
         and has as many packets acknowledged as without sifest.)",
        format!(
            "with at most three link-layer retransmissions, {}; with at most one, {}. On the paper's path no \
             packet is late",
            often.shown(),
            once.shown()
        ),
        often.judged(),
    )
    .with("the number of link-layer retransmissions", "1", once.judged())
}

/// Compares the senders on a faster link, on which NewReno has more packets in flight, so that several
/// packets overtake a late one.
fn on_fast_link(effort: &Effort) -> Result<Claim, WorldError> {
    const RECIPES: [&str; 3] = ["newreno", "newreno+sifest", "newreno+sifest-literal"];
    let seconds = Extent { until: Instant::from_secs(SECONDS), from: Instant::ZERO, ..Extent::FEW };
    let like = plan(Radio::Reorders, Site::ORDINARY, 5, &[NR], &seconds)?;
    let with = |recipe: &str| -> Result<Run, WorldError> {
        let mut run = like.clone();
        run.fixed.recipe = recipe.parse()?;
        run.flows[0].recipe = Some(recipe.parse()?);
        Ok(run)
    };
    let plans = RECIPES.into_iter().map(with).collect::<Result<Vec<_>, _>>()?;
    let found = effort.sample_named(
        "goodput, bit/s",
        &plans,
        |plan, seed| Run { seed, ..plan.clone() },
        |_, report| report.flows[0].goodput_bit_per_s,
    )?;
    let more = [1, 2].map(|with| mean(&gains(&found[with], &found[0])));
    let [sifest, literal] = more.each_ref().map(percent);
    Ok(claim(
        At("§4.2"),
        "With sifest, NewReno is as fast as without sifest on the path of Fig. 2c of Lai et al. at 5 %.",
        format!("gain with `sifest` {sifest}, with `sifest-literal` {literal}"),
        Judged::similar(&more[0]),
    )
    .not_counted(Counts::Own("the path of another paper shows where late packets matter".to_owned())))
}

fn table(cells: &Cells) -> Table {
    /// A sender with the plain sender of its family, at a point.
    type Row = (Point, Curve, Curve);
    let rows = |point: &Point| {
        let point = *point;
        FAMILIES.into_iter().flat_map(move |all| all.map(|curve| (point, curve, all[0]))).collect::<Vec<_>>()
    };
    let rows: Vec<Row> = cells.points().iter().flat_map(rows).collect();
    Table::of(
        "Acknowledged packets after 100 s, gains over the plain sender, and fast retransmissions of packets \
         that were only late, by the maximum number of link-layer retransmissions and the share of packets \
         that the radio link damages:",
        [
            column("retransmissions", |((times, _), ..): &Row| times.to_string()),
            column("damaged", |((_, damaged), ..): &Row| format!("{:.0} %", 100.0 * damaged)),
            column("sender", |(_, curve, _): &Row| curve.name.to_owned()),
            column("packets", |(point, curve, _): &Row| cell(&cells.at(*curve, *point, acked), 0)),
            column("gain", |(point, curve, plain): &Row| match curve == plain {
                true => String::new(),
                false => percent(&cells.gain(*curve, *plain, *point, acked)),
            }),
            column("late, share of packets sent", |(point, curve, _): &Row| {
                percent(&mean(&cells.at(*curve, *point, |seen| seen.mistaken)))
            }),
        ],
        rows,
    )
}
