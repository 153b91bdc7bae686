//! The C ABI. This module only converts between C's pointers and Rust types. `data` contains the calls that
//! transfer data, and `options` those about socket options.
//!
//! The functions of [`Interface`] are in packetdrill's order. Callers must meet the requirements of
//! packetdrill.h and POSIX: the userdata belongs to an interface that has not been freed, and
//! pointers refer to as many bytes as the lengths specify. A NULL pointer yields EFAULT,
//! as in a kernel. A panic aborts the process, as in every `extern "C"` function, and does not
//! unwind into C.

#![expect(
    unsafe_code,
    reason = "this file is the boundary to C; the rest of the crate, except `memory`, is safe"
)]

mod data;
pub mod options;

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_script::errno::Errno;
use airtcp_script::syscall::{Blocking, Events, Fd, Reply, Request, ShutdownHow};
use airwire::time::Duration;
use libc::{iovec, msghdr, pollfd, sockaddr, socklen_t, ssize_t, timeval};

use self::data::{read, readv, recv, recvfrom, recvmsg, send, sendmsg, sendto, write, writev};
use self::options::{interface_getsockopt, setsockopt};
use crate::memory::{bytes, bytes_mut, entries, read_addr, write_addr};
use crate::stack::Stack;

/// `struct packetdrill_interface`: userdata, then 32 functions that take it as first argument.
#[repr(C)]
pub struct Interface {
    userdata: *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    socket: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    bind: unsafe extern "C" fn(*mut c_void, c_int, *const sockaddr, socklen_t) -> c_int,
    listen: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    accept: unsafe extern "C" fn(*mut c_void, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    connect: unsafe extern "C" fn(*mut c_void, c_int, *const sockaddr, socklen_t) -> c_int,
    read: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize) -> ssize_t,
    readv: unsafe extern "C" fn(*mut c_void, c_int, *const iovec, c_int) -> ssize_t,
    recv: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, usize, c_int) -> ssize_t,
    recvfrom: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    recvmsg: unsafe extern "C" fn(*mut c_void, c_int, *mut msghdr, c_int) -> ssize_t,
    write: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> ssize_t,
    writev: unsafe extern "C" fn(*mut c_void, c_int, *const iovec, c_int) -> ssize_t,
    send: unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int) -> ssize_t,
    sendto: unsafe extern "C" fn(
        *mut c_void,
        c_int,
        *const c_void,
        usize,
        c_int,
        *const sockaddr,
        socklen_t,
    ) -> ssize_t,
    sendmsg: unsafe extern "C" fn(*mut c_void, c_int, *const msghdr, c_int) -> ssize_t,
    fcntl: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_long) -> c_int,
    ioctl: unsafe extern "C" fn(*mut c_void, c_int, c_ulong, *mut c_int) -> c_int,
    close: unsafe extern "C" fn(*mut c_void, c_int) -> c_int,
    shutdown: unsafe extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    getsockopt: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: unsafe extern "C" fn(*mut c_void, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    poll: unsafe extern "C" fn(*mut c_void, *mut pollfd, c_ulong, c_int) -> c_int,
    netdev_send: unsafe extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    netdev_receive: unsafe extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    usleep: unsafe extern "C" fn(*mut c_void, c_uint) -> c_int,
    gettimeofday: unsafe extern "C" fn(*mut c_void, *mut timeval, *mut c_void) -> c_int,
    /// epoll_create, epoll_ctl, epoll_wait, pipe, splice: no script for this library uses them.
    absent: [Option<extern "C" fn()>; 5],
}

/// The stack for the exported `getsockopt`, with which packetdrill reads TCP_INFO.
static CURRENT: Mutex<Option<Arc<Stack>>> = Mutex::new(None);

/// Creates a stack and fills in the interface.
///
/// # Safety
/// `flags` must be NULL or a C string. `out` must be NULL or point to space for an [`Interface`].
// SAFETY: packetdrill looks up this name, and no other linked symbol has it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, out: *mut Interface) {
    if out.is_null() {
        return;
    }
    // SAFETY: guaranteed by the caller, see above.
    let flags = if flags.is_null() { "".into() } else { unsafe { CStr::from_ptr(flags) }.to_string_lossy() };
    let stack = match Stack::new(&flags, std::env::var_os("PD_CTL").map(Into::into)) {
        Ok(stack) => Arc::new(stack),
        Err(error) => {
            eprintln!("airtcp: --so_flags={flags:?}: {error}");
            std::process::exit(2);
        }
    };
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&stack));
    let interface = Interface {
        userdata: Arc::into_raw(stack).cast_mut().cast(),
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read,
        readv,
        recv,
        recvfrom,
        recvmsg,
        write,
        writev,
        send,
        sendto,
        sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt: interface_getsockopt,
        setsockopt,
        poll,
        netdev_send,
        netdev_receive,
        usleep,
        gettimeofday,
        absent: [None; 5],
    };
    // SAFETY: guaranteed by the caller, see above. The memory holds no value that needs to be dropped.
    unsafe { out.write(interface) };
}

