//! Content of status reports: the Receiver writes its missing PDUs as super-fields (§11.5.2.2), and the
//! Sender reads them (§11.5.3). The entity decides when a report is triggered and when it is prohibited
//! (§9.7.2).

mod coding;
#[cfg(test)]
mod tests;

use coding::{Coding, Cursor};

use super::codec::expand_rlist;
use super::pdu::{Gap, Mrw, MrwAck, Sn, Status, Sufi};

/// State of a Receiver: it has received every AMD PDU with VR(R) ≤ SN < VR(H), except those in the gaps.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// VR(R): the next SN expected in sequence.
    pub vr_r: Sn,
    /// VR(H): the SN after the highest one that was received or is known to be missing.
    pub vr_h: Sn,
    /// Missing PDUs, in ascending order from VR(R) on. Gaps are not adjacent to each other.
    pub missing: &'a [Gap],
}

/// Writes an acknowledgement status report (§11.5.2.2): negative acknowledgements for all AMD PDUs detected
/// as missing, then ACK. The report is one STATUS PDU if `octets` bytes are enough, else several. `others`
/// (MRW_ACK, MRW, WINDOW, POLL) are at the beginning of the first STATUS PDU.
///
/// Choice: "which SUFI fields to use is implementation dependent" (§9.2.2.11). Each STATUS PDU uses the one
/// of LIST, RLIST and BITMAP that leaves the fewest missing PDUs to the next STATUS PDU. If several do, it
/// uses the shortest one.
///
/// §9.2.2.11.2: with LSN > VR(R), all erroneous AMD PDUs are in the same STATUS PDU. So each part of a report
/// of several STATUS PDUs has LSN = VR(R).
///
/// # Panics
///
/// If a STATUS PDU of `octets` bytes does not have room for `others` and an ACK, or for a single gap.
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
        let best = attempts.into_iter().min_by_key(|attempt| (attempt.remaining, attempt.nibbles));
        let best = best.expect("there are three codings");
        let whole = best.remaining == 0 && statuses.is_empty();
        let stuck = best.next == cursor && best.remaining > 0;
        assert!(!(stuck && sufis.is_empty()), "{octets} octets hold no gap at all");
        sufis.extend(best.sufis);
        sufis.push(Sufi::Ack { lsn: if whole { received.vr_h } else { received.vr_r } });
        statuses.push(Status(std::mem::take(&mut sufis)));
        cursor = best.next;
        if best.remaining == 0 {
            return statuses;
        }
    }
}

/// Writes a status report without LIST, BITMAP, RLIST and ACK, which Timer_Status_Prohibit does not restrict
/// (§9.5 f). It contains `others` and NO_MORE.
pub fn without_acknowledgement(mut others: Vec<Sufi>) -> Status {
    others.push(Sufi::NoMore);
    Status(others)
}

/// Content of a STATUS PDU. `None`: the super-field is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusContent {
    /// LSN of the ACK, which acknowledges every PDU below it that is not in `missing`.
    pub lsn: Option<Sn>,
    /// Negatively acknowledged PDUs, in the order of the report. §11.5.3: a PDU that is reported more than
    /// once is retransmitted only once, so it is listed once.
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

/// Reason for discarding a STATUS PDU although all of its fields are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// §10.2, inconsistent status indication: different status for the same AMD PDU.
    #[error("PDU {0} is reported both received and missing")]
    BothWays(Sn),
    /// §9.2.2.11.6: a relative list is invalid. A decoded PDU does not contain such a list.
    #[error("an invalid relative list")]
    Rlist,
    /// Choice: there are two MRW, two MRW_ACK or two POLL super-fields. The standard does not say which one
    /// applies.
    #[error("two super-fields of a type that may occur once")]
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

    /// Adds an SN. Returns `true` if the set did not contain it.
    const fn insert(&mut self, sn: Sn) -> bool {
        let new = !self.contains(sn);
        self.0[sn.get() as usize / 64] |= 1 << (sn.get() % 64);
        new
    }
}

/// Interprets a STATUS PDU. The Sender must check whether its SNs are erroneous (§10.1), because that depends
/// on VT(A) and VT(S).
///
/// Choice: for §10.2, a 1 in a BITMAP means that a PDU was received. A PDU that a LIST or RLIST omits does
/// not count as reported.
pub fn interpret(status: &Status) -> Result<StatusContent, Contradiction> {
    let mut content = StatusContent::default();
    let (mut received, mut missing) = (Set::new(), Set::new());
    let mut report_missing = |sn: Sn, content: &mut StatusContent| {
        if missing.insert(sn) {
            content.missing.push(sn);
        }
    };
    for sufi in &status.0 {
        match sufi {
            Sufi::NoMore => {}
            Sufi::Window { wsn } => content.window = Some(*wsn),
            Sufi::Ack { lsn } => content.lsn = Some(*lsn),
            Sufi::List(items) => {
                let gaps =
                    items.iter().map(|item| Gap { first: item.sn, count: u16::from(item.further) + 1 });
                gaps.flat_map(Gap::sns).for_each(|sn| report_missing(sn, &mut content));
            }
            Sufi::Bitmap { fsn, bits } => {
                for (octet, n) in bits.iter().zip(0..) {
                    for bit in 0..8 {
                        let sn = fsn.plus(8 * n + bit);
                        if octet << bit & 0x80 == 0 {
                            report_missing(sn, &mut content);
                        } else {
                            received.insert(sn);
                        }
                    }
                }
            }
            Sufi::Rlist { fsn, codewords } => {
                for gap in expand_rlist(*fsn, codewords) {
                    gap.map_err(|_| Contradiction::Rlist)?
                        .sns()
                        .for_each(|sn| report_missing(sn, &mut content));
                }
            }
            Sufi::Mrw(mrw) => once(&mut content.mrw, mrw.clone())?,
            Sufi::MrwAck(ack) => once(&mut content.mrw_ack, *ack)?,
            Sufi::Poll { sn } => once(&mut content.poll, *sn)?,
        }
    }
    match content.missing.iter().find(|sn| received.contains(**sn)) {
        Some(sn) => Err(Contradiction::BothWays(*sn)),
        None => Ok(content),
    }
}

/// Sets a value that may occur only once.
fn once<T>(slot: &mut Option<T>, value: T) -> Result<(), Contradiction> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Contradiction::Twice),
    }
}
