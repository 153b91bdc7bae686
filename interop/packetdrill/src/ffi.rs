//! The C ABI: pointers in, pointers out, nothing decided here.
//!
//! The order of the functions in [`Interface`] is packetdrill's.

#![expect(unsafe_code, reason = "this file is the boundary to C; everything else of the crate is safe")]

use std::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_short, c_uint, c_ulong, c_void};
use std::net::{IpAddr, SocketAddr};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};

use airtcp_script::errno::Errno;
use airtcp_script::sockopt::SockOpt;
use airtcp_script::syscall::{Blocking, Events, Fd, How, OptionValue, Push, Reply, Request, Take};
use airwire::time::Duration;
use libc::{iovec, msghdr, pollfd, sockaddr, sockaddr_in, sockaddr_in6, socklen_t, ssize_t, timeval};

use crate::stack::Stack;

/// `struct packetdrill_interface`: userdata, then 32 functions that take it first.
#[repr(C)]
pub struct Interface {
    userdata: *mut c_void,
    free: extern "C" fn(*mut c_void),
    socket: extern "C" fn(*mut c_void, c_int, c_int, c_int) -> c_int,
    bind: extern "C" fn(*mut c_void, c_int, *const sockaddr, socklen_t) -> c_int,
    listen: extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    accept: extern "C" fn(*mut c_void, c_int, *mut sockaddr, *mut socklen_t) -> c_int,
    connect: extern "C" fn(*mut c_void, c_int, *const sockaddr, socklen_t) -> c_int,
    read: extern "C" fn(*mut c_void, c_int, *mut c_void, usize) -> ssize_t,
    readv: extern "C" fn(*mut c_void, c_int, *const iovec, c_int) -> ssize_t,
    recv: extern "C" fn(*mut c_void, c_int, *mut c_void, usize, c_int) -> ssize_t,
    recvfrom: extern "C" fn(
        *mut c_void,
        c_int,
        *mut c_void,
        usize,
        c_int,
        *mut sockaddr,
        *mut socklen_t,
    ) -> ssize_t,
    recvmsg: extern "C" fn(*mut c_void, c_int, *mut msghdr, c_int) -> ssize_t,
    write: extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> ssize_t,
    writev: extern "C" fn(*mut c_void, c_int, *const iovec, c_int) -> ssize_t,
    send: extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int) -> ssize_t,
    sendto:
        extern "C" fn(*mut c_void, c_int, *const c_void, usize, c_int, *const sockaddr, socklen_t) -> ssize_t,
    sendmsg: extern "C" fn(*mut c_void, c_int, *const msghdr, c_int) -> ssize_t,
    fcntl: extern "C" fn(*mut c_void, c_int, c_int, c_long) -> c_int,
    ioctl: extern "C" fn(*mut c_void, c_int, c_ulong, *mut c_int) -> c_int,
    close: extern "C" fn(*mut c_void, c_int) -> c_int,
    shutdown: extern "C" fn(*mut c_void, c_int, c_int) -> c_int,
    getsockopt: extern "C" fn(*mut c_void, c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
    setsockopt: extern "C" fn(*mut c_void, c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
    poll: extern "C" fn(*mut c_void, *mut pollfd, c_ulong, c_int) -> c_int,
    netdev_send: extern "C" fn(*mut c_void, *const c_void, usize) -> c_int,
    netdev_receive: extern "C" fn(*mut c_void, *mut c_void, *mut usize, *mut c_longlong) -> c_int,
    usleep: extern "C" fn(*mut c_void, c_uint) -> c_int,
    gettimeofday: extern "C" fn(*mut c_void, *mut timeval, *mut c_void) -> c_int,
    /// epoll_create, epoll_ctl, epoll_wait, pipe, splice: no script against this library uses them.
    absent: [Option<extern "C" fn()>; 5],
}

/// The stack that the bare `getsockopt` answers for; packetdrill reads TCP_INFO past the interface.
static CURRENT: Mutex<Option<Arc<Stack>>> = Mutex::new(None);

/// # Safety
/// `flags` is NULL or a C string, `out` points to room for an [`Interface`].
// SAFETY: no other symbol of this name is linked; it is the one that packetdrill looks up.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, out: *mut Interface) {
    // SAFETY: the caller's promise above.
    let flags = if flags.is_null() { "".into() } else { unsafe { CStr::from_ptr(flags) }.to_string_lossy() };
    let stack = match Stack::new(&flags, std::env::var_os("PD_CTL").map(Into::into)) {
        Ok(stack) => Arc::new(stack),
        Err(error) => {
            eprintln!("airtcp: --so_flags={flags}: {error}");
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

extern "C" fn free(userdata: *mut c_void) {
    *CURRENT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    // SAFETY: made by Arc::into_raw at init, and given back once.
    drop(unsafe { Arc::from_raw(userdata.cast_const().cast::<Stack>()) });
}

fn stack<'a>(userdata: *mut c_void) -> &'a Stack {
    // SAFETY: what init put there; it lives until free.
    unsafe { &*userdata.cast_const().cast::<Stack>() }
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

// Memory of the caller.

fn bytes<'a>(buf: *const c_void, len: usize) -> &'a [u8] {
    if buf.is_null() || len == 0 {
        return &[];
    }
    // SAFETY: POSIX: the caller passes `len` readable octets.
    unsafe { slice::from_raw_parts(buf.cast(), len) }
}

fn bytes_mut<'a>(buf: *mut c_void, len: usize) -> &'a mut [u8] {
    if buf.is_null() || len == 0 {
        return &mut [];
    }
    // SAFETY: POSIX: the caller passes `len` writable octets that nobody else uses during the call.
    unsafe { slice::from_raw_parts_mut(buf.cast(), len) }
}

fn vectors<'a>(vectors: *const iovec, n: usize) -> &'a [iovec] {
    if vectors.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: POSIX: an array of `n` iovecs.
    unsafe { slice::from_raw_parts(vectors, n) }
}

fn gather(parts: &[iovec]) -> Vec<u8> {
    parts.iter().flat_map(|part| bytes(part.iov_base, part.iov_len)).copied().collect()
}

fn scatter(parts: &[iovec], mut data: &[u8]) {
    for part in parts {
        let n = part.iov_len.min(data.len());
        bytes_mut(part.iov_base, n).copy_from_slice(&data[..n]);
        data = &data[n..];
    }
}

fn read_addr(addr: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if addr.is_null() || (len as usize) < size_of::<sockaddr_in>() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: at least a sockaddr_in is there, which begins with the family; packetdrill aligns its own structs.
    let family = c_int::from(unsafe { (*addr).sa_family });
    match family {
        libc::AF_INET => {
            // SAFETY: the length was checked above.
            let addr = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
            let ip = IpAddr::from(u32::from_be(addr.sin_addr.s_addr).to_be_bytes());
            Ok(SocketAddr::new(ip, u16::from_be(addr.sin_port)))
        }
        libc::AF_INET6 if len as usize >= size_of::<sockaddr_in6>() => {
            // SAFETY: the length was just checked.
            let addr = unsafe { addr.cast::<sockaddr_in6>().read_unaligned() };
            Ok(SocketAddr::new(IpAddr::from(addr.sin6_addr.s6_addr), u16::from_be(addr.sin6_port)))
        }
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

fn write_addr(from: SocketAddr, addr: *mut sockaddr, len: *mut socklen_t) {
    if addr.is_null() || len.is_null() {
        return;
    }
    let mut octets = [0; size_of::<sockaddr_in6>()];
    octets[2..4].copy_from_slice(&from.port().to_be_bytes());
    let (family, used) = match from.ip() {
        IpAddr::V4(ip) => {
            octets[4..8].copy_from_slice(&ip.octets());
            (libc::AF_INET, size_of::<sockaddr_in>())
        }
        IpAddr::V6(ip) => {
            octets[8..24].copy_from_slice(&ip.octets());
            (libc::AF_INET6, size_of::<sockaddr_in6>())
        }
    };
    octets[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    // SAFETY: accept(2): `len` says how much room `addr` has, and is told how much there was to say.
    let room = unsafe { *len } as usize;
    bytes_mut(addr.cast(), room.min(used)).copy_from_slice(&octets[..room.min(used)]);
    // SAFETY: as above.
    unsafe { *len = used as socklen_t };
}

// Calls, in the interface's order.

extern "C" fn socket(userdata: *mut c_void, domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    let stream = kind & 0xff == libc::SOCK_STREAM && (protocol == 0 || protocol == libc::IPPROTO_TCP);
    if ![libc::AF_INET, libc::AF_INET6].contains(&domain) || !stream {
        return fail(Errno::EPROTONOSUPPORT);
    }
    let opened = handle().and_then(|fd| stack(userdata).socket(fd).map(|()| fd));
    match opened {
        Ok(fd) => {
            if kind & libc::SOCK_NONBLOCK != 0 {
                return status(stack(userdata).set_blocking(fd, Blocking::Return)).min(0) | fd.0;
            }
            fd.0
        }
        Err(errno) => fail(errno),
    }
}

extern "C" fn bind(userdata: *mut c_void, fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    status(read_addr(addr, len).and_then(|addr| stack(userdata).bind(Fd(fd), addr)))
}

extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    status(stack(userdata).listen(Fd(fd), usize::try_from(backlog).unwrap_or(0)))
}

extern "C" fn accept(userdata: *mut c_void, fd: c_int, addr: *mut sockaddr, len: *mut socklen_t) -> c_int {
    let as_fd = match handle() {
        Ok(as_fd) => as_fd,
        Err(errno) => return fail(errno),
    };
    match stack(userdata).call(Request::Accept { fd: Fd(fd), as_fd }) {
        Ok(Reply::Accepted(peer)) => {
            write_addr(peer, addr, len);
            as_fd.0
        }
        Ok(_) => as_fd.0,
        Err(errno) => {
            drop_handle(as_fd);
            fail(errno)
        }
    }
}

extern "C" fn connect(userdata: *mut c_void, fd: c_int, addr: *const sockaddr, len: socklen_t) -> c_int {
    let to = match read_addr(addr, len) {
        Ok(to) => to,
        Err(errno) => return fail(errno),
    };
    status(stack(userdata).call(Request::Connect { fd: Fd(fd), to }).map(|_| ()))
}

fn receive(userdata: *mut c_void, fd: c_int, parts: &[iovec], flags: c_int) -> ssize_t {
    let len = parts.iter().map(|part| part.iov_len).sum();
    let take = if flags & libc::MSG_PEEK != 0 { Take::Peek } else { Take::Consume };
    match stack(userdata).call(Request::Receive { fd: Fd(fd), len, take, wait: wait(flags) }) {
        Ok(Reply::Received(data)) => {
            scatter(parts, &data);
            data.len() as ssize_t
        }
        other => count(other),
    }
}

fn wait(flags: c_int) -> Blocking {
    if flags & libc::MSG_DONTWAIT != 0 { Blocking::Return } else { Blocking::Wait }
}

extern "C" fn read(userdata: *mut c_void, fd: c_int, buf: *mut c_void, len: usize) -> ssize_t {
    receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], 0)
}

extern "C" fn readv(userdata: *mut c_void, fd: c_int, parts: *const iovec, n: c_int) -> ssize_t {
    receive(userdata, fd, vectors(parts, usize::try_from(n).unwrap_or(0)), 0)
}

extern "C" fn recv(userdata: *mut c_void, fd: c_int, buf: *mut c_void, len: usize, flags: c_int) -> ssize_t {
    receive(userdata, fd, &[iovec { iov_base: buf, iov_len: len }], flags)
}

extern "C" fn recvfrom(
    userdata: *mut c_void,
    fd: c_int,
    buf: *mut c_void,
    len: usize,
    flags: c_int,
    _addr: *mut sockaddr,
    addr_len: *mut socklen_t,
) -> ssize_t {
    if !addr_len.is_null() {
        // SAFETY: recvfrom(2): room for the length; a connected socket has no address to tell.
        unsafe { *addr_len = 0 };
    }
    recv(userdata, fd, buf, len, flags)
}

extern "C" fn recvmsg(userdata: *mut c_void, fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: recvmsg(2): `message` points to a msghdr of the caller's.
    let Some(message) = (unsafe { message.as_mut() }) else {
        return fail(Errno::EINVAL) as ssize_t;
    };
    (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
    receive(userdata, fd, vectors(message.msg_iov, message.msg_iovlen), flags)
}

fn transmit(userdata: *mut c_void, fd: c_int, data: Vec<u8>, flags: c_int) -> ssize_t {
    let push = if flags & libc::MSG_MORE != 0 { Push::Later } else { Push::Now };
    count(stack(userdata).call(Request::Send { fd: Fd(fd), data, wait: wait(flags), push }))
}

extern "C" fn write(userdata: *mut c_void, fd: c_int, buf: *const c_void, len: usize) -> ssize_t {
    transmit(userdata, fd, bytes(buf, len).to_vec(), 0)
}

extern "C" fn writev(userdata: *mut c_void, fd: c_int, parts: *const iovec, n: c_int) -> ssize_t {
    transmit(userdata, fd, gather(vectors(parts, usize::try_from(n).unwrap_or(0))), 0)
}

extern "C" fn send(
    userdata: *mut c_void,
    fd: c_int,
    buf: *const c_void,
    len: usize,
    flags: c_int,
) -> ssize_t {
    transmit(userdata, fd, bytes(buf, len).to_vec(), flags)
}

extern "C" fn sendto(
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
    send(userdata, fd, buf, len, flags)
}

extern "C" fn sendmsg(userdata: *mut c_void, fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: sendmsg(2): `message` points to a msghdr of the caller's.
    match unsafe { message.as_ref() } {
        Some(message) => transmit(userdata, fd, gather(vectors(message.msg_iov, message.msg_iovlen)), flags),
        None => fail(Errno::EINVAL) as ssize_t,
    }
}

/// Variadic on the caller's side; on x86-64 and aarch64 a fixed fourth argument receives the same.
extern "C" fn fcntl(userdata: *mut c_void, fd: c_int, command: c_int, arg: c_long) -> c_int {
    match command {
        libc::F_GETFL => match stack(userdata).blocking(Fd(fd)) {
            Ok(Blocking::Wait) => libc::O_RDWR,
            Ok(Blocking::Return) => libc::O_RDWR | libc::O_NONBLOCK,
            Err(errno) => fail(errno),
        },
        libc::F_SETFL => {
            let nonblocking = arg & c_long::from(libc::O_NONBLOCK) != 0;
            let blocking = if nonblocking { Blocking::Return } else { Blocking::Wait };
            status(stack(userdata).set_blocking(Fd(fd), blocking))
        }
        _ => fail(Errno::EINVAL),
    }
}

extern "C" fn ioctl(userdata: *mut c_void, fd: c_int, request: c_ulong, arg: *mut c_int) -> c_int {
    // SIOCINQ is the same number.
    if request != libc::FIONREAD as c_ulong || arg.is_null() {
        return fail(Errno::EINVAL);
    }
    match stack(userdata).unread(Fd(fd)) {
        Ok(unread) => {
            // SAFETY: SIOCINQ takes a pointer to an int.
            unsafe { *arg = c_int::try_from(unread).unwrap_or(c_int::MAX) };
            0
        }
        Err(errno) => fail(errno),
    }
}

extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    let result = stack(userdata).close(Fd(fd));
    if result.is_ok() {
        drop_handle(Fd(fd));
    }
    status(result)
}

extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    let how = match how {
        libc::SHUT_RD => How::Read,
        libc::SHUT_WR => How::Write,
        libc::SHUT_RDWR => How::Both,
        _ => return fail(Errno::EINVAL),
    };
    status(stack(userdata).shutdown(Fd(fd), how))
}

extern "C" fn interface_getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    read_option(stack(userdata), Fd(fd), level, option, value, len)
}

fn read_option(
    stack: &Stack,
    fd: Fd,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    if len.is_null() {
        return fail(Errno::EINVAL);
    }
    let data = match (level, option) {
        (libc::SOL_TCP, libc::TCP_INFO) => stack.tcp_info(fd).map(|info| info.to_vec()),
        // No algorithm-specific information.
        (libc::SOL_TCP, TCP_CC_INFO) => Ok(Vec::new()),
        (libc::SOL_SOCKET, SO_MEMINFO) => Ok(vec![0; 36]),
        _ => match SockOpt::by_number(level, option) {
            Some(known) => stack.option(fd, known).map(|value| match value {
                OptionValue::Int(int) => int.to_ne_bytes().to_vec(),
                OptionValue::Linger { on, seconds } => {
                    [i32::from(on).to_ne_bytes(), seconds.to_ne_bytes()].concat()
                }
            }),
            None => Err(Errno::ENOPROTOOPT),
        },
    };
    match data {
        Ok(data) => {
            // SAFETY: getsockopt(2): `len` says how much room `value` has, and is told how much was used.
            let used = (unsafe { *len } as usize).min(data.len());
            bytes_mut(value, used).copy_from_slice(&data[..used]);
            // SAFETY: as above.
            unsafe { *len = used as socklen_t };
            0
        }
        Err(errno) => fail(errno),
    }
}

const TCP_CC_INFO: c_int = 26;
const SO_MEMINFO: c_int = 55;

extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let Some(known) = SockOpt::by_number(level, option) else {
        return fail(Errno::ENOPROTOOPT);
    };
    let data = bytes(value, len as usize);
    let int = |at: usize| {
        data.get(at..at + 4).map_or(0, |four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
    };
    let value = match known {
        SockOpt::Linger => OptionValue::Linger { on: int(0) != 0, seconds: int(4) },
        _ => OptionValue::Int(int(0)),
    };
    status(stack(userdata).set_option(Fd(fd), known, value))
}

extern "C" fn poll(userdata: *mut c_void, fds: *mut pollfd, n: c_ulong, timeout: c_int) -> c_int {
    // SAFETY: poll(2): an array of `n` entries.
    let fds = if fds.is_null() { &mut [][..] } else { unsafe { slice::from_raw_parts_mut(fds, n as usize) } };
    let stack = stack(userdata);
    let set = fds.iter().map(|entry| (Fd(entry.fd), Events(entry.events))).collect();
    match stack.call(Request::Poll { set, until: stack.poll_until(timeout) }) {
        Ok(Reply::Polled(events)) => {
            for (entry, events) in fds.iter_mut().zip(&events) {
                entry.revents = events.0 as c_short;
            }
            fds.iter().filter(|entry| entry.revents != 0).count() as c_int
        }
        Ok(_) => 0,
        Err(errno) => fail(errno),
    }
}

extern "C" fn netdev_send(userdata: *mut c_void, packet: *const c_void, len: usize) -> c_int {
    stack(userdata).netdev_send(bytes(packet, len));
    0
}

extern "C" fn netdev_receive(
    userdata: *mut c_void,
    packet: *mut c_void,
    len: *mut usize,
    time_usecs: *mut c_longlong,
) -> c_int {
    if len.is_null() || time_usecs.is_null() {
        return -1;
    }
    let departure = stack(userdata).netdev_receive();
    // SAFETY: the interface: `len` says how much room `packet` has, and both are told about the packet.
    unsafe {
        let Some(departure) = departure else {
            *len = 0;
            return 0;
        };
        let n = departure.bytes.len().min(*len);
        bytes_mut(packet, n).copy_from_slice(&departure.bytes[..n]);
        *len = n;
        *time_usecs = departure.at.as_micros() as c_longlong;
    }
    0
}

extern "C" fn usleep(userdata: *mut c_void, usecs: c_uint) -> c_int {
    stack(userdata).usleep(Duration::from_micros(u64::from(usecs)));
    0
}

extern "C" fn gettimeofday(userdata: *mut c_void, time: *mut timeval, _zone: *mut c_void) -> c_int {
    let now = stack(userdata).gettimeofday().as_micros();
    if !time.is_null() {
        // SAFETY: gettimeofday(2): room for a timeval.
        unsafe {
            *time = timeval { tv_sec: (now / 1_000_000) as i64, tv_usec: (now % 1_000_000) as i64 };
        }
    }
    0
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
        return read_option(&stack, Fd(fd), level, option, value, len);
    }
    // SAFETY: a constant C string; RTLD_NEXT finds the function that this one hides.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"getsockopt".as_ptr()) };
    if next.is_null() {
        return fail(Errno::ENOPROTOOPT);
    }
    // SAFETY: libc's getsockopt has this signature.
    let next: extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int =
        unsafe { std::mem::transmute(next) };
    next(fd, level, option, value, len)
}
