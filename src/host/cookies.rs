//! SYN cookies (RFC 4987 §3.6): a SYN is answered without keeping state. Everything that the connection needs
//! comes back with the handshake's third segment: the MSS in its acknowledgment number, and window scale,
//! SACK and ECN in the echoed timestamp, as in Linux. Without timestamps only the MSS comes back.
//!
//! RFC 4987 leaves the layout open. Here the initial sequence number consists of the low bit of a [`SLOT`]
//! counter, three bits that select an MSS, and 28 bits of a keyed hash, the one that also generates initial
//! sequence numbers (RFC 6528). The hash covers both addresses, the client's initial sequence number, the
//! slot, and the bits in the timestamp. Two slots are valid, distinguished by one bit, so a guess succeeds
//! with probability 2^-28.

use std::net::IpAddr;

use airwire::options::Options;
use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use super::keyed_hash;

/// A cookie is valid in the slot in which it was sent, and in the next one.
const SLOT: Duration = Duration::from_secs(64);
/// Maximum lifetime of a cookie.
pub(super) const LIFETIME: Duration = Duration::from_secs(128);

/// The MSS values that a cookie can encode. The value used never exceeds the client's offer. 536 and 1220 are
/// the defaults of RFC 9293 §3.7.1. The others are for Ethernet, with and without tunnels, and for jumbo
/// frames. The lowest one is for offers below the defaults.
const MSS: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8960];

/// Number of low timestamp bits that carry a cookie's information. Such timestamps are up to 63 ticks behind
/// the clock.
const HIDDEN_BITS: u32 = 6;
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;
const ASKS_FOR_ECN: Flags = Flags::ECE.with(Flags::CWR);

/// The information from a SYN that the connection needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cookie {
    /// An index into [`MSS`].
    mss: u32,
    /// The information carried in the timestamp. `None`: timestamps are not used.
    hidden: Option<u32>,
}

impl Cookie {
    /// Creates the cookie for a SYN. `timestamps` is true if this host uses timestamps.
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

    /// Reconstructs the SYN from the cookie. Options and flags that the cookie does not hold are not
    /// negotiated.
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

    /// Returns the initial sequence number for the answer to this SYN at this time.
    pub(super) fn seal(self, seed: u64, now: Instant, syn: &Segment<'_>) -> Seq {
        self.number(seed, slot(now), syn, syn.seq)
    }

    fn number(self, seed: u64, slot: u64, segment: &Segment<'_>, client: Seq) -> Seq {
        let what = ("cookie", segment.dst, segment.src, client.0, slot, self.mss, self.hidden);
        let hash = keyed_hash(seed, &what) as u32;
        Seq(((slot & 1) as u32) << 31 | self.mss << 28 | hash & 0x0fff_ffff)
    }

    /// Returns the cookie that `segment` brings back, if it is valid and not too old.
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

    /// Returns the third segment of the handshake, as the client answers our SYN,ACK.
    fn third(syn: &Segment<'_>, cookie: Cookie, number: Seq) -> Segment<'static> {
        // The high bits of the timestamp do not matter here.
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
    fn cookie_with_timestamps_restores_all_syn_options() {
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
    fn cookie_without_timestamps_restores_only_rounded_down_mss() {
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
    fn cookie_is_valid_for_two_slots() {
        let syn = syn(Options { mss: Some(1460), ..Options::default() });
        let cookie = Cookie::of(&syn, true);
        let left = Instant::from_secs(100);
        let back = third(&syn, cookie, cookie.seal(SEED, left, &syn));
        for (at, good) in [(100, true), (127, true), (128, true), (191, true), (192, false), (256, false)] {
            let opened = Cookie::open(SEED, Instant::from_secs(at), &back, true);
            assert_eq!(opened.is_some(), good, "at {at} s");
        }
        assert_eq!(Cookie::open(SEED, Instant::from_secs(10), &back, true), None, "a cookie from the future");
    }

    /// The hash covers every bit of the number, and all other fields of the cookie.
    #[test]
    fn altered_cookie_is_rejected() {
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
        assert!(
            !opens(&Segment { options: Options::default(), ..good.clone() }),
            "the timestamp option is missing"
        );
        assert_eq!(Cookie::open(SEED + 1, now, &good, true), None, "another host's key");
    }
}
