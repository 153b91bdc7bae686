//! TUN devices: whole IP packets in and out of a kernel, in any network namespace.

#![expect(unsafe_code, reason = "a device lends its descriptor")]

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::PathBuf;

use tun_tap::{Iface, Mode};

pub use crate::interface::new_devices_have_ipv6;
use crate::interface::{self, Counters, Interface};
use crate::netns::{self, NamespaceError};
use crate::prefix::Prefix;

/// How a device is made.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Interface name; `%d` lets the kernel choose a number.
    pub name: String,
    /// Name under /run/netns, or a path. `None`: where the caller is.
    pub namespace: Option<PathBuf>,
    /// Addresses of the kernel's end.
    pub addrs: Vec<Prefix>,
    /// Addresses of whoever is behind the device: no interface of the kernel's may have one of them.
    pub behind: Vec<IpAddr>,
    /// What the kernel sends into the device beside the networks of its addresses.
    pub routes: Vec<Prefix>,
    /// The largest packet in either direction, in octets.
    pub mtu: u16,
    /// Packets that the kernel keeps for us while we are not reading. What does not fit it drops.
    pub queue_len: u32,
}

impl Default for TunConfig {
    /// The queue holds what a gigabit brings in the longest pause that a busy machine makes (0.1 s).
    fn default() -> Self {
        Self {
            name: "airtcp%d".to_owned(),
            namespace: None,
            addrs: Vec::new(),
            behind: Vec::new(),
            routes: Vec::new(),
            mtu: 1500,
            queue_len: 10_000,
        }
    }
}

