//! Tests of the runner: detected errors and their messages.

use std::path::{Path, PathBuf};

use super::run::{run, run_text};
use super::{Passed, RunOptions, ScriptError, Tolerance, UnlistedPackets, parse};

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
    play_with(
        &format!("{SERVER}{lines}"),
        &RunOptions { tolerance: Some(Tolerance::EXACT), ..RunOptions::default() },
    )
}

/// Plays a whole script, which must have a line for every packet of the host.
fn play_with(text: &str, options: &RunOptions) -> Result<Passed, ScriptError> {
    let script = parse::parse(text).unwrap();
    run(&script, Path::new("test.pkt"), &RunOptions { unlisted: UnlistedPackets::Refused, ..options.clone() })
}

fn first_line(result: Result<Passed, ScriptError>) -> String {
    let error = result.expect_err("this script must fail").to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

/// Returns the first line of the failure of [`SERVER`] with these lines, without tolerance.
fn complaint(lines: &str) -> String {
    first_line(play(lines))
}

/// Returns the first line of the failure of a whole script, with packetdrill's tolerance.
fn complaint_of(text: &str) -> String {
    first_line(play_with(text, &RunOptions::default()))
}

/// Checks that the complaint about each script contains the message.
fn assert_complaints(cases: &[(&str, &str)]) {
    for (lines, message) in cases {
        let complaint = complaint(lines);
        assert!(complaint.contains(message), "{lines}: {complaint}");
    }
}

const WRITE: &str = "+0 write 1500\n";

#[test]
fn passing_script_reports_compared_packets() {
    let report =
        play("+0 write 1500\n+0 > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n").unwrap();
    assert_eq!((report.events, report.checked, report.unchecked), (10, 2, 0));
    assert_eq!(report.to_string(), "test.pkt: 10 events, 2 packets as expected, 200.000ms of virtual time");
}

#[test]
fn failure_shows_trace_difference_and_recent_packets() {
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
      actual      0.100000  > P. 1:1001(1000) ack 1 win 64240
  recent packets:
         0.000000  < S 0:0(0) win 30000 <mss 1000>
         0.000000  > S. 0:0(0) ack 1 win 64240 <mss 1460>
         0.100000  < . 1:1(0) ack 1 win 30000
         0.100000  > P. 1:1001(1000) ack 1 win 64240
";
    assert_eq!(error, expected);
}

#[test]
fn every_wrong_packet_field_is_detected() {
    for (line, message) in [
        ("FP. 1:1501(1500) ack 1", "flags is ., expected F."),
        ("P. 2:1502(1500) ack 1", "seq is 1, expected 2"),
        ("P. 1:1501(1500) ack 2", "ack is 1, expected 2"),
        ("P. 1:1501(1500) ack 1 win 1", "win is 64240, expected 1"),
        ("P. 1:1501(1500) ack 1 <nop,nop,sackOK>", "options are <>"),
        ("[ect0] P. 1:1501(1500) ack 1", "IP says noecn, expected ect0"),
        ("(ttl 9) P. 1:1501(1500) ack 1", "ttl is 64, expected 9"),
    ] {
        let complaint = complaint(&format!("{WRITE}+0 > {line}\n"));
        let message = format!("test.pkt:10: the packet differs: {message}");
        assert!(complaint.starts_with(&message), "{line}: {complaint}");
    }
}

#[test]
fn packet_time_is_checked_with_exact_tolerance() {
    let line =
        |time: &str| format!("{WRITE}{time} > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n");
    assert_eq!(complaint(&line("+.001")), "test.pkt:10: the packet matches but is 1.000ms too early");
    assert!(play(&line("*")).is_ok());
    assert!(play(&line("+0~.1")).is_ok());
    assert!(complaint(&line("+.001~.1")).ends_with("1.000ms too early"));
    let late = format!("{WRITE}+0 > P. 1:1501(1500) ack 1\n+.2 > . 1:1001(1000) ack 1\n");
    assert_eq!(complaint(&late), "test.pkt:11: the host sent nothing");
}

#[test]
fn unexpected_packet_fails_script() {
    assert_eq!(complaint(WRITE), "test.pkt:9: the host sent packets that are not in the script");
    let surprise = format!("{WRITE}+0 < P. 1:11(10) ack 1 win 30000\n+0 > . 1501:1501(0) ack 11\n");
    assert!(complaint(&surprise).starts_with("test.pkt:11: the packet differs"));
}

#[test]
fn adjacent_segments_are_merged_unless_strict() {
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
fn psh_is_compared_only_on_request() {
    let lines = "+0 write 500\n+0 > . 1:501(500) ack 1\n+.1 < . 1:1(0) ack 501 win 30000\n";
    assert!(play(lines).is_ok());
    assert!(complaint(&format!("--psh=exact\n{lines}")).contains("flags is P., expected ."));
}

#[test]
fn call_result_and_return_time_are_checked() {
    let data = "+.1 < P. 1:11(10) ack 1 win 30000\n+0 > . 1:1(0) ack 11\n";
    assert!(play(&format!("+0...0.100 read(4, ..., 10) = 10\n{data}")).is_ok());
    assert_complaints(&[
        ("+0 write(4, ..., 10) = 9\n", "test.pkt:9: `write` returned 10, expected 9"),
        ("+0 recv(4, ..., 10, MSG_DONTWAIT) = 10\n", "test.pkt:9: `recv` returned -1 EAGAIN, expected 10"),
        (
            "+0 read(4, ..., 10) = 10\n",
            "test.pkt:9: `read` has to wait, but its line has no end time such as +0...0.2",
        ),
        (&format!("+0...0.200 read(4, ..., 10) = 10\n{data}"), "returned 100.000ms too early"),
        ("+0...0.100 read(4, ..., 10) = 10\n", "did not return in time"),
        (&format!("+0...0.100 read(4, ..., 10) = 9\n{data}"), "returned 10, expected 9"),
    ]);
}

#[test]
fn failed_assert_shows_values_of_names() {
    let message = "`assert tcpi_snd_cwnd == 9` does not hold: tcpi_snd_cwnd is 10";
    assert_complaints(&[
        ("+0 %{ assert tcpi_snd_cwnd == 9 }%\n", &format!("test.pkt:9: {message}")),
        ("+0 %{ assert tcpi_colour == 9 }%\n", "tcpi_colour"),
        ("+0 %{\nassert True\nassert tcpi_snd_cwnd == 9\n}%\n", &format!("test.pkt:11: {message}")),
    ]);
}

#[test]
fn code_blocks_share_variables_and_print() {
    let report = play(
        "+0 %{ before = tcpi_snd_cwnd; print('cwnd', before) }%\n+0 %{ assert before == tcpi_snd_cwnd }%\n",
    );
    let report = report.unwrap();
    assert_eq!(report.output, ["cwnd 10"]);
    assert!(report.to_string().ends_with("\n  output: cwnd 10"), "{report}");
    // Without TCP_INFO, a block needs no connection.
    let start = "%{ x = TCP_CA_Open }%\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n";
    assert!(play_with(start, &RunOptions::default()).is_ok());
    assert_eq!(
        complaint_of(&format!("{start}+0 %{{ assert tcpi_rtt == 1 }}%\n")),
        "test.pkt:3: no connection yet for TCP_INFO"
    );
}

#[test]
fn failure_shows_notes_and_output() {
    let lines =
        "`sysctl -q net.ipv4.tcp_autocorking=1`\n+0 %{ print(1) }%\n+0 write 1500\n+0 > F. 1:1(0) ack 1\n";
    let error = play(lines).unwrap_err().to_string();
    let note = "test.pkt:9: `net.ipv4.tcp_autocorking` was not set: airtcp does not support it";
    assert!(error.ends_with(&format!("  output: 1\n  note: {note}\n")), "{error}");
}

#[test]
fn arguments_without_effect_are_refused() {
    for (call, message) in [
        ("socket(AF_UNIX, SOCK_STREAM, 0) = 5", "airtcp supports only TCP over IPv4 and IPv6, not `AF_UNIX`"),
        (
            "socket(..., SOCK_STREAM, IPPROTO_MPTCP) = 5",
            "airtcp supports only TCP over IPv4 and IPv6, not `IPPROTO_MPTCP`",
        ),
        (
            "socket(..., SOCK_DGRAM, IPPROTO_TCP) = 5",
            "`socket` accepts the flags SOCK_STREAM SOCK_NONBLOCK SOCK_CLOEXEC, not SOCK_DGRAM",
        ),
        (
            "accept(3, {sa_family = AF_INET}, ...) = 5",
            "airtcp does not read argument 2 of `accept`; write `...`",
        ),
        (
            "accept4(3, ..., ..., SOCK_RAW) = 5",
            "`accept4` accepts the flags SOCK_NONBLOCK SOCK_CLOEXEC, not SOCK_RAW",
        ),
        ("connect(4, \"host\", ...) = 0", "expected an address or `...`, found Text(\"host\")"),
        (
            "setsockopt(4, SOL_SOCKET, TCP_NODELAY, [1], 4) = 0",
            "`TCP_NODELAY` is not an option of `SOL_SOCKET`",
        ),
        (
            "setsockopt(4, SOL_TCP, TCP_ULP, \"tls\", 4) = 0",
            "airtcp does not support the socket option `TCP_ULP`",
        ),
        (
            "setsockopt(4, SOL_TCP, TCP_NODELAY, {onoff=1, linger=1}, 8) = 0",
            "expected a number, found Struct",
        ),
        (
            "getsockopt(4, SOL_TCP, TCP_NODELAY, \"x\", [4]) = 0",
            "expected `[N]` or `...` as argument 4 of `getsockopt`",
        ),
        (
            "getsockopt(4, SOL_SOCKET, SO_REUSEADDR, [1], [4]) = 0",
            "airtcp does not keep the value of `SO_REUSEADDR`",
        ),
        ("ioctl(4, SIOCINQ, 0) = 0", "expected `[N]` or `...` as argument 3 of `ioctl`"),
        ("write(4, \"text\", 4) = 4", "airtcp does not read argument 2 of `write`; write `...`"),
        ("send(4, ..., 4, MSG_OOB) = 4", "`send` accepts the flags"),
        ("poll([{fd=4, events=POLLIN}], 2, 0) = 0", "this poll has 1 entries"),
    ] {
        let complaint = complaint(&format!("+0 {call}\n"));
        assert!(complaint.starts_with(&format!("test.pkt:9: {message}")), "{complaint}");
    }
    let report = play("+0 setsockopt(4, SOL_TCP, TCP_CONGESTION, \"reno\", 4) = 0\n").unwrap();
    assert_eq!(report.notes, ["test.pkt:9: `TCP_CONGESTION` has no effect"]);
}

#[test]
fn accepted_descriptor_may_be_nonblocking() {
    let script = SERVER.replace("accept(3, ..., ...)", "accept4(3, ..., ..., SOCK_NONBLOCK)");
    let lines = format!("{script}+0 read(4, ..., 10) = -1 EAGAIN (Resource temporarily unavailable)\n");
    assert!(play_with(&lines, &RunOptions::default()).is_ok());
}

#[test]
fn run_options_override_script_settings() {
    let script = parse::parse(&format!("recipe newreno\n{SERVER}")).unwrap();
    let run = |options| run(&script, Path::new("test.pkt"), &options);
    assert!(run(RunOptions { profile: Some("freebsd".into()), ..RunOptions::default() }).is_ok());
    let error = run(RunOptions { recipe: Some("newrenoo".into()), ..RunOptions::default() }).unwrap_err();
    assert!(error.to_string().contains("newrenoo"), "{error}");
}

#[test]
fn connections_are_distinguished_by_descriptor() {
    let lines = "\
+0 < [new] S 0:0(0) win 30000 <mss 1000>
+0 > S. 0:0(0) ack 1 <mss 1460>
+0 < . 1:1(0) ack 1 win 30000
+0 accept(3, ..., ...) = 5
+0 write(4, ..., 10) = 10
";
    assert!(play(&format!("{lines}+0 > [fd 4] P. 1:11(10) ack 1\n")).is_ok());
    let wrong = complaint(&format!("{lines}+0 > [fd 5] P. 1:11(10) ack 1\n"));
    let message = "belongs to the connection of descriptor 4, expected one of the connection of descriptor 5";
    assert!(wrong.contains(message), "{wrong}");
}

#[test]
fn time_tolerance_matches_packetdrill() {
    let server = |lines: &str| format!("{SERVER}{lines}");
    let line = |time: &str| {
        server(&format!("{WRITE}{time} > P. 1:1501(1500) ack 1\n+.1 < . 1:1(0) ack 1501 win 30000\n"))
    };
    assert!(play_with(&line("+.004"), &RunOptions::default()).is_ok());
    assert_eq!(complaint_of(&line("+.005")), "test.pkt:10: the packet matches but is 5.000ms too early");
    let granted =
        |flag: &str, time: &str| play_with(&format!("{flag}\n{}", line(time)), &RunOptions::default());
    assert!(granted("--tolerance_usecs=6000", "+.005").is_ok());
    assert!(granted("--tolerance_usecs=1000", "+.004").is_err());

    // The retransmission is sent after 300 ms; an eighth of 340 ms is more than 40 ms.
    let retransmission = |time: &str| {
        server(&format!("+0 write 1000\n+0 > P. 1:1001(1000) ack 1\n{time} > P. 1:1001(1000) ack 1\n"))
    };
    assert!(play_with(&retransmission("+.34"), &RunOptions::default()).is_ok());
    assert!(complaint_of(&retransmission("+.35")).ends_with("50.000ms too early"));
    assert!(play_with(&retransmission("+.27"), &RunOptions::default()).is_ok());
    assert_eq!(complaint_of(&retransmission("+.26")), "test.pkt:11: the host sent nothing");
    let narrow = format!("--tolerance_percent=1\n{}", retransmission("+.34"));
    assert!(complaint_of(&narrow).ends_with("40.000ms too early"));
}

#[test]
fn relative_time_counts_from_actual_packet_time() {
    // The packet is sent at 300 ms, and the following line is 100 ms later.
    let lines = "+0 write 1000\n+0 > P. 1:1001(1000) ack 1\n+.32 > P. 1:1001(1000) ack 1\n";
    let script = format!("{SERVER}{lines}+.1 < . 1:1(0) ack 1001 win 30000\n");
    let report = play_with(&script, &RunOptions::default()).unwrap();
    assert_eq!(report.duration.as_millis(), 500);
}

#[test]
fn script_starts_at_zero_and_time_never_decreases() {
    for (script, message) in [
        (
            "+.1 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n",
            "1: the first line has to be at time 0, not 0.100000",
        ),
        (
            &format!("{SERVER}0.5 close(4) = 0\n0.4 close(3) = 0\n"),
            "10: time goes backward: this line is at 0.400000, the line before at 0.500000",
        ),
        // The handshake took 100 ms.
        (&format!("{SERVER}0.05 close(4) = 0\n"), "9: this line is reached at 0.100000, 50.000ms too late"),
    ] {
        assert_eq!(complaint_of(script), format!("test.pkt:{message}"));
    }
}

#[test]
fn immediate_return_fails_line_with_end_time() {
    for call in [
        "close(4) = 0",
        "shutdown(4, SHUT_WR) = 0",
        "socket(..., SOCK_STREAM, IPPROTO_TCP) = 5",
        "fcntl(4, F_GETFL) = 2",
        "setsockopt(4, SOL_TCP, TCP_NODELAY, [1], 4) = 0",
        "getsockopt(4, SOL_TCP, TCP_NODELAY, [0], [4]) = 0",
        "ioctl(4, SIOCINQ, [0]) = 0",
    ] {
        let name = call.split('(').next().unwrap();
        assert_eq!(
            complaint_of(&format!("{SERVER}+0...0.5 {call}\n")),
            format!("test.pkt:9: `{name}` returned immediately, expected it to wait for 500.000ms")
        );
    }
    assert!(
        complaint_of(&format!("{SERVER}+0...0.5 write(4, ..., 10) = 10\n")).contains("returned immediately")
    );
    assert!(complaint_of(&format!("{SERVER}+0...0.5 close\n")).contains("`close` returned immediately"));
    let within = format!("{SERVER}+0...0.003 close(4) = 0\n+0 > F. 1:1(0) ack 1\n");
    assert!(play_with(&within, &RunOptions::default()).is_ok());
}

#[test]
fn poll_without_end_time_waits_for_its_timeout() {
    let poll =
        "+0 poll([{fd=4, events=POLLIN}], 1, 100) = 0\n+0 write(4, ..., 10) = 10\n+0 > P. 1:11(10) ack 1\n";
    let report = play(poll).unwrap();
    assert_eq!(report.duration.as_millis(), 200);
}

#[test]
fn omitted_ack_number_is_zero() {
    let omitted = format!("{WRITE}+0 > . 1:1501(1500)\n");
    assert_eq!(complaint(&omitted), "test.pkt:10: the packet differs: ack is 1, expected 0");
    // An ACK number of 0 is from before the connection and is answered with a challenge ACK (RFC
    // 5961 §5).
    let old = format!(
        "{WRITE}+0 > . 1:1501(1500) ack 1\n+.1 < . 1:1(0) win 30000\n+0 > . 1501:1501(0) ack 1\n+0 < . 1:1(0) ack 1501 win 30000\n"
    );
    assert!(play(&old).is_ok());
    let poll = "+0 poll([{fd=4, events=POLLIN|POLLOUT}], 1, 0) = 1\n";
    assert!(complaint(poll).contains("revents"), "{}", complaint(poll));
}

#[test]
fn invalid_call_arguments_are_rejected() {
    assert_complaints(&[
        (
            "+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 4\n",
            "test.pkt:9: descriptor 4 is already open; use another one",
        ),
        ("+0 accept(3, ..., ...) = 4\n", "descriptor 4 is already open"),
        ("+0 poll([{fd=4, events=POLLIN}], 1, 9223372036854775807) = 0\n", "is an int"),
        ("+0 write(4, ..., 4000000000) = 1\n", "is not a length from 0 to"),
    ]);
    assert!(play("+0 fcntl(4, F_SETFL, O_RDWR|0x800|O_NONBLOCK) = 0\n").is_ok());
}

#[test]
fn unnamed_error_matches_any_error() {
    assert!(play("+0 recv(4, ..., 10, MSG_DONTWAIT) = -1\n").is_ok());
    assert!(complaint("+0 fcntl(4, F_GETFL) = -1\n").contains("returned 2, expected -1"));
}

#[test]
fn unknown_timestamp_echo_is_rejected_unless_scaled() {
    let script = |flags: &str, ecr: u32| {
        format!(
            "profile default\n{flags}\n0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 30000 <mss 1000,sackOK,TS val 1 ecr 0>\n\
             +0 > S. 0:0(0) ack 1 <mss 1460,sackOK,TS val 50 ecr 1>\n\
             +.1 < . 1:1(0) ack 1 win 30000 <nop,nop,TS val 2 ecr {ecr}>\n"
        )
    };
    assert!(play_with(&script("", 50), &RunOptions::default()).is_ok());
    assert!(complaint_of(&script("", 60)).contains("no packet of the host had TS val 60"));
    assert!(play_with(&script("--tcp_ts_ecr_scaled", 60), &RunOptions::default()).is_ok());
}

#[test]
fn fast_open_cookie_is_compared_like_other_options() {
    let lines = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0...0.1 connect(3, ..., ...) = 0\n";
    let options = "<mss 1460,sackOK,TS val 1 ecr 0,nop,wscale 8,FO,nop,nop>";
    let complaint = complaint_of(&format!("{lines}+0 > S 0:0(0) {options}\n"));
    assert!(complaint.contains(&format!("expected {options}")), "{complaint}");
}

#[test]
fn non_fatal_flag_turns_difference_into_note() {
    let lines = format!("{WRITE}+0 > P. 1:1501(1500) ack 7\n+.1 < . 1:1(0) ack 1501 win 30000\n");
    let report = play(&format!("--non_fatal=packet\n{lines}")).unwrap();
    assert_eq!(report.checked, 1);
    let note = "test.pkt:11: the packet differs: ack is 1, expected 7";
    assert!(report.notes[0].starts_with(note), "{:?}", report.notes);
    assert!(complaint(&format!("--non_fatal=syscall\n{lines}")).contains("ack is 1"));
}

#[test]
fn packetdrill_flags_are_validated() {
    let with = |flag: &str| play(&format!("{flag}\n"));
    assert_eq!(with("--mss=1000").unwrap().notes, ["test.pkt:9:1: --mss has no effect"]);
    assert_eq!(with("--ip_version=ipv4-mapped-ipv6").unwrap().notes, Vec::<String>::new());
    assert_eq!(with("--dry_run").unwrap().events, 0);
    for (flag, complaint) in [
        ("--mss=0", "`--mss=0`: expected a number from 1"),
        ("--mss", "`--mss` needs a value: `--mss=BYTES`"),
        ("--strict_segments=1", "`--strict_segments` takes no value, but has `1`"),
        ("--tolerance_usecs=0", "`--tolerance_usecs=0`: expected a number from 1"),
        ("--tolerance_percent=101", "`--tolerance_percent=101`: expected a number from 0 to 100"),
        ("--bind_port=0", "`--bind_port=0`: expected a port from 1 to 65535"),
        ("--mtu=20", "`--mtu=20`: expected a number from 68 to 65535"),
        ("--ip_version=ipv5", "`--ip_version=ipv5`: expected ipv4, ipv6 or ipv4-mapped-ipv6"),
        ("--wire_client", "`--wire_client`: airtcp plays a script in one process, not between two machines"),
        ("--colour=red", "unknown flag `--colour`"),
    ] {
        assert_eq!(with(flag).unwrap_err().to_string(), format!("test.pkt:9:1: {complaint}"));
    }
    // The caller's flags override the script's, and their errors do not name a file.
    let options = |name: &str, value: &str| RunOptions {
        flags: vec![(name.to_owned(), Some(value.to_owned()))],
        ..RunOptions::default()
    };
    let error = play_with(&format!("--mtu=1400\n{SERVER}"), &options("mtu", "x")).unwrap_err();
    assert_eq!(error.to_string(), "command line: `--mtu=x`: expected a number");
    let narrow = SERVER.replace("mss 1460", "mss 960");
    assert!(play_with(&format!("--mtu=1400\n{narrow}"), &options("mtu", "1000")).is_ok());
}

#[test]
fn packets_after_connect_belong_to_new_socket() {
    let second = "\
+0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
+0 bind(5, {sa_family = AF_INET, sin_port = htons(8081), sin_addr = inet_addr(\"192.168.0.1\")}, ...) = 0
+0 connect(5, ..., ...) = -1 EINPROGRESS (Operation now in progress)
";
    let lines = format!(
        "{second}+0 > S 0:0(0) <...>\n+.1 < S. 7000:7000(0) ack 1 win 30000 <mss 1000>\n+0 > . 1:1(0) ack 1\n"
    );
    let lines = lines.replace("+0 connect", "+0 fcntl(5, F_SETFL, O_RDWR|O_NONBLOCK) = 0\n+0 connect");
    play(&lines).unwrap();
}

#[test]
fn script_without_events_is_rejected() {
    for text in ["", "// nothing\n--mtu=1400\n", "`sysctl -q net.ipv4.tcp_sack=0`\n"] {
        assert_eq!(complaint_of(text), "test.pkt: the script is empty; it needs a line with a time");
    }
}

/// Any script must either pass or fail with an error message.
#[test]
fn mutated_scripts_do_not_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/scripts");
    let mut scripts: Vec<(PathBuf, String)> = ["handshake", "close", "icmp", "options", "data"]
        .iter()
        .flat_map(|dir| std::fs::read_dir(root.join(dir)).unwrap())
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read_to_string(path).unwrap()))
        .collect();
    scripts.sort();
    let mut rng = airwire::rng::Stream::new(7, "scripts");
    let words: Vec<&str> = "0¦-1¦4294967295¦99999999999999999999¦0x¦.¦...¦<¦>¦(¦)¦[¦]¦{¦}¦ack¦win¦sack¦TS¦icmp¦mtu¦S¦FO¦+0¦*¦~¦`¦%{¦}%¦\"¦\
        --mtu=68¦é¦=¦,¦:¦close(4) = 0¦\n"
        .split('¦')
        .collect();
    let mut outcomes = [0, 0];
    for round in 0..1500 {
        let (path, text) = &scripts[round % scripts.len()];
        // Split the script into words, then move, duplicate, delete or replace some words.
        let mut pieces: Vec<&str> = text.split_inclusive([' ', ',', '(', ')', ':', '<', '>', '\n']).collect();
        for _ in 0..=rng.below(2) {
            let at = rng.below(pieces.len() as u64) as usize;
            let other = rng.below(pieces.len() as u64) as usize;
            match rng.below(4) {
                0 => pieces.swap(at, other),
                1 => pieces.insert(at, pieces[other]),
                2 => pieces[at] = "",
                _ => pieces[at] = words[rng.below(words.len() as u64) as usize],
            }
        }
        let result = run_text(&pieces.concat(), path, &RunOptions::default());
        if let Err(error) = &result {
            assert!(!error.to_string().is_empty());
        }
        outcomes[usize::from(result.is_err())] += 1;
    }
    assert!(outcomes.iter().all(|count| *count > 100), "{outcomes:?}");
}

/// The first connection retransmits its FIN while the second is checked.
#[test]
fn packets_of_earlier_connection_stay_unchecked() {
    let lines = "\
+0 close(4) = 0
+0 > F. 1:1(0) ack 1
+0 close(3) = 0
+.01 socket(..., SOCK_STREAM, IPPROTO_TCP) = 5
+0 bind(5, ..., ...) = 0
+0 listen(5, 1) = 0
+.5 < S 700:700(0) win 30000 <mss 1000>
+0 > S. 0:0(0) ack 701 <mss 1460>
+.5 < . 1:1(0) ack 1 win 30000
+0 accept(5, ..., ...) = 6
+0 write(6, ..., 100) = 100
+0 > P. 1:101(100) ack 1
";
    let script = parse::parse(&format!("{SERVER}{lines}")).unwrap();
    let report = run(&script, Path::new("test.pkt"), &RunOptions::default()).unwrap();
    assert_eq!(report.checked, 4);
    assert!(report.unchecked > 0);
    // With `UnlistedPackets::Refused` the script does not list every packet and fails.
    assert!(complaint(lines).contains("belongs to the connection of descriptor 4"), "{}", complaint(lines));
}

#[test]
fn sysctl_has_no_effect_after_bind() {
    let script = |first: &str, later: &str| {
        format!(
            "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n{first}\n+0 bind(3, ..., ...) = 0\n{later}\n+0 listen(3, 1) = 0\n\
             +0 < S 0:0(0) win 30000 <mss 1000,nop,nop,sackOK>\n+0 > S. 0:0(0) ack 1 <mss 1460>\n"
        )
    };
    let off = "+0 `sysctl -q net.ipv4.tcp_sack=0`";
    assert_eq!(play_with(&script(off, ""), &RunOptions::default()).unwrap().notes, Vec::<String>::new());
    assert!(complaint_of(&script("", off)).contains("sackOK"));
    let unharmed = script("", off).replace("> S. 0:0(0) ack 1 <mss 1460>", "> S. 0:0(0) ack 1 <...>");
    assert_eq!(
        play_with(&unharmed, &RunOptions::default()).unwrap().notes,
        ["test.pkt:4: `sysctl -q net.ipv4.tcp_sack=0` has no effect after the first bind or connect"]
    );
}
