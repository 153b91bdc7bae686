//! Detects parts of a capture that repeat earlier frames, for example because a file was appended to itself.

use aircaptures::capture::Frame;
use aircaptures::link_layer::LinkType;
use aircaptures::packet::Timestamp;

use crate::fingerprint;

/// Maximum number of frames that are remembered, from the first one on.
const REMEMBERED: usize = 1 << 18;
/// Number of frames in succession that must equal earlier ones.
const RUN: usize = 8;
/// Minimum number of different frames among these [`RUN`] frames. Some protocols send the same frame
/// regularly.
const MIN_DIFFERENT: usize = 4;
/// Bytes of a frame that are compared. They contain all headers.
const COMPARED: usize = 128;
/// Nanoseconds by which the clock must go back at the beginning of a part that does not begin with the first
/// frame. Smaller steps are reordered frames.
const MIN_STEP_BACK: i64 = 1_000_000;
/// Maximum number of steps back of the clock at which earlier frames are searched.
const MAX_SEARCHES: u32 = 256;

/// The frames of a capture so far.
#[derive(Default)]
pub(super) struct Repeats {
    /// Hashes of the frames that do not repeat others, at most `REMEMBERED`. `frames` is the number of such
    /// frames.
    hashes: Vec<u32>,
    count: usize,
    /// The length of the first frame.
    first_length: u32,
    last: Timestamp,
    searches: u32,
    state: State,
}

#[derive(Default)]
enum State {
    #[default]
    New,
    /// The frames in `held` equal those from index `begin` on.
    Suspected { begin: usize, held: Vec<OwnedFrame> },
    /// The next frame should equal the one with index `next`.
    Repeating { next: usize },
}

/// A copy of a frame.
pub(super) struct OwnedFrame {
    number: u64,
    at: Timestamp,
    link: LinkType,
    data: Vec<u8>,
    length: u32,
    snap_length: Option<u32>,
}

impl OwnedFrame {
    fn new(frame: &Frame<'_>) -> Self {
        let Frame { number, at, link, length, snap_length, data } = *frame;
        Self { number, at, link, data: data.to_vec(), length, snap_length }
    }

    pub(super) fn frame(&self) -> Frame<'_> {
        let Self { number, at, link, ref data, length, snap_length } = *self;
        Frame { number, at, link, data, length, snap_length }
    }
}

/// The result for a frame.
pub(super) enum Verdict {
    /// The frame and all earlier held frames are new.
    New(Vec<OwnedFrame>),
    /// The frame is held.
    Undecided,
    /// Frames that repeat earlier ones: the frame itself, and earlier held frames.
    Repeated {
        count: u64,
        /// The number of the first repeated frame.
        first: u64,
    },
}

impl Repeats {
    pub(super) fn check(&mut self, frame: &Frame<'_>) -> Verdict {
        let step_back = self.last.0.saturating_sub(frame.at.0);
        self.last = frame.at;
        let may_begin = frame.length == self.first_length || step_back > MIN_STEP_BACK;
        if self.hashes.len() == REMEMBERED && matches!(self.state, State::New) && !may_begin {
            self.count += 1;
            return Verdict::New(Vec::new());
        }
        let hash = hash(frame);
        match std::mem::take(&mut self.state) {
            State::New => self.begin(frame, hash, step_back),
            State::Suspected { begin, held } => self.suspected(frame, hash, begin, held),
            State::Repeating { next } if next < self.count => {
                if self.hashes.get(next).is_some_and(|known| *known != hash) {
                    return self.begin(frame, hash, step_back);
                }
                self.state = State::Repeating { next: next + 1 };
                Verdict::Repeated { count: 1, first: frame.number }
            }
            State::Repeating { .. } => self.begin(frame, hash, step_back),
        }
    }

    /// Processes a frame that does not continue a repetition. It may begin one.
    fn begin(&mut self, frame: &Frame<'_>, hash: u32, step_back: i64) -> Verdict {
        let found = if self.hashes.first() == Some(&hash) {
            Some(0)
        } else if step_back > MIN_STEP_BACK && self.searches < MAX_SEARCHES {
            self.searches += 1;
            self.hashes.iter().position(|known| *known == hash)
        } else {
            None
        };
        match found {
            Some(begin) => {
                self.state = State::Suspected { begin, held: vec![OwnedFrame::new(frame)] };
                Verdict::Undecided
            }
            None => {
                self.remember(frame, hash);
                Verdict::New(Vec::new())
            }
        }
    }

    fn suspected(
        &mut self,
        frame: &Frame<'_>,
        hash: u32,
        begin: usize,
        mut held: Vec<OwnedFrame>,
    ) -> Verdict {
        let next = begin + held.len();
        if self.hashes.get(next) != Some(&hash) {
            self.remember_all(&held);
            self.remember(frame, hash);
            return Verdict::New(held);
        }
        held.push(OwnedFrame::new(frame));
        let is_whole = begin == 0 && held.len() == self.count;
        if held.len() < RUN && !is_whole {
            self.state = State::Suspected { begin, held };
            return Verdict::Undecided;
        }
        let mut different = self.hashes[begin..=next].to_vec();
        different.sort_unstable();
        different.dedup();
        if different.len() < MIN_DIFFERENT {
            self.remember_all(&held);
            // The last entry is the frame itself.
            held.pop();
            return Verdict::New(held);
        }
        self.state = State::Repeating { next: next + 1 };
        Verdict::Repeated { count: held.len() as u64, first: held[0].number }
    }

    /// Returns the held frames, because no other frame follows for now.
    pub(super) fn release(&mut self) -> Vec<OwnedFrame> {
        match std::mem::take(&mut self.state) {
            State::Suspected { held, .. } => {
                self.remember_all(&held);
                held
            }
            state => {
                self.state = state;
                Vec::new()
            }
        }
    }

    fn remember_all(&mut self, held: &[OwnedFrame]) {
        for frame in held {
            self.remember(&frame.frame(), hash(&frame.frame()));
        }
    }

    fn remember(&mut self, frame: &Frame<'_>, hash: u32) {
        if self.count == 0 {
            self.first_length = frame.length;
        }
        self.count += 1;
        if self.hashes.len() < REMEMBERED {
            self.hashes.push(hash);
        }
    }
}

/// Returns a hash of the beginning of a frame and of its length.
fn hash(frame: &Frame<'_>) -> u32 {
    let compared = &frame.data[..frame.data.len().min(COMPARED)];
    // Bytes after the last whole word are not compared.
    let (words, _) = compared.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let hash = fingerprint::hash(frame.length.into(), words);
    (hash ^ hash >> 32) as u32
}
