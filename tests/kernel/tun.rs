//! `airtcp` with this kernel as its peer, over a TUN device in a new namespace.
//!
//! The tests create network namespaces. Without root privileges they fail with this reason.

#![expect(clippy::disallowed_methods, reason = "another program is given time")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::time::Duration;

use airlink::reactor::{Clock, Reactor};
use airlink::tun::{Tun, TunConfig};
use airtcp::host::{ConnId, Host, HostConfig};
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::{Linger, SocketOptions, State};
use airtcp_testkit::machine::{
    Ended, Running, TempFile, airtcp, bytes, data, digest, kernel_listener, kernel_receiver, namespace,
    reset_on_close, run_in, wait_for_listener,
};
use airtcp_testkit::sample::size;
use airtcp_tun::{Application, Driver, Finished};
use airwire::time::Instant;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const V4: &str = "10.83.0.1:9000";
const V6: &str = "[fd83::1]:9000";

#[test]
fn every_variant_delivers_intact_over_ipv4_and_ipv6() {
    let count: u64 = size(4_000_000, 20_000_000);
    let bytes = format!("--bytes={count}");
    let namespace = namespace();
    for recipe in ["tahoe", "reno", "newreno", "sack", "sack+limited-transmit", "newreno+liw"] {
        for target in [V4, V6] {
            let receiver = kernel_receiver(&namespace, 9000);
            let ended =
                run_in(&namespace, &["send", &bytes, target, "--recipe", recipe, "--json", "--timeout=20s"]);
            assert_eq!(ended.code, 0, "{recipe} {target}: {}", ended.stderr);
            let received = receiver.join().unwrap();
            let end = ended.event("end");
            assert_eq!(end["sha256"], received.digest, "{recipe} {target}");
            assert_eq!((received.bytes, end["bytes"].as_u64()), (count, Some(count)));
            assert_eq!(end["outcome"], "done");
            assert_eq!(end["recipe"], recipe);
            assert_eq!(
                end["handshake"]["sack"],
                recipe.starts_with("sack"),
                "SACK must be offered only if the recipe uses it"
            );
            assert_eq!(end["handshake"]["mss"], if target == V4 { 1448 } else { 1428 });
            assert!(end["rtt"]["samples"].as_u64().unwrap() > 10, "{end}");
        }
    }
}

#[test]
fn every_profile_delivers_with_its_own_options() {
    let namespace = namespace();
    for profile in Profile::NAMES {
        let receiver = kernel_receiver(&namespace, 9000);
        let ended = run_in(&namespace, &["send", "--bytes=2M", V4, "--profile", profile, "--json"]);
        assert_eq!(ended.code, 0, "{profile}: {}", ended.stderr);
        let end = ended.event("end");
        assert_eq!(end["sha256"], receiver.join().unwrap().digest, "{profile}");
        assert_eq!(end["handshake"]["timestamps"], profile != "ns2");
    }
}

#[test]
fn recv_echoes_digest_after_kernel_sender_fin() {
    let namespace = namespace();
    for addr in ["10.83.0.2:9000", "[fd83::2]:9000"] {
        let file = TempFile::new("received");
        let recv = Running::start_in(
            &namespace,
            &["recv", "9000", "--output", file.path(), "--echo-digest", "--json", "--timeout=20s"],
        );
        let sent = data(size(4_000_000, 20_000_000));
        let answer = namespace
            .enter(|| {
                let mut stream = TcpStream::connect(addr).unwrap();
                stream.write_all(&sent).unwrap();
                stream.shutdown(std::net::Shutdown::Write).unwrap();
                let mut answer = String::new();
                stream.read_to_string(&mut answer).unwrap();
                answer
            })
            .unwrap();
        let ended = recv.end().success();
        assert_eq!(answer, format!("{}\n", digest(&sent)));
        assert_eq!(ended.event("end")["sha256"], digest(&sent));
        assert_eq!(ended.event("end")["bytes"], sent.len());
        assert!(file.read() == sent, "the file differs from the sent data");
    }
}

