//! Everything that can be set about an RLC bearer, with its default and its meaning.
//!
//! Whatever is absent from a scenario has its default. What can be switched off (most timers and polls) is
//! switched off by the text `"off"`.

use airwire::time::Duration;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};

use crate::settings::Invalid;
use crate::stages::queue::QueueConfig;

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
    /// Bounds the packets of which nothing has been transmitted yet: the packet under transmission and those that
    /// wait for an acknowledgement do not count. Default: no bound.
    pub queue: QueueConfig,
}

/// How PDUs are written. Both ends of a direction agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormatConfig {
    /// Octets of every AMD PDU, and of every control PDU with its padding. Default: 42 octets, which are 336 bits,
    /// one transport block: 2 octets of header and 40 of payload.
    pub pdu: Size,
    /// "Use special value of the HE field": HE = 10 tells that an SDU ends with the PDU. Default: false.
    pub he_special: bool,
}

/// TS 25.322 §9.6, sending side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SenderConfig {
    /// Configured_Tx_Window_Size, in PDUs. Default: 512, which is 427 ms of a 384 kbit/s downlink: where PDUs are lost
    /// more than once it stalls (1024 does less). Both ends should have the same. Above 2047 two windows do not fit the
    /// 4096 sequence numbers. The specification allows it all the same; then a copy that comes late, or an MRW that
    /// is repeated, can be taken for one of the next lap: packets are spoiled, or a report that comes of it has an
    /// erroneous sequence number, and there is a RESET.
    pub window: u16,
    /// Default: RESET after MaxDAT = 10.
    pub discard: Discard,
    /// MaxRST: a RESET is transmitted at most MaxRST − 1 times, then the bearer has failed. Default: 8.
    pub max_rst: u8,
    /// How long until an unanswered RESET is repeated. Default: 500 ms.
    pub timer_rst: Duration,
    /// When the receiver is asked for a report.
    pub poll: PollConfig,
    /// "Send MRW": an MRW names every SDU that it discards, not the last one alone. Default: false. Choice: only SDUs
    /// of which something was transmitted; the specification would also name those that were dropped before that,
    /// but here they have no sequence number yet.
    pub send_mrw: bool,
    /// Not in the specification: a NACK that comes so soon after the PDU was retransmitted is taken to be about an
    /// earlier copy. It keeps a Timer_Status_Prohibit shorter than the round trip from making copies of what is
    /// still on its way. More than the round trip below IP makes no sense: then it takes another report. Default: off.
    #[serde(with = "off")]
    pub ignore_nack_within: Option<Duration>,
}

/// When an SDU is given up.
///
/// MaxDAT counts schedulings: when VT(DAT) of a PDU *becomes* MaxDAT, the RESET or the discard takes the place of
/// that transmission. So a PDU is transmitted at most MaxDAT − 1 times, that is, retransmitted at most MaxDAT − 2
/// times (§9.6, §9.7.3.4, §11.4.2). Choice: MaxDAT = 1, with which no PDU could ever be transmitted, is taken as 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode", deny_unknown_fields)]
pub enum Discard {
    /// No_discard: a PDU that would be transmitted a MaxDAT-th time makes a RESET instead, which throws away every
    /// packet of which anything had been transmitted.
    ResetAfterMaxDat {
        /// MaxDAT.
        max_dat: u8,
    },
    /// SDU discard after MaxDAT transmissions: the peer is told to move its receiving window (MRW). MRW is repeated
    /// after `timer_mrw`, and after `max_mrw` of them there is a RESET.
    MrwAfterMaxDat {
        /// MaxDAT.
        max_dat: u8,
        /// Timer_MRW.
        timer_mrw: Duration,
        /// MaxMRW.
        max_mrw: u8,
    },
    /// Timer-based discard with explicit signalling: an SDU that has not been acknowledged `timer_discard` after
    /// it came to RLC is given up, and all before it.
    Timer {
        /// Timer_Discard.
        timer_discard: Duration,
        /// Timer_MRW.
        timer_mrw: Duration,
        /// MaxMRW.
        max_mrw: u8,
    },
}

