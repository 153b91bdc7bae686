//! Lines that a thread of its own writes: who hands them over never waits, whatever becomes of the file, the pipe or the
//! terminal. A server that strangers use must not stand still because its log does.

#![expect(clippy::disallowed_methods, reason = "a pipe or a disk is waited for, and not for ever")]

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// So many octets may wait to be written. What comes then is left out, line by line, and counted.
const ROOM: usize = 1 << 20;
/// After a write so long is waited for more: a line that comes alone is written at once, and many lines are one write.
const BREATH: Duration = Duration::from_millis(10);
/// A disk that was full is tried again so often.
const AGAIN: Duration = Duration::from_secs(1);

/// Whole lines on their way to one place.
#[derive(Clone)]
pub struct Apart(Arc<Shared>);

/// What becomes of lines that could not be written.
pub struct Words {
    /// A line in their place, if the format has one for it.
    pub gap: Option<fn(u64) -> String>,
    /// Told once, when something begins to fail.
    pub failed: Box<dyn Fn(&io::Error) + Send>,
}

struct Shared {
    state: Mutex<State>,
    /// The thread waits for it.
    more: Condvar,
    /// Who finishes waits for it.
    less: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// In `waiting`, and in the hands of the thread.
    octets: usize,
    /// Lines, in all.
    left_out: u64,
    thread: Thread,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Thread {
    /// It waits to be woken.
    Idle,
    /// It looks for itself, soon.
    #[default]
    Awake,
}

enum Waiting {
    Lines(Vec<u8>),
    /// In this place.
    LeftOut(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum End {
    /// More may come.
    #[default]
    Open,
    /// Somebody waits for the last of it.
    Finishing,
    /// Whoever read it has gone.
    Unread,
}

impl Apart {
    /// `name` is the thread's.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(name: &str, to: impl Write + Send + 'static, words: Words) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), more: Condvar::new(), less: Condvar::new() });
        let writers = shared.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || writers.write_on(to, &words))?;
        Ok(Self(shared))
    }

    /// Takes lines, each with its end, or leaves them out where too much waits already.
    pub fn write(&self, lines: &[u8]) {
        let mut state = self.0.lock();
        if state.end == End::Unread {
            return;
        }
        if state.octets > 0 && state.octets + lines.len() > ROOM {
            let count = lines.iter().filter(|octet| **octet == b'\n').count() as u64;
            state.left_out += count;
            match state.waiting.back_mut() {
                Some(Waiting::LeftOut(before)) => *before += count,
                _ => state.waiting.push_back(Waiting::LeftOut(count)),
            }
            return;
        }
        state.octets += lines.len();
        state.waiting.push_back(Waiting::Lines(lines.to_vec()));
        if std::mem::replace(&mut state.thread, Thread::Awake) == Thread::Idle {
            self.0.more.notify_one();
        }
    }

    /// Lines that were left out. What nobody reads any more is not counted.
    pub fn left_out(&self) -> u64 {
        self.0.lock().left_out
    }

