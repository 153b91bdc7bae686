//! The captures in `pcaps/`, with our analyses and the output of tshark and tcptrace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aircaptures::capture::{Capture, Next};
use aircaptures::ip::Found;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::survey;
use airtcp_analyze::trace::Trace;
use airtcp_testkit::machine::TempDir;
use airwire::segment::Flags;
use serde_json::Value;

pub(crate) fn root() -> &'static Path {
    airtcp_testkit::programs::repository()
}

/// The names of all captures.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(root().join("pcaps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "pcap" || it == "pcapng"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    names.sort();
    assert!(names.len() >= 20, "only {names:?}");
    names
}

pub(crate) fn stored_file(name: &str, extension: &str) -> PathBuf {
    root().join("pcaps").join(format!("{name}.{extension}"))
}

pub(crate) fn file(name: &str) -> PathBuf {
    let pcapng = stored_file(name, "pcapng");
    if pcapng.exists() { pcapng } else { stored_file(name, "pcap") }
}

pub(crate) fn stdout(command: &mut Command) -> String {
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; sh interop/setup.sh test"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

pub(crate) fn analysis(name: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(stored_file(name, "json")).unwrap()).unwrap()
}

/// The analysis of the direction that carries the data.
pub(crate) fn sender(name: &str) -> Value {
    let analysis = analysis(name);
    let directions = analysis["captures"][0]["connections"][0]["directions"].as_array().unwrap();
    directions.iter().max_by_key(|direction| direction["sent_bytes"].as_u64()).unwrap().clone()
}

pub(crate) fn count(of: &Value, pointer: &str) -> u64 {
    of.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("no {pointer} in {of}"))
}

/// The trace of that direction.
pub(crate) fn trace(name: &str) -> Trace {
    let mut capture = Capture::open(&file(name), None).unwrap();
    let mut traces = Vec::new();
    survey::read(&mut capture, Traces::All, &mut |finished| traces.extend(finished.ended.traces.unwrap()));
    traces.into_iter().max_by_key(|trace| trace.segments.len()).unwrap()
}

/// The sequence number of the SYN in that direction.
pub(crate) fn first_number(name: &str) -> u32 {
    let port: u16 = port(name).parse().unwrap();
    let mut capture = Capture::open(&file(name), None).unwrap();
    loop {
        let Next::Frame(frame) = capture.read() else { panic!("{name}: no SYN") };
        if let Found::Tcp(packet) | Found::Flawed(packet, _) = frame.packet()
            && packet.src.port() == port
            && packet.flags.contains(Flags::SYN)
        {
            return packet.seq.0;
        }
    }
}

/// The sender's port.
pub(crate) fn port(name: &str) -> String {
    sender(name)["from"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned()
}

/// The fields that tshark prints for the packets that match `filter`.
pub(crate) fn tshark(name: &str, filter: &str, fields: &[&str]) -> Vec<Vec<String>> {
    let output = stdout(
        Command::new("tshark")
            .args(["-r", file(name).to_str().unwrap(), "-T", "fields", "-Y", filter])
            .args(fields.iter().flat_map(|field| ["-e", field])),
    );
    output.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

/// A TCP packet as tshark dissects it. A field that tshark does not have is empty.
pub(crate) struct Dissected {
    fields: Vec<String>,
    /// Whether the data sender sent it.
    pub(crate) is_from_sender: bool,
}

const FIELDS: [&str; 11] = [
    "frame.number",
    "tcp.srcport",
    "tcp.len",
    "frame.cap_len",
    "frame.len",
    "tcp.options.timestamp.tsval",
    "tcp.options.timestamp.tsecr",
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.duplicate_ack",
    "tcp.analysis.ack_rtt",
];

impl Dissected {
    pub(crate) fn field(&self, name: &str) -> &str {
        &self.fields[FIELDS.iter().position(|field| *field == name).expect("a field that tshark prints")]
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.field(name).is_empty()
    }

    pub(crate) fn frame(&self) -> u64 {
        self.field("frame.number").parse().unwrap()
    }

    /// Length of the payload.
    pub(crate) fn payload_len(&self) -> Option<u64> {
        self.field("tcp.len").parse().ok()
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.field("frame.cap_len") != self.field("frame.len")
    }
}

/// All TCP packets of a capture, from a single run of tshark, because tshark takes longer to start than to
/// read.
pub(crate) fn dissected(name: &str) -> Vec<Dissected> {
    let port = port(name);
    let rows = tshark(name, "tcp", &FIELDS).into_iter();
    rows.map(|fields| {
        assert_eq!(fields.len(), FIELDS.len(), "{name}: {fields:?}");
        Dissected { is_from_sender: fields[1] == port, fields }
    })
    .collect()
}

pub(crate) struct Tcptrace {
    figures: BTreeMap<String, String>,
    /// RTT samples: the first sequence number of the segment, and the time in milliseconds.
    pub(crate) samples: Vec<(u32, u64)>,
}

/// tcptrace's output for the direction that carries the data.
pub(crate) fn tcptrace(name: &str) -> Tcptrace {
    // tcptrace writes files into its working directory.
    let scratch = TempDir::new(&format!("tcptrace-{name}"));
    let mut file = file(name);
    if name == "cooked" {
        // tcptrace does not support this link type, so it gets the IP packets without link headers.
        let packets = scratch.join("packets.pcap");
        stdout(Command::new("editcap").args(["-C", "20", "-T", "rawip"]).arg(&file).arg(&packets));
        file = packets;
    }
    let output =
        stdout(Command::new("tcptrace").args(["-n", "-l", "-r", "-Z"]).arg(file).current_dir(&scratch));
    // The first number in a line belongs to that direction.
    let rows = output.lines().filter_map(|line| line.split_once(':'));
    let rows = rows.filter_map(|(what, rest)| Some((what.trim(), rest.split_whitespace().next()?)));
    let mut figures = BTreeMap::new();
    for (what, figure) in rows {
        figures.entry(what.to_owned()).or_insert_with(|| figure.to_owned());
    }
    let samples = fs::read_to_string(scratch.join("a2b_rttraw.dat")).unwrap_or_default();
    let samples = samples.lines().map(|line| {
        let (segment, ms) = line.split_once(' ').unwrap();
        (segment.parse().unwrap(), ms.parse().unwrap())
    });
    let samples = samples.collect();
    Tcptrace { figures, samples }
}

impl Tcptrace {
    pub(crate) fn figure<T: std::str::FromStr>(&self, what: &str) -> T {
        let figure = self.figures.get(what).and_then(|figure| figure.parse().ok());
        figure.unwrap_or_else(|| panic!("no `{what}` in {:?}", self.figures))
    }
}

/// The known difference between a tool's number and ours, where the definitions differ.
pub(crate) fn known(differences: &[(&str, i64)], name: &str) -> i64 {
    differences.iter().find(|(one, _)| *one == name).map_or(0, |(_, more)| *more)
}
