//! Monitors one connection: RTT, window, progress, intervals and decisions.

use std::path::Path;

use airtcp::tcp::Connection;
use airtcp_command::decisions::DecisionLog;
use airtcp_command::reporter::{Interval, Reporter};
use airtcp_command::unanswered::UnansweredReports;
use airwire::time::{Duration, Instant};
use hdrhistogram::Histogram;
use serde::Serialize;

/// The congestion window over time: its time-weighted mean, and its maximum.
#[derive(Clone, Copy, Debug, Default)]
struct Window {
    since: Instant,
    now: f64,
    /// Integral of the window over time, in segments × seconds.
    area: f64,
    seconds: f64,
    max: f64,
}

impl Window {
    fn at(&mut self, now: Instant, cwnd: f64) {
        if self.max > 0.0 {
            let seconds = (now - self.since).as_secs_f64();
            self.area += self.now * seconds;
            self.seconds += seconds;
        }
        (self.since, self.now, self.max) = (now, cwnd, self.max.max(cwnd));
    }

    fn mean(&self) -> f64 {
        if self.seconds > 0.0 { self.area / self.seconds } else { self.now }
    }
}

pub(crate) struct Monitor {
    pub(crate) reporter: Reporter,
    decisions: Option<DecisionLog>,
    timeout: Option<Duration>,
    /// RTT samples in microseconds.
    rtts: Histogram<u64>,
    samples: u64,
    window: Window,
    established: Option<Instant>,
    progress: Progress,
    last_progress: Instant,
    unanswered_reports: UnansweredReports,
    tick: Option<Tick>,
    interval: Duration,
}

/// Values that show progress. A transfer is stalled if no value changes until the timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Progress {
    acked: u64,
    received: u64,
    synchronized: bool,
}

/// The current interval.
#[derive(Clone, Copy, Debug)]
struct Tick {
    from: Instant,
    to: Instant,
    bytes: u64,
}

