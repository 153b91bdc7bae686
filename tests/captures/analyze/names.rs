//! Server names that clients ask for, and the response times of the servers.

use airtcp_testkit::frames::{ACK, Tcp, v4, v6};
use serde_json::{Value, json};

use super::analyze_path;
use super::builder::{Frames, line};

/// A ClientHello (RFC 8446 §4.1.2) with a key share in front of the server name, as some browsers send it.
fn client_hello(name: &str, key_share: usize) -> Vec<u8> {
    let long = |len: usize| (len as u16).to_be_bytes();
    let extension = |kind: u8, body: &[u8]| [&[0, kind], &long(body.len())[..], body].concat();
    let names = [&long(name.len() + 3)[..], &[0], &long(name.len()), name.as_bytes()].concat();
    let share = [&long(key_share + 4)[..], &[0, 29], &long(key_share), &vec![7; key_share]].concat();
    let extensions = [extension(51, &share), extension(0, &names)].concat();
    let body = [&[3, 3][..], &[9; 32], &[0], &[0, 2, 0x13, 1], &[1, 0], &long(extensions.len()), &extensions]
        .concat();
    let message = [&[1, 0][..], &long(body.len()), &body].concat();
    [&[22, 3, 1][..], &long(message.len()), &message].concat()
}

/// A request in segments of at most `mss` bytes, and a response 30 ms after the last segment.
fn exchange(frames: &mut Frames, request: &[u8], mss: usize, is_v6: bool) {
    let (client, server) = if is_v6 { (v6(1, 4000), v6(2, 443)) } else { (v4(1, 4000), v4(2, 443)) };
    frames.open(0.0, client, server);
    let mut seq = 101;
    for piece in request.chunks(mss) {
        frames.data(0.1, &Tcp::new(client, server, ACK, seq, 501, piece.len()), piece);
        seq += piece.len() as u32;
    }
    frames.data(0.13, &Tcp::new(server, client, ACK, 501, seq, 20), b"HTTP/1.1 200 OK\r\n\r\n!");
    frames.tcp(0.14, &Tcp::new(client, server, ACK, seq, 521, 0));
}

fn name(capture: &Value) -> &Value {
    &capture["connections"][0]["name"]
}

#[test]
fn connection_is_named_after_requested_host() {
    let hello = client_hello("www.example.org", 32);
    let long = client_hello("www.example.org", 1900);
    let get = b"GET /a HTTP/1.1\r\nUser-Agent: x\r\nHost: www.example.org:8080\r\n\r\n".to_vec();
    for is_v6 in [false, true] {
        for (request, by, called, field) in [
            (&hello, "tls-server-name", "www.example.org", "tls.handshake.extensions_server_name"),
            (&long, "tls-server-name", "www.example.org", "tls.handshake.extensions_server_name"),
            (&get, "http-host", "www.example.org:8080", "http.host"),
        ] {
            let mut frames = Frames::default();
            exchange(&mut frames, request, 1400, is_v6);
            let capture = frames.json();
            assert_eq!(name(&capture), &json!({"name": called, "by": by}));
            line(
                &frames.text(&[]),
                &["named www.example.org", if by == "http-host" { "HTTP Host" } else { "TLS" }],
            );
            assert!(line(&frames.text(&[]), &["0.00 s"]).ends_with(called));
            if by == "tls-server-name" {
                assert_eq!(frames.tshark(field, &[field]), [called]);
            }
        }
    }
}

#[test]
fn truncated_client_hello_yields_name_if_captured() {
    let mut frames = Frames::default();
    exchange(&mut frames, &client_hello("www.example.org", 32), 1400, false);
    assert_eq!(name(&analyze_path(frames.cut(300).path(), &[]))["name"], "www.example.org");
    assert!(name(&analyze_path(frames.cut(128).path(), &[])).is_null());
}

#[test]
fn control_characters_in_name_are_escaped() {
    let mut frames = Frames::default();
    exchange(&mut frames, b"GET / HTTP/1.1\r\nHost: a\x1b]0;b\x07\tc\r\n\r\n", 1400, false);
    assert_eq!(name(&frames.json())["name"], "a\\u001b]0;b\\u0007\\u0009c");
    let text = frames.text(&[]);
    assert!(text.contains("a\\u001b]0;b\\u0007\\u0009c") && !text.contains(['\u{1b}', '\u{7}']), "{text}");
}

#[test]
fn response_time_starts_at_end_of_request() {
    let (client, server) = (v4(1, 4000), v4(2, 80));
    let mut frames = Frames::default();
    frames.open(0.0, client, server);
    let request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let response = b"HTTP/1.1 204 No Content\r\n\r\n";
    let (mut seq, mut ack) = (101, 501);
    // The second request is retransmitted, which must not change the result.
    for (asked, again, answered) in [(0.1, None, 0.15), (1.0, Some(1.3), 1.4), (2.0, None, 2.02)] {
        for at in [Some(asked), again].into_iter().flatten() {
            frames.data(at, &Tcp::new(client, server, ACK, seq, ack, request.len()), request);
        }
        seq += request.len() as u32;
        frames.data(answered, &Tcp::new(server, client, ACK, ack, seq, response.len()), response);
        ack += response.len() as u32;
        frames.tcp(answered + 0.01, &Tcp::new(client, server, ACK, seq, ack, 0));
    }
    let answers = &frames.json()["connections"][0]["answers"];
    assert_eq!(answers["count"], 3);
    let seconds = |key: &str| answers[key].as_f64().unwrap();
    let near = |one: f64, other: f64| (one - other).abs() < 2e-6;
    assert!(near(seconds("first_seconds"), 0.05) && near(seconds("max_seconds"), 0.4), "{answers}");
    assert!(near(seconds("mean_seconds"), 0.47 / 3.0), "{answers}");
    line(
        &frames.text(&[]),
        &["10.0.0.2:80 answered 3 requests: the first after 50.0 ms, mean 156.7 ms, max 400.0 ms"],
    );
    let by_tshark: Vec<f64> =
        frames.tshark("http.time", &["http.time"]).iter().map(|time| time.parse().unwrap()).collect();
    assert!(near(by_tshark[0], 0.05) && near(by_tshark[2], 0.02), "{by_tshark:?}");
}
