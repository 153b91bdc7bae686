//! Two paths of each paper. The senders on a path differ in nothing but their recipes.

use airlink::scenario::Scenario;
use airtcp::profile::Profile;
use airtcp::profile::Timer;
use airtcp::recovery::Recipe;
use airtcp::sender::SenderSpec;
use airtcp_sim::run::{Run, Until};
use airtcp_sim::world::{Flow, HostSpec, Length, WorldError};
use airwire::time::{Duration, Instant};

use super::super::Paper;

/// A paper's path. A base station that marks ACKs and reports its loss rate is added, for the senders that can use it.
pub(super) struct Place {
    pub(super) paper: Paper,
    pub(super) name: &'static str,
    scenario: &'static str,
    mss: u16,
    /// The receiver's window, in segments.
    window: usize,
    /// The timer of senders that name neither one nor a profile.
    timer: Timer,
    /// Length of a run.
    seconds: u64,
}

const LONG: u64 = 60;
/// P2's megabyte takes about so many seconds; timeouts are rare after that.
const MEGABYTE: u64 = 25;

const HELPFUL: &str = "kind = \"station\"\ntransit_marks = true\nloss_report = true\n";

pub(super) const PLACES: [Place; 10] = [
    Place {
        paper: Paper::P0,
        name: "x = 0.01, y = 0.15",
        scenario: "extends = \"sifest-random\"\n[[stage]]\nname = \"radio-errors\"\ndown.good = \"1%\"\ndown.bad = \"15%\"\n\
                   [[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 472,
        window: 16,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P0,
        name: "x = y = 0.08",
        scenario: "extends = \"sifest-heavy\"\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 472,
        window: 16,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P1,
        name: "last hop, 2 % loss, cross traffic",
        scenario: "extends = \"rtt-last-hop-congestion\"\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 960,
        window: 20,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P1,
        name: "narrow backbone, 2 % loss, cross traffic",
        scenario: "extends = \"rtt-narrow-backbone\"\n[[stage]]\nname = \"helpful\"\nbefore = \"backbone\"\n",
        mss: 960,
        window: 20,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P2,
        name: "W-CDMA, late but not lost",
        scenario: "extends = \"wcdma-384-jitter\"\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 1460,
        window: 44,
        timer: Timer::LINUX22,
        seconds: MEGABYTE,
    },
    Place {
        paper: Paper::P2,
        name: "W-CDMA, RLC gives up",
        scenario: "extends = \"wcdma-384-maxdat\"\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 1460,
        window: 44,
        timer: Timer::LINUX22,
        seconds: MEGABYTE,
    },
    Place {
        paper: Paper::P3,
        name: "4 % lost",
        scenario: "extends = \"tax-rebate\"\n[[stage]]\nname = \"radio-errors\"\ndown.per = \"4%\"\n\
                   [[stage]]\nname = \"station\"\nremove = true\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 1000,
        window: 1000,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P3,
        name: "4 % out of order",
        scenario: "extends = \"tax-rebate-llrtx\"\n[[stage]]\nname = \"radio\"\ndown.per = \"4%\"\n\
                   [[stage]]\nname = \"station\"\nremove = true\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 1000,
        window: 1000,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P4,
        name: "fixed to mobile, 15.6 % lost",
        scenario: "extends = \"etcp-fixed-mobile\"\n[[stage]]\nname = \"station\"\nremove = true\n\
                   [[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 536,
        window: 94,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
    Place {
        paper: Paper::P4,
        name: "fixed to mobile, 1.7 % lost",
        scenario: "extends = \"etcp-fixed-mobile\"\n[[stage]]\nname = \"radio-errors\"\ndown.per = \"1.686%\"\n\
                   [[stage]]\nname = \"station\"\nremove = true\n[[stage]]\nname = \"helpful\"\nbefore = \"radio\"\n",
        mss: 536,
        window: 94,
        timer: Timer::RFC6298,
        seconds: LONG,
    },
];

impl Place {
    /// A run with an endless transfer for each sender, all over the same path. Its seed is still to be set.
    pub(super) fn plan(&self, senders: &[&SenderSpec]) -> Result<Run, WorldError> {
        let flow = |(index, sender): (usize, &&SenderSpec)| Flow {
            recipe: Some(sender.recipe.clone()),
            profile: sender.profile.map(|name| Profile { mss: Some(self.mss), ..name.profile() }),
            receive_buffer: Some(self.window * usize::from(self.mss)),
            // Equal flows that begin at the same time would stay in step.
            start: Instant::ZERO + Duration::from_millis(100) * index as u64,
            ..Flow::down(Length::Endless)
        };
        let text = format!("schema = 1\n{}{HELPFUL}", self.scenario);
        let ordinary = HostSpec::receiver();
        Ok(Run {
            scenario: Scenario::parse(&text, self.name)?,
            seed: 0,
            fixed: HostSpec {
                profile: Profile { mss: Some(self.mss), timer: self.timer, ..Profile::default() },
                recipe: Recipe::ordinary(),
            },
            mobile: HostSpec {
                profile: Profile { mss: Some(self.mss), ..ordinary.profile },
                recipe: ordinary.recipe,
            },
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
    fn every_paper_has_two_places_where_data_arrive_and_something_goes_wrong() {
        for paper in Paper::ALL {
            assert_eq!(PLACES.iter().filter(|place| place.paper == paper).count(), 2, "{paper:?}");
        }
        for place in &PLACES {
            let newreno = "newreno".parse().unwrap();
            let plan = place.plan(&[&newreno]).unwrap();
            let trouble = (1..=5).map(|seed| {
                let report = run(&Run { seed, ..plan.clone() }).unwrap();
                let flow = &report.flows[0];
                assert!(flow.delivered > 0, "{}", place.name);
                flow.counters.timeouts + flow.counters.fast_retransmits
            });
            assert!(trouble.sum::<u64>() > 0, "{}", place.name);
        }
    }
}