/// Why a device cannot be made or read. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel or the container has no TUN driver.
    #[error(
        "there is no /dev/net/tun: load the driver (`modprobe tun`), or give the container the device (`--device /dev/net/tun`)"
    )]
    NoDriver,
    /// The file mode of the driver's node forbids it.
    #[error(
        "/dev/net/tun may not be opened: run as root, or let root do `chmod 666 /dev/net/tun`, which is the usual mode"
    )]
    NodeNotPermitted,
    /// CAP_NET_ADMIN is missing.
    #[error(
        "not allowed to make or configure the device `{name}`: run as root or with CAP_NET_ADMIN, or inside `unshare --user --map-root-user --net`"
    )]
    NotPermitted {
        /// Of the device, as it was asked for.
        name: String,
    },
    /// Another program has it open.
    #[error("the device `{name}` is in use by another program: choose another name or end that program")]
    Busy {
        /// Of the device, as it was asked for.
        name: String,
    },
    /// The name belongs to another sort of interface.
    #[error(
        "`{name}` exists and is not an ordinary TUN device: choose another name, or remove it with `ip link del {name}`"
    )]
    NotATun {
        /// Of the interface.
        name: String,
    },
    /// The kernel would refuse the name.
    #[error(
        "`{name}` is not an interface name: 1 to 15 letters, digits, `-`, `_` or `.`, and at most one `%d` for a number"
    )]
    BadName {
        /// As it was asked for.
        name: String,
    },
    /// IPv6 is switched off for this device.
    #[error(
        "the device `{name}` cannot have {prefix}: IPv6 is disabled here; allow it with `sysctl net.ipv6.conf.default.disable_ipv6=0`, or leave the IPv6 addresses out"
    )]
    NoIpv6 {
        /// Of the device.
        name: String,
        /// The address or route that was asked for.
        prefix: Prefix,
    },
    /// The MTU is too small for IPv6.
    #[error("the device `{name}` cannot have {prefix}: an MTU of {mtu} is below the 1280 that IPv6 needs")]
    Ipv6Mtu {
        /// Of the device.
        name: String,
        /// The address or route that was asked for.
        prefix: Prefix,
        /// In octets; less than [`IPV6_MTU`].
        mtu: u16,
    },
    /// Another interface has the address: the kernel would answer for both, and route to one of them.
    #[error(
        "the device `{name}` cannot have {addr}: `{holder}` has it already; choose another address, or end what made that"
    )]
    AddressTaken {
        /// Of the device, as it was asked for.
        name: String,
        /// The address that was asked for.
        addr: IpAddr,
        /// The interface that has it.
        holder: String,
    },
    /// The namespace that the device belongs in cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Any other error while an open device is configured or read.
    #[error("cannot {what} of the device `{name}`: {source}")]
    Configure {
        /// Of the device.
        name: String,
        /// As a verb with its object.
        what: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Any other error while a device is opened.
    #[error("cannot open a device named `{name}`: {source}")]
    Open {
        /// Of the device, as it was asked for.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
}

/// RFC 8200 §5: a link with a smaller MTU has no IPv6.
pub const IPV6_MTU: u16 = 1280;

/// An open device. It goes away when this value is dropped.
#[derive(Debug)]
pub struct Tun {
    iface: Iface,
    counters: Counters,
}

impl Tun {
    /// Opens the device inside its namespace and brings it up, ready and non-blocking.
    pub fn open(config: &TunConfig) -> Result<Self, DeviceError> {
        match &config.namespace {
            // The descriptor stays usable everywhere; only opening and configuring must happen inside.
            Some(namespace) => netns::enter(namespace, || Self::open_here(config))?,
            None => Self::open_here(config),
        }
    }

    /// Interface name, as chosen by the kernel if it was asked to.
    pub fn name(&self) -> &str {
        self.iface.name()
    }

    /// The next packet that the kernel sends; `None` if there is none now.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match self.iface.recv(buffer) {
                Ok(len) => return Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Hands the kernel a packet. When this returns, the kernel has processed it, up to the socket that it is for.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            match self.iface.send(packet) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Packets that the kernel had for us and dropped because its queue was full.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        let drops = self.counters.transmit_drops(self.name());
        drops.map_err(|source| self.configure_error("read the counters", source))
    }

    fn open_here(config: &TunConfig) -> Result<Self, DeviceError> {
        if !is_interface_name(&config.name) {
            return Err(DeviceError::BadName { name: config.name.clone() });
        }
        let iface = Iface::without_packet_info(&config.name, Mode::Tun)
            .map_err(|source| open_error(&config.name, source))?;
        let counters = Counters::open().map_err(|source| DeviceError::Configure {
            name: config.name.clone(),
            what: "find the counters".to_owned(),
            source,
        })?;
        let tun = Self { iface, counters };
        tun.configure(config)?;
        Ok(tun)
    }

    fn configure(&self, config: &TunConfig) -> Result<(), DeviceError> {
        let step = |what: &str| {
            let what = what.to_owned();
            move |source: io::Error| self.configure_error(what, source)
        };
        self.iface.set_non_blocking().map_err(step("set the mode"))?;
        // Offloads belong to the device and outlive whoever switched them on: a persistent one may still have them,
        // and then hands us packets larger than its MTU.
        interface::no_offloads(self.as_fd()).map_err(step("switch off the offloads"))?;
        let interface = Interface::by_name(self.name()).map_err(step("find the index"))?;
        interface.set_mtu(config.mtu).map_err(step(&format!("set the MTU {}", config.mtu)))?;
        match interface.set_queue_len(config.queue_len) {
            // In a user namespace nobody may (the kernel asks for the capability outside): a shorter queue will do.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::debug!("{} keeps its queue length: {error}", self.name());
            }
            result => result.map_err(step("set the queue length"))?,
        }
        if config.namespace.is_some() {
            let ipv6 = config.addrs.iter().any(|prefix| prefix.addr().is_ipv6());
            interface.quiet_ipv6(ipv6);
        }
        interface.up().map_err(step("set the state up"))?;
        let v6 = |prefix: &&Prefix| prefix.addr().is_ipv6();
        if let Some(prefix) = config.addrs.iter().chain(&config.routes).find(v6)
            && !interface.has_ipv6()
        {
            let (name, prefix, mtu) = (self.name().to_owned(), *prefix, config.mtu);
            return Err(match mtu {
                ..IPV6_MTU => DeviceError::Ipv6Mtu { name, prefix, mtu },
                _ => DeviceError::NoIpv6 { name, prefix },
            });
        }
        let interfaces = interface::addresses().map_err(step("compare the addresses"))?;
        let taken = config.addrs.iter().map(|prefix| prefix.addr()).chain(config.behind.iter().copied());
        for addr in taken {
            // A persistent device may have them from before.
            let held = |(holder, other): &&(String, IpAddr)| *other == addr && holder != self.name();
            if let Some((holder, _)) = interfaces.iter().find(held) {
                let (name, holder) = (self.name().to_owned(), holder.clone());
                return Err(DeviceError::AddressTaken { name, addr, holder });
            }
        }
        for prefix in &config.addrs {
            interface.add_addr(*prefix).map_err(step(&format!("set the address {prefix}")))?;
        }
        for prefix in &config.routes {
            interface.add_route(*prefix).map_err(step(&format!("set the route {prefix}")))?;
        }
        Ok(())
    }

    fn configure_error(&self, what: impl Into<String>, source: io::Error) -> DeviceError {
        let name = self.name().to_owned();
        match source.kind() {
            io::ErrorKind::PermissionDenied => DeviceError::NotPermitted { name },
            _ => DeviceError::Configure { name, what: what.into(), source },
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor is open as long as `iface`, which the returned lifetime borrows.
        unsafe { BorrowedFd::borrow_raw(self.iface.as_raw_fd()) }
    }
}

