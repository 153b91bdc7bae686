//! Damaged captures: the problem is reported, and the rest is still analysed.

use airtcp_testkit::frames::{ETHERNET, Pcap, Pcapng, Tcp, ethernet};
use airtcp_testkit::machine::run;

use super::{acked, analyze, counts, ethernet_of, file, pcap_of, plain, problem, tshark};

#[test]
fn truncated_file_is_read_to_its_end() {
    let octets = ethernet_of(&plain());
    let capture = analyze(&octets[..octets.len() - 7]);
    assert_eq!(counts(&capture), (9, 1));
    assert_eq!(problem(&capture, "damaged"), Some((1, 10)));
    assert_eq!(acked(&capture, 0), [2000, 0]);
    let text = run(&["analyze", "--wide", file(&octets[..octets.len() - 7]).path()]);
    assert!(
        text.stdout.contains("damaged or truncated: the rest was not read (at frame 10"),
        "{}",
        text.stdout
    );
}

#[test]
fn garbage_ends_pcap_but_is_skipped_in_pcapng() {
    let mut pcap = Pcap::new(ETHERNET);
    let mut pcapng = Pcapng::new(false);
    pcapng.interface(1, 0);
    for (at, tcp) in plain().iter().enumerate() {
        if at == 8 {
            pcap.file.extend([0xee; 300]);
            pcapng.file.extend([0xee; 301]);
        }
        pcap.frame(at as f64, &tcp.ethernet());
        pcapng.frame(0, at as f64, &tcp.ethernet());
    }
    let capture = analyze(&pcap.file);
    assert_eq!((counts(&capture), problem(&capture, "damaged")), ((8, 1), Some((1, 9))));
    assert_eq!(acked(&capture, 0), [2000, 0]);
    let capture = analyze(&pcapng.file);
    assert_eq!((counts(&capture), problem(&capture, "garbage")), ((10, 1), Some((1, 9))));
}

#[test]
fn packet_above_snap_length_is_accepted() {
    // Some programs write packets that exceed the snap length in their own file header.
    let mut pcap = Pcap::with_snap_length(ETHERNET, 96);
    for (at, tcp) in plain().iter().enumerate() {
        let frame = tcp.ethernet();
        let nanos = 1_000_000_000_000_000_000 + at as u64;
        pcap.header(nanos, frame.len() as u32, frame.len() as u32);
        pcap.file.extend(frame);
    }
    let capture = analyze(&pcap.file);
    assert_eq!((counts(&capture), acked(&capture, 0)), ((10, 1), [2000, 0]));
    assert_eq!(problem(&capture, "above-snap-length"), Some((2, 4)));
    // No frame can be this long.
    let mut pcap = Pcap::new(ETHERNET);
    pcap.frame(0.0, &plain()[0].ethernet());
    pcap.header(0, 0x7fff_ffff, 0x7fff_ffff);
    let capture = analyze(&pcap.file);
    assert_eq!((counts(&capture), problem(&capture, "damaged")), ((1, 1), Some((1, 2))));
}

#[test]
fn small_snap_length_preserves_payload_lengths() {
    for (snap_length, name) in [(66, "payload-cut"), (60, "options-cut")] {
        let mut pcap = Pcap::with_snap_length(ETHERNET, snap_length);
        for (at, tcp) in plain().into_iter().enumerate() {
            pcap.frame(at as f64 * 0.01, &tcp.stamped(1, 1).ethernet());
        }
        let capture = analyze(&pcap.file);
        assert_eq!((counts(&capture), acked(&capture, 0)), ((10, 1), [2000, 0]), "{snap_length}");
        assert!(problem(&capture, name).is_some(), "{snap_length}: {capture}");
        assert_eq!(tshark(&pcap.file), (10, 1));
    }
    let mut pcap = Pcap::with_snap_length(ETHERNET, 40);
    pcap.frame(0.0, &plain()[0].ethernet());
    let capture = analyze(&pcap.file);
    assert_eq!((counts(&capture), problem(&capture, "headers-cut")), ((0, 0), Some((1, 1))));
}

