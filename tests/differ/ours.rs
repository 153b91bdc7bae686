//! airtcp's side: a host with the profile `linux`, in virtual time, with every event at the time at which the
//! kernel had it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use airtcp::host::{ConnId, Host, HostConfig, IoError, ListenId};
use airtcp::profile::{AckRules, Profile};
use airtcp::recovery::Recipe;
use airtcp::tcp::{Linger, SocketOptions, State};
use airwire::time::{Duration, Instant};

use crate::plan::{Call, Opening, Plan};
use crate::play::{LOCAL, Outcome, Play, Record, SEND_BUFFER, Stack};

/// The algorithms of this kernel's own sender.
const RECIPE: &str = "linux";

struct HostSide {
    host: Host,
    /// The start of the exchange on the host's clock.
    begin: Instant,
    now: Instant,
    listener: Option<ListenId>,
    connection: Option<ConnId>,
    closed: bool,
    /// A call has reported the error that ended the connection.
    error_is_reported: bool,
    /// The peer's FIN has arrived.
    peer_has_closed: bool,
    options: SocketOptions,
    /// Segments sent and deadlines handled since the last event.
    actions: usize,
}

/// Maximum number of segments and deadlines between two events. The longest plan needs fewer than 200.
const MAX_ACTIONS: usize = 5000;

/// The host sends or wakes endlessly at one time, or far too often.
#[derive(Debug)]
pub(crate) struct Livelock {
    step: usize,
    state: String,
}

impl fmt::Display for Livelock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step, state } = self;
        write!(f, "airtcp's host took {MAX_ACTIONS} actions after event {step} and has more to do: {state}")
    }
}

/// Plays a plan from `begin` on, with event number `index + 1` at `times[index]`, until `end`.
pub(crate) fn play(
    plan: &Arc<Plan>,
    begin: Instant,
    (times, end): (&[Duration], Duration),
    local: SocketAddr,
    peer: SocketAddr,
) -> Result<Record, Livelock> {
    let mut play = Play::new(Arc::clone(plan), peer, local);
    let mut ours = HostSide::open(plan, begin, local, peer);
    ours.drain(&mut play, true)?;
    for at in times {
        ours.run_until(&mut play, *at)?;
        play.step(*at, &mut ours);
        ours.actions = 0;
        ours.drain(&mut play, true)?;
    }
    ours.run_until(&mut play, end)?;
    play.record.end = end;
    Ok(play.record)
}

impl HostSide {
    fn open(plan: &Plan, begin: Instant, local: SocketAddr, peer: SocketAddr) -> Self {
        // The catalogue has all of these names.
        let recipe: Recipe = RECIPE.parse().expect("the recipe is valid");
        let addrs = vec![IpAddr::V4(LOCAL)];
        let mut profile = Profile::linux();
        if let AckRules::Linux(acks) = &mut profile.acks.policy.rules {
            // `kernel.rs` disables SACK compression in the kernel.
            acks.compression = None;
        }
        let mut host = Host::new(HostConfig { addrs, mtu: 1500, profile, recipe, seed: 1 });
        let mut options = SocketOptions::of(host.profile());
        options.send_buffer = SEND_BUFFER;
        let (mut listener, mut connection) = (None, None);
        // The host is new, so no port is in use.
        match plan.opening {
            Opening::Passive => listener = Some(host.listen(local, 5, options.clone()).expect("port in use")),
            Opening::Active => {
                connection =
                    Some(host.connect(begin, Some(local), peer, options.clone()).expect("port in use"));
            }
        }
        Self {
            host,
            begin,
            now: begin,
            listener,
            connection,
            closed: false,
            error_is_reported: false,
            peer_has_closed: false,
            options,
            actions: 0,
        }
    }

    /// Fires the timers that are due before `until`.
    fn run_until(&mut self, play: &mut Play, until: Duration) -> Result<(), Livelock> {
        let until = self.begin + until;
        while let Some(due) = self.host.next_deadline().filter(|due| *due < until) {
            self.now = self.now.max(due);
            self.host.handle_deadline(self.now);
            self.act(play)?;
            self.drain(play, false)?;
        }
        self.now = until;
        Ok(())
    }

    fn drain(&mut self, play: &mut Play, prompt: bool) -> Result<(), Livelock> {
        let mut packet = Vec::new();
        while self.host.poll_packet(self.now, &mut packet) {
            play.observe(self.now - self.begin, prompt, &packet);
            self.act(play)?;
        }
        self.accept();
        Ok(())
    }

