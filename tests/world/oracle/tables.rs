//! Means of ns-2.35 (Debian's package) in these scenarios, each over several seeds.
//!
//! There are two generations. The scripts of the original tables are lost. The means named `RERUN` are
//! results of the scripts in `ns2/` with seeds from 1 on, and can be reproduced.

use airtcp_reproduce::pan2004::setting::Acks;

/// A mean, and the half-width of its 95 % interval if it was recorded.
#[derive(Clone, Copy)]
pub(crate) struct Published(pub(crate) f64, pub(crate) Option<f64>);

const fn pm(mean: f64, half_width: f64) -> Published {
    Published(mean, Some(half_width))
}

/// The channels of P0's table: (x, y) with α = β = 0.3.
pub(crate) const TABLE_1: [(f64, f64); 4] = [(0.01, 0.15), (0.08, 0.08), (0.03, 0.03), (0.0, 0.06)];

/// Packets of P0 in 100 s, in reading R1 (512 bytes on the wire, 0.1 s ticks, delayed ACKs, voice traffic):
/// Tahoe, Reno, NewReno and Sack1 over the channels of `TABLE_1`, with 40 seeds.
pub(crate) const R1: [[Published; 4]; 4] = [
    [pm(885.0, 33.0), pm(914.0, 32.0), pm(1386.0, 15.0), pm(1361.0, 21.0)],
    [pm(869.0, 41.0), pm(907.0, 34.0), pm(1383.0, 17.0), pm(1358.0, 21.0)],
    [pm(906.0, 37.0), pm(937.0, 32.0), pm(1428.0, 14.0), pm(1402.0, 22.0)],
    [pm(898.0, 39.0), pm(928.0, 35.0), pm(1418.0, 14.0), pm(1399.0, 21.0)],
];

/// R1 for Tahoe with Limited Transmit.
pub(crate) const R1_LIMITED: [Published; 4] =
    [pm(1104.0, 25.0), pm(1112.0, 25.0), pm(1455.0, 10.0), pm(1440.0, 17.0)];

/// R1 without delayed ACKs: Tahoe and NewReno.
pub(crate) const R1_UNDELAYED: [[Published; 4]; 2] = [
    [pm(1114.0, 29.0), pm(1129.0, 26.0), pm(1466.0, 10.0), pm(1453.0, 19.0)],
    [pm(1145.0, 34.0), pm(1168.0, 28.0), pm(1492.0, 9.0), pm(1474.0, 23.0)],
];

/// R1 for Tahoe with x = 0, y = 0.06 and α = β = 0.003.
pub(crate) const R1_VERY_CLUSTERED: Published = pm(1260.0, 32.0);

/// R1 without losses: the capacity that the voice traffic leaves.
pub(crate) const NO_LOSS: f64 = 1574.0;

/// Values of z for R1 with x = 0.01 and α = β = 0.3. z determines y.
pub(crate) const SWEEP_Z: [f64; 6] = [0.02, 0.04, 0.06, 0.08, 0.10, 0.12];

/// Tahoe, Reno, NewReno and Sack1 by z.
pub(crate) const SWEEP: [[Published; 6]; 4] = [
    [pm(1466.0, 14.0), pm(1268.0, 28.0), pm(1060.0, 27.0), pm(894.0, 33.0), pm(760.0, 36.0), pm(630.0, 50.0)],
    [pm(1462.0, 13.0), pm(1263.0, 24.0), pm(1054.0, 31.0), pm(882.0, 42.0), pm(764.0, 43.0), pm(626.0, 53.0)],
    [pm(1500.0, 11.0), pm(1310.0, 28.0), pm(1105.0, 27.0), pm(925.0, 34.0), pm(782.0, 38.0), pm(639.0, 51.0)],
    [pm(1495.0, 12.0), pm(1297.0, 26.0), pm(1090.0, 25.0), pm(916.0, 34.0), pm(774.0, 39.0), pm(634.0, 53.0)],
];

/// Tahoe without delayed ACKs, by z.
pub(crate) const SWEEP_UNDELAYED: [Published; 6] =
    [pm(1512.0, 7.0), pm(1390.0, 23.0), pm(1233.0, 28.0), pm(1115.0, 34.0), pm(991.0, 34.0), pm(824.0, 66.0)];

