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

/// Fates of our segments with data, by number from 0. Retransmissions have numbers too.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub losses: Vec<u16>,
    /// A segment that arrives after the next one.
    pub late: Option<u16>,
    /// A segment that arrives twice.
    pub twice: Option<u16>,
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
    pub what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// The peer sends a segment.
    Peer(Shot),
    /// Our application makes a call.
    Call(Call),
}

/// A segment of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shot {
    pub flags: Flags,
    pub at: At,
    /// Payload in bytes.
    pub len: u32,
    pub ack: Upto,
    /// The peer's new window in bytes.
    pub window: Option<u32>,
    pub stamp: Stamp,
    /// Number of the last outstanding segments that SACK reports, if it was negotiated.
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
pub(crate) enum Upto {
    /// Acknowledges everything received.
    All,
    /// Acknowledges this many more segments. With 0, it is a duplicate.
    More(u8),
    /// This many bytes less than before.
    Less(u32),
    /// This many bytes beyond everything that was sent.
    Unsent(u32),
    /// The ACK of the receiver of a [`Path`] for up to this many segments that have arrived.
    Arrived(u8),
}

/// The timestamps option, if it was negotiated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stamp {
    Now,
    /// From this many milliseconds ago.
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

impl Shot {
    /// An ACK of everything received.
    pub(crate) const ACK: Self = Self {
        flags: Flags::ACK,
        at: At::Next(0),
        len: 0,
        ack: Upto::All,
        window: None,
        stamp: Stamp::Now,
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
                let what = self.body(theme);
                self.push(&mut events, what);
            }
        }
        only_one_at_the_edge(&mut events);
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
            let what = What::Call(Call::Write(30_000));
            events.push(Event { gap: Duration::ZERO, what });
        }
        let count = 16 + self.below(30);
        for at in 0..count {
            let gap = match self.below(40) {
                _ if at == 0 => round_trip,
                0 => round_trip,
                1 if self.one_in(3) => 350,
                _ => pace,
            };
            let ack = Upto::Arrived(most);
            let window = (at == 0).then_some(OPEN);
            let what = What::Peer(Shot { ack, window, ..Shot::ACK });
            events.push(Event { gap: Duration::from_millis(gap), what });
        }
        let first = self.below(24);
        let losses = match self.below(4) {
            // A burst, and single losses. Later numbers are often retransmissions.
            0 => (first..first + 1 + self.below(4)).map(|number| number as u16).collect(),
            _ => (0..=self.below(4)).map(|_| self.below(40) as u16).collect(),
        };
        let late = self.one_in(4).then(|| self.below(30) as u16);
        let twice = self.one_in(4).then(|| self.below(30) as u16);
        Path { losses, late, twice }
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
        let odd = theme == Theme::Opening;
        let oddities = |generator: &mut Self, events: &mut Vec<Event>| {
            while odd && generator.one_in(2) {
                let what = generator.oddity();
                generator.push(events, what);
            }
        };
        oddities(self, events);
        match opening {
            Opening::Passive => {
                let mut syn = Shot::SYN;
                if odd && self.one_in(6) {
                    syn.len = 100;
                }
                self.push(events, What::Peer(syn));
                oddities(self, events);
                let mut ack = Shot { at: At::Next(0), ..Shot::ACK };
                if self.one_in(6) {
                    ack.len = self.text();
                    ack.flags = ack.flags.with(Flags::PSH);
                }
                if self.one_in(12) {
                    ack.flags = ack.flags.with(Flags::FIN);
                }
                if self.one_in(8) {
                    ack.window = Some(self.window());
                }
                self.push(events, What::Peer(ack));
            }
            Opening::Active if odd && self.one_in(2) => {
                self.push(events, What::Peer(Shot::SYN));
                oddities(self, events);
                let answer = self.pick(&[Shot::SYN_ACK, Shot::ACK]);
                self.push(events, What::Peer(answer));
            }
            Opening::Active => {
                self.push(events, What::Peer(Shot::SYN_ACK));
            }
        }
        oddities(self, events);
    }

    /// An event that should not occur during a handshake.
    fn oddity(&mut self) -> What {
        let unsent = Upto::Unsent(1 + self.below(5000) as u32);
        What::Peer(match self.below(14) {
            0 => Shot::SYN,
            1 => Shot { at: At::Next(1000), ..Shot::SYN },
            2 => Shot::SYN_ACK,
            3 => Shot { ack: unsent, ..Shot::SYN_ACK },
            4 => Shot { ack: unsent, ..Shot::ACK },
            5 => Shot { flags: Flags::RST, ..Shot::ACK },
            6 => Shot { flags: Flags::RST.with(Flags::ACK), ack: unsent, ..Shot::ACK },
            7 => Shot { flags: Flags::RST, at: At::Next(500), ..Shot::ACK },
            8 => Shot { ack: unsent, ..Shot::data(100) },
            9 => Shot { flags: Flags::FIN, ..Shot::ACK },
            10 => Shot { flags: Flags::PSH, len: 100, ..Shot::ACK },
            11 => Shot { at: At::Edge(10), ..Shot::data(100) },
            12 => Shot { flags: Flags::FIN.with(Flags::ACK), ..Shot::ACK },
            _ => return What::Call(self.call(Theme::Everything)),
        })
    }

    fn body(&mut self, theme: Theme) -> What {
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
                    0 => What::Peer(self.arrival()),
                    1 => What::Peer(self.acknowledgment()),
                    2 => What::Peer(self.ending()),
                    _ => What::Call(self.call(theme)),
                };
            }
            at -= weight;
        }
        What::Peer(Shot::ACK)
    }

    /// Data: in order, out of order, repeated, or beyond the window.
    fn arrival(&mut self) -> Shot {
        let len = self.text();
        let mut shot = Shot::data(len);
        let len = len as i32;
        shot.at = match self.below(20) {
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
            shot.flags = shot.flags.without(Flags::PSH);
        }
        if self.one_in(16) {
            shot.ack = self.upto();
        }
        if self.one_in(24) {
            shot.flags = shot.flags.without(Flags::ACK);
        }
        if self.one_in(20) {
            shot.ecn = self.pick(&[Ecn::Ect0, Ecn::Ce]);
        }
        if self.one_in(30) {
            shot.flags = shot.flags.with(Flags::CWR);
        }
        self.stamp(&mut shot);
        shot
    }

    fn acknowledgment(&mut self) -> Shot {
        let mut shot = Shot { ack: self.upto(), ..Shot::ACK };
        if self.one_in(4) {
            shot.window = Some(self.window());
        }
        if self.one_in(4) {
            shot.sack = 1 + self.below(3) as u8;
            if shot.ack == Upto::All {
                shot.ack = Upto::More(0);
            }
        }
        if self.one_in(16) {
            shot.at = self.pick(&[At::Next(-1), At::Acked(-1), At::Next(1), At::Edge(0), At::Edge(1)]);
        }
        if self.one_in(20) {
            shot.flags = shot.flags.with(Flags::ECE);
        }
        self.stamp(&mut shot);
        shot
    }

    /// A FIN, RST or SYN during a connection.
    fn ending(&mut self) -> Shot {
        let fin = Flags::FIN.with(Flags::ACK);
        let mut shot = match self.below(16) {
            0..=5 => Shot { flags: fin, ..Shot::ACK },
            6 => Shot { flags: fin, len: self.text(), ..Shot::ACK },
            7 => Shot { flags: fin, at: At::Next(-1), ..Shot::ACK },
            8 => Shot { flags: fin, at: At::Next(100), ..Shot::ACK },
            9 => Shot { flags: Flags::RST, at: At::Acked(0), ..Shot::ACK },
            10 => Shot { flags: Flags::RST.with(Flags::ACK), ..Shot::ACK },
            11 => Shot { flags: Flags::RST, at: At::Acked(self.pick(&[-1, 1, 1000])), ..Shot::ACK },
            12 => Shot { flags: Flags::RST, at: At::Edge(self.pick(&[-1, 0, 1])), ..Shot::ACK },
            13 => Shot::SYN,
            14 => Shot { at: At::Acked(self.pick(&[0, 100])), ..Shot::SYN },
            _ => Shot { at: At::Next(0), ..Shot::SYN_ACK },
        };
        if !shot.flags.intersects(Flags::SYN.with(Flags::RST)) {
            if self.one_in(6) {
                shot.ack = self.upto();
            }
            self.stamp(&mut shot);
        }
        shot
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

    fn upto(&mut self) -> Upto {
        match self.below(16) {
            0..=6 => Upto::All,
            7..=9 => Upto::More(1 + self.below(3) as u8),
            10..=13 => Upto::More(0),
            14 => Upto::Less(self.pick(&[1, 500, 100_000])),
            _ => Upto::Unsent(self.pick(&[1, 1000, 100_000])),
        }
    }

    fn stamp(&mut self, shot: &mut Shot) {
        match self.below(24) {
            0 => shot.stamp = Stamp::Missing,
            1 => shot.stamp = Stamp::Old(self.pick(&[1, 10_000])),
            _ => {}
        }
    }

    fn window(&mut self) -> u32 {
        self.pick(&[0, 0, 100, 1000, 3000, OPEN, OPEN])
    }

    fn text(&mut self) -> u32 {
        self.pick(&[1, 10, 100, 500, 1000, 1000, 1000, 1400])
    }

    fn push(&mut self, events: &mut Vec<Event>, what: What) {
        let fin = |event: &Event| matches!(event.what, What::Peer(shot) if shot.flags.contains(Flags::FIN));
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
        events.push(Event { gap: Duration::from_millis(gap), what });
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

/// Two TCPs offer different windows. A second segment placed relative to the edge would have a different
/// distance from the first one.
fn only_one_at_the_edge(events: &mut [Event]) {
    let mut named = false;
    for event in events {
        if let What::Peer(Shot { at: at @ At::Edge(_), .. }) = &mut event.what {
            if named {
                *at = At::Next(0);
            }
            named = true;
        }
    }
}
