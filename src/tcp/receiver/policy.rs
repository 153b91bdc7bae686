//! The decisions that the RFCs leave to the receiver: when an ACK is sent, and how large the window is.

use airwire::segment::{Flags, Segment};
use airwire::time::{Duration, Instant};

use super::linux::{AckDelay, AckState, Acks, Advance, LinuxReceiver, Placed, Read, Text};
use crate::profile::{AckRules, LinuxAcks, Profile, WindowUpdate};
use crate::rtt::RttEstimator;
use crate::tcp::context::Context;
use crate::tcp::socket::{SocketOptions, State};

/// The rules of a receiver, which its profile chooses.
#[derive(Debug)]
pub(super) enum Policy {
    /// ACKs are delayed by a fixed time, and the window is the free space.
    Rfc,
    /// ACKs ([`AckRules::Linux`]), the window ([`WindowUpdate::Tuned`]) or both follow
    /// Linux's receiver. Boxed because only its profile has it.
    Linux(Box<LinuxReceiver>),
}

fn linux_acks(profile: &Profile) -> Option<LinuxAcks> {
    match profile.acks.policy.rules {
        AckRules::Linux(acks) => Some(acks),
        AckRules::Plain => None,
    }
}

/// Returns the properties of a segment at `offset`.
fn text_of(cx: &Context, segment: &Segment<'_>, offset: u64) -> Text {
    let options = cx.negotiated.options_len() as u32;
    let sack = match segment.options.sack.as_slice().len() as u32 {
        0 => 0,
        blocks => 4 + 8 * blocks,
    };
    Text {
        start: offset,
        end: offset + segment.payload.len() as u64,
        fin: segment.flags.contains(Flags::FIN),
        len: segment.payload.len() as u32,
        advmss: cx.negotiated.expected_mss(&cx.profile, &cx.options),
        headers: cx.negotiated.header_len() as u32 + options + sack,
        tcp_header: 20 + options + sack,
        min_tcp_header: 20 + options,
        psh: segment.flags.contains(Flags::PSH),
        remnant: segment.flags.intersects(Flags::PSH.with(Flags::FIN).with(Flags::URG)),
    }
}

impl Policy {
    /// Creates the policy of a profile. `advmss` is the MSS that we advertise.
    pub(super) fn new(profile: &Profile, options: &SocketOptions, advmss: u32) -> Self {
        let memory = match profile.acks.window_update {
            WindowUpdate::Tuned(memory) => Some(memory),
            WindowUpdate::Doubled | WindowUpdate::QuarterBuffer => None,
        };
        if memory.is_none() && profile.acks.policy.rules == AckRules::Plain {
            return Self::Rfc;
        }
        Self::Linux(Box::new(LinuxReceiver::new(memory, options.recv_buffer, advmss)))
    }

    fn linux(&mut self) -> Option<&mut LinuxReceiver> {
        match self {
            Self::Rfc => None,
            Self::Linux(linux) => Some(linux),
        }
    }

