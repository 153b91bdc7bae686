//! What a connection can tell about itself at any moment: TCP_INFO's fields under its names.

use airwire::time::Duration;

use super::connection::Connection;
use super::socket::State;
use crate::recovery::Phase;

/// Linux's `tcpi_ca_state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CaState {
    Open = 0,
    Disorder = 1,
    Cwr = 2,
    Recovery = 3,
    Loss = 4,
}

/// A snapshot in the units of TCP_INFO: windows in segments.
#[derive(Clone, Debug)]
pub struct Info {
    pub state: State,
    pub ca_state: CaState,
    /// Consecutive timeouts without progress.
    pub retransmits: u32,
    pub probes: u32,
    pub backoff: u32,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    pub snd_wscale: u8,
    pub rcv_wscale: u8,
    pub rto: Duration,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub advmss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    /// Sent again and not yet acknowledged.
    pub retrans: u32,
    pub rtt: Duration,
    pub rttvar: Duration,
    pub min_rtt: Option<Duration>,
    pub cwnd: u32,
    /// `None` while it is arbitrarily high.
    pub ssthresh: Option<u32>,
    /// Duplicate ACKs, or SACKed segments above it, that make a segment lost.
    pub reordering: u32,
    pub total_retrans: u32,
    pub bytes_retrans: u64,
    pub delivered: u32,
    pub dsack_dups: u32,
    pub rcv_space: u32,
    /// The window that the peer offers, in octets.
    pub snd_wnd: u32,
    pub pmtu: u32,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u64,
    pub segs_in: u64,
}

impl Connection {
    pub fn info(&self) -> Info {
        let cc = self.recovery.congestion();
        let flight = &self.flight;
        let sacked = flight.sacked().segments as u32;
        let ca_state = match cc.phase {
            Phase::Recovery => CaState::Recovery,
            Phase::Restarted => CaState::Loss,
            Phase::Reduced => CaState::Cwr,
            Phase::Open if cc.dupacks > 0 || sacked > 0 => CaState::Disorder,
            Phase::Open => CaState::Open,
        };
        let advertised = u32::from(self.advertised_mss());
        Info {
            state: self.state,
            ca_state,
            retransmits: cc.timeouts_in_row,
            probes: self.timers.probes_sent,
            backoff: self.rtt.backoff(),
            sack: self.sack_enabled,
            timestamps: self.ts_enabled,
            ecn: self.ecn_enabled,
            snd_wscale: self.snd.scale,
            rcv_wscale: self.rcv.scale,
            rto: self.rtt.rto().get(),
            snd_mss: self.snd.smss as u32,
            rcv_mss: (self.rcv.mss_seen as u32).max(536).min(advertised),
            advmss: advertised - if self.ts_enabled { 12 } else { 0 },
            unacked: flight.len() as u32,
            sacked: if self.sack_enabled { sacked } else { cc.dupacks.min(flight.len() as u32) },
            lost: flight.lost().segments as u32,
            retrans: flight.resent().segments as u32,
            rtt: self.rtt.srtt().unwrap_or_default(),
            rttvar: self.rtt.rttvar(),
            min_rtt: self.rtt.min(),
            cwnd: (cc.cwnd + cc.inflation) as u32,
            ssthresh: cc.ssthresh.is_finite().then_some(cc.ssthresh as u32),
            reordering: self.profile.recovery.dup_thresh,
            total_retrans: (self.recovery.counters().resent() + self.handshake_resent) as u32,
            bytes_retrans: self.statistics.bytes_resent,
            delivered: self.statistics.segments_delivered as u32,
            dsack_dups: self.recovery.counters().dsacks as u32,
            rcv_space: self.rcv.buffer.limit() as u32,
            snd_wnd: self.snd.wnd as u32,
            pmtu: self.pmtu as u32,
            bytes_acked: self.statistics.bytes_acked,
            bytes_received: self.statistics.bytes_received,
            segs_out: self.statistics.segments_out,
            segs_in: self.statistics.segments_in,
        }
    }
}
