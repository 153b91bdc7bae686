//! Helpers for the tests of `airtcp-serve`, such as the program itself, nginx, and clients on the kernel's
//! TCP.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airlink::tun::{Tun, TunConfig};
use airtcp_testkit::machine::{TempDir, airtcp_serve, kernel_listener, wait_for_listener};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

/// Limit for every wait, so that a test fails instead of hanging.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The address at which `airtcp-serve` listens in every test.
pub(crate) const SERVER: &str = "10.83.0.2:80";

/// A running `airtcp-serve --json`, with a backend in the same namespace.
pub(crate) struct Serving {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

/// The result of an `airtcp-serve` that has ended.
pub(crate) struct ServerEnd {
    pub(crate) code: Option<i32>,
    pub(crate) stderr: String,
    pub(crate) lines: Vec<Value>,
}

impl Serving {
    pub(crate) fn start(namespace: &Namespace, forward: &[&str], more: &[&str]) -> Self {
        let mut args = vec!["--json", "--listen", "80", "--interval=100ms"];
        args.extend(forward.iter().flat_map(|target| ["--forward", target]));
        args.extend(more);
        let mut command = airtcp_serve(&args);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = namespace.spawn(&mut command).unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let lines = Arc::new(Mutex::new(Vec::new()));
        let read_lines = Arc::clone(&lines);
        // Read all output at once, so that the program never blocks on its stdout.
        let reader = thread::spawn(move || {
            for line in stdout.lines() {
                let line = serde_json::from_str(&line.unwrap()).unwrap();
                read_lines.lock().unwrap().push(line);
            }
        });
        let serving = Self { child, lines, reader: Some(reader) };
        serving.event("start", |_| true);
        serving
    }

    /// Waits for the first event with this name for which `kind` returns true.
    pub(crate) fn event(&self, name: &str, kind: impl Fn(&Value) -> bool) -> Value {
        self.events(name, 1, kind).remove(0)
    }

    /// Waits for `count` such events.
    pub(crate) fn events(&self, name: &str, count: usize, kind: impl Fn(&Value) -> bool) -> Vec<Value> {
        wait_for(&format!("{count} events `{name}`"), || {
            let lines = self.lines.lock().unwrap();
            let events = lines.iter().filter(|line| line["event"] == name).map(|line| &line["data"]);
            let events: Vec<Value> = events.filter(|data| kind(data)).cloned().collect();
            (events.len() >= count).then_some(events)
        })
    }

    /// Returns whether a connection has ended with this outcome.
    pub(crate) fn has_outcome(&self, outcome: &str) -> bool {
        let lines = self.lines.lock().unwrap();
        lines.iter().any(|line| line["event"] == "closed" && line["data"]["outcome"] == outcome)
    }

    /// Waits for the first connection that ended with this outcome.
    pub(crate) fn outcome(&self, outcome: &str) -> Value {
        self.event("closed", |closed| closed["outcome"] == outcome)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Returns a field of /proc/PID/status in kB. RssAnon excludes the pages of the executable, which the
    /// kernel loads on demand.
    pub(crate) fn memory(&self, field: &str) -> u64 {
        self.status(&format!("{field}:"))[0].parse().unwrap()
    }

    /// Returns a line of /proc/PID/status, split into words.
    pub(crate) fn status(&self, field: &str) -> Vec<String> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().map(str::to_owned).collect()
    }

