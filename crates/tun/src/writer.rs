//! A thread that writes to the device.
//!
//! A write takes as long as the kernel needs to carry a segment to its socket, a third of all that a busy server does. Beside
//! the thread of the host it costs the host nothing. But to wake a thread costs as much as to write a small packet or two, and
//! they would leave later: so few are written at once by the thread of the host, if it has nothing else to do.

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

use super::{Sending, Waker, Written};

/// No more waits for the thread, so that it leaves a fraction of a millisecond after the time that the host has noted: so many
/// packets, each a write by itself.
const MOST_PIECES: usize = 176;
/// And so many octets, of which large pieces take a tenth of the time that packets take.
const MOST_OCTETS: usize = 1 << 20;
/// Of packets.
const FEW: usize = 2;
/// Written pieces whose buffers, of up to 64 KiB, are kept.
const MOST_SPARE: usize = 16;
/// How often the thread looks whether it is to end while a device takes nothing.
const LOOK_MS: u8 = 100;
/// How long a device may take nothing before [`Writer::flush`] gives up.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where it writes to.
pub(super) trait Sink: Send + Sync + 'static {
    fn send(&self, piece: &mut Piece) -> io::Result<()>;

    /// Returns when it may take something, and from time to time before.
    fn wait(&self) -> io::Result<()>;
}

impl Sink for Tun {
    fn send(&self, piece: &mut Piece) -> io::Result<()> {
        self.send_piece(piece)
    }

