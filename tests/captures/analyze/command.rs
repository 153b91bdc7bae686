//! The command line of `airtcp analyze`: its errors, its output and captures on interfaces.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use airtcp_testkit::frames::{ETHERNET, Pcap, v4, v6};
use airtcp_testkit::machine::{airtcp, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::{acked, analyze_path, counts, ethernet_of, file, no_problems, plain, transfer};

fn single_line_error(args: &[&str], code: i32) -> String {
    let ended = run(args);
    assert_eq!(ended.code, code, "{args:?}: {}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.is_empty() && ended.stderr.lines().count() == 1, "{args:?}: {}", ended.stderr);
    ended.stderr
}

#[test]
fn empty_capture_is_reported() {
    let empty = file(&Pcap::new(ETHERNET).file);
    let ended = run(&["analyze", empty.path()]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.contains("0 frames"), "{}", ended.stdout);
}

#[test]
fn unreadable_input_yields_one_line_error() {
    assert!(
        single_line_error(&["analyze", "/nonexistent.pcap"], 2)
            .contains("cannot read /nonexistent.pcap: No such file")
    );
    for octets in [&b""[..], b"GIF89a, not a capture", &[0x0a, 0x0d, 0x0d]] {
        let octets = file(octets);
        let stderr = single_line_error(&["analyze", octets.path()], 1);
        assert!(stderr.contains("not a supported capture"), "{stderr}");
    }
    let usb = file(&Pcap::new(189).file);
    let stderr = single_line_error(&["analyze", usb.path()], 1);
    assert!(stderr.contains("unsupported link type USB_LINUX"), "{stderr}");
    let capture = file(&ethernet_of(&plain()));
    let path = capture.path();
    let stderr = single_line_error(&["analyze", path, "-f", "prot 80"], 2);
    assert!(stderr.contains("invalid filter `prot 80`") && stderr.contains("pcap-filter"), "{stderr}");
    let stderr = single_line_error(&["analyze", "-i", "no-such-device", "--for", "1s"], 2);
    assert!(stderr.contains("unknown interface `no-such-device`; available are"), "{stderr}");
    let ended = run(&["analyze", path, "--connection", "4"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("has the number 0, not 4; use --connection 0"), "{}", ended.stderr);
}

/// For each retransmission, the list shows the preceding duplicate ACKs and the data in flight.
#[test]
fn every_retransmission_is_listed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../pcaps/newreno.pcap");
    let capture = analyze_path(path, &["--resent"]);
    let direction = &capture["connections"][0]["directions"][0]["retransmissions"];
    let resent = capture["connections"][0]["resent"][0].as_array().unwrap();
    for why in ["fast", "timeout"] {
        let listed = resent.iter().filter(|packet| packet["why"] == why).count();
        assert_eq!(direction[why], listed, "{why}: {resent:?}");
    }
    assert_eq!(direction["packets"], resent.len());
    let first = &resent[0];
    assert_eq!((&first["why"], &first["dupacks"]), (&"fast".into(), &3.into()), "{first}");
    assert!(first["in_flight"].as_u64().unwrap() > 3, "{first}");

    let ended = run(&["analyze", path, "--resent", "--wide"]);
    let (_, list) = ended.stdout.split_once("in flight  outcome\n").expect("the list heading");
    let listed: Vec<_> = list.lines().take_while(|line| !line.is_empty()).collect();
    assert_eq!(listed.len(), resent.len(), "{}", ended.stdout);
    let words: Vec<_> = listed[0].split_whitespace().collect();
    assert_eq!(words[0], first["frame"].to_string());
    assert_eq!(words[3..], ["fast", "3", &first["in_flight"].to_string()]);
    assert!(listed.iter().any(|line| line.ends_with("spurious (timestamp)")), "{}", ended.stdout);
}

/// Needs root privileges, because it captures on an interface.
#[test]
fn interrupted_interface_capture_includes_all_packets() {
    let namespace = airtcp_testkit::machine::namespace();
    let up = || Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(namespace.enter(up).unwrap().success());
    let mut command = airtcp(&["analyze", "-i", "lo", "-f", "port 9000", "--for", "20s", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = namespace.enter(|| command.spawn().unwrap()).unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "capturing on lo; press Ctrl-C to stop\n");
    let receiver = airtcp_testkit::machine::kernel_receiver(&namespace, 9000);
    airtcp_testkit::machine::wait_for_listener(&namespace, 9000);
    namespace
        .enter(|| TcpStream::connect(("127.0.0.1", 9000)).unwrap().write_all(&[7; 300_000]).unwrap())
        .unwrap();
    assert_eq!(receiver.join().unwrap().bytes, 300_000);
    // At this time, the last packets are still in the kernel's buffer.
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let capture = &document["captures"][0];
    assert_eq!((capture["name"].as_str(), counts(capture).1), (Some("lo"), 1));
    assert_eq!(acked(capture, 0), [300_000, 0]);
    no_problems(capture);
}

/// Needs root privileges, because it captures on an interface. `script` provides a terminal.
#[test]
#[expect(clippy::disallowed_methods, reason = "the sender pauses, so that the capture lasts for seconds")]
fn live_capture_shows_busy_connection_and_its_socket() {
    let namespace = airtcp_testkit::machine::namespace();
    let up = || Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap();
    assert!(namespace.enter(up).unwrap().success());
    let json = airtcp(&["analyze", "-i", "lo", "-f", "port 9000", "--for", "4s", "--json"]);
    let program = json.get_program().to_str().unwrap();
    let mut terminal = Command::new("script");
    terminal.args(["-qec", &format!("{program} analyze -i lo -f 'port 9000' --for 4s"), "/dev/null"]);
    let programs = [terminal, json].map(|mut command| {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        namespace.enter(|| command.spawn().unwrap()).unwrap()
    });
    let receiver = airtcp_testkit::machine::kernel_receiver(&namespace, 9000);
    airtcp_testkit::machine::wait_for_listener(&namespace, 9000);
    let mut stream = namespace.enter(|| TcpStream::connect(("127.0.0.1", 9000)).unwrap()).unwrap();
    for _ in 0..60 {
        stream.write_all(&[7; 20_000]).unwrap();
        thread::sleep(Duration::from_millis(50));
    }
    drop(stream);
    receiver.join().unwrap();
    let [screen, document] = programs.map(|child| child.wait_with_output().unwrap().stdout);

    let screen = String::from_utf8(screen).unwrap();
    let row = screen.lines().find(|line| line.contains("127.0.0.1:9000") && line.contains("bit/s"));
    assert!(row.is_some() && screen.contains("1 open, 1 with data in the last second"), "{screen}");
    let document: Value = serde_json::from_slice(&document).unwrap();
    let connection = &document["captures"][0]["connections"][0];
    assert!(screen.contains("cause now"), "{screen}");
    // The whole connection is recent.
    assert_eq!(connection["recent"]["verdict"], connection["verdict"]);
    let sockets = &connection["kernel"];
    let algorithm = namespace.enter(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"));
    let algorithm = algorithm.unwrap().unwrap();
    assert_eq!(sockets[0]["congestion_control"], algorithm.trim(), "{sockets}");
    assert!(sockets[0]["cwnd_segments"].as_u64() >= Some(10), "{sockets}");
}

#[test]
fn table_has_line_per_direction_with_data() {
    let files = [ethernet_of(&plain()), ethernet_of(&transfer(v6(1, 4000), v6(2, 80), 1))]
        .map(|octets| file(&octets));
    let ended = run(&["analyze", "--wide", files[0].path(), files[1].path()]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let rows: Vec<_> = ended.stdout.lines().filter(|line| line.trim_start().starts_with("0  ")).collect();
    let [one, other] = rows[..] else { panic!("{}", ended.stdout) };
    assert!(one.contains("10.0.0.1:4000  10.0.0.2:80") && one.contains("2.00 kB"), "{one}");
    assert!(other.contains("[fd83::1]:4000  [fd83::2]:80"), "{other}");
    assert!(
        ended.stdout.contains("10 frames in 0.090 s: 10 TCP packets of 1 connection"),
        "{}",
        ended.stdout
    );
}

#[test]
fn frame_numbers_do_not_depend_on_filter() {
    let both = [plain(), transfer(v4(3, 4000), v4(2, 80), 1)].concat();
    let capture = file(&ethernet_of(&both));
    let filtered = analyze_path(capture.path(), &["-f", "host 10.0.0.3"]);
    assert_eq!((counts(&filtered), filtered["connections"][0]["first_packet"].as_u64()), ((10, 1), Some(11)));
}
