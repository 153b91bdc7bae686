//! TUN devices: exchange of IP packets with a kernel, in any network namespace.

#[expect(unsafe_code, reason = "a device is opened by ioctl, and lends its descriptor")]
mod device;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use airwire::piece::Piece;
use device::Device;

pub use crate::interface::new_devices_have_ipv6;
use crate::interface::{self, Counters, Interface};
use crate::netns::{self, NamespaceError};
use crate::offload::{self, Batch, Header, Segmenter};
use crate::prefix::Prefix;

/// Configuration of a device.
#[derive(Clone, Debug)]
pub struct TunConfig {
    /// Interface name. `%d` lets the kernel choose a number.
    pub name: String,
    /// Name under /run/netns, or a path. `None`: the namespace of the caller.
    pub namespace: Option<PathBuf>,
    /// Addresses of the kernel's end.
    pub addrs: Vec<Prefix>,
    /// Addresses reached through the device. No interface of the kernel may have such an address.
    pub behind: Vec<IpAddr>,
    /// Destinations that the kernel routes into the device, in addition to the networks of its addresses.
    pub routes: Vec<Prefix>,
    /// The largest packet in either direction, in bytes.
    pub mtu: u16,
    /// Packets that the kernel queues while we are not reading. It drops packets beyond this number.
    pub queue_len: u32,
    /// Whether to use segmentation offload: the kernel splits large writes and hands over unsegmented data.
    /// See [`offload`].
    pub offload: bool,
}

impl Default for TunConfig {
    /// Returns a default configuration. Its queue holds the packets that a 1 Gbit/s link delivers in 0.1 s,
    /// the longest pause on a busy machine.
    fn default() -> Self {
        Self {
            name: "airtcp%d".to_owned(),
            namespace: None,
            addrs: Vec::new(),
            behind: Vec::new(),
            routes: Vec::new(),
            mtu: 1500,
            queue_len: 10_000,
            offload: false,
        }
    }
}

/// Reason why a device cannot be opened or read. Each message contains advice.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel or the container does not have a TUN driver.
    #[error(
        "there is no /dev/net/tun: load the driver (`modprobe tun`), or give the container the device (`--device /dev/net/tun`)"
    )]
    NoDriver,
    /// The file mode of the device node forbids access.
    #[error(
        "no permission to open /dev/net/tun: run as root, or let root run `chmod 666 /dev/net/tun`, which is the usual mode"
    )]
    NodeNotPermitted,
    /// CAP_NET_ADMIN is missing.
    #[error(
        "not allowed to create or configure {}: run as root or with CAP_NET_ADMIN, or inside `unshare --user --map-root-user --net`", device(.0)
    )]
    NotPermitted(String),
    /// Another program has the device open.
    #[error("the device `{0}` is in use by another program: choose another name or end that program")]
    Busy(String),
    /// The name belongs to another kind of interface.
    #[error(
        "`{0}` exists and is not an ordinary TUN device: choose another name, or remove it with `ip link del {0}`"
    )]
    NotATun(String),
    /// The kernel would refuse the name.
    #[error(
        "`{0}` is not an interface name: 1 to 15 letters, digits, `-`, `_` or `.`, and at most one `%d` for a number"
    )]
    BadName(String),
    /// IPv6 is disabled for this device.
    #[error(
        "the device `{name}` cannot have {prefix}: IPv6 is disabled here; enable it with `sysctl net.ipv6.conf.default.disable_ipv6=0`, or omit the IPv6 addresses"
    )]
    NoIpv6 {
        /// Name of the device.
        name: String,
        /// The requested address or route.
        prefix: Prefix,
    },
    /// The MTU is too small for IPv6.
    #[error("the device `{name}` cannot have {prefix}: IPv6 needs an MTU of at least 1280, not {mtu}")]
    Ipv6Mtu {
        /// Name of the device.
        name: String,
        /// The requested address or route.
        prefix: Prefix,
        /// The requested MTU in bytes, less than [`IPV6_MTU`].
        mtu: u16,
    },
    /// Another interface has the address. The kernel would answer for both interfaces, but route to only one.
    #[error(
        "the device `{name}` cannot have {addr}: `{holder}` already has it; choose another address, or end the program that created `{holder}`"
    )]
    AddressTaken {
        /// Requested name of the device.
        name: String,
        /// The requested address.
        addr: IpAddr,
        /// The interface that has the address.
        holder: String,
    },
    /// The namespace of the device cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// Any other error while an open device is configured or read.
    #[error("cannot {what} of the device `{name}`: {source}")]
    Configure {
        /// Name of the device.
        name: String,
        /// The failed operation, as a verb with its object.
        what: String,
        /// Error of the kernel.
        source: io::Error,
    },
    /// Any other error while a device is opened.
    #[error("cannot open {}: {source}", device(.name))]
    Open {
        /// Requested name of the device.
        name: String,
        /// Error of the kernel.
        source: io::Error,
    },
}

/// Describes a device in an error. A name with `%d` is not shown, because the kernel has not assigned a number.
fn device(requested: &str) -> String {
    if requested.contains("%d") { "a TUN device".to_owned() } else { format!("the device `{requested}`") }
}

/// Smallest MTU of a link with IPv6 (RFC 8200 §5).
pub const IPV6_MTU: u16 = 1280;

/// An open device. The kernel removes it when this value is dropped.
#[derive(Debug)]
pub struct Tun {
    device: Device,
    counters: Counters,
    /// MTU at the time of opening. It may have been changed since.
    mtu: usize,
}

