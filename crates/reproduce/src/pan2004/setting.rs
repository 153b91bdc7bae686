//! The setup of §3.1: the path of the presets `sifest-*`, the hosts, and alternative interpretations of the text.

use airlink::scenario::Scenario;
use airtcp::profile::AckPolicy;
use airtcp::profile::recovery::InitialWindow;
use airtcp::profile::{Profile, Timer};
use airtcp::recovery::Recipe;
use airtcp_sim::run::{FlowReport, Report, Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, Watch, WorldError};
use airwire::time::{Duration, Instant};

/// Payload bytes of a segment.
pub const MSS: u16 = 512 - 40;
/// The receiver's window in segments: "about 8 Kbytes" (§3.1).
const WINDOW: usize = 16;
/// Length of a run with bulk transfers, in seconds.
pub const SECONDS: u64 = 100;

/// Smallest flight, in segments, in which the loss of the first segment causes three duplicate ACKs.
pub(super) const MIN_FLIGHT: f64 = 4.0;

/// x and y of Figs. 7 and 8.
pub(super) const RARE: Channel = Channel::new(0.01, 0.09);
/// x and y of Figs. 9 and 11a.
pub(super) const MODERATE: Channel = Channel::new(0.01, 0.15);
/// "randomized lossy links" (§4.3.1).
pub(super) const HEAVY: Channel = Channel::new(0.08, 0.08);

/// The radio link of Fig. 4, with α = β.
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
    /// Creates a channel with α = β = 0.3.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y, change: 0.3 }
    }

    /// x = 0.01, and y such that the overall error rate is z (Figs. 5, 10 to 13).
    pub const fn overall(z: f64) -> Self {
        Self::new(0.01, 2.0 * z - 0.01)
    }

    /// The same loss rate in clusters of another length.
    pub const fn changing(self, change: f64) -> Self {
        Self { change, ..self }
    }
}

/// The receiver's ACK policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acks {
    /// Every second segment, or after 200 ms.
    Delayed,
    /// ND: each segment.
    Each,
}

/// An interpretation of §3.1, which is ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interpretation {
    /// As in `choices.md`.
    Chosen,
    /// "the timer granularity is set about 500 ms".
    TicksOf500,
    /// The resolution of ns-2's own clock.
    TicksOf10,
    /// "TCP MSS and UDP payload are both 512 bytes", without headers: 552 and 540 bytes on the wire.
    ExtraHeaders,
    /// The errors affect only TCP's packets.
    VoiceWithoutErrors,
    /// Packets from the mobile host are also damaged.
    ErrorsOnAcks,
    /// The setup of the ns-2 runs whose means are in the tests: errors on TCP's packets only, ACKs via the home agent,
    /// and no handshake. The SYN takes the place of the first packet, and its ACK opens the window to two segments.
    AsInNs2,
}

impl Interpretation {
    pub(super) const ALL: [Self; 7] = [
        Self::Chosen,
        Self::TicksOf500,
        Self::TicksOf10,
        Self::ExtraHeaders,
        Self::VoiceWithoutErrors,
        Self::ErrorsOnAcks,
        Self::AsInNs2,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Chosen => "as chosen",
            Self::TicksOf500 => "ticks of 500 ms",
            Self::TicksOf10 => "ticks of 10 ms",
            Self::ExtraHeaders => "512 bytes without headers",
            Self::VoiceWithoutErrors => "errors on TCP packets only",
            Self::ErrorsOnAcks => "errors on ACKs too",
            Self::AsInNs2 => "as in ns-2: errors on TCP packets only, ACKs via the home agent, no handshake",
        }
    }

    const fn tick(self) -> Duration {
        Duration::from_millis(match self {
            Self::TicksOf500 => 500,
            Self::TicksOf10 => 10,
            Self::Chosen
            | Self::ExtraHeaders
            | Self::VoiceWithoutErrors
            | Self::ErrorsOnAcks
            | Self::AsInNs2 => 100,
        })
    }

    /// Payload bytes of a segment.
    pub(super) const fn mss(self) -> u16 {
        match self {
            Self::ExtraHeaders => 512,
            _ => MSS,
        }
    }
}

