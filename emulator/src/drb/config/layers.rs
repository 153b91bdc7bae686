//! Settings of RLC and PDCP.

use std::fmt::Debug;

use airwire::time::Duration;
use airwire::units::Size;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::rrc_values::{self as rrc, Violations};
use crate::pdcp::pdu::Format;
use crate::rlc::values::off;
use crate::settings::Invalid;

/// Settings of one layer of a generation.
pub trait Layer: Clone + Debug + Default + PartialEq + Serialize + DeserializeOwned {
    /// The form that both generations have in common.
    type Settings;

    /// The settings in the common form.
    fn settings(&self) -> Self::Settings;

    /// Checks the settings.
    fn validate(&self) -> Result<(), Invalid>;

    /// The settings that RRC cannot configure: key and message.
    fn violations(&self) -> Vec<(&'static str, String)>;
}

/// Mode of RLC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RlcMode {
    /// Acknowledged: RLC retransmits lost data.
    #[default]
    Am,
    /// Unacknowledged: RLC segments and reassembles, but does not retransmit.
    Um,
}

/// RLC of both generations. The receiver's settings apply to the entity at the other end.
#[derive(Clone, Debug, PartialEq)]
pub struct RlcSettings {
    pub(in crate::drb) mode: RlcMode,
    pub(in crate::drb) sn: u32,
    pub(in crate::drb) poll_pdu: Option<u32>,
    pub(in crate::drb) poll_byte: Option<u64>,
    pub(in crate::drb) t_poll_retransmit: Duration,
    pub(in crate::drb) max_retx: u32,
    /// t-Reassembly of NR, t-Reordering of LTE.
    pub(in crate::drb) t_reassembly: Duration,
    pub(in crate::drb) t_status_prohibit: Duration,
}

/// PDCP of both generations.
#[derive(Clone, Debug, PartialEq)]
pub struct PdcpSettings {
    pub(in crate::drb) format: Format,
    /// Only in NR.
    pub(in crate::drb) t_reordering: Option<Duration>,
    pub(in crate::drb) out_of_order: bool,
    pub(in crate::drb) discard_timer: Option<Duration>,
    pub(in crate::drb) status_report: bool,
    pub(in crate::drb) count_at: CountAt,
}

/// RLC of NR (TS 38.322): the sender of a direction, and the receiver at its other end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NrRlcConfig {
    /// Acknowledged mode (default) or unacknowledged mode, which only has `sn` and the timer of the receiver.
    pub mode: RlcMode,
    /// Bits of a sequence number. Acknowledged mode: 12 or 18, default 18. Unacknowledged mode: 6 or 12,
    /// default 12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sn: Option<u32>,
    /// pollPDU. Default: 16.
    #[serde(with = "off")]
    pub poll_pdu: Option<u32>,
    /// pollByte. Default: infinity.
    #[serde(with = "off")]
    pub poll_byte: Option<Size>,
    /// t-PollRetransmit. Default: 100 ms.
    pub t_poll_retransmit: Duration,
    /// maxRetxThreshold. Default: 32.
    pub max_retx: u32,
    /// t-Reassembly. Default: 20 ms.
    pub t_reassembly: Duration,
    /// t-StatusProhibit. Default: 10 ms.
    pub t_status_prohibit: Duration,
}

/// RLC of LTE (TS 36.322): the sender of a direction, and the receiver at its other end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LteRlcConfig {
    /// Acknowledged mode (default) or unacknowledged mode, which only has `sn` and the timer of the receiver.
    pub mode: RlcMode,
    /// Bits of a sequence number. Acknowledged mode: 10 or 16. Unacknowledged mode: 5 or 10. Default: 10.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sn: Option<u32>,
    /// pollPDU. Default: 16.
    #[serde(with = "off")]
    pub poll_pdu: Option<u32>,
    /// pollByte. Default: infinity.
    #[serde(with = "off")]
    pub poll_byte: Option<Size>,
    /// t-PollRetransmit. Default: 60 ms.
    pub t_poll_retransmit: Duration,
    /// maxRetxThreshold. Default: 32.
    pub max_retx: u32,
    /// t-Reordering of RLC. Default: 45 ms.
    pub t_reordering: Duration,
    /// t-StatusProhibit. Default: 20 ms.
    pub t_status_prohibit: Duration,
}

/// PDCP of NR (TS 38.323).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NrPdcpConfig {
    /// Bits of a sequence number: 12 or 18. Default: 18.
    pub sn: u32,
    /// t-Reordering. Default: 220 ms.
    #[serde(with = "off")]
    pub t_reordering: Option<Duration>,
    /// discardTimer. Default: infinity.
    #[serde(with = "off")]
    pub discard_timer: Option<Duration>,
    /// outOfOrderDelivery. Default: false.
    pub out_of_order: bool,
    /// statusReportRequired. Default: true.
    pub status_report: bool,
    /// The moment at which a packet receives its COUNT. Default: at submission.
    pub count_at: CountAt,
}

