//! The kernel's own figures about connections of this machine, from `ss -ti`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use nix::ifaddrs::getifaddrs;
use serde::Serialize;

use super::rates::Busy;
use crate::shared::console;

/// Maximum number of connections per call of `ss`, whose filter names each connection.
const MAX_ASKED: usize = 50;

/// The last figures about each connection that is still followed.
#[derive(Default)]
pub(super) struct Sockets {
    /// The sockets of both ends, by the number of the connection.
    by_number: BTreeMap<u64, [Option<KernelSocket>; 2]>,
    /// Whether `ss` does not work, which has been reported.
    is_unavailable: bool,
}

/// A socket as the kernel reports it (`tcp_info`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct KernelSocket {
    pub(super) congestion_control: Option<String>,
    pub(super) cwnd_segments: Option<u64>,
    ssthresh_segments: Option<u64>,
    rtt_seconds: Option<f64>,
    min_rtt_seconds: Option<f64>,
    delivery_bit_per_s: Option<f64>,
    /// All retransmitted segments.
    retransmissions: u64,
    /// Time with data to send or in flight.
    busy_seconds: f64,
    /// The part of the busy time that the receiver's window limited.
    receiver_window_seconds: f64,
    /// The part of the busy time that the send buffer limited.
    send_buffer_seconds: f64,
}

impl Sockets {
    /// Asks the kernel about the connections of this machine among `busy`.
    pub(super) fn update(&mut self, busy: &[Busy]) {
        if self.is_unavailable || busy.is_empty() {
            return;
        }
        let local: Vec<_> = getifaddrs().into_iter().flatten().filter_map(|it| it.address).collect();
        let is_local = |end: &SocketAddr| {
            local.iter().any(|address| {
                let v4 = address.as_sockaddr_in().map(|it| it.ip().into());
                let ip = v4.or_else(|| address.as_sockaddr_in6().map(|it| it.ip().into()));
                ip == Some(end.ip())
            })
        };
        let asked: Vec<_> =
            busy.iter().filter(|busy| busy.ends.iter().any(is_local)).take(MAX_ASKED).collect();
        if asked.is_empty() {
            return;
        }
        let ports = asked.iter().map(|busy| busy.ends.map(|end| end.port()));
        let filter = ports.flat_map(|[one, other]| [[one, other], [other, one]]);
        let filter: Vec<_> =
            filter.map(|[local, peer]| format!("( sport = :{local} and dport = :{peer} )")).collect();
        let output = Command::new("ss").arg("-tinOH").arg(filter.join(" or ")).stderr(Stdio::null()).output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            self.is_unavailable = true;
            console::print_status(
                "ss -tin does not work, so the kernel's own figures are missing; install iproute2",
            );
            return;
        };
        let sockets: BTreeMap<_, _> =
            String::from_utf8_lossy(&output.stdout).lines().filter_map(KernelSocket::parse).collect();
        for busy in asked {
            let known = self.by_number.entry(busy.number).or_default();
            for (end, known) in known.iter_mut().enumerate() {
                if let Some(socket) = sockets.get(&[busy.ends[end], busy.ends[1 - end]]) {
                    *known = Some(socket.clone());
                }
            }
        }
    }

    /// Returns the figures about one end of a connection.
    pub(super) fn of(&self, number: u64, end: usize) -> Option<&KernelSocket> {
        self.by_number.get(&number)?[end].as_ref()
    }

    /// Returns the last figures about both ends of a connection that has ended.
    pub(super) fn take(&mut self, number: u64) -> Option<[Option<KernelSocket>; 2]> {
        self.by_number.remove(&number)
    }
}

impl KernelSocket {
    /// Parses a line of `ss -tinOH`. Returns the local and the other end, and the socket.
    fn parse(line: &str) -> Option<([SocketAddr; 2], Self)> {
        let mut words = line.split_whitespace();
        let ends = [words.nth(3)?, words.next()?].map(address);
        let [Some(local), Some(peer)] = ends else { return None };
        let mut socket = Self::default();
        let mut is_before_values = true;
        while let Some(word) = words.next() {
            let Some((key, value)) = word.split_once(':') else {
                match word {
                    "delivery_rate" => socket.delivery_bit_per_s = words.next().and_then(bit_per_s),
                    "send" | "pacing_rate" => drop(words.next()),
                    // The name is between the options of the connection and the first value.
                    "ts" | "sack" | "ecn" | "ecnseen" | "fastopen" => {}
                    name if is_before_values => socket.congestion_control = Some(name.to_owned()),
                    _ => {}
                }
                continue;
            };
            is_before_values = false;
            match key {
                "cwnd" => socket.cwnd_segments = value.parse().ok(),
                "ssthresh" => socket.ssthresh_segments = value.parse().ok(),
                "rtt" => socket.rtt_seconds = value.split('/').next().and_then(milliseconds),
                "minrtt" => socket.min_rtt_seconds = milliseconds(value),
                // Segments that are presumed lost at the moment, and all retransmissions.
                "retrans" => {
                    socket.retransmissions = value.rsplit('/').next().and_then(|all| all.parse().ok())?;
                }
                "busy" => socket.busy_seconds = milliseconds(value)?,
                "rwnd_limited" => socket.receiver_window_seconds = milliseconds(value)?,
                "sndbuf_limited" => socket.send_buffer_seconds = milliseconds(value)?,
                _ => {}
            }
        }
        Some(([local, peer], socket))
    }
}