unsafe extern "C" fn free(userdata: *mut c_void) {
    if userdata.is_null() {
        return;
    }
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    // SAFETY: Arc::into_raw in init has returned the pointer, which is released only once.
    drop(unsafe { Arc::from_raw(userdata.cast_const().cast::<Stack>()) });
}

/// Returns the stack that `userdata` points to.
///
/// # Safety
/// `userdata` must be NULL or the pointer that init stored, and `free` must not have been called since.
unsafe fn stack<'a>(userdata: *mut c_void) -> Result<&'a Stack, Errno> {
    // SAFETY: guaranteed by the caller, see above. Until `free`, an Arc owns the stack.
    unsafe { userdata.cast_const().cast::<Stack>().as_ref() }.ok_or(Errno::EFAULT)
}

// Results.

fn fail(errno: Errno) -> c_int {
    // SAFETY: errno belongs to this thread.
    unsafe { *libc::__errno_location() = errno.number };
    -1
}

fn status(result: Result<(), Errno>) -> c_int {
    result.map_or_else(fail, |()| 0)
}

fn count(result: Result<Reply, Errno>) -> ssize_t {
    match result {
        Ok(Reply::Sent(n)) => n as ssize_t,
        Ok(_) => 0,
        Err(errno) => fail(errno) as ssize_t,
    }
}

/// Opens a real descriptor, so that calls that bypass the interface cannot affect packetdrill's own
/// descriptors.
fn handle() -> Result<Fd, Errno> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
        -1 => Err(Errno::ENOBUFS),
        fd => Ok(Fd(fd)),
    }
}

fn drop_handle(fd: Fd) {
    // SAFETY: the descriptor is ours. If it is already closed, close(2) fails without effect.
    unsafe { libc::close(fd.0) };
}

// Calls, in the order of the interface.

/// Runs `call` on the stack of `userdata`, if there is one.
///
/// # Safety
/// As for [`stack`].
unsafe fn on_stack<T>(
    userdata: *mut c_void,
    call: impl FnOnce(&Stack) -> Result<T, Errno>,
) -> Result<T, Errno> {
    // SAFETY: guaranteed by the caller, see above.
    call(unsafe { stack(userdata) }?)
}

unsafe extern "C" fn socket(userdata: *mut c_void, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let stream = kind & 0xff == libc::SOCK_STREAM && (protocol == 0 || protocol == libc::IPPROTO_TCP);
    if ![libc::AF_INET, libc::AF_INET6].contains(&domain) || !stream {
        return fail(Errno::EPROTONOSUPPORT);
    }
    let open = |stack: &Stack| {
        let fd = handle()?;
        stack.socket(fd).inspect_err(|_| drop_handle(fd))?;
        if kind & libc::SOCK_NONBLOCK != 0 {
            stack.set_blocking(fd, Blocking::Return)?;
        }
        Ok(fd.0)
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    unsafe { on_stack(userdata, open) }.unwrap_or_else(fail)
}

unsafe extern "C" fn bind(userdata: *mut c_void, fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: bind(2): `addr` points to `len` bytes.
    status(unsafe { on_stack(userdata, |stack| stack.bind(Fd(fd), read_addr(addr, len)?)) })
}

unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    let backlog = usize::try_from(backlog).unwrap_or(0);
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, |stack| stack.listen(Fd(fd), backlog)) })
}

unsafe extern "C" fn accept(
    userdata: *mut c_void,
    fd: c_int,
    addr: *mut sockaddr,
    len: *mut socklen_t,
) -> c_int {
    let as_fd = match handle() {
        Ok(as_fd) => as_fd,
        Err(errno) => return fail(errno),
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    match unsafe { on_stack(userdata, |stack| stack.call(Request::Accept { fd: Fd(fd), as_fd })) } {
        Ok(Reply::Accepted(peer)) => {
            // SAFETY: accept(2): `len` contains the size of `addr`.
            unsafe { write_addr(peer, addr, len) };
            as_fd.0
        }
        Ok(_) => as_fd.0,
        Err(errno) => {
            drop_handle(as_fd);
            fail(errno)
        }
    }
}

unsafe extern "C" fn connect(
    userdata: *mut c_void,
    fd: c_int,
    addr: *const sockaddr,
    len: socklen_t,
) -> c_int {
    let connect = |stack: &Stack| {
        // SAFETY: connect(2): `addr` points to `len` bytes.
        let to = unsafe { read_addr(addr, len) }?;
        stack.call(Request::Connect { fd: Fd(fd), to }).map(|_| ())
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, connect) })
}

