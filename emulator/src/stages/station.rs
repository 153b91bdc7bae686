//! The base station: the transit agent of P4 (`agent`) and the loss-rate report of P3 (`loss_rate`).
//!
//! A station is the router between the fixed network and its radio link. The radio link consists of the
//! stages on the station's radio side, up to the next station or the end of the path. A path between two
//! mobiles has two stations: the one closer to the fixed port has `radio = "fixed"`. Packets pass without
//! delay and are never dropped or held. With `handover`, another station takes over at the given times.
//!
//! The station does not change:
//!
//! - packets other than TCP, and truncated packets
//! - fragments, except atomic ones (the agent takes note of a first fragment)
//! - packets with IPv6 extension headers other than hop-by-hop options, destination options and an atomic
//!   fragment's header
//! - segments signed with TCP-MD5 or TCP-AO, and resets
//! - packets of background traffic

mod agent;
mod flow;
mod flow_table;
mod header;
mod loss_rate;
mod ranges;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::num::NonZeroU32;

use agent::Agent;
use airwire::rewrite::TcpInPacket;
use airwire::segment::Flags;
use airwire::time::Instant;
use airwire::units::Size;
use header::Parsed;
use loss_rate::{AddError, Meter};
use ranges::Reach;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::times::Times;
use crate::packet::{Direction, Origin, Packet, PerDirection};
use crate::settings::{Invalid, Position, Settings};
use crate::stage::{Event, IncidentKind, Mark, Outbox, RadioOutcome, ReconfigureError, Stage};

/// The settings of a base station. By default it changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StationConfig {
    /// Whether the station remembers passing data and marks ACKs with Ob and Db. It also announces itself on
    /// SYNs, which is a Choice and not in the paper. Cannot be changed at run time, because open connections
    /// already know whether ACKs are marked.
    pub transit_marks: bool,
    /// Whether the station adds the measured loss rate of its radio link to the rate that ACKs report.
    pub loss_report: bool,
    /// The side of the station on which its radio link is.
    pub radio: Side,
    /// Maximum number of connections that the transit agent remembers. It also remembers a quarter as many
    /// connections of which only one side has sent. Losses of other connections are reported as congestion
    /// until the agent has learned the connection.
    pub max_flows: NonZeroU32,
    /// Maximum number of bytes that a connection has in flight. If the transit agent learns a connection
    /// after its start, it does not attribute losses within this distance above the first acknowledgment to
    /// the radio link. The agent ignores sequence numbers that are further than this from all known ones.
    pub max_flight: Size,
    /// Times at which the mobile moves to a station that does not know its connections. By default it never
    /// moves. The path to that station and the interruption are separate stages, usually an `outage` at the
    /// same times.
    ///
    /// Choice: Chandra et al. leave "handoff" to future work (§V). Here the new station receives no state
    /// from the old one. If the mobile returns, the old station has forgotten its connections, as base
    /// stations forget mobiles that leave their cell.
    pub handover: Option<Times>,
    /// Approximate number of packets over which the loss rate is averaged.
    pub window: NonZeroU32,
    /// MTU in bytes. The loss-rate report does not make packets longer than this.
    pub mtu: u16,
}

impl Default for StationConfig {
    fn default() -> Self {
        Self {
            transit_marks: false,
            loss_report: false,
            radio: Side::Mobile,
            max_flows: const { NonZeroU32::new(16_384).expect("not 0") },
            max_flight: Size::bytes(1_000_000),
            handover: None,
            window: const { NonZeroU32::new(1_000).expect("not 0") },
            mtu: 1500,
        }
    }
}

impl Settings for StationConfig {
    fn validate(&self) -> Result<(), Invalid> {
        if self.max_flight < Size::bytes(1) || self.max_flight > Reach::LARGEST {
            return Err(Invalid::new(
                "max_flight",
                "must be from 1 byte to 1 GiB, the largest window (RFC 7323): write for example \"1MB\"",
            ));
        }
        self.handover.as_ref().map_or(Ok(()), |handover| {
            handover.validate("handover").map_err(|invalid| invalid.within("handover"))
        })
    }

    fn does_nothing(&self) -> Option<&'static str> {
        (!self.transit_marks && !self.loss_report)
            .then_some("neither `transit_marks` nor `loss_report` is true")
    }

    fn build(&self, _position: Position<'_>, _seed: u64) -> Result<Box<dyn Stage>, String> {
        Ok(Box::new(Station::new(self)))
    }
}

/// One of the two sides of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The mobile side, to which packets in the direction down go.
    #[default]
    Mobile,
    /// The fixed side, to which packets in the direction up go.
    Fixed,
}

impl Side {
    /// Returns the direction of packets that go to this side.
    pub const fn towards(self) -> Direction {
        match self {
            Self::Mobile => Direction::Down,
            Self::Fixed => Direction::Up,
        }
    }
}

/// The base station.
#[derive(Debug)]
pub struct Station {
    config: StationConfig,
    agent: Agent,
    radio: PerDirection<Meter>,
    handovers: Handovers,
    counters: Counters,
}

/// The number of handovers so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Handovers {
    total: u64,
    /// Handovers according to the current settings, which may have changed at run time.
    scheduled: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counters {
    segments: u64,
    not_tcp: u64,
    fragments: u64,
    signed: u64,
    /// ACKs to which the station added the loss-rate option.
    inserted: u64,
    /// ACKs with the option of another station, in which the rate was increased.
    added: u64,
    /// ACKs without a report because their option space was full.
    options_full: u64,
    /// ACKs without a report because their options were malformed.
    options_malformed: u64,
    /// ACKs without a report because the packet would have exceeded the MTU.
    over_mtu: u64,
}