/// The poll triggers of §9.7.1, and what holds them back.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PollConfig {
    /// Poll with the last new PDU in the buffer. Default: true.
    pub last_pdu: bool,
    /// Poll with the last PDU of the retransmission buffer. Default: true.
    pub last_retransmission: bool,
    /// Poll again when a poll has not been answered for so long. Default: 200 ms.
    #[serde(with = "off")]
    pub timer_poll: Option<Duration>,
    /// Poll every so often. Default: off.
    #[serde(with = "off")]
    pub timer_poll_periodic: Option<Duration>,
    /// No two polls closer than this. Default: 100 ms.
    #[serde(with = "off")]
    pub timer_poll_prohibit: Option<Duration>,
    /// Poll with every n-th PDU. Default: off.
    #[serde(with = "off")]
    pub poll_pdu: Option<u16>,
    /// Poll with every n-th SDU. Default: off.
    #[serde(with = "off")]
    pub poll_sdu: Option<u16>,
    /// Poll when so many per cent of the transmission window are in use. Default: 50.
    #[serde(with = "off")]
    pub poll_window: Option<u8>,
    /// A poll that has no PDU to ride on goes as a POLL SUFI (release 7) instead of on a retransmission. Default:
    /// false.
    pub poll_sufi: bool,
}

/// TS 25.322 §9.6, receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverConfig {
    /// Configured_Rx_Window_Size, in PDUs. Default: 512.
    pub window: u16,
    /// TSP: the least time between two acknowledgement reports. Shorter than the round trip below IP, and every
    /// report asks again for what is already under way. Default: 150 ms; off, or 0 as in Inamura et al. §2.2: never
    /// prohibited.
    #[serde(with = "off")]
    pub timer_status_prohibit: Option<Duration>,
    /// A report leaves so long after what asked for it, and covers what is missing then: TSP as Inamura et al. §2.2 describe it.
    /// No part of TS 25.322. Default: off.
    #[serde(with = "off")]
    pub status_delay: Option<Duration>,
    /// Report every so often. Default: off.
    #[serde(with = "off")]
    pub timer_status_periodic: Option<Duration>,
    /// Timer_EPC of the estimated PDU counter: report again when what was asked for has not come. Default: off.
    #[serde(with = "off")]
    pub timer_epc: Option<Duration>,
    /// Report as soon as a gap is seen. Default: true.
    pub missing_pdu_indicator: bool,
    /// Packets are handed on in their order. Default: true; false: as soon as each is complete.
    pub in_sequence: bool,
    /// A report goes where an AMD PDU would have padding, if it fits there. Default: false.
    pub piggyback: bool,
}

/// The transport channel: how many PDUs it takes per TTI, how long they need, and how many are damaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChannelConfig {
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
        good: Probability,
        /// The block error rate in the bad state.
        bad: Probability,
        /// The probability at each TTI to leave the good state.
        good_to_bad: Probability,
        /// The probability at each TTI to leave the bad state.
        bad_to_good: Probability,
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
        Self { down: DirectionConfig::default(), up }
    }

    /// 64 kbit/s both ways.
    pub fn wcdma_64() -> Self {
        let both = DirectionConfig { channel: ChannelConfig::uplink_64(), ..DirectionConfig::default() };
        Self { down: both.clone(), up: both }
    }

    /// Says which setting is impossible, and what is possible.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.down.validate().map_err(|invalid| invalid.within("down"))?;
        self.up.validate().map_err(|invalid| invalid.within("up"))
    }
}

impl Default for RlcConfig {
    fn default() -> Self {
        Self::wcdma_384()
    }
}

