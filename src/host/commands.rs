//! Commands of the application on an open connection.

use std::ops::Range;
use std::sync::Arc;

use airwire::piece::Payload;
use airwire::text::Known;
use airwire::time::Instant;

use super::{ConnId, Host};
use crate::tcp::{Connection, Ended, Push, SocketOptions, State};

/// The reason why a read or write did nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IoError {
    /// No data has arrived, or the send buffer is full. Try again when the connection has changed.
    #[error("would block")]
    WouldBlock,
    /// The application has closed the connection, or both sides have closed it and it has ended.
    #[error("not connected")]
    NotConnected,
    /// Writing was shut down.
    #[error("this side was closed")]
    Closed,
    /// The connection has failed. Data that arrived before can still be read.
    #[error(transparent)]
    Ended(#[from] Ended),
}

impl Host {
    /// Buffers as much of `data` as there is room for, and returns the number of bytes.
    pub fn write(&mut self, now: Instant, id: ConnId, data: &[u8]) -> Result<usize, IoError> {
        self.write_with(now, id, data, Push::Now)
    }

    /// Like [`Host::write`], for a part of the known stream, which takes no memory.
    pub fn write_known(&mut self, now: Instant, id: ConnId, data: Known) -> Result<usize, IoError> {
        self.write_payload(now, id, Payload::Known(data), Push::Now)
    }

    /// Like [`Host::write`], for the `range` of `data`. A connection copies only little data, and refers to
    /// more until it is acknowledged.
    ///
    /// # Panics
    /// If the range is not inside the data.
    pub fn write_shared(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &Arc<Vec<u8>>,
        range: Range<usize>,
    ) -> Result<usize, IoError> {
        assert!(range.start <= range.end && range.end <= data.len(), "{range:?} of {} bytes", data.len());
        self.write_payload(now, id, Payload::Shared(data, range), Push::Now)
    }

    /// Like [`Host::write`], but with a flag for more data that follows immediately (MSG_MORE).
    pub fn write_with(
        &mut self,
        now: Instant,
        id: ConnId,
        data: &[u8],
        push: Push,
    ) -> Result<usize, IoError> {
        self.write_payload(now, id, Payload::Copied(data), push)
    }

    fn write_payload(
        &mut self,
        now: Instant,
        id: ConnId,
        data: Payload<'_>,
        push: Push,
    ) -> Result<usize, IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        match connection.state() {
            State::Closed => return Err(connection.ended().map_or(IoError::NotConnected, IoError::Ended)),
            State::SynSent | State::SynReceived | State::Established | State::CloseWait
                if !connection.write_is_shut() => {}
            _ => return Err(IoError::Closed),
        }
        let is_empty = data.is_empty();
        let taken = connection.write(now, data, push);
        self.account(id.index());
        self.mark_ready(id.index());
        if taken == 0 && !is_empty { Err(IoError::WouldBlock) } else { Ok(taken) }
    }

    /// Ends a record (MSG_EOR): no segment contains both data written before and data written later.
    pub fn end_record(&mut self, id: ConnId) {
        if let Some(connection) = self.slots.get_mut(id) {
            connection.end_record();
        }
    }

    /// Exempts all data written so far from Nagle and cork, so that only the windows delay it. Linux does
    /// this when TCP_NODELAY is set.
    pub fn push(&mut self, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.push();
        self.mark_ready(id.index());
    }

    /// Reads bytes that arrived in order, and returns their number. `Ok(0)` is the end of the stream.
    pub fn read(&mut self, id: ConnId, out: &mut [u8]) -> Result<usize, IoError> {
        let connection = self.slots.get_mut(id).ok_or(IoError::NotConnected)?;
        match connection.read(out) {
            0 if out.is_empty() => Ok(0),
            0 => nothing_to_read(connection),
            count => {
                self.mark_ready(id.index());
                Ok(count)
            }
        }
    }

    /// Reads up to `max` bytes that arrived in order, if they are one part of the known stream. Otherwise
    /// [`Host::read`] returns the next bytes.
    pub fn read_known(&mut self, id: ConnId, max: usize) -> Option<Known> {
        let known = self.slots.get_mut(id)?.read_known(max)?;
        self.mark_ready(id.index());
        Some(known)
    }

    /// Like [`Host::read`], but leaves the bytes in the buffer.
    pub fn peek(&self, id: ConnId, out: &mut [u8]) -> Result<usize, IoError> {
        let connection = self.slots.get(id).ok_or(IoError::NotConnected)?;
        match connection.peek(out) {
            0 if !out.is_empty() => nothing_to_read(connection),
            count => Ok(count),
        }
    }

    /// Shuts down reading: after the data that has arrived, reads return the end of the stream. The profile
    /// decides what happens to data that arrives later.
    pub fn shutdown_read(&mut self, id: ConnId) -> Result<(), IoError> {
        self.open_mut(id)?.shutdown_read();
        self.mark_ready(id.index());
        Ok(())
    }

    /// Sends a FIN after the buffered data, once the handshake is complete. Reading is still possible.
    pub fn shutdown_write(&mut self, id: ConnId) -> Result<(), IoError> {
        self.open_mut(id)?.shutdown_write();
        self.mark_ready(id.index());
        Ok(())
    }

    /// Returns a connection that has not ended. In TIME-WAIT both sides have closed it (RFC 9293 §3.10.4).
    fn open_mut(&mut self, id: ConnId) -> Result<&mut Connection, IoError> {
        let is_over = |state| matches!(state, State::TimeWait | State::Closed);
        let connection = self.slots.get_mut(id).filter(|connection| !is_over(connection.state()));
        connection.ok_or(IoError::NotConnected)
    }

    /// Closes the connection like close(2). The host ends and removes it later. The application must not use
    /// the id any more, except to check through [`Host::connection`] whether it [is still
    /// closing](Connection::is_closing). This call never blocks, with any [`Linger`](crate::tcp::Linger).
    pub fn close(&mut self, now: Instant, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.close(now);
        self.slots.release(id.index());
        self.mark_ready(id.index());
    }

    /// Resets the connection. Its id stays valid until it is closed.
    pub fn abort(&mut self, id: ConnId) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.abort();
        self.mark_ready(id.index());
    }

    /// Changes the options of an open connection. Buffers that become smaller keep their contents.
    pub fn set_options(&mut self, now: Instant, id: ConnId, options: SocketOptions) {
        let Some(connection) = self.slots.get_mut(id) else { return };
        connection.set_options(now, options);
        self.mark_ready(id.index());
    }
}

fn nothing_to_read(connection: &Connection) -> Result<usize, IoError> {
    match connection.state() {
        _ if connection.at_end_of_stream() && connection.ended().is_none() => Ok(0),
        State::Closed => Err(connection.ended().map_or(IoError::NotConnected, IoError::Ended)),
        _ if connection.at_end_of_stream() => Ok(0),
        _ => Err(IoError::WouldBlock),
    }
}
