//! Judges why transfers of this kernel are slow. Each has a known cause and random parameters.

#![expect(clippy::disallowed_methods, reason = "applications wait and read slowly")]

use std::ffi::OsString;
use std::io::{Error, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{TempDir, kernel_listener, run};
use airtcp_testkit::sample::{seed, size};
use airwire::rng::Stream;
use nix::sys::socket::{setsockopt, sockopt};
use serde_json::Value;

/// Transfers that run in parallel. Most of them wait.
const JOBS: usize = 6;
/// Time without progress after which an application gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Minimum goodput of a link that counts as full, as a share of its rate.
const FULL: f64 = 0.77;
/// Bytes of each write of a request.
const REQUEST: usize = 150;
const SERVER: &str = "10.84.0.1:80";

/// The conversation of a client on the mobile side and a server on the fixed side.
struct Exchange {
    requests: u64,
    /// Writes of the client for each request.
    writes: usize,
    client_waits: Duration,
    server_waits: Duration,
    /// Bytes of each response.
    response: usize,
    /// Writes of the server for each response, and the pause between two.
    pieces: usize,
    pause: Duration,
    /// Bytes per second that the client reads, if it is slower than the network.
    reads: Option<f64>,
}

impl Exchange {
    fn download(response: f64) -> Self {
        Self {
            requests: 1,
            writes: 1,
            client_waits: Duration::ZERO,
            server_waits: Duration::ZERO,
            response: response as usize,
            pieces: 1,
            pause: Duration::ZERO,
            reads: None,
        }
    }

    fn serve(&self, mut stream: TcpStream) -> Result<(), Error> {
        let piece = vec![0; self.response.div_ceil(self.pieces)];
        for _ in 0..self.requests {
            stream.read_exact(&mut vec![0; self.writes * REQUEST])?;
            thread::sleep(self.server_waits);
            let mut left = self.response;
            while left > 0 {
                let len = left.min(piece.len());
                stream.write_all(&piece[..len])?;
                left -= len;
                thread::sleep(if left > 0 { self.pause } else { Duration::ZERO });
            }
        }
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    }

    fn ask(&self, mut stream: TcpStream) -> Result<(), Error> {
        let mut buffer = vec![0; 1 << 16];
        for _ in 0..self.requests {
            thread::sleep(self.client_waits);
            for _ in 0..self.writes {
                stream.write_all(&[0; REQUEST])?;
            }
            let (begin, mut read) = (Instant::now(), 0);
            while read < self.response {
                let room = buffer.len().min(self.response - read);
                let room = if self.reads.is_some() { room.min(4096) } else { room };
                match stream.read(&mut buffer[..room])? {
                    0 => return Ok(()),
                    len => read += len,
                }
                if let Some(rate) = self.reads {
                    let due = Duration::from_secs_f64(read as f64 / rate);
                    thread::sleep(due.saturating_sub(begin.elapsed()));
                }
            }
        }
        stream.shutdown(Shutdown::Write)?;
        stream.read_to_end(&mut Vec::new()).map(|_| ())
    }
}

/// The place of a capture.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Server,
    Client,
}

