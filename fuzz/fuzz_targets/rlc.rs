//! The decoder of RLC PDUs, and the code that processes them. No input from the radio link may cause a panic,
//! and each decoded PDU must be the same after encoding and decoding it again.
//!
//! The first byte selects a fixed or flexible PDU size, whether HE = 10 is configured, and the code that
//! processes decoded PDUs: a reassembler, or an entity with its own traffic (see `Step`). For a reassembler,
//! each PDU follows a byte with its length.

#![cfg_attr(fuzzing, no_main)]

mod target;

use airlink::rlc::umts::codec::{Format, IndicatorSize, Sizing, decode, encode};
use airlink::rlc::umts::config::{Discard, PollConfig, ReceiverConfig, SenderConfig};
use airlink::rlc::umts::entity::{Entity, EntityConfig, Incoming, OneBlockFewer, Room, SduId, TimersStart};
use airlink::rlc::umts::pdu::{Pdu, Rest, Sn, Status};
use airlink::rlc::umts::reassembly::{Delivery, Reassembler};
use airlink::rlc::umts::status_report::{Received, acknowledge, interpret};
use airwire::time::{Duration, Instant};

target::run!(run);

const FORMATS: [Format; 9] = [
    Format::fixed(42),
    Format::fixed(8),
    Format::fixed(20),
    Format::fixed(126),
    Format::fixed(127),
    Format::fixed(200),
    flexible(42, IndicatorSize::Bits7),
    flexible(20, IndicatorSize::Bits15),
    flexible(1505, IndicatorSize::Bits15),
];

const fn flexible(most: usize, size: IndicatorSize) -> Format {
    Format { sizing: Sizing::Flexible(size), ..Format::fixed(most) }
}

/// Configured_Rx_Window_Size (TS 25.322).
const WINDOW: u16 = 512;

/// A receiver that passes the PDUs within the window to the reassembler.
struct Receiver {
    reassembler: Reassembler,
    vr_h: Sn,
}

impl Receiver {
    fn take(&mut self, pdu: Pdu<'_>) {
        match pdu {
            Pdu::Amd(amd) => {
                if let Rest::Piggybacked(status) = &amd.rest {
                    self.apply_status(status);
                }
                let vr_r = self.reassembler.vr_r();
                if amd.sn.since(vr_r) < WINDOW {
                    if amd.sn.since(vr_r) >= self.vr_h.since(vr_r) {
                        self.vr_h = amd.sn.next();
                    }
                    self.reassembler.receive(&amd, |sdu| assert!(!sdu.is_empty(), "an empty SDU"));
                }
            }
            Pdu::Status(status) => self.apply_status(&status),
            Pdu::Reset(_) | Pdu::ResetAck(_) => {
                self.reassembler.reset();
                self.vr_h = Sn::ZERO;
            }
        }
    }

    fn apply_status(&mut self, status: &Status) {
        let Ok(content) = interpret(status) else { return };
        let Some(mrw) = content.mrw else { return };
        let vr_r = self.reassembler.vr_r();
        if let Some(to) = mrw.sns.last().filter(|to| to.since(vr_r) < WINDOW) {
            let beyond = to.since(vr_r) >= self.vr_h.since(vr_r);
            self.reassembler.move_window(*to, mrw.nlength, |_| {});
            if beyond {
                self.vr_h = self.reassembler.vr_r();
            }
        }
    }

    /// Checks that the status report names exactly the missing PDUs.
    fn check(&self, pdu_size: usize) {
        let (vr_r, vr_h) = (self.reassembler.vr_r(), self.vr_h);
        let missing = self.reassembler.missing(vr_h);
        let statuses = acknowledge(Received { vr_r, vr_h, missing: &missing }, Vec::new(), pdu_size);
        let reported =
            statuses.iter().flat_map(|status| interpret(status).expect("our own report is valid").missing);
        let mut named: Vec<_> = reported.map(|sn| sn.since(vr_r)).collect();
        named.sort_unstable();
        named.dedup();
        let absent = (0..vr_h.since(vr_r)).filter(|ahead| !self.reassembler.holds(vr_r.plus(*ahead)));
        assert_eq!(named, absent.collect::<Vec<_>>());
    }
}

/// Fills an AMD PDU up to the PDU size if that is fixed.
fn filled(bytes: &[u8], format: Format) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if format.is_fixed() && bytes.first().is_some_and(|first| first & 0x80 != 0) {
        bytes.resize(format.pdu_size, 0);
    }
    bytes
}

/// One step of an entity, selected by a byte. Up to 127: the entity receives a PDU of this many
/// bytes, which follow. Up to 191: after a delay, a TTI with room for a few PDUs. Otherwise: the
/// entity gets an SDU.
enum Step {
    Receives(usize),
    Transmits { blocks: usize, after: Duration },
    Submits(usize),
}

