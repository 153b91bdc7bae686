//! The link to one mobile. Tests of the content of its blocks, the share of lost blocks and the order of
//! delivery.

use std::cell::Cell;
use std::sync::Arc;

use airtcp_testkit::sample::{cases, size};
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

/// Runs a link that always has something to send. Returns the numbers of the PDUs that are delivered at the
/// mobile.
fn saturate(link: &mut Link, ttis: u64) -> Vec<u32> {
    saturate_watched(link, ttis, |_, _| {})
}

/// Like [`saturate`]. Calls `on_decided` with the number of each block whose outcome is decided, and with `true` if
/// the block is lost.
fn saturate_watched(link: &mut Link, ttis: u64, mut on_decided: impl FnMut(u64, bool)) -> Vec<u32> {
    let next = Cell::new(0);
    let mut landed = Vec::new();
    let mut numbers = |blocks: Vec<Arc<[u8]>>| {
        let first = |block: &Arc<[u8]>| u32::from_be_bytes(*block.first_chunk().unwrap());
        landed.extend(blocks.iter().map(first));
    };
    for tti in 0..ttis {
        let now = Instant::ZERO + TTI * tti;
        while let Some(blocks) = link.take_arrival(now) {
            numbers(blocks);
        }
        if link.sendable_octets(now, true).is_some() {
            let fill = |room: Room| {
                let pdus = std::iter::repeat_with(|| pdu(next.replace(next.get() + 1)));
                pdus.take(room.pdus()).collect()
            };
            if let Some(transmission) = link.next_block(now, fill) {
                let (number, mut outcome) = (transmission.block.number, None);
                link.transmit(now, transmission, |_, lost| outcome = Some(lost));
                if let Some(lost) = outcome {
                    on_decided(number, lost);
                }
            }
        }
    }
    while let Some(at) = link.next_arrival() {
        numbers(link.take_arrival(at).unwrap());
    }
    landed
}

#[test]
fn block_size_and_tti_spacing_follow_category() {
    // The signal-to-noise ratio is so high that no block is lost. The CQI is the highest that the category
    // allows.
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
fn too_few_harq_processes_leave_ttis_unused() {
    for processes in 1..=6 {
        let config = HsdpaConfig { processes, snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() };
        let mut link = link(&config, 1);
        saturate(&mut link, 600);
        assert_eq!(link.counters.ttis, 100 * u64::from(processes));
    }
}

/// The lowest signal-to-noise ratio at which the mobile reports this CQI, and where losses are most likely.
fn lowest_snr(cqi: u8) -> f64 {
    (f64::from(cqi) - 16.62) * 1.02 + 1e-6
}

#[test]
fn first_transmission_loss_matches_bler_formula() {
    for cqi in [5, 8, 15, 20] {
        let snr = format!("{}dB", lowest_snr(cqi));
        let config = HsdpaConfig { snr: snr.parse().unwrap(), transmissions: 1, ..HsdpaConfig::default() };
        let expected = Cqi::of(config.snr.value()).bler(config.snr.value());
        let (mut blocks, mut damaged) = (0, 0);
        for seed in 0..20 {
            let mut link = link(&config, seed);
            let landed = saturate(&mut link, 1000);
            assert_eq!(
                link.counters.first_damaged, link.counters.lost,
                "each block is transmitted only once"
            );
            assert_eq!(landed.len() as u64 % link.pdus_per_block(), 0);
            blocks += link.counters.blocks;
            damaged += link.counters.first_damaged;
        }
        assert_eq!(blocks, 20_000);
        within_binomial(damaged as usize, blocks as usize, expected);
    }
}

impl Link {
    fn pdus_per_block(&self) -> u64 {
        FRAMING.pdus(self.cqi(Instant::ZERO)) as u64
    }
}

/// Chase combining: the probability that a block is lost after k transmissions is the product of BLER(n ·
/// SNR) for n = 1 to k.
#[test]
fn residual_loss_matches_chase_combining_product() {
    let cqi = Cqi::of(lowest_snr(5));
    for (snr, transmissions) in [(-12.5, 1), (-15.2, 2), (-16.9, 2), (-16.9, 3), (-18.2, 4)] {
        let losses = (1..=transmissions).map(|n| cqi.bler(snr + 10.0 * f64::from(n).log10()));
        let expected: f64 = losses.product();
        let settings = HarqSettings { round_trip: Duration::from_millis(12), transmissions };
        let mut draws = Stream::new(u64::from(transmissions), "test");
        let mut lost = 0;
        for number in 0..20_000 {
            let mut harq = Harq::new(1);
            let mut block = Some(Block { number, cqi, content: (), transmissions: 0, energy: 0.0 });
            while let Some(pending) = block.take() {
                let is_lost = |cqi: Cqi, energy| draws.unit() < cqi.bler(decibels(energy));
                match harq.transmit(Instant::ZERO, 0, pending, ratio(snr), settings, is_lost) {
                    TransmissionResult::Arrives(_) => {}
                    TransmissionResult::Lost(_) => lost += 1,
                    TransmissionResult::Retransmits => block = harq.take(0),
                }
            }
        }
        within_binomial(lost, 20_000, expected);
    }
}

#[test]
fn block_is_smallest_that_holds_its_pdus() {
    let config = HsdpaConfig { snr: "12dB".parse().unwrap(), ..HsdpaConfig::default() };
    let mut link = link(&config, 1);
    assert_eq!(link.sendable_octets(Instant::ZERO, true), Some(21 * OCTETS));
    let transmission = link.next_block(Instant::ZERO, |room| {
        assert_eq!(room, Room::Pdus(21));
        vec![pdu(0), pdu(1)]
    });
    let transmission = transmission.unwrap();
    assert_eq!(transmission.new_octets, 2 * OCTETS);
    assert_eq!(transmission.block.cqi.block(), 792);
}

#[test]
fn cqi_report_applies_after_delay_until_next() {
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
        let expected = Cqi::of(link.channel.snr(about)).min(config.category().largest);
        assert_eq!(link.cqi(Instant::from_millis(millis)), expected, "at {millis} ms");
        changes += u64::from(link.cqi(Instant::from_millis(millis + 1)) != expected);
    }
    assert!((20..=100).contains(&changes), "{changes}");
}