    /// Returns the Linux receiver, if it determines the window.
    fn tuned(&self) -> Option<&LinuxReceiver> {
        match self {
            Self::Linux(linux) if linux.tunes_window() => Some(linux),
            _ => None,
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        matches!(self, Self::Linux(_))
    }

    pub(super) fn tunes_window(&self) -> bool {
        self.tuned().is_some()
    }

    /// Returns the state that decides when ACKs are sent. `None`: the rules are [`AckRules::Plain`].
    pub(super) fn acks(&mut self, profile: &Profile) -> Option<&mut Acks> {
        linux_acks(profile)?;
        self.linux().map(|linux| &mut linux.acks)
    }

    /// Returns the shift count for our SYN, if the policy defines one.
    pub(super) fn scale_to_offer(&self, profile: &Profile) -> Option<u8> {
        self.tuned().map(|linux| linux.scale_to_offer(profile.acks.recv_buffer_max))
    }

    /// Returns the window of the SYN, or of the SYN,ACK if `is_passive`, if the policy defines one.
    /// `mss` is the data of the largest segment that may arrive.
    pub(super) fn first_window(&mut self, mss: u32, is_passive: bool) -> Option<u64> {
        let linux = self.linux().filter(|linux| linux.tunes_window())?;
        if is_passive {
            linux.choose_first_window(mss);
        }
        Some(linux.first_window())
    }

    /// Returns the window of a segment that is sent now, if the policy defines one. `edge` is the right
    /// edge of the last window. `is_syn` is true before the connection is synchronized.
    pub(super) fn window(&mut self, rcv_nxt: u64, edge: u64, is_syn: bool) -> Option<u64> {
        let linux = self.linux().filter(|linux| linux.tunes_window())?;
        Some(if is_syn { linux.first_window() } else { linux.window_to_advertise(rcv_nxt, edge) })
    }

    /// Returns the bytes of memory that received data may take, if the policy tunes it (sk_rcvbuf).
    pub(super) fn receive_memory(&self) -> Option<usize> {
        self.tuned().map(|linux| linux.receive_memory())
    }

    /// Returns the bytes of memory that the policy's accounting takes.
    pub(super) fn cost(&self) -> usize {
        match self {
            Self::Rfc => 0,
            Self::Linux(linux) => linux.cost(),
        }
    }

    /// Applies SO_RCVBUF.
    pub(super) fn lock(&mut self, size: usize) {
        if let Self::Linux(linux) = self {
            linux.lock(size);
        }
    }

    /// Initialises the policy when the connection opens.
    pub(super) fn establish(&mut self, now: Instant, scale: u8, advmss: u32, smss: u64) {
        if let Self::Linux(linux) = self {
            linux.establish(now, scale, advmss, smss, 1);
        }
    }

    /// Forgets when data last arrived.
    pub(super) fn forget_last_arrival(&mut self, now: Instant) {
        if let Self::Linux(linux) = self {
            linux.acks.forget_last_arrival(now);
        }
    }

    /// Enters quick-ACK mode: up to `limit` of the next ACKs are not delayed and do not wait for data to
    /// carry them.
    pub(super) fn enter_quick_ack_mode(&mut self, profile: &Profile, limit: u32) {
        if let (Some(acks), Self::Linux(linux)) = (linux_acks(profile), self) {
            let quick = linux.window.quick_acks(limit.min(acks.quick));
            linux.acks.enter_quick_ack_mode(quick);
        }
    }

    /// Measures the round-trip time from the echoed timestamp of an acceptable segment with data. `idle` is
    /// true if nothing waits to be read.
    pub(super) fn measure_rtt(&mut self, cx: &Context, now: Instant, segment: &Segment<'_>, idle: bool) {
        if let Self::Linux(linux) = self {
            let ts_now = cx.negotiated.ts_now(&cx.profile, now);
            let ecr = cx.negotiated.timestamps_of(segment).map_or(0, |ts| ts.ecr);
            linux.window.measure_rtt_by_echo(now, ecr, ts_now, segment.seq_len(), idle);
        }
    }

    /// Updates the memory of unacknowledged data, which `queued` returns, before a segment with data is processed.
    /// Returns true if Linux has reserved enough memory for this segment.
    #[inline]
    pub(super) fn account(
        &mut self,
        cx: &Context,
        segment: &Segment<'_>,
        queued: impl FnOnce() -> u64,
    ) -> bool {
        let Self::Linux(linux) = self else { return false };
        let packet =
            cx.negotiated.header_len() + cx.negotiated.options_len() as usize + segment.payload.len();
        let queued = queued();
        let has_reserved = linux.has_reserved(packet as u32, queued);
        linux.set_queued(queued);
        has_reserved
    }

    /// Returns true if data or a FIN after a hole is in Linux's out-of-order queue.
    pub(super) fn has_out_of_order(&self) -> bool {
        matches!(self, Self::Linux(linux) if linux.has_out_of_order())
    }

    /// Returns true if a FIN after a hole is in Linux's out-of-order queue.
    pub(super) fn has_early_fin(&self) -> bool {
        matches!(self, Self::Linux(linux) if linux.has_early_fin())
    }

    /// Processes an in-order segment at `offset`, which was stored. `next` is RCV.NXT before, `rtt` the sender's
    /// estimator. Returns how far RCV.NXT moves. `None`: the profile has other rules.
    pub(super) fn on_in_order(
        &mut self,
        cx: &Context,
        now: Instant,
        segment: &Segment<'_>,
        (offset, next): (u64, u64),
        rtt: &RttEstimator,
    ) -> Option<Advance> {
        let linux = self.linux()?;
        let text = text_of(cx, segment, offset);
        if text.len > 0 {
            let quick = linux_acks(&cx.profile).map_or(0, |acks| acks.quick);
            linux.on_in_order(now, &text, rtt.rto().get().as_nanos(), quick);
        }
        let dsack = (offset < next).then_some((offset, next));
        // tcp_fin() sends an ACK in these states.
        let has_closed = matches!(cx.state(), State::FinWait1 | State::FinWait2);
        Some(linux.advance(text.end + u64::from(text.fin), (text.fin, has_closed), dsack))
    }

    /// Processes an out-of-order segment at `offset`. `None`: the profile has other rules.
    pub(super) fn on_out_of_order(
        &mut self,
        cx: &Context,
        segment: &Segment<'_>,
        (offset, next): (u64, u64),
    ) -> Option<Placed> {
        let text = text_of(cx, segment, offset);
        Some(self.linux()?.on_out_of_order(&text, next, cx.negotiated.sack()))
    }

    /// Decides how long the scheduled ACK is delayed. `None`: none is scheduled. `reduced` is true if the
    /// peer has just reduced its congestion window. `edge` is the right edge of our window.
    pub(super) fn delay_of_ack(
        &mut self,
        profile: &Profile,
        state: &AckState,
        reduced: bool,
        edge: u64,
    ) -> Option<AckDelay> {
        let rules = linux_acks(profile)?;
        let linux = self.linux().filter(|linux| linux.acks.is_scheduled())?;
        if reduced {
            linux.acks.schedule_now();
        }
        let delay = linux.delay_of_ack(state, rules.compression);
        if delay == AckDelay::None {
            linux.decide_window(state.rcv_nxt, edge);
        }
        Some(delay)
    }

    /// Processes a read by the application. `is_due` is true if an ACK is sent anyway. Returns true if
    /// another one must be sent now.
    pub(super) fn on_read(&mut self, profile: &Profile, read: &Read, is_due: bool) -> bool {
        let Self::Linux(linux) = self else { return false };
        let has_rule = linux_acks(profile).is_some() || linux.tunes_window();
        let sends_ack = linux.on_read(read) && has_rule && !is_due;
        if sends_ack {
            linux.decide_window(read.rcv_nxt, read.edge);
        }
        sends_ack
    }

    /// Records that a segment with an ACK and this window was sent.
    pub(super) fn on_ack_sent(&mut self, window: u64) {
        if let Self::Linux(linux) = self {
            linux.on_ack_sent(window);
        }
    }

    /// Records that data was sent, which may answer received data.
    pub(super) fn on_data_sent(&mut self, now: Instant) {
        if let Self::Linux(linux) = self {
            linux.on_text_sent(now);
        }
    }

    /// Handles the expiry of the ACK timer. `rto` is the sender's retransmission timeout.
    pub(super) fn on_ack_timer(&mut self, rto: Duration) {
        if let Self::Linux(linux) = self {
            linux.on_ack_timer(rto.as_nanos());
        }
    }

    /// Records that out-of-order data from `end` on was pruned.
    pub(super) fn on_pruned(&mut self, end: u64) {
        if let Self::Linux(linux) = self {
            linux.on_pruned(end);
        }
    }

    /// Adds an out-of-order segment to the policy's SACK blocks. Returns true if it displaces blocks that no
    /// ACK has reported yet. An ACK with the displaced blocks must then be sent first.
    pub(super) fn add_block(&mut self, start: u64, end: u64) -> bool {
        self.linux().is_some_and(|linux| linux.add_sack(start, end))
    }

    /// Returns the SACK blocks of the next ACK, if the policy keeps them.
    pub(super) fn blocks(&self) -> Option<&[(u64, u64)]> {
        match self {
            Self::Rfc => None,
            Self::Linux(linux) => Some(linux.sacks_to_report()),
        }
    }
}
