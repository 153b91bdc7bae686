//! Sizes of transport blocks (TS 38.214 §5.1.3.2 for NR, TS 36.213 Table 7.1.7.2.1-1 for LTE).

/// Modulation and coding of NR: the modulation order, and the code rate times 1024.
type Mcs = (u32, f64);

/// TS 38.214 Table 5.1.3.1-1: up to 64QAM.
const MCS_TABLE_1: [Mcs; 29] = [
    (2, 120.0),
    (2, 157.0),
    (2, 193.0),
    (2, 251.0),
    (2, 308.0),
    (2, 379.0),
    (2, 449.0),
    (2, 526.0),
    (2, 602.0),
    (2, 679.0),
    (4, 340.0),
    (4, 378.0),
    (4, 434.0),
    (4, 490.0),
    (4, 553.0),
    (4, 616.0),
    (4, 658.0),
    (6, 438.0),
    (6, 466.0),
    (6, 517.0),
    (6, 567.0),
    (6, 616.0),
    (6, 666.0),
    (6, 719.0),
    (6, 772.0),
    (6, 822.0),
    (6, 873.0),
    (6, 910.0),
    (6, 948.0),
];

/// TS 38.214 Table 5.1.3.1-2: up to 256QAM.
const MCS_TABLE_2: [Mcs; 28] = [
    (2, 120.0),
    (2, 193.0),
    (2, 308.0),
    (2, 449.0),
    (2, 602.0),
    (4, 378.0),
    (4, 434.0),
    (4, 490.0),
    (4, 553.0),
    (4, 616.0),
    (4, 658.0),
    (6, 466.0),
    (6, 517.0),
    (6, 567.0),
    (6, 616.0),
    (6, 666.0),
    (6, 719.0),
    (6, 772.0),
    (6, 822.0),
    (6, 873.0),
    (8, 682.5),
    (8, 711.0),
    (8, 754.0),
    (8, 797.0),
    (8, 841.0),
    (8, 885.0),
    (8, 916.5),
    (8, 948.0),
];

/// TS 38.214 Table 5.1.3.2-1: sizes of up to 3824 bits.
const SMALL: [u32; 93] = [
    24, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 152, 160, 168, 176, 184, 192, 208,
    224, 240, 256, 272, 288, 304, 320, 336, 352, 368, 384, 408, 432, 456, 480, 504, 528, 552, 576, 608, 640,
    672, 704, 736, 768, 808, 848, 888, 928, 984, 1032, 1064, 1128, 1160, 1192, 1224, 1256, 1288, 1320, 1352,
    1416, 1480, 1544, 1608, 1672, 1736, 1800, 1864, 1928, 2024, 2088, 2152, 2216, 2280, 2408, 2472, 2536,
    2600, 2664, 2728, 2792, 2856, 2976, 3104, 3240, 3368, 3496, 3624, 3752, 3824,
];

/// Resources and coding of an NR transport block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NrBlock {
    /// Physical resource blocks.
    pub prb: u32,
    /// Index into the MCS table.
    pub mcs: u32,
    /// The MCS table: 1 (up to 64QAM) or 2 (up to 256QAM).
    pub table: u32,
    /// Layers of spatial multiplexing.
    pub layers: u32,
    /// Data symbols in the slot, including those with DM-RS.
    pub symbols: u32,
    /// Resource elements of DM-RS in each resource block.
    pub dmrs: u32,
}

/// Maximum number of resource blocks of a carrier (TS 38.101-1 Table 5.3.2-1).
pub const MAX_PRB: u32 = 275;

impl NrBlock {
    /// Size of the transport block in octets. `None`: the MCS does not exist.
    pub fn octets(&self) -> Option<usize> {
        let table: &[Mcs] = if self.table == 1 { &MCS_TABLE_1 } else { &MCS_TABLE_2 };
        let (order, rate) = *table.get(self.mcs as usize)?;
        let rate = rate / 1024.0;
        // Step 1: resource elements, of which at most 156 count in each resource block.
        let elements = (12 * self.symbols).saturating_sub(self.dmrs).min(156) * self.prb;
        // Step 2: the intermediate number of information bits.
        let info = f64::from(elements) * rate * f64::from(order) * f64::from(self.layers);
        let bits = if info <= 3824.0 { small(info) } else { large(info, rate) };
        Some(bits as usize / 8)
    }
}

/// Step 3: N_info of at most 3824.
fn small(info: f64) -> u32 {
    let n = 3.max(info.max(1.0).log2().floor() as i32 - 6);
    let step = f64::from(1 << n);
    let info = (step * (info / step).floor()).max(24.0) as u32;
    SMALL[SMALL.partition_point(|size| *size < info)]
}

