//! The hosts of the two sides, and their addresses.

use std::net::{Ipv4Addr, SocketAddr};

use airlink::machine::Port;
use airlink::path::FIXED;
use airtcp::host::{Host, HostConfig, ListenError, ListenId};
use airtcp::profile::{Profile, SackOffer};
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airwire::rng::Stream;
use airwire::time::Instant;
use serde::{Deserialize, Serialize};

use super::flow::{FlowState, Role};

/// First port of the senders' flows at each address. Address and port identify the flow of a
/// packet.
pub(super) const FIRST_PORT: u16 = 10_000;
/// Maximum number of flows per address of a host.
pub(super) const PORTS_PER_ADDRESS: usize = 50_000;
/// First port of the receivers. A host has one listener for each size of receive buffer.
const FIRST_LISTEN_PORT: u16 = 80;

/// The configuration of the hosts on one side.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// Profile of flows that do not name one, before a recipe's options are applied.
    pub profile: Profile,
    /// Recipe of flows that do not name one.
    pub recipe: Recipe,
}

impl HostSpec {
    /// Creates a sender with this recipe and the default profile.
    pub fn sender(recipe: Recipe) -> Self {
        Self { profile: Profile::default(), recipe }
    }

    /// Creates a receiver that accepts SACK from any sender that offers it, like all current
    /// kernels.
    pub fn receiver() -> Self {
        let profile = Profile::default().with(|it| it.handshake.sack = SackOffer::Always);
        Self { profile, recipe: Recipe::default() }
    }

    /// Creates a receiver that behaves like Linux, including quick ACKs.
    pub fn kernel() -> Self {
        Self { profile: Profile::linux(), recipe: Recipe::default() }
    }
}

/// A host. A host has one recipe and one profile, so a side has one host for each combination that
/// its flows use.
pub(super) struct SimHost {
    pub(super) port: Port,
    /// Canonical name of the recipe.
    recipe: String,
    /// Profile before the recipe's options are applied.
    profile: Profile,
    /// The first of the host's addresses.
    pub(super) addr: Ipv4Addr,
    pub(super) host: Host,
    /// The host's next timer, as of the last time the host was run.
    pub(super) deadline: Option<Instant>,
    /// One listener for each size of receive buffer.
    listeners: Vec<(Option<usize>, SocketAddr, ListenId)>,
}

/// Creates the hosts that the flows need.
pub(super) struct SideHosts {
    pub(super) seed: u64,
    pub(super) mtu: usize,
    /// Number of addresses per host.
    pub(super) addresses: usize,
    pub(super) fixed: HostSpec,
    pub(super) mobile: HostSpec,
    pub(super) list: Vec<SimHost>,
}

impl SideHosts {
    /// Returns the index of the host of a side with this recipe and profile, or with the side's
    /// defaults. Creates it if necessary.
    pub(super) fn index(&mut self, port: Port, recipe: Option<&Recipe>, profile: Option<&Profile>) -> usize {
        let spec = if port == FIXED { &self.fixed } else { &self.mobile };
        let recipe = recipe.unwrap_or(&spec.recipe);
        let profile = profile.unwrap_or(&spec.profile);
        let name = recipe.canonical();
        let same = |known: &SimHost| known.port == port && known.recipe == name && known.profile == *profile;
        if let Some(known) = self.list.iter().position(same) {
            return known;
        }
        let (side, network) = if port == FIXED { ("fixed", 0x0a00_0001) } else { ("mobile", 0x0a80_0001) };
        let number = self.list.iter().filter(|known| known.port == port).count() as u32;
        let addr = Ipv4Addr::from(network + number);
        let host = Host::new(HostConfig {
            addrs: (0..self.addresses).map(|number| address(addr, number).into()).collect(),
            mtu: self.mtu,
            profile: profile.clone(),
            recipe: recipe.clone(),
            seed: Stream::new(self.seed, &format!("{side}/{number}")).bits(),
        });
        let (recipe, profile) = (name, profile.clone());
        self.list.push(SimHost { port, recipe, profile, addr, host, deadline: None, listeners: Vec::new() });
        self.list.len() - 1
    }
}

/// Returns an address of a host. A host has one address in each /16 network, starting with the
/// network of its first address.
pub(super) fn address(first: Ipv4Addr, number: usize) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(first) + ((number as u32) << 16))
}

impl SimHost {
    /// Returns the listener for this size of receive buffer. Creates it if necessary.
    pub(super) fn listener(
        &mut self,
        receive_buffer: Option<usize>,
        backlog: usize,
    ) -> Result<(SocketAddr, ListenId), ListenError> {
        let mut options = SocketOptions::of(self.host.profile());
        options.recv_buffer = receive_buffer;
        let known = self.listeners.iter().find(|(buffer, ..)| *buffer == receive_buffer);
        if let Some((_, addr, id)) = known {
            return Ok((*addr, *id));
        }
        let addr = (self.addr, FIRST_LISTEN_PORT + self.listeners.len() as u16).into();
        let id = self.host.listen(addr, backlog, options)?;
        self.listeners.push((receive_buffer, addr, id));
        Ok((addr, id))
    }
}

/// The flow of a packet, and the end that receives it.
pub(super) struct Destination {
    pub(super) flow: usize,
    pub(super) to: Role,
}

impl Destination {
    pub(super) fn of(packet: &[u8], flows: &[FlowState]) -> Option<Self> {
        let header = 4 * usize::from(packet.first()? & 0x0f);
        let ports = packet.get(header..header + 4)?;
        let flow_of = |end: usize| {
            let port = u16::from_be_bytes([ports[2 * end], ports[2 * end + 1]]).checked_sub(FIRST_PORT)?;
            // The second octet of an address has one bit for the side, and seven bits for the index among the
            // host's addresses.
            let number = packet[13 + 4 * end] & 0x7f;
            Some(usize::from(number) * PORTS_PER_ADDRESS + usize::from(port))
        };
        let (flow, to) = match (flow_of(0), flow_of(1)) {
            (Some(flow), None) => (flow, Role::Receiver),
            (None, Some(flow)) => (flow, Role::Sender),
            _ => return None,
        };
        (flow < flows.len()).then_some(Self { flow, to })
    }
}
