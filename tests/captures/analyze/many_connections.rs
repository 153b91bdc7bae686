//! A hundred thousand connections that are open at the same time: a busy server, a scan, and reused ports.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use airtcp_testkit::frames::{ACK, ETHERNET, FIN_ACK, Pcap, RST, SYN, SYN_ACK, Tcp};
use airtcp_testkit::machine::TempFile;
use airtcp_testkit::programs::program;
use airtcp_testkit::sample;
use airwire::seq::Seq;

use super::assert_little_memory;

/// The number of connections. By default it is smaller than a hundred thousand, because the memory per
/// connection does not depend on it.
fn connections() -> u32 {
    sample::size(5_000, 100_000)
}

const REQUEST: u32 = 200;
const SEGMENT: u32 = 1448;
const ANSWER: u32 = 3 * SEGMENT;
const SERVER_ISS: u32 = 7;
/// Time between packets in seconds. Every connection has sent one packet before the first one sends its next.
const GAP: f64 = 10e-6;

#[derive(Clone, Copy)]
struct Flow {
    index: u32,
    /// Number of earlier connections with the same addresses and ports.
    generation: u32,
}

impl Flow {
    /// The addresses of the client and the server. One connection in ten uses IPv6.
    fn ends(self) -> (SocketAddr, SocketAddr) {
        let [_, high, middle, low] = self.index.to_be_bytes();
        let port = 10_000 + (self.index % 50_000) as u16;
        if self.index % 10 == 7 {
            let host = [0xfd83, 0, 0, 0, 0, 0, u16::from(high), u16::from_be_bytes([middle, low])];
            return ((host, port).into(), ([0xfd83, 0, 0, 0, 0, 0, 0, 1], 80).into());
        }
        (([10, high, middle, low], port).into(), ([192, 0, 2, 1], 80).into())
    }

    fn loses(self) -> bool {
        self.index % 10 == 3
    }

    fn to_server(self, offset: u32, ack: u32) -> Tcp {
        let (client, server) = self.ends();
        let iss = self.index.wrapping_mul(0x9e37_79b1).wrapping_add(self.generation << 24);
        Tcp::new(client, server, ACK, iss.wrapping_add(offset), SERVER_ISS + ack, 0)
    }

    fn to_client(self, offset: u32, ack: u32) -> Tcp {
        let to_server = self.to_server(ack, offset);
        Tcp { src: to_server.dst, dst: to_server.src, seq: to_server.ack, ack: to_server.seq, ..to_server }
    }

    fn syn(self) -> Option<Tcp> {
        let mut syn = Tcp { flags: SYN, ack: 0, ..self.to_server(0, 0) };
        (syn.options.mss, syn.options.sack_permitted) = (Some(1460), true);
        Some(syn)
    }

    fn syn_ack(self) -> Option<Tcp> {
        let mut syn_ack = Tcp { flags: SYN_ACK, ..self.to_client(0, 1) };
        (syn_ack.options.mss, syn_ack.options.sack_permitted) = (Some(1460), true);
        Some(syn_ack)
    }

    fn segment(self, number: u32) -> Tcp {
        let mut segment = self.to_client(1 + number * SEGMENT, 1 + REQUEST);
        (segment.len, segment.ident) = (SEGMENT as usize, 100 + number as u16);
        segment
    }

    /// The client's ACK when segment `number` arrives.
    fn acknowledges(self, number: u32) -> Option<Tcp> {
        let all_until = |segments: u32| self.to_server(1 + REQUEST, 1 + segments * SEGMENT);
        match number {
            1 if self.loses() => None,
            2 if self.loses() => {
                let mut ack = all_until(1);
                let number = |segments: u32| Seq(SERVER_ISS + 1 + segments * SEGMENT);
                ack.options.sack.push(number(2), number(3));
                Some(ack)
            }
            _ => Some(all_until(number + 1)),
        }
    }
}

type Step = fn(Flow) -> Option<Tcp>;

/// The packets of one connection, as captured at the server.
const EXCHANGE: [Step; 13] = [
    Flow::syn,
    Flow::syn_ack,
    |flow| Some(flow.to_server(1, 1)),
    |flow| Some(Tcp { len: REQUEST as usize, ..flow.to_server(1, 1) }),
    |flow| Some(flow.to_client(1, 1 + REQUEST)),
    |flow| Some(flow.segment(0)),
    |flow| Some(flow.segment(1)),
    |flow| Some(flow.segment(2)),
    |flow| flow.acknowledges(0),
    |flow| flow.acknowledges(1),
    |flow| flow.acknowledges(2),
    |flow| flow.loses().then(|| Tcp { ident: 110, ..flow.segment(1) }),
    |flow| flow.loses().then(|| flow.to_server(1 + REQUEST, 1 + ANSWER)),
];

