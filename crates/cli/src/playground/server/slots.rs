//! The open connections. If all slots are taken, a new connection gets the slot of an older one.

use std::cmp::Reverse;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All open connections of the server.
pub(super) struct ConnectionSlots {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The oldest connection comes first.
    entries: Vec<Entry>,
    next: u64,
}

struct Entry {
    number: u64,
    address: IpAddr,
    has_request: bool,
    stream: Arc<TcpStream>,
}

/// The slot of one connection. It is free again when this value is dropped.
pub(super) struct Slot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    stream: Arc<TcpStream>,
}

impl ConnectionSlots {
    pub(super) fn new(max: usize) -> Self {
        Self { max, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// Takes a slot for the connection. If there is none, closes an older connection.
    pub(super) fn take(slots: &Arc<ConnectionSlots>, stream: TcpStream) -> io::Result<Self> {
        let address = stream.peer_addr()?.ip();
        let stream = Arc::new(stream);
        let mut open = slots.open();
        if open.entries.len() >= slots.max {
            let known: Vec<_> = open.entries.iter().map(|entry| (entry.address, entry.has_request)).collect();
            if let Some(at) = connection_to_close(&known) {
                // The thread that serves this connection notices the end. An error means that the client has
                // already closed the connection.
                let _ = open.entries.remove(at).stream.shutdown(Shutdown::Both);
            }
        }
        let number = open.next;
        open.next += 1;
        open.entries.push(Entry { number, address, has_request: false, stream: Arc::clone(&stream) });
        Ok(Self { slots: Arc::clone(slots), number, stream })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Notes that the client has sent its request and receives the answer.
    pub(super) fn request_is_complete(&self) {
        for entry in self.slots.open().entries.iter_mut().filter(|entry| entry.number == self.number) {
            entry.has_request = true;
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.slots.open().entries.retain(|entry| entry.number != self.number);
    }
}

/// Returns the index of the connection to close. It belongs to the address with the most connections, so that
/// no host takes the slots of others. A connection without a complete request comes first, and then the
/// oldest one. `open` has address and state of each connection, the oldest first.
fn connection_to_close(open: &[(IpAddr, bool)]) -> Option<usize> {
    let count = |address: &IpAddr| open.iter().filter(|(other, _)| other == address).count();
    let rank = |(at, (address, has_request)): &(usize, &(IpAddr, bool))| {
        (count(address), !has_request, Reverse(*at))
    };
    open.iter().enumerate().max_by_key(rank).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_with_most_connections_loses_one() {
        let [one, two]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        assert_eq!(connection_to_close(&[]), None);
        assert_eq!(connection_to_close(&[(one, false), (two, true), (two, true)]), Some(1));
        assert_eq!(connection_to_close(&[(one, true), (one, true), (two, false), (one, false)]), Some(3));
        assert_eq!(connection_to_close(&[(one, true), (one, true), (two, false)]), Some(0));
        assert_eq!(connection_to_close(&[(one, true), (two, false), (one, false), (two, false)]), Some(1));
    }
}
