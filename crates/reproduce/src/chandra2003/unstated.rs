//! Sweeps over parameters that the paper does not state: the range in which E-TCP is better than Reno-TCP.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{Received, count, packets, percent};
use super::setting::Variant::{Etcp, Reno};
use super::setting::{BIT_ERROR_RATES, Ber, CASES, Case, Errors, Setting, Timing, Variant};
use crate::grid::Grid;
use crate::{At, Counts, Effort, Finding, Judged, Table, claim, column};

/// A change of one setting. It applies to E-TCP and Reno-TCP, unless it concerns only E-TCP.
struct Change {
    name: &'static str,
    apply: fn(Setting) -> Setting,
}

const CHANGES: [Change; 9] = [
    Change { name: "as chosen", apply: |setting| setting },
    Change { name: "queue of 5 packets", apply: |setting| Setting { queue: 5, ..setting } },
    Change { name: "queue of 50 packets", apply: |setting| Setting { queue: 50, ..setting } },
    Change {
        name: "radio delay of 20 ms",
        apply: |setting| Setting { radio_delay: Duration::from_millis(20), ..setting },
    },
    Change {
        name: "minimum timeout of 200 ms",
        apply: |setting| Setting { min_rto: Duration::from_millis(200), ..setting },
    },
    Change { name: "minimum ssthresh of 2", apply: |setting| Setting { min_ssthresh: 2, ..setting } },
    Change {
        name: "4.9 times the transmission time",
        apply: |setting| Setting { timing: Timing::OurPackets, ..setting },
    },
    Change { name: "E-TCP acts on the first mark", apply: |setting| with_etcp(setting, Variant::EtcpEarly) },
    Change {
        name: "E-TCP uses marks at timeouts",
        apply: |setting| with_etcp(setting, Variant::EtcpAtTimeouts),
    },
];

/// Replaces E-TCP by a variant of E-TCP.
fn with_etcp(setting: Setting, sender: Variant) -> Setting {
    if setting.sender == Etcp { Setting { sender, ..setting } } else { setting }
}

/// The packets by sender, change (its index in `CHANGES`), bit error rate and direction.
type Packets = Grid<Variant, (usize, Ber, Case), Received>;

fn run(effort: &Effort, length: Duration) -> Result<Packets, WorldError> {
    let changes = 0..CHANGES.len();
    let points: Vec<_> = changes
        .flat_map(|change| BIT_ERROR_RATES.map(|ber| (change, ber)))
        .flat_map(|(change, ber)| CASES.map(|case| (change, ber, case)))
        .collect();
    let plan = |sender, (change, (_, rate), (direction, errors)): (usize, Ber, Case)| {
        Ok((CHANGES[change].apply)(Setting { errors, ..Setting::new(direction, sender, rate) }))
    };
    Grid::run(&[Reno, Etcp], &points, plan, |settings| count(effort, settings, length))
}

fn table(runs: &Packets, ber: Ber) -> Table {
    let gain =
        |case: Case| move |change: &usize| percent(&runs.gain(Etcp, Reno, (*change, ber, case), packets));
    let names = ["F to M", "M to F", "M to M", "M to M, BER per radio"];
    let gains = names.into_iter().zip(CASES).map(|(name, case)| column(name, gain(case)));
    Table::of(
        format!("BER {}: gain of E-TCP over Reno-TCP in packets received", ber.0),
        [column("setting", |change: &usize| CHANGES[*change].name.to_owned())].into_iter().chain(gains),
        0..CHANGES.len(),
    )
}

/// Runs the sweep over parameters that the paper does not state (§V).
pub fn unstated(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let runs = run(effort, length)?;
    let tables = BIT_ERROR_RATES.map(|ber| table(&runs, ber)).to_vec();
    // Each change, pooled over directions and bit error rates, without the second reading of the BER.
    let pooled: Vec<Mean> = (0..CHANGES.len())
        .map(|index| {
            let runs = runs.only(|(change, _, (_, errors))| change == index && errors == Errors::InTotal);
            runs.pooled(Etcp, Reno, packets)
        })
        .collect();
    let by_gain =
        |first: &&(&Mean, &Change), second: &&(&Mean, &Change)| first.0.mean.total_cmp(&second.0.mean);
    let named: Vec<_> = pooled.iter().zip(&CHANGES).collect();
    let ends = named.iter().min_by(by_gain).zip(named.iter().max_by(by_gain));
    let range = ends.map_or_else(String::new, |(least, most)| {
        format!(
            "averaged over directions and BERs, from {} ({}) to {} ({})",
            percent(least.0),
            least.1.name,
            percent(most.0),
            most.1.name
        )
    });
    let on_each_radio = runs.gain(Etcp, Reno, (0, BIT_ERROR_RATES[0], CASES[3]), packets);
    let claims = vec![claim(
        At("§V"),
        "“Simulation results show that our proposed solution provides better results compared with the \
         implementation of conventional TCP (TCP Reno).”",
        format!(
            "gains with {} settings: {range}. As chosen, but with BER 1e-3 on each of two radio links: {}",
            CHANGES.len(),
            percent(&on_each_radio)
        ),
        Judged::all(pooled.iter().map(Judged::better)),
    )
    .not_counted(Counts::Repeats("the sentences about Figs. 6 to 8".to_owned()))];
    Ok(Finding {
        tables,
        claims,
        remarks: vec![
            "A minimum ssthresh of 1 or 2 segments gives identical runs. Only a timeout could set ssthresh \
             to 1, and from a window of one segment, slow start and congestion avoidance both increase it to \
             two."
                .to_owned(),
        ],
        ..Finding::default()
    })
}