/// A transfer with a known cause.
struct Case {
    cause: &'static str,
    /// Other causes that are right as well in a capture at the client, which receives the data.
    at_client: &'static [&'static str],
    /// The path, as stages of a scenario.
    path: String,
    /// The rate of its slowest link in bit/s. If the link is full, this is a right cause too.
    rate: f64,
    /// The server's congestion control.
    control: &'static str,
    /// Settings of the kernel on both sides.
    fixed: Vec<(&'static str, String)>,
    mobile: Vec<(&'static str, String)>,
    /// The ends of the path that see the cause.
    seen_at: &'static [End],
    /// `None` if the server does not listen.
    exchange: Option<Exchange>,
}

/// Draws the parameters of a case.
struct Draw(Stream);

impl Draw {
    /// Uniform in the logarithm.
    fn between(&mut self, least: f64, most: f64) -> f64 {
        least * (most / least).powf(self.0.unit())
    }

    fn seconds(&mut self, least: f64, most: f64) -> Duration {
        Duration::from_secs_f64(self.between(least, most))
    }
}

fn link(mbit: f64, rtt: f64, queue: f64) -> String {
    let (kbit, delay, packets) = ((1e3 * mbit) as u64, (rtt / 2.0) as u64, queue.max(5.0) as u64);
    format!(
        "[[stage]]\nkind = \"link\"\nname = \"wire\"\n\
         down = {{ rate = \"{kbit}kbit\", delay = \"{delay}ms\", queue = {{ packets = {packets} }} }}\n\
         up = {{ delay = \"{delay}ms\" }}\n"
    )
}

fn stage(kind: &str, keys: &str) -> String {
    format!("[[stage]]\nkind = \"{kind}\"\n{keys}\n")
}

/// Segments of a bandwidth-delay product.
fn segments(mbit: f64, rtt: f64) -> f64 {
    mbit * rtt / 12.0
}

/// The causes that are drawn, as in JSON.
const CAUSES: [&str; 28] = [
    "ack-loss",
    "bufferbloat",
    "burst-loss",
    "client-think-time",
    "duplication",
    "ecn-marks",
    "handshake-delayed",
    "handshake-failed",
    "handshake-refused",
    "idle-restart",
    "link-rate",
    "nagle-delayed-ack",
    "no-window-scaling",
    "outage",
    "path-death",
    "path-mtu-black-hole",
    "policer",
    "random-loss",
    "receiver-window",
    "reordering",
    "send-buffer",
    "serial-requests",
    "server-think-time",
    "slow-reader",
    "slow-start",
    "slow-writer",
    "spurious-timeouts",
    "thin-uplink",
];

impl Case {
    fn draw(cause: &'static str, number: u64) -> Self {
        let mut draw = Draw(Stream::new(seed(), &format!("{cause}/{number}")));
        let control = ["cubic", "reno"][draw.0.below(2) as usize];
        let (mbit, rtt) = (draw.between(3.0, 15.0), draw.between(20.0, 120.0));
        let bdp = segments(mbit, rtt);
        let mut case = Self {
            cause,
            at_client: &[],
            path: link(mbit, rtt, bdp * draw.between(0.5, 1.5)),
            rate: 1e6 * mbit,
            control,
            fixed: Vec::new(),
            mobile: Vec::new(),
            seen_at: &[End::Server, End::Client],
            exchange: Some(Exchange::download(draw.between(6.0, 10.0) * 1e6 * mbit / 8.0)),
        };
        let bytes_per_rtt = 1e3 * mbit * rtt / 8.0;
        match cause {
            "ack-loss" => {
                case.at_client = &["bufferbloat", "link-rate"];
                let per = draw.between(20.0, 50.0);
                case.path += &stage("loss", &format!("up = {{ model = \"uniform\", per = \"{per:.1}%\" }}"));
            }
            "bufferbloat" => {
                let (mbit, rtt) = (draw.between(1.0, 6.0), draw.between(20.0, 60.0));
                let delay = draw.between(250.0, 800.0);
                case.set_link(mbit, rtt, segments(mbit, delay), 15.0);
            }
            "burst-loss" | "random-loss" => {
                let rtt = draw.between(30.0, 120.0);
                // The mean window of Reno in segments.
                let (window, keys) = if cause == "random-loss" {
                    let per = draw.between(0.4, 2.5);
                    // Mathis et al. (1997).
                    (1.22 / (per / 100.0).sqrt(), format!("model = \"uniform\", per = \"{per:.2}%\""))
                } else {
                    // A burst takes several segments.
                    let (mean, burst) = (draw.between(1.0, 2.5), rtt * draw.between(0.25, 0.6));
                    let keys = format!(
                        "model = \"gilbert-elliott\", mean = \"{mean:.2}%\", burst = \"{burst:.0}ms\", step = \"1ms\""
                    );
                    // It grows by a segment per round trip between two bursts.
                    ((1.5 * burst / (mean / 100.0) / rtt).max(10.0), keys)
                };
                // The losses leave half of the link unused.
                let mbit = 2.0 * window * 12.0 / rtt;
                case.set_link(mbit, rtt, 2.0 * segments(mbit, rtt), 5.0);
                case.path += &stage("loss", &format!("down = {{ {keys} }}"));
            }
            "client-think-time" | "server-think-time" => {
                let waits = draw.seconds(0.4, 1.5);
                let mut exchange = Exchange::download(draw.between(5e3, 40e3));
                exchange.requests = 2 + draw.0.below(5);
                match cause {
                    "client-think-time" => exchange.client_waits = waits,
                    _ => exchange.server_waits = waits,
                }
                case.path = link(20.0, draw.between(10.0, 60.0), 200.0);
                case.exchange = Some(exchange);
            }
            "duplication" => {
                let chance = draw.between(3.0, 12.0);
                case.path += &stage("duplicate", &format!("down.chance = \"{chance:.1}%\""));
            }
            "ecn-marks" => {
                case.path = case.path.replace("queue = {", "queue = { discipline = \"codel\", ecn = true,");
                for settings in [&mut case.fixed, &mut case.mobile] {
                    settings.push(("net.ipv4.tcp_ecn", "1".to_owned()));
                }
            }
            "handshake-delayed" | "handshake-failed" => {
                let lasts = if cause == "handshake-failed" { 100.0 } else { draw.between(0.4, 2.5) };
                let outage =
                    format!("both = {{ at = [\"0s\"], lasts = \"{lasts:.2}s\", packets = \"dropped\" }}");
                case.path += &stage("outage", &outage);
                case.seen_at = &[End::Client];
                case.exchange = Some(Exchange::download(draw.between(1e3, 12e3)));
            }
            "handshake-refused" => case.exchange = None,
            "idle-restart" => {
                let rtt = draw.between(150.0, 250.0);
                let mut exchange = Exchange::download(6.0 * draw.between(1.0e6, 1.4e6));
                (exchange.pieces, exchange.pause) = (6, Duration::from_secs_f64(5e-3 * rtt + 0.9));
                case.set_link(40.0, rtt, 2000.0, 0.0);
                case.at_client = &["slow-writer"];
                case.exchange = Some(exchange);
            }
            "link-rate" => case.set_link(mbit, rtt, bdp * draw.between(0.4, 0.7), 10.0),
            "nagle-delayed-ack" => {
                let mut exchange = Exchange::download(draw.between(50.0, 500.0));
                (exchange.requests, exchange.writes) = (50 + draw.0.below(50), 2);
                case.path = link(20.0, draw.between(4.0, 40.0), 200.0);
                case.exchange = Some(exchange);
            }
            "no-window-scaling" => {
                let rtt = draw.between(60.0, 200.0);
                case.set_link(25.0, rtt, 200.0, 0.0);
                case.mobile.push(("net.ipv4.tcp_window_scaling", "0".to_owned()));
                case.exchange = Some(Exchange::download(8.0 * 65_535.0 / rtt * 1e3));
            }
            "outage" => {
                let (at, lasts) = (draw.between(1.0, 3.0), draw.between(2.0, 3.5));
                let outage = format!(
                    "both = {{ at = [\"{at:.2}s\"], lasts = \"{lasts:.2}s\", packets = \"dropped\" }}"
                );
                case.path += &stage("outage", &outage);
            }
            "path-death" => {
                let at = draw.between(1.0, 4.0);
                let outage =
                    format!("both = {{ at = [\"{at:.2}s\"], lasts = \"100s\", packets = \"dropped\" }}");
                case.path += &stage("outage", &outage);
            }
            "path-mtu-black-hole" => {
                // A packet that exceeds the burst never passes.
                let longest = draw.between(600.0, 1400.0);
                let keys = format!("down = {{ rate = \"1Gbit\", burst = \"{longest:.0}B\" }}");
                case.path += &stage("policer", &keys);
                // The client does not know that long packets exist.
                case.seen_at = &[End::Server];
            }
            "policer" => {
                let rate = draw.between(2.0, 8.0);
                case.set_link(25.0, rtt, 400.0, 0.0);
                let burst = draw.between(15.0, 100.0);
                let keys =
                    format!("down = {{ rate = \"{}kbit\", burst = \"{burst:.0}kB\" }}", (1e3 * rate) as u64);
                case.path += &stage("policer", &keys);
                case.exchange = Some(Exchange::download(1e6 * rate));
            }
            "receiver-window" | "send-buffer" => {
                // Linux uses half of a receive buffer for data, and more of a send buffer.
                let window = (bytes_per_rtt * draw.between(0.1, 0.4)).max(8e3);
                let buffer = if cause == "receiver-window" { 2.0 * window } else { 1.3 * window };
                let sizes = format!("4096 {buffer:.0} {buffer:.0}");
                case.set_link(mbit, rtt, 2.0 * bdp, 0.0);
                case.exchange = Some(Exchange::download(20.0 * window / rtt * 1e3));
                match cause {
                    "receiver-window" => case.mobile.push(("net.ipv4.tcp_rmem", sizes)),
                    _ => case.fixed.push(("net.ipv4.tcp_wmem", sizes)),
                }
            }
            "reordering" => {
                let (chance, distance) = (draw.between(1.0, 4.0), 3 + draw.0.below(8));
                let keys = format!("down = {{ chance = \"{chance:.1}%\", distance = {distance} }}");
                case.path += &stage("reorder", &keys);
            }
            "serial-requests" => {
                let mut exchange = Exchange::download(draw.between(300.0, 8e3));
                exchange.requests = 30 + draw.0.below(60);
                case.path = link(20.0, rtt, 200.0);
                case.exchange = Some(exchange);
            }
            "slow-reader" => {
                let rate = draw.between(60e3, 400e3);
                let mut exchange = Exchange::download(10.0 * rate);
                exchange.reads = Some(rate);
                case.set_link(20.0, draw.between(10.0, 80.0), 300.0, 0.0);
                case.exchange = Some(exchange);
            }
            "slow-start" => {
                case.set_link(40.0, draw.between(50.0, 200.0), 400.0, 0.0);
                case.exchange = Some(Exchange::download(draw.between(40e3, 250e3)));
            }
            "slow-writer" => {
                let mut exchange = Exchange::download(12.0 * draw.between(3e3, 25e3));
                (exchange.pieces, exchange.pause) = (12, draw.seconds(0.3, 0.8));
                case.path = link(20.0, draw.between(10.0, 80.0), 200.0);
                case.exchange = Some(exchange);
            }
            "spurious-timeouts" => {
                let lasts = draw.between(1.2, 2.5);
                let keys = format!(
                    "both = {{ at = [\"1.5s\"], lasts = \"{lasts:.2}s\", every = \"5s\", packets = \"requeued\" }}"
                );
                case.path += &stage("outage", &keys);
                case.at_client = &["outage"];
            }
            "thin-uplink" => {
                // An ACK for two segments has a fiftieth of their length.
                let up = 1e3 * mbit / 50.0 * draw.between(0.2, 0.6);
                let slow = format!("up = {{ rate = \"{up:.0}kbit\", queue = {{ packets = 60 }},");
                case.path = case.path.replace("up = {", &slow);
            }
            _ => panic!("no transfer has the cause {cause}"),
        }
        case
    }

    /// Sets the link, and the length of the download in seconds at its rate.
    fn set_link(&mut self, mbit: f64, rtt: f64, queue: f64, seconds: f64) {
        (self.path, self.rate) = (link(mbit, rtt, queue), 1e6 * mbit);
        self.exchange = Some(Exchange::download(seconds * self.rate / 8.0));
    }

    /// Runs the transfer. Writes captures at both ends of the path.
    fn capture(&self, number: u64, files: [&str; 2]) {
        let scenario = format!("schema = 1\n{}", self.path);
        let path = EmulatedPath::captured_at_both_ends(&scenario, number, files);
        for (namespace, settings) in [(&path.fixed, &self.fixed), (&path.mobile, &self.mobile)] {
            for (name, value) in settings {
                namespace.sysctl(name, value).unwrap();
            }
        }
        let Some(exchange) = &self.exchange else {
            connect(&path.mobile).unwrap_err();
            return;
        };
        let listener = kernel_listener(&path.fixed, SERVER);
        thread::scope(|scope| {
            scope.spawn(|| {
                let Ok((stream, _)) = listener.accept() else { return };
                setsockopt(&stream, sockopt::TcpCongestion, &OsString::from(self.control)).unwrap();
                // An interrupted path ends the exchange early.
                let _ = limited(&stream).and_then(|()| exchange.serve(stream));
            });
            if let Ok(stream) = connect(&path.mobile) {
                let _ = limited(&stream).and_then(|()| exchange.ask(stream));
            }
        });
    }

    fn judge(&self, end: End, file: &str) -> Judgement {
        let analyzed = run(&["analyze", "--json", file]);
        let document: Value = serde_json::from_str(&analyzed.stdout).unwrap();
        let verdict = &document["captures"][0]["connections"][0]["verdict"];
        let cause = verdict["cause"].as_str().unwrap();
        let is_full = verdict["reached"].as_f64().is_some_and(|reached| reached > FULL * self.rate);
        // The pauses before a restart may take more time than the restart.
        let is_mentioned = self.cause == "idle-restart"
            && verdict["also"].as_array().unwrap().iter().any(|also| also == self.cause);
        let is_right = cause == self.cause
            || is_mentioned
            || end == End::Client && self.at_client.contains(&cause)
            || is_full && ["bufferbloat", "link-rate"].contains(&cause);
        let kind = match (is_right, cause, verdict["confidence"].as_str().unwrap()) {
            (true, ..) => Kind::Right,
            (_, "undetermined" | "not-slow", _) => Kind::Undetermined,
            (.., "high") => Kind::ConfidentlyWrong,
            _ => Kind::Wrong,
        };
        Judgement { kind, sentence: format!("{cause}: {}", verdict["sentence"]) }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Right,
    Undetermined,
    Wrong,
    ConfidentlyWrong,
}

struct Judgement {
    kind: Kind,
    sentence: String,
}

fn connect(namespace: &Namespace) -> Result<TcpStream, Error> {
    let address = SERVER.parse().unwrap();
    namespace.enter(|| TcpStream::connect_timeout(&address, PATIENCE)).unwrap()
}

/// Limits the time that each read and write waits.
fn limited(stream: &TcpStream) -> Result<(), Error> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))
}

