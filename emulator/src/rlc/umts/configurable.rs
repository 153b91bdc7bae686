//! Values that RRC can configure (TS 25.331 §10.3.4.23 to §10.3.4.25). The stage also accepts other values,
//! which a network cannot set.

use airwire::time::Duration;

use super::config::{Discard, PollConfig, ReceiverConfig, SenderConfig};

/// A value that RRC cannot configure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rlc) struct Violation {
    /// Name of the setting, with dots.
    pub(in crate::rlc) key: &'static str,
    /// Description of the problem, with the nearest value that is possible.
    pub(in crate::rlc) message: String,
}

/// Ranges of times in ms, as first value, last value and step.
type Steps = [(u64, u64, u64)];

/// Timer_Poll, Timer_Poll_Prohibit, Timer_Status_Prohibit.
const POLL: &Steps = &[(10, 550, 10), (600, 1_000, 50)];
/// Timer_Poll_Periodic, Timer_Status_Periodic.
const PERIODIC: &Steps = &[(100, 500, 100), (750, 750, 1), (1_000, 2_000, 1_000)];
/// Timer_EPC, Timer_MRW.
const EPC: &Steps = &[(50, 100, 10), (120, 200, 20), (300, 500, 100), (700, 900, 200)];
const RST: &Steps = &[(50, 550, 50), (600, 1_000, 100)];
/// Timer_Discard with explicit signalling.
const DISCARD: &Steps = &[(100, 100, 1), (250, 2_000, 250), (2_500, 5_000, 500), (7_500, 7_500, 1)];

const MAX_DAT: &[u16] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 35, 40];
/// MaxRST, MaxMRW.
const MAX_RST: &[u16] = &[1, 4, 6, 8, 12, 16, 24, 32];
const POLL_PDU: &[u16] = &[1, 2, 4, 8, 16, 32, 64, 128];
const POLL_SDU: &[u16] = &[1, 4, 16, 64];
/// In per cent.
const POLL_WINDOW: &[u16] = &[50, 60, 70, 80, 85, 90, 95, 99];

/// Returns the settings of one direction that RRC cannot configure.
pub(in crate::rlc) fn violations(sender: &SenderConfig, receiver: &ReceiverConfig) -> Vec<Violation> {
    let PollConfig { timer_poll, timer_poll_periodic, timer_poll_prohibit, .. } = sender.poll;
    let PollConfig { poll_pdu, poll_sdu, poll_window, .. } = sender.poll;
    let (timer_discard, timer_mrw, max_mrw, max_dat) = match sender.discard {
        Discard::ResetAfterMaxDat { max_dat } => (None, None, None, Some(max_dat)),
        Discard::MrwAfterMaxDat { max_dat, timer_mrw, max_mrw } => {
            (None, Some(timer_mrw), Some(max_mrw), Some(max_dat))
        }
        Discard::Timer { timer_discard, timer_mrw, max_mrw } => {
            (Some(timer_discard), Some(timer_mrw), Some(max_mrw), None)
        }
    };
    let counts = [
        ("sender.discard.max_dat", max_dat.map(u16::from), MAX_DAT),
        ("sender.discard.max_mrw", max_mrw.map(u16::from), MAX_RST),
        ("sender.max_rst", Some(sender.max_rst.into()), MAX_RST),
        ("sender.poll.poll_pdu", poll_pdu, POLL_PDU),
        ("sender.poll.poll_sdu", poll_sdu, POLL_SDU),
        ("sender.poll.poll_window", poll_window.map(u16::from), POLL_WINDOW),
    ];
    let times = [
        ("sender.discard.timer_discard", timer_discard, DISCARD),
        ("sender.discard.timer_mrw", timer_mrw, EPC),
        ("sender.timer_rst", Some(sender.timer_rst), RST),
        ("sender.poll.timer_poll", timer_poll, POLL),
        ("sender.poll.timer_poll_periodic", timer_poll_periodic, PERIODIC),
        ("sender.poll.timer_poll_prohibit", timer_poll_prohibit, POLL),
        ("receiver.timer_status_prohibit", receiver.prohibits(), POLL),
        ("receiver.timer_status_periodic", receiver.timer_status_periodic, PERIODIC),
        ("receiver.timer_epc", receiver.timer_epc, EPC),
    ];
    let counts = counts.into_iter().filter_map(|(key, value, allowed)| {
        let value = value?;
        let nearest = allowed.iter().min_by_key(|allowed| allowed.abs_diff(value))?;
        (*nearest != value).then(|| Violation { key, message: message(&value, nearest) })
    });
    let times = times.into_iter().filter_map(|(key, value, allowed)| {
        let value = value?;
        let nearest = each(allowed).min_by_key(|allowed| value.as_nanos().abs_diff(allowed.as_nanos()))?;
        (nearest != value).then(|| Violation { key, message: message(&value, &nearest) })
    });
    counts.chain(times).collect()
}

