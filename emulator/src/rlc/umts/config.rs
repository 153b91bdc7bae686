//! Settings of the protocol at the two ends of a UMTS bearer (TS 25.322 §9.6), with their meanings and
//! defaults.

use airwire::time::Duration;
use airwire::units::Size;
use serde::{Deserialize, Serialize};

use super::codec::{Format, IndicatorSize, Sizing};
use crate::rlc::values::{off, off_time, positive_count, positive_if_set, positive_time};
use crate::settings::Invalid;

/// Format of the PDUs. Both ends of a direction must use the same format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FormatConfig {
    /// Size of every AMD PDU, and of every control PDU with its padding. Default: 42 bytes or 336 bits, which
    /// is one transport block: 2 bytes of header and 40 bytes of payload.
    pub pdu: Size,
    /// "Flexible RLC PDU size" (release 7), in place of `pdu`: a PDU ends with its content. Absent: the size
    /// is fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flexible: Option<FlexibleConfig>,
    /// "Use special value of the HE field": HE = 10 indicates that an SDU ends with the PDU. Default: false.
    pub he_special: bool,
}

/// Format of PDUs with a flexible size, which have no padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlexibleConfig {
    /// Maximum size of a PDU. Default: 1505 bytes, with 2 bytes of header. The data field has at most 1503
    /// bytes (§9.2.2.9), which is enough for a packet of 1500 bytes and its Length Indicator.
    pub most: Size,
    /// "Length Indicator size". Default: 15 bits. Choice: 7 bits require PDUs of at most 126 bytes, because
    /// they cannot indicate the end of an SDU beyond that.
    pub indicators: IndicatorSize,
}

/// Settings of the sending side (TS 25.322 §9.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SenderConfig {
    /// Configured_Tx_Window_Size, in PDUs. Default: 512, which is 427 ms of a 384 kbit/s downlink. A window
    /// of 512 stalls when PDUs are lost more than once; 1024 stalls less often. Both ends should use the same
    /// value.
    ///
    /// Above 2047, two windows exceed the 4096 sequence numbers. The standard permits this. But a late copy
    /// of a PDU or a repeated MRW can then be taken for one with the same sequence number in the next cycle.
    /// The result is a corrupt packet, or a report with an erroneous sequence number, which causes a RESET.
    pub window: u16,
    /// The condition for discarding SDUs. Default: RESET after MaxDAT = 10.
    pub discard: Discard,
    /// MaxRST: a RESET is transmitted at most MaxRST − 1 times before the bearer fails. Default: 8.
    pub max_rst: u8,
    /// Timer_RST: time after which an unanswered RESET is retransmitted. Default: 500 ms.
    pub timer_rst: Duration,
    /// The conditions under which the sender polls the receiver for a report.
    pub poll: PollConfig,
    /// "Send MRW": an MRW names every SDU that it discards, not only the last one. Default: false. Choice: it
    /// names only SDUs whose transmission has begun. The standard also names SDUs that were discarded before
    /// their transmission, but those have no sequence numbers here.
    pub send_mrw: bool,
    /// Time after a retransmission in which a NACK for the same PDU is ignored, because it refers to an
    /// earlier copy. This is not part of the standard. It prevents needless retransmissions if
    /// Timer_Status_Prohibit is shorter than the round-trip time. A value above the round-trip time below IP
    /// is not useful, because a lost retransmission then has to wait for another report. Default: off.
    #[serde(with = "off_time")]
    pub ignore_nack_within: Option<Duration>,
    /// LOCAL_SUSPEND (§9.3.3.4): number of new PDUs that may be sent after this setting takes effect.
    /// Retransmissions, reports and RESETs continue. Default: off, transmission is not suspended.
    #[serde(with = "off")]
    pub suspend: Option<u16>,
}

