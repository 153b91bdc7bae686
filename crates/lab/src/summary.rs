//! The summary of each sender's transfers: one row of the table.

mod columns;
mod csv;

use airtcp::recovery::inputs::merged;
use airtcp::sender::shared;
use airtcp_numbers::statistics::{Mean, Median};
use airtcp_numbers::verdict::{self, Comparison};
pub(crate) use columns::{columns, csv, table};
pub(crate) use csv::transfers_csv;
use serde::{Deserialize, Serialize};

use super::sender::{RetransmissionCounts, Sender};
use super::transfer::Outcome;
use super::workload::WorkloadRecord;

/// The summary of a sender's transfers. All figures cover the same rounds: those in which the transfers of
/// the sender and of the reference are exact and valid. They are `None` if there are none.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    /// The recipe, with its profile if the profiles in the experiment differ, or `linux:` and a congestion
    /// control.
    pub sender: String,
    /// The profile. `None` for a kernel sender, or if the file is older than this field.
    #[serde(default)]
    pub profile: Option<String>,
    /// Number of transfers that delivered exactly the sent bytes.
    pub succeeded: usize,
    /// Number of transfers that failed.
    pub failed: usize,
    /// Number of rounds that the figures cover. Zero if the file is older than this field.
    #[serde(default)]
    pub counted: usize,
    /// Goodput from the first SYN to the last ACK, or within the time limit of the connections.
    pub kbit_per_s: Option<Mean>,
    /// The median of the goodput. `None` if no transfer counts, or if the file is older than this field.
    #[serde(default)]
    pub median_kbit_per_s: Option<f64>,
    /// The 95 % interval of the median. `None` if too few transfers count, or if the file is older than this
    /// field.
    #[serde(default)]
    pub median_interval: Option<(f64, f64)>,
    /// The quartiles of the goodput. `None` if no transfer counts, or if the file is older than this field.
    #[serde(default)]
    pub quartiles: Option<(f64, f64)>,
    /// The comparison of the goodput with the reference, corrected for the number of senders. `None` for the
    /// reference, or if the file is older than this field.
    #[serde(default)]
    pub against: Option<Comparison>,
    /// Goodput of the competitors. `None` without competitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub competitor_kbit_per_s: Option<Mean>,
    /// Share of all bytes, from 0 to 1, while all connections were sending. `None` without competitors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Mean>,
    /// Jain's index of the sender's own connections. `None` if it has one in each direction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fairness: Option<Mean>,
    /// Goodput towards the mobile side, if the sender sends in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down_kbit_per_s: Option<Mean>,
    /// Goodput towards the fixed side, if the sender sends in both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up_kbit_per_s: Option<Mean>,
    /// Retransmitted segments as the sender counts them: means. `None` if no transfer counts, or if another
    /// kernel sender shared the counters.
    pub fast: Option<f64>,
    /// Retransmissions after timeouts. `None` as for `fast`.
    pub timeout: Option<f64>,
    /// Tail loss probes. `None` as for `fast`.
    pub probe: Option<f64>,
    /// Expiries of the retransmission timer.
    pub timeouts: Option<f64>,
    /// Timeouts that the sender detected as spurious.
    pub spurious: Option<f64>,
    /// Mean number of retransmitted packets in the capture on the sender's side. `None` if no transfer
    /// counts.
    pub resent_packets: Option<f64>,
    /// Silence on the sender's side that ended with a retransmission.
    pub idle_seconds: Option<Mean>,
    /// A sentence for each part of a recipe whose information was missing. If it was missing in some transfers
    /// only, the sentence has their number. All successful transfers are included, even if they do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// The heading of a table whose recipes all have the same profile. `None` if the rows have to name it.
pub(crate) fn profile<'a>(profiles: impl IntoIterator<Item = Option<&'a str>>) -> Option<String> {
    let profile = shared(profiles.into_iter().flatten())?;
    Some(format!("recipes with profile {profile}"))
}

