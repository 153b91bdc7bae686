//! Everything that can be set about an RLC bearer, with its default and its meaning.
//!
//! Whatever is absent from a scenario has its default. What can be switched off (most timers and polls) is
//! switched off by the text `"off"`.

use airwire::time::Duration;
use airwire::units::Probability;
use serde::{Deserialize, Serialize};

use super::rrc::RrcConfig;
use super::switching::Switching;
use super::umts::config::{FormatConfig, ReceiverConfig, SenderConfig};
use super::umts::dch::Dch;
use super::umts::hs::config::HsdpaConfig;
use super::umts::hs::framing::Framing;
use super::umts::ranges;
use super::values::length;
use crate::fading::FadingConfig;
use crate::fading::units::{Decibels, Distance, Frequency, Speed};
use crate::settings::Invalid;
use crate::stages::loss::bursts::{Burst, TwoStates};
use crate::stages::queue::QueueConfig;
use crate::stages::times::Spells;

/// One bearer: what each direction's sender does, and what it is carried in.
///
/// By default a W-CDMA bearer of 384 kbit/s down and 64 kbit/s up, without block errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlcConfig {
    /// From the network to the terminal.
    pub down: DirectionConfig,
    /// As `down`, but what is absent from its channel is that of a 64 kbit/s uplink.
    #[serde(with = "Uplink")]
    pub up: DirectionConfig,
    /// What RRC does with the bearer.
    pub rrc: RrcConfig,
    /// The downlink is an HS-DSCH, which the mobiles of a cell share; of `down.channel`, only `delay` counts. Absent: it has
    /// a channel of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hsdpa: Option<HsdpaConfig>,
}

/// One direction: the sender that pushes data this way, the receiver at its other end (which reports about this
/// direction in STATUS PDUs that travel the other way), and the transport channel below.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DirectionConfig {
    /// At the end from which data go this way.
    pub sender: SenderConfig,
    /// At the other end.
    pub receiver: ReceiverConfig,
    /// How PDUs that go this way are written.
    pub format: FormatConfig,
    /// What carries PDUs this way, STATUS PDUs about the other direction among them.
    pub channel: ChannelConfig,
    /// Whether values that RRC cannot configure (TS 25.331 §10.3.4.23) are refused; otherwise they are warned of.
    /// Default: false.
    pub strict: bool,
    /// Bounds the packets of which nothing has been transmitted yet: the packet under transmission and those that
    /// wait for an acknowledgement do not count. Default: no bound.
    pub queue: QueueConfig,
}

/// The transport channel: how many PDUs it takes per TTI, how long they need, and how many are damaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelConfig {
    /// The rate, in place of `tti` and `blocks`. Absent: what those say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dch: Option<Dch>,
    /// When the rate changes. Default: never.
    pub switching: Switching,
    /// TTIs begin at whole multiples of this (plus `phase`). Default: 10 ms down, 20 ms up.
    pub tti: Duration,
    /// How long after the zero of time the first TTI begins. Default: 0.
    pub phase: Duration,
    /// The transport format set: how many blocks a TTI can carry, ascending. The last is the rate; 12 blocks of 320
    /// bits of payload per 10 ms are 384 kbit/s. A TTI takes the largest that does not exceed what there is
    /// to send. Default: 1, 2, 4, 8, 12 down; 1, 2, 3, 4 up.
    pub blocks: Vec<u16>,
    /// Whether every count up to the largest of `blocks` may be used too. Default: listed.
    pub counts: Counts,
    /// From the end of a TTI until its PDUs are at the other end. Default: 40 ms.
    pub delay: Duration,
    /// Which blocks are damaged, data and control alike. Default: none.
    pub errors: BlockErrors,
    /// Times without coverage, such as a deep fade or a handover: no block of a TTI that begins then arrives. What has
    /// begun before arrives. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Spells>,
}

/// How many blocks a TTI may carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// Only what `blocks` lists.
    #[default]
    Listed,
    /// Anything up to the largest.
    Any,
}

