//! Changes of the machine under a running server: its device is switched off and on, its MTU changes, and the
//! process is suspended.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::{airtcp_serve, bytes, digest, namespace};
use airtcp_testkit::promises::record;
use airwire::rng::Stream;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::Signal;

use super::setup::{SERVER, Serving, connect, listener, read_to_end};

const TARGET: &str = "127.0.0.1:8080";

/// Runs `ip` in the namespace of the server, to change its device.
fn ip(namespace: &Namespace, args: &str) {
    let ended =
        Command::new("ip").args(["-n", namespace.name()]).args(args.split_whitespace()).output().unwrap();
    assert!(ended.status.success(), "{args}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// Checks that a client gets every byte of a download during which `change` runs.
fn assert_download_survives(name: &str, change: impl FnOnce(&Namespace, &Serving)) {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let data = bytes(1, 8_000_000);
    let sent = data.clone();
    thread::spawn(move || {
        let (mut peer, _) = server.accept().unwrap();
        let mut request = [0; 5];
        peer.read_exact(&mut request).unwrap();
        // Slowly, so that `change` runs during the transfer.
        for part in sent.chunks(100_000) {
            peer.write_all(part).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
    });
    let serving = Serving::start(&namespace, &[TARGET], &["--recipe", "sack@linux"]);
    let mut client = connect(&namespace);
    client.write_all(b"hello").unwrap();
    let reader = thread::spawn(move || digest(&read_to_end(&client)));
    thread::sleep(Duration::from_millis(100));
    change(&namespace, &serving);
    assert_eq!(reader.join().unwrap(), digest(&data));
    let closed = serving.outcome("done");
    serving.stop();
    record(
        name,
        "connections survive and their data is unchanged",
        format_args!(
            "8 MB unchanged in {:.1} s, {} segments retransmitted",
            closed["seconds"].as_f64().unwrap(),
            closed["retransmissions"]["segments"]
        ),
    );
}

#[test]
fn connections_survive_device_down_and_up() {
    assert_download_survives("the device goes down and up, three times", |namespace, _| {
        for _ in 0..3 {
            ip(namespace, "link set airtcp0 down");
            thread::sleep(Duration::from_millis(100));
            ip(namespace, "link set airtcp0 up");
            thread::sleep(Duration::from_millis(100));
        }
    });
}

#[test]
fn connections_survive_mtu_changes() {
    assert_download_survives("the MTU of the device changes, five times", |namespace, _| {
        for mtu in [600, 1500, 296, 1400, 1500] {
            ip(namespace, &format!("link set airtcp0 mtu {mtu}"));
            thread::sleep(Duration::from_millis(60));
        }
    });
}

#[test]
fn connections_survive_process_suspension() {
    assert_download_survives("the process is suspended and resumed, three times", |_, serving| {
        for _ in 0..3 {
            serving.signal(Signal::SIGSTOP);
            thread::sleep(Duration::from_millis(200));
            serving.signal(Signal::SIGCONT);
            thread::sleep(Duration::from_millis(60));
        }
    });
}

/// The server is killed during startup, while it listens, and during transfers. Its remains do not prevent the
/// next one from starting.
#[test]
fn server_restarts_after_kill_at_any_moment() {
    const KILLS: u64 = 12;
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    thread::spawn(move || {
        while let Ok((mut peer, _)) = server.accept() {
            thread::spawn(move || while peer.write_all(&[7; 100_000]).is_ok() {});
        }
    });
    let mut moments = Stream::new(1, "moments");
    let mut during_transfers = 0;
    for _ in 0..KILLS {
        let after = Duration::from_millis(moments.below(300));
        let mut command = airtcp_serve(&["--listen=80", "--forward", TARGET]);
        let mut child = namespace.spawn(command.stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
        let begin = Instant::now();
        let mut streams = vec![];
        while begin.elapsed() < after {
            streams.extend(
                namespace.enter(|| TcpStream::connect_timeout(&SERVER.parse().unwrap(), after)).unwrap(),
            );
            thread::sleep(Duration::from_millis(20));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        during_transfers += u32::from(!streams.is_empty());
        let devices = namespace.enter(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
        assert!(!devices.contains("airtcp"), "after {after:?}: {devices}");
    }
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let mut received = vec![0; 5_000_000];
    connect(&namespace).read_exact(&mut received).unwrap();
    assert!(received.iter().all(|byte| *byte == 7));
    serving.event("closed", |_| true);
    serving.stop();
    record(
        "the process is killed at random times, 12 times",
        "no device remains, and the next process serves",
        format_args!("no device left; {during_transfers} kills during transfers"),
    );
}

#[test]
fn shutdown_resets_every_open_connection() {
    // More than the queue to the device holds at once.
    const MANY: usize = 2000;
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let accepted =
        thread::spawn(move || (0..MANY).map(|_| server.accept().unwrap().0).collect::<Vec<TcpStream>>());
    let serving = Serving::start(&namespace, &[TARGET], &["--max-connections=2500", "--grace=100ms"]);
    let clients: Vec<TcpStream> = (0..MANY).map(|_| connect(&namespace)).collect();
    serving.events("opened", MANY, |_| true);
    let accepted = accepted.join().unwrap();
    serving.signal(Signal::SIGTERM);
    assert_eq!(serving.end().code, Some(0));
    let is_reset = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
    };
    assert_eq!(clients.iter().filter(|client| is_reset(client)).count(), MANY, "clients");
    assert_eq!(accepted.iter().filter(|stream| is_reset(stream)).count(), MANY, "connections of the server");
}