fn each(steps: &Steps) -> impl Iterator<Item = Duration> {
    let each = |(from, to, by): &(u64, u64, u64)| (*from..=*to).step_by(*by as usize);
    steps.iter().flat_map(each).map(Duration::from_millis)
}

fn message(value: &impl std::fmt::Display, nearest: &impl std::fmt::Display) -> String {
    format!("{value} is not a value that RRC can configure (TS 25.331); the nearest is {nearest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(sender: &SenderConfig, receiver: &ReceiverConfig) -> Vec<&'static str> {
        violations(sender, receiver).into_iter().map(|violation| violation.key).collect()
    }

    #[test]
    fn defaults_are_values_rrc_can_configure() {
        assert_eq!(violations(&SenderConfig::default(), &ReceiverConfig::default()), []);
    }

    #[test]
    fn timer_ranges_match_ts_25_331() {
        let count = |steps| each(steps).count();
        assert_eq!([POLL, PERIODIC, EPC, RST, DISCARD].map(count), [64, 8, 16, 16, 16]);
        let last = |steps| each(steps).last();
        let ms = Duration::from_millis;
        let ends = [1_000, 2_000, 900, 1_000, 7_500].map(|end| Some(ms(end)));
        assert_eq!([POLL, PERIODIC, EPC, RST, DISCARD].map(last), ends);
    }

    #[test]
    fn unconfigurable_values_are_reported_with_nearest_value() {
        let ms = Duration::from_millis;
        let poll = PollConfig {
            timer_poll: Some(ms(555)),
            timer_poll_periodic: Some(ms(600)),
            timer_poll_prohibit: Some(ms(1_050)),
            poll_pdu: Some(3),
            poll_sdu: Some(2),
            poll_window: Some(40),
            ..PollConfig::NONE
        };
        let discard = Discard::MrwAfterMaxDat { max_dat: 12, timer_mrw: ms(110), max_mrw: 5 };
        let sender =
            SenderConfig { discard, max_rst: 2, timer_rst: ms(575), poll, ..SenderConfig::default() };
        let receiver = ReceiverConfig {
            timer_status_prohibit: Some(ms(1_500)),
            timer_status_periodic: Some(ms(5)),
            timer_epc: Some(ms(55)),
            ..ReceiverConfig::default()
        };
        let all = keys(&sender, &receiver);
        assert_eq!(all.len(), 14, "{all:?}: all but timer_discard");
        let timer = Discard::Timer { timer_discard: ms(3_100), timer_mrw: ms(100), max_mrw: 4 };
        let sender = SenderConfig { discard: timer, ..SenderConfig::default() };
        let found = violations(&sender, &ReceiverConfig::default());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key, "sender.discard.timer_discard");
        assert!(
            found[0].message.contains("3.100s") && found[0].message.contains("the nearest is 3.000s"),
            "{found:?}"
        );
        let never =
            ReceiverConfig { timer_status_prohibit: Some(Duration::ZERO), ..ReceiverConfig::default() };
        assert_eq!(keys(&SenderConfig::default(), &never), [""; 0], "a timer of 0 counts as off");
    }
}
