//! The decoder of RLC PDUs, and what is behind it: nothing that comes from the air may bring it down, and whatever
//! it takes must be written the same again.
//!
//! The first octet chooses the PDU size and whether HE = 10 is configured; then come PDUs, each behind an octet that
//! tells how much of it there is.

#![no_main]

use airlink::rlc::codec::{Format, decode, encode};
use airlink::rlc::pdu::{Pdu, Rest, Sn, Status};
use airlink::rlc::reassembly::{Delivery, Reassembler};
use airlink::rlc::report::{Received, acknowledge, interpret};
use libfuzzer_sys::fuzz_target;

const SIZES: [usize; 6] = [42, 8, 20, 126, 127, 200];
/// Configured_Rx_Window_Size.
const WINDOW: u16 = 512;

/// A receiver that is handed what the window lets pass.
struct Receiver {
    reassembler: Reassembler,
    vr_h: Sn,
}

impl Receiver {
    fn take(&mut self, pdu: Pdu) {
        match pdu {
            Pdu::Amd(amd) => {
                if let Rest::Piggybacked(status) = &amd.rest {
                    self.obey(status);
                }
                let vr_r = self.reassembler.vr_r();
                if amd.sn.since(vr_r) < WINDOW {
                    if amd.sn.since(vr_r) >= self.vr_h.since(vr_r) {
                        self.vr_h = amd.sn.next();
                    }
                    self.reassembler.receive(amd, |sdu| assert!(!sdu.is_empty(), "an SDU of 0 octets"));
                }
            }
            Pdu::Status(status) => self.obey(&status),
            Pdu::Reset(_) | Pdu::ResetAck(_) => {
                self.reassembler.reset();
                self.vr_h = Sn::ZERO;
            }
        }
    }

    fn obey(&mut self, status: &Status) {
        let Ok(told) = interpret(status) else { return };
        let Some(mrw) = told.mrw else { return };
        let vr_r = self.reassembler.vr_r();
        if let Some(to) = mrw.sns.last().filter(|to| to.since(vr_r) < WINDOW) {
            let beyond = to.since(vr_r) >= self.vr_h.since(vr_r);
            self.reassembler.move_window(*to, mrw.nlength, |_| {});
            if beyond {
                self.vr_h = self.reassembler.vr_r();
            }
        }
    }

    /// What the report says is missing is what is missing.
    fn check(&self, octets: usize) {
        let (vr_r, vr_h) = (self.reassembler.vr_r(), self.vr_h);
        let missing = self.reassembler.missing(vr_h);
        let statuses = acknowledge(Received { vr_r, vr_h, missing: &missing }, Vec::new(), octets);
        let told = statuses.iter().flat_map(|status| interpret(status).expect("our own report").missing);
        let mut named: Vec<_> = told.map(|sn| sn.since(vr_r)).collect();
        named.sort_unstable();
        named.dedup();
        let absent = (0..vr_h.since(vr_r)).filter(|ahead| !self.reassembler.holds(vr_r.plus(*ahead)));
        assert_eq!(named, absent.collect::<Vec<_>>());
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, mut data)) = data.split_first() else { return };
    let format =
        Format { pdu_size: SIZES[usize::from(*choice) % SIZES.len()], he_special: choice & 0x80 != 0 };
    let delivery = if choice & 0x40 != 0 { Delivery::AsSoonAsComplete } else { Delivery::InSequence };
    let mut receiver = Receiver { reassembler: Reassembler::new(delivery), vr_h: Sn::ZERO };
    while let Some((length, rest)) = data.split_first() {
        let (octets, after) = rest.split_at(rest.len().min(usize::from(*length)));
        data = after;
        let mut octets = octets.to_vec();
        if octets.first().is_some_and(|first| first & 0x80 != 0) {
            octets.resize(format.pdu_size, 0);
        }
        let Ok(pdu) = decode(&octets, format) else { continue };
        assert_eq!(decode(&encode(&pdu, format), format).as_ref(), Ok(&pdu));
        receiver.take(pdu);
    }
    receiver.check(format.pdu_size);
});
