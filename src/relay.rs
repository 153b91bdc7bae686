//! A relay: it joins two connections that know nothing of each other, and carries the stream of each to the other.
//!
//! It reads from one leg only when the other has taken everything and has room. So a slow reader slows its writer down, and no
//! more than one chunk per direction waits here. The end of a stream is passed on after its last byte, and a reset at
//! once, as TCP would have done without a relay. Nothing here waits or knows the time: whoever drives it takes a turn
//! when something may have changed.

/// Why an endpoint read or wrote nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Nothing to read or no room now. Whoever drives the relay hears of it when that changes.
    Later,
    /// The connection is gone.
    Failed,
}

/// The connection of one leg.
pub trait Endpoint {
    /// `Ok(0)` is the end of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Stop>;

    /// Takes at least one byte, or says why not.
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Stop>;

    /// Octets that it would take now, as far as it knows: no more are read for it, and so none wait in the relay but
    /// those that it did not take after all.
    fn room(&self) -> usize;

    /// Nothing more will be written.
    fn shutdown(&mut self);

    /// Ends it at once, in both directions; what was not sent yet is lost.
    fn reset(&mut self);

    /// Asked while its stream is not read, so that a reset is noticed all the same.
    fn has_failed(&mut self) -> bool;
}

/// One of the two connections that a relay joins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leg {
    /// The one over the radio link.
    Radio,
    /// The one to the server behind.
    Target,
}

/// What a turn has led to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// There may be more to do at once, after other relays have had their turn.
    Again,
    /// Nothing to do until something happens to one of the endpoints.
    Waiting,
    /// Both streams have ended, and everything was handed over.
    Finished,
    /// This leg has failed, and the other was reset.
    Failed(Leg),
}

/// What must be kept between two turns: bytes that were read and not taken yet, and which streams have ended.
#[derive(Debug, Default)]
pub struct Relay {
    /// From the radio leg to the target.
    up: Pipe,
    /// From the target to the radio leg.
    down: Pipe,
}

impl Relay {
    /// Carries what it can, at most one chunk each way, so that one turn is never long. `chunk` is scratch space; its
    /// length bounds what may wait here per direction.
    ///
    /// Not to be called again after `Finished` and `Failed`.
    pub fn turn(&mut self, radio: &mut impl Endpoint, target: &mut impl Endpoint, chunk: &mut [u8]) -> Turn {
        let up = match self.up.turn(radio, target, chunk) {
            Ok(step) => step,
            Err(Fault::Source) => return fail(Leg::Radio, target),
            Err(Fault::Sink) => return fail(Leg::Target, radio),
        };
        let down = match self.down.turn(target, radio, chunk) {
            Ok(step) => step,
            Err(Fault::Source) => return fail(Leg::Target, radio),
            Err(Fault::Sink) => return fail(Leg::Radio, target),
        };
        match (up, down) {
            (Step::Ended, Step::Ended) => Turn::Finished,
            (Step::Read, _) | (_, Step::Read) => Turn::Again,
            _ if up != Step::Waiting && radio.has_failed() => fail(Leg::Radio, target),
            _ if down != Step::Waiting && target.has_failed() => fail(Leg::Target, radio),
            _ => Turn::Waiting,
        }
    }

    /// Bytes that the target has taken.
    pub fn carried_up(&self) -> u64 {
        self.up.carried
    }

    /// Nobody waits for the target: its stream has ended, or the radio leg has yet to take what it has said.
    pub fn target_has_answered(&self) -> bool {
        self.down.stream == Stream::Ended || !self.down.rest.is_empty()
    }

    /// Bytes that the radio leg has taken.
    pub fn carried_down(&self) -> u64 {
        self.down.carried
    }
}

fn fail(leg: Leg, other: &mut impl Endpoint) -> Turn {
    other.reset();
    Turn::Failed(leg)
}

/// One direction.
#[derive(Debug, Default)]
struct Pipe {
    /// What was read and the sink had no room for, from `taken` on. Empty most of the time.
    rest: Vec<u8>,
    taken: usize,
    stream: Stream,
    carried: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Stream {
    #[default]
    Open,
    Ended,
}

/// What a pipe did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// It has read, and there may be more to read.
    Read,
    /// The source has nothing now.
    Waiting,
    /// The sink has no room; the source was not asked.
    Blocked,
    Ended,
}

enum Fault {
    Source,
    Sink,
}

impl Pipe {
    fn turn(
        &mut self,
        source: &mut impl Endpoint,
        sink: &mut impl Endpoint,
        chunk: &mut [u8],
    ) -> Result<Step, Fault> {
        if self.stream == Stream::Ended {
            return Ok(Step::Ended);
        }
        let taken = write(sink, &self.rest[self.taken..])?;
        self.taken += taken;
        self.carried += taken as u64;
        if self.taken < self.rest.len() {
            return Ok(Step::Blocked);
        }
        // An idle connection owns no buffer.
        (self.rest, self.taken) = (Vec::new(), 0);
        let mut moved = 0;
        // Again, while there is room for it: the end of a stream is often right behind its last byte, and can leave with it.
        while moved < chunk.len() {
            let most = sink.room().min(chunk.len() - moved);
            if most == 0 {
                return Ok(Step::Blocked);
            }
            let room = &mut chunk[moved..moved + most];
            match source.read(room) {
                Ok(0) => {
                    sink.shutdown();
                    self.stream = Stream::Ended;
                    return Ok(Step::Ended);
                }
                Ok(len) => {
                    let taken = write(sink, &room[..len])?;
                    self.carried += taken as u64;
                    moved += len;
                    if taken < len {
                        self.rest = room[taken..len].to_vec();
                        return Ok(Step::Blocked);
                    }
                }
                Err(Stop::Later) => return Ok(Step::Waiting),
                Err(Stop::Failed) => return Err(Fault::Source),
            }
        }
        Ok(Step::Read)
    }
}

/// As much as the sink takes.
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