impl Default for FormatConfig {
    fn default() -> Self {
        Self { pdu: Size::bytes(42), he_special: false }
    }
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            window: 512,
            discard: Discard::default(),
            max_rst: 8,
            timer_rst: Duration::from_millis(500),
            poll: PollConfig::default(),
            send_mrw: false,
            ignore_nack_within: None,
        }
    }
}

impl Default for Discard {
    fn default() -> Self {
        Self::ResetAfterMaxDat { max_dat: 10 }
    }
}

impl Default for PollConfig {
    fn default() -> Self {
        Self {
            last_pdu: true,
            last_retransmission: true,
            timer_poll: Some(Duration::from_millis(200)),
            timer_poll_prohibit: Some(Duration::from_millis(100)),
            poll_window: Some(50),
            ..Self::NONE
        }
    }
}

impl PollConfig {
    /// No trigger at all: to be filled in.
    pub const NONE: Self = Self {
        last_pdu: false,
        last_retransmission: false,
        timer_poll: None,
        timer_poll_periodic: None,
        timer_poll_prohibit: None,
        poll_pdu: None,
        poll_sdu: None,
        poll_window: None,
        poll_sufi: false,
    };
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        Self {
            window: 512,
            timer_status_prohibit: Some(Duration::from_millis(150)),
            status_delay: None,
            timer_status_periodic: None,
            timer_epc: None,
            missing_pdu_indicator: true,
            in_sequence: true,
            piggyback: false,
        }
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
            tti: Duration::from_millis(10),
            phase: Duration::ZERO,
            blocks: vec![1, 2, 4, 8, 12],
            counts: Counts::Listed,
            delay: Duration::from_millis(40),
            errors: BlockErrors::default(),
        }
    }

    /// 4 blocks per TTI of 20 ms.
    pub fn uplink_64() -> Self {
        Self { tti: Duration::from_millis(20), blocks: vec![1, 2, 3, 4], ..Self::downlink_384() }
    }

    /// The most blocks that a TTI carries.
    pub fn largest(&self) -> u16 {
        self.blocks.last().copied().unwrap_or(1)
    }
}

impl Default for BlockErrors {
    fn default() -> Self {
        Self::Independent { bler: Probability::ZERO }
    }
}

/// The window sizes that RRC can configure (TS 25.331 §10.3.4.23).
const WINDOWS: [u16; 16] = [1, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1536, 2047, 2560, 3072, 3584, 4095];

impl ChannelConfig {
    /// What a Gilbert–Elliott channel does on average; empty for other models.
    pub fn remarks(&self) -> Vec<String> {
        let BlockErrors::GilbertElliott { good, bad, good_to_bad, bad_to_good } = &self.errors else {
            return Vec::new();
        };
        let [good, bad, alpha, beta] = [good, bad, good_to_bad, bad_to_good].map(|it| it.value());
        let (mean, ttis) = ((good * beta + bad * alpha) / (alpha + beta), 1.0 / beta);
        if !mean.is_finite() || !ttis.is_finite() {
            return Vec::new();
        }
        vec![format!(
            "{:.2} % of the blocks are damaged on average; the bad state lasts {:.3} s on average",
            100.0 * mean,
            ttis * self.tti.as_secs_f64()
        )]
    }
}

impl DirectionConfig {
    fn validate(&self) -> Result<(), Invalid> {
        self.sender.validate().map_err(|invalid| invalid.within("sender"))?;
        self.receiver.validate().map_err(|invalid| invalid.within("receiver"))?;
        self.format.validate().map_err(|invalid| invalid.within("format"))?;
        self.channel.validate().map_err(|invalid| invalid.within("channel"))?;
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }
}

impl FormatConfig {
    fn validate(self) -> Result<(), Invalid> {
        match self.pdu.as_bytes() {
            16..=1503 => Ok(()),
            octets => Err(Invalid::new(
                "pdu",
                format!(
                    "a PDU of {octets} octets is not possible: write \"16B\" to \"1503B\" (\"42B\" is a W-CDMA \
                     block of 336 bits)"
                ),
            )),
        }
    }
}

