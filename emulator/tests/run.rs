//! `airlink run` as a user runs it: unmodified programs behind a link.

mod common;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::thread;

use airtcp_testkit::sample::size;
use airtcp_testkit::temporary::TempDir;
use common::{AIRLINK, Running, airlink, summary, text, wait_for, wait_for_line};
use nix::sys::signal::Signal;

/// Sends data over the kernel's TCP while it receives data from the client, and writes the digest of the received data
/// to a file.
const SERVER: &str = r#"
import socket, hashlib, threading, sys, os
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
# The client reads the file as soon as it exists, so the file must appear complete.
with open(sys.argv[2] + ".new", "w") as new: new.write(seen.hexdigest() + "\n")
os.rename(sys.argv[2] + ".new", sys.argv[2] + ".seen")
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

/// Two kernels exchange `bytes` in each direction over the link.
fn exchange(scenario: &str, v6: bool, bytes: usize) {
    let directory = TempDir::new(&format!("{scenario}-{v6}"));
    let ready = directory.path("ready");
    let (server, client) = (directory.write("server.py", SERVER), directory.write("client.py", CLIENT));
    let variable = if v6 { "$AIRLINK_FIXED_V6" } else { "$AIRLINK_FIXED" };
    let server = format!("exec python3 {server} {variable} {ready} {bytes}");
    let client = format!("exec python3 {client} {variable} {ready} {bytes}");
    let output = airlink(&["run", "-s", scenario, "--json", "--server", &server, "--", "sh", "-c", &client]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    for digests in out.lines().take(2) {
        let (seen, sent) = digests.split_once(' ').unwrap();
        assert_eq!(seen, sent, "{scenario} {variable}");
    }
    let summary = summary(&output);
    for direction in ["down", "up"] {
        assert!(summary[direction]["left_bytes"].as_u64() >= Some(bytes as u64), "{summary}");
    }
}

#[test]
fn full_link_drops_packets_and_warns_once() {
    let flood = "import os, socket\n\
                 flood = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                 for _ in range(400): flood.sendto(bytes(1400), (os.environ['AIRLINK_FIXED'], 9))\n";
    let link = ["run", "-s", "lossless", "--set", "wire.up.rate=64kbit", "--memory", "200k", "--json"];
    let output = airlink(&[&link[..], &["--linger", "500ms", "--", "python3", "-c", flood]].concat());
    let stderr = text(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    assert_eq!(stderr.matches("packets without room are dropped").count(), 1, "{stderr}");
    assert!(stderr.contains("stage `wire` (up)") && stderr.contains("allow more with --memory"), "{stderr}");
    let dropped = summary(&output)["up"]["dropped"]["queue-full"].as_u64();
    assert!(dropped.is_some_and(|dropped| dropped > 200), "{dropped:?} of 400 packets");
}

#[test]
fn kernels_exchange_data_over_a_lossless_link() {
    let bytes = size(5_000_000, 20_000_000);
    exchange("lossless", false, bytes);
    exchange("lossless", true, bytes);
}

#[test]
fn kernels_exchange_data_over_a_radio_bearer() {
    // Both transfers mostly wait for the uplink of 64 kbit/s, so they run in parallel.
    thread::scope(|scope| {
        for v6 in [false, true] {
            scope.spawn(move || exchange("wcdma-384", v6, size(30_000, 60_000)));
        }
    });
}

#[test]
fn fixed_address_reaches_the_starting_namespace() {
    // The listener runs in the starting namespace, the client behind the link.
    let script = format!(
        "{AIRLINK} run -s lossless -- sh -c 'echo hello | socat -t 5 - TCP:$AIRLINK_FIXED:5001,retry=100,interval=0.1' & \
         socat -u TCP-LISTEN:5001,reuseaddr -; wait"
    );
    // The outer run provides a separate namespace in which the port is free.
    let output = airlink(&["run", "-s", "lossless", "--", "sh", "-c", &script]);
    assert_eq!(text(&output.stdout), "hello\n", "{}", text(&output.stderr));
}

#[test]
fn user_namespace_without_network_needs_server() {
    let run = |namespaces: &str, more: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", namespaces, AIRLINK, "run", "-s", "lossless"]);
        unshare.args(more).args(["--", "true"]).output().unwrap()
    };
    let refused = run("--user", &[]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    let stderr = text(&refused.stderr);
    for advice in ["--server", "`unshare --user --map-root-user --net`"] {
        assert!(stderr.contains(advice), "{stderr}");
    }
    for good in [run("--user", &["--server", "true"]), run("--net", &[])] {
        assert_eq!(good.status.code(), Some(0), "{}", text(&good.stderr));
    }
}

#[test]
fn nested_links_reach_the_outermost_namespace() {
    // The server prints the client's address, which shows that no address is translated on the way.
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
fn sides_get_all_addresses_and_one_default_route() {
    let directory = TempDir::new("addresses");
    let scenario = directory.write(
        "several.toml",
        "schema = 1\nstage = []\n[addresses]\n\
         fixed = ['10.61.0.1/24', '10.62.0.1/24', 'fd61::1/64', 'fd62::1/64']\n\
         mobile = ['10.63.0.2/24', '10.63.0.3/24', '10.62.0.2/24', 'fd61::2/64', 'fd62::2/64']\n",
    );
    let server = "for own in 10.61.0.1 10.62.0.1; do socat TCP-LISTEN:5005,bind=$own,reuseaddr,fork \
                  SYSTEM:'echo $SOCAT_PEERADDR' & done; socat TCP6-LISTEN:5005,ipv6only=1,reuseaddr,fork \
                  SYSTEM:'echo $SOCAT_PEERADDR'; wait";
    let call = "ip -o -4 addr show scope global | wc -l; ip -o -6 addr show scope global | wc -l; \
                ip route show default | wc -l; ip -6 route show default | wc -l; \
                for pair in 10.61.0.1,bind=10.63.0.3 10.62.0.1,bind=10.62.0.2 [fd62::1],bind=[fd62::2]; do \
                socat -u TCP:${pair%,*}:5005,${pair#*,},retry=100,interval=0.1 -; done";
    let output = airlink(&["run", "-s", &scenario, "--server", server, "--", "sh", "-c", call]);
    let seen = text(&output.stdout);
    let lines: Vec<&str> = seen.lines().collect();
    let peer = "[fd62:0000:0000:0000:0000:0000:0000:0002]";
    assert_eq!(lines, ["3", "2", "1", "1", "10.63.0.3", "10.62.0.2", peer], "{}", text(&output.stderr));
}

/// Runs airlink in a new namespace in which IPv6 is disabled for all future devices.
fn without_ipv6(args: &str) -> Output {
    let off = "for dev in all default; do echo 1 > /proc/sys/net/ipv6/conf/$dev/disable_ipv6; done";
    let script = format!("{off}; exec {AIRLINK} run {args}");
    Running::spawn(Command::new("unshare").args(["--net", "sh", "-c", &script])).wait()
}

#[test]
fn disabled_ipv6_is_an_error_only_if_configured() {
    let show =
        "-s lossless -- sh -c 'echo $AIRLINK_FIXED $AIRLINK_MOBILE_V6; ip -o -6 addr show | grep -c airlink'";
    let output = without_ipv6(show);
    let stderr = text(&output.stderr);
    assert_eq!(text(&output.stdout), "100.64.0.1\n0\n", "{stderr}");
    assert!(stderr.contains("IPv6 is disabled here"), "{stderr}");

    let directory = TempDir::new("six");
    let scenario = directory.write(
        "six.toml",
        "schema = 1\nstage = []\naddresses = { fixed = 'fd61::1/64', mobile = 'fd61::2/64' }\n",
    );
    let output = without_ipv6(&format!("-s {scenario} -- true"));
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("IPv6 is disabled here") && stderr.contains("fd61::1/64"), "{stderr}");
}

#[test]
fn run_works_with_proc_of_another_namespace() {
    let run = format!("{AIRLINK} run -s lossless --server 'sleep 1000' -- sh -c 'exit 7'; exit $?");
    let mut unshare = Command::new("unshare");
    unshare.args(["--pid", "--fork", "--kill-child", "sh", "-c", &run]);
    let output = Running::spawn(&mut unshare).wait();
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
}

#[test]
fn signal_ends_the_linger() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let run = Running::start(&["run", "-s", "lossless", "--linger", "1000s", "--", "sh", "-c", "exit 5"]);
        // The command has ended when the first process of its namespaces is a zombie.
        let children = format!("/proc/{0}/task/{0}/children", run.pid());
        wait_for("the command's end", || {
            let first = fs::read_to_string(&children).ok()?.trim().to_owned();
            fs::read_to_string(format!("/proc/{first}/stat")).ok().filter(|stat| stat.contains(") Z "))
        });
        run.signal(signal);
        assert_eq!(run.wait().status.code(), Some(5), "{signal}");
    }
}