impl Tun {
    /// Opens the device in its namespace and brings it up. The descriptor is non-blocking.
    pub fn open(config: &TunConfig) -> Result<Self, DeviceError> {
        match &config.namespace {
            // Only opening and configuring must happen in the namespace. The descriptor works everywhere.
            Some(namespace) => netns::enter(namespace, || Self::open_here(config))?,
            None => Self::open_here(config),
        }
    }

    /// Name of the interface, with the number that the kernel chose.
    pub fn name(&self) -> &str {
        self.device.name()
    }

    /// The largest packet that crosses the device, unless its MTU was changed later.
    pub fn mtu(&self) -> usize {
        self.mtu
    }

    /// Whether the device was opened with offload.
    pub fn offloads(&self) -> bool {
        self.device.offloads()
    }

    /// Reads the next packet that the kernel sends. `None`: no packet is available.
    ///
    /// # Panics
    /// Panics if the device was opened with offload. Use [`Self::fill`] for such a device.
    pub fn recv(&self, packet: &mut [u8]) -> io::Result<Option<usize>> {
        assert!(!self.device.offloads(), "a device with offload hands over more than packets");
        Ok(unless_blocked(|| self.device.read(packet))?.map(|(_, len)| len))
    }

    /// Sends a packet to the kernel. When this returns, the kernel has processed it up to the receiving
    /// socket.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        retry_interrupted(|| self.device.write(Header::Whole, std::iter::once(packet)))
    }

    /// Reads the next packet, or several segments as one packet, from the kernel. `false`: nothing is
    /// available.
    pub fn fill(&self, segmenter: &mut Segmenter) -> io::Result<bool> {
        let read = unless_blocked(|| self.device.read(segmenter.read_buffer()))?;
        if let Some((header, len)) = read {
            segmenter.accept_read(len, header);
        }
        Ok(read.is_some())
    }

    /// Sends a batch to the kernel, like [`Self::send`]. The batch keeps its packets. A device without
    /// offload takes only batches of one packet.
    pub fn send_batch(&self, batch: &mut Batch) -> io::Result<()> {
        let (header, parts) = batch.parts();
        retry_interrupted(|| self.device.write(header, parts.iter()))
    }

    /// Sends a piece to the kernel, like [`Self::send`]. A device without offload takes only whole packets.
    /// The piece does not change, except for header fields that the device needs.
    pub fn send_piece(&self, piece: &mut Piece) -> io::Result<()> {
        let header = offload::prepare(piece);
        retry_interrupted(|| self.device.write(header, piece.parts()))
    }

    /// Packets that the kernel dropped because the device's queue was full.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        let drops = self.counters.transmit_drops(self.name());
        drops.map_err(|source| self.configure_error("read the counters", source))
    }

    fn open_here(config: &TunConfig) -> Result<Self, DeviceError> {
        if !is_interface_name(&config.name) {
            return Err(DeviceError::BadName(config.name.clone()));
        }
        let device =
            Device::open(&config.name, config.offload).map_err(|source| open_error(&config.name, source))?;
        let counters = Counters::open().map_err(|source| DeviceError::Configure {
            name: device.name().to_owned(),
            what: "find the counters".to_owned(),
            source,
        })?;
        let tun = Self { device, counters, mtu: usize::from(config.mtu) };
        tun.configure(config)?;
        Ok(tun)
    }

    fn configure(&self, config: &TunConfig) -> Result<(), DeviceError> {
        let step = |what: &str| {
            let what = what.to_owned();
            move |source: io::Error| self.configure_error(what, source)
        };
        self.device.set_offload().map_err(step("set the offloads"))?;
        let interface = Interface::by_name(self.name()).map_err(step("find the index"))?;
        interface.set_mtu(config.mtu).map_err(step(&format!("set the MTU {}", config.mtu)))?;
        match interface.set_queue_len(config.queue_len) {
            // Not allowed in a user namespace (the kernel requires the capability in the initial user
            // namespace). A shorter queue is sufficient.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::debug!("{} keeps its default queue length: {error}", self.name());
            }
            result => result.map_err(step("set the queue length"))?,
        }
        if config.namespace.is_some() {
            let ipv6 = config.addrs.iter().any(|prefix| prefix.addr().is_ipv6());
            interface.silence_ipv6(ipv6);
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
            // A persistent device may have kept the addresses from an earlier use.
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
            io::ErrorKind::PermissionDenied => DeviceError::NotPermitted(name),
            _ => DeviceError::Configure { name, what: what.into(), source },
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}

/// Repeats a call that a signal has interrupted.
fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Returns `None` if the call would block.
fn unless_blocked<T>(call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    match retry_interrupted(call) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}

/// Applies the kernel's rule (`dev_valid_name`), and excludes names that need quoting in a shell.
fn is_interface_name(name: &str) -> bool {
    let plain = name.replacen("%d", "0", 1);
    (1..=15).contains(&name.len())
        && plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && plain != "."
        && plain != ".."
}

/// Converts an error of the call that opens the node and creates the device. The error code shows which of
/// the two failed.
fn open_error(name: &str, source: io::Error) -> DeviceError {
    let name = name.to_owned();
    match source.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => DeviceError::NoDriver,
        Some(libc::EACCES) => DeviceError::NodeNotPermitted,
        Some(libc::EPERM) => DeviceError::NotPermitted(name),
        Some(libc::EBUSY) => DeviceError::Busy(name),
        Some(libc::EINVAL) => DeviceError::NotATun(name),
        _ => DeviceError::Open { name, source },
    }
}
