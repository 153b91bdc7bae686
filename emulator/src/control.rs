//! The control socket of a running link. Requests and answers are JSON objects, one per line.
//!
//! ```text
//! > {"command":"set","key":"wire.down.rate","value":"64kbit"}
//! < {"schema_version":1,"ok":true,"result":"64kbit"}
//! > {"command":"get","key":"wire.down.rate"}
//! < {"schema_version":1,"ok":true,"result":"64kbit"}
//! > {"command":"set","key":"wire.down.rate","value":"64"}
//! < {"schema_version":1,"ok":false,"error":"…"}
//! > {"command":"stats"}
//! > {"command":"watch","every":"500ms"}     one answer like that of `stats` each time, until the client leaves
//! > {"command":"stop"}                      the run ends, as by SIGTERM
//! ```
//!
//! The socket is an abstract one, `@airlink/NAME`. It belongs to the network namespace (`airlink run` has one in those that
//! it makes, too), its name serves as a lock, and
//! it goes away with the process, however that ends. If a path is given instead, the file is removed at the end, and a
//! file that a killed process left is replaced.
//!
//! An abstract name has no permissions: anybody may listen at one, and connect to one. So both ends ask the kernel who the
//! other is (SO_PEERCRED). Only the user who started the link, and root, are answered; others are told so. And only one's
//! own links and root's are believed: at a name that a stranger has taken, nothing is asked and nothing is read. (Inside a
//! user namespace root looks like any other foreign user, and is neither answered nor believed.)

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

/// `schema_version` of every answer.
pub const SCHEMA_VERSION: u32 = 1;
const PREFIX: &str = "airlink/";
/// Octets of the longest request. A client that sends a longer line is disconnected.
const LONGEST_LINE: usize = 64 << 10;
/// Octets of answers that a client has not read. With more it is disconnected, since the link cannot wait for it.
const UNREAD: usize = 1 << 20;
/// Clients at a time.
const CLIENTS: usize = 64;

/// What a client can ask. As JSON the field `command` names the variant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Request {
    /// The value of a setting.
    Get {
        /// As in a scenario, `STAGE.KEY`. `None`: the whole scenario.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// Changes a setting. The answer is its new value.
    Set {
        /// As in a scenario, `STAGE.KEY`.
        key: String,
        /// As in a scenario.
        value: Value,
    },
    /// The counters.
    Stats,
    /// The counters, again and again until the client leaves.
    Watch {
        /// At least 1 ms. Default: 1 s.
        #[serde(default = "second")]
        every: Duration,
    },
    /// Ends the link, as SIGTERM does.
    Stop,
}

fn second() -> Duration {
    Duration::from_secs(1)
}

/// Where a control socket is. As text: whatever contains a `/` is a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// The abstract socket `@airlink/NAME` of this network namespace.
    Named(String),
    /// A socket in the file system.
    File(PathBuf),
}

