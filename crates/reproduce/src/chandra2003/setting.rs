//! The set-up (§IV, Table 2), with choices for the parameters that the paper does not state.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::recovery::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

/// The smallest MSS that `airtcp` accepts from a peer. Table 2's 170 bit are 21 bytes, which is half of the headers.
pub const MSS: u16 = 64;
/// Window of both ends in segments (Table 2).
const WINDOW: usize = 94;
/// Size of a segment in the paper (Table 2), and size of a segment with its headers here.
const SEGMENT_BITS: f64 = 170.0;
const OUR_BITS: f64 = (MSS as f64 + 40.0) * 8.0;
/// Rates of Table 2 in bit/s.
const WIRE: f64 = 56e3;
const RADIO: f64 = 2e6;

/// A bit error rate with its name.
pub type Ber = (&'static str, f64);

/// Table 2: "10^-3 to 10^-6".
pub const BIT_ERROR_RATES: [Ber; 4] = [("1e-3", 1e-3), ("1e-4", 1e-4), ("1e-5", 1e-5), ("1e-6", 1e-6)];

/// Direction of the data: `F to M`, `M to F` or `M to M`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// `F to M`.
    FixedToMobile,
    /// `M to F`.
    MobileToFixed,
    /// `M to M`.
    MobileToMobile,
}

impl Way {
    /// All directions, in the order of Table 3.
    pub const ALL: [Self; 3] = [Self::FixedToMobile, Self::MobileToFixed, Self::MobileToMobile];

    /// All directions at all bit error rates.
    pub(super) fn cases() -> Vec<(Self, Ber)> {
        Self::ALL.into_iter().flat_map(|direction| BIT_ERROR_RATES.map(|ber| (direction, ber))).collect()
    }

    /// The name in Table 3.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FixedToMobile => "F to M",
            Self::MobileToFixed => "M to F",
            Self::MobileToMobile => "M to M",
        }
    }

    const fn preset(self) -> &'static str {
        match self {
            Self::FixedToMobile => "etcp-fixed-mobile",
            Self::MobileToFixed => "etcp-mobile-fixed",
            Self::MobileToMobile => "etcp-mobile-mobile",
        }
    }

    /// The preset's radio links, each with the setting of its loss rate.
    const fn radios(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::FixedToMobile => &[("radio", "radio-errors.down.per")],
            Self::MobileToFixed => &[("radio", "radio-errors-up.up.per")],
            Self::MobileToMobile => {
                &[("radio-1", "radio-errors-1.down.per"), ("radio-2", "radio-errors-2.down.per")]
            }
        }
    }
}

/// A sender of the simulations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    /// Reno without marks.
    Reno,
    /// E-TCP, which acts at the third duplicate ACK.
    Etcp,
    /// §V: "without having to wait until it has received three duplicate acknowledgments".
    EtcpEarly,
    /// Not in the paper: marks also count at a timeout.
    EtcpAtTimeouts,
    /// NewReno without marks, which is not in the paper.
    NewReno,
}

impl Variant {
    /// The name in Table 3, or one in its style.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno-TCP",
            Self::Etcp => "E-TCP",
            Self::EtcpEarly => "E-TCP, first mark",
            Self::EtcpAtTimeouts => "E-TCP, also at timeouts",
            Self::NewReno => "NewReno",
        }
    }

    const fn recipe(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::Etcp => "etcp",
            Self::EtcpEarly => "etcp+early-marks",
            Self::EtcpAtTimeouts => "etcp+marked-timeout",
            Self::NewReno => "newreno",
        }
    }
}

/// Two readings of the bit error rate where data cross two radio links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errors {
    /// The total of both links: each link has half of this rate.
    InTotal,
    /// The bit error rate of each link.
    OnEachRadio,
}

/// A direction, with a reading of the bit error rate.
pub(super) type Case = (Way, Errors);

/// All directions, and the second reading of the bit error rate from mobile to mobile.
pub(super) const CASES: [Case; 4] = [
    (Way::FixedToMobile, Errors::InTotal),
    (Way::MobileToFixed, Errors::InTotal),
    (Way::MobileToMobile, Errors::InTotal),
    (Way::MobileToMobile, Errors::OnEachRadio),
];

/// Transmission time of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// The time of 170 bit at the paper's rates.
    PaperPackets,
    /// The time of our packets, which have 4.9 times 170 bit, at the paper's rates.
    OurPackets,
}

/// One sender on one path. [`Setting::new`] takes the first three fields and sets the rest to the paper's values or
/// to choices of this project.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    /// The direction of the data.
    pub direction: Way,
    /// The sender of the data.
    pub sender: Variant,
    /// The bit error rate of the path.
    pub bit_error_rate: f64,
    /// The meaning of the bit error rate on a path with two radio links.
    pub errors: Errors,
    /// The transmission time of a packet.
    pub timing: Timing,
    /// Capacity of a queue in packets.
    pub queue: u32,
    /// Delay of each radio link.
    pub radio_delay: Duration,
    /// Minimum RTO.
    pub min_rto: Duration,
    /// Minimum ssthresh in segments (Table 2).
    pub min_ssthresh: u32,
}

