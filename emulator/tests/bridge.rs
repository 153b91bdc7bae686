//! `airlink bridge` as a user runs it: bridge two namespaces, ping, stop, and check that nothing is left.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Output, Stdio};

use airlink::netns::Namespace;
use airtcp_testkit::temporary::TempFile;
use common::{airlink, namespace};
use nix::sys::signal::{Signal, kill};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, SockaddrIn6, SockaddrLike, recv,
    sendto, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;

/// A running `airlink bridge`.
struct Bridge(Child);

impl Bridge {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_airlink"))
            .arg("bridge")
            .args(args)
            .env("RUST_LOG", "info")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut seen = String::new();
        while !seen.contains("bridging") {
            assert_ne!(stderr.read_line(&mut seen).unwrap(), 0, "the bridge ended before it was up: {seen}");
        }
        child.stderr = Some(stderr.into_inner());
        Self(child)
    }

    fn stop(mut self, signal: Signal) -> Output {
        kill(Pid::from_raw(self.0.id() as i32), signal).unwrap();
        let status = self.0.wait().unwrap();
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.0.stdout.take().unwrap().read_to_end(&mut stdout).unwrap();
        self.0.stderr.take().unwrap().read_to_end(&mut stderr).unwrap();
        Output { status, stdout, stderr }
    }
}

impl Drop for Bridge {
    /// A failed assertion must not leave the process running.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends one echo request from inside the namespace. Returns whether a reply with the same payload arrives.
fn ping(from: &Namespace, to: &str) -> bool {
    from.enter(|| match to.parse::<Ipv4Addr>() {
        Ok(to) => echo(SockProtocol::Icmp, 8, &SockaddrIn::from(SocketAddrV4::new(to, 0)), 0),
        Err(_) => {
            let to: Ipv6Addr = to.parse().unwrap();
            echo(SockProtocol::IcmpV6, 128, &SockaddrIn6::from(SocketAddrV6::new(to, 0, 0, 0)), 129)
        }
    })
    .unwrap()
}

fn echo(protocol: SockProtocol, request: u8, to: &dyn SockaddrLike, reply: u8) -> bool {
    let family = if request == 8 { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol).unwrap();
    setsockopt(&socket, sockopt::ReceiveTimeout, &TimeVal::seconds(5)).unwrap();
    let payload = *b"\x12\x34\0\x01are you there?";
    let mut packet = vec![request, 0, 0, 0];
    packet.extend(payload);
    if request == 8 {
        // The kernel fills in the checksum for ICMPv6 only.
        let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    sendto(socket.as_raw_fd(), &packet, to, MsgFlags::empty()).unwrap();
    let mut buffer = [0; 200];
    // A raw socket also receives other ICMP messages, such as errors and neighbour discovery.
    while let Ok(len) = recv(socket.as_raw_fd(), &mut buffer, MsgFlags::empty()) {
        let message = if request == 8 { &buffer[20..len] } else { &buffer[..len] };
        if message[0] == reply && message[4..] == payload {
            return true;
        }
    }
    false
}

fn devices(namespace: &Namespace) -> Vec<String> {
    let table = namespace.enter(|| fs::read_to_string("/proc/thread-self/net/dev").unwrap()).unwrap();
    let name = |line: &str| line.split_once(':').map(|(name, _)| name.trim().to_owned());
    table.lines().skip(2).filter_map(name).collect()
}

fn tcpdump(path: &str) -> String {
    let output = Command::new("tcpdump").args(["-n", "-t", "-r", path]).output();
    let output = output.expect("this test needs tcpdump: apt-get install tcpdump");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn namespaces_ping_each_other_and_nothing_is_left() {
    let (fixed, mobile) = (namespace(), namespace());
    let pcap = TempFile::new("mobile.pcap");
    let bridge = Bridge::start(&[
        "--fixed-netns",
        fixed.name(),
        "--fixed-addr=10.1.0.1/24",
        "--fixed-addr=fd01::1/64",
        "--fixed-route=10.2.0.0/24",
        "--fixed-route=fd02::/64",
        "--mobile-netns",
        mobile.path().to_str().unwrap(),
        "--mobile-addr=10.2.0.1/24",
        "--mobile-addr=fd02::1/64",
        "--mobile-route=10.1.0.0/24",
        "--mobile-route=fd01::/64",
        "--pcap-mobile",
        pcap.path(),
        "--json",
    ]);
    assert_eq!(devices(&fixed), ["lo", "airtcp0"]);
    assert!(ping(&fixed, "10.2.0.1") && ping(&mobile, "10.1.0.1"), "IPv4");
    assert!(ping(&fixed, "fd02::1") && ping(&mobile, "fd01::1"), "IPv6");

    let output = bridge.stop(Signal::SIGHUP);
    assert!(output.status.success(), "{output:?}");
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Four echo requests and four replies: 20 + 22 bytes each in IPv4, 40 + 22 in IPv6.
    for side in ["fixed", "mobile"] {
        for counter in ["sent_packets", "received_packets"] {
            assert_eq!(summary[side][counter], 4, "{side} {counter}: {summary}");
        }
        assert_eq!(summary[side]["sent_bytes"], 2 * 42 + 2 * 62);
        assert_eq!(summary[side]["dropped_by_kernel"], 0);
    }
    let seen = tcpdump(pcap.path());
    assert_eq!(seen.lines().count(), 8, "{seen}");
    assert!(seen.contains("IP 10.1.0.1 > 10.2.0.1: ICMP echo request, id 4660, seq 1, length 22"), "{seen}");
    assert!(seen.contains("IP6 fd02::1 > fd01::1: ICMP6, echo request, id 4660, seq 1, length 22"), "{seen}");

    assert_eq!([devices(&fixed), devices(&mobile)], [["lo"], ["lo"]]);
}

#[test]
fn killed_bridge_leaves_no_devices() {
    let (fixed, mobile) = (namespace(), namespace());
    let bridge = Bridge::start(&[
        &format!("--fixed-netns={}", fixed.name()),
        &format!("--mobile-netns={}", mobile.name()),
        "--fixed-addr=10.0.0.1/24",
        "--mobile-addr=10.0.0.2/24",
    ]);
    assert!(ping(&fixed, "10.0.0.2"), "one subnet needs no route");
    assert!(!bridge.stop(Signal::SIGKILL).status.success());
    assert_eq!([devices(&fixed), devices(&mobile)], [["lo"], ["lo"]]);
}

#[test]
fn bridge_ends_after_its_duration() {
    let (fixed, mobile) = (namespace(), namespace());
    let sides = ["--fixed-netns", fixed.name(), "--mobile-netns", mobile.name()];
    let output = airlink(&[&["bridge", "--for=0.1"], &sides[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("fixed   airtcp0 ") && table.contains("mobile  airtcp0 "), "{table}");
}

#[test]
fn missing_namespace_is_an_environment_error() {
    let output = airlink(&["bridge", "--fixed-netns", "no-such-namespace"]);
    assert_eq!(output.status.code(), Some(3));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("no-such-namespace") && message.contains("ip netns add"), "{message}");
}
