//! Information that parts of a recipe need from outside the sender ([`Need`]): from the peer, from base
//! stations, or from the path.
//!
//! A part whose information never arrives works like the default answer to its question, so a measurement
//! would really measure the default. [`Recipe::notices`] reports this in all outputs after a run. Before a
//! run, it reports what the path and the receiver are known to lack.

use airwire::marks::RadioPath;

use super::catalogue::{self, Need, Row};
use super::{Handshake, Recipe};

/// The kinds of information that have arrived on a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Inputs {
    /// Before the end of the handshake, nothing is missing.
    is_established: bool,
    /// One bit per [`Need`].
    arrived: u8,
}

/// The reason why a kind of information is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lack {
    /// The information cannot arrive, for this reason. This is known before the run.
    Foreseen(&'static str),
    /// The information has not arrived. This is known after the run.
    Observed,
    /// The information has not arrived, for this reason. This is known after a run over a known path.
    Explained(&'static str),
}

impl Inputs {
    pub(super) fn establish(&mut self, handshake: &Handshake) {
        self.is_established = true;
        let agreed = [
            (Need::Sack, handshake.sack),
            (Need::Timestamps, handshake.timestamps),
            (Need::Ecn, handshake.ecn),
            (Need::TransitMarks, RadioPath::announced(handshake.peer_flags.0).is_some()),
        ];
        for (need, _) in agreed.into_iter().filter(|(_, is_agreed)| *is_agreed) {
            self.note(need);
        }
    }

    pub(super) fn note(&mut self, need: Need) {
        self.arrived |= 1 << need as u8;
    }

    /// Returns whether information of this kind is missing.
    pub fn lacks(self, need: Need) -> Option<Lack> {
        let has_arrived = self.arrived & (1 << need as u8) != 0;
        (self.is_established && !has_arrived).then_some(Lack::Observed)
    }
}

impl Recipe {
    /// Returns a sentence for each part whose information is missing. `lacks` returns the reason why a kind
    /// of information is missing.
    pub fn notices(&self, lacks: impl Fn(Need) -> Option<Lack>) -> Vec<String> {
        let is_replaced = |need: Need| self.parts().any(|(row, _)| row.replaces.contains(&need));
        let notice = |(row, _): (&'static Row, Option<f64>)| {
            let mut needs = row.needs.iter().copied().filter(|need| !is_replaced(*need));
            needs.find_map(|need| Some(sentence(row, need, lacks(need)?)))
        };
        self.parts().filter_map(notice).collect()
    }
}

fn sentence(row: &Row, need: Need, lack: Lack) -> String {
    let name = row.name;
    let (are, signals) = match need {
        Need::Sack | Need::Ecn => ("was", need.name()),
        Need::Timestamps => ("were", need.name()),
        Need::Dsack => ("", "D-SACK reports"),
        Need::EcnMarks | Need::TransitMarks | Need::LossReports => ("", need.name()),
        Need::Truth => ("", "ground truth"),
    };
    let missing = match (lack, are) {
        (Lack::Foreseen(why), "") => format!("no {signals} will arrive: {why}"),
        (Lack::Foreseen(why), _) => format!("{signals} will not be negotiated: {why}"),
        (Lack::Explained(why), "") => format!("0 {signals} received: {why}"),
        (Lack::Explained(why), _) => format!("{signals} {are} not negotiated: {why}"),
        (Lack::Observed, "") if need == Need::EcnMarks => {
            format!("0 {signals} received: no queue of the path sets them, or none was congested")
        }
        (Lack::Observed, "") if need == Need::Truth => format!("no {signals} received"),
        (Lack::Observed, "") => format!("0 {signals} received"),
        (Lack::Observed, are) => format!("{signals} {are} not negotiated"),
    };
    // Without reports, `rebate` still compensates for reordering, and therefore is not the same as `aimd`.
    let default = catalogue::default_answer(row.question());
    match default.filter(|_| row.is_answer() && need != Need::LossReports) {
        Some(default) => format!("{name}: {missing}; it works like `{}`", default.name),
        None => format!("{name}: {missing}"),
    }
}

/// Merges the notices of several runs: each notice once, and in how many runs it occurs unless it occurs in
/// all. `unit` is the word for these runs in the plural.
pub fn merged<'a>(runs: impl IntoIterator<Item = &'a [String]>, unit: &str) -> Vec<String> {
    let mut all = 0;
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for notices in runs {
        all += 1;
        for notice in notices {
            match counted.iter_mut().find(|(known, _)| *known == notice.as_str()) {
                Some((_, count)) => *count += 1,
                None => counted.push((notice.as_str(), 1)),
            }
        }
    }
    let said = |(notice, count): (&str, usize)| match count == all {
        true => notice.to_owned(),
        false => format!("{notice} ({count} of {all} {unit})"),
    };
    counted.into_iter().map(said).collect()
}

