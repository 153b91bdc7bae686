//! The C ABI: pointers in, pointers out, nothing decided here.
//!
//! The order of the functions in [`Interface`] is packetdrill's. Each may be called with what packetdrill.h and POSIX ask
//! for: the userdata of an interface that has not been freed, and pointers to as much as the lengths beside them say. NULL in
//! place of such a pointer is answered with EFAULT, as a kernel does. A panic ends the process, as it does at every
//! `extern "C"`; it never runs on into C.

#![expect(unsafe_code, reason = "this file is the boundary to C; everything else of the crate is safe")]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_void};
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_script::errno::Errno;
use airtcp_script::sockopt::SockOpt;
use airtcp_script::syscall::{Blocking, Events, Fd, How, OptionValue, Push, Reply, Request, Take};
use airwire::time::Duration;
use libc::{iovec, msghdr, pollfd, sockaddr, socklen_t, ssize_t, timeval};

use crate::memory::{bytes, bytes_mut, entries, gather, read_addr, room, scatter, vectors, write_addr};
use crate::stack::Stack;

/// `struct packetdrill_interface`: userdata, then 32 functions that take it first.
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
    /// epoll_create, epoll_ctl, epoll_wait, pipe, splice: no script against this library uses them.
    absent: [Option<extern "C" fn()>; 5],
}

/// The stack that the bare `getsockopt` answers for; packetdrill reads TCP_INFO past the interface.
static CURRENT: Mutex<Option<Arc<Stack>>> = Mutex::new(None);

/// # Safety
/// `flags` is NULL or a C string, `out` is NULL or points to room for an [`Interface`].
// SAFETY: no other symbol of this name is linked; it is the one that packetdrill looks up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, out: *mut Interface) {
    if out.is_null() {
        return;
    }
    // SAFETY: the caller's promise above.
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
    // SAFETY: the caller's promise above; nothing valid was there before that would need a drop.
    unsafe { out.write(interface) };
}

unsafe extern "C" fn free(userdata: *mut c_void) {
    if userdata.is_null() {
        return;
    }
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    // SAFETY: made by Arc::into_raw at init, and given back once.
    drop(unsafe { Arc::from_raw(userdata.cast_const().cast::<Stack>()) });
}

/// # Safety
/// `userdata` is NULL, or what init has put there, and `free` has not been called since.
unsafe fn stack<'a>(userdata: *mut c_void) -> Result<&'a Stack, Errno> {
    // SAFETY: the caller's promise above: an Arc of this type holds it until then.
    unsafe { userdata.cast_const().cast::<Stack>().as_ref() }.ok_or(Errno::EFAULT)
}

// Results.

fn fail(errno: Errno) -> c_int {
    // SAFETY: errno is this thread's own.
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

/// A real descriptor, so that calls that reach libc past the interface touch nothing of packetdrill's.
fn handle() -> Result<Fd, Errno> {
    // SAFETY: no pointers.
    match unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } {
        -1 => Err(Errno::ENOBUFS),
        fd => Ok(Fd(fd)),
    }
}

fn drop_handle(fd: Fd) {
    // SAFETY: a descriptor of ours; at worst it is closed already.
    unsafe { libc::close(fd.0) };
}

// Calls, in the interface's order.

/// Calls the stack of `userdata`, if there is one.
///
/// # Safety
/// As [`stack`].
unsafe fn on_stack<T>(
    userdata: *mut c_void,
    call: impl FnOnce(&Stack) -> Result<T, Errno>,
) -> Result<T, Errno> {
    // SAFETY: the caller's promise above.
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
    // SAFETY: packetdrill.h, see above.
    unsafe { on_stack(userdata, open) }.unwrap_or_else(fail)
}

unsafe extern "C" fn bind(userdata: *mut c_void, fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    // SAFETY: bind(2): `addr` points to `len` octets.
    status(unsafe { on_stack(userdata, |stack| stack.bind(Fd(fd), read_addr(addr, len)?)) })
}

unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    let backlog = usize::try_from(backlog).unwrap_or(0);
    // SAFETY: packetdrill.h, see above.
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
    // SAFETY: packetdrill.h, see above.
    match unsafe { on_stack(userdata, |stack| stack.call(Request::Accept { fd: Fd(fd), as_fd })) } {
        Ok(Reply::Accepted(peer)) => {
            // SAFETY: accept(2): `len` says how much room `addr` has.
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
        // SAFETY: connect(2): `addr` points to `len` octets.
        let to = unsafe { read_addr(addr, len) }?;
        stack.call(Request::Connect { fd: Fd(fd), to }).map(|_| ())
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, connect) })
}

/// # Safety
/// As [`stack`], and each of `parts` as [`scatter`] wants it.
unsafe fn receive(userdata: *mut c_void, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    let take = if flags & libc::MSG_PEEK != 0 { Take::Peek } else { Take::Consume };
    let received = |stack: &Stack| {
        // Before anything is taken out of the stream, which would be lost.
        let len = room(parts)?;
        let reply = stack.call(Request::Receive { fd: Fd(fd), len, take, wait: wait(flags) })?;
        let Reply::Received(data) = reply else { return Ok(0) };
        // SAFETY: the caller's promise above.
        unsafe { scatter(parts, &data) }?;
        Ok(data.len() as ssize_t)
    };
    // SAFETY: the caller's promise above.
    unsafe { on_stack(userdata, received) }.unwrap_or_else(|errno| fail(errno) as ssize_t)
}

fn wait(flags: c_int) -> Blocking {
    if flags & libc::MSG_DONTWAIT != 0 { Blocking::Return } else { Blocking::Wait }
}

unsafe extern "C" fn read(userdata: *mut c_void, fd: c_int, buf: *mut c_void, len: usize) -> ssize_t {
    // SAFETY: read(2): `buf` has room for `len` octets.
    unsafe { receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], 0) }
}

unsafe extern "C" fn readv(userdata: *mut c_void, fd: c_int, parts: *const iovec, n: c_int) -> ssize_t {
    // SAFETY: readv(2): `n` vectors, each with the room that it says.
    unsafe {
        match counted(parts, n) {
            Ok(parts) => receive(userdata, fd, parts, 0),
            Err(errno) => fail(errno) as ssize_t,
        }
    }
}

/// # Safety
/// As [`vectors`].
unsafe fn counted<'a>(parts: *const iovec, n: c_int) -> Result<&'a [iovec], Errno> {
    // SAFETY: the caller's promise above.
    unsafe { vectors(parts, usize::try_from(n).map_err(|_| Errno::EINVAL)?) }
}

unsafe extern "C" fn recv(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: recv(2): `buf` has room for `len` octets.
    unsafe { receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], flags) }
}

unsafe extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
    flags: c_int,
    _addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    // SAFETY: recvfrom(2): room for the length, and `buf` has room for `len` octets.
    unsafe {
        if !addr_len.is_null() {
            // A connected socket has no address to tell.
            addr_len.write_unaligned(0);
        }
        recv(userdata, fd, buf, len, flags)
    }
}

unsafe extern "C" fn recvmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: recvmsg(2): `message` points to a msghdr of the caller's, and that to vectors with room.
    unsafe {
        let Some(message) = message.as_mut() else { return fail(Errno::EFAULT) as ssize_t };
        (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
        match vectors(message.msg_iov, message.msg_iovlen) {
            Ok(parts) => receive(userdata, fd, parts, flags),
            Err(errno) => fail(errno) as ssize_t,
        }
    }
}

/// # Safety
/// As [`stack`].
unsafe fn transmit(userdata: *mut c_void, fd: c_int, data: Result<Vec<u8>, Errno>, flags: c_int) -> ssize_t {
    let push = if flags & libc::MSG_MORE != 0 { Push::Later } else { Push::Now };
    let send = |stack: &Stack| stack.call(Request::Send { fd: Fd(fd), data: data?, wait: wait(flags), push });
    // SAFETY: the caller's promise above.
    count(unsafe { on_stack(userdata, send) })
}

unsafe extern "C" fn write(userdata: *mut c_void, fd: c_int, buf: *const c_void, len: usize) -> ssize_t {
    // SAFETY: write(2): `buf` points to `len` octets.
    unsafe { transmit(userdata, fd, bytes(buf, len).map(<[u8]>::to_vec), 0) }
}

