//! The contents of an exchange: the peer's segments, the application's calls, and their times, drawn from a
//! seed.
//!
//! A plan does not contain sequence numbers. It refers to "the next bytes", "the acknowledged data", or
//! "beyond the window", and the peer ([`crate::peer`]) computes numbers from the segments that it has
//! received.

use airwire::rng::Stream;
use airwire::segment::{Ecn, Flags};
use airwire::time::Duration;

/// An exchange, before it is played.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub opening: Opening,
    /// The options and the window of the peer's SYN.
    pub offers: Offers,
    /// The peer's initial sequence number. With some values, sequence numbers wrap.
    pub iss: u32,
    /// The peer's clock in milliseconds at the start of the exchange.
    pub clock: u32,
    pub events: Vec<Event>,
    /// The path of our data to the peer, in an exchange with losses.
    pub path: Option<Path>,
    /// Time for which the peer listens after the last event.
    pub silence: Duration,
}

/// Impairments of our data segments, by number from 0. Retransmissions have numbers too.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub losses: Vec<u16>,
    /// A segment that arrives after the next one.
    pub delayed: Option<u16>,
    /// A segment that arrives twice.
    pub duplicated: Option<u16>,
}

/// The side that opens the connection. A simultaneous open is an active open that is answered by a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opening {
    /// Our side listens.
    Passive,
    /// Our side connects.
    Active,
}

/// The contents of the peer's SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offers {
    pub mss: Option<u16>,
    pub scale: Option<u8>,
    pub sack: bool,
    pub timestamps: bool,
    pub ecn: bool,
    /// The window of the SYN and the first one after it, in bytes.
    pub window: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Event {
    /// Time since the previous event.
    pub gap: Duration,
    pub action: Action,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// The peer sends a segment.
    Peer(PlannedSegment),
    /// Our application makes a call.
    Call(Call),
}

/// A segment of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PlannedSegment {
    pub flags: Flags,
    pub at: At,
    /// Payload in bytes.
    pub len: u32,
    pub ack: AckNumber,
    /// The peer's new window in bytes.
    pub window: Option<u32>,
    pub stamp: TimestampChoice,
    /// Number of outstanding segments, counted from the last one, that SACK reports if it was negotiated.
    pub sack: u8,
    pub ecn: Ecn,
}

/// The position where a segment begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum At {
    /// At the SYN.
    Start,
    /// At this distance from the end of all data sent.
    Next(i32),
    /// At this distance from the data that our side has acknowledged.
    Acked(i32),
    /// At this distance from the right edge of our side's window.
    Edge(i32),
}

/// The acknowledgement number of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AckNumber {
    /// Acknowledges everything received.
    All,
    /// Acknowledges this many more segments. With 0, it is a duplicate.
    More(u8),
    /// Acknowledges this many bytes less than before.
    Less(u32),
    /// Acknowledges this many bytes more than our side has sent.
    Unsent(u32),
    /// The ACK of the receiver of a [`Path`] for up to this many segments that have arrived.
    Arrived(u8),
}

/// The timestamps option, if it was negotiated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimestampChoice {
    Now,
    /// This many milliseconds old.
    Old(u32),
    Missing,
}

/// A call of the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Call {
    Write(u32),
    Read(u32),
    ShutdownWrite,
    Close,
    /// Close with an SO_LINGER time of 0.
    Abort,
    NoDelay,
}

impl PlannedSegment {
    /// An ACK of everything received.
    pub(crate) const ACK: Self = Self {
        flags: Flags::ACK,
        at: At::Next(0),
        len: 0,
        ack: AckNumber::All,
        window: None,
        stamp: TimestampChoice::Now,
        sack: 0,
        ecn: Ecn::NotEct,
    };
    /// The SYN with which the peer opens a connection.
    pub(crate) const SYN: Self = Self { flags: Flags::SYN, at: At::Start, ..Self::ACK };
    const SYN_ACK: Self = Self { flags: Flags::SYN.with(Flags::ACK), at: At::Start, ..Self::ACK };

    fn data(len: u32) -> Self {
        Self { flags: Flags::ACK.with(Flags::PSH), len, ..Self::ACK }
    }
}

/// The emphasis of an exchange.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Theme {
    Opening,
    Receiving,
    Sending,
    Closing,
    /// Losses, and a peer that acknowledges every segment or two.
    Recovery,
    Everything,
}

const OPEN: u32 = 1_000_000;

/// Draws plans.
pub(crate) struct Generator(Stream);

