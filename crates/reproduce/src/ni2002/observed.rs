//! Round-trip times before losses, and how well they separate congestion losses from radio losses.
//!
//! The paper judges this visually. Here it is a number, the separation: the share of all pairs of a
//! congestion loss and a radio loss of one run in which the round-trip time before the congestion loss is
//! longer. This is the Mann-Whitney statistic, or the area under the ROC curve. It needs no threshold. It is
//! 1 for perfect separation and 0.5 for a random guess.

use airtcp::recovery::What;
use airtcp_numbers::statistics::average;
use airtcp_sim::world::{Losses, Watch, World, WorldError};
use airwire::Cause;
use airwire::time::Instant;
use serde::Serialize;

use super::round_trips::{RoundTrip, as_defined, rtts_before_losses, superiority, undisturbed};
use super::setting::{Place, Setting, Variant, any, not, percent};
use crate::judge::SIMILAR;
use crate::{Effort, Found, Judged, Table, cell, column, mean};

/// The times at which the retransmission timer expired.
pub(super) fn timeouts(world: &mut World) -> Vec<Instant> {
    let timeouts = world.decisions(0).iter().filter(|decision| matches!(decision.what, What::Timeout { .. }));
    timeouts.map(|decision| decision.at).collect()
}

/// The measurements of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Observed {
    #[serde(rename = "minimum RTT, ms")]
    least_ms: f64,
    #[serde(rename = "mean RTT, multiples of the minimum")]
    pub(super) mean: f64,
    #[serde(rename = "95th percentile, multiples of the minimum")]
    p95: f64,
    #[serde(rename = "before congestion losses, multiples of the minimum")]
    before_congestion: Option<f64>,
    #[serde(rename = "before radio losses, multiples of the minimum")]
    pub(super) before_radio: Option<f64>,
    #[serde(rename = "separation by RTT")]
    by_rtt: Option<f64>,
    #[serde(rename = "separation by change")]
    by_change: Option<f64>,
    /// The shares of the congestion losses before which the RTT rises, falls and is constant.
    #[serde(rename = "shares of rising, falling and constant RTT")]
    trends: Option<[f64; 3]>,
    #[serde(rename = "congestion losses")]
    pub(super) congestion: f64,
    #[serde(rename = "radio losses")]
    radio: f64,
}

