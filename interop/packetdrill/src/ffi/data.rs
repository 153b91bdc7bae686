//! Calls that transfer data, such as read(2), write(2), and their variants.

use std::ffi::{c_int, c_void};

use airtcp_script::errno::Errno;
use airtcp_script::syscall::{Blocking, Fd, Push, ReadMode, Record, Reply, Request};
use libc::{iovec, msghdr, sockaddr, socklen_t, ssize_t};

use super::{count, fail, on_stack};
use crate::memory::{bytes, gather, read_addr, room, scatter, vectors};
use crate::stack::Stack;

/// Receives data into `parts`.
///
/// # Safety
/// As for [`stack`], and each of `parts` must meet the requirements of [`scatter`].
unsafe fn receive(userdata: *mut c_void, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    let mode = if flags & libc::MSG_PEEK != 0 { ReadMode::Peek } else { ReadMode::Consume };
    let received = |stack: &Stack| {
        only(flags, libc::MSG_PEEK | libc::MSG_DONTWAIT)?;
        // Checked first: data taken from the stream would otherwise be lost.
        let len = room(parts)?;
        let reply = stack.call(Request::Receive { fd: Fd(fd), len, mode, wait: wait(flags) })?;
        let Reply::Received(data) = reply else { return Ok(0) };
        // SAFETY: guaranteed by the caller, see above.
        unsafe { scatter(parts, &data) }?;
        Ok(data.len() as ssize_t)
    };
    // SAFETY: guaranteed by the caller, see above.
    unsafe { on_stack(userdata, received) }.unwrap_or_else(|errno| fail(errno) as ssize_t)
}

/// Fails if `flags` contains flags that are not in `known`, because airtcp would ignore them.
fn only(flags: c_int, known: c_int) -> Result<(), Errno> {
    if flags & !known == 0 { Ok(()) } else { Err(Errno::EOPNOTSUPP) }
}

/// The flags of send(2) that airtcp supports.
const SEND_FLAGS: c_int = libc::MSG_DONTWAIT | libc::MSG_MORE | libc::MSG_NOSIGNAL | libc::MSG_EOR;

fn push(flags: c_int) -> Push {
    if flags & libc::MSG_MORE != 0 { Push::Later } else { Push::Now }
}

fn record(flags: c_int) -> Record {
    if flags & libc::MSG_EOR != 0 { Record::Ends } else { Record::Continues }
}

fn wait(flags: c_int) -> Blocking {
    if flags & libc::MSG_DONTWAIT != 0 { Blocking::Return } else { Blocking::Wait }
}

pub(super) unsafe extern "C" fn read(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
) -> ssize_t {
    // SAFETY: read(2): `buf` has space for `len` bytes.
    unsafe { receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], 0) }
}

pub(super) unsafe extern "C" fn readv(
    userdata: *mut c_void,
    fd: c_int,
    parts: *const iovec,
    n: c_int,
) -> ssize_t {
    // SAFETY: readv(2): `n` vectors, each with space of the size it contains.
    unsafe {
        match counted(parts, n) {
            Ok(parts) => receive(userdata, fd, parts, 0),
            Err(errno) => fail(errno) as ssize_t,
        }
    }
}

/// Returns the `n` vectors at `parts`.
///
/// # Safety
/// As for [`vectors`].
unsafe fn counted<'a>(parts: *const iovec, n: c_int) -> Result<&'a [iovec], Errno> {
    // SAFETY: guaranteed by the caller, see above.
    unsafe { vectors(parts, usize::try_from(n).map_err(|_| Errno::EINVAL)?) }
}

pub(super) unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: recv(2): `buf` has space for `len` bytes.
    unsafe { receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], flags) }
}

pub(super) unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
    flags: c_int,
    _addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: recvfrom(2): `addr_len` has space for the length, and `buf` has space for `len` bytes.
    unsafe {
        if !addr_len.is_null() {
            // A connected socket reports no address.
            addr_len.write_unaligned(0);
        }
        recv(userdata, fd, buf, len, flags)
    }
}

pub(super) unsafe extern "C" fn recvmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: recvmsg(2): `message` points to a msghdr, which points to vectors with valid memory.
    unsafe {
        let Some(message) = message.as_mut() else { return fail(Errno::EFAULT) as ssize_t };
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
        match vectors(message.msg_iov, message.msg_iovlen) {
            Ok(parts) => receive(userdata, fd, parts, flags),
            Err(errno) => fail(errno) as ssize_t,
        }
    }
}

/// Sends `data`.
///
/// # Safety
/// As for [`stack`].
unsafe fn transmit(userdata: *mut c_void, fd: c_int, data: Result<Vec<u8>, Errno>, flags: c_int) -> ssize_t {
    let send = |stack: &Stack| {
        only(flags, SEND_FLAGS)?;
        let (push, record) = (push(flags), record(flags));
        stack.call(Request::Send { fd: Fd(fd), data: data?, wait: wait(flags), push, record })
    };
    // SAFETY: guaranteed by the caller, see above.
    count(unsafe { on_stack(userdata, send) })
}

pub(super) unsafe extern "C" fn write(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
) -> ssize_t {
    // SAFETY: write(2): `buf` points to `len` bytes.
    unsafe { transmit(userdata, fd, bytes(buf, len).map(<[u8]>::to_vec), 0) }
}

pub(super) unsafe extern "C" fn writev(
    userdata: *mut c_void,
    fd: c_int,
    parts: *const iovec,
    n: c_int,
) -> ssize_t {
    // SAFETY: writev(2): `n` vectors, each with data of the size it contains.
    unsafe { transmit(userdata, fd, counted(parts, n).and_then(|parts| gather(parts)), 0) }
}

pub(super) unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: send(2): `buf` points to `len` bytes.
    unsafe { transmit(userdata, fd, bytes(buf, len).map(<[u8]>::to_vec), flags) }
}

pub(super) unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    addr: *const sockaddr,
    addr_len: socklen_t,
) -> ssize_t {
    if flags & libc::MSG_FASTOPEN == 0 {
        // The address of a connected socket has no effect.
        // SAFETY: sendto(2): `buf` points to `len` bytes.
        return unsafe { send(userdata, fd, buf, len, flags) };
    }
    let open = |stack: &Stack| {
        only(flags, SEND_FLAGS | libc::MSG_FASTOPEN)?;
        let (push, record) = (push(flags), record(flags));
        // SAFETY: sendto(2): `buf` points to `len` bytes, and `addr` to `addr_len`.
        let (data, to) = unsafe { (bytes(buf, len)?.to_vec(), read_addr(addr, addr_len)?) };
        stack.call(Request::OpenAndSend { fd: Fd(fd), to, data, wait: wait(flags), push, record })
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    count(unsafe { on_stack(userdata, open) })
}

pub(super) unsafe extern "C" fn sendmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: sendmsg(2): `message` points to a msghdr, which points to vectors with valid data.
    unsafe {
        let data = message.as_ref().ok_or(Errno::EFAULT).and_then(|message| {
            let parts = vectors(message.msg_iov, message.msg_iovlen)?;
            gather(parts)
        });
        transmit(userdata, fd, data, flags)
    }
}