impl Generator {
    /// The generator for the exchange with this number.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        Self(Stream::new(seed.wrapping_mul(1_000_003).wrapping_add(number), "differ"))
    }

    pub(crate) fn plan(mut self) -> Plan {
        let theme = self.pick(&[
            Theme::Opening,
            Theme::Receiving,
            Theme::Receiving,
            Theme::Sending,
            Theme::Sending,
            Theme::Closing,
            Theme::Closing,
            Theme::Recovery,
            Theme::Everything,
        ]);
        let opening = self.pick(&[Opening::Passive, Opening::Passive, Opening::Active]);
        let mut offers = self.offers();
        let mut events = Vec::new();
        self.handshake(theme, opening, &mut events);
        let mut path = None;
        if theme == Theme::Recovery {
            offers.window = 65_535;
            path = Some(self.transfer(&mut events));
        } else {
            let count = if theme == Theme::Opening { self.below(5) } else { 4 + self.below(11) };
            for _ in 0..count {
                let action = self.event(theme);
                self.push(&mut events, action);
            }
        }
        keep_one_segment_at_edge(&mut events);
        let silence = self.pick(&[150, 150, 320, 320, 1350]);
        Plan {
            opening,
            offers,
            iss: if self.one_in(4) { u32::MAX - self.below(3000) as u32 } else { self.0.bits() as u32 },
            clock: if self.one_in(8) { u32::MAX - self.below(500) as u32 } else { self.0.bits() as u32 | 1 },
            events,
            path,
            silence: Duration::from_millis(silence),
        }
    }

    /// A transfer of up to 90 kB over a path with losses. The peer acknowledges the first segments after a
    /// round trip, then a segment or two at a time.
    fn transfer(&mut self, events: &mut Vec<Event>) -> Path {
        let round_trip = self.pick(&[40, 95]);
        let pace = self.pick(&[10, 15, 25]);
        let most = self.pick(&[1, 2]);
        for _ in 0..=self.below(3) {
            let action = Action::Call(Call::Write(30_000));
            events.push(Event { gap: Duration::ZERO, action });
        }
        let count = 16 + self.below(30);
        for at in 0..count {
            let gap = match self.below(40) {
                _ if at == 0 => round_trip,
                0 => round_trip,
                1 if self.one_in(3) => 350,
                _ => pace,
            };
            let ack = AckNumber::Arrived(most);
            let window = (at == 0).then_some(OPEN);
            let action = Action::Peer(PlannedSegment { ack, window, ..PlannedSegment::ACK });
            events.push(Event { gap: Duration::from_millis(gap), action });
        }
        let first = self.below(24);
        let losses = match self.below(4) {
            // A burst, and single losses. Later numbers are often retransmissions.
            0 => (first..first + 1 + self.below(4)).map(|number| number as u16).collect(),
            _ => (0..=self.below(4)).map(|_| self.below(40) as u16).collect(),
        };
        let delayed = self.one_in(4).then(|| self.below(30) as u16);
        let duplicated = self.one_in(4).then(|| self.below(30) as u16);
        Path { losses, delayed, duplicated }
    }

    fn offers(&mut self) -> Offers {
        let usual = self.one_in(2);
        Offers {
            mss: if usual {
                Some(1460)
            } else {
                self.pick(&[None, Some(1460), Some(1000), Some(536), Some(100), Some(9000)])
            },
            scale: if usual { Some(7) } else { self.pick(&[None, Some(0), Some(3), Some(7), Some(14)]) },
            sack: usual || self.one_in(2),
            timestamps: if usual { true } else { self.one_in(2) },
            ecn: self.one_in(6),
            window: if usual { 65_535 } else { self.pick(&[65_535, 30_000, 4000, 1000]) },
        }
    }

    fn handshake(&mut self, theme: Theme, opening: Opening, events: &mut Vec<Event>) {
        let is_unusual = theme == Theme::Opening;
        self.push_unusual_events(theme, events);
        match opening {
            Opening::Passive => {
                let mut syn = PlannedSegment::SYN;
                if is_unusual && self.one_in(6) {
                    syn.len = 100;
                }
                self.push(events, Action::Peer(syn));
                self.push_unusual_events(theme, events);
                let ack = self.final_ack();
                self.push(events, Action::Peer(ack));
            }
            Opening::Active if is_unusual && self.one_in(2) => {
                self.push(events, Action::Peer(PlannedSegment::SYN));
                self.push_unusual_events(theme, events);
                let answer = self.pick(&[PlannedSegment::SYN_ACK, PlannedSegment::ACK]);
                self.push(events, Action::Peer(answer));
            }
            Opening::Active => {
                self.push(events, Action::Peer(PlannedSegment::SYN_ACK));
            }
        }
        self.push_unusual_events(theme, events);
    }

    /// The ACK that ends the peer's handshake. It may carry data, a FIN, or another window.
    fn final_ack(&mut self) -> PlannedSegment {
        let mut ack = PlannedSegment { at: At::Next(0), ..PlannedSegment::ACK };
        if self.one_in(6) {
            ack.len = self.data_len();
            ack.flags = ack.flags.with(Flags::PSH);
        }
        if self.one_in(12) {
            ack.flags = ack.flags.with(Flags::FIN);
        }
        if self.one_in(8) {
            ack.window = Some(self.window());
        }
        ack
    }

    /// Adds events that do not belong to a normal handshake, if this is the theme of the exchange.
    fn push_unusual_events(&mut self, theme: Theme, events: &mut Vec<Event>) {
        while theme == Theme::Opening && self.one_in(2) {
            let action = self.unusual_event();
            self.push(events, action);
        }
    }

    /// An event that does not belong to a normal handshake.
    fn unusual_event(&mut self) -> Action {
        let unsent = AckNumber::Unsent(1 + self.below(5000) as u32);
        Action::Peer(match self.below(14) {
            0 => PlannedSegment::SYN,
            1 => PlannedSegment { at: At::Next(1000), ..PlannedSegment::SYN },
            2 => PlannedSegment::SYN_ACK,
            3 => PlannedSegment { ack: unsent, ..PlannedSegment::SYN_ACK },
            4 => PlannedSegment { ack: unsent, ..PlannedSegment::ACK },
            5 => PlannedSegment { flags: Flags::RST, ..PlannedSegment::ACK },
            6 => PlannedSegment { flags: Flags::RST.with(Flags::ACK), ack: unsent, ..PlannedSegment::ACK },
            7 => PlannedSegment { flags: Flags::RST, at: At::Next(500), ..PlannedSegment::ACK },
            8 => PlannedSegment { ack: unsent, ..PlannedSegment::data(100) },
            9 => PlannedSegment { flags: Flags::FIN, ..PlannedSegment::ACK },
            10 => PlannedSegment { flags: Flags::PSH, len: 100, ..PlannedSegment::ACK },
            11 => PlannedSegment { at: At::Edge(10), ..PlannedSegment::data(100) },
            12 => PlannedSegment { flags: Flags::FIN.with(Flags::ACK), ..PlannedSegment::ACK },
            _ => return Action::Call(self.call(Theme::Everything)),
        })
    }

    fn event(&mut self, theme: Theme) -> Action {
        let weights: [u64; 4] = match theme {
            Theme::Opening | Theme::Recovery | Theme::Everything => [4, 4, 2, 2],
            Theme::Receiving => [14, 2, 1, 2],
            Theme::Sending => [1, 12, 1, 7],
            Theme::Closing => [3, 3, 5, 4],
        };
        let mut at = self.below(weights.iter().sum());
        for (kind, weight) in weights.into_iter().enumerate() {
            if at < weight {
                return match kind {
                    0 => Action::Peer(self.arrival()),
                    1 => Action::Peer(self.acknowledgment()),
                    2 => Action::Peer(self.ending()),
                    _ => Action::Call(self.call(theme)),
                };
            }
            at -= weight;
        }
        Action::Peer(PlannedSegment::ACK)
    }

    /// Data: in order, out of order, repeated, or beyond the window.
    fn arrival(&mut self) -> PlannedSegment {
        let len = self.data_len();
        let mut segment = PlannedSegment::data(len);
        let len = len as i32;
        segment.at = match self.below(20) {
            0..=9 => At::Next(0),
            10 | 11 => At::Next(self.pick(&[1, 100, 1000, 3000])),
            12 => At::Next(-self.pick(&[1, 100, len, len + 100])),
            13..=15 => At::Acked(0),
            16 => At::Acked(-self.pick(&[1, len, len + 50, 2000])),
            17 => At::Acked(self.pick(&[1, 500, 2000])),
            18 => At::Edge(self.pick(&[-1, -50, 0, 1, 100])),
            _ => At::Edge(-len),
        };
        if self.one_in(3) {
            segment.flags = segment.flags.without(Flags::PSH);
        }
        if self.one_in(16) {
            segment.ack = self.ack_number();
        }
        if self.one_in(24) {
            segment.flags = segment.flags.without(Flags::ACK);
        }
        if self.one_in(20) {
            segment.ecn = self.pick(&[Ecn::Ect0, Ecn::Ce]);
        }
        if self.one_in(30) {
            segment.flags = segment.flags.with(Flags::CWR);
        }
        self.choose_timestamp(&mut segment);
        segment
    }

    fn acknowledgment(&mut self) -> PlannedSegment {
        let mut segment = PlannedSegment { ack: self.ack_number(), ..PlannedSegment::ACK };
        if self.one_in(4) {
            segment.window = Some(self.window());
        }
        if self.one_in(4) {
            segment.sack = 1 + self.below(3) as u8;
            if segment.ack == AckNumber::All {
                segment.ack = AckNumber::More(0);
            }
        }
        if self.one_in(16) {
            segment.at = self.pick(&[At::Next(-1), At::Acked(-1), At::Next(1), At::Edge(0), At::Edge(1)]);
        }
        if self.one_in(20) {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        self.choose_timestamp(&mut segment);
        segment
    }

    /// A FIN, RST or SYN during a connection.
    fn ending(&mut self) -> PlannedSegment {
        let fin = Flags::FIN.with(Flags::ACK);
        let mut segment = match self.below(16) {
            0..=5 => PlannedSegment { flags: fin, ..PlannedSegment::ACK },
            6 => PlannedSegment { flags: fin, len: self.data_len(), ..PlannedSegment::ACK },
            7 => PlannedSegment { flags: fin, at: At::Next(-1), ..PlannedSegment::ACK },
            8 => PlannedSegment { flags: fin, at: At::Next(100), ..PlannedSegment::ACK },
            9 => PlannedSegment { flags: Flags::RST, at: At::Acked(0), ..PlannedSegment::ACK },
            10 => PlannedSegment { flags: Flags::RST.with(Flags::ACK), ..PlannedSegment::ACK },
            11 => PlannedSegment {
                flags: Flags::RST,
                at: At::Acked(self.pick(&[-1, 1, 1000])),
                ..PlannedSegment::ACK
            },
            12 => PlannedSegment {
                flags: Flags::RST,
                at: At::Edge(self.pick(&[-1, 0, 1])),
                ..PlannedSegment::ACK
            },
            13 => PlannedSegment::SYN,
            14 => PlannedSegment { at: At::Acked(self.pick(&[0, 100])), ..PlannedSegment::SYN },
            _ => PlannedSegment { at: At::Next(0), ..PlannedSegment::SYN_ACK },
        };
        if !segment.flags.intersects(Flags::SYN.with(Flags::RST)) {
            if self.one_in(6) {
                segment.ack = self.ack_number();
            }
            self.choose_timestamp(&mut segment);
        }
        segment
    }

    fn call(&mut self, theme: Theme) -> Call {
        let closing = if theme == Theme::Closing { 6 } else { 1 };
        match self.below(12 + 3 * closing) {
            0..=6 => Call::Write(self.pick(&[1, 100, 500, 1000, 1448, 3000, 5000, 14_000, 30_000])),
            7..=10 => Call::Read(self.pick(&[1, 100, 2000, 100_000])),
            11 => Call::NoDelay,
            n if n < 12 + closing => Call::ShutdownWrite,
            n if n < 12 + 2 * closing + closing / 2 => Call::Close,
            _ => Call::Abort,
        }
    }

    fn ack_number(&mut self) -> AckNumber {
        match self.below(16) {
            0..=6 => AckNumber::All,
            7..=9 => AckNumber::More(1 + self.below(3) as u8),
            10..=13 => AckNumber::More(0),
            14 => AckNumber::Less(self.pick(&[1, 500, 100_000])),
            _ => AckNumber::Unsent(self.pick(&[1, 1000, 100_000])),
        }
    }

    fn choose_timestamp(&mut self, segment: &mut PlannedSegment) {
        match self.below(24) {
            0 => segment.stamp = TimestampChoice::Missing,
            1 => segment.stamp = TimestampChoice::Old(self.pick(&[1, 10_000])),
            _ => {}
        }
    }

    fn window(&mut self) -> u32 {
        self.pick(&[0, 0, 100, 1000, 3000, OPEN, OPEN])
    }

    fn data_len(&mut self) -> u32 {
        self.pick(&[1, 10, 100, 500, 1000, 1000, 1000, 1400])
    }

    fn push(&mut self, events: &mut Vec<Event>, action: Action) {
        let fin = |event: &Event| matches!(event.action, Action::Peer(segment) if segment.flags.contains(Flags::FIN));
        let after_fin = events.last().is_some_and(fin);
        let gap = match self.below(20) {
            // Linux acknowledges a FIN at its next tick, so the time of that ACK cannot be predicted.
            0..=10 if after_fin => 10,
            0..=6 => 0,
            7..=10 => 1,
            11..=13 => 10,
            14..=17 => 95,
            18 => 350,
            _ => self.pick(&[350, 700, 1350]),
        };
        events.push(Event { gap: Duration::from_millis(gap), action });
    }

    fn below(&mut self, n: u64) -> u64 {
        self.0.below(n)
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Leaves at most one segment relative to the edge of the window. The windows of two TCPs differ, so a second
/// such segment would have a different distance from the first one.
fn keep_one_segment_at_edge(events: &mut [Event]) {
    let mut has_edge = false;
    for event in events {
        if let Action::Peer(PlannedSegment { at: at @ At::Edge(_), .. }) = &mut event.action {
            if has_edge {
                *at = At::Next(0);
            }
            has_edge = true;
        }
    }
}