impl SenderConfig {
    fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        self.discard.validate().map_err(|invalid| invalid.within("discard"))?;
        count("max_rst", self.max_rst.into())?;
        length("timer_rst", self.timer_rst)?;
        optional_length("ignore_nack_within", self.ignore_nack_within)?;
        self.poll.validate().map_err(|invalid| invalid.within("poll"))
    }
}

impl Discard {
    fn validate(self) -> Result<(), Invalid> {
        let (Self::ResetAfterMaxDat { max_dat } | Self::MrwAfterMaxDat { max_dat, .. }) = self else {
            let Self::Timer { timer_discard, timer_mrw, max_mrw } = self else { return Ok(()) };
            length("timer_discard", timer_discard)?;
            length("timer_mrw", timer_mrw)?;
            return count("max_mrw", max_mrw.into());
        };
        if max_dat == 0 {
            return Err(Invalid::new(
                "max_dat",
                "MaxDAT is 1 or more: a PDU is transmitted at most MaxDAT − 1 times",
            ));
        }
        if let Self::MrwAfterMaxDat { timer_mrw, max_mrw, .. } = self {
            length("timer_mrw", timer_mrw)?;
            count("max_mrw", max_mrw.into())?;
        }
        Ok(())
    }
}

impl PollConfig {
    fn validate(&self) -> Result<(), Invalid> {
        optional_length("timer_poll", self.timer_poll)?;
        optional_length("timer_poll_periodic", self.timer_poll_periodic)?;
        optional_length("timer_poll_prohibit", self.timer_poll_prohibit)?;
        count("poll_pdu", self.poll_pdu.unwrap_or(1))?;
        count("poll_sdu", self.poll_sdu.unwrap_or(1))?;
        match self.poll_window {
            Some(percent @ (0 | 101..)) => Err(Invalid::new(
                "poll_window",
                format!("{percent} is not a percentage of the window: write 1 to 100, or \"off\""),
            )),
            _ => Ok(()),
        }
    }
}

impl ReceiverConfig {
    /// How long acknowledgement is prohibited after a report. `None`: it never is.
    pub(super) fn prohibits(&self) -> Option<Duration> {
        self.timer_status_prohibit.filter(|time| !time.is_zero())
    }

    fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        optional_length("timer_status_periodic", self.timer_status_periodic)?;
        optional_length("timer_epc", self.timer_epc)
    }
}

impl ChannelConfig {
    fn validate(&self) -> Result<(), Invalid> {
        length("tti", self.tti)?;
        if self.phase >= self.tti {
            let message = format!("{} is not shorter than the TTI of {}", self.phase, self.tti);
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
        Ok(())
    }
}

fn window(pdus: u16) -> Result<(), Invalid> {
    if WINDOWS.contains(&pdus) {
        return Ok(());
    }
    let nearest = WINDOWS.iter().min_by_key(|size| size.abs_diff(pdus)).expect("the list is not empty");
    let message =
        format!("{pdus} is not a window size of TS 25.331; {nearest} is the nearest of {WINDOWS:?}");
    Err(Invalid::new("window", message))
}

fn length(key: &str, time: Duration) -> Result<(), Invalid> {
    if time.is_zero() {
        return Err(Invalid::new(key, "a time of 0 is not possible: write \"100ms\" or so"));
    }
    Ok(())
}

fn optional_length(key: &str, time: Option<Duration>) -> Result<(), Invalid> {
    if time.is_some_and(Duration::is_zero) {
        let message = "a time of 0 is not possible: write \"off\" to do without, or \"100ms\" or so";
        return Err(Invalid::new(key, message));
    }
    Ok(())
}

fn count(key: &str, value: u16) -> Result<(), Invalid> {
    if value == 0 { Err(Invalid::new(key, "0 is not possible: write 1 or more")) } else { Ok(()) }
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
    queue: QueueConfig,
}

#[derive(Deserialize)]
#[serde(remote = "ChannelConfig", deny_unknown_fields, default = "ChannelConfig::uplink_64")]
struct UplinkChannel {
    tti: Duration,
    phase: Duration,
    blocks: Vec<u16>,
    counts: Counts,
    delay: Duration,
    errors: BlockErrors,
}

impl Uplink {
    fn direction() -> DirectionConfig {
        RlcConfig::wcdma_384().up
    }

