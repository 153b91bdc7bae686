//! A device with segmentation offload. The kernel splits the large segments into ordinary packets.

use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{Running, TempFile, run_in};
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

/// Returns the packets of a pcap file.
fn captured(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &file[24..];
    let mut packets = Vec::new();
    while let Some((header, after)) = rest.split_at_checked(16) {
        let len = u32::from_ne_bytes(header[8..12].try_into().unwrap()) as usize;
        packets.push(after[..len].to_vec());
        rest = &after[len..];
    }
    packets
}

/// Returns the number of packets that the kernel has forwarded in both directions. A large segment that it
/// splits later counts as one.
fn forwarded(namespace: &Namespace) -> usize {
    let counters =
        namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/snmp").unwrap()).unwrap();
    let mut ip = counters.lines().filter(|line| line.starts_with("Ip:")).map(str::split_whitespace);
    let (names, mut counts) = (ip.next().unwrap(), ip.next().unwrap());
    counts.nth(names.clone().position(|name| name == "ForwDatagrams").unwrap()).unwrap().parse().unwrap()
}

#[test]
fn kernel_splits_offloaded_segments_into_mtu_sized_packets() {
    let packets = TempFile::new("packets");
    let path = EmulatedPath::captured(LOSSY, 1, packets.path());
    let sink = Running::start_in(&path.mobile, &["sink", "9000", "--expect-pattern", "--json"]);
    let sent = run_in(&path.fixed, &["send", "--bytes=600k", "10.84.0.2:9000", "--offload=on"]);
    assert_eq!((sent.code, sink.end().code), (0, 0), "{}", sent.stderr);
    let forwarded = forwarded(&path.fixed);
    drop(path);
    let packets = captured(&packets.read());
    let data = packets.iter().filter(|packet| packet.len() == 1500).count();
    assert!(data > 400, "only {data} full packets for 600 kB");
    // The initial window is one piece of ten segments, and in slow start each ACK releases a piece of two.
    assert!(
        forwarded + 30 < packets.len(),
        "{forwarded} packets at the kernel, {} at airlink",
        packets.len()
    );
    for packet in &packets {
        assert!(packet.len() <= 1500, "a packet of {} bytes", packet.len());
        assert!(segment::parse(packet).is_ok(), "invalid segment: {packet:?}");
    }
}
