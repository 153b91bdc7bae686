//! What the paper does not say, swept: over which range E-TCP is better than Reno-TCP.

use airtcp_numbers::statistics::Mean;
use airtcp_sim::world::WorldError;
use airwire::time::Duration;

use super::super::judge::pooled_gains;
use super::super::{Claim, Counts, Effort, Finding, Judged, Table, mean};
use super::measured::{count, gain, percent};
use super::setting::{BIT_ERROR_RATES, Errors, Setting, Timing, Variant, Way};

/// How a setting is changed, for E-TCP and for Reno-TCP alike unless it is about E-TCP.
struct Change {
    name: &'static str,
    apply: fn(Setting) -> Setting,
}

const CHANGES: [Change; 9] = [
    Change { name: "as chosen", apply: |setting| setting },
    Change { name: "5 packets in the queue", apply: |setting| Setting { queue: 5, ..setting } },
    Change { name: "50 packets in the queue", apply: |setting| Setting { queue: 50, ..setting } },
    Change {
        name: "a radio link takes 20 ms",
        apply: |setting| Setting { radio_delay: Duration::from_millis(20), ..setting },
    },
    Change {
        name: "a least timeout of 200 ms",
        apply: |setting| Setting { least_timeout: Duration::from_millis(200), ..setting },
    },
    Change { name: "ssthresh 2 at least", apply: |setting| Setting { least_ssthresh: 2, ..setting } },
    Change {
        name: "packets take 4.9 times as long",
        apply: |setting| Setting { timing: Timing::OfOurPackets, ..setting },
    },
    Change { name: "E-TCP acts on the first mark", apply: |setting| told(setting, Variant::EtcpEarly) },
    Change {
        name: "E-TCP goes by marks at timeouts too",
        apply: |setting| told(setting, Variant::EtcpAtTimeouts),
    },
];

fn told(setting: Setting, sender: Variant) -> Setting {
    if setting.sender == Variant::Etcp { Setting { sender, ..setting } } else { setting }
}

/// The columns: directions, and the other reading of the last.
const COLUMNS: [(Way, Errors); 4] = [
    (Way::FixedToMobile, Errors::InTotal),
    (Way::MobileToFixed, Errors::InTotal),
    (Way::MobileToMobile, Errors::InTotal),
    (Way::MobileToMobile, Errors::OnEachRadio),
];

/// By change, bit error rate and column: what Reno-TCP and E-TCP receive, by seed.
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
            format!("BER {name}: what E-TCP receives more than Reno-TCP"),
            &["", "F to M", "M to F", "M to M", "M to M, this BER on each radio"],
        );
        for (change, rates) in CHANGES.iter().zip(&packets) {
            let gains = rates[at].iter().map(|[reno, etcp]| percent(&gain(etcp, reno)));
            table.row(std::iter::once(change.name.to_owned()).chain(gains));
        }
        tables.push(table);
    }
    // Each change over all directions and bit error rates, without the other reading.
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
            "on average over directions and bit error rates, from {} ({}) to {} ({})",
            percent(least.0),
            least.1.name,
            percent(most.0),
            most.1.name
        )
    });
    let [reno, etcp] = &packets[0][0][COLUMNS.len() - 1];
    let claims = vec![Claim {
        paper: "“Simulation results show that our proposed solution provides better results compared with the implementation of conventional TCP (TCP Reno).”"
            .to_owned(),
        place: "§V".to_owned(),
        counts: Counts::Yes,
        ours: format!(
            "with each of {} settings: {range}; but {} as chosen with 1e-3 on each of two radios",
            CHANGES.len(),
            percent(&gain(etcp, reno))
        ),
        judged: Judged::all(pooled.iter().map(Judged::better)),
    }];
    Ok(Finding {
        tables,
        charts: Vec::new(),
        claims,
        choices: vec![format!(
            "{} s a run, with one thing changed in each row, for both senders.",
            length.as_secs_f64()
        )],
        remarks: vec![
            "A least ssthresh of 1 or 2 is the same to the packet: only a timeout could leave 1, and from one segment slow start and \
             congestion avoidance both go to two."
                .to_owned(),
        ],
    })
}