/// Whether the radio link retransmits damaged packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// As in the paper.
    Loses,
    /// The link retransmits a damaged packet at most this often, each time after 50 ms. Later packets arrive
    /// before it. Errors are independent.
    Retransmits(u32),
}

/// The data that an application sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// FTP: an endless transfer.
    Bulk,
    /// Web pages with this number of segments. Each page is a connection, and one starts every `PAGE_INTERVAL`.
    Pages(u64),
}

/// Time between the starts of two pages.
const PAGE_INTERVAL: Duration = Duration::from_millis(2500);
/// Pages per run.
const PAGES: u64 = 40;

/// The parameters of a run. Bulk transfers run for [`SECONDS`].
#[derive(Clone, Debug)]
pub struct Setting {
    /// One transfer per recipe. If empty, only the voice stream runs.
    pub recipes: Vec<String>,
    /// The radio link.
    pub channel: Channel,
    /// The reaction of the radio link to errors.
    pub link_layer: LinkLayer,
    /// The receiver's ACK policy.
    pub acks: Acks,
    /// Rate of the radio link, in kbit/s.
    pub radio: u32,
    /// The receiver's window in segments.
    pub window: usize,
    /// The data that the application sends.
    pub load: Load,
    /// The interpretation of §3.1.
    pub interpretation: Interpretation,
    /// The events to record.
    pub watch: Watch,
}

impl Setting {
    /// A setting with one transfer.
    pub fn new(recipe: &str, channel: Channel) -> Self {
        Self {
            recipes: vec![recipe.to_owned()],
            channel,
            link_layer: LinkLayer::Loses,
            acks: Acks::Delayed,
            radio: 128,
            window: WINDOW,
            load: Load::Bulk,
            interpretation: Interpretation::Chosen,
            watch: Watch::Results,
        }
    }

