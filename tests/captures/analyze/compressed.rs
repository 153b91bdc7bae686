//! Compressed captures.

use std::process::{Command, Stdio};

use airtcp_testkit::frames::{ACK, Pcapng, Tcp, v4};
use airtcp_testkit::machine::run;
use airtcp_testkit::sample;
use airwire::rng::Stream;

use super::{acked, analyze, analyze_stdin, counts, ethernet_of, file, no_problems, plain, problem};
use crate::tools::pipe;

/// Compresses with the given tool.
fn compress(tool: &[&str], bytes: &[u8]) -> Vec<u8> {
    let output = pipe(Command::new(tool[0]).args(&tool[1..]), bytes);
    assert!(output.status.success());
    output.stdout
}

const TOOLS: [&[&str]; 4] =
    [&["gzip"], &["zstd"], &["zstd", "--no-check", "--fast"], &["zstd", "-19", "--long=27"]];

fn captures() -> [Vec<u8>; 2] {
    let mut pcapng = Pcapng::new(true);
    pcapng.interface(1, 0);
    for tcp in plain() {
        pcapng.frame(0, 0.0, &tcp.ethernet());
    }
    [ethernet_of(&plain()), pcapng.file]
}

#[test]
fn compressed_capture_is_read_from_file_and_stdin() {
    for bytes in captures() {
        let original = analyze(&bytes);
        for tool in TOOLS {
            let compressed = compress(tool, &bytes);
            let capture = analyze(&compressed);
            assert_eq!(capture["connections"], original["connections"], "{tool:?}");
            no_problems(&capture);
            assert_eq!(analyze_stdin(&compressed)["connections"], original["connections"], "{tool:?}");
        }
    }
}

/// Concatenated files, as parallel compressors write them, or as made from rotated captures.
#[test]
fn compressed_file_may_have_several_parts() {
    let bytes = ethernet_of(&plain());
    for tool in TOOLS {
        let (first, second) = bytes.split_at(500);
        let mut parts = compress(tool, first);
        if tool[0] == "zstd" {
            // A skippable frame (RFC 8878 §3.1.2).
            parts.splice(0..0, [0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
        }
        parts.extend(compress(tool, second));
        let capture = analyze(&parts);
        assert_eq!((counts(&capture), acked(&capture, 0)), ((10, 1), [2000, 0]), "{tool:?}");
        no_problems(&capture);
    }
}

#[test]
fn damaged_compressed_file_is_read_partially() {
    // The data spans several zstd windows. The decoder returns the last one only at the end of the file.
    let data = |at: u32| Tcp::new(v4(1, 4000), v4(2, 80), ACK, at * 9000, 1, 9000);
    let bytes = ethernet_of(&(0..700).map(data).collect::<Vec<_>>());
    for tool in &TOOLS[..2] {
        let complete = compress(tool, &bytes);
        // One file is truncated, and the other one has a wrong checksum.
        let mut other = complete.clone();
        let at = if tool[0] == "gzip" { complete.len() - 8 } else { complete.len() - 4 };
        other[at] ^= 1;
        for broken in [&complete[..complete.len() - 9], &other] {
            let capture = analyze(broken);
            let damage = problem(&capture, "damaged").expect("the damage is reported");
            assert!(damage.0 == 1 && counts(&capture).0 > 300, "{tool:?}: {damage:?}");
            let text = run(&["analyze", file(broken).path(), "--wide"]).stdout;
            assert!(text.contains(&format!("`{} -d`, which may report more", tool[0])), "{text}");
        }
    }
    // The decompressed content is not a capture, or is empty.
    for (tool, name) in [(TOOLS[0], "gzip"), (TOOLS[1], "zstd")] {
        for inside in [&b"these are words and no capture at all"[..], b""] {
            let ended = run(&["analyze", file(&compress(tool, inside)).path()]);
            assert_eq!(ended.code, 1, "{name}");
            assert!(ended.stderr.contains("not a supported capture"), "{}", ended.stderr);
        }
    }
}

/// The analysis reads as many packets as the tool can decompress.
#[test]
fn truncated_compressed_file_is_read_to_its_end() {
    // The payload hardly compresses, so there are several blocks, but less data than one window.
    let data = |at: u32| Tcp::new(v4(1, 4000), v4(2, 80), ACK, at.wrapping_mul(0x9e37_79b1), 1, 600);
    let packets: Vec<_> = (0..2000).map(data).collect();
    let mut bytes = ethernet_of(&packets);
    let mut random = Stream::new(1, "payload");
    bytes[40..].chunks_mut(670).skip(1).for_each(|packet| packet[80..600].fill_with(|| random.bits() as u8));
    for tool in &TOOLS[..2] {
        let complete = compress(tool, &bytes);
        for cut in [9, complete.len() / 10, complete.len() / 2] {
            let broken = &complete[..complete.len() - cut];
            let decompressed = pipe(Command::new(tool[0]).arg("-dc").stderr(Stdio::null()), broken);
            let expected = analyze(&decompressed.stdout);
            let found = analyze(broken);
            assert!(problem(&found, "damaged").is_some(), "{tool:?}");
            assert!(counts(&expected).0 > 500, "{tool:?}: {:?}", counts(&expected));
            assert_eq!(counts(&found), counts(&expected), "{tool:?}, truncated by {cut} bytes");
        }
    }
}

/// Zeros after a capture, more than 256 MiB and more than 500 times the length of the file. gzip needs 512
/// MiB of zeros for that, zstd 320 MiB. Both use the same code for the limit.
#[test]
fn decompression_bomb_error_suggests_decompressing_first() {
    let bombs = [(&["gzip"][..], "gzip -d", 8), (&["zstd"], "zstd -d", 5)];
    for (tool, name, parts) in &bombs[sample::size(1, 0)..] {
        let mut bomb = compress(tool, &ethernet_of(&plain()));
        let zeros = compress(tool, &vec![0; 64 << 20]);
        for _ in 0..*parts {
            bomb.extend(&zeros);
        }
        assert!(bomb.len() < 1 << 20, "{} bytes", bomb.len());
        let capture = analyze(&bomb);
        assert_eq!(counts(&capture), (10, 1));
        let problems = capture["totals"]["problems"].to_string();
        assert!(problems.contains(&format!("decompress it first (`{name}`)")), "{problems}");
    }
}