#[test]
fn socat_interoperates_as_receiver_and_sender() {
    let namespace = namespace();
    let mut socat = namespace
        .spawn(Command::new("socat").args(["TCP-LISTEN:9000,reuseaddr", "SYSTEM:sha256sum"]))
        .expect("this test needs socat: apt-get install socat");
    wait_for_listener(&namespace, 9000);
    let ended = run_in(&namespace, &["send", "--bytes=3M", V4, "--verify", "--timeout=10s"]).success();
    assert!(ended.stdout.contains("(the receiver has the same)"), "{}", ended.stdout);
    assert!(socat.wait().unwrap().success());

    let file = TempFile::new("to-send");
    let sent = data(3_000_000);
    std::fs::write(file.path(), &sent).unwrap();
    let recv = Running::start_in(&namespace, &["recv", "9000", "--json", "--timeout=10s"]);
    let mut socat = namespace
        .spawn(Command::new("socat").args(["-u", &format!("OPEN:{}", file.path()), "TCP:10.83.0.2:9000"]))
        .unwrap();
    let ended = recv.end().success();
    assert_eq!(ended.event("end")["sha256"], digest(&sent));
    assert!(socat.wait().unwrap().success());
}

#[test]
fn sink_verifies_files_and_stdin() {
    let namespace = namespace();
    let file = TempFile::new("file");
    let sent = data(1_234_567);
    std::fs::write(file.path(), &sent).unwrap();
    let copy = TempFile::new("copy");
    let sink = Running::start_in(
        &namespace,
        &[
            "sink",
            "9000",
            "--echo-digest",
            "--receive-buffer=64Ki",
            "--count=3",
            "--json",
            "--output",
            copy.path(),
        ],
    );
    run_in(&namespace, &["send", file.path(), V4, "--verify", "--timeout=10s"]).success();
    let mut child = airtcp(&["send", "-", V6, "--netns", namespace.name(), "--verify", "--timeout=10s"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&sent).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains(&digest(&sent)));
    // The digest of an empty stream is also checked.
    run_in(&namespace, &["send", "--bytes=0", V4, "--verify", "--timeout=10s"]).success();
    let sink = sink.end().success();
    let digests: Vec<_> = sink.events("end").map(|end| end["sha256"].as_str().unwrap().to_owned()).collect();
    assert_eq!(digests, [digest(&sent), digest(&sent), digest(&[])]);
    assert!(copy.read() == [sent.clone(), sent].concat());
}

#[test]
fn verify_waits_for_late_digest_and_detects_mismatch() {
    let namespace = namespace();
    for (wrong, code) in [(false, 0), (true, 1)] {
        let listener = kernel_listener(&namespace, "0.0.0.0:9000");
        let receiver = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            // Longer than a sender without --verify would wait.
            std::thread::sleep(Duration::from_millis(1500));
            if wrong {
                received.push(b'x');
            }
            writeln!(stream, "{}  -", digest(&received)).unwrap();
        });
        let ended = run_in(&namespace, &["send", "--bytes=1M", V4, "--verify"]);
        receiver.join().unwrap();
        assert_eq!(ended.code, code, "{}", ended.stderr);
        assert_eq!(
            ended.stderr.contains("the received data differs from the sent data"),
            wrong,
            "{}",
            ended.stderr
        );
    }
}

#[test]
fn verify_fails_without_digest_from_receiver() {
    let namespace = namespace();
    let receiver = kernel_receiver(&namespace, 9000);
    let ended = run_in(&namespace, &["send", "--bytes=1M", V4, "--verify"]);
    assert_eq!(receiver.join().unwrap().bytes, 1_000_000);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("not a SHA-256: see --verify"), "{}", ended.stderr);
}

#[test]
fn tcpdump_finds_every_packet_in_capture() {
    let namespace = namespace();
    let pcap = TempFile::new("pcap");
    let receiver = kernel_receiver(&namespace, 9000);
    let ended = run_in(&namespace, &["send", "--bytes=1M", V4, "--pcap", pcap.path(), "--json"]).success();
    assert_eq!(receiver.join().unwrap().bytes, 1_000_000);
    let count = |filter: &str| {
        let output = Command::new("tcpdump")
            .args(["-n", "-r", pcap.path(), filter])
            .output()
            .expect("this test needs tcpdump: apt-get install tcpdump");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().lines().count() as u64
    };
    let device = &ended.event("end")["device"];
    let all = device["packets_in"].as_u64().unwrap() + device["packets_out"].as_u64().unwrap();
    assert!(all > 700);
    assert!(count("") >= all, "packets are missing in the capture");
    for (flag, host) in [("syn", 1), ("syn", 2), ("fin", 1), ("fin", 2)] {
        let filter = format!("tcp[tcpflags] & tcp-{flag} != 0 and src host 10.83.0.{host}");
        assert_eq!(count(&filter), 1, "{filter}");
    }
    assert_eq!(count("tcp[tcpflags] & tcp-rst != 0"), 0);
    assert_eq!(count("src host 10.83.0.2 and greater 1500"), 690, "number of full segments");
}

