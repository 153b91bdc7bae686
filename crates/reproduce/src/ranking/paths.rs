//! The paths of the ranking, taken from the set-ups of the papers' own figures. Senders on a path differ only in
//! their recipes and in a profile that they name.

use airlink::scenario::{Scenario, StageConfig};
use airtcp::profile::recovery::InitialWindow;
use airtcp::profile::{AckPolicy, Profile, Timer};
use airtcp::recovery::Recipe;
use airtcp::rtt::{RtoLimits, TimerStyle};
use airtcp::sender::SenderSpec;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::direction::Direction;
use airwire::time::{Duration, Instant};

use super::capacity;
use crate::{Paper, chandra2003, inamura2009, lai2013, ni2002, pan2004};
use chandra2003::setting::{Variant, Way};
use lai2013::setting::{Extent, NR, Radio, Site};
use pan2004::setting::Channel;

/// A path of a paper, with the properties of the hosts that all of the paper's figures share.
pub(super) struct RankedPath {
    pub(super) paper: Paper,
    pub(super) name: &'static str,
    /// The path of the paper's figures.
    figure_path: fn() -> Result<Scenario, WorldError>,
    /// The radio link. A base station is added in front of the radio link. The station marks ACKs and reports
    /// the loss rate, for senders that use this information. `None`: the path has its own stations.
    radio: Option<&'static str>,
    pub(super) mss: u16,
    /// Receive window in segments.
    window: usize,
    acks: AckPolicy,
    timestamps: bool,
    /// Timer of senders that name neither a timer nor a profile.
    timer: Timer,
    /// Initial window of senders without a profile. `None`: as in profile `default`.
    initial: Option<InitialWindow>,
    /// Minimum ssthresh of senders without a profile, in segments.
    least_ssthresh: f64,
    /// Whether the mobile host sends.
    pub(super) uplink: bool,
    /// Length of a run.
    pub(super) seconds: u64,
}

const LONG: u64 = 60;
/// Approximate duration of the transfer of a megabyte in Inamura et al., in seconds. Later in a transfer,
/// timeouts are rare.
const MEGABYTE: u64 = 25;

/// RFC 6298 with the clock ticks and the minimum timeout of a paper.
const fn timer(tick_ms: u64, least_ms: u64) -> Timer {
    Timer {
        style: TimerStyle::Rfc6298 { granularity: Duration::from_millis(tick_ms) },
        limits: RtoLimits { min: Duration::from_millis(least_ms), ..Timer::RFC6298.limits },
    }
}

/// ACK policy of Pan et al. and Inamura et al.
const DELAYED: AckPolicy = AckPolicy { delay: Duration::from_millis(200), ..AckPolicy::DELAYED };

/// Pan et al. §3.1: the path of Fig. 3, and 16 segments of 512 bytes.
const SIFEST: RankedPath = RankedPath {
    paper: Paper::Pan2004,
    name: "x = 0.01, y = 0.15",
    figure_path: || sifest(Channel::new(0.01, 0.15)),
    radio: Some("radio"),
    mss: pan2004::setting::MSS,
    window: 16,
    acks: DELAYED,
    timestamps: true,
    timer: timer(100, 200),
    initial: None,
    least_ssthresh: 2.0,
    uplink: false,
    seconds: LONG,
};

/// Ni et al. §4.1: two-state errors, 2 % of the data, and cross traffic.
const CONGESTED: RankedPath = RankedPath {
    paper: Paper::Ni2002,
    name: "last hop, 2 % loss, cross traffic",
    figure_path: || Ok(Scenario::parse(&ni2002::setting::congested_last_hop(), "Ni et al., Fig. 3b")?),
    mss: ni2002::setting::MSS,
    window: 20,
    acks: AckPolicy::EVERY,
    timer: timer(100, 1000),
    ..SIFEST
};

/// Inamura et al. §5: buffers of 64 KB. The timers of two systems of Fig. 5, the most and the least aggressive one.
const BEARER: RankedPath = RankedPath {
    paper: Paper::Inamura2009,
    name: "W-CDMA, delayed but not lost, Linux 2.2's timer",
    figure_path: || Ok(Scenario::load("wcdma-384-jitter")?),
    mss: 1460,
    window: 44,
    acks: DELAYED,
    timer: Timer::LINUX22,
    seconds: MEGABYTE,
    ..SIFEST
};