const CLOSE: [Step; 3] = [
    |flow| Some(Tcp { flags: FIN_ACK, ..flow.to_client(1 + ANSWER, 1 + REQUEST) }),
    |flow| Some(Tcp { flags: FIN_ACK, ..flow.to_server(1 + REQUEST, 2 + ANSWER) }),
    |flow| Some(flow.to_client(2 + ANSWER, 2 + REQUEST)),
];

/// Writes a capture with a small snap length, as on a busy server.
fn capture(packets: impl Iterator<Item = Tcp>) -> TempFile {
    let path = TempFile::new("crowd");
    let mut output = BufWriter::new(File::create(path.path()).unwrap());
    let mut pcap = Pcap::with_snap_length(ETHERNET, 96);
    for (at, tcp) in packets.enumerate() {
        pcap.frame(at as f64 * GAP, &tcp.ethernet());
        output.write_all(&pcap.file).unwrap();
        pcap.file.clear();
    }
    output.flush().unwrap();
    path
}

/// All connections take a step before any connection takes the next step.
fn interleaved(connections: u32, generation: u32, steps: &[Step]) -> impl Iterator<Item = Tcp> {
    let flows = move || (0..connections).map(move |index| Flow { index, generation });
    steps.iter().flat_map(move |step| flows().filter_map(*step))
}

/// Totals of the JSON document, in which each connection is one line.
#[derive(Debug, Default, PartialEq)]
struct Totals {
    connections: u64,
    requests: u64,
    answers: u64,
    /// Connections with exactly one retransmission.
    resent: u64,
    problems: Vec<String>,
}

fn analyze(path: &TempFile) -> (Totals, u64) {
    let mut child = Command::new("/usr/bin/time")
        .args(["-f", "%M"])
        .arg(program("airtcp"))
        .args(["analyze", "--json", path.path()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs GNU time: apt-get install time");
    let mut totals = Totals::default();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let has = |text: &str| u64::from(line.contains(text));
        if line.starts_with("{\"number\":") {
            totals.connections += 1;
            totals.requests += has("\"acked_bytes\":200,");
            totals.answers += has("\"acked_bytes\":4344,");
            totals.resent += has("\"retransmissions\":{\"packets\":1,");
        }
        let problems = line.split("\"problem\":\"").skip(1).filter_map(|text| text.split('"').next());
        totals.problems.extend(problems.map(str::to_owned));
    }
    let mut memory = String::new();
    child.stderr.take().unwrap().read_to_string(&mut memory).unwrap();
    assert!(child.wait().unwrap().success(), "{memory}");
    (totals, memory.trim().parse().unwrap())
}

fn all_answered(connections: u64) -> Totals {
    Totals {
        connections,
        requests: connections,
        answers: connections,
        resent: connections / 10,
        problems: vec!["payload-cut".to_owned()],
    }
}

#[test]
fn all_concurrently_open_connections_are_followed() {
    let path = capture(interleaved(connections(), 0, &EXCHANGE));
    let (totals, kib) = analyze(&path);
    println!("{kib} KiB");
    assert_eq!(totals, all_answered(u64::from(connections())));
    assert_little_memory(kib, connections());
}

#[test]
fn scan_yields_one_connection_per_target() {
    let scan = (0..connections()).flat_map(|index| {
        let [_, high, middle, low] = index.to_be_bytes();
        let (scanner, target) = ([203, 0, 113, 9], [10, high, middle, low]);
        let syn = Tcp::new((scanner, 40_000).into(), (target, 23).into(), SYN, index, 0, 0);
        let reset = Tcp::new(syn.dst, syn.src, RST, 0, index + 1, 0);
        [Some(syn), (index % 10 == 0).then_some(reset)].into_iter().flatten()
    });
    let (totals, kib) = analyze(&capture(scan));
    println!("{kib} KiB");
    assert_eq!(totals, Totals { connections: u64::from(connections()), ..Totals::default() });
    assert_little_memory(kib, connections());
}

#[test]
fn reused_ports_count_as_new_connections() {
    let each = sample::size(1_000, 5_000);
    let steps: Vec<Step> = EXCHANGE.into_iter().chain(CLOSE).collect();
    let rounds = [0, 1, 2].map(|generation| interleaved(each, generation, &steps));
    let (totals, _) = analyze(&capture(rounds.into_iter().flatten()));
    assert_eq!(totals, all_answered(3 * u64::from(each)));
}
