//! A channel that damages packets.
//!
//! The channel draws the same random numbers for every packet, damaged or not, with every setting of
//! `affects`. Damage to the n-th packet therefore depends only on n, the seed, the packet's length and, with
//! some models, the time, not on damage to other packets. Packets other than IP are damaged too.

use std::collections::BTreeMap;

use airwire::rng::Stream;
use airwire::time::{Duration, Instant};
use airwire::units::Probability;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chosen::Affects;
use super::duplex::{OneWay, OneWaySettings};
use crate::fading::units::{Decibels, Distance, Frequency, Speed};
use crate::fading::{Fading, FadingConfig};
use crate::packet::{Direction, Packet};
use crate::settings::{Invalid, Position, Variant};
use crate::stage::{Ahead, DropReason, Lookahead, Outbox, PassingPacket};

pub(crate) mod bursts;
pub mod list;
mod markov;
mod remarks;

pub use bursts::Burst;
pub use list::DropItem;
use list::DropList;
use markov::{Chain, ChainState, ErrorRate};

/// The settings of one direction: the cause of damage and the packets that it affects.
///
/// `model` determines which of the other settings apply:
///
/// - `none`: no damage
/// - `uniform`: damages each packet with the probability `per`
/// - `bit-errors`: damages each bit with the probability `ber`, and so a packet of L bytes with the
///   probability 1 − (1 − ber)^(8L)
/// - `gilbert-elliott`: a good and a bad state with the packet error rates `good` and `bad`. At each `step`
///   the channel leaves its state with the probability `good_to_bad` or `bad_to_good` (P0 calls the four x,
///   y, α and β). It starts in the good state. `mean` and `burst` can replace the four
/// - `markov`: any number of `states`, with transitions at each `step`. The channel starts in the first state
/// - `rayleigh`: multipath fading. All packets are damaged while the received power is more than `margin`
///   below its mean. `deviation` and `decorrelation` add slow fading
/// - `shadowing`: slow fading. All packets are damaged while obstacles attenuate the signal by more than
///   `margin`
/// - `list`: damages exactly the packets that `drop` names
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LossConfig {
    /// The cause of damage.
    pub model: Model,
    /// For `uniform`: packet error rate.
    pub per: Option<Probability>,
    /// For `bit-errors`: bit error rate.
    pub ber: Option<Probability>,
    /// For `gilbert-elliott`: packet error rate in the good state.
    pub good: Option<Probability>,
    /// For `gilbert-elliott`: packet error rate in the bad state.
    pub bad: Option<Probability>,
    /// For `gilbert-elliott`: probability of leaving the good state at each step.
    pub good_to_bad: Option<Probability>,
    /// For `gilbert-elliott`: probability of leaving the bad state at each step.
    pub bad_to_good: Option<Probability>,
    /// For `gilbert-elliott`: average fraction of packets lost. All losses occur in bursts.
    pub mean: Option<Probability>,
    /// For `gilbert-elliott`, with `mean`: average length of a burst of losses.
    pub burst: Option<Burst>,
    /// For `markov`: at least one state. The channel starts in the first.
    pub states: Option<Vec<State>>,
    /// For `markov` and `gilbert-elliott`: "packet" (a step after each packet, the default), or an interval
    /// such as "10ms" (steps at regular intervals, whether or not packets arrive).
    pub step: Option<Step>,
    /// For `rayleigh` and `shadowing`: speed of the mobile.
    pub speed: Option<Speed>,
    /// For `rayleigh`: carrier frequency.
    pub carrier: Option<Frequency>,
    /// For `rayleigh` and `shadowing`: distance of the mean power from the power needed for reception. With
    /// slow fading, the median replaces the mean.
    pub margin: Option<Decibels>,
    /// For `shadowing`, and optionally for `rayleigh`: standard deviation of slow fading.
    pub deviation: Option<Decibels>,
    /// With `deviation`: distance over which the correlation of slow fading falls to 1/e.
    pub decorrelation: Option<Distance>,
    /// For `list`: "segment 50", "segment 50 retransmission 1", "segments 50-53", "packet 7", "packets
    /// 100-110", "ack 3". Numbers start from 1 in each direction. Packets of any kind are counted per stage,
    /// segments and ACKs per flow. A segment is a packet with new data, and its retransmissions are the later
    /// packets that contain its first byte. An ACK is a TCP segment that only acknowledges.
    pub drop: Option<Vec<DropItem>>,
    /// The kind of packets that the channel can damage: all packets, packets with data (of any protocol, and
    /// TCP's SYN, FIN and RST), or TCP segments that only acknowledge. Every packet advances the channel's
    /// state, whether or not it can be damaged.
    #[serde(default)]
    pub affects: Affects,
}

