//! What happens to streams and connections between the two sides, without losses.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use airlink::netns::Namespace;
use airtcp_testkit::machine::{TempFile, bytes, digest, namespace, run};
use airtcp_testkit::sample::size;
use nix::libc;
use nix::sys::signal::Signal;
use nix::sys::socket::{setsockopt, sockopt};

use super::stand::{SERVED, Serving, connect, listener, read_to_end};

const TARGET: &str = "127.0.0.1:8080";

/// Closes with a reset.
fn reset(stream: TcpStream) {
    setsockopt(&stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 }).unwrap();
}

fn is_reset(mut stream: &TcpStream) -> bool {
    let mut rest = Vec::new();
    matches!(stream.read_to_end(&mut rest), Err(error) if error.kind() == ErrorKind::ConnectionReset)
}

/// Connects and is reset, maybe before it has seen that it was connected.
fn is_turned_away(namespace: &Namespace) -> bool {
    match namespace.enter(|| TcpStream::connect(SERVED)).unwrap() {
        Ok(stream) => is_reset(&stream),
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Answers each connection with the digest of what it has sent, after its end.
fn digests(listener: TcpListener) {
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
fn a_client_that_has_closed_its_side_still_gets_the_answer() {
    let namespace = namespace();
    digests(listener(&namespace, 8080));
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
fn a_server_that_has_closed_its_side_still_gets_the_rest() {
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
fn both_directions_are_carried_at_once_over_ipv6_too() {
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
    // Nothing follows the ends.
    assert_eq!((client.read(&mut [0]).unwrap(), peer.read(&mut [0]).unwrap()), (0, 0));
    let closed = serving.outcome("done");
    assert_eq!((&closed["up_bytes"], &closed["down_bytes"]), (&10_000_000.into(), &10_000_000.into()));
    serving.stop();
}

#[test]
fn a_target_that_refuses_resets_the_radio_side_and_the_next_one_stands_in() {
    let namespace = namespace();
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    assert!(is_turned_away(&namespace));
    let closed = serving.outcome("refused");
    assert!(closed["reason"].as_str().unwrap().contains("Connection refused"), "{closed}");
    assert_eq!(serving.stop()["totals"]["refused"], 1);

    digests(listener(&namespace, 8082));
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
fn a_target_that_does_not_answer_is_given_up() {
    let namespace = namespace();
    // What is sent to this address gets lost: a device on which nobody listens.
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
fn a_reset_of_either_side_reaches_the_other() {
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
    // An octet that has come through: what is reset before that is a connection that was refused.
    (&peer).write_all(b"x").unwrap();
    (&client).read_exact(&mut [0]).unwrap();
    reset(peer);
    assert!(is_reset(&client));
    serving.outcome("target-failed");

    // Also while more is on its way than the other side takes.
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
fn a_server_that_stops_reading_stops_its_client_and_loses_nothing() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--receive-buffer=256Ki"]);
    let client = connect(&namespace);
    let (peer, _) = server.accept().unwrap();
    let before = serving.memory("VmRSS");

    // More than all the buffers on the way.
    let data = bytes(5, 60_000_000);
    client.set_nonblocking(true).unwrap();
    let (mut sent, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_secs(1) {
        match (&client).write(&data[sent..]) {
            Ok(count) => (sent, since) = (sent + count, Instant::now()),
            Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    assert!(sent < data.len(), "the client was not held back");
    let growth = serving.memory("VmHWM") - before;
    assert!(growth < 2_000, "{growth} kB more");

    client.shutdown(Shutdown::Write).unwrap();
    assert!(read_to_end(&peer) == data[..sent]);
    drop((client, peer));
    serving.stop();
}

#[test]
fn one_busy_connection_does_not_keep_the_others_waiting() {
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
    let for_a_little = || {
        let start = Instant::now();
        for _ in 0..20 {
            let mut stream = connect(&namespace);
            stream.write_all(b"l").unwrap();
            assert_eq!(read_to_end(&stream), b"little");
        }
        start.elapsed() / 20
    };
    // On a machine that has other things to do this takes long by itself.
    let alone = for_a_little();
    let mut busy = connect(&namespace);
    busy.write_all(b"b").unwrap();
    let mut sink = busy.try_clone().unwrap();
    let reader = thread::spawn(move || std::io::copy(&mut sink, &mut std::io::sink()));
    serving.event("interval", |interval| interval["down_bytes"].as_u64() > Some(10_000_000));
    let each = for_a_little();
    assert!(each < 4 * alone + Duration::from_millis(100), "{each:?} for a little, and {alone:?} alone");
    busy.shutdown(Shutdown::Both).unwrap();
    let _ = reader.join().unwrap();
    serving.stop();
}

#[test]
fn who_comes_above_the_limit_waits_until_somebody_leaves() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--max-connections=2"]);
    let (first, second, mut third) = (connect(&namespace), connect(&namespace), connect(&namespace));
    third.write_all(b"patient").unwrap();
    let peers = [server.accept().unwrap().0, server.accept().unwrap().0];
    server.set_nonblocking(true).unwrap();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(server.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "nobody else was let through");
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
fn a_connection_over_which_nothing_moves_is_reset() {
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
    assert!(closed["seconds"].as_f64() > Some(0.9), "while something moved it was kept: {closed}");
    serving.stop();
}

#[test]
fn after_sigterm_running_transfers_end_and_nobody_is_let_in() {
    let namespace = namespace();
    let server = listener(&namespace, 8080);
    let serving = Serving::start(&namespace, &[TARGET], &["--grace=20s"]);
    let client = connect(&namespace);
    let (mut peer, _) = server.accept().unwrap();
    peer.write_all(b"first ").unwrap();
    serving.signal(Signal::SIGTERM);
    assert_eq!(serving.event("stopping", |_| true)["open"], 1);
    let refused = namespace.enter(|| TcpStream::connect(SERVED)).unwrap();
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
fn after_the_grace_or_a_second_signal_what_is_open_is_reset() {
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
fn five_hundred_connections_leave_nothing_behind() {
    let namespace = namespace();
    digests(listener(&namespace, 8080));
    let serving = Serving::start(&namespace, &[TARGET], &[]);
    let before = serving.descriptors();
    for _ in 0..500 {
        let stream = connect(&namespace);
        stream.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&stream), digest(b"").as_bytes());
    }
    serving.events("closed", 500, |closed| closed["outcome"] == "done");
    assert_eq!(serving.descriptors(), before);
    // The client closed first each time: no one waits for the end of TIME-WAIT here.
    let interval =
        serving.event("interval", |interval| interval["connections"] == 500 && interval["open"] == 0);
    assert_eq!(interval["host_connections"], 0, "{interval}");
    assert_eq!(serving.stop()["totals"]["done"], 500);
}

/// What the kernel counts at our device: octets in a packet, on average, from us and to us.
fn octets_in_a_packet(namespace: &Namespace) -> [u64; 2] {
    let devices = namespace.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    let ours = devices.lines().find_map(|line| line.trim_start().strip_prefix("airtcp0:")).unwrap();
    let counters: Vec<u64> = ours.split_whitespace().map(|count| count.parse().unwrap()).collect();
    [counters[0] / counters[1], counters[8] / counters[9]]
}

#[test]
fn segments_cross_the_device_in_large_pieces_unless_that_is_switched_off() {
    let length = size(5_000_000, 20_000_000);
    for (more, large) in [(&[][..], true), (&["--offload=off"], false)] {
        let namespace = namespace();
        let server = listener(&namespace, 8080);
        let serving = Serving::start(&namespace, &[TARGET], more);
        let client = connect(&namespace);
        let (peer, _) = server.accept().unwrap();
        for (seed, mut from, mut to) in [(1, &client, &peer), (2, &peer, &client)] {
            let data = bytes(seed, length);
            let mut came = vec![0; length];
            thread::scope(|scope| {
                scope.spawn(|| from.write_all(&data).unwrap());
                to.read_exact(&mut came).unwrap();
            });
            assert!(came == data);
        }
        drop((client, peer));
        let octets = octets_in_a_packet(&namespace);
        // Half of the packets each way are ACKs.
        assert!(octets.iter().all(|octets| (*octets > 1500) == large), "{more:?}: {octets:?}");
        let end = serving.stop();
        let segments = end["device"]["packets_out"].as_u64().unwrap();
        assert!(segments > length as u64 / 1500, "the host's own count is of segments: {segments}");
    }
}

#[test]
fn decisions_and_packets_are_written_with_the_number_of_their_connection() {
    let namespace = namespace();
    digests(listener(&namespace, 8080));
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
fn what_cannot_work_is_said_before_a_device_is_made() {
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
