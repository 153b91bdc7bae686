use super::*;
use crate::options::{Layout, Options, Timestamps};
use crate::segment::{Ecn, Header, emit};

const OURS: &str = "10.83.0.2:49152";
const THEIRS: &str = "10.83.0.1:9000";

/// Returns a packet from one of the two ends to the other.
fn packet(from: &str, flags: Flags, seq: u32, ack: u32, options: Options, text: &[u8]) -> Vec<u8> {
    let to = if from == OURS { THEIRS } else { OURS };
    let header = Header {
        src: from.parse().unwrap(),
        dst: to.parse().unwrap(),
        seq: Seq(seq),
        ack: Seq(ack),
        flags,
        window: 502,
        ecn: Ecn::NotEct,
        tos: 0,
        ttl: 64,
        dont_fragment: true,
        ident: 1,
    };
    let (mut bytes, mut written) = (Vec::new(), Vec::new());
    options.write(Layout::Linux, &mut written);
    emit(&mut bytes, &header, &written, (text, b""));
    bytes
}

fn stamped() -> Options {
    Options { timestamps: Some(Timestamps { val: 7, ecr: 5 }), ..Options::default() }
}

#[test]
fn sequence_numbers_are_relative_after_handshake() {
    let mut conversations = Conversations::default();
    let mut read = |packet: &[u8]| conversations.read(packet).to_string();
    let syn = Options { mss: Some(1460), sack_permitted: true, window_scale: Some(7), ..stamped() };
    let (iss, irs) = (u32::MAX - 10, 1000);
    assert_eq!(
        read(&packet(OURS, Flags::SYN, iss, 0, syn, b"")),
        "IP 10.83.0.2.49152 > 10.83.0.1.9000: Flags [S], seq 4294967285, win 502, options [mss 1460,sackOK,TS val 7 \
         ecr 5,nop,wscale 7], length 0"
    );
    let answer =
        packet(THEIRS, Flags::SYN.with(Flags::ACK), irs, iss.wrapping_add(1), Options::default(), b"");
    assert_eq!(
        read(&answer),
        "IP 10.83.0.1.9000 > 10.83.0.2.49152: Flags [S.], seq 1000, ack 4294967286, win 502, length 0"
    );
    // The sequence numbers of this segment wrap around.
    let data = packet(OURS, Flags::ACK.with(Flags::PSH), iss.wrapping_add(1), irs + 1, stamped(), &[7; 20]);
    assert_eq!(
        read(&data),
        "IP 10.83.0.2.49152 > 10.83.0.1.9000: Flags [P.], seq 1:21, ack 1, win 502, options [nop,nop,TS val 7 ecr \
         5], length 20"
    );
    let mut holes = stamped();
    holes.sack.push(Seq(iss.wrapping_add(11)), Seq(iss.wrapping_add(21)));
    assert_eq!(
        read(&packet(THEIRS, Flags::ACK, irs + 1, iss.wrapping_add(1), holes, b"")),
        "IP 10.83.0.1.9000 > 10.83.0.2.49152: Flags [.], ack 1, win 502, options [nop,nop,TS val 7 ecr 5,nop,nop,sack \
         1 {11:21}], length 0"
    );
    let fin =
        packet(OURS, Flags::FIN.with(Flags::ACK), iss.wrapping_add(21), irs + 1, Options::default(), b"");
    assert!(read(&fin).ends_with("Flags [F.], seq 21, ack 1, win 502, length 0"));
    let reset = packet(THEIRS, Flags::RST, irs + 1, 0, Options::default(), b"");
    assert!(
        read(&reset).ends_with("Flags [R], seq 1001, win 502, length 0"),
        "a segment without ACK has an absolute number"
    );
}

#[test]
fn mid_stream_numbers_are_relative_to_first_segment() {
    let mut conversations = Conversations::default();
    let mut read = |packet: &[u8]| conversations.read(packet).to_string();
    let first = packet(OURS, Flags::ACK, 5000, 300, Options::default(), b"abc");
    assert!(read(&first).contains("seq 5000:5003, ack 300,"));
    let second = packet(OURS, Flags::ACK, 5003, 300, Options::default(), b"abc");
    assert!(read(&second).contains("seq 3:6, ack 1,"));
}

#[test]
fn truncated_packet_is_printed() {
    let complete = packet(OURS, Flags::SYN, 1, 0, Options { mss: Some(1460), ..stamped() }, b"text");
    for length in 0..complete.len() {
        let text = Conversations::default().read(&complete[..length]).to_string();
        assert!(text.starts_with("IP ") && text.contains("length "), "{text}");
    }
}

#[test]
fn oldest_connection_is_forgotten() {
    let mut conversations = Conversations::default();
    let from = |port: u32| {
        let mut bytes = packet(OURS, Flags::ACK, 100, 100, Options::default(), b"");
        // Overwrite the source port. The checksum is not verified.
        bytes[20..22].copy_from_slice(&(port as u16).to_be_bytes());
        bytes
    };
    for port in 0..MAX_CONNECTIONS as u32 {
        conversations.read(&from(port));
    }
    assert_eq!((conversations.first.len(), conversations.order.len()), (MAX_CONNECTIONS, MAX_CONNECTIONS));
    let mut other = from(1);
    other[22..24].copy_from_slice(&[0, 99]);
    conversations.read(&other);
    assert_eq!((conversations.first.len(), conversations.order.len()), (MAX_CONNECTIONS, MAX_CONNECTIONS));
}

/// The expected texts are output of tcpdump 4.99.3.
#[test]
fn fast_open_options_are_printed_like_tcpdump() {
    let written = |bytes: &[u8]| OptionsText { bytes, sacked_from: Seq(0) }.to_string();
    assert_eq!(written(&[34, 2, 1, 1]), "tfo  cookiereq,nop,nop");
    assert_eq!(written(&[34, 6, 0x0a, 0x1b, 0x2c, 0x3d]), "tfo  cookie 0a1b2c3d");
    assert_eq!(written(&[34, 5, 1, 2, 3]), "tfo  (invalid)");
    assert_eq!(written(&[254, 4, 0xf9, 0x89]), "exp-tfo cookiereq");
    assert_eq!(written(&[254, 8, 0xf9, 0x89, 0x0a, 0x1b, 0x2c, 0x3d]), "exp-tfo cookie 0a1b2c3d");
    assert_eq!(written(&[254, 6, 0xf9, 0x89, 1, 2]), "exp-tfo (invalid)");
    assert_eq!(written(&[254, 4, 0xf9, 0x88]), "exp-f988");
    assert_eq!(written(&[253, 4, 0xf9, 0x89]), "unknown-253 0xf989");
}
