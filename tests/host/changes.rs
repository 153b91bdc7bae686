//! A host reports which of its connections have changed.

use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airwire::time::Instant;

const NOW: Instant = Instant::ZERO;

pub(crate) struct Pair {
    pub(crate) client: Host,
    pub(crate) server: Host,
    listener: ListenId,
}

impl Pair {
    pub(crate) fn new() -> Self {
        let host = |addr: &str| {
            Host::new(HostConfig {
                addrs: vec![addr.parse().unwrap()],
                mtu: 1500,
                profile: Profile::default(),
                recipe: "newreno".parse().unwrap(),
                seed: 1,
            })
        };
        let (client, mut server) = (host("10.0.0.1"), host("10.0.0.2"));
        let options = SocketOptions::of(server.profile());
        let listener = server.listen("10.0.0.2:80".parse().unwrap(), 8, options).unwrap();
        server.note_changes();
        Self { client, server, listener }
    }

    /// Carries packets in both directions until neither host has more to send.
    fn settle(&mut self) {
        let mut packet = Vec::new();
        let mut quiet = false;
        while !quiet {
            quiet = true;
            while self.client.poll_packet(NOW, &mut packet) {
                self.server.handle_packet(NOW, &packet);
                quiet = false;
            }
            while self.server.poll_packet(NOW, &mut packet) {
                self.client.handle_packet(NOW, &packet);
                quiet = false;
            }
        }
    }

    pub(crate) fn connect(&mut self) -> ConnId {
        let options = SocketOptions::of(self.client.profile());
        let id = self.client.connect(NOW, None, "10.0.0.2:80".parse().unwrap(), options).unwrap();
        self.settle();
        id
    }

    fn changed(&mut self) -> Vec<ConnId> {
        std::iter::from_fn(|| self.server.poll_changed()).collect()
    }
}

#[test]
fn changed_connection_is_reported_once() {
    let mut pair = Pair::new();
    let (client, other) = (pair.connect(), pair.connect());
    assert_eq!(pair.changed(), [], "unaccepted connections are not reported");
    let server = pair.server.accept(pair.listener).unwrap();
    let other_server = pair.server.accept(pair.listener).unwrap();

    for _ in 0..3 {
        pair.client.write(NOW, client, b"news").unwrap();
        pair.settle();
    }
    assert!(pair.server.has_changes());
    assert_eq!(pair.changed(), [server]);
    assert!(!pair.server.has_changes());

    pair.client.abort(other);
    pair.settle();
    assert_eq!(pair.changed(), [other_server], "a reset is a change");
}

#[test]
fn acknowledged_data_is_reported_unless_connection_is_closed() {
    let mut pair = Pair::new();
    pair.connect();
    let server = pair.server.accept(pair.listener).unwrap();
    pair.server.write(NOW, server, b"answer").unwrap();
    pair.settle();
    assert_eq!(pair.changed(), [server], "the ACK frees space in the send buffer");
    pair.server.close(NOW, server);
    pair.settle();
    assert_eq!(pair.changed(), []);
}
