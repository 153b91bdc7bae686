//! Values that RRC can configure (TS 38.331 and TS 36.331 §6.3.2). The stage also accepts other values, which
//! a network cannot set.

use std::fmt::Display;

use airwire::time::Duration;
use airwire::units::Size;

/// Ranges: from, to, and the step. Times are in ms.
type Steps = [(u64, u64, u64)];

pub(super) const POLL_RETRANSMIT_NR: &Steps =
    &[(5, 250, 5), (300, 500, 50), (800, 800, 1), (1_000, 1_000, 1), (2_000, 2_000, 1), (4_000, 4_000, 1)];
pub(super) const POLL_RETRANSMIT_LTE: &Steps = POLL_RETRANSMIT_NR;
pub(super) const POLL_PDU_NR: &Steps = &[
    (4, 4, 1),
    (8, 8, 1),
    (16, 16, 1),
    (32, 32, 1),
    (64, 64, 1),
    (128, 128, 1),
    (256, 256, 1),
    (512, 512, 1),
    (1_024, 1_024, 1),
    (2_048, 8_192, 2_048),
    (12_288, 32_768, 4_096),
    (40_960, 65_536, 8_192),
];
pub(super) const POLL_PDU_LTE: &Steps =
    &[(4, 4, 1), (8, 8, 1), (16, 16, 1), (32, 32, 1), (64, 64, 1), (128, 128, 1), (256, 256, 1)];
/// pollByte of NR, in kB.
pub(super) const POLL_BYTE_NR: &Steps = &[
    (1, 2, 1),
    (5, 5, 1),
    (8, 8, 1),
    (10, 10, 1),
    (15, 15, 1),
    (25, 25, 1),
    (50, 125, 25),
    (250, 500, 125),
    (750, 1_500, 250),
    (2_000, 4_000, 1_000),
    (4_500, 7_500, 500),
    (8_000, 18_000, 1_000),
    (20_000, 30_000, 5_000),
    (40_000, 40_000, 1),
];
/// pollByte of LTE, in kB.
pub(super) const POLL_BYTE_LTE: &Steps =
    &[(25, 125, 25), (250, 500, 125), (750, 1_500, 250), (2_000, 3_000, 1_000)];
pub(super) const MAX_RETX: &Steps = &[(1, 4, 1), (6, 6, 1), (8, 8, 1), (16, 16, 1), (32, 32, 1)];
/// t-Reassembly of NR, t-Reordering of LTE.
pub(super) const REASSEMBLY: &Steps = &[(0, 100, 5), (110, 200, 10)];
pub(super) const STATUS_PROHIBIT: &Steps =
    &[(0, 250, 5), (300, 500, 50), (800, 1_200, 200), (1_600, 2_400, 400)];
/// t-Reordering of PDCP.
pub(super) const REORDERING: &Steps = &[
    (0, 2, 1),
    (4, 5, 1),
    (8, 8, 1),
    (10, 20, 5),
    (30, 60, 10),
    (80, 300, 20),
    (500, 500, 1),
    (750, 3_000, 250),
];
pub(super) const DISCARD_NR: &Steps =
    &[(10, 60, 10), (75, 75, 1), (100, 300, 50), (500, 500, 1), (750, 750, 1), (1_500, 1_500, 1)];
pub(super) const DISCARD_LTE: &Steps = &[(50, 150, 50), (300, 300, 1), (500, 500, 1), (750, 1_500, 750)];

/// The settings that RRC cannot configure.
#[derive(Default)]
pub(super) struct Violations(pub(super) Vec<(&'static str, String)>);

impl Violations {
    pub(super) fn time(&mut self, key: &'static str, time: Option<Duration>, steps: &Steps) {
        self.check(key, time, |value| value.as_nanos(), steps, Duration::from_millis);
    }

    pub(super) fn count(&mut self, key: &'static str, count: Option<u32>, steps: &Steps) {
        self.check(key, count.map(u64::from), |value| value, steps, |value| value);
    }

    pub(super) fn kilobytes(&mut self, key: &'static str, size: Option<Size>, steps: &Steps) {
        self.check(key, size, Size::as_bytes, steps, |value| Size::bytes(1_000 * value));
    }

    /// Reports the settings of acknowledged mode that were changed although the bearer uses unacknowledged mode.
    pub(super) fn without_effect_in_um(&mut self, changed: [(&'static str, bool); 5]) {
        let changed = changed.into_iter().filter(|(_, is_changed)| *is_changed);
        self.0.extend(
            changed.map(|(key, _)| (key, "has no effect in unacknowledged mode: remove it".to_owned())),
        );
    }

    fn check<T: Copy + PartialEq + Display>(
        &mut self,
        key: &'static str,
        value: Option<T>,
        number: impl Fn(T) -> u64,
        steps: &Steps,
        allowed: impl Fn(u64) -> T,
    ) {
        let Some(value) = value else { return };
        let nearest = each(steps).map(allowed).min_by_key(|allowed| number(*allowed).abs_diff(number(value)));
        if let Some(nearest) = nearest.filter(|nearest| *nearest != value) {
            let message = format!("{value} is not a value that RRC can configure; the nearest is {nearest}");
            self.0.push((key, message));
        }
    }
}

fn each(steps: &Steps) -> impl Iterator<Item = u64> {
    steps.iter().flat_map(|(from, to, by)| (*from..=*to).step_by(*by as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn number_of_values_matches_rrc() {
        let count = |steps| each(steps).count();
        // TS 38.331: T-PollRetransmit without the values of Release 16, PollPDU, PollByte, T-Reassembly,
        // T-StatusProhibit, t-Reordering, discardTimer. The last of PollByte before "infinity" is mB40.
        assert_eq!(
            [POLL_RETRANSMIT_NR, POLL_PDU_NR, MAX_RETX, REASSEMBLY, STATUS_PROHIBIT, REORDERING, DISCARD_NR]
                .map(count),
            [59, 23, 8, 31, 62, 36, 15]
        );
        assert_eq!([POLL_PDU_LTE, POLL_BYTE_LTE, DISCARD_LTE].map(count), [7, 14, 7]);
    }

    #[test]
    fn violation_names_nearest_value() {
        let mut violations = Violations::default();
        violations.time("t", Some(Duration::from_millis(105)), REASSEMBLY);
        violations.time("t", Some(Duration::from_millis(100)), REASSEMBLY);
        violations.time("t", None, REASSEMBLY);
        violations.count("n", Some(5), MAX_RETX);
        violations.kilobytes("b", Some(Size::bytes(125_000)), POLL_BYTE_LTE);
        violations.kilobytes("b", Some(Size::bytes(125)), POLL_BYTE_NR);
        let keys: Vec<_> = violations.0.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, ["t", "n", "b"]);
        assert!(violations.0[1].1.contains("the nearest is 4"), "{violations:?}", violations = violations.0);
    }
}
