//! The log of a run in virtual time. It has the same events as a host's log in real time, and its clock
//! begins at 1970.

use std::time::SystemTime;

use airlink::machine::Port;
use airtcp::events::Event;
use airtcp_sim::world::Listener;
use airtcp_tun::log::{HostDirection, Log};
use airwire::time::Instant;

/// Logs the events of all hosts, and the packets that `--pcap` records: those at the senders' devices.
pub(super) struct HostLog {
    log: Log,
    senders: Port,
}

impl HostLog {
    /// Returns `None` if the log levels hide the whole log.
    pub(super) fn if_enabled(senders: Port) -> Option<Self> {
        Some(Self { log: Log::if_enabled(SystemTime::UNIX_EPOCH)?, senders })
    }

    fn packet(&mut self, at: Instant, side: Port, direction: HostDirection, packet: &[u8]) {
        if side == self.senders {
            self.log.packet(at, direction, packet);
        }
    }
}

impl Listener for HostLog {
    fn host_event(&mut self, event: Event) {
        self.log.event(event);
    }

    fn packet_sent(&mut self, at: Instant, side: Port, packet: &[u8]) {
        self.packet(at, side, HostDirection::Out, packet);
    }

    fn packet_received(&mut self, at: Instant, side: Port, packet: &[u8]) {
        self.packet(at, side, HostDirection::In, packet);
    }
}
