//! The list of all transfers as comma-separated values.

use airtcp_numbers::csv::record;

use crate::sender::RetransmissionCounts;
use crate::transfer::Outcome;

/// Formats one line per transfer, round by round.
pub(crate) fn transfers_csv(senders: usize, transfers: &[Outcome]) -> String {
    let headings = [
        "round",
        "sender",
        "profile",
        "receiver",
        "seed",
        "counts",
        "bytes",
        "kbit/s",
        "seconds",
        "data packets",
        "retransmitted packets",
        "retransmissions: fast",
        "retransmissions: timeout",
        "retransmissions: probe",
        "timeouts",
        "spurious timeouts",
        "idle s",
        "repetitions",
        "reason",
    ];
    let mut lines = vec![headings.map(str::to_owned).to_vec()];
    for (at, outcome) in transfers.iter().enumerate() {
        let Outcome { sender, receiver, seed, bytes, kbit_per_s, capture, repair, .. } = outcome;
        let counted = |value: fn(&RetransmissionCounts) -> u64| {
            repair.as_ref().map_or_else(String::new, |it| value(it).to_string())
        };
        let reason = outcome.failure.as_ref().or(outcome.invalid.as_ref());
        lines.push(vec![
            (at / senders.max(1) + 1).to_string(),
            sender.clone(),
            outcome.profile.clone().unwrap_or_default(),
            receiver.clone(),
            seed.to_string(),
            outcome.counts().to_string(),
            bytes.to_string(),
            exact(*kbit_per_s, 4),
            exact(capture.seconds, 6),
            capture.data_packets.to_string(),
            capture.resent_packets.to_string(),
            counted(|it| it.fast),
            counted(|it| it.timeout),
            counted(|it| it.probe),
            counted(|it| it.timeouts),
            counted(|it| it.spurious),
            exact(capture.idle_seconds, 6),
            outcome.repeated.len().to_string(),
            reason.cloned().unwrap_or_default(),
        ]);
    }
    lines.iter().map(record).collect()
}

/// Formats a number with at most this number of decimal places, and without trailing zeros.
pub(super) fn exact(number: f64, digits: usize) -> String {
    let text = format!("{number:.digits$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_listed_with_round_and_reason() {
        let outcome = |sender: &str, invalid: Option<&str>| Outcome {
            sender: sender.to_owned(),
            receiver: "linux".to_owned(),
            seed: 7,
            kbit_per_s: 12.5,
            invalid: invalid.map(str::to_owned),
            repair: invalid
                .is_none()
                .then(|| RetransmissionCounts { timeouts: 2, ..RetransmissionCounts::default() }),
            ..Outcome::default()
        };
        let text =
            transfers_csv(2, &[outcome("a", None), outcome("b", None), outcome("a", Some("late, twice"))]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[1], "1,a,,linux,7,true,0,12.5,0,0,0,0,0,0,2,0,0,0,");
        assert_eq!(lines[3], "2,a,,linux,7,false,0,12.5,0,0,0,,,,,,0,0,\"late, twice\"");
        assert!(lines.iter().take(3).all(|line| line.matches(',').count() == 18));
    }
}
