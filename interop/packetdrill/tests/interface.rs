//! Tests the library as packetdrill uses it: opened with dlopen, and called through the table of functions.

#![expect(unsafe_code, reason = "the other side of the C ABI")]

use std::ffi::{CString, c_char, c_int, c_longlong, c_uint, c_void};
use std::mem::{MaybeUninit, transmute, zeroed};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use airtcp_script::wire::Packet;
use airtcp_script::{Flags, TcpOption};
use libc::{iovec, msghdr, pollfd, sockaddr, sockaddr_in, socklen_t, ssize_t, timeval};

/// Size of the table in bytes: userdata and 32 functions.
const SIZE: usize = 264;

/// Indexes in the table. userdata has index 0.
const FREE: usize = 1;
const SOCKET: usize = 2;
const BIND: usize = 3;
const LISTEN: usize = 4;
const ACCEPT: usize = 5;
const CONNECT: usize = 6;
const READ: usize = 7;
const READV: usize = 8;
const RECVMSG: usize = 11;
const WRITE: usize = 12;
const WRITEV: usize = 13;
const SENDMSG: usize = 16;
const FCNTL: usize = 17;
const IOCTL: usize = 18;
const CLOSE: usize = 19;
const GETSOCKOPT: usize = 21;
const SETSOCKOPT: usize = 22;
const POLL: usize = 23;
const NETDEV_SEND: usize = 24;
const NETDEV_RECEIVE: usize = 25;
const USLEEP: usize = 26;
const GETTIMEOFDAY: usize = 27;
const EPOLL_CREATE: usize = 28;

type User = *mut c_void;
type Init = unsafe extern "C" fn(*const c_char, *mut c_void);
type GetSockOpt = unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int;

/// Serializes the tests, because the library has only one stack for the exported getsockopt.
static ONE_TEST: Mutex<()> = Mutex::new(());

struct Loaded {
    table: [usize; SIZE / 8],
    getsockopt: GetSockOpt,
    _guard: MutexGuard<'static, ()>,
}

// SAFETY: packetdrill and these tests call the functions from two threads.
unsafe impl Sync for Loaded {}

/// Returns the library, which is next to the test binary or one directory above it.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let deps = test.parent().unwrap();
    let candidates = [deps, deps.parent().unwrap()].map(|dir: &Path| dir.join("libairtcp_packetdrill.so"));
    let found = candidates.iter().find(|path| path.exists());
    found
        .unwrap_or_else(|| {
            panic!("neither {} nor {} was built", candidates[0].display(), candidates[1].display())
        })
        .clone()
}

impl Loaded {
    fn open(flags: Option<&str>) -> Self {
        Self::open_with(flags, None)
    }

    /// `control` is the value of `$PD_CTL`.
    fn open_with(flags: Option<&str>, control: Option<&Path>) -> Self {
        let guard = ONE_TEST.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the lock excludes other tests, and only the library reads this variable.
        match control {
            Some(control) => unsafe { std::env::set_var("PD_CTL", control) },
            None => unsafe { std::env::remove_var("PD_CTL") },
        }
        let path = CString::new(library().into_os_string().into_encoded_bytes()).unwrap();
        let how = libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NODELETE | libc::RTLD_DEEPBIND;
        let flags = flags.map(|flags| CString::new(flags).unwrap());
        let mut table = [usize::MAX; SIZE / 8 + 1];
        // SAFETY: the symbols have these types, and the table has space for the whole struct.
        let getsockopt = unsafe {
            let library = libc::dlopen(path.as_ptr(), how);
            assert!(!library.is_null(), "dlopen of {path:?} failed");
            let init = libc::dlsym(library, c"packetdrill_interface_init".as_ptr());
            let getsockopt = libc::dlsym(library, c"getsockopt".as_ptr());
            assert!(!init.is_null() && !getsockopt.is_null());
            let init: Init = transmute(init);
            init(flags.as_ref().map_or(null(), |flags| flags.as_ptr()), table.as_mut_ptr().cast());
            transmute::<*mut c_void, GetSockOpt>(getsockopt)
        };
        assert_eq!(table[SIZE / 8], usize::MAX, "the struct is longer than packetdrill's");
        let table: [usize; SIZE / 8] = table[..SIZE / 8].try_into().unwrap();
        assert!(table[..EPOLL_CREATE].iter().all(|entry| *entry != 0));
        assert!(table[EPOLL_CREATE..].iter().all(|entry| *entry == 0), "absent functions are NULL");
        Self { table, getsockopt, _guard: guard }
    }

