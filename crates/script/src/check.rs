//! Comparison of a packet with the script's expectation.

use airwire::time::Duration;

use super::ast::{Flags, IpFields, Options, Segment, TcpOption, Tos};
use super::flags::Tolerance;
use super::wire::Packet;

/// The precision of the comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rules {
    pub(super) push: Push,
    /// `--tcp_ts_tick_usecs`: the tick length of timestamps. `None`: timestamps are not compared.
    pub(super) tick: Option<Duration>,
    pub(super) tolerance: Tolerance,
}

/// Comparison of the PSH flag, whose position depends on how a stack splits writes into segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Push {
    /// Not compared.
    Neutral,
    /// Must match the script.
    Exact,
}

/// Describes every difference between `actual` and `expected`.
pub(super) fn differences(rules: Rules, expected: &Segment, actual: &Segment) -> Vec<String> {
    let mut found = Vec::new();
    let mut differ = |what: &str, expected: String, actual: String| {
        if expected != actual {
            found.push(format!("{what} is {actual}, expected {expected}"));
        }
    };
    let neutral = |flags: Flags| if rules.push == Push::Neutral { flags.without(Flags::PSH) } else { flags };
    let number = |value: Option<u32>| value.unwrap_or(0).to_string();
    differ("flags", neutral(expected.flags).to_string(), neutral(actual.flags).to_string());
    differ("seq", expected.seq.to_string(), actual.seq.to_string());
    differ("payload length", expected.len.to_string(), actual.len.to_string());
    differ("ack", number(expected.ack), number(actual.ack));
    if expected.win.is_some() {
        differ("win", number(expected.win.map(u32::from)), number(actual.win.map(u32::from)));
    }
    differ("urg", number(expected.urg.map(u32::from)), number(actual.urg.map(u32::from)));
    if !options_match(rules, &expected.options, &actual.options) {
        found.push(format!("options are {}, expected {}", actual.options, expected.options));
    }
    found
}

/// Describes the differences in the IP header fields that the line gives.
pub(super) fn ip_differences(expected: IpFields, actual: &Packet) -> Vec<String> {
    let tos = match expected.tos {
        Some(tos @ Tos::Octet(octet)) if octet != actual.tos => Some((tos, Tos::Octet(actual.tos))),
        Some(tos @ Tos::Ecn(bits)) if bits != actual.tos & 3 => Some((tos, Tos::Ecn(actual.tos & 3))),
        Some(tos @ Tos::AnyEct) if ![1, 2].contains(&(actual.tos & 3)) => {
            Some((tos, Tos::Ecn(actual.tos & 3)))
        }
        _ => None,
    };
    let tos = tos.map(|(expected, actual)| format!("IP says {actual}, expected {expected}"));
    let ttl = expected
        .ttl
        .filter(|ttl| *ttl != actual.ttl)
        .map(|ttl| format!("ttl is {}, expected {ttl}", actual.ttl));
    tos.into_iter().chain(ttl).collect()
}

fn options_match(rules: Rules, expected: &Options, actual: &Options) -> bool {
    let (Options::Exactly(expected), Options::Exactly(actual)) = (expected, actual) else {
        return true;
    };
    expected.len() == actual.len()
        && expected.iter().zip(actual).all(|(expected, actual)| match (expected, actual) {
            (
                TcpOption::Timestamps { val, ecr },
                TcpOption::Timestamps { val: actual_val, ecr: actual_ecr },
            ) => {
                let exact = rules.tolerance == Tolerance::EXACT;
                // packetdrill compares only TSval.
                same_time(rules, *val, *actual_val) && (!exact || same_time(rules, *ecr, *actual_ecr))
            }
            (expected, actual) => expected == actual,
        })
}

/// Compares two timestamps. Without a tick length, or if the script leaves the value out, they
/// always match.
fn same_time(rules: Rules, expected: Option<u32>, actual: Option<u32>) -> bool {
    let (Some(tick), Some(expected), Some(actual)) = (rules.tick, expected, actual) else {
        return true;
    };
    let off = expected.wrapping_sub(actual).min(actual.wrapping_sub(expected));
    u64::from(off) * tick.as_nanos() <= rules.tolerance.least.as_nanos()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { push: Push::Neutral, tick: None, tolerance: Tolerance::EXACT };

    fn segment() -> Segment {
        Segment {
            flags: Flags::ACK,
            seq: 1,
            len: 1000,
            ack: Some(1),
            win: None,
            urg: None,
            options: Options::Exactly(vec![
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Timestamps { val: Some(100), ecr: Some(7) },
            ]),
        }
    }

    #[test]
    fn every_differing_field_is_named() {
        let actual = Segment {
            flags: Flags::ACK.with(Flags::FIN),
            seq: 2,
            len: 999,
            ack: None,
            win: Some(5),
            urg: Some(1),
            options: Options::Exactly(Vec::new()),
        };
        assert_eq!(
            differences(RULES, &Segment { win: Some(6), ..segment() }, &actual),
            [
                "flags is F., expected .",
                "seq is 2, expected 1",
                "payload length is 999, expected 1000",
                "ack is 0, expected 1",
                "win is 5, expected 6",
                "urg is 1, expected 0",
                "options are <>, expected <nop,nop,TS val 100 ecr 7>",
            ]
        );
    }

    #[test]
    fn psh_and_window_are_compared_only_on_request() {
        let actual = Segment { flags: Flags::ACK.with(Flags::PSH), win: Some(9), ..segment() };
        assert_eq!(differences(RULES, &segment(), &actual), Vec::<String>::new());
        assert_eq!(differences(Rules { push: Push::Exact, ..RULES }, &segment(), &actual).len(), 1);
    }

    #[test]
    fn timestamps_are_compared_only_with_known_tick() {
        let options = |val| {
            Options::Exactly(vec![
                TcpOption::Nop,
                TcpOption::Nop,
                TcpOption::Timestamps { val, ecr: Some(7) },
            ])
        };
        let ticking = Rules { tick: Some(Duration::from_millis(1)), ..RULES };
        let late = Segment { options: options(Some(102)), ..segment() };
        let open = Segment { options: options(None), ..segment() };
        assert!(differences(RULES, &segment(), &late).is_empty());
        assert_eq!(differences(ticking, &segment(), &late).len(), 1);
        assert!(
            differences(Rules { tolerance: Tolerance::PACKETDRILL, ..ticking }, &segment(), &late).is_empty()
        );
        assert!(differences(ticking, &open, &late).is_empty());
    }

    #[test]
    fn ip_header_is_compared_only_where_specified() {
        let packet = Packet {
            src: "192.0.2.1:1".parse().unwrap(),
            dst: "192.0.2.2:2".parse().unwrap(),
            tos: 0x12,
            ttl: 64,
            flags: Flags::ACK,
            seq: 0,
            ack: 0,
            win: 0,
            urg: 0,
            options: Vec::new(),
            payload: Vec::new(),
        };
        assert!(ip_differences(IpFields::default(), &packet).is_empty());
        assert!(ip_differences(IpFields { tos: Some(Tos::Ecn(2)), ttl: Some(64) }, &packet).is_empty());
        assert_eq!(
            ip_differences(IpFields { tos: Some(Tos::Ecn(0)), ttl: Some(1) }, &packet),
            ["IP says ect0, expected noecn", "ttl is 64, expected 1"]
        );
    }
}
