//! The four judges over all paths, and NCPLD with a tolerance.

use airtcp::recovery::confusion::Confusion;
use airtcp_numbers::statistics::gains;
use airtcp_sim::world::WorldError;

use super::judges::{JUDGES, Matrices, figure, own, place, scores, setting, tolerant_verdicts, works};
use super::setting::{Loss, Place, Setting, Sources, Topology, not, percent, throughput};
use crate::grid::Grid;
use crate::{At, Claim, Effort, Finding, Judged, Table, claim, mean};

/// NCPLD as attribution: as in §3.2, and with a tolerance.
const NCPLD: [&str; 2] = ["newreno+ncpld", "newreno+ncpld+ncpld-tolerance=0.25"];
/// Tolerances as shares of the delay at the knee. §3.2 has no tolerance.
const TOLERANCES: [f64; 4] = [0.0, 0.1, 0.25, 0.5];

/// The judges on the congested last hop.
pub(super) fn congestion(effort: &Effort) -> Result<Finding, WorldError> {
    let mut finding = figure(effort, Topology::Congestion)?;
    finding.claims.extend(samaraweera(effort)?);
    Ok(finding)
}

/// Claims about NCPLD: §3.2 reports how Samaraweera evaluated it.
fn samaraweera(effort: &Effort) -> Result<[Claim; 2], WorldError> {
    const LOW: f64 = 0.001;
    const HIGH: f64 = 0.08;
    let plan = |recipe: &str, per| setting(&Place::new(Topology::Congestion, Loss::two_state(per)), recipe);
    let [without, with] = NCPLD;
    let grid = Grid::run(&["newreno", without, with], &[LOW, HIGH], plan, |settings| {
        effort.sample_named("throughput, kbit/s", settings, Setting::run, |_, report| {
            throughput(&report.flows[0])
        })
    })?;
    let judged = |recipe| {
        let kbit = |throughput: &f64| *throughput;
        let [low, high] =
            [LOW, HIGH].map(|per| gains(&grid.at(recipe, per, kbit), &grid.at("newreno", per, kbit)));
        let sentence = format!(
            "“when a connection experiences congestion, NCPLD behaves as well as TCP when the wireless error \
             rate is low, and improves throughput over TCP when the wireless error rate is high” (Here: \
             `{recipe}`, at a PER of 0.1 % and of 8 %.)"
        );
        let ours = format!(
            "Gain over newreno: {} % at the low rate, {} % at the high rate.",
            percent(&low, 1),
            percent(&high, 1)
        );
        let judged = Judged::all([Judged::similar(&mean(&low)), Judged::better(&mean(&high))]);
        claim(At("§3.2"), &sentence, ours, judged).not_counted(own())
    };
    Ok(NCPLD.map(judged))
}

/// All topologies, with the three rates of cross traffic that §4.1 names on the congested last hop.
pub(super) fn overall(effort: &Effort) -> Result<Finding, WorldError> {
    let mut places: Vec<(String, Place)> = Vec::new();
    for topology in Topology::ALL {
        if topology == Topology::Congestion {
            for rate in [160, 200, 300] {
                let place = Place { sources: Sources::at(rate), ..place(topology) };
                places.push((format!("{}, sources of {rate} kbit/s", topology.name()), place));
            }
        } else {
            places.push((topology.name().to_owned(), place(topology)));
        }
    }
    let only_places: Vec<_> = places.iter().map(|(_, place)| *place).collect();
    let by_tolerance = TOLERANCES
        .iter()
        .map(|tolerance| tolerant_verdicts(effort, &only_places, *tolerance))
        .collect::<Result<Vec<_>, _>>()?;
    let runs = &by_tolerance[0];
    let mut columns = vec!["path"];
    columns.extend(JUDGES);
    let mut table =
        Table::new("Score in % (without congestion: share of radio losses judged correctly)", &columns);
    let mut by_judge: Vec<Vec<Vec<f64>>> = vec![Vec::new(); JUDGES.len()];
    for ((name, place), runs) in places.iter().zip(runs) {
        let of_place: Vec<_> = (0..JUDGES.len()).map(|i| scores(place.topology, runs, i)).collect();
        table.row(std::iter::once(name.clone()).chain(of_place.iter().map(|scores| percent(scores, 0))));
        for (judge, scores) in by_judge.iter_mut().zip(of_place) {
            judge.push(scores);
        }
    }
    let tolerant = tolerance_table(&places, &by_tolerance);
    let (shown, judged): (Vec<_>, Vec<_>) = JUDGES
        .iter()
        .zip(&by_judge)
        .map(|(name, scores)| {
            let judged: Vec<_> = scores.iter().map(|scores| works(scores)).collect();
            let count = |wanted| judged.iter().filter(|judged| **judged == wanted).count();
            let shown = format!(
                "{name} works on {} and fails on {}",
                count(Judged::Holds),
                count(Judged::DoesNotHold)
            );
            (shown, not(Judged::all(judged)))
        })
        .unzip();
    let claim = claim(
        At("abstract"),
        "“simple RTT variation schemes can not always predict congestion from wireless link error well”",
        format!("On {} paths: {}.", places.len(), shown.join("; ")),
        Judged::all(judged),
    )
    .not_counted(own());
    Ok(Finding { claims: vec![claim], tables: vec![table, tolerant], ..Finding::default() })
}

/// §3.2: "NCPLD measures round-trip time at the sender and compares it to the measured delay when there is no
/// congestion". The table shows the effect of a tolerance above this delay.
fn tolerance_table(places: &[(String, Place)], by_tolerance: &[Vec<Vec<Matrices>>]) -> Table {
    const NCPLD_AT: usize = 3;
    let columns = TOLERANCES.map(|tolerance| match tolerance {
        0.0 => "no tolerance (§3.2)".to_owned(),
        tolerance => format!("{:.0} %", 100.0 * tolerance),
    });
    let mut all = vec!["path"];
    all.extend(columns.iter().map(String::as_str));
    let mut table = Table::new(
        "NCPLD with a tolerance (`ncpld-tolerance`, a share of the delay at the knee): congestion losses \
         judged correctly / radio losses judged correctly / score, all in %",
        &all,
    );
    for (at, (name, place)) in places.iter().enumerate() {
        let cells = by_tolerance.iter().map(|by_place| {
            let runs = &by_place[at];
            let share = |share: fn(&Confusion) -> Option<f64>| {
                let shares: Vec<_> = runs.iter().filter_map(|matrices| share(&matrices[NCPLD_AT])).collect();
                percent(&shares, 0)
            };
            format!(
                "{} / {} / {}",
                share(Confusion::congestion_accuracy),
                share(Confusion::radio_accuracy),
                percent(&scores(place.topology, runs, NCPLD_AT), 0)
            )
        });
        table.row(std::iter::once(name.clone()).chain(cells));
    }
    table
}
