//! The set-up of P0 §3.1: the path of the presets `sifest-*`, the hosts, and the other readings that were tried.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::knobs::InitialWindow;
use airtcp::profile::{Profile, Timer};
use airtcp::recovery::Recipe;
use airtcp_sim::run::{FlowReport, Report, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, WorldError};
use airwire::time::{Duration, Instant};

/// What the paper does not say, or cannot mean as it says it; a sentence for each.
const CHOICES: [&str; 5] = [
    "512 octets are a segment's size on the wire, so its data are 472: with headers beside them and 64 kbit/s of voice no more than 1449 packets fit into 100 s, and the paper counts 1443 where 3 % are lost. The receiver's window is 16 segments, and the links are those of preset `sifest-random`.",
    "The sender's clock ticks every 100 ms, not every 500: Fig. 9 shows a timeout of 0.7 s. The timeout is at least two ticks. Profile `ns2` in all else.",
    "The receiver delays ACKs by up to 200 ms, except in the curves marked ND; the initial window is one segment (two with LIW), and its timeout 3 s, as no round trip is known; no Limited Transmit unless named.",
    "Only what goes to the mobile host is damaged. The channel is one two-state chain, which may change its state with each packet, of TCP or of the voice, and begins in the good state.",
    "The voice (CBR, 512 octets every 64 ms) runs from the start. An acknowledged packet is a segment that was acknowledged within the 100 s. `p0-text` has the same with other readings.",
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

    /// The same loss in other clusters.
    pub const fn changing(self, change: f64) -> Self {
        Self { change, ..self }
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

/// How §3.1 is read where it can be read in more than one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// As in `choices`.
    Chosen,
    /// "the timer granularity is set about 500 ms".
    TicksOf500,
    /// As fine as ns-2's own clock.
    TicksOf10,
    /// "TCP MSS and UDP payload are both 512 bytes", without headers: 552 and 540 octets on the wire.
    HeadersBeside,
    /// The errors are those of TCP's packets alone.
    VoiceApart,
    /// What comes from the mobile host is damaged as well.
    AcksToo,
    /// As ns-2 was run whose means the tests have: the voice apart, ACKs by way of the home agent, and no handshake, so
    /// that our SYN stands in for the first packet, and its ACK opens the window to two.
    AsInNs2,
}

impl Reading {
    pub(super) const ALL: [Self; 7] = [
        Self::Chosen,
        Self::TicksOf500,
        Self::TicksOf10,
        Self::HeadersBeside,
        Self::VoiceApart,
        Self::AcksToo,
        Self::AsInNs2,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Chosen => "as chosen",
            Self::TicksOf500 => "ticks of 500 ms",
            Self::TicksOf10 => "ticks of 10 ms",
            Self::HeadersBeside => "headers beside the 512 octets",
            Self::VoiceApart => "the voice leaves before the errors",
            Self::AcksToo => "ACKs are damaged too",
            Self::AsInNs2 => "the voice apart, ACKs by the home agent, no handshake (as ns-2 was run)",
        }
    }

    const fn tick(self) -> Duration {
        Duration::from_millis(match self {
            Self::TicksOf500 => 500,
            Self::TicksOf10 => 10,
            Self::Chosen | Self::HeadersBeside | Self::VoiceApart | Self::AcksToo | Self::AsInNs2 => 100,
        })
    }

    /// Octets of data in a segment.
    pub(super) const fn mss(self) -> u16 {
        match self {
            Self::HeadersBeside => 512,
            _ => MSS,
        }
    }
}

/// What an application has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// FTP: without end.
    Bulk,
    /// Web pages of so many segments, a connection for each, one every `PAUSE`.
    Pages(u64),
}

/// From the beginning of a page to that of the next.
const PAUSE: Duration = Duration::from_millis(2500);
/// Pages in a run.
const PAGES: u64 = 40;

/// What runs for 100 s.
#[derive(Clone, Debug)]
pub struct Setting {
    /// One transfer for each. If there are none, only the voice runs.
    pub recipes: Vec<String>,
    pub channel: Channel,
    pub acks: Acks,
    /// Rate of the radio link, in kbit/s.
    pub radio: u32,
    /// The receiver's window in segments.
    pub window: usize,
    pub load: Load,
    pub reading: Reading,
    pub watch: Watch,
}

impl Setting {
    /// A setting with one transfer.
    pub fn new(recipe: &str, channel: Channel) -> Self {
        Self {
            recipes: vec![recipe.to_owned()],
            channel,
            acks: Acks::Delayed,
            radio: 128,
            window: WINDOW,
            load: Load::Bulk,
            reading: Reading::Chosen,
            watch: Watch::Results,
        }
    }

    /// The run. Its seed is still to be set.
    pub fn plan(&self) -> Result<Run, WorldError> {
        let mss = self.reading.mss();
        let flow = |recipe: &str, length, start| {
            Ok::<_, WorldError>(Flow {
                recipe: Some(recipe.parse()?),
                receive_buffer: Some(self.window * usize::from(mss)),
                watch: self.watch,
                start,
                ..Flow::down(length)
            })
        };
        let mut flows = Vec::new();
        for recipe in &self.recipes {
            match self.load {
                Load::Bulk => flows.push(flow(recipe, Length::Endless, Instant::ZERO)?),
                Load::Pages(segments) => {
                    for page in 0..PAGES {
                        let start = Instant::ZERO + PAUSE.saturating_mul(page);
                        flows.push(flow(recipe, Length::Octets(segments * u64::from(mss)), start)?);
                    }
                }
            }
        }
        let until = match self.load {
            Load::Bulk => Until::At(Instant::from_secs(SECONDS)),
            Load::Pages(_) => Until::Complete(Duration::from_secs(10 * SECONDS)),
        };
        Ok(Run {
            scenario: Scenario::parse(&self.path(), "Pan et al., Fig. 3")?,
            seed: 0,
            fixed: HostSpec { profile: self.sender(), recipe: Recipe::ordinary() },
            mobile: HostSpec { profile: self.receiver(), recipe: Recipe::ordinary() },
            flows,
            until,
            from: Instant::ZERO,
            score: false,
        })
    }

