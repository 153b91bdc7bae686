//! Opening of connections, active and passive.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use airwire::segment::{self, Segment};
use airwire::seq::Seq;
use airwire::time::Instant;

use super::fast_open::EarlyConnections;
use super::{ConnId, Host};
use crate::profile::{HalfOpen, TimeWaitRules};
use crate::tcp::connection::Opening;
use crate::tcp::{Connection, SocketOptions, State};

/// Identifies a listening port of one host; see [`Host::listen`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ListenId(pub(super) u32);

/// Number of counters for ephemeral ports, TABLE_LENGTH in RFC 6056 §3.3.4.
pub(super) const PORT_COUNTERS: usize = 1024;

#[derive(Debug)]
pub(super) struct Listener {
    addr: SocketAddr,
    pub(super) backlog: usize,
    pub(super) options: SocketOptions,
    /// Number of connections in SYN-RECEIVED, or waiting to be accepted.
    pub(super) opening: usize,
    pub(super) ready: VecDeque<u32>,
    /// Time until which ACKs may carry a SYN cookie. `None`: none was sent yet.
    pub(super) cookies_until: Option<Instant>,
    pub(super) early: EarlyConnections,
}

impl Listener {
    pub(super) fn room(&self) -> usize {
        self.backlog.max(1)
    }
}

/// The reason why [`Host::connect`] did not open a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host has no address of the remote address's family.
    #[error("this host has no {0} source address")]
    NoAddress(&'static str),
    /// The remote port is 0, or the address is broadcast, multicast or unspecified.
    #[error("cannot connect to {0}; use a unicast address and a port other than 0")]
    BadRemote(SocketAddr),
    /// Such a connection exists already. With port 0: no port is free.
    #[error("{0} already has a connection to the same address and port")]
    InUse(SocketAddr),
    /// The local address is not one of the host's, or not of the remote address's family.
    #[error("{0} is not an address of this host")]
    NotOurs(SocketAddr),
}

/// The reason why [`Host::listen`] failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ListenError {
    /// A listener with exactly this address and port exists.
    #[error("{0} already has a listener")]
    InUse(SocketAddr),
    /// The address is neither unspecified nor one of the host's.
    #[error("{0} is not an address of this host")]
    NotOurs(SocketAddr),
}

impl Host {
    /// Active open. Without `local`, the host uses its first address of the right family; with port 0 it
    /// chooses a port. Returns immediately, with a connection in SYN-SENT. With TCP Fast Open
    /// ([`FastOpenOptions::connect`](crate::tcp::FastOpenOptions::connect)), the SYN may wait for the first
    /// write.
    pub fn connect(
        &mut self,
        now: Instant,
        local: Option<SocketAddr>,
        remote: SocketAddr,
        options: SocketOptions,
    ) -> Result<ConnId, ConnectError> {
        if remote.port() == 0 || !segment::is_unicast(remote.ip()) {
            return Err(ConnectError::BadRemote(remote));
        }
        let family = if remote.is_ipv4() { "IPv4" } else { "IPv6" };
        let ip = match local {
            Some(local) if !local.ip().is_unspecified() => {
                if !self.addrs.contains(&local.ip()) || local.is_ipv4() != remote.is_ipv4() {
                    return Err(ConnectError::NotOurs(local));
                }
                local.ip()
            }
            _ => {
                let same_family = self.addrs.iter().find(|a| a.is_ipv4() == remote.is_ipv4());
                *same_family.ok_or(ConnectError::NoAddress(family))?
            }
        };
        let local = match local.map_or(0, |l| l.port()) {
            0 => {
                self.ephemeral_port(ip, remote).ok_or_else(|| ConnectError::InUse(SocketAddr::new(ip, 0)))?
            }
            port => SocketAddr::new(ip, port),
        };
        if self.index_of((&local, &remote)).is_some() {
            return Err(ConnectError::InUse(local));
        }
        let fast_open = self.plan_fast_open(now, (local, remote), &options);
        let opening = Opening { fast_open, ..self.opening(now, local, remote, options) };
        let index = self.insert(Connection::connect(now, opening), None);
        self.mark_ready(index);
        Ok(self.slots.id(index))
    }

    /// Passive open. An unspecified address listens on all of this host's addresses of its family. At most
    /// `backlog` connections (and at least one) may be opening or waiting for [`Host::accept`].
    ///
    /// When the backlog is full, a connection that has been opening for 3 s is dropped in favour of a new
    /// one. SYNs without room are answered with cookies (RFC 4987 §3.6): no state is kept until the client's
    /// ACK arrives. SYNs are dropped only while `backlog` connections wait for [`Host::accept`].
    ///
    /// With TCP Fast Open ([`FastOpenOptions::pending`](crate::tcp::FastOpenOptions::pending)), a connection
    /// whose SYN has a valid cookie can be accepted before its handshake is complete.
    pub fn listen(
        &mut self,
        addr: SocketAddr,
        backlog: usize,
        options: SocketOptions,
    ) -> Result<ListenId, ListenError> {
        if !addr.ip().is_unspecified() && !self.addrs.contains(&addr.ip()) {
            return Err(ListenError::NotOurs(addr));
        }
        if self.listeners.values().any(|listener| listener.addr == addr) {
            return Err(ListenError::InUse(addr));
        }
        let listener = Listener {
            addr,
            backlog,
            options,
            opening: 0,
            ready: VecDeque::new(),
            cookies_until: None,
            early: EarlyConnections::default(),
        };
        let id = ListenId(self.next_listener);
        self.next_listener += 1;
        self.listeners.insert(id, listener);
        Ok(id)
    }

