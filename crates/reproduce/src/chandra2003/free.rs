//! Sweeps over parameters that the paper does not state: the range in which E-TCP is better than Reno-TCP.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::measured::{count, gain, percent};
use super::setting::{BIT_ERROR_RATES, Errors, Setting, Timing, Variant, Way};
use crate::judge::pooled_gains;
use crate::{Claim, Counts, Effort, Finding, Judged, Table, mean};

/// One changed setting. It applies to E-TCP and Reno-TCP, unless it concerns only E-TCP.
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
        apply: |setting| Setting { least_timeout: Duration::from_millis(200), ..setting },
    },
    Change { name: "minimum ssthresh of 2", apply: |setting| Setting { least_ssthresh: 2, ..setting } },
    Change {
        name: "4.9 times the transmission time",
        apply: |setting| Setting { timing: Timing::OfOurPackets, ..setting },
    },
    Change { name: "E-TCP acts on the first mark", apply: |setting| told(setting, Variant::EtcpEarly) },
    Change { name: "E-TCP uses marks at timeouts", apply: |setting| told(setting, Variant::EtcpAtTimeouts) },
];

fn told(setting: Setting, sender: Variant) -> Setting {
    if setting.sender == Variant::Etcp { Setting { sender, ..setting } } else { setting }
}

/// The columns: the directions, and the second reading of the BER from mobile to mobile.
const COLUMNS: [(Way, Errors); 4] = [
    (Way::FixedToMobile, Errors::InTotal),
    (Way::MobileToFixed, Errors::InTotal),
    (Way::MobileToMobile, Errors::InTotal),
    (Way::MobileToMobile, Errors::OnEachRadio),
];

/// Packets received by change, bit error rate and column, with Reno-TCP and E-TCP by seed.
type Packets = Vec<Vec<Vec<[Vec<f64>; 2]>>>;

fn run(effort: &Effort, length: Duration) -> Result<Packets, WorldError> {
    let mut settings = Vec::new();
    for change in &CHANGES {
        for (_, rate) in BIT_ERROR_RATES {
            for (way, errors) in COLUMNS {
                for sender in [Variant::Reno, Variant::Etcp] {
                    let setting = Setting { errors, ..Setting::new(way, sender, rate) };
                    settings.push((change.apply)(setting));
                }
            }
        }
    }
    let mut samples = count(effort, &settings, length)?.packets.into_iter();
    let mut next = || samples.next().unwrap_or_default();
    let mut column = || [next(), next()];
    let mut rate = || COLUMNS.iter().map(|_| column()).collect::<Vec<_>>();
    let mut change = || BIT_ERROR_RATES.iter().map(|_| rate()).collect::<Vec<_>>();
    Ok(CHANGES.iter().map(|_| change()).collect())
}

pub fn free(effort: &Effort, length: Duration) -> Result<Finding, WorldError> {
    let packets = run(effort, length)?;
    let mut tables = Vec::new();
    for (at, (name, _)) in BIT_ERROR_RATES.iter().enumerate() {
        let mut table = Table::new(
            format!("BER {name}: gain of E-TCP over Reno-TCP in packets received"),
            &["setting", "F to M", "M to F", "M to M", "M to M, BER per radio"],
        );
        for (change, rates) in CHANGES.iter().zip(&packets) {
            let gains = rates[at].iter().map(|[reno, etcp]| percent(&gain(etcp, reno)));
            table.row(std::iter::once(change.name.to_owned()).chain(gains));
        }
        tables.push(table);
    }
    // Each change, pooled over directions and bit error rates, without the second reading of the BER.
    let pooled: Vec<Mean> = packets
        .iter()
        .map(|rates| {
            let points: Vec<_> = rates.iter().flat_map(|columns| &columns[..Way::ALL.len()]).collect();
            let of = |sender: usize| points.iter().map(|pair| pair[sender].clone()).collect::<Vec<_>>();
            mean(&pooled_gains(&of(1), &of(0)))
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
    let [reno, etcp] = &packets[0][0][COLUMNS.len() - 1];
    let claims = vec![Claim {
        paper:
            "“Simulation results show that our proposed solution provides better results compared with the \
                implementation of conventional TCP (TCP Reno).”"
                .to_owned(),
        place: "§V".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "gains with {} settings: {range}. As chosen, but with BER 1e-3 on each of two radio links: {}",
            CHANGES.len(),
            percent(&gain(etcp, reno))
        ),
        judged: Judged::all(pooled.iter().map(Judged::better)),
    }];
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