    /// Correspondent host, home agent, foreign agent, mobile host (Fig. 3): the preset with these numbers.
    fn path(&self) -> String {
        let Self { radio, reading, channel: Channel { x, y, change }, .. } = self;
        let errors =
            format!("good = {x:.6}, bad = {y:.6}, good_to_bad = {change:.6}, bad_to_good = {change:.6}");
        let model = format!("{{ model = \"gilbert-elliott\", {errors}, step = \"packet\" }}");
        let up = if *reading == Reading::AcksToo { format!("up = {model}\n") } else { String::new() };
        let mut text = format!(
            "schema = 1\nextends = \"sifest-random\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"{radio}kbit\"\n\
             [[stage]]\nname = \"radio-errors\"\ndown = {model}\n{up}"
        );
        let voice = match reading {
            Reading::HeadersBeside => "down.rate = \"67.5kbit\"\ndown.packet = \"540B\"\n",
            Reading::VoiceApart | Reading::AsInNs2 if !self.recipes.is_empty() => {
                "down.leaves_after = \"radio\"\n"
            }
            _ => return text,
        };
        if *reading == Reading::AsInNs2 {
            text += "[[stage]]\nname = \"to-home-agent\"\nup = { rate = \"1Mbit\", delay = \"5ms\" }\n";
        }
        text += "[[stage]]\nname = \"voice\"\n";
        text + voice
    }

    fn sender(&self) -> Profile {
        let mut profile = Profile { mss: Some(self.reading.mss()), window_scale: None, ..Profile::ns2() };
        profile.timer = Timer::ns2(self.reading.tick());
        // ns-2's one-way agents begin with data, no round trip known, and 6 s. Here a SYN may be lost as well: 3 s twice.
        // And no page of the paper has one to wait for.
        profile.time_handshake = false;
        if let Load::Pages(_) = self.load {
            profile.timer.limits.initial = Duration::from_secs(1);
        }
        if self.reading == Reading::AsInNs2 {
            profile.time_handshake = true;
            profile.timer.limits.initial = Duration::from_secs(6);
            profile.recovery.initial_window = InitialWindow::Segments(2);
            profile.recovery.window_after_lost_syn = Some(2.0);
        }
        profile
    }

    /// ns-2's receivers report no duplicates.
    fn receiver(&self) -> Profile {
        let ack = match self.acks {
            Acks::Delayed => AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED },
            Acks::Each => AckPolicy::EVERY,
        };
        Profile {
            mss: Some(self.reading.mss()),
            window_scale: None,
            timestamps: false,
            dsack: false,
            ack,
            ..HostSpec::receiver().profile
        }
    }

    /// Packets acknowledged to the sender.
    pub fn acknowledged(&self, flow: &FlowReport) -> f64 {
        (flow.acked / u64::from(self.reading.mss())) as f64
    }
}

/// Packets of the voice that the radio link delivers, and those that were sent, in a run without transfers.
pub(super) fn voice(report: &Report) -> [f64; 2] {
    let of = |stage: &str, what: &str| report.stages[stage]["down"][what].as_f64().unwrap_or(f64::NAN);
    [of("radio-errors", "packets_out"), of("radio-errors", "packets_in")]
}

#[cfg(test)]
mod tests {
    use airlink::scenario::Scenario;
    use airtcp_sim::run::run_watched;

    use super::super::trace::Trace;
    use super::*;

    /// What is typed as `--scenario sifest-…` is what is run here.
    #[test]
    fn the_presets_are_what_is_reproduced() {
        for (preset, radio, channel) in [
            ("sifest-random", 128, Channel::new(0.03, 0.03)),
            ("sifest-clustered", 128, Channel::new(0.0, 0.06)),
            ("sifest-tiny-window", 128, Channel::new(0.01, 0.09)),
            ("sifest-resent", 128, Channel::new(0.01, 0.15)),
            ("sifest-heavy", 128, Channel::new(0.08, 0.08)),
            ("sifest-fairness", 192, Channel::overall(0.07)),
        ] {
            let path = Setting { radio, ..Setting::new("tahoe", channel) }.path();
            let ours = Scenario::parse(&path, "ours").unwrap();
            assert_eq!(ours.stages, Scenario::load(preset).unwrap().stages, "{preset}");
        }
    }

    /// "a two-segment initial *cwnd*" (§4.2), where the base begins with "one Maximum Segment Size" (§2.2).
    #[test]
    fn liw_begins_with_two_segments_and_the_others_with_one() {
        let first_flight = |recipe: &str| {
            let setting = Setting { watch: Watch::Packets, ..Setting::new(recipe, Channel::new(0.0, 0.0)) };
            let (_, mut world) = run_watched(&setting.plan().unwrap(), |_| {}).unwrap();
            let trace = Trace::of(&mut world, 0, MSS);
            let (heard, _) = trace.acks.iter().find(|(_, number)| *number > 0).unwrap();
            trace.sent.iter().filter(|packet| packet.at < *heard).count()
        };
        assert_eq!((first_flight("tahoe+sifest"), first_flight("tahoe+sifest+liw")), (1, 2));
    }
}