/// One sentence for each sender that is compared with `against`.
pub(super) fn verdicts(rows: &[Row], against: &str) -> String {
    let sentences = rows.iter().filter_map(|row| Some(row.against?.sentence(&row.sender, against) + "\n"));
    let sentences: Vec<_> = sentences.collect();
    let correction = match sentences.len() {
        0 | 1 => "",
        _ => "verdicts are corrected for the number of senders (Holm)\n",
    };
    sentences.concat() + correction
}

/// The notices of all senders, one line each.
pub(super) fn notices(rows: &[Row]) -> Vec<String> {
    let of =
        |row: &Row| row.notices.iter().map(|notice| format!("{}: {notice}", row.sender)).collect::<Vec<_>>();
    rows.iter().flat_map(of).collect()
}

/// Describes the invalid transfers: how many were repeated, and how many are left out. `None` if there are
/// none.
pub(super) fn invalid(transfers: &[Outcome]) -> Option<String> {
    let repeated: Vec<_> = transfers.iter().flat_map(|outcome| &outcome.repeated).collect();
    // In older files, a failed transfer may also be marked as invalid.
    let exact = transfers.iter().filter(|outcome| outcome.failure.is_none());
    let left_out: Vec<_> = exact.filter_map(|outcome| outcome.invalid.as_ref()).collect();
    let example = left_out.first().or_else(|| repeated.first())?;
    Some(format!(
        "invalid transfers, disturbed by this machine: {} repeated, {} left out; for example, {example}",
        repeated.len(),
        left_out.len()
    ))
}

/// For each sender, reports the rounds without a share or an index because the connections never all sent at
/// the same time.
pub(super) fn never_together(rows: &[Row], workload: &WorkloadRecord) -> String {
    let line = |name: &str, row: &Row, known: Option<Mean>| {
        let (known, all) =
            (known.map_or(0, |mean| mean.samples), row.kbit_per_s.map_or(0, |mean| mean.samples));
        let sender = &row.sender;
        (known < all).then(|| {
            format!(
                "{sender}: {name} from {known} of {all} rounds; in the others, not all senders were active at the same time\n"
            )
        })
    };
    let rows_if = |is_measured: bool| rows.iter().filter(move |_| is_measured);
    let shares = rows_if(!workload.competitors.is_empty());
    let shares = shares.filter_map(|row| line("share", row, row.share));
    let indices = rows_if(workload.flows > 1).filter_map(|row| line("Jain's index", row, row.fairness));
    shares.chain(indices).collect()
}

/// One row per sender, in this order. `against` is the index of the reference. The transfers of a sender are
/// in the order of the rounds. Differences up to `margin` count as no difference.
pub(super) fn rows(senders: &[Sender], against: usize, margin: f64, transfers: &[Outcome]) -> Vec<Row> {
    let of = |sender: &Sender| -> Vec<&Outcome> {
        transfers.iter().filter(|outcome| outcome.sender == sender.name).collect()
    };
    let reference = senders.get(against).map(of).unwrap_or_default();
    let rows = senders
        .iter()
        .enumerate()
        .map(|(index, sender)| row(sender, &of(sender), &reference, (index != against).then_some(margin)));
    let mut rows: Vec<Row> = rows.collect();
    verdict::correct(&mut rows.iter_mut().filter_map(|row| row.against.as_mut()).collect::<Vec<_>>());
    rows
}

