//! TCP Fast Open of a host (RFC 7413): the cookies of servers, the decision about SYNs at listeners, and
//! suspensions after black holes.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use airwire::fast_open::{Cookie, FastOpen as FastOpenOption, Format};
use airwire::segment::{Flags, Segment};
use airwire::time::{Duration, Instant};

use super::admission::AdmissionClass;
use super::{Host, ListenId, keyed_hash};
use crate::profile::FastOpenRules;
use crate::tcp::fast_open::{Answer, Plan, Report, SynText, Validity};
use crate::tcp::{Ended, FastOpenKeys, FastOpenOptions, SocketOptions, State};

/// Maximum number of servers in the cache. Beyond it, the least recently used one is removed.
const MAX_SERVERS: usize = 1024;

/// Time for which a connection that was reset before its handshake was complete counts against the limit of
/// its listener. Otherwise SYNs with forged addresses, whose owners answer with RSTs, could open any number
/// of connections (RFC 7413 §5.1; Linux, reqsk_fastopen_remove()).
const RESET_LIFETIME: Duration = Duration::from_secs(60);

/// Maximum number of times that a suspension is doubled.
const MAX_DOUBLINGS: u32 = 6;

/// A server whose cookie is cached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FastOpenServer {
    /// This host's address for which the server issued the cookie.
    pub own: IpAddr,
    /// The server's address.
    pub server: IpAddr,
    /// The server's MSS, which limits the data in a SYN.
    pub mss: u16,
    /// The cookie.
    pub cookie: Cookie,
    /// The format of the option in which the server sent it.
    pub format: Format,
}

/// Counters of TCP Fast Open.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FastOpenCounters {
    /// SYNs whose data the server has acknowledged with its SYN,ACK.
    pub data_acked: u64,
    /// SYNs whose data was retransmitted after the handshake.
    pub data_resent: u64,
    /// Black holes suspected.
    pub black_holes: u64,
    /// Requests for a cookie at listeners of this host.
    pub requests: u64,
    /// SYNs at listeners that opened a connection before the handshake was complete.
    pub accepted: u64,
    /// SYNs with an invalid cookie at listeners.
    pub invalid_cookies: u64,
    /// SYNs that a listener handled without Fast Open, because too many such connections were pending.
    pub over_limit: u64,
}

/// The cache entry of a server (RFC 7413 §4.1.3).
#[derive(Clone, Copy, Debug, Default)]
struct CachedServer {
    mss: u16,
    /// The option with its cookie, as the server sent it.
    option: Option<FastOpenOption>,
    refusals: Refusals,
    /// Value of [`FastOpen::uses`] at the last use.
    last_use: u64,
}

/// The requests for a cookie that a server did not answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum Refusals {
    #[default]
    None,
    /// The standard format: the other one is tried next.
    Standard,
    /// Both formats: the standard one is used again.
    Both,
}

/// The Fast Open state of a host.
#[derive(Debug)]
pub(super) struct FastOpen {
    keys: FastOpenKeys,
    /// The cache, by this host's address and the server's.
    servers: BTreeMap<(IpAddr, IpAddr), CachedServer>,
    /// Number of times that an entry was used.
    uses: u64,
    /// Listeners of the connections whose data was accepted and whose handshake is not complete.
    pending: BTreeMap<u32, ListenId>,
    /// The time of the last black hole, and the number of black holes since active opens last succeeded.
    black_hole: Option<(Instant, u32)>,
}

/// The connections of a listener that were opened early.
#[derive(Debug, Default)]
pub(super) struct EarlyConnections {
    pending: usize,
    /// Times at which connections that were reset stop counting.
    resets: VecDeque<Instant>,
}

impl FastOpen {
    pub(super) fn new(seed: u64) -> Self {
        let half = |which: u8| keyed_hash(seed, &("fast open", which)).to_le_bytes();
        let mut primary = [0; 16];
        primary[..8].copy_from_slice(&half(0));
        primary[8..].copy_from_slice(&half(1));
        Self {
            keys: FastOpenKeys { primary, backup: None },
            servers: BTreeMap::new(),
            uses: 0,
            pending: BTreeMap::new(),
            black_hole: None,
        }
    }

    /// Returns the entry of a server. If the cache is full, a new entry replaces another one.
    fn server(&mut self, ends: (IpAddr, IpAddr)) -> &mut CachedServer {
        if self.servers.len() >= MAX_SERVERS && !self.servers.contains_key(&ends) {
            let oldest = self.servers.iter().min_by_key(|(_, server)| server.last_use).map(|(ends, _)| *ends);
            if let Some(oldest) = oldest {
                self.servers.remove(&oldest);
            }
        }
        self.uses += 1;
        let server = self.servers.entry(ends).or_default();
        server.last_use = self.uses;
        server
    }

