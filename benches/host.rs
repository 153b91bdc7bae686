//! CPU cost per segment in virtual time, without devices and without the kernel.
//!
//! `cargo bench --bench host`. `make bench` compares whole programs over a real TUN device.

use std::hint::black_box;

use airtcp::host::IoError;
use airtcp::profile::Profile;
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airtcp_testkit::pair::{Impairments, LEFT, Pair, RIGHT};
use airwire::time::Duration;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Small segments. With full segments, a window of 10,000 would measure memory accesses instead of
/// the bookkeeping.
const MSS: u16 = 100;
const SMSS: usize = MSS as usize - 12;

/// Transfers `segments` full segments with a window of `window` segments and the given loss rate.
fn transfer(recipe: &Recipe, window: usize, segments: usize, loss: f64) {
    let profile = Profile::default();
    let delay = Duration::from_millis(10);
    // The rate is one window per round trip, so the window is always full.
    let per_byte = Duration::from_nanos((delay.as_nanos() * 2 / (window * (SMSS + 52)) as u64).max(1));
    let path = Impairments { loss, per_byte, delay, queue: usize::MAX, ..Impairments::default() };
    let mut pair = Pair::new(1, (recipe, recipe), (&profile, &profile), path);
    let buffer = window * SMSS;
    let mut options = SocketOptions::of(&profile);
    (options.send_buffer, options.recv_buffer, options.max_seg) = (2 * buffer, Some(buffer), Some(MSS));
    let listener = pair.right.listen((RIGHT, 80).into(), 5, options.clone()).expect("no port is in use");
    let id = pair
        .left
        .connect(pair.now, Some((LEFT, 0).into()), (RIGHT, 80).into(), options)
        .expect("no port is in use");
    let chunk = vec![7; 64 * SMSS];
    let mut sink = vec![0; 64 * SMSS];
    let (mut unwritten, mut received, mut peer) = (segments * SMSS, 0, None);
    while received < segments * SMSS {
        while unwritten > 0 {
            match pair.left.write(pair.now, id, &chunk[..unwritten.min(chunk.len())]) {
                Ok(n) => unwritten -= n,
                Err(_) => break,
            }
        }
        peer = peer.or_else(|| pair.right.accept(listener));
        if let Some(peer) = peer {
            loop {
                match pair.right.read(peer, &mut sink) {
                    Ok(n) => received += n,
                    Err(IoError::WouldBlock) => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        pair.step();
    }
    black_box(received);
}

fn per_segment(c: &mut Criterion) {
    const SEGMENTS: usize = 100_000;
    let recipe: Recipe = "sack+receiver-window".parse().expect("the recipe is in the catalogue");
    let mut group = c.benchmark_group("segment");
    group.throughput(Throughput::Elements(SEGMENTS as u64)).sample_size(10);
    for (loss, windows) in [(0.0, &[10, 10_000][..]), (0.01, &[10, 100, 1000, 10_000])] {
        for window in windows {
            let id = BenchmarkId::new(format!("loss {loss}"), format!("window {window}"));
            group.bench_function(id, |b| b.iter(|| transfer(&recipe, *window, SEGMENTS, loss)));
        }
    }
    group.finish();
}

criterion_group!(benches, per_segment);
criterion_main!(benches);