/// The condition for discarding an SDU.
///
/// MaxDAT counts scheduled transmissions. When VT(DAT) of a PDU becomes equal to MaxDAT, the RESET or the
/// discard replaces the transmission. So a PDU is transmitted at most MaxDAT − 1 times, and retransmitted at
/// most MaxDAT − 2 times (§9.6, §9.7.3.4, §11.4.2). Choice: MaxDAT = 1 would not permit any transmission, and
/// is treated as 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "mode", deny_unknown_fields)]
pub enum Discard {
    /// No_discard: a RESET replaces the MaxDAT-th transmission of a PDU. It discards every packet whose
    /// transmission has begun.
    ResetAfterMaxDat {
        /// MaxDAT.
        max_dat: u8,
    },
    /// SDU discard after MaxDAT transmissions: the sender requests the peer to move its receiving window
    /// (MRW). It repeats the MRW when `timer_mrw` expires. After `max_mrw` expiries there is a RESET.
    MrwAfterMaxDat {
        /// MaxDAT.
        max_dat: u8,
        /// Timer_MRW.
        timer_mrw: Duration,
        /// MaxMRW.
        max_mrw: u8,
    },
    /// Timer-based discard with explicit signalling: an SDU that is not acknowledged within `timer_discard`
    /// of its arrival at RLC is discarded, together with all earlier SDUs.
    Timer {
        /// Timer_Discard.
        timer_discard: Duration,
        /// Timer_MRW.
        timer_mrw: Duration,
        /// MaxMRW.
        max_mrw: u8,
    },
}

/// Poll triggers (§9.7.1), and the timer that limits their rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PollConfig {
    /// Poll with the last new PDU in the buffer. Default: true.
    pub last_pdu: bool,
    /// Poll with the last PDU of the retransmission buffer. Default: true.
    pub last_retransmission: bool,
    /// Timer_Poll: time after which an unanswered poll is repeated. Default: 200 ms.
    #[serde(with = "off_time")]
    pub timer_poll: Option<Duration>,
    /// Timer_Poll_Periodic: period of regular polls. Default: off.
    #[serde(with = "off_time")]
    pub timer_poll_periodic: Option<Duration>,
    /// Timer_Poll_Prohibit: minimum time between two polls. Default: 100 ms.
    #[serde(with = "off_time")]
    pub timer_poll_prohibit: Option<Duration>,
    /// Poll with every n-th PDU. Default: off.
    #[serde(with = "off")]
    pub poll_pdu: Option<u16>,
    /// Poll with every n-th SDU. Default: off.
    #[serde(with = "off")]
    pub poll_sdu: Option<u16>,
    /// Poll when at least this percentage of the transmission window is in use. Default: 50.
    #[serde(with = "off")]
    pub poll_window: Option<u8>,
    /// Send a poll in a POLL super-field (release 7) if there is no PDU to carry it. Otherwise such a poll
    /// causes the retransmission of a PDU. Default: false.
    pub poll_sufi: bool,
}

/// Settings of the receiving side (TS 25.322 §9.6).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReceiverConfig {
    /// Configured_Rx_Window_Size, in PDUs. Default: 512.
    pub window: u16,
    /// Transmission window in PDUs that the receiver advertises to the sender (WINDOW), repeated in every
    /// report and after every RESET. A value above `sender.window` has the effect of `sender.window`.
    /// Default: off, the sender uses `sender.window`.
    #[serde(with = "off")]
    pub advertise_window: Option<u16>,
    /// Windows that the receiver advertises later, in ascending order of their times. Default: none.
    pub windows: Vec<WindowAt>,
    /// Timer_Status_Prohibit (TSP): minimum time between two acknowledgement reports. If it is shorter than
    /// the round-trip time below IP, every report requests PDUs that are already in flight. Default: 150 ms.
    /// Off, or 0 as in Inamura et al. §2.2: reports are never prohibited.
    #[serde(with = "off_time")]
    pub timer_status_prohibit: Option<Duration>,
    /// Time between the trigger of a report and its transmission. The report lists the PDUs missing at the
    /// time of transmission. Inamura et al. §2.2 describe TSP in this way, but it is not part of TS 25.322.
    /// Default: off.
    #[serde(with = "off_time")]
    pub status_delay: Option<Duration>,
    /// Timer_Status_Periodic: period of regular reports. Default: off.
    #[serde(with = "off_time")]
    pub timer_status_periodic: Option<Duration>,
    /// Timer_EPC of the estimated PDU counter: report again if requested PDUs have not arrived in time.
    /// Default: off.
    #[serde(with = "off_time")]
    pub timer_epc: Option<Duration>,
    /// Report as soon as a gap is detected. Default: true.
    pub missing_pdu_indicator: bool,
    /// Deliver packets in sequence. If false, complete packets are delivered at once. Default:
    /// true.
    pub in_sequence: bool,
    /// Send a report in the padding of an AMD PDU if it fits. Default: false.
    pub piggyback: bool,
}

