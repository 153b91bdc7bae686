//! One mobile's share, driven by hand: what its blocks carry, how many are lost, and in which order they come out.

use std::cell::Cell;
use std::sync::Arc;

use airtcp_testkit::sample::size;
use proptest::prelude::*;

use super::config::FastFading;
use super::*;
use crate::rlc::umts::entity::PduKind;
use crate::stages::testing::within_binomial;

const OCTETS: usize = 42;
const FRAMING: Framing = Framing::Hs { pdu: OCTETS };

fn link(config: &HsdpaConfig, seed: u64) -> Link {
    Link::new(config, config.snr.value(), FRAMING, Duration::ZERO, seed, "radio/down")
}

fn pdu(number: u32) -> Outgoing {
    let mut octets = vec![0; OCTETS];
    octets[..4].copy_from_slice(&number.to_be_bytes());
    Outgoing { octets: octets.into(), kind: PduKind::Status, epoch: 0 }
}

/// What a link that always has something to send does in so many TTIs: the numbers of the PDUs that go on at the mobile.
fn saturate(link: &mut Link, ttis: u64) -> Vec<u32> {
    let next = Cell::new(0);
    let mut landed = Vec::new();
    let mut numbers = |flight: Flight| {
        let first = |block: &Arc<[u8]>| u32::from_be_bytes(*block.first_chunk().unwrap());
        landed.extend(flight.blocks.iter().map(first));
    };
    for tti in 0..ttis {
        let now = Instant::ZERO + TTI * tti;
        while let Some(flight) = link.land(now) {
            numbers(flight);
        }
        if link.bid(now, true).is_some() {
            let fill = |room: Room| {
                let pdus = std::iter::repeat_with(|| pdu(next.replace(next.get() + 1)));
                pdus.take(room.pdus()).collect()
            };
            if let Some(transmission) = link.block(now, fill) {
                link.transmit(now, transmission, |_, _| {});
            }
        }
    }
    while let Some(at) = link.next_landing() {
        numbers(link.land(at).unwrap());
    }
    landed
}

#[test]
fn a_block_takes_as_many_pdus_as_the_table_says_and_each_tti_has_one() {
    // Loud enough that nothing is lost: CQI 30, as far as the category goes.
    for (category, spacing, pdus) in
        [(1, 3, 21), (3, 2, 21), (6, 1, 21), (8, 1, 42), (9, 1, 51), (10, 1, 70), (12, 1, 9)]
    {
        let config = HsdpaConfig { category, snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() };
        let mut link = link(&config, 1);
        let landed = saturate(&mut link, 600);
        assert_eq!(landed.len() as u64, 600 / spacing * pdus, "category {category}");
        assert!(landed.iter().copied().eq(0..landed.len() as u32));
        assert_eq!((link.counters.ttis, link.counters.first_damaged), (600 / spacing, 0));
    }
}

#[test]
fn fewer_processes_than_a_round_trip_has_ttis_leave_ttis_unused() {
    for processes in 1..=6 {
        let config = HsdpaConfig { processes, snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() };
        let mut link = link(&config, 1);
        saturate(&mut link, 600);
        assert_eq!(link.counters.ttis, 100 * u64::from(processes));
    }
}

/// At the least ratio at which it reports a CQI, the chance of a loss is highest.
fn least(cqi: u8) -> f64 {
    (f64::from(cqi) - 16.62) * 1.02 + 1e-6
}

#[test]
fn first_transmissions_are_damaged_as_often_as_the_formula_says() {
    for cqi in [5, 8, 15, 20] {
        let snr = format!("{}dB", least(cqi));
        let config = HsdpaConfig { snr: snr.parse().unwrap(), transmissions: 1, ..HsdpaConfig::default() };
        let expected = Cqi::of(config.snr.value()).bler(config.snr.value());
        let (mut blocks, mut damaged) = (0, 0);
        for seed in 0..20 {
            let mut link = link(&config, seed);
            let landed = saturate(&mut link, 1000);
            assert_eq!(link.counters.first_damaged, link.counters.lost, "there is only one transmission");
            assert_eq!(landed.len() as u64 % link.largest_now(), 0);
            blocks += link.counters.blocks;
            damaged += link.counters.first_damaged;
        }
        assert_eq!(blocks, 20_000);
        within_binomial(damaged as usize, blocks as usize, expected);
    }
}

impl Link {
    fn largest_now(&self) -> u64 {
        FRAMING.pdus(self.cqi(Instant::ZERO)) as u64
    }
}

