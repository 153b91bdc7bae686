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
use crate::fading::units::{Decibels, Distance, Frequency, Speed};
use crate::fading::{Fading, FadingConfig};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position};
use crate::stage::{NotLive, OneWay, Outbox, Why};

pub(crate) mod bursts;
pub mod list;
mod markov;
mod remarks;

pub use bursts::Burst;
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
///   `good_to_bad` and `bad_to_good` at each `step` (P0 calls the four x, y, α and β); starts in the good one. In place of
///   the four, `mean` and `burst`
/// - `markov`: any `states`, with transitions at each `step`; starts in the first one
/// - `rayleigh`: while the power that a mobile receives over many paths is `margin` below its mean, everything; with
///   `deviation` and `decorrelation` under slow fading as well
/// - `shadowing`: while what stands in the way takes more than the `margin`, everything
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
    /// Of `gilbert-elliott`: the share of packets that is lost on average, all of them in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<Probability>,
    /// Of `gilbert-elliott`, with `mean`: how long a burst of losses is on average.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<Burst>,
    /// Of `markov`: at least one. The channel starts in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub states: Option<Vec<State>>,
    /// Of `markov` and `gilbert-elliott`: "packet" (the default; a step after each packet), or a time such as
    /// "10ms" (a step each time it has passed, whether packets come or not).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Step>,
    /// Of `rayleigh` and `shadowing`: how fast the mobile moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<Speed>,
    /// Of `rayleigh`: the frequency of the carrier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<Frequency>,
    /// Of `rayleigh` and `shadowing`: how far the mean (with slow fading: the median) of the power is above what is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub margin: Option<Decibels>,
    /// Of `shadowing`, and if it is there also of `rayleigh`: the standard deviation of slow fading.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Decibels>,
    /// With `deviation`: the distance over which the correlation of slow fading falls to 1/e.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decorrelation: Option<Distance>,
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
    /// Fast fading, and slow fading if it is told.
    Rayleigh,
    /// Slow fading.
    Shadowing,
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
        text.parse()
            .map(Self::Every)
            .map_err(|_| format!("`{text}` is not a step: write \"packet\", or a time such as \"10ms\""))
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
    const WITH_SETTINGS: [Self; 7] = [
        Self::Uniform,
        Self::BitErrors,
        Self::GilbertElliott,
        Self::Markov,
        Self::Rayleigh,
        Self::Shadowing,
        Self::List,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Uniform => "uniform",
            Self::BitErrors => "bit-errors",
            Self::GilbertElliott => "gilbert-elliott",
            Self::Markov => "markov",
            Self::Rayleigh => "rayleigh",
            Self::Shadowing => "shadowing",
            Self::List => "list",
        }
    }

    /// The settings that it needs, and those that it may have.
    const fn settings(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::None => (&[], &[]),
            Self::Uniform => (&["per"], &[]),
            Self::BitErrors => (&["ber"], &[]),
            Self::GilbertElliott => {
                (&[], &["good", "bad", "good_to_bad", "bad_to_good", "mean", "burst", "step"])
            }
            Self::Markov => (&["states"], &["step"]),
            Self::Rayleigh => (&["speed", "carrier", "margin"], &["deviation", "decorrelation"]),
            Self::Shadowing => (&["speed", "margin", "deviation", "decorrelation"], &[]),
            Self::List => (&["drop"], &[]),
        }
    }
}

impl LossConfig {
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
            mean: None,
            burst: None,
            states: None,
            step: None,
            speed: None,
            carrier: None,
            margin: None,
            deviation: None,
            decorrelation: None,
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