/// Which blocks the channel damages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum BlockErrors {
    /// Each block for itself.
    Independent {
        /// The block error rate.
        bler: Probability,
    },
    /// A whole TTI is damaged, or none of it.
    PerTti {
        /// The probability that a TTI is damaged.
        bler: Probability,
    },
    /// Gilbert–Elliott: the block error rates of a good and a bad state, and how likely a TTI leaves its state for
    /// the other. Time passes for it whether or not anything is transmitted.
    GilbertElliott {
        /// The block error rate in the good state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good: Option<Probability>,
        /// The block error rate in the bad state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad: Option<Probability>,
        /// The probability at each TTI to leave the good state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        good_to_bad: Option<Probability>,
        /// The probability at each TTI to leave the bad state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bad_to_good: Option<Probability>,
        /// In place of the four: the share of blocks that is damaged on average, all of them in bursts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mean: Option<Probability>,
        /// With `mean`: how many TTIs a burst has on average.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        burst: Option<f64>,
    },
    /// Fast fading: a TTI is damaged if the power that the mobile receives at its beginning is below what is needed.
    Rayleigh {
        /// How fast the mobile moves.
        speed: Speed,
        /// The frequency of the carrier.
        carrier: Frequency,
        /// How far the mean of the power (with slow fading: its median) is above what is needed.
        margin: Decibels,
        /// Slow fading besides: its standard deviation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        deviation: Option<Decibels>,
        /// With `deviation`: the distance over which its correlation falls to 1/e.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decorrelation: Option<Distance>,
    },
    /// Slow fading alone.
    Shadowing {
        /// How fast the mobile moves.
        speed: Speed,
        /// How far the median of the power is above what is needed.
        margin: Decibels,
        /// The standard deviation.
        deviation: Decibels,
        /// The distance over which the correlation falls to 1/e.
        decorrelation: Distance,
    },
    /// Exactly these, counted from 0 in the order of transmission in this direction.
    Listed {
        /// The numbers of the blocks.
        lost: Vec<u64>,
    },
}

impl RlcConfig {
    /// 384 kbit/s down, 64 kbit/s up (TS 34.108 §6.10): the default.
    pub fn wcdma_384() -> Self {
        let up = DirectionConfig { channel: ChannelConfig::uplink_64(), ..DirectionConfig::default() };
        Self { down: DirectionConfig::default(), up, rrc: RrcConfig::default(), hsdpa: None }
    }

    /// 64 kbit/s both ways.
    pub fn wcdma_64() -> Self {
        let both = DirectionConfig { channel: ChannelConfig::uplink_64(), ..DirectionConfig::default() };
        Self { down: both.clone(), up: both, rrc: RrcConfig::default(), hsdpa: None }
    }

    /// Says which setting is impossible, and what is possible.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.down.validate().map_err(|invalid| invalid.within("down"))?;
        self.up.validate().map_err(|invalid| invalid.within("up"))?;
        self.rrc.validate().map_err(|invalid| invalid.within("rrc"))?;
        self.validate_flexible()?;
        let Some(hsdpa) = &self.hsdpa else { return Ok(()) };
        self.down.channel.validate_shared().map_err(|invalid| invalid.within("channel").within("down"))?;
        hsdpa.validate(Framing::of(&self.down.format)).map_err(|invalid| invalid.within("hsdpa"))
    }

    /// A flexible PDU size goes with MAC-ehs down and with MAC-i/is up (TS 25.322 §9.2.2.9): blocks of a DCH have the size of
    /// its transport format.
    fn validate_flexible(&self) -> Result<(), Invalid> {
        let down = "a DCH carries blocks of one size: add `hsdpa = {}`, whose MAC-ehs takes PDUs of any size, or leave it out";
        let up = "the uplink is a DCH, which carries blocks of one size (MAC-i/is on an E-DCH, which takes others, there is \
                  none here): leave it out";
        let refused = [
            ("down", self.down.format.flexible.is_some() && self.hsdpa.is_none(), down),
            ("up", self.up.format.flexible.is_some(), up),
        ];
        match refused.iter().find(|(_, is_there, _)| *is_there) {
            Some((direction, _, message)) => {
                Err(Invalid::new("flexible", *message).within("format").within(direction))
            }
            None => Ok(()),
        }
    }
}

impl Default for RlcConfig {
    fn default() -> Self {
        Self::wcdma_384()
    }
}

