//! A relay that joins two independent connections and forwards the stream of each to the other.
//!
//! The relay reads from one leg only when the other leg has taken all previous data and has room. A slow
//! reader therefore slows down its writer, and at most one chunk per direction is buffered here. The end of a
//! stream is passed on after its last byte, and a reset at once, as TCP would do without a relay. The relay
//! never blocks and has no clock: its driver calls [`Relay::forward`] when something may have changed.

/// The reason why an endpoint read or wrote nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// There is nothing to read, or no room. The relay's driver is notified when that changes.
    Later,
    /// The connection has failed.
    Failed,
}

/// The connection of one leg.
pub trait Endpoint {
    /// Reads bytes; `Ok(0)` is the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop>;

    /// Writes at least one byte, or returns the reason why not.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop>;

    /// Returns the number of bytes that this end would probably take now. The relay reads no more for this
    /// end, so it buffers only bytes that the end then refuses.
    fn room(&self) -> usize;

    /// Ends the outgoing stream.
    fn shutdown(&mut self);

    /// Resets the connection in both directions and discards unsent data.
    fn reset(&mut self);

    /// Returns true if the connection has failed. The relay calls it while it does not read the stream, so
    /// that it still notices a reset.
    fn has_failed(&mut self) -> bool;
}

/// One of the two connections that a relay joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leg {
    /// The connection over the radio link.
    Radio,
    /// The connection to the target server.
    Target,
}

/// The result of [`Relay::forward`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RelayStatus {
    /// There may be more to do immediately, after other relays have had their turn.
    Again,
    /// There is nothing to do until an endpoint changes.
    Waiting,
    /// Both streams have ended, and all data was forwarded.
    Finished,
    /// This leg has failed, and the other was reset.
    Failed(Leg),
}

/// The state that a relay keeps between turns: bytes read but not yet taken, and which streams have ended.
#[derive(Debug, Default)]
pub struct Relay {
    /// From the radio leg to the target.
    up: Pipe,
    /// From the target to the radio leg.
    down: Pipe,
}

impl Relay {
    /// Forwards at most one chunk in each direction, so that one turn is always short. `chunk`
    /// is scratch space; its length limits the bytes buffered per direction.
    ///
    /// Must not be called again after `Finished` or `Failed`.
    pub fn forward(
        &mut self,
        radio: &mut impl Endpoint,
        target: &mut impl Endpoint,
        chunk: &mut [u8],
    ) -> RelayStatus {
        let up = match self.up.forward(radio, target, chunk) {
            Ok(step) => step,
            Err(Fault::Source) => return fail(Leg::Radio, target),
            Err(Fault::Sink) => return fail(Leg::Target, radio),
        };
        let down = match self.down.forward(target, radio, chunk) {
            Ok(step) => step,
            Err(Fault::Source) => return fail(Leg::Target, radio),
            Err(Fault::Sink) => return fail(Leg::Radio, target),
        };
        match (up, down) {
            (PipeStatus::Ended, PipeStatus::Ended) => RelayStatus::Finished,
            (PipeStatus::Read, _) | (_, PipeStatus::Read) => RelayStatus::Again,
            _ if up != PipeStatus::Waiting && radio.has_failed() => fail(Leg::Radio, target),
            _ if down != PipeStatus::Waiting && target.has_failed() => fail(Leg::Target, radio),
            _ => RelayStatus::Waiting,
        }
    }

    /// Returns the number of bytes that the target has taken.
    pub fn carried_up(&self) -> u64 {
        self.up.carried
    }

    /// Returns true unless the relay is waiting for the target: the target's stream has ended, or the radio
    /// leg has yet to take some of its data.
    pub fn target_has_answered(&self) -> bool {
        self.down.stream == Stream::Ended || !self.down.rest.is_empty()
    }

    /// Returns the number of bytes that the radio leg has taken.
    pub fn carried_down(&self) -> u64 {
        self.down.carried
    }
}

fn fail(leg: Leg, other: &mut impl Endpoint) -> RelayStatus {
    other.reset();
    RelayStatus::Failed(leg)
}

/// One direction of a relay.
#[derive(Debug, Default)]
struct Pipe {
    /// Bytes that were read and that the sink has not taken, from `written` on. Usually empty.
    rest: Vec<u8>,
    written: usize,
    stream: Stream,
    carried: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stream {
    #[default]
    Open,
    Ended,
}

/// The result of one step of a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PipeStatus {
    /// The pipe has read data, and the source may have more.
    Read,
    /// The source has nothing to read now.
    Waiting,
    /// The sink has no room; the source was not read.
    Blocked,
    Ended,
}

enum Fault {
    Source,
    Sink,
}

impl Pipe {
    fn forward(
        &mut self,
        source: &mut impl Endpoint,
        sink: &mut impl Endpoint,
        chunk: &mut [u8],
    ) -> Result<PipeStatus, Fault> {
        if self.stream == Stream::Ended {
            return Ok(PipeStatus::Ended);
        }
        let taken = write(sink, &self.rest[self.written..])?;
        self.written += taken;
        self.carried += taken as u64;
        if self.written < self.rest.len() {
            return Ok(PipeStatus::Blocked);
        }
        // An idle connection must not own a buffer.
        (self.rest, self.written) = (Vec::new(), 0);
        let mut moved = 0;
        // Read repeatedly while there is room: the end of a stream often follows its last byte immediately,
        // so that both can be sent together.
        while moved < chunk.len() {
            let most = sink.room().min(chunk.len() - moved);
            if most == 0 {
                return Ok(PipeStatus::Blocked);
            }
            let room = &mut chunk[moved..moved + most];
            match source.read(room) {
                Ok(0) => {
                    sink.shutdown();
                    self.stream = Stream::Ended;
                    return Ok(PipeStatus::Ended);
                }
                Ok(len) => {
                    let taken = write(sink, &room[..len])?;
                    self.carried += taken as u64;
                    moved += len;
                    if taken < len {
                        self.rest = room[taken..len].to_vec();
                        return Ok(PipeStatus::Blocked);
                    }
                }
                Err(Stop::Later) => return Ok(PipeStatus::Waiting),
                Err(Stop::Failed) => return Err(Fault::Source),
            }
        }
        Ok(PipeStatus::Read)
    }
}

/// Writes as much as the sink takes, and returns the number of bytes.
fn write(sink: &mut impl Endpoint, bytes: &[u8]) -> Result<usize, Fault> {
    let mut taken = 0;
    while taken < bytes.len() {
        match sink.write(&bytes[taken..]) {
            Ok(count) => taken += count,
            Err(Stop::Later) => break,
            Err(Stop::Failed) => return Err(Fault::Sink),
        }
    }
    Ok(taken)
}

#[cfg(test)]
mod tests;