/// PDCP of LTE (TS 36.323).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LtePdcpConfig {
    /// Bits of a sequence number: 12, 15 or 18. Default: 12.
    pub sn: u32,
    /// discardTimer. Default: infinity.
    #[serde(with = "off")]
    pub discard_timer: Option<Duration>,
    /// statusReportRequired. Default: true.
    pub status_report: bool,
    /// The moment at which a packet receives its COUNT. Default: at submission.
    pub count_at: CountAt,
}

/// The moment at which PDCP gives a packet its COUNT. If a packet with a COUNT is discarded, the NR receiver
/// waits for the packet until t-Reordering expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CountAt {
    /// At the packet's arrival: RLC holds the queue.
    #[default]
    Submission,
    /// When RLC needs data: PDCP holds the queue.
    FirstTransmission,
}

impl Default for NrRlcConfig {
    fn default() -> Self {
        Self {
            mode: RlcMode::Am,
            sn: None,
            poll_pdu: Some(16),
            poll_byte: None,
            t_poll_retransmit: Duration::from_millis(100),
            max_retx: 32,
            t_reassembly: Duration::from_millis(20),
            t_status_prohibit: Duration::from_millis(10),
        }
    }
}

impl Default for LteRlcConfig {
    fn default() -> Self {
        Self {
            mode: RlcMode::Am,
            sn: None,
            poll_pdu: Some(16),
            poll_byte: None,
            t_poll_retransmit: Duration::from_millis(60),
            max_retx: 32,
            t_reordering: Duration::from_millis(45),
            t_status_prohibit: Duration::from_millis(20),
        }
    }
}

impl Default for NrPdcpConfig {
    fn default() -> Self {
        Self {
            sn: 18,
            t_reordering: Some(Duration::from_millis(220)),
            discard_timer: None,
            out_of_order: false,
            status_report: true,
            count_at: CountAt::Submission,
        }
    }
}

impl Default for LtePdcpConfig {
    fn default() -> Self {
        Self { sn: 12, discard_timer: None, status_report: true, count_at: CountAt::Submission }
    }
}

fn sn(bits: u32, allowed: &[u32]) -> Result<(), Invalid> {
    if allowed.contains(&bits) {
        return Ok(());
    }
    let allowed: Vec<_> = allowed.iter().map(u32::to_string).collect();
    let message = format!("a sequence number cannot have {bits} bits: write {}", allowed.join(" or "));
    Err(Invalid::new("sn", message))
}

impl RlcSettings {
    fn validate(&self, am_lengths: &[u32], um_lengths: &[u32]) -> Result<(), Invalid> {
        if self.mode == RlcMode::Um {
            return sn(self.sn, um_lengths);
        }
        sn(self.sn, am_lengths)?;
        for (key, value) in [
            ("max_retx", u64::from(self.max_retx)),
            ("poll_pdu", self.poll_pdu.map_or(1, u64::from)),
            ("poll_byte", self.poll_byte.unwrap_or(1)),
            ("t_poll_retransmit", self.t_poll_retransmit.as_nanos()),
        ] {
            if value == 0 {
                return Err(Invalid::new(key, "must be above 0"));
            }
        }
        Ok(())
    }

    /// The settings that only acknowledged mode has, and whether each differs from its default.
    fn changes_of_am(&self, default: &Self) -> [(&'static str, bool); 5] {
        [
            ("t_poll_retransmit", self.t_poll_retransmit != default.t_poll_retransmit),
            ("poll_pdu", self.poll_pdu != default.poll_pdu),
            ("poll_byte", self.poll_byte != default.poll_byte),
            ("max_retx", self.max_retx != default.max_retx),
            ("t_status_prohibit", self.t_status_prohibit != default.t_status_prohibit),
        ]
    }
}

impl Layer for NrRlcConfig {
    type Settings = RlcSettings;

