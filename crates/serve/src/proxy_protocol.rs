//! The PROXY protocol, version 2: a header in front of the data contains the addresses of the server's client
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>, section 2.2).

use std::net::{IpAddr, SocketAddr};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Version 2, and the command PROXY.
const PROXY: u8 = 0x21;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;

/// Returns the header for a connection from `client` to `local`, an address that the proxy listens on.
pub(crate) fn header(client: SocketAddr, local: SocketAddr) -> Vec<u8> {
    let (family, mut body) = match (client.ip(), local.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (TCP_OVER_IPV4, [from.octets(), to.octets()].concat()),
        (from, to) => (TCP_OVER_IPV6, [from, to].map(as_ipv6).concat()),
    };
    body.extend([client, local].map(|addr| addr.port().to_be_bytes()).concat());
    let length = (body.len() as u16).to_be_bytes();
    [SIGNATURE, &[PROXY, family], &length, body.as_slice()].concat()
}

fn as_ipv6(addr: IpAddr) -> [u8; 16] {
    match addr {
        IpAddr::V4(addr) => addr.to_ipv6_mapped().octets(),
        IpAddr::V6(addr) => addr.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(client: &str, local: &str) -> Vec<u8> {
        header(client.parse().unwrap(), local.parse().unwrap())
    }

    #[test]
    fn header_has_addresses_and_ports_in_network_order() {
        let v4 = of("10.1.2.3:513", "10.83.0.2:80");
        assert_eq!(v4[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
        assert_eq!(v4[16..], [10, 1, 2, 3, 10, 83, 0, 2, 2, 1, 0, 80]);
        let v6 = of("[fd83::1]:513", "[fd83::2]:80");
        assert_eq!(v6[12..16], [0x21, 0x21, 0, 36]);
        assert_eq!((v6.len(), v6[31], v6[47]), (52, 1, 2));
        assert_eq!(v6[48..], [2, 1, 0, 80]);
    }
}
