//! Control socket of a running link. Requests and answers are JSON objects, one per line.
//!
//! ```text
//! > {"command":"set","key":"wire.down.rate","value":"64kbit"}
//! < {"schema_version":1,"ok":true,"result":"64kbit"}
//! > {"command":"get","key":"wire.down.rate"}
//! < {"schema_version":1,"ok":true,"result":"64kbit"}
//! > {"command":"set","key":"wire.down.rate","value":"64"}
//! < {"schema_version":1,"ok":false,"error":"…"}
//! > {"command":"stats"}
//! > {"command":"watch","every":"500ms"}     an answer as to `stats` per interval, until the client leaves
//! > {"command":"stop"}                      ends the run, as SIGTERM does
//! ```
//!
//! The socket is the abstract socket `@airlink/NAME`. It belongs to the network namespace (`airlink run` also
//! listens in the namespaces that it creates). Its name serves as a lock, and it disappears when the process
//! ends for any reason. If the user gives a path instead, the file is removed at the end, and a file left by
//! a killed process is replaced.
//!
//! An abstract name has no permissions: any user may listen on it or connect to it. Therefore both ends check
//! the peer's identity with SO_PEERCRED. The link answers only root and the user who started it, and refuses
//! all other users with an error. A client trusts only links of its own user and of root, and exchanges no
//! data with any other listener. (Inside a user namespace, root looks like any other foreign user. Neither
//! side trusts it.)

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use airwire::time::{Duration, Instant};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, getsockopt, socket, sockopt};
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::netns::Anonymous;
use crate::reactor::{Interest, Reactor, Token};

/// The `schema_version` of every answer.
pub const SCHEMA_VERSION: u32 = 1;
const PREFIX: &str = "airlink/";
/// Bytes of the longest request. A client that sends a longer line is disconnected.
const LONGEST_LINE: usize = 64 << 10;
/// Upper bound on the bytes of answers that a client has not read. A client that exceeds it is disconnected,
/// since the link cannot wait for it.
const UNREAD: usize = 1 << 20;
/// Upper bound on simultaneous clients.
const CLIENTS: usize = 64;

/// A client's request. In JSON, the field `command` names the variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// Reads a setting.
    Get {
        /// The setting, written STAGE.KEY as in a scenario. `None`: the whole scenario.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Changes a setting. The answer is its new value.
    Set {
        /// The setting, written STAGE.KEY as in a scenario.
        key: String,
        /// The new value, as in a scenario.
        value: Value,
    },
    /// Reads the counters.
    Stats,
    /// Reads the counters repeatedly until the client disconnects.
    Watch {
        /// The interval, at least 1 ms. Default: 1 s.
        #[serde(default = "second")]
        every: Duration,
    },
    /// Ends the link, as SIGTERM does.
    Stop,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// Address of a control socket. A text that contains a `/` is a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The abstract socket `@airlink/NAME` of this network namespace.
    Named(String),
    /// A socket in the file system.
    File(PathBuf),
}

/// Reason why a control socket could not be created or used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The text is not an [`Address`].
    #[error("`{0}` is neither a name (letters, digits, `-`, `_`, `.`) nor a path (with a `/`)")]
    BadName(String),
    /// Another process listens on the address.
    #[error("a link named {0} is running already: choose another name, or end it with `airlink down {0}`")]
    Taken(Address),
    /// The listener belongs to neither root nor the current user.
    #[error(
        "{address} belongs to another user (UID {uid}), and only your own links and root's are trusted: as root, \
         use `sudo -u '#{uid}' airlink …`; for your own link, choose another name, or a path in your own directory"
    )]
    Strangers {
        /// The address.
        address: Address,
        /// User ID of the listener.
        uid: u32,
    },
    /// No process listens on the address.
    #[error("no running link is named {0}: `airlink status` lists the running links")]
    NotThere(Address),
    /// The path exists and is not a socket.
    #[error("cannot create the control socket {0}: the file exists and is not a socket; choose another path")]
    InTheWay(Address),
    /// The socket could not be created for another reason.
    #[error(
        "cannot create the control socket {address}: {source}; check that its directory exists and is writable"
    )]
    Listen {
        /// The requested address.
        address: Address,
        /// Error of the system call.
        source: io::Error,
    },
    /// The connection failed.
    #[error("the connection to the control socket {address} failed: {source}")]
    Io {
        /// The peer's address.
        address: Address,
        /// Error of the system call.
        source: io::Error,
    },
}

