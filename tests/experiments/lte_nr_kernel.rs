//! The effects that docs/explanation/lte-nr.md shows, over TUN devices with this kernel's senders.
//!
//! The bearers are slower than those on the page, so that a busy machine can emulate them in real time. The effects are
//! larger than the machine's own delays.

use std::path::Path;

use aircaptures::capture::{Capture, Next};
use airtcp_testkit::machine::airtcp;
use airtcp_testkit::sample::sample;
use airwire::view::View;
use serde_json::Value;

use crate::scratch::{Scratch, json, number, succeeded, transfers};

/// A transfer by one of this kernel's senders.
#[derive(Debug)]
struct Transfer {
    kbit_per_s: f64,
    resent: u64,
    /// Segments in flight when HyStart ended slow start.
    hystart_window: Option<u64>,
    /// Times between packets that reach the sender, without the first 300 ms, in milliseconds.
    pauses: Vec<f64>,
    /// Round-trip times of data packets, in milliseconds.
    round_trips: Vec<f64>,
}

impl Transfer {
    fn pauses_above(&self, millis: f64) -> usize {
        self.pauses.iter().filter(|pause| **pause > millis).count()
    }

    fn time_in_pauses_above(&self, millis: f64) -> f64 {
        self.pauses.iter().filter(|pause| **pause > millis).sum()
    }

    fn longest_pause(&self) -> f64 {
        self.pauses.iter().copied().fold(0.0, f64::max)
    }

