//! Unmodified programs: Debian's nginx as the backend, and Debian's curl behind a lossy link.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::{TempDir, bytes, digest};
use airtcp_testkit::sample::size;

use super::setup::{Nginx, Serving, connect};

const LOSSY: &str = r#"
schema = 1
description = "50 Mbit/s, 10 ms, 5 % of the packets lost in one direction"
[[stage]]
kind = "link"
name = "wire"
both = { rate = "50Mbit", delay = "5ms", queue = { packets = 200 } }
[[stage]]
kind = "loss"
name = "radio"
down = { model = "uniform", per = "5%" }
"#;

/// Sizes around one and two segments and around one buffer, and up to 5 MB.
const SIZES: &[usize] = &[
    0, 1, 100, 1447, 1448, 1449, 2896, 10_000, 65_535, 65_536, 65_537, 100_000, 131_072, 250_000, 400_000,
    600_000, 1_000_000, 1_500_000, 2_500_000, 5_000_000,
];
/// More than all buffers on the path can hold.
const LARGE: usize = 48_000_000;
/// Limit of the growth of memory in kB: enough for normal use, but far less than the large file. A buffer
/// that grows without limit would exceed it.
const GROWTH: u64 = 8_000;

fn curl(namespace: &Namespace, args: &[&str]) -> Child {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--fail", "--max-time", "100"]).args(args);
    namespace.spawn(command.stdin(Stdio::null()).stderr(Stdio::piped())).expect("this test needs curl")
}

fn succeeded(child: Child, what: &str) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{what}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Checks that twenty parallel downloads arrive unchanged while another client reads nothing.
fn check_downloads(recipe: &str) {
    let link = EmulatedPath::new(LOSSY, 7);
    // At this loss rate the largest files take the longest.
    let sizes = &SIZES[..size(SIZES.len() - 2, SIZES.len())];
    let mut files: BTreeMap<String, Vec<u8>> =
        sizes.iter().enumerate().map(|(i, size)| (format!("{i}"), bytes(i as u64, *size))).collect();
    files.insert("large".to_owned(), bytes(99, LARGE));
    let nginx = Nginx::start(&link.fixed, recipe, &files);
    // The minimum RTO is 200 ms in the profile `linux` and 1 s by default. With 1 s, the test would mostly
    // wait for timeouts.
    let serving = Serving::start(&link.fixed, &["127.0.0.1:8080"], &["--recipe", recipe, "--profile=linux"]);
    let before = serving.memory("VmRSS");

    let mut slow = connect(&link.mobile);
    slow.write_all(b"GET /large HTTP/1.0\r\n\r\n").unwrap();
    // Long enough to fill all buffers.
    thread::sleep(Duration::from_secs(1));
    download_all(&link.mobile, &nginx, recipe, sizes);
    let growth = serving.memory("VmHWM") - before;
    assert!(growth < GROWTH, "{recipe}: memory grew by {growth} kB while one client read nothing");

    // The slow reader gets the data when it starts to read.
    let mut answer = Vec::new();
    slow.take(300_000).read_to_end(&mut answer).unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    assert!(answer.len() == 300_000 && files["large"].starts_with(&answer[head..]), "{recipe}");

    check_connections_end(serving, sizes.len());
}

/// Downloads all files in parallel and compares them with the originals.
fn download_all(namespace: &Namespace, nginx: &Nginx, recipe: &str, sizes: &[usize]) {
    let fetched = TempDir::new(&format!("{recipe}-fetched"));
    let curls: Vec<_> = (0..sizes.len())
        .map(|i| {
            let url = format!("http://10.83.0.2/{i}");
            (i, curl(namespace, &[&url, "--output", &fetched.path(&i.to_string())]))
        })
        .collect();
    for (i, curl) in curls {
        succeeded(curl, &format!("{recipe}: {} bytes", sizes[i]));
        // curl does not create a file for an empty response.
        let got = std::fs::read(fetched.path(&i.to_string())).unwrap_or_default();
        assert_eq!(digest(&got), digest(&nginx.file(&i.to_string())), "{recipe}: {} bytes", sizes[i]);
    }
}

/// Checks that the downloads end normally and with retransmissions, and that the slow download fails.
fn check_connections_end(serving: Serving, downloads: usize) {
    let closed = serving.events("closed", downloads + 1, |_| true);
    let done: Vec<_> = closed.iter().filter(|closed| closed["outcome"] == "done").collect();
    assert_eq!(done.len(), downloads, "{closed:?}");
    let resent = |closed: &serde_json::Value| closed["retransmissions"]["segments"].as_u64().unwrap();
    assert!(
        done.iter().map(|closed| resent(closed)).sum::<u64>() > size(50, 100),
        "too few retransmissions for 5 % loss"
    );
    let end = serving.stop();
    assert_eq!(
        (&end["totals"]["radio_failed"], &end["totals"]["connections"]),
        (&1.into(), &(downloads + 1).into())
    );
}

#[test]
fn nginx_downloads_survive_loss_with_newreno_eifel() {
    check_downloads("newreno+eifel");
}

#[test]
fn nginx_downloads_survive_loss_with_sack_sifest_liw() {
    check_downloads("sack+sifest+liw");
}

#[test]
fn curl_uploads_to_nginx_survive_loss() {
    let link = EmulatedPath::new(&LOSSY.replace("down =", "up ="), 3);
    let nginx = Nginx::start(&link.fixed, "upload", &BTreeMap::new());
    let serving = Serving::start(&link.fixed, &["127.0.0.1:8080"], &["--recipe=sack"]);
    let scratch = TempDir::new("to-upload");
    let sizes = [0, 1, 70_000, 3_000_000];
    let curls: Vec<_> = sizes
        .iter()
        .map(|size| {
            let (file, data) = (scratch.path(&size.to_string()), bytes(*size as u64, *size));
            std::fs::write(&file, &data).unwrap();
            let url = format!("http://10.83.0.2/put/{size}");
            (data, curl(&link.mobile, &["--upload-file", &file, &url]))
        })
        .collect();
    for (data, curl) in curls {
        succeeded(curl, &format!("{} bytes", data.len()));
        assert_eq!(digest(&nginx.file(&format!("put/{}", data.len()))), digest(&data));
    }
    let largest = serving.event("closed", |closed| closed["up_bytes"].as_u64() > Some(3_000_000));
    assert_eq!(largest["outcome"], "done");
    assert!(largest["arrivals"]["out_of_order_segments"].as_u64() > Some(0), "{largest}");
    serving.stop();
}
