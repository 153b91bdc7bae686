//! The application's own file descriptors, which the driver waits for together with the device.
//!
//! Notification is edge-triggered: the application is notified once when a descriptor becomes ready, and the
//! descriptor stays ready until a read or a write would block. So an application without room for more data does not
//! have to switch off notifications.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// The operation that will not block now. It may also report an error or the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both, or the descriptor has an error or a hang-up.
    Both,
}

impl Readiness {
    /// Whether this is `Read` or `Both`.
    pub fn includes_read(self) -> bool {
        matches!(self, Self::Read | Self::Both)
    }

    /// Whether this is `Write` or `Both`.
    pub fn includes_write(self) -> bool {
        matches!(self, Self::Write | Self::Both)
    }

    fn of(flags: EpollFlags) -> Self {
        // The next read or write reports the error or the hang-up.
        let failed = flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
        match (flags.contains(EpollFlags::EPOLLIN), flags.contains(EpollFlags::EPOLLOUT)) {
            _ if failed => Self::Both,
            (true, true) => Self::Both,
            (false, true) => Self::Write,
            _ => Self::Read,
        }
    }
}

/// The descriptors of an application that the driver waits for, as returned by
/// [`super::Driver::descriptors`].
#[derive(Clone, Debug)]
pub struct Descriptors(Arc<Epoll>);

impl Descriptors {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?)))
    }

    /// Calls [`super::Application::ready`] with `name` each time `descriptor` becomes ready, and now if it is
    /// already ready. The descriptor must be non-blocking.
    pub fn watch<F: AsFd>(&self, descriptor: F, name: u64) -> io::Result<Watched<F>> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.0.add(&descriptor, EpollEvent::new(flags, name))?;
        Ok(Watched { descriptor, epoll: Arc::clone(&self.0) })
    }

    /// Calls `ready` for each descriptor that has become ready. Events that do not fit into one
    /// batch are reported by the next call.
    pub(super) fn report(&self, mut ready: impl FnMut(u64, Readiness)) -> io::Result<()> {
        let mut events = [EpollEvent::empty(); 64];
        let count = self.0.wait(&mut events, EpollTimeout::ZERO)?;
        for event in &events[..count] {
            ready(event.data(), Readiness::of(event.events()));
        }
        Ok(())
    }
}

impl AsFd for Descriptors {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}

/// A descriptor that is watched until this value is dropped.
#[derive(Debug)]
pub struct Watched<F: AsFd> {
    descriptor: F,
    epoll: Arc<Epoll>,
}

impl<F: AsFd> Watched<F> {
    /// Returns the descriptor for reading and writing.
    pub fn get(&self) -> &F {
        &self.descriptor
    }
}

impl<F: AsFd> Drop for Watched<F> {
    fn drop(&mut self) {
        // epoll would keep reporting the name if the same open file were still held elsewhere.
        let _ = self.epoll.delete(&self.descriptor);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn reported(descriptors: &Descriptors) -> Vec<(u64, Readiness)> {
        let mut reported = Vec::new();
        descriptors.report(|name, readiness| reported.push((name, readiness))).unwrap();
        reported
    }

    #[test]
    fn readiness_is_reported_once_per_change() {
        let descriptors = Descriptors::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        let far = descriptors.watch(far, 7).unwrap();
        assert_eq!(reported(&descriptors), [(7, Readiness::Write)], "writable from the start");
        near.write_all(b"x").unwrap();
        assert_eq!(reported(&descriptors), [(7, Readiness::Both)]);
        assert_eq!(reported(&descriptors), [], "unread data is not reported again");
        near.write_all(b"y").unwrap();
        assert_eq!(reported(&descriptors), [(7, Readiness::Both)]);
        let mut two = [0; 2];
        far.get().read_exact(&mut two).unwrap();
        drop(near);
        assert_eq!(reported(&descriptors), [(7, Readiness::Both)], "the end of the stream is readable");
    }

    #[test]
    fn dropped_descriptor_is_not_reported() {
        let descriptors = Descriptors::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        // This copy keeps the file open.
        let copy = far.try_clone().unwrap();
        drop(descriptors.watch(far, 1).unwrap());
        near.write_all(b"x").unwrap();
        assert_eq!(reported(&descriptors), []);
        drop(copy);
    }
}