    /// The run. The caller sets the seed.
    pub fn plan(&self) -> Result<Run, WorldError> {
        let mss = self.interpretation.mss();
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
                        let start = Instant::ZERO + PAGE_INTERVAL.saturating_mul(page);
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
            fixed: HostSpec { profile: self.sender(), recipe: Recipe::default() },
            mobile: HostSpec { profile: self.receiver(), recipe: Recipe::default() },
            flows,
            until,
            from: Instant::ZERO,
            score: false,
        })
    }

    /// The path of Fig. 3 (correspondent host, home agent, foreign agent, mobile host): the preset with this setting's
    /// values.
    fn path(&self) -> String {
        match self.link_layer {
            LinkLayer::Loses => self.losing_path(),
            LinkLayer::Retransmits(times) => self.retransmitting_path(times),
        }
    }

    /// The same path with an ARQ link in place of the radio link and its errors.
    fn retransmitting_path(&self, times: u32) -> String {
        let Self { radio, channel: Channel { x, y, .. }, .. } = self;
        let link = |errors: f64| {
            format!("{{ per = {errors:.6}, retries = {times}, rate = \"{radio}kbit\", delay = \"25ms\" }}")
        };
        format!(
            "schema = 1\nextends = \"sifest-random\"\n\
             [[stage]]\nname = \"voice\"\ndown.leaves_after = \"radio\"\n\
             [[stage]]\nname = \"radio-errors\"\nremove = true\n\
             [[stage]]\nkind = \"arq\"\nname = \"radio\"\ndown = {}\nup = {}\n",
            link((x + y) / 2.0),
            link(0.0)
        )
    }

    fn losing_path(&self) -> String {
        let Self { radio, interpretation, channel: Channel { x, y, change }, .. } = self;
        let errors =
            format!("good = {x:.6}, bad = {y:.6}, good_to_bad = {change:.6}, bad_to_good = {change:.6}");
        let model = format!("{{ model = \"gilbert-elliott\", {errors}, step = \"packet\" }}");
        let up = if *interpretation == Interpretation::ErrorsOnAcks {
            format!("up = {model}\n")
        } else {
            String::new()
        };
        let mut text = format!(
            "schema = 1\nextends = \"sifest-random\"\n[[stage]]\nname = \"radio\"\nboth.rate = \"{radio}kbit\"\n\
             [[stage]]\nname = \"radio-errors\"\ndown = {model}\n{up}"
        );
        let voice = match interpretation {
            Interpretation::ExtraHeaders => "down.rate = \"67.5kbit\"\ndown.packet = \"540B\"\n",
            Interpretation::VoiceWithoutErrors | Interpretation::AsInNs2 if !self.recipes.is_empty() => {
                "down.leaves_after = \"radio\"\n"
            }
            _ => return text,
        };
        if *interpretation == Interpretation::AsInNs2 {
            text += "[[stage]]\nname = \"to-home-agent\"\nup = { rate = \"1Mbit\", delay = \"5ms\" }\n";
        }
        text += "[[stage]]\nname = \"voice\"\n";
        text + voice
    }

    fn sender(&self) -> Profile {
        let mut profile = Profile::ns2().with(|it| {
            it.handshake.mss = Some(self.interpretation.mss());
            it.handshake.window_scale = None;
        });
        profile.timers.rto = Timer::ns2(self.interpretation.tick());
        // ns-2's one-way agents have no handshake: they start with data, without an RTT sample, and with a
        // timeout of 6 s. Here the SYN can also be lost, so the initial timeout is 3 s for the SYN, and 3 s
        // for the first data. For pages it is 1 s, because the paper's pages have no SYN.
        profile.timers.samples_handshake = false;
        if let Load::Pages(_) = self.load {
            profile.timers.rto.limits.initial = Duration::from_secs(1);
        }
        if self.interpretation == Interpretation::AsInNs2 {
            profile.timers.samples_handshake = true;
            profile.timers.rto.limits.initial = Duration::from_secs(6);
            profile.recovery.initial.window = InitialWindow::Segments(2);
            profile.recovery.initial.window_after_lost_syn = Some(2.0);
        }
        profile
    }

    /// ns-2's receivers do not report duplicate segments (DSACK).
    fn receiver(&self) -> Profile {
        let ack = match self.acks {
            Acks::Delayed => AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED },
            Acks::Each => AckPolicy::EVERY,
        };
        HostSpec::receiver().profile.with(|it| {
            it.handshake.mss = Some(self.interpretation.mss());
            it.handshake.window_scale = None;
            it.handshake.timestamps = false;
            it.acks.dsack = false;
            it.acks.policy = ack;
        })
    }

    /// Number of packets that were acknowledged.
    pub fn acknowledged(&self, flow: &FlowReport) -> f64 {
        (flow.acked / u64::from(self.interpretation.mss())) as f64
    }
}

/// Voice packets that passed the radio link, and voice packets that entered it, in a run without transfers.
pub(super) fn voice(report: &Report) -> [f64; 2] {
    let count = |name: &str| report.stages["radio-errors"]["down"][name].as_f64().unwrap_or(f64::NAN);
    [count("packets_out"), count("packets_in")]
}

#[cfg(test)]
mod tests {
    use airlink::scenario::Scenario;
    use airtcp_sim::run::run_watched;

    use super::*;
    use crate::pan2004::trace::Trace;

    /// `--scenario sifest-…` uses the same paths as the figures.
    #[test]
    fn presets_match_reproduced_settings() {
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

    /// LIW starts with "a two-segment initial *cwnd*" (§4.2), the others with "one Maximum Segment Size" (§2.2).
    #[test]
    fn liw_starts_with_two_segments_others_with_one() {
        let first_flight = |recipe: &str| {
            let setting = Setting { watch: Watch::Packets, ..Setting::new(recipe, Channel::new(0.0, 0.0)) };
            let (_, mut world) = run_watched(&setting.plan().unwrap(), |_| {}).unwrap();
            let trace = Trace::of(&mut world, 0, MSS);
            let (first_ack, _) = trace.acks.iter().find(|(_, number)| *number > 0).unwrap();
            trace.sent.iter().filter(|packet| packet.at < *first_ack).count()
        };
        assert_eq!((first_flight("tahoe+sifest"), first_flight("tahoe+sifest+liw")), (1, 2));
    }
}
