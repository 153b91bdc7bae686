//! The parameters that the two SYNs have negotiated, and the resulting limits on segments.

use airwire::options::Timestamps;
use airwire::segment::{Flags, Segment};
use airwire::time::Instant;

use super::socket::{SocketOptions, State};
use crate::events::Agreement;
use crate::profile::Profile;

/// The negotiated parameters. Before the peer's SYN arrives, no option is in use.
#[derive(Debug)]
pub(super) struct Negotiated {
    is_ipv4: bool,
    sack: bool,
    timestamps: bool,
    ecn: bool,
    scaling: bool,
    /// Snd.Wind.Shift and Rcv.Wind.Shift (RFC 7323 §2.3).
    snd_scale: u8,
    rcv_scale: u8,
    /// The MSS that the peer's SYN announces, or the default of RFC 9293 §3.7.1.
    peer_mss: u16,
    /// Header flags of the peer's SYN.
    peer_flags: Flags,
    /// Offset of our timestamp clock (RFC 7323 §5.4).
    ts_offset: u32,
    /// The MTU of our interface.
    mtu: u32,
}

impl Negotiated {
    pub(super) fn new(is_ipv4: bool, mtu: usize, ts_offset: u32) -> Self {
        Self {
            is_ipv4,
            sack: false,
            timestamps: false,
            ecn: false,
            scaling: false,
            snd_scale: 0,
            rcv_scale: 0,
            peer_mss: default_mss(is_ipv4),
            peer_flags: Flags::NONE,
            ts_offset,
            mtu: mtu as u32,
        }
    }

    /// Sets the shift count that our SYN offers.
    pub(super) fn offer_scale(&mut self, scale: u8) {
        self.rcv_scale = scale;
    }

    /// Processes the options and flags of the peer's SYN, which arrives in `state`. `offers_sack` is true if
    /// our SYN has or will have SACK-Permitted.
    pub(super) fn process_syn(
        &mut self,
        profile: &Profile,
        state: State,
        offers_sack: bool,
        syn: &Segment<'_>,
    ) {
        let options = &syn.options;
        // A lower bound, so that a peer cannot cause many headers per byte of data.
        self.peer_mss = options.mss.unwrap_or_else(|| default_mss(self.is_ipv4)).max(64);
        match (options.window_scale, profile.handshake.window_scale) {
            (Some(shift), Some(_)) => {
                self.snd_scale = shift;
                self.scaling = true;
            }
            // After a simultaneous open, Linux scales its windows in any case (tcp_rcv_synsent_state_process()).
            _ if profile.validation.request_sockets
                && state == State::SynSent
                && !syn.flags.contains(Flags::ACK) => {}
            _ => self.rcv_scale = 0,
        }
        self.sack = options.sack_permitted && offers_sack;
        self.timestamps = options.timestamps.is_some() && profile.handshake.timestamps;
        // RFC 3168 §6.1.1: ECE and CWR in a SYN request ECN.
        let is_ecn_setup = syn.flags.contains(Flags::ECE) && syn.flags.contains(Flags::CWR);
        let is_enabled =
            profile.handshake.ecn || (profile.handshake.ecn_passive && state == State::SynReceived);
        self.ecn = is_ecn_setup && is_enabled && !syn.flags.contains(Flags::ACK);
        self.peer_flags = syn.flags;
    }

    /// Processes the flags of a SYN,ACK. RFC 3168 §6.1.1: ECE without CWR accepts ECN.
    pub(super) fn process_ecn_answer(&mut self, profile: &Profile, flags: Flags) {
        self.ecn = profile.handshake.ecn && flags.contains(Flags::ECE) && !flags.contains(Flags::CWR);
    }

    pub(super) fn is_ipv4(&self) -> bool {
        self.is_ipv4
    }

    pub(super) fn sack(&self) -> bool {
        self.sack
    }

    pub(super) fn timestamps(&self) -> bool {
        self.timestamps
    }