#[test]
fn events_and_decisions_are_timestamped_json_lines() {
    let namespace = namespace();
    let decisions = TempFile::new("decisions");
    let receiver = kernel_receiver(&namespace, 9000);
    let ended = run_in(
        &namespace,
        &["send", "--bytes=20M", V4, "--json", "--interval=20ms", "--decisions", decisions.path()],
    )
    .success();
    receiver.join().unwrap();
    let kinds: Vec<_> = ended.lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("start", "end"));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "interval") && kinds.len() > 2, "{kinds:?}");
    let mut before = 0.0;
    for line in &ended.lines {
        assert_eq!(line["schema_version"], 1);
        let (time, wall) = (line["time"].as_f64().unwrap(), line["wall"].as_f64().unwrap());
        assert!(time >= before && wall > 1.6e9, "{line}");
        before = time;
    }
    let last = ended.events("interval").last().unwrap();
    assert!(last["total_bytes"].as_u64().unwrap() <= 20_000_000 && last["cwnd"].as_u64().unwrap() > 10);
    let text = String::from_utf8(decisions.read()).unwrap();
    let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(
        (first["what"].as_str(), first["why"].as_str()),
        (Some("window"), Some("connection established"))
    );
    assert_eq!(first["cwnd"], 10.0);
    assert!(text.lines().count() > 100);
}

#[test]
fn connect_errors_distinguish_refused_silent_and_unreachable() {
    let namespace = namespace();
    let send = |target: &str, more: &[&str]| {
        let ended = run_in(&namespace, &[&["send", "--bytes=1k", target, "--json"], more].concat());
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert_eq!(ended.event("error")["exit_code"], 1);
        assert!(ended.stderr.contains(ended.event("error")["message"].as_str().unwrap()));
        ended.stderr
    };
    let refused = send(V4, &[]);
    assert!(
        refused.contains("10.83.0.1:9000: connection refused") && refused.contains("airtcp sink 9000"),
        "{refused}"
    );
    let silent = send("10.83.0.77:9000", &["--timeout=400ms"]);
    assert!(silent.contains("10.83.0.77:9000: no answer in 400.000ms: is it"), "{silent}");
    let silent = send("10.83.0.77:9000", &["--user-timeout=400ms"]);
    assert!(silent.contains("10.83.0.77:9000: timed out: the peer no longer answers: is it"), "{silent}");
    namespace.sysctl("net.ipv4.ip_forward", "1").unwrap();
    let status = namespace
        .spawn(Command::new("ip").args(["route", "add", "unreachable", "10.99.0.0/16"]))
        .unwrap()
        .wait()
        .unwrap();
    assert!(status.success());
    let unreachable = send("10.99.0.1:9000", &["--opening-errors=all"]);
    assert!(unreachable.contains("destination unreachable: no route to the host"), "{unreachable}");
    // By default this is a soft error (RFC 9293 §3.9.2.2): it is reported at R1 and when the attempt fails.
    // The kernel limits the rate of such errors, so there are only a few attempts.
    let args = ["send", "--bytes=1k", "10.99.0.1:9000", "--json", "--r1=1", "--syn-r2=2"];
    let ended = run_in(&namespace, &args);
    assert_eq!(ended.event("unanswered")["error"], "no route to the host", "{}", ended.stdout);
    assert!(ended.stderr.contains("destination unreachable: no route to the host"), "{}", ended.stderr);
}