/// Parses an address with a port. An IPv4 address in an IPv6 address becomes an IPv4 address.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.rsplit_once(':')?;
    let ip = ip.trim_start_matches('[').trim_end_matches(']').split('%').next()?;
    let ip: std::net::IpAddr = ip.parse().ok()?;
    Some(SocketAddr::new(ip.to_canonical(), port.parse().ok()?))
}

/// Parses milliseconds such as `0.052`, `12ms` or `12ms(3.4%)`, and returns seconds.
fn milliseconds(text: &str) -> Option<f64> {
    let number = text.split("ms").next()?;
    Some(number.parse::<f64>().ok()? / 1e3)
}

/// Parses a rate such as `95.4Mbps`.
fn bit_per_s(text: &str) -> Option<f64> {
    let text = text.strip_suffix("bps")?;
    let (number, factor) = match text.chars().next_back()? {
        'K' => (&text[..text.len() - 1], 1e3),
        'M' => (&text[..text.len() - 1], 1e6),
        'G' => (&text[..text.len() - 1], 1e9),
        'T' => (&text[..text.len() - 1], 1e12),
        _ => (text, 1.0),
    };
    Some(number.parse::<f64>().ok()? * factor)
}

impl std::fmt::Display for KernelSocket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.congestion_control.as_deref().unwrap_or("unknown algorithm"))?;
        if let Some(cwnd) = self.cwnd_segments {
            write!(f, ", window of {cwnd} segments")?;
        }
        if let Some(rtt) = self.rtt_seconds {
            write!(f, ", RTT {:.1} ms", rtt * 1e3)?;
        }
        write!(f, ", {} retransmissions", self.retransmissions)?;
        if self.busy_seconds > 0.0 {
            let share = |seconds: f64| 100.0 * seconds / self.busy_seconds;
            write!(
                f,
                "; busy for {:.1} s, of which the receiver's window limited {:.0} % and the send buffer {:.0} %",
                self.busy_seconds,
                share(self.receiver_window_seconds),
                share(self.send_buffer_seconds),
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_ss_give_ends_and_figures() {
        let line = "ESTAB 0      4194304 10.83.0.2:46352   10.83.0.1:9000  ts sack ecn cubic wscale:7,10 rto:244 \
            rtt:40.52/1.25 mss:1448 pmtu:1500 rcvmss:536 advmss:1448 cwnd:86 ssthresh:44 bytes_sent:14480 \
            segs_out:10 data_segs_out:9 send 24.6Mbps lastsnd:4 pacing_rate 29.5Mbps delivery_rate 9.4Mbps \
            delivered:1 app_limited busy:1520ms rwnd_limited:380ms(25.0%) sndbuf_limited:40ms(2.6%) unacked:86 \
            retrans:1/7 lost:1 rcv_space:14480 rcv_ssthresh:64088 notsent:4194304 minrtt:40.5";
        let (ends, socket) = KernelSocket::parse(line).unwrap();
        assert_eq!(ends, ["10.83.0.2:46352", "10.83.0.1:9000"].map(|end| end.parse().unwrap()));
        let expected = KernelSocket {
            congestion_control: Some("cubic".to_owned()),
            cwnd_segments: Some(86),
            ssthresh_segments: Some(44),
            rtt_seconds: Some(0.04052),
            min_rtt_seconds: Some(0.0405),
            delivery_bit_per_s: Some(9.4e6),
            retransmissions: 7,
            busy_seconds: 1.52,
            receiver_window_seconds: 0.38,
            send_buffer_seconds: 0.04,
        };
        assert_eq!(socket, expected);
    }

    #[test]
    fn mapped_and_scoped_addresses_are_read() {
        assert_eq!(address("[::ffff:10.0.0.1]:80"), Some("10.0.0.1:80".parse().unwrap()));
        assert_eq!(address("[fe80::1%eth0]:80"), Some("[fe80::1]:80".parse().unwrap()));
        assert_eq!(address("10.0.0.1%eth0:443"), Some("10.0.0.1:443".parse().unwrap()));
        assert_eq!(address("*:*"), None);
    }
}
