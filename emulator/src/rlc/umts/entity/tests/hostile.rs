//! A peer that sends arbitrary PDUs that can be encoded. It may disrupt the bearer, but not the entity. The
//! entity does not panic or loop forever, sends no more PDUs than there are blocks, and still reports one
//! outcome for each SDU.

use airtcp_testkit::sample::{cases, size};
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::codec::tests::any_pdu;

#[derive(Clone, Debug)]
enum Step {
    Submit { octets: usize },
    Wait { millis: u64 },
    Pull { blocks: usize },
    Receive { pdu: Pdu<'static>, near: Near },
}

/// Base of the sequence numbers in a PDU. With this base, most numbers are inside a window.
#[derive(Clone, Copy, Debug)]
enum Near {
    Zero,
    VtS,
    VrR,
}

/// A sequence number close to 0, modulo 4096, or any other one.
fn sns() -> impl Strategy<Value = Sn> + Clone {
    prop_oneof![4 => 4_076_u16..4_106, 1 => 0..4_096_u16].prop_map(Sn::new)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = prop::sample::select(vec![Near::Zero, Near::VtS, Near::VtS, Near::VrR, Near::VrR]);
    let step = prop_oneof![
        2 => (1_usize..3_000).prop_map(|octets| Step::Submit { octets }),
        2 => (0_u64..300).prop_map(|millis| Step::Wait { millis }),
        4 => (0_usize..40).prop_map(|blocks| Step::Pull { blocks }),
        8 => (any_pdu(FORMAT, sns()), near).prop_map(|(pdu, near)| Step::Receive { pdu, near }),
    ];
    prop::collection::vec(step, 1..80)
}

fn shift(pdu: &mut Pdu<'_>, by: u16) {
    let shift_all = |Status(sufis): &mut Status| {
        for sufi in sufis {
            let sns: &mut [Sn] = match sufi {
                Sufi::NoMore | Sufi::Window { .. } => &mut [],
                Sufi::List(items) => {
                    items.iter_mut().for_each(|item| item.sn = item.sn.plus(by));
                    &mut []
                }
                Sufi::Mrw(Mrw { sns, .. }) => sns,
                Sufi::Ack { lsn: sn }
                | Sufi::Bitmap { fsn: sn, .. }
                | Sufi::Rlist { fsn: sn, .. }
                | Sufi::MrwAck(MrwAck { sn_ack: sn, .. })
                | Sufi::Poll { sn } => std::slice::from_mut(sn),
            };
            sns.iter_mut().for_each(|sn| *sn = sn.plus(by));
        }
    };
    match pdu {
        Pdu::Amd(amd) => {
            amd.sn = amd.sn.plus(by);
            if let Rest::Piggybacked(status) = &mut amd.rest {
                shift_all(status);
            }
        }
        Pdu::Status(status) => shift_all(status),
        Pdu::Reset(_) | Pdu::ResetAck(_) => {}
    }
}

fn configs() -> impl Strategy<Value = EntityConfig> {
    let windows = prop::sample::select(vec![1_u16, 8, 512, 2_047, 2_560, 4_095]);
    let tsp = prop::option::of((10_u64..200).prop_map(ms));
    (windows, 0..3, 1_u8..5, tsp, any::<[bool; 8]>()).prop_map(|(window, discard, limit, tsp, flags)| {
        let mut config = quiet();
        (config.sender.window, config.receiver.window) = (window, window);
        let timer_mrw = ms(100);
        config.sender.discard = match discard {
            0 => Discard::ResetAfterMaxDat { max_dat: limit },
            1 => Discard::MrwAfterMaxDat { max_dat: limit, timer_mrw, max_mrw: limit },
            _ => Discard::Timer { timer_discard: ms(200), timer_mrw, max_mrw: limit },
        };
        config.sender.poll = PollConfig { poll_sufi: flags[0], ..PollConfig::default() };
        config.sender.send_mrw = flags[1];
        config.sender.ignore_nack_within = flags[2].then_some(ms(70));
        config.receiver.timer_status_prohibit = tsp;
        config.receiver.missing_pdu_indicator = flags[3];
        config.receiver.in_sequence = flags[4];
        config.receiver.piggyback = flags[5];
        config.receiver.timer_epc = flags[6].then_some(ms(100));
        config.receiver.timer_status_periodic = flags[7].then_some(ms(100));
        config
    })
}

struct EntityUnderTest {
    entity: Entity,
    now: Instant,
    submitted: u64,
    settled: std::collections::BTreeSet<u64>,
}

impl EntityUnderTest {
    fn perform(&mut self, step: Step) {
        match step {
            Step::Submit { octets } => {
                self.entity.submit(self.now, SduId(self.submitted), vec![1; octets]);
                self.submitted += 1;
            }
            Step::Wait { millis } => self.wait(ms(millis)),
            Step::Pull { blocks } => {
                let pdus = self.entity.pull(self.now, Room::Pdus(blocks), OneBlockFewer::HasFormat);
                assert!(pdus.len() <= blocks);
                for pdu in pdus {
                    assert_eq!(pdu.octets.len(), FORMAT.pdu_size);
                    decode(&pdu.octets, FORMAT).expect("an entity sends decodable PDUs");
                }
            }
            Step::Receive { mut pdu, near } => {
                let by = match near {
                    Near::Zero => 0,
                    Near::VtS => wire(self.entity.transmitter.vt_s()).get(),
                    Near::VrR => wire(self.entity.receiver.vr_r()).get(),
                };
                shift(&mut pdu, by);
                self.entity.handle_pdu(self.now, &encode(&pdu, FORMAT));
            }
        }
        self.collect();
    }

    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut deadlines = 0;
        while let Some(at) = self.entity.next_deadline().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.entity.handle_deadline(self.now);
            deadlines += 1;
            assert!(deadlines < 1_000, "the entity keeps scheduling deadlines");
        }
        self.now = end;
    }

    fn collect(&mut self) {
        while let Some(sdu) = self.entity.poll_sdu() {
            assert!(!sdu.is_empty());
        }
        while let Some((SduId(id), _)) = self.entity.poll_outcome() {
            assert!(id < self.submitted && self.settled.insert(id), "SDU {id} has two outcomes");
        }
        if self.entity.is_unrecoverable() {
            self.entity.reestablish(self.now, 0);
            self.collect();
        }
    }
}

proptest! {
    #![proptest_config(cases(size(300, 1_000)))]

    #[test]
    fn hostile_pdus_leave_one_outcome_per_sdu(config in configs(), steps in steps()) {
        let entity = Entity::new(config, Instant::ZERO);
        let mut tested = EntityUnderTest { entity, now: Instant::ZERO, submitted: 0, settled: Default::default() };
        for step in steps {
            tested.perform(step);
        }
        // Re-establishment gives up all SDUs whose transmission has begun, each exactly once.
        tested.entity.reestablish(tested.now, 0);
        tested.collect();
        let (unsent, _) = tested.entity.unsent();
        prop_assert_eq!(tested.settled.len() + unsent, tested.submitted as usize);
    }
}