#[derive(Serialize, Clone, Debug)]
pub(crate) struct RttSummary {
    pub(crate) samples: u64,
    pub(crate) min_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

#[derive(Serialize, Clone, Debug)]
pub(crate) struct WindowSummary {
    #[serde(rename = "final")]
    pub(crate) last: f64,
    pub(crate) mean: f64,
    pub(crate) max: f64,
}

/// The error of a transfer that made no progress until the timeout.
pub(crate) struct Stalled;

impl Monitor {
    pub(crate) fn new(
        reporter: Reporter,
        decisions: Option<&Path>,
        timeout: Option<Duration>,
        interval: Duration,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            decisions: decisions.map(|path| DecisionLog::create(path, reporter.wall_zero())).transpose()?,
            timeout,
            // RTTs from 1 µs to 1 h, with three significant digits. The constructor accepts these constants.
            rtts: Histogram::new_with_bounds(1, 3_600_000_000, 3)?,
            samples: 0,
            window: Window::default(),
            established: None,
            progress: Progress::default(),
            last_progress: reporter.now(),
            unanswered_reports: UnansweredReports::default(),
            reporter,
            tick: None,
            interval,
        })
    }

    /// Records the state of the connection. Called after every packet, so it must be cheap.
    pub(crate) fn observe(&mut self, now: Instant, connection: &Connection) {
        let rtt = connection.rtt();
        if rtt.samples() != self.samples
            && let Some(latest) = rtt.latest()
        {
            self.samples = rtt.samples();
            self.rtts.saturating_record((latest.as_nanos() + 500) / 1000);
        }
        if self.established.is_some() {
            self.window.at(now, connection.recovery().congestion().cwnd);
        }
        let statistics = connection.statistics();
        let progress = Progress {
            acked: statistics.bytes_acked,
            received: statistics.bytes_received,
            synchronized: connection.state().is_synchronized(),
        };
        if progress != self.progress {
            self.progress = progress;
            self.last_progress = now;
            if progress.synchronized && self.established.is_none() {
                self.established = Some(now);
                self.tick = Some(Tick { from: now, to: now + self.interval, bytes: 0 });
            }
        }
    }

    /// Writes the decisions, and the current interval if it has ended.
    pub(crate) fn run(&mut self, now: Instant, connection: &mut Connection) -> anyhow::Result<()> {
        self.observe(now, connection);
        self.unanswered_reports.report(now, None, connection, &self.reporter)?;
        if let Some(log) = &mut self.decisions {
            log.write(None, &connection.recovery_mut().take_trace())?;
        }
        if let Some(tick) = self.tick
            && tick.to <= now
        {
            let bytes = self.transferred_bytes();
            self.reporter.interval(&interval(connection, tick, now, bytes, self.established))?;
            // After a late interval, skip the deadlines that have already passed.
            let mut to = tick.to;
            while to <= now {
                to += self.interval;
            }
            self.tick = Some(Tick { from: now, to, bytes });
        }
        Ok(())
    }

    pub(crate) fn check_progress(&self, now: Instant) -> Result<(), Stalled> {
        match self.timeout {
            Some(timeout) if self.last_progress + timeout <= now => Err(Stalled),
            _ => Ok(()),
        }
    }

    pub(crate) fn finish(&mut self, connection: Option<&mut Connection>) -> anyhow::Result<()> {
        if let Some(log) = &mut self.decisions {
            if let Some(connection) = connection {
                log.write(None, &connection.recovery_mut().take_trace())?;
            }
            log.flush()?;
        }
        Ok(())
    }

    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let stalled = self.timeout.map(|timeout| self.last_progress + timeout);
        self.tick.map(|tick| tick.to).into_iter().chain(stalled).min()
    }

    pub(crate) fn logs_decisions(&self) -> bool {
        self.decisions.is_some()
    }

    pub(crate) fn established(&self) -> Option<Instant> {
        self.established
    }

    /// Returns the time of the last progress: data was acknowledged or received, or the handshake was
    /// completed.
    pub(crate) fn last_progress(&self) -> Instant {
        self.last_progress
    }

    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn rtt(&self) -> Option<RttSummary> {
        let ms = |us: u64| us as f64 / 1e3;
        let at = |percentile| ms(self.rtts.value_at_percentile(percentile));
        (self.samples > 0).then(|| RttSummary {
            samples: self.samples,
            min_ms: ms(self.rtts.min()),
            p50_ms: at(50.0),
            p90_ms: at(90.0),
            p99_ms: at(99.0),
            max_ms: ms(self.rtts.max()),
        })
    }

    pub(crate) fn window(&self) -> WindowSummary {
        WindowSummary { last: self.window.now, mean: self.window.mean(), max: self.window.max }
    }

    fn transferred_bytes(&self) -> u64 {
        self.progress.acked.max(self.progress.received)
    }
}

fn interval(
    connection: &Connection,
    tick: Tick,
    now: Instant,
    total_bytes: u64,
    established: Option<Instant>,
) -> Interval {
    let info = connection.info();
    let zero = established.unwrap_or_default();
    let bytes = total_bytes - tick.bytes;
    Interval {
        from: (tick.from - zero).as_secs_f64(),
        to: (now - zero).as_secs_f64(),
        bytes,
        bit_per_s: bytes as f64 * 8.0 / (now - tick.from).as_secs_f64(),
        total_bytes,
        cwnd: info.cwnd,
        ssthresh: info.ssthresh,
        in_flight: info.unacked,
        srtt_ms: info.rtt.as_secs_f64() * 1e3,
        rto_ms: info.rto.as_secs_f64() * 1e3,
        retransmissions: info.total_retrans,
        timeouts: connection.recovery().counters().timeouts,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_window_is_weighted_by_time() {
        let mut window = Window::default();
        window.at(Instant::from_secs(10), 2.0);
        window.at(Instant::from_secs(13), 10.0);
        window.at(Instant::from_secs(14), 1.0);
        assert_eq!((window.now, window.max), (1.0, 10.0));
        assert_eq!(window.mean(), (3.0 * 2.0 + 10.0) / 4.0);
    }
}