/// Implements fcntl(2). The caller's declaration is variadic; on x86-64 and aarch64 a fixed fourth
/// parameter receives the same value.
unsafe extern "C" fn fcntl(userdata: *mut c_void, fd: c_int, command: c_int, arg: c_long) -> c_int {
    let call = |stack: &Stack| match command {
        libc::F_GETFL => Ok(match stack.blocking(Fd(fd))? {
            Blocking::Wait => libc::O_RDWR,
            Blocking::Return => libc::O_RDWR | libc::O_NONBLOCK,
        }),
        libc::F_SETFL => {
            let nonblocking = arg & c_long::from(libc::O_NONBLOCK) != 0;
            let blocking = if nonblocking { Blocking::Return } else { Blocking::Wait };
            stack.set_blocking(Fd(fd), blocking).map(|()| 0)
        }
        _ => Err(Errno::EINVAL),
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    unsafe { on_stack(userdata, call) }.unwrap_or_else(fail)
}

unsafe extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, arg: *mut c_int) -> c_int {
    // SIOCINQ has the same number.
    if request != libc::FIONREAD as c_ulong {
        return fail(Errno::EINVAL);
    } else if arg.is_null() {
        return fail(Errno::EFAULT);
    }
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    match unsafe { on_stack(userdata, |stack| stack.unread(Fd(fd))) } {
        Ok(unread) => {
            // SAFETY: SIOCINQ takes a pointer to an int.
            unsafe { arg.write_unaligned(c_int::try_from(unread).unwrap_or(c_int::MAX)) };
            0
        }
        Err(errno) => fail(errno),
    }
}

unsafe extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    let result = unsafe { on_stack(userdata, |stack| stack.close(Fd(fd))) };
    if result.is_ok() {
        drop_handle(Fd(fd));
    }
    status(result)
}

unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    let how = match how {
        libc::SHUT_RD => ShutdownHow::Read,
        libc::SHUT_WR => ShutdownHow::Write,
        libc::SHUT_RDWR => ShutdownHow::Both,
        _ => return fail(Errno::EINVAL),
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, |stack| stack.shutdown(Fd(fd), how)) })
}

unsafe extern "C" fn poll(userdata: *mut c_void, fds: *mut pollfd, n: c_ulong, timeout: c_int) -> c_int {
    let poll = |stack: &Stack| {
        // SAFETY: poll(2): `fds` points to an array of `n` entries.
        let fds = unsafe { entries(fds, n as usize) }?;
        let set = fds.iter().map(|entry| (Fd(entry.fd), Events(entry.events))).collect();
        let reply = stack.call(Request::Poll { set, until: stack.poll_until(timeout) })?;
        let Reply::Polled(events) = reply else { return Ok(0) };
        for (entry, events) in fds.iter_mut().zip(&events) {
            entry.revents = events.0 as c_short;
        }
        Ok(fds.iter().filter(|entry| entry.revents != 0).count() as c_int)
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    unsafe { on_stack(userdata, poll) }.unwrap_or_else(fail)
}

unsafe extern "C" fn netdev_send(userdata: *mut c_void, packet: *const c_void, len: usize) -> c_int {
    let send = |stack: &Stack| {
        // SAFETY: packetdrill.h: `packet` points to `len` bytes.
        stack.netdev_send(unsafe { bytes(packet, len) }?);
        Ok(())
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, send) })
}

unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    packet: *mut c_void,
    len: *mut usize,
    time_usecs: *mut c_longlong,
) -> c_int {
    let receive = |stack: &Stack| {
        // Checked first: a packet that was taken would otherwise be lost.
        if packet.is_null() || len.is_null() || time_usecs.is_null() {
            return Err(Errno::EFAULT);
        }
        let departure = stack.netdev_receive();
        // SAFETY: packetdrill.h: `len` contains the size of `packet`. `len` and `time_usecs`
        // receive the length and the time of the packet.
        unsafe {
            let Some(departure) = departure else {
                len.write_unaligned(0);
                return Ok(());
            };
            let n = departure.bytes.len().min(len.read_unaligned());
            bytes_mut(packet, n)?.copy_from_slice(&departure.bytes[..n]);
            len.write_unaligned(n);
            time_usecs.write_unaligned(departure.at.as_micros() as c_longlong);
        }
        Ok(())
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, receive) })
}

unsafe extern "C" fn usleep(userdata: *mut c_void, usecs: c_uint) -> c_int {
    let sleep = |stack: &Stack| {
        stack.usleep(Duration::from_micros(u64::from(usecs)));
        Ok(())
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, sleep) })
}

unsafe extern "C" fn gettimeofday(userdata: *mut c_void, time: *mut timeval, _zone: *mut c_void) -> c_int {
    let read_clock = |stack: &Stack| {
        let now = stack.gettimeofday().as_micros();
        if !time.is_null() {
            let now = timeval { tv_sec: (now / 1_000_000) as i64, tv_usec: (now % 1_000_000) as i64 };
            // SAFETY: gettimeofday(2): `time` has space for a timeval.
            unsafe { time.write_unaligned(now) };
        }
        Ok(())
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, read_clock) })
}