    fn user(&self) -> User {
        self.table[0] as User
    }
}

/// Calls entry `$at` of the table with the userdata and these arguments.
macro_rules! call {
    ($loaded:expr, $at:expr, ($($kind:ty),*) -> $result:ty, $($argument:expr),*) => {{
        // SAFETY: the entry has this signature in packetdrill's header.
        let function: extern "C" fn(User $(, $kind)*) -> $result = unsafe { transmute($loaded.table[$at]) };
        function($loaded.user() $(, $argument)*)
    }};
}

impl Loaded {
    fn socket(&self) -> c_int {
        call!(self, SOCKET, (c_int, c_int, c_int) -> c_int, libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_TCP)
    }

    fn listening(&self, at: SocketAddr) -> c_int {
        let fd = self.socket();
        assert!(fd >= 3, "descriptors 0 to 2 are in use");
        let addr = sockaddr_of(at);
        let len = size_of::<sockaddr_in>() as socklen_t;
        let bound = call!(self, BIND, (c_int, *const sockaddr, socklen_t) -> c_int, fd, (&raw const addr).cast(), len);
        assert_eq!(bound, 0);
        assert_eq!(call!(self, LISTEN, (c_int, c_int) -> c_int, fd, 1), 0);
        fd
    }

    /// Returns the descriptor and the peer's address.
    fn accept(&self, fd: c_int) -> (c_int, SocketAddr) {
        let mut addr = MaybeUninit::<sockaddr_in>::zeroed();
        let mut len = size_of::<sockaddr_in>() as socklen_t;
        let accepted = call!(self, ACCEPT, (c_int, *mut sockaddr, *mut socklen_t) -> c_int, fd, addr.as_mut_ptr().cast(), &mut len);
        // SAFETY: zeroed above, and a sockaddr_in of zeros is valid.
        let addr = unsafe { addr.assume_init() };
        let ip = std::net::Ipv4Addr::from(u32::from_be(addr.sin_addr.s_addr));
        (accepted, SocketAddr::new(ip.into(), u16::from_be(addr.sin_port)))
    }

    fn read(&self, fd: c_int, len: usize) -> Result<Vec<u8>, c_int> {
        let mut buf = vec![0; len];
        match call!(self, READ, (c_int, *mut c_void, usize) -> ssize_t, fd, buf.as_mut_ptr().cast(), len) {
            -1 => Err(errno()),
            n => {
                buf.truncate(n as usize);
                Ok(buf)
            }
        }
    }

    fn write(&self, fd: c_int, data: &[u8]) -> ssize_t {
        call!(self, WRITE, (c_int, *const c_void, usize) -> ssize_t, fd, data.as_ptr().cast(), data.len())
    }

    fn close(&self, fd: c_int) -> c_int {
        call!(self, CLOSE, (c_int) -> c_int, fd)
    }

    fn send(&self, packet: &Packet) {
        let bytes = packet.bytes();
        let result =
            call!(self, NETDEV_SEND, (*const c_void, usize) -> c_int, bytes.as_ptr().cast(), bytes.len());
        assert_eq!(result, 0);
    }

    /// Returns the next packet and the time at which it was sent, or `None` if there are no more packets.
    fn receive(&self) -> Option<(c_longlong, Packet)> {
        let mut bytes = vec![0; 65_536];
        let (mut len, mut time) = (bytes.len(), 0);
        let result = call!(
            self, NETDEV_RECEIVE, (*mut c_void, *mut usize, *mut c_longlong) -> c_int,
            bytes.as_mut_ptr().cast(), &mut len, &mut time
        );
        assert_eq!(result, 0);
        (len > 0).then(|| (time, Packet::parse(&bytes[..len]).unwrap()))
    }

    fn usleep(&self, usecs: c_uint) {
        assert_eq!(call!(self, USLEEP, (c_uint) -> c_int, usecs), 0);
    }

    fn gettimeofday(&self) -> c_longlong {
        // SAFETY: a timeval is two integers, which may be zero.
        let mut time: timeval = unsafe { zeroed() };
        let result = call!(self, GETTIMEOFDAY, (*mut timeval, *mut c_void) -> c_int, &mut time, null_mut());
        assert_eq!(result, 0);
        time.tv_sec * 1_000_000 + time.tv_usec
    }