/// The cause of damage: see [`LossConfig`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// No damage.
    #[default]
    None,
    /// Independent packet errors.
    Uniform,
    /// Independent bit errors.
    BitErrors,
    /// A chain with a good and a bad state.
    GilbertElliott,
    /// A chain with any number of states.
    Markov,
    /// Multipath fading, and slow fading if configured.
    Rayleigh,
    /// Slow fading.
    Shadowing,
    /// A list of packets.
    List,
}

/// One state of a channel. It damages packets with `per` or `ber`. With neither, it damages none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Name, unique in the channel.
    pub name: String,
    /// Packet error rate.
    pub per: Option<Probability>,
    /// Bit error rate.
    pub ber: Option<Probability>,
    /// Transition probabilities to other states, by name. The remainder to 1 is the probability of staying.
    pub to: BTreeMap<String, Probability>,
}

/// Times at which the channel's state can change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Step {
    /// After each packet.
    #[default]
    Packet,
    /// At regular intervals, whether or not packets arrive.
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

/// The settings of each model, in the order of [`Model`].
const MODELS: [Variant; 8] = [
    Variant::new("none", &[], &[]),
    Variant::new("uniform", &["per"], &[]),
    Variant::new("bit-errors", &["ber"], &[]),
    Variant::new(
        "gilbert-elliott",
        &[],
        &["good", "bad", "good_to_bad", "bad_to_good", "mean", "burst", "step"],
    ),
    Variant::new("markov", &["states"], &["step"]),
    Variant::new("rayleigh", &["speed", "carrier", "margin"], &["deviation", "decorrelation"]),
    Variant::new("shadowing", &["speed", "margin", "deviation", "decorrelation"], &[]),
    Variant::new("list", &["drop"], &[]),
];

impl LossConfig {
    /// Settings for the model `uniform`.
    pub fn uniform(per: Probability) -> Self {
        Self { model: Model::Uniform, per: Some(per), ..Self::default() }
    }

    /// Settings for the model `bit-errors`.
    pub fn bit_errors(ber: Probability) -> Self {
        Self { model: Model::BitErrors, ber: Some(ber), ..Self::default() }
    }

    /// Settings for the model `gilbert-elliott`, in P0's notation x, y, α, β.
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
            ..Self::default()
        }
    }

    /// Settings for the model `gilbert-elliott`, from the mean loss rate and the mean burst length.
    pub fn bursts(mean: Probability, burst: Burst, step: Step) -> Self {
        Self {
            model: Model::GilbertElliott,
            mean: Some(mean),
            burst: Some(burst),
            step: Some(step),
            ..Self::default()
        }
    }

    /// Settings for the model `markov`. The channel starts in the first state.
    pub fn markov(states: Vec<State>, step: Step) -> Self {
        Self { model: Model::Markov, states: Some(states), step: Some(step), ..Self::default() }
    }

    /// Settings for the model `list`.
    pub fn list(drop: Vec<DropItem>) -> Self {
        Self { model: Model::List, drop: Some(drop), ..Self::default() }
    }

    /// Returns the fading settings of `rayleigh` and `shadowing`, if complete.
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

    /// The error names the setting that is missing, superfluous or out of range.
    fn validate(&self) -> Result<(), Invalid> {
        let settings = [
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
        MODELS[self.model as usize].check("model", &MODELS, settings)?;
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
        self.states.as_deref().map_or(Ok(()), markov::validate)
    }

    fn does_nothing(&self) -> Option<&'static str> {
        self.loses_nothing().then_some("it loses no packet")
    }

    fn build(&self, direction: Direction, position: Position<'_>, seed: u64) -> Result<Loss, String> {
        let stream = |purpose| position.stream(seed, direction, purpose);
        Loss::new(self, stream("damage"), stream("state")).map_err(|invalid| invalid.to_string())
    }
}