    /// Counts an action of the host.
    fn act(&mut self, play: &Play) -> Result<(), Livelock> {
        self.actions += 1;
        if self.actions < MAX_ACTIONS {
            return Ok(());
        }
        let connection = self.connection.and_then(|id| self.host.connection(id));
        let state = format!(
            "{} at {}, next deadline {:?}, {connection:?}",
            self.state().unwrap_or("?"),
            self.now - self.begin,
            self.host.next_deadline()
        );
        Err(Livelock { step: play.record.steps.len() - 1, state })
    }

    fn accept(&mut self) {
        if let (None, Some(listener)) = (self.connection, self.listener) {
            self.connection = self.host.accept(listener);
        }
    }

    /// Reads like a socket of Linux, which reports an error once, and the end of the stream after that. If the
    /// peer's FIN has arrived, it reports no error (SOCK_DONE).
    fn read(&mut self, id: ConnId, out: &mut [u8]) -> Result<usize, IoError> {
        let is_at_end = self.error_is_reported || self.peer_has_closed;
        match self.host.read(id, out) {
            Err(IoError::Ended(_)) if is_at_end => Ok(0),
            outcome => outcome,
        }
    }

    /// Shuts down like Linux: on a connecting socket, shutdown() does not make TCP send a FIN, because
    /// inet_shutdown() disconnects the socket. In RFC 9293 §3.9.1 this is ABORT.
    fn shutdown_write(&mut self, id: ConnId) -> Result<(), IoError> {
        if self.host.connection(id).is_some_and(|connection| connection.state() == State::SynSent) {
            self.host.abort(id);
            return Ok(());
        }
        self.host.shutdown_write(id)
    }

    fn close(&mut self, id: ConnId) {
        self.host.close(self.now, id);
        self.closed = true;
    }

    fn set_option(&mut self, id: ConnId, change: impl FnOnce(&mut SocketOptions)) {
        change(&mut self.options);
        self.host.set_options(self.now, id, self.options.clone());
    }

    fn open_connection(&self) -> Option<ConnId> {
        self.connection.filter(|_| !self.closed)
    }
}

impl Stack for HostSide {
    fn deliver(&mut self, packet: &[u8]) {
        self.host.handle_packet(self.now, packet);
        self.accept();
        self.peer_has_closed |= matches!(
            self.state(),
            Some("state:close-wait" | "state:closing" | "state:last-ack" | "state:time-wait")
        );
    }

    fn call(&mut self, call: Call, read: &mut Vec<u8>) -> Outcome {
        let Some(id) = self.open_connection() else { return Outcome::Failed };
        let is_opening = |state| matches!(state, State::SynSent | State::SynReceived);
        let opens = self.host.connection(id).is_some_and(|connection| is_opening(connection.state()));
        let outcome = match call {
            // A socket of Linux takes no data before the connection is open (sk_stream_wait_connect()).
            Call::Write(_) if opens => Err(IoError::WouldBlock),
            Call::Write(len) => self.host.write(self.now, id, &vec![b'x'; len as usize]),
            Call::Read(len) => {
                read.resize(len as usize, 0);
                let outcome = self.read(id, read);
                read.truncate(*outcome.as_ref().unwrap_or(&0));
                outcome
            }
            Call::ShutdownWrite => self.shutdown_write(id).map(|()| 0),
            Call::Close => {
                self.close(id);
                Ok(0)
            }
            Call::Abort => {
                self.set_option(id, |options| options.linger = Linger::Abort);
                self.close(id);
                Ok(0)
            }
            Call::NoDelay => {
                self.set_option(id, |options| options.nodelay = true);
                Ok(0)
            }
        };
        self.error_is_reported |= matches!(outcome, Err(IoError::Ended(_)));
        match outcome {
            Ok(count) => Outcome::Count(count),
            Err(IoError::WouldBlock) => Outcome::WouldBlock,
            Err(_) => Outcome::Failed,
        }
    }

    fn state(&self) -> Option<&'static str> {
        let Some(id) = self.connection else {
            return Some(if self.host.connections() == 0 { "state:listen" } else { "state:opening" });
        };
        let Some(connection) = self.host.connection(id) else { return Some("state:gone") };
        Some(match connection.state() {
            State::Closed => "state:closed",
            State::SynSent => "state:syn-sent",
            State::SynReceived => "state:syn-received",
            State::Established => "state:established",
            State::FinWait1 => "state:fin-wait-1",
            State::FinWait2 => "state:fin-wait-2",
            State::CloseWait => "state:close-wait",
            State::Closing => "state:closing",
            State::LastAck => "state:last-ack",
            State::TimeWait => "state:time-wait",
        })
    }
}
