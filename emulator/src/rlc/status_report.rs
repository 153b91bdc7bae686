//! What a receiver has to say about missing PDUs, as super-fields, and what a sender reads out of them
//! (TS 25.322 §9.2.2.11, §11.5.2).

mod coding;
#[cfg(test)]
mod tests;

use coding::{Coding, Cursor};

use super::codec::expand_rlist;
use super::pdu::{Gap, Sn, Status, Sufi};

/// What a receiver knows: everything from VR(R) up to VR(H) was received, except for the gaps, which ascend from
/// VR(R) and do not touch each other.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    pub vr_r: Sn,
    pub vr_h: Sn,
    pub missing: &'a [Gap],
}

/// Acknowledgement: one STATUS PDU of at most `octets` if that holds everything, in the shortest of the three
/// codings; else several. `others` (MRW_ACK, MRW, WINDOW) go into the first PDU, before the acknowledgement.
///
/// A report that is split acknowledges with LSN = VR(R) in every part, because LSN vouches for everything below it
/// that its own PDU does not name (§9.2.2.11.2).
///
/// # Panics
///
/// If a PDU of so few octets cannot hold `others` with an ACK, or cannot hold any gap.
pub fn acknowledge(received: Received<'_>, others: Vec<Sufi>, octets: usize) -> Vec<Status> {
    let header_and_ack = 1 + Sufi::Ack { lsn: received.vr_h }.nibbles();
    let room = |others: &[Sufi]| {
        let taken = header_and_ack + others.iter().map(Sufi::nibbles).sum::<usize>();
        (octets * 2).checked_sub(taken).expect("the caller saw to it that the other super-fields fit")
    };
    let mut statuses = Vec::new();
    let mut sufis = others;
    let mut cursor = Cursor::at_start();
    loop {
        let attempts = Coding::ALL.map(|coding| coding::write(coding, received, cursor, room(&sufis)));
        let best = attempts.into_iter().min_by_key(|attempt| (attempt.left, attempt.nibbles));
        let best = best.expect("there are three codings");
        let whole = best.left == 0 && statuses.is_empty();
        let stuck = best.next == cursor && best.left > 0;
        assert!(!(stuck && sufis.is_empty()), "{octets} octets hold no gap at all");
        sufis.extend(best.sufis);
        sufis.push(Sufi::Ack { lsn: if whole { received.vr_h } else { received.vr_r } });
        statuses.push(Status(std::mem::take(&mut sufis)));
        cursor = best.next;
        if best.left == 0 {
            return statuses;
        }
    }
}

/// A STATUS PDU that acknowledges nothing, which Timer_Status_Prohibit does not hold back (§9.5): `others`, ended by
/// NO_MORE.
pub fn without_acknowledgement(mut others: Vec<Sufi>) -> Status {
    others.push(Sufi::NoMore);
    Status(others)
}

/// What a STATUS PDU tells its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpretation {
    /// Acknowledges every PDU below it that is not in `missing`.
    pub lsn: Option<Sn>,
    /// Every PDU that is reported missing, once, in the order of the report.
    pub missing: Vec<Sn>,
    /// The last WINDOW super-field.
    pub window: Option<u16>,
    pub mrw: Option<Mrw>,
    pub mrw_ack: Option<MrwAck>,
    pub poll: Option<Sn>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mrw {
    /// SN_MRW1 and so on; the last one is SN_MRW_LENGTH.
    pub sns: Vec<Sn>,
    /// LENGTH = 0: `sns` is one number, at or ahead of the window's upper edge.
    pub long_distance: bool,
    pub nlength: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrwAck {
    pub n: u8,
    pub sn_ack: Sn,
}

/// A STATUS PDU that contradicts itself is discarded (clause 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("PDU {0} is reported both received and missing")]
    BothWays(Sn),
    #[error("a relative list that makes no sense")]
    Rlist,
    #[error("two super-fields of a kind that can stand there once")]
    Twice,
}

/// A set of sequence numbers.
struct Set([u64; Sn::MODULUS as usize / 64]);

impl Set {
    const fn new() -> Self {
        Self([0; Sn::MODULUS as usize / 64])
    }

    const fn contains(&self, sn: Sn) -> bool {
        self.0[sn.get() as usize / 64] >> (sn.get() % 64) & 1 == 1
    }

    /// Whether it was not there before.
    const fn insert(&mut self, sn: Sn) -> bool {
        let new = !self.contains(sn);
        self.0[sn.get() as usize / 64] |= 1 << (sn.get() % 64);
        new
    }
}

/// Reads a STATUS PDU. Whether its numbers are within the window is for the sender to judge. Only what names a PDU
/// counts as a report about it: a 1 in a BITMAP does, being passed over by a LIST does not.
pub fn interpret(status: &Status) -> Result<Interpretation, Contradiction> {
    let mut told = Interpretation::default();
    let (mut received, mut missing) = (Set::new(), Set::new());
    let mut lacks = |sn: Sn, told: &mut Interpretation| {
        if missing.insert(sn) {
            told.missing.push(sn);
        }
    };
    for sufi in &status.0 {
        match sufi {
            Sufi::NoMore => {}
            Sufi::Window { wsn } => told.window = Some(*wsn),
            Sufi::Ack { lsn } => told.lsn = Some(*lsn),
            Sufi::List(items) => {
                let gaps =
                    items.iter().map(|item| Gap { first: item.sn, count: u16::from(item.further) + 1 });
                gaps.flat_map(Gap::sns).for_each(|sn| lacks(sn, &mut told));
            }
            Sufi::Bitmap { fsn, bits } => {
                for (octet, n) in bits.iter().zip(0..) {
                    for bit in 0..8 {
                        let sn = fsn.plus(8 * n + bit);
                        if octet << bit & 0x80 == 0 {
                            lacks(sn, &mut told);
                        } else {
                            received.insert(sn);
                        }
                    }
                }
            }
            Sufi::Rlist { fsn, codewords } => {
                for gap in expand_rlist(*fsn, codewords) {
                    gap.map_err(|_| Contradiction::Rlist)?.sns().for_each(|sn| lacks(sn, &mut told));
                }
            }
            Sufi::Mrw { sns, long_distance, nlength } => {
                let mrw = Mrw { sns: sns.clone(), long_distance: *long_distance, nlength: *nlength };
                once(&mut told.mrw, mrw)?;
            }
            Sufi::MrwAck { n, sn_ack } => once(&mut told.mrw_ack, MrwAck { n: *n, sn_ack: *sn_ack })?,
            Sufi::Poll { sn } => once(&mut told.poll, *sn)?,
        }
    }
    match told.missing.iter().find(|sn| received.contains(**sn)) {
        Some(sn) => Err(Contradiction::BothWays(*sn)),
        None => Ok(told),
    }
}

fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Contradiction> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Contradiction::Twice),
    }
}
