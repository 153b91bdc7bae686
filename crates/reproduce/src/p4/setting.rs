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
/// A segment in the paper (Table 2), and one here with its headers.
const SEGMENT_BITS: f64 = 170.0;
const OUR_BITS: f64 = (MSS as f64 + 40.0) * 8.0;
/// Table 2, in bit/s.
const WIRE: f64 = 56e3;
const RADIO: f64 = 2e6;

/// Table 2: "10^-3 to 10^-6".
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

    /// As Table 3 has it.
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

    /// The preset's radio links, and what says how often each of them damages data.
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

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Variant {
    Reno,
    Etcp,
    /// §V: "without having to wait until it has received three duplicate acknowledgments".
    EtcpEarly,
    /// Ours: what a mark says counts at a timeout as well.
    EtcpAtTimeouts,
    NewReno,
}

impl Variant {
    /// As Table 3 has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "Reno-TCP",
            Self::Etcp => "E-TCP",
            Self::EtcpEarly => "E-TCP, first mark",
            Self::EtcpAtTimeouts => "E-TCP, at timeouts too",
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

/// What has the bit error rate, where data cross two radio links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Errors {
    /// Both links together; each has half of it.
    InTotal,
    /// Each of them.
    OnEachRadio,
}

/// How long a packet takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Timing {
    /// As long as 170 bit at the paper's rates.
    OfThePaper,
    /// At the paper's rates as long as the packets here, which are 4.9 times as large.
    OfOurPackets,
}

/// One sender on one path. [`Setting::new`] has the paper's values; all but the first three may be varied.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Setting {
    pub way: Way,
    pub sender: Variant,
    pub bit_error_rate: f64,
    pub errors: Errors,
    pub timing: Timing,
    /// Packets for which a queue has room.
    pub queue: u32,
    /// Of each radio link.
    pub radio_delay: Duration,
    pub least_timeout: Duration,
    /// In segments (Table 2).
    pub least_ssthresh: u32,
}

impl Setting {
    pub const fn new(way: Way, sender: Variant, bit_error_rate: f64) -> Self {
        Self {
            way,
            sender,
            bit_error_rate,
            errors: Errors::InTotal,
            timing: Timing::OfThePaper,
            queue: 20,
            radio_delay: Duration::from_millis(1),
            least_timeout: Duration::from_secs(1),
            least_ssthresh: 1,
        }
    }

    /// How often one of the radio links damages a packet.
    pub fn packet_error_rate(&self) -> f64 {
        let share = match self.errors {
            Errors::InTotal => self.way.radios().len() as f64,
            Errors::OnEachRadio => 1.0,
        };
        1.0 - (1.0 - self.bit_error_rate / share).powf(SEGMENT_BITS)
    }

    /// How often one of them does, as the packet crosses them all.
    pub fn loss(&self) -> f64 {
        1.0 - (1.0 - self.packet_error_rate()).powi(self.way.radios().len() as i32)
    }

    fn scenario(&self) -> Result<Scenario, WorldError> {
        let mut scenario = Scenario::load(self.way.preset())?;
        let longer = match self.timing {
            Timing::OfThePaper => OUR_BITS / SEGMENT_BITS,
            Timing::OfOurPackets => 1.0,
        };
        let rate = |rate: f64| format!("{:.0}bit", rate * longer);
        scenario.set("wire.both.rate", &rate(WIRE))?;
        scenario.set("wire.both.queue.packets", &self.queue.to_string())?;
        let per = format!("{:.6}%", 100.0 * self.packet_error_rate());
        for (link, errors) in self.way.radios() {
            scenario.set(&format!("{link}.both.rate"), &rate(RADIO))?;
            let delay = format!("{:.0}us", 1e6 * self.radio_delay.as_secs_f64());
            scenario.set(&format!("{link}.both.delay"), &delay)?;
            scenario.set(errors, &per)?;
        }
        Ok(scenario)
    }

    fn recipe(&self) -> Result<Recipe, WorldError> {
        let (name, least) = (self.sender.recipe(), self.least_ssthresh);
        let timeout = 1e3 * self.least_timeout.as_secs_f64();
        Ok(format!("{name}+min-ssthresh={least}+min-rto={timeout:.0}").parse()?)
    }