    fn settings(&self) -> RlcSettings {
        RlcSettings {
            mode: self.mode,
            sn: self.sn.unwrap_or(if self.mode == RlcMode::Am { 18 } else { 12 }),
            poll_pdu: self.poll_pdu,
            poll_byte: self.poll_byte.map(Size::as_bytes),
            t_poll_retransmit: self.t_poll_retransmit,
            max_retx: self.max_retx,
            t_reassembly: self.t_reassembly,
            t_status_prohibit: self.t_status_prohibit,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.settings().validate(&[12, 18], &[6, 12])
    }

    fn violations(&self) -> Vec<(&'static str, String)> {
        let mut violations = Violations::default();
        violations.time("t_reassembly", Some(self.t_reassembly), rrc::REASSEMBLY);
        if self.mode == RlcMode::Um {
            violations.without_effect_in_um(self.settings().changes_of_am(&Self::default().settings()));
            return violations.0;
        }
        violations.time("t_poll_retransmit", Some(self.t_poll_retransmit), rrc::POLL_RETRANSMIT_NR);
        violations.count("poll_pdu", self.poll_pdu, rrc::POLL_PDU_NR);
        violations.kilobytes("poll_byte", self.poll_byte, rrc::POLL_BYTE_NR);
        violations.count("max_retx", Some(self.max_retx), rrc::MAX_RETX);
        violations.time("t_status_prohibit", Some(self.t_status_prohibit), rrc::STATUS_PROHIBIT);
        violations.0
    }
}

impl Layer for LteRlcConfig {
    type Settings = RlcSettings;

    fn settings(&self) -> RlcSettings {
        RlcSettings {
            mode: self.mode,
            sn: self.sn.unwrap_or(10),
            poll_pdu: self.poll_pdu,
            poll_byte: self.poll_byte.map(Size::as_bytes),
            t_poll_retransmit: self.t_poll_retransmit,
            max_retx: self.max_retx,
            t_reassembly: self.t_reordering,
            t_status_prohibit: self.t_status_prohibit,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        self.settings().validate(&[10, 16], &[5, 10])
    }

    fn violations(&self) -> Vec<(&'static str, String)> {
        let mut violations = Violations::default();
        violations.time("t_reordering", Some(self.t_reordering), rrc::REASSEMBLY);
        if self.mode == RlcMode::Um {
            violations.without_effect_in_um(self.settings().changes_of_am(&Self::default().settings()));
            return violations.0;
        }
        violations.time("t_poll_retransmit", Some(self.t_poll_retransmit), rrc::POLL_RETRANSMIT_LTE);
        violations.count("poll_pdu", self.poll_pdu, rrc::POLL_PDU_LTE);
        violations.kilobytes("poll_byte", self.poll_byte, rrc::POLL_BYTE_LTE);
        violations.count("max_retx", Some(self.max_retx), rrc::MAX_RETX);
        violations.time("t_status_prohibit", Some(self.t_status_prohibit), rrc::STATUS_PROHIBIT);
        violations.0
    }
}

impl PdcpSettings {
    /// Checks the settings against the mode of RLC.
    pub(super) fn validate_with(&self, mode: RlcMode) -> Result<(), Invalid> {
        if mode == RlcMode::Am {
            return Ok(());
        }
        match self.format {
            Format::Lte15 | Format::Lte18 => {
                Err(Invalid::new("sn", "longer numbers need acknowledged mode: write 12"))
            }
            Format::Nr12 | Format::Nr18 if self.t_reordering.is_none() => {
                let message =
                    "without retransmission by RLC, PDCP would wait forever: write for example \"100ms\"";
                Err(Invalid::new("t_reordering", message))
            }
            _ => Ok(()),
        }
    }
}

impl Layer for NrPdcpConfig {
    type Settings = PdcpSettings;

    fn settings(&self) -> PdcpSettings {
        PdcpSettings {
            format: if self.sn == 12 { Format::Nr12 } else { Format::Nr18 },
            t_reordering: self.t_reordering,
            out_of_order: self.out_of_order,
            discard_timer: self.discard_timer,
            status_report: self.status_report,
            count_at: self.count_at,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        sn(self.sn, &[12, 18])
    }

    fn violations(&self) -> Vec<(&'static str, String)> {
        let mut violations = Violations::default();
        violations.time("t_reordering", self.t_reordering, rrc::REORDERING);
        violations.time("discard_timer", self.discard_timer, rrc::DISCARD_NR);
        violations.0
    }
}

impl Layer for LtePdcpConfig {
    type Settings = PdcpSettings;

    fn settings(&self) -> PdcpSettings {
        PdcpSettings {
            format: match self.sn {
                12 => Format::Lte12,
                15 => Format::Lte15,
                _ => Format::Lte18,
            },
            t_reordering: None,
            out_of_order: false,
            discard_timer: self.discard_timer,
            status_report: self.status_report,
            count_at: self.count_at,
        }
    }

    fn validate(&self) -> Result<(), Invalid> {
        sn(self.sn, &[12, 15, 18])
    }

    fn violations(&self) -> Vec<(&'static str, String)> {
        let mut violations = Violations::default();
        violations.time("discard_timer", self.discard_timer, rrc::DISCARD_LTE);
        violations.0
    }
}
