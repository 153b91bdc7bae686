//! Decodes the PDUs of LTE and NR entities with tshark. It must decode every octet without an error, and
//! reassemble exactly the packets that were sent.
//!
//! Needs tshark: `interop/setup.sh test`.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use airlink::capture::{InMemory, Tap};
use airlink::pdcp::pdu::{Format, StatusReport, encode_data};
use airlink::rlc::am::AmParameters;
use airlink::rlc::service::{Event, Pdu, PduKind, Sdu};
use airlink::rlc::{lte, nr};
use airtcp_testkit::sample::{sample, seed, size};
use airtcp_testkit::temporary::TempDir;
use airtcp_testkit::wireshark::tshark;
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

const SLOT: Duration = Duration::from_millis(1);
/// Slots until a transport block arrives.
const DELAY: u64 = 4;

/// The functions of an entity that the test uses.
trait Entity {
    fn submit(&mut self, sdu: Sdu);
    fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>);
    fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>);
    fn expire(&mut self, now: Instant, events: &mut Vec<Event>);
}

macro_rules! entity {
    ($type:ty) => {
        impl Entity for $type {
            fn submit(&mut self, sdu: Sdu) {
                <$type>::submit(self, sdu);
            }
            fn pull(&mut self, now: Instant, octets: usize, pdus: &mut Vec<Pdu>) {
                <$type>::pull(self, now, octets, pdus);
            }
            fn receive(&mut self, now: Instant, pdu: &[u8], events: &mut Vec<Event>) {
                <$type>::receive(self, now, pdu, events).expect("an entity sends valid PDUs");
            }
            fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
                if self.next_deadline().is_some_and(|at| at <= now) {
                    self.on_deadline(now, events);
                }
            }
        }
    };
}

entity!(nr::AmEntity);
entity!(lte::AmEntity);

/// The framing of a PDU for Wireshark's heuristic dissectors, and the options that decode it down to IP.
struct Framing {
    /// The octets before the direction.
    head: Vec<u8>,
    direction_tag: u8,
    /// The octets from the direction to the PDU.
    tail: Vec<u8>,
    /// Options that reassemble SDUs and dissect their content.
    reassembly: Vec<String>,
    pdcp_octets: u32,
}

/// RLC-NR in mode 4 (AM) or 2 (UM).
fn nr_framing(mode: u8, sn_bits: u8, pdcp_bits: u8) -> Framing {
    let pdcp = format!("pdcp-drb-sn-{pdcp_bits}");
    Framing {
        head: [b"rlc-nr".as_slice(), &[mode, sn_bits]].concat(),
        direction_tag: 0x02,
        // UE ID 1, bearer type DRB, bearer 1.
        tail: vec![0x03, 0, 1, 0x04, 5, 0x05, 1, 0x01],
        reassembly: vec![
            format!("rlc-nr.call_pdcp_for_dl_drb:{pdcp}"),
            "pdcp-nr.check_sequence_numbers:no-analysis".into(),
        ],
        pdcp_octets: if pdcp_bits == 18 { 3 } else { 2 },
    }
}

/// RLC-LTE in mode 4 (AM) or 2 (UM).
fn lte_framing(mode: u8, sn_bits: u8, li_15: bool) -> Framing {
    let mut tail = vec![0x05, 0, 1, 0x06, 0, 5, 0x07, 0, 1];
    if li_15 {
        tail.push(0x08);
    }
    tail.push(0x01);
    Framing {
        head: [b"rlc-lte".as_slice(), &[mode, 0x02, sn_bits]].concat(),
        direction_tag: 0x03,
        tail,
        reassembly: vec![
            "rlc-lte.do_sequence_analysis_am:Only-RLC-frames".into(),
            "rlc-lte.do_sequence_analysis:Only-RLC-frames".into(),
            "rlc-lte.call_pdcp_for_drb:pdcp-drb-sn-12".into(),
        ],
        pdcp_octets: 2,
    }
}

impl Framing {
    /// The PDCP PDU with this SN and packet.
    fn pdcp(&self, sn: u64, packet: &[u8]) -> Vec<u8> {
        let bits = if self.pdcp_octets == 3 { 18 } else { 12 };
        let header = (1_u32 << (8 * self.pdcp_octets - 1) | (sn as u32 & ((1 << bits) - 1))).to_be_bytes();
        [&header[4 - self.pdcp_octets as usize..], packet].concat()
    }

