//! Descriptors of the application's own: they are waited for together with the device.
//!
//! They are edge-triggered: the application is told once that a descriptor has become ready, and it stays ready until
//! a read or a write would block. So nothing has to be switched off while the application has no room for more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// What will not block now. The read or write may also report an error or the end of the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Readiness {
    /// A read.
    Read,
    /// A write.
    Write,
    /// Either; also after an error or a hang-up.
    Both,
}

impl Readiness {
    /// `Read` or `Both`.
    pub fn includes_read(self) -> bool {
        matches!(self, Self::Read | Self::Both)
    }

    /// `Write` or `Both`.
    pub fn includes_write(self) -> bool {
        matches!(self, Self::Write | Self::Both)
    }

    fn of(flags: EpollFlags) -> Self {
        // An error or a hang-up is found by the read or write that it makes ready.
        let failed = flags.intersects(EpollFlags::EPOLLERR | EpollFlags::EPOLLHUP);
        match (flags.contains(EpollFlags::EPOLLIN), flags.contains(EpollFlags::EPOLLOUT)) {
            _ if failed => Self::Both,
            (true, true) => Self::Both,
            (false, true) => Self::Write,
            _ => Self::Read,
        }
    }
}

/// The descriptors of an application that the driver waits for; [`super::Driver::descriptors`] gives it.
#[derive(Clone, Debug)]
pub struct Descriptors(Arc<Epoll>);

impl Descriptors {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?)))
    }

    /// From now on [`super::Application::ready`] is called, with this name, when `descriptor` becomes ready, and once
    /// for what is ready already. The descriptor must be non-blocking.
    pub fn watch<F: AsFd>(&self, descriptor: F, name: u64) -> io::Result<Watched<F>> {
        let flags = EpollFlags::EPOLLIN | EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
        self.0.add(&descriptor, EpollEvent::new(flags, name))?;
        Ok(Watched { descriptor, epoll: Arc::clone(&self.0) })
    }

    /// Tells what has become ready. What does not fit is told the next time.
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

/// A descriptor that is waited for as long as this lives.
#[derive(Debug)]
pub struct Watched<F: AsFd> {
    descriptor: F,
    epoll: Arc<Epoll>,
}

impl<F: AsFd> Watched<F> {
    /// To read from and write to.
    pub fn get(&self) -> &F {
        &self.descriptor
    }
}

impl<F: AsFd> Drop for Watched<F> {
    fn drop(&mut self) {
        // Its name shall not be told again, even if somebody else holds the same open file.
        let _ = self.epoll.delete(&self.descriptor);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    fn told(descriptors: &Descriptors) -> Vec<(u64, Readiness)> {
        let mut told = Vec::new();
        descriptors.report(|name, readiness| told.push((name, readiness))).unwrap();
        told
    }

    #[test]
    fn what_becomes_ready_is_told_once_under_its_name() {
        let descriptors = Descriptors::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        let far = descriptors.watch(far, 7).unwrap();
        assert_eq!(told(&descriptors), [(7, Readiness::Write)], "it can be written to from the start");
        near.write_all(b"x").unwrap();
        assert_eq!(told(&descriptors), [(7, Readiness::Both)]);
        assert_eq!(told(&descriptors), [], "nothing new, though it was not read");
        near.write_all(b"y").unwrap();
        assert_eq!(told(&descriptors), [(7, Readiness::Both)]);
        let mut two = [0; 2];
        far.get().read_exact(&mut two).unwrap();
        drop(near);
        assert_eq!(told(&descriptors), [(7, Readiness::Both)], "the end can be read");
    }

    #[test]
    fn what_is_let_go_of_is_not_heard_of_again() {
        let descriptors = Descriptors::new().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        // The open file lives on in this copy.
        let copy = far.try_clone().unwrap();
        drop(descriptors.watch(far, 1).unwrap());
        near.write_all(b"x").unwrap();
        assert_eq!(told(&descriptors), []);
        drop(copy);
    }
}
