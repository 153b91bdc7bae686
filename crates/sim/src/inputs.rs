//! The information that a path and its receivers supply to senders, determined before a run.

use airlink::packet::Direction;
use airlink::scenario::{Scenario, StageConfig};
use airlink::stages::station::StationConfig;
use airtcp::profile::Profile;
use airtcp::recovery::catalogue::Need;
use airtcp::recovery::{Inputs, Lack, Recipe};

/// The features of receivers that senders use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceiverFeatures {
    /// Receivers accept SACK (RFC 2018).
    pub sack: bool,
    /// Receivers report duplicate data (RFC 2883).
    pub dsack: bool,
    /// Receivers accept timestamps (RFC 7323).
    pub timestamps: bool,
    /// Receivers accept ECN (RFC 3168).
    pub ecn: bool,
}

impl ReceiverFeatures {
    /// Receivers with all features. Receivers with unknown features count as such.
    pub const ALL: Self = Self { sack: true, dsack: true, timestamps: true, ecn: true };

    /// Returns the features of receivers with this profile and the options of this recipe.
    pub fn of(profile: &Profile, options: &Recipe) -> Self {
        let tuned = options.tune(profile);
        Self {
            sack: tuned.handshake.sack.is_offered(options.wants_sack()),
            dsack: tuned.acks.dsack,
            timestamps: tuned.handshake.timestamps,
            ecn: tuned.handshake.ecn || tuned.handshake.ecn_passive,
        }
    }
}

/// Returns a warning for each part of the recipe whose information cannot arrive at a sender: over
/// this path, with data in these directions, and from these receivers.
pub fn notices(
    scenario: &Scenario,
    directions: &[Direction],
    receivers: ReceiverFeatures,
    recipe: &Recipe,
) -> Vec<String> {
    let notices = recipe.notices(|need| lacks(scenario, directions, receivers, need).map(Lack::Foreseen));
    notices.into_iter().map(|notice| format!("{recipe}: {notice}")).collect()
}

/// Returns a notice for each part of the recipe whose information has not arrived in a run over this
/// path. `inputs` is what has arrived at a sender with data in this direction.
///
/// ECN marks are missing only if no queue sets them. Otherwise, no queue was congested.
pub fn observed(scenario: &Scenario, direction: Direction, inputs: Inputs, recipe: &Recipe) -> Vec<String> {
    recipe.notices(|need| {
        let lack = inputs.lacks(need)?;
        match need {
            Need::EcnMarks => lacks(scenario, &[direction], ReceiverFeatures::ALL, need).map(Lack::Explained),
            _ => Some(lack),
        }
    })
}

fn lacks(
    scenario: &Scenario,
    directions: &[Direction],
    receivers: ReceiverFeatures,
    need: Need,
) -> Option<&'static str> {
    let stations = || {
        scenario.stages.iter().filter_map(|stage| match &stage.config {
            StageConfig::Station(station) => Some(station),
            _ => None,
        })
    };
    let has_station = |has: fn(&StationConfig) -> bool| stations().any(has);
    let marks = || directions.iter().any(|direction| scenario.marks_ecn(*direction));
    let (is_supplied, why) = match need {
        Need::Sack => (receivers.sack, "the receiver does not accept it"),
        Need::Timestamps => (receivers.timestamps, "the receiver does not accept them"),
        Need::Ecn => (receivers.ecn, "the receiver does not accept it"),
        Need::Dsack => (receivers.dsack, "the receiver does not report duplicates"),
        Need::EcnMarks => (marks(), "no queue on the way of the data has `ecn = true`"),
        Need::TransitMarks => (
            has_station(|station| station.transit_marks),
            "no `station` of the path has `transit_marks = true`",
        ),
        Need::LossReports => {
            (has_station(|station| station.loss_report), "no `station` of the path has `loss_report = true`")
        }
        // Virtual time supplies the ground truth, and real time refuses recipes that need it.
        Need::Truth => return None,
    };
    (!is_supplied).then_some(why)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: &str = "schema = 1\n[[stage]]\nkind = \"link\"\nboth.rate = \"1Mbit\"\n";

    fn warnings(more: &str, receivers: ReceiverFeatures, recipe: &str) -> Vec<String> {
        let scenario = Scenario::parse(&format!("{LINK}{more}"), "test").unwrap();
        notices(&scenario, &[Direction::Down], receivers, &recipe.parse().unwrap())
    }

    #[test]
    fn path_without_what_recipe_needs_is_reported() {
        let station = |setting: &str| format!("[[stage]]\nkind = \"station\"\n{setting}\n");
        let codel = |direction: &str| {
            format!(
                "[[stage]]\nkind = \"link\"\n{direction} = {{ rate = \"1Mbit\", queue = {{ discipline = \"codel\", ecn = true }} }}\n"
            )
        };
        for (recipe, supplied, other, expected) in [
            (
                "etcp",
                station("transit_marks = true"),
                station("loss_report = true"),
                "etcp: transit-marks: no transit marks will arrive: no `station` of the path has `transit_marks = true`; \
                 it works like `always-congestion`",
            ),
            (
                "sack+rebate",
                station("loss_report = true"),
                station("transit_marks = true"),
                "sack+rebate: rebate: no loss-rate reports will arrive: no `station` of the path has `loss_report = true`",
            ),
            (
                "newreno+ecn",
                codel("down"),
                codel("up"),
                "newreno+ecn: ecn: no ECN marks will arrive: no queue on the way of the data has `ecn = true`",
            ),
        ] {
            assert_eq!(warnings(&supplied, ReceiverFeatures::ALL, recipe), [""; 0], "{recipe}");
            for path in ["", &other] {
                assert_eq!(warnings(path, ReceiverFeatures::ALL, recipe), [expected]);
            }
        }
    }

    #[test]
    fn receiver_without_what_recipe_needs_is_reported() {
        let linux = |options: &str| ReceiverFeatures::of(&Profile::linux(), &options.parse().unwrap());
        assert_eq!(linux("no-delack"), ReceiverFeatures::ALL);
        let without_both = ReceiverFeatures { sack: false, timestamps: false, ..ReceiverFeatures::ALL };
        assert_eq!(linux("no-sack+no-timestamps"), without_both);
        let default = ReceiverFeatures::of(&Profile::default(), &Recipe::default());
        assert_eq!(default, ReceiverFeatures { sack: false, ecn: false, ..ReceiverFeatures::ALL });
        let bare = ReceiverFeatures { sack: false, dsack: false, timestamps: false, ecn: false };
        let of = |recipe: &str| warnings("", bare, recipe);
        assert_eq!(
            of("sack+eifel"),
            [
                "sack+eifel: sack: SACK will not be negotiated: the receiver does not accept it; it works like `newreno`",
                "sack+eifel: eifel: timestamps will not be negotiated: the receiver does not accept them; it works like \
                 `never`"
            ]
        );
        assert_eq!(of("ecn"), ["ecn: ecn: ECN will not be negotiated: the receiver does not accept it"]);
        assert_eq!(
            warnings("", ReceiverFeatures { dsack: false, ..ReceiverFeatures::ALL }, "sack+dsack"),
            [
                "sack+dsack: dsack: no D-SACK reports will arrive: the receiver does not report duplicates; it works like \
                 `never`"
            ]
        );
        assert_eq!(of("newreno+oracle"), [""; 0]);
    }
}
