//! The set-up of P0 §3.1, in the reading that comes closest to the paper's numbers for ordinary senders.
//!
//! The text cannot be taken literally: with 500 ms ticks and delayed ACKs ns-2 stays 39 % below the paper, and Fig. 9's
//! timeout of 0.7 s is no multiple of half a second. Of 128 readings tried in ns-2 this one fits.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::Profile;
use airtcp::profile::knobs::InitialWindow;
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp_sim::run::{FlowReport, Report, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

/// What the paper does not say, or cannot mean as it says it; a sentence for each.
pub(super) const CHOICES: [&str; 5] = [
    "512 octets are a segment's size on the wire (ns-2's packets have no headers unless told so), so its data are 472; the receiver's window is 16 segments.",
    "The sender's clock ticks every 100 ms, not every 500: Fig. 9 shows a timeout of 0.7 s. The timeout is at least two ticks. Profile `ns2` in all else.",
    "The receiver delays ACKs by up to 200 ms, except in the curves marked ND; the initial window is one segment, the SYN standing in for the first one; no Limited Transmit unless named.",
    "Only data is damaged. The channel's state may change with each TCP packet: one two-state chain, which the voice does not move. It begins in the good state.",
    "The voice (CBR, 512 octets every 64 ms) runs from the start and shares all links. An acknowledged packet is a segment that was acknowledged within the 100 s.",
];

pub(super) fn choices() -> Vec<String> {
    CHOICES.map(str::to_owned).to_vec()
}

/// Octets of data in a segment.
pub const MSS: u16 = 512 - 40;
/// "about 8 Kbytes", in segments.
const WINDOW: usize = 16;
pub const SECONDS: u64 = 100;

/// The radio link of Fig. 4; α = β in all of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Channel {
    /// Packet error rate in the good state.
    pub x: f64,
    /// Packet error rate in the bad state.
    pub y: f64,
    /// α = β, the probability of leaving a state with the next packet.
    pub change: f64,
}

impl Channel {
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, change: 0.3 }
    }

    /// x = 0.01, and y such that the overall error rate is z (Figs. 5, 10 to 13).
    pub const fn overall(z: f64) -> Self {
        Self::new(0.01, 2.0 * z - 0.01)
    }
}

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Every second segment, or after 200 ms.
    Delayed,
    /// ND: each segment.
    Each,
}

/// What runs for 100 s.
#[derive(Clone, Debug)]
pub struct Setting {
    /// One transfer for each. If there are none, only the voice runs.
    pub recipes: Vec<&'static str>,
    pub channel: Channel,
    pub acks: Acks,
    /// Rate of the radio link, in kbit/s.
    pub radio: u32,
}

impl Setting {
    /// A setting with one transfer.
    pub fn new(recipe: &'static str, channel: Channel) -> Self {
        Self { recipes: vec![recipe], channel, acks: Acks::Delayed, radio: 128 }
    }

    /// The run. Its seed is still to be set.
    pub fn plan(&self) -> Result<Run, WorldError> {
        let flow = |recipe: &&'static str| {
            Ok::<_, WorldError>(Flow {
                recipe: Some(recipe.parse()?),
                receive_buffer: Some(WINDOW * usize::from(MSS)),
                ..Flow::down(Length::Endless)
            })
        };
        Ok(Run {
            scenario: Scenario::parse(&self.path(), "Pan et al., Fig. 3")?,
            seed: 0,
            fixed: HostSpec { profile: sender(), recipe: Recipe::ordinary() },
            mobile: HostSpec { profile: receiver(self.acks), recipe: Recipe::ordinary() },
            flows: self.recipes.iter().map(flow).collect::<Result<_, _>>()?,
            until: Until::At(Instant::from_secs(SECONDS)),
            from: Instant::ZERO,
            score: false,
        })
    }

    /// Correspondent host, home agent, foreign agent, mobile host (Fig. 3).
    fn path(&self) -> String {
        let Self { radio, channel: Channel { x, y, change }, .. } = self;
        // With transfers the voice leaves before the errors, so that only TCP's packets move the chain.
        let behind = if self.recipes.is_empty() { "radio-errors" } else { "radio" };
        format!(
            r#"
schema = 1
[[stage]]
kind = "traffic"
name = "voice"
down = {{ source = "cbr", rate = "64kbit", packet = "512B", leaves_after = "{behind}" }}
[[stage]]
kind = "link"
name = "to-home-agent"
both = {{ rate = "1Mbit", delay = "5ms", queue = {{ packets = 99 }} }}
[[stage]]
kind = "link"
name = "to-foreign-agent"
both = {{ rate = "1Mbit", delay = "5ms", queue = {{ packets = 99 }} }}
[[stage]]
kind = "link"
name = "radio"
both = {{ rate = "{radio}kbit", delay = "25ms", queue = {{ packets = 99 }} }}
[[stage]]
kind = "loss"
name = "radio-errors"
down = {{ model = "gilbert-elliott", good = {x:.6}, bad = {y:.6}, good_to_bad = {change:.6}, bad_to_good = {change:.6} }}
"#
        )
    }
}

/// ns-2's one-way agents send no SYN: ours stands in for their first packet, and its ACK opens the window to two.
fn sender() -> Profile {
    let mut profile = Profile { mss: Some(MSS), window_scale: None, ..Profile::ns2() };
    let tick = Duration::from_millis(100);
    profile.timer.style =
        TimerStyle::Ns2 { tick, phase: Duration::from_nanos(55_588_072), min_before_backoff: true };
    profile.timer.limits =
        RtoLimits { min: tick * 2, max: Duration::from_secs(64), initial: Duration::from_secs(6) };
    profile.recovery.initial_window = InitialWindow::Segments(2);
    profile.recovery.window_after_lost_syn = Some(2.0);
    profile
}

/// ns-2's receivers report no duplicates.
fn receiver(acks: Acks) -> Profile {
    let ack = match acks {
        Acks::Delayed => AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED },
        Acks::Each => AckPolicy::EVERY,
    };
    Profile {
        mss: Some(MSS),
        window_scale: None,
        timestamps: false,
        dsack: false,
        ack,
        ..HostSpec::receiver().profile
    }
}

/// Packets acknowledged to the sender.
pub fn acknowledged(flow: &FlowReport) -> f64 {
    (flow.acked / u64::from(MSS)) as f64
}

/// Packets of the voice that the radio link delivers, in a run without transfers.
pub(super) fn voice(report: &Report) -> f64 {
    report.stages["radio-errors"]["down"]["packets_out"].as_f64().unwrap_or(f64::NAN)
}
