//! Grants of the uplink (TS 38.321 §5.4, TS 36.321 §5.4): a terminal with data sends a scheduling request (SR),
//! receives a grant, and reports the size of its buffer (BSR) in each transport block. Further grants follow
//! from the reports.
//!
//! Choices: a report has the exact size of the buffer, from which the network subtracts the octets that it
//! has granted since. A report takes no room in the transport block that carries it, and arrives with the
//! block. If HARQ loses the block, the terminal notices and sends an SR (in place of retxBSR-Timer). An SR is
//! never lost.

use std::collections::VecDeque;

use airwire::time::{Duration, Instant, earlier};

use super::grid::Grid;
use crate::packet::Direction;

/// Settings of the grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GrantConfig {
    /// Period of the opportunities to send an SR. `None`: every uplink slot is granted without a request
    /// (configured grant).
    pub sr_period: Option<Duration>,
    /// Time from the beginning of a slot with an SR or BSR to the first slot that is granted because of it.
    pub delay: Duration,
    /// Maximum number of octets in the first grant after an SR. `None`: as many as a slot carries.
    pub first: Option<usize>,
}

/// The terminal's and the network's state of one uplink.
#[derive(Debug)]
pub struct UplinkGrants {
    config: GrantConfig,
    request: SchedulingRequest,
    /// Octets granted since the start.
    granted: u64,
    /// The latest report that has been evaluated.
    known: Report,
    /// Reports that have arrived and are not evaluated yet, with the time from which they have an effect.
    arrived: VecDeque<(Instant, Report)>,
    /// Reports in blocks whose outcome is undecided.
    undecided: Vec<Report>,
    requests: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SchedulingRequest {
    Idle,
    /// The terminal sends an SR in the slot that begins at `at`.
    Pending {
        at: Instant,
    },
}

/// Content of a buffer status report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Octets that remained in the buffer.
    pub buffered: u64,
    /// Octets that had been granted, including the block that carries the report.
    granted: u64,
}

/// A grant for one slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Maximum size of the transport block in octets.
    pub octets: usize,
}

impl UplinkGrants {
    /// Creates the state of a terminal without data.
    pub fn new(config: GrantConfig) -> Self {
        Self {
            config,
            request: SchedulingRequest::Idle,
            granted: 0,
            known: Report::default(),
            arrived: VecDeque::new(),
            undecided: Vec::new(),
            requests: 0,
        }
    }

    /// Changes the settings. A pending SR keeps its time.
    pub fn reconfigure(&mut self, config: GrantConfig) {
        self.config = config;
    }

    /// Number of SRs that were sent.
    pub fn requests(&self) -> u64 {
        self.requests
    }

    /// Forgets everything (MAC reset).
    pub fn reset(&mut self) {
        *self = Self { granted: self.granted, requests: self.requests, ..Self::new(self.config) };
        self.known.granted = self.granted;
    }

    /// Octets that the network believes to be in the buffer after `report`.
    fn estimate(&self, report: Report) -> u64 {
        report.buffered.saturating_sub(self.granted - report.granted)
    }

    fn evaluate(&mut self, now: Instant) {
        while let Some((_, report)) = self.arrived.pop_front_if(|(at, _)| *at <= now) {
            // A report that HARQ has delayed may be older than the known one.
            if report.granted >= self.known.granted {
                self.known = report;
            }
        }
    }

    /// Earliest time, at `now` or later, at which a slot may be granted for new data. `None` if no SR or
    /// report asks for a grant. `buffered` is the number of octets in the terminal's buffer. The terminal
    /// triggers an SR if it has data that no report announces.
    pub fn granted_from(&mut self, now: Instant, buffered: usize, grid: &Grid) -> Option<Instant> {
        self.evaluate(now);
        let Some(period) = self.config.sr_period else { return (buffered > 0).then_some(now) };
        if self.estimate(self.known) > 0 {
            return Some(now);
        }
        let report = self.arrived.iter().find(|(_, report)| self.estimate(*report) > 0).map(|(at, _)| *at);
        let is_announced = report.is_some() || self.undecided.iter().any(|report| self.estimate(*report) > 0);
        if buffered > 0 && !is_announced && self.request == SchedulingRequest::Idle {
            let since_start = (now - Instant::ZERO).as_nanos();
            let opportunity = Instant::ZERO + period * since_start.div_ceil(period.as_nanos());
            self.request = SchedulingRequest::Pending { at: grid.next(Direction::Up, opportunity).start };
        }
        let request = match self.request {
            SchedulingRequest::Idle => None,
            SchedulingRequest::Pending { at } => Some(now.max(at + self.config.delay)),
        };
        earlier(report, request)
    }

    /// The grant for the slot that begins at `now` and carries up to `octets`.
    pub fn grant(&mut self, now: Instant, octets: usize) -> Option<Grant> {
        self.evaluate(now);
        if self.config.sr_period.is_none() || self.estimate(self.known) > 0 {
            return Some(Grant { octets });
        }
        match self.request {
            SchedulingRequest::Pending { at } if at + self.config.delay <= now => {
                Some(Grant { octets: self.config.first.map_or(octets, |first| octets.min(first)) })
            }
            _ => None,
        }
    }