    /// A UDP datagram with the PDU.
    fn datagram(&self, is_down: bool, pdu: &[u8]) -> Vec<u8> {
        let payload =
            [&self.head, [self.direction_tag, u8::from(is_down)].as_slice(), &self.tail, pdu].concat();
        let (network, mobile) = ([192, 0, 2, 1], [192, 0, 2, 2]);
        let (from, to) = if is_down { (network, mobile) } else { (mobile, network) };
        udp(from, to, 50_000, &payload)
    }
}

/// Dissects a capture with these preferences.
fn dissect(capture: &Path, preferences: &[String], args: &[&str]) -> String {
    let preferences = preferences.iter().flat_map(|preference| ["-o", preference]);
    let args: Vec<&str> = preferences.chain(args.iter().copied()).collect();
    tshark(capture, &["rlc_nr_udp", "rlc_lte_udp"], &args)
}

fn udp(from: [u8; 4], to: [u8; 4], port: u16, payload: &[u8]) -> Vec<u8> {
    let udp_length = 8 + payload.len() as u16;
    let mut datagram = vec![0x45, 0];
    datagram.extend((20 + udp_length).to_be_bytes());
    datagram.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
    datagram.extend(from);
    datagram.extend(to);
    let sum: u32 = datagram.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    datagram[10..12].copy_from_slice(&checksum.to_be_bytes());
    // No UDP checksum.
    for field in [port, port + 1, udp_length, 0] {
        datagram.extend(field.to_be_bytes());
    }
    datagram.extend_from_slice(payload);
    datagram
}

/// The network sends these packets to the mobile.
fn packets(count: u64, longest: u64) -> Vec<Vec<u8>> {
    let mut draws = Stream::new(seed(), "packets");
    let length = |draws: &mut Stream| 8 + draws.below(longest) as usize;
    (0..count)
        .map(|number| {
            let mut payload = vec![0x5a; length(&mut draws)];
            payload[..8].copy_from_slice(&number.to_be_bytes());
            udp([10, 0, 0, 1], [10, 0, 0, 2], 40_000, &payload)
        })
        .collect()
}

/// PDUs of a run in both directions, with the time of their transmission.
struct Transmitted {
    at: Instant,
    is_down: bool,
    pdu: Pdu,
    is_lost: bool,
}

/// Runs two AM entities until all packets are delivered. Only the downlink loses transport blocks, which have a
/// size in `grants`.
fn run(mut ends: [impl Entity; 2], sdus: &[Vec<u8>], grants: Range<usize>) -> Vec<Transmitted> {
    let mut draws = Stream::new(seed(), "channel");
    let mut log: Vec<Transmitted> = Vec::new();
    let mut arrived = 0;
    let (mut delivered, mut events) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    let mut submitted = sdus.iter().zip(0..);
    while delivered.len() < sdus.len() {
        now += SLOT;
        assert!(now < Instant::ZERO + Duration::from_secs(3600), "{} delivered", delivered.len());
        // The packets need about half of the average grant.
        for (octets, id) in submitted.by_ref().take(1 + draws.below(2) as usize) {
            ends[0].submit(Sdu { id, octets: octets.as_slice().into() });
        }
        while let Some(sent) = log.get(arrived).filter(|sent| sent.at + SLOT * DELAY <= now) {
            if !sent.is_lost {
                ends[usize::from(sent.is_down)].receive(now, &sent.pdu.octets, &mut events);
            }
            arrived += 1;
        }
        ends.iter_mut().for_each(|end| end.expire(now, &mut events));
        for (end, is_down) in ends.iter_mut().zip([true, false]) {
            let mut pdus = Vec::new();
            end.pull(now, grants.start + draws.below(grants.len() as u64) as usize, &mut pdus);
            let is_lost = draws.chance(0.1) && is_down;
            log.extend(pdus.into_iter().map(|pdu| Transmitted { at: now, is_down, pdu, is_lost }));
        }
        delivered.extend(events.drain(..).filter_map(|event| match event {
            Event::Delivered(octets) => Some(octets),
            Event::Confirmed(_) => None,
            Event::MaxRetx(id) => panic!("SDU {id} reaches maxRetxThreshold"),
        }));
    }
    log
}

