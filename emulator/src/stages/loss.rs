//! A channel that damages packets.
//!
//! It draws the same random numbers for every packet, whatever becomes of the packet and whichever packets can be
//! damaged: what happens to the n-th packet depends on n, the seed and the packet's length only. What is not an IP
//! packet is damaged like any other.

use std::collections::BTreeMap;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::Affects;
use super::duplex::OneWaySettings;
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{NotLive, OneWay, Outbox, Why};

pub mod list;
mod markov;

use list::DropList;
pub use list::Listed;
use markov::{Chain, Damage};

/// The settings of one direction: what damages packets, and which ones.
///
/// `model` says which of the other settings belong to it:
///
/// - `none`
/// - `uniform`: each packet with the probability `per`
/// - `bit-errors`: each bit with the probability `ber`, so a packet of L octets with 1 − (1 − ber)^(8L)
/// - `gilbert-elliott`: two states with the packet error rates `good` and `bad`, left with the probabilities
///   `good_to_bad` and `bad_to_good` at each `step` (P0 calls the four x, y, α and β); starts in the good one
/// - `markov`: any `states`, with transitions at each `step`; starts in the first one
/// - `list`: exactly what `drop` names
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// What damages packets.
    pub model: Model,
    /// Of `uniform`: the packet error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Probability>,
    /// Of `bit-errors`: the bit error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ber: Option<Probability>,
    /// Of `gilbert-elliott`: the packet error rate in the good state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<Probability>,
    /// Of `gilbert-elliott`: the packet error rate in the bad state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad: Option<Probability>,
    /// Of `gilbert-elliott`: the probability at each step to leave the good state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_to_bad: Option<Probability>,
    /// Of `gilbert-elliott`: the probability at each step to leave the bad state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_to_good: Option<Probability>,
    /// Of `markov`: at least one. The channel starts in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<State>>,
    /// Of `markov` and `gilbert-elliott`: "packet" (the default; a step after each packet), or a time such as
    /// "10ms" (a step each time it has passed, whether packets come or not).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Of `list`: "segment 50", "segment 50 retransmission 1", "segments 50-53", "packet 7", "packets 100-110",
    /// "ack 3". All count from 1, in this direction: packets of any kind through this stage; segments and ACKs in
    /// each flow apart. A segment is one that carries new data; its retransmission is one that carries its first
    /// octet again. An ACK is a TCP segment that only acknowledges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<Vec<Listed>>,
    /// Packets that the channel can damage: all, those with data (of any protocol, and TCP's SYN, FIN and RST), or
    /// TCP segments that only acknowledge. The channel's state goes on with each packet, whomever it damages.
    #[serde(default)]
    pub affects: Affects,
}

/// What damages packets: see [`LossConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Nothing.
    None,
    /// Packet errors, each independent of the others.
    Uniform,
    /// Bit errors, each independent of the others.
    BitErrors,
    /// Two states.
    GilbertElliott,
    /// Any number of states.
    Markov,
    /// A list of packets.
    List,
}

/// One state of a channel. It damages packets with either `per` or `ber`; with neither, it damages none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Unique in its channel.
    pub name: String,
    /// The packet error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per: Option<Probability>,
    /// The bit error rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ber: Option<Probability>,
    /// Probability of each other state at the next step, by name. What is missing to 1 is that of staying.
    pub to: BTreeMap<String, Probability>,
}

/// When the channel's state can change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Step {
    /// After each packet.
    #[default]
    Packet,
    /// Each time this time has passed, whether packets come or not.
    Every(Duration),
}

impl TryFrom<String> for Step {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text == "packet" {
            return Ok(Self::Packet);
        }
        text.parse().map(Self::Every).map_err(|_| {
            format!("`{text}` is not a step: write \"packet\", or a length of time such as \"10ms\"")
        })
    }
}

impl From<Step> for String {
    fn from(step: Step) -> Self {
        match step {
            Step::Packet => "packet".to_owned(),
            Step::Every(time) => airwire::units::exact_time(time),
        }
    }
}

impl Model {
    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Uniform => "uniform",
            Self::BitErrors => "bit-errors",
            Self::GilbertElliott => "gilbert-elliott",
            Self::Markov => "markov",
            Self::List => "list",
        }
    }

    /// The settings that it needs, and those that it may have.
    const fn settings(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::None => (&[], &[]),
            Self::Uniform => (&["per"], &[]),
            Self::BitErrors => (&["ber"], &[]),
            Self::GilbertElliott => (&["good", "bad", "good_to_bad", "bad_to_good"], &["step"]),
            Self::Markov => (&["states"], &["step"]),
            Self::List => (&["drop"], &[]),
        }
    }
}