/// Why a control socket could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The text is not an [`Address`].
    #[error("`{0}` is neither a name (letters, digits, `-`, `_`, `.`) nor a path (with a `/`)")]
    BadName(String),
    /// Another process listens there.
    #[error("a link named {0} is running already: choose another name, or end it with `airlink down {0}`")]
    Taken(Address),
    /// Somebody listens there who is neither root nor ourselves.
    #[error(
        "{address} belongs to another user (UID {uid}), and only your own links and root's are trusted: as root, \
         use `sudo -u '#{uid}' airlink …`; for your own link, choose another name, or a path in your own directory"
    )]
    Strangers {
        /// Where that is.
        address: Address,
        /// Who listens.
        uid: u32,
    },
    /// Nobody listens there.
    #[error("no running link is named {0}: `airlink status` lists the running links")]
    NotThere(Address),
    /// The path is of something that is not a socket.
    #[error("cannot create the control socket {0}: the file exists and is not a socket; choose another path")]
    InTheWay(Address),
    /// The socket could not be made for another reason.
    #[error(
        "cannot create the control socket {address}: {source}; check that its directory exists and is writable"
    )]
    Listen {
        /// Where it was to be.
        address: Address,
        /// What the system reported.
        source: io::Error,
    },
    /// The conversation broke off.
    #[error("the connection to the control socket {address} failed: {source}")]
    Io {
        /// With whom it was.
        address: Address,
        /// What the system reported.
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

    /// An error of the link, which wants to listen.
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

    /// An error of a client.
    fn call_error(&self, source: io::Error) -> ControlError {
        let address = self.clone();
        match source.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => ControlError::NotThere(address),
            _ => ControlError::Io { address, source },
        }
    }

    /// To a link of our own, or of root's.
    fn connect(&self) -> Result<UnixStream, ControlError> {
        let open = || -> io::Result<(UnixStream, u32)> {
            let address = match self {
                Self::Named(name) => UnixAddr::new_abstract(format!("{PREFIX}{name}").as_bytes())?,
                Self::File(path) => UnixAddr::new(path)?,
            };
            // Who listens and does not accept would keep us waiting before it is known who that is.
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
                // Only a socket at which nobody listens may be replaced.
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

/// Root and we ourselves: whom a link answers, and whom a client believes.
fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

/// The names of the links that run in this network namespace, without those of other users.
pub fn running() -> io::Result<Vec<String>> {
    let sockets = fs::read_to_string("/proc/thread-self/net/unix")?;
    let names: BTreeSet<String> = sockets
        .lines()
        .filter_map(|line| line.rsplit(' ').next()?.strip_prefix('@')?.strip_prefix(PREFIX))
        // Anybody may have put anything there.
        .filter(|name| {
            let address: Result<Address, _> = name.parse();
            address.is_ok_and(|address| matches!(address, Address::Named(_)) && address.connect().is_ok())
        })
        .map(str::to_owned)
        .collect();
    Ok(names.into_iter().collect())
}

/// Answers the requests that come by a [`Control`].
pub trait Subject {
    /// The result, or a message that says what is wrong with the request. `Watch` never gets here: it becomes a `Stats`
    /// each time.
    fn answer(&mut self, request: &Request) -> Result<Value, String>;
}

/// The control socket at the running link's end, which never waits.
pub struct Control {
    address: Address,
    /// The n-th has the n-th token from `first` on.
    listeners: Vec<UnixListener>,
    first: Token,
    clients: BTreeMap<Token, Client>,
    /// The next client's token.
    next: u32,
    /// New clients are not accepted until then, because accepting one has failed.
    closed_until: Option<Instant>,
}

/// How long no client is accepted after accepting one has failed, for example for lack of descriptors.
const CLOSED: Duration = Duration::from_millis(100);

struct Client {
    stream: UnixStream,
    /// What came of an incomplete line.
    unread: Vec<u8>,
    /// Answers that the client has not taken.
    unsent: Vec<u8>,
    /// `Watch`: how often it is told, and when next.
    watch: Option<(Duration, Instant)>,
}

/// Whether a client stays.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stays {
    Yes,
    No,
}

impl Control {
    /// Makes the socket. An abstract one can be found by its name in the namespaces `inside`, too: a program that runs
    /// behind the link talks to it from there. It uses all tokens of the reactor from `first` on.
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

    /// Each with its token.
    fn listeners(&self) -> impl Iterator<Item = (Token, &UnixListener)> {
        (self.first.0..).map(Token).zip(&self.listeners)
    }

    /// Where clients find it.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// When [`attend`](Self::attend) is wanted even if no descriptor is ready. `None`: not at all.
    pub fn next_deadline(&self) -> Option<Instant> {
        let told = self.clients.values().filter_map(|client| client.watch.map(|(_, at)| at));
        told.chain(self.closed_until).min()
    }

    /// Accepts clients, reads requests and writes answers, as far as descriptors are `ready`, and answers those who
    /// watch. A client that makes trouble is disconnected; an error is the reactor's.
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
            // The link goes on. The client would wake us again at once, so nobody is listened to for a while.
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
            // An error of one client ends the conversation with it, not the link.
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
                // If the client cannot take it at once, it does not get it.
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
            // Somebody may have removed it already.
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
            // If several were missed, they are not made up for.
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

/// The client's end of a control socket, which waits for answers.
pub struct Caller {
    address: Address,
    stream: BufReader<UnixStream>,
}

/// The link's answer: a result, or a message that says why there is none.
pub type Answer = Result<Value, String>;

impl Caller {
    /// Connects to a running link of our own, or of root's.
    pub fn connect(address: &Address) -> Result<Self, ControlError> {
        let stream = address.connect()?;
        Ok(Self { address: address.clone(), stream: BufReader::new(stream) })
    }

    /// Sends a request, and waits for the answer. After a `Watch` iterate for those that follow.
    pub fn ask(&mut self, request: &Request) -> Result<Answer, ControlError> {
        // Plain data: strings and values.
        let mut line = serde_json::to_vec(request).expect("a request becomes JSON");
        line.push(b'\n');
        match self.stream.get_mut().write_all(&line) {
            // The link has closed the connection. It may have said why.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            result => result.map_err(|source| self.address.call_error(source))?,
        }
        self.next().unwrap_or_else(|| Err(self.address.call_error(io::ErrorKind::UnexpectedEof.into())))
    }
}

/// The answers after the first one to a `Watch`; ends with the connection.
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

    /// Has one value.
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

    /// A test that waits for longer fails.
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

    /// Runs a control socket until `f` returns. `f` plays the callers.
    fn served<T: Send>(address: &Address, f: impl FnOnce(&Address) -> T + Send) -> T {
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let mut control = Control::listen(address.clone(), &[], FIRST, &mut reactor).unwrap();
        let mut knob = Knob(json!("as it was"));
        let limit = reactor.clock().now() + Duration::from_secs(PATIENCE.as_secs());
        // The closure owns the control socket: if it panics, the callers are disconnected and their thread ends.
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
                assert!(reactor.clock().now() < limit, "the callers have not finished within {PATIENCE:?}");
                if events.contains(&Wakeup::Readable(Token(0))) {
                    return caller.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                }
                let ready: Vec<Token> = events
                    .iter()
                    .filter_map(|event| match event {
                        Wakeup::Readable(token) | Wakeup::Writable(token) => Some(*token),
                        Wakeup::Deadline | Wakeup::Stop => None,
                    })
                    .collect();
                let now = reactor.clock().now();
                control.attend(now, &ready, &mut reactor, &mut knob).unwrap();
            }
        })
    }

    #[test]
    fn what_one_caller_sets_another_gets() {
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
    fn nonsense_is_answered_with_what_was_wanted_and_the_next_request_is_heard() {
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
    fn a_line_without_end_is_cut_off() {
        served(&address("long"), |address| {
            let mut caller = Caller::connect(address).unwrap();
            // The link hangs up in the middle of it.
            let _ = caller.stream.get_mut().write_all(&vec![b'x'; 10 * LONGEST_LINE]);
            let answers: Vec<_> = caller.take(2).collect();
            assert!(answers.len() < 2 || answers[1].is_err());
            assert!(Caller::connect(address).unwrap().ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn who_watches_is_told_again_and_again() {
        served(&address("watch"), |address| {
            let mut caller = Caller::connect(address).unwrap();
            let every = Duration::from_millis(5);
            assert!(caller.ask(&Request::Watch { every }).unwrap().is_ok());
            assert_eq!(caller.take(3).filter(|answer| matches!(answer, Ok(Ok(_)))).count(), 3);
        });
    }

    #[test]
    fn a_caller_that_does_not_read_is_left_behind() {
        served(&address("deaf"), |address| {
            let mut deaf = UnixStream::connect_addr(&address.socket().unwrap()).unwrap();
            let set = Request::Set { key: String::new(), value: json!("x".repeat(6_000)) };
            assert!(Caller::connect(address).unwrap().ask(&set).unwrap().is_ok());
            deaf.set_write_timeout(Some(PATIENCE)).unwrap();
            // Each answer has 6 kB, and no answer is read: the link disconnects long before all requests are written.
            let asked = (0..100_000).try_for_each(|_| deaf.write_all(b"{\"command\":\"stats\"}\n"));
            let kind = asked.expect_err("the link has not disconnected a caller that does not read").kind();
            assert!(
                [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset].contains(&kind),
                "the link has not disconnected a caller that does not read: {kind:?}"
            );
            assert!(Caller::connect(address).unwrap().ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn a_name_is_taken_once_listed_while_it_is_and_free_again_afterwards() {
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
    fn a_socket_file_is_private_replaced_when_its_process_is_dead_and_removed_at_the_end() {
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
    fn a_socket_in_a_directory_that_is_not_there_cannot_be_made_and_is_not_called_a_link_that_is_not_there() {
        let address: Address = "/no/such/dir/sock".parse().unwrap();
        let mut reactor = Reactor::new(Clock::start()).unwrap();
        let error = Control::listen(address.clone(), &[], FIRST, &mut reactor).err().unwrap().to_string();
        assert!(error.contains("/no/such/dir/sock") && error.contains("directory"), "{error}");
        assert!(!error.contains("airlink status"), "{error}");
        let error = Caller::connect(&address).err().unwrap().to_string();
        assert!(error.contains("airlink status"), "{error}");
    }

    #[test]
    fn another_user_is_told_who_is_answered() {
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
    fn at_a_name_that_another_user_has_taken_nothing_is_asked_and_nothing_is_believed() {
        let address = address("squatted");
        let mut squatter = std::process::Command::new("setpriv");
        squatter.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        // It would answer whatever it is asked, with whatever it likes.
        let answer = format!("ABSTRACT-LISTEN:{PREFIX}{address},fork");
        squatter.args(["socat", &answer, "SYSTEM:'cat; echo {\\\"result\\\":1}'"]);
        let mut squatter = squatter.spawn().unwrap();
        // A socket has its name before it listens; the fourth column says whether it does (__SO_ACCEPTCON).
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
    fn one_caller_too_many_is_told_so() {
        served(&address("many"), |address| {
            let mut callers: Vec<_> = (0..=CLIENTS).map(|_| Caller::connect(address).unwrap()).collect();
            let refused = callers.last_mut().unwrap().ask(&Request::Stats).unwrap().unwrap_err();
            assert!(refused.contains("already serves 64"), "{refused}");
            assert!(callers[0].ask(&Request::Stats).unwrap().is_ok());
        });
    }

    #[test]
    fn names_are_plain_words() {
        for name in ["", "a b", "a\0b", "ä"] {
            assert!(name.parse::<Address>().is_err(), "{name}");
        }
        assert_eq!("./x".parse::<Address>().unwrap(), Address::File("./x".into()));
    }
}