unsafe extern "C" fn writev(userdata: *mut c_void, fd: c_int, parts: *const iovec, n: c_int) -> ssize_t {
    // SAFETY: writev(2): `n` vectors, each with what it says.
    unsafe { transmit(userdata, fd, counted(parts, n).and_then(|parts| gather(parts)), 0) }
}

unsafe extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: send(2): `buf` points to `len` octets.
    unsafe { transmit(userdata, fd, bytes(buf, len).map(<[u8]>::to_vec), flags) }
}

unsafe extern "C" fn sendto(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
    _addr: *const sockaddr,
    _addr_len: socklen_t,
) -> ssize_t {
    // Fast Open would connect by this call; the address means nothing otherwise.
    if flags & libc::MSG_FASTOPEN != 0 {
        return fail(Errno::EOPNOTSUPP) as ssize_t;
    }
    // SAFETY: sendto(2): `buf` points to `len` octets.
    unsafe { send(userdata, fd, buf, len, flags) }
}

unsafe extern "C" fn sendmsg(
    userdata: *mut c_void,
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    // SAFETY: sendmsg(2): `message` points to a msghdr of the caller's, and that to vectors with what they say.
    unsafe {
        let data = message.as_ref().ok_or(Errno::EFAULT).and_then(|message| {
            let parts = vectors(message.msg_iov, message.msg_iovlen)?;
            gather(parts)
        });
        transmit(userdata, fd, data, flags)
    }
}

/// Variadic on the caller's side; on x86-64 and aarch64 a fixed fourth argument receives the same.
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
    // SAFETY: packetdrill.h, see above.
    unsafe { on_stack(userdata, call) }.unwrap_or_else(fail)
}

unsafe extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, arg: *mut c_int) -> c_int {
    // SIOCINQ is the same number.
    if request != libc::FIONREAD as c_ulong {
        return fail(Errno::EINVAL);
    } else if arg.is_null() {
        return fail(Errno::EFAULT);
    }
    // SAFETY: packetdrill.h, see above.
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
    // SAFETY: packetdrill.h, see above.
    let result = unsafe { on_stack(userdata, |stack| stack.close(Fd(fd))) };
    if result.is_ok() {
        drop_handle(Fd(fd));
    }
    status(result)
}

unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ => return fail(Errno::EINVAL),
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, |stack| stack.shutdown(Fd(fd), how)) })
}

unsafe extern "C" fn interface_getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: getsockopt(2): `len` says how much room `value` has.
    status(unsafe { on_stack(userdata, |stack| read_option(stack, Fd(fd), level, option, value, len)) })
}

/// # Safety
/// `len` is NULL, or `value` is NULL or points to as many octets as `len` says.
unsafe fn read_option(
    stack: &Stack,
    fd: Fd,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    if len.is_null() {
        return Err(Errno::EFAULT);
    }
    let data = match (level, option) {
        (libc::SOL_TCP, libc::TCP_INFO) => stack.tcp_info(fd)?.to_vec(),
        // No algorithm-specific information.
        (libc::SOL_TCP, TCP_CC_INFO) => Vec::new(),
        (libc::SOL_SOCKET, SO_MEMINFO) => vec![0; 36],
        _ => {
            let known = SockOpt::by_number(level, option).ok_or(Errno::ENOPROTOOPT)?;
            match stack.option(fd, known)? {
                OptionValue::Int(int) => int.to_ne_bytes().to_vec(),
                OptionValue::Linger { on, seconds } => {
                    [i32::from(on).to_ne_bytes(), seconds.to_ne_bytes()].concat()
                }
            }
        }
    };
    // SAFETY: the caller's promise above: `len` says how much room `value` has, and is told how much was used.
    unsafe {
        let used = data.len().min(len.read_unaligned() as usize);
        bytes_mut(value, used)?.copy_from_slice(&data[..used]);
        len.write_unaligned(used as socklen_t);
    }
    Ok(())
}

const TCP_CC_INFO: c_int = 26;
const SO_MEMINFO: c_int = 55;

unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let set = |stack: &Stack| {
        let known = SockOpt::by_number(level, option).ok_or(Errno::ENOPROTOOPT)?;
        // SAFETY: setsockopt(2): `value` points to `len` octets.
        let data = unsafe { bytes(value, len as usize) }?;
        let int = |at: usize| {
            data.get(at..at + 4).map_or(0, |four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        };
        let value = match known {
            SockOpt::Linger => OptionValue::Linger { on: int(0) != 0, seconds: int(4) },
            _ => OptionValue::Int(int(0)),
        };
        stack.set_option(Fd(fd), known, value)
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, set) })
}

unsafe extern "C" fn poll(userdata: *mut c_void, fds: *mut pollfd, n: c_ulong, timeout: c_int) -> c_int {
    let poll = |stack: &Stack| {
        // SAFETY: poll(2): an array of `n` entries.
        let fds = unsafe { entries(fds, n as usize) }?;
        let set = fds.iter().map(|entry| (Fd(entry.fd), Events(entry.events))).collect();
        let reply = stack.call(Request::Poll { set, until: stack.poll_until(timeout) })?;
        let Reply::Polled(events) = reply else { return Ok(0) };
        for (entry, events) in fds.iter_mut().zip(&events) {
            entry.revents = events.0 as c_short;
        }
        Ok(fds.iter().filter(|entry| entry.revents != 0).count() as c_int)
    };
    // SAFETY: packetdrill.h, see above.
    unsafe { on_stack(userdata, poll) }.unwrap_or_else(fail)
}

unsafe extern "C" fn netdev_send(userdata: *mut c_void, packet: *const c_void, len: usize) -> c_int {
    let send = |stack: &Stack| {
        // SAFETY: packetdrill.h: `packet` points to `len` octets.
        stack.netdev_send(unsafe { bytes(packet, len) }?);
        Ok(())
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, send) })
}

unsafe extern "C" fn netdev_receive(
    userdata: *mut c_void,
    packet: *mut c_void,
    len: *mut usize,
    time_usecs: *mut c_longlong,
) -> c_int {
    let receive = |stack: &Stack| {
        // Before the packet is taken, which would be lost.
        if packet.is_null() || len.is_null() || time_usecs.is_null() {
            return Err(Errno::EFAULT);
        }
        let departure = stack.netdev_receive();
        // SAFETY: packetdrill.h: `len` says how much room `packet` has, and both are told about the packet.
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
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, receive) })
}

unsafe extern "C" fn usleep(userdata: *mut c_void, usecs: c_uint) -> c_int {
    let sleep = |stack: &Stack| {
        stack.usleep(Duration::from_micros(u64::from(usecs)));
        Ok(())
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, sleep) })
}

unsafe extern "C" fn gettimeofday(userdata: *mut c_void, time: *mut timeval, _zone: *mut c_void) -> c_int {
    let tell = |stack: &Stack| {
        let now = stack.gettimeofday().as_micros();
        if !time.is_null() {
            let now = timeval { tv_sec: (now / 1_000_000) as i64, tv_usec: (now % 1_000_000) as i64 };
            // SAFETY: gettimeofday(2): room for a timeval.
            unsafe { time.write_unaligned(now) };
        }
        Ok(())
    };
    // SAFETY: packetdrill.h, see above.
    status(unsafe { on_stack(userdata, tell) })
}

/// For LD_PRELOAD: packetdrill reads TCP_INFO, TCP_CC_INFO and SO_MEMINFO past the interface.
///
/// # Safety
/// As getsockopt(2).
// SAFETY: it takes the place of libc's on purpose, and passes on what is not ours.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(stack) = current.filter(|stack| stack.owns(Fd(fd))) {
        // SAFETY: the caller's promise above.
        return status(unsafe { read_option(&stack, Fd(fd), level, option, value, len) });
    }
    // SAFETY: a constant C string; RTLD_NEXT finds the function that this one hides.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"getsockopt".as_ptr()) };
    if next.is_null() {
        return fail(Errno::ENOPROTOOPT);
    }
    // SAFETY: libc's getsockopt has this signature.
    let next: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int =
        unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's promise above.
    unsafe { next(fd, level, option, value, len) }
}
