//! What the host is still to be given, and the end of it.

use std::io::Read;

use airtcp::host::{ConnId, Host};
use airtcp_tun::Waker;
use airwire::time::{Duration, Instant};
use anyhow::Context;

use super::time_limit::TimeLimit;
use crate::shared::input::{Next, Source};
use crate::shared::summary::InTime;

pub(super) struct Outgoing {
    source: Source,
    /// Bytes that did not fit into the send buffer, from this index on.
    chunk: Option<(Vec<u8>, usize)>,
    written: Written,
    /// `None`: the input has an end.
    limit: Option<TimeLimit>,
    /// `None`: its time is not up yet, or there is no end to it.
    pub(super) in_time: Option<InTime>,
    /// Of everything that the host was given, when that is known.
    pub(super) digest: Option<String>,
}

/// How much of the input the host has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Partly,
    /// All of it, and that nothing follows.
    Wholly,
}

impl Outgoing {
    /// With a time, what is sent ends when that is up.
    pub(super) fn start(
        input: Box<dyn Read + Send>,
        digest: bool,
        time: Option<Duration>,
        waker: Waker,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            // What is read ahead when the time is up is not sent.
            source: Source::start(input, digest && time.is_none(), waker)?,
            chunk: None,
            written: Written::Partly,
            limit: time.map(|time| TimeLimit::new(time, digest)),
            in_time: None,
            digest: None,
        })
    }

    /// Gives the host as much as it takes.
    pub(super) fn write(&mut self, now: Instant, host: &mut Host, id: ConnId) -> anyhow::Result<()> {
        while self.written == Written::Partly {
            let room = match self.room(now, host, id) {
                Some(0) => break,
                Some(room) => room,
                None => {
                    let up = self.limit.as_ref().zip(host.connection(id));
                    self.in_time = up.map(|(limit, connection)| limit.came_to(connection));
                    self.digest = self.limit.take().and_then(TimeLimit::digest);
                    self.end(now, host, id);
                    return Ok(());
                }
            };
            let (chunk, from) = match self.chunk.take() {
                Some(chunk) => chunk,
                None => match self.source.next().context("cannot read the input")? {
                    Next::Chunk(chunk) => (chunk, 0),
                    Next::Later => return Ok(()),
                    Next::End { digest } => {
                        self.digest = digest;
                        self.end(now, host, id);
                        return Ok(());
                    }
                },
            };
            let piece = &chunk[from..chunk.len().min(from.saturating_add(room))];
            let taken = host.write(now, id, piece);
            if let (Some(limit), Ok(taken)) = (&mut self.limit, &taken) {
                limit.wrote(&piece[..*taken]);
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
                // Whoever runs the connection sees that it has ended.
                Err(_) => {
                    self.chunk = Some((chunk, from));
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, now: Instant, host: &mut Host, id: ConnId) {
        // Whoever runs the connection sees whether it has ended.
        let _ = host.shutdown_write(now, id);
        self.written = Written::Wholly;
    }

    /// How much the host may be given now. `None`: the time is up.
    fn room(&mut self, now: Instant, host: &Host, id: ConnId) -> Option<usize> {
        match (&mut self.limit, host.connection(id)) {
            (Some(limit), Some(connection)) => limit.room(now, connection),
            _ => Some(usize::MAX),
        }
    }

    /// When the time is up.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let limit = self.limit.as_ref().filter(|_| self.written == Written::Partly);
        limit.and_then(TimeLimit::end)
    }
}
