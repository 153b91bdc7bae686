//! Default addresses for links whose user did not choose any.
//!
//! The addresses belong to 100.64.0.0/10 (RFC 6598) and fd61:6972:6c6b::/64. Each link has a block. Its fixed
//! side is host 1 of the block and its mobile side is host 2. The rest of the block is for links that run
//! inside that mobile side. So every namespace reaches every other one with one route per link, and nested
//! links need no address translation.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use nix::ifaddrs::getifaddrs;

use crate::prefix::Prefix;

const POOL: (Ipv4Addr, u8) = (Ipv4Addr::new(100, 64, 0, 0), 10);
/// Prefix length of a link's block, by nesting depth.
const LENGTHS: [u8; 4] = [16, 20, 24, 28];
const V6: u128 = 0xfd61_6972_6c6b_0000 << 64;

/// The addresses of one link, reserved in the namespace of its fixed side while this value exists.
#[derive(Debug)]
pub struct Block {
    base: u32,
    len: u8,
    /// Lock without a file: an abstract Unix socket belongs to a network namespace and ends with its process.
    _reservation: UnixListener,
}

/// Reason why a link cannot get addresses.
#[derive(Debug, thiserror::Error)]
pub enum BlockError {
    #[error(
        "no free addresses for the link in 100.64.0.0/10: all blocks are in use, or more than four links are nested"
    )]
    /// All usable blocks are taken.
    NoneLeft,
    /// The kernel could not list addresses or routes, or could not create the lock.
    #[error("cannot determine which addresses are in use: {0}")]
    Io(#[from] io::Error),
}