/// Step 4: N_info above 3824.
fn large(info: f64, rate: f64) -> u32 {
    let n = (info - 24.0).log2().floor() as i32 - 5;
    let step = f64::from(1 << n);
    // "ties in the round function are broken towards the next largest integer"
    let info = (step * ((info - 24.0) / step + 0.5).floor()).max(3840.0) as u32;
    let blocks = match rate {
        ..=0.25 => (info + 24).div_ceil(3816),
        _ if info > 8424 => (info + 24).div_ceil(8424),
        _ => 1,
    };
    8 * blocks * (info + 24).div_ceil(8 * blocks) - 24
}

/// TS 36.213 Table 7.1.7.2.1-1: sizes in bits for 50 resource blocks (10 MHz) and I_TBS 0 to 26.
const LTE_50_PRB: [u32; 27] = [
    1384, 1800, 2216, 2856, 3624, 4392, 5160, 6200, 6968, 7992, 8760, 9912, 11448, 12960, 14112, 15264,
    16416, 18336, 19848, 21384, 22920, 25456, 27376, 28336, 30576, 31704, 36696,
];

/// The same for 100 resource blocks (20 MHz).
const LTE_100_PRB: [u32; 27] = [
    2792, 3624, 4584, 5736, 7224, 8760, 10296, 12216, 14112, 15840, 17568, 19848, 22920, 25456, 28336, 30576,
    32856, 36696, 39232, 43816, 46888, 51024, 55056, 57336, 61664, 63776, 75376,
];

/// Size of an LTE transport block in octets. `None`: the table here does not include it.
pub fn lte_octets(prb: u32, i_tbs: u32) -> Option<usize> {
    let table = match prb {
        50 => &LTE_50_PRB,
        100 => &LTE_100_PRB,
        _ => return None,
    };
    Some(*table.get(i_tbs as usize)? as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nr(prb: u32, table: u32, mcs: u32, layers: u32) -> usize {
        NrBlock { prb, mcs, table, layers, symbols: 13, dmrs: 12 }.octets().unwrap()
    }

    #[test]
    fn nr_sizes_match_reference() {
        for (mcs, octets) in [(4, 5_763), (10, 12_549), (19, 25_101), (27, 36_897)] {
            assert_eq!(nr(273, 2, mcs, 1), octets, "273 PRB, MCS {mcs}");
        }
        assert_eq!([nr(273, 2, 19, 2), nr(273, 2, 27, 2)], [50_205, 73_766]);
        assert_eq!([nr(273, 2, 19, 4), nr(273, 2, 27, 4)], [100_413, 147_483]);
        for (mcs, octets) in [(10, 15_117), (19, 29_722), (27, 43_047)] {
            assert_eq!(nr(162, 2, mcs, 2), octets, "162 PRB, MCS {mcs}");
        }
        for (mcs, octets) in [(5, 1_761), (10, 3_138), (17, 6_147), (20, 7_941), (28, 13_322)] {
            assert_eq!(nr(66, 1, mcs, 2), octets, "66 PRB, MCS {mcs}");
        }
    }

    #[test]
    fn small_nr_sizes_are_in_table() {
        // 1 PRB with QPSK: 144 · 120/1024 · 2 = 33.75 bits, quantised to 32.
        assert_eq!(nr(1, 1, 0, 1), 4);
        for prb in 1..40 {
            let size = nr(prb, 1, 5, 1);
            let info = 144.0 * f64::from(prb) * 379.0 / 1024.0 * 2.0;
            assert!((8.0 * size as f64 - info).abs() < 0.08 * info + 16.0, "{prb}: {size}");
        }
    }

    #[test]
    fn unknown_mcs_has_no_size() {
        assert_eq!(NrBlock { prb: 1, mcs: 28, table: 2, layers: 1, symbols: 13, dmrs: 12 }.octets(), None);
        assert_eq!(NrBlock { prb: 1, mcs: 29, table: 1, layers: 1, symbols: 13, dmrs: 12 }.octets(), None);
    }

    #[test]
    fn lte_sizes_match_reference() {
        for (i_tbs, octets) in [(0, 349), (9, 1_980), (15, 3_822), (20, 5_861), (26, 9_422)] {
            assert_eq!(lte_octets(100, i_tbs), Some(octets), "I_TBS {i_tbs}");
        }
        assert_eq!([lte_octets(50, 16), lte_octets(100, 27), lte_octets(25, 5)], [Some(2_052), None, None]);
    }
}
