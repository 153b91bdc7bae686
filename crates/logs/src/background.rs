//! Output lines written by a separate thread, so that the caller never waits for a slow file, pipe or terminal: a
//! public server must not stall because of its log.
//!
//! `tracing-appender` does not replace this module: it loses lines after a write error, does not mark gaps, limits
//! the number of lines instead of bytes, and can wait for its lines only once, when it ends.

#![expect(clippy::disallowed_methods, reason = "the thread waits for a pipe or a disk")]

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use std::{fmt, mem, thread};

/// Maximum number of bytes that wait to be written. Lines beyond it are dropped and counted.
const MAX_QUEUED: usize = 1 << 20;
/// Pause after each write. A single line is written at once, and lines that arrive during the pause
/// share one write.
const PAUSE: Duration = Duration::from_millis(10);
/// Interval between retries after an error such as a full disk.
const RETRY: Duration = Duration::from_secs(1);

/// A queue of whole lines for one destination, and the thread that writes them.
#[derive(Clone)]
pub struct BackgroundWriter {
    queue: Arc<Mutex<Queue>>,
    thread: thread::Thread,
}

struct Queue {
    /// Complete lines that wait to be written.
    waiting: Vec<u8>,
    /// Number of bytes that the thread is writing.
    writing: usize,
    /// Number of lines that were dropped after the waiting lines.
    unmarked_drops: u64,
    /// Returns the line that replaces dropped lines, if the format allows one.
    gap_line: Option<fn(u64) -> String>,
    /// Total number of dropped lines.
    dropped: u64,
    /// The reader has closed the pipe.
    closed: bool,
}

