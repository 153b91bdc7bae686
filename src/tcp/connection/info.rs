//! A snapshot of a connection with the fields and names of TCP_INFO.

use airwire::time::Duration;

use super::Connection;
use crate::recovery::RecoveryState;
use crate::tcp::fast_open::FastOpenFailure;
use crate::tcp::socket::State;

/// Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    /// No sign of loss.
    Open = 0,
    /// Duplicate ACKs or SACKs arrived, too few to indicate a loss.
    Disorder = 1,
    /// The window was reduced after an ECN echo; nothing is missing.
    Cwr = 2,
    /// Fast recovery.
    Recovery = 3,
    /// Recovery after a timeout.
    Loss = 4,
}

/// A snapshot in the units of TCP_INFO: windows in segments.
#[derive(Clone, Debug)]
pub struct Info {
    /// The connection's state in the diagram of RFC 9293.
    pub state: State,
    /// The sender's congestion state.
    pub ca_state: CaState,
    /// Consecutive timeouts without progress.
    pub retransmits: u32,
    /// Window probes and keep-alives since the last segment from the peer.
    pub probes: u32,
    /// Number of times that the timeout in force has been doubled.
    pub backoff: u32,
    /// SACK was negotiated.
    pub sack: bool,
    /// Timestamps were negotiated.
    pub timestamps: bool,
    /// ECN was negotiated.
    pub ecn: bool,
    /// The SYN's acknowledgment, in either direction, also covered data in the SYN (RFC 7413).
    pub syn_data: bool,
    /// The reason why the data in our SYN was not acknowledged, or why our SYN had no data.
    pub fast_open_failure: Option<FastOpenFailure>,
    /// Shift count of the peer's windows.
    pub snd_wscale: u8,
    /// Shift count of the windows that we advertise.
    pub rcv_wscale: u8,
    /// The retransmission timeout in force, including backoff.
    pub rto: Duration,
    /// Bytes of data in a full-sized segment of ours.
    pub snd_mss: u32,
    /// An estimate of the peer's full-sized segment: the largest received, at least 536 and at most the MSS
    /// that we advertise.
    pub rcv_mss: u32,
    /// The MSS that we advertise, less the timestamps option.
    pub advmss: u32,
    /// Segments sent and not acknowledged, including SACKed ones.
    pub unacked: u32,
    /// Segments SACKed; without SACK, the number of duplicate ACKs instead.
    pub sacked: u32,
    /// Segments marked lost, whether retransmitted or not.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged since.
    pub retrans: u32,
    /// The smoothed round-trip time; zero before the first sample.
    pub rtt: Duration,
    /// The smoothed deviation of the round-trip time.
    pub rttvar: Duration,
    /// The smallest sample; `None` before the first.
    pub min_rtt: Option<Duration>,
    /// The congestion window in whole segments, including inflation by duplicate ACKs.
    pub cwnd: u32,
    /// The slow-start threshold in whole segments; `None` while it is arbitrarily high.
    pub ssthresh: Option<u32>,
    /// Number of duplicate ACKs, or of SACKed segments above it, that make a segment lost. More if the
    /// detector has measured more reordering.
    pub reordering: u32,
    /// Number of times that the detector has detected reordering.
    pub reord_seen: u32,
    /// Segments retransmitted since the connection began, including SYNs.
    pub total_retrans: u32,
    /// Bytes of data retransmitted since the connection began.
    pub bytes_retrans: u64,
    /// Segments known to have reached the peer.
    pub delivered: u32,
    /// Segments that the peer reported as duplicates (RFC 2883).
    pub dsack_dups: u32,
    /// The receive buffer size in bytes.
    pub rcv_space: u32,
    /// The peer's window in bytes.
    pub snd_wnd: u32,
    /// The known path MTU in bytes.
    pub pmtu: u32,
    /// Bytes of data that the peer has acknowledged.
    pub bytes_acked: u64,
    /// Bytes of data received in order.
    pub bytes_received: u64,
    /// Segments sent, with or without data.
    pub segs_out: u64,
    /// Segments received, with or without data.
    pub segs_in: u64,
}

impl Connection {
    /// Returns a snapshot with the values of TCP_INFO.
    pub fn info(&self) -> Info {
        let cc = self.sender.recovery().congestion();
        let flight = self.sender.flight();
        let sacked = flight.sacked().segments as u32;
        let ca_state = match cc.state() {
            RecoveryState::Recovery => CaState::Recovery,
            RecoveryState::Loss => CaState::Loss,
            RecoveryState::Cwr => CaState::Cwr,
            RecoveryState::Open if cc.dupacks() > 0 || sacked > 0 => CaState::Disorder,
            RecoveryState::Open => CaState::Open,
        };
        let advertised = u32::from(self.cx.negotiated.advertised_mss(&self.cx.profile, &self.cx.options));
        let reordering = self.sender.recovery().reordering();
        Info {
            state: self.state(),
            ca_state,
            retransmits: cc.timeouts_in_row,
            probes: self.sender.probes_sent(),
            backoff: self.sender.rtt().backoff(),
            sack: self.cx.negotiated.sack(),
            timestamps: self.cx.negotiated.timestamps(),
            ecn: self.cx.negotiated.ecn(),
            syn_data: self.cx.fast_open.syn_text_acked(),
            fast_open_failure: self.cx.fast_open.failure(),
            snd_wscale: self.cx.negotiated.snd_scale(),
            rcv_wscale: if self.cx.negotiated.scaling() { self.cx.negotiated.rcv_scale() } else { 0 },
            rto: self.sender.rtt().rto().get(),
            snd_mss: self.sender.smss() as u32,
            rcv_mss: self.receiver.mss_seen().max(536).min(advertised),
            advmss: advertised - if self.cx.negotiated.timestamps() { 12 } else { 0 },
            unacked: flight.len() as u32,
            sacked: if self.cx.negotiated.sack() { sacked } else { cc.dupacks().min(flight.len() as u32) },
            lost: flight.lost().segments as u32,
            retrans: flight.resent().segments as u32,
            rtt: self.sender.rtt().srtt().unwrap_or_default(),
            rttvar: self.sender.rtt().rttvar(),
            min_rtt: self.sender.rtt().min(),
            cwnd: (cc.cwnd + cc.inflation()) as u32,
            ssthresh: cc.ssthresh.is_finite().then_some(cc.ssthresh as u32),
            reordering: match reordering.degree {
                0 => self.cx.profile.recovery.detection.dup_thresh,
                degree => degree,
            },
            reord_seen: reordering.events,
            total_retrans: self.sender.retransmissions() as u32,
            bytes_retrans: self.statistics.bytes_resent,
            delivered: self.statistics.segments_delivered as u32,
            dsack_dups: self.statistics.duplicates_reported as u32,
            rcv_space: self.receiver.buffer_limit() as u32,
            snd_wnd: self.sender.wnd() as u32,
            pmtu: self.sender.pmtu(&self.cx.negotiated),
            bytes_acked: self.statistics.bytes_acked,
            bytes_received: self.statistics.bytes_received,
            segs_out: self.statistics.segments_out,
            segs_in: self.statistics.segments_in,
        }
    }
}
