//! Output lines written by a separate thread, so that the caller never waits for a slow file, pipe
//! or terminal. A public server must not stall because its log does.

#![expect(clippy::disallowed_methods, reason = "a pipe or a disk is waited for, and not for ever")]

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of bytes that wait to be written. Lines beyond it are dropped and counted.
const ROOM: usize = 1 << 20;
/// Pause after each write. A single line is written at once, and lines that arrive during the pause
/// share one write.
const BREATH: Duration = Duration::from_millis(10);
/// Interval between retries after an error such as a full disk.
const AGAIN: Duration = Duration::from_secs(1);

/// A queue of whole lines for one destination.
#[derive(Clone)]
pub struct Apart(Arc<Shared>);

/// Reactions to lines that could not be written.
pub struct Words {
    /// Returns a line that replaces the given number of dropped lines, if the format allows one.
    pub gap: Option<fn(u64) -> String>,
    /// Called when writing begins to fail.
    pub failed: Box<dyn Fn(&io::Error) + Send>,
}

struct Shared {
    state: Mutex<State>,
    /// Signals the thread that lines are waiting or that the end has come.
    more: Condvar,
    /// Signals [`Apart::finish`] that lines have been written.
    less: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    /// Number of bytes in `waiting` and in the batch that the thread is writing.
    octets: usize,
    /// Total number of dropped lines.
    left_out: u64,
    thread: Thread,
    end: End,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Thread {
    /// The thread sleeps until it is notified.
    Idle,
    /// The thread checks the queue again soon without a notification.
    #[default]
    Awake,
}

enum Waiting {
    Lines(Vec<u8>),
    /// Number of lines dropped at this position.
    LeftOut(u64),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum End {
    /// More lines may come.
    #[default]
    Open,
    /// A caller waits in [`Apart::finish`] until all lines are written.
    Finishing,
    /// The reader of the pipe has closed it.
    Unread,
}

impl Apart {
    /// Starts a thread called `name` that writes to `to`.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(name: &str, to: impl Write + Send + 'static, words: Words) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), more: Condvar::new(), less: Condvar::new() });
        let writers = shared.clone();
        thread::Builder::new().name(name.to_owned()).spawn(move || writers.write_on(to, &words))?;
        Ok(Self(shared))
    }

    /// Queues complete lines, each with its line feed. Drops and counts them if too much is waiting
    /// already.
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

    /// Returns the number of dropped lines. Lines after the reader has closed the pipe do not
    /// count.
    pub fn left_out(&self) -> u64 {
        self.0.lock().left_out
    }

    /// Waits at most `limit` until everything is written. Returns whether everything was written or
    /// the reader has closed the pipe.
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

    /// Waits until something is queued and returns the whole queue.
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

/// Writes all bytes. Fails only if the reader has closed the pipe; other errors, such as a full
/// disk, may pass and are retried.
fn write_all(to: &mut impl Write, mut octets: &[u8], words: &Words) -> Result<(), ()> {
    let mut told = false;
    while !octets.is_empty() {
        match to.write(octets).and_then(|count| to.flush().map(|()| count)) {
            Ok(count) => octets = &octets[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(()),
            // Another process that shares the pipe has made it non-blocking.
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

    /// A writer whose writes wait until the test lets each one proceed, with the error that it
    /// shall return.
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

    struct Fixture {
        apart: Apart,
        go: Sender<Option<ErrorKind>>,
        written: Arc<Mutex<Vec<u8>>>,
        writes: Arc<Mutex<u32>>,
        failures: Arc<Mutex<u32>>,
    }

    fn fixture() -> Fixture {
        let (go, receiver) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (writes, failures) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let told = failures.clone();
        let words = Words {
            gap: Some(|count| format!("{count} lines were left out\n")),
            failed: Box::new(move |_| *told.lock().unwrap() += 1),
        };
        let slow = Slow { go: receiver, written: written.clone(), writes: writes.clone() };
        Fixture { apart: Apart::start("test", slow, words).unwrap(), go, written, writes, failures }
    }

    impl Fixture {
        fn text(&self) -> String {
            String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
        }
    }

    const PATIENCE: Duration = Duration::from_secs(20);

    #[test]
    fn full_queue_drops_lines_and_reports_gap() {
        let fixture = fixture();
        let line = [&[b'x'; 999][..], b"\n"].concat();
        for _ in 0..2 * ROOM / line.len() {
            fixture.apart.write(&line);
        }
        let left_out = fixture.apart.left_out();
        assert!((1000..1200).contains(&left_out), "{left_out}");
        assert!(!fixture.apart.finish(Duration::from_millis(1)), "nothing was written yet");
        // The batch in the thread's hands, the rest of the queue, and the next line.
        for _ in 0..3 {
            fixture.go.send(None).unwrap();
        }
        assert!(fixture.apart.finish(PATIENCE));
        fixture.apart.write(b"and on\n");
        assert!(fixture.apart.finish(PATIENCE));
        let text = fixture.text();
        // The gap is reported once, or twice if the thread fetched the queue while lines were being
        // dropped.
        let told = text.lines().filter_map(|line| line.strip_suffix(" lines were left out"));
        assert_eq!(told.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), left_out);
        assert_eq!(text.lines().last(), Some("and on"));
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64 + left_out, 2097);
    }

    #[test]
    fn close_lines_are_batched_without_loss() {
        let fixture = fixture();
        for _ in 0..1000 {
            fixture.go.send(None).unwrap();
        }
        let begin = Instant::now();
        for _ in 0..500 {
            fixture.apart.write(b"a line\n");
            thread::sleep(Duration::from_micros(100));
        }
        let took = begin.elapsed();
        assert!(fixture.apart.finish(PATIENCE));
        assert_eq!(fixture.text().lines().count(), 500);
        let (writes, breaths) = (*fixture.writes.lock().unwrap(), took.as_millis() / BREATH.as_millis());
        assert!(u128::from(writes) <= breaths + 3, "{writes} writes in {took:?}");
    }

    #[test]
    fn full_disk_is_reported_once_and_writing_resumes() {
        let fixture = fixture();
        fixture.apart.write(b"one\n");
        fixture.go.send(Some(ErrorKind::StorageFull)).unwrap();
        fixture.go.send(Some(ErrorKind::StorageFull)).unwrap();
        fixture.go.send(None).unwrap();
        assert!(fixture.apart.finish(PATIENCE));
        assert_eq!((fixture.text().as_str(), *fixture.failures.lock().unwrap()), ("one\n", 1));
    }

    #[test]
    fn closed_pipe_discards_lines_without_waiting() {
        let fixture = fixture();
        fixture.apart.write(b"one\n");
        fixture.go.send(Some(ErrorKind::BrokenPipe)).unwrap();
        let start = Instant::now();
        assert!(fixture.apart.finish(PATIENCE), "nothing is left to be written");
        for _ in 0..10_000 {
            fixture.apart.write(&[b'x'; 1000]);
        }
        assert!(start.elapsed() < PATIENCE && fixture.text().is_empty());
        assert_eq!(fixture.apart.left_out(), 0);
    }
}
