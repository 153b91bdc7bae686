//! The log compared with a capture: for each segment, `-vvv` prints the same text as tcpdump, at nearly the
//! same time.

#![expect(clippy::disallowed_methods, reason = "another program is given time")]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use airlink::capture::{Capture, Tap};
use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{Ended, TempFile, airtcp, kernel_receiver, namespace, run, run_in};
use airwire::dump::Conversations;
use airwire::options::{Layout, Options, Timestamps};
use airwire::segment::{Ecn, Flags, Header, emit};
use airwire::seq::Seq;
use airwire::time::Instant;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

const TARGET: &str = "10.83.0.1:9000";

/// The segments of each sender, in order: seconds since midnight, and the text from `IP` on.
type Sent = BTreeMap<String, Vec<(f64, String)>>;

/// Returns the seconds since midnight of the time at the start of a line.
fn seconds(line: &str) -> f64 {
    let (hours, rest) = line.split_once(':').unwrap();
    let (minutes, rest) = rest.split_once(':').unwrap();
    let seconds: f64 = rest.split(' ').next().unwrap().parse().unwrap();
    (hours.parse::<f64>().unwrap() * 60.0 + minutes.parse::<f64>().unwrap()) * 60.0 + seconds
}

/// Groups lines by sender. Two captures of one path may disagree on the order of packets in opposite
/// directions.
fn by_sender<'a>(lines: impl Iterator<Item = &'a str>) -> Sent {
    let mut sent = Sent::new();
    for line in lines {
        let Some(at) = line.find("IP") else { continue };
        let sender = line[at..].split(' ').nth(1).unwrap().to_owned();
        sent.entry(sender).or_default().push((seconds(line), line[at..].to_owned()));
    }
    sent
}

/// tcpdump on an interface of a namespace, or on `any`.
struct Tcpdump(Child, TempFile);

impl Tcpdump {
    fn start(namespace: &Namespace, interface: &str) -> Self {
        let file = TempFile::new("captured.pcap");
        // Without immediate mode, packets that are still in the ring buffer when tcpdump stops are lost. Only
        // headers are captured, because the ring has room for few whole packets.
        let mut tcpdump = Command::new("tcpdump");
        tcpdump.args(["-i", interface, "--immediate-mode", "-U", "-B", "16384", "-s", "256", "-Z", "root"]);
        tcpdump.args(["-w", file.path(), "tcp"]);
        let mut child = namespace
            .spawn(tcpdump.stderr(Stdio::piped()))
            .expect("this test needs tcpdump: apt-get install tcpdump");
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("listening on")), "tcpdump does not listen");
        Self(child, file)
    }

    fn stop(mut self) -> Sent {
        // Give tcpdump time to read the last packets.
        std::thread::sleep(std::time::Duration::from_millis(300));
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).unwrap();
        self.0.wait().unwrap();
        let output = Command::new("tcpdump").args(["-nn", "-r", self.1.path()]).output().unwrap();
        by_sender(String::from_utf8(output.stdout).unwrap().lines())
    }
}

/// Checks that log and capture have the same segments. Returns the differences between their times, in
/// ascending order.
fn time_differences(log: &Sent, captured: &Sent) -> Vec<f64> {
    assert_eq!(log.keys().collect::<Vec<_>>(), captured.keys().collect::<Vec<_>>());
    let mut differences = Vec::new();
    for (sender, logged) in log {
        let captured = &captured[sender];
        for ((at, text), (captured_at, captured_text)) in logged.iter().zip(captured) {
            assert_eq!(text, captured_text, "{sender}");
            differences.push((at - captured_at).abs());
        }
        assert_eq!(logged.len(), captured.len(), "{sender}");
    }
    differences.sort_by(f64::total_cmp);
    differences
}

