//! Configuration of interfaces in the namespace of the calling thread.

#![expect(unsafe_code, reason = "interfaces are configured by ioctl")]
#![expect(clippy::disallowed_methods, reason = "the kernel takes a moment to take an address into use")]

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, socket};

use crate::prefix::Prefix;

mod address;

mod ioctl {
    use nix::{ioctl_read_bad, ioctl_write_ptr_bad};

    ioctl_read_bad!(get_flags, libc::SIOCGIFFLAGS, libc::ifreq);
    ioctl_write_ptr_bad!(set_flags, libc::SIOCSIFFLAGS, libc::ifreq);
    ioctl_write_ptr_bad!(set_mtu, libc::SIOCSIFMTU, libc::ifreq);
    ioctl_write_ptr_bad!(set_queue_len, libc::SIOCSIFTXQLEN, libc::ifreq);
    ioctl_write_ptr_bad!(add_route_v4, libc::SIOCADDRT, libc::rtentry);
    ioctl_write_ptr_bad!(add_route_v6, libc::SIOCADDRT, super::In6RtMsg);
}

/// `struct in6_rtmsg` of linux/ipv6_route.h. The one in libc does not have public fields.
#[repr(C)]
struct In6RtMsg {
    dst: libc::in6_addr,
    src: libc::in6_addr,
    gateway: libc::in6_addr,
    kind: u32,
    dst_len: u16,
    src_len: u16,
    metric: u32,
    info: libc::c_ulong,
    flags: u32,
    ifindex: libc::c_int,
}

/// Brings up the loopback interface of the calling thread's namespace.
pub(crate) fn loopback_up() -> io::Result<()> {
    Interface::by_name("lo")?.up()
}

/// Interface counters of a network namespace.
#[derive(Debug)]
pub(crate) struct Counters(File);

impl Counters {
    /// Opens the counters of the calling thread's namespace. Then any namespace can read them, without
    /// privileges.
    pub(crate) fn open() -> io::Result<Self> {
        File::open("/proc/thread-self/net/dev").map(Self)
    }

    /// Packets that the kernel dropped on transmission through this interface.
    pub(crate) fn transmit_drops(&self, name: &str) -> io::Result<u64> {
        const DROPS: usize = 11;
        let (mut file, mut text) = (&self.0, String::new());
        file.rewind()?;
        file.read_to_string(&mut text)?;
        text.lines()
            .filter_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))
            .find_map(|counters| counters.split_ascii_whitespace().nth(DROPS)?.parse().ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such interface"))
    }
}

/// Addresses of all interfaces in the calling thread's namespace.
pub(crate) fn addresses() -> io::Result<Vec<(String, IpAddr)>> {
    let addr = |storage: SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|addr| IpAddr::V4(addr.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|addr| IpAddr::V6(addr.ip())))
    };
    Ok(getifaddrs()?.filter_map(|entry| Some((entry.interface_name, addr(entry.address?)?))).collect())
}

const IPV6: &str = "/proc/sys/net/ipv6";

/// Whether this kernel has IPv6.
pub(crate) fn has_ipv6() -> bool {
    Path::new(IPV6).exists()
}

/// Whether new devices in the calling thread's namespace can have IPv6 addresses.
pub fn new_devices_have_ipv6() -> bool {
    ipv6_is_on("default")
}

/// Enables IPv6 in the calling thread's namespace, for existing and new devices. Errors are only logged:
/// callers check later whether IPv6 is enabled.
pub(crate) fn enable_ipv6() {
    for devices in ["all", "default"] {
        write_setting(devices, "disable_ipv6", "0");
    }
}

fn write_setting(device: &str, setting: &str, value: &str) {
    let path = format!("{IPV6}/conf/{device}/{setting}");
    if let Err(error) = fs::write(&path, value) {
        tracing::debug!("cannot set {path} to {value}: {error}");
    }
}

fn ipv6_is_on(device: &str) -> bool {
    fs::read_to_string(format!("{IPV6}/conf/{device}/disable_ipv6")).is_ok_and(|text| text.trim() == "0")
}

pub(crate) struct Interface {
    name: String,
    index: libc::c_int,
    /// Socket that identifies the namespace. Any socket works, since it stays in the namespace where it was
    /// opened.
    control: OwnedFd,
}

