//! Settings of a downlink that several mobiles share.

use airwire::time::Duration;
use airwire::units::{Rate, Size};
use serde::{Deserialize, Serialize};

use super::cqi::{Category, Cqi};
use super::framing::Framing;
use crate::fading::doppler;
use crate::fading::units::{Decibels, Frequency, Speed};
use crate::mac::scheduler::Scheduling;
use crate::rlc::values::positive_time;
use crate::settings::Invalid;
use crate::stages::duplex::OneWaySettings;
use crate::stages::traffic::{Begins, Source, TrafficConfig};

/// Settings of an HS-DSCH, of the mobile on the path, and of the other mobiles in the cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HsdpaConfig {
    /// HS-DSCH category of all mobiles, which limits the size of their blocks. Default: 6, at most 7168 bits
    /// per TTI.
    pub category: u8,
    /// Mean signal-to-noise ratio at the mobile. Default: 10 dB.
    pub snr: Decibels,
    /// Fast fading of each mobile. Absent: the signal-to-noise ratio is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fading: Option<FastFading>,
    /// Scheduler that assigns the TTIs. Default: round-robin.
    pub scheduler: Scheduling,
    /// With `proportional-fair`: number of TTIs over which the rate of a mobile is averaged. Default: 1000.
    pub average: u32,
    /// Period of a mobile's CQI reports. Default: 2 ms.
    pub cqi_period: Duration,
    /// Time from the measurement of a CQI to its use for blocks. Default: 6 ms.
    pub cqi_delay: Duration,
    /// HARQ processes per mobile. Default: 6.
    pub processes: u8,
    /// Time from the beginning of a transmission until its process can be used again. Default: 12 ms.
    pub round_trip: Duration,
    /// Maximum number of transmissions of a block. Default: 4.
    pub transmissions: u8,
    /// Window of the reordering queue, in blocks. Default: 16.
    pub window: u8,
    /// T1: time for which the reordering queue waits for a block. Default: 50 ms.
    pub t1: Duration,
    /// Other mobiles in the cell. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<OthersConfig>,
}

/// Fast fading (Rayleigh).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastFading {
    /// Speed of the mobile.
    pub speed: Speed,
    /// Carrier frequency.
    pub carrier: Frequency,
}

/// Mobiles that share the channel with the mobile on the path. Each has its own bearer, with the settings of
/// this one, and its own downlink traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OthersConfig {
    /// Number of mobiles.
    pub mobiles: u32,
    /// Mean signal-to-noise ratio of these mobiles. Absent: the same as for the mobile on the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snr: Option<Decibels>,
    /// Difference in signal-to-noise ratio between the best and the worst mobile. The other mobiles are
    /// spaced evenly between these two. Default: 0 dB.
    #[serde(default = "zero_decibels")]
    pub spread: Decibels,
    /// Traffic to each mobile.
    pub source: Load,
    /// With `cbr` and `pareto-on-off`: rate while the source is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Size of each packet, including its IP header. Default: 1500 bytes.
    #[serde(default = "default_packet")]
    pub packet: Size,
    /// With `pareto-on-off`: shape of the distribution, as in the stage `traffic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<f64>,
    /// With `pareto-on-off`: mean length of an on period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_on: Option<Duration>,
    /// With `pareto-on-off`: mean length of an off period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_off: Option<Duration>,
    /// Time at which the traffic begins, counted from the start. Default: 0.
    #[serde(default)]
    pub starts: Duration,
}

/// Traffic to a mobile that is not on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Data is always waiting.
    FullBuffer,
    /// Constant bit rate.
    Cbr,
    /// On and off periods in turn, with Pareto-distributed lengths.
    ParetoOnOff,
}

fn decibels(text: &str) -> Decibels {
    text.parse().expect("a number and dB")
}

fn zero_decibels() -> Decibels {
    decibels("0dB")
}

fn default_packet() -> Size {
    Size::bytes(1500)
}

impl Default for HsdpaConfig {
    fn default() -> Self {
        Self {
            category: 6,
            snr: decibels("10dB"),
            fading: None,
            scheduler: Scheduling::default(),
            average: 1000,
            cqi_period: Duration::from_millis(2),
            cqi_delay: Duration::from_millis(6),
            processes: 6,
            round_trip: Duration::from_millis(12),
            transmissions: 4,
            window: 16,
            t1: Duration::from_millis(50),
            others: None,
        }
    }
}