/// Minimum length of a step in time. The next packet has to catch up on all steps since the previous one.
const SHORTEST_STEP: Duration = Duration::from_micros(100);

/// One direction of the channel.
#[derive(Debug)]
pub struct Loss {
    affects: Affects,
    channel: Channel,
    packets: u64,
    /// Draws one number for each packet.
    damage: Stream,
    /// Draws the numbers for changes of state.
    state: Stream,
    lost: u64,
    bytes_in: u64,
    bytes_lost: u64,
    /// Packets that arrived ahead of the clock, in order. Those of the past are removed from time to time.
    ahead: Vec<Arrival>,
    /// Length of `ahead` at which packets are removed.
    removal_at: usize,
    /// In a path that looks ahead: the time to which counters refer.
    settled: Instant,
}

/// Number of packets after which packets of the past are removed from `ahead`.
const REMOVAL_INTERVAL: usize = 64;

/// A packet that arrived ahead of the clock.
#[derive(Clone, Copy, Debug)]
struct Arrival {
    at: Instant,
    bytes: u64,
    is_lost: bool,
    /// State of the channel before the packet arrived, as `stats` shows it.
    channel: usize,
}

#[derive(Debug)]
enum Channel {
    Clean,
    Memoryless(ErrorRate),
    Chain(Chain),
    Fading(Box<Fading>),
    List(DropList),
}

impl Channel {
    /// Creates the channel from valid settings. Only fading draws from `state` here.
    fn new(config: &LossConfig, state: &mut Stream) -> Self {
        let step = config.step.unwrap_or_default();
        match config.model {
            Model::None => Self::Clean,
            Model::Uniform => {
                Self::Memoryless(ErrorRate::PerPacket(config.per.map_or(0.0, Probability::value)))
            }
            Model::BitErrors => {
                Self::Memoryless(ErrorRate::per_bit(config.ber.map_or(0.0, Probability::value)))
            }
            Model::GilbertElliott => {
                let [good, bad, good_to_bad, bad_to_good] = config.two_states().unwrap_or_default();
                let good = ChainState::new("good", ErrorRate::PerPacket(good), [(good_to_bad, 1)]);
                let bad = ChainState::new("bad", ErrorRate::PerPacket(bad), [(bad_to_good, 0)]);
                Self::Chain(Chain::new(vec![good, bad], step))
            }
            Model::Markov => {
                Self::Chain(Chain::new(ChainState::all(config.states.as_deref().unwrap_or_default()), step))
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
    /// Creates the channel, or returns an error if the settings are invalid. `damage` decides which packets
    /// are damaged, `state` drives the channel's state. With separate streams, changing one part of a model
    /// does not shift the random numbers of the other.
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
            ahead: Vec::new(),
            removal_at: REMOVAL_INTERVAL,
            settled: Instant::ZERO,
        })
    }
}

impl Loss {
    /// Decides about the next packet, which has `len` bytes, and counts it.
    #[inline(always)]
    fn judge(&mut self, now: Instant, packet: &[u8], len: usize) -> Option<DropReason> {
        self.packets += 1;
        self.bytes_in += len as u64;
        // Draw a number for every model, so that a change of model at run time does not shift the later
        // draws.
        let draw = self.damage.unit();
        let why = match &mut self.channel {
            Channel::Clean => None,
            Channel::Memoryless(error_rate) => {
                (draw < error_rate.probability(len)).then_some(DropReason::Loss)
            }
            Channel::Chain(chain) => {
                (draw < chain.pass(now, len, &mut self.state)).then_some(DropReason::Loss)
            }
            Channel::Fading(fading) => fading.loses(now).then_some(DropReason::Loss),
            Channel::List(list) => list.matches(self.packets, packet).then_some(DropReason::Listed),
        };
        let why = why.filter(|_| self.affects.covers(packet));
        if why.is_some() {
            self.lost += 1;
            self.bytes_lost += len as u64;
        }
        why
    }
}

