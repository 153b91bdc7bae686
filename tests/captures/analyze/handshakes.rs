//! Connections that were not established, and paths that drop long packets.

use airtcp_testkit::frames::{ACK, RST, SYN, SYN_ACK, Tcp, v4, v6};
use serde_json::{Value, json};

use super::builder::{Frames, line};
use super::{acked, counts};

const RST_ACK: airwire::segment::Flags = RST.with(ACK);

fn outcome(capture: &Value) -> &Value {
    &capture["connections"][0]["handshake"]["outcome"]
}

fn syns(frames: &mut Frames, times: u32) {
    for again in 0..times {
        frames.tcp(f64::from((1 << again) - 1), &Tcp::new(v4(1, 4000), v4(2, 80), SYN, 100, 0, 0));
    }
}

struct FailedHandshake {
    frames: Frames,
    outcome: Value,
    /// The outcome in the list of connections.
    text: &'static str,
    /// The outcome in the totals.
    total: &'static str,
}

fn failed_handshakes() -> [FailedHandshake; 6] {
    let (client, server) = (v4(1, 4000), v4(2, 80));
    let syn = Tcp::new(client, server, SYN, 100, 0, 0);
    let syn_ack = Tcp::new(server, client, SYN_ACK, 500, 101, 0);
    let refusal = Tcp::new(server, client, RST_ACK, 0, 101, 0);
    let case = |outcome, text, total, frames: &dyn Fn(&mut Frames)| {
        let mut failed = FailedHandshake { frames: Frames::default(), outcome, text, total };
        frames(&mut failed.frames);
        failed
    };
    let refuse = |frames: &mut Frames, at: f64| {
        frames.tcp(at, &syn).tcp(at + 0.01, &refusal);
    };
    [
        case(json!({"is": "refused"}), "refused by RST (1 SYN)", "1 refused", &|frames| refuse(frames, 0.0)),
        case(json!({"is": "refused"}), "refused by RST (3 SYNs)", "1 refused", &|frames| {
            [0.0, 0.5, 1.0].into_iter().for_each(|at| refuse(frames, at));
        }),
        case(json!({"is": "no-answer"}), "no answer to 5 SYNs", "1 without an answer", &|frames| {
            syns(frames, 5);
        }),
        case(json!({"is": "half-open"}), "half open: no ACK for 3 SYN-ACKs", "1 half open", &|frames| {
            frames.tcp(0.0, &syn).tcp(0.01, &syn_ack).tcp(1.01, &syn_ack).tcp(3.01, &syn_ack);
        }),
        case(
            json!({"is": "reset", "by": 0}),
            "reset by 10.0.0.1:4000 during the handshake (1 SYN)",
            "1 reset",
            &|frames| {
                let reset = Tcp::new(client, server, RST, 101, 0, 0);
                frames.tcp(0.0, &syn).tcp(0.01, &syn_ack).tcp(0.02, &reset);
            },
        ),
        case(json!({"is": "unreachable"}), "host unreachable by ICMP (2 SYNs)", "1 unreachable", &|frames| {
            syns(frames, 2);
            frames.icmp(1.5, v4(9, 0).ip(), (3, 1), 0, &syn);
        }),
    ]
}

#[test]
fn failed_handshake_reports_its_outcome() {
    let cases = failed_handshakes();
    // One run of tshark reads the frames of all cases.
    let mut all = Frames::default();
    cases.iter().for_each(|case| all.append(&case.frames));
    let flags = all.tshark("frame", &["tcp.flags.syn", "tcp.flags.ack", "tcp.flags.reset"]);
    let mut flags =
        flags.iter().map(|row| row.split('\t').map(|bit| bit == "1" || bit == "True").collect::<Vec<_>>());
    for FailedHandshake { frames, outcome: expected, text: says, total } in cases {
        let capture = frames.json();
        assert_eq!(counts(&capture).1, 1, "{says}");
        assert_eq!(outcome(&capture), &expected);
        let text = frames.text(&[]);
        line(&text, &["connection 0: 10.0.0.1:4000 ↔ 10.0.0.2:80", says]);
        line(&text, &["1 handshake failed", total]);
        line(&text, &["10.0.0.1:4000  10.0.0.2:80", says]);
        assert!(!text.contains("carried no data"), "{text}");
        let flags: Vec<_> = flags.by_ref().take(frames.count()).collect();
        let handshake = &capture["connections"][0]["handshake"];
        let syns = flags.iter().filter(|bits| bits[0] && !bits[1]).count();
        assert_eq!(handshake["syns"][0]["times"], syns, "{says}");
        let resets = flags.iter().filter(|bits| bits[2]).count();
        assert_eq!(handshake["resets"], resets, "{says}");
    }
    assert_eq!(flags.next(), None);
    let open = Frames::default().open(0.0, v4(1, 4000), v4(2, 80)).json();
    assert_eq!(outcome(&open)["is"], "open");
}

