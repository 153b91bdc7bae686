//! Addresses and sizes that all candidates share.

use std::net::Ipv4Addr;

/// Addresses of the device: [`KERNEL`] is the kernel's end, [`OURS`] is this program's end.
pub(crate) const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 1);
pub(crate) const OURS: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// A destination behind the kernel. The kernel does not forward, so it drops packets to this address.
pub(crate) const NOWHERE: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
pub(crate) const PORT: u16 = 5001;
pub(crate) const MTU: u16 = 1500;
/// Payload of a full segment with timestamps. All candidates send this size, so that their results
/// are comparable.
pub(crate) const MSS: usize = MTU as usize - 40 - 12;
