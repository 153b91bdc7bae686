//! The settings of a queue and of its disciplines.

use airwire::time::Duration;
use airwire::units::{Probability, Size};
use serde::{Deserialize, Serialize};

use super::length::Length;
use crate::settings::Invalid;

/// The bounds of a queue: `{ packets = 50 }`, `{ bytes = "64kB" }`, both, or `{}` for an unlimited queue.
///
/// Only waiting packets count. As in ns-2, the packet in transmission has left the queue: `packets = 50`
/// allows 50 packets behind the one that is being sent. (ns-2's DropTail refuses a packet that would *reach*
/// its limit, so its `set limit_ 50` corresponds to `packets = 49` here.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// Maximum number of waiting packets. Defaults to no limit.
    pub packets: Option<usize>,
    /// Maximum number of waiting bytes. Defaults to no limit.
    pub bytes: Option<Size>,
}

/// The bounds and the discipline of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "super::table::QueueTable", into = "super::table::QueueTable")]
pub struct QueueConfig {
    /// Limits on the queue's length, with any discipline.
    pub bounds: Bounds,
    /// The discipline that manages the queue.
    pub discipline: Discipline,
}

/// The rule that decides which packets are dropped or marked, and which packet is next.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Discipline {
    /// Drops packets that find no room, and sends the others in order of arrival.
    #[default]
    DropTail,
    /// RFC 8289.
    Codel(CodelConfig),
    /// RFC 8290.
    FqCodel(FqCodelConfig),
    /// RFC 8033.
    Pie(PieConfig),
    /// Floyd and Jacobson (1993).
    Red(RedConfig),
}

/// Settings of CoDel, in the terms of RFC 8289.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelConfig {
    /// TARGET: acceptable persistent sojourn time.
    pub target: Duration,
    /// INTERVAL: time for which the sojourn time may exceed `target`. It should be about the longest
    /// round-trip time.
    pub interval: Duration,
    /// MAXPACKET: no packet is dropped unless more bytes than this are waiting.
    pub mtu: Size,
    /// Marks ECN-capable packets (RFC 3168) instead of dropping them.
    pub ecn: bool,
}

/// Settings of FQ-CoDel, in the terms of RFC 8290.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCodelConfig {
    /// Number of queues into which flows are hashed.
    pub flows: u32,
    /// Number of bytes that a queue may send per round.
    pub quantum: Size,
    /// Settings of CoDel in each queue.
    pub codel: CodelConfig,
}

/// Settings of PIE, in the terms of RFC 8033.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// QDELAY_REF: target queueing delay.
    pub target: Duration,
    /// T_UPDATE: interval between computations of the drop probability.
    pub t_update: Duration,
    /// Change of the probability per second of queueing delay above the target.
    pub alpha: f64,
    /// Change of the probability per second of increase in queueing delay since the last update.
    pub beta: f64,
    /// MAX_BURST: longest burst that passes without drops.
    pub max_burst: Duration,
    /// No packet is dropped while fewer bytes wait than two packets of this length.
    pub mtu: Size,
    /// Marks ECN-capable packets (RFC 3168) instead of dropping them while the probability is at most
    /// `mark_ecnth`.
    pub ecn: bool,
    /// MARK_ECNTH: see `ecn`.
    pub mark_ecnth: Probability,
}

/// Settings of RED, in the terms of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// min_th: no packet is marked while the average length is below this length.
    pub min: Length,
    /// max_th: every packet is marked if the average length is at least this long.
    pub max: Length,
    /// w_q: weight of the current length in the average.
    pub weight: Probability,
    /// max_p: the probability just below `max`.
    pub max_p: Probability,
    /// Lets the probability grow from `max_p` to 1 between `max` and twice `max`.
    pub gentle: bool,
    /// Marks ECN-capable packets (RFC 3168) instead of dropping them.
    pub ecn: bool,
}

impl Default for CodelConfig {
    /// The values of RFC 8289 §4.3 and §4.4.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(5),
            interval: Duration::from_millis(100),
            mtu: Size::bytes(1500),
            ecn: false,
        }
    }
}

impl Default for FqCodelConfig {
    /// The values of RFC 8290 §5.2, and ECN as in Linux.
    fn default() -> Self {
        let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
        Self { flows: 1024, quantum: Size::bytes(1514), codel }
    }
}

impl FqCodelConfig {
    /// Default limit of the queue's length (RFC 8290 §5.2.3).
    pub const PACKETS: usize = 10_240;
}

impl Default for PieConfig {
    /// The values of RFC 8033 §4 and §5.1.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            t_update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mtu: Size::bytes(1500),
            ecn: false,
            mark_ecnth: Probability::new(0.1),
        }
    }
}

impl Default for RedConfig {
    /// The values of the paper's Section VIII: w_q = 0.002, min_th = 5 packets, max_th = 15 packets, max_p =
    /// 1/50.
    fn default() -> Self {
        Self {
            min: Length::Packets(5),
            max: Length::Packets(15),
            weight: Probability::new(0.002),
            max_p: Probability::new(0.02),
            gentle: false,
            ecn: false,
        }
    }
}

