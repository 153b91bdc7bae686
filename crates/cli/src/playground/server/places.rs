//! The open connections. If all places are taken, a new connection gets the place of an older one.

use std::cmp::Reverse;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// All open connections of the server.
pub(super) struct Places {
    most: usize,
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
    has_asked: bool,
    stream: Arc<TcpStream>,
}

/// The place of one connection. It is free again when this value is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    stream: Arc<TcpStream>,
}

impl Places {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes a place for the connection. If there is none, closes an older connection.
    pub(super) fn take(places: &Arc<Places>, stream: TcpStream) -> io::Result<Self> {
        let address = stream.peer_addr()?.ip();
        let stream = Arc::new(stream);
        let mut open = places.open();
        if open.entries.len() >= places.most {
            let known: Vec<_> = open.entries.iter().map(|entry| (entry.address, entry.has_asked)).collect();
            if let Some(at) = to_close(&known) {
                // The thread that serves it sees the end of the connection. An error means that the client
                // has closed it already.
                let _ = open.entries.remove(at).stream.shutdown(Shutdown::Both);
            }
        }
        let number = open.next;
        open.next += 1;
        open.entries.push(Entry { number, address, has_asked: false, stream: Arc::clone(&stream) });
        Ok(Self { places: Arc::clone(places), number, stream })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Notes that the client has sent its request and receives the answer.
    pub(super) fn request_is_complete(&self) {
        for entry in self.places.open().entries.iter_mut().filter(|entry| entry.number == self.number) {
            entry.has_asked = true;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().entries.retain(|entry| entry.number != self.number);
    }
}

/// Returns the index of the connection to close. It belongs to the address with the most connections, so that
/// no host takes the places of others. A connection without a complete request comes first, and then the
/// oldest one. `open` has address and state of each connection, the oldest first.
fn to_close(open: &[(IpAddr, bool)]) -> Option<usize> {
    let count = |address: &IpAddr| open.iter().filter(|(other, _)| other == address).count();
    let rank =
        |(at, (address, has_asked)): &(usize, &(IpAddr, bool))| (count(address), !has_asked, Reverse(*at));
    open.iter().enumerate().max_by_key(rank).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_with_most_connections_loses_one() {
        let [one, two]: [IpAddr; 2] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        assert_eq!(to_close(&[]), None);
        assert_eq!(to_close(&[(one, false), (two, true), (two, true)]), Some(1));
        assert_eq!(to_close(&[(one, true), (one, true), (two, false), (one, false)]), Some(3));
        assert_eq!(to_close(&[(one, true), (one, true), (two, false)]), Some(0));
        assert_eq!(to_close(&[(one, true), (two, false), (one, false), (two, false)]), Some(1));
    }
}
