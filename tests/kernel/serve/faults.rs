//! Faults that must not stop a public server: a blocked log and a hanging backend. Also the privileges that
//! it drops.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::{TempDir, airtcp_serve, namespace};
use airtcp_testkit::promises::record;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use super::setup::{Serving, connect, listener, wait_for};

const TARGET: &str = "127.0.0.1:8080";

/// Returns the data of each connection to its sender.
fn serve_echo(listener: TcpListener) {
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

/// Starts `airtcp-serve` with an echo server as backend, and a line of output every millisecond.
fn chatty_server(namespace: &Namespace, more: &[&str]) -> (Child, BufReader<ChildStdout>) {
    serve_echo(listener(namespace, 8080));
    let mut command = airtcp_serve(&["--json", "--listen", "80", "--forward", TARGET, "--interval", "1ms"]);
    command.args(more).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = namespace.spawn(&mut command).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert!(line.contains("\"start\""), "{line}");
    (child, stdout)
}

/// The server waits two seconds for its reader. On a busy machine, the rest of the exit has taken eight more.
const EXIT_LIMIT: Duration = Duration::from_secs(20);

fn stop_and_wait(mut child: Child, signal: Signal) -> (Option<i32>, String, Duration) {
    let start = Instant::now();
    kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    let code = wait_for("the process to end", || child.try_wait().unwrap()).code();
    let took = start.elapsed();
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    (code, stderr, took)
}

#[test]
fn stalled_stdout_reader_blocks_neither_connections_nor_exit() {
    let namespace = namespace();
    let (child, stdout) = chatty_server(&namespace, &[]);
    // Long enough to fill the pipe and the program's own queue of lines.
    thread::sleep(Duration::from_secs(8));
    for _ in 0..3 {
        assert_echo(&namespace);
    }
    // The reader continues. The output reports the gap in its place and counts the missing lines at the end.
    let reader = thread::spawn(move || stdout.lines().map(Result::unwrap).collect::<Vec<_>>());
    thread::sleep(Duration::from_millis(500));
    let (code, stderr, took) = stop_and_wait(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(took < EXIT_LIMIT, "{took:?}");
    let lines: Vec<Value> =
        reader.join().unwrap().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let gap: u64 = lines.iter().filter_map(|line| line["data"]["events"].as_u64()).sum();
    assert!(gap > 100, "{gap}");
    let end = lines.iter().rfind(|line| line["event"] == "end").expect("no event `end`");
    assert_eq!(end["data"]["left_out"]["events"], gap);
    record(
        "the reader of stdout pauses",
        "connections continue; dropped lines are counted",
        format_args!("3 of 3 echoes; {gap} lines dropped and reported; ended in {took:.1?}"),
    );
}

#[test]
fn blocked_stdout_delays_exit_only_briefly() {
    let namespace = namespace();
    // The output stays open, and the test does not read it.
    let (child, _stdout) = chatty_server(&namespace, &[]);
    thread::sleep(Duration::from_secs(2));
    let (code, stderr, took) = stop_and_wait(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(took < EXIT_LIMIT, "{took:?}");
    record(
        "the reader of stdout never resumes",
        "the server still exits",
        format_args!("ended in {took:.1?}"),
    );
}

#[test]
fn closed_stdout_does_not_stop_server() {
    let namespace = namespace();
    let (child, stdout) = chatty_server(&namespace, &[]);
    drop(stdout);
    thread::sleep(Duration::from_millis(300));
    assert_echo(&namespace);
    let (code, stderr, _) = stop_and_wait(child, Signal::SIGTERM);
    assert_eq!(code, Some(0), "{stderr}");
    record("the reader of stdout exits", "connections continue", "1 of 1 echo; exit code 0");
}

#[test]
fn full_decisions_disk_is_reported_without_stopping_connections() {
    let namespace = namespace();
    let (child, stdout) = chatty_server(&namespace, &["--decisions", "/dev/full"]);
    let reader = thread::spawn(move || stdout.lines().count());
    assert_echo(&namespace);
    assert_echo(&namespace);
    let (code, stderr, _) = stop_and_wait(child, Signal::SIGTERM);
    reader.join().unwrap();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("cannot write /dev/full: No space left on device"), "{stderr}");
    record(
        "a full disk for --decisions",
        "the file is named, and connections continue",
        "2 of 2 echoes; named; exit code 1",
    );
}

#[test]
fn backend_timeout_resets_client_of_hanging_backend() {
    let namespace = namespace();
    // The backend accepts connections, but does not read or write.
    let _hangs = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--backend-timeout", "500ms", "--grace=300ms"]);
    let mut client = connect(&namespace);
    client.write_all(b"hello?").unwrap();
    let closed = serving.outcome("target-failed");
    let reason = closed["reason"].as_str().unwrap();
    assert!(reason.starts_with("no answer for 500"), "{reason}");
    assert!(client.read(&mut [0]).is_err(), "the client connection was not reset");
    // No request was sent on this connection, so the backend owes no answer.
    let _silent = connect(&namespace);
    serving.event("opened", |opened| opened["connection"] == 2);
    thread::sleep(Duration::from_millis(1200));
    let end = serving.stop();
    assert_eq!((&end["totals"]["target_failed"], &end["totals"]["idle"]), (&1.into(), &0.into()));
    record("the backend hangs", "the client is reset after --backend-timeout", reason);
}

#[test]
fn serve_drops_privileges_after_startup() {
    let namespace = namespace();
    serve_echo(listener(&namespace, 8080));
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
    // Without privileges it can still read the device's counters, and the file was opened before.
    let end = serving.stop();
    assert_eq!(end["device"]["dropped_by_kernel"], 0);
    assert!(!fs::read_to_string(&decisions).unwrap().is_empty());

    let stays = Serving::start(&namespace, &[TARGET], &["--user", "root"]);
    assert_eq!(stays.status("Uid:"), ["0"; 4]);
    stays.stop();
    let mut nowhere = airtcp_serve(&["--listen", "80", "--forward", TARGET, "--user", "no-such-user"]);
    let ended = namespace.spawn(nowhere.stderr(Stdio::piped())).unwrap().wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("unknown user `no-such-user`"), "{stderr}");
    record(
        "an attacker takes over the process",
        "it is unprivileged and cannot gain capabilities",
        "as shown by /proc/PID/status",
    );
}