impl LossConfig {
    /// What a Gilbert–Elliott channel does on average, and what surprises in channels that step with each packet; empty
    /// for other models.
    pub fn remarks(&self) -> Vec<String> {
        let step = self.step.unwrap_or_default();
        let mut remarks = Vec::new();
        if let (Some(good), Some(bad), Some(leave_good), Some(leave_bad)) =
            (self.good, self.bad, self.good_to_bad, self.bad_to_good)
        {
            let [good, bad, alpha, beta] = [good, bad, leave_good, leave_bad].map(Probability::value);
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
        }
        if matches!(self.model, Model::GilbertElliott | Model::Markov) && step == Step::Packet {
            remarks.push(
                "the state moves with packets alone: while nobody sends, a burst of losses does not end (step = \"10ms\" \
                 goes by time)"
                    .to_owned(),
            );
        }
        remarks
    }

    /// The model `none`, and the start of every other.
    pub fn none() -> Self {
        Self {
            model: Model::None,
            per: None,
            ber: None,
            good: None,
            bad: None,
            good_to_bad: None,
            bad_to_good: None,
            states: None,
            step: None,
            drop: None,
            affects: Affects::All,
        }
    }

    /// The model `uniform`.
    pub fn uniform(per: Probability) -> Self {
        Self { model: Model::Uniform, per: Some(per), ..Self::none() }
    }

    /// The model `bit-errors`.
    pub fn bit_errors(ber: Probability) -> Self {
        Self { model: Model::BitErrors, ber: Some(ber), ..Self::none() }
    }

    /// The model `gilbert-elliott`: P0's x, y, α, β.
    pub fn gilbert_elliott(
        good: Probability,
        bad: Probability,
        good_to_bad: Probability,
        bad_to_good: Probability,
    ) -> Self {
        Self {
            model: Model::GilbertElliott,
            good: Some(good),
            bad: Some(bad),
            good_to_bad: Some(good_to_bad),
            bad_to_good: Some(bad_to_good),
            ..Self::none()
        }
    }

    /// The model `markov`. The channel starts in the first state.
    pub fn markov(states: Vec<State>, step: Step) -> Self {
        Self { model: Model::Markov, states: Some(states), step: Some(step), ..Self::none() }
    }

    /// The model `list`.
    pub fn list(drop: Vec<Listed>) -> Self {
        Self { model: Model::List, drop: Some(drop), ..Self::none() }
    }
}

impl OneWaySettings for LossConfig {
    type Stage = Loss;

    /// Names the setting that is missing, too much, or impossible.
    fn validate(&self) -> Result<(), Invalid> {
        let present = [
            ("per", self.per.is_some()),
            ("ber", self.ber.is_some()),
            ("good", self.good.is_some()),
            ("bad", self.bad.is_some()),
            ("good_to_bad", self.good_to_bad.is_some()),
            ("bad_to_good", self.bad_to_good.is_some()),
            ("states", self.states.is_some()),
            ("step", self.step.is_some()),
            ("drop", self.drop.is_some()),
        ];
        let (needed, allowed) = self.model.settings();
        let model = self.model.name();
        for (key, is_there) in present {
            if needed.contains(&key) && !is_there {
                return Err(Invalid::new(key, format!("the model \"{model}\" needs it: add `{key} = …`")));
            }
            if is_there && !needed.contains(&key) && !allowed.contains(&key) {
                let goes_with =
                    [Model::Uniform, Model::BitErrors, Model::GilbertElliott, Model::Markov, Model::List]
                        .into_iter()
                        .filter(|model| {
                            model.settings().0.contains(&key) || model.settings().1.contains(&key)
                        })
                        .map(|model| format!("\"{}\"", model.name()))
                        .collect::<Vec<_>>()
                        .join(" or ");
                return Err(Invalid::new(
                    key,
                    format!(
                        "it belongs to the model {goes_with}, but the model is \"{model}\": leave one out"
                    ),
                ));
            }
        }
        if let Some(Step::Every(time)) = self.step
            && time < SHORTEST_STEP
        {
            return Err(Invalid::new(
                "step",
                format!(
                    "the shortest step is {SHORTEST_STEP}: write \"packet\" for a step after each packet"
                ),
            ));
        }
        match &self.states {
            Some(states) => markov::validate(states),
            None => Ok(()),
        }
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Loss, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Loss::new(self, stream("damage"), stream("state")).map_err(|invalid| invalid.to_string())
    }
}