    /// Calls the exported getsockopt and not the interface, as packetdrill does.
    fn bare_getsockopt(&self, fd: c_int, level: c_int, option: c_int, room: usize) -> Result<Vec<u8>, c_int> {
        let mut value = vec![0xee; room];
        let mut len = room as socklen_t;
        // SAFETY: `len` contains the size of `value`.
        match unsafe { (self.getsockopt)(fd, level, option, value.as_mut_ptr().cast(), &mut len) } {
            0 => {
                value.truncate(len as usize);
                Ok(value)
            }
            _ => Err(errno()),
        }
    }

    /// Runs `call` in a second thread, and `meanwhile` while that thread sleeps inside the library. Returns
    /// the result of `call`, and the time on the library's clock until it returned, in microseconds.
    fn while_blocked<T: Send>(
        &self,
        call: impl FnOnce() -> T + Send,
        meanwhile: impl FnOnce(),
    ) -> (T, c_longlong) {
        let (tid_sender, tid) = std::sync::mpsc::channel();
        let began = self.gettimeofday();
        let (result, ended) = thread::scope(|scope| {
            let waiting = scope.spawn(move || {
                // SAFETY: the call has no arguments and cannot fail.
                tid_sender.send(unsafe { libc::gettid() }).unwrap();
                (call(), self.gettimeofday())
            });
            self.wait_until_asleep(tid.recv().unwrap());
            meanwhile();
            waiting.join().unwrap()
        });
        (result, ended - began)
    }

    /// Waits until another thread of this process sleeps inside the library. Otherwise time could
    /// pass before its call.
    fn wait_until_asleep(&self, tid: c_int) {
        let status = PathBuf::from(format!("/proc/self/task/{tid}/stat"));
        loop {
            let stat = std::fs::read_to_string(&status).unwrap_or_default();
            let state = stat.rsplit(')').next().and_then(|rest| rest.trim().chars().next());
            // Asleep, or its call has already ended.
            if matches!(state, Some('S') | None) {
                return;
            }
            thread::yield_now();
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        call!(self, FREE, () -> (),);
    }
}

fn errno() -> c_int {
    std::io::Error::last_os_error().raw_os_error().unwrap()
}

fn sockaddr_of(addr: SocketAddr) -> sockaddr_in {
    let SocketAddr::V4(addr) = addr else { panic!("expected an IPv4 address") };
    // SAFETY: a sockaddr_in of zeros is valid.
    let mut raw: sockaddr_in = unsafe { zeroed() };
    raw.sin_family = libc::AF_INET as u16;
    raw.sin_port = addr.port().to_be();
    raw.sin_addr.s_addr = u32::from(*addr.ip()).to_be();
    raw
}

/// The remote end of one connection, whose packets the test writes.
struct Peer {
    host: SocketAddr,
    own: SocketAddr,
    host_isn: u32,
}

const PEER_ISN: u32 = 5000;

impl Peer {
    fn new() -> Self {
        Self {
            host: "192.168.0.1:8080".parse().unwrap(),
            own: "192.0.2.1:50000".parse().unwrap(),
            host_isn: 0,
        }
    }

    /// Builds a packet. Numbers are relative to each side's SYN.
    fn packet(&self, flags: Flags, seq: u32, ack: u32, payload: &[u8]) -> Packet {
        Packet {
            src: self.own,
            dst: self.host,
            tos: 0,
            ttl: 64,
            flags,
            seq: PEER_ISN.wrapping_add(seq),
            ack: if flags.contains(Flags::ACK) { self.host_isn.wrapping_add(ack) } else { 0 },
            win: 30_000,
            urg: 0,
            options: if flags.contains(Flags::SYN) { vec![TcpOption::Mss(1000)] } else { Vec::new() },
            payload: payload.to_vec(),
        }
    }

