//! Everything that can be set about an RLC bearer, with its default and its meaning.
//!
//! Whatever is absent from a scenario has its default. What can be switched off (most timers and polls) is
//! switched off by the text `"off"`.

mod channel;
#[cfg(test)]
mod tests;

use airwire::time::Duration;
use serde::{Deserialize, Serialize};

pub use channel::{BlockErrors, ChannelConfig, Counts};

use super::rrc::RrcConfig;
use super::switching::Switching;
use super::umts::config::{FormatConfig, ReceiverConfig, SenderConfig};
use super::umts::dch::Dch;
use super::umts::hs::config::HsdpaConfig;
use super::umts::hs::framing::Framing;
use super::umts::ranges;
use crate::settings::Invalid;
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
        let down = "a DCH carries blocks of one size: add `hsdpa = {}`, whose MAC-ehs carries PDUs of any size, or remove `flexible`";
        let up = "the uplink is a DCH, which carries blocks of one size (there is no E-DCH with MAC-i/is): remove it";
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
