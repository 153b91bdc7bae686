//! What can be set about the protocol at the two ends of a UMTS bearer (TS 25.322 §9.6), with its default and its
//! meaning.

use airwire::time::Duration;
use airwire::units::Size;
use serde::{Deserialize, Serialize};

use super::codec::{Format, IndicatorSize, Sizing};
use crate::rlc::values::{count, length, off, off_time, optional_length};
use crate::settings::Invalid;

/// How PDUs are written. Both ends of a direction agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormatConfig {
    /// Octets of every AMD PDU, and of every control PDU with its padding. Default: 42 octets, which are 336 bits,
    /// one transport block: 2 octets of header and 40 of payload.
    pub pdu: Size,
    /// "Flexible RLC PDU size" (release 7) in place of `pdu`: a PDU ends where what it carries ends. Absent: the size is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flexible: Option<FlexibleConfig>,
    /// "Use special value of the HE field": HE = 10 tells that an SDU ends with the PDU. Default: false.
    pub he_special: bool,
}

/// PDUs without padding, up to a largest size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlexibleConfig {
    /// Octets of the largest PDU. Default: 1505, of which 2 are the header: a data field has 1503 at most (§9.2.2.9), which
    /// takes a packet of 1500 octets with its "Length Indicator".
    pub most: Size,
    /// "Length Indicator size". Default: 15 bits. Choice: 7 bits go with PDUs of up to 126 octets only, since no end could be
    /// told behind them.
    pub indicators: IndicatorSize,
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
    #[serde(with = "off_time")]
    pub ignore_nack_within: Option<Duration>,
    /// LOCAL_SUSPEND (§9.3.3.4): from the moment that this is set, so many new PDUs are sent and no more. What is asked for
    /// again is sent, and so are reports and RESETs. Default: off, nothing is suspended.
    #[serde(with = "off")]
    pub suspend: Option<u16>,
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
    #[serde(with = "off_time")]
    pub timer_poll: Option<Duration>,
    /// Poll every so often. Default: off.
    #[serde(with = "off_time")]
    pub timer_poll_periodic: Option<Duration>,
    /// No two polls closer than this. Default: 100 ms.
    #[serde(with = "off_time")]
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverConfig {
    /// Configured_Rx_Window_Size, in PDUs. Default: 512.
    pub window: u16,
    /// The sender is told to use this window (WINDOW), and told again in every report and after every RESET. More than
    /// `sender.window` counts as that. Default: off, the sender uses `sender.window`.
    #[serde(with = "off")]
    pub advertise_window: Option<u16>,
    /// Windows that the sender is told to use later, in ascending order of their times. Default: none.
    pub windows: Vec<WindowAt>,
    /// TSP: the least time between two acknowledgement reports. Shorter than the round trip below IP, and every
    /// report asks again for what is already under way. Default: 150 ms; off, or 0 as in Inamura et al. §2.2: never
    /// prohibited.
    #[serde(with = "off_time")]
    pub timer_status_prohibit: Option<Duration>,
    /// A report leaves so long after what asked for it, and covers what is missing then: TSP as Inamura et al. §2.2 describe it.
    /// No part of TS 25.322. Default: off.
    #[serde(with = "off_time")]
    pub status_delay: Option<Duration>,
    /// Report every so often. Default: off.
    #[serde(with = "off_time")]
    pub timer_status_periodic: Option<Duration>,
    /// Timer_EPC of the estimated PDU counter: report again when what was asked for has not come. Default: off.
    #[serde(with = "off_time")]
    pub timer_epc: Option<Duration>,
    /// Report as soon as a gap is seen. Default: true.
    pub missing_pdu_indicator: bool,
    /// Packets are handed on in their order. Default: true; false: as soon as each is complete.
    pub in_sequence: bool,
    /// A report goes where an AMD PDU would have padding, if it fits there. Default: false.
    pub piggyback: bool,
}

/// A window that the receiver advertises from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowAt {
    /// Since the start.
    pub at: Duration,
    /// WSN, in PDUs.
    pub window: u16,
}

impl Default for FormatConfig {
    fn default() -> Self {
        Self { pdu: Size::bytes(42), flexible: None, he_special: false }
    }
}