/// Receive window sizes of TS 25.331 §10.3.5.1a.
const WINDOWS: [u8; 7] = [4, 6, 8, 12, 16, 24, 32];
const MAX_PROCESSES: u8 = 8;
const MAX_MOBILES: u32 = 100;
/// Range of signal-to-noise ratios in dB. Values outside this range would not make a difference.
const SNR: std::ops::RangeInclusive<f64> = -60.0..=60.0;

impl FastFading {
    /// Maximum Doppler shift in Hz.
    pub(super) fn doppler(&self) -> f64 {
        doppler(self.speed, self.carrier)
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !(1e-3..=20_000.0).contains(&self.speed.metres_per_second()) {
            return Err(Invalid::new(
                "speed",
                "must be from 0.001m/s to 20000m/s, such as \"3km/h\" for a pedestrian",
            ));
        }
        if !(1e6..=1e12).contains(&self.carrier.hertz()) {
            return Err(Invalid::new("carrier", "must be from 1MHz to 1000GHz, such as \"2GHz\""));
        }
        Ok(())
    }
}

impl HsdpaConfig {
    /// Category of the mobiles. The settings must be valid.
    pub(super) fn category(&self) -> Category {
        Category::of(self.category).expect("the settings were validated")
    }

    /// Describes the capacity of the mobile on the path at its mean signal-to-noise ratio.
    pub fn remark(&self, framing: Framing) -> String {
        let cqi = Cqi::of(self.snr.value());
        let used = cqi.min(self.category().largest);
        let octets = framing.octets(used);
        let capacity = match framing {
            Framing::Hs { .. } => format!("{} PDUs", framing.pdus(used)),
            Framing::Ehs { .. } => format!("{octets} bytes of PDUs"),
        };
        format!(
            "at its mean SNR of {} the mobile reports CQI {}: alone in the cell it gets {capacity} in a block of {} bits, {} \
             kbit/s including RLC headers",
            self.snr,
            cqi.get(),
            used.block(),
            octets * 4 / self.category().spacing as usize
        )
    }

    pub(in crate::rlc) fn validate(&self, framing: Framing) -> Result<(), Invalid> {
        let Some(category) = Category::of(self.category) else {
            return Err(Invalid::new("category", "write 1 to 12 (6: 3.6 Mbit/s, 8: 7.2, 10: 14)"));
        };
        if let Framing::Hs { pdu } = framing
            && framing.pdus(category.largest) == 0
        {
            let message = format!(
                "its largest block has {} bits, too few for a PDU of {pdu} bytes: write a smaller `format.pdu`",
                category.largest.block()
            );
            return Err(Invalid::new("category", message));
        }
        self.check_snr("snr", self.snr.value(), framing)?;
        if let Some(fading) = &self.fading {
            fading.validate().map_err(|invalid| invalid.within("fading"))?;
        }
        if !(1..=1_000_000).contains(&self.average) {
            return Err(Invalid::new("average", "write a number of TTIs from 1 to 1000000, such as 1000"));
        }
        positive_time("cqi_period", self.cqi_period)?;
        if !(1..=MAX_PROCESSES).contains(&self.processes) {
            return Err(Invalid::new("processes", format!("must be 1 to {MAX_PROCESSES} HARQ processes")));
        }
        positive_time("round_trip", self.round_trip)?;
        if !(1..=100).contains(&self.transmissions) {
            return Err(Invalid::new("transmissions", "write 1 to 100; 1 disables HARQ"));
        }
        if !WINDOWS.contains(&self.window) {
            let message =
                format!("{} is not a window size of TS 25.331: write one of {WINDOWS:?}", self.window);
            return Err(Invalid::new("window", message));
        }
        positive_time("t1", self.t1)?;
        let Some(others) = &self.others else { return Ok(()) };
        others.validate().map_err(|invalid| invalid.within("others"))?;
        let within = |invalid: Invalid| Invalid::new("snr", invalid.message).within("others");
        (0..others.mobiles)
            .try_for_each(|n| self.check_snr("snr", self.others_snr(n), framing))
            .map_err(within)
    }