    /// Returns true if active opens do not use Fast Open because of black holes. `first` is the first
    /// suspension.
    fn is_suspended(&self, now: Instant, first: Duration) -> bool {
        self.black_hole.is_some_and(|(since, times)| {
            now < since + first.saturating_mul(1 << (times - 1).min(MAX_DOUBLINGS))
        })
    }
}

impl CachedServer {
    /// Updates the entry after a handshake. `unanswered` is the format of a request that was not answered.
    fn update(&mut self, mss: u16, option: Option<FastOpenOption>, unanswered: Option<Format>) {
        self.mss = mss;
        if let Some(option) = option.filter(|option| option.cookie.is_some()) {
            self.option = Some(option);
        } else if self.option.is_none() {
            let refusals = match unanswered {
                None => Refusals::None,
                Some(Format::Standard) => Refusals::Standard,
                Some(Format::Experimental) => Refusals::Both,
            };
            self.refusals = self.refusals.max(refusals);
        }
    }

    /// Returns the option that requests a cookie.
    fn request(&self) -> FastOpenOption {
        let format = match self.refusals {
            Refusals::Standard => Format::Experimental,
            Refusals::None | Refusals::Both => Format::Standard,
        };
        FastOpenOption { cookie: None, format }
    }
}

/// Returns the maximum number of pending connections of a listener.
fn pending_limit(rules: &FastOpenRules, options: &SocketOptions, backlog: usize) -> usize {
    let pending = options.fast_open.as_ref().map_or(0, |options| options.pending);
    match pending {
        _ if !rules.server => 0,
        0 if rules.all_listeners => backlog,
        pending => pending,
    }
}

fn is_without_cookie(options: &SocketOptions) -> bool {
    options.fast_open.as_ref().is_some_and(|options| options.without_cookie)
}

impl Host {
    /// Sets the keys of this host's cookies. By default they are derived from the seed.
    pub fn set_fast_open_keys(&mut self, keys: FastOpenKeys) {
        self.fast_open.keys = keys;
    }

    /// Returns the servers whose cookies are cached.
    pub fn fast_open_servers(&self) -> impl Iterator<Item = FastOpenServer> {
        self.fast_open.servers.iter().filter_map(|((own, server), cached)| {
            let FastOpenOption { cookie, format } = cached.option?;
            Some(FastOpenServer { own: *own, server: *server, mss: cached.mss, cookie: cookie?, format })
        })
    }

    /// Adds a server to the cache, for example one of an earlier host with the same address.
    pub fn add_fast_open_server(&mut self, server: FastOpenServer) {
        let FastOpenServer { own, server, mss, cookie, format } = server;
        let option = FastOpenOption { cookie: Some(cookie), format };
        self.fast_open.server((own, server)).update(mss, Some(option), None);
    }

    /// Decides how an active open begins. `None`: without Fast Open.
    pub(super) fn plan_fast_open(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
        options: &SocketOptions,
    ) -> Option<Plan> {
        let rules = self.profile.handshake.fast_open;
        let FastOpenOptions { connect, without_cookie, .. } = *options.fast_open.as_deref()?;
        if !connect || !rules.client || self.fast_open.is_suspended(now, rules.black_hole) {
            return None;
        }
        let resumes = self.fast_open.black_hole.is_some();
        let server = self.fast_open.server((local.ip(), remote.ip()));
        let cookie = server.option.filter(|_| server.mss > 0);
        let with = |option, mss| Plan { option, text: SynText::UpTo { mss }, resumes };
        Some(match cookie {
            // If the MSS is not cached, only our MTU limits the data.
            _ if without_cookie || rules.client_without_cookie => {
                with(None, if server.mss > 0 { server.mss } else { u16::MAX })
            }
            Some(option) => with(Some(option), server.mss),
            None => Plan { option: Some(server.request()), text: SynText::None, resumes },
        })
    }

