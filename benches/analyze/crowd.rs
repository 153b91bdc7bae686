//! Captures of many connections of this machine's kernel. Hundreds of clients at a time send
//! requests to a server over a path with delay and loss. The answers vary in size, and a few are
//! long. tcpdump captures at the server.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use airlink::netns::Namespace;
use airtcp_testkit::machine::emulated::EmulatedPath;
use airtcp_testkit::machine::namespace;
use nix::sys::signal::{Signal, kill};
use nix::sys::socket;
use nix::unistd::Pid;

const PATH: &str = r#"
schema = 1

[[stage]]
kind = "link"
name = "wire"
both = { rate = "400Mbit", delay = "5ms", queue = { packets = 300 } }

[[stage]]
kind = "loss"
name = "air"
both = { model = "uniform", per = "0.5%" }
"#;

const SERVER: &str = "10.83.0.2:80";
/// Concurrent connections.
const CLIENTS: u64 = 250;
/// Number of clients for each client that also requests long answers.
const ONE_IN: u64 = 25;
const LONG: u64 = 4_000_000;
/// Socket timeout. No connection here stalls for this long.
const SOCKET_TIMEOUT: Duration = Duration::from_secs(60);

/// Makes the capture: a pcap file with whole packets.
pub(crate) fn capture(file: &Path, connections: u64) {
    let (path, server) = (EmulatedPath::new(PATH, 1), namespace());
    ip(&server, &format!("link add wire type veth peer name wire netns {}", path.fixed.name()));
    for (namespace, address) in [(&server, "10.83.0.2"), (&path.fixed, "10.83.0.1")] {
        ip(namespace, &format!("address add {address}/24 dev wire"));
        // Segmentation offload is off, so that the capture shows the packets that cross the path.
        ip(namespace, "link set wire up gso_max_segs 1");
    }
    ip(&server, "route add default via 10.83.0.1");
    path.mobile
        .sysctl("net.ipv4.ip_local_port_range", "1024 65535")
        .expect("the namespace allows this sysctl");
    let listener = server
        .enter(|| TcpListener::bind(SERVER))
        .expect("the namespace can be entered")
        .expect("the port is free");
    let tcpdump = Tcpdump::start(&server, file);
    thread::scope(|scope| {
        // More threads than clients: a thread may still wait for the last ACKs of a finished connection.
        let servers: Vec<_> = (0..CLIENTS + CLIENTS / 4)
            .map(|_| {
                scope.spawn(|| {
                    while let Ok((stream, _)) = listener.accept() {
                        // The client detects incomplete answers.
                        let _ = answer(&stream);
                    }
                })
            })
            .collect();
        path.mobile.enter(|| clients(connections)).expect("the namespace can be entered");
        // Wakes the threads that block in accept(2).
        let _ = socket::shutdown(listener.as_raw_fd(), socket::Shutdown::Both);
        servers.into_iter().for_each(|server| server.join().expect("a server thread does not panic"));
    });
    tcpdump.end();
}

fn ip(namespace: &Namespace, words: &str) {
    let mut ip = namespace.spawn(Command::new("ip").args(words.split(' '))).expect("ip starts");
    assert!(ip.wait().expect("ip ends").success(), "`ip {words}` failed");
}

fn clients(connections: u64) {
    let begun = AtomicU64::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let begun = &begun;
            scope.spawn(move || {
                loop {
                    let number = begun.fetch_add(1, Ordering::Relaxed);
                    if number >= connections {
                        return;
                    }
                    run_connection(number, client.is_multiple_of(ONE_IN) && number.is_multiple_of(8))
                        .expect("the server answers");
                }
            });
        }
    });
}