impl From<u8> for Step {
    fn from(byte: u8) -> Self {
        match usize::from(byte) {
            bytes @ 0..128 => Self::Receives(bytes),
            tti @ 128..192 => {
                let after = Duration::from_millis([0, 10, 50, 200][tti % 4]);
                Self::Transmits { blocks: tti / 4 % 16, after }
            }
            size => Self::Submits(1 + (size - 192) * 40),
        }
    }
}

fn entity(choice: u8, settings: u8, format: Format) -> Entity {
    let ms = Duration::from_millis;
    let flag = |bit: u8| settings >> bit & 1 == 1;
    let window = if flag(0) { 2560 } else { 512 };
    let (max_dat, timer_mrw, max_mrw) = (4, ms(100), 4);
    let discard = match settings >> 6 {
        0 => Discard::Timer { timer_discard: ms(200), timer_mrw, max_mrw },
        1 => Discard::ResetAfterMaxDat { max_dat },
        _ => Discard::MrwAfterMaxDat { max_dat, timer_mrw, max_mrw },
    };
    let tti = ms(10);
    let config = EntityConfig {
        sender: SenderConfig {
            window,
            discard,
            poll: PollConfig { poll_sufi: flag(1), ..PollConfig::default() },
            send_mrw: flag(2),
            ..SenderConfig::default()
        },
        receiver: ReceiverConfig {
            window,
            timer_status_prohibit: flag(3).then_some(ms(50)),
            timer_epc: flag(4).then_some(ms(50)),
            in_sequence: choice & 0x40 == 0,
            piggyback: flag(5),
            ..ReceiverConfig::default()
        },
        sends: format,
        receives: format,
        timers: TimersStart::WhenSubmitted,
        incoming: Incoming { tti, blocks: 4 },
    };
    Entity::new(config, Instant::ZERO)
}

/// Runs an entity against an arbitrary peer. It must not transmit more PDUs than there are blocks,
/// set deadlines without end, or report more outcomes than there are SDUs.
fn run_against_arbitrary_peer(mut entity: Entity, format: Format, mut data: &[u8]) {
    let mut now = Instant::ZERO;
    let (mut submitted, mut outcomes) = (0, 0);
    while let Some((step, rest)) = data.split_first() {
        data = rest;
        match Step::from(*step) {
            Step::Receives(bytes) => {
                let (bytes, after) = data.split_at(data.len().min(bytes));
                data = after;
                entity.handle_pdu(now, &filled(bytes, format));
            }
            Step::Transmits { blocks, after } => {
                let end = now + after;
                let mut deadlines = 0;
                while let Some(at) = entity.next_deadline().filter(|at| *at <= end) {
                    now = now.max(at);
                    entity.handle_deadline(now);
                    deadlines += 1;
                    assert!(deadlines < 1_000, "too many deadlines in one step");
                }
                now = end;
                assert!(entity.pull(now, Room::Pdus(blocks), OneBlockFewer::HasFormat).len() <= blocks);
            }
            Step::Submits(bytes) => {
                entity.submit(now, SduId(submitted), vec![1; bytes]);
                submitted += 1;
            }
        }
        while entity.poll_sdu().is_some() {}
        while entity.poll_outcome().is_some() {
            outcomes += 1;
        }
        assert!(outcomes <= submitted, "an SDU has two outcomes");
        if entity.is_unrecoverable() {
            entity.reestablish(now, 0);
        }
    }
}

fn run(data: &[u8]) {
    let Some((choice, mut data)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let format = Format { he_special: choice & 0x80 != 0, ..format };
    if choice & 0x20 != 0 {
        let Some((settings, data)) = data.split_first() else { return };
        // Smaller PDU sizes cannot be configured.
        let format = Format { pdu_size: format.pdu_size.max(16), ..format };
        run_against_arbitrary_peer(entity(*choice, *settings, format), format, data);
        return;
    }
    let delivery = if choice & 0x40 != 0 { Delivery::AsSoonAsComplete } else { Delivery::InSequence };
    let mut receiver = Receiver { reassembler: Reassembler::new(delivery), vr_h: Sn::ZERO };
    while let Some((length, rest)) = data.split_first() {
        let (bytes, after) = rest.split_at(rest.len().min(usize::from(*length)));
        data = after;
        let bytes = filled(bytes, format);
        let Ok(pdu) = decode(&bytes, format) else { continue };
        assert_eq!(decode(&encode(&pdu, format), format).as_ref(), Ok(&pdu));
        receiver.take(pdu);
    }
    receiver.check(format.pdu_size);
}
