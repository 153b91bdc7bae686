//! A TUN device where packets go in and out of a machine, and what went through it.

use std::os::fd::{AsFd, BorrowedFd};

use airwire::time::Instant;
use serde::Serialize;

use super::{DriverError, Scratch, is_refusal};
use crate::capture::Capture;
use crate::output::OutputError;
use crate::tun::{DeviceError, Tun};

/// A TUN device at one of the machine's ports: the endpoint at index `i` is port `i`.
pub struct Endpoint {
    tun: Tun,
    tap: Option<Capture>,
    traffic: Traffic,
}

/// What went through a device. The kernel behind it has sent and received these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets that the kernel sent: read from the device.
    pub sent_packets: u64,
    /// Their octets, IP headers included.
    pub sent_bytes: u64,
    /// Packets that the kernel received: written to the device.
    pub received_packets: u64,
    /// Their octets, IP headers included.
    pub received_bytes: u64,
    /// Packets that the kernel refused; [`is_refusal`] says why it may.
    pub refused_packets: u64,
}

impl Endpoint {
    /// `tap` gets every packet that crosses the device, in either direction.
    pub fn new(tun: Tun, tap: Option<Capture>) -> Self {
        Self { tun, tap, traffic: Traffic::default() }
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// What went through since the beginning.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets that the kernel has dropped because the device's queue was full. No machine has seen them.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    /// The next packet, in memory that is used again if there is some. `None`: there is none to read.
    pub(super) fn recv(
        &mut self,
        at: Instant,
        scratch: &mut Scratch,
    ) -> Result<Option<Vec<u8>>, DriverError> {
        let len =
            self.tun.recv(&mut scratch.buffer).map_err(|source| DriverError::device(self.name(), source))?;
        let Some(len) = len else { return Ok(None) };
        let mut packet = scratch.done_with.pop().unwrap_or_default();
        packet.clear();
        packet.extend_from_slice(&scratch.buffer[..len]);
        self.traffic.sent_packets += 1;
        self.traffic.sent_bytes += len as u64;
        self.capture(at, &packet)?;
        Ok(Some(packet))
    }

    pub(super) fn send(&mut self, at: Instant, packet: &[u8]) -> Result<(), DriverError> {
        self.capture(at, packet)?;
        match self.tun.send(packet) {
            Ok(()) => {
                self.traffic.received_packets += 1;
                self.traffic.received_bytes += packet.len() as u64;
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                self.traffic.refused_packets += 1;
                Ok(())
            }
            Err(source) => Err(DriverError::device(self.name(), source)),
        }
    }

    fn capture(&mut self, at: Instant, packet: &[u8]) -> Result<(), OutputError> {
        self.tap.as_mut().map_or(Ok(()), |tap| tap.write(at, packet))
    }

    pub(super) fn flush_capture(&mut self) -> Result<(), OutputError> {
        self.tap.as_mut().map_or(Ok(()), Capture::flush)
    }
}

impl AsFd for Endpoint {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tun.as_fd()
    }
}
