//! A thread that writes to the device.
//!
//! A write lasts until the kernel has delivered the segment to its socket, which takes a third of a busy server's
//! time. In a separate thread this costs the host nothing. But waking a thread costs as much as writing one or two
//! small packets, and delays them. So a host under low load writes up to [`MAX_INLINE`] packets itself.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use airlink::tun::Tun;
use airwire::piece::Piece;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{SendCounters, Waker, Written};

/// Maximum number of pieces that wait for the thread. Even if each packet is a separate write, it leaves within a
/// fraction of a millisecond of the sending time that the host recorded.
const MAX_QUEUED_PIECES: usize = 176;
/// Maximum number of bytes that wait for the thread. Writing large pieces takes a tenth of the time
/// of writing the same bytes as single packets.
const MAX_QUEUED_BYTES: usize = 1 << 20;
/// Number of packets that the host's thread writes itself.
const MAX_INLINE: usize = 2;
/// Maximum number of written pieces whose buffers, of up to 64 KiB each, are kept for reuse.
const MAX_SPARE: usize = 16;
/// Interval at which the thread checks whether to end while the device is full.
const POLL_MS: u8 = 100;
/// Time after which [`Writer::flush`] gives up on a device that stays full.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The destination of the pieces.
pub(super) trait Sink: Send + Sync + 'static {
    fn send(&self, piece: &mut Piece) -> io::Result<()>;

    /// Waits until the destination may have room, or for [`POLL_MS`].
    fn wait(&self) -> io::Result<()>;
}

impl Sink for Tun {
    fn send(&self, piece: &mut Piece) -> io::Result<()> {
        self.send_piece(piece)
    }