impl Default for ChannelConfig {
    fn default() -> Self {
        Self::downlink_384()
    }
}

impl ChannelConfig {
    /// 12 blocks per TTI of 10 ms.
    pub fn downlink_384() -> Self {
        Self {
            dch: None,
            switching: Switching::Never {},
            tti: Duration::from_millis(10),
            phase: Duration::ZERO,
            blocks: vec![1, 2, 4, 8, 12],
            counts: Counts::Listed,
            delay: Duration::from_millis(40),
            errors: BlockErrors::default(),
            outage: None,
        }
    }

    /// 4 blocks per TTI of 20 ms.
    pub fn uplink_64() -> Self {
        Self { tti: Duration::from_millis(20), blocks: vec![1, 2, 3, 4], ..Self::downlink_384() }
    }

    /// The TTI at the start.
    pub fn tti(&self) -> Duration {
        self.dch.map_or(self.tti, Dch::tti)
    }

    /// The transport format set at the start.
    pub fn blocks(&self) -> &[u16] {
        match self.dch {
            Some(dch) => dch.blocks(),
            None => &self.blocks,
        }
    }

    /// The most blocks that a TTI carries at the start.
    pub fn largest(&self) -> u16 {
        self.blocks().last().copied().unwrap_or(1)
    }
}

impl Default for BlockErrors {
    fn default() -> Self {
        Self::Independent { bler: Probability::ZERO }
    }
}

impl BlockErrors {
    /// The model `gilbert-elliott`, with steps of a TTI.
    pub fn gilbert_elliott(
        good: Probability,
        bad: Probability,
        good_to_bad: Probability,
        bad_to_good: Probability,
    ) -> Self {
        let [good, bad, good_to_bad, bad_to_good] = [good, bad, good_to_bad, bad_to_good].map(Some);
        Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean: None, burst: None }
    }

    /// The same by the mean block error rate, and the mean burst in TTIs.
    pub fn bursts(mean: Probability, burst: f64) -> Self {
        let [good, bad, good_to_bad, bad_to_good] = [None; 4];
        Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean: Some(mean), burst: Some(burst) }
    }

    fn as_chain(&self) -> Option<TwoStates> {
        let Self::GilbertElliott { good, bad, good_to_bad, bad_to_good, mean, burst } = *self else {
            return None;
        };
        let burst = burst.map(Burst::Steps);
        Some(TwoStates { four: [good, bad, good_to_bad, bad_to_good], mean, burst, step: None })
    }

    /// Of `gilbert-elliott`: the four probabilities, however they are written.
    pub(super) fn two_states(&self) -> Option<[f64; 4]> {
        self.as_chain()?.probabilities()
    }

    pub(super) fn fading(&self) -> Option<FadingConfig> {
        match *self {
            Self::Rayleigh { speed, carrier, margin, deviation, decorrelation } => Some(FadingConfig {
                speed,
                margin,
                carrier: Some(carrier),
                slow: deviation.zip(decorrelation),
            }),
            Self::Shadowing { speed, margin, deviation, decorrelation } => {
                Some(FadingConfig { speed, margin, carrier: None, slow: Some((deviation, decorrelation)) })
            }
            Self::Independent { .. }
            | Self::PerTti { .. }
            | Self::GilbertElliott { .. }
            | Self::Listed { .. } => None,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        if let Self::Rayleigh { deviation, decorrelation, .. } = self
            && deviation.is_some() != decorrelation.is_some()
        {
            let missing = if deviation.is_none() { "deviation" } else { "decorrelation" };
            let message = format!("`deviation` and `decorrelation` belong together: add `{missing} = …`");
            return Err(Invalid::new(missing, message));
        }
        if let Some(chain) = self.as_chain() {
            chain.validate()?;
        }
        self.fading().map_or(Ok(()), |fading| fading.validate())
    }
}

