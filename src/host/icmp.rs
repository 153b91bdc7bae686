//! ICMP and ICMPv6: errors about our segments (RFC 1122 §4.2.3.9, RFC 5461, RFC 5927), path MTU (RFC 1191,
//! RFC 8201), and replies to echo requests (ping).

use std::net::{IpAddr, SocketAddr};

use airwire::checksum;
use airwire::segment::{self, BadPacket, Ip};
use airwire::seq::Seq;
use airwire::time::Instant;
use airwire::view::{TCP, View};
use smoltcp::wire::{IpProtocol, Ipv4Packet, Ipv6Packet};

use super::Host;
use crate::tcp::icmp::{IcmpError, Opener, Unreachable};

impl Host {
    pub(super) fn process_icmp(&mut self, now: Instant, ip: &Ip<'_>) -> Result<(), BadPacket> {
        let message = ip.payload;
        if message.len() < 8 {
            return Err(BadPacket::Truncated);
        }
        let v4 = ip.dst.is_ipv4();
        let intact = match v4 {
            true => checksum::plain(message) == 0,
            false => checksum::verify_transport(ip.src, ip.dst, 58, message),
        };
        if !intact {
            return Err(BadPacket::IcmpChecksum);
        }
        let rest = u32::from_be_bytes([message[4], message[5], message[6], message[7]]);
        let error = match (v4, message[0], message[1]) {
            (true, 8, 0) | (false, 128, 0) if segment::is_unicast(ip.src) => {
                self.echo(ip);
                return Ok(());
            }
            (true, 3, 4) => IcmpError::TooBig { mtu: rest & 0xffff },
            (false, 2, _) => IcmpError::TooBig { mtu: rest },
            (_, kind, code) => match unreachable(v4, kind, code) {
                Some(why) => IcmpError::Unreachable(why),
                // RFC 6633: source quench is ignored, like all further types.
                None => {
                    self.counters.icmp_ignored += 1;
                    return Ok(());
                }
            },
        };
        let quoted = quoted_segment(&message[8..]);
        let index = quoted.and_then(|((local, remote), seq)| Some((self.index_of((&local, &remote))?, seq)));
        let Some((index, seq)) = index else {
            self.counters.icmp_ignored += 1;
            return Ok(());
        };
        let opener = if self.slots.listener_of(index).is_some() { Opener::Peer } else { Opener::Us };
        let taken = self.slots.at_mut(index).is_some_and(|c| c.handle_icmp(now, seq, error, opener));
        self.collect_events(now, index);
        if taken {
            self.counters.icmp_errors += 1;
            self.mark_ready(index);
        } else {
            self.counters.icmp_ignored += 1;
        }
        Ok(())
    }

    fn echo(&mut self, ip: &Ip<'_>) {
        let mut body = ip.payload.to_vec();
        let mut packet = match (ip.dst, ip.src) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                body[0] = 0;
                body[2..4].fill(0);
                let sum = checksum::plain(&body);
                body[2..4].copy_from_slice(&sum.to_be_bytes());
                let mut packet = vec![0; 20];
                let mut header = Ipv4Packet::new_unchecked(&mut packet[..]);
                header.set_version(4);
                header.set_header_len(20);
                header.set_total_len(20 + body.len() as u16);
                header.set_hop_limit(self.profile.ttl);
                header.set_next_header(IpProtocol::Icmp);
                header.set_src_addr(src);
                header.set_dst_addr(dst);
                header.fill_checksum();
                packet
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                body[0] = 129;
                body[2..4].fill(0);
                let sum = checksum::transport(ip.dst, ip.src, 58, &body);
                body[2..4].copy_from_slice(&sum.to_be_bytes());
                let mut packet = vec![0; 40];
                let mut header = Ipv6Packet::new_unchecked(&mut packet[..]);
                header.set_version(6);
                header.set_payload_len(body.len() as u16);
                header.set_hop_limit(self.profile.ttl);
                header.set_next_header(IpProtocol::Icmpv6);
                header.set_src_addr(src);
                header.set_dst_addr(dst);
                packet
            }
            _ => return,
        };
        packet.extend(body);
        self.counters.echo_replies += 1;
        self.reply(packet);
    }
}

/// Returns the reason for non-delivery that type and code report, if they report one.
fn unreachable(v4: bool, kind: u8, code: u8) -> Option<Unreachable> {
    Some(match (v4, kind, code) {
        (true, 3, 0) | (false, 1, 0) => Unreachable::Network,
        (true, 3, 1) | (false, 1, 3) => Unreachable::Host,
        (true, 3, 2) => Unreachable::Protocol,
        (true, 3, 3) | (false, 1, 4) => Unreachable::Port,
        (true, 3, 5) => Unreachable::SourceRoute,
        (true, 3, 6) => Unreachable::NetworkUnknown,
        (true, 3, 7) => Unreachable::HostUnknown,
        (true, 3, 8) => Unreachable::Isolated,
        (true, 3, 9) => Unreachable::NetworkProhibited,
        (true, 3, 10) => Unreachable::HostProhibited,
        (true, 3, 11) => Unreachable::NetworkTos,
        (true, 3, 12) => Unreachable::HostTos,
        (true, 3, 13) => Unreachable::Prohibited,
        (true, 3, 14 | 15) => Unreachable::Precedence,
        (false, 1, 2) => Unreachable::Scope,
        (false, 1, 1 | 5 | 6) => Unreachable::Policy,
        (true, 11, _) | (false, 3, _) => Unreachable::TimeExceeded,
        (true, 12, _) | (false, 4, _) => Unreachable::BadHeader,
        _ => return None,
    })
}

/// Returns the addresses of our connection and the sequence number in the packet that an ICMP error quotes.
/// The quotation is truncated, so length and checksum are not verified.
fn quoted_segment(quoted: &[u8]) -> Option<((SocketAddr, SocketAddr), Seq)> {
    let view = View::without_extensions(quoted).ok().filter(|view| view.protocol == TCP)?;
    let [a, b, c, d, seq @ ..] = *quoted.get(view.transport..)?.first_chunk::<8>()?;
    let [src, dst] = [[a, b], [c, d]].map(u16::from_be_bytes);
    let ends = (SocketAddr::new(view.source(), src), SocketAddr::new(view.destination(), dst));
    Some((ends, Seq(u32::from_be_bytes(seq))))
}
