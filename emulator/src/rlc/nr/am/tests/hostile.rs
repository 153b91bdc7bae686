//! A peer that sends arbitrary octets. The entity does not panic and still confirms each SDU at most once.

use std::collections::BTreeSet;

use airtcp_testkit::sample::{cases, size};
use proptest::prelude::*;

use super::*;
use crate::rlc::am::{Nack, NackSegment, Status};

#[derive(Clone, Debug)]
enum Step {
    Submit(usize),
    Pull(usize),
    Wait(u64),
    Octets(Vec<u8>),
    Data {
        sn: i64,
        poll: bool,
        so: u16,
        is_last: bool,
        octets: usize,
    },
    /// The sequence numbers are distances from the highest one that was sent.
    Status {
        ack: i64,
        nacks: Vec<NackFields>,
    },
    Reestablish,
}

/// Distance of NACK_SN, NACK range, SOstart and SOend.
type NackFields = (i64, u8, Option<(u16, u16)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = || prop_oneof![6 => -3_i64..20, 1 => any::<i32>().prop_map(i64::from)];
    let segment = prop::option::of((0_u16..40, prop_oneof![0_u16..40, Just(0xffff)]));
    let nacks = prop::collection::vec((near(), 1_u8..=255, segment), 0..6);
    let data = (near(), any::<bool>(), 0_u16..30, any::<bool>(), 1_usize..30);
    let step = prop_oneof![
        20 => (1_usize..200).prop_map(Step::Submit),
        40 => (0_usize..300).prop_map(Step::Pull),
        20 => (0_u64..60).prop_map(Step::Wait),
        20 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Octets),
        60 => data.prop_map(|(sn, poll, so, is_last, octets)| Step::Data { sn, poll, so, is_last, octets }),
        60 => (near(), nacks).prop_map(|(ack, nacks)| Step::Status { ack, nacks }),
        1 => Just(Step::Reestablish),
    ];
    prop::collection::vec(step, 1..150)
}

struct Tested {
    entity: AmEntity,
    sn_length: AmSnLength,
    now: Instant,
    submitted: u64,
    confirmed: BTreeSet<u64>,
    /// The sequence number after the highest one that was sent.
    end: u64,
}

impl Tested {
    fn perform(&mut self, step: Step) {
        let mut events = Vec::new();
        match step {
            Step::Submit(octets) => {
                self.entity.submit(sdu(self.submitted, octets));
                self.submitted += 1;
            }
            Step::Pull(octets) => self.pull(octets),
            Step::Wait(millis) => {
                self.now += ms(millis);
                events = self.entity.waited(self.now);
            }
            Step::Octets(octets) => {
                let _ = self.entity.receive(self.now, &octets, &mut events);
            }
            Step::Data { sn, poll, so, is_last, octets } => {
                let position = match (so, is_last) {
                    (0, true) => Position::Whole,
                    (0, false) => Position::First,
                    (so, true) => Position::Last { so },
                    (so, false) => Position::Middle { so },
                };
                let sn = self.sn_length.bits().wire(sn as u64);
                let pdu = Amd { poll, position, sn, data: &vec![0; octets] }.encode(self.sn_length);
                let _ = self.entity.receive(self.now, &pdu, &mut events);
            }
            Step::Status { ack, nacks } => {
                let pdu = self.status(ack, &nacks);
                let _ = self.entity.receive(self.now, &pdu, &mut events);
            }
            Step::Reestablish => {
                self.entity.reestablish();
                self.end = 0;
            }
        }
        events.into_iter().for_each(|event| self.check(event));
        self.entity.buffer_status();
    }

    fn pull(&mut self, octets: usize) {
        for pdu in self.entity.pulled(self.now, octets) {
            codec::decode(&pdu.octets, self.sn_length).expect("an entity sends decodable PDUs");
            if let PduKind::Data { sn, .. } = pdu.kind {
                self.end = self.end.max(sn + 1);
            }
        }
    }

    fn status(&self, ack: i64, nacks: &[NackFields]) -> Vec<u8> {
        let sn = |distance: i64| self.end.wrapping_sub(distance as u64);
        let segment = |(start, end): (u16, u16)| NackSegment {
            start: start.into(),
            end: (end != 0xffff).then_some(end.into()),
        };
        let nacks = nacks.iter().map(|(distance, range, offsets)| Nack {
            sn: sn(*distance),
            range: *range,
            segment: offsets.map(segment),
        });
        codec::encode_status(&Status { ack_sn: sn(ack), nacks: nacks.collect() }, self.sn_length)
    }

    fn check(&mut self, event: Event) {
        match event {
            Event::Delivered(octets) => assert!(!octets.is_empty()),
            Event::Confirmed(id) => {
                assert!(id < self.submitted && self.confirmed.insert(id), "SDU {id} is confirmed twice");
            }
            Event::MaxRetx(id) => assert!(id < self.submitted),
        }
    }
}

proptest! {
    #![proptest_config(cases(size(500, 3_000)))]

    #[test]
    fn arbitrary_pdus_do_not_confuse_an_entity(steps in steps(), is_long in any::<bool>()) {
        let sn_length = if is_long { AmSnLength::Bits18 } else { AmSnLength::Bits12 };
        let entity = AmEntity::new(config(sn_length));
        let confirmed = BTreeSet::new();
        let mut tested = Tested { entity, sn_length, now: at(0), submitted: 0, confirmed, end: 0 };
        for step in steps {
            tested.perform(step);
        }
    }
}