    fn serialize<S: serde::Serializer>(config: &DirectionConfig, serializer: S) -> Result<S::Ok, S::Error> {
        config.serialize(serializer)
    }
}

/// `None` is written as `"off"`.
mod off {
    use std::fmt;
    use std::marker::PhantomData;

    use serde::de::{self, Deserialize, Deserializer, IntoDeserializer, Visitor};
    use serde::{Serialize, Serializer};

    pub(super) fn serialize<T: Serialize, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.serialize(serializer),
            None => serializer.serialize_str("off"),
        }
    }

    pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        deserializer.deserialize_any(OffOr(PhantomData))
    }

    struct OffOr<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for OffOr<T> {
        type Value = Option<T>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a value, or \"off\"")
        }
        fn visit_str<E: de::Error>(self, text: &str) -> Result<Option<T>, E> {
            match text {
                "off" => Ok(None),
                text => T::deserialize(text.into_deserializer()).map(Some),
            }
        }
        fn visit_i64<E: de::Error>(self, value: i64) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }
        fn visit_u64<E: de::Error>(self, value: u64) -> Result<Option<T>, E> {
            T::deserialize(value.into_deserializer()).map(Some)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(toml::from_str::<RlcConfig>("down.sender.poll.poll_pdu = \"many\"").is_err());
        let error = toml::from_str::<RlcConfig>("down.sender.poll.timer_poll = \"200\"").unwrap_err();
        assert!(error.to_string().contains("\"150ms\""), "{error}");
    }

    #[test]
    fn what_is_written_is_read_back_as_the_same() {
        let mut config = RlcConfig::wcdma_64();
        config.down.sender.discard = Discard::Timer {
            timer_discard: Duration::from_secs(2),
            timer_mrw: Duration::from_millis(100),
            max_mrw: 4,
        };
        config.down.channel.errors = BlockErrors::GilbertElliott {
            good: Probability::ZERO,
            bad: Probability::new(0.5),
            good_to_bad: Probability::new(0.01),
            bad_to_good: Probability::new(0.1),
        };
        config.up.channel.errors = BlockErrors::Listed { lost: vec![0, 7] };
        config.up.channel.counts = Counts::Any;
        config.up.queue.packets = Some(50);
        for config in [config, RlcConfig::wcdma_384()] {
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
            (
                "down.receiver.timer_status_periodic = \"0ms\"",
                "down.receiver.timer_status_periodic",
                "write \"off\"",
            ),
            ("down.sender.timer_rst = \"0ms\"", "down.sender.timer_rst", "a time of 0"),
            ("up.channel.blocks = []", "up.channel.blocks", "a channel carries something"),
            ("up.channel.blocks = [4, 2]", "up.channel.blocks", "does not ascend"),
            ("up.channel.blocks = [0, 2]", "up.channel.blocks", "does not ascend"),
            ("up.channel.tti = \"0ms\"", "up.channel.tti", "a time of 0"),
            ("up.channel.phase = \"20ms\"", "up.channel.phase", "not shorter than the TTI"),
            ("up.format.pdu = \"4B\"", "up.format.pdu", "\"16B\" to \"1503B\""),
            ("up.queue.packets = 0", "up.queue.packets", "queue of 0 packets"),
        ] {
            let invalid = read(text).validate().unwrap_err();
            assert_eq!(invalid.key, key, "{text}: {invalid}");
            assert!(invalid.message.contains(wanted), "{text}: {invalid}");
        }
    }
}