#[test]
fn backward_clock_step_is_reported_with_frame() {
    let mut pcap = Pcap::new(ETHERNET);
    for (at, tcp) in plain().iter().enumerate() {
        let step = if at >= 5 { 3.0 } else { 0.0 };
        pcap.frame(10.0 + at as f64 * 0.01 - step, &tcp.ethernet());
    }
    let capture = analyze(&pcap.file);
    assert_eq!((counts(&capture), problem(&capture, "clock-backwards")), ((10, 1), Some((1, 6))));
    assert_eq!(acked(&capture, 0), [2000, 0]);
}

#[test]
fn fragments_and_malformed_headers_are_counted_and_skipped() {
    let mut packets: Vec<_> = plain().iter().map(Tcp::packet).collect();
    // The second half of a packet, an IP header of 16 bytes, and a TCP header of 60 bytes in a packet of 40
    // bytes.
    let mut second = packets[3].clone();
    second[6..8].copy_from_slice(&[0, 100]);
    let mut short = packets[3].clone();
    short[0] = 0x44;
    let mut long = packets[2].clone();
    long[32] = 0xf0;
    packets.extend([second, short, long]);
    // UDP and ARP.
    let mut udp = packets[3].clone();
    udp[9] = 17;
    packets.push(udp);
    let mut frames: Vec<_> = packets.iter().map(|packet| ethernet(packet)).collect();
    frames.push([&[0xff; 12], &[8, 6][..], &[0; 46]].concat());
    let capture = analyze(&pcap_of(ETHERNET, frames));
    assert_eq!(counts(&capture), (10, 1));
    assert_eq!(problem(&capture, "fragment"), Some((1, 11)));
    assert_eq!(problem(&capture, "malformed"), Some((2, 12)));
    assert_eq!(capture["totals"]["other_frames"], 2);
}

#[test]
fn clock_jump_of_centuries_is_tolerated() {
    let packets = plain();
    let jumps = [0.0, 8.2e9, 0.1, 8.1e9, 1e10, 8.2e9, 0.2, 1.7e10, 8.2e9, 0.3];
    let mut pcapng = Pcapng::new(false);
    pcapng.interface(1, 0);
    // Identical frames would be a repeated part of the capture.
    let again: Vec<_> = packets.iter().map(|tcp| Tcp { ident: tcp.ident + 100, ..tcp.clone() }).collect();
    for (tcp, at) in packets.iter().chain(&again).zip(jumps.iter().chain(&jumps)) {
        pcapng.frame(0, *at, &tcp.ethernet());
    }
    let capture = analyze(&pcapng.file);
    assert_eq!((counts(&capture).0, problem(&capture, "clock-backwards").is_some()), (20, true));
}

/// A file that was appended to itself.
#[test]
fn repeated_frames_are_counted_and_ignored() {
    let mut pcap = Pcap::new(ETHERNET);
    for round in 0..2 {
        for (at, tcp) in plain().iter().enumerate() {
            pcap.frame(at as f64 * 0.01, &tcp.ethernet());
        }
        let capture = analyze(&pcap.file);
        assert_eq!((counts(&capture), acked(&capture, 0)), ((10, 1), [2000, 0]));
        assert_eq!(problem(&capture, "repeated"), (round == 1).then_some((10, 11)));
    }
    let text = run(&["analyze", "--wide", file(&pcap.file).path()]).stdout;
    assert!(text.contains("10 × frames that repeat earlier frames"), "{text}");
}

/// The clock is set an hour forward and stays there. The TCP timestamps do not jump.
#[test]
fn step_of_the_clock_is_reported_and_corrected() {
    let mut pcap = Pcap::new(ETHERNET);
    for (at, tcp) in plain().into_iter().enumerate() {
        let seconds = at as f64 * 0.01;
        let stamp = (at * 10) as u32;
        let step = if at >= 5 { 3600.0 } else { 0.0 };
        pcap.frame(seconds + step, &tcp.stamped(7000 + stamp, 7000).ethernet());
    }
    let capture = analyze(&pcap.file);
    assert_eq!(problem(&capture, "clock-stepped"), Some((1, 6)));
    assert!(capture["totals"]["seconds"].as_f64().unwrap() < 1.0, "{capture}");
    let text = run(&["analyze", "--wide", file(&pcap.file).path()]).stdout;
    assert!(text.contains("1 × steps of the clock") && text.contains("by 3600.0"), "{text}");
}
