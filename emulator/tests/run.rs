//! `airlink run` as a person uses it: unmodified programs behind a link.
//!
//! These tests make network namespaces and fail, saying so, when they are not run as root.

mod lab;

use std::fs;
use std::process::Command;

use lab::{AIRLINK, Running, Scratch, airlink, summary, text};
use nix::sys::signal::Signal;

/// Sends what it is given, both ways at once, and prints the digests of what has arrived: with the kernel's TCP.
const SERVER: &str = r#"
import socket, hashlib, threading, sys
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
listener = socket.socket(family); listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind((sys.argv[1], 5000)); listener.listen(1)
open(sys.argv[2], "w").write("listening\n")
connection, _ = listener.accept()
data = hashlib.shake_256(b"down").digest(int(sys.argv[3]))
sender = threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)))
sender.start()
seen = hashlib.sha256()
while block := connection.recv(65536): seen.update(block)
sender.join()
open(sys.argv[2] + ".seen", "w").write(seen.hexdigest() + "\n")
"#;

const CLIENT: &str = r#"
import socket, hashlib, threading, sys, time, os
while not os.path.exists(sys.argv[2]): time.sleep(0.01)
connection = socket.create_connection((sys.argv[1], 5000))
data = hashlib.shake_256(b"up").digest(int(sys.argv[3]))
sender = threading.Thread(target=lambda: (connection.sendall(data), connection.shutdown(socket.SHUT_WR)))
sender.start()
seen = hashlib.sha256()
while block := connection.recv(65536): seen.update(block)
sender.join()
while not os.path.exists(sys.argv[2] + ".seen"): time.sleep(0.01)
print(seen.hexdigest(), hashlib.sha256(hashlib.shake_256(b"down").digest(int(sys.argv[3]))).hexdigest())
print(open(sys.argv[2] + ".seen").read().strip(), hashlib.sha256(data).hexdigest())
"#;

/// Two kernels exchange `octets` each way over the link.
fn exchange(scenario: &str, v6: bool, octets: usize) {
    let scratch = Scratch::new(&format!("{scenario}-{v6}"));
    let (server, client, ready) =
        (scratch.path("server.py"), scratch.path("client.py"), scratch.path("ready"));
    fs::write(&server, SERVER).unwrap();
    fs::write(&client, CLIENT).unwrap();
    let variable = if v6 { "$AIRLINK_FIXED_V6" } else { "$AIRLINK_FIXED" };
    let server = format!("exec python3 {server} {variable} {ready} {octets}");
    let client = format!("exec python3 {client} {variable} {ready} {octets}");
    let output = airlink(&["run", "-s", scenario, "--json", "--server", &server, "--", "sh", "-c", &client]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for digests in out.lines().take(2) {
        let (seen, sent) = digests.split_once(' ').unwrap();
        assert_eq!(seen, sent, "{scenario} {variable}");
    }
    let summary = summary(&output);
    for direction in ["down", "up"] {
        assert!(summary[direction]["left_bytes"].as_u64() >= Some(octets as u64), "{summary}");
    }
}

#[test]
fn two_kernels_exchange_data_over_a_perfect_link() {
    exchange("lossless", false, 20_000_000);
    exchange("lossless", true, 20_000_000);
}

#[test]
fn two_kernels_exchange_data_over_a_radio_bearer() {
    exchange("wcdma-384", false, 60_000);
    exchange("wcdma-384", true, 60_000);
}

#[test]
fn the_program_meets_the_namespace_that_it_was_started_from_at_the_fixed_address() {
    // A listener here, a client behind the link.
    let script = format!(
        "{AIRLINK} run -s lossless -- sh -c 'echo hello | socat -t 5 - TCP:$AIRLINK_FIXED:5001,retry=100,interval=0.1' & \
         socat -u TCP-LISTEN:5001,reuseaddr -; wait"
    );
    // In a run of its own, so that the port is free.
    let output = airlink(&["run", "-s", "lossless", "--", "sh", "-c", &script]);
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));
}