#[test]
fn reset_during_transfer_fails_run() {
    let namespace = namespace();
    let listener = kernel_listener(&namespace, "0.0.0.0:9000");
    let receiver = std::thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.read_exact(&mut [0; 100_000]).unwrap();
        reset_on_close(&stream);
    });
    let ended = run_in(&namespace, &["send", "--bytes=1G", V4]);
    receiver.join().unwrap();
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("connection reset by the peer after"), "{}", ended.stderr);
    assert!(ended.stdout.contains("retransmitted"), "no summary after the reset: {}", ended.stdout);

    let file = TempFile::new("broken");
    let recv =
        Running::start_in(&namespace, &["recv", "9000", "--output", file.path(), "--json", "--timeout=10s"]);
    namespace
        .enter(|| {
            let mut stream = TcpStream::connect("10.83.0.2:9000").unwrap();
            stream.write_all(b"half a").unwrap();
            // Wait for the data, because a connection that is reset before accept does not count.
            while file.read() != b"half a" {
                std::thread::sleep(Duration::from_millis(5));
            }
            reset_on_close(&stream);
        })
        .unwrap();
    let ended = recv.end();
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("reset by the peer after 6 bytes were received"), "{}", ended.stderr);
    assert_eq!(ended.event("end")["outcome"], "failed");
}

#[test]
fn timeout_reports_receiver_that_stops_reading() {
    let namespace = namespace();
    let listener = kernel_listener(&namespace, "0.0.0.0:9000");
    let receiver = std::thread::spawn(move || listener.accept().unwrap().0);
    let ended = run_in(&namespace, &["send", "--bytes=1G", V4, "--timeout=700ms"]);
    drop(receiver.join().unwrap());
    assert_eq!(ended.code, 1);
    assert!(
        ended.stderr.contains("nothing was acknowledged for 700.000ms (Established)"),
        "{}",
        ended.stderr
    );
}

