//! TCP Fast Open (RFC 7413) with this kernel as client and as server.
//!
//! The tests create network namespaces. Without root privileges they fail with this reason.

use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsRawFd;

use airlink::netns::Namespace;
use airtcp::tcp::FastOpenKeys;
use airtcp_testkit::machine::{Ended, Running, TempFile, data, digest, kernel_receiver, namespace, run_in};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, connect, setsockopt, socket, sockopt,
};
use serde_json::Value;

const KEY: &str = "03020100-07060504-0b0a0908-0f0e0d0c";
const KEYS: FastOpenKeys =
    FastOpenKeys { primary: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], backup: None };

/// Sets a sysctl of TCP in the namespace.
fn sysctl(namespace: &Namespace, name: &str, value: &str) {
    namespace.sysctl(&format!("net.ipv4.{name}"), value).unwrap();
}

/// Returns a counter of the kernel's TCP in the namespace.
fn counter(namespace: &Namespace, name: &str) -> u64 {
    let text = namespace.enter(|| fs::read_to_string("/proc/thread-self/net/netstat").unwrap()).unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("TcpExt: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let found = names.split(' ').zip(values.split(' ')).find(|(known, _)| *known == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1.parse().unwrap()
}

/// Sends 100 kB with the cookies in this file.
fn send(namespace: &Namespace, target: &str, profile: &str, cookies: &TempFile) -> Ended {
    let common = ["send", "--bytes=100k", target, "--profile", profile, "--json", "--timeout=20s"];
    run_in(namespace, &[&common[..], &["--cookies", cookies.path()]].concat()).success()
}

#[test]
fn kernel_server_accepts_data_in_syn() {
    let namespace = namespace();
    // Bit 10: every listener.
    sysctl(&namespace, "tcp_fastopen", "1027");
    sysctl(&namespace, "tcp_fastopen_key", KEY);
    for (profile, target, own) in [
        ("linux", "10.83.0.1:9000", "10.83.0.2"),
        ("default", "[fd83::1]:9000", "fd83::2"),
        ("freebsd", "10.83.0.1:9000", "10.83.0.2"),
    ] {
        let cookies = TempFile::new("cookies");
        let server: SocketAddr = target.parse().unwrap();
        for round in 0..3 {
            let before = counter(&namespace, "TCPFastOpenPassive");
            let receiver = kernel_receiver(&namespace, 9000);
            let ended = send(&namespace, target, profile, &cookies);
            let end = ended.event("end");
            let received = receiver.join().unwrap();
            let digest = Value::from(received.digest);
            assert_eq!((received.bytes, &end["sha256"]), (100_000, &digest), "{profile}");
            assert_eq!(end["handshake"]["syn_data"], round > 0, "{profile}, run {round}");
            assert_eq!(end["retransmissions"]["segments"], 0, "{profile}, run {round}");
            let passive = counter(&namespace, "TCPFastOpenPassive") - before;
            assert_eq!(passive, u64::from(round > 0), "{profile}, run {round}");
        }
        // The kernel computes the same cookie.
        let line: Value = serde_json::from_slice(&cookies.read()).unwrap();
        let cookie = KEYS.cookie(own.parse::<IpAddr>().unwrap(), server.ip());
        assert_eq!(line["cookie"], cookie.to_string(), "{profile}");
    }
}

#[test]
fn client_resends_data_refused_by_new_key() {
    let namespace = namespace();
    sysctl(&namespace, "tcp_fastopen", "1027");
    let cookies = TempFile::new("cookies");
    for round in 0..3 {
        if round == 1 {
            sysctl(&namespace, "tcp_fastopen_key", KEY);
        }
        let receiver = kernel_receiver(&namespace, 9000);
        let ended = send(&namespace, "10.83.0.1:9000", "linux", &cookies);
        let end = ended.event("end");
        assert_eq!(end["sha256"], receiver.join().unwrap().digest);
        assert_eq!(end["handshake"]["syn_data"], round == 2, "run {round}");
        assert_eq!(end["retransmissions"]["segments"], u64::from(round == 1), "run {round}");
        assert_eq!(end["timeouts"]["timeouts"], 0, "run {round}");
    }
}

/// Connects with TCP_FASTOPEN_CONNECT and sends `data`. The SYN carries the beginning of the data if the
/// kernel has a cookie.
fn send_from_kernel(namespace: &Namespace, server: SocketAddr, data: &[u8]) -> String {
    let family = if server.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = namespace.enter(|| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let descriptor = socket(family, SockType::Stream, flags, SockProtocol::Tcp).unwrap();
        setsockopt(&descriptor, sockopt::TcpFastOpenConnect, &true).unwrap();
        connect(descriptor.as_raw_fd(), &SockaddrStorage::from(server)).unwrap();
        descriptor
    });
    let mut stream = TcpStream::from(socket.unwrap());
    stream.write_all(data).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn kernel_client_sends_data_in_syn() {
    let namespace = namespace();
    sysctl(&namespace, "tcp_fastopen", "1");
    for (profile, server) in
        [("linux", "10.83.0.2:9000"), ("default", "[fd83::2]:9000"), ("freebsd", "10.83.0.2:9000")]
    {
        let server: SocketAddr = server.parse().unwrap();
        // The kernel keeps the cookies of earlier servers with the same address.
        let seed = if profile == "freebsd" { "8" } else { "7" };
        for round in 0..3 {
            let before = counter(&namespace, "TCPFastOpenActive");
            let common = ["recv", "9000", "--profile", profile, "--seed", seed, "--json"];
            let more = ["--fast-open", "--echo-digest", "--timeout=20s"];
            let recv = Running::start_in(&namespace, &[&common[..], &more].concat());
            let sent = data(100_000);
            let answer = send_from_kernel(&namespace, server, &sent);
            let ended = recv.end().success();
            assert_eq!(answer, format!("{}\n", digest(&sent)), "{profile}, run {round}");
            let end = ended.event("end");
            assert_eq!(end["handshake"]["syn_data"], round > 0, "{profile}, run {round}");
            let active = counter(&namespace, "TCPFastOpenActive") - before;
            assert_eq!(active, u64::from(round > 0), "{profile}, run {round}");
        }
    }
}