impl ChannelConfig {
    /// What a Gilbert–Elliott channel or one that fades does on average; empty for other models.
    pub fn remarks(&self) -> Vec<String> {
        if let Some(fading) = self.errors.fading() {
            return vec![fading.remark("blocks")];
        }
        let Some([good, bad, alpha, beta]) = self.errors.two_states() else { return Vec::new() };
        let (mean, ttis) = ((good * beta + bad * alpha) / (alpha + beta), 1.0 / beta);
        if !mean.is_finite() || !ttis.is_finite() {
            return Vec::new();
        }
        vec![format!(
            "{:.2} % of the blocks are damaged on average; the bad state lasts {:.3} s on average",
            100.0 * mean,
            ttis * self.tti().as_secs_f64()
        )]
    }
}

impl DirectionConfig {
    /// The values that RRC cannot configure.
    pub fn warnings(&self) -> Vec<String> {
        let outside = ranges::outside(&self.sender, &self.receiver);
        outside.into_iter().map(|outside| format!("{}: {}", outside.key, outside.message)).collect()
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.sender.validate().map_err(|invalid| invalid.within("sender"))?;
        self.receiver.validate().map_err(|invalid| invalid.within("receiver"))?;
        self.format.validate().map_err(|invalid| invalid.within("format"))?;
        self.channel.validate().map_err(|invalid| invalid.within("channel"))?;
        if let Some(outside) = ranges::outside(&self.sender, &self.receiver).into_iter().next()
            && self.strict
        {
            return Err(Invalid::new(outside.key, outside.message));
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }
}

impl ChannelConfig {
    fn validate(&self) -> Result<(), Invalid> {
        length("tti", self.tti)?;
        if self.phase >= self.tti() {
            let message = format!("{} is not shorter than the TTI of {}", self.phase, self.tti());
            return Err(Invalid::new("phase", message));
        }
        if self.blocks.is_empty() {
            return Err(Invalid::new(
                "blocks",
                "a channel carries something: list how many blocks a TTI can have, such as [1, 2, 4, 8, 12]",
            ));
        }
        if self.blocks[0] == 0 || !self.blocks.is_sorted_by(|a, b| a < b) {
            let message =
                format!("{:?} does not ascend from 1 or more: write it as [1, 2, 4, 8, 12]", self.blocks);
            return Err(Invalid::new("blocks", message));
        }
        self.errors.validate().map_err(|invalid| invalid.within("errors"))?;
        self.switching.validate(self.dch).map_err(|invalid| invalid.within("switching"))?;
        match &self.outage {
            Some(outage) => outage.validate("outage").map_err(|invalid| invalid.within("outage")),
            None => Ok(()),
        }
    }
}

impl ChannelConfig {
    /// The downlink is an HS-DSCH: nothing is said here of another channel.
    fn validate_shared(&self) -> Result<(), Invalid> {
        let usual = Self::downlink_384();
        let settings = [
            ("dch", self.dch != usual.dch),
            ("switching", self.switching != usual.switching),
            ("tti", self.tti != usual.tti),
            ("phase", self.phase != usual.phase),
            ("blocks", self.blocks != usual.blocks),
            ("counts", self.counts != usual.counts),
            ("errors", self.errors != usual.errors),
            ("outage", self.outage != usual.outage),
        ];
        match settings.iter().find(|(_, is_there)| *is_there) {
            Some((key, _)) => {
                let message = "it belongs to a dedicated channel, but with `hsdpa` the downlink is an HS-DSCH: leave one out";
                Err(Invalid::new(*key, message))
            }
            None => Ok(()),
        }
    }
}

/// `DirectionConfig` with other defaults for what is absent.
#[derive(Deserialize)]
#[serde(remote = "DirectionConfig", deny_unknown_fields, default = "Uplink::direction")]
struct Uplink {
    sender: SenderConfig,
    receiver: ReceiverConfig,
    format: FormatConfig,
    #[serde(with = "UplinkChannel")]
    channel: ChannelConfig,
    strict: bool,
    queue: QueueConfig,
}

#[derive(Deserialize)]
#[serde(remote = "ChannelConfig", deny_unknown_fields, default = "ChannelConfig::uplink_64")]
struct UplinkChannel {
    dch: Option<Dch>,
    switching: Switching,
    tti: Duration,
    phase: Duration,
    blocks: Vec<u16>,
    counts: Counts,
    delay: Duration,
    errors: BlockErrors,
    outage: Option<Spells>,
}

impl Uplink {
    fn direction() -> DirectionConfig {
        RlcConfig::wcdma_384().up
    }