/// Runs one transfer with `options` and checks that its log contains each captured segment. Returns the
/// median and the maximum of the time differences.
fn log_and_capture_of(namespace: &Namespace, target: &str, options: &[&str]) -> (f64, f64) {
    let receiver = kernel_receiver(namespace, 9000);
    let tcpdump = Tcpdump::start(namespace, "any");
    // A small send buffer, because an ACK that arrives during a long burst is logged only after the burst,
    // when it is read.
    let common = ["send", "--bytes=300k", target, "-vvv", "--send-buffer=16k"];
    let ended = run_in(namespace, &[&common[..], options].concat()).success();
    assert_eq!(receiver.join().unwrap().bytes, 300_000);
    let captured = tcpdump.stop();
    let log = by_sender(ended.stderr.lines().filter(|line| line.contains(" TRACE IP")));
    assert!(log.values().map(Vec::len).sum::<usize>() > 200, "{}", ended.stderr);
    let differences = time_differences(&log, &captured);
    (differences[differences.len() / 2], differences[differences.len() - 1])
}

#[test]
fn log_segments_match_tcpdump_capture() {
    let namespace = namespace();
    for (target, options) in [
        (TARGET, &["--recipe", "sack+rack"][..]),
        ("[fd83::1]:9000", &["--profile", "linux"]),
        (TARGET, &["--profile", "ns2", "--mtu", "600"]),
    ] {
        // A busy machine interrupts either program between a segment and its timestamp, so there are several
        // attempts.
        let mut attempts = Vec::new();
        while !attempts.last().is_some_and(|&(half, all)| half < 0.005 && all < 0.5) {
            assert!(attempts.len() < 4, "seconds between log and capture (median, maximum): {attempts:?}");
            attempts.push(log_and_capture_of(&namespace, target, options));
        }
    }
}

/// Returns the first sequence number of a data segment in tcpdump's output.
fn first_byte(text: &str) -> Option<u64> {
    text.split_once("seq ")?.1.split_once(':')?.0.parse().ok()
}

/// A decision in a `-vv` log, with its time, the offset that it concerns, and the line.
struct Decided<'a> {
    at: f64,
    offset: Option<u64>,
    line: &'a str,
}

impl<'a> Decided<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let field = |name: &str| line.split_once(name)?.1.split(' ').next()?.parse().ok();
        let is_decision = line.contains(" DEBUG ") && line.contains(" by=") && line.contains(" why=");
        is_decision.then(|| Self {
            at: seconds(line),
            offset: field(" offset=").or_else(|| field(" recover=")),
            line,
        })
    }

    /// Returns whether the decision may cover this byte. It may concern several segments.
    fn covers(&self, byte: u64) -> bool {
        let segments =
            self.line.split_once(" segments=").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
        // SACKed segments may lie between these segments, so the end is not known.
        self.offset.zip(segments).is_some_and(|(offset, segments): (u64, u64)| match segments {
            1 => offset == byte,
            _ => offset <= byte,
        })
    }

    fn is(&self, words: &str) -> bool {
        self.line.contains(&format!("}}: {words} "))
    }
}

/// Maximum time in seconds between a log line and its packet. A busy machine interrupts a program for some
/// milliseconds. The round trip takes 40 ms, so a decision about another copy of the same byte is further
/// away.
const NEAR: f64 = 0.02;

