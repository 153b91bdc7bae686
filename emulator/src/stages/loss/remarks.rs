//! Properties of a channel that its settings do not show directly.

use airwire::units::Probability;

use super::{Affects, LossConfig, Model, Step};

/// Minimum average number of consecutive losses for a warning. A sender that waits for its timer after each
/// of five losses has doubled it five times, so its last timeout is 32 times as long as the first.
const STALLING_RUN: f64 = 5.0;

impl LossConfig {
    /// Returns the averages of a Gilbert–Elliott or fading channel, and a note on channels that step with
    /// each packet. Empty for other models.
    pub fn remarks(&self) -> Vec<String> {
        let step = self.step.unwrap_or_default();
        let mut remarks = Vec::new();
        if let Some([good, bad, alpha, beta]) = self.two_states() {
            let (mean, duration) = ((good * beta + bad * alpha) / (alpha + beta), 1.0 / beta);
            if mean.is_finite() && duration.is_finite() {
                let duration = match step {
                    Step::Packet => format!("{duration:.1} packets"),
                    Step::Every(time) => format!("{:.3} s", duration * time.as_secs_f64()),
                };
                let kind = match self.affects {
                    Affects::All => "packets",
                    Affects::Data => "packets with data",
                    Affects::Acks => "ACKs without data",
                };
                remarks.push(format!(
                    "{:.2} % of the {kind} are lost on average; the bad state lasts {duration} on average",
                    100.0 * mean
                ));
            }
            if self.mean.is_some() {
                remarks.push(format!(
                    "equivalent to good = 0, bad = 1, good_to_bad = {alpha:.6}, bad_to_good = {beta:.6}"
                ));
            }
        }
        if let Some(fading) = self.fading() {
            remarks.push(fading.remark("packets"));
        }
        if matches!(self.model, Model::GilbertElliott | Model::Markov) && step == Step::Packet {
            remarks.push(
                "the state changes only when packets arrive: while no packet arrives, a burst of losses does not end \
                 (step = \"10ms\" makes it change with time)"
                    .to_owned(),
            );
        }
        remarks
    }

    /// Returns a warning if the channel may stall a run unintentionally. This happens if its state changes
    /// only with packets and one state loses long runs of packets, so that senders wait for their timers.
    /// Each timeout then advances the state by only one step.
    pub fn warning(&self) -> Option<String> {
        if self.step.unwrap_or_default() != Step::Packet {
            return None;
        }
        let (name, run) = self
            .states_by_loss()
            .into_iter()
            .map(|(name, loss, leaves)| (name, 1.0 / (1.0 - loss * (1.0 - leaves)).max(0.0)))
            .filter(|(_, run)| *run >= STALLING_RUN * (1.0 - 1e-9))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let run =
            if run.is_finite() { format!("{run:.0} packets in a row") } else { "all packets".to_owned() };
        Some(format!(
            "in the state \"{name}\" {run} are lost on average, and the state changes only when packets arrive: a \
             sender that waits for its timer meets the same state again, and can stall for minutes (step = \"10ms\" makes \
             the state change with time)"
        ))
    }

    /// Returns whether the channel never damages a packet.
    pub(super) fn loses_nothing(&self) -> bool {
        let is_zero = |rate: Option<Probability>| rate.is_none_or(|rate| rate == Probability::ZERO);
        match self.model {
            Model::None => true,
            Model::Uniform => is_zero(self.per),
            Model::BitErrors => is_zero(self.ber),
            Model::GilbertElliott => self
                .two_states()
                .is_some_and(|[good, bad, alpha, _]| good == 0.0 && (bad == 0.0 || alpha == 0.0)),
            Model::Markov => {
                self.states.iter().flatten().all(|state| is_zero(state.per) && is_zero(state.ber))
            }
            Model::List => self.drop.as_ref().is_none_or(Vec::is_empty),
            Model::Rayleigh | Model::Shadowing => false,
        }
    }

    /// Returns the states of a chain: name, packet error rate, and probability of leaving at each step. Bit
    /// errors count as 0, because their effect depends on packet lengths.
    fn states_by_loss(&self) -> Vec<(&str, f64, f64)> {
        if let Some([good, bad, alpha, beta]) = self.two_states() {
            return vec![("good", good, alpha), ("bad", bad, beta)];
        }
        let states = self.states.iter().flatten();
        states
            .map(|state| {
                let leaves: f64 = state.to.values().map(|probability| probability.value()).sum();
                (state.name.as_str(), state.per.map_or(0.0, Probability::value), leaves)
            })
            .collect()
    }
}
