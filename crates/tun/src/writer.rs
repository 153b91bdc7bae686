//! A thread that writes to the device.
//!
//! A write takes as long as the kernel needs to carry a segment to its socket, a third of all that a busy server does. Beside
//! the thread of the host it costs the host nothing.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use airlink::offload::Batch;
use airlink::tun::Tun;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{Sending, Waker};

/// So much may wait, for a fraction of a millisecond: the host's times of sending stay right, and what it has said it
/// cannot take back.
const MOST_OCTETS: usize = 256 << 10;
/// Small packets take a whole write each.
const MOST_BATCHES: usize = 256;
/// How often the thread looks whether it is to end while a device takes nothing.
const PATIENCE_MS: u8 = 100;

/// The host's end of it.
pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    queue: Mutex<Queue>,
    /// There is something to write, or the end has come.
    work: Condvar,
    /// Everything has been written.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Batch>,
    octets: usize,
    /// Written; their buffers are used again.
    spare: Vec<Batch>,
    thread: State,
    /// A batch was turned away: the driver is woken when there is room.
    refused: bool,
    done: Sending,
    /// Nothing more can be written.
    failed: Option<io::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Asleep,
    Writing,
    /// It has been told to end.
    Ending,
}

impl Shared {
    /// A thread that has panicked left nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Writer {
    /// The thread has the rights that this one has now.
    pub(super) fn start(tun: Arc<Tun>, driver: Waker) -> io::Result<Self> {
        let queue = Mutex::new(Queue::default());
        let shared = Arc::new(Shared { queue, work: Condvar::new(), idle: Condvar::new() });
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("device".to_owned())
                .spawn(move || write_all(&tun, &shared, &driver))?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes what is in the batch and leaves an empty one; an error of kind `WouldBlock` if too much waits.
    pub(super) fn take(&self, batch: &mut Batch) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        if queue.octets >= MOST_OCTETS || queue.waiting.len() >= MOST_BATCHES {
            queue.refused = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let empty = queue.spare.pop().unwrap_or_else(|| batch.another());
        queue.octets += batch.octets();
        queue.waiting.push_back(std::mem::replace(batch, empty));
        Ok(())
    }

    /// What it took is to leave now. To wake a thread costs as much as to write a small packet or two: many at once are better.
    pub(super) fn go(&self) {
        let mut queue = self.shared.lock();
        // A thread that is awake looks again before it sleeps.
        if queue.thread == State::Asleep && !queue.waiting.is_empty() {
            queue.thread = State::Writing;
            self.shared.work.notify_one();
        }
    }

    /// Waits until all has been written.
    pub(super) fn flush(&self) -> io::Result<()> {
        self.go();
        let queue = self.shared.lock();
        let busy = |queue: &mut Queue| queue.thread == State::Writing && queue.failed.is_none();
        let mut queue = self.shared.idle.wait_while(queue, busy).unwrap_or_else(PoisonError::into_inner);
        queue.failed.take().map_or(Ok(()), Err)
    }

    /// What has become of all that it took.
    pub(super) fn done(&self) -> Sending {
        self.shared.lock().done
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().thread = State::Ending;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // It writes what it has begun; a panic of its own has been reported.
            let _ = thread.join();
        }
    }
}

fn write_all(tun: &Tun, shared: &Shared, driver: &Waker) {
    let mut batches = VecDeque::new();
    let mut written = Vec::new();
    loop {
        let mut queue = shared.lock();
        queue.spare.append(&mut written);
        while queue.waiting.is_empty() || queue.thread == State::Ending {
            if queue.thread == State::Ending {
                return;
            }
            queue.thread = State::Asleep;
            shared.idle.notify_all();
            queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut queue.waiting, &mut batches);
        queue.octets = 0;
        if std::mem::take(&mut queue.refused) {
            driver.wake();
        }
        drop(queue);
        let mut done = Sending::default();
        let result = batches.drain(..).try_for_each(|mut batch| {
            let result = write(tun, shared, &mut batch, &mut done);
            batch.clear();
            written.push(batch);
            result
        });
        let mut queue = shared.lock();
        queue.done += done;
        if let Err(error) = result {
            queue.failed = Some(error);
            shared.idle.notify_all();
            driver.wake();
        }
    }
}

fn write(tun: &Tun, shared: &Shared, batch: &mut Batch, done: &mut Sending) -> io::Result<()> {
    let mut waited = false;
    loop {
        match tun.send_batch(batch) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if shared.lock().thread == State::Ending {
                    return Ok(());
                }
                done.waits += u64::from(!std::mem::replace(&mut waited, true));
                let mut device = [PollFd::new(tun.as_fd(), PollFlags::POLLOUT)];
                poll(&mut device, PollTimeout::from(PATIENCE_MS))?;
            }
            result => return done.note(batch, result),
        }
    }
}