impl Interface {
    pub(crate) fn by_name(name: &str) -> io::Result<Self> {
        let control = socket(AddressFamily::Inet, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?;
        let index = nix::net::if_::if_nametoindex(name)? as libc::c_int;
        Ok(Self { name: name.to_owned(), index, control })
    }

    pub(crate) fn up(&self) -> io::Result<()> {
        let mut request = self.request(libc::__c_anonymous_ifr_ifru { ifru_flags: 0 });
        // SAFETY: an ifreq with a terminated name, and SIOCGIFFLAGS fills in ifru_flags, which is then valid
        // to read.
        let flags = unsafe {
            ioctl::get_flags(self.fd(), &mut request)?;
            request.ifr_ifru.ifru_flags
        };
        let flags = flags | libc::IFF_UP as libc::c_short;
        let request = self.request(libc::__c_anonymous_ifr_ifru { ifru_flags: flags });
        // SAFETY: an ifreq with a terminated name and the union's flags set, as SIOCSIFFLAGS requires.
        unsafe { ioctl::set_flags(self.fd(), &request) }?;
        Ok(())
    }

    pub(crate) fn set_mtu(&self, mtu: u16) -> io::Result<()> {
        let request = self.request(libc::__c_anonymous_ifr_ifru { ifru_mtu: i32::from(mtu) });
        // SAFETY: an ifreq with a terminated name and the union's MTU set, as SIOCSIFMTU requires.
        unsafe { ioctl::set_mtu(self.fd(), &request) }?;
        Ok(())
    }

    pub(crate) fn set_queue_len(&self, packets: u32) -> io::Result<()> {
        // The kernel's ifr_qlen is the same int of the union as ifru_metric.
        let packets = i32::try_from(packets).map_err(io::Error::other)?;
        let request = self.request(libc::__c_anonymous_ifr_ifru { ifru_metric: packets });
        // SAFETY: an ifreq with a terminated name and the union's int set, as SIOCSIFTXQLEN requires.
        unsafe { ioctl::set_queue_len(self.fd(), &request) }?;
        Ok(())
    }

    /// Adds an address. The device must be up, since only then does the kernel create the route to the
    /// address's network.
    pub(crate) fn add_addr(&self, prefix: Prefix) -> io::Result<()> {
        address::add(self.index as u32, prefix)?;
        match prefix.addr() {
            IpAddr::V4(_) => Ok(()),
            IpAddr::V6(addr) => wait_until_local(addr),
        }
    }

    pub(crate) fn add_route(&self, prefix: Prefix) -> io::Result<()> {
        let network = prefix.network();
        match network.addr() {
            IpAddr::V4(addr) => self.add_route_v4(addr, network.bit_len()),
            IpAddr::V6(addr) => self.add_route_v6(addr, network.bit_len()),
        }
    }

    /// Whether IPv6 is enabled for this device.
    pub(crate) fn has_ipv6(&self) -> bool {
        ipv6_is_on(&self.name)
    }

    /// Keeps the kernel from sending unwanted packets, such as router solicitations. Errors are only logged,
    /// because the device works anyway.
    pub(crate) fn silence_ipv6(&self, used: bool) {
        let settings: &[(&str, &str)] = if used {
            &[("addr_gen_mode", "1"), ("accept_ra", "0"), ("router_solicitations", "0")]
        } else {
            &[("disable_ipv6", "1")]
        };
        for (setting, value) in settings {
            write_setting(&self.name, setting, value);
        }
    }

    fn add_route_v4(&self, network: Ipv4Addr, bit_len: u8) -> io::Result<()> {
        let netmask = Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(bit_len)).unwrap_or(0));
        // The name came from the kernel, so it does not contain NUL.
        let device = CString::new(self.name.as_str()).map_err(io::Error::other)?;
        // SAFETY: rtentry is plain C data, for which all zeroes are a valid value.
        let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
        route.rt_dst = sockaddr(network);
        route.rt_genmask = sockaddr(netmask);
        route.rt_flags = libc::RTF_UP;
        route.rt_dev = device.as_ptr().cast_mut();
        // SAFETY: SIOCADDRT on an AF_INET socket takes an rtentry, and rt_dev points to `device`, which
        // outlives the call.
        unsafe { ioctl::add_route_v4(self.fd(), &route) }?;
        Ok(())
    }

    fn add_route_v6(&self, network: Ipv6Addr, bit_len: u8) -> io::Result<()> {
        let unspecified = in6_addr(Ipv6Addr::UNSPECIFIED);
        let route = In6RtMsg {
            dst: in6_addr(network),
            src: unspecified,
            gateway: unspecified,
            kind: 0,
            dst_len: u16::from(bit_len),
            src_len: 0,
            metric: 1,
            info: 0,
            flags: u32::from(libc::RTF_UP),
            ifindex: self.index,
        };
        let control = control_v6()?;
        // SAFETY: SIOCADDRT on an AF_INET6 socket only reads an in6_rtmsg, whose layout In6RtMsg has.
        unsafe { ioctl::add_route_v6(control.as_raw_fd(), &route) }?;
        Ok(())
    }

    fn fd(&self) -> libc::c_int {
        self.control.as_fd().as_raw_fd()
    }

    fn request(&self, value: libc::__c_anonymous_ifr_ifru) -> libc::ifreq {
        let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: value };
        // The last byte stays zero, because the kernel's names are shorter than the array.
        for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(self.name.bytes()) {
            *to = from as libc::c_char;
        }
        request
    }
}

/// Time that the kernel may take to activate an IPv6 address. Its worker waits for a lock on all networks, and
/// has needed more than ten seconds on a busy machine.
const ACTIVATION_TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until an IPv6 address can be bound. The kernel activates a new address in a worker
/// (`addrconf_dad_work`), even without duplicate address detection, and adds its route last.
fn wait_until_local(addr: Ipv6Addr) -> io::Result<()> {
    let host_route = addr.octets().iter().map(|octet| format!("{octet:02x}")).collect::<String>() + " 80 ";
    let until = Instant::now() + ACTIVATION_TIMEOUT;
    while Instant::now() < until {
        if fs::read_to_string("/proc/thread-self/net/ipv6_route")?
            .lines()
            .any(|line| line.starts_with(&host_route))
        {
            return Ok(());
        }
        thread::sleep(Duration::from_millis(1));
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "the kernel did not activate it within a minute"))
}

fn control_v6() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::Inet6, SockType::Datagram, SockFlag::SOCK_CLOEXEC, None)?)
}

/// A `sockaddr_in` without a port, in the form that ifreq and rtentry contain.
fn sockaddr(addr: Ipv4Addr) -> libc::sockaddr {
    let mut sa_data = [0; 14];
    // Port and address in network byte order: the layout of sockaddr_in after its family.
    for (to, from) in sa_data[2..6].iter_mut().zip(addr.octets()) {
        *to = from as libc::c_char;
    }
    libc::sockaddr { sa_family: libc::AF_INET as libc::sa_family_t, sa_data }
}

fn in6_addr(addr: Ipv6Addr) -> libc::in6_addr {
    libc::in6_addr { s6_addr: addr.octets() }
}
