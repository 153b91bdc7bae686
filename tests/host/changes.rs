//! A host says which of its connections something has happened to.

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

    /// Carries packets to and fro until nobody has anything to say.
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
fn each_connection_with_news_is_named_once() {
    let mut pair = Pair::new();
    let (near, other) = (pair.connect(), pair.connect());
    assert_eq!(pair.changed(), [], "nobody has accepted them");
    let far = pair.server.accept(pair.listener).unwrap();
    let far_other = pair.server.accept(pair.listener).unwrap();

    for _ in 0..3 {
        pair.client.write(NOW, near, b"news").unwrap();
        pair.settle();
    }
    assert!(pair.server.has_changes());
    assert_eq!(pair.changed(), [far]);
    assert!(!pair.server.has_changes());

    pair.client.abort(NOW, other);
    pair.settle();
    assert_eq!(pair.changed(), [far_other], "a reset is news");
}

#[test]
fn acknowledged_data_is_news_and_what_was_let_go_of_is_none() {
    let mut pair = Pair::new();
    pair.connect();
    let far = pair.server.accept(pair.listener).unwrap();
    pair.server.write(NOW, far, b"answer").unwrap();
    pair.settle();
    assert_eq!(pair.changed(), [far], "there is room to write again");
    pair.server.close(NOW, far);
    pair.settle();
    assert_eq!(pair.changed(), []);
}
