//! SYN cookies (RFC 4987 §3.6): a SYN is answered without keeping state. Everything that the connection needs
//! comes back with the handshake's third segment: the MSS in its acknowledgment number, and window scale,
//! SACK and ECN in the echoed timestamp, as in Linux. Without timestamps only the MSS comes back.
//!
//! RFC 4987 leaves the layout open. Here the initial sequence number has three parts: the low bit of a
//! [`SLOT`] counter, three bits that select an MSS, and 28 bits of a keyed hash. The same hash also generates
//! initial sequence numbers (RFC 6528). The hash covers both addresses, the client's initial sequence number,
//! the slot, and the bits in the timestamp. Two slots are valid, distinguished by one bit, so a guess
//! succeeds with probability 2^-28.

use airwire::options::Options;
use airwire::segment::{Flags, Segment};
use airwire::seq::Seq;
use airwire::text::Text;
use airwire::time::{Duration, Instant};

use super::keyed_hash;
use crate::tcp::default_mss;

/// A cookie is valid in the slot in which it was sent, and in the next one.
const SLOT: Duration = Duration::from_secs(64);
/// Maximum lifetime of a cookie.
pub(super) const LIFETIME: Duration = Duration::from_secs(128);

/// The MSS values that a cookie can encode. The value used never exceeds the client's offer. 536 and 1220 are
/// the defaults of RFC 9293 §3.7.1. The others are for Ethernet, with and without tunnels, and for jumbo
/// frames. The lowest one is for offers below the defaults.
const MSS: [u16; 8] = [64, 536, 1220, 1300, 1400, 1440, 1460, 8960];

/// Number of low timestamp bits that encode options of the SYN. Such timestamps are up to 63 ticks behind the
/// clock.
const TS_BITS: u32 = 6;
const NO_SCALE: u32 = 15;
const SACK: u32 = 1 << 4;
const ECN: u32 = 1 << 5;
/// The flags of an ECN-setup SYN (RFC 3168 §6.1.1).
const ECN_SETUP: Flags = Flags::ECE.with(Flags::CWR);

/// The information from a SYN that the connection needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Cookie {
    /// An index into [`MSS`].
    mss: u32,
    /// Window scale, SACK and ECN, as the timestamp encodes them. `None`: timestamps are not used.
    ts_bits: Option<u32>,
}

impl Cookie {
    /// Creates the cookie for a SYN. `timestamps` is true if this host uses timestamps.
    pub(super) fn of(syn: &Segment<'_>, timestamps: bool) -> Self {
        let options = &syn.options;
        let offered = options.mss.unwrap_or_else(|| default_mss(syn.dst.is_ipv4()));
        let mss = MSS.iter().rposition(|mss| *mss <= offered).unwrap_or(0) as u32;
        let ts_bits = (timestamps && options.timestamps.is_some()).then(|| {
            let scale = options.window_scale.map_or(NO_SCALE, u32::from);
            let sack = if options.sack_permitted { SACK } else { 0 };
            let ecn = if syn.flags.contains(ECN_SETUP) { ECN } else { 0 };
            scale | sack | ecn
        });
        Self { mss, ts_bits }
    }

    pub(super) fn ts_bits(self) -> Option<u32> {
        self.ts_bits
    }

    /// Reconstructs the SYN from the cookie. Options and flags that the cookie does not hold are not
    /// negotiated.
    pub(super) fn syn(self, from: &Segment<'_>, seq: Seq) -> Segment<'static> {
        let bits = self.ts_bits.unwrap_or(NO_SCALE);
        let ecn = if bits & ECN != 0 { ECN_SETUP } else { Flags::NONE };
        let scale = (bits & 15) as u8;
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
                sack_permitted: bits & SACK != 0,
                timestamps: from.options.timestamps.filter(|_| self.ts_bits.is_some()),
                ..Options::default()
            },
            payload: Text::EMPTY,
        }
    }

    /// Returns the initial sequence number for the answer to this SYN at this time.
    pub(super) fn initial_seq(self, seed: u64, now: Instant, syn: &Segment<'_>) -> Seq {
        self.encode(seed, slot(now), syn, syn.seq)
    }

    /// Encodes the cookie for a client whose initial sequence number is `irs`.
    fn encode(self, seed: u64, slot: u64, segment: &Segment<'_>, irs: Seq) -> Seq {
        let what = ("cookie", segment.dst, segment.src, irs.0, slot, self.mss, self.ts_bits);
        let hash = keyed_hash(seed, &what) as u32;
        Seq(((slot & 1) as u32) << 31 | self.mss << 28 | hash & 0x0fff_ffff)
    }

    /// Returns the cookie that `segment` acknowledges, if it is valid and not too old.
    pub(super) fn decode(seed: u64, now: Instant, segment: &Segment<'_>, timestamps: bool) -> Option<Self> {
        let number = segment.ack.0.wrapping_sub(1);
        let ts_bits = segment.options.timestamps.filter(|_| timestamps).map(|ts| ts.ecr % (1 << TS_BITS));
        let cookie = Self { mss: number >> 28 & 7, ts_bits };
        let now = slot(now);
        let slot = if (now & 1) as u32 == number >> 31 { now } else { now.checked_sub(1)? };
        let irs = Seq(segment.seq.0.wrapping_sub(1));
        (cookie.encode(seed, slot, segment, irs).0 == number).then_some(cookie)
    }
}

