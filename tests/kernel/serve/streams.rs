//! Streams and connections between the two sides, without packet loss.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::{TempFile, bytes, digest, namespace, reset_on_close, run};
use airtcp_testkit::sample::size;
use nix::sys::signal::Signal;

use super::setup::{SERVER, Serving, connect, listener, read_to_end};

const TARGET: &str = "127.0.0.1:8080";

/// Closes with a reset.
fn reset(stream: TcpStream) {
    reset_on_close(&stream);
}

fn is_reset(mut stream: &TcpStream) -> bool {
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Err(error) if error.kind() == ErrorKind::ConnectionReset)
}

/// Returns whether a new connection is reset. The reset may arrive before `connect` returns.
fn is_connect_reset(namespace: &Namespace) -> bool {
    match namespace.enter(|| TcpStream::connect(SERVER)).unwrap() {
        Ok(stream) => is_reset(&stream),
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// After the end of each incoming stream, answers with its digest.
fn answer_with_digests(listener: TcpListener) {
    thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            thread::spawn(move || {
                let data = read_to_end(&stream);
                stream.write_all(digest(&data).as_bytes()).unwrap();
            });
        }
    });
}

#[test]
fn client_receives_answer_after_half_close() {
    let namespace = namespace();
    answer_with_digests(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    for size in [0, 5, 2_000_000] {
        let mut stream = connect(&namespace);
        let data = bytes(size as u64, size);
        stream.write_all(&data).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&stream), digest(&data).as_bytes());
        let closed = serving.event("closed", |closed| closed["up_bytes"] == size);
        assert_eq!((&closed["outcome"], &closed["down_bytes"]), (&"done".into(), &64.into()));
    }
    serving.stop();
}

#[test]
fn server_receives_remaining_data_after_half_close() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let mut client = connect(&namespace);
    let (mut peer, _) = server.accept().unwrap();
    peer.write_all(b"hello").unwrap();
    peer.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&client), b"hello");
    let data = bytes(1, 1_000_000);
    let reader = thread::spawn(move || read_to_end(&peer));
    client.write_all(&data).unwrap();
    drop(client);
    assert!(reader.join().unwrap() == data);
    assert_eq!(serving.event("closed", |_| true)["outcome"], "done");
    serving.stop();
}

#[test]
fn proxy_protocol_header_names_client() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--proxy-protocol"]);
    for (served, family, length) in [(SERVER, 0x11, 12), ("[fd83::2]:80", 0x21, 36)] {
        let mut client = namespace.enter(|| TcpStream::connect(served).unwrap()).unwrap();
        client.write_all(b"hello").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let (mut peer, _) = server.accept().unwrap();
        let received = read_to_end(&peer);
        let (header, data) = received.split_at(16 + length);
        assert_eq!(data, b"hello", "{received:?}");
        assert_eq!(header[..12], *b"\r\n\r\n\0\r\nQUIT\n");
        assert_eq!(header[12..16], [0x21, family, 0, length as u8]);
        let (from, to) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
        let octets = |addr: IpAddr| match addr {
            IpAddr::V4(addr) => addr.octets().to_vec(),
            IpAddr::V6(addr) => addr.octets().to_vec(),
        };
        let ports = [from, to].map(|addr| addr.port().to_be_bytes()).concat();
        assert_eq!(header[16..], [octets(from.ip()), octets(to.ip()), ports].concat());
        peer.write_all(b"bye").unwrap();
        drop(peer);
        assert_eq!(read_to_end(&client), b"bye");
        // The header does not count as data of the client.
        let closed = serving.event("closed", |closed| closed["radio"] == from.to_string());
        assert_eq!((&closed["up_bytes"], &closed["down_bytes"]), (&5.into(), &3.into()), "{closed}");
    }
    serving.stop();
}

