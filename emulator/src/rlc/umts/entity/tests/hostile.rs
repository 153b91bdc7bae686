//! A peer that sends arbitrary PDUs that can be encoded. It may disrupt the bearer, but not the entity, which
//! does not panic or loop forever, sends no more PDUs than there are blocks, and still reports one outcome
//! for each SDU.

use airtcp_testkit::sample::size;
use proptest::prelude::*;

use super::*;
use crate::rlc::umts::codec::{push_burst, push_distance};
use crate::rlc::umts::pdu::Previous;

#[derive(Clone, Debug)]
enum Step {
    Submit { octets: usize },
    Wait { millis: u64 },
    Pull { blocks: usize },
    Hear { pdu: Pdu<'static>, near: Near },
}

/// Base of the sequence numbers in a PDU. It is chosen so that most of them are inside a window.
#[derive(Clone, Copy, Debug)]
enum Near {
    Zero,
    VtS,
    VrR,
}

/// A sequence number close to 0, modulo 4096, or any other one.
fn sns() -> impl Strategy<Value = Sn> {
    prop_oneof![4 => 4_076_u16..4_106, 1 => 0..4_096_u16].prop_map(Sn::new)
}

fn sufis() -> impl Strategy<Value = Sufi> {
    let items = (sns(), 0_u8..16).prop_map(|(sn, further)| ListItem { sn, further });
    let bits = prop::collection::vec(any::<u8>(), 1..8);
    let distances = prop::collection::vec((1_u16..60, any::<bool>()), 0..4);
    let codewords = distances.prop_map(|distances| {
        let mut codewords = Vec::new();
        for (distance, burst) in distances {
            if burst { push_burst(distance, &mut codewords) } else { push_distance(distance, &mut codewords) }
        }
        codewords
    });
    prop_oneof![
        (0_u16..4_096).prop_map(|wsn| Sufi::Window { wsn }),
        prop::collection::vec(items, 1..5).prop_map(Sufi::List),
        (sns(), bits).prop_map(|(fsn, bits)| Sufi::Bitmap { fsn, bits }),
        (sns(), codewords).prop_map(|(fsn, codewords)| Sufi::Rlist { fsn, codewords }),
        (prop::collection::vec(sns(), 1..4), any::<bool>(), 0_u8..16).prop_map(|(sns, long, nlength)| {
            Sufi::Mrw(Mrw { long_distance: long && sns.len() == 1, sns, nlength })
        }),
        (0_u8..16, sns()).prop_map(|(n, sn_ack)| Sufi::MrwAck(MrwAck { n, sn_ack })),
        sns().prop_map(|sn| Sufi::Poll { sn }),
    ]
}

fn statuses() -> impl Strategy<Value = Status> {
    let end = prop_oneof![3 => sns().prop_map(|lsn| Sufi::Ack { lsn }), 1 => Just(Sufi::NoMore)];
    (prop::collection::vec(sufis(), 0..3), end)
        .prop_map(|(mut sufis, end)| {
            sufis.push(end);
            Status(sufis)
        })
        .prop_filter("the STATUS PDU must fit in the PDU size", |status| status.octets() <= FORMAT.pdu_size)
}

fn amds() -> impl Strategy<Value = Amd<'static>> {
    let ends = prop::collection::btree_set(1_u16..30, 0..4);
    let piggybacked = prop::option::of(statuses());
    (sns(), any::<(bool, bool)>(), ends, piggybacked).prop_map(|(sn, (poll, previous), ends, status)| {
        let ends: Vec<u16> = ends.into_iter().collect();
        let previous = if previous { Previous::EndedExactly } else { Previous::NotIndicated };
        let indicators = usize::from(previous != Previous::NotIndicated) + ends.len();
        let last = usize::from(ends.last().copied().unwrap_or(0));
        let room = FORMAT.body() - indicators;
        let (octets, rest) = match status {
            Some(status) if status.octets() + last < room => (last, Rest::Piggybacked(status)),
            _ if poll => (last, Rest::Padding),
            _ => (room, Rest::Nothing),
        };
        Amd { sn, poll, previous, ends, data: vec![7; octets].into(), rest }
    })
}

fn pdus() -> impl Strategy<Value = Pdu<'static>> {
    let reset = (any::<bool>(), 0_u32..1 << 20).prop_map(|(rsn, hfni)| Reset { rsn, hfni });
    prop_oneof![
        8 => statuses().prop_map(Pdu::Status),
        4 => amds().prop_map(Pdu::Amd),
        1 => reset.clone().prop_map(Pdu::Reset),
        2 => reset.prop_map(Pdu::ResetAck),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let near = prop::sample::select(vec![Near::Zero, Near::VtS, Near::VtS, Near::VrR, Near::VrR]);
    let step = prop_oneof![
        2 => (1_usize..3_000).prop_map(|octets| Step::Submit { octets }),
        2 => (0_u64..300).prop_map(|millis| Step::Wait { millis }),
        4 => (0_usize..40).prop_map(|blocks| Step::Pull { blocks }),
        8 => (pdus(), near).prop_map(|(pdu, near)| Step::Hear { pdu, near }),
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

struct Victim {
    entity: Entity,
    now: Instant,
    submitted: u64,
    content: std::collections::BTreeSet<u64>,
}

impl Victim {
    fn take(&mut self, step: Step) {
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
            Step::Hear { mut pdu, near } => {
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
            assert!(id < self.submitted && self.content.insert(id), "SDU {id} has two outcomes");
        }
        if self.entity.is_unrecoverable() {
            self.entity.reestablish(self.now, 0);
            self.collect();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(size(300, 1_000)) })]

    #[test]
    fn hostile_pdus_leave_one_outcome_per_sdu(config in configs(), steps in steps()) {
        let entity = Entity::new(config, Instant::ZERO);
        let mut victim = Victim { entity, now: Instant::ZERO, submitted: 0, content: Default::default() };
        for step in steps {
            victim.take(step);
        }
        // Re-establishment gives up all SDUs whose transmission has begun, and none of them twice.
        victim.entity.reestablish(victim.now, 0);
        victim.collect();
        let (waiting, _) = victim.entity.unsent();
        prop_assert_eq!(victim.content.len() + waiting, victim.submitted as usize);
    }
}