/// Writes a capture, and checks that tshark decodes every PDU completely.
fn check_decoding<'a>(
    pcap: PathBuf,
    framing: &Framing,
    preferences: &[String],
    pdus: impl Iterator<Item = (Instant, bool, &'a [u8])>,
) {
    let mut capture = InMemory::default();
    let mut count = 0;
    for (at, is_down, pdu) in pdus {
        capture.packet(at, &framing.datagram(is_down, pdu));
        count += 1;
    }
    std::fs::write(&pcap, capture.into_octets()).unwrap();
    let frames = ["-Y", "rlc-nr || rlc-lte", "-T", "fields", "-e", "frame.number"];
    assert_eq!(dissect(&pcap, preferences, &frames).lines().count(), count);
    // Errors only: tshark warns of each NACK.
    let faults = "_ws.malformed || _ws.expert.severity >= 0x00800000 || _ws.expert.group == \"Undecoded\"";
    assert_eq!(dissect(&pcap, preferences, &["-Y", faults]), "", "{}", pcap.display());
}

/// The packets that tshark reassembles.
fn reassembled(framing: &Framing, pcap: &Path) -> Vec<Vec<u8>> {
    let all = pcap.with_extension("all");
    let output = all.to_str().unwrap();
    dissect(pcap, &framing.reassembly, &["-U", "IP", "-F", "nsecpcap", "-w", output]);
    let mut capture = pcap::Capture::from_file(&all).unwrap();
    let mut packets = Vec::new();
    while let Ok(packet) = capture.next_packet() {
        if packet.data[12..16] == [10, 0, 0, 1] {
            packets.push(packet.data.to_vec());
        }
    }
    packets
}

/// A run of two AM entities.
struct AmRun {
    directory: TempDir,
    framing: Framing,
    packets: Vec<Vec<u8>>,
    log: Vec<Transmitted>,
}

impl AmRun {
    fn new(name: &str, framing: Framing, ends: [impl Entity; 2], count: u64, grants: Range<usize>) -> Self {
        let packets = packets(count, 400);
        let sdus: Vec<_> = packets.iter().zip(0..).map(|(packet, sn)| framing.pdcp(sn, packet)).collect();
        let log = run(ends, &sdus, grants);
        let statuses = log.iter().filter(|sent| sent.pdu.kind == PduKind::Status).count();
        assert!(statuses > 10, "{statuses} STATUS PDUs");
        Self { directory: TempDir::new(name), framing, packets, log }
    }

    /// Decodes all PDUs in order of transmission. tshark does not reassemble, because a retransmission with
    /// other segments would overlap the first transmission.
    fn check_transmitted(&self) {
        let all = self.log.iter().map(|sent| (sent.at, sent.is_down, sent.pdu.octets.as_slice()));
        let preferences = ["rlc-nr.reassemble_am_frames:FALSE".to_owned()];
        check_decoding(self.directory.join("transmitted.pcap"), &self.framing, &preferences, all);
    }

    /// Decodes the data PDUs that arrived, in the order of their sequence numbers and offsets, and compares
    /// the packets.
    fn check_reassembled(&self, offset: impl Fn(&[u8]) -> u32) {
        let arrived = self.log.iter().filter(|sent| sent.is_down && !sent.is_lost);
        let sorted: BTreeMap<_, _> = arrived
            .filter_map(|sent| match sent.pdu.kind {
                PduKind::Data { sn, .. } => Some(((sn, offset(&sent.pdu.octets)), sent)),
                PduKind::Status => None,
            })
            .collect();
        let sorted = sorted.values().map(|sent| (Instant::ZERO, true, sent.pdu.octets.as_slice()));
        let pcap = self.directory.join("arrived.pcap");
        check_decoding(pcap.clone(), &self.framing, &self.framing.reassembly, sorted);
        let reassembled = reassembled(&self.framing, &pcap);
        assert_eq!(reassembled.len(), self.packets.len());
        assert!(reassembled == self.packets, "tshark reassembles other packets");
    }
}

/// Offset of the first octet of an AMD PDU in its SDU.
fn nr_offset(pdu: &[u8], length: nr::AmSnLength) -> u32 {
    let Ok(nr::codec::Pdu::Data(nr::codec::Amd { position, .. })) = nr::codec::decode(pdu, length) else {
        panic!("not an AMD PDU");
    };
    match position {
        nr::codec::Position::Whole | nr::codec::Position::First => 0,
        nr::codec::Position::Middle { so } | nr::codec::Position::Last { so } => so.into(),
    }
}