impl Station {
    /// Creates a station that remembers no connections and has not measured anything.
    pub fn new(config: &StationConfig) -> Self {
        Self {
            config: config.clone(),
            agent: Agent::new(config.radio, config.max_flows, config.max_flight),
            radio: PerDirection::from_fn(|_| Meter::new()),
            handovers: Handovers::default(),
            counters: Counters::default(),
        }
    }

    /// Resets the state if a handover has happened since the last packet.
    fn hand_over(&mut self, now: Instant, out: &mut Outbox) {
        let Some(handover) = &self.config.handover else { return };
        let scheduled = handover.until(now);
        if scheduled > self.handovers.scheduled {
            let times = scheduled - self.handovers.scheduled;
            self.handovers.total += times;
            self.handovers.scheduled = scheduled;
            self.agent.forget();
            out.report_incident(IncidentKind::Handover { times });
            self.radio = PerDirection::from_fn(|_| Meter::new());
        }
    }

    fn segment(&mut self, mut segment: TcpInPacket, packet: &mut Packet, out: &mut Outbox) {
        self.counters.segments += 1;
        let flags = segment.header().flags;
        let signed = loss_rate::signed(segment.options(&packet.bytes));
        if self.config.transit_marks {
            // The agent records signed segments too, but does not change them.
            let writing = self.agent.pass(&segment, packet.direction).filter(|_| !signed);
            if let Some(writing) = writing {
                segment.set_flags(&mut packet.bytes, writing.flags);
                out.note(packet, Event::Marked { mark: writing.mark });
            }
        }
        if signed {
            self.counters.signed += 1;
        } else if self.config.loss_report
            && flags.contains(Flags::ACK)
            && !flags.intersects(Flags::SYN.with(Flags::RST))
        {
            self.report(&mut segment, packet, out);
        }
    }

    fn report(&mut self, segment: &mut TcpInPacket, packet: &mut Packet, out: &mut Outbox) {
        // Report the link that the data crossed, not the direction of the ACK.
        let own = self.radio[packet.direction.reversed()].rate();
        let old = segment.options(&packet.bytes);
        let before = old.len();
        match loss_rate::add(old, own) {
            Err(AddError::Full) => self.counters.options_full += 1,
            Err(AddError::Malformed) => self.counters.options_malformed += 1,
            Ok((options, sum)) => {
                let new = options.as_slice();
                if new.len() > before && segment.length_with(new.len()) > usize::from(self.config.mtu) {
                    self.counters.over_mtu += 1;
                    return;
                }
                match loss_rate::find(old) {
                    Some(_) => self.counters.added += 1,
                    None => self.counters.inserted += 1,
                }
                segment.set_options(&mut packet.bytes, new);
                out.note(packet, Event::Marked { mark: Mark::LossRate { rate: sum.0 } });
            }
        }
    }
}

impl Stage for Station {
    fn handle_packet(&mut self, now: Instant, mut packet: Packet, out: &mut Outbox) {
        self.hand_over(now, out);
        if packet.origin == Origin::Host {
            match header::parse(&packet.bytes) {
                Parsed::Segment(segment) => self.segment(segment, &mut packet, out),
                Parsed::FirstFragment(head) => {
                    self.counters.fragments += 1;
                    self.agent.pass_fragment(&head, packet.direction);
                }
                Parsed::Other => self.counters.not_tcp += 1,
            }
        }
        out.forward(packet);
    }

    fn stats(&self) -> Value {
        let radio = |direction| {
            let meter = &self.radio[direction];
            json!({ "packets": meter.packets, "damaged": meter.damaged, "rate": meter.rate() })
        };
        let flows = self.agent.flows();
        json!({
            "counters": self.counters,
            "transit": self.agent.counters(),
            "handovers": self.handovers.total,
            "flows": {
                "remembered": flows.live(),
                "opening": flows.opening(),
                "evicted": flows.evicted(),
                "bytes": flows.memory(),
            },
            "radio": { "down": radio(Direction::Down), "up": radio(Direction::Up) },
        })
    }

    fn reconfigure(
        &mut self,
        now: Instant,
        settings: &dyn Any,
        out: &mut Outbox,
    ) -> Result<(), ReconfigureError> {
        let refuse = |setting: &str, why: &str| Err(ReconfigureError::new(setting, why));
        let Some(config) = settings.downcast_ref::<StationConfig>() else {
            return refuse("kind", "packets inside the stage cannot move to another kind of stage");
        };
        if config.transit_marks != self.config.transit_marks {
            return refuse(
                "transit_marks",
                "open connections have already been notified whether ACKs are marked",
            );
        }
        if config.radio != self.config.radio {
            return refuse("radio", "the radio side is fixed when the link starts");
        }
        if config.max_flows != self.config.max_flows {
            return refuse("max_flows", "the memory for connections is allocated when the link starts");
        }
        if config.max_flight != self.config.max_flight {
            return refuse("max_flight", "the state of known connections depends on it");
        }
        self.hand_over(now, out);
        self.config = config.clone();
        self.handovers.scheduled = self.config.handover.as_ref().map_or(0, |handover| handover.until(now));
        Ok(())
    }

    fn radio_side(&self) -> Option<Direction> {
        Some(self.config.radio.towards())
    }

    fn report_radio_outcome(&mut self, direction: Direction, outcome: RadioOutcome) {
        self.radio[direction].count(outcome == RadioOutcome::Damaged, self.config.window);
    }
}