#[test]
fn ipv6_carries_both_directions_at_once() {
    let namespace = namespace();
    let server = namespace.enter(|| TcpListener::bind("[::1]:8080").unwrap()).unwrap();
    let serving = Serving::start(&namespace, &["[::1]:8080"], &[]);
    let mut client = namespace.enter(|| TcpStream::connect("[fd83::2]:80").unwrap()).unwrap();
    let (mut peer, _) = server.accept().unwrap();
    let [up, down] = [1, 2].map(|seed| bytes(seed, 10_000_000));
    thread::scope(|scope| {
        let at_server = scope.spawn(|| read_to_end(&peer));
        let at_client = scope.spawn(|| read_to_end(&client));
        let send = |mut stream: &TcpStream, data: &[u8]| {
            stream.write_all(data).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        };
        let (client, peer) = (&client, &peer);
        let (up, down) = (&up, &down);
        scope.spawn(move || send(client, up));
        scope.spawn(move || send(peer, down));
        assert!(at_server.join().unwrap() == *up);
        assert!(at_client.join().unwrap() == *down);
    });
    // No byte follows.
    assert_eq!((client.read(&mut [0]).unwrap(), peer.read(&mut [0]).unwrap()), (0, 0));
    let closed = serving.outcome("done");
    assert_eq!((&closed["up_bytes"], &closed["down_bytes"]), (&10_000_000.into(), &10_000_000.into()));
    serving.stop();
}

#[test]
fn refused_target_resets_client_unless_another_accepts() {
    let namespace = namespace();
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    assert!(is_connect_reset(&namespace));
    let closed = serving.outcome("refused");
    assert!(closed["reason"].as_str().unwrap().contains("Connection refused"), "{closed}");
    assert_eq!(serving.stop()["totals"]["refused"], 1);

    answer_with_digests(listener(&namespace, 8082));
    let serving = Serving::start(&namespace, &["127.0.0.1:8081", "127.0.0.1:8082"], &[]);
    for _ in 0..4 {
        let stream = connect(&namespace);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&stream), digest(b"").as_bytes());
    }
    let closed = serving.events("closed", 4, |closed| closed["target"] == "127.0.0.1:8082");
    assert!(closed.iter().all(|closed| closed["outcome"] == "done"), "{closed:?}");
    serving.stop();
}

#[test]
fn silent_target_times_out_and_client_is_reset() {
    let namespace = namespace();
    // Packets to this address are lost: no program reads from the device.
    let _hole = airlink::tun::Tun::open(&airlink::tun::TunConfig {
        namespace: Some(namespace.name().into()),
        addrs: vec!["10.99.0.1/24".parse().unwrap()],
        ..airlink::tun::TunConfig::default()
    })
    .unwrap();
    let serving = Serving::start(&namespace, &["10.99.0.2:80"], &["--connect-timeout=300ms"]);
    let start = Instant::now();
    assert!(is_reset(&connect(&namespace)));
    assert!(start.elapsed() >= Duration::from_millis(300));
    let closed = serving.outcome("refused");
    assert!(closed["reason"].as_str().unwrap().starts_with("no answer in 300"), "{closed}");
    serving.stop();
}

#[test]
fn reset_on_either_side_reaches_other_side() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &[]);

    let client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    reset(client);
    assert!(is_reset(&peer));
    assert_eq!(serving.outcome("radio-failed")["reason"], "connection reset by the peer");

    let client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    // Transfer a byte first, because a reset before any data means that the target refused the connection.
    (&peer).write_all(b"x").unwrap();
    (&client).read_exact(&mut [0]).unwrap();
    reset(peer);
    assert!(is_reset(&client));
    serving.outcome("target-failed");

    // A reset is also noticed while the client does not read its queued data.
    let client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    peer.set_nonblocking(true).unwrap();
    while (&peer).write(&[0; 65_536]).is_ok() {
        thread::sleep(Duration::from_millis(5));
    }
    reset(client);
    serving.events("closed", 2, |closed| closed["outcome"] == "radio-failed");
    assert_eq!(serving.stop()["totals"]["connections"], 3);
}

