//! Windows and options that both ends advertise.

use airtcp_testkit::frames::{ACK, Tcp, v4};
use serde_json::json;

use super::builder::{Frames, line};

#[test]
fn window_changes_scale_and_mss_are_reported() {
    let (client, server) = (v4(1, 4000), v4(2, 80));
    let mut frames = Frames::default();
    frames.open(0.0, client, server);
    frames.tcp(0.1, &Tcp::new(client, server, ACK, 101, 501, 1000));
    // Windows in units of 4 bytes: open, closed, open, smaller, closed.
    for (at, window) in [(0.12, 250), (0.2, 0), (0.3, 500), (0.4, 400), (0.5, 0)] {
        frames.window(at, &Tcp::new(server, client, ACK, 501, 1101, 0), window);
    }
    frames.window(0.6, &Tcp::new(server, client, ACK, 501, 1101, 0), 500);
    frames.tcp(0.7, &Tcp::new(client, server, ACK, 1101, 501, 1000));
    frames.tcp(0.71, &Tcp::new(server, client, ACK, 501, 2101, 0));
    let connection = &frames.json()["connections"][0];
    let window = &connection["directions"][0]["window"];
    assert_eq!(window["zero_windows"], 2);
    assert_eq!(window["shrunk"], 4);
    let text = frames.text(&[]);
    line(&text, &["receiver window", "2 times closed, 4 times shrunk"]);
    line(&text, &["SYNs", "MSS 1460, 1400; window scale 7, 2"]);
    let syns = &connection["handshake"]["syns"];
    assert_eq!((&syns[0]["mss"], &syns[1]["mss"]), (&json!(1460), &json!(1400)));
    assert_eq!((&syns[0]["window_scale"], &syns[1]["window_scale"]), (&json!(7), &json!(2)));
    assert_eq!(frames.tshark("tcp.analysis.zero_window", &["frame.number"]).len(), 2);
    assert_eq!(frames.tshark("tcp.flags.syn == 1", &["tcp.options.wscale.shift"]), ["7", "2"]);
}