/// A window that the receiver advertises from a certain time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowAt {
    /// Time since the start.
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
        Self { most: Size::bytes(MAX_FLEXIBLE), indicators: IndicatorSize::default() }
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
    /// No triggers and no timers, as a base for other values.
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

/// Maximum size of a flexible PDU. §9.2.2.9: "the maximum size of the data field of the RLC PDU is 1503
/// octets". The header has 2 more.
const MAX_FLEXIBLE: u64 = 1505;

impl FormatConfig {
    /// Maximum size of a PDU in bytes. If the size is fixed, it is the size of every PDU.
    pub fn max_pdu(&self) -> usize {
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
        if !(16..=MAX_FLEXIBLE).contains(&octets) {
            let message = format!("a PDU cannot have {octets} bytes: write \"16B\" to \"{MAX_FLEXIBLE}B\"");
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
        Self { pdu_size: config.max_pdu(), sizing, he_special: config.he_special }
    }
}

impl SenderConfig {
    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        self.discard.validate().map_err(|invalid| invalid.within("discard"))?;
        positive_count("max_rst", self.max_rst.into())?;
        positive_time("timer_rst", self.timer_rst)?;
        positive_if_set("ignore_nack_within", self.ignore_nack_within)?;
        self.poll.validate().map_err(|invalid| invalid.within("poll"))
    }
}

impl Discard {
    pub(in crate::rlc) fn validate(self) -> Result<(), Invalid> {
        let (Self::ResetAfterMaxDat { max_dat } | Self::MrwAfterMaxDat { max_dat, .. }) = self else {
            let Self::Timer { timer_discard, timer_mrw, max_mrw } = self else { return Ok(()) };
            positive_time("timer_discard", timer_discard)?;
            positive_time("timer_mrw", timer_mrw)?;
            return positive_count("max_mrw", max_mrw.into());
        };
        if max_dat == 0 {
            return Err(Invalid::new(
                "max_dat",
                "must be at least 1: a PDU is transmitted at most MaxDAT − 1 times",
            ));
        }
        if let Self::MrwAfterMaxDat { timer_mrw, max_mrw, .. } = self {
            positive_time("timer_mrw", timer_mrw)?;
            positive_count("max_mrw", max_mrw.into())?;
        }
        Ok(())
    }
}

impl PollConfig {
    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
        positive_if_set("timer_poll", self.timer_poll)?;
        positive_if_set("timer_poll_periodic", self.timer_poll_periodic)?;
        positive_if_set("timer_poll_prohibit", self.timer_poll_prohibit)?;
        positive_count("poll_pdu", self.poll_pdu.unwrap_or(1))?;
        positive_count("poll_sdu", self.poll_sdu.unwrap_or(1))?;
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
    /// Time after a report in which further reports are prohibited. `None`: reports are never prohibited.
    pub(in crate::rlc) fn prohibits(&self) -> Option<Duration> {
        self.timer_status_prohibit.filter(|time| !time.is_zero())
    }

    pub(in crate::rlc) fn validate(&self) -> Result<(), Invalid> {
        window(self.window)?;
        wsn("advertise_window", self.advertise_window)?;
        wsn("windows", self.windows.iter().map(|window| window.window))?;
        if let Some(pair) = self.windows.windows(2).find(|pair| pair[0].at >= pair[1].at) {
            let message =
                format!("{} is not after {}: write the times in ascending order", pair[1].at, pair[0].at);
            return Err(Invalid::new("windows", message));
        }
        positive_if_set("timer_status_periodic", self.timer_status_periodic)?;
        positive_if_set("timer_epc", self.timer_epc)
    }
}

/// §9.2.2.11.3: WSN has 12 bits, and senders discard a WSN of 0.
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
