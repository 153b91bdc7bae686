//! Settings of an RLC bearer, with their meanings and defaults.
//!
//! A setting that a scenario leaves out has its default. The text `"off"` switches off an optional feature,
//! such as most timers and polls.

mod channel;
#[cfg(test)]
mod tests;

use airwire::time::Duration;
use serde::{Deserialize, Serialize};

pub use channel::{BlockErrors, ChannelConfig, Counts};

use super::rrc::RrcConfig;
use super::switching::Switching;
use super::umts::config::{FormatConfig, ReceiverConfig, SenderConfig};
use super::umts::configurable;
use super::umts::dch::Dch;
use super::umts::hs::config::HsdpaConfig;
use super::umts::hs::framing::Framing;
use crate::packet::Direction;
use crate::settings::Invalid;
use crate::stages::queue::QueueConfig;
use crate::stages::times::Intervals;

/// Settings of a bearer: its two directions, RRC, and an optional shared downlink.
///
/// The default is a W-CDMA bearer of 384 kbit/s down and 64 kbit/s up, without block errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RlcConfig {
    /// The direction from the network to the terminal.
    pub down: DirectionConfig,
    /// The direction from the terminal to the network. Its channel has the defaults of a 64 kbit/s uplink.
    #[serde(with = "Uplink")]
    pub up: DirectionConfig,
    /// Actions of RRC on the bearer.
    pub rrc: RrcConfig,
    /// Makes the downlink an HS-DSCH, which the mobiles of a cell share. Only `delay` of `down.channel`
    /// applies in this case. Absent: the downlink has a dedicated channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hsdpa: Option<HsdpaConfig>,
}

/// Settings of one direction: the sender, the receiver at the other end, and the transport channel. The
/// receiver's STATUS PDUs use the channel of the other direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DirectionConfig {
    /// The entity that sends data in this direction.
    pub sender: SenderConfig,
    /// The entity at the other end.
    pub receiver: ReceiverConfig,
    /// Format of the PDUs in this direction.
    pub format: FormatConfig,
    /// Channel that carries the PDUs in this direction, including STATUS PDUs about the other direction.
    pub channel: ChannelConfig,
    /// Whether values that RRC cannot configure (TS 25.331 §10.3.4.23) are errors. Otherwise they cause
    /// warnings. Default: false.
    pub strict: bool,
    /// Queue of the packets whose transmission has not begun. The packet in transmission and packets
    /// that wait for an acknowledgement do not count. Default: no bound.
    pub queue: QueueConfig,
}

impl RlcConfig {
    /// Returns the default bearer: 384 kbit/s down, 64 kbit/s up (TS 34.108 §6.10).
    pub fn wcdma_384() -> Self {
        let up = DirectionConfig { channel: ChannelConfig::uplink_64(), ..DirectionConfig::default() };
        Self { down: DirectionConfig::default(), up, rrc: RrcConfig::default(), hsdpa: None }
    }

    /// Returns a bearer of 64 kbit/s in both directions.
    pub fn wcdma_64() -> Self {
        let both = DirectionConfig { channel: ChannelConfig::uplink_64(), ..DirectionConfig::default() };
        Self { down: both.clone(), up: both, rrc: RrcConfig::default(), hsdpa: None }
    }

    /// Returns the settings of one direction.
    pub fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Down => &self.down,
            Direction::Up => &self.up,
        }
    }

    /// Checks the settings. The error names the invalid setting and the possible values.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.down.validate().map_err(|invalid| invalid.within("down"))?;
        self.up.validate().map_err(|invalid| invalid.within("up"))?;
        self.rrc.validate().map_err(|invalid| invalid.within("rrc"))?;
        self.validate_flexible()?;
        let Some(hsdpa) = &self.hsdpa else { return Ok(()) };
        self.down.channel.validate_shared().map_err(|invalid| invalid.within("channel").within("down"))?;
        hsdpa.validate(Framing::of(&self.down.format)).map_err(|invalid| invalid.within("hsdpa"))
    }

    /// A flexible PDU size requires MAC-ehs in the downlink and MAC-i/is in the uplink (TS 25.322 §9.2.2.9),
    /// because the blocks of a DCH have the size of its transport format.
    fn validate_flexible(&self) -> Result<(), Invalid> {
        let down = "a DCH carries blocks of one size: add `hsdpa = {}`, whose MAC-ehs carries PDUs of any size, or remove `flexible`";
        let up = "the uplink is a DCH, which carries blocks of one size (there is no E-DCH with MAC-i/is): remove it";
        let refused =
            |direction, message| Err(Invalid::new("flexible", message).within("format").within(direction));
        if self.down.format.flexible.is_some() && self.hsdpa.is_none() {
            return refused("down", down);
        }
        if self.up.format.flexible.is_some() { refused("up", up) } else { Ok(()) }
    }
}

impl Default for RlcConfig {
    fn default() -> Self {
        Self::wcdma_384()
    }
}

impl DirectionConfig {
    /// Returns a warning for each value that RRC cannot configure.
    pub fn warnings(&self) -> Vec<String> {
        let violations = configurable::violations(&self.sender, &self.receiver);
        violations.into_iter().map(|violation| format!("{}: {}", violation.key, violation.message)).collect()
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.sender.validate().map_err(|invalid| invalid.within("sender"))?;
        self.receiver.validate().map_err(|invalid| invalid.within("receiver"))?;
        self.format.validate().map_err(|invalid| invalid.within("format"))?;
        self.channel.validate().map_err(|invalid| invalid.within("channel"))?;
        if self.strict
            && let Some(violation) = configurable::violations(&self.sender, &self.receiver).into_iter().next()
        {
            return Err(Invalid::new(violation.key, violation.message));
        }
        self.queue.validate().map_err(|invalid| invalid.within("queue"))
    }
}

/// Deserializes a `DirectionConfig` with the defaults of an uplink.
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
    outage: Option<Intervals>,
}

impl Uplink {
    fn direction() -> DirectionConfig {
        RlcConfig::wcdma_384().up
    }

    fn serialize<S: serde::Serializer>(config: &DirectionConfig, serializer: S) -> Result<S::Ok, S::Error> {
        config.serialize(serializer)
    }
}