#[test]
#[ignore = "nightly: 140 transfers of about ten seconds"]
fn causes_of_slow_transfers_are_named() {
    let directory = TempDir::new("causes");
    let numbers = 0..size(1, 5);
    let cases = Mutex::new(numbers.flat_map(|number| CAUSES.map(|cause| (cause, number))));
    let judged = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..JOBS {
            scope.spawn(|| {
                loop {
                    let Some((cause, number)) = cases.lock().unwrap().next() else { return };
                    let case = Case::draw(cause, number);
                    let ends = [End::Server, End::Client];
                    let files = ends.map(|end| directory.path(&format!("{cause}-{number}-{end:?}.pcap")));
                    case.capture(number, [&files[0], &files[1]]);
                    for (end, file) in ends.into_iter().zip(&files) {
                        if case.seen_at.contains(&end) {
                            let Judgement { kind, sentence } = case.judge(end, file);
                            println!("{cause} {number} {end:?} {kind:?} {sentence}");
                            judged.lock().unwrap().push(kind);
                        }
                        std::fs::remove_file(file).unwrap();
                    }
                }
            });
        }
    });
    let judged = judged.into_inner().unwrap();
    let percent = |wanted: Kind| {
        100.0 * judged.iter().filter(|kind| **kind == wanted).count() as f64 / judged.len() as f64
    };
    for kind in [Kind::Right, Kind::Undetermined, Kind::Wrong, Kind::ConfidentlyWrong] {
        println!("{kind:?}: {:.1} % of {}", percent(kind), judged.len());
    }
    assert!(percent(Kind::Right) >= 95.0);
    assert!(percent(Kind::ConfidentlyWrong) <= 1.0);
}