/// Steps are caught up with when the next packet comes, however long that takes.
const SHORTEST_STEP: Duration = Duration::from_micros(100);

/// One direction of the channel.
#[derive(Debug)]
pub struct Loss {
    affects: Affects,
    channel: Channel,
    packets: u64,
    /// One number for each packet.
    damage: Stream,
    /// Numbers for the state.
    state: Stream,
    lost: u64,
    bytes_in: u64,
    bytes_lost: u64,
}

#[derive(Debug)]
enum Channel {
    Clean,
    Memoryless(Damage),
    Chain(Chain),
    List(DropList),
}

impl Channel {
    /// `config` is valid.
    fn new(config: &LossConfig) -> Self {
        let per = |per: Option<Probability>| Damage::Packet(per.unwrap_or(Probability::ZERO).value());
        match config.model {
            Model::None => Self::Clean,
            Model::Uniform => Self::Memoryless(per(config.per)),
            Model::BitErrors => {
                Self::Memoryless(Damage::bit(config.ber.unwrap_or(Probability::ZERO).value()))
            }
            Model::GilbertElliott => {
                let row = |to: Option<Probability>| to.unwrap_or(Probability::ZERO).value();
                Self::Chain(Chain::two(
                    [per(config.good), per(config.bad)],
                    [row(config.good_to_bad), row(config.bad_to_good)],
                    config.step.unwrap_or_default(),
                ))
            }
            Model::Markov => {
                let states = config.states.as_deref().unwrap_or_default();
                Self::Chain(Chain::new(states, config.step.unwrap_or_default()))
            }
            Model::List => Self::List(DropList::new(config.drop.as_deref().unwrap_or_default())),
        }
    }
}

impl Loss {
    /// `damage` decides about packets, `state` about the channel's state: two streams, so that changing one
    /// model's numbers shifts nothing in the other.
    pub fn new(config: &LossConfig, damage: Stream, state: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            affects: config.affects,
            channel: Channel::new(config),
            packets: 0,
            damage,
            state,
            lost: 0,
            bytes_in: 0,
            bytes_lost: 0,
        })
    }
}

impl OneWay for Loss {
    type Config = LossConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        self.packets += 1;
        self.bytes_in += packet.len() as u64;
        // Drawn for every model, so that a change of model under way does not shift the draws.
        let draw = self.damage.unit();
        let damaged = match &mut self.channel {
            Channel::Clean => None,
            Channel::Memoryless(damage) => (draw < damage.probability(packet.len())).then_some(Why::Loss),
            Channel::Chain(chain) => {
                (draw < chain.pass(now, packet.len(), &mut self.state)).then_some(Why::Loss)
            }
            Channel::List(list) => list.names(self.packets, &packet.bytes).then_some(Why::Listed),
        };
        match damaged {
            Some(why) if self.affects.covers(&packet) => {
                self.lost += 1;
                self.bytes_lost += packet.len() as u64;
                out.drop(packet, why);
            }
            _ => out.forward(packet),
        }
    }

    fn handle_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn held(&self) -> usize {
        0
    }

    fn stats(&self) -> Value {
        let mut stats = json!({
            "packets_in": self.packets,
            "bytes_in": self.bytes_in,
            "packets_out": self.packets - self.lost,
            "bytes_out": self.bytes_in - self.bytes_lost,
            "lost": self.lost,
        });
        match &self.channel {
            Channel::Chain(chain) => stats["state"] = chain.state_name().into(),
            Channel::List(list) => stats["flows"] = list.flows().into(),
            Channel::Clean | Channel::Memoryless(_) => {}
        }
        stats
    }

    fn check(&self, config: &LossConfig) -> Result<(), NotLive> {
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    /// A new channel; a chain stays in the state that it is in, if there still is one of that name. Packets and a
    /// list's flows are counted on.
    fn reconfigure(&mut self, now: Instant, config: &LossConfig, _out: &mut Outbox) {
        self.affects = config.affects;
        let mut channel = Channel::new(config);
        if let Channel::Chain(chain) = &mut channel {
            chain.begin(now);
        }
        match (&mut channel, &mut self.channel) {
            (Channel::Chain(new), Channel::Chain(old)) => new.go_on_from(old, now, &mut self.state),
            (Channel::List(new), Channel::List(old)) => new.go_on_from(old),
            _ => {}
        }
        self.channel = channel;
    }
}

#[cfg(test)]
mod tests;