/// The row of a sender. `all` and `reference` are in the order of the rounds. The row has a comparison if
/// `margin` is given.
fn row(sender: &Sender, all: &[&Outcome], reference: &[&Outcome], margin: Option<f64>) -> Row {
    let failed = all.iter().filter(|outcome| outcome.failure.is_some()).count();
    let rounds = all.iter().zip(reference).filter(|(own, other)| own.counts() && other.counts());
    let (good, others): (Vec<&Outcome>, Vec<&Outcome>) = rounds.unzip();
    let values =
        |value: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { good.iter().map(|outcome| value(outcome)).collect() };
    let mean = |value: &dyn Fn(&Outcome) -> f64| Mean::of(&values(value));
    let known = |value: &dyn Fn(&Outcome) -> Option<f64>| -> Option<Mean> {
        Mean::of(&good.iter().filter_map(|outcome| value(outcome)).collect::<Vec<_>>())
    };
    let count = |value: &dyn Fn(&RetransmissionCounts) -> u64| -> Option<f64> {
        known(&|outcome| Some(value(outcome.repair.as_ref()?) as f64)).map(|mean| mean.mean)
    };
    let goodput = values(&|outcome| outcome.kbit_per_s);
    let reference: Vec<f64> = others.iter().map(|outcome| outcome.kbit_per_s).collect();
    let median = Median::of(&goodput);
    // Disturbances, such as late packets, do not change whether information arrives.
    let succeeded = all.iter().filter(|outcome| outcome.failure.is_none());
    let notices: Vec<_> = succeeded.map(|outcome| outcome.notices()).collect();
    Row {
        sender: sender.name.clone(),
        profile: sender.profile(),
        succeeded: all.len() - failed,
        failed,
        counted: good.len(),
        kbit_per_s: Mean::of(&goodput),
        median_kbit_per_s: median.map(|it| it.median),
        median_interval: median.and_then(|it| it.interval),
        quartiles: median.map(|it| it.quartiles),
        against: margin.map(|margin| Comparison::within(margin, &goodput, &reference)),
        competitor_kbit_per_s: known(&|outcome| outcome.together.competitor_kbit_per_s),
        share: known(&|outcome| outcome.together.share),
        fairness: known(&|outcome| outcome.together.fairness),
        down_kbit_per_s: known(&|outcome| outcome.together.down_kbit_per_s),
        up_kbit_per_s: known(&|outcome| outcome.together.up_kbit_per_s),
        fast: count(&|repair| repair.fast),
        timeout: count(&|repair| repair.timeout),
        probe: count(&|repair| repair.probe),
        timeouts: count(&|repair| repair.timeouts),
        spurious: count(&|repair| repair.spurious),
        resent_packets: mean(&|outcome| outcome.capture.resent_packets as f64).map(|mean| mean.mean),
        idle_seconds: mean(&|outcome| outcome.capture.idle_seconds),
        notices: merged(notices.iter().map(Vec::as_slice), "transfers"),
    }
}

#[cfg(test)]
mod tests {
    use airlink::packet::Direction;
    use airtcp_numbers::verdict::MARGIN;

    use super::*;
    use crate::capture::Findings;
    use crate::connection::{Connection, Interaction};
    use crate::workload::{Role, Workload};

    fn connection(sender: &str, role: Role, notice: &str) -> Connection {
        Connection {
            sender: sender.to_owned(),
            role,
            direction: Direction::Down,
            port: 9000,
            bytes: 0,
            bytes_in_time: None,
            kbit_per_s: 0.0,
            bytes_together: None,
            capture: Findings::default(),
            sent: None,
            received: None,
            notices: vec![notice.to_owned()],
            difference: None,
        }
    }

    fn outcome(kbit_per_s: f64, failure: Option<&str>, invalid: Option<&str>) -> Outcome {
        Outcome {
            sender: "sack".to_owned(),
            kbit_per_s,
            failure: failure.map(str::to_owned),
            invalid: invalid.map(str::to_owned),
            ..Outcome::default()
        }
    }

    fn row_of(transfers: &[Outcome]) -> Row {
        let senders = crate::sender::resolve(&["sack".parse().unwrap()], None).unwrap();
        rows(&senders, 0, MARGIN, transfers).remove(0)
    }

    #[test]
    fn summary_is_empty_without_valid_transfer() {
        let row = row_of(&[outcome(0.0, Some("not done"), None), outcome(9.0, None, Some("late"))]);
        assert_eq!((row.resent_packets, row.fast, row.kbit_per_s), (None, None, None));
        assert_eq!((row.succeeded, row.failed), (1, 1));
        assert_eq!(row_of(&[outcome(9.0, None, None)]).resent_packets, Some(0.0));
    }

