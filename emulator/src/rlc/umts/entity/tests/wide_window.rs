//! Reception windows above half of the sequence numbers (2048). A number from one window below VR(R) can then
//! also be one from the window, which takes precedence.

use super::*;

const WINDOW: u16 = 3072;

/// A pair whose receiver, B, has received the PDUs below `vr_r`.
fn received(window: u16, vr_r: u16) -> Pair {
    let mut config = quiet();
    config.receiver.window = window;
    let mut pair = Pair::new(config).losing_answers();
    (0..vr_r).for_each(|sn| pair.inject_data(B, sn, false));
    pair
}

/// Number of new PDUs, duplicates, and PDUs outside the window at B.
fn arrivals(pair: &Pair) -> [u64; 3] {
    let stats = pair.ends[B].stats();
    [stats.pdus_received, stats.duplicates, stats.outside_window]
}

#[test]
fn wide_window_ends_before_old_duplicates() {
    // VR(MR) is 2000 + 3072 = 5072, which is written 976.
    for (sn, new, duplicates) in [(975, 2001, 0), (976, 2000, 1), (1999, 2000, 1)] {
        let mut pair = received(WINDOW, 2000);
        pair.inject_data(B, sn, false);
        assert_eq!(arrivals(&pair), [new, duplicates, 0], "SN {sn}");
    }
}

#[test]
fn number_before_first_pdu_is_outside_window() {
    for (sn, expected) in [(3081, [11, 0, 0]), (3082, [10, 0, 1]), (4095, [10, 0, 1]), (0, [10, 1, 0])] {
        let mut pair = received(WINDOW, 10);
        pair.inject_data(B, sn, false);
        assert_eq!(arrivals(&pair), expected, "SN {sn}");
    }
}

#[test]
fn window_of_4095_moves_in_one_step() {
    let mut pair = received(4095, 0);
    (1..=4095).for_each(|sn| pair.inject_data(B, sn, false));
    assert_eq!((arrivals(&pair), pair.delivered[B].len()), ([4094, 0, 1], 0), "4095 is outside");
    pair.inject_data(B, 0, false);
    assert_eq!((pair.ends[B].receiver.vr_r(), pair.delivered[B].len()), (4095, 4095));
    pair.inject_data(B, 4095, false);
    pair.inject_data(B, 4095, false);
    assert_eq!((pair.ends[B].receiver.vr_r(), arrivals(&pair)), (4096, [4096, 1, 1]));
    pair.inject_data(B, 4094, false);
    assert_eq!(arrivals(&pair), [4097, 1, 1], "the last number of the next window");
}

/// §9.4: a POLL super-field moves VR(H) only if VR(H) ≤ Poll_SN < VR(MR).
#[test]
fn poll_outside_wide_window_reports_nothing_missing() {
    for (poll_sn, missing) in [(3071, 3072), (3072, 0)] {
        let mut pair = received(WINDOW, 0);
        pair.inject_status(B, vec![Sufi::Poll { sn: Sn::new(poll_sn) }, Sufi::NoMore]);
        pair.run_for(ms(200));
        let reported: Vec<u16> = pair.reported(B).into_iter().flat_map(|(_, missing, _)| missing).collect();
        assert!(reported.iter().copied().eq(0..missing), "Poll_SN {poll_sn}: {} missing", reported.len());
    }
}

/// §11.6.3: SN_MRW1 is below VR(MR), so a number from VR(MR) on is one below VR(R). With LENGTH = 0 it is
/// VR(R) or above, except that an MRW which VR(R) has overtaken is obsolete.
#[test]
fn mrw_above_wide_window_is_below_vr_r() {
    // Distances of SN_MRW1 and SN_MRW_LENGTH from VR(R), and of the new VR(R).
    let cases: [(bool, &[u16], Option<u64>); 8] = [
        (false, &[3071], Some(3071)),
        (false, &[3072], None),
        (false, &[3072, 4095], None),
        (false, &[3072, 0], Some(0)),
        (false, &[3072, 5], Some(5)),
        (true, &[1100], Some(1100)),
        (true, &[3073], Some(3073)),
        (true, &[3074], None),
    ];
    for (long_distance, distances, moved) in cases {
        let mut pair = received(WINDOW, 2000);
        let sns = distances.iter().map(|distance| Sn::new(2000 + distance)).collect();
        pair.inject_status(B, vec![Sufi::Mrw(Mrw { sns, long_distance, nlength: 0 }), Sufi::NoMore]);
        let obsolete = pair.ends[B].stats().mrws_obsolete == 1;
        let vr_r = pair.ends[B].receiver.vr_r();
        assert_eq!((vr_r - 2000, obsolete), (moved.unwrap_or(0), moved.is_none()), "{distances:?}");
    }
}
