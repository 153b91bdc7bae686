//! Everything that can be set about an RLC bearer, with its default and its meaning.

use serde::{Deserialize, Serialize};

use crate::stages::queue::QueueConfig;
use crate::time::Duration;
use crate::units::{Probability, Size};

/// One bearer: what each direction's sender does, and what it is carried in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RlcConfig {
    pub down: DirectionConfig,
    pub up: DirectionConfig,
}

/// One direction: the sender that pushes data this way, the receiver at its other end (which reports about this
/// direction in STATUS PDUs that travel the other way), and the transport channel below.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectionConfig {
    pub sender: SenderConfig,
    pub receiver: ReceiverConfig,
    pub format: FormatConfig,
    pub channel: ChannelConfig,
    #[serde(default)]
    pub queue: QueueConfig,
}

/// How PDUs are written. Both ends of a direction agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FormatConfig {
    /// Octets of every AMD PDU, and the most that a control PDU has. 42 octets are 336 bits, one transport block.
    pub pdu: Size,
    /// "Use special value of the HE field": HE = 10 tells that an SDU ends with the PDU.
    #[serde(default)]
    pub he_special: bool,
}

/// TS 25.322 §9.6, sending side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SenderConfig {
    /// Configured_Tx_Window_Size.
    pub window: u16,
    pub discard: Discard,
    pub max_rst: u8,
    pub timer_rst: Duration,
    #[serde(default)]
    pub poll: PollConfig,
}

/// When an SDU is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode", deny_unknown_fields)]
pub enum Discard {
    /// No_discard: a PDU that would be transmitted a MaxDAT-th time makes a RESET instead. So a PDU is transmitted
    /// at most MaxDAT − 1 times (§9.7.3.4, §11.4.2).
    ResetAfterMaxDat { max_dat: u8 },
    /// SDU discard after MaxDAT transmissions, by MRW.
    MrwAfterMaxDat { max_dat: u8, timer_mrw: Duration, max_mrw: u8 },
    /// Timer-based discard with explicit signalling.
    Timer { timer_discard: Duration, timer_mrw: Duration, max_mrw: u8 },
}

/// The poll triggers of §9.7.1, and what holds them back. Absent: not configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PollConfig {
    pub last_pdu: bool,
    pub last_retransmission: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll_periodic: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timer_poll_prohibit: Option<Duration>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_pdu: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_sdu: Option<u16>,
    /// Per cent of the transmission window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub poll_window: Option<u8>,
}

/// TS 25.322 §9.6, receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReceiverConfig {
    /// Configured_Rx_Window_Size.
    pub window: u16,
    /// TSP. Absent: status reports are never prohibited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_status_prohibit: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_status_periodic: Option<Duration>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timer_epc: Option<Duration>,
    #[serde(default)]
    pub missing_pdu_indicator: bool,
    #[serde(default)]
    pub in_sequence: bool,
}

/// The transport channel: how many PDUs it takes per TTI, how long they need, and how many are damaged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelConfig {
    pub tti: Duration,
    /// The transport format set: how many blocks a TTI can carry. The largest one is the rate.
    pub blocks: Vec<u16>,
    /// From the end of a TTI until the PDUs are at the other end.
    pub delay: Duration,
    pub errors: BlockErrors,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "model", deny_unknown_fields)]
pub enum BlockErrors {
    /// Each block for itself.
    Independent { bler: Probability },
    /// A whole TTI is damaged, or none of it.
    PerTti { bler: Probability },
    /// Gilbert–Elliott, a step per TTI.
    GilbertElliott { good: Probability, bad: Probability, good_to_bad: Probability, bad_to_good: Probability },
}