#[test]
fn refused_connection_may_open_on_retry() {
    let (client, server) = (v4(1, 4000), v4(2, 80));
    let mut frames = Frames::default();
    frames.tcp(0.0, &Tcp::new(client, server, SYN, 100, 0, 0));
    frames.tcp(0.1, &Tcp::new(server, client, RST_ACK, 0, 101, 0));
    frames.open(0.5, client, server);
    frames.tcp(0.6, &Tcp::new(client, server, ACK, 101, 501, 10));
    frames.tcp(0.7, &Tcp::new(server, client, ACK, 501, 111, 0));
    let capture = frames.json();
    assert_eq!(counts(&capture), (6 + 1, 1));
    assert_eq!((outcome(&capture)["is"].as_str(), acked(&capture, 0)), (Some("open"), [10, 0]));
    assert_eq!(capture["connections"][0]["close"]["is"], "open");
}

#[test]
fn scan_is_counted_and_list_is_bounded() {
    let mut frames = Frames::default();
    for port in 1..=200 {
        let syn = Tcp::new(v4(1, 4000), v4(2, port), SYN, 100, 0, 0);
        frames.tcp(f64::from(port), &syn);
        if port % 2 == 0 {
            frames.tcp(f64::from(port) + 0.1, &Tcp::new(syn.dst, syn.src, RST_ACK, 0, 101, 0));
        }
    }
    let text = frames.text(&[]);
    line(&text, &["200 handshakes failed: 100 refused, 100 without an answer"]);
    line(&text, &["and 150 more: --most 200 shows them"]);
    assert_eq!(text.lines().filter(|line| line.contains("no answer to 1 SYN")).count(), 25, "{text}");
}

/// An ICMP error, as type and code, the kind in JSON, and the text.
type IcmpCase = ((u8, u8), &'static str, &'static str);

const ICMP: [IcmpCase; 7] = [
    ((3, 0), "net-unreachable", "network unreachable"),
    ((3, 1), "host-unreachable", "host unreachable"),
    ((3, 2), "protocol-unreachable", "protocol unreachable"),
    ((3, 3), "port-unreachable", "port unreachable"),
    ((3, 4), "packet-too-big", "packet too big, MTU 1400"),
    ((3, 13), "prohibited", "prohibited"),
    ((11, 0), "ttl-exceeded", "TTL exceeded"),
];

const ICMP_V6: [IcmpCase; 6] = [
    ((1, 0), "net-unreachable", "network unreachable"),
    ((1, 1), "prohibited", "prohibited"),
    ((1, 3), "host-unreachable", "host unreachable"),
    ((1, 4), "port-unreachable", "port unreachable"),
    ((2, 0), "packet-too-big", "packet too big, MTU 1400"),
    ((3, 0), "ttl-exceeded", "TTL exceeded"),
];

#[test]
fn icmp_errors_are_shown_with_their_connection() {
    for (kinds, [client, server, router], fields) in [
        (&ICMP[..], [v4(1, 4000), v4(2, 80), v4(9, 0)], ["icmp.type", "icmp.code"]),
        (&ICMP_V6[..], [v6(1, 4000), v6(2, 80), v6(9, 0)], ["icmpv6.type", "icmpv6.code"]),
    ] {
        // Each kind of error concerns a different connection.
        let mut frames = Frames::default();
        for (number, (code, ..)) in kinds.iter().enumerate() {
            let (at, port) = (number as f64, client.port() + number as u16);
            let syn = Tcp::new((client.ip(), port).into(), server, SYN, 100, 0, 0);
            frames.tcp(at, &syn);
            for again in [0.25, 0.5] {
                frames.icmp(at + again, router.ip(), *code, 1400, &syn);
            }
        }
        let capture = frames.json();
        assert_eq!(capture["totals"]["icmp_errors"], 2 * kinds.len());
        assert_eq!(capture["totals"]["icmp_errors_elsewhere"], 0);
        let connections = capture["connections"].as_array().unwrap();
        assert_eq!(connections.len(), kinds.len());
        for (number, (connection, (_, kind, words))) in connections.iter().zip(kinds).enumerate() {
            let message = &connection["icmp"][0];
            assert_eq!((&message["kind"], &message["count"]), (&json!(kind), &json!(2)), "{message}");
            assert_eq!(message["from"], router.ip().to_string());
            assert_eq!(message["first_frame"], 3 * number + 2);
            assert_eq!(message["first_seconds"], 0.25);
            let is_big = *kind == "packet-too-big";
            assert_eq!(message["mtu"], if is_big { json!(1400) } else { Value::Null });
            let is = &connection["handshake"]["outcome"]["is"];
            assert_eq!(is, if is_big { "no-answer" } else { "unreachable" });
            let text = frames.text(&["--connection", &number.to_string()]);
            line(&text, &["ICMP", "2 × ", words, &format!("from {}, about", router.ip())]);
        }
        // tshark reads the same types and codes.
        let seen = frames.tshark(fields[0], &fields);
        let expected = kinds.iter().flat_map(|(code, ..)| vec![format!("{}\t{}", code.0, code.1); 2]);
        assert_eq!(seen, expected.collect::<Vec<_>>());
    }
}

