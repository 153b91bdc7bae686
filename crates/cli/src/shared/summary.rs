//! Summaries of `send` and `recv`.

use airlink::tun::DeviceError;
use airtcp::host::ConnId;
use airtcp::tcp::Connection;
use airtcp_command::counters::{Arrivals, Device, Handshake, Retransmissions, Timeouts, notices};
use airtcp_numbers::units::show_rate;
use airtcp_tun::{Driver, DriverError, Finished};
use airwire::time::Duration;
use serde::Serialize;

use super::monitor::{Monitor, RttSummary, WindowSummary};

/// The summary of a `send` or `recv` run.
#[derive(Serialize)]
pub(crate) struct Summary {
    pub(crate) outcome: Ending,
    pub(crate) direction: Direction,
    pub(crate) recipe: String,
    pub(crate) profile: &'static str,
    pub(crate) local: String,
    pub(crate) remote: String,
    /// Bytes that the peer acknowledged, or that were received.
    pub(crate) bytes: u64,
    /// Seconds from the end of the handshake to the last byte.
    pub(crate) seconds: f64,
    pub(crate) bit_per_s: f64,
    /// `None` without a time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) in_time: Option<InTime>,
    handshake: Handshake,
    retransmissions: Retransmissions,
    timeouts: Timeouts,
    arrivals: Arrivals,
    rtt: Option<RttSummary>,
    cwnd: WindowSummary,
    /// A sentence for each part of the recipe whose information did not arrive.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notices: Vec<String>,
    device: Device,
    pub(crate) sha256: Option<String>,
    pub(crate) peer_sha256: Option<String>,
}

/// Data acknowledged within a time limit, which starts at the end of the handshake. Data that is in the
/// buffer at the end of this time is still sent, but does not count.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub(crate) struct InTime {
    bytes: u64,
    seconds: f64,
    bit_per_s: f64,
}