impl FromStr for Address {
    type Err = ControlError;
    fn from_str(text: &str) -> Result<Self, ControlError> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match text {
            path if path.contains('/') => Ok(Self::File(path.into())),
            name if (1..=64).contains(&name.len()) && name.bytes().all(plain) => {
                Ok(Self::Named(name.to_owned()))
            }
            _ => Err(ControlError::BadName(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(name) => f.write_str(name),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Address {
    fn socket(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Named(name) => SocketAddr::from_abstract_name(format!("{PREFIX}{name}")),
            Self::File(path) => SocketAddr::from_pathname(path),
        }
    }

    /// Converts an error of a link that tries to listen.
    fn listen_error(&self, source: io::Error) -> ControlError {
        let address = self.clone();
        match (source.kind(), self) {
            (io::ErrorKind::AddrInUse, Self::File(path)) if !is_socket(path) => {
                ControlError::InTheWay(address)
            }
            (io::ErrorKind::AddrInUse, _) => match self.connect() {
                Err(strangers @ ControlError::Strangers { .. }) => strangers,
                _ => ControlError::Taken(address),
            },
            _ => ControlError::Listen { address, source },
        }
    }

    /// Converts an error of a client.
    fn call_error(&self, source: io::Error) -> ControlError {
        let address = self.clone();
        match source.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ControlError::NotThere(address),
            _ => ControlError::Io { address, source },
        }
    }

    /// Connects to a link of the current user or of root.
    fn connect(&self) -> Result<UnixStream, ControlError> {
        let open = || -> io::Result<(UnixStream, u32)> {
            let address = match self {
                Self::Named(name) => UnixAddr::new_abstract(format!("{PREFIX}{name}").as_bytes())?,
                Self::File(path) => UnixAddr::new(path)?,
            };
            // A listener that never accepts must not block us before its owner is known.
            let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
            let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
            connect(socket.as_raw_fd(), &address)?;
            let stream = UnixStream::from(socket);
            stream.set_nonblocking(false)?;
            let uid = getsockopt(&stream, sockopt::PeerCredentials)?.uid();
            Ok((stream, uid))
        };
        match open().map_err(|source| self.call_error(source))? {
            (stream, uid) if is_trusted(uid) => Ok(stream),
            (_, uid) => Err(ControlError::Strangers { address: self.clone(), uid }),
        }
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let result = UnixListener::bind_addr(&self.socket()?);
        match (self, result) {
            (Self::File(path), Err(error)) if error.kind() == io::ErrorKind::AddrInUse => {
                // Replace only a socket on which no process listens.
                match self.connect() {
                    Err(ControlError::NotThere(_)) if is_socket(path) => {
                        fs::remove_file(path)?;
                        UnixListener::bind(path)
                    }
                    _ => Err(error),
                }
            }
            (_, result) => result,
        }
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// Whether this user is root or the current user. Links answer, and clients trust, only these two.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// Names of the links that run in this network namespace. Links of other users are not included.
pub fn running() -> io::Result<Vec<String>> {
    let sockets = fs::read_to_string("/proc/thread-self/net/unix")?;
    let names: BTreeSet<String> = sockets
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@')?.strip_prefix(PREFIX))
        // Any user can put arbitrary names into this list.
        .filter(|name| {
            let address: Result<Address, _> = name.parse();
            address.is_ok_and(|address| matches!(address, Address::Named(_)) && address.connect().is_ok())
        })
        .map(str::to_owned)
        .collect();
    Ok(names.into_iter().collect())
}

/// A link that answers the requests received by a [`Control`].
pub trait Subject {
    /// Returns the result, or a message that explains what is wrong with the request. `Watch` is never passed
    /// on: it becomes a `Stats` per interval.
    fn answer(&mut self, request: &Request) -> Result<Value, String>;
}

/// The link's end of a control socket. It never blocks.
pub struct Control {
    address: Address,
    /// The listener with index n has the token `first` + n.
    listeners: Vec<UnixListener>,
    first: Token,
    clients: BTreeMap<Token, Client>,
    /// The next client's token.
    next: u32,
    /// Time until which no clients are accepted, because an accept has failed.
    closed_until: Option<Instant>,
}

/// Time during which no clients are accepted after an accept has failed, for example for lack of descriptors.
const CLOSED: Duration = Duration::from_millis(100);

struct Client {
    stream: UnixStream,
    /// The received part of an incomplete line.
    unread: Vec<u8>,
    /// Answers that the client has not read.
    unsent: Vec<u8>,
    /// `Watch`: the interval and the time of the next answer.
    watch: Option<(Duration, Instant)>,
}

/// Whether a client remains connected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Yes,
    No,
}

impl Control {
    /// Creates the socket. In the namespaces `inside`, an abstract socket is available under the same name,
    /// so that programs behind the link can connect. The control socket uses all tokens of the reactor from
    /// `first` on.
    pub fn listen(
        address: Address,
        inside: &[&Anonymous],
        first: Token,
        reactor: &mut Reactor,
    ) -> Result<Self, ControlError> {
        let mut open = || -> io::Result<Vec<UnixListener>> {
            let mut listeners = vec![address.listen()?];
            match &address {
                Address::File(path) => fs::set_permissions(path, fs::Permissions::from_mode(0o600))?,
                Address::Named(_) => {
                    for namespace in inside {
                        listeners.push(namespace.enter(|| address.listen()).map_err(io::Error::other)??);
                    }
                }
            }
            for (token, listener) in (first.0..).map(Token).zip(&listeners) {
                listener.set_nonblocking(true)?;
                reactor.register(listener, token, Interest::Read)?;
            }
            Ok(listeners)
        };
        let listeners = open().map_err(|source| address.listen_error(source))?;
        let next = first.0 + listeners.len() as u32;
        Ok(Self { address, listeners, first, clients: BTreeMap::new(), next, closed_until: None })
    }

    /// The listeners with their tokens.
    fn listeners(&self) -> impl Iterator<Item = (Token, &UnixListener)> {
        (self.first.0..).map(Token).zip(&self.listeners)
    }

    /// Address to which clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// When [`attend`](Self::attend) must be called even if no descriptor is ready. `None`: never.
    pub fn next_deadline(&self) -> Option<Instant> {
        let told = self.clients.values().filter_map(|client| client.watch.map(|(_, at)| at));
        told.chain(self.closed_until).min()
    }

    /// Accepts clients, reads requests and writes answers on the descriptors that are `ready`, and serves
    /// clients that watch. A client that causes an error is disconnected. A returned error is an error of the
    /// reactor.
    pub fn attend(
        &mut self,
        now: Instant,
        ready: &[Token],
        reactor: &mut Reactor,
        subject: &mut impl Subject,
    ) -> io::Result<()> {
        if self.closed_until.is_some_and(|until| until <= now) {
            self.closed_until = None;
            for (token, listener) in self.listeners() {
                reactor.register(listener, token, Interest::Read)?;
            }
        }
        let knocks = |(token, _): &(Token, &UnixListener)| ready.contains(token);
        if self.listeners().any(|listener| knocks(&listener))
            && let Err(error) = self.accept(reactor)
        {
            // Keep the link running. Stop listening for a while, since the waiting client would wake the
            // reactor again at once.
            tracing::warn!("the control socket accepts no clients for the moment: {error}");
            for (token, listener) in self.listeners() {
                reactor.deregister(listener, token)?;
            }
            self.closed_until = Some(now + CLOSED);
        }
        let mut left = Vec::new();
        for (token, client) in &mut self.clients {
            let due = client.watch.is_some_and(|(_, at)| at <= now);
            if !due && !ready.contains(token) {
                continue;
            }
            let blocked = !client.unsent.is_empty();
            // An error of one client ends its connection, not the link.
            if client.attend(now, subject).unwrap_or(Stays::No) == Stays::No {
                reactor.deregister(&client.stream, *token)?;
                left.push(*token);
            } else if blocked == client.unsent.is_empty() {
                let interest = if blocked { Interest::Read } else { Interest::Both };
                reactor.modify(&client.stream, *token, interest)?;
            }
        }
        for token in left {
            self.clients.remove(&token);
        }
        Ok(())
    }

    fn accept(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        (0..self.listeners.len()).try_for_each(|listener| self.accept_at(listener, reactor))
    }

    fn accept_at(&mut self, listener: usize, reactor: &mut Reactor) -> io::Result<()> {
        loop {
            let stream = match self.listeners[listener].accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            stream.set_nonblocking(true)?;
            let mut client = Client { stream, unread: Vec::new(), unsent: Vec::new(), watch: None };
            if let Err(refusal) = self.admit(&client.stream) {
                client.say(&Err(refusal));
                // If the client cannot take the answer at once, it does not get it.
                let _ = client.flush();
                continue;
            }
            let token = Token(self.next);
            self.next += 1;
            reactor.register(&client.stream, token, Interest::Read)?;
            self.clients.insert(token, client);
        }
    }

    fn admit(&self, stream: &UnixStream) -> Result<(), String> {
        let own = geteuid().as_raw();
        let uid = getsockopt(stream, sockopt::PeerCredentials).map(|peer| peer.uid());
        if !uid.is_ok_and(is_trusted) {
            return Err(format!(
                "permission denied: only root and the user who started this link (UID {own}) can control it"
            ));
        }
        if self.clients.len() >= CLIENTS {
            return Err(format!("too many clients: this link already serves {CLIENTS}, which is the limit"));
        }
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        if let Address::File(path) = &self.address {
            // Ignore errors: the file may have been removed already.
            let _ = fs::remove_file(path);
        }
    }
}

impl Client {
    fn attend(&mut self, now: Instant, subject: &mut impl Subject) -> io::Result<Stays> {
        let mut buffer = [0; 4096];
        let mut stays = Stays::Yes;
        while stays == Stays::Yes && self.unread.len() <= LONGEST_LINE {
            match self.stream.read(&mut buffer) {
                Ok(0) => stays = Stays::No,
                Ok(len) => self.unread.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            self.handle(now, line.trim_ascii(), subject);
        }
        if self.unread.len() > LONGEST_LINE {
            self.say(&Err(format!("the request is too long: a line has at most {LONGEST_LINE} bytes")));
            stays = Stays::No;
        }
        if let Some((every, at)) = self.watch.filter(|(_, at)| *at <= now) {
            self.say(&subject.answer(&Request::Stats));
            // Do not make up for missed intervals.
            self.watch = Some((every, (at + every).max(now)));
        }
        self.flush()?;
        Ok(if self.unsent.len() > UNREAD { Stays::No } else { stays })
    }

    fn handle(&mut self, now: Instant, line: &[u8], subject: &mut impl Subject) {
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<Request>(line) {
            Err(error) => self.say(&Err(format!("invalid request: {error}"))),
            Ok(Request::Watch { every }) if every < Duration::from_millis(1) => {
                self.say(&Err("`every` must be at least 1ms".to_owned()));
            }
            Ok(Request::Watch { every }) => self.watch = Some((every, now)),
            Ok(request) => {
                let answer = subject.answer(&request);
                self.say(&answer);
            }
        }
    }

    fn say(&mut self, answer: &Result<Value, String>) {
        let object = match answer {
            Ok(result) => json!({"schema_version": SCHEMA_VERSION, "ok": true, "result": result}),
            Err(error) => json!({"schema_version": SCHEMA_VERSION, "ok": false, "error": error}),
        };
        self.unsent.extend_from_slice(object.to_string().as_bytes());
        self.unsent.push(b'\n');
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(len) => drop(self.unsent.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The client's end of a control socket. It blocks until an answer arrives.
pub struct Caller {
    address: Address,
    stream: BufReader<UnixStream>,
}

/// The link's answer: a result, or a message that explains the refusal.
pub type Answer = Result<Value, String>;

impl Caller {
    /// Connects to a running link of the current user or of root.
    pub fn connect(address: &Address) -> Result<Self, ControlError> {
        let stream = address.connect()?;
        Ok(Self { address: address.clone(), stream: BufReader::new(stream) })
    }

    /// Sends a request and waits for the answer. After a `Watch`, iterate over the answers that follow.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ControlError> {
        // A request consists of plain strings and values.
        let mut line = serde_json::to_vec(request).expect("a request becomes JSON");
        line.push(b'\n');
        match self.stream.get_mut().write_all(&line) {
            // The link has closed the connection, and may have sent the reason before.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(|source| self.address.call_error(source))?,
        }
        self.next().unwrap_or_else(|| Err(self.address.call_error(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// The answers that follow the first one to a `Watch`. The iterator ends with the connection.
impl Iterator for Caller {
    type Item = Result<Answer, ControlError>;
    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(source) => return Some(Err(self.address.call_error(source))),
        }
        #[derive(Deserialize)]
        struct Line {
            result: Option<Value>,
            error: Option<String>,
        }
        Some(match serde_json::from_str(&line) {
            Ok(Line { error: Some(error), .. }) => Ok(Err(error)),
            Ok(Line { result, error: None }) => Ok(Ok(result.unwrap_or_default())),
            Err(error) => Err(self.address.call_error(io::Error::other(error))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reactor::{Clock, Wakeup};

    /// A subject with one value.
    struct Knob(Value);

    impl Subject for Knob {
        fn answer(&mut self, request: &Request) -> Result<Value, String> {
            match request {
                Request::Set { value, .. } if value == "bad" => Err("that is not a value".to_owned()),
                Request::Set { value, .. } => {
                    self.0 = value.clone();
                    Ok(value.clone())
                }
                _ => Ok(self.0.clone()),
            }
        }
    }

    const FIRST: Token = Token(20);

    fn address(what: &str) -> Address {
        format!("test-{}-{what}", std::process::id()).parse().unwrap()
    }

    /// Time after which a waiting test fails.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

    /// Serves a control socket until `f`, which plays the clients, returns.
    fn served<T: Send>(address: &Address, f: impl FnOnce(&Address) -> T + Send) -> T {
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let mut control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
        let mut knob = Knob(json!("as it was"));
        let limit = reactor.clock().now() + Duration::from_secs(PATIENCE.as_secs());
        // The closure owns the control socket: if it panics, the clients are disconnected and their thread
        // ends.
        std::thread::scope(move |scope| {
            let (done, end) = UnixStream::pair().unwrap();
            reactor.register(&end, Token(0), Interest::Read).unwrap();
            let caller = scope.spawn(move || {
                let _done = done;
                f(address)
            });
            loop {
                let deadline = control.next_deadline().map_or(limit, |deadline| deadline.min(limit));
                let events = reactor.wait(Some(deadline)).unwrap().to_vec();
                assert!(reactor.clock().now() < limit, "the clients have not finished within {PATIENCE:?}");
                if events.contains(&Wakeup::Readable(Token(0))) {
                    return caller.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                }
                let ready: Vec<Token> = events
                    .iter()
                    .filter_map(|event| match event {
                        Wakeup::Readable(token) | Wakeup::Writable(token) => Some(*token),
                        Wakeup::Deadline | Wakeup::Stop(_) => None,
                    })
                    .collect();
                let now = reactor.clock().now();
                control.attend(now, &ready, &mut reactor, &mut knob).unwrap();
            }
        })
    }

    #[test]
    fn clients_see_value_set_by_another_client() {
        served(&address("get"), |address| {
            let get = Request::Get { key: None };
            let mut first = Caller::connect(address).unwrap();
            assert_eq!(first.ask(&get).unwrap(), Ok(json!("as it was")));
            let set = |value| Request::Set { key: "k".to_owned(), value: json!(value) };
            assert_eq!(first.ask(&set("new")).unwrap(), Ok(json!("new")));
            assert_eq!(first.ask(&set("bad")).unwrap(), Err("that is not a value".to_owned()));
            assert_eq!(Caller::connect(address).unwrap().ask(&get).unwrap(), Ok(json!("new")));
        });
    }

    #[test]
    fn invalid_requests_get_errors_and_connection_stays_open() {
        served(&address("nonsense"), |address| {
            let mut caller = Caller::connect(address).unwrap();
            caller.stream.get_mut().write_all(b"{\"command\":\"fly\"}\n{}\nhello\n").unwrap();
            for wanted in ["unknown variant `fly`", "missing field `command`", "expected value"] {
                let error = caller.next().unwrap().unwrap().unwrap_err();
                assert!(error.contains(wanted), "{error}");
            }
            assert!(caller.ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn overlong_request_line_closes_connection() {
        served(&address("long"), |address| {
            let mut caller = Caller::connect(address).unwrap();
            // The link disconnects in the middle of this write, so it may fail.
            let _ = caller.stream.get_mut().write_all(&vec![b'x'; 10 * LONGEST_LINE]);
            let answers: Vec<_> = caller.take(2).collect();
            assert!(answers.len() < 2 || answers[1].is_err());
            assert!(Caller::connect(address).unwrap().ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn watch_request_is_answered_periodically() {
        served(&address("watch"), |address| {
            let mut caller = Caller::connect(address).unwrap();
            let every = Duration::from_millis(5);
            assert!(caller.ask(&Request::Watch { every }).unwrap().is_ok());
            assert_eq!(caller.take(3).filter(|answer| matches!(answer, Ok(Ok(_)))).count(), 3);
        });
    }

    #[test]
    fn client_that_does_not_read_is_disconnected() {
        served(&address("deaf"), |address| {
            let mut deaf = UnixStream::connect_addr(&address.socket().unwrap()).unwrap();
            let set = Request::Set { key: String::new(), value: json!("x".repeat(6_000)) };
            assert!(Caller::connect(address).unwrap().ask(&set).unwrap().is_ok());
            deaf.set_write_timeout(Some(PATIENCE)).unwrap();
            // Each answer has 6 kB and none is read, so the link disconnects long before all requests are
            // written.
            let asked = (0..100_000).try_for_each(|_| deaf.write_all(b"{\"command\":\"stats\"}\n"));
            let kind = asked.expect_err("the link has not disconnected a client that does not read").kind();
            assert!(
                [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&kind),
                "the link has not disconnected a client that does not read: {kind:?}"
            );
            assert!(Caller::connect(address).unwrap().ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn link_name_is_exclusive_and_listed_while_open() {
        let address = address("name");
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
        assert!(running().unwrap().contains(&address.to_string()));
        let second = Control::listen(address.clone(), &[], Token(40), &mut reactor).err().unwrap();
        assert!(second.to_string().contains("airlink down"), "{second}");
        drop(control);
        assert!(!running().unwrap().contains(&address.to_string()));
        let gone = Caller::connect(&address).err().unwrap();
        assert!(gone.to_string().contains("airlink status"), "{gone}");
    }

    #[test]
    fn socket_file_is_private_and_replaces_stale_one() {
        let path = std::env::temp_dir().join(format!("airlink-control-{}", std::process::id()));
        drop(UnixListener::bind(&path).unwrap());
        let address: Address = path.to_str().unwrap().parse().unwrap();
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(
            Control::listen(address.clone(), &[], Token(40), &mut reactor),
            Err(ControlError::Taken(_))
        ));
        drop(control);
        assert!(!path.exists());

        fs::write(&path, "not a socket").unwrap();
        let in_the_way = Control::listen(address, &[], Token(60), &mut reactor).err().unwrap();
        assert!(in_the_way.to_string().contains("is not a socket"), "{in_the_way}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "not a socket");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn listen_error_names_missing_directory_of_socket() {
        let address: Address = "/no/such/dir/sock".parse().unwrap();
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let error = Control::listen(address.clone(), &[], FIRST, &mut reactor).err().unwrap().to_string();
        assert!(error.contains("/no/such/dir/sock") && error.contains("directory"), "{error}");
        assert!(!error.contains("airlink status"), "{error}");
        let error = Caller::connect(&address).err().unwrap().to_string();
        assert!(error.contains("airlink status"), "{error}");
    }

    #[test]
    fn requests_of_other_users_are_rejected() {
        served(&address("stranger"), |address| {
            let socket = format!("ABSTRACT-CONNECT:{PREFIX}{address}");
            let mut stranger = std::process::Command::new("setpriv");
            stranger.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
            let output = stranger.args(["socat", "-u", &socket, "-"]).output().unwrap();
            let said: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(said["ok"], false);
            assert!(said["error"].as_str().unwrap().contains("root"), "{said}");
            assert!(Caller::connect(address).unwrap().ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn socket_of_another_user_is_not_trusted() {
        let address = address("squatted");
        let mut squatter = std::process::Command::new("setpriv");
        squatter.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        // It would answer any request with a forged result.
        let answer = format!("ABSTRACT-LISTEN:{PREFIX}{address},fork");
        squatter.args(["socat", &answer, "SYSTEM:'cat; echo {\\\"result\\\":1}'"]);
        let mut squatter = squatter.spawn().unwrap();
        // A socket has its name before it listens. The fourth column shows whether it listens
        // (__SO_ACCEPTCON).
        let listens = || {
            let sockets = fs::read_to_string("/proc/thread-self/net/unix").unwrap();
            let name = format!("@{PREFIX}{address}");
            sockets.lines().any(|line| line.ends_with(&name) && line.split(' ').nth(3) == Some("00010000"))
        };
        let clock = Clock::start();
        let limit = clock.now() + Duration::from_secs(PATIENCE.as_secs());
        while !listens() {
            assert!(clock.now() < limit, "socat does not listen");
            assert!(squatter.try_wait().unwrap().is_none(), "this test needs socat");
            std::thread::yield_now();
        }
        let called = Caller::connect(&address).err().unwrap();
        assert!(matches!(called, ControlError::Strangers { uid: 65534, .. }), "{called}");
        assert!(!running().unwrap().contains(&address.to_string()));
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let listened = Control::listen(address, &[], FIRST, &mut reactor).err().unwrap();
        assert!(matches!(listened, ControlError::Strangers { uid: 65534, .. }), "{listened}");
        squatter.kill().unwrap();
        squatter.wait().unwrap();
    }

    #[test]
    fn client_over_limit_gets_error() {
        served(&address("many"), |address| {
            let mut callers: Vec<_> = (0..=CLIENTS).map(|_| Caller::connect(address).unwrap()).collect();
            let refused = callers.last_mut().unwrap().ask(&Request::Stats).unwrap().unwrap_err();
            assert!(refused.contains("already serves 64"), "{refused}");
            assert!(callers[0].ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn address_rejects_invalid_names_and_accepts_paths() {
        for name in ["", "a b", "a\0b", "ä"] {
            assert!(name.parse::<Address>().is_err(), "{name}");
        }
        assert_eq!("./x".parse::<Address>().unwrap(), Address::File("./x".into()));
    }
}