fn slot(now: Instant) -> u64 {
    now.as_nanos() / SLOT.as_nanos()
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
            payload: Text::EMPTY,
        }
    }

    /// Returns the client's answer to our SYN,ACK, the third segment of the handshake.
    fn third_segment(syn: &Segment<'_>, cookie: Cookie, number: Seq) -> Segment<'static> {
        // The high bits of the timestamp do not matter here.
        let ecr = cookie.ts_bits.map(|bits| 0xabcd_0000 | bits);
        let options = Options { timestamps: ecr.map(|ecr| Timestamps { val: 9, ecr }), ..Options::default() };
        Segment {
            seq: syn.seq.at(1),
            ack: number.at(1),
            flags: Flags::ACK,
            payload: Text::EMPTY,
            options,
            ..syn.clone()
        }
    }

    #[test]
    fn cookie_with_timestamps_restores_all_syn_options() {
        let timestamps = Some(Timestamps { val: 1, ecr: 0 });
        for scale in (0..=14).map(Some).chain([None]) {
            for sack_permitted in [false, true] {
                for flags in [Flags::SYN, Flags::SYN.with(ECN_SETUP)] {
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
                    let back = third_segment(&syn, cookie, cookie.initial_seq(SEED, Instant::ZERO, &syn));
                    let opened = Cookie::decode(SEED, Instant::ZERO, &back, true).unwrap();
                    let restored = opened.syn(&back, syn.seq);
                    let offered = |o: &Options| (o.mss, o.window_scale, o.sack_permitted);
                    assert_eq!(offered(&restored.options), offered(&offer));
                    assert_eq!((restored.flags, restored.options.timestamps.is_some()), (flags, true));
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
            let back = third_segment(&syn, cookie, cookie.initial_seq(SEED, Instant::ZERO, &syn));
            let restored = Cookie::decode(SEED, Instant::ZERO, &back, true).unwrap().syn(&back, syn.seq);
            assert_eq!(restored.options, Options { mss: Some(kept), ..Options::default() });
        }
    }

    #[test]
    fn cookie_is_valid_for_two_slots() {
        let syn = syn(Options { mss: Some(1460), ..Options::default() });
        let cookie = Cookie::of(&syn, true);
        let sent = Instant::from_secs(100);
        let back = third_segment(&syn, cookie, cookie.initial_seq(SEED, sent, &syn));
        for (at, is_valid) in [(100, true), (127, true), (128, true), (191, true), (192, false), (256, false)]
        {
            let opened = Cookie::decode(SEED, Instant::from_secs(at), &back, true);
            assert_eq!(opened.is_some(), is_valid, "at {at} s");
        }
        assert_eq!(
            Cookie::decode(SEED, Instant::from_secs(10), &back, true),
            None,
            "a cookie from the future"
        );
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
        let answer = third_segment(&syn, cookie, cookie.initial_seq(SEED, now, &syn));
        let is_valid = |segment: &Segment<'_>| Cookie::decode(SEED, now, segment, true).is_some();
        assert!(is_valid(&answer), "the unaltered answer");
        for bit in 0..32 {
            assert!(
                !is_valid(&Segment { ack: Seq(((answer.ack.0 - 1) ^ (1 << bit)) + 1), ..answer.clone() }),
                "{bit}"
            );
            assert!(!is_valid(&Segment { seq: Seq(answer.seq.0 ^ 1 << bit), ..answer.clone() }), "{bit}");
        }
        for bit in 0..TS_BITS {
            let mut changed = answer.clone();
            changed.options.timestamps.as_mut().unwrap().ecr ^= 1 << bit;
            assert!(!is_valid(&changed), "bit {bit} of the timestamp");
        }
        assert!(!is_valid(&Segment { src: ([192, 0, 2, 2], 4001).into(), ..answer.clone() }));
        assert!(!is_valid(&Segment { dst: ([192, 0, 2, 1], 81).into(), ..answer.clone() }));
        assert!(
            !is_valid(&Segment { options: Options::default(), ..answer.clone() }),
            "the timestamp option is missing"
        );
        assert_eq!(Cookie::decode(SEED + 1, now, &answer, true), None, "another host's key");
    }
}
