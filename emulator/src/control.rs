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
//! An abstract name has no permissions: any user may listen on the name or connect to the socket. Therefore
//! both ends check the peer's identity with SO_PEERCRED. The link answers only root and the user who started
//! it, and refuses all other users with an error. A client trusts only links of its own user and of root, and
//! exchanges no data with any other listener. (Inside a user namespace, root looks like any other foreign
//! user, which both sides distrust.)

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, fs};

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
const MAX_REQUEST_LEN: usize = 64 << 10;
/// Upper bound on the bytes of answers that a client has not read. A client that exceeds this bound is
/// disconnected, since the link cannot wait for a client.
const MAX_UNREAD: usize = 1 << 20;
/// Upper bound on simultaneous clients.
const MAX_CLIENTS: usize = 64;

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
    InUse(Address),
    /// The listener belongs neither to root nor to the current user.
    #[error(
        "{address} belongs to another user (UID {uid}), and only your own links and root's are trusted: as root, \
         use `sudo -u '#{uid}' airlink …`; for your own link, choose another name, or a path in your own directory"
    )]
    OtherUser {
        /// The address.
        address: Address,
        /// User ID of the listener.
        uid: u32,
    },
    /// No process listens on the address.
    #[error("no running link is named {0}: `airlink status` lists the running links")]
    NotRunning(Address),
    /// The path exists and is not a socket.
    #[error("cannot create the control socket {0}: the file exists and is not a socket; choose another path")]
    NotASocket(Address),
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
                ControlError::NotASocket(address)
            }
            (io::ErrorKind::AddrInUse, _) => match self.connect() {
                Err(strangers @ ControlError::OtherUser { .. }) => strangers,
                _ => ControlError::InUse(address),
            },
            _ => ControlError::Listen { address, source },
        }
    }

    /// Converts an error of a client.
    fn client_error(&self, source: io::Error) -> ControlError {
        let address = self.clone();
        match source.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ControlError::NotRunning(address),
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
        match open().map_err(|source| self.client_error(source))? {
            (stream, uid) if is_trusted(uid) => Ok(stream),
            (_, uid) => Err(ControlError::OtherUser { address: self.clone(), uid }),
        }
    }

    fn listen(&self) -> io::Result<UnixListener> {
        let result = UnixListener::bind_addr(&self.socket()?);
        match (self, result) {
            (Self::File(path), Err(error)) if error.kind() == io::ErrorKind::AddrInUse => {
                // Replace only a socket on which no process listens.
                match self.connect() {
                    Err(ControlError::NotRunning(_)) if is_socket(path) => {
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

/// Whether this user is root or the current user. Links answer only these users, and clients accept only
/// links of these users.
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

/// The link behind a [`Control`], which answers its requests.
pub trait RequestHandler {
    /// Returns the result, or a message that explains what is wrong with the request. [`Control`] handles
    /// `Watch` itself: it calls this method with `Stats` once per interval.
    fn answer(&mut self, request: &Request) -> Result<Value, String>;
}

/// The link's end of a control socket. It never blocks.
pub struct Control {
    address: Address,
    /// The listener with index n has the token `first` + n.
    listeners: Vec<UnixListener>,
    first: Token,
    clients: BTreeMap<Token, Connection>,
    /// The next client's token.
    next: u32,
    /// Time until which no clients are accepted, because an accept has failed.
    paused_until: Option<Instant>,
}

/// Time during which no clients are accepted after an accept has failed, for example for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

struct Connection {
    stream: UnixStream,
    /// Received bytes that are not handled yet.
    input: Vec<u8>,
    /// Answers that the client has not read.
    output: Vec<u8>,
    /// `Watch`: the interval and the time of the next answer.
    watch: Option<(Duration, Instant)>,
}

impl Control {
    /// Creates the socket. In each of the namespaces `inside`, it creates an abstract socket with the same
    /// name, so that programs behind the link can connect. The control socket uses `first` and all later
    /// tokens of the reactor.
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
        Ok(Self { address, listeners, first, clients: BTreeMap::new(), next, paused_until: None })
    }

    /// The listeners with their tokens.
    fn listeners(&self) -> impl Iterator<Item = (Token, &UnixListener)> {
        (self.first.0..).map(Token).zip(&self.listeners)
    }

    /// Address to which clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Time at which [`handle_events`](Self::handle_events) must be called even if no descriptor is ready.
    /// `None`: never.
    pub fn next_deadline(&self) -> Option<Instant> {
        let watches = self.clients.values().filter_map(|client| client.watch.map(|(_, at)| at));
        watches.chain(self.paused_until).min()
    }

    /// Accepts clients, reads requests and writes answers on the descriptors that are `ready`, and serves
    /// clients that watch. A client that causes an error is disconnected. A returned error is an error of the
    /// reactor.
    pub fn handle_events(
        &mut self,
        now: Instant,
        ready: &[Token],
        reactor: &mut Reactor,
        handler: &mut impl RequestHandler,
    ) -> io::Result<()> {
        if self.paused_until.is_some_and(|until| until <= now) {
            self.paused_until = None;
            for (token, listener) in self.listeners() {
                reactor.register(listener, token, Interest::Read)?;
            }
        }
        if self.listeners().any(|(token, _)| ready.contains(&token))
            && let Err(error) = self.accept(reactor)
        {
            // The waiting client would wake the reactor again at once, so stop listening for a while.
            tracing::warn!("the control socket accepts no clients for the moment: {error}");
            for (token, listener) in self.listeners() {
                reactor.deregister(listener, token)?;
            }
            self.paused_until = Some(now + ACCEPT_PAUSE);
        }
        let mut disconnected = Vec::new();
        for (token, client) in &mut self.clients {
            let due = client.watch.is_some_and(|(_, at)| at <= now);
            if !due && !ready.contains(token) {
                continue;
            }
            let was_blocked = !client.output.is_empty();
            // An error of one client ends its connection, not the link.
            if client.handle_events(now, handler).is_ok_and(|flow| flow.is_continue()) {
                if was_blocked == client.output.is_empty() {
                    let interest = if was_blocked { Interest::Read } else { Interest::Both };
                    reactor.modify(&client.stream, *token, interest)?;
                }
            } else {
                reactor.deregister(&client.stream, *token)?;
                disconnected.push(*token);
            }
        }
        for token in disconnected {
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
            let mut client = Connection { stream, input: Vec::new(), output: Vec::new(), watch: None };
            if let Err(refusal) = self.check_client(&client.stream) {
                client.answer(&Err(refusal));
                // The answer is lost if the client cannot take it at once.
                let _ = client.flush();
                continue;
            }
            let token = Token(self.next);
            self.next += 1;
            reactor.register(&client.stream, token, Interest::Read)?;
            self.clients.insert(token, client);
        }
    }

    fn check_client(&self, stream: &UnixStream) -> Result<(), String> {
        let own = geteuid().as_raw();
        let uid = getsockopt(stream, sockopt::PeerCredentials).map(|peer| peer.uid());
        if !uid.is_ok_and(is_trusted) {
            return Err(format!(
                "permission denied: only root and the user who started this link (UID {own}) can control it"
            ));
        }
        if self.clients.len() >= MAX_CLIENTS {
            return Err(format!(
                "too many clients: this link already serves {MAX_CLIENTS}, which is the limit"
            ));
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

impl Connection {
    /// Reads requests and writes answers. `Break`: the client must be disconnected.
    fn handle_events(
        &mut self,
        now: Instant,
        handler: &mut impl RequestHandler,
    ) -> io::Result<ControlFlow<()>> {
        let mut buffer = [0; 4096];
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() && self.input.len() <= MAX_REQUEST_LEN {
            match self.stream.read(&mut buffer) {
                Ok(0) => flow = ControlFlow::Break(()),
                Ok(len) => self.input.extend_from_slice(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        while let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            self.handle(now, line.trim_ascii(), handler);
        }
        if self.input.len() > MAX_REQUEST_LEN {
            self.answer(&Err(format!("the request is too long: a line has at most {MAX_REQUEST_LEN} bytes")));
            flow = ControlFlow::Break(());
        }
        if let Some((every, at)) = self.watch.filter(|(_, at)| *at <= now) {
            self.answer(&handler.answer(&Request::Stats));
            // Missed intervals are skipped.
            self.watch = Some((every, (at + every).max(now)));
        }
        self.flush()?;
        Ok(if self.output.len() > MAX_UNREAD { ControlFlow::Break(()) } else { flow })
    }

    fn handle(&mut self, now: Instant, line: &[u8], handler: &mut impl RequestHandler) {
        if line.is_empty() {
            return;
        }
        match serde_json::from_slice::<Request>(line) {
            Err(error) => self.answer(&Err(format!("invalid request: {error}"))),
            Ok(Request::Watch { every }) if every < Duration::from_millis(1) => {
                self.answer(&Err("`every` must be at least 1ms".to_owned()));
            }
            Ok(Request::Watch { every }) => self.watch = Some((every, now)),
            Ok(request) => {
                let answer = handler.answer(&request);
                self.answer(&answer);
            }
        }
    }

    fn answer(&mut self, answer: &Answer) {
        let object = match answer {
            Ok(result) => json!({"schema_version": SCHEMA_VERSION, "ok": true, "result": result}),
            Err(error) => json!({"schema_version": SCHEMA_VERSION, "ok": false, "error": error}),
        };
        self.output.extend_from_slice(object.to_string().as_bytes());
        self.output.push(b'\n');
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(len) => drop(self.output.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The client's end of a control socket. It blocks until an answer arrives.
pub struct Client {
    address: Address,
    stream: BufReader<UnixStream>,
}

/// The link's answer: a result, or a message that explains the refusal.
pub type Answer = Result<Value, String>;

impl Client {
    /// Connects to a running link of the current user or of root.
    pub fn connect(address: &Address) -> Result<Self, ControlError> {
        let stream = address.connect()?;
        Ok(Self { address: address.clone(), stream: BufReader::new(stream) })
    }

    /// Sends a request and waits for the answer. After a `Watch`, iterate over the answers that follow.
    pub fn request(&mut self, request: &Request) -> Result<Answer, ControlError> {
        // A request consists of plain strings and values.
        let mut line = serde_json::to_vec(request).expect("a request becomes JSON");
        line.push(b'\n');
        match self.stream.get_mut().write_all(&line) {
            // The link may have sent a reason before closing the connection.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(|source| self.address.client_error(source))?,
        }
        self.next().unwrap_or_else(|| Err(self.address.client_error(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// The answers that follow the first one to a `Watch`. The iterator ends with the connection.
impl Iterator for Client {
    type Item = Result<Answer, ControlError>;
    fn next(&mut self) -> Option<Self::Item> {
        let mut line = String::new();
        match self.stream.read_line(&mut line) {
            Ok(0) => return None,
            Ok(_) => {}
            Err(source) => return Some(Err(self.address.client_error(source))),
        }
        #[derive(Deserialize)]
        struct Line {
            result: Option<Value>,
            error: Option<String>,
        }
        Some(match serde_json::from_str(&line) {
            Ok(Line { error: Some(error), .. }) => Ok(Err(error)),
            Ok(Line { result, error: None }) => Ok(Ok(result.unwrap_or_default())),
            Err(error) => Err(self.address.client_error(io::Error::other(error))),
        })
    }
}