impl Observed {
    fn of(round_trips: &[RoundTrip], losses: &Losses) -> Option<Self> {
        let mut all: Vec<_> = round_trips.iter().map(|round_trip| round_trip.rtt.as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        let least = *all.first()?;
        let before = rtts_before_losses(round_trips, losses, least);
        let with_cause = |cause: Cause| before.iter().filter(move |before| before.cause == cause);
        let rtts = |cause| with_cause(cause).map(|before| before.rtt).collect::<Vec<_>>();
        let changes = |cause| with_cause(cause).filter_map(|before| before.change).collect::<Vec<_>>();
        let (congestion, radio) = (rtts(Cause::Congestion), rtts(Cause::Radio));
        let at_congestion = changes(Cause::Congestion);
        let share = |is: fn(f64) -> bool| {
            at_congestion.iter().filter(|change| is(**change)).count() as f64 / at_congestion.len() as f64
        };
        Some(Self {
            least_ms: 1e3 * least,
            mean: average(&all)? / least,
            p95: all[(all.len() - 1) * 95 / 100] / least,
            before_congestion: average(&congestion),
            before_radio: average(&radio),
            by_rtt: superiority(&congestion, &radio),
            by_change: superiority(&at_congestion, &changes(Cause::Radio)),
            trends: (!at_congestion.is_empty())
                .then(|| [share(|c| c > SIMILAR), share(|c| c < -SIMILAR), share(|c| c.abs() <= SIMILAR)]),
            congestion: losses.count(Cause::Congestion) as f64,
            radio: losses.count(Cause::Radio) as f64,
        })
    }
}

/// One run, with RTTs as defined in §3.1 (`text`) and of undisturbed segments (`own`).
#[derive(Clone, Serialize)]
struct BothDefinitions {
    #[serde(rename = "as in §3.1")]
    text: Observed,
    #[serde(rename = "undisturbed segments")]
    own: Observed,
}

/// The runs of one place, with both kinds of RTTs as in [`BothDefinitions`].
pub(super) struct PlaceRuns {
    pub(super) name: String,
    pub(super) text: Vec<Observed>,
    pub(super) own: Vec<Observed>,
}

pub(super) fn watch(
    effort: &Effort,
    places: &[(String, Place, Variant)],
) -> Result<Vec<PlaceRuns>, WorldError> {
    let setting = |(_, place, variant): &(String, Place, Variant)| {
        Ok(Setting { watch: Watch::Packets, ..Setting::new(place, variant.recipe())? })
    };
    let settings = places.iter().map(setting).collect::<Result<Vec<_>, WorldError>>()?;
    let samples = effort.watch(
        &settings,
        |setting, seed| setting.run(seed),
        |_, _, world| {
            let timeouts = timeouts(world);
            let (packets, losses) = (world.device_packets(0), world.losses(0));
            let observe = |round_trips: &[RoundTrip]| Observed::of(round_trips, losses).unwrap_or_default();
            BothDefinitions {
                text: observe(&as_defined(packets, &timeouts)),
                own: observe(&undisturbed(packets)),
            }
        },
    )?;
    let place_runs = |((name, ..), runs): (&(String, Place, Variant), Vec<BothDefinitions>)| {
        let (text, own) = runs.into_iter().map(|BothDefinitions { text, own }| (text, own)).unzip();
        PlaceRuns { name: name.clone(), text, own }
    };
    Ok(places.iter().zip(samples).map(place_runs).collect())
}

/// The values of the runs that have one.
pub(super) fn known(runs: &[Observed], value: impl Fn(&Observed) -> Option<f64>) -> Vec<f64> {
    runs.iter().filter_map(value).collect()
}

fn table(title: &str, places: &[PlaceRuns], runs: impl Fn(&PlaceRuns) -> &[Observed] + Copy) -> Table {
    let of = |heading: &str, digits: usize, value: fn(&Observed) -> Option<f64>| {
        column(heading, move |place: &&PlaceRuns| cell(&known(runs(place), value), digits))
    };
    Table::of(
        title,
        [
            column("path", |place: &&PlaceRuns| place.name.clone()),
            of("minimum RTT, ms", 0, |run| Some(run.least_ms)),
            of("mean", 2, |run| Some(run.mean)),
            of("95th percentile", 2, |run| Some(run.p95)),
            of("before radio losses", 2, |run| run.before_radio),
            of("before congestion losses", 2, |run| run.before_congestion),
            of("separation by RTT", 2, |run| run.by_rtt),
            of("separation by change", 2, |run| run.by_change),
            of("radio losses", 0, |run| Some(run.radio)),
            of("congestion losses", 0, |run| Some(run.congestion)),
        ],
        places,
    )
}

pub(super) fn tables(places: &[PlaceRuns]) -> Vec<Table> {
    vec![
        table(
            "RTTs as defined in §3.1, in multiples of the minimum RTT; losses per run of 400 s",
            places,
            |place| &place.text,
        ),
        table("The same for segments that were sent once and arrived in order", places, |place| &place.own),
    ]
}

/// The share by which round-trip times before losses of one cause exceed the mean.
fn rise(runs: &[Observed], before: impl Fn(&Observed) -> Option<f64>) -> Vec<f64> {
    known(runs, |run| Some(before(run)? / run.mean - 1.0))
}

pub(super) fn increase_before_congestion(runs: &[Observed]) -> Found {
    let rise = rise(runs, |run| run.before_congestion);
    let shown = format!("RTT {} % above the mean before congestion losses", percent(&rise, 0));
    (shown, Judged::considerably(&mean(&rise)))
}

/// Judges the share by which the mean round-trip time exceeds the minimum. The mean is over all round-trip
/// times. The times before radio losses would have the same mean, because random losses do not depend on the
/// round-trip time.
pub(super) fn increase_over_minimum(runs: &[Observed]) -> Found {
    let rise = known(runs, |run| Some(run.mean - 1.0));
    let shown = format!("mean RTT {} % above the minimum", percent(&rise, 0));
    (shown, Judged::considerably(&mean(&rise)))
}

/// The share by which each separation exceeds a random guess.
fn over_random_guess(shares: &[f64]) -> Vec<f64> {
    shares.iter().map(|share| share / 0.5 - 1.0).collect()
}

/// Whether the RTT or its change distinguishes the causes.
pub(super) fn possible(runs: &[Observed]) -> Found {
    let (rtt, change) = (known(runs, |run| run.by_rtt), known(runs, |run| run.by_change));
    let verdicts = [&rtt, &change].map(|shares| Judged::considerably(&mean(&over_random_guess(shares))));
    (format!("separation by RTT {}, by its change {}", cell(&rtt, 2), cell(&change, 2)), any(verdicts))
}

/// Whether the RTT or its change separates the causes almost perfectly.
pub(super) fn easy(runs: &[Observed]) -> Found {
    let separations = [known(runs, |run| run.by_rtt), known(runs, |run| run.by_change)];
    let below_one = separations.map(|shares| shares.iter().map(|share| share - 1.0).collect::<Vec<_>>());
    (possible(runs).0, any(below_one.iter().map(|distances| Judged::similar(&mean(distances)))))
}

/// "both increase, decrease and constant" (§4.2.2): each of the three precedes more than 10 % of the congestion losses.
pub(super) fn all_three(runs: &[Observed]) -> Found {
    let trend = |i: usize| known(runs, |run| run.trends.map(|trends| trends[i]));
    let [rises, falls, constant] = [0, 1, 2].map(trend);
    let judged = [&rises, &falls, &constant].map(|share| Judged::between(&mean(share), SIMILAR, 1.0));
    let shown = format!(
        "RTT rises before {} %, falls before {} % and is constant before {} % of the congestion losses",
        percent(&rises, 0),
        percent(&falls, 0),
        percent(&constant, 0)
    );
    (shown, Judged::all(judged))
}

/// The verdict on the negation of a sentence. The text of the result stays the same.
pub(super) fn negated((shown, judged): Found) -> Found {
    (shown, not(judged))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run with these separations.
    fn with_separations(by_rtt: f64, by_change: f64) -> Observed {
        Observed { by_rtt: Some(by_rtt), by_change: Some(by_change), ..Observed::default() }
    }

    #[test]
    fn one_separating_measure_is_enough() {
        let runs = |rtt, change| [-0.01, 0.0, 0.01].map(|off| with_separations(rtt + off, change + off));
        assert_eq!(possible(&runs(0.5, 0.8)).1, Judged::Holds);
        assert_eq!(possible(&runs(0.5, 0.5)).1, Judged::DoesNotHold);
        assert_eq!(easy(&runs(0.8, 0.8)).1, Judged::DoesNotHold, "possible, but not easy");
        assert_eq!(easy(&runs(0.95, 0.8)).1, Judged::Holds);
    }
}