impl InTime {
    pub(crate) fn new(bytes: u64, time: Duration) -> Self {
        let seconds = time.as_secs_f64();
        Self { bytes, seconds, bit_per_s: bytes as f64 * 8.0 / seconds }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ending {
    Done,
    Failed,
    Stopped,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Direction {
    Sent,
    Received,
}

impl Ending {
    pub(crate) fn of(verdict: &anyhow::Result<()>, finished: Finished) -> Self {
        match (verdict, finished) {
            (Ok(()), _) => Self::Done,
            (Err(_), Finished::BySignal(_)) => Self::Stopped,
            (Err(_), Finished::ByApplication) => Self::Failed,
        }
    }

    /// Closes the connection, or resets it if the run did not succeed, and sends the remaining packets.
    pub(crate) fn close_connection(self, driver: &mut Driver, id: ConnId) -> Result<(), DriverError> {
        let now = driver.clock().now();
        match self {
            Self::Done => driver.host.close(now, id),
            Self::Failed | Self::Stopped => driver.host.abort(id),
        }
        driver.finish()
    }
}

impl Summary {
    pub(crate) fn new(
        outcome: Ending,
        direction: Direction,
        driver: &Driver,
        connection: &Connection,
        monitor: &Monitor,
    ) -> Result<Self, DeviceError> {
        let statistics = connection.statistics();
        let bytes = match direction {
            Direction::Sent => statistics.bytes_acked,
            Direction::Received => statistics.bytes_received,
        };
        let seconds =
            monitor.established().map_or(0.0, |from| (monitor.last_progress() - from).as_secs_f64());
        let notices = match direction {
            Direction::Sent => notices(driver.host.recipe(), connection),
            // This end sends no data, so its recipe recovers nothing.
            Direction::Received => Vec::new(),
        };
        Ok(Self {
            outcome,
            direction,
            recipe: driver.host.recipe().to_string(),
            profile: connection.profile().name,
            local: connection.local().to_string(),
            remote: connection.remote().to_string(),
            bytes,
            seconds,
            bit_per_s: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
            in_time: None,
            handshake: Handshake::of(connection),
            retransmissions: Retransmissions::of(connection),
            timeouts: Timeouts::of(connection),
            arrivals: Arrivals::of(connection),
            rtt: monitor.rtt(),
            cwnd: monitor.window(),
            notices,
            device: Device::of(driver)?,
            sha256: None,
            peer_sha256: None,
        })
    }

    pub(crate) fn text(&self) -> String {
        let Self { local, remote, recipe, profile, .. } = self;
        let mut text = String::new();
        let mut line = |name: &str, value: String| text.push_str(&format!("{name:<13} {value}\n"));
        let (verb, from, to) = match self.direction {
            Direction::Sent => ("sent", local, remote),
            Direction::Received => ("received", remote, local),
        };
        let Self { bytes, seconds, .. } = self;
        let rate = show_rate(self.bit_per_s);
        line(verb, format!("{bytes} bytes from {from} to {to} in {seconds:.3} s: {rate}"));
        if let Some(InTime { bytes, seconds, bit_per_s }) = self.in_time {
            let rate = show_rate(bit_per_s);
            line("in time", format!("{bytes} bytes were acknowledged in {seconds} s: {rate}"));
        }
        line("host", format!("{recipe}, profile {profile}"));
        let h = &self.handshake;
        let yes = |on: bool| if on { "yes" } else { "no" };
        line(
            "handshake",
            format!(
                "{} bytes per full segment, SACK {}, timestamps {}, ECN {}, window scale {} (peer: {}){}",
                h.mss,
                yes(h.sack),
                yes(h.timestamps),
                yes(h.ecn),
                h.our_window_scale,
                h.peer_window_scale,
                if h.syn_data { ", data in SYN" } else { "" }
            ),
        );
        let a = &self.arrivals;
        match self.direction {
            Direction::Sent => self.sender_lines(line),
            Direction::Received => line(
                "segments",
                format!(
                    "{} in ({} duplicate, {} out of order), {} out",
                    a.segments_in, a.duplicate_segments, a.out_of_order_segments, a.segments_out
                ),
            ),
        }
        if self.device.dropped_by_kernel + self.device.refused > 0 {
            let Device { dropped_by_kernel, refused, .. } = self.device;
            text.push_str(&format!(
                "{:<13} the kernel dropped {dropped_by_kernel} packets to this host, and refused {refused} from it\n",
                "device"
            ));
        }
        if let Some(sha256) = &self.sha256 {
            let note = match &self.peer_sha256 {
                Some(peer) if peer == sha256 => " (the receiver has the same)",
                Some(_) => " (the receiver has a different one)",
                None => "",
            };
            text.push_str(&format!("{:<13} {sha256}{note}\n", "sha256"));
        }
        text
    }

    fn sender_lines(&self, mut line: impl FnMut(&str, String)) {
        let r = &self.retransmissions;
        line(
            "retransmitted",
            format!(
                "{} segments, {} bytes: {} fast, {} recovery, {} timeout, {} probe, {} handshake",
                r.segments, r.bytes, r.fast, r.recovery, r.timeout, r.probe, r.handshake
            ),
        );
        let t = &self.timeouts;
        let [x0, x1, x2, x3] = t.timeouts_by_dupacks;
        line(
            "timeouts",
            format!(
                "{} ({} spurious), after 0/1/2/3+ duplicate ACKs: {x0}/{x1}/{x2}/{x3} ({} failed-dupack)",
                t.timeouts, t.spurious_timeouts, t.failed_dupack
            ),
        );
        line(
            "duplicates",
            format!(
                "{} duplicate ACKs, {} fast retransmits ({} spurious), {} D-SACKs",
                t.duplicate_acks, t.fast_retransmits, t.spurious_fast_retransmits, t.dsacks
            ),
        );
        line(
            "window",
            format!(
                "{} reductions, {} losses attributed to the radio link, {} undone",
                t.window_reductions, t.attributed_to_radio, t.undone
            ),
        );
        if let Some(rtt) = &self.rtt {
            let RttSummary { samples, min_ms, p50_ms, p90_ms, p99_ms, max_ms } = rtt;
            line(
                "RTT in ms",
                format!(
                    "min {min_ms:.3}, p50 {p50_ms:.3}, p90 {p90_ms:.3}, p99 {p99_ms:.3}, max {max_ms:.3} \
                     ({samples} samples)"
                ),
            );
        }
        let WindowSummary { last, mean, max } = &self.cwnd;
        line("cwnd", format!("final {last:.1}, mean {mean:.1}, max {max:.1} segments"));
        for notice in &self.notices {
            line("missing", notice.clone());
        }
    }
}