    /// Waits until everything is written, but no longer than this. Whether it is.
    pub fn finish(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        let mut state = self.0.lock();
        if state.end == End::Open {
            state.end = End::Finishing;
            self.0.more.notify_one();
        }
        while !state.is_written() && state.end == End::Finishing {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return false };
            let waited = self.0.less.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.is_written() || state.end == End::Unread
    }
}

impl State {
    fn is_written(&self) -> bool {
        self.octets == 0 && self.waiting.is_empty()
    }
}

impl fmt::Debug for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Apart").field("left_out", &self.left_out()).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that waits, as soon as something does.
    fn next(&self) -> VecDeque<Waiting> {
        let mut state = self.lock();
        while state.waiting.is_empty() {
            state.thread = Thread::Idle;
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.thread = Thread::Awake;
        std::mem::take(&mut state.waiting)
    }

    fn breathe(&self) {
        let until = Instant::now() + BREATH;
        let mut state = self.lock();
        while state.end == End::Open {
            let Some(left) = until.checked_duration_since(Instant::now()) else { return };
            state = self.more.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn write_on(&self, mut to: impl Write, words: &Words) {
        loop {
            let (mut octets, mut taken) = (Vec::new(), 0);
            for waiting in self.next() {
                match waiting {
                    Waiting::Lines(lines) => {
                        taken += lines.len();
                        octets.extend(lines);
                    }
                    Waiting::LeftOut(count) => {
                        octets.extend(words.gap.map_or_else(String::new, |say| say(count)).into_bytes())
                    }
                }
            }
            let written = write_all(&mut to, &octets, words);
            let mut state = self.lock();
            state.octets -= taken;
            if written.is_err() {
                *state = State { end: End::Unread, left_out: state.left_out, ..State::default() };
            }
            drop(state);
            self.less.notify_all();
            if written.is_err() {
                return;
            }
            self.breathe();
        }
    }
}

/// Fails if nobody reads any more. Everything else may pass: a disk gets room again.
fn write_all(to: &mut impl Write, mut octets: &[u8], words: &Words) -> Result<(), ()> {
    let mut told = false;
    while !octets.is_empty() {
        match to.write(octets).and_then(|count| to.flush().map(|()| count)) {
            Ok(count) => octets = &octets[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(()),
            // Somebody else has made the pipe so.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(Duration::from_millis(10)),
            Err(error) => {
                if !std::mem::replace(&mut told, true) {
                    (words.failed)(&error);
                }
                thread::sleep(AGAIN);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// Each write waits until the test lets it go, with the error that it shall meet.
    struct Slow {
        go: Receiver<Option<ErrorKind>>,
        written: Arc<Mutex<Vec<u8>>>,
        writes: Arc<Mutex<u32>>,
    }

    impl Write for Slow {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            if let Ok(Some(kind)) = self.go.recv() {
                return Err(kind.into());
            }
            self.written.lock().unwrap().extend(octets);
            *self.writes.lock().unwrap() += 1;
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stage {
        apart: Apart,
        go: Sender<Option<ErrorKind>>,
        written: Arc<Mutex<Vec<u8>>>,
        writes: Arc<Mutex<u32>>,
        failures: Arc<Mutex<u32>>,
    }

    fn stage() -> Stage {
        let (go, receiver) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (writes, failures) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let told = failures.clone();
        let words = Words {
            gap: Some(|count| format!("{count} lines were left out\n")),
            failed: Box::new(move |_| *told.lock().unwrap() += 1),
        };
        let slow = Slow { go: receiver, written: written.clone(), writes: writes.clone() };
        Stage { apart: Apart::start("test", slow, words).unwrap(), go, written, writes, failures }
    }

    impl Stage {
        fn text(&self) -> String {
            String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn what_there_is_no_room_for_is_left_out_counted_and_told_in_its_place() {
        let stage = stage();
        let line = [&[b'x'; 999][..], b"\n"].concat();
        for _ in 0..2 * ROOM / line.len() {
            stage.apart.write(&line);
        }
        let left_out = stage.apart.left_out();
        assert!((1000..1200).contains(&left_out), "{left_out}");
        assert!(!stage.apart.finish(Duration::from_millis(1)), "nothing was written yet");
        // What the thread had in its hands, what waited behind it, and the next line.
        for _ in 0..3 {
            stage.go.send(None).unwrap();
        }
        assert!(stage.apart.finish(PATIENCE));
        stage.apart.write(b"and on\n");
        assert!(stage.apart.finish(PATIENCE));
        let text = stage.text();
        // In one place, or in two, if the thread took what waited in the midst of them.
        let told = text.lines().filter_map(|line| line.strip_suffix(" lines were left out"));
        assert_eq!(told.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), left_out);
        assert_eq!(text.lines().last(), Some("and on"));
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64 + left_out, 2097);
    }

    #[test]
    fn lines_that_come_close_together_are_few_writes_and_all_of_them_come() {
        let stage = stage();
        for _ in 0..1000 {
            stage.go.send(None).unwrap();
        }
        let begin = Instant::now();
        for _ in 0..500 {
            stage.apart.write(b"a line\n");
            thread::sleep(Duration::from_micros(100));
        }
        let took = begin.elapsed();
        assert!(stage.apart.finish(PATIENCE));
        assert_eq!(stage.text().lines().count(), 500);
        let (writes, breaths) = (*stage.writes.lock().unwrap(), took.as_millis() / BREATH.as_millis());
        assert!(u128::from(writes) <= breaths + 3, "{writes} writes in {took:?}");
    }

    #[test]
    fn a_full_disk_is_told_once_and_written_on_when_there_is_room() {
        let stage = stage();
        stage.apart.write(b"one\n");
        stage.go.send(Some(ErrorKind::StorageFull)).unwrap();
        stage.go.send(Some(ErrorKind::StorageFull)).unwrap();
        stage.go.send(None).unwrap();
        assert!(stage.apart.finish(PATIENCE));
        assert_eq!((stage.text().as_str(), *stage.failures.lock().unwrap()), ("one\n", 1));
    }

    #[test]
    fn where_nobody_reads_any_more_nobody_waits() {
        let stage = stage();
        stage.apart.write(b"one\n");
        stage.go.send(Some(ErrorKind::BrokenPipe)).unwrap();
        let start = Instant::now();
        assert!(stage.apart.finish(PATIENCE), "nothing is left to be written");
        for _ in 0..10_000 {
            stage.apart.write(&[b'x'; 1000]);
        }
        assert!(start.elapsed() < PATIENCE && stage.text().is_empty());
        assert_eq!(stage.apart.left_out(), 0);
    }
}