    fn wait(&self) -> io::Result<()> {
        let mut device = [PollFd::new(self.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut device, PollTimeout::from(POLL_MS)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Load of the host's thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HostLoad {
    /// Few packets have arrived.
    Low,
    /// Many packets have arrived. Writing would add to the load, because the kernel answers inside the write.
    High,
}

impl HostLoad {
    /// Derives the load from the number of packets read at once.
    pub(super) const fn of(received: usize) -> Self {
        if received <= MAX_INLINE { Self::Low } else { Self::High }
    }
}

/// The host's handle of the thread.
pub(super) struct Writer<S> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<S> {
    sink: Arc<S>,
    queue: Mutex<Queue>,
    /// Signals that pieces are waiting or that the thread is to end.
    work: Condvar,
    /// Signals that everything has been written.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Piece>,
    octets: usize,
    /// Written pieces, whose buffers are reused.
    spare: Vec<Piece>,
    thread: State,
    /// Whether a piece was refused. The driver is then woken when the queue has room again.
    refused: bool,
    done: SendCounters,
    /// The error after which nothing more was written.
    failed: Option<io::Error>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Asleep,
    Writing,
    /// The thread is to end.
    Ending,
}

impl<S: Sink> Shared<S> {
    fn new(sink: Arc<S>) -> Self {
        Self { sink, queue: Mutex::default(), work: Condvar::new(), idle: Condvar::new() }
    }

    /// Locks the queue. A panic cannot leave it in an inconsistent state.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Sink> Writer<S> {
    /// Starts the thread, with the privileges of the current thread.
    pub(super) fn start(sink: Arc<S>, driver: Waker) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(sink));
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("device".to_owned()).spawn(move || write_all(&shared, &driver))?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Moves the content of `piece` into the queue and leaves an empty piece. Fails with
    /// `WouldBlock` if the queue is full.
    pub(super) fn queue(&self, piece: &mut Piece) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        if queue.octets >= MAX_QUEUED_BYTES || queue.waiting.len() >= MAX_QUEUED_PIECES {
            queue.refused = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let empty = queue.spare.pop().unwrap_or_default();
        queue.octets += piece.wire_bytes();
        queue.waiting.push_back(std::mem::replace(piece, empty));
        Ok(())
    }

    /// Writes the queued pieces, or wakes the thread to write them. Returns an error of the device,
    /// including an earlier one of the thread.
    pub(super) fn start_writing(&self, load: HostLoad) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        // A thread that is awake checks the queue again before sleeping.
        if queue.thread != State::Asleep {
            return Ok(());
        }
        if load == HostLoad::Low && queue.waiting.iter().map(Piece::count).sum::<usize>() <= MAX_INLINE {
            // The writer thread stays asleep meanwhile, because only this thread wakes it.
            queue.write_queued(&*self.shared.sink)?;
        }
        if !queue.waiting.is_empty() {
            queue.thread = State::Writing;
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Waits until everything has been written, or until the device has been full for too long.
    pub(super) fn flush(&self) -> io::Result<Written> {
        self.start_writing(HostLoad::Low)?;
        let queue = self.shared.lock();
        let busy = |queue: &mut Queue| queue.thread == State::Writing && queue.failed.is_none();
        let waited = self.shared.idle.wait_timeout_while(queue, FLUSH_TIMEOUT, busy);
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match queue.failed.take() {
            Some(error) => Err(error),
            None if timeout.timed_out() => Ok(Written::Blocked),
            None => Ok(Written::Everything),
        }
    }

    /// Returns the counters of all pieces handled so far.
    pub(super) fn counters(&self) -> SendCounters {
        self.shared.lock().done
    }
}

impl<S> Drop for Writer<S> {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).thread = State::Ending;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread completes its current write. If the thread panicked, this has already been reported.
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// Writes the queued pieces until the device is full.
    fn write_queued(&mut self, sink: &impl Sink) -> io::Result<()> {
        while let Some(mut piece) = self.waiting.pop_front() {
            let octets = piece.wire_bytes();
            let result = sink.send(&mut piece);
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                self.waiting.push_front(piece);
                return Ok(());
            }
            self.octets -= octets;
            self.done.count(&piece, result)?;
            piece.clear();
            self.spare.push(piece);
        }
        Ok(())
    }
}

fn write_all<S: Sink>(shared: &Shared<S>, driver: &Waker) {
    let mut pieces = VecDeque::new();
    let mut written = Vec::new();
    loop {
        let mut queue = shared.lock();
        queue.spare.append(&mut written);
        queue.spare.truncate(MAX_SPARE);
        if queue.waiting.is_empty() && queue.thread == State::Writing {
            queue.thread = State::Asleep;
            shared.idle.notify_all();
        }
        while queue.thread == State::Asleep {
            queue = shared.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        if queue.thread == State::Ending {
            return;
        }
        std::mem::swap(&mut queue.waiting, &mut pieces);
        queue.octets = 0;
        if std::mem::take(&mut queue.refused) {
            driver.wake();
        }
        drop(queue);
        let mut done = SendCounters::default();
        let result = pieces.drain(..).try_for_each(|mut piece| {
            let result = write(shared, &mut piece, &mut done);
            piece.clear();
            written.push(piece);
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

fn write<S: Sink>(shared: &Shared<S>, piece: &mut Piece, done: &mut SendCounters) -> io::Result<()> {
    let mut waited = false;
    loop {
        match shared.sink.send(piece) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if shared.lock().thread == State::Ending {
                    return Ok(());
                }
                done.waits += u64::from(!std::mem::replace(&mut waited, true));
                shared.sink.wait()?;
            }
            result => return done.count(piece, result),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::mpsc::{self, Receiver, Sender};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    use super::*;

    /// A device that takes nothing until the test answers each attempt.
    struct Device {
        answers: Mutex<Receiver<Result<(), ErrorKind>>>,
        sent: Sender<Vec<u8>>,
    }

    impl Sink for Device {
        fn send(&self, piece: &mut Piece) -> io::Result<()> {
            // After the test has dropped its end, accept everything.
            self.answers.lock().unwrap().recv().unwrap_or(Ok(()))?;
            self.sent.send(piece.single_packet().unwrap().to_vec()).unwrap();
            Ok(())
        }

        fn wait(&self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Fixture {
        answers: Sender<Result<(), ErrorKind>>,
        sent: Receiver<Vec<u8>>,
        woken: Arc<EventFd>,
        writer: Writer<Device>,
    }

    fn fixture() -> Fixture {
        fixture_with(|device, driver| Writer::start(device, driver).unwrap())
    }

    fn fixture_with(start: impl FnOnce(Arc<Device>, Waker) -> Writer<Device>) -> Fixture {
        let ((answers, receiver), (sent, packets)) = (mpsc::channel(), mpsc::channel());
        let woken = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap());
        let device = Arc::new(Device { answers: Mutex::new(receiver), sent });
        let writer = start(device, Waker(Arc::clone(&woken)));
        Fixture { answers, sent: packets, woken, writer }
    }

    /// One packet more than the driver's thread writes itself.
    const MANY: usize = MAX_INLINE + 1;

    impl Fixture {
        fn queue_many(&self) {
            (0..MANY).for_each(|_| self.queue(b"it").unwrap());
        }

        fn queue(&self, packet: &[u8]) -> io::Result<()> {
            let mut piece = Piece::default();
            piece.fill(|octets| {
                octets.extend_from_slice(packet);
                true
            });
            self.writer.queue(&mut piece)?;
            assert!(piece.is_empty(), "an empty piece is left behind");
            Ok(())
        }
    }

    #[test]
    fn flush_writes_all_packets_in_order() {
        let fixture = fixture();
        for number in 0..100_u8 {
            fixture.answers.send(Ok(())).unwrap();
            fixture.queue(&[number]).unwrap();
            if number % 7 == 0 {
                fixture.writer.start_writing(HostLoad::Low).unwrap();
            }
        }
        assert!(fixture.writer.flush().unwrap() == Written::Everything);
        let sent: Vec<u8> = fixture.sent.try_iter().flatten().collect();
        assert_eq!(sent, (0..100).collect::<Vec<u8>>());
        let done = fixture.writer.counters();
        assert_eq!((done.packets, done.octets, done.refused, done.waits), (100, 100, 0, 0));
    }

    #[test]
    fn full_queue_rejects_packets_and_wakes_driver() {
        let fixture = fixture();
        let queued = (0..).take_while(|_| fixture.queue(&[0; 1000]).is_ok()).count();
        assert_eq!(queued, MAX_QUEUED_PIECES);
        assert_eq!(fixture.queue(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(fixture.woken.read().is_err(), "the queue is still full");
        for _ in 0..queued {
            fixture.answers.send(Ok(())).unwrap();
        }
        assert!(fixture.writer.flush().unwrap() == Written::Everything);
        assert_eq!(fixture.woken.read(), Ok(1));
        fixture.queue(b"x").unwrap();
        // Large pieces reach the limit in bytes first.
        let large = (0..).take_while(|_| fixture.queue(&[0; 60_000]).is_ok()).count();
        assert_eq!(large, MAX_QUEUED_BYTES.div_ceil(60_000));
    }

    #[test]
    fn packets_queued_before_thread_start_are_flushed() {
        let mut begin = None;
        let mut fixture = fixture_with(|device, driver| {
            let shared = Arc::new(Shared::new(device));
            let writer = Writer { shared: Arc::clone(&shared), thread: None };
            begin = Some(move || write_all(&shared, &driver));
            writer
        });
        fixture.queue_many();
        fixture.writer.thread = begin.map(thread::spawn);
        assert!(
            fixture.sent.recv_timeout(Duration::from_millis(50)).is_err(),
            "a packet was written before the device accepted one"
        );
        for _ in 0..MANY {
            fixture.answers.send(Ok(())).unwrap();
        }
        assert!(fixture.writer.flush().unwrap() == Written::Everything);
        assert_eq!(fixture.sent.try_iter().count(), MANY);
    }

    #[test]
    fn few_packets_are_written_without_thread() {
        let without = |device, _| Writer { shared: Arc::new(Shared::new(device)), thread: None };
        let fixture = fixture_with(without);
        for number in 0..MAX_INLINE {
            fixture.answers.send(Ok(())).unwrap();
            fixture.queue(&[number as u8]).unwrap();
        }
        fixture.writer.start_writing(HostLoad::Low).unwrap();
        assert_eq!(fixture.sent.try_iter().flatten().collect::<Vec<u8>>(), [0, 1]);
        assert_eq!(fixture.writer.counters().packets, 2);
        // Waiting for a full device is left to the thread.
        fixture.answers.send(Err(ErrorKind::WouldBlock)).unwrap();
        fixture.queue(b"it").unwrap();
        fixture.writer.start_writing(HostLoad::Low).unwrap();
        assert!(fixture.writer.shared.lock().thread == State::Writing);
    }

    #[test]
    fn busy_host_leaves_single_packet_to_thread() {
        let fixture = fixture();
        fixture.queue(b"it").unwrap();
        // If this thread wrote the packet, it would wait here for the device's answer.
        fixture.writer.start_writing(HostLoad::of(MANY)).unwrap();
        fixture.answers.send(Ok(())).unwrap();
        assert!(fixture.writer.flush().unwrap() == Written::Everything);
        assert_eq!(fixture.sent.try_recv().unwrap(), b"it");
    }

    #[test]
    fn device_error_is_returned_without_thread() {
        let fixture = fixture();
        fixture.answers.send(Err(ErrorKind::NotFound)).unwrap();
        fixture.queue(b"it").unwrap();
        assert_eq!(fixture.writer.start_writing(HostLoad::Low).unwrap_err().kind(), ErrorKind::NotFound);
        fixture.writer.start_writing(HostLoad::Low).unwrap();
    }

    #[test]
    fn full_device_is_retried() {
        let fixture = fixture();
        for answer in [Err(ErrorKind::WouldBlock), Err(ErrorKind::WouldBlock), Ok(())] {
            fixture.answers.send(answer).unwrap();
        }
        fixture.queue(b"it").unwrap();
        assert!(fixture.writer.flush().unwrap() == Written::Everything);
        assert_eq!(fixture.sent.try_recv().unwrap(), b"it");
        assert_eq!((fixture.writer.counters().packets, fixture.writer.counters().waits), (1, 1));
    }

    #[test]
    fn device_error_is_reported_once_and_wakes_driver() {
        let fixture = fixture();
        fixture.answers.send(Err(ErrorKind::NotFound)).unwrap();
        fixture.queue_many();
        assert_eq!(fixture.writer.flush().err().unwrap().kind(), ErrorKind::NotFound);
        while fixture.woken.read().is_err() {
            thread::yield_now();
        }
        assert!(fixture.writer.flush().unwrap() == Written::Everything, "the error is not reported again");
    }

    #[test]
    fn flush_returns_if_device_stays_blocked() {
        let fixture = fixture();
        fixture.queue_many();
        assert!(fixture.writer.flush().unwrap() == Written::Blocked);
        drop(fixture.answers);
    }
}
