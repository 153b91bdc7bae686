//! Long runs with random losses, grants and timers, across wraps of the sequence numbers.

use std::collections::BTreeSet;

use airtcp_testkit::sample::{cases, size};
use airwire::rng::Stream;
use proptest::prelude::*;

use super::*;
use crate::rlc::am::testing::{A, B, Channel, Link};

fn channel(seed: u64, loss: f64) -> Channel {
    Channel { seed, slot: ms(1), delay: ms(4), loss, late: 0.1, grants: (20, 1_500) }
}

fn link(config: &AmConfig, channel: Channel) -> Link<AmEntity> {
    Link::new([(); 2].map(|()| AmEntity::new(config.clone())), channel)
}

fn patient(sn_length: AmSnLength) -> AmConfig {
    let parameters = AmParameters { max_retx_threshold: 100_000, ..AmParameters::default() };
    AmConfig { sn_length, parameters, ..AmConfig::default() }
}

fn check_reports(link: &Link<AmEntity>, sn_length: AmSnLength) -> usize {
    link.check_reports(sn_length.bits(), |octets| match codec::decode(octets, sn_length) {
        Ok(codec::Pdu::Status(status)) => status,
        _ => panic!("a STATUS PDU that cannot be decoded"),
    })
}

#[test]
fn sdus_arrive_exactly_once_despite_heavy_loss() {
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.1), (4, 0.3), (5, 0.6)] {
        for sn_length in [AmSnLength::Bits12, AmSnLength::Bits18] {
            let mut link = link(&patient(sn_length), channel(seed, loss));
            let sent = link.exchange(400, 1_500);
            link.check_complete(B, &sent[A], false);
            link.check_complete(A, &sent[B], false);
            assert_eq!(check_reports(&link, sn_length) > 0, loss > 0.0);
        }
    }
}

#[test]
fn sdus_arrive_once_across_12_bit_wraps() {
    let channel = Channel { grants: (10, 400), ..channel(7, 0.2) };
    let mut link = link(&patient(AmSnLength::Bits12), channel);
    let sent = link.exchange(size(9_000, 30_000), 30);
    link.check_complete(B, &sent[A], false);
    link.check_complete(A, &sent[B], false);
    check_reports(&link, AmSnLength::Bits12);
}

#[test]
fn sdus_arrive_once_across_18_bit_wrap() {
    let mut config = patient(AmSnLength::Bits18);
    config.parameters.poll_pdu = Some(1024);
    let mut link = link(&config, Channel { grants: (40_000, 60_000), ..channel(8, 0.05) });
    link.keeps_log = false;
    let sent: Vec<_> = (0..270_000).map(|id: u64| Sdu { id, octets: id.to_be_bytes()[5..].into() }).collect();
    for chunk in sent.chunks(5_000) {
        chunk.iter().for_each(|sdu| link.ends[A].submit(sdu.clone()));
        link.run_until(link.now + ms(1));
    }
    link.run_until_idle(Duration::from_secs(60));
    link.check_complete(B, &sent, false);
}

fn configs() -> impl Strategy<Value = AmConfig> {
    let sn_length = prop::sample::select(vec![AmSnLength::Bits12, AmSnLength::Bits18]);
    let polls = (prop::option::of(1_u32..40), prop::option::of(1_u64..5_000));
    let timers = (1_u64..200, 0_u64..100, 0_u64..60);
    let subheaders = prop::sample::select(vec![MacSubheaders::NotCounted, MacSubheaders::Counted]);
    (sn_length, polls, timers, subheaders).prop_map(|(sn_length, polls, timers, mac_subheaders)| AmConfig {
        sn_length,
        parameters: AmParameters {
            poll_pdu: polls.0,
            poll_byte: polls.1,
            t_poll_retransmit: ms(timers.0),
            max_retx_threshold: 100_000,
            t_status_prohibit: ms(timers.1),
        },
        t_reassembly: ms(timers.2),
        mac_subheaders,
    })
}

proptest! {
    #![proptest_config(cases(size(60, 300)))]

    #[test]
    fn random_settings_deliver_every_sdu_exactly_once(
        config in configs(),
        seed in any::<u64>(),
        loss in 0.0..0.6,
        late in 0.0..0.5,
        delay in 0_u64..30,
        (least, most) in (12_u64..60, 0_u64..2_000),
        longest in prop::sample::select(vec![1_u64, 40, 1_500, 9_000]),
    ) {
        let grants = (least, least + most);
        let mut link = link(&config, Channel { seed, slot: ms(1), delay: ms(delay), loss, late, grants });
        let sent = link.exchange(60, longest);
        link.check_complete(B, &sent[A], false);
        link.check_complete(A, &sent[B], false);
        check_reports(&link, config.sn_length);
    }

    /// RLC continues after an indication to RRC, so every SDU that was not discarded arrives. An SDU whose
    /// transmission has begun cannot be discarded.
    #[test]
    fn nothing_is_lost_without_a_discard(seed in any::<u64>(), loss in 0.3..0.8, threshold in 1_u32..6) {
        let mut config = patient(AmSnLength::Bits12);
        config.parameters.max_retx_threshold = threshold;
        let mut draws = Stream::new(seed, "traffic");
        let mut link = link(&config, channel(seed, loss));
        let (mut sent, mut discarded) = (Vec::new(), BTreeSet::new());
        for id in 0..100 {
            let sdu = sdu(id, 8 + draws.below(1_000) as usize);
            link.ends[A].submit(sdu.clone());
            sent.push(sdu);
            link.run_until(link.now + ms(draws.below(5)));
            let old = draws.below(id + 1);
            if draws.chance(0.2) && link.ends[A].discard(old, &mut Vec::new()) {
                discarded.insert(old);
            }
        }
        link.run_until_idle(Duration::from_secs(600));
        sent.retain(|sdu| !discarded.contains(&sdu.id));
        let indicated: BTreeSet<_> = link.max_retx[A].iter().copied().collect();
        prop_assert_eq!(indicated.len(), link.max_retx[A].len(), "an SDU has at most one indication");
        prop_assert!(indicated.is_disjoint(&discarded));
        link.max_retx[A].clear();
        link.check_complete(B, &sent, false);
    }
}