#[test]
fn icmp_errors_about_unknown_connections_are_counted() {
    let mut frames = Frames::default();
    frames.icmp(0.0, v4(9, 0).ip(), (3, 3), 0, &Tcp::new(v4(1, 4000), v4(2, 80), SYN, 1, 0, 0));
    let totals = &frames.json()["totals"];
    assert_eq!((&totals["icmp_errors"], &totals["icmp_errors_elsewhere"]), (&json!(1), &json!(1)));
}

/// The request arrives, but the long segments of the response are lost.
fn black_hole() -> (Frames, Tcp) {
    let (client, server) = (v4(1, 4000), v4(2, 80));
    let mut frames = Frames::default();
    frames.open(0.0, client, server);
    frames.tcp(0.03, &Tcp::new(client, server, ACK, 101, 501, 200));
    frames.tcp(0.04, &Tcp::new(server, client, ACK, 501, 301, 0));
    let long = Tcp::new(server, client, ACK, 501, 301, 1400);
    for at in [0.05, 0.35, 0.95, 2.15] {
        frames.tcp(at, &long);
    }
    (frames, long)
}

#[test]
fn undelivered_long_segments_reveal_mtu_black_hole() {
    let (mut silently, long) = black_hole();
    let path_mtu = |capture: &Value| capture["connections"][0]["directions"][1]["path_mtu"].clone();
    let found = path_mtu(&silently.json());
    assert_eq!(found["black_hole"], "possible");
    assert_eq!((&found["lost_segment_bytes"], &found["lost_segment_times"]), (&json!(1400), &json!(4)));
    assert_eq!(found["lost_segment_frame"], 7);
    assert!(path_mtu(&silently.json())["icmp_mtu"].is_null());
    line(
        &silently.text(&[]),
        &["path MTU", "a segment of 1400 bytes was sent 4 times (first retransmission in frame 7)"],
    );

    // A keep-alive shows that the client still exists.
    silently.tcp(2.5, &Tcp::new(long.dst, long.src, ACK, 300, 501, 0));
    assert_eq!(path_mtu(&silently.json())["black_hole"], "likely");

    // The router reports the MTU, and the server ignores it.
    let (mut reported, long) = black_hole();
    reported.icmp(2.2, v4(9, 0).ip(), (3, 4), 1300, &long);
    reported.tcp(4.55, &long);
    let found = path_mtu(&reported.json());
    assert_eq!((&found["black_hole"], &found["icmp_mtu"]), (&json!("likely"), &json!(1300)));
    assert_eq!(found["above_icmp_mtu"], 1);
    line(&reported.text(&[]), &["1 packets longer than 1300 bytes sent after ICMP"]);
    assert_eq!(reported.tshark("icmp", &["icmp.mtu"]), ["1300"]);

    // The server sends shorter segments (RFC 4821), which arrive.
    let (mut shorter, long) = black_hole();
    shorter.tcp(4.55, &Tcp { len: 1000, ..long.clone() });
    shorter.tcp(4.56, &Tcp::new(long.dst, long.src, ACK, 301, 1501, 0));
    shorter.tcp(4.57, &Tcp { seq: 1501, len: 400, ..long.clone() });
    shorter.tcp(4.58, &Tcp::new(long.dst, long.src, ACK, 301, 1901, 0));
    let found = path_mtu(&shorter.json());
    assert_eq!((&found["black_hole"], &found["lost_segment_split"]), (&json!("likely"), &json!(true)));

    // The segment arrives in the end, so this was an ordinary loss.
    let (mut lossy, long) = black_hole();
    lossy.tcp(2.3, &Tcp::new(long.dst, long.src, ACK, 301, 1901, 0));
    assert!(path_mtu(&lossy.json()).is_null());
}