/// Returns the line that explains a retransmission: the decision that names it at that time, the timeout
/// after which everything is retransmitted, or the last decision that declared it lost.
fn reason<'a>(decided: &'a [Decided<'a>], at: f64, first: u64) -> Option<&'a str> {
    let before = || decided.iter().take_while(|it| it.at < at + NEAR);
    let named = before().filter(|it| at - it.at < NEAR && it.offset == Some(first));
    let named = named.filter(|it| ["resend", "timeout", "probe"].iter().any(|words| it.is(words))).last();
    let phase = before().filter(|it| it.is("enter") || it.is("leave")).last();
    let restarted = phase.filter(|it| it.line.contains("enter phase=restarted") && Some(first) < it.offset);
    let lost = before().filter(|it| it.is("lost") && it.covers(first)).last();
    named.or(restarted).or(lost).map(|it| it.line)
}

/// For every retransmission that tcpdump shows, the `-vv` log contains the decision and its reason, with the
/// same time and sequence number.
#[test]
fn log_explains_every_retransmission_in_capture() {
    let lossy = "schema = 1\n[[stage]]\nkind = \"link\"\nboth = { rate = \"4Mbit\", delay = \"20ms\" }\n\
                 [[stage]]\nkind = \"loss\"\ndown = { model = \"uniform\", per = \"4%\" }\n";
    let path = EmulatedPath::new(lossy, 3);
    let receiver = kernel_receiver(&path.mobile, 9000);
    let tcpdump = Tcpdump::start(&path.fixed, "airtcp0");
    let send = ["send", "--bytes=200k", "10.84.0.2:9000", "--recipe=sack", "-vv"];
    let ended = run_in(&path.fixed, &send).success();
    assert_eq!(receiver.join().unwrap().bytes, 200_000);
    let captured = tcpdump.stop();
    let (_, sent) = captured.iter().find(|(sender, _)| !sender.ends_with(".9000")).unwrap();
    let data = sent.iter().filter(|(_, text)| !text.ends_with("length 0"));
    let (mut next, mut resent) = (0, Vec::new());
    for (at, first) in data.filter_map(|(at, text)| Some((*at, first_byte(text)?))) {
        if first < next {
            resent.push((at, first));
        }
        next = next.max(first + 1);
    }
    assert!(resent.len() >= 4, "too few retransmissions for 4 % loss: {resent:?}");
    let decided: Vec<_> = ended.stderr.lines().filter_map(Decided::read).collect();
    for (at, first) in &resent {
        assert!(reason(&decided, *at, *first).is_some(), "{first} at {at}: {}", ended.stderr);
    }
    // Conversely, every retransmission in the log was sent.
    for it in decided.iter().filter(|it| it.is("resend")) {
        let sent = resent.iter().any(|(at, first)| Some(*first) == it.offset && (at - it.at).abs() < NEAR);
        assert!(sent, "{} {resent:?}", it.line);
    }
}

/// Runs `ip` in a namespace.
fn ip(namespace: &Namespace, args: &str) {
    let mut command = Command::new("ip");
    command.args(["-n", namespace.name()]).args(args.split(' '));
    assert!(command.status().expect("this test needs ip: apt-get install iproute2").success(), "ip {args}");
}

/// A router with IP forwarding between the host and the far end.
fn router() -> Namespace {
    let router = namespace();
    router.sysctl("net.ipv4.ip_forward", "1").unwrap();
    router
}

/// A router, and the far end at 198.51.100.1 on a veth pair with these settings at the two ends.
fn router_and_far_end(near: &str, far: &str) -> (Namespace, Namespace) {
    let (router, far_end) = (router(), namespace());
    ip(&router, &format!("link add near type veth peer name far netns {}", far_end.name()));
    ip(&router, "addr add 198.51.100.254/24 dev near");
    ip(&far_end, "addr add 198.51.100.1/24 dev far");
    ip(&router, &format!("link set near {near} up"));
    ip(&far_end, &format!("link set far {far} up"));
    ip(&far_end, "route add default via 198.51.100.254 advmss 1460");
    (router, far_end)
}

#[test]
fn icmp_errors_are_logged_at_info_level() {
    let router = router();
    ip(&router, "route add unreachable 198.51.100.1");
    let send = ["send", "--bytes=1k", "198.51.100.1:9", "--timeout=1s"];
    let ended = run_in(&router, &[&send[..], &["-v", "--log-format=json"]].concat());
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    let lines: Vec<Value> = ended.stderr.lines().flat_map(serde_json::from_str).collect();
    let error = lines.iter().find(|line| line["target"] == "airtcp::path").expect("no ICMP error was logged");
    assert_eq!(error["message"], "ICMP: not delivered");
    assert_eq!((&error["why"], &error["believed"]), (&"no route to the host".into(), &true.into()));
    assert_eq!(error["connection"]["remote"], "198.51.100.1:9");
    assert!(!run_in(&router, &send).stderr.contains("ICMP"), "ICMP errors must not be logged as warnings");
}

#[test]
fn path_mtu_reduction_logs_old_and_new_values() {
    // The far end offers an MSS as if the whole path had an MTU of 1500 bytes.
    let (router, far) = router_and_far_end("mtu 900", "mtu 1500");
    let receiver = kernel_receiver(&far, 9000);
    let ended = run_in(&router, &["send", "--bytes=50k", "198.51.100.1:9000", "-v"]).success();
    assert_eq!(receiver.join().unwrap().bytes, 50_000);
    let lines: Vec<&str> = ended.stderr.lines().collect();
    let at = |words: &str| lines.iter().position(|line| line.contains(words) && line.contains(" INFO "));
    let error = at("ICMP: a packet was too big mtu=900 believed=true");
    assert!(error.is_some() && error < at("path MTU from=1500 to=900"), "{}", ended.stderr);
}

/// The far end of the veth pair drops, without an error, frames that exceed its MTU by more than the 4 bytes
/// of a VLAN tag.
#[test]
fn mtu_probing_passes_path_that_drops_long_packets() {
    let (router, far) = router_and_far_end("mtu 1500", "mtu 1200");
    let receiver = kernel_receiver(&far, 9000);
    let ended =
        run_in(&router, &["send", "--bytes=2M", "198.51.100.1:9000", "-v", "--mtu-probing=always"]).success();
    assert_eq!(receiver.join().unwrap().bytes, 2_000_000);
    let changes =
        ended.stderr.lines().filter_map(|line| line.split_once("path MTU from=")?.1.split_once("to="));
    let lengths: Vec<u32> =
        changes.map(|(_, to)| to.split_whitespace().next().unwrap().parse().unwrap()).collect();
    assert_eq!(lengths.first(), Some(&1076), "{}", ended.stderr);
    assert!(lengths.last().is_some_and(|last| (1197..=1204).contains(last)), "{lengths:?}");
}

#[test]
fn random_segments_print_as_in_tcpdump() {
    let file = TempFile::new("all.pcap");
    let mut capture = Capture::create(file.path(), std::time::SystemTime::UNIX_EPOCH).unwrap();
    let mut conversations = Conversations::default();
    let mut ours = String::new();
    let mut rng = airwire::rng::Stream::new(1, "segments");
    let ends: [[SocketAddr; 2]; 3] = [
        ["10.0.0.1:1", "10.0.0.2:2"],
        ["10.0.0.2:1000", "10.0.0.1:1000"],
        ["[fd83::2]:50000", "[fd83::1]:9000"],
    ]
    .map(|ends| ends.map(|end| end.parse().unwrap()));
    for number in 0..4000_u64 {
        let pair = ends[(rng.bits() % 3) as usize];
        let (src, dst) = if one_in(2, &mut rng) { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
        let mut options = Options::default();
        if one_in(2, &mut rng) {
            options.timestamps = Some(Timestamps { val: rng.bits() as u32, ecr: rng.bits() as u32 });
        }
        for _ in 0..rng.bits() % 5 {
            options.sack.push(Seq(rng.bits() as u32), Seq(rng.bits() as u32));
        }
        if one_in(4, &mut rng) {
            options = Options { mss: Some(rng.bits() as u16), window_scale: Some(7), ..options };
            options.sack_permitted = one_in(2, &mut rng);
        }
        options.reordered = (one_in(8, &mut rng)).then_some(3);
        let header = Header {
            src,
            dst,
            seq: Seq(rng.bits() as u32),
            ack: Seq(rng.bits() as u32),
            // Every combination of the eight flags and of the four reserved bits.
            flags: Flags(rng.bits() as u16 & 0xfff),
            window: rng.bits() as u16,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: number as u16,
        };
        let layout = if one_in(2, &mut rng) { Layout::Linux } else { Layout::FreeBsd };
        let (mut written, mut packet) = (Vec::new(), Vec::new());
        options.write(layout, &mut written);
        // tcpdump prints the payload of a reset as text, so resets have none. It also dissects the payload on
        // ports that it knows.
        let len = if header.flags.contains(Flags::RST) { 0 } else { rng.bits() % 3 * 700 };
        emit(&mut packet, &header, &written, (&vec![0; len as usize], b""));
        capture.packet(Instant::from_nanos(number), &packet);
        ours += &format!("{}\n", conversations.read(&packet));
    }
    capture.flush().unwrap();
    let output = Command::new("tcpdump").args(["-nn", "-t", "-r", file.path()]).output().unwrap();
    let theirs = String::from_utf8(output.stdout).unwrap();
    for (ours, theirs) in ours.lines().zip(theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

fn one_in(n: u64, rng: &mut airwire::rng::Stream) -> bool {
    rng.bits().is_multiple_of(n)
}

/// Runs a short transfer with these log options and this RUST_LOG.
fn send(namespace: &Namespace, more: &[&str], rust_log: Option<&str>) -> Ended {
    let receiver = kernel_receiver(namespace, 9000);
    let common = ["send", "--bytes=20k", TARGET, "--netns", namespace.name(), "--seed=1", "--json"];
    let mut command = airtcp(&[&common[..], more].concat());
    if let Some(filter) = rust_log {
        command.env("RUST_LOG", filter);
    }
    let ended = Ended::of(command.output().unwrap()).success();
    receiver.join().unwrap();
    assert_eq!(ended.event("end")["outcome"], "done");
    ended
}

#[test]
fn verbosity_levels_and_rust_log_select_messages() {
    let namespace = namespace();
    let words = [
        ("established", 1),
        ("state from=SYN-SENT", 2),
        ("the peer offered", 2),
        ("by=aimd", 2),
        ("Flags [S]", 3),
        ("set timer=retransmission", 3),
    ];
    for (level, option) in ["-q", "-v", "-vv", "-vvv"].into_iter().enumerate() {
        let log = send(&namespace, &[option], None).stderr;
        for (word, from) in words {
            assert_eq!(log.contains(word), level >= from, "{option}: {word} in {log}");
        }
    }
    assert_eq!(send(&namespace, &[], None).stderr, "", "stderr must be empty by default");
    let only = send(&namespace, &["-q"], Some("airtcp::segment=trace")).stderr;
    assert!(only.contains("Flags [S]") && !only.contains("timer="), "RUST_LOG must select messages: {only}");
    let less = send(&namespace, &["-vvv"], Some("airtcp::segment=off,airtcp::timer=off")).stderr;
    assert!(
        less.contains("established") && !less.contains("Flags"),
        "RUST_LOG must remove only these messages: {less}"
    );
    let wrong = send(&namespace, &[], Some("airtcp=loud")).stderr;
    assert!(wrong.contains("invalid RUST_LOG=airtcp=loud") && wrong.lines().count() == 1, "{wrong}");
}

#[test]
fn json_log_file_has_object_per_event() {
    let namespace = namespace();
    let file = TempFile::new("log.jsonl");
    let ended = send(&namespace, &["-vvv", "--log-format=json", "--log-file", file.path()], None);
    assert_eq!(ended.stderr, "", "the log must go to the file only");
    let lines: Vec<Value> = String::from_utf8(file.read())
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let end = ended.event("end");
    let sent = lines.iter().filter(|line| line["target"] == "airtcp::segment" && line["way"] == "out");
    let bytes: u64 = sent.map(|line| line["length"].as_u64().unwrap()).sum();
    assert_eq!(bytes, 20_000);
    let established =
        lines.iter().find(|line| line["message"] == "established").expect("no event `established`");
    assert_eq!(established["smss"], end["handshake"]["mss"]);
    assert_eq!(established["connection"]["remote"], TARGET);
    assert!(lines.iter().all(|line| line["wall"].as_f64().is_some_and(|wall| wall > 1.6e9)));
    let of_the_connection = lines.iter().filter(|line| line["connection"]["remote"] == TARGET).count();
    let ours = lines.iter().filter(|line| line["target"].as_str().unwrap().starts_with("airtcp::")).count();
    assert_eq!(of_the_connection, ours, "events outside the span of the connection");
}

#[test]
fn unwritable_log_file_is_reported() {
    let ended = run(&["send", "--bytes=1", TARGET, "--log-file=/nonexistent/log"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("cannot write the log /nonexistent/log: No such file"), "{}", ended.stderr);
}

#[test]
fn every_command_takes_same_log_options() {
    let options = ["-v, --verbose", "-q, --quiet", "--log-format", "--log-file"];
    let airtcp = "send,recv,serve,sink,source,lab run,lab matrix,lab shell,sim,sweep run,reproduce,analyze,\
                  report,algorithms,explain,script,completions,man";
    let airlink = "run,sim,up,ctl,show,check,bridge";
    for (program, commands) in [("airtcp", airtcp), ("airlink", airlink)] {
        for command in commands.split(',') {
            let program = airtcp_testkit::programs::program(program);
            let output = Command::new(program).args(command.split(' ')).arg("--help").output().unwrap();
            let help = String::from_utf8(output.stdout).unwrap();
            for option in options {
                assert!(help.contains(option), "{command} has no {option}: {help}");
            }
        }
    }
}