impl Setting {
    /// Creates a setting with the paper's values.
    pub const fn new(direction: Way, sender: Variant, bit_error_rate: f64) -> Self {
        Self {
            direction,
            sender,
            bit_error_rate,
            errors: Errors::InTotal,
            timing: Timing::PaperPackets,
            queue: 20,
            radio_delay: Duration::from_millis(1),
            min_rto: Duration::from_secs(1),
            min_ssthresh: 1,
        }
    }

    /// Loss rate of one radio link.
    pub fn packet_error_rate(&self) -> f64 {
        let share = match self.errors {
            Errors::InTotal => self.direction.radios().len() as f64,
            Errors::OnEachRadio => 1.0,
        };
        1.0 - (1.0 - self.bit_error_rate / share).powf(SEGMENT_BITS)
    }

    /// Loss rate over all radio links of the path.
    pub fn loss(&self) -> f64 {
        1.0 - (1.0 - self.packet_error_rate()).powi(self.direction.radios().len() as i32)
    }

    fn scenario(&self) -> Result<Scenario, WorldError> {
        let mut scenario = Scenario::load(self.direction.preset())?;
        let rate_factor = match self.timing {
            Timing::PaperPackets => OUR_BITS / SEGMENT_BITS,
            Timing::OurPackets => 1.0,
        };
        let rate = |rate: f64| format!("{:.0}bit", rate * rate_factor);
        scenario.set("wire.both.rate", &rate(WIRE))?;
        scenario.set("wire.both.queue.packets", &self.queue.to_string())?;
        let per = format!("{:.6}%", 100.0 * self.packet_error_rate());
        for (link, errors) in self.direction.radios() {
            scenario.set(&format!("{link}.both.rate"), &rate(RADIO))?;
            let delay = format!("{:.0}us", 1e6 * self.radio_delay.as_secs_f64());
            scenario.set(&format!("{link}.both.delay"), &delay)?;
            scenario.set(errors, &per)?;
        }
        Ok(scenario)
    }

    fn recipe(&self) -> Result<Recipe, WorldError> {
        let (name, min_ssthresh) = (self.sender.recipe(), self.min_ssthresh);
        let min_rto = 1e3 * self.min_rto.as_secs_f64();
        Ok(format!("{name}+min-ssthresh={min_ssthresh}+min-rto={min_rto:.0}").parse()?)
    }

    /// A run with one endless flow. The caller sets the seed.
    pub fn plan(&self, length: Duration) -> Result<Run, WorldError> {
        let profile = |profile: Profile| {
            let mut profile = profile.with(|it| {
                it.handshake.mss = Some(MSS);
                it.acks.recv_buffer = WINDOW * usize::from(MSS);
                it.handshake.window_scale = None;
                it.handshake.timestamps = false;
                it.acks.policy = AckPolicy::EVERY;
            });
            profile.recovery.initial.window = InitialWindow::Segments(1);
            profile
        };
        let sending = HostSpec { profile: profile(Profile::default()), recipe: self.recipe()? };
        let ordinary = HostSpec::receiver();
        let receiving = HostSpec { profile: profile(ordinary.profile), recipe: ordinary.recipe };
        let endless = Length::Endless;
        let (fixed, mobile, flow) = match self.direction {
            Way::FixedToMobile | Way::MobileToMobile => (sending, receiving, Flow::down(endless)),
            Way::MobileToFixed => (receiving, sending, Flow::up(endless)),
        };
        Ok(Run {
            scenario: self.scenario()?,
            seed: 0,
            fixed,
            mobile,
            flows: vec![flow],
            until: Until::At(Instant::ZERO + length),
            from: Instant::ZERO,
            score: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use airwire::units::Rate;

    use super::*;

    /// By hand: ln 0.999 = −0.00100050; times 170, −0.17008503; 1 − e^−0.17008503 = 0.15640.
    #[test]
    fn packet_loss_rate_matches_presets() {
        let loss = |direction, ber| Setting::new(direction, Variant::Reno, ber).loss();
        assert!((loss(Way::FixedToMobile, 1e-3) - 0.1564).abs() < 5e-5);
        assert!((loss(Way::FixedToMobile, 1e-4) - 0.01686).abs() < 5e-6);
        assert!((loss(Way::MobileToMobile, 1e-3) - 0.15637).abs() < 5e-6, "in total");
        let each =
            Setting { errors: Errors::OnEachRadio, ..Setting::new(Way::MobileToMobile, Variant::Reno, 1e-3) };
        assert!((each.loss() - (1.0 - 0.8436_f64.powi(2))).abs() < 1e-4);
    }

    /// 170 bit take 3.04 ms at 56 kbit/s, and 0.085 ms at 2 Mbit/s.
    #[test]
    fn transmission_time_matches_paper() {
        for direction in Way::ALL {
            let scenario = Setting::new(direction, Variant::Reno, 1e-3).scenario().unwrap();
            let rate = |link: &str| {
                let rate = scenario.get(&format!("{link}.both.rate")).unwrap();
                rate.as_str().unwrap().parse::<Rate>().unwrap().as_bits_per_second() as f64
            };
            assert!((OUR_BITS / rate("wire") - 170.0 / 56e3).abs() < 1e-7, "{direction:?}");
            for (radio, _) in direction.radios() {
                assert!((OUR_BITS / rate(radio) - 170.0 / 2e6).abs() < 1e-9, "{direction:?}");
            }
        }
    }
}