impl Channel {
    /// The state of a chain, or the number of flows of a list.
    fn shown(&self) -> usize {
        match self {
            Self::Chain(chain) => chain.current(),
            Self::List(list) => list.flows(),
            Self::Clean | Self::Memoryless(_) | Self::Fading(_) => 0,
        }
    }
}

impl Lookahead for Loss {
    #[inline]
    fn carry(&mut self, packet: &mut PassingPacket<'_>) -> Result<(), DropReason> {
        let PassingPacket { now, at, bytes, len, .. } = *packet;
        let channel = self.channel.shown();
        let why = self.judge(at, bytes, len);
        if at > now {
            if self.ahead.len() >= self.removal_at {
                self.ahead.drain(..self.ahead.partition_point(|arrival| arrival.at <= now));
                // The interval grows with the list, because the remaining packets move.
                let remaining = self.ahead.len();
                self.removal_at = remaining + REMOVAL_INTERVAL.max(remaining / 4);
            }
            self.ahead.push(Arrival { at, bytes: len as u64, is_lost: why.is_some(), channel });
        }
        why.map_or(Ok(()), Err)
    }

    fn reads_packets(&self) -> bool {
        self.affects != Affects::All || matches!(self.channel, Channel::List(_))
    }

    fn delays(&self) -> bool {
        false
    }

    fn settle(&mut self, now: Instant) {
        self.settled = now;
    }

    fn sustains(&self, _background: u64) -> bool {
        true
    }
}

impl OneWay for Loss {
    type Config = LossConfig;

    fn handle_packet(&mut self, now: Instant, packet: Packet, out: &mut Outbox) {
        match self.judge(now, &packet.bytes, packet.len()) {
            Some(reason) => out.drop(packet, reason),
            None => out.forward(packet),
        }
    }

    fn lookahead(&mut self) -> Ahead<'_> {
        Ahead::Carries(self)
    }

    fn stats(&self) -> Value {
        let later = || self.ahead.iter().filter(|arrival| arrival.at > self.settled);
        let packets = self.packets - later().count() as u64;
        let bytes = self.bytes_in - later().map(|arrival| arrival.bytes).sum::<u64>();
        let lost = self.lost - later().filter(|arrival| arrival.is_lost).count() as u64;
        let bytes_lost = later().filter(|arrival| arrival.is_lost).map(|arrival| arrival.bytes).sum::<u64>();
        let mut stats = json!({
            "packets_in": packets,
            "bytes_in": bytes,
            "packets_out": packets - lost,
            "bytes_out": bytes - (self.bytes_lost - bytes_lost),
            "lost": lost,
        });
        let shown = later().next().map_or_else(|| self.channel.shown(), |arrival| arrival.channel);
        match &self.channel {
            Channel::Chain(chain) => stats["state"] = chain.name_of(shown).into(),
            Channel::List(_) => stats["flows"] = shown.into(),
            Channel::Clean | Channel::Memoryless(_) | Channel::Fading(_) => {}
        }
        stats
    }

    /// Replaces the channel. Fading continues from its current state. A chain keeps its state if the new
    /// chain has a state of the same name. The counts of packets and of a list's flows continue.
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
            (Channel::Chain(new), Channel::Chain(old)) => new.continue_from(old, now, &mut self.state),
            (Channel::List(new), Channel::List(old)) => new.continue_from(old),
            _ => {}
        }
        self.channel = channel;
    }
}

#[cfg(test)]
mod tests;
