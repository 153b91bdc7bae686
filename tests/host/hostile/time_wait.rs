//! Late segments: one row per segment, with the reaction of each profile.
//!
//! Sources: RFC 9293 §3.10.7.4, §3.6.1, RFC 5961, RFC 6191 and RFC 7323; tcp_timewait_state_process() of
//! Linux 6.18; tcp_twcheck() and tcp_do_segment() of FreeBSD 14.

use airtcp::tcp::{SocketOptions, State};
use airtcp_testkit::pair::{LEFT, Pair, RIGHT};
use airwire::options::{Options, Timestamps};
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::common::{PROFILES, pair, path, profile};
use crate::test_host::{Out, TestHost, mss, sack};

const ACK: Flags = Flags::ACK;
const FIN: Flags = Flags::FIN;
const PSH: Flags = Flags::PSH;
const RST: Flags = Flags::RST;
const SYN: Flags = Flags::SYN;
const FIN_ACK: Flags = FIN.with(ACK);
const PSH_ACK: Flags = PSH.with(ACK);
const SYN_ACK: Flags = SYN.with(ACK);
const SYN_FIN: Flags = SYN.with(FIN);

/// The reply to a segment, and its effect on the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effect {
    /// No reply, and no effect.
    Silent,
    /// No reply. The timer restarts.
    Longer,
    /// An ACK.
    Acked,
    /// An ACK. The timer restarts.
    AckedLonger,
    /// No reply. The connection ends.
    Gone,
    /// A RST. The connection ends.
    Reset,
    /// The SYN,ACK of a new connection.
    Reopened,
}

use Effect::{Acked, AckedLonger, Gone, Longer, Reopened, Reset, Silent};

/// The situation that the segment meets. The peer has sent 100 bytes, and the application has closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Situation {
    /// TIME-WAIT after a passive open: RCV.NXT is 102, SND.NXT is 2, and the listener is still there.
    TimeWait,
    /// The same after an active open, without a listener.
    NoListener,
    /// FIN-WAIT-2 after a passive open: RCV.NXT is 101.
    FinWait2,
}