    /// Closes a listener. Connections that were not accepted are reset. The profile decides what happens to
    /// half-open ones.
    pub fn unlisten(&mut self, id: ListenId) {
        if self.listeners.remove(&id).is_none() {
            return;
        }
        for index in self.slots.of_listener(id) {
            if let Some(connection) = self.slots.at_mut(index) {
                let half_open = connection.state() == State::SynReceived;
                match self.profile.handshake.half_open {
                    HalfOpen::Forget if half_open => connection.retire(),
                    _ => connection.abort(),
                }
            }
            self.slots.release(index);
            self.mark_ready(index);
        }
    }

    /// Sets the options of a listener and of the connections whose handshake completes from now on.
    /// Parameters that a SYN,ACK has already announced, such as the window scale, do not change.
    pub fn set_listen_options(&mut self, id: ListenId, options: SocketOptions) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.options = options;
        }
    }

    /// Sets the maximum number of connections that are opening or wait for [`Host::accept`]. Excess
    /// connections stay.
    pub fn set_backlog(&mut self, id: ListenId, backlog: usize) {
        if let Some(listener) = self.listeners.get_mut(&id) {
            listener.backlog = backlog;
        }
    }

    /// Returns the number of connections that wait for [`Host::accept`].
    pub fn waiting(&self, id: ListenId) -> usize {
        self.listeners.get(&id).map_or(0, |listener| listener.ready.len())
    }

    /// Returns the next connection that has completed its handshake, or that TCP Fast Open has opened before;
    /// `None` if there is none, or the listener was closed.
    pub fn accept(&mut self, id: ListenId) -> Option<ConnId> {
        let listener = self.listeners.get_mut(&id)?;
        let index = listener.ready.pop_front()?;
        listener.opening -= 1;
        self.slots.accepted(index);
        Some(self.slots.id(index))
    }

    /// Ends a connection in TIME-WAIT if `segment` is a SYN that opens a new connection between the same
    /// addresses. Returns the first sequence number that the old connection has not used. Without a listener,
    /// TIME-WAIT answers the SYN, except in FreeBSD.
    pub(super) fn replace_time_wait(
        &mut self,
        now: Instant,
        index: u32,
        segment: &Segment<'_>,
    ) -> Option<Seq> {
        let connection =
            self.slots.at_mut(index).filter(|connection| connection.may_be_replaced_by(now, segment))?;
        let unused = connection.snd_nxt();
        let ignores_listener = self.profile.validation.time_wait == TimeWaitRules::FreeBsd;
        if !ignores_listener && self.listener_for(segment.dst).is_none() {
            return None;
        }
        self.slots.at_mut(index)?.retire();
        self.collect_events(now, index);
        self.mark_ready(index);
        Some(unused)
    }

    /// Returns the listener at `addr`, or the one at its port on all addresses.
    pub(super) fn listener_for(&self, addr: SocketAddr) -> Option<ListenId> {
        let at = |wanted: SocketAddr| {
            self.listeners.iter().find(|(_, listener)| listener.addr == wanted).map(|(id, _)| *id)
        };
        let any: IpAddr = match addr {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        at(addr).or_else(|| at(SocketAddr::new(any, addr.port())))
    }

    /// Returns the parameters of a new connection.
    pub(super) fn opening(
        &self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
        options: SocketOptions,
    ) -> Opening {
        // RFC 6528: a clock that ticks every 4 µs plus a keyed hash of the addresses.
        let clock = (now.as_nanos() / 4_000) as u32;
        let mut recovery = self.recipe.build(&self.profile);
        if self.traced {
            recovery.start_trace();
        }
        if self.events.is_some() {
            recovery.start_events();
        }
        Opening {
            local,
            remote,
            profile: Arc::clone(&self.profile),
            recovery,
            options,
            iss: Seq(clock.wrapping_add(self.hash(&("isn", local, remote)) as u32)),
            // RFC 7323 §5.4, §7.1: the timestamps of a reused pair of ports must not go backwards. No
            // connection's offset can be derived from another's.
            ts_offset: self.hash(&("timestamp", local, remote)) as u32,
            mtu: self.mtu,
            budget: Arc::clone(&self.budget),
            fast_open: None,
            logs_events: self.events.is_some(),
        }
    }

    /// Chooses a port of the dynamic range, in an order that peers cannot guess (RFC 6056 §3.3.4). One
    /// counter for all destinations would show each peer how many connections the host opens to other peers.
    fn ephemeral_port(&mut self, ip: IpAddr, remote: SocketAddr) -> Option<SocketAddr> {
        const FIRST: u64 = 49_152;
        const COUNT: u64 = 65_536 - FIRST;
        let start = self.hash(&("port", ip, remote)) % COUNT;
        let counter = self.hash(&("port counter", ip, remote)) as usize % PORT_COUNTERS;
        for _ in 0..COUNT {
            let used = self.ports_used[counter];
            self.ports_used[counter] = used.wrapping_add(1);
            let port = FIRST + (start + u64::from(used)) % COUNT;
            let local = SocketAddr::new(ip, port as u16);
            if self.index_of((&local, &remote)).is_none() {
                return Some(local);
            }
        }
        None
    }
}
