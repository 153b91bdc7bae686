//! MTU probes: segments that may be too long for the path. Their loss is not a sign of congestion (RFC 4821
//! §7.6.2).

use super::*;
use crate::flight::Sent;

/// Minimum congestion window for a probe, in segments (Linux 6.18, tcp_mtu_probe()).
const MIN_WINDOW: f64 = 11.0;
const BY: Author = Author { question: Question::Window, name: "mtu-probing" };

/// Whether the congestion window has room for a probe, or when it may have room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProbeRoom {
    /// Not while the window is this small, or while segments are missing.
    Never,
    /// After further ACKs.
    Later,
    Now,
}

impl Recovery {
    /// Returns whether the congestion window has room for a probe with `data` bytes. Without room, new data
    /// waits (Linux 6.18, tcp_mtu_probe()).
    pub(crate) fn room_for_mtu_probe(&self, path: &Path<'_>, data: u64) -> ProbeRoom {
        let is_open = matches!(self.cc.episode, Episode::Open(_));
        let is_in_order = self.cc.dupacks() == 0 && path.flight.sacked().segments == 0;
        if !is_open || !is_in_order || self.is_probing() || self.cc.cwnd < MIN_WINDOW {
            return ProbeRoom::Never;
        }
        let in_flight = self.in_flight(&self.view(path));
        let (used, wanted, window) = match self.profile.recovery.accounting {
            Accounting::Bytes => {
                (in_flight.bytes as f64, data.max(2 * path.smss) as f64, self.cc.cwnd * path.smss as f64)
            }
            Accounting::Segments => (in_flight.segments as f64, 2.0, self.cc.cwnd.floor()),
        };
        if wanted > window {
            ProbeRoom::Never
        } else if used + wanted > window {
            ProbeRoom::Later
        } else {
            ProbeRoom::Now
        }
    }

    /// Processes the transmission of a probe. A window that counts segments shrinks by one, because the probe
    /// is longer than other segments (Linux 6.18, tcp_mtu_probe()).
    pub(crate) fn on_mtu_probe(&mut self, now: Instant) {
        if self.profile.recovery.accounting == Accounting::Segments {
            let (cwnd, ssthresh) = (self.cc.cwnd - 1.0, self.cc.ssthresh);
            self.change_window(now, BY, Reduction { cwnd, ssthresh }, "an MTU probe counts as two segments");
        }
    }

    /// Processes the ACK of a probe: full-sized packets grow from `before` to `after` bytes, of which
    /// `headers` are not data. The window keeps its size in bytes.
    pub(crate) fn on_longer_packets(&mut self, now: Instant, before: u32, after: u32, headers: u32) {
        let Congestion { cwnd, ssthresh, .. } = self.cc;
        let (cwnd, ssthresh) = match self.profile.recovery.accounting {
            Accounting::Bytes => {
                let ratio = f64::from(before - headers) / f64::from(after - headers);
                (cwnd * ratio, ssthresh * ratio)
            }
            // tcp_mtup_probe_success(), tcp_current_ssthresh()
            Accounting::Segments => {
                let cwnd = (cwnd.floor() * f64::from(before) / f64::from(after)).floor();
                (cwnd, ssthresh.max((cwnd / 2.0).floor() + (cwnd / 4.0).floor()))
            }
        };
        let window = Reduction { cwnd: cwnd.max(1.0), ssthresh };
        self.change_window(now, BY, window, "an MTU probe was delivered");
    }

    /// Returns true once after the loss of a probe that began an episode.
    pub(crate) fn take_lost_mtu_probe(&mut self) -> bool {
        std::mem::take(&mut self.lost_mtu_probe)
    }
}

impl Event<'_, '_> {
    /// Records the loss at `offset` if a probe was lost there and no earlier segment was lost (Linux 6.18,
    /// tcp_fastretrans_alert()), and restores the window. Returns whether a probe was lost.
    pub(super) fn note_lost_mtu_probe(&mut self, offset: u64) -> bool {
        let is_probe = |head: &&Sent| head.start == offset && head.probes_mtu && head.transmissions == 1;
        if self.path.flight.head().filter(is_probe).is_none() {
            return false;
        }
        self.lost_mtu_probe = true;
        if self.profile.recovery.accounting == Accounting::Segments {
            self.set_cwnd(BY, self.cc.cwnd + 1.0, "an MTU probe was lost");
        }
        true
    }

    /// Returns whether the segment at `hole` is the part of a lost probe that was not retransmitted yet.
    pub(super) fn is_rest_of_mtu_probe(&self, hole: u64) -> bool {
        self.path.flight.segment_at(hole).is_some_and(|rest| rest.probes_mtu && rest.transmissions == 1)
    }

    /// Schedules the retransmission of the rest of a lost probe after its first part, with every repair. Both
    /// parts are shorter than the probe (Linux 6.18, tcp_simple_retransmit()).
    pub(super) fn resend_rest_of_mtu_probe(&mut self, transmission: &Transmission) {
        if self.pending.is_some()
            || transmission.kind == TransmissionKind::New
            || self.cc.episode.kept().is_none()
        {
            return;
        }
        let rest = self.path.flight.segment_at(transmission.end);
        if let Some(rest) = rest.filter(|rest| rest.probes_mtu && rest.state == SegmentState::Lost) {
            self.sender.pending =
                Some(Pending::Resend { start: rest.start, kind: TransmissionKind::Recovery });
        }
    }
}
