//! Packets with a chosen payload and window, ICMP errors, and tshark's output for these packets.

use std::net::{IpAddr, SocketAddr};

use airtcp_testkit::frames::{ACK, ETHERNET, Pcap, SYN, SYN_ACK, Tcp, ethernet};
use airtcp_testkit::machine::{TempFile, run};
use airwire::options::Options;
use serde_json::Value;

use super::{analyze_path, file};
use crate::tools::tshark_text;

/// The frames of a capture, each with its time.
#[derive(Default)]
pub(super) struct Frames(Vec<(f64, Vec<u8>)>);

impl Frames {
    pub(super) fn tcp(&mut self, at: f64, tcp: &Tcp) -> &mut Self {
        self.push(at, tcp, 0xffff, &vec![0; tcp.len])
    }

    pub(super) fn data(&mut self, at: f64, tcp: &Tcp, payload: &[u8]) -> &mut Self {
        self.push(at, tcp, 0xffff, payload)
    }

    pub(super) fn window(&mut self, at: f64, tcp: &Tcp, window: u16) -> &mut Self {
        self.push(at, tcp, window, &vec![0; tcp.len])
    }

    fn push(&mut self, at: f64, tcp: &Tcp, window: u16, payload: &[u8]) -> &mut Self {
        self.0.push((at, ethernet(&tcp.carrying(window, payload))));
        self
    }

    /// An ICMP error about `tcp`. It quotes the IP header and 8 bytes of the segment, or in IPv6 the whole
    /// segment.
    pub(super) fn icmp(
        &mut self,
        at: f64,
        from: IpAddr,
        (icmp_type, code): (u8, u8),
        mtu: u32,
        tcp: &Tcp,
    ) -> &mut Self {
        let inner = tcp.packet();
        let (mut header, rest) = match (from, tcp.src.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let inner = &inner[..28];
                let head = [0x45, 0, 0, 20 + 8 + 28, 0, 9, 0, 0, 64, 1, 0, 0];
                let mut header = [&head[..], &from.octets(), &to.octets()].concat();
                let sum = airwire::checksum::plain(&header);
                header[10..12].copy_from_slice(&sum.to_be_bytes());
                (header, [&[icmp_type, code, 0, 0, 0, 0], &(mtu as u16).to_be_bytes()[..], inner].concat())
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let body = [&[icmp_type, code, 0, 0][..], &mtu.to_be_bytes(), &inner].concat();
                let head = [&[0x60, 0, 0, 0][..], &(body.len() as u16).to_be_bytes(), &[58, 64]].concat();
                ([&head[..], &from.octets(), &to.octets()].concat(), body)
            }
            _ => panic!("an ICMP error has the IP version of its packet"),
        };
        header.extend(rest);
        self.0.push((at, ethernet(&header)));
        self
    }

    /// A handshake that takes 20 ms.
    pub(super) fn open(&mut self, at: f64, client: SocketAddr, server: SocketAddr) -> &mut Self {
        let options = Options { mss: Some(1460), window_scale: Some(7), ..Options::default() };
        let theirs = Options { mss: Some(1400), window_scale: Some(2), ..Options::default() };
        let syn = Tcp { options, ..Tcp::new(client, server, SYN, 100, 0, 0) };
        let syn_ack = Tcp { options: theirs, ..Tcp::new(server, client, SYN_ACK, 500, 101, 0) };
        self.tcp(at, &syn).tcp(at + 0.01, &syn_ack);
        self.tcp(at + 0.02, &Tcp::new(client, server, ACK, 101, 501, 0))
    }

    /// Adds the frames of another capture.
    pub(super) fn append(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    pub(super) fn count(&self) -> usize {
        self.0.len()
    }

    pub(super) fn file(&self) -> TempFile {
        self.cut(262_144)
    }

    pub(super) fn cut(&self, snap_length: u32) -> TempFile {
        let mut pcap = Pcap::with_snap_length(ETHERNET, snap_length);
        for (at, frame) in &self.0 {
            pcap.frame(*at, frame);
        }
        file(&pcap.file)
    }

    pub(super) fn json(&self) -> Value {
        analyze_path(self.file().path(), &[])
    }

    pub(super) fn text(&self, more: &[&str]) -> String {
        text(&self.file(), more)
    }

    /// The fields of the frames that match a display filter.
    pub(super) fn tshark(&self, filter: &str, fields: &[&str]) -> Vec<String> {
        let file = self.file();
        let fields = fields.iter().flat_map(|field| ["-e", field]);
        let args = ["-r", file.path(), "-Y", filter, "-T", "fields", "-E", "occurrence=f"];
        let text = tshark_text(&args.into_iter().chain(fields).collect::<Vec<_>>());
        text.lines().map(str::to_owned).collect()
    }
}

pub(super) fn text(file: &TempFile, more: &[&str]) -> String {
    let ended = run(&[&["analyze", "--wide", file.path()], more].concat());
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{}", ended.stdout);
    ended.stdout
}

/// Returns the line that contains all of these parts.
#[track_caller]
pub(super) fn line<'a>(text: &'a str, parts: &[&str]) -> &'a str {
    let found = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    found.unwrap_or_else(|| panic!("no line has {parts:?}:\n{text}"))
}