    pub(crate) fn descriptors(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub(crate) fn end(mut self) -> ServerEnd {
        wait_for("the process to end", || self.child.try_wait().unwrap());
        let code = self.child.wait().unwrap().code();
        self.reader.take().unwrap().join().unwrap();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        ServerEnd { code, stderr, lines: std::mem::take(&mut self.lines.lock().unwrap()) }
    }

    /// Stops the server with SIGTERM and checks that it succeeds. Returns its `end` event.
    pub(crate) fn stop(self) -> Value {
        self.signal(Signal::SIGTERM);
        let served = self.end();
        assert_eq!(served.code, Some(0), "{}", served.stderr);
        served.last("end")
    }
}

impl Drop for Serving {
    /// Kills the server if a failed assertion has left it running.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

impl ServerEnd {
    pub(crate) fn last(&self, name: &str) -> Value {
        let line = self.lines.iter().rfind(|line| line["event"] == name);
        line.unwrap_or_else(|| panic!("no event `{name}`: {}", self.stderr))["data"].clone()
    }
}

pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "timed out while waiting for {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Debian's nginx on a loopback device, with files to download and a directory for uploads.
pub(crate) struct Nginx {
    child: Child,
    directory: TempDir,
}

impl Nginx {
    pub(crate) fn start(namespace: &Namespace, name: &str, files: &BTreeMap<String, Vec<u8>>) -> Self {
        let directory = TempDir::new(name);
        for (name, data) in files {
            fs::write(directory.path(name), data).unwrap();
        }
        let (here, config) = (directory.path(""), directory.path("nginx.conf"));
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {here}{kind};\n"))
            .concat();
        fs::write(
            &config,
            format!(
                "daemon off; master_process off; pid {here}pid; error_log {here}error.log;\n\
                 events {{ worker_connections 512; }}\n\
                 http {{ access_log off; client_max_body_size 0; {temporary}\n\
                 server {{ listen 127.0.0.1:8080; root {here}; location /put/ {{ dav_methods PUT; create_full_put_path on; }} }} }}\n"
            ),
        )
        .unwrap();
        let mut command = Command::new("/usr/sbin/nginx");
        // Without this, nginx started by root makes another user the owner of its directories.
        command.args(["-p", &here, "-c", &config, "-e", &directory.path("error.log"), "-g", "user root;"]);
        let child = namespace.spawn(command.stdin(Stdio::null())).expect("this test needs nginx-light");
        wait_for_listener(namespace, 8080);
        Self { child, directory }
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        fs::read(self.directory.path(name)).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A listener on the loopback device of a namespace, for a server inside the test.
pub(crate) fn listener(namespace: &Namespace, port: u16) -> TcpListener {
    kernel_listener(namespace, ("127.0.0.1", port))
}

pub(crate) fn connect(namespace: &Namespace) -> TcpStream {
    let stream = namespace.enter(|| TcpStream::connect(SERVER).unwrap()).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream.set_write_timeout(Some(TIMEOUT)).unwrap();
    stream
}

pub(crate) fn read_to_end(mut stream: &TcpStream) -> Vec<u8> {
    let mut data = Vec::new();
    stream.read_to_end(&mut data).unwrap();
    data
}

/// Answers the request `page` with 20,000 bytes, and any other request with an endless stream.
pub(crate) fn serve_pages(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let mut request = [0; 4];
                if stream.read_exact(&mut request).is_err() {
                    return;
                }
                match &request {
                    b"page" => drop(stream.write_all(&[7; 20_000])),
                    _ => while stream.write_all(&[7; 100_000]).is_ok() {},
                }
            });
        }
    });
}

/// Fetches a page. Returns the time from the SYN to the end of the answer.
pub(crate) fn fetch(namespace: &Namespace) -> Duration {
    let begin = Instant::now();
    let mut stream = connect(namespace);
    stream.write_all(b"page").unwrap();
    assert_eq!(read_to_end(&stream).len(), 20_000);
    begin.elapsed()
}

/// Fetches `count` pages one after the other. Returns the times, sorted.
pub(crate) fn fetches(namespace: &Namespace, count: usize) -> Vec<Duration> {
    let mut times: Vec<_> = (0..count).map(|_| fetch(namespace)).collect();
    times.sort();
    times
}

/// A device for packets that a test forges. 198.18.0.0/16 (RFC 2544) is routed to this device.
pub(crate) fn strangers_device(namespace: &Namespace) -> Tun {
    Tun::open(&TunConfig {
        namespace: Some(namespace.name().into()),
        addrs: vec!["10.85.0.1/24".parse().unwrap()],
        routes: vec!["198.18.0.0/16".parse().unwrap()],
        ..TunConfig::default()
    })
    .unwrap()
}