    /// Decides about a SYN for which the listener has room (Linux, tcp_try_fastopen()).
    pub(super) fn decide_fast_open(&mut self, now: Instant, id: ListenId, syn: &Segment<'_>) -> Answer {
        let rules = self.profile.handshake.fast_open;
        let option = syn.options.fast_open;
        let is_request = option.is_some_and(|option| option.cookie.is_none());
        let Some(listener) = self.listeners.get_mut(&id) else { return Answer::Ordinary };
        let limit = pending_limit(&rules, &listener.options, listener.backlog);
        let uses_fast_open = option.is_some() || !syn.payload.is_empty();
        // A FIN is queued until the handshake is complete, together with the data of its segment.
        if limit == 0 || !uses_fast_open || syn.flags.contains(Flags::FIN) {
            return Answer::Ordinary;
        }
        self.counters.fast_open.requests += u64::from(is_request);
        if !listener.early.has_room(now, limit) {
            self.counters.fast_open.over_limit += 1;
            return Answer::Ordinary;
        }
        if rules.server_without_cookie || is_without_cookie(&listener.options) {
            return Answer::Accept(None);
        }
        let own = listener.options.fast_open.as_ref().and_then(|options| options.keys);
        let keys = own.unwrap_or(self.fast_open.keys);
        let (client, server) = (syn.src.ip(), syn.dst.ip());
        let Some(FastOpenOption { cookie, format }) = option else { return Answer::Ordinary };
        let valid = FastOpenOption { cookie: Some(keys.cookie(client, server)), format };
        match cookie.map(|cookie| keys.check(cookie, client, server)) {
            Some(Validity::Valid) => Answer::Accept(None),
            Some(Validity::Outdated) => Answer::Accept(Some(valid)),
            Some(Validity::Invalid) => {
                self.counters.fast_open.invalid_cookies += 1;
                Answer::Offer(valid)
            }
            None => Answer::Offer(valid),
        }
    }

    /// Passes a connection whose data was accepted to its listener. Returns the class of the new
    /// connection.
    pub(super) fn admit_early(&mut self, index: u32, id: ListenId, answer: Answer) -> AdmissionClass {
        let Answer::Accept(_) = answer else { return AdmissionClass::HalfOpen };
        self.counters.fast_open.accepted += 1;
        self.fast_open.pending.insert(index, id);
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.early.pending += 1;
            listener.ready.push_back(index);
        }
        // The cookie shows that the peer has the address that its SYN names.
        AdmissionClass::Established
    }

    /// Processes the report of an active open, and the end of the handshake of a passive one.
    #[inline]
    pub(super) fn update_fast_open(&mut self, now: Instant, index: u32) {
        let Some(connection) = self.slots.at_mut(index) else { return };
        if let Some(report) = connection.take_fast_open_report() {
            self.process_report(now, index, report);
        } else if connection.was_opened_early() && !connection.is_open_early() {
            self.end_early(now, index);
        }
    }

    #[cold]
    fn process_report(&mut self, now: Instant, index: u32, report: Report) {
        let Some(connection) = self.slots.at_mut(index) else { return };
        let ends = (connection.local().ip(), connection.remote().ip());
        match report {
            Report::Opened { mss, option, unanswered, text_acked } => {
                self.counters.fast_open.data_acked += u64::from(text_acked == Some(true));
                self.counters.fast_open.data_resent += u64::from(text_acked == Some(false));
                self.fast_open.server(ends).update(mss, option, unanswered);
            }
            Report::BlackHole => {
                self.counters.fast_open.black_holes += 1;
                let times = self.fast_open.black_hole.map_or(0, |(_, times)| times);
                self.fast_open.black_hole = Some((now, times.saturating_add(1)));
            }
            Report::NoBlackHole => self.fast_open.black_hole = None,
        }
    }

    /// Stops counting a connection as pending: its handshake is complete, or it has ended.
    fn end_early(&mut self, now: Instant, index: u32) {
        let Some(id) = self.fast_open.pending.remove(&index) else { return };
        let was_reset =
            self.slots.at_mut(index).is_some_and(|connection| connection.ended() == Some(Ended::Reset));
        // A connection that is not accepted yet counts against the backlog.
        let is_accepted = self.slots.listener_of(index).is_none();
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.early.pending -= 1;
            if was_reset && is_accepted {
                listener.early.resets.push_back(now + RESET_LIFETIME);
            }
        }
    }

    /// Returns true if a connection that has ended still waits for [`Host::accept`]: the data of its SYN was
    /// acknowledged, so the application must be able to read it.
    pub(super) fn waits_for_accept(&mut self, index: u32) -> bool {
        let is_early = self
            .slots
            .at_mut(index)
            .is_some_and(|connection| connection.was_opened_early() && connection.state() == State::Closed);
        let listener = self.slots.listener_of(index).filter(|_| is_early);
        let listener = listener.and_then(|id| self.listeners.get(&id));
        listener.is_some_and(|listener| listener.ready.contains(&index))
    }
}

impl EarlyConnections {
    /// Returns true if another connection may be opened early. At the limit, this removes an expired reset.
    fn has_room(&mut self, now: Instant, limit: usize) -> bool {
        if self.pending + self.resets.len() < limit {
            return true;
        }
        self.resets.pop_front_if(|until| *until <= now).is_some()
    }
}