#[test]
fn backpressure_stops_client_without_data_loss() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--receive-buffer=256Ki"]);
    let client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    let before = serving.memory("VmRSS");

    // More than all buffers on the path can hold.
    let data = bytes(5, 60_000_000);
    client.set_nonblocking(true).unwrap();
    let (mut sent, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(1) {
        match (&client).write(&data[sent..]) {
            Ok(count) => (sent, since) = (sent + count, Instant::now()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    assert!(sent < data.len(), "backpressure did not stop the client");
    let growth = serving.memory("VmHWM") - before;
    assert!(growth < 2_000, "memory grew by {growth} kB");

    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_to_end(&peer) == data[..sent]);
    drop((client, peer));
    serving.stop();
}

#[test]
fn busy_connection_does_not_delay_others() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    thread::spawn(move || {
        while let Ok((mut stream, _)) = server.accept() {
            thread::spawn(move || {
                let mut wanted = [0];
                stream.read_exact(&mut wanted).unwrap();
                match wanted {
                    [b'b'] => while stream.write_all(&[0; 65_536]).is_ok() {},
                    _ => stream.write_all(b"little").unwrap(),
                }
            });
        }
    });
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let fetch_small = || {
        let start = Instant::now();
        for _ in 0..20 {
            let mut stream = connect(&namespace);
            stream.write_all(b"l").unwrap();
            assert_eq!(read_to_end(&stream), b"little");
        }
        start.elapsed() / 20
    };
    // The baseline, because on a busy machine the time is long in any case.
    let alone = fetch_small();
    let mut busy = connect(&namespace);
    busy.write_all(b"b").unwrap();
    let mut sink = busy.try_clone().unwrap();
    let reader = thread::spawn(move || std::io::copy(&mut sink, &mut std::io::sink()));
    serving.event("interval", |interval| interval["down_bytes"].as_u64() > Some(10_000_000));
    let each = fetch_small();
    assert!(
        each < 4 * alone + Duration::from_millis(100),
        "{each:?} per small request, {alone:?} without the busy connection"
    );
    busy.shutdown(Shutdown::Both).unwrap();
    let _ = reader.join().unwrap();
    serving.stop();
}

#[test]
fn client_above_max_connections_waits() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--max-connections=2"]);
    let (first, second, mut third) = (connect(&namespace), connect(&namespace), connect(&namespace));
    third.write_all(b"patient").unwrap();
    let peers = [server.accept().unwrap().0, server.accept().unwrap().0];
    server.set_nonblocking(true).unwrap();
    thread::sleep(Duration::from_millis(200));
    let third_peer = server.accept();
    assert_eq!(third_peer.unwrap_err().kind(), ErrorKind::WouldBlock, "the third connection waits");
    server.set_nonblocking(false).unwrap();
    drop((first, peers));
    let (mut peer, _) = server.accept().unwrap();
    let mut words = [0; 7];
    peer.read_exact(&mut words).unwrap();
    assert_eq!(&words, b"patient");
    drop((second, third, peer));
    assert_eq!(serving.stop()["totals"]["most_at_once"], 2);
}

#[test]
fn idle_timeout_resets_idle_connection() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--idle-timeout=500ms"]);
    let mut client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    for _ in 0..5 {
        thread::sleep(Duration::from_millis(200));
        client.write_all(b"x").unwrap();
    }
    assert!(is_reset(&client) && is_reset(&peer));
    let closed = serving.outcome("idle");
    assert!(closed["seconds"].as_f64() > Some(0.9), "reset although it was not idle: {closed}");
    serving.stop();
}

#[test]
fn sigterm_completes_transfers_and_refuses_new_clients() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--grace=20s"]);
    let client = connect(&namespace);
    let (mut peer, _) = server.accept().unwrap();
    peer.write_all(b"first ").unwrap();
    serving.signal(Signal::SIGTERM);
    assert_eq!(serving.event("stopping", |_| true)["open"], 1);
    let refused = namespace.enter(|| TcpStream::connect(SERVER)).unwrap();
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::ConnectionRefused);
    peer.write_all(b"last").unwrap();
    drop(peer);
    assert_eq!(read_to_end(&client), b"first last");
    drop(client);
    let served = serving.end();
    assert_eq!(served.code, Some(0), "{}", served.stderr);
    assert_eq!((served.last("end")["totals"]["done"].clone(), served.stderr), (1.into(), String::new()));
}

#[test]
fn grace_expiry_or_second_signal_resets_open_connections() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    for (grace, signals) in [("--grace=300ms", 1), ("--grace=1000s", 2)] {
        let serving = Serving::start(&namespace, &[TARGET], &[grace]);
        let client = connect(&namespace);
        let (peer, _) = server.accept().unwrap();
        serving.event("opened", |_| true);
        for number in 1..=signals {
            serving.signal(Signal::SIGINT);
            serving.events("stopping", 1, |_| number > 0);
        }
        assert!(is_reset(&client) && is_reset(&peer), "{grace}");
        let served = serving.end();
        assert_eq!(served.code, Some(0), "{}", served.stderr);
        assert_eq!(served.last("end")["totals"]["stopped"], 1, "{grace}");
        assert_eq!(served.last("closed")["outcome"], "stopped", "{grace}");
    }
}