    /// Refuses signal-to-noise ratios at which a mobile without fading could not receive any PDU, and would
    /// wait forever.
    fn check_snr(&self, key: &str, snr: f64, framing: Framing) -> Result<(), Invalid> {
        if !SNR.contains(&snr) {
            return Err(Invalid::new(key, "must be from -60dB to 60dB, such as \"10dB\""));
        }
        let cqi = Cqi::of(snr);
        if self.fading.is_none() && framing.octets(cqi) == 0 {
            let (capacity, remedy) = match framing {
                Framing::Hs { pdu } => (format!("no PDU of {pdu} bytes"), ", or a smaller `format.pdu`"),
                Framing::Ehs { .. } => ("no data".to_owned(), ""),
            };
            let message = format!(
                "at {snr} dB a mobile reports CQI {}, whose block of {} bits carries {capacity}: write a higher value{remedy}",
                cqi.get(),
                cqi.block()
            );
            return Err(Invalid::new(key, message));
        }
        Ok(())
    }

    /// Mean signal-to-noise ratio of the n-th other mobile in dB, counted from 0.
    pub(in crate::rlc) fn others_snr(&self, n: u32) -> f64 {
        let Some(others) = &self.others else { return self.snr.value() };
        let middle = others.snr.unwrap_or(self.snr).value();
        match others.mobiles {
            0 | 1 => middle,
            mobiles => middle + others.spread.value() * (f64::from(n) / f64::from(mobiles - 1) - 0.5),
        }
    }
}

impl OthersConfig {
    /// Returns settings of the stage `traffic`. `None` for a full buffer.
    pub(in crate::rlc) fn traffic(&self) -> Option<TrafficConfig> {
        let source = match self.source {
            Load::FullBuffer => return None,
            Load::Cbr => Source::Cbr,
            Load::ParetoOnOff => Source::ParetoOnOff,
        };
        Some(TrafficConfig {
            source,
            sources: 1,
            rate: self.rate?,
            packet: self.packet,
            shape: self.shape,
            mean_on: self.mean_on,
            mean_off: self.mean_off,
            begins: Begins::On,
            leaves_after: String::new(),
            starts: self.starts,
        })
    }