/// Removes the notices that do not occur in another run. `common` is `None` before the first run.
pub fn keep_common(common: &mut Option<Vec<String>>, run: &[String]) {
    match common {
        Some(common) => common.retain(|notice| run.contains(notice)),
        None => *common = Some(run.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use airwire::marks::DB;
    use airwire::segment::Flags;
    use airwire::time::Duration;

    use super::*;
    use crate::profile::Profile;
    use crate::recovery::testing::{BareSender, SMSS};
    use crate::recovery::{Ack, Truth};

    const AGREED: Handshake = Handshake {
        sack: true,
        scoreboard: true,
        timestamps: true,
        ecn: true,
        peer_flags: Flags(DB),
        syn_was_lost: false,
        mistakes_reordering: false,
    };

    fn sender(recipe: &str, handshake: Handshake) -> BareSender {
        let sender = BareSender::with(recipe, Profile::default(), &handshake);
        sender.under_way(10.0, 8.0, Duration::from_millis(100))
    }

    fn notices(recipe: &str, sender: &BareSender) -> Vec<String> {
        let inputs = sender.recovery.inputs();
        recipe.parse::<Recipe>().unwrap().notices(|need| inputs.lacks(need))
    }

    #[test]
    fn sack_not_negotiated_is_noticed() {
        let without = BareSender::without_sack("sack+rack", Profile::default());
        let expected = ["sack: SACK was not negotiated; it works like `newreno`"];
        assert_eq!(notices("sack+rack", &without), expected);
        assert_eq!(notices("sack+rack", &sender("sack+rack", AGREED)), [""; 0]);
    }

    #[test]
    fn timestamps_not_negotiated_are_noticed() {
        let without = sender("newreno+eifel", Handshake { timestamps: false, ..AGREED });
        let expected = ["eifel: timestamps were not negotiated; it works like `never`"];
        assert_eq!(notices("newreno+eifel", &without), expected);
        assert_eq!(notices("newreno+eifel", &sender("newreno+eifel", AGREED)), [""; 0]);
    }

    #[test]
    fn missing_dsack_reports_are_noticed_after_retransmission() {
        let recipe = "sack+dsack";
        let mut sender = sender(recipe, AGREED);
        assert_eq!(notices(recipe, &sender), [""; 0], "there is nothing to report yet");
        sender.sack(&[2..3]);
        sender.sack(&[2..4]);
        sender.sack(&[5..6, 2..4]);
        assert_eq!(sender.counters().resent(), 1);
        let expected = ["dsack: 0 D-SACK reports received; it works like `never`"];
        assert_eq!(notices(recipe, &sender), expected);
        sender.receive(Ack { dsack: Some((0, SMSS)), ..Ack::default() }, 6, &[]);
        assert_eq!(notices(recipe, &sender), [""; 0]);
        // Without SACK there is no D-SACK either, and one sentence is enough.
        let without = BareSender::without_sack(recipe, Profile::default());
        assert_eq!(
            notices(recipe, &without),
            [
                "sack: SACK was not negotiated; it works like `newreno`",
                "dsack: SACK was not negotiated; it works like `never`"
            ]
        );
    }

    #[test]
    fn ecn_without_negotiation_or_marks_is_noticed() {
        let recipe = "newreno+ecn";
        let without = sender(recipe, Handshake { ecn: false, ..AGREED });
        assert_eq!(notices(recipe, &without), ["ecn: ECN was not negotiated"]);
        let mut sender = sender(recipe, AGREED);
        let missing = "ecn: 0 ECN marks received: no queue of the path sets them, or none was congested";
        assert_eq!(notices(recipe, &sender), [missing]);
        sender.receive(Ack { ece: true, ..Ack::default() }, 1, &[]);
        assert_eq!(notices(recipe, &sender), [""; 0]);
    }

    #[test]
    fn path_without_marking_base_station_is_noticed() {
        for recipe in ["etcp", "sack+early-marks"] {
            let without = sender(recipe, Handshake { peer_flags: Flags::default(), ..AGREED });
            let expected = ["transit-marks: 0 transit marks received; it works like `always-congestion`"];
            assert_eq!(notices(recipe, &without), expected, "{recipe}");
            assert_eq!(notices(recipe, &sender(recipe, AGREED)), [""; 0], "{recipe}");
        }
    }

    #[test]
    fn loss_reports_are_not_needed_with_tax() {
        let mut sender = sender("newreno+rebate", AGREED);
        assert_eq!(notices("newreno+rebate", &sender), ["rebate: 0 loss-rate reports received"]);
        assert_eq!(notices("newreno+rebate+tax=0.02", &sender), [""; 0]);
        sender.receive(Ack { loss_report: Some(0.1), ..Ack::default() }, 1, &[]);
        assert_eq!(notices("newreno+rebate", &sender), [""; 0]);
    }

    #[test]
    fn missing_ground_truth_is_noticed() {
        let mut sender = sender("newreno+oracle", AGREED);
        let expected = ["oracle: no ground truth received; it works like `always-congestion`"];
        assert_eq!(notices("newreno+oracle", &sender), expected);
        sender.recovery.on_truth(Truth::Begins);
        assert_eq!(notices("newreno+oracle", &sender), [""; 0]);
    }

    #[test]
    fn nothing_is_missing_before_handshake() {
        for need in Need::ALL {
            assert_eq!(Inputs::default().lacks(need), None, "{need:?}");
        }
    }

    #[test]
    fn foreseen_lack_is_noticed_with_its_reason() {
        let foreseen = |recipe: &str, missing: Need| {
            let recipe: Recipe = recipe.parse().unwrap();
            recipe.notices(|need| (need == missing).then_some(Lack::Foreseen("a reason")))
        };
        for (recipe, need, expected) in [
            ("sack", Need::Sack, "sack: SACK will not be negotiated: a reason; it works like `newreno`"),
            (
                "sack+rr",
                Need::Dsack,
                "rr: no D-SACK reports will arrive: a reason; it works like `three-dupacks`",
            ),
            (
                "eifel",
                Need::Timestamps,
                "eifel: timestamps will not be negotiated: a reason; it works like `never`",
            ),
            ("ecn", Need::Ecn, "ecn: ECN will not be negotiated: a reason"),
            ("ecn", Need::EcnMarks, "ecn: no ECN marks will arrive: a reason"),
            (
                "etcp",
                Need::TransitMarks,
                "transit-marks: no transit marks will arrive: a reason; it works like `always-congestion`",
            ),
            ("rebate", Need::LossReports, "rebate: no loss-rate reports will arrive: a reason"),
            (
                "oracle",
                Need::Truth,
                "oracle: no ground truth will arrive: a reason; it works like `always-congestion`",
            ),
        ] {
            assert_eq!(foreseen(recipe, need), [expected]);
            assert_eq!(foreseen("newreno", need), [""; 0]);
        }
    }

    #[test]
    fn common_notices_occur_in_every_run() {
        let mut common = None;
        for run in [&["a", "b"][..], &["b", "a"], &["c", "b"]] {
            keep_common(&mut common, &run.iter().map(|notice| (*notice).to_owned()).collect::<Vec<_>>());
        }
        assert_eq!(common, Some(vec!["b".to_owned()]));
    }

    #[test]
    fn merged_notices_count_their_runs() {
        let runs = [vec!["a".to_owned(), "b".to_owned()], vec!["b".to_owned()]];
        assert_eq!(merged(runs.iter().map(Vec::as_slice), "runs"), ["a (1 of 2 runs)", "b"]);
        assert_eq!(merged([], "runs"), [""; 0]);
    }
}