    pub(super) fn ecn(&self) -> bool {
        self.ecn
    }

    pub(super) fn scaling(&self) -> bool {
        self.scaling
    }

    pub(super) fn snd_scale(&self) -> u8 {
        self.snd_scale
    }

    pub(super) fn rcv_scale(&self) -> u8 {
        self.rcv_scale
    }

    pub(super) fn peer_mss(&self) -> u16 {
        self.peer_mss
    }

    pub(super) fn peer_flags(&self) -> Flags {
        self.peer_flags
    }

    pub(super) fn mtu(&self) -> u32 {
        self.mtu
    }

    /// Returns the timestamps of a segment, if timestamps are in use.
    pub(super) fn timestamps_of(&self, segment: &Segment<'_>) -> Option<Timestamps> {
        segment.options.timestamps.filter(|_| self.timestamps)
    }

    /// Returns our timestamp clock.
    pub(super) fn ts_now(&self, profile: &Profile, now: Instant) -> u32 {
        let ticks = now.as_nanos() / profile.timers.timestamp_tick.as_nanos().max(1);
        (ticks as u32).wrapping_add(self.ts_offset)
    }

    /// Sets our timestamp clock back.
    pub(super) fn set_back_clock(&mut self, ticks: u32) {
        self.ts_offset = self.ts_offset.wrapping_sub(ticks);
    }

    /// Returns the bytes of IP and TCP headers without options.
    pub(super) fn header_len(&self) -> usize {
        if self.is_ipv4 { 40 } else { 60 }
    }

    /// Returns the bytes of options in a segment with data.
    pub(super) fn options_len(&self) -> u64 {
        if self.timestamps { 12 } else { 0 }
    }

    /// Returns the MSS of our SYN: what fits the interface MTU, or less if the options or the profile set it.
    pub(super) fn advertised_mss(&self, profile: &Profile, options: &SocketOptions) -> u16 {
        let fits = (self.mtu as usize).saturating_sub(self.header_len()).clamp(8, 65_535) as u16;
        options.max_seg.or(profile.handshake.mss).unwrap_or(fits).min(fits)
    }

    /// Returns the bytes of data in the largest segment that the peer may send.
    pub(super) fn expected_mss(&self, profile: &Profile, options: &SocketOptions) -> u32 {
        u32::from(self.advertised_mss(profile, options)).saturating_sub(self.options_len() as u32).max(8)
    }

    /// Returns the bytes of options and data that the peer and the application permit in a segment of ours.
    pub(super) fn permitted_seg(&self, options: &SocketOptions) -> u64 {
        u64::from(options.max_seg.unwrap_or(u16::MAX).min(self.peer_mss))
    }

    /// Returns the length of a packet with `data` bytes of data (tcp_mss_to_mtu()).
    pub(super) fn packet_with(&self, data: u64) -> u32 {
        (data + self.options_len()) as u32 + self.header_len() as u32
    }

    /// Returns the data in a packet of `mtu` bytes (tcp_mtu_to_mss()).
    pub(super) fn data_in(&self, options: &SocketOptions, mtu: u32) -> u64 {
        let seg = u64::from(mtu).saturating_sub(self.header_len() as u64).min(self.permitted_seg(options));
        seg.saturating_sub(self.options_len())
    }

    /// Returns the parameters for logs. `smss` is the data of a full-sized segment of ours.
    pub(super) fn agreement(&self, smss: u64) -> Agreement {
        Agreement {
            smss,
            own_scale: self.rcv_scale,
            peer_scale: self.snd_scale,
            sack: self.sack,
            timestamps: self.timestamps,
            ecn: self.ecn,
        }
    }
}

/// Returns the MSS of a peer whose SYN has no MSS option (RFC 9293 §3.7.1).
pub(crate) const fn default_mss(is_ipv4: bool) -> u16 {
    if is_ipv4 { 536 } else { 1220 }
}