    fn seq(&self, packet: &Packet) -> u32 {
        packet.seq.wrapping_sub(self.host_isn)
    }
}

fn info_field(info: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(info[at..at + 4].try_into().unwrap())
}

#[test]
fn connection_runs_from_handshake_to_close() {
    let host = Loaded::open(Some("profile=linux,recipe=sack+limited-transmit,psh=neutral"));
    let mut peer = Peer::new();
    let listener = host.listening(peer.host);

    // accept() blocks while this thread performs the handshake.
    let began = host.gettimeofday();
    let ((fd, from), accepted_after) = host.while_blocked(
        || host.accept(listener),
        || {
            host.usleep(10_000);
            host.send(&peer.packet(Flags::SYN, 0, 0, &[]));
            let (at, answer) = host.receive().unwrap();
            assert_eq!(answer.flags, Flags::SYN.with(Flags::ACK));
            assert_eq!(answer.ack, PEER_ISN + 1);
            assert_eq!(answer.options, [TcpOption::Mss(1460)]);
            assert!((10_000..10_100).contains(&(at - began)), "{}", at - began);
            peer.host_isn = answer.seq;
            host.usleep(100_000);
            host.send(&peer.packet(Flags::ACK, 1, 1, &[]));
        },
    );
    assert!(fd > listener);
    assert_eq!(from, peer.own);
    assert!((110_000..110_100).contains(&accepted_after), "{accepted_after}");

    // Outgoing data without PSH, and its ACK.
    let data: Vec<u8> = (0..1500_u32).map(|n| n as u8).collect();
    assert_eq!(host.write(fd, &data), 1500);
    let (first, second) = (host.receive().unwrap().1, host.receive().unwrap().1);
    assert_eq!([first.flags, second.flags], [Flags::ACK; 2]);
    assert_eq!([peer.seq(&first), peer.seq(&second)], [1, 1001]);
    assert_eq!([first.payload, second.payload].concat(), data);

    let info = host.bare_getsockopt(fd, libc::SOL_TCP, libc::TCP_INFO, 280).unwrap();
    assert_eq!(info.len(), 280);
    assert_eq!(info[0], 1, "ESTABLISHED");
    assert_eq!([16, 24, 28, 80].map(|at| info_field(&info, at)), [1000, 2, 0, 10]);
    assert!((100_000..100_100).contains(&info_field(&info, 68)), "rtt");
    assert_eq!(host.bare_getsockopt(fd, libc::SOL_TCP, 26, 64), Ok(Vec::new()));
    assert_eq!(host.bare_getsockopt(fd, libc::SOL_SOCKET, 55, 36), Ok(vec![0; 36]));

    host.usleep(50_000);
    host.send(&peer.packet(Flags::ACK, 1, 1501, &[]));
    let info = host.bare_getsockopt(fd, libc::SOL_TCP, libc::TCP_INFO, 280).unwrap();
    assert_eq!(info_field(&info, 24), 0);

    // read() blocks until data arrives.
    let began = host.gettimeofday();
    let (read, read_after) = host.while_blocked(
        || host.read(fd, 100),
        || {
            host.usleep(20_000);
            host.send(&peer.packet(Flags::ACK.with(Flags::PSH), 1, 1501, b"answer"));
            // The clock stops until the reading thread has read it.
            host.usleep(1_000_000);
        },
    );
    assert_eq!(read.as_deref(), Ok(&b"answer"[..]));
    assert!((20_000..20_100).contains(&read_after), "{read_after}");
    let (at, ack) = host.receive().unwrap();
    assert_eq!((ack.flags, ack.ack), (Flags::ACK, PEER_ISN + 7));
    assert!(at - began < 70_000, "the delayed ACK must leave when its timer fires");

    // close(), then the peer's FIN. No more packets follow.
    assert_eq!(host.close(fd), 0);
    let (_, fin) = host.receive().unwrap();
    assert_eq!((fin.flags, peer.seq(&fin)), (Flags::FIN.with(Flags::ACK), 1501));
    host.send(&peer.packet(Flags::FIN.with(Flags::ACK), 7, 1502, &[]));
    let (_, ack) = host.receive().unwrap();
    assert_eq!((ack.flags, ack.ack), (Flags::ACK, PEER_ISN + 8));
    assert_eq!(host.close(listener), 0);
    assert!(host.receive().is_none(), "TIME-WAIT must not send packets");
    assert_eq!(host.close(fd), -1);
    assert_eq!(errno(), libc::EBADF);
}

#[test]
fn lingering_close_blocks_its_thread() {
    let host = Loaded::open(Some("profile=linux"));
    let mut peer = Peer::new();
    let listener = host.listening(peer.host);
    host.send(&peer.packet(Flags::SYN, 0, 0, &[]));
    peer.host_isn = host.receive().unwrap().1.seq;
    host.send(&peer.packet(Flags::ACK, 1, 1, &[]));
    let (fd, _) = host.accept(listener);
    let linger = libc::linger { l_onoff: 1, l_linger: 10 };
    let set = call!(host, SETSOCKOPT, (c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
        fd, libc::SOL_SOCKET, libc::SO_LINGER, (&raw const linger).cast(), size_of::<libc::linger>() as socklen_t);
    assert_eq!(set, 0);

    let (closed, closed_after) = host.while_blocked(
        || host.close(fd),
        || {
            let (_, fin) = host.receive().unwrap();
            assert_eq!((fin.flags, peer.seq(&fin)), (Flags::FIN.with(Flags::ACK), 1));
            host.usleep(30_000);
            host.send(&peer.packet(Flags::ACK, 1, 2, &[]));
        },
    );
    assert_eq!(closed, 0);
    assert!((30_000..30_100).contains(&closed_after), "{closed_after}");
}

#[test]
fn nonblocking_calls_return_expected_errors() {
    let host = Loaded::open(None);
    let listener = host.listening("192.168.0.1:8080".parse().unwrap());
    assert_eq!(call!(host, FCNTL, (c_int, c_int, i64) -> c_int, listener, libc::F_GETFL, 0), libc::O_RDWR);
    let nonblocking = i64::from(libc::O_RDWR | libc::O_NONBLOCK);
    assert_eq!(call!(host, FCNTL, (c_int, c_int, i64) -> c_int, listener, libc::F_SETFL, nonblocking), 0);
    assert_eq!((host.accept(listener).0, errno()), (-1, libc::EAGAIN));

    let mut set = [pollfd { fd: listener, events: libc::POLLIN, revents: 0x55 }];
    let polled = call!(host, POLL, (*mut pollfd, u64, c_int) -> c_int, set.as_mut_ptr(), 1, 0);
    assert_eq!((polled, set[0].revents), (0, 0));

    let mut unread = 0;
    let queried =
        call!(host, IOCTL, (c_int, u64, *mut c_int) -> c_int, listener, libc::FIONREAD, &mut unread);
    assert_eq!((queried, errno()), (-1, libc::ENOTCONN));

    let one = 1_i32;
    let set = |level, option| {
        call!(
            host, SETSOCKOPT, (c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
            listener, level, option, (&raw const one).cast(), 4
        )
    };
    assert_eq!(set(libc::SOL_SOCKET, libc::SO_REUSEADDR), 0);
    assert_eq!((set(libc::SOL_SOCKET, 9999), errno()), (-1, libc::ENOPROTOOPT));
    let udp = call!(host, SOCKET, (c_int, c_int, c_int) -> c_int, libc::AF_INET, libc::SOCK_DGRAM, 0);
    assert_eq!((udp, errno()), (-1, libc::EPROTONOSUPPORT));
}

/// The checks also show that no call panics, which would abort the test program.
#[test]
fn null_pointers_return_efault_without_losing_packets() {
    let host = Loaded::open(None);
    let fd = host.listening("192.168.0.1:8080".parse().unwrap());
    let assert_efault = |result: ssize_t| assert_eq!((result, errno()), (-1, libc::EFAULT));
    let assert_efault_int = |result: c_int| assert_efault(result as ssize_t);

    let mut len: socklen_t = 4;
    for (level, option) in
        [(libc::SOL_TCP, libc::TCP_INFO), (libc::SOL_SOCKET, 55), (libc::SOL_SOCKET, libc::SO_LINGER)]
    {
        assert_efault_int(call!(
            host, GETSOCKOPT, (c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int,
            fd, level, option, null_mut(), &mut len
        ));
        // SAFETY: as getsockopt(2) requires, except for NULL, which is tested here.
        assert_efault_int(unsafe { (host.getsockopt)(fd, level, option, null_mut(), &mut len) });
        // SAFETY: as above.
        assert_efault_int(unsafe { (host.getsockopt)(fd, level, option, (&raw mut len).cast(), null_mut()) });
    }
    assert_efault_int(call!(
        host, SETSOCKOPT, (c_int, c_int, c_int, *const c_void, socklen_t) -> c_int,
        fd, libc::SOL_SOCKET, libc::SO_LINGER, null(), 8
    ));

    for at in [BIND, CONNECT] {
        assert_efault_int(call!(host, at, (c_int, *const sockaddr, socklen_t) -> c_int, fd, null(), 16));
    }
    assert_efault(call!(host, READ, (c_int, *mut c_void, usize) -> ssize_t, fd, null_mut(), 10));
    assert_efault(call!(host, WRITE, (c_int, *const c_void, usize) -> ssize_t, fd, null(), 10));
    let nowhere = iovec { iov_base: null_mut(), iov_len: 10 };
    // SAFETY: an msghdr of zeros is valid. It has no address, no vectors and no control data.
    let mut message: msghdr = unsafe { zeroed() };
    for at in [READV, WRITEV] {
        let call = |parts, n| call!(host, at, (c_int, *const iovec, c_int) -> ssize_t, fd, parts, n);
        assert_efault(call(&raw const nowhere, 1));
        assert_efault(call(null(), 1));
        assert_eq!((call(null(), -1), errno()), (-1, libc::EINVAL));
    }
    for at in [RECVMSG, SENDMSG] {
        let call = |message| call!(host, at, (c_int, *mut msghdr, c_int) -> ssize_t, fd, message, 0);
        assert_efault(call(null_mut()));
        (message.msg_iov, message.msg_iovlen) = (null_mut(), 2);
        assert_efault(call(&raw mut message));
    }
    assert_efault_int(call!(host, POLL, (*mut pollfd, u64, c_int) -> c_int, null_mut(), 1, 0));
    assert_efault_int(call!(host, IOCTL, (c_int, u64, *mut c_int) -> c_int, fd, libc::FIONREAD, null_mut()));

    assert_efault_int(call!(host, NETDEV_SEND, (*const c_void, usize) -> c_int, null(), 40));
    // The SYN-ACK is pending. A failed call must leave it for the next one.
    let peer = Peer::new();
    host.send(&peer.packet(Flags::SYN, 0, 0, &[]));
    let (mut len, mut time) = (1500_usize, 0);
    assert_efault_int(
        call!(host, NETDEV_RECEIVE, (*mut c_void, *mut usize, *mut c_longlong) -> c_int, null_mut(), &mut len, &mut time),
    );
    assert!(host.receive().is_some());

    // Without userdata, calls fail and there is nothing to free.
    // SAFETY: the entries have these signatures in packetdrill's header.
    unsafe {
        let listen: extern "C" fn(User, c_int, c_int) -> c_int = transmute(host.table[LISTEN]);
        assert_efault_int(listen(null_mut(), fd, 1));
        let free: extern "C" fn(User) = transmute(host.table[FREE]);
        free(null_mut());
    }
    assert_eq!(host.close(fd), 0);
}

#[test]
fn foreign_descriptors_reach_real_getsockopt() {
    let host = Loaded::open(None);
    let real = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&real);
    let kind = host.bare_getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, 4).unwrap();
    assert_eq!(kind, libc::SOCK_STREAM.to_ne_bytes());
    assert_eq!(host.bare_getsockopt(-1, libc::SOL_SOCKET, libc::SO_TYPE, 4), Err(libc::EBADF));
}

#[test]
fn control_file_sysctls_apply_to_next_socket() {
    let control = std::env::temp_dir().join(format!("airtcp-packetdrill-{}.ctl", std::process::id()));
    std::fs::write(&control, "-q net.ipv4.tcp_timestamps=0\n-q net.ipv4.tcp_window_scaling=0\n").unwrap();
    let host = Loaded::open_with(Some("profile=linux"), Some(&control));
    let peer = Peer::new();
    host.listening(peer.host);
    let mut syn = peer.packet(Flags::SYN, 0, 0, &[]);
    syn.options = vec![
        TcpOption::Mss(1000),
        TcpOption::SackPermitted,
        TcpOption::Timestamps { val: Some(1), ecr: Some(0) },
        TcpOption::Nop,
        TcpOption::WindowScale(7),
    ];
    host.send(&syn);
    let (_, answer) = host.receive().unwrap();
    std::fs::remove_file(&control).unwrap();
    let expected = [TcpOption::Mss(1460), TcpOption::Nop, TcpOption::Nop, TcpOption::SackPermitted];
    assert_eq!(answer.options, expected);
}