/// `t_status_prohibit` is longer than the round-trip time, so that no octet is retransmitted while it is in flight.
fn parameters() -> AmParameters {
    AmParameters {
        t_status_prohibit: SLOT * (3 * DELAY),
        t_poll_retransmit: Duration::from_secs(1),
        ..AmParameters::default()
    }
}

#[test]
fn wireshark_decodes_nr_am() {
    for (sn_length, bits) in [(nr::AmSnLength::Bits12, 12), (nr::AmSnLength::Bits18, 18)] {
        let config = nr::AmConfig { sn_length, parameters: parameters(), ..nr::AmConfig::default() };
        let ends = [(); 2].map(|()| nr::AmEntity::new(config.clone()));
        let count = size(1_500, 50_000);
        let run = AmRun::new(&format!("nr-am-{bits}"), nr_framing(4, bits, bits), ends, count, 20..1_500);
        run.check_transmitted();
        run.check_reassembled(|pdu| nr_offset(pdu, sn_length));
    }
}

#[test]
fn wireshark_decodes_lte_am() {
    let numbers = [(lte::AmSnLength::Bits10, 10), (lte::AmSnLength::Bits16, 16)];
    let lengths = [(lte::LiLength::Bits11, false), (lte::LiLength::Bits15, true)];
    let formats = numbers.map(|number| lengths.map(|length| (number, length)));
    for ((sn, bits), (li, is_15)) in sample("lte am", formats.into_iter().flatten(), 2) {
        let format = lte::AmFormat { sn, li };
        let config = lte::AmConfig { format, parameters: parameters(), ..lte::AmConfig::default() };
        let run = |grants| {
            let ends = [(); 2].map(|()| lte::AmEntity::new(config.clone()));
            let framing = lte_framing(4, bits, is_15);
            AmRun::new(&format!("lte-am-{bits}"), framing, ends, size(1_000, 30_000), grants)
        };
        run(20..1_500).check_transmitted();
        // tshark does not reassemble SDUs from segments of a PDU. With a constant grant there are none.
        run(700..701).check_reassembled(|pdu| match lte::codec::decode(pdu, format) {
            Ok(lte::codec::Pdu::Data(lte::codec::Amd { segment: None, .. })) => 0,
            other => panic!("{other:?}"),
        });
    }
}

/// PDUs that a UM sender makes of these packets, with grants of random sizes.
fn um_pdus(
    framing: &Framing,
    packets: &[Vec<u8>],
    mut pull: impl FnMut(Sdu, usize, &mut Vec<Pdu>),
) -> Vec<Pdu> {
    let mut draws = Stream::new(seed(), "grants");
    let mut pdus = Vec::new();
    for (packet, id) in packets.iter().zip(0..) {
        let grant = if id + 1 == packets.len() as u64 { 1_000_000 } else { 5 + draws.below(600) as usize };
        pull(Sdu { id, octets: framing.pdcp(id, packet).into() }, grant, &mut pdus);
    }
    pdus
}

/// Checks UM PDUs, and returns the packets that tshark reassembles.
fn check_um(name: &str, framing: &Framing, pdus: &[Pdu]) -> Vec<Vec<u8>> {
    let directory = TempDir::new(name);
    let all = pdus.iter().map(|pdu| (Instant::ZERO, true, pdu.octets.as_slice()));
    let pcap = directory.join("um.pcap");
    check_decoding(pcap.clone(), framing, &framing.reassembly, all);
    reassembled(framing, &pcap)
}

#[test]
fn wireshark_decodes_nr_um() {
    for (sn_length, bits) in [(nr::UmSnLength::Bits6, 6), (nr::UmSnLength::Bits12, 12)] {
        let mut sender = nr::UmSender::new(nr::UmConfig { sn_length, ..nr::UmConfig::default() });
        let (framing, packets) = (nr_framing(2, bits, 12), packets(size(1_000, 10_000), 400));
        let pdus = um_pdus(&framing, &packets, |sdu, grant, pdus| {
            sender.submit(sdu);
            sender.pull(grant, pdus);
        });
        // tshark 4.0 fails when it reassembles UM segments, so only whole SDUs are compared.
        let is_whole = |pdu: &&Pdu| pdu.octets[0] >> 6 == 0;
        let whole: Vec<_> = pdus.iter().filter(is_whole).map(|pdu| pdu.octets[3..].to_vec()).collect();
        assert!(whole.len() > packets.len() / 4);
        assert!(check_um(&format!("nr-um-{bits}"), &framing, &pdus) == whole);
    }
}