/// The kernel's rule (`dev_valid_name`), without the names that confuse a shell.
fn is_interface_name(name: &str) -> bool {
    let plain = name.replacen("%d", "0", 1);
    (1..=15).contains(&name.len())
        && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && plain != "."
        && plain != ".."
}

/// `tun-tap` opens the node and makes the device in one call; which of the two failed shows in the code.
fn open_error(name: &str, source: io::Error) -> DeviceError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => DeviceError::NoDriver,
        Some(libc::EACCES) => DeviceError::NodeNotPermitted,
        Some(libc::EPERM) => DeviceError::NotPermitted { name },
        Some(libc::EBUSY) => DeviceError::Busy { name },
        Some(libc::EINVAL) => DeviceError::NotATun { name },
        _ => DeviceError::Open { name, source },
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::interface::enable_ipv6;
    use crate::netns::Namespace;

    fn namespace() -> Namespace {
        Namespace::create().unwrap_or_else(|error| panic!("this test makes a network namespace: {error}"))
    }

    fn config(namespace: &Namespace) -> TunConfig {
        TunConfig {
            namespace: Some(namespace.name().into()),
            addrs: vec!["10.7.0.1/24".parse().unwrap(), "fd07::1/64".parse().unwrap()],
            routes: vec!["10.8.0.0/16".parse().unwrap(), "fd08::/32".parse().unwrap()],
            ..TunConfig::default()
        }
    }

    /// The UDP packets that are waiting, as (IP version, length).
    fn udp(tun: &Tun) -> Vec<(u8, usize)> {
        let mut buffer = [0; 2000];
        let mut packets = Vec::new();
        while let Some(len) = tun.recv(&mut buffer).unwrap() {
            let version = buffer[0] >> 4;
            let protocol = if version == 4 { buffer[9] } else { buffer[6] };
            if protocol == 17 {
                packets.push((version, len));
            }
        }
        packets
    }

    #[test]
    fn addresses_and_routes_of_both_families_lead_into_the_device() {
        let namespace = namespace();
        let tun = Tun::open(&config(&namespace)).unwrap();
        assert!(tun.name().starts_with("airtcp"));
        namespace
            .enter(|| {
                for (from, to) in [("10.7.0.1:0", "10.7.0.9:9"), ("10.7.0.1:0", "10.8.1.2:9")] {
                    UdpSocket::bind(from).unwrap().send_to(b"four", to).unwrap();
                }
                for (from, to) in [("[fd07::1]:0", "[fd07::9]:9"), ("[fd07::1]:0", "[fd08:0:1::2]:9")] {
                    UdpSocket::bind(from).unwrap().send_to(b"six", to).unwrap();
                }
            })
            .unwrap();
        assert_eq!(udp(&tun), [(4, 32), (4, 32), (6, 51), (6, 51)]);
        assert_eq!(tun.kernel_drops().unwrap(), 0);
    }

    #[test]
    fn an_idle_device_is_silent() {
        let namespace = namespace();
        let tun = Tun::open(&config(&namespace)).unwrap();
        let mut reactor = crate::reactor::Reactor::new(crate::reactor::Clock::start()).unwrap();
        let second = airwire::time::Instant::from_secs(1);
        while reactor.wait(Some(second)).unwrap().is_empty() {}
        let mut buffer = [0; 2000];
        let chatter = std::iter::from_fn(|| tun.recv(&mut buffer).unwrap().map(|len| buffer[..len].to_vec()));
        assert_eq!(chatter.collect::<Vec<_>>(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn every_address_of_a_device_is_its_own() {
        let namespace = namespace();
        let addrs = ["10.7.0.1/24", "10.7.0.2/24", "192.0.2.1/32", "10.9.0.1/16", "fd07::1/64", "fd07::2/64"];
        let addrs = addrs.map(|addr| addr.parse().unwrap()).to_vec();
        let _tun = Tun::open(&TunConfig { addrs: addrs.clone(), ..config(&namespace) }).unwrap();
        for prefix in addrs {
            let bound = namespace.enter(|| UdpSocket::bind((prefix.addr(), 0))).unwrap();
            assert!(bound.is_ok(), "{prefix}: {bound:?}");
        }
    }

    #[test]
    fn where_ipv6_is_disabled_an_address_of_it_is_an_error_that_says_so_and_one_of_ipv4_is_none() {
        let namespace = namespace();
        for devices in ["all", "default"] {
            namespace.sysctl(&format!("net.ipv6.conf.{devices}.disable_ipv6"), "1").unwrap();
        }
        assert!(!namespace.enter(new_devices_have_ipv6).unwrap());
        let error = Tun::open(&config(&namespace)).unwrap_err();
        assert!(error.to_string().contains("IPv6 is disabled here"), "{error}");
        let v4 = |prefixes: Vec<Prefix>| prefixes.into_iter().filter(|one| one.addr().is_ipv4()).collect();
        let TunConfig { addrs, routes, .. } = config(&namespace);
        drop(Tun::open(&TunConfig { addrs: v4(addrs), routes: v4(routes), ..config(&namespace) }).unwrap());

        namespace.enter(enable_ipv6).unwrap();
        let _tun = Tun::open(&TunConfig { routes: Vec::new(), ..config(&namespace) }).unwrap();
        let small = Tun::open(&TunConfig { mtu: 1000, ..config(&namespace) }).unwrap_err();
        assert!(small.to_string().contains("1280"), "{small}");
    }

    #[test]
    fn drops_of_a_full_queue_are_counted() {
        let namespace = namespace();
        let tun = Tun::open(&TunConfig { queue_len: 3, ..config(&namespace) }).unwrap();
        namespace
            .enter(|| {
                let socket = UdpSocket::bind("10.7.0.1:0").unwrap();
                for _ in 0..8 {
                    socket.send_to(b"four", "10.7.0.9:9").unwrap();
                }
            })
            .unwrap();
        let kept = udp(&tun).len() as u64;
        assert!((3..8).contains(&kept), "{kept} were kept");
        assert_eq!(tun.kernel_drops().unwrap(), 8 - kept);
    }

    #[test]
    fn a_packet_for_the_kernel_reaches_its_socket_before_send_returns() {
        let namespace = namespace();
        let tun = Tun::open(&config(&namespace)).unwrap();
        let socket = namespace.enter(|| UdpSocket::bind("10.7.0.1:5678").unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        // UDP 10.7.0.2:1234 > 10.7.0.1:5678 without a UDP checksum.
        let mut packet = vec![0x45, 0, 0, 32, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 7, 0, 2, 10, 7, 0, 1];
        let sum: u32 = packet.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend([0x04, 0xd2, 0x16, 0x2e, 0, 12, 0, 0, 1, 2, 3, 4]);
        tun.send(&packet).unwrap();
        let mut buffer = [0; 16];
        let (len, from) = socket.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], from), (&[1, 2, 3, 4][..], "10.7.0.2:1234".parse().unwrap()));
    }

    #[test]
    fn errors_say_what_to_do() {
        let namespace = namespace();
        let tun = Tun::open(&config(&namespace)).unwrap();
        let open =
            |name: &str| Tun::open(&TunConfig { name: name.to_owned(), ..config(&namespace) }).unwrap_err();
        assert!(matches!(open(tun.name()), DeviceError::Busy { .. }));
        assert!(matches!(open("lo"), DeviceError::NotATun { .. }));
        for name in ["", "a/b", "a b", "a-name-too-long-by-one", "%d%d", "%s", ".."] {
            assert!(matches!(open(name), DeviceError::BadName { .. }), "{name}");
        }
        let missing = TunConfig { namespace: Some("no-such-namespace".into()), ..TunConfig::default() };
        assert!(Tun::open(&missing).unwrap_err().to_string().contains("ip netns add"));
        let mtu = Tun::open(&TunConfig { mtu: 10, ..config(&namespace) }).unwrap_err();
        assert!(mtu.to_string().contains("MTU 10"), "{mtu}");
        assert!(open_error("x", io::Error::from_raw_os_error(libc::ENOENT)).to_string().contains("modprobe"));
        assert!(
            open_error("x", io::Error::from_raw_os_error(libc::EACCES)).to_string().contains("chmod 666")
        );
        assert!(
            open_error("x", io::Error::from_raw_os_error(libc::EPERM)).to_string().contains("CAP_NET_ADMIN")
        );
    }
}