/// Inamura et al. §7, Figs. 12 to 15: a handover in which the first segment of a window and its retransmission are lost.
/// Nothing here is random.
const HANDOVER: RankedPath = RankedPath {
    name: "handover, lost retransmission",
    figure_path: || Ok(Scenario::parse(&inamura2009::lost_retransmission(), "Inamura et al., Fig. 10")?),
    mss: inamura2009::handover::MSS,
    window: inamura2009::handover::WINDOW,
    acks: AckPolicy::EVERY,
    timer: Timer::RFC6298,
    initial: Some(InitialWindow::Segments(1)),
    ..BEARER
};

/// Lai et al. §IV.
const TAXED: RankedPath = RankedPath {
    paper: Paper::Lai2013,
    name: "4 % loss",
    figure_path: || taxed(Radio::Loses),
    mss: Site::ORDINARY.mss,
    window: 1000,
    acks: AckPolicy::EVERY,
    timer: timer(10, 200),
    ..SIFEST
};

/// Chandra et al. §IV, Table 2: windows of 94 segments, an ACK for each segment, a minimum ssthresh of 1. No timestamps,
/// because they would take a fifth of these small segments.
const MARKED: RankedPath = RankedPath {
    paper: Paper::Chandra2003,
    name: "fixed to mobile, 15.6 % loss",
    figure_path: || etcp(Way::FixedToMobile, 1e-3),
    radio: None,
    mss: chandra2003::setting::MSS,
    window: 94,
    acks: AckPolicy::EVERY,
    timestamps: false,
    timer: Timer::RFC6298,
    least_ssthresh: 1.0,
    ..SIFEST
};

pub(super) const PATHS: [RankedPath; 14] = [
    SIFEST,
    RankedPath { name: "x = y = 0.08", figure_path: || sifest(Channel::new(0.08, 0.08)), ..SIFEST },
    CONGESTED,
    RankedPath {
        name: "narrow backbone, 2 % loss, two congested wires",
        figure_path: || Ok(Scenario::parse(&ni2002::setting::narrow_backbone(), "Ni et al., Fig. 3c")?),
        radio: Some("backbone"),
        ..CONGESTED
    },
    BEARER,
    RankedPath {
        name: "W-CDMA, delayed but not lost, FreeBSD 4.5's timer",
        timer: Timer::FREEBSD45,
        ..BEARER
    },
    RankedPath {
        name: "W-CDMA, RLC discards, Linux 2.4's timer",
        figure_path: || Ok(Scenario::load("wcdma-384-maxdat")?),
        timer: Timer::LINUX24,
        ..BEARER
    },
    HANDOVER,
    TAXED,
    RankedPath { name: "4 % reordering", figure_path: || taxed(Radio::Reorders), ..TAXED },
    MARKED,
    RankedPath {
        name: "fixed to mobile, 1.7 % loss",
        figure_path: || etcp(Way::FixedToMobile, 1e-4),
        ..MARKED
    },
    RankedPath {
        name: "mobile to fixed, 15.6 % loss",
        figure_path: || etcp(Way::MobileToFixed, 1e-3),
        uplink: true,
        ..MARKED
    },
    RankedPath {
        name: "mobile to mobile, 15.6 % loss in total",
        figure_path: || etcp(Way::MobileToMobile, 1e-3),
        ..MARKED
    },
];

fn sifest(channel: Channel) -> Result<Scenario, WorldError> {
    Ok(pan2004::setting::Setting::new("newreno", channel).plan()?.scenario)
}

fn taxed(radio: Radio) -> Result<Scenario, WorldError> {
    Ok(lai2013::setting::plan(radio, Site::ORDINARY, 4, &[NR], &Extent::FEW)?.scenario)
}

fn etcp(way: Way, bit_error_rate: f64) -> Result<Scenario, WorldError> {
    let setting = chandra2003::setting::Setting::new(way, Variant::Reno, bit_error_rate);
    Ok(setting.plan(Duration::from_secs(LONG))?.scenario)
}

impl RankedPath {
    /// The paper's path, with base stations that mark ACKs and report the loss rate.
    fn scenario(&self) -> Result<Scenario, WorldError> {
        let mut scenario = (self.figure_path)()?;
        if let Some(radio) = self.radio {
            let station = "schema = 1\n[[stage]]\nkind = \"station\"\nname = \"helpful\"\n";
            let station = Scenario::parse(station, self.name)?.stages;
            let before = scenario.stages.iter().position(|stage| stage.name == radio);
            let before = before.expect("it names a stage of its path");
            scenario.stages.splice(before..before, station);
        }
        for stage in &mut scenario.stages {
            if let StageConfig::Station(station) = &mut stage.config {
                station.transit_marks = true;
                station.loss_report = true;
            }
        }
        Ok(scenario)
    }