    fn median_round_trip(&self) -> f64 {
        let mut sorted = self.round_trips.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// This kernel's senders: Reno, and BBR if the kernel has it. A busy machine can end CUBIC's slow start, but not
/// Reno's.
fn senders() -> Vec<&'static str> {
    let available = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    let has_bbr = available.split_whitespace().any(|name| name == "bbr");
    if !has_bbr {
        eprintln!("this kernel has no BBR: only Reno and CUBIC are tested");
    }
    [Some("linux:reno"), has_bbr.then_some("linux:bbr")].into_iter().flatten().collect()
}

/// Runs these senders for `length` over `nr-fr1-100MHz` with these settings, separated by spaces.
fn run(senders: &[&str], rounds: u32, length: &str, settings: &str) -> Vec<Transfer> {
    let scratch = Scratch::new("kernel");
    let output = scratch.path("out");
    let mut command =
        airtcp(&["lab", "run", "--scenario", "nr-fr1-100MHz", "--output", &output, "--for", length]);
    command.args(["--jobs", "1", "--runs", &rounds.to_string()]);
    senders.iter().for_each(|sender| {
        command.args(["--sender", sender]);
    });
    settings.split_whitespace().for_each(|setting| {
        command.args(["--set", setting]);
    });
    succeeded(command);
    let report = json(&scratch.0.join("out/lab.json"));
    transfers(&report).iter().map(|transfer| measure(&scratch.0.join("out"), transfer)).collect()
}

fn measure(output: &Path, transfer: &Value) -> Transfer {
    let (sender, seed) = (transfer["sender"].as_str().unwrap(), transfer["seed"].as_u64().unwrap());
    let capture = output.join(format!("{seed:02}-{}/fixed.pcap", sender.replace(':', "-")));
    let (pauses, round_trips) = acks(&capture);
    Transfer {
        kbit_per_s: number(transfer, "/kbit_per_s"),
        resent: number(transfer, "/capture/resent_packets") as u64,
        hystart_window: transfer["counters"]["fixed"]["TcpExtTCPHystartDelayCwnd"].as_u64(),
        pauses,
        round_trips,
    }
}

/// Times between ACKs, and the round-trip times of the data that each acknowledges, in milliseconds.
fn acks(path: &Path) -> (Vec<f64>, Vec<f64>) {
    let mut capture = Capture::open(path, None).unwrap();
    let (mut sent, mut pauses, mut round_trips) = (Vec::new(), Vec::new(), Vec::new());
    let (mut first, mut last) = (None, None);
    // The stream is shorter than half of the number space.
    let is_acked = |end: u32, ack: u32| ack.wrapping_sub(end) < 1 << 31;
    while let Next::Frame(frame) = capture.read() {
        let at = frame.at;
        let view = View::of(frame.data).unwrap();
        let Some(tcp) = view.tcp() else { continue };
        if tcp.header.src_port != 9000 {
            sent.push((tcp.header.seq.0.wrapping_add(tcp.payload.len() as u32), at));
            continue;
        }
        if at.since(*first.get_or_insert(at)) > 0.3 {
            pauses.extend(last.map(|last| 1e3 * at.since(last)));
        }
        last = Some(at);
        let acked = sent.iter().take_while(|(end, _)| is_acked(*end, tcp.header.ack.0)).count();
        if let Some((_, sent_at)) = sent.drain(..acked).next_back() {
            round_trips.push(1e3 * at.since(sent_at));
        }
    }
    (pauses, round_trips)
}

/// Runs two variants of a setting, and passes the transfers of each sender to `check`. Only `make nightly` tries all
/// senders.
fn compare(length: &str, [first, second]: [&str; 2], check: impl Fn(&str, &Transfer, &Transfer)) {
    let senders = sample(first, senders(), 1);
    let (first, second) = (run(&senders, 1, length, first), run(&senders, 1, length, second));
    for ((sender, first), second) in senders.iter().zip(&first).zip(&second) {
        check(sender, first, second);
    }
}

#[test]
fn kernel_sees_pauses_by_harq() {
    // A round trip of HARQ that exceeds the delays of a busy machine.
    let settings = ["0%", "5%"].map(|bler| {
        format!(
            "radio.slot=1ms radio.down.prb=12 radio.both.harq.round_trip=40ms \
             radio.both.harq.processes=32 radio.up.grant.sr_period=off radio.up.harq.bler.bler=0% \
             radio.down.harq.bler.bler={bler}"
        )
    });
    compare("2s", [&settings[0], &settings[1]], |sender, without, with| {
        let [without, with] = [without, with].map(|transfer| transfer.pauses_above(30.0));
        assert!(with > 5 + 3 * without, "{sender}: {without} and {with} pauses");
    });
}

#[test]
fn kernel_sees_acks_in_bunches() {
    // A period that exceeds the delays of a busy machine, on a link that is never idle.
    let settings = ["off", "80ms"].map(|period| {
        format!("radio.down.prb=6 radio.both.harq.bler.bler=0% radio.up.grant.sr_period={period}")
    });
    compare("1500ms", [&settings[0], &settings[1]], |sender, without, with| {
        let [without, with] = [without, with].map(|transfer| transfer.pauses_above(50.0));
        assert!(with > 5 + 3 * without, "{sender}: {without} and {with} pauses");
    });
}

#[test]
fn kernel_ends_slow_start_early() {
    // With a round-trip time of 127 ms, HyStart tolerates 16 ms of delay, which a busy machine rarely causes. HARQ adds
    // 40 ms.
    let [without, with] = ["0%", "50%"].map(|bler| {
        let settings = format!(
            "wire.both.delay=60ms radio.down.prb=12 radio.both.harq.round_trip=40ms \
             radio.both.harq.processes=32 radio.up.grant.sr_period=off radio.both.harq.bler.bler={bler}"
        );
        let transfers = run(&["linux:cubic"], 3, "700ms", &settings);
        let mut windows: Vec<_> =
            transfers.iter().map(|one| one.hystart_window.unwrap_or(u64::MAX / 4)).collect();
        windows.sort_unstable();
        windows[windows.len() / 2]
    });
    assert!(2 * with < without, "medians: slow start ends at {without} and {with} segments");
}

#[test]
fn kernel_sees_loss_if_t_reordering_is_short() {
    let settings = ["10ms", "220ms"].map(|time| {
        format!("radio.down.prb=12 radio.down.harq.nack_to_ack=10% radio.down.pdcp.t_reordering={time}")
    });
    compare("1500ms", [&settings[0], &settings[1]], |sender, short, long| {
        // A busy machine can delay packets, which causes single spurious retransmissions.
        assert!(short.resent > 4 + 3 * long.resent, "{sender}: {} and {}", short.resent, long.resent);
    });
}

#[test]
fn kernel_sees_loss_at_handover_without_forwarding() {
    let settings = [false, true].map(|forwarding| {
        // Without errors and grants, the sender fills the queue soon. Otherwise ACKs arrive in bunches, and the
        // queue can be empty when the handover begins.
        format!(
            "radio.down.prb=6 radio.both.harq.bler.bler=0% radio.up.grant.sr_period=off \
             radio.handover.interruption=59ms radio.handover.at=[\"900ms\"] \
             radio.handover.forwarding={forwarding}"
        )
    });
    compare("1500ms", [&settings[0], &settings[1]], |sender, without, with| {
        assert!(
            without.resent > 10 + 3 * with.resent,
            "{sender}: {} and {} retransmissions",
            without.resent,
            with.resent
        );
        assert!(with.longest_pause() > 50.0, "{sender}: {} ms", with.longest_pause());
        // PDCP waits for t-Reordering of 220 ms.
        assert!(without.longest_pause() > 200.0, "{sender}: {} ms", without.longest_pause());
    });
}

#[test]
fn kernel_fills_the_queue_of_rlc() {
    let transfers = run(&senders(), 1, "3s", "radio.down.prb=6 radio.both.harq.bler.bler=0%");
    let reno = transfers[0].median_round_trip();
    // The empty path has about 35 ms.
    assert!(reno > 120.0, "{reno} ms");
    if let Some(bbr) = transfers.get(1) {
        let bbr = (bbr.median_round_trip(), bbr.kbit_per_s / transfers[0].kbit_per_s);
        assert!(bbr.0 < 0.7 * reno && bbr.1 > 0.8, "{bbr:?}, {reno} ms");
    }
}

#[test]
fn kernel_stalls_in_window_of_12_bits() {
    let settings = [12, 18].map(|sn| {
        format!(
            "radio.down.prb=24 radio.both.harq.bler.bler=0% radio.up.grant.sr_period=off \
             radio.both.rlc.t_status_prohibit=1s radio.both.rlc.sn={sn}"
        )
    });
    compare("2500ms", [&settings[0], &settings[1]], |sender, short, long| {
        // A busy machine can pause the link once.
        let [short, long] = [short, long].map(|transfer| transfer.time_in_pauses_above(200.0));
        assert!(short > 500.0 && short > 2.0 * long, "{sender}: pauses of {short} and {long} ms");
    });
}
