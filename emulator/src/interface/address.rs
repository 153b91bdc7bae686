//! Addresses of an interface by netlink (rtnetlink(7)), in the namespace of the calling thread. With ioctl,
//! an interface can have only one IPv4 address: a second one would replace the first.

use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use crate::prefix::Prefix;

/// Size of `struct nlmsghdr`. The error code of an answer follows it.
const HEADER: usize = 16;

/// Adds an address. An existing one is kept.
pub(super) fn add(index: u32, prefix: Prefix) -> io::Result<()> {
    let route = SockProtocol::NetlinkRoute;
    let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, route)?;
    send(socket.as_raw_fd(), &new_address(index, prefix), MsgFlags::empty())?;
    let mut answer = [0; 4096];
    let len = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty())?;
    let kind = answer[..len].get(4..6).map(|kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let code = answer[..len].get(HEADER..HEADER + 4).and_then(|code| code.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        // An acknowledgment is an error message with the code 0.
        (Some(kind), Some(0)) if i32::from(kind) == libc::NLMSG_ERROR => Ok(()),
        (Some(kind), Some(code)) if i32::from(kind) == libc::NLMSG_ERROR => {
            Err(io::Error::from_raw_os_error(-code))
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel did not acknowledge it")),
    }
}

/// RTM_NEWADDR, which consists of a header, `struct ifaddrmsg`, and the address as the only attribute,
/// IFA_LOCAL.
fn new_address(index: u32, prefix: Prefix) -> Vec<u8> {
    let (family, octets) = match prefix.addr() {
        IpAddr::V4(addr) => (libc::AF_INET, addr.octets().to_vec()),
        IpAddr::V6(addr) => (libc::AF_INET6, addr.octets().to_vec()),
    };
    let attribute = 4 + octets.len();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_REPLACE;
    let mut message = Vec::new();
    message.extend(((HEADER + 8 + attribute) as u32).to_ne_bytes());
    message.extend(libc::RTM_NEWADDR.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    // The sequence number, which is not needed for a single message, and the port, which the kernel fills in.
    message.extend([0; 8]);
    // No flags. Scope: universe (global).
    message.extend([family as u8, prefix.bit_len(), 0, 0]);
    message.extend(index.to_ne_bytes());
    message.extend((attribute as u16).to_ne_bytes());
    message.extend(libc::IFA_LOCAL.to_ne_bytes());
    message.extend(octets);
    message
}