    /// Capacity × (1 − loss) in bit/s of payload.
    pub(super) fn capacity(&self) -> Result<f64, WorldError> {
        let direction = if self.uplink { Direction::Up } else { Direction::Down };
        Ok(capacity::of(&self.scenario()?, self.mss, direction))
    }

    /// A run with an endless transfer of each sender over the same path. The caller sets the seed.
    pub(super) fn plan(&self, senders: &[&SenderSpec]) -> Result<Run, WorldError> {
        let flow = |(index, sender): (usize, &&SenderSpec)| Flow {
            recipe: Some(sender.recipe.clone()),
            profile: sender.profile.map(|name| name.profile().with(|it| it.handshake.mss = Some(self.mss))),
            receive_buffer: Some(self.window * usize::from(self.mss)),
            // Identical flows that begin at the same time would stay synchronized.
            start: Instant::ZERO + Duration::from_millis(100) * index as u64,
            ..if self.uplink { Flow::up(Length::Endless) } else { Flow::down(Length::Endless) }
        };
        let mut sending = Profile::default().with(|it| {
            it.handshake.mss = Some(self.mss);
            it.timers.rto = self.timer;
        });
        if let Some(window) = self.initial {
            sending.recovery.initial.window = window;
        }
        sending.recovery.decrease.min_ssthresh = self.least_ssthresh;
        sending.recovery.decrease.min_window = sending.recovery.decrease.min_window.min(self.least_ssthresh);
        let ordinary = HostSpec::receiver();
        let receiving = ordinary.profile.with(|it| {
            it.handshake.mss = Some(self.mss);
            it.handshake.timestamps = self.timestamps;
            it.acks.policy = self.acks;
        });
        let sender = HostSpec { profile: sending, recipe: Recipe::default() };
        let receiver = HostSpec { profile: receiving, recipe: ordinary.recipe };
        let (fixed, mobile) = if self.uplink { (receiver, sender) } else { (sender, receiver) };
        Ok(Run {
            scenario: self.scenario()?,
            seed: 0,
            fixed,
            mobile,
            flows: senders.iter().enumerate().map(flow).collect(),
            until: Until::At(Instant::from_secs(self.seconds)),
            from: Instant::ZERO,
            score: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use airtcp_sim::run::run;

    use super::*;

    #[test]
    fn paths_deliver_data_and_trigger_loss_recovery() {
        for paper in Paper::ALL {
            assert!(PATHS.iter().filter(|path| path.paper == paper).count() >= 2, "{paper:?}");
        }
        for path in &PATHS {
            let newreno = "newreno".parse().unwrap();
            let plan = path.plan(&[&newreno]).unwrap();
            let is_in_trouble = (1..=3).any(|seed| {
                let report = run(&Run { seed, ..plan.clone() }).unwrap();
                let flow = &report.flows[0];
                assert!(flow.delivered > 0, "{}", path.name);
                flow.counters.timeouts + flow.counters.fast_retransmits > 0
            });
            assert!(is_in_trouble, "{}", path.name);
        }
    }

    /// Inamura et al.: loss retransmission saves a timeout if the retransmission is lost.
    #[test]
    fn handover_loses_retransmission() {
        let timeouts = |recipe: &str| {
            let plan = HANDOVER.plan(&[&recipe.parse().unwrap()]).unwrap();
            run(&plan).unwrap().flows[0].counters.timeouts
        };
        assert_eq!(timeouts("newreno+fast-timeout"), 2);
        assert_eq!(timeouts("newreno+fast-timeout+loss-retransmission"), 1);
    }

    /// Where data cross two radio links, both stations mark and report.
    #[test]
    fn every_station_marks_and_reports() {
        for path in &PATHS {
            let scenario = path.scenario().unwrap();
            let stations = scenario.stages.iter().filter_map(|stage| match &stage.config {
                StageConfig::Station(station) => Some(station.transit_marks && station.loss_report),
                _ => None,
            });
            let stations: Vec<bool> = stations.collect();
            let wanted = if path.name.starts_with("mobile to mobile") { 2 } else { 1 };
            assert_eq!(stations, vec![true; wanted], "{}", path.name);
        }
    }
}
