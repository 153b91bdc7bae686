//! Reads and changes the settings of a running link.

mod common;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::process::Command;
use std::time::{Duration, Instant};

use airtcp_testkit::temporary::TempDir;
use common::{AIRLINK, Running, TIMEOUT, airlink, namespace, summary, text, wait_for};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn ctl(args: &[&str]) -> Result<Value, String> {
    let output = airlink(&[&["ctl"], args].concat());
    match output.status.code() {
        Some(0) => Ok(serde_json::from_slice(&output.stdout).unwrap_or_default()),
        Some(1) => Err(text(&output.stderr)),
        code => panic!("{code:?}: {}", text(&output.stderr)),
    }
}

/// Starts a run and waits for its control socket.
fn start(name: &str, scenario: &str, command: &str) -> Running {
    let run = Running::start(&["run", "-s", scenario, "--control", name, "--", "sh", "-c", command]);
    wait_for("the control socket", || ctl(&[name, "stats"]).ok());
    run
}

#[test]
fn setting_can_be_changed_while_packets_flow() {
    let directory = TempDir::new("set");
    let scenario = directory.write(
        "slow.toml",
        "schema = 1\n[[stage]]\nkind = 'loss'\nname = 'air'\nup = { model = 'uniform', per = '100%' }\n",
    );
    let name = format!("set-{}", std::process::id());
    let sender = directory.write(
        "sender.py",
        "import socket, os, time\n\
         s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
         while True: s.sendto(b'x', (os.environ['AIRLINK_FIXED'], 9)); time.sleep(0.01)\n",
    );
    let run = start(&name, &scenario, &format!("exec python3 {sender}"));
    let left = || ctl(&[&name, "stats"]).unwrap()["up"]["left"].as_u64().unwrap();
    wait_for("losses", || {
        ctl(&[&name, "stats"]).unwrap()["up"]["dropped"]["loss"].as_u64().filter(|lost| *lost > 5)
    });
    assert_eq!(left(), 0);
    assert_eq!(ctl(&[&name, "get", "air.up.per"]), Ok(json!("100%")));
    assert_eq!(ctl(&[&name, "set", "air.up.per", "0%"]), Ok(json!("0%")));
    wait_for("packets that arrive", || (left() > 5).then_some(()));

    let error = ctl(&[&name, "set", "air.up.per", "110%"]).unwrap_err();
    assert!(error.contains("`110%` is not a probability"), "{error}");
    let error = ctl(&[&name, "get", "wire.up.per"]).unwrap_err();
    assert!(error.contains("unknown stage `wire`"), "{error}");
    assert_eq!(ctl(&[&name, "get", "air.up.per"]), Ok(json!("0%")));

    ctl(&[&name, "stop"]).unwrap();
    let _ = run.wait();
    assert!(ctl(&[&name, "stats"]).unwrap_err().contains("airlink status"));
}