impl BackgroundWriter {
    /// Starts a thread called `name` that writes to `to`. `gap_line` returns a line that replaces the
    /// given number of dropped lines. `failed` is called when writing begins to fail.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        name: &str,
        to: impl Write + Send + 'static,
        gap_line: Option<fn(u64) -> String>,
        failed: impl Fn(&io::Error) + Send + 'static,
    ) -> io::Result<Self> {
        let queue =
            Queue { waiting: Vec::new(), writing: 0, unmarked_drops: 0, gap_line, dropped: 0, closed: false };
        let queue = Arc::new(Mutex::new(queue));
        let writers = queue.clone();
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || run(&writers, to, &failed))?;
        Ok(Self { queue, thread: thread.thread().clone() })
    }

    /// Queues complete lines, each with its line feed. Drops and counts them if too much is waiting
    /// already.
    pub fn write(&self, lines: &[u8]) {
        let mut queue = lock(&self.queue);
        if queue.closed {
            return;
        }
        let queued = queue.waiting.len() + queue.writing;
        if queued > 0 && queued + lines.len() > MAX_QUEUED {
            let count = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
            queue.unmarked_drops += count;
            queue.dropped += count;
            return;
        }
        queue.mark_gap();
        queue.waiting.extend(lines);
        drop(queue);
        self.thread.unpark();
    }

    /// Returns the number of dropped lines. Lines after the reader has closed the pipe do not
    /// count.
    pub fn dropped(&self) -> u64 {
        lock(&self.queue).dropped
    }

    /// Waits at most `limit` until everything is written. Returns whether everything was written or
    /// the reader has closed the pipe.
    pub fn finish(&self, limit: Duration) -> bool {
        let begin = Instant::now();
        while !lock(&self.queue).is_written() {
            if begin.elapsed() >= limit {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

impl fmt::Debug for BackgroundWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackgroundWriter").field("dropped", &self.dropped()).finish_non_exhaustive()
    }
}

impl Queue {
    fn is_written(&self) -> bool {
        self.waiting.is_empty() && self.writing == 0 && self.unmarked_drops == 0
    }

    /// Queues the line that replaces the dropped lines, if there are any.
    fn mark_gap(&mut self) {
        let unmarked_drops = mem::take(&mut self.unmarked_drops);
        if let Some(line) = self.gap_line.filter(|_| unmarked_drops > 0) {
            self.waiting.extend(line(unmarked_drops).into_bytes());
        }
    }
}

fn lock(queue: &Mutex<Queue>) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the queue until the reader closes the pipe.
fn run(shared: &Mutex<Queue>, mut to: impl Write, failed: &impl Fn(&io::Error)) {
    let mut batch = Vec::new();
    loop {
        let mut queue = lock(shared);
        queue.mark_gap();
        mem::swap(&mut queue.waiting, &mut batch);
        queue.writing = batch.len();
        drop(queue);
        if batch.is_empty() {
            // `write` ends the wait, also if it was called since the lock was released.
            thread::park();
            continue;
        }
        let written = write_all(&mut to, &batch, failed);
        batch.clear();
        let mut queue = lock(shared);
        queue.writing = 0;
        if written.is_err() {
            (queue.waiting, queue.unmarked_drops, queue.closed) = (Vec::new(), 0, true);
            return;
        }
        drop(queue);
        thread::sleep(PAUSE);
    }
}

/// Writes all bytes. Fails only if the reader has closed the pipe; other errors, such as a full
/// disk, may pass and are retried.
fn write_all(to: &mut impl Write, mut bytes: &[u8], failed: &impl Fn(&io::Error)) -> Result<(), ()> {
    let mut reported = false;
    while !bytes.is_empty() {
        match to.write(bytes).and_then(|count| to.flush().map(|()| count)) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Err(()),
            // Another process that shares the pipe has made it non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            Err(error) => {
                if !mem::replace(&mut reported, true) {
                    failed(&error);
                }
                thread::sleep(RETRY);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// A destination whose writes wait until the test lets each one proceed, with the error that it
    /// returns.
    struct Slow {
        go: Receiver<Option<ErrorKind>>,
        written: Arc<Mutex<Vec<u8>>>,
        writes: Arc<Mutex<u32>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if let Ok(Some(kind)) = self.go.recv() {
                return Err(kind.into());
            }
            self.written.lock().unwrap().extend(bytes);
            *self.writes.lock().unwrap() += 1;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Fixture {
        writer: BackgroundWriter,
        go: Sender<Option<ErrorKind>>,
        written: Arc<Mutex<Vec<u8>>>,
        writes: Arc<Mutex<u32>>,
        failures: Arc<Mutex<u32>>,
    }

    fn fixture() -> Fixture {
        let (go, receiver) = mpsc::channel();
        let written = Arc::new(Mutex::new(Vec::new()));
        let (writes, failures) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
        let counter = failures.clone();
        let failed = move |_: &io::Error| *counter.lock().unwrap() += 1;
        let gap_line = |count| format!("{count} lines were dropped\n");
        let slow = Slow { go: receiver, written: written.clone(), writes: writes.clone() };
        let writer = BackgroundWriter::start("test", slow, Some(gap_line), failed).unwrap();
        Fixture { writer, go, written, writes, failures }
    }

    impl Fixture {
        fn text(&self) -> String {
            String::from_utf8(self.written.lock().unwrap().clone()).unwrap()
        }
    }

    const TIMEOUT: Duration = Duration::from_secs(20);

    #[test]
    fn full_queue_drops_lines_and_reports_gap() {
        let fixture = fixture();
        let line = [&[b'x'; 999][..], b"\n"].concat();
        for _ in 0..2 * MAX_QUEUED / line.len() {
            fixture.writer.write(&line);
        }
        let dropped = fixture.writer.dropped();
        assert!((1000..1200).contains(&dropped), "{dropped}");
        assert!(!fixture.writer.finish(Duration::from_millis(1)), "nothing was written yet");
        // The batch that the thread is writing, the rest of the queue, and the next line.
        for _ in 0..3 {
            fixture.go.send(None).unwrap();
        }
        assert!(fixture.writer.finish(TIMEOUT));
        fixture.writer.write(b"the end\n");
        assert!(fixture.writer.finish(TIMEOUT));
        let text = fixture.text();
        // The number of dropped lines is reported once, or twice if the thread fetched the queue while lines were
        // being dropped.
        let gaps = text.lines().filter_map(|line| line.strip_suffix(" lines were dropped"));
        assert_eq!(gaps.map(|count| count.parse::<u64>().unwrap()).sum::<u64>(), dropped);
        assert_eq!(text.lines().last(), Some("the end"));
        assert_eq!(text.lines().filter(|line| line.starts_with('x')).count() as u64 + dropped, 2097);
    }

    #[test]
    fn close_lines_are_batched_without_loss() {
        let fixture = fixture();
        for _ in 0..1000 {
            fixture.go.send(None).unwrap();
        }
        let begin = Instant::now();
        for _ in 0..500 {
            fixture.writer.write(b"a line\n");
            thread::sleep(Duration::from_micros(100));
        }
        let took = begin.elapsed();
        assert!(fixture.writer.finish(TIMEOUT));
        assert_eq!(fixture.text().lines().count(), 500);
        let (writes, pauses) = (*fixture.writes.lock().unwrap(), took.as_millis() / PAUSE.as_millis());
        assert!(u128::from(writes) <= pauses + 3, "{writes} writes in {took:?}");
    }

    #[test]
    fn full_disk_is_reported_once_and_writing_resumes() {
        let fixture = fixture();
        fixture.writer.write(b"one\n");
        fixture.go.send(Some(ErrorKind::StorageFull)).unwrap();
        fixture.go.send(Some(ErrorKind::StorageFull)).unwrap();
        fixture.go.send(None).unwrap();
        assert!(fixture.writer.finish(TIMEOUT));
        assert_eq!((fixture.text().as_str(), *fixture.failures.lock().unwrap()), ("one\n", 1));
    }

    #[test]
    fn closed_pipe_discards_lines_without_waiting() {
        let fixture = fixture();
        fixture.writer.write(b"one\n");
        fixture.go.send(Some(ErrorKind::BrokenPipe)).unwrap();
        let start = Instant::now();
        assert!(fixture.writer.finish(TIMEOUT), "no line waits after the pipe is closed");
        for _ in 0..10_000 {
            fixture.writer.write(&[b'x'; 1000]);
        }
        assert!(start.elapsed() < TIMEOUT && fixture.text().is_empty());
        assert_eq!(fixture.writer.dropped(), 0);
    }
}
