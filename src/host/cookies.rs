//! SYN cookies (RFC 4987 §3.6): a SYN is answered, and nothing of it is kept. All that the connection needs comes back with
//! the handshake's third segment: the maximum segment size in its acknowledgment number, and window scale, SACK and ECN
//! in the timestamp that it echoes, as Linux has them there. Without timestamps there is the MSS alone.
//!
//! Choice: RFC 4987 leaves the layout open. The initial sequence number is the low bit of a counter of [`SLOT`]s, three
//! bits that name an MSS, and 28 bits of the keyed hash that RFC 6528 numbers come from, over all that the cookie says:
//! both ends, the client's own number, the slot, and what the timestamp carries. Two slots are valid, and one bit tells
//! them apart, so that a guess succeeds once in 2^28.

use std::net::IpAddr;

use airwire::options::Options;
use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::keyed_hash;

/// A cookie is good in the slot in which it left, and in the next one.
const SLOT: Duration = Duration::from_secs(64);
/// No cookie is good for longer.
pub(super) const LIFETIME: Duration = Duration::from_secs(128);

/// What a cookie can name: never more than the client offered. 536 and 1220 are the defaults of RFC 9293 §3.7.1; the others
/// are what Ethernet leaves, plain and in tunnels, and jumbo frames. The least one is for whoever offers less than a default.
const MSS: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8960];

/// Timestamps tell about 64 ticks of the clock less than usual.
const HIDDEN_BITS: u32 = 6;
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;
const ASKS_FOR_ECN: Flags = Flags::ECE.with(Flags::CWR);

/// What the connection will need of a SYN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cookie {
    /// An index into [`MSS`].
    mss: u32,
    /// What goes into the timestamp. `None`: there is none.
    hidden: Option<u32>,
}

impl Cookie {
    /// `timestamps`: this host uses them.
    pub(super) fn of(syn: &Segment<'_>, timestamps: bool) -> Self {
        let options = &syn.options;
        let offered = options.mss.unwrap_or_else(|| default_mss(syn.dst.ip()));
        let mss = MSS.iter().rposition(|mss| *mss <= offered).unwrap_or(0) as u32;
        let hidden = (timestamps && options.timestamps.is_some()).then(|| {
            let scale = options.window_scale.map_or(NO_SCALE, u32::from);
            let sack = if options.sack_permitted { SACK } else { 0 };
            let ecn = if syn.flags.contains(ASKS_FOR_ECN) { ECN } else { 0 };
            scale | sack | ecn
        });
        Self { mss, hidden }
    }

    pub(super) fn hidden(self) -> Option<u32> {
        self.hidden
    }

    /// The SYN as the cookie remembers it. What is forgotten, reserved flags among it, is not agreed on either.
    pub(super) fn syn(self, from: &Segment<'_>, seq: Seq) -> Segment<'static> {
        let hidden = self.hidden.unwrap_or(NO_SCALE);
        let ecn = if hidden & ECN != 0 { ASKS_FOR_ECN } else { Flags::NONE };
        let scale = (hidden & 15) as u8;
        Segment {
            src: from.src,
            dst: from.dst,
            seq,
            ack: Seq(0),
            flags: Flags::SYN.with(ecn),
            window: from.window,
            ecn: from.ecn,
            options: Options {
                mss: Some(MSS[self.mss as usize % MSS.len()]),
                window_scale: (u32::from(scale) != NO_SCALE).then_some(scale),
                sack_permitted: hidden & SACK != 0,
                timestamps: from.options.timestamps.filter(|_| self.hidden.is_some()),
                ..Options::default()
            },
            payload: &[],
        }
    }

    /// The initial sequence number that answers this SYN at this time.
    pub(super) fn seal(self, seed: u64, now: Instant, syn: &Segment<'_>) -> Seq {
        self.number(seed, slot(now), syn, syn.seq)
    }

    fn number(self, seed: u64, slot: u64, segment: &Segment<'_>, client: Seq) -> Seq {
        let what = ("cookie", segment.dst, segment.src, client.0, slot, self.mss, self.hidden);
        let hash = keyed_hash(seed, &what) as u32;
        Seq(((slot & 1) as u32) << 31 | self.mss << 28 | hash & 0x0fff_ffff)
    }

    /// What the SYN said whose cookie `segment` brings back, if it does, and the cookie is not too old.
    pub(super) fn open(seed: u64, now: Instant, segment: &Segment<'_>, timestamps: bool) -> Option<Self> {
        let number = segment.ack.0.wrapping_sub(1);
        let hidden = segment.options.timestamps.filter(|_| timestamps).map(|ts| ts.ecr % (1 << HIDDEN_BITS));
        let cookie = Self { mss: number >> 28 & 7, hidden };
        let now = slot(now);
        let slot = if (now & 1) as u32 == number >> 31 { now } else { now.checked_sub(1)? };
        let client = Seq(segment.seq.0.wrapping_sub(1));
        (cookie.number(seed, slot, segment, client).0 == number).then_some(cookie)
    }
}

fn slot(now: Instant) -> u64 {
    now.as_nanos() / SLOT.as_nanos()
}

fn default_mss(own: IpAddr) -> u16 {
    if own.is_ipv4() { 536 } else { 1220 }
}

#[cfg(test)]
mod tests {
    use airwire::options::Timestamps;
    use airwire::segment::Ecn;

    use super::*;

    const SEED: u64 = 7;