/// Abstract sockets belong to one network namespace. A program behind the link runs in another one.
#[test]
fn program_behind_the_link_can_control_it() {
    let directory = TempDir::new("inside");
    let scenario = directory.write("rlc.toml", "schema = 1\n[[stage]]\nkind = 'rlc'\nname = 'radio'\n");
    let key = "radio.down.receiver.timer_status_prohibit";
    let ask =
        format!("{AIRLINK} ctl $AIRLINK_CONTROL set {key} 300ms && {AIRLINK} ctl $AIRLINK_CONTROL get {key}");
    let run = |more: &[&str], command: &str| {
        let output = airlink(&[&["run", "-s", &scenario], more, &["--", "sh", "-c", command]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let answers = "\"300ms\"\n\"300ms\"\n";
    assert_eq!(run(&[], &ask), answers);
    // Each side has its own namespace.
    let saved = directory.path("server");
    let server = format!("sh -c '{AIRLINK} ctl $AIRLINK_CONTROL get {key} >{saved}'");
    let both = format!("{ask}; while ! test -s {saved}; do sleep 0.1; done");
    assert_eq!(run(&["--rootless=yes", "--server", &server], &both), answers);
    assert!(["\"300ms\"\n", "\"150ms\"\n"].contains(&fs::read_to_string(&saved).unwrap().as_str()));
    // Three nested links: each has its own name, even if their process numbers are equal.
    let nested = format!("{AIRLINK} run -s {scenario} -- {AIRLINK} run -s {scenario} -- sh -c '{ask}'");
    assert_eq!(run(&[], &nested), answers);
}

#[test]
fn setting_both_directions_returns_both_values() {
    let name = format!("both-{}", std::process::id());
    let _run = start(&name, "geo", "sleep 1000");
    assert_eq!(ctl(&[&name, "set", "satellite.both.delay", "30ms"]), Ok(json!("30ms")));
    for key in ["satellite.down.delay", "satellite.up.delay", "satellite.both.delay"] {
        assert_eq!(ctl(&[&name, "get", key]), Ok(json!("30ms")), "{key}");
    }
    let rates = json!({ "down": "10Mbit", "up": "2Mbit" });
    assert_eq!(ctl(&[&name, "get", "satellite.both.rate"]), Ok(rates));
    assert!(ctl(&[&name, "get", "satellite.both.dealy"]).unwrap_err().contains("did you mean `delay`"));
}

#[test]
fn link_survives_running_out_of_file_descriptors() {
    let name = format!("full-{}", std::process::id());
    let run = start(&name, "lossless", "sleep 1000");
    let limit = |limit: usize| {
        let (pid, limit) = (format!("--pid={}", run.pid()), format!("--nofile={limit}:1024"));
        assert!(Command::new("prlimit").args([&pid, &limit]).status().unwrap().success());
    };
    // The link cannot open more descriptors.
    limit(3);
    let address = SocketAddr::from_abstract_name(format!("airlink/{name}")).unwrap();
    let mut clients: Vec<_> = (0..6).map(|_| UnixStream::connect_addr(&address).unwrap()).collect();
    let mut client = clients.pop().unwrap();
    client.write_all(b"{\"command\":\"stats\"}\n").unwrap();
    client.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut answer = [0; 16];
    let result = client.read(&mut answer).map_err(|error| error.kind());
    assert_eq!(result, Err(ErrorKind::WouldBlock), "the link accepts the connection but cannot answer yet");
    limit(1024);
    client.set_read_timeout(Some(TIMEOUT)).unwrap();
    assert_ne!(client.read(&mut answer).unwrap(), 0, "the link answers when descriptors are available");
}

#[test]
fn uncreatable_control_socket_is_reported() {
    let directory = TempDir::new("sockets");
    let file = directory.write("file", "");
    for (path, words) in
        [("/no/such/dir/sock", "cannot create the control socket"), (&file, "is not a socket")]
    {
        let output = airlink(&["run", "-s", "lossless", "--control", path, "--", "true"]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.contains(words) && stderr.contains(path) && !stderr.contains("no running link"),
            "{stderr}"
        );
    }
}

#[test]
fn foreground_link_ends_cleanly_on_hangup() {
    let directory = TempDir::new("hangup");
    let name = directory.path("socket");
    let up = Running::start(&["up", "--foreground", "--name", &name, "-s", "lossless", "--json"]);
    wait_for("the control socket", || ctl(&[&name, "stats"]).ok());
    up.signal(Signal::SIGHUP);
    let output = up.wait();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!fs::exists(&name).unwrap());
    assert_eq!(summary(&output)["scenario"], "lossless");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures how long another program takes")]
fn watch_shows_increasing_time() {
    let name = format!("watch-{}", std::process::id());
    let _run = start(&name, "lossless", "sleep 1000");
    let script = format!("{AIRLINK} ctl {name} watch --every 20ms | head -6");
    let begin = Instant::now();
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    let took = begin.elapsed();
    let seconds: Vec<f64> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["seconds"].as_f64().unwrap())
        .collect();
    assert_eq!(seconds.len(), 6);
    assert!(seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
    // On a busy machine one report may be late and the next one on time, but the sum has this lower bound.
    assert!(took >= Duration::from_millis(5 * 20), "{took:?}");
}

#[test]
fn link_connects_two_namespaces_until_down() {
    let (fixed, mobile) = (namespace(), namespace());
    let name = format!("up-{}", std::process::id());
    let up = |extra: &[&str]| {
        let sides = ["--fixed-netns", fixed.name(), "--mobile-netns", mobile.name()];
        let addresses = ["--fixed-addr=10.0.0.1/24", "--mobile-addr=10.0.0.2/24"];
        airlink(&[&["up", "--name", &name, "-s", "lossless"], &sides[..], &addresses, extra].concat())
    };
    let output = up(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let listed = text(&airlink(&["status"]).stdout);
    assert!(listed.lines().any(|line| line == name), "{listed}");

    let listener = fixed.enter(|| std::net::TcpListener::bind("10.0.0.1:5005").unwrap()).unwrap();
    assert!(mobile.enter(|| std::net::TcpStream::connect("10.0.0.1:5005").is_ok()).unwrap());
    drop(listener);

    let second = up(&[]);
    assert_eq!(second.status.code(), Some(1));
    assert!(text(&second.stderr).contains("airlink down"), "{}", text(&second.stderr));

    assert!(airlink(&["down", &name]).status.success());
    assert_eq!(airlink(&["status", &name]).status.code(), Some(1));
    let devices = fixed.enter(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    assert!(!devices.contains("airlink"), "{devices}");
    assert_eq!(up(&["--fixed-addr=10.0.0.1/99"]).status.code(), Some(2));
    let missing = airlink(&["up", "--name", &name, "-s", "lossless", "--fixed-netns", "no-such"]);
    assert_eq!(missing.status.code(), Some(3));
    assert!(text(&missing.stderr).contains("ip netns add"), "{}", text(&missing.stderr));
}
