//! Passes the input to the host, and closes the stream at its end.

use std::io::Read;
use std::sync::Arc;

use airtcp::host::{ConnId, Host};
use airtcp_tun::Waker;
use airwire::time::{Duration, Instant};
use anyhow::Context;

use super::time_limit::TimeLimit;
use crate::shared::input::{CHUNK, Next, Source};
use crate::shared::summary::InTime;

pub(super) struct Outgoing {
    source: Source,
    /// A chunk that did not fit into the send buffer, and the index of its first unwritten byte.
    chunk: Option<(Arc<Vec<u8>>, usize)>,
    /// True if the host has the whole input and the end of the stream.
    is_complete: bool,
    /// `None` if the input has an end.
    limit: Option<TimeLimit>,
    /// Result of a time limit. `None` before the time has elapsed, and without a time limit.
    pub(super) in_time: Option<InTime>,
    /// SHA-256 of everything that was passed to the host, once it is known.
    pub(super) digest: Option<String>,
}

impl Outgoing {
    /// Starts to read the input. With `time`, the stream ends after this time.
    pub(super) fn start(
        input: Box<dyn Read + Send>,
        digest: bool,
        time: Option<Duration>,
        waker: Waker,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            // With a time limit, the source reads data ahead that is not sent, so it cannot compute the
            // digest.
            source: Source::start(input, digest && time.is_none(), waker)?,
            chunk: None,
            is_complete: false,
            limit: time.map(|time| TimeLimit::new(time, digest)),
            in_time: None,
            digest: None,
        })
    }

    /// Passes data to the host until the host accepts no more.
    pub(super) fn write(&mut self, now: Instant, host: &mut Host, id: ConnId) -> anyhow::Result<()> {
        while !self.is_complete {
            let room = match self.room(now, host, id) {
                Some(0) => break,
                Some(room) => room,
                None => {
                    let ended = self.limit.as_ref().zip(host.connection(id));
                    self.in_time = ended.map(|(limit, connection)| limit.result(connection));
                    self.digest = self.limit.take().and_then(TimeLimit::digest);
                    self.end(host, id);
                    return Ok(());
                }
            };
            let (chunk, from) = match self.chunk.take() {
                Some(chunk) => chunk,
                None => match self.source.next().context("cannot read the input")? {
                    Next::Chunk(chunk) => (Arc::new(chunk), 0),
                    Next::Later => return Ok(()),
                    Next::End { digest } => {
                        self.digest = digest;
                        self.end(host, id);
                        return Ok(());
                    }
                },
            };
            let range = from..chunk.len().min(from.saturating_add(room));
            let piece = &chunk[range.clone()];
            // A connection that refers to a chunk keeps its whole buffer, which a short chunk does not need.
            let taken = match chunk.len() >= CHUNK / 2 {
                true => host.write_shared(now, id, &chunk, range),
                false => host.write(now, id, piece),
            };
            if let (Some(limit), Ok(taken)) = (&mut self.limit, &taken) {
                limit.record(&piece[..*taken]);
            }
            match taken {
                Ok(taken) if from + taken == chunk.len() => self.source.recycle(chunk),
                Ok(taken) => {
                    let is_full = taken < piece.len();
                    self.chunk = Some((chunk, from + taken));
                    if is_full {
                        break;
                    }
                }
                // The caller detects that the connection has ended.
                Err(_) => {
                    self.chunk = Some((chunk, from));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, host: &mut Host, id: ConnId) {
        // The caller detects whether the connection has ended.
        let _ = host.shutdown_write(id);
        self.is_complete = true;
    }

    /// Returns the number of bytes that can be passed to the host now, or `None` if the time has elapsed.
    fn room(&mut self, now: Instant, host: &Host, id: ConnId) -> Option<usize> {
        match (&mut self.limit, host.connection(id)) {
            (Some(limit), Some(connection)) => limit.room(now, connection),
            _ => Some(usize::MAX),
        }
    }

    /// Returns the time at which the time limit ends the stream.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.limit.as_ref().filter(|_| !self.is_complete).and_then(TimeLimit::end)
    }
}
