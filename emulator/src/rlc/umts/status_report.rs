//! The contents of status reports: the Receiver writes what it misses as super-fields (§11.5.2.2), the Sender reads
//! them (§11.5.3). When a report is triggered, and what prohibits it, is the entity's business (§9.7.2).

mod coding;
#[cfg(test)]
mod tests;

use coding::{Coding, Cursor};

use super::codec::expand_rlist;
use super::pdu::{Gap, Sn, Status, Sufi};

/// What a Receiver knows: every AMD PDU with VR(R) ≤ SN < VR(H) was received, except for those of the gaps.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// VR(R): the next one expected in sequence.
    pub vr_r: Sn,
    /// VR(H): the one after the highest that was received or is known to be missing.
    pub vr_h: Sn,
    /// What is missing, in ascending order from VR(R) on. Gaps do not touch each other.
    pub missing: &'a [Gap],
}

/// Writes an acknowledgement status report (§11.5.2.2): negative acknowledgements for all AMD PDUs detected as missing,
/// then ACK. It is one STATUS PDU if `octets` suffice, else several. `others` (MRW_ACK, MRW, WINDOW, POLL) go into the
/// first one, before the rest.
///
/// Choice: "which SUFI fields to use is implementation dependent" (§9.2.2.11). Each PDU uses whichever of LIST, RLIST
/// and BITMAP leaves the fewest missing PDUs to the next STATUS PDU, and at a tie is the shortest.
///
/// §9.2.2.11.2: with LSN > VR(R) all erroneous AMD PDUs are in the same STATUS PDU. So each part of a report of several
/// PDUs has LSN = VR(R).
///
/// # Panics
///
/// If a PDU of `octets` cannot hold `others` and an ACK, or cannot hold a single gap.
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

/// Writes a status report without LIST, BITMAP, RLIST and ACK, which Timer_Status_Prohibit does not restrict (§9.5 f):
/// `others`, then NO_MORE.
pub fn without_acknowledgement(mut others: Vec<Sufi>) -> Status {
    others.push(Sufi::NoMore);
    Status(others)
}

/// What a STATUS PDU tells. `None`: there is no such super-field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpretation {
    /// LSN of ACK: acknowledges every PDU below it that is not in `missing`.
    pub lsn: Option<Sn>,
    /// Every PDU that is negatively acknowledged, in the order of the report. §11.5.3: one that is named more than
    /// once is retransmitted only once, so it is here once.
    pub missing: Vec<Sn>,
    /// WSN of the last WINDOW.
    pub window: Option<u16>,
    /// MRW.
    pub mrw: Option<Mrw>,
    /// MRW_ACK.
    pub mrw_ack: Option<MrwAck>,
    /// Poll_SN of POLL.
    pub poll: Option<Sn>,
}

/// MRW super-field (§9.2.2.11.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mrw {
    /// SN_MRW1 and so on; the last one is SN_MRW_LENGTH.
    pub sns: Vec<Sn>,
    /// LENGTH = 0: `sns` is one number, VT(A) + Configured_Tx_Window_Size or ahead of it.
    pub long_distance: bool,
    /// Which "Length Indicator" of the PDU SN_MRW_LENGTH ends the last SDU to be discarded; 0: none.
    pub nlength: u8,
}

/// MRW_ACK super-field (§9.2.2.11.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MrwAck {
    /// NLENGTH of the MRW if `sn_ack` is its SN_MRW_LENGTH, else 0.
    pub n: u8,
    /// VR(R) after the MRW.
    pub sn_ack: Sn,
}

/// Why a STATUS PDU is discarded although every field of it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// §10.2, inconsistent status indication: different status for the same AMD PDU.
    #[error("PDU {0} is reported both received and missing")]
    BothWays(Sn),
    /// §9.2.2.11.6. A PDU that was decoded has no such list.
    #[error("a relative list that makes no sense")]
    Rlist,
    /// Choice: two MRW, two MRW_ACK or two POLL. Nothing says which of them holds.
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

    /// True if it was not there before.
    const fn insert(&mut self, sn: Sn) -> bool {
        let new = !self.contains(sn);
        self.0[sn.get() as usize / 64] |= 1 << (sn.get() % 64);
        new
    }
}

/// Reads a STATUS PDU. Whether its numbers are erroneous (§10.1) is for the Sender to judge, which knows VT(A) and
/// VT(S).
///
/// Choice: in the sense of §10.2 a 1 in a BITMAP says that a PDU was received. That a LIST or RLIST passes over it does
/// not.
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

/// Sets what may be said once.
fn once<T>(place: &mut Option<T>, value: T) -> Result<(), Contradiction> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(Contradiction::Twice),
    }
}