    fn wait(&self) -> io::Result<()> {
        let mut device = [PollFd::new(self.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut device, PollTimeout::from(LOOK_MS)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// What the thread of the host has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// Hardly anything has come in.
    Calm,
    /// A packet that leaves makes the kernel send more within the write, while the host has enough to do.
    Busy,
}

impl Pace {
    /// So many packets were read at once.
    pub(super) const fn of(received: usize) -> Self {
        if received <= FEW { Self::Calm } else { Self::Busy }
    }
}

/// The host's end of it.
pub(super) struct Writer<S> {
    shared: Arc<Shared<S>>,
    thread: Option<JoinHandle<()>>,
}

struct Shared<S> {
    sink: Arc<S>,
    queue: Mutex<Queue>,
    /// There is something to write, or the end has come.
    work: Condvar,
    /// Everything has been written.
    idle: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Piece>,
    octets: usize,
    /// Written; their buffers are used again.
    spare: Vec<Piece>,
    thread: State,
    /// A piece was turned away: the driver is woken when there is room.
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

impl<S: Sink> Shared<S> {
    fn new(sink: Arc<S>) -> Self {
        Self { sink, queue: Mutex::default(), work: Condvar::new(), idle: Condvar::new() }
    }

    /// A thread that has panicked left nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Sink> Writer<S> {
    /// The thread has the rights that this one has now.
    pub(super) fn start(sink: Arc<S>, driver: Waker) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(sink));
        let thread = {
            let shared = Arc::clone(&shared);
            thread::Builder::new().name("device".to_owned()).spawn(move || write_all(&shared, &driver))?
        };
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Takes what is in the piece and leaves an empty one; an error of kind `WouldBlock` if too much waits.
    pub(super) fn take(&self, piece: &mut Piece) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        if queue.octets >= MOST_OCTETS || queue.waiting.len() >= MOST_PIECES {
            queue.refused = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let empty = queue.spare.pop().unwrap_or_default();
        queue.octets += piece.octets_on_the_wire();
        queue.waiting.push_back(std::mem::replace(piece, empty));
        Ok(())
    }

    /// What it took is to leave now. An error is what has befallen the device, now or before.
    pub(super) fn go(&self, pace: Pace) -> io::Result<()> {
        let mut queue = self.shared.lock();
        if let Some(error) = queue.failed.take() {
            return Err(error);
        }
        // A thread that is awake looks again before it sleeps.
        if queue.thread != State::Asleep {
            return Ok(());
        }
        if pace == Pace::Calm && queue.waiting.iter().map(Piece::count).sum::<usize>() <= FEW {
            // Nobody else writes meanwhile: nobody but this thread wakes the other one.
            queue.write_here(&*self.shared.sink)?;
        }
        if !queue.waiting.is_empty() {
            queue.thread = State::Writing;
            self.shared.work.notify_one();
        }
        Ok(())
    }

    /// Waits until all has been written, or the device takes nothing.
    pub(super) fn flush(&self) -> io::Result<Written> {
        self.go(Pace::Calm)?;
        let queue = self.shared.lock();
        let busy = |queue: &mut Queue| queue.thread == State::Writing && queue.failed.is_none();
        let waited = self.shared.idle.wait_timeout_while(queue, PATIENCE, busy);
        let (mut queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        match queue.failed.take() {
            Some(error) => Err(error),
            None if timeout.timed_out() => Ok(Written::Blocked),
            None => Ok(Written::Everything),
        }
    }

    /// What has become of all that it took.
    pub(super) fn done(&self) -> Sending {
        self.shared.lock().done
    }
}

impl<S> Drop for Writer<S> {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).thread = State::Ending;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // It writes what it has begun; a panic of its own has been reported.
            let _ = thread.join();
        }
    }
}

impl Queue {
    /// As far as the device takes it at once.
    fn write_here(&mut self, sink: &impl Sink) -> io::Result<()> {
        while let Some(mut piece) = self.waiting.pop_front() {
            let octets = piece.octets_on_the_wire();
            let result = sink.send(&mut piece);
            if result.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
                self.waiting.push_front(piece);
                return Ok(());
            }
            self.octets -= octets;
            self.done.note(&piece, result)?;
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
        queue.spare.truncate(MOST_SPARE);
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
        let mut done = Sending::default();
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

fn write<S: Sink>(shared: &Shared<S>, piece: &mut Piece, done: &mut Sending) -> io::Result<()> {
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
            result => return done.note(piece, result),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::sync::mpsc::{self, Receiver, Sender};

    use nix::sys::eventfd::{EfdFlags, EventFd};

    use super::*;

    /// A device that answers each attempt as it is told, and takes nothing until then.
    struct Device {
        answers: Mutex<Receiver<Result<(), ErrorKind>>>,
        got: Sender<Vec<u8>>,
    }

    impl Sink for Device {
        fn send(&self, piece: &mut Piece) -> io::Result<()> {
            // Nobody is there to answer any more: it takes all.
            self.answers.lock().unwrap().recv().unwrap_or(Ok(()))?;
            self.got.send(piece.whole().unwrap().to_vec()).unwrap();
            Ok(())
        }

        fn wait(&self) -> io::Result<()> {
            Ok(())
        }
    }

    struct Stage {
        answers: Sender<Result<(), ErrorKind>>,
        got: Receiver<Vec<u8>>,
        woken: Arc<EventFd>,
        writer: Writer<Device>,
    }

    fn stage() -> Stage {
        stage_with(|device, driver| Writer::start(device, driver).unwrap())
    }

    fn stage_with(start: impl FnOnce(Arc<Device>, Waker) -> Writer<Device>) -> Stage {
        let ((answers, told), (got, seen)) = (mpsc::channel(), mpsc::channel());
        let woken = Arc::new(EventFd::from_flags(EfdFlags::EFD_NONBLOCK).unwrap());
        let device = Arc::new(Device { answers: Mutex::new(told), got });
        let writer = start(device, Waker(Arc::clone(&woken)));
        Stage { answers, got: seen, woken, writer }
    }

    /// For more than the driver's thread writes by itself.
    const MANY: usize = FEW + 1;

    impl Stage {
        fn give_many(&self) {
            (0..MANY).for_each(|_| self.give(b"it").unwrap());
        }

        fn give(&self, packet: &[u8]) -> io::Result<()> {
            let mut piece = Piece::default();
            piece.fill(|octets| {
                octets.extend_from_slice(packet);
                true
            });
            self.writer.take(&mut piece)?;
            assert!(piece.is_empty(), "an empty one is left");
            Ok(())
        }
    }

    #[test]
    fn all_that_it_took_is_written_in_order_when_a_flush_returns() {
        let stage = stage();
        for number in 0..100_u8 {
            stage.answers.send(Ok(())).unwrap();
            stage.give(&[number]).unwrap();
            if number % 7 == 0 {
                stage.writer.go(Pace::Calm).unwrap();
            }
        }
        assert!(stage.writer.flush().unwrap() == Written::Everything);
        let got: Vec<u8> = stage.got.try_iter().flatten().collect();
        assert_eq!(got, (0..100).collect::<Vec<u8>>());
        let done = stage.writer.done();
        assert_eq!((done.packets, done.octets, done.refused, done.waits), (100, 100, 0, 0));
    }

    #[test]
    fn too_much_is_turned_away_and_the_driver_woken_when_there_is_room() {
        let stage = stage();
        let given = (0..).take_while(|_| stage.give(&[0; 1000]).is_ok()).count();
        assert_eq!(given, MOST_PIECES);
        assert_eq!(stage.give(b"x").unwrap_err().kind(), ErrorKind::WouldBlock);
        assert!(stage.woken.read().is_err(), "there is no room yet");
        for _ in 0..given {
            stage.answers.send(Ok(())).unwrap();
        }
        assert!(stage.writer.flush().unwrap() == Written::Everything);
        assert_eq!(stage.woken.read(), Ok(1));
        stage.give(b"x").unwrap();
        // Large ones fill it sooner.
        let large = (0..).take_while(|_| stage.give(&[0; 60_000]).is_ok()).count();
        assert_eq!(large, MOST_OCTETS.div_ceil(60_000));
    }

    #[test]
    fn a_thread_that_starts_late_waits_until_it_is_told() {
        let mut begin = None;
        let mut stage = stage_with(|device, driver| {
            let shared = Arc::new(Shared::new(device));
            let writer = Writer { shared: Arc::clone(&shared), thread: None };
            begin = Some(move || write_all(&shared, &driver));
            writer
        });
        stage.give_many();
        stage.writer.thread = begin.map(thread::spawn);
        assert!(stage.got.recv_timeout(Duration::from_millis(50)).is_err(), "a flush would not wait for it");
        for _ in 0..MANY {
            stage.answers.send(Ok(())).unwrap();
        }
        assert!(stage.writer.flush().unwrap() == Written::Everything);
        assert_eq!(stage.got.try_iter().count(), MANY);
    }

    #[test]
    fn few_packets_need_no_thread() {
        let without = |device, _| Writer { shared: Arc::new(Shared::new(device)), thread: None };
        let stage = stage_with(without);
        for number in 0..FEW {
            stage.answers.send(Ok(())).unwrap();
            stage.give(&[number as u8]).unwrap();
        }
        stage.writer.go(Pace::Calm).unwrap();
        assert_eq!(stage.got.try_iter().flatten().collect::<Vec<u8>>(), [0, 1]);
        assert_eq!(stage.writer.done().packets, 2);
        // A device that is full is for the thread to wait for.
        stage.answers.send(Err(ErrorKind::WouldBlock)).unwrap();
        stage.give(b"it").unwrap();
        stage.writer.go(Pace::Calm).unwrap();
        assert!(stage.writer.shared.lock().thread == State::Writing);
    }

    #[test]
    fn a_busy_host_leaves_even_one_packet_to_the_thread() {
        let stage = stage();
        stage.give(b"it").unwrap();
        // Here it would wait for the device's answer.
        stage.writer.go(Pace::of(MANY)).unwrap();
        stage.answers.send(Ok(())).unwrap();
        assert!(stage.writer.flush().unwrap() == Written::Everything);
        assert_eq!(stage.got.try_recv().unwrap(), b"it");
    }

    #[test]
    fn an_error_of_the_device_is_told_at_once_where_no_thread_was_needed() {
        let stage = stage();
        stage.answers.send(Err(ErrorKind::NotFound)).unwrap();
        stage.give(b"it").unwrap();
        assert_eq!(stage.writer.go(Pace::Calm).unwrap_err().kind(), ErrorKind::NotFound);
        stage.writer.go(Pace::Calm).unwrap();
    }

    #[test]
    fn a_full_device_is_asked_again() {
        let stage = stage();
        for answer in [Err(ErrorKind::WouldBlock), Err(ErrorKind::WouldBlock), Ok(())] {
            stage.answers.send(answer).unwrap();
        }
        stage.give(b"it").unwrap();
        assert!(stage.writer.flush().unwrap() == Written::Everything);
        assert_eq!(stage.got.try_recv().unwrap(), b"it");
        assert_eq!((stage.writer.done().packets, stage.writer.done().waits), (1, 1));
    }

    #[test]
    fn an_error_of_the_device_is_told_once_and_wakes_the_driver() {
        let stage = stage();
        stage.answers.send(Err(ErrorKind::NotFound)).unwrap();
        stage.give_many();
        assert_eq!(stage.writer.flush().err().unwrap().kind(), ErrorKind::NotFound);
        while stage.woken.read().is_err() {
            thread::yield_now();
        }
        assert!(stage.writer.flush().unwrap() == Written::Everything, "nothing is left of it");
    }

    #[test]
    fn a_device_that_takes_nothing_holds_nobody_up_for_ever() {
        let stage = stage();
        stage.give_many();
        assert!(stage.writer.flush().unwrap() == Written::Blocked);
        drop(stage.answers);
    }
}