    /// The terminal has used a grant, and `buffered` octets remain in its buffer. Returns the report that the
    /// block carries.
    pub fn use_grant(&mut self, grant: Grant, buffered: usize) -> Report {
        if std::mem::replace(&mut self.request, SchedulingRequest::Idle) != SchedulingRequest::Idle {
            self.requests += 1;
        }
        self.granted += grant.octets as u64;
        let report = Report { buffered: buffered as u64, granted: self.granted };
        self.undecided.push(report);
        report
    }

    /// The network has decoded the block that carries this report, whose last transmission began at `start`.
    pub fn report_decoded(&mut self, start: Instant, report: Report) {
        self.report_lost(report);
        self.arrived.push_back((start + self.config.delay, report));
    }

    /// HARQ has lost the block that carries this report.
    pub fn report_lost(&mut self, report: Report) {
        self.undecided.retain(|other| *other != report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    fn grants(first: Option<usize>) -> (UplinkGrants, Grid) {
        let config = GrantConfig {
            sr_period: Some(Duration::from_millis(10)),
            delay: Duration::from_millis(4),
            first,
        };
        (UplinkGrants::new(config), Grid::new(Duration::from_millis(1), "D".parse().unwrap()))
    }

    #[test]
    fn first_data_waits_for_request_and_grant() {
        let (mut grants, grid) = grants(None);
        assert_eq!(grants.granted_from(at(100), 0, &grid), None);
        assert_eq!(grants.granted_from(at(3_100), 700, &grid), Some(at(14_000)));
        assert_eq!(grants.granted_from(at(12_000), 900, &grid), Some(at(14_000)), "the SR keeps its time");
        assert_eq!(grants.grant(at(13_000), 500), None);
        assert_eq!(grants.grant(at(14_000), 500), Some(Grant { octets: 500 }));
    }

    #[test]
    fn report_brings_further_grants() {
        let (mut grants, grid) = grants(Some(100));
        grants.granted_from(at(0), 1_000, &grid);
        let grant = grants.grant(at(4_000), 500).unwrap();
        assert_eq!(grant.octets, 100);
        let report = grants.use_grant(grant, 900);
        assert_eq!(grants.granted_from(at(4_000), 900, &grid), None, "the report is undecided");
        grants.report_decoded(at(4_000), report);
        assert_eq!(grants.granted_from(at(5_000), 900, &grid), Some(at(8_000)));
        // 900 octets bring two grants of 500 octets.
        for (slot, remaining) in [(8_000, 400), (9_000, 0)] {
            let grant = grants.grant(at(slot), 500).unwrap();
            let report = grants.use_grant(grant, remaining);
            grants.report_decoded(at(slot), report);
        }
        assert_eq!((grants.grant(at(10_000), 500), grants.requests()), (None, 1));
        // New data needs an SR again, because the last report announced none.
        assert_eq!(grants.granted_from(at(10_001), 50, &grid), Some(at(24_000)));
    }

    #[test]
    fn lost_report_triggers_request() {
        let (mut grants, grid) = grants(None);
        grants.granted_from(at(0), 1_000, &grid);
        let grant = grants.grant(at(4_000), 500).unwrap();
        let report = grants.use_grant(grant, 500);
        assert_eq!(grants.granted_from(at(9_000), 500, &grid), None);
        grants.report_lost(report);
        assert_eq!(grants.granted_from(at(12_500), 500, &grid), Some(at(24_000)));
    }

    #[test]
    fn request_waits_for_uplink_slot() {
        let (mut grants, _) = grants(None);
        let grid = Grid::new(Duration::from_micros(500), "DDDSU".parse().unwrap());
        // The opportunity at 10 ms is in a downlink slot; the next uplink slot begins at 12 ms.
        assert_eq!(grants.granted_from(at(9_000), 1, &grid), Some(at(16_000)));
    }

    #[test]
    fn configured_grant_needs_no_request() {
        let (mut grants, grid) = grants(None);
        grants.reconfigure(GrantConfig { sr_period: None, ..grants.config });
        assert_eq!(grants.granted_from(at(100), 1, &grid), Some(at(100)));
        assert_eq!(grants.granted_from(at(100), 0, &grid), None);
        assert_eq!(grants.grant(at(1_000), 500), Some(Grant { octets: 500 }));
        assert_eq!(grants.requests(), 0);
    }

    #[test]
    fn reset_forgets_requests_and_reports() {
        let (mut grants, grid) = grants(None);
        grants.granted_from(at(0), 1_000, &grid);
        let grant = grants.grant(at(4_000), 500).unwrap();
        let report = grants.use_grant(grant, 500);
        grants.report_decoded(at(4_000), report);
        grants.reset();
        assert_eq!(grants.granted_from(at(5_000), 0, &grid), None);
        assert_eq!(grants.granted_from(at(15_000), 500, &grid), Some(at(24_000)));
    }
}
