use std::fs;

use airtcp_analyze::airlink_events::EventsError;
use airtcp_testkit::temporary::TempFile;

use super::*;

fn file(content: &[u8]) -> TempFile {
    let file = TempFile::new("link");
    fs::write(file.path(), content).unwrap();
    file
}

/// Two packets over a wire; the second one waits and is lost (docs/reference/link-views.md).
const EVENTS: &str = r#"{"schema_version":1,"event":"start","scenario":"example.toml","seed":1,"wall_zero":7,"stages":["wire","air"]}
{"t":0,"event":"entered","packet":0,"direction":"down","bytes":1500}
{"t":0,"event":"sent","packet":0,"direction":"down","stage":"wire","waited":0}
{"t":0,"event":"entered","packet":1,"direction":"down","bytes":1000}
{"t":0,"event":"queued","packet":1,"direction":"down","stage":"wire","packets":1,"bytes":1500}
{"t":12000000,"event":"sent","packet":1,"direction":"down","stage":"wire","waited":12000000}
{"t":22000000,"event":"left","packet":0,"direction":"down"}
{"t":34000000,"event":"dropped","packet":1,"direction":"down","stage":"air","why":"listed","cause":"radio"}
"#;

fn read(text: &str) -> Result<QueuesAndDrops, EmulationError> {
    QueuesAndDrops::read(file(text.as_bytes()).path().as_ref())
}

#[test]
fn events_yield_queue_lengths_and_drop_causes() {
    let events = read(EVENTS).unwrap();
    assert_eq!(events.wall_zero, 7);
    let [queue] = &events.queues[..] else { panic!("{:?}", events.queues) };
    assert_eq!((queue.stage.as_str(), queue.direction.as_str()), ("wire", "down"));
    assert_eq!(queue.points().collect::<Vec<_>>(), [(0.0, 2500.0), (0.012, 1500.0)]);
    let [drops] = &events.drops[..] else { panic!("{:?}", events.drops) };
    assert_eq!(
        (drops.cause.as_str(), drops.bins.points().collect::<Vec<_>>()),
        ("radio", vec![(0.034, 1.0)])
    );
}

#[test]
fn truncated_last_event_line_is_ignored() {
    let cut = &EVENTS[..EVENTS.len() - 20];
    assert!(read(cut).unwrap().drops.is_empty());
}

#[test]
fn invalid_event_stream_is_rejected() {
    let later = EVENTS.replacen("\"schema_version\":1", "\"schema_version\":2", 1);
    for text in ["{\"time\":1}\n", "\u{0}\u{1}\n", &later] {
        assert!(matches!(read(text), Err(EmulationError::Events(EventsError::NoEvents(_)))), "{text}");
    }
    let damaged = EVENTS.replacen("{\"t\":22000000", "{\"t\":2200 00", 1);
    assert!(matches!(read(&damaged), Err(EmulationError::Events(EventsError::Damaged { line: 7, .. }))));
}

/// A pcap with nanosecond timestamps and LINKTYPE_RAW.
fn capture(packets: &[(u32, Vec<u8>)]) -> TempFile {
    let word = |value: u32| value.to_le_bytes();
    let mut bytes = [word(0xa1b2_3c4d), [2, 0, 4, 0], word(0), word(0), word(65_535), word(101)].concat();
    for (nanos, packet) in packets {
        bytes.extend([word(1), word(*nanos), word(packet.len() as u32), word(packet.len() as u32)].concat());
        bytes.extend(packet);
    }
    file(&bytes)
}

fn pdu(from: u8, port: u16, transmission: u8) -> Vec<u8> {
    let mut header = vec![0; 28];
    (header[0], header[3], header[5], header[8], header[9]) = (0x45, 28, transmission, 64, 17);
    header[12..20].copy_from_slice(&[192, 0, 2, from, 192, 0, 2, 3 - from]);
    header[20..22].copy_from_slice(&port.to_be_bytes());
    header
}

/// A PDU of LTE or NR, whose IP header contains a timestamp.
fn timestamped(mut packet: Vec<u8>) -> Vec<u8> {
    packet[0] = 0x47;
    drop(packet.splice(20..20, [68, 8, 9, 0, 0x80, 0, 0, 1]));
    packet
}

#[test]
fn radio_pdus_are_counted_by_header_fields() {
    let file = capture(&[
        (0, pdu(1, 50_000, 1)),
        (10_000_000, pdu(1, 50_002, 1)),
        (20_000_000, timestamped(pdu(1, 50_000, 2))),
        (30_000_000, pdu(2, 50_000, 1)),
    ]);
    let radio = Radio::read(file.path().as_ref()).unwrap();
    let sum = |bins: &Bins| bins.points().map(|(_, count)| count).sum::<f64>();
    let RadioDirection { sent, retransmitted, damaged } = &radio.down;
    assert_eq!([sum(sent), sum(retransmitted), sum(damaged), sum(&radio.up.sent)], [3.0, 1.0, 1.0, 1.0]);
    assert_eq!(retransmitted.points().next(), Some((1.02, 1.0)));
}

#[test]
fn non_radio_capture_is_rejected() {
    let stranger = capture(&[(0, pdu(1, 443, 1))]);
    assert!(matches!(Radio::read(stranger.path().as_ref()), Err(EmulationError::NoRadio(_))));
    assert!(matches!(Radio::read("/nonexistent/radio.pcap".as_ref()), Err(EmulationError::Read { .. })));
}

#[test]
fn emulated_path_is_drawn_at_capture_time() {
    use airtcp_analyze::trace::{AckSeen, Trace};
    use airtcp_testkit::markup::well_formed;

    use crate::panels::{Picture, Range, figure};
    use crate::plot::tests::svg;

    let file = capture(&[(0, pdu(1, 50_000, 1)), (500_000_000, pdu(1, 50_000, 2))]);
    // The run's clock started 7 ns after 1970; the PDUs were captured one second after 1970.
    let emulated = EmulatedPath {
        queues: Some(read(EVENTS).unwrap()),
        radio: Some(Radio::read(file.path().as_ref()).unwrap()),
    };
    let ack = |at| AckSeen { at, number: 1, ack: at as u64, edge: 0, duplicate: false, sack: Vec::new() };
    let trace = Trace { acks: vec![ack(0), ack(2_000_000_000)], ..Trace::default() };
    let drawn = |origin| {
        let trace = Trace { origin, ..trace.clone() };
        let figure = figure(&trace, &[Picture::Emulation], &emulated, Range::default());
        figure.map(|figure| svg(&figure)).unwrap_or_default()
    };
    let text = drawn(0);
    well_formed(&text);
    assert_eq!(text.matches("<g class=\"panel\">").count(), 2);
    for words in ["wire down", "dropped: radio", "PDUs/s, down", "retransmitted"] {
        assert!(text.contains(words), "{words}");
    }
    assert_eq!(drawn(3_600_000_000_000), "", "the trace starts an hour after the events");
}
