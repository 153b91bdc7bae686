//! What P4 ran its senders on (§IV, Table 2), and what it does not say.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::knobs::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

/// The least MSS that `airtcp` takes from a peer. Table 2's 170 bit are 21 octets, half of the headers alone.
pub const MSS: u16 = 64;
/// In segments (Table 2).
const WINDOW: usize = 94;
const SEGMENT_BITS: f64 = 170.0;

/// Table 2: from 1e-3 to 1e-6.
pub const BIT_ERROR_RATES: [(&str, f64); 4] =
    [("1e-3", 1e-3), ("1e-4", 1e-4), ("1e-5", 1e-5), ("1e-6", 1e-6)];

/// Where the data go: `F to M`, `M to F`, `M to M`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    FixedToMobile,
    MobileToFixed,
    MobileToMobile,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::FixedToMobile, Self::MobileToFixed, Self::MobileToMobile];

    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedToMobile => "F to M",
            Self::MobileToFixed => "M to F",
            Self::MobileToMobile => "M to M",
        }
    }

    /// The preset, and the settings that are its radio links' loss rates.
    const fn preset(self) -> (&'static str, &'static [&'static str]) {
        match self {
            Self::FixedToMobile => ("etcp-fixed-mobile", &["radio-errors.down.per"]),
            Self::MobileToFixed => ("etcp-mobile-fixed", &["radio-errors-up.up.per"]),
            Self::MobileToMobile => {
                ("etcp-mobile-mobile", &["radio-errors-1.down.per", "radio-errors-2.down.per"])
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    Reno,
    Etcp,
    /// §V: "without having to wait until it has received three duplicate acknowledgments".
    EtcpEarly,
    NewReno,
}

impl Variant {
    pub const ALL: [Self; 4] = [Self::Reno, Self::Etcp, Self::EtcpEarly, Self::NewReno];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno",
            Self::Etcp => "E-TCP",
            Self::EtcpEarly => "E-TCP, first mark",
            Self::NewReno => "NewReno",
        }
    }

    fn recipe(self) -> Result<Recipe, WorldError> {
        let name = match self {
            Self::Reno => "reno",
            Self::Etcp => "etcp",
            Self::EtcpEarly => "etcp+early-marks",
            Self::NewReno => "newreno",
        };
        Ok(name.parse()?)
    }
}

/// The error rate of a packet of the paper's size.
pub fn packet_error_rate(bit_error_rate: f64) -> f64 {
    1.0 - (1.0 - bit_error_rate).powf(SEGMENT_BITS)
}

/// A run with one endless flow. Its seed is still to be set.
pub fn plan(way: Way, sender: Variant, bit_error_rate: f64, length: Duration) -> Result<Run, WorldError> {
    let (preset, rates) = way.preset();
    let mut scenario = Scenario::load(preset)?;
    for rate in rates {
        scenario.set(rate, &format!("{:.6}%", 100.0 * packet_error_rate(bit_error_rate)))?;
    }
    let profile = |profile: Profile| {
        let mut profile = Profile {
            mss: Some(MSS),
            recv_buffer: WINDOW * usize::from(MSS),
            window_scale: None,
            timestamps: false,
            ack: AckPolicy::EVERY,
            ..profile
        };
        profile.recovery.initial_window = InitialWindow::Segments(1);
        profile
    };
    let sending = HostSpec { profile: profile(Profile::default()), recipe: sender.recipe()? };
    let ordinary = HostSpec::receiver();
    let receiving = HostSpec { profile: profile(ordinary.profile), recipe: ordinary.recipe };
    let endless = Length::Endless;
    let (fixed, mobile, flow) = match way {
        Way::FixedToMobile | Way::MobileToMobile => (sending, receiving, Flow::down(endless)),
        Way::MobileToFixed => (receiving, sending, Flow::up(endless)),
    };
    Ok(Run {
        scenario,
        seed: 0,
        fixed,
        mobile,
        flows: vec![flow],
        until: Until::At(Instant::ZERO + length),
        from: Instant::ZERO,
        score: false,
    })
}

pub fn choices() -> Vec<String> {
    [
        "The paper does not say how long it ran: 600 s here. Its counts of packets are therefore not comparable, their \
         ratios are.",
        "Segments of \"170 bit\" do not hold a TCP/IP header: 64 octets of data here, and 40 of headers. They are damaged \
         at the rate of a packet of 170 bit, 15.64 % at BER 1e-3: at this rate alone the paper's counts are possible.",
        "\"A finite-buffer drop tail gateway\" has 20 packets; the radio takes 1 ms. ACKs are never lost.",
        "Senders follow the RFCs (profile `default`: a least timeout of 1 s, an initial window of one segment); both ends have a window \
         of 94 segments, and each segment is acknowledged.",
        "E-TCP keeps window and threshold for what a mark says was lost in the air, and is Reno otherwise, timeouts \
         included.",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: ln 0.999 = −0.00100050; times 170, −0.17008503; 1 − e^−0.17008503 = 0.15640.
    #[test]
    fn a_packet_of_170_bit_is_lost_as_often_as_the_presets_say() {
        assert!((packet_error_rate(1e-3) - 0.1564).abs() < 5e-5);
        assert!((packet_error_rate(1e-4) - 0.01686).abs() < 5e-6);
    }
}
