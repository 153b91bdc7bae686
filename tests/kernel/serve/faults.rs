//! What must not stop a server that strangers use: its logs, and a server behind it that hangs. And what it gives up.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::{TempDir, airtcp, namespace};
use airtcp_testkit::promises::seen;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::stand::{Serving, connect, listener, wait_for};

const TARGET: &str = "127.0.0.1:8080";

/// Answers each connection with what it has sent.
fn echoes(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

fn assert_echo(namespace: &Namespace) {
    let mut client = connect(namespace);
    client.write_all(b"hello").unwrap();
    let mut answer = [0; 5];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"hello");
}

/// A server that says a line every millisecond, in front of an echo.
fn chatty(namespace: &Namespace, more: &[&str]) -> Command {
    echoes(listener(namespace, 8080));
    let mut command =
        airtcp(&["serve", "--json", "--listen", "80", "--forward", TARGET, "--interval", "1ms"]);
    command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ended(mut child: Child, signal: Signal) -> (Option<i32>, String, Duration) {
    let start = Instant::now();
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let code = wait_for("its end", || child.try_wait().unwrap()).code();
    let took = start.elapsed();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (code, stderr, took)
}

#[test]
fn a_reader_that_stands_still_stops_no_connection_and_no_end() {
    let namespace = namespace();
    let mut child = namespace.spawn(&mut chatty(&namespace, &[])).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("\"start\""), "{line}");
    // More than a pipe and all that may wait before it hold.
    thread::sleep(Duration::from_secs(8));
    for _ in 0..3 {
        assert_echo(&namespace);
    }
    // It reads on: what is missing is said in its place, and in the end.
    let reader = thread::spawn(move || stdout.lines().map(Result::unwrap).collect::<Vec<_>>());
    thread::sleep(Duration::from_millis(500));
    let (code, stderr, took) = ended(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(took < Duration::from_secs(9), "{took:?}");
    let lines: Vec<Value> =
        reader.join().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let gap: u64 = lines.iter().filter_map(|line| line["data"]["events"].as_u64()).sum();
    assert!(gap > 100, "{gap}");
    let end = lines.iter().rfind(|line| line["event"] == "end").expect("its last word");
    assert_eq!(end["data"]["left_out"]["events"], gap);
    seen(
        "the reader of stdout stands still",
        "connections go on, lines are left out and counted",
        format_args!("3 of 3 echoes; {gap} lines left out, said in their place; ended in {took:.1?}"),
    );
}

#[test]
fn a_reader_that_never_reads_on_delays_the_end_by_a_moment_only() {
    let namespace = namespace();
    let mut child = namespace.spawn(&mut chatty(&namespace, &[])).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    thread::sleep(Duration::from_secs(2));
    let (code, stderr, took) = ended(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(took < Duration::from_secs(9), "{took:?}");
    seen(
        "the reader of stdout never reads on",
        "the end comes all the same",
        format_args!("ended in {took:.1?}"),
    );
}

#[test]
fn a_reader_that_leaves_ends_nothing() {
    let namespace = namespace();
    let mut child = namespace.spawn(&mut chatty(&namespace, &[])).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    drop(stdout);
    thread::sleep(Duration::from_millis(300));
    assert_echo(&namespace);
    let (code, stderr, _) = ended(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    seen("the reader of stdout leaves", "connections go on", "1 of 1 echo; code 0 in the end");
}

#[test]
fn a_full_disk_under_the_decisions_is_told_and_stops_nothing() {
    let namespace = namespace();
    let mut child = namespace.spawn(&mut chatty(&namespace, &["--decisions", "/dev/full"])).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let reader = thread::spawn(move || stdout.lines().count());
    assert_echo(&namespace);
    assert_echo(&namespace);
    let (code, stderr, _) = ended(child, Signal::SIGTERM);
    reader.join().unwrap();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("cannot write /dev/full: No space left on device"), "{stderr}");
    seen(
        "a full disk under --decisions",
        "it is named, and connections go on",
        "2 of 2 echoes; named; code 1 in the end",
    );
}

#[test]
fn a_server_that_hangs_is_noticed_and_told() {
    let namespace = namespace();
    // It accepts, and that is all.
    let _hangs = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--backend-timeout", "500ms", "--grace=300ms"]);
    let mut client = connect(&namespace);
    client.write_all(b"hello?").unwrap();
    let closed = serving.outcome("target-failed");
    let reason = closed["reason"].as_str().unwrap();
    assert!(reason.starts_with("no answer for 500"), "{reason}");
    assert!(client.read(&mut [0]).is_err(), "the client is told by a reset");
    // Nobody has asked anything here.
    let _silent = connect(&namespace);
    serving.event("opened", |opened| opened["connection"] == 2);
    thread::sleep(Duration::from_millis(1200));
    let end = serving.stop();
    assert_eq!((&end["totals"]["target_failed"], &end["totals"]["idle"]), (&1.into(), &0.into()));
    seen("the server behind it hangs", "it is given up after --backend-timeout, and told", reason);
}

#[test]
fn once_it_serves_it_is_nobody_and_can_become_nobody_else() {
    let namespace = namespace();
    echoes(listener(&namespace, 8080));
    let scratch = TempDir::new("nobody");
    let decisions = scratch.path("decisions.jsonl");
    let serving = Serving::start(&namespace, &[TARGET], &["--decisions", &decisions]);
    let status = |field: &str| serving.status(field);
    let nobody = nix::unistd::User::from_name("nobody").unwrap().unwrap();
    assert_eq!(status("Uid:"), [nobody.uid.to_string().as_str(); 4]);
    assert_eq!(status("Gid:"), [nobody.gid.to_string().as_str(); 4]);
    assert_eq!(status("Groups:"), [nobody.gid.to_string()]);
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(status(set), ["0000000000000000"], "{set}");
    }
    assert_eq!(status("NoNewPrivs:"), ["1"]);
    assert_eq!(serving.event("start", |_| true)["user"], "nobody");
    assert_echo(&namespace);
    // Its device's counters are read at the end, and its file was opened before.
    let end = serving.stop();
    assert_eq!(end["device"]["dropped_by_kernel"], 0);
    assert!(!fs::read_to_string(&decisions).unwrap().is_empty());

    let stays = Serving::start(&namespace, &[TARGET], &["--user", "root"]);
    assert_eq!(stays.status("Uid:"), ["0"; 4]);
    stays.stop();
    let mut nowhere = airtcp(&["serve", "--listen", "80", "--forward", TARGET, "--user", "no-such-user"]);
    let ended = namespace.spawn(nowhere.stderr(Stdio::piped())).unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("unknown user `no-such-user`"), "{stderr}");
    seen(
        "whatever takes it over",
        "it is nobody, without capabilities or new ones",
        "as /proc/PID/status has it",
    );
}
