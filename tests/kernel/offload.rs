//! A device with offload: behind the kernel that cuts what it takes, there are packets as ever.

use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{Running, TempFile, run};
use airwire::segment;

const LOSSY: &str = r#"
schema = 1
[[stage]]
kind = "link"
both = { rate = "5Mbit", delay = "20ms", queue = { packets = 100 } }
[[stage]]
kind = "loss"
down = { model = "list", drop = ["segment 60", "segment 61", "segment 150", "segment 150 retransmission 1", "segment 300"] }
"#;

/// The packets of a pcap file.
fn captured(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &file[24..];
    let mut packets = Vec::new();
    while let Some((header, behind)) = rest.split_at_checked(16) {
        let len = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        packets.push(behind[..len].to_vec());
        rest = &behind[len..];
    }
    packets
}

/// How many packets the kernel has passed on, in either direction. What it cuts later counts as one.
fn forwarded(namespace: &Namespace) -> usize {
    let counters =
        namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap()).unwrap();
    let mut ip = counters.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (names, mut counts) = (ip.next().unwrap(), ip.next().unwrap());
    counts.nth(names.clone().position(|name| name == "ForwDatagrams").unwrap()).unwrap().parse().unwrap()
}

#[test]
fn behind_the_kernel_every_packet_is_whole_and_no_longer_than_the_mtu() {
    let packets = TempFile::new("packets");
    let path = EmulatedPath::captured(LOSSY, 1, packets.path());
    let sink = Running::start(&["sink", "9000", "--netns", path.mobile.name(), "--expect-pattern", "--json"]);
    let ours = ["send", "--bytes=600k", "10.84.0.2:9000", "--netns", path.fixed.name(), "--offload=on"];
    let sent = run(&ours);
    assert_eq!((sent.code, sink.end().code), (0, 0), "{}", sent.stderr);
    let forwarded = forwarded(&path.fixed);
    drop(path);
    let packets = captured(&packets.read());
    let data = packets.iter().filter(|packet| packet.len() == 1500).count();
    assert!(data > 400, "600 kB are more than {data} full packets");
    // The initial window alone is one piece of ten segments, and slow start sends by twos.
    assert!(forwarded + 30 < packets.len(), "{forwarded} came to the kernel, {} to airlink", packets.len());
    for packet in &packets {
        assert!(packet.len() <= 1500, "a packet of {} octets", packet.len());
        let ip = segment::parse_ip(packet).unwrap();
        assert!(segment::parse_tcp(&ip).is_ok(), "with its checksum: {packet:?}");
    }
}