/// Chase combining: after k transmissions a block is lost with the product of BLER(n · SNR) for n = 1 to k.
#[test]
fn what_is_left_after_some_transmissions_is_the_product_of_their_losses() {
    let cqi = Cqi::of(least(5));
    for (snr, transmissions) in [(-12.5, 1), (-15.2, 2), (-16.9, 2), (-16.9, 3), (-18.2, 4)] {
        let losses = (1..=transmissions).map(|n| cqi.bler(snr + 10.0 * f64::from(n).log10()));
        let expected: f64 = losses.product();
        let rules = Rules { round_trip: Duration::from_millis(12), transmissions };
        let mut draws = Stream::new(u64::from(transmissions), "test");
        let mut lost = 0;
        for number in 0..20_000 {
            let mut harq = Harq::new(1);
            let mut block = Some(Block { number, cqi, content: (), transmissions: 0, energy: 0.0 });
            while let Some(again) = block.take() {
                let is_lost = |cqi: Cqi, energy| draws.unit() < cqi.bler(decibels(energy));
                match harq.transmit(Instant::ZERO, 0, again, ratio(snr), rules, is_lost) {
                    Outcome::Arrives(_) => {}
                    Outcome::Lost(_) => lost += 1,
                    Outcome::Waits => block = harq.take(0),
                }
            }
        }
        within_binomial(lost, 20_000, expected);
    }
}

#[test]
fn a_block_is_no_larger_than_what_it_carries_needs() {
    let config = HsdpaConfig { snr: "12dB".parse().unwrap(), ..HsdpaConfig::default() };
    let mut link = link(&config, 1);
    assert_eq!(link.bid(Instant::ZERO, true), Some(21 * OCTETS));
    let transmission = link.block(Instant::ZERO, |room| {
        assert_eq!(room, Room::Pdus(21));
        vec![pdu(0), pdu(1)]
    });
    let transmission = transmission.unwrap();
    assert_eq!(transmission.new_octets, 2 * OCTETS);
    assert_eq!(transmission.block.cqi.block(), 792);
}

#[test]
fn a_report_counts_after_its_delay_and_until_the_next() {
    let fading = FastFading { speed: "30km/h".parse().unwrap(), carrier: "2GHz".parse().unwrap() };
    let config = HsdpaConfig {
        fading: Some(fading),
        cqi_period: Duration::from_millis(20),
        cqi_delay: Duration::from_millis(6),
        ..HsdpaConfig::default()
    };
    let link = link(&config, 3);
    let mut changes = 0;
    for millis in 0..2000_u64 {
        let about = Instant::from_millis(millis.saturating_sub(6) / 20 * 20);
        let expected = Cqi::of(link.channel.snr(about)).min(config.mobiles_category().largest);
        assert_eq!(link.cqi(Instant::from_millis(millis)), expected, "at {millis} ms");
        changes += u64::from(link.cqi(Instant::from_millis(millis + 1)) != expected);
    }
    assert!((20..=100).contains(&changes), "{changes}");
}

#[test]
fn a_reset_of_mac_hs_forgets_what_is_under_way_at_both_ends() {
    let config = HsdpaConfig { snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() };
    let mut link = link(&config, 1);
    assert_eq!(saturate(&mut link, 100).len(), 2100);
    let now = Instant::ZERO + TTI * 100;
    let transmission = link.block(now, |_| vec![pdu(7)]).unwrap();
    link.transmit(now, transmission, |_, _| {});
    assert_eq!(link.next_landing(), Some(now + TTI));
    link.clear();
    assert_eq!(link.next_landing(), None);
    // Numbers begin anew at both ends: nothing is taken for late, nothing waits.
    let later = now + TTI * 6;
    let transmission = link.block(later, |_| vec![pdu(8)]).unwrap();
    link.transmit(later, transmission, |_, _| {});
    let flight = link.land(later + TTI).unwrap();
    assert_eq!(flight.blocks, [pdu(8).octets]);
    assert_eq!((link.reordering.counters.late, link.next_landing()), (0, None));
}

fn configs() -> impl Strategy<Value = HsdpaConfig> {
    let window = prop::sample::select(vec![4, 6, 8, 16, 32]);
    let parts = (1_u8..=8, 1_u8..=6, window, 1_u64..80, 2_u64..40, -5.0..12.0_f64);
    let cqi = (1_u64..30, 0_u64..40);
    (parts, cqi).prop_map(|((processes, transmissions, window, t1, round_trip, snr), (period, delay))| {
        HsdpaConfig {
            category: 10,
            snr: format!("{snr}dB").parse().unwrap(),
            fading: Some(FastFading { speed: "50km/h".parse().unwrap(), carrier: "2GHz".parse().unwrap() }),
            cqi_period: Duration::from_millis(period),
            cqi_delay: Duration::from_millis(delay),
            processes,
            transmissions,
            window,
            t1: Duration::from_millis(t1),
            round_trip: Duration::from_millis(round_trip),
            ..HsdpaConfig::default()
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: size(50, 200), failure_persistence: None, ..ProptestConfig::default() })]

    /// Reports that are out of date damage many blocks. Whatever HARQ does, nothing comes twice or out of order, and what is
    /// missing was lost or came late.
    #[test]
    fn whatever_harq_does_pdus_come_out_in_order(config in configs(), seed in any::<u64>()) {
        let mut link = link(&config, seed);
        let landed = saturate(&mut link, 2000);
        prop_assert!(landed.is_sorted_by(|a, b| a < b));
        let reordering = link.reordering.counters;
        let whole = link.counters.lost + reordering.late == 0 && link.harq.oldest().is_none();
        if whole {
            prop_assert_eq!(landed.len() as u64, link.counters.pdus);
        }
        // The window of the transmitter keeps numbers apart.
        prop_assert!(reordering.window_moves <= link.counters.lost);
    }
}