#[test]
fn links_in_a_row_lead_from_the_innermost_program_to_the_outermost_namespace() {
    // Who is called tells by which way the answer went: without address translation.
    let inner = "socat -u TCP:$OUTERMOST:5002,retry=100,interval=0.1 -; \
                 socat -u TCP6:[$OUTERMOST_V6]:5003,retry=100,interval=0.1 -";
    let middle = format!(
        "OUTERMOST=$AIRLINK_FIXED OUTERMOST_V6=$AIRLINK_FIXED_V6 {AIRLINK} run -s lossless -- sh -c '{inner}'"
    );
    let server = "socat TCP-LISTEN:5002,reuseaddr SYSTEM:'echo $SOCAT_PEERADDR' & \
                  socat TCP6-LISTEN:5003,reuseaddr SYSTEM:'echo $SOCAT_PEERADDR'; wait";
    let output = airlink(&["run", "-s", "lossless", "--server", server, "--", "sh", "-c", &middle]);
    let addresses = text(&output.stdout);
    assert_eq!(
        addresses,
        "100.64.16.2\n[fd61:6972:6c6b:0000:0000:0000:6440:1002]\n",
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let code = |command: &[&str]| {
        airlink(&[&["run", "-s", "lossless", "--"], command].concat()).status.code().unwrap()
    };
    assert_eq!(code(&["true"]), 0);
    assert_eq!(code(&["sh", "-c", "exit 57"]), 57);
    assert_eq!(code(&["sh", "-c", "kill -9 $$"]), 128 + 9);
    assert_eq!(code(&["no-such-program"]), 127);
    assert_eq!(code(&["/etc/passwd"]), 126);
}

#[test]
fn what_cannot_be_is_an_error_of_usage() {
    for wrong in [
        &["-s", "losless", "--", "true"][..],
        &["-s", "lossless", "--set", "wire.down.rate=64", "--", "true"],
        &["-s", "lossless", "--max-lateness", "fast", "--", "true"],
        &["-s", "lossless", "--rootless", "yes", "--", "true"],
        &["-s", "lossless"],
    ] {
        let output = airlink(&[&["run"], wrong].concat());
        assert_eq!(output.status.code(), Some(2), "{wrong:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_command_that_handles_a_signal_ends_as_it_likes() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGUSR1] {
        let scratch = Scratch::new(signal.as_str());
        let ready = scratch.path("ready");
        let name = signal.as_str().strip_prefix("SIG").unwrap();
        let command =
            format!("trap 'echo caught; exit 9' {name}; echo up > {ready}; while :; do sleep 0.01; done");
        let run = Running::start(&["run", "-s", "lossless", "--", "sh", "-c", &command]);
        scratch.line("ready");
        run.signal(signal);
        let output = run.wait();
        assert_eq!(
            (output.status.code(), text(&output.stdout)),
            (Some(9), "caught\n".to_owned()),
            "{signal}"
        );
    }
}

#[test]
fn the_program_has_its_own_processes_and_cannot_see_others() {
    let output = airlink(&["run", "-s", "lossless", "--", "sh", "-c", "ls -d /proc/[0-9]* | wc -l; echo $$"]);
    let out = text(&output.stdout);
    let numbers: Vec<u32> = out.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(numbers[0] < 8 && numbers[1] < 8, "{out}");
}

#[test]
fn an_ordinary_user_runs_both_sides_in_namespaces() {
    // A device node that everybody may open, as on most machines, in a mount namespace of this test's own.
    let script = format!(
        "set -e; mount -t tmpfs none /dev/net; mknod -m 666 /dev/net/tun c 10 200; mkdir -p /dev/shm; \
         cp {AIRLINK} /dev/net/airlink; chmod 755 /dev/net/airlink; cd /; \
         exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
         /dev/net/airlink run -s lossless \
         --server 'exec socat TCP-LISTEN:5004,reuseaddr SYSTEM:\"echo served\"' -- \
         sh -c 'id -u; socat -u TCP:$AIRLINK_FIXED:5004,retry=100,interval=0.1 -; exit 4'"
    );
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", &script]);
    let output = Running::spawn(&mut unshare).wait();
    let seen = (text(&output.stdout), output.status.code());
    assert_eq!(seen, ("0\nserved\n".to_owned(), Some(4)), "{}", text(&output.stderr));
}

#[test]
fn the_same_seed_loses_the_same_packets_in_real_time() {
    let scratch = Scratch::new("seed");
    let scenario = scratch.path("lossy.toml");
    fs::write(
        &scenario,
        "schema = 1\ndescription = \"half of them\"\n[[stage]]\nkind = \"loss\"\nname = \"air\"\n\
         up = { model = \"uniform\", per = \"50%\" }\n",
    )
    .unwrap();
    // 200 numbered datagrams, as fast as the program can.
    let sender = "import socket, os\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                  for n in range(200): s.sendto(b'%d' % n, (os.environ['AIRLINK_FIXED'], 9))\n";
    let decisions = |seed: &str| -> Vec<u64> {
        let events = scratch.path("events.jsonl");
        let output = airlink(&[
            "run", "-s", &scenario, "--seed", seed, "--events", &events, "--linger", "100ms", "--",
            "python3", "-c", sender,
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let events = fs::read_to_string(&events).unwrap();
        let events: Vec<serde_json::Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let up = |what: &str| -> Vec<u64> {
            let of = |event: &&serde_json::Value| event["event"] == what && event["direction"] == "up";
            events.iter().filter(of).filter_map(|event| event["packet"].as_u64()).collect()
        };
        // ICMP errors that go the other way take numbers too: this counts the direction's own packets.
        let dropped = up("dropped");
        let number =
            |packet: &u64| up("entered").iter().position(|entered| entered == packet).unwrap() as u64;
        dropped.iter().map(number).collect()
    };
    let (first, again, other) = (decisions("7"), decisions("7"), decisions("8"));
    assert!((60..140).contains(&first.len()), "{first:?}");
    assert_eq!(first, again);
    assert_ne!(first, other);
}
