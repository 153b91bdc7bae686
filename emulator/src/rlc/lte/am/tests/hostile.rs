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
        segment: Option<(u32, bool)>,
        fi: u8,
        lengths: Vec<u32>,
    },
    /// The sequence numbers are distances from the highest one that was sent.
    Status {
        ack: i64,
        nacks: Vec<(i64, Option<(u16, u16)>)>,
    },
    Reestablish,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = || prop_oneof![6 => -3_i64..20, 1 => any::<i32>().prop_map(i64::from)];
    let offsets = prop::option::of((0_u16..40, prop_oneof![0_u16..40, Just(0x7fff)]));
    let nacks = prop::collection::vec((near(), offsets), 0..6);
    let segment = prop::option::weighted(0.6, (0_u32..30, any::<bool>()));
    let data = (near(), any::<bool>(), segment, 0_u8..4, prop::collection::vec(1_u32..20, 1..5));
    let step = prop_oneof![
        20 => (1_usize..200).prop_map(Step::Submit),
        40 => (0_usize..300).prop_map(Step::Pull),
        20 => (0_u64..60).prop_map(Step::Wait),
        20 => prop::collection::vec(any::<u8>(), 0..40).prop_map(Step::Octets),
        60 => data.prop_map(|(sn, poll, segment, fi, lengths)| Step::Data { sn, poll, segment, fi, lengths }),
        60 => (near(), nacks).prop_map(|(ack, nacks)| Step::Status { ack, nacks }),
        1 => Just(Step::Reestablish),
    ];
    prop::collection::vec(step, 1..150)
}

struct Tested {
    entity: AmEntity,
    format: AmFormat,
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
            Step::Pull(octets) => {
                for pdu in self.entity.pulled(self.now, octets) {
                    codec::decode(&pdu.octets, self.format).expect("an entity sends decodable PDUs");
                    if let PduKind::Data { sn, .. } = pdu.kind {
                        self.end = self.end.max(sn + 1);
                    }
                }
            }
            Step::Wait(millis) => {
                self.now += ms(millis);
                events = self.entity.waited(self.now);
            }
            Step::Octets(octets) => {
                let _ = self.entity.receive(self.now, &octets, &mut events);
            }
            Step::Data { sn, poll, segment, fi, lengths } => {
                let segment = segment.map(|(so, is_last)| SegmentFields { is_last, so });
                let pdu = self.data(sn, poll, segment, fi, &lengths);
                let _ = self.entity.receive(self.now, &pdu, &mut events);
            }
            Step::Status { ack, nacks } => {
                let pdu = self.status(ack, &nacks);
                let _ = self.entity.receive(self.now, &pdu, &mut events);
            }
            Step::Reestablish => {
                self.entity.reestablish(&mut events);
                self.end = 0;
            }
        }
        events.into_iter().for_each(|event| self.check(event));
        self.entity.buffer_status();
    }

    /// A data PDU with elements of these lengths.
    fn data(&self, sn: i64, poll: bool, segment: Option<SegmentFields>, fi: u8, lengths: &[u32]) -> Vec<u8> {
        let ends = lengths.iter().scan(0, |end, length| {
            *end += length;
            Some(*end)
        });
        let mut ends: codec::Offsets = ends.collect();
        let octets = vec![0; ends.pop().unwrap_or(1) as usize];
        let (starts_sdu, ends_sdu) = (fi & 0b10 == 0, fi & 0b01 == 0);
        let data = DataField { starts_sdu, ends_sdu, ends, octets: &octets };
        Amd { poll, sn: self.format.sn.bits().wire(sn as u64), segment, data }.encode(self.format)
    }

    fn status(&self, ack: i64, nacks: &[(i64, Option<(u16, u16)>)]) -> Vec<u8> {
        let sn = |distance: i64| self.end.wrapping_sub(distance as u64);
        let segment = |(start, end): (u16, u16)| NackSegment {
            start: start.into(),
            end: (end != 0x7fff).then_some(end.into()),
        };
        let nacks = nacks
            .iter()
            .map(|(distance, offsets)| Nack { segment: offsets.map(segment), ..Nack::of(sn(*distance)) });
        codec::encode_status(&Status { ack_sn: sn(ack), nacks: nacks.collect() }, self.format.sn)
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
        let sn = if is_long { AmSnLength::Bits16 } else { AmSnLength::Bits10 };
        let format = AmFormat { sn, ..AmFormat::default() };
        let entity = AmEntity::new(AmConfig { format, ..config() });
        let confirmed = BTreeSet::new();
        let mut tested = Tested { entity, format, now: at(0), submitted: 0, confirmed, end: 0 };
        for step in steps {
            tested.perform(step);
        }
    }
}
