//! A TUN device at a port of a machine, with its capture and counters.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use airwire::time::Instant;
use serde::Serialize;

use super::buffer_pool::BufferPool;
use super::{DriverError, MAX_PACKET, is_refusal};
use crate::capture::Capture;
use crate::lateness::Lateness;
use crate::offload::{Batch, Segmenter};
use crate::output::OutputError;
use crate::reactor::Clock;
use crate::tun::{DeviceError, Tun};

/// A TUN device at one of the machine's ports. The endpoint with index `i` is port `i`.
pub struct Endpoint {
    tun: Tun,
    tap: Option<Capture>,
    traffic: Traffic,
    /// With offload: data that was read and is still to be split into packets.
    incoming: Option<Segmenter>,
    /// With offload: packets that leave with the next write.
    outgoing: Option<Batch>,
    /// Due times of the packets in `outgoing`. Packets that leave in the call in which they arrive do not have
    /// one.
    due: Vec<Instant>,
}

/// State that all endpoints share.
pub(super) struct Shared<'a> {
    pub(super) clock: Clock,
    pub(super) lateness: &'a mut Lateness,
    pub(super) buffers: BufferPool,
}

/// Actual and due time of a packet's departure.
#[derive(Clone, Copy)]
pub(super) struct Departure {
    pub(super) at: Instant,
    /// `None`: the packet leaves in the call in which it arrived.
    pub(super) due: Option<Instant>,
}

/// Counters of a device, from the point of view of the kernel on its other side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    /// Packets that the kernel sent, read from the device.
    pub sent_packets: u64,
    /// Bytes of these packets, including IP headers.
    pub sent_bytes: u64,
    /// Packets that the kernel received, written to the device.
    pub received_packets: u64,
    /// Bytes of these packets, including IP headers.
    pub received_bytes: u64,
    /// Packets that the kernel refused. See [`is_refusal`] for the reasons.
    pub refused_packets: u64,
    /// Reads that returned packets. With offload, one read may return many.
    pub reads: u64,
    /// Writes of packets. With offload, one write may carry many.
    pub writes: u64,
}

impl Endpoint {
    /// Creates an endpoint. `tap` captures every packet that crosses the device, in both directions. With
    /// offload, the machine and `tap` still see each packet separately.
    pub fn new(tun: Tun, tap: Option<Capture>) -> Self {
        let incoming = tun.offloads().then(|| Segmenter::new(MAX_PACKET));
        let outgoing = tun.offloads().then(Batch::default);
        Self { tun, tap, traffic: Traffic::default(), incoming, outgoing, due: Vec::new() }
    }

    /// Name of the interface.
    pub fn name(&self) -> &str {
        self.tun.name()
    }

    /// Counters since the creation of the endpoint.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Packets that the kernel dropped because the device's queue was full. They never reached the machine.
    pub fn kernel_drops(&self) -> Result<u64, DeviceError> {
        self.tun.kernel_drops()
    }

    /// Size of the largest expected packet.
    pub(super) fn mtu(&self) -> usize {
        self.tun.mtu()
    }

    /// Whether packets that are sent wait for [`Self::write_out`].
    pub(super) fn has_offload(&self) -> bool {
        self.outgoing.is_some()
    }

    /// Reads once and returns the first packet. [`Self::next_packet`] returns further packets. `None`: no
    /// packet is available.
    pub(super) fn read(
        &mut self,
        at: Instant,
        buffers: &mut BufferPool,
    ) -> Result<Option<Vec<u8>>, DriverError> {
        let read = match &mut self.incoming {
            None => buffers.read(&self.tun),
            Some(segmenter) => self
                .tun
                .fill(segmenter)
                .map(|filled| if filled { buffers.next_packet(segmenter) } else { None }),
        };
        let Some(packet) = read.map_err(|source| self.error(source))? else { return Ok(None) };
        self.traffic.reads += 1;
        self.count_arrival(at, &packet)?;
        Ok(Some(packet))
    }

    /// Returns the next packet of the last read.
    pub(super) fn next_packet(
        &mut self,
        at: Instant,
        buffers: &mut BufferPool,
    ) -> Result<Option<Vec<u8>>, DriverError> {
        let Some(packet) = self.incoming.as_mut().and_then(|segmenter| buffers.next_packet(segmenter)) else {
            return Ok(None);
        };
        self.count_arrival(at, &packet)?;
        Ok(Some(packet))
    }

    fn count_arrival(&mut self, at: Instant, packet: &[u8]) -> Result<(), OutputError> {
        self.traffic.sent_packets += 1;
        self.traffic.sent_bytes += packet.len() as u64;
        self.capture(at, packet)
    }

    /// Writes the packet. With offload, it may stay in a batch until [`Self::write_out`], which must run
    /// before the driver waits.
    pub(super) fn send(
        &mut self,
        departure: Departure,
        mut packet: Vec<u8>,
        shared: &mut Shared<'_>,
    ) -> Result<(), DriverError> {
        self.capture(departure.at, &packet)?;
        if self.outgoing.is_some() {
            if !self.join(&mut packet) {
                self.write_out(shared)?;
                // An empty batch accepts any packet.
                self.join(&mut packet);
            }
            self.due.extend(departure.due);
        } else {
            if let Some(due) = departure.due {
                shared.lateness.record(departure.at - due);
            }
            let result = self.tun.send(&packet);
            self.count_write(result, 1, packet.len())?;
        }
        shared.buffers.put(packet);
        Ok(())
    }

    fn join(&mut self, packet: &mut Vec<u8>) -> bool {
        self.outgoing.as_mut().is_some_and(|outgoing| outgoing.join(packet))
    }

    /// Writes the packets of the batch.
    pub(super) fn write_out(&mut self, shared: &mut Shared<'_>) -> Result<(), DriverError> {
        let Some(outgoing) = self.outgoing.as_mut().filter(|outgoing| outgoing.count() > 0) else {
            return Ok(());
        };
        let now = shared.clock.now();
        for due in self.due.drain(..) {
            shared.lateness.record(now - due);
        }
        let (count, octets) = (outgoing.count(), outgoing.octets());
        let result = self.tun.send_batch(outgoing);
        outgoing.clear();
        self.count_write(result, count, octets)
    }

    fn count_write(
        &mut self,
        result: io::Result<()>,
        packets: usize,
        octets: usize,
    ) -> Result<(), DriverError> {
        self.traffic.writes += 1;
        match result {
            Ok(()) => {
                self.traffic.received_packets += packets as u64;
                self.traffic.received_bytes += octets as u64;
                Ok(())
            }
            Err(error) if is_refusal(&error) => {
                self.traffic.refused_packets += packets as u64;
                Ok(())
            }
            Err(source) => Err(self.error(source)),
        }
    }

    fn error(&self, source: io::Error) -> DriverError {
        DriverError::device(self.name(), source)
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
