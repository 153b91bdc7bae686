//! Long runs with random losses, grants and timers, across wraps of the sequence numbers.

use std::collections::BTreeSet;

use airtcp_testkit::sample::{cases, size};
use airwire::rng::Stream;
use proptest::prelude::*;

use super::*;
use crate::rlc::am::testing::{A, B, Channel, Link};
use crate::rlc::lte::LiLength;

fn channel(seed: u64, loss: f64) -> Channel {
    Channel { seed, slot: ms(1), delay: ms(4), loss, late: 0.1, grants: (20, 1_500) }
}

fn link(config: &AmConfig, channel: Channel) -> Link<AmEntity> {
    Link::new([(); 2].map(|()| AmEntity::new(config.clone())), channel)
}

fn patient(format: AmFormat) -> AmConfig {
    let parameters = AmParameters { max_retx_threshold: 100_000, ..AmConfig::default().parameters };
    AmConfig { format, parameters, ..AmConfig::default() }
}

fn check_reports(link: &Link<AmEntity>, format: AmFormat) -> usize {
    link.check_reports(format.sn.bits(), |octets| match codec::decode(octets, format) {
        Ok(codec::Pdu::Status(status)) => status,
        _ => panic!("a STATUS PDU that cannot be decoded"),
    })
}

fn formats() -> Vec<AmFormat> {
    let lengths = [AmSnLength::Bits10, AmSnLength::Bits16];
    lengths
        .iter()
        .flat_map(|sn| [LiLength::Bits11, LiLength::Bits15].map(|li| AmFormat { sn: *sn, li }))
        .collect()
}

#[test]
fn sdus_arrive_once_in_sequence_despite_heavy_loss() {
    for (seed, loss) in [(1, 0.0), (2, 0.01), (3, 0.1), (4, 0.3), (5, 0.6)] {
        for format in formats() {
            let mut link = link(&patient(format), channel(seed, loss));
            let sent = link.exchange(300, 1_500);
            link.check_complete(B, &sent[A], true);
            link.check_complete(A, &sent[B], true);
            assert_eq!(check_reports(&link, format) > 0, loss > 0.0);
        }
    }
}

#[test]
fn sdus_arrive_in_sequence_across_10_bit_wraps() {
    let channel = Channel { grants: (8, 60), ..channel(7, 0.2) };
    let mut link = link(&patient(AmFormat::default()), channel);
    let sent = link.exchange(size(3_000, 15_000), 60);
    link.check_complete(B, &sent[A], true);
    link.check_complete(A, &sent[B], true);
    check_reports(&link, AmFormat::default());
}

#[test]
fn sdus_arrive_in_sequence_across_16_bit_wrap() {
    let mut config = patient(AmFormat { sn: AmSnLength::Bits16, ..AmFormat::default() });
    config.parameters.poll_pdu = Some(256);
    let mut link = link(&config, Channel { grants: (4, 60), ..channel(8, 0.05) });
    link.keeps_log = false;
    let sent: Vec<_> = (0..70_000).map(|id: u64| Sdu { id, octets: id.to_be_bytes()[..].into() }).collect();
    for sdu in &sent {
        link.ends[A].submit(sdu.clone());
        link.run_until(link.now + ms(1));
    }
    link.run_until_idle(Duration::from_secs(60));
    link.check_complete(B, &sent, true);
}

fn configs() -> impl Strategy<Value = AmConfig> {
    let polls = (prop::option::of(1_u32..40), prop::option::of(1_u64..5_000));
    let timers = (1_u64..200, 0_u64..100, 0_u64..60);
    let subheaders = prop::sample::select(vec![MacSubheaders::NotCounted, MacSubheaders::Counted]);
    let format = prop::sample::select(formats());
    (format, polls, timers, subheaders).prop_map(|(format, polls, timers, mac_subheaders)| AmConfig {
        format,
        parameters: AmParameters {
            poll_pdu: polls.0,
            poll_byte: polls.1,
            t_poll_retransmit: ms(timers.0),
            max_retx_threshold: 100_000,
            t_status_prohibit: ms(timers.1),
        },
        t_reordering: ms(timers.2),
        mac_subheaders,
    })
}

proptest! {
    #![proptest_config(cases(size(60, 300)))]

    #[test]
    fn random_settings_deliver_every_sdu_once_in_sequence(
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
        link.check_complete(B, &sent[A], true);
        link.check_complete(A, &sent[B], true);
        check_reports(&link, config.format);
    }

    /// RLC continues after an indication to RRC, so every SDU that was not discarded arrives.
    #[test]
    fn nothing_is_lost_without_a_discard(seed in any::<u64>(), loss in 0.3..0.8, threshold in 1_u32..6) {
        let mut config = patient(AmFormat::default());
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
        prop_assert!(link.max_retx[A].iter().all(|id| !discarded.contains(id)));
        link.max_retx[A].clear();
        link.check_complete(B, &sent, true);
    }
}