    /// A run with one endless flow. Its seed is still to be set.
    pub fn plan(&self, length: Duration) -> Result<Run, WorldError> {
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
        let sending = HostSpec { profile: profile(Profile::default()), recipe: self.recipe()? };
        let ordinary = HostSpec::receiver();
        let receiving = HostSpec { profile: profile(ordinary.profile), recipe: ordinary.recipe };
        let endless = Length::Endless;
        let (fixed, mobile, flow) = match self.way {
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

/// What all figures have in common, a sentence each.
pub(super) fn choices() -> Vec<String> {
    [
        "Segments of \"170 bit\" (Table 2) do not hold a TCP/IP header: 64 octets of data here, and 40 of headers. All rates are \
         832/170 times the paper's, so that a packet takes the wire and the radio as long as 170 bit do there (3.04 ms and 0.085 ms); \
         it is damaged as often as 170 bit are, 15.64 % at BER 1e-3.",
        "From mobile to mobile the BER is that of both radio links together, half of it on each: with 1e-3 on each of them \
         (28.8 % lost), Reno-TCP could not receive 2735 packets where it receives 2624 over one link. Table 3 and Fig. 8 have both \
         readings.",
        "\"A finite-buffer drop tail gateway\" has 20 packets; a radio link takes 1 ms. ACKs are never lost; each is as long as 65 bit \
         are in the paper.",
        "Senders follow the RFCs (profile `default`: a least timeout of 1 s, an initial window of one segment); ssthresh may go down to 1 \
         (Table 2; `min-ssthresh=1`), both ends have a window of 94 segments, and each segment is acknowledged.",
        "Stations announce themselves on SYNs, by airtcp's own invention: the paper lets the sender know its row of Table 1 \"after the \
         handshake process\" (§III D), and does not say how.",
        "E-TCP keeps window and threshold for what a mark says was lost in the air, and is Reno otherwise: the mark that counts is one on a \
         duplicate or partial ACK, three duplicates begin a retransmission, and a timeout is congestion. §V's sender, which does not wait \
         for the third, is \"first mark\".",
    ]
    .map(str::to_owned)
    .to_vec()
}

#[cfg(test)]
mod tests {
    use airwire::units::Rate;

    use super::*;

    /// By hand: ln 0.999 = −0.00100050; times 170, −0.17008503; 1 − e^−0.17008503 = 0.15640.
    #[test]
    fn a_packet_of_170_bit_is_lost_as_often_as_the_presets_say() {
        let loss = |way, ber| Setting::new(way, Variant::Reno, ber).loss();
        assert!((loss(Way::FixedToMobile, 1e-3) - 0.1564).abs() < 5e-5);
        assert!((loss(Way::FixedToMobile, 1e-4) - 0.01686).abs() < 5e-6);
        assert!((loss(Way::MobileToMobile, 1e-3) - 0.15637).abs() < 5e-6, "in total");
        let each =
            Setting { errors: Errors::OnEachRadio, ..Setting::new(Way::MobileToMobile, Variant::Reno, 1e-3) };
        assert!((each.loss() - (1.0 - 0.8436_f64.powi(2))).abs() < 1e-4);
    }

    /// 170 bit take 3.04 ms at 56 kbit/s, and 0.085 ms at 2 Mbit/s.
    #[test]
    fn a_packet_takes_as_long_as_in_the_paper() {
        for way in Way::ALL {
            let scenario = Setting::new(way, Variant::Reno, 1e-3).scenario().unwrap();
            let rate = |link: &str| {
                let rate = scenario.get(&format!("{link}.both.rate")).unwrap();
                rate.as_str().unwrap().parse::<Rate>().unwrap().as_bits_per_second() as f64
            };
            assert!((OUR_BITS / rate("wire") - 170.0 / 56e3).abs() < 1e-7, "{way:?}");
            for (radio, _) in way.radios() {
                assert!((OUR_BITS / rate(radio) - 170.0 / 2e6).abs() < 1e-9, "{way:?}");
            }
        }
    }
}
