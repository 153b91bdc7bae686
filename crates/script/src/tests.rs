//! What a runner must notice, and how it says so.

use std::path::Path;

use super::run::run;
use super::{End, Passed, RunOptions, ScriptError, parse};

/// A connection on descriptor 4, without options that need a clock.
const SERVER: &str = "\
profile linux
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 30000 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+.1 < . 1:1(0) ack 1 win 30000
+0 accept(3, ..., ...) = 4
";

fn play(lines: &str) -> Result<Passed, ScriptError> {
    let script = parse::parse(&format!("{SERVER}{lines}")).unwrap();
    run(&script, Path::new("test.pkt"), &RunOptions { end: End::Exact, ..RunOptions::default() })
}

/// The first line of the failure.
fn complaint(lines: &str) -> String {
    let error = play(lines).expect_err("this script must fail").to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

const WRITE: &str = "+0 write 1500\n";

#[test]
fn a_script_that_holds_reports_what_it_compared() {
    let report =
        play("+0 write 1500\n+0 > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n").unwrap();
    assert_eq!((report.events, report.checked, report.unchecked), (10, 2, 0));
    assert_eq!(report.to_string(), "test.pkt: 10 events, 2 packets as expected, 200.000ms of virtual time");
}

#[test]
fn a_failure_shows_the_way_there_the_difference_and_the_packets() {
    let error = play("+0 write 1000\n+0 > P. 1:901(900) ack 1\n").unwrap_err().to_string();
    let expected = "\
test.pkt:10: the packet differs: payload length is 1000, expected 900
  ✓    2    0.000000  0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
  ✓    3    0.000000  +0 bind(3, ..., ...) = 0
  ✓    4    0.000000  +0 listen(3, 1) = 0
  ✓    5    0.000000  +0 < S 0:0(0) win 30000 <mss 1000>
  ✓    6    0.000000  +0 > S. 0:0(0) ack 1 <mss 1460>
  ✓    7    0.100000  +.1 < . 1:1(0) ack 1 win 30000
  ✓    8    0.100000  +0 accept(3, ..., ...) = 4
  ✓    9    0.100000  +0 write 1000
  ✗   10    0.100000  +0 > P. 1:901(900) ack 1
      expected    0.100000  > P. 1:901(900) ack 1
      actual      0.100000  > P. 1:1001(1000) ack 1 win 65535
  recent packets:
         0.000000  < S 0:0(0) win 30000 <mss 1000>
         0.000000  > S. 0:0(0) ack 1 win 65535 <mss 1460>
         0.100000  < . 1:1(0) ack 1 win 30000
         0.100000  > P. 1:1001(1000) ack 1 win 65535
";
    assert_eq!(error, expected);
}

#[test]
fn every_wrong_word_of_a_packet_line_is_noticed() {
    let sent = |line: &str| complaint(&format!("{WRITE}{line}\n"));
    assert_eq!(
        sent("+0 > FP. 1:1501(1500) ack 1"),
        "test.pkt:10: the packet differs: flags is ., expected F."
    );
    assert!(sent("+0 > P. 2:1502(1500) ack 1").contains("seq is 1, expected 2"));
    assert!(sent("+0 > P. 1:1501(1500) ack 2").contains("ack is 1, expected 2"));
    assert!(sent("+0 > P. 1:1501(1500) ack 1 win 1").contains("win is 65535, expected 1"));
    assert!(sent("+0 > P. 1:1501(1500) ack 1 <nop,nop,sackOK>").contains("options are <>"));
    assert!(sent("+0 > [ect0] P. 1:1501(1500) ack 1").contains("IP says noecn, expected ect0"));
    assert!(sent("+0 > (ttl 9) P. 1:1501(1500) ack 1").contains("ttl is 64, expected 9"));
}

#[test]
fn time_is_exact_unless_the_script_grants_tolerance() {
    let line =
        |time: &str| format!("{WRITE}{time} > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n");
    assert_eq!(complaint(&line("+.001")), "test.pkt:10: the packet is right but 1.000ms too early");
    assert!(play(&line("*")).is_ok());
    assert!(play(&line("+0~.1")).is_ok());
    assert!(complaint(&line("+.001~.1")).ends_with("1.000ms too early"));
    assert!(play(&format!("--tolerance_usecs=1000\n{}", line("+.001"))).is_ok());
    let late = format!("{WRITE}+0 > P. 1:1501(1500) ack 1\n+.2 > . 1:1001(1000) ack 1\n");
    assert_eq!(complaint(&late), "test.pkt:11: the host sent nothing");
}

#[test]
fn a_packet_that_no_line_expects_is_an_error_there_or_at_the_end() {
    assert_eq!(complaint(WRITE), "test.pkt:9: the host has sent more than the script speaks of");
    let surprise = format!("{WRITE}+0 < P. 1:11(10) ack 1 win 30000\n+0 > . 1501:1501(0) ack 11\n");
    assert!(complaint(&surprise).starts_with("test.pkt:11: the packet differs"));
}

#[test]
fn equal_segments_add_up_unless_segments_are_strict() {
    let whole = "+0 > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n";
    assert!(play(&format!("{WRITE}{whole}")).is_ok());
    assert!(
        complaint(&format!("--strict_segments\n{WRITE}{whole}"))
            .contains("payload length is 1000, expected 1500")
    );
    let apart =
        "+0 > . 1:1001(1000) ack 1\n+0 > P. 1001:1501(500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n";
    assert!(play(&format!("--strict_segments\n{WRITE}{apart}")).is_ok());
    assert!(play(&format!("{WRITE}{apart}")).is_ok());
}

#[test]
fn where_psh_stands_counts_only_when_asked_for() {
    let lines = "+0 write 500\n+0 > . 1:501(500) ack 1\n+.1 < . 1:1(0) ack 501 win 30000\n";
    assert!(play(lines).is_ok());
    assert!(complaint(&format!("--psh=exact\n{lines}")).contains("flags is P., expected ."));
}

#[test]
fn calls_must_return_what_and_when_the_line_says() {
    assert_eq!(complaint("+0 write(4, ..., 10) = 9\n"), "test.pkt:9: `write` returned 10, expected 9");
    assert_eq!(
        complaint("+0 recv(4, ..., 10, MSG_DONTWAIT) = 10\n"),
        "test.pkt:9: `recv` returned -1 EAGAIN, expected 10"
    );
    assert_eq!(
        complaint("+0 read(4, ..., 10) = 10\n"),
        "test.pkt:9: `read` has to wait, but its line has no end time such as +0...0.2"
    );
    let data = "+.1 < P. 1:11(10) ack 1 win 30000\n+0 > . 1:1(0) ack 11\n";
    assert!(play(&format!("+0...0.100 read(4, ..., 10) = 10\n{data}")).is_ok());
    assert!(
        complaint(&format!("+0...0.200 read(4, ..., 10) = 10\n{data}"))
            .contains("returned 100.000ms too early")
    );
    assert!(complaint("+0...0.100 read(4, ..., 10) = 10\n").contains("has not returned when it should have"));
    assert!(
        complaint(&format!("+0...0.100 read(4, ..., 10) = 9\n{data}")).contains("returned 10, expected 9")
    );
}

#[test]
fn asserts_show_what_the_names_stood_for() {
    assert_eq!(
        complaint("+0 %{ assert tcpi_snd_cwnd == 9 }%\n"),
        "test.pkt:9: `assert tcpi_snd_cwnd == 9` does not hold: tcpi_snd_cwnd is 10"
    );
    assert!(complaint("+0 %{ assert tcpi_colour == 9 }%\n").contains("tcpi_colour"));
}

#[test]
fn the_caller_overrides_the_script() {
    let script = parse::parse(&format!("recipe newreno\n{SERVER}")).unwrap();
    let run = |options| run(&script, Path::new("test.pkt"), &options);
    assert!(run(RunOptions { profile: Some("freebsd".into()), ..RunOptions::default() }).is_ok());
    let error = run(RunOptions { recipe: Some("newrenoo".into()), ..RunOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("newrenoo"), "{error}");
}

#[test]
fn several_connections_are_told_apart_by_descriptor() {
    let lines = "\
+0 < [new] S 0:0(0) win 30000 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+0 < . 1:1(0) ack 1 win 30000
+0 accept(3, ..., ...) = 5
+0 write(4, ..., 10) = 10
";
    assert!(play(&format!("{lines}+0 > [fd 4] P. 1:11(10) ack 1\n")).is_ok());
    let wrong = complaint(&format!("{lines}+0 > [fd 5] P. 1:11(10) ack 1\n"));
    assert!(
        wrong.contains(
            "belongs to the connection of descriptor 4, expected one of the connection of descriptor 5"
        ),
        "{wrong}"
    );
}
