//! What is to be known of a channel beside its settings.

use airwire::units::Probability;

use super::{Affects, LossConfig, Model, Step};

/// With so many packets lost in a row, a sender that waits for its timer each time has doubled it five times: the last
/// one alone is 32 times the first.
const RUN: f64 = 5.0;

impl LossConfig {
    /// What a Gilbert–Elliott channel does on average, and what surprises in channels that step with each packet; empty
    /// for other models.
    pub fn remarks(&self) -> Vec<String> {
        let step = self.step.unwrap_or_default();
        let mut remarks = Vec::new();
        if let Some([good, bad, alpha, beta]) = self.two_states() {
            let (mean, lasts) = ((good * beta + bad * alpha) / (alpha + beta), 1.0 / beta);
            if mean.is_finite() && lasts.is_finite() {
                let lasts = match step {
                    Step::Packet => format!("{lasts:.1} packets"),
                    Step::Every(time) => format!("{:.3} s", lasts * time.as_secs_f64()),
                };
                let whose = match self.affects {
                    Affects::All => "packets",
                    Affects::Data => "packets with data",
                    Affects::Acks => "ACKs without data",
                };
                remarks.push(format!(
                    "{:.2} % of the {whose} are lost on average; the bad state lasts {lasts} on average",
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

    /// What may make a run stand still that was not meant to: a channel that moves with packets alone, in a state in
    /// which so many in a row are lost that senders end up waiting for their timers. Each of those then takes it one step
    /// further.
    pub fn warning(&self) -> Option<String> {
        if self.step.unwrap_or_default() != Step::Packet {
            return None;
        }
        let (name, run) = self
            .states_by_loss()
            .into_iter()
            .map(|(name, loss, leaves)| (name, 1.0 / (1.0 - loss * (1.0 - leaves)).max(0.0)))
            .filter(|(_, run)| *run >= RUN * (1.0 - 1e-9))
            .max_by(|(_, one), (_, other)| one.total_cmp(other))?;
        let run =
            if run.is_finite() { format!("{run:.0} packets in a row") } else { "all packets".to_owned() };
        Some(format!(
            "in the state \"{name}\" {run} are lost on average, and the state changes only when packets arrive: a \
             sender that waits for its timer meets the same state again, and can stall for minutes (step = \"10ms\" makes \
             the state change with time)"
        ))
    }

    /// Of a chain: each state with the share of packets that it loses, and the probability that a step leaves it. Bit
    /// errors are left out: what they lose depends on lengths.
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