/// Runs one connection with one or several successive requests.
fn run_connection(number: u64, is_long: bool) -> io::Result<()> {
    let stream = TcpStream::connect(SERVER)?;
    stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
    let mut input = BufReader::with_capacity(1 << 16, &stream);
    let requests = if number % 10 == 9 { 1 + number / 10 % 9 } else { 1 };
    for request in 1..=requests {
        let size = if is_long { LONG } else { size(number * 16 + request) };
        let last = if request == requests { "close" } else { "keep-alive" };
        let text = format!(
            "GET /{size} HTTP/1.1\r\nHost: server{}.example\r\nUser-Agent: crowd\r\nConnection: {last}\r\n\r\n",
            number % 100
        );
        (&stream).write_all(text.as_bytes())?;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
        let got = io::copy(&mut input.by_ref().take(size), &mut io::sink())?;
        assert_eq!(got, size, "an answer ended early");
    }
    assert_eq!(input.read(&mut [0])?, 0, "data follows the last answer");
    Ok(())
}

/// Returns the size of an answer: 200 to about 11,400 bytes.
fn size(seed: u64) -> u64 {
    let mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    200 + (1 << (mixed % 256).trailing_zeros().min(8)) * (mixed >> 8) % 4096 * 2 + mixed % 3000
}

fn answer(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(SOCKET_TIMEOUT))?;
    stream.set_write_timeout(Some(SOCKET_TIMEOUT))?;
    let mut input = BufReader::new(stream);
    let body = vec![b'x'; 1 << 16];
    loop {
        let (mut size, mut is_last, mut line) = (0, false, String::new());
        while line != "\r\n" {
            line.clear();
            if input.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(rest) = line.strip_prefix("GET /") {
                size = rest.split(' ').next().and_then(|size| size.parse().ok()).unwrap_or(0);
            }
            is_last |= line == "Connection: close\r\n";
        }
        let mut output = stream;
        write!(output, "HTTP/1.1 200 OK\r\nServer: crowd\r\nContent-Length: {size}\r\n\r\n")?;
        let mut left: usize = size;
        while left > 0 {
            let chunk = left.min(body.len());
            output.write_all(&body[..chunk])?;
            left -= chunk;
        }
        if is_last {
            return stream.shutdown(Shutdown::Write);
        }
    }
}

struct Tcpdump(Child);

impl Tcpdump {
    fn start(namespace: &Namespace, file: &Path) -> Self {
        let mut tcpdump = Command::new("tcpdump");
        // tcpdump must keep root's rights to write the file.
        tcpdump.args(["-n", "-i", "wire", "-B", "131072", "-Z", "root", "-w"]).arg(file).arg("tcp");
        let child = namespace.spawn(tcpdump.stderr(Stdio::piped())).expect("tcpdump starts");
        let mut this = Self(child);
        let mut begin = [0; 1];
        let mut messages = String::new();
        let stderr = this.0.stderr.as_mut().expect("stderr is a pipe");
        while !messages.contains("listening on") {
            assert!(stderr.read(&mut begin).expect("the pipe can be read") > 0, "tcpdump: {messages}");
            messages.push(char::from(begin[0]));
        }
        this
    }

    fn end(self) {
        thread::park_timeout(Duration::from_secs(1));
        kill(Pid::from_raw(self.0.id() as i32), Signal::SIGINT).expect("tcpdump is running");
        let output = self.0.wait_with_output().expect("tcpdump ends");
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(messages.contains("\n0 packets dropped by kernel"), "tcpdump lost packets: {messages}");
    }
}

/// Copies a capture of this machine's tcpdump and keeps at most `most` bytes of each packet, like
/// `tcpdump -s`.
pub(crate) fn truncate(from: &Path, to: &Path, most: u32) -> io::Result<()> {
    let mut input = BufReader::with_capacity(1 << 20, File::open(from)?);
    let mut output = BufWriter::with_capacity(1 << 20, File::create(to)?);
    let mut header = [0; 24];
    input.read_exact(&mut header)?;
    header[16..20].copy_from_slice(&most.to_ne_bytes());
    output.write_all(&header)?;
    let (mut record, mut packet) = ([0; 16], Vec::new());
    while input.read_exact(&mut record).is_ok() {
        let captured = u32::from_ne_bytes([record[8], record[9], record[10], record[11]]);
        packet.resize(captured as usize, 0);
        input.read_exact(&mut packet)?;
        packet.truncate(most as usize);
        record[8..12].copy_from_slice(&(packet.len() as u32).to_ne_bytes());
        output.write_all(&record)?;
        output.write_all(&packet)?;
    }
    output.flush()
}