#[test]
fn closed_connections_leak_no_descriptors_or_state() {
    let namespace = namespace();
    answer_with_digests(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let before = serving.descriptors();
    for _ in 0..500 {
        let stream = connect(&namespace);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&stream), digest(b"").as_bytes());
    }
    serving.events("closed", 500, |closed| closed["outcome"] == "done");
    assert_eq!(serving.descriptors(), before);
    // The client closes first each time, so this host has no connections in TIME-WAIT. The last connection
    // ends when the client's ACK of the FIN arrives.
    serving.event("interval", |interval| {
        interval["connections"] == 500 && interval["open"] == 0 && interval["host_connections"] == 0
    });
    assert_eq!(serving.stop()["totals"]["done"], 500);
}

/// Returns the kernel's mean packet size in bytes at the device, from airtcp and to airtcp.
fn mean_packet_sizes(namespace: &Namespace) -> [u64; 2] {
    let devices = namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    let ours = devices.lines().find_map(|line| line.trim_start().strip_prefix("airtcp0:")).unwrap();
    let counters: Vec<u64> = ours.split_whitespace().map(|count| count.parse().unwrap()).collect();
    [counters[0] / counters[1], counters[8] / counters[9]]
}

#[test]
fn offload_sends_large_packets_unless_disabled() {
    let length = size(5_000_000, 20_000_000);
    for (more, large) in [(&[][..], true), (&["--offload=off"], false)] {
        let namespace = namespace();
        let server = listener(&namespace, 8080);
        let serving = Serving::start(&namespace, &[TARGET], more);
        let client = connect(&namespace);
        let (peer, _) = server.accept().unwrap();
        for (seed, mut from, mut to) in [(1, &client, &peer), (2, &peer, &client)] {
            let data = bytes(seed, length);
            let mut received = vec![0; length];
            thread::scope(|scope| {
                scope.spawn(|| from.write_all(&data).unwrap());
                to.read_exact(&mut received).unwrap();
            });
            assert!(received == data);
        }
        drop((client, peer));
        let sizes = mean_packet_sizes(&namespace);
        // Half of the packets in each direction are ACKs.
        assert!(sizes.iter().all(|size| (*size > 1500) == large), "{more:?}: {sizes:?}");
        let end = serving.stop();
        let segments = end["device"]["packets_out"].as_u64().unwrap();
        assert!(segments > length as u64 / 1500, "the device must count segments: {segments}");
    }
}

#[test]
fn decisions_carry_connection_numbers_and_pcap_is_written() {
    let namespace = namespace();
    answer_with_digests(listener(&namespace, 8080));
    let (decisions, packets) = (TempFile::new("decisions"), TempFile::new("packets"));
    let more = ["--decisions", decisions.path(), "--pcap", packets.path()];
    let serving = Serving::start(&namespace, &[TARGET], &more);
    for _ in 0..2 {
        let stream = connect(&namespace);
        stream.shutdown(Shutdown::Write).unwrap();
        read_to_end(&stream);
    }
    serving.events("closed", 2, |_| true);
    serving.stop();
    let text = String::from_utf8(decisions.read()).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for number in [1, 2] {
        assert!(lines.iter().any(|line| line["connection"] == number && line["by"].is_string()), "{text}");
    }
    assert!(packets.read().len() > 1000);
}

#[test]
fn invalid_arguments_are_usage_errors() {
    for (args, words) in [
        (&["--listen=80", "--forward=127.0.0.1"][..], "use for example 127.0.0.1:80"),
        (&["--listen=localhost:80", "--forward=127.0.0.1:80"], "use for example 10.83.0.2:80"),
        (&["--listen=80", "--forward=10.83.0.2:80"], "the userspace host's own address"),
        (&["--listen=10.83.0.2:80", "--listen=10.83.0.1:81", "--forward=127.0.0.1:80"], "kernel's address"),
        (&["--listen=80"], "--forward"),
    ] {
        let ended = run(&[&["serve"], args].concat());
        assert_eq!(ended.code, 2, "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(words), "{args:?}: {}", ended.stderr);
    }
}