    fn serialize<S: serde::Serializer>(config: &DirectionConfig, serializer: S) -> Result<S::Ok, S::Error> {
        config.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlc::umts::config::{Discard, WindowAt};

    fn read(text: &str) -> RlcConfig {
        toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn what_is_absent_has_the_default_of_its_own_direction() {
        assert_eq!(read(""), RlcConfig::wcdma_384());
        let config = read("up.channel.delay = \"7ms\"\ndown.sender.window = 256");
        assert_eq!(config.up.channel.delay, Duration::from_millis(7));
        assert_eq!((config.up.channel.tti, config.up.channel.largest()), (Duration::from_millis(20), 4));
        assert_eq!((config.down.channel.tti, config.down.channel.largest()), (Duration::from_millis(10), 12));
        assert_eq!((config.down.sender.window, config.up.sender.window), (256, 512));
    }

    #[test]
    fn what_can_be_switched_off_is_switched_off_by_name() {
        let config = read(
            "down.sender.poll = { timer_poll = \"off\", poll_window = \"off\", poll_pdu = 64, \
             timer_poll_periodic = \"300ms\" }\ndown.receiver.timer_status_prohibit = \"off\"",
        );
        let poll = config.down.sender.poll;
        assert_eq!((poll.timer_poll, poll.poll_window, poll.poll_pdu), (None, None, Some(64)));
        assert_eq!(poll.timer_poll_periodic, Some(Duration::from_millis(300)));
        assert_eq!(config.down.receiver.timer_status_prohibit, None);
        let never = read(
            "down.sender.poll = { timer_poll = \"0ms\", timer_poll_periodic = \"0ms\", timer_poll_prohibit = \"0ms\" }\n\
             down.sender.ignore_nack_within = \"0ms\"\n\
             down.receiver = { timer_status_prohibit = \"0ms\", status_delay = \"0ms\", timer_epc = \"0ms\", \
             timer_status_periodic = \"0ms\" }",
        );
        never.validate().unwrap();
        let (poll, receiver) = (never.down.sender.poll, &never.down.receiver);
        assert_eq!([poll.timer_poll, poll.timer_poll_periodic, poll.timer_poll_prohibit], [None; 3]);
        assert_eq!([receiver.timer_epc, receiver.timer_status_periodic, receiver.status_delay], [None; 3]);
        assert_eq!((receiver.prohibits(), never.down.sender.ignore_nack_within), (None, None));
        assert!(toml::from_str::<RlcConfig>("down.sender.poll.poll_pdu = \"many\"").is_err());
        let error = toml::from_str::<RlcConfig>("down.sender.poll.timer_poll = \"200\"").unwrap_err();
        assert!(error.to_string().contains("\"150ms\""), "{error}");
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        let flexible = read("hsdpa = {}\ndown.format.flexible = { most = \"126B\", indicators = \"7bit\" }");
        let mut config = RlcConfig::wcdma_64();
        config.down.sender.discard = Discard::Timer {
            timer_discard: Duration::from_secs(2),
            timer_mrw: Duration::from_millis(100),
            max_mrw: 4,
        };
        let [bad, leave_good, leave_bad] = [0.5, 0.01, 0.1].map(Probability::new);
        config.down.channel.errors =
            BlockErrors::gilbert_elliott(Probability::ZERO, bad, leave_good, leave_bad);
        config.up.channel.errors = BlockErrors::Listed { lost: vec![0, 7] };
        config.up.channel.counts = Counts::Any;
        config.up.queue.bounds.packets = Some(50);
        config.up.receiver.windows = vec![WindowAt { at: Duration::from_secs(1), window: 8 }];
        config.up.receiver.advertise_window = Some(3);
        for config in [config, RlcConfig::wcdma_384(), flexible] {
            let text = toml::to_string(&config).unwrap();
            assert_eq!(read(&text), config, "{text}");
            config.validate().unwrap();
        }
    }

    #[test]
    fn unknown_keys_are_refused_in_both_directions() {
        for text in ["down.chanel = {}", "up.channel.ttl = \"1ms\"", "up.sender.windows = 1", "sideways = 1"]
        {
            assert!(toml::from_str::<RlcConfig>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_is_impossible_is_refused_with_what_is_possible() {
        for (text, key, wanted) in [
            ("down.sender.window = 500", "down.sender.window", "512 is the nearest"),
            ("up.receiver.window = 0", "up.receiver.window", "1 is the nearest"),
            (
                "down.sender.discard = { mode = \"reset-after-max-dat\", max_dat = 0 }",
                "down.sender.discard.max_dat",
                "MaxDAT is 1 or more",
            ),
            (
                "up.sender.discard = { mode = \"timer\", timer_discard = \"1s\", timer_mrw = \"1s\", max_mrw = 0 }",
                "up.sender.discard.max_mrw",
                "1 or more",
            ),
            ("down.sender.poll.poll_window = 101", "down.sender.poll.poll_window", "1 to 100"),
            ("down.sender.poll.poll_pdu = 0", "down.sender.poll.poll_pdu", "1 or more"),
            ("down.sender.max_rst = 0", "down.sender.max_rst", "1 or more"),
            ("down.receiver.advertise_window = 0", "down.receiver.advertise_window", "1 PDU or more"),
            (
                "down.receiver.windows = [{ at = \"1s\", window = 5000 }]",
                "down.receiver.windows",
                "1 to 4095",
            ),
            (
                "down.receiver.windows = [{ at = \"2s\", window = 9 }, { at = \"2s\", window = 8 }]",
                "down.receiver.windows",
                "ascending order",
            ),
            ("up.strict = true\nup.sender.max_rst = 5", "up.sender.max_rst", "4 is the nearest"),
            (
                "down.strict = true\ndown.receiver.timer_status_prohibit = \"1500ms\"",
                "down.receiver.timer_status_prohibit",
                "1.000s is the nearest",
            ),
            ("down.sender.timer_rst = \"0ms\"", "down.sender.timer_rst", "a time of 0"),
            ("up.channel.blocks = []", "up.channel.blocks", "a channel carries something"),
            ("up.channel.blocks = [4, 2]", "up.channel.blocks", "does not ascend"),
            ("up.channel.blocks = [0, 2]", "up.channel.blocks", "does not ascend"),
            ("up.channel.tti = \"0ms\"", "up.channel.tti", "a time of 0"),
            ("up.channel.phase = \"20ms\"", "up.channel.phase", "not shorter than the TTI"),
            ("up.format.pdu = \"4B\"", "up.format.pdu", "\"16B\" to \"1503B\""),
            ("up.queue.packets = 0", "up.queue.packets", "queue of 0 packets"),
            ("hsdpa.processes = 0", "hsdpa.processes", "1 to 8"),
            ("hsdpa = {}\ndown.channel.blocks = [7]", "down.channel.blocks", "HS-DSCH"),
            ("hsdpa = {}\ndown.channel.dch = \"64kbit\"", "down.channel.dch", "HS-DSCH"),
            ("hsdpa = {}\ndown.format.pdu = \"1503B\"", "hsdpa.category", "smaller `format.pdu`"),
            ("down.format.flexible = {}", "down.format.flexible", "add `hsdpa = {}`"),
            ("hsdpa = {}\nup.format.flexible = {}", "up.format.flexible", "the uplink is a DCH"),
            (
                "hsdpa = {}\ndown.format = { pdu = \"82B\", flexible = {} }",
                "down.format.pdu",
                "no size of their own",
            ),
            (
                "hsdpa = {}\ndown.format.flexible.most = \"1506B\"",
                "down.format.flexible.most",
                "\"16B\" to \"1505B\"",
            ),
            ("hsdpa = {}\ndown.format.flexible.most = \"15B\"", "down.format.flexible.most", "15 octets"),
            (
                "hsdpa = {}\ndown.format.flexible = { most = \"127B\", indicators = \"7bit\" }",
                "down.format.flexible.indicators",
                "`most = \"126B\"`",
            ),
        ] {
            let invalid = read(text).validate().unwrap_err();
            assert_eq!(invalid.key, key, "{text}: {invalid}");
            assert!(invalid.message.contains(wanted), "{text}: {invalid}");
        }
    }
}