    fn syn(options: Options) -> Segment<'static> {
        Segment {
            src: ([192, 0, 2, 2], 4000).into(),
            dst: ([192, 0, 2, 1], 80).into(),
            seq: Seq(u32::MAX),
            ack: Seq(0),
            flags: Flags::SYN,
            window: 65_535,
            ecn: Ecn::NotEct,
            options,
            payload: &[],
        }
    }

    /// The third segment of the handshake, as the client makes it of our answer.
    fn third(syn: &Segment<'_>, cookie: Cookie, number: Seq) -> Segment<'static> {
        // Whatever the clock's high bits are, they mean nothing here.
        let ecr = cookie.hidden.map(|hidden| 0xabcd_0000 | hidden);
        let options = Options { timestamps: ecr.map(|ecr| Timestamps { val: 9, ecr }), ..Options::default() };
        Segment {
            seq: syn.seq.at(1),
            ack: number.at(1),
            flags: Flags::ACK,
            payload: &[],
            options,
            ..syn.clone()
        }
    }

    #[test]
    fn all_that_a_syn_offers_comes_back_if_it_has_timestamps() {
        let timestamps = Some(Timestamps { val: 1, ecr: 0 });
        for scale in (0..=14).map(Some).chain([None]) {
            for sack_permitted in [false, true] {
                for flags in [Flags::SYN, Flags::SYN.with(ASKS_FOR_ECN)] {
                    let mss = Some(1460);
                    let offer = Options {
                        mss,
                        window_scale: scale,
                        sack_permitted,
                        timestamps,
                        ..Options::default()
                    };
                    let syn = Segment { flags, ..syn(offer) };
                    let cookie = Cookie::of(&syn, true);
                    let back = third(&syn, cookie, cookie.seal(SEED, Instant::ZERO, &syn));
                    let opened = Cookie::open(SEED, Instant::ZERO, &back, true).unwrap();
                    let again = opened.syn(&back, syn.seq);
                    let offered = |o: &Options| (o.mss, o.window_scale, o.sack_permitted);
                    assert_eq!(offered(&again.options), offered(&offer));
                    assert_eq!((again.flags, again.options.timestamps.is_some()), (flags, true));
                }
            }
        }
    }

    #[test]
    fn without_timestamps_the_mss_alone_comes_back_and_is_never_more_than_was_offered() {
        for (offered, kept) in
            [(None, 536), (Some(100), 64), (Some(1459), 1440), (Some(1460), 1460), (Some(65_535), 8960)]
        {
            let offer =
                Options { mss: offered, window_scale: Some(7), sack_permitted: true, ..Options::default() };
            let syn = syn(offer);
            let cookie = Cookie::of(&syn, true);
            let back = third(&syn, cookie, cookie.seal(SEED, Instant::ZERO, &syn));
            let again = Cookie::open(SEED, Instant::ZERO, &back, true).unwrap().syn(&back, syn.seq);
            assert_eq!(again.options, Options { mss: Some(kept), ..Options::default() });
        }
    }

    #[test]
    fn a_cookie_is_good_for_its_slot_and_the_next() {
        let syn = syn(Options { mss: Some(1460), ..Options::default() });
        let cookie = Cookie::of(&syn, true);
        let left = Instant::from_secs(100);
        let back = third(&syn, cookie, cookie.seal(SEED, left, &syn));
        for (at, good) in [(100, true), (127, true), (128, true), (191, true), (192, false), (256, false)] {
            let opened = Cookie::open(SEED, Instant::from_secs(at), &back, true);
            assert_eq!(opened.is_some(), good, "at {at} s");
        }
        assert_eq!(Cookie::open(SEED, Instant::from_secs(10), &back, true), None, "from the future");
    }

    /// Every bit of the number counts, and so does everything else that the hash is over.
    #[test]
    fn what_was_changed_on_the_way_is_no_cookie() {
        let offer = Options {
            mss: Some(1460),
            window_scale: Some(7),
            timestamps: Some(Timestamps { val: 1, ecr: 0 }),
            ..Options::default()
        };
        let syn = syn(offer);
        let cookie = Cookie::of(&syn, true);
        let now = Instant::from_secs(1000);
        let good = third(&syn, cookie, cookie.seal(SEED, now, &syn));
        let opens = |segment: &Segment<'_>| Cookie::open(SEED, now, segment, true).is_some();
        assert!(opens(&good));
        for bit in 0..32 {
            assert!(
                !opens(&Segment { ack: Seq(((good.ack.0 - 1) ^ (1 << bit)) + 1), ..good.clone() }),
                "{bit}"
            );
            assert!(!opens(&Segment { seq: Seq(good.seq.0 ^ 1 << bit), ..good.clone() }), "{bit}");
        }
        for bit in 0..HIDDEN_BITS {
            let mut changed = good.clone();
            changed.options.timestamps.as_mut().unwrap().ecr ^= 1 << bit;
            assert!(!opens(&changed), "bit {bit} of the timestamp");
        }
        assert!(!opens(&Segment { src: ([192, 0, 2, 2], 4001).into(), ..good.clone() }));
        assert!(!opens(&Segment { dst: ([192, 0, 2, 1], 81).into(), ..good.clone() }));
        assert!(!opens(&Segment { options: Options::default(), ..good.clone() }), "its timestamp is gone");
        assert_eq!(Cookie::open(SEED + 1, now, &good, true), None, "another host's key");
    }
}