    fn validate(&self) -> Result<(), Invalid> {
        if !(1..=MAX_MOBILES).contains(&self.mobiles) {
            return Err(Invalid::new("mobiles", format!("write 1 to {MAX_MOBILES}, or omit `others`")));
        }
        if !(0.0..=60.0).contains(&self.spread.value()) {
            return Err(Invalid::new("spread", "must be from 0dB to 60dB, such as \"6dB\""));
        }
        if self.source != Load::FullBuffer {
            if self.rate.is_none() {
                return Err(Invalid::new(
                    "rate",
                    "required by this source: add `rate = \"100kbit\"` or similar",
                ));
            }
            return self.traffic().map_or(Ok(()), |traffic| traffic.validate());
        }
        if !(28..=65_535).contains(&self.packet.as_bytes()) {
            return Err(Invalid::new("packet", "an IP packet with UDP has from 28 to 65535 bytes"));
        }
        let unused = [
            ("rate", self.rate.is_some()),
            ("shape", self.shape.is_some()),
            ("mean_on", self.mean_on.is_some()),
            ("mean_off", self.mean_off.is_some()),
        ];
        match unused.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(Invalid::new(
                *key,
                "not valid with a full buffer, which uses all free capacity: remove it",
            )),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::settings;

    fn refused(text: &str) -> (String, String) {
        let config: HsdpaConfig = settings(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let invalid = config.validate(Framing::Hs { pdu: 42 }).unwrap_err();
        (invalid.key, invalid.message)
    }

    #[test]
    fn invalid_settings_are_rejected_naming_key_and_remedy() {
        let default = |framing| HsdpaConfig::default().validate(framing);
        default(Framing::Hs { pdu: 42 }).unwrap();
        assert_eq!(default(Framing::Hs { pdu: 1503 }).unwrap_err().key, "category");
        default(Framing::Ehs { most: 1505 }).unwrap();
        let weak: HsdpaConfig = settings("snr = \"-16dB\"").unwrap();
        let invalid = weak.validate(Framing::Ehs { most: 1505 }).unwrap_err();
        assert!(
            invalid.message.ends_with("whose block of 0 bits carries no data: write a higher value"),
            "{invalid}"
        );
        for (text, key, wanted) in [
            ("category = 0", "category", "1 to 12"),
            ("category = 13", "category", "1 to 12"),
            ("snr = \"-12.9dB\"", "snr", "CQI 3"),
            ("snr = \"90dB\"", "snr", "60dB"),
            ("fading = { speed = \"0km/h\", carrier = \"2GHz\" }", "fading.speed", "3km/h"),
            ("fading = { speed = \"3km/h\", carrier = \"2kHz\" }", "fading.carrier", "2GHz"),
            ("average = 0", "average", "1000"),
            ("cqi_period = \"0ms\"", "cqi_period", "above 0"),
            ("processes = 9", "processes", "1 to 8"),
            ("round_trip = \"0ms\"", "round_trip", "above 0"),
            ("transmissions = 0", "transmissions", "1 to 100"),
            ("window = 5", "window", "[4, 6, 8"),
            ("t1 = \"0ms\"", "t1", "above 0"),
            ("others = { mobiles = 0, source = \"full-buffer\" }", "others.mobiles", "1 to 100"),
            ("others = { mobiles = 1, source = \"cbr\" }", "others.rate", "add `rate"),
            (
                "others = { mobiles = 1, source = \"full-buffer\", rate = \"1Mbit\" }",
                "others.rate",
                "remove it",
            ),
            ("others = { mobiles = 1, source = \"full-buffer\", packet = \"20B\" }", "others.packet", "28"),
            (
                "others = { mobiles = 1, source = \"cbr\", rate = \"1Mbit\", packet = \"20B\" }",
                "others.packet",
                "28",
            ),
            ("others = { mobiles = 2, source = \"full-buffer\", spread = \"-1dB\" }", "others.spread", "6dB"),
            (
                "others = { mobiles = 2, source = \"full-buffer\", spread = \"50dB\" }",
                "others.snr",
                "carries no PDU",
            ),
            (
                "others = { mobiles = 2, source = \"pareto-on-off\", rate = \"1Mbit\" }",
                "others.shape",
                "required by",
            ),
        ] {
            let (found, message) = refused(text);
            assert_eq!(found, key, "{text}: {message}");
            assert!(message.contains(wanted), "{text}: {message}");
        }
    }

    #[test]
    fn remark_reports_cqi_and_rate_at_mean_snr() {
        let of = |text: &str, framing| settings::<HsdpaConfig>(text).unwrap().remark(framing);
        let remark = |text: &str| of(text, Framing::Hs { pdu: 82 });
        assert!(remark("").starts_with("at its mean SNR of 10dB the mobile reports CQI 26: "));
        assert!(remark("").contains("10 PDUs in a block of 7168 bits, 3280 kbit/s"), "{}", remark(""));
        assert!(remark("category = 1").contains("1093 kbit/s"));
        assert!(remark("category = 10").contains("26 PDUs in a block of 17237 bits, 8528 kbit/s"));
        let flexible = of("", Framing::Ehs { most: 1505 });
        assert!(flexible.contains("893 bytes of PDUs in a block of 7168 bits, 3572 kbit/s"), "{flexible}");
    }

    #[test]
    fn other_mobiles_spread_evenly_around_mean_snr() {
        let snrs = |text: &str| {
            let config: HsdpaConfig = settings(text).unwrap();
            let mobiles = config.others.as_ref().map_or(0, |others| others.mobiles);
            (0..mobiles).map(|n| config.others_snr(n)).collect::<Vec<_>>()
        };
        let others = |rest: &str| format!("snr = \"8dB\"\nothers = {{ source = \"full-buffer\", {rest} }}");
        assert_eq!(snrs(&others("mobiles = 3, spread = \"6dB\"")), [5.0, 8.0, 11.0]);
        assert_eq!(snrs(&others("mobiles = 1, spread = \"6dB\"")), [8.0]);
        assert_eq!(snrs(&others("mobiles = 2, snr = \"1dB\"")), [1.0, 1.0]);
    }
}