#[test]
fn wireshark_decodes_lte_um() {
    for (sn_length, bits) in [(lte::UmSnLength::Bits5, 5), (lte::UmSnLength::Bits10, 10)] {
        let mut sender = lte::UmSender::new(lte::UmConfig { sn_length, ..lte::UmConfig::default() });
        let (framing, packets) = (lte_framing(2, bits, false), packets(size(1_000, 10_000), 400));
        let pdus = um_pdus(&framing, &packets, |sdu, grant, pdus| {
            sender.submit(sdu);
            sender.pull(grant, pdus);
        });
        assert!(check_um(&format!("lte-um-{bits}"), &framing, &pdus) == packets);
    }
}

/// The framing of PDCP PDUs on the user plane, without the direction and its tag.
fn pdcp_framing(format: Format) -> Framing {
    let bits = format.sn_bits() as u8;
    let (head, tail) = match format {
        // Bearer type DRB, bearer 1, UE ID 1.
        Format::Nr12 | Format::Nr18 => {
            ([b"pdcp-nr".as_slice(), &[2, 0x02, bits]].concat(), vec![0x04, 1, 0x05, 1, 0x06, 0, 1, 0x01])
        }
        // With a header, without ROHC; channel type DCCH or DTCH.
        _ => ([b"pdcp-lte".as_slice(), &[0, 2, 0, 0x02, bits]].concat(), vec![0x04, 1, 0x01]),
    };
    Framing { head, direction_tag: 0x03, tail, reassembly: Vec::new(), pdcp_octets: 0 }
}

/// Data PDUs in the downlink, whose numbers wrap, and status reports in the uplink. `make nightly` uses a
/// million PDUs of each format.
#[test]
fn wireshark_decodes_pdcp_pdus_of_each_format() {
    let packet = udp([10, 0, 0, 1], [10, 0, 0, 2], 40_000, &[0x5a; 20]);
    for format in sample("pdcp", Format::ALL, 2) {
        let framing = pdcp_framing(format);
        let mut draws = Stream::new(seed(), "reports");
        let mut capture = InMemory::default();
        let total = size(5_000, 1_000_000);
        for count in 0..total {
            let is_report = count % 10 == 9;
            let pdu = if is_report {
                let octets = draws.below(20);
                let arrived = (0..8 * octets).map(|_| draws.chance(0.5));
                StatusReport::new(format, count, arrived).encode(format)
            } else {
                encode_data(format, count - count / 10, &packet).to_vec()
            };
            capture.packet(Instant::ZERO + SLOT * count, &framing.datagram(!is_report, &pdu));
        }
        let directory = TempDir::new("pdcp");
        let pcap = directory.join("pdcp.pcap");
        std::fs::write(&pcap, capture.into_octets()).unwrap();
        let checks = ["pdcp-nr", "pdcp-lte"]
            .map(|name| format!("{name}.check_sequence_numbers:Only-PDCP-frames"))
            .map(|preference| ["-o".to_owned(), preference]);
        let tshark = |args: &[&str]| {
            let args: Vec<&str> =
                checks.iter().flatten().map(String::as_str).chain(args.iter().copied()).collect();
            tshark(&pcap, &["pdcp_nr_udp", "pdcp_lte_udp"], &args)
        };
        let counts = tshark(&["-T", "fields", "-e", "ip.dst", "-Y", "pdcp-nr || pdcp-lte"]);
        assert_eq!(counts.lines().count() as u64, total, "{format:?}");
        // The packet inside each data PDU.
        assert_eq!(counts.matches("10.0.0.2").count() as u64, total - total / 10, "{format:?}");
        let faults =
            "_ws.malformed || _ws.expert.severity >= 0x00600000 || _ws.expert.group == \"Undecoded\"";
        assert_eq!(tshark(&["-Y", faults]), "", "{format:?}");
    }
}