impl Block {
    /// Reserves a block that is unused in the namespace of the calling thread. Call it on the fixed side.
    pub fn reserve() -> Result<Self, BlockError> {
        let mut used = Vec::new();
        let mut parent = (u32::from(POOL.0), POOL.1);
        for (addr, len) in addresses()? {
            let base = addr & mask(len);
            let ours = (addr ^ u32::from(POOL.0)) & mask(POOL.1) == 0;
            if ours && addr == base + 2 && len > parent.1 && LENGTHS.contains(&len) {
                parent = (base, len);
            } else {
                used.push((base, len));
            }
        }
        used.extend(routes()?.into_iter().filter(|(_, len)| *len > parent.1));
        let len = *LENGTHS.iter().find(|len| **len > parent.1).ok_or(BlockError::NoneLeft)?;
        // Sub-block 0 contains the two hosts of the parent link.
        let first = u32::from(parent.1 > POOL.1);
        for number in first..1 << (len - parent.1) {
            let base = parent.0 | (number << (32 - len));
            let overlaps = |other: &(u32, u8)| (base ^ other.0) & mask(len.min(other.1)) == 0;
            if used.iter().any(overlaps) {
                continue;
            }
            let name = format!("airlink/block/{}/{len}", Ipv4Addr::from(base));
            match UnixListener::bind_addr(&SocketAddr::from_abstract_name(name)?) {
                Ok(reservation) => return Ok(Self { base, len, _reservation: reservation }),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(BlockError::NoneLeft)
    }

    /// Addresses of the fixed side, IPv4 first. Their prefix length makes the kernel route the whole block
    /// into the device.
    pub fn fixed(&self) -> [Prefix; 2] {
        self.host(1)
    }

    /// Addresses of the mobile side, IPv4 first.
    pub fn mobile(&self) -> [Prefix; 2] {
        self.host(2)
    }

    fn host(&self, number: u32) -> [Prefix; 2] {
        let v4 = self.base + number;
        let v6 = Ipv6Addr::from(V6 | u128::from(v4));
        [(IpAddr::V4(v4.into()), self.len), (IpAddr::V6(v6), 96 + self.len)]
            // `len` is at most 28, so the IPv6 length is at most 124.
            .map(|(addr, len)| Prefix::new(addr, len).expect("the length is within the address"))
    }
}

fn mask(len: u8) -> u32 {
    u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0)
}

/// IPv4 addresses of all interfaces, with their prefix lengths.
fn addresses() -> io::Result<Vec<(u32, u8)>> {
    let v4 = |storage: Option<nix::sys::socket::SockaddrStorage>| {
        storage.and_then(|storage| storage.as_sockaddr_in().map(|addr| u32::from(addr.ip())))
    };
    let interfaces = getifaddrs()?;
    Ok(interfaces
        .filter_map(|interface| {
            let addr = v4(interface.address)?;
            let len = v4(interface.netmask).map_or(32, u32::leading_ones);
            Some((addr, len as u8))
        })
        .collect())
}

/// IPv4 routes of the calling thread's namespace. /proc/net/route prints the addresses as hexadecimal numbers
/// in host byte order.
fn routes() -> io::Result<Vec<(u32, u8)>> {
    let table = fs::read_to_string("/proc/thread-self/net/route")?;
    let number = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::from_be);
    Ok(table
        .lines()
        .filter_map(|line| {
            let columns: Vec<_> = line.split_ascii_whitespace().collect();
            Some((number(columns.get(1)?)?, number(columns.get(7)?)?.leading_ones() as u8))
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Anonymous;
    use crate::tun::{Tun, TunConfig};

    fn namespace() -> Anonymous {
        Anonymous::create()
            .unwrap_or_else(|error| panic!("this test needs root to create network namespaces: {error}"))
    }

    fn device(namespace: &Anonymous, addrs: impl Into<Vec<Prefix>>, routes: &[&str]) -> Tun {
        let routes = routes.iter().map(|route| route.parse().unwrap()).collect();
        let namespace = Some(namespace.path());
        Tun::open(&TunConfig { namespace, addrs: addrs.into(), routes, ..TunConfig::default() }).unwrap()
    }

    fn text(prefixes: [Prefix; 2]) -> [String; 2] {
        prefixes.map(|prefix| prefix.to_string())
    }

    #[test]
    fn reserve_returns_lowest_free_block() {
        let namespace = namespace();
        let first = namespace.enter(Block::reserve).unwrap().unwrap();
        assert_eq!(text(first.fixed()), ["100.64.0.1/16", "fd61:6972:6c6b::6440:1/112"]);
        assert_eq!(text(first.mobile()), ["100.64.0.2/16", "fd61:6972:6c6b::6440:2/112"]);
        let second = namespace.enter(Block::reserve).unwrap().unwrap();
        assert_eq!(text(second.fixed())[0], "100.65.0.1/16");
        drop(first);
        assert_eq!(text(namespace.enter(Block::reserve).unwrap().unwrap().fixed())[0], "100.64.0.1/16");
    }

    #[test]
    fn reserve_skips_addresses_used_by_other_devices() {
        let namespace = namespace();
        let _vpn = device(&namespace, ["100.64.3.4/32".parse().unwrap()], &["100.65.128.0/17"]);
        // Host 2 of a network that is not an airlink block.
        let _other = device(&namespace, ["192.0.2.2/24".parse().unwrap()], &["0.0.0.0/0"]);
        let block = namespace.enter(Block::reserve).unwrap().unwrap();
        assert_eq!(text(block.fixed())[0], "100.66.0.1/16");
    }

    #[test]
    fn nested_links_subdivide_block_of_mobile_side() {
        let outer = namespace();
        let mut block = outer.enter(Block::reserve).unwrap().unwrap();
        for expected in ["100.64.16.1/20", "100.64.17.1/24", "100.64.17.17/28"] {
            let mobile = namespace();
            let _device = device(&mobile, block.mobile(), &["0.0.0.0/0"]);
            block = mobile.enter(Block::reserve).unwrap().unwrap();
            assert_eq!(text(block.fixed())[0], expected);
        }
        let innermost = namespace();
        let _device = device(&innermost, block.mobile(), &[]);
        assert!(matches!(innermost.enter(Block::reserve).unwrap(), Err(BlockError::NoneLeft)));
    }
}