/// Tahoe's timeouts and fast retransmissions per run, by z, without recorded intervals.
pub(crate) const SWEEP_COUNTS: [[Published; 6]; 2] = [
    [
        Published(4.8, None),
        Published(19.0, None),
        Published(35.5, None),
        Published(47.0, None),
        Published(54.2, None),
        Published(57.6, None),
    ],
    [
        Published(19.7, None),
        Published(23.8, None),
        Published(20.2, None),
        Published(15.1, None),
        Published(11.2, None),
        Published(8.4, None),
    ],
];

/// Recorded as "30 to 40 seeds". The lower number is used to compute missing intervals.
pub(crate) const P0_SEEDS: u32 = 30;
/// Seeds of P1 and P3.
pub(crate) const SEEDS: u32 = 20;

/// Loss rates of P3: 10 Mbit/s and 50 ms, then 2 Mbit/s and 10 ms with uniform loss. The goodput is in
/// Mbit/s, measured from 1000 to 2000 s.
pub(crate) const BACKBONE_PER: [f64; 7] = [0.0, 0.02, 0.04, 0.06, 0.08, 0.10, 0.12];
pub(crate) const BACKBONE: [(&str, [f64; 7]); 2] = [
    ("newreno+limited-transmit", [1.923, 0.474, 0.308, 0.236, 0.193, 0.161, 0.135]),
    ("sack+limited-transmit", [1.923, 0.466, 0.299, 0.227, 0.183, 0.154, 0.129]),
];

/// `two-links.tcl p3` with 40 seeds.
pub(crate) const BACKBONE_RERUN: [(&str, f64, Published); 6] = [
    ("newreno+limited-transmit", 0.02, pm(0.4952, 0.0025)),
    ("newreno+limited-transmit", 0.04, pm(0.3221, 0.0016)),
    ("newreno+limited-transmit", 0.08, pm(0.1996, 0.0010)),
    ("newreno+limited-transmit", 0.12, pm(0.1385, 0.0013)),
    ("sack+limited-transmit", 0.04, pm(0.3142, 0.0015)),
    ("sack+limited-transmit", 0.12, pm(0.1315, 0.0016)),
];

/// `p0.tcl` with losses after the link and 150 seeds: packets with x = y.
pub(crate) const R1_RERUN: [(&str, Acks, f64, Published); 7] = [
    ("tahoe", Acks::Delayed, 0.02, pm(1444.0, 6.0)),
    ("tahoe", Acks::Delayed, 0.03, pm(1354.0, 9.0)),
    ("tahoe", Acks::Delayed, 0.08, pm(886.0, 13.0)),
    ("tahoe", Acks::Each, 0.03, pm(1448.0, 7.0)),
    ("newreno", Acks::Delayed, 0.03, pm(1399.0, 9.0)),
    ("reno", Acks::Delayed, 0.03, pm(1349.0, 9.0)),
    ("sack", Acks::Delayed, 0.03, pm(1387.0, 9.0)),
];

/// P3: total goodput of twelve NewReno flows over 2 Mbit/s in Mbit/s, without loss and with 12 %; and the
/// lowest Jain index.
pub(crate) const DUMBBELL: [(f64, f64); 2] = [(0.0, 1.923), (0.12, 1.602)];
pub(crate) const DUMBBELL_JAIN: f64 = 0.993;

/// P1: 10 Mbit/s and 5 ms, then 0.5 Mbit/s and 30 ms with uniform loss. Goodput over 400 s in kbit/s for
/// Tahoe, Reno, NewReno and Sack1.
pub(crate) const LAST_HOP: [(f64, [f64; 4]); 4] = [
    (0.01, [443.0, 447.0, 475.0, 477.0]),
    (0.02, [376.0, 367.0, 424.0, 426.0]),
    (0.04, [253.0, 235.0, 290.0, 285.0]),
    (0.08, [123.0, 115.0, 134.0, 130.0]),
];

/// `two-links.tcl p1` with 80 seeds.
pub(crate) const LAST_HOP_RERUN: [(f64, [Published; 4]); 3] = [
    (0.02, [pm(375.1, 2.0), pm(365.6, 2.5), pm(434.6, 1.8), pm(436.1, 1.8)]),
    (0.04, [pm(250.0, 2.4), pm(232.9, 2.4), pm(306.2, 2.8), pm(301.8, 2.8)]),
    (0.08, [pm(113.5, 1.8), pm(106.3, 1.8), pm(133.3, 2.4), pm(128.5, 2.1)]),
];

/// `two-links.tcl twelve` with 12 seeds, at 12 % loss.
pub(crate) const DUMBBELL_RERUN: Published = pm(1.6058, 0.0016);