impl Default for FlexibleConfig {
    fn default() -> Self {
        Self { most: Size::bytes(LARGEST), indicators: IndicatorSize::default() }
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
            suspend: None,
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
            advertise_window: None,
            windows: Vec::new(),
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

/// The window sizes that RRC can configure (TS 25.331 §10.3.4.23).
const WINDOWS: [u16; 16] = [1, 8, 16, 32, 64, 128, 256, 512, 768, 1024, 1536, 2047, 2560, 3072, 3584, 4095];

/// §9.2.2.9: "the maximum size of the data field of the RLC PDU is 1503 octets". Its header has 2.
const LARGEST: u64 = 1505;

impl FormatConfig {
    /// Octets of the largest PDU, or of every PDU if the size is fixed.
    pub fn most(&self) -> usize {
        self.flexible.map_or(self.pdu, |flexible| flexible.most).as_bytes() as usize
    }

    pub(in crate::rlc) fn validate(self) -> Result<(), Invalid> {
        if let Some(flexible) = self.flexible {
            if self.pdu != Self::default().pdu {
                let message = "with `flexible` the size of PDUs is given by `flexible.most`: remove `pdu`";
                return Err(Invalid::new("pdu", message));
            }
            return flexible.validate().map_err(|invalid| invalid.within("flexible"));
        }
        match self.pdu.as_bytes() {
            16..=1503 => Ok(()),
            octets => Err(Invalid::new(
                "pdu",
                format!(
                    "a PDU cannot have {octets} bytes: write \"16B\" to \"1503B\" (\"42B\" is a W-CDMA \
                     block of 336 bits)"
                ),
            )),
        }
    }
}

impl FlexibleConfig {
    fn validate(self) -> Result<(), Invalid> {
        let octets = self.most.as_bytes();
        if !(16..=LARGEST).contains(&octets) {
            let message = format!("a PDU cannot have {octets} bytes: write \"16B\" to \"{LARGEST}B\"");
            return Err(Invalid::new("most", message));
        }
        if self.indicators == IndicatorSize::Bits7 && octets > 126 {
            let message = format!(
                "length indicators of 7 bits are too short for a PDU of {octets} bytes: write \"15bit\", or `most = \"126B\"` \
                 or less"
            );
            return Err(Invalid::new("indicators", message));
        }
        Ok(())
    }
}

impl From<&FormatConfig> for Format {
    fn from(config: &FormatConfig) -> Self {
        let sizing = match config.flexible {
            None => Sizing::Fixed,
            Some(FlexibleConfig { indicators, .. }) => Sizing::Flexible(indicators),
        };
        Self { pdu_size: config.most(), sizing, he_special: config.he_special }
    }
}

impl SenderConfig {
    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        self.discard.validate().map_err(|invalid| invalid.within("discard"))?;
        count("max_rst", self.max_rst.into())?;
        length("timer_rst", self.timer_rst)?;
        optional_length("ignore_nack_within", self.ignore_nack_within)?;
        self.poll.validate().map_err(|invalid| invalid.within("poll"))
    }
}

impl Discard {
    pub(in crate::rlc) fn validate(self) -> Result<(), Invalid> {
        let (Self::ResetAfterMaxDat { max_dat } | Self::MrwAfterMaxDat { max_dat, .. }) = self else {
            let Self::Timer { timer_discard, timer_mrw, max_mrw } = self else { return Ok(()) };
            length("timer_discard", timer_discard)?;
            length("timer_mrw", timer_mrw)?;
            return count("max_mrw", max_mrw.into());
        };
        if max_dat == 0 {
            return Err(Invalid::new(
                "max_dat",
                "must be at least 1: a PDU is transmitted at most MaxDAT − 1 times",
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
    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
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
    pub(in crate::rlc) fn prohibits(&self) -> Option<Duration> {
        self.timer_status_prohibit.filter(|time| !time.is_zero())
    }

    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        wsn("advertise_window", self.advertise_window)?;
        wsn("windows", self.windows.iter().map(|told| told.window))?;
        if let Some(pair) = self.windows.windows(2).find(|pair| pair[0].at >= pair[1].at) {
            let message =
                format!("{} is not after {}: write the times in ascending order", pair[1].at, pair[0].at);
            return Err(Invalid::new("windows", message));
        }
        optional_length("timer_status_periodic", self.timer_status_periodic)?;
        optional_length("timer_epc", self.timer_epc)
    }
}

/// §9.2.2.11.3: WSN has 12 bits, and 0 is discarded.
fn wsn(key: &str, windows: impl IntoIterator<Item = u16>) -> Result<(), Invalid> {
    match windows.into_iter().find(|window| !(1..=4095).contains(window)) {
        Some(0) => Err(Invalid::new(key, "must be at least 1: senders discard a WINDOW of 0")),
        Some(window) => Err(Invalid::new(key, format!("{window} does not fit into WINDOW: write 1 to 4095"))),
        None => Ok(()),
    }
}

fn window(pdus: u16) -> Result<(), Invalid> {
    if WINDOWS.contains(&pdus) {
        return Ok(());
    }
    let nearest = WINDOWS.iter().min_by_key(|size| size.abs_diff(pdus)).expect("the list is not empty");
    let message =
        format!("{pdus} is not a window size of TS 25.331; the nearest of {WINDOWS:?} is {nearest}");
    Err(Invalid::new("window", message))
}
