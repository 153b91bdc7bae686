//! LTE and NR: the settings in which they differ.

use std::fmt::Debug;

use airwire::time::Duration;

use super::TechnologyKind;
use super::layers::{Layer, LtePdcpConfig, LteRlcConfig, NrPdcpConfig, NrRlcConfig};
use super::{PdcpSettings, RlcSettings};
use crate::mac::grid::Pattern;
use crate::mac::harq::HarqConfig;
use crate::packet::Direction;

/// A generation of mobile networks: its layers, and their defaults.
pub trait Generation: Clone + Debug + Default + PartialEq + 'static {
    /// Settings of RLC.
    type Rlc: Layer<Settings = RlcSettings>;
    /// Settings of PDCP.
    type Pdcp: Layer<Settings = PdcpSettings>;
    /// The name of the generation.
    const KIND: TechnologyKind;
    /// Default length of a slot.
    const SLOT: Duration;
    /// Length of a slot, if it cannot be configured.
    const ONLY_SLOT: Option<Duration>;
    /// Default settings of HARQ.
    const HARQ: HarqConfig;
    /// Default period of scheduling requests, and default time from a request to its grant.
    const GRANT: (Duration, Duration);
    /// Default TDD pattern.
    fn pattern() -> Pattern;
    /// Default transport blocks: their size in octets, and their number in a slot.
    fn transport_blocks(direction: Direction) -> (usize, usize);
}

/// 4G.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lte;

/// 5G New Radio.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nr;

impl Generation for Lte {
    type Rlc = LteRlcConfig;
    type Pdcp = LtePdcpConfig;
    const KIND: TechnologyKind = TechnologyKind::Lte;
    const SLOT: Duration = Duration::from_millis(1);
    const ONLY_SLOT: Option<Duration> = Some(Self::SLOT);
    // FDD: ACK after 4 subframes, retransmission after 4 more.
    const HARQ: HarqConfig =
        HarqConfig { processes: 8, round_trip: Duration::from_millis(8), transmissions: 4 };
    // SR decoding and grant take 4 subframes, and the transmission follows 4 later.
    const GRANT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(8));

    fn pattern() -> Pattern {
        Pattern::fdd()
    }

    /// 20 MHz: two codewords with I_TBS 20 down, 50 resource blocks with I_TBS 16 up.
    fn transport_blocks(direction: Direction) -> (usize, usize) {
        match direction {
            Direction::Down => (5_861, 2),
            Direction::Up => (2_052, 1),
        }
    }
}

impl Generation for Nr {
    type Rlc = NrRlcConfig;
    type Pdcp = NrPdcpConfig;
    const KIND: TechnologyKind = TechnologyKind::Nr;
    const SLOT: Duration = Duration::from_micros(500);
    const ONLY_SLOT: Option<Duration> = None;
    // TDD with a pattern of 2.5 ms.
    const HARQ: HarqConfig =
        HarqConfig { processes: 16, round_trip: Duration::from_millis(5), transmissions: 5 };
    // 4 slots for decoding and scheduling, and K2 = 4 slots.
    const GRANT: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(4));

    fn pattern() -> Pattern {
        "DDDSU".parse().unwrap_or_else(|_| Pattern::fdd())
    }

    /// 100 MHz, 30 kHz: two layers with MCS 19 down.
    fn transport_blocks(direction: Direction) -> (usize, usize) {
        match direction {
            Direction::Down => (50_205, 1),
            Direction::Up => (13_569, 1),
        }
    }
}
