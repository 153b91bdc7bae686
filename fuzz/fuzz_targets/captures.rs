//! An arbitrary file as a capture. The capture is read to its end, each TCP packet belongs to
//! exactly one connection, and each connection has findings that can be displayed.
//!
//! The last byte selects a filter.

#![cfg_attr(fuzzing, no_main)]

mod target;

use std::path::PathBuf;
use std::sync::LazyLock;

use aircaptures::capture::Capture;
use airtcp_analyze::connections::Traces;
use airtcp_analyze::survey;

/// The input as a file, which libpcap requires. Each process has its own.
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("airtcp-fuzz-{}.pcap", std::process::id())));

target::run!(run);

fn run(data: &[u8]) {
    let filter = match data.last() {
        Some(last) if last % 4 == 3 => Some("tcp and not port 81"),
        _ => None,
    };
    std::fs::write(&*FILE, data).expect("the temporary directory can be written");
    let Ok(mut capture) = Capture::open(&FILE, filter) else { return };
    let (mut numbers, mut packets) = (Vec::new(), 0);
    let totals = survey::read(&mut capture, Traces::All, &mut |finished| {
        numbers.push(finished.number);
        packets += finished.ended.findings.packets;
        assert!(!finished.ended.findings.to_string().is_empty());
        assert!(finished.ended.traces.is_some());
    });
    numbers.sort_unstable();
    assert!(numbers.iter().copied().eq(0..totals.connections), "{numbers:?} of {}", totals.connections);
    assert_eq!(packets, totals.tcp_packets);
}