/// A segment with its name, its flags, its numbers (sequence number, ACK and length) and the effects in the
/// profiles `default`, `linux` and `freebsd`.
type Row = (&'static str, Flags, (u64, u64, usize), [Effect; 3]);

/// A row with the segment's timestamp. TS.Recent is 1000.
type StampedRow = (&'static str, Flags, (u64, u64, usize), Option<u32>, [Effect; 3]);

const WINDOW: u16 = 60_000;
const MINUTE: Duration = Duration::from_secs(60);
const HALF: Duration = Duration::from_secs(30);
const FAR: u64 = 50_000_000;

const IN_TIME_WAIT: [Row; 27] = [
    ("repeated FIN", FIN_ACK, (101, 2, 0), [AckedLonger; 3]),
    ("repeated data and FIN", FIN_ACK, (1, 2, 100), [AckedLonger; 3]),
    ("repeated data", ACK, (1, 2, 100), [AckedLonger, AckedLonger, Acked]),
    ("ACK in order", ACK, (102, 2, 0), [Silent, Longer, Silent]),
    ("ACK in order, pushed", PSH_ACK, (102, 2, 0), [Silent, Longer, Acked]),
    ("ACK ahead of RCV.NXT", ACK, (103, 2, 0), [AckedLonger, AckedLonger, Acked]),
    ("ACK far ahead in the window", ACK, (30_000, 2, 0), [AckedLonger, AckedLonger, Acked]),
    ("ACK below RCV.NXT", ACK, (101, 2, 0), [Acked, AckedLonger, Acked]),
    ("ACK far outside the window", ACK, (FAR, 2, 0), [Acked, AckedLonger, Acked]),
    ("data far outside the window", ACK, (FAR, 2, 10), [AckedLonger, AckedLonger, Acked]),
    ("ACK of unsent data in order", ACK, (102, 5002, 0), [Acked, Longer, Acked]),
    ("ACK of unsent data, repeated FIN", FIN_ACK, (101, 5002, 0), [AckedLonger; 3]),
    ("old ACK in order", ACK, (102, 1, 0), [Silent, Longer, Acked]),
    ("data in order", PSH_ACK, (102, 2, 10), [AckedLonger, AckedLonger, Acked]),
    ("second FIN", FIN_ACK, (102, 2, 0), [AckedLonger, AckedLonger, Acked]),
    ("data without ACK in order", PSH, (102, 0, 10), [Silent, Acked, Silent]),
    ("repeated FIN without ACK", FIN, (101, 0, 0), [AckedLonger, Acked, Silent]),
    ("RST in order", RST, (102, 0, 0), [Gone, Gone, Silent]),
    ("RST in the window", RST, (103, 0, 0), [Acked, Silent, Silent]),
    ("RST below the window", RST, (101, 0, 0), [Silent; 3]),
    ("RST outside the window", RST, (FAR, 0, 0), [Silent; 3]),
    ("new SYN", SYN, (5000, 0, 0), [Reopened; 3]),
    ("SYN at RCV.NXT", SYN, (102, 0, 0), [Acked, Acked, Silent]),
    ("old SYN", SYN, (50, 0, 0), [Acked, Acked, Silent]),
    ("new SYN,ACK", SYN_ACK, (5000, 2, 0), [Acked, AckedLonger, Acked]),
    ("new SYN,FIN", SYN_FIN, (5000, 0, 0), [Reopened, Gone, Reopened]),
    ("old SYN,FIN", SYN_FIN, (50, 0, 0), [Acked, Acked, Silent]),
];

const WITHOUT_LISTENER: [Row; 2] = [
    ("new SYN", SYN, (5000, 0, 0), [Acked, Acked, Reset]),
    ("old SYN", SYN, (50, 0, 0), [Acked, Acked, Silent]),
];

const WITH_TIMESTAMPS: [StampedRow; 14] = [
    ("repeated FIN", FIN_ACK, (101, 2, 0), Some(1000), [AckedLonger; 3]),
    ("repeated FIN, old", FIN_ACK, (101, 2, 0), Some(900), [AckedLonger; 3]),
    ("repeated FIN, none", FIN_ACK, (101, 2, 0), None, [Silent, AckedLonger, Silent]),
    ("ACK in order, new", ACK, (102, 2, 0), Some(2000), [Silent, Longer, Silent]),
    ("ACK in order, old", ACK, (102, 2, 0), Some(900), [Acked, AckedLonger, Silent]),
    ("ACK in order, one tick old", ACK, (102, 2, 0), Some(999), [Acked, AckedLonger, Silent]),
    ("ACK in order, none", ACK, (102, 2, 0), None, [Silent, Longer, Silent]),
    ("RST in order, old", RST, (102, 0, 0), Some(900), [Gone, Silent, Silent]),
    ("RST in order, none", RST, (102, 0, 0), None, [Gone, Gone, Silent]),
    ("low SYN, new", SYN, (50, 0, 0), Some(2000), [Reopened, Reopened, Silent]),
    ("low SYN, none", SYN, (50, 0, 0), None, [Acked, Acked, Silent]),
    ("high SYN, old", SYN, (5000, 0, 0), Some(900), [Acked, AckedLonger, Reopened]),
    ("high SYN, the same", SYN, (5000, 0, 0), Some(1000), [Reopened; 3]),
    ("high SYN, none", SYN, (5000, 0, 0), None, [Reopened; 3]),
];

const IN_FIN_WAIT_2: [Row; 13] = [
    ("FIN in order", FIN_ACK, (101, 2, 0), [AckedLonger; 3]),
    ("data in order", PSH_ACK, (101, 2, 10), [Reset; 3]),
    ("data and FIN in order", FIN_ACK, (101, 2, 10), [Reset; 3]),
    ("FIN ahead of RCV.NXT", FIN_ACK, (105, 2, 0), [Reset; 3]),
    ("data without ACK", PSH, (101, 0, 10), [Silent; 3]),
    ("ACK in order", ACK, (101, 2, 0), [Silent; 3]),
    ("ACK below RCV.NXT", ACK, (100, 2, 0), [Acked; 3]),
    ("ACK of unsent data", ACK, (101, 5002, 0), [Acked, Silent, Acked]),
    ("RST in order", RST, (101, 0, 0), [Gone; 3]),
    ("RST in the window", RST, (102, 0, 0), [Acked, Gone, Acked]),
    ("RST outside the window", RST, (FAR, 0, 0), [Silent, Acked, Silent]),
    ("SYN in the window", SYN, (101, 0, 0), [Acked, Reset, Acked]),
    ("SYN below the window", SYN, (50, 0, 0), [Acked; 3]),
];

/// A host in this situation. The peer uses SACK, and timestamps with the value `clock` unless it is `None`.
fn host_in(start: Situation, profile_name: &str, clock: Option<u32>) -> TestHost {
    let profile = profile(profile_name);
    let options = SocketOptions::of(&profile);
    let mut test = TestHost::new("sack", profile);
    let timestamps = clock.map(|val| Timestamps { val, ecr: 0 });
    let offer = Options { sack_permitted: true, timestamps, ..mss(1460) };
    if start == Situation::NoListener {
        test.connect(options, offer, WINDOW);
    } else {
        test.open(options, offer);
        test.segment(ACK, 1, 1, WINDOW, 0);
        test.accept();
    }
    test.segment(PSH_ACK, 1, 1, WINDOW, 100);
    let id = test.id.unwrap();
    assert_eq!(test.host.read(id, &mut [0; 200]), Ok(100));
    test.out();
    test.host.close(test.now, id);
    assert!(test.out().iter().any(|out| out.flags.contains(FIN)), "{profile_name}");
    match start {
        Situation::TimeWait | Situation::NoListener => test.segment(FIN_ACK, 101, 2, WINDOW, 0),
        Situation::FinWait2 => test.segment(ACK, 101, 2, WINDOW, 0),
    };
    assert_eq!(test.host.in_time_wait(), usize::from(start != Situation::FinWait2), "{profile_name}");
    test
}

/// Returns the effect of a segment that arrives half a minute later.
fn effect(
    test: &mut TestHost,
    start: Situation,
    segment: (Flags, (u64, u64, usize)),
) -> Result<Effect, String> {
    let (flags, (seq, ack, len)) = segment;
    let before = test.wait(HALF);
    let out = test.segment(flags, seq, ack, WINDOW, len);
    if let [answer] = &out[..]
        && answer.flags == SYN_ACK
    {
        return Ok(Reopened);
    }
    let ended = test.host.connections() == 0;
    let after = test.wait(MINUTE - HALF + Duration::from_millis(1));
    let waits = test.host.connections() == 1;
    let rest = test.wait(MINUTE);
    let unexpected = [before, after, rest].concat();
    if !unexpected.is_empty() || test.host.connections() > 0 {
        return Err(format!("{unexpected:?}, {} connections", test.host.connections()));
    }
    let next = if start == Situation::FinWait2 && !(flags == FIN_ACK && seq == 101) { 101 } else { 102 };
    let is_ack = |answer: &Out| (answer.flags, answer.seq, answer.ack, answer.len) == (ACK, 2, next, 0);
    match (&out[..], ended, waits) {
        ([], true, false) => Ok(Gone),
        ([], false, false) => Ok(Silent),
        ([], false, true) => Ok(Longer),
        ([answer], true, false) if answer.flags.contains(RST) => Ok(Reset),
        ([answer], false, false) if is_ack(answer) => Ok(Acked),
        ([answer], false, true) if is_ack(answer) => Ok(AckedLonger),
        _ => Err(format!("{out:?}, ended: {ended}, waits: {waits}")),
    }
}

/// Compares all rows and reports all differences together.
fn check(start: Situation, clock: Option<u32>, rows: &[StampedRow]) {
    let mut wrong = Vec::new();
    for (name, flags, numbers, stamp, expected) in rows {
        for (profile_name, expected) in PROFILES.iter().zip(expected) {
            let mut test = host_in(start, profile_name, clock);
            test.options.timestamps = stamp.map(|val| Timestamps { val, ecr: 0 });
            let found = effect(&mut test, start, (*flags, *numbers));
            if found != Ok(*expected) {
                wrong.push(format!("{name}, {profile_name}: {found:?}, expected {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{start:?}:\n{}", wrong.join("\n"));
}

fn without_stamps(rows: &[Row]) -> Vec<StampedRow> {
    rows.iter().map(|(name, flags, numbers, effects)| (*name, *flags, *numbers, None, *effects)).collect()
}

#[test]
fn segments_in_time_wait() {
    check(Situation::TimeWait, None, &without_stamps(&IN_TIME_WAIT));
}

#[test]
fn segments_in_time_wait_without_listener() {
    check(Situation::NoListener, None, &without_stamps(&WITHOUT_LISTENER));
}

#[test]
fn segments_in_time_wait_with_timestamps() {
    check(Situation::TimeWait, Some(1000), &WITH_TIMESTAMPS);
}

#[test]
fn segments_in_fin_wait_2_after_close() {
    check(Situation::FinWait2, None, &without_stamps(&IN_FIN_WAIT_2));
}

/// RFC 9293 §3.6.1, MAY-2 (1): the initial sequence number of the new connection is larger than all numbers
/// of the old connection, even if the clock that generates it has not advanced.
#[test]
fn reopened_connection_starts_above_old_sequence_numbers() {
    for profile_name in PROFILES {
        let mut test = host_in(Situation::TimeWait, profile_name, None);
        let unused = test.wire(2);
        let out = test.segment(SYN, 5000, 0, WINDOW, 0);
        assert_eq!(out.len(), 1, "{profile_name}");
        assert!(test.iss().offset(unused, 0).is_some(), "{profile_name}: {:?} {unused:?}", test.iss());
    }
}

/// The ACKs of TIME-WAIT in Linux and FreeBSD carry no D-SACK. In Linux, an ACK in order updates TS.Recent.
#[test]
fn options_of_acks_in_time_wait_follow_profile() {
    // The default profile echoes the timestamp of the repeated FIN.
    let expected = [("default", 1, 2001), ("linux", 0, 2000), ("freebsd", 0, 1000)];
    for (profile_name, blocks, echoed) in expected {
        let mut test = host_in(Situation::TimeWait, profile_name, Some(1000));
        let stamped = |val| Some(Timestamps { val, ecr: 0 });
        test.options.timestamps = stamped(2000);
        assert!(test.segment(ACK, 102, 2, WINDOW, 0).is_empty(), "{profile_name}");
        test.options.timestamps = stamped(2001);
        let out = test.segment(FIN_ACK, 101, 2, WINDOW, 0);
        let answer = &out[0].options;
        assert_eq!(answer.sack.as_slice().len(), blocks, "{profile_name}");
        assert_eq!(answer.timestamps.map(|ts| ts.ecr), Some(echoed), "{profile_name}");
    }
}

/// Two ends in TIME-WAIT must not answer each other's ACKs forever, while each repeated FIN is answered.
#[test]
fn time_wait_limits_answers_to_empty_segments() {
    let mut test = host_in(Situation::TimeWait, "linux", None);
    let mut count = |flags, seq| (0..5).map(|_| test.segment(flags, seq, 2, WINDOW, 0).len()).sum::<usize>();
    assert_eq!((count(ACK, 103), count(FIN_ACK, 101)), (1, 5));
}

/// FreeBSD reports only data in SACK blocks, and repeats its FIN in CLOSING (tcp_output()). Two such ends
/// still reach TIME-WAIT, because the ACK of a repeated FIN counts.
#[test]
fn freebsd_repeats_fin_in_closing() {
    let mut test = TestHost::connected("sack", profile("freebsd"), sack(), WINDOW);
    assert_eq!(test.shutdown_write().len(), 1);
    let out = test.segment(FIN_ACK, 1, 1, WINDOW, 0);
    assert_eq!(test.state(), State::Closing);
    assert_eq!((out.len(), out[0].flags, out[0].seq, out[0].ack), (1, FIN_ACK, 1, 2), "{out:?}");
    let out = test.segment(FIN_ACK, 1, 2, WINDOW, 0);
    assert_eq!(test.state(), State::TimeWait);
    assert_eq!((out.len(), out[0].flags, out[0].seq, out[0].ack), (1, ACK, 2, 2), "{out:?}");
    assert!(out[0].options.sack.is_empty(), "{out:?}");
}

/// A simultaneous close of two hosts ends in every profile, without a timeout.
#[test]
fn simultaneous_close_ends_in_time_wait() {
    for profile_name in PROFILES {
        let mut pair = pair(1, "sack", profile_name, path(10));
        let options = SocketOptions::of(&profile(profile_name));
        let listener = pair.right.listen((RIGHT, 80).into(), 4, options.clone()).unwrap();
        let left = pair.left.connect(pair.now, Some((LEFT, 0).into()), (RIGHT, 80).into(), options).unwrap();
        let right = loop {
            assert!(pair.step());
            if let Some(id) = pair.right.accept(listener) {
                break id;
            }
        };
        pair.left.close(pair.now, left);
        pair.right.close(pair.now, right);
        let sent = |pair: &Pair| pair.left.counters().packets_out + pair.right.counters().packets_out;
        let before = sent(&pair);
        while pair.left.in_time_wait() + pair.right.in_time_wait() < 2 {
            assert!(pair.step(), "{profile_name}");
        }
        while pair.step() {}
        // Two FINs, and the ACK of each, which FreeBSD's ends repeat.
        let extra = if profile_name == "freebsd" { 2 } else { 0 };
        assert_eq!(sent(&pair) - before, 4 + extra, "{profile_name}");
    }
}