/// Sends Ctrl-C while a run waits for a reader of its capture. The program of the run has not started yet.
const EARLY_INTERRUPT: &str = r#"
import os, pty, sys, time, signal
fifo, pid, seen = sys.argv[1], None, b""
signal.alarm(30)
pid, terminal = pty.fork()
if pid == 0: os.execv(sys.argv[2], sys.argv[2:])
status = lambda: open(f"/proc/{pid}/status").read()
mask = lambda name: int(next(line for line in status().splitlines() if line.startswith(name)).split()[1], 16)
while not mask("SigBlk:") & 2 or not os.path.exists(sys.argv[5]): time.sleep(0.01)
time.sleep(0.2)
os.write(terminal, b"")
while not mask("ShdPnd:") & 2: time.sleep(0.01)
reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"#;

#[test]
fn interrupt_before_the_program_starts_ends_the_run() {
    let directory = TempDir::new("early");
    let (fifo, control) = (directory.path("fifo"), directory.path("control"));
    nix::unistd::mkfifo(fifo.as_str(), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut python = Command::new("python3");
    python.args(["-c", EARLY_INTERRUPT, &fifo, AIRLINK, "run", "--control", &control, "-s", "lossless"]);
    python.args(["--pcap-fixed", &fifo, "--", "sleep", "1000"]);
    let output = Running::spawn(&mut python).wait();
    assert_eq!(text(&output.stdout), "130\n", "{}", text(&output.stderr));
}

/// Runs airlink with closed pipes as stdout and stderr. Returns the exit code.
fn code_without_reader(args: &[&str]) -> Option<i32> {
    let closed_pipe = || Stdio::from(std::io::pipe().unwrap().1);
    Command::new(AIRLINK).args(args).stdout(closed_pipe()).stderr(closed_pipe()).status().unwrap().code()
}

#[test]
fn closed_output_does_not_change_the_exit_code() {
    let name = format!("no-reader-{}", std::process::id());
    let packet = "echo x | socat -u - UDP:$AIRLINK_FIXED:9; sleep 0.5";
    let cases: [(&[&str], i32); 10] = [
        (&["run", "-s", "lossless", "--", "sh", "-c", "exit 57"], 57),
        (&["run", "--json", "-s", "lossless", "--", "sh", "-c", "exit 57"], 57),
        (&["run", "-s", "geo", "--max-lateness", "max=0ns", "--", "sh", "-c", packet], 4),
        (&["run", "-s", "lossless", "--", "no-such-program"], 127),
        (&["bridge", "--duration=0.01"], 0),
        (&["check", "lossless"], 0),
        (&["check", "no-such-scenario"], 2),
        (&["show"], 0),
        (&["sim", "-s", "lossless", "--for", "1ms"], 0),
        (&["up", "--name", &name, "-s", "no-such-scenario"], 2),
    ];
    for (command, code) in cases {
        assert_eq!(code_without_reader(command), Some(code), "{command:?}");
    }
    let run = Running::start(&["run", "-s", "lossless", "--control", &name, "--", "sleep", "1000"]);
    wait_for("the control socket", || airlink(&["status", &name]).status.success().then_some(()));
    for command in [&["status"][..], &["status", &name], &["ctl", &name, "watch", "--every", "5ms"]] {
        assert_eq!(code_without_reader(command), Some(0), "{command:?}");
    }
    drop(run);
}

#[test]
fn quiet_suppresses_messages_of_nested_links() {
    let inner = [AIRLINK, "run", "-q", "-s", "lossless", "--", "sh", "-c", "echo inside; exit 5"];
    for server in [&[][..], &["--server", "sleep 9"]] {
        let output = airlink(&[&["run", "-q", "-s", "lossless"][..], server, &["--"], &inner].concat());
        assert_eq!(output.status.code(), Some(5));
        assert_eq!((text(&output.stdout), text(&output.stderr)), ("inside\n".into(), "".into()));
    }
    let output = airlink(&["run", "-q", "--json", "-s", "lossless", "--", "true"]);
    assert!(text(&output.stdout).contains("\"schema_version\""), "-q must not suppress requested output");
}

#[test]
fn unwritable_capture_fails_the_run() {
    for option in ["--pcap-fixed", "--pcap-mobile", "--radio-pcap", "--events"] {
        // More data than the buffers hold, so that the write fails before the end.
        let send = "head -c 300000 /dev/zero | socat -u -b 1000 - UDP:$AIRLINK_FIXED:9";
        let output = airlink(&["run", "-s", "wcdma-384", option, "/dev/full", "--", "sh", "-c", send]);
        assert_eq!(output.status.code(), Some(1), "{option}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("/dev/full"), "{option}: {}", text(&output.stderr));
    }
}

#[test]
fn exit_code_is_that_of_the_command() {
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
fn invalid_arguments_are_usage_errors() {
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
fn command_handling_a_signal_sets_the_exit_code() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGUSR1] {
        let directory = TempDir::new(signal.as_str());
        let ready = directory.path("ready");
        let name = signal.as_str().strip_prefix("SIG").unwrap();
        let command =
            format!("trap 'echo caught; exit 9' {name}; echo up > {ready}; while :; do sleep 0.01; done");
        let run = Running::start(&["run", "-s", "lossless", "--", "sh", "-c", &command]);
        wait_for_line(&ready);
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
fn program_sees_only_its_own_processes() {
    let output = airlink(&["run", "-s", "lossless", "--", "sh", "-c", "ls -d /proc/[0-9]* | wc -l; echo $$"]);
    let out = text(&output.stdout);
    let numbers: Vec<u32> = out.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(numbers[0] < 8 && numbers[1] < 8, "{out}");
}

#[test]
fn ordinary_user_runs_both_sides_in_namespaces() {
    // A device node that every user may open, as on most machines. The mount namespace keeps it inside this test.
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
fn same_seed_loses_same_packets_in_real_time() {
    let directory = TempDir::new("seed");
    let scenario = directory.write(
        "lossy.toml",
        "schema = 1\n[[stage]]\nkind = 'loss'\nname = 'air'\nup = { model = 'uniform', per = '50%' }\n",
    );
    // 200 numbered datagrams, as fast as possible.
    let sender = "import socket, os\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                  for n in range(200): s.sendto(b'%d' % n, (os.environ['AIRLINK_FIXED'], 9))\n";
    let decisions = |seed: &str| -> Vec<u64> {
        let events = directory.path("events.jsonl");
        let output = airlink(&[
            "run", "-s", &scenario, "--seed", seed, "--events", &events, "--linger", "100ms", "--",
            "python3", "-c", sender,
        ]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let events = fs::read_to_string(&events).unwrap();
        let events: Vec<serde_json::Value> =
            events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let up = |what: &str| -> Vec<u64> {
            let matches = |event: &&serde_json::Value| event["event"] == what && event["direction"] == "up";
            events.iter().filter(matches).filter_map(|event| event["packet"].as_u64()).collect()
        };
        // ICMP errors in the other direction also take packet numbers, so count only packets of this direction.
        let (entered, dropped) = (up("entered"), up("dropped"));
        let number = |packet: &u64| entered.iter().position(|entered| entered == packet).unwrap() as u64;
        dropped.iter().map(number).collect()
    };
    let (first, repeated, other) = (decisions("7"), decisions("7"), decisions("8"));
    assert!((60..140).contains(&first.len()), "{first:?}");
    assert_eq!(first, repeated);
    assert_ne!(first, other);
}