impl From<Discipline> for QueueConfig {
    /// An unlimited queue with this discipline.
    fn from(discipline: Discipline) -> Self {
        Self { bounds: Bounds::default(), discipline }
    }
}

impl From<Bounds> for QueueConfig {
    /// A drop-tail queue with these bounds.
    fn from(bounds: Bounds) -> Self {
        Self { bounds, discipline: Discipline::DropTail }
    }
}

impl Bounds {
    /// Refuses bounds of 0.
    pub fn validate(&self) -> Result<(), Invalid> {
        if self.packets == Some(0) {
            return Err(Invalid::new(
                "packets",
                "a queue of 0 packets holds no packet: write 1 or more, or omit `packets` for an unlimited \
                 queue",
            ));
        }
        if self.bytes.is_some_and(|size| size.as_bytes() == 0) {
            return Err(Invalid::new(
                "bytes",
                "a queue of 0 bytes holds no packet: write the size of at least one packet, such as \
                 \"1500B\", or omit `bytes` for an unlimited queue",
            ));
        }
        Ok(())
    }
}

impl QueueConfig {
    /// Returns whether the discipline is drop-tail.
    pub(crate) fn is_drop_tail(&self) -> bool {
        matches!(self.discipline, Discipline::DropTail)
    }

    /// Returns whether the queue marks ECN-capable packets (RFC 3168).
    pub fn marks_ecn(&self) -> bool {
        match &self.discipline {
            Discipline::DropTail => false,
            Discipline::Codel(config) => config.ecn,
            Discipline::FqCodel(config) => config.codel.ecn,
            Discipline::Pie(config) => config.ecn,
            Discipline::Red(config) => config.ecn,
        }
    }

    /// Refuses bounds of 0 and invalid settings of the discipline.
    pub fn validate(&self) -> Result<(), Invalid> {
        self.bounds.validate()?;
        match &self.discipline {
            Discipline::DropTail => Ok(()),
            Discipline::Codel(config) => config.validate(),
            Discipline::FqCodel(config) => config.validate(),
            Discipline::Pie(config) => config.validate(),
            Discipline::Red(config) => config.validate(),
        }
    }
}

fn require_nonzero(key: &str, time: Duration, example: &str) -> Result<(), Invalid> {
    if time.is_zero() {
        return Err(Invalid::new(key, format!("must be above 0: write for example \"{example}\"")));
    }
    Ok(())
}

impl CodelConfig {
    fn validate(&self) -> Result<(), Invalid> {
        require_nonzero("target", self.target, "5ms")?;
        require_nonzero("interval", self.interval, "100ms")?;
        if self.target >= self.interval {
            let message =
                format!("must be less than `interval` ({}): RFC 8289 uses a twentieth of it", self.interval);
            return Err(Invalid::new("target", message));
        }
        Ok(())
    }
}

impl FqCodelConfig {
    fn validate(&self) -> Result<(), Invalid> {
        if !(1..=65_536).contains(&self.flows) {
            return Err(Invalid::new("flows", "write a number from 1 to 65536, such as 1024"));
        }
        if !(1..=1 << 20).contains(&self.quantum.as_bytes()) {
            return Err(Invalid::new("quantum", "write a size from 1 byte to 1 MiB, such as \"1514B\""));
        }
        self.codel.validate()
    }
}

impl PieConfig {
    fn validate(&self) -> Result<(), Invalid> {
        require_nonzero("target", self.target, "15ms")?;
        if self.t_update < Duration::from_millis(1) {
            return Err(Invalid::new("t_update", "must be at least 1ms: write for example \"15ms\""));
        }
        for (key, factor) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(0.0..=1000.0).contains(&factor) {
                return Err(Invalid::new(key, "write a number from 0 to 1000"));
            }
        }
        Ok(())
    }
}

impl RedConfig {
    fn validate(&self) -> Result<(), Invalid> {
        let in_order = match (self.min, self.max) {
            (Length::Packets(min), Length::Packets(max)) => min < max,
            (Length::Bytes(min), Length::Bytes(max)) => min < max,
            _ => {
                return Err(Invalid::new(
                    "max",
                    "`min` and `max` must both be numbers of packets, or both sizes such as \"15kB\"",
                ));
            }
        };
        if !in_order {
            return Err(Invalid::new("max", "must be above `min`: the paper uses three times `min`"));
        }
        if self.weight.value() == 0.0 {
            return Err(Invalid::new(
                "weight",
                "an average with a weight of 0 never changes: write for example 0.002",
            ));
        }
        if self.max_p.value() == 0.0 {
            return Err(Invalid::new(
                "max_p",
                "with 0, no packet is dropped or marked below `max`: write for example 0.02",
            ));
        }
        Ok(())
    }
}