#[test]
fn signal_sends_reset_and_completes_summary_and_capture() {
    let namespace = namespace();
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let pcap = TempFile::new("stopped");
        let listener = kernel_listener(&namespace, "0.0.0.0:9000");
        let send = airtcp(&["send", "-", V4, "--netns", namespace.name(), "--pcap", pcap.path(), "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stream = listener.accept().unwrap().0;
        // Give the sender time to go to sleep, because it has no data.
        std::thread::sleep(Duration::from_millis(50));
        kill(Pid::from_raw(send.id() as i32), signal).unwrap();
        let error = stream.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
        let ended = Ended::of(send.wait_with_output().unwrap());
        assert_eq!(ended.code, 128 + signal as i32);
        assert!(ended.stderr.contains("stopped by a signal"), "{}", ended.stderr);
        assert_eq!(ended.event("end")["outcome"], "stopped");
        let output =
            Command::new("tcpdump").args(["-n", "-r", pcap.path(), "tcp[tcpflags] & tcp-rst != 0"]).output();
        assert_eq!(String::from_utf8(output.unwrap().stdout).unwrap().lines().count(), 1);
    }
}

#[test]
fn signal_stops_busy_sender() {
    let namespace = namespace();
    let receiver = kernel_receiver(&namespace, 9000);
    let mut send = Running::start_in(
        &namespace,
        &["send", "--bytes=1000G", V4, "--interval=100ms", "--no-digest", "--json"],
    );
    send.wait_for("interval", |interval| interval["bytes"].as_u64() > Some(1_000_000));
    send.signal(Signal::SIGTERM);
    let ended = send.end();
    assert_eq!(ended.code, 143);
    assert!(ended.event("end")["bytes"].as_u64().unwrap() > 1_000_000);
    // The connection was reset, so the received data does not matter.
    drop(receiver);
}

#[test]
fn device_in_use_is_environment_error() {
    let namespace = namespace();
    let holder = Running::start_in(&namespace, &["recv", "9000", "--tun=busy0", "--json"]);
    let ended = run_in(&namespace, &["send", "--bytes=1", V4, "--tun=busy0", "--json"]);
    assert_eq!(ended.code, 3);
    assert!(ended.stderr.contains("`busy0` is in use by another program"), "{}", ended.stderr);
    holder.signal(Signal::SIGTERM);
    assert_eq!(holder.end().code, 143);
    let devices = namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    assert!(!devices.contains("busy0"), "the device outlived its program: {devices}");
}

#[test]
fn custom_addresses_and_small_mtu_work() {
    let namespace = namespace();
    let receiver = kernel_receiver(&namespace, 9000);
    let ended = run_in(
        &namespace,
        &[
            "send",
            "--bytes=100k",
            "192.0.2.1:9000",
            "--addr=198.51.100.7",
            "--kernel-addr=192.0.2.1/30",
            "--mtu=576",
            "--json",
        ],
    )
    .success();
    assert_eq!(ended.event("end")["sha256"], receiver.join().unwrap().digest);
    assert_eq!(ended.event("end")["handshake"]["mss"], 576 - 40 - 12);
}

#[test]
fn hundred_connections_share_one_device() {
    const CONNECTIONS: usize = 100;
    let namespace = namespace();
    let listener = kernel_listener(&namespace, "0.0.0.0:9000");
    let server = std::thread::spawn(move || {
        let readers: Vec<_> = (0..CONNECTIONS)
            .map(|_| {
                let mut stream = listener.accept().unwrap().0;
                std::thread::spawn(move || {
                    let mut received = Vec::new();
                    stream.read_to_end(&mut received).unwrap();
                    digest(&received)
                })
            })
            .collect();
        readers.into_iter().map(|reader| reader.join().unwrap()).collect::<BTreeSet<_>>()
    });
    let tun = Tun::open(&TunConfig {
        namespace: Some(namespace.path().to_path_buf()),
        addrs: vec!["10.83.0.1/24".parse().unwrap()],
        ..TunConfig::default()
    })
    .unwrap();
    let profile = Profile::default();
    let options = SocketOptions { linger: Linger::Default, ..SocketOptions::of(&profile) };
    let host = Host::new(HostConfig {
        addrs: vec!["10.83.0.2".parse().unwrap()],
        mtu: 1500,
        profile,
        recipe: "sack".parse::<Recipe>().unwrap(),
        seed: 1,
    });
    let mut driver = Driver::new(host, tun, Reactor::new(Clock::start()).unwrap(), None).unwrap();
    let now = driver.clock().now();
    let flows = (0..CONNECTIONS)
        .map(|i| {
            let remote = V4.parse().unwrap();
            Flow {
                id: driver.host.connect(now, None, remote, options.clone()).unwrap(),
                data: bytes(i as u64, 50_000 + 997 * i),
                written: 0,
            }
        })
        .collect();
    let mut senders =
        HundredSenders { flows, most_established: 0, deadline: now + airwire::time::Duration::from_secs(30) };
    let expected: BTreeSet<_> = senders.flows.iter().map(|flow| digest(&flow.data)).collect();
    assert_eq!(driver.run(&mut senders).unwrap(), Finished::ByApplication);
    assert!(senders.flows.is_empty(), "{} connections did not end in time", senders.flows.len());
    assert_eq!(senders.most_established, CONNECTIONS, "not all connections were open at the same time");
    assert_eq!(server.join().unwrap(), expected);
}

struct Flow {
    id: ConnId,
    data: Vec<u8>,
    written: usize,
}

struct HundredSenders {
    flows: Vec<Flow>,
    most_established: usize,
    deadline: Instant,
}

impl Application for HundredSenders {
    fn run(&mut self, now: Instant, host: &mut Host) -> ControlFlow<()> {
        let state = |host: &Host, flow: &Flow| host.connection(flow.id).unwrap().state();
        let established = self.flows.iter().filter(|flow| state(host, flow).is_synchronized()).count();
        self.most_established = self.most_established.max(established);
        // No flow writes until all flows are connected.
        if self.most_established < self.flows.len().min(100) && self.flows.len() == 100 {
            return if now < self.deadline { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
        }
        for flow in &mut self.flows {
            if flow.written < flow.data.len()
                && let Ok(taken) = host.write(now, flow.id, &flow.data[flow.written..])
            {
                flow.written += taken;
                if flow.written == flow.data.len() {
                    host.shutdown_write(flow.id).unwrap();
                }
            }
        }
        self.flows.retain(|flow| {
            let ended = matches!(state(host, flow), State::TimeWait | State::Closed);
            if ended {
                assert_eq!(host.connection(flow.id).unwrap().ended(), None);
                host.close(now, flow.id);
            }
            !ended
        });
        if self.flows.is_empty() || now >= self.deadline {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        Some(self.deadline)
    }
}