    /// The model `gilbert-elliott` by the mean loss and the mean burst.
    pub fn bursts(mean: Probability, burst: Burst, step: Step) -> Self {
        Self {
            model: Model::GilbertElliott,
            mean: Some(mean),
            burst: Some(burst),
            step: Some(step),
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

impl LossConfig {
    /// Of `rayleigh` and `shadowing`, if all is there that they need.
    fn fading(&self) -> Option<FadingConfig> {
        Some(FadingConfig {
            speed: self.speed?,
            margin: self.margin?,
            carrier: self.carrier,
            slow: self.deviation.zip(self.decorrelation),
        })
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
            ("mean", self.mean.is_some()),
            ("burst", self.burst.is_some()),
            ("states", self.states.is_some()),
            ("step", self.step.is_some()),
            ("speed", self.speed.is_some()),
            ("carrier", self.carrier.is_some()),
            ("margin", self.margin.is_some()),
            ("deviation", self.deviation.is_some()),
            ("decorrelation", self.decorrelation.is_some()),
            ("drop", self.drop.is_some()),
        ];
        let (needed, allowed) = self.model.settings();
        let model = self.model.name();
        for (key, is_there) in present {
            if needed.contains(&key) && !is_there {
                return Err(Invalid::new(key, format!("required by the model \"{model}\": add `{key} = …`")));
            }
            if is_there && !needed.contains(&key) && !allowed.contains(&key) {
                let goes_with = Model::WITH_SETTINGS
                    .into_iter()
                    .filter(|model| model.settings().0.contains(&key) || model.settings().1.contains(&key))
                    .map(|model| format!("\"{}\"", model.name()))
                    .collect::<Vec<_>>()
                    .join(" or ");
                return Err(Invalid::new(
                    key,
                    format!(
                        "valid only with the model {goes_with}, but the model is \"{model}\": remove it, or change the model"
                    ),
                ));
            }
        }
        if let Some(Step::Every(time)) = self.step
            && time < SHORTEST_STEP
        {
            return Err(Invalid::new(
                "step",
                format!("must be at least {SHORTEST_STEP}: write \"packet\" for a step after each packet"),
            ));
        }
        if self.model == Model::GilbertElliott {
            self.validate_two_states()?;
        }
        if self.deviation.is_some() != self.decorrelation.is_some() {
            let missing = if self.deviation.is_none() { "deviation" } else { "decorrelation" };
            return Err(Invalid::new(
                missing,
                format!("`deviation` and `decorrelation` are used together: add `{missing} = …`"),
            ));
        }
        if let Some(fading) = self.fading() {
            fading.validate()?;
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
    Fading(Box<Fading>),
    List(DropList),
}

impl Channel {
    /// `config` is valid. `state` moves on only where there is fading.
    fn new(config: &LossConfig, state: &mut Stream) -> Self {
        let per = |per: Option<Probability>| Damage::Packet(per.unwrap_or(Probability::ZERO).value());
        match config.model {
            Model::None => Self::Clean,
            Model::Uniform => Self::Memoryless(per(config.per)),
            Model::BitErrors => {
                Self::Memoryless(Damage::bit(config.ber.unwrap_or(Probability::ZERO).value()))
            }
            Model::GilbertElliott => {
                let [good, bad, leave_good, leave_bad] = config.two_states().unwrap_or_default();
                Self::Chain(Chain::two(
                    [good, bad].map(Damage::Packet),
                    [leave_good, leave_bad],
                    config.step.unwrap_or_default(),
                ))
            }
            Model::Markov => {
                let states = config.states.as_deref().unwrap_or_default();
                Self::Chain(Chain::new(states, config.step.unwrap_or_default()))
            }
            Model::Rayleigh | Model::Shadowing => match config.fading() {
                Some(fading) => Self::Fading(Box::new(Fading::new(&fading, state))),
                None => Self::Clean,
            },
            Model::List => Self::List(DropList::new(config.drop.as_deref().unwrap_or_default())),
        }
    }
}

impl Loss {
    /// `damage` decides about packets, `state` about the channel's state: two streams, so that changing one
    /// model's numbers shifts nothing in the other.
    pub fn new(config: &LossConfig, damage: Stream, mut state: Stream) -> Result<Self, Invalid> {
        config.validate()?;
        Ok(Self {
            affects: config.affects,
            channel: Channel::new(config, &mut state),
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
            Channel::Fading(fading) => fading.loses(now).then_some(Why::Loss),
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
            Channel::Clean | Channel::Memoryless(_) | Channel::Fading(_) => {}
        }
        stats
    }

    fn check(&self, config: &LossConfig) -> Result<(), NotLive> {
        config.validate().map_err(|invalid| NotLive::new(invalid.key, invalid.message))
    }

    /// A new channel. Fading goes on from where it is; a chain stays in the state that it is in, if there still is one of that name. Packets and a
    /// list's flows are counted on.
    fn reconfigure(&mut self, now: Instant, config: &LossConfig, _out: &mut Outbox) {
        self.affects = config.affects;
        if let (Some(new), Channel::Fading(old)) = (config.fading(), &mut self.channel) {
            old.set(&new);
            return;
        }
        let mut channel = Channel::new(config, &mut self.state);
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
