//! The three ways to report gaps: LIST, BITMAP and RLIST. Each writes as many gaps as fit, beginning at a
//! cursor.

use super::Received;
use crate::rlc::umts::codec::{push_burst, push_distance};
use crate::rlc::umts::pdu::{Gap, ListItem, Sn, Sufi};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    List,
    Bitmap,
    Rlist,
}

impl Coding {
    /// In the order of preference. If several codings are equally good, the first one is used.
    pub(super) const ALL: [Self; 3] = [Self::List, Self::Rlist, Self::Bitmap];
}

/// Position of the first missing PDU that no super-field reports yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    gap: usize,
    within: u16,
}

/// Result of one coding for one STATUS PDU.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) sufis: Vec<Sufi>,
    pub(super) nibbles: usize,
    pub(super) next: Cursor,
    /// Number of missing PDUs from `next` on.
    pub(super) remaining: usize,
}

impl Cursor {
    pub(super) const fn at_start() -> Self {
        Self { gap: 0, within: 0 }
    }

    /// The rest of the gap at the cursor. `None` at the end.
    fn gap(self, missing: &[Gap]) -> Option<Gap> {
        let gap = missing.get(self.gap)?;
        Some(Gap { first: gap.first.plus(self.within), count: gap.count - self.within })
    }

    fn advance(&mut self, missing: &[Gap], by: u16) {
        self.within += by;
        if self.within == missing[self.gap].count {
            *self = Self { gap: self.gap + 1, within: 0 };
        }
    }

    /// Moves to the first missing PDU at or after `base + distance`.
    fn advance_to(&mut self, missing: &[Gap], base: Sn, distance: u16) {
        while let Some(gap) = self.gap(missing) {
            let ahead = gap.first.since(base);
            if ahead >= distance {
                return;
            }
            self.advance(missing, gap.count.min(distance - ahead));
        }
    }
}

/// Writes super-fields of one coding, in at most `room` units of 4 bits.
pub(super) fn write(coding: Coding, received: Received<'_>, from: Cursor, room: usize) -> Written {
    let mut next = from;
    let mut sufis = Vec::new();
    let mut nibbles = 0;
    while next.gap(received.missing).is_some() {
        let sufi = match coding {
            Coding::List => list(received.missing, &mut next, room - nibbles),
            Coding::Bitmap => bitmap(received, &mut next, room - nibbles),
            Coding::Rlist => rlist(received.missing, &mut next, room - nibbles),
        };
        let Some(sufi) = sufi else { break };
        nibbles += sufi.nibbles();
        sufis.push(sufi);
    }
    let after = received.missing.iter().skip(next.gap).map(|gap| usize::from(gap.count)).sum::<usize>();
    Written { sufis, nibbles, next, remaining: after - usize::from(next.within) }
}

/// Writes a LIST (§9.2.2.11.4): up to 15 pairs (SNi, Li), each for up to 16 PDUs.
fn list(missing: &[Gap], next: &mut Cursor, room: usize) -> Option<Sufi> {
    let most = (room.saturating_sub(2) / 4).min(15);
    let mut items = Vec::new();
    while items.len() < most
        && let Some(gap) = next.gap(missing)
    {
        let count = gap.count.min(16);
        items.push(ListItem { sn: gap.first, further: count as u8 - 1 });
        next.advance(missing, count);
    }
    (!items.is_empty()).then_some(Sufi::List(items))
}

/// Writes a BITMAP (§9.2.2.11.5): up to 16 bytes from FSN on.
///
/// §9.2.2.11: a STATUS PDU does not contain information about a "Sequence Number" ≥ VR(H). A bitmap has whole
/// bytes, and its last bit is at most for VR(H) − 1. Surplus bits are therefore at the front, for PDUs that
/// were received or are already reported. At most 7 bits are below VR(R), as the clause requires for FSN.
///
/// Deviation: with a reception window of at least half the sequence numbers, FSN must not be below VR(R) at
/// all. In addition, §11.5.2.2 does not allow two STATUS PDUs of a report to indicate the same AMD PDU, which
/// surplus bits can do.
fn bitmap(received: Received<'_>, next: &mut Cursor, room: usize) -> Option<Sufi> {
    let most = (room.saturating_sub(5) / 2).min(16) as u16;
    let first = next.gap(received.missing)?.first.since(received.vr_r);
    // A bitmap does not have to extend beyond the last gap.
    let last = received.missing.last().map(|gap| gap.first.plus(gap.count).since(received.vr_r))?;
    let octets = (last - first).div_ceil(8).min(most);
    if octets == 0 {
        return None;
    }
    let up_to = (first + 8 * octets).min(received.vr_h.since(received.vr_r));
    let fsn = received.vr_r.plus(up_to).plus(Sn::MODULUS - 8 * octets);
    let mut bits = vec![0xff_u8; usize::from(octets)];
    // The surplus bits at the front may be for PDUs of earlier gaps.
    for gap in received.missing {
        for sn in gap.sns() {
            let bit = sn.since(fsn);
            if bit < 8 * octets {
                bits[usize::from(bit / 8)] &= !(0x80 >> (bit % 8));
            }
        }
    }
    next.advance_to(received.missing, received.vr_r, up_to);
    Some(Sufi::Bitmap { fsn, bits })
}

/// Writes an RLIST (§9.2.2.11.6): FSN and up to 15 code words.
fn rlist(missing: &[Gap], next: &mut Cursor, room: usize) -> Option<Sufi> {
    let most = room.checked_sub(5)?.min(15);
    let fsn = next.gap(missing)?.first;
    let mut codewords = Vec::with_capacity(most);
    let mut last = fsn;
    next.advance(missing, 1);
    while let Some(gap) = next.gap(missing) {
        let mark = codewords.len();
        // A distance of 1 takes one code word, an error burst at least two.
        let count = if gap.first == last.next() && gap.count > 2 {
            push_burst(gap.count, &mut codewords);
            gap.count
        } else {
            push_distance(gap.first.since(last), &mut codewords);
            1
        };
        if codewords.len() > most {
            codewords.truncate(mark);
            break;
        }
        last = gap.first.plus(count - 1);
        next.advance(missing, count);
    }
    Some(Sufi::Rlist { fsn, codewords })
}