    /// The reference is disturbed in the second round, so that round counts for neither figure of the other
    /// sender: a mean over three rounds next to a gain over two would contradict each other.
    #[test]
    fn all_figures_of_row_cover_same_rounds() {
        let of = |sender: &str, kbit_per_s, invalid| Outcome {
            sender: sender.to_owned(),
            ..outcome(kbit_per_s, None, invalid)
        };
        let transfers = [
            of("sack", 100.0, None),
            of("newreno", 130.0, None),
            of("sack", 100.0, Some("late")),
            of("newreno", 900.0, None),
            of("sack", 100.0, None),
            of("newreno", 110.0, None),
        ];
        let senders = ["sack", "newreno"].map(|name| name.parse().unwrap());
        let senders = crate::sender::resolve(&senders, None).unwrap();
        let rows = rows(&senders, 0, MARGIN, &transfers);
        assert_eq!(rows[1].counted, 2);
        assert_eq!(rows[1].kbit_per_s.unwrap().mean, 120.0);
        assert_eq!(rows[1].median_kbit_per_s, Some(120.0));
        assert!((rows[1].against.unwrap().gain.unwrap().mean - 0.2).abs() < 1e-12);
        assert_eq!((rows[0].counted, rows[0].against), (2, None));
    }

    #[test]
    fn failed_transfer_is_not_counted_as_invalid() {
        let failed = outcome(9.0, Some("different bytes"), Some("late"));
        assert_eq!(invalid(std::slice::from_ref(&failed)), None);
        let line = invalid(&[failed, outcome(9.0, None, Some("dropped"))]).unwrap();
        assert!(line.contains("1 left out; for example, dropped"), "{line}");
    }

    #[test]
    fn missing_information_is_reported_for_each_sender() {
        let of = |notices: &[(Role, &str)]| {
            let connections = notices.iter().map(|(role, notice)| connection("etcp@default", *role, notice));
            Outcome { connections: connections.collect(), ..outcome(9.0, None, None) }
        };
        let (own, other) = ((Role::Tested, "no marks"), (Role::Competitor, "no marks"));
        let failed = Outcome { failure: Some("x".to_owned()), ..of(&[(Role::Tested, "no SACK")]) };
        let row = row_of(&[of(&[own, own, other]), of(&[own]), failed]);
        assert_eq!(row.notices, ["no marks", "competitor etcp@default: no marks (1 of 2 transfers)"]);
        assert_eq!(
            notices(&[row, row_of(&[outcome(9.0, None, None)])]),
            ["sack: no marks", "sack: competitor etcp@default: no marks (1 of 2 transfers)"]
        );
    }

    #[test]
    fn disturbed_transfer_still_reports_missing_information() {
        let connections = vec![connection("etcp@default", Role::Tested, "no marks")];
        let row = row_of(&[Outcome { connections, ..outcome(9.0, None, Some("late")) }]);
        assert_eq!((row.counted, row.notices), (0, vec!["no marks".to_owned()]));
    }

    #[test]
    fn rounds_without_share_are_reported() {
        let shares = |share| Outcome {
            together: Interaction { share, fairness: Some(0.5), ..Interaction::default() },
            ..outcome(9.0, None, None)
        };
        let row =
            row_of(&[shares(Some(0.5)), shares(None), shares(Some(0.6)), outcome(9.0, Some("x"), None)]);
        let other = row_of(&[shares(Some(0.5))]);
        let workload = |competitors: &[&str], flows| WorkloadRecord {
            competitors: competitors.iter().map(|name| (*name).to_owned()).collect(),
            flows,
            ..Workload::plain(1).record()
        };
        let rows = [row, other];
        assert_eq!(
            never_together(&rows, &workload(&["linux:cubic"], 1)),
            "sack: share from 2 of 3 rounds; in the others, not all senders were active at the same time\n"
        );
        assert_eq!(never_together(&rows, &workload(&[], 1)), "", "the lab has no competitor");
        assert_eq!(
            never_together(&rows, &workload(&[], 2)),
            "",
            "all connections sent together in each round"
        );
        let none = [row_of(&[outcome(9.0, None, None)])];
        assert!(
            never_together(&none, &workload(&[], 2)).starts_with("sack: Jain's index from 0 of 1 rounds")
        );
    }
}
