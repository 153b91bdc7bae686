//! The right edge of the advertised window.

use airtcp::profile::Profile;
use airtcp::tcp::SocketOptions;
use airwire::options::Options;
use airwire::segment::Flags;
use airwire::time::Duration;

use crate::hostile::hand::{Hand, mss};

/// RFC 7323 §2.4: a window is rounded to the unit of its scale, so a later ACK may advertise a lower edge.
/// The peer may have used the higher one.
#[test]
fn data_below_any_advertised_edge_is_accepted() {
    const UNIT: u64 = 256;
    let profile = Profile::default();
    let options = SocketOptions { recv_buffer: Some(1000), ..SocketOptions::of(&profile) };
    let mut hand = Hand::new("newreno", profile);
    hand.connect(options, Options { window_scale: Some(7), ..mss(1460) }, 65_535);
    for (seq, len, edge) in [(1, 231, 1256), (232, 1, 1001)] {
        let mut out = hand.segment(Flags::ACK, seq, 1, 65_535, len);
        out.extend(hand.wait(Duration::from_millis(200)));
        assert_eq!(out.len(), 1, "{out:?}");
        assert_eq!(out[0].ack + UNIT * u64::from(out[0].window), edge, "{out:?}");
    }
    let unacceptable = hand.connection().statistics().unacceptable;
    hand.segment(Flags::ACK, 1246, 1, 65_535, 10);
    let statistics = hand.connection().statistics();
    assert_eq!((statistics.out_of_order_segments_in, statistics.unacceptable), (1, unacceptable));
}