#[test]
fn mac_hs_reset_clears_state_at_both_ends() {
    let config = HsdpaConfig { snr: "40dB".parse().unwrap(), ..HsdpaConfig::default() };
    let mut link = link(&config, 1);
    assert_eq!(saturate(&mut link, 100).len(), 2100);
    let now = Instant::ZERO + TTI * 100;
    let transmission = link.next_block(now, |_| vec![pdu(7)]).unwrap();
    link.transmit(now, transmission, |_, _| {});
    assert_eq!(link.next_arrival(), Some(now + TTI));
    link.clear();
    assert_eq!(link.next_arrival(), None);
    // Block numbers restart at both ends: the block is not counted as late, and does not wait.
    let later = now + TTI * 6;
    let transmission = link.next_block(later, |_| vec![pdu(8)]).unwrap();
    link.transmit(later, transmission, |_, _| {});
    assert_eq!(link.take_arrival(later + TTI).unwrap(), [pdu(8).octets]);
    assert_eq!((link.reordering.counters.late, link.next_arrival()), (0, None));
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
    #![proptest_config(cases(size(50, 200)))]

    /// Outdated reports cause many damaged blocks. Nevertheless PDUs are delivered in order and without
    /// duplicates, and a missing PDU was lost or late. If too many consecutive blocks are lost, the next TSN looks
    /// old, and the order is not guaranteed.
    #[test]
    fn harq_delivers_pdus_in_order_without_duplicates(config in configs(), seed in any::<u64>()) {
        let mut link = link(&config, seed);
        let (mut next, mut looks_old) = (0, false);
        let landed = saturate_watched(&mut link, 2000, |number, lost| {
            if !lost {
                looks_old |= number >= next + 64 - u64::from(config.window);
                next = next.max(number + 1);
            }
        });
        prop_assert!(looks_old || landed.is_sorted_by(|a, b| a < b));
        let reordering = link.reordering.counters;
        let lossless = link.counters.lost + reordering.late == 0 && link.harq.oldest().is_none();
        if lossless {
            prop_assert_eq!(landed.len() as u64, link.counters.pdus);
        }
        // The transmitter's window ensures that the receive window only moves past lost blocks.
        prop_assert!(reordering.window_moves <= link.counters.lost);
    }
}
