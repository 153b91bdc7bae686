//! The window of an ACK, its effect on quick ACKs, and the compression of ACKs. The windows follow from a
//! buffer of 131,072 bytes, half of which counts as window.

use airwire::time::Duration;

use super::acks::Compressed;
use super::*;

const MSS: u32 = 1460;

/// A receiver after the handshake, with a window scale of 7.
fn opened(memory: Option<ReceiveMemory>) -> LinuxReceiver {
    let mut receiver = LinuxReceiver::new(memory, None, MSS);
    receiver.establish(Instant::from_secs(1), 7, MSS, MSS.into(), 1);
    receiver
}

/// A receiver whose buffer holds one unread segment with this memory cost.
fn holding(truesize: u32) -> LinuxReceiver {
    let mut receiver = opened(Some(ReceiveMemory::LINUX));
    let buffer = Buffer { truesize, tailroom: 0 };
    receiver.held().memory.receive(HeldSegment::new(1, 1461, None, buffer));
    receiver
}

/// Reads everything that has arrived, with a closed window.
fn read_all(receiver: &mut LinuxReceiver) {
    receiver.on_read(&Read {
        copied_seq: 1461,
        rcv_nxt: 1461,
        last_ack: 1461,
        edge: 1461,
        span: 0,
        closed: true,
    });
}

#[test]
fn read_before_ack_does_not_widen_window() {
    let mut receiver = holding(90_000);
    receiver.decide_window(1461, 1461);
    read_all(&mut receiver);
    assert_eq!(receiver.window_to_advertise(1461, 1461), 20_480, "the window at the time of the decision");
    assert_eq!(receiver.window_to_advertise(1461, 1461), 64_128, "the decision applies to one segment");
}

#[test]
fn more_data_makes_decided_window_obsolete() {
    let mut receiver = holding(90_000);
    receiver.decide_window(1461, 1461);
    read_all(&mut receiver);
    assert_eq!(receiver.window_to_advertise(2921, 2921), 64_128);
}

#[test]
fn ack_of_idle_receiver_allocates_no_memory() {
    let mut receiver = opened(Some(ReceiveMemory::LINUX));
    receiver.decide_window(1, 1);
    assert!(receiver.held.is_none(), "{:?}", receiver.held);
}

/// Another rule computes the window of such a profile.
#[test]
fn profile_without_tuned_window_keeps_quick_acks() {
    let mut receiver = opened(None);
    let buffer = Buffer { truesize: 6 << 20, tailroom: 0 };
    receiver.held().memory.receive(HeldSegment::new(1, 1461, None, buffer));
    receiver.acks.enter_quick_ack_mode(4);
    receiver.decide_window(1461, 1461);
    assert!(receiver.acks.is_quick(), "full memory ended the quick ACKs");
}

#[test]
fn half_used_buffer_ends_quick_acks() {
    for (used, is_quick) in [(66_996, true), (66_998, false)] {
        let mut receiver = holding(used);
        receiver.acks.enter_quick_ack_mode(16);
        receiver.select();
        assert_eq!(receiver.acks.is_quick(), is_quick, "{used} bytes are used");
    }
}

#[test]
fn window_closes_below_sixteenth_of_buffer() {
    for (used, window) in [(122_880, 4096), (122_882, 0)] {
        assert_eq!(holding(used).select(), window, "{used} bytes are used");
    }
}

#[test]
fn compressed_acks_are_sent_at_their_limit() {
    let state = AckState {
        now: Instant::from_secs(1),
        rcv_nxt: 1,
        unacked: 0,
        has_holes: true,
        sack: true,
        srtt: None,
        timer: None,
    };
    let setting =
        AckCompression { most: 2, delay: Duration::from_millis(1), slack: Duration::from_micros(100) };
    let mut compressed = Compressed::default();
    let delayed = [(); 6].map(|()| compressed.compress(&state, setting, 0) != AckDelay::None);
    assert_eq!(delayed, [false, false, false, true, true, false], "three are immediate, two are merged");
}

/// Linux 6.18, __tcp_select_window(): with little memory left, less than a segment is not offered.
#[test]
fn room_for_less_than_a_segment_closes_window() {
    let mut window = Window::new(Some(ReceiveMemory::LINUX), Some(2000), 1460);
    window.establish(Instant::ZERO, 1, 1460, 1460, 1);
    assert_eq!(window.rcv_mss(), 536);
    // Half of the 4000 bytes of memory counts as payload.
    let offered = |used| window.select(used).window;
    assert_eq!([offered(4000 - 1100), offered(4000 - 1000)], [550, 0]);
}
