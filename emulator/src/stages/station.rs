//! The base station: P4's transit agent (`agent`) and P3's loss-rate report (`loss_rate`).
//!
//! It stands between the fixed network and a radio link: the stages on its radio side, up to the next station or
//! the end of the path. A path between two mobiles has two: the one on the fixed port's side has
//! `radio = "fixed"`. Packets pass at once, and none is ever dropped or kept. With `handover`, the station that stands
//! here is another one from time to time.
//!
//! Untouched, octet for octet: what is not TCP; truncated packets; all fragments but whole ones (of the first one
//! the agent takes note); what is behind an IPv6 header other than hop-by-hop, destination options and an atomic
//! fragment's; segments signed by TCP-MD5 or TCP-AO; resets; and packets of background sources.

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
use airwire::time::Instant;
use airwire::units::Size;
use header::{ACK, Parsed, RST, SYN, Segment};
use loss_rate::{Meter, Unfit};
use ranges::Reach;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::times::Times;
use crate::packet::{Direction, Origin, Packet, PerDirection};
use crate::settings::{Invalid, Position, Settings};
use crate::stage::{Event, Mark, Mishap, NotLive, Outbox, RadioFate, Stage};

/// The settings of a base station. By default it changes nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct StationConfig {
    /// Remember what went past, and mark ACKs with Ob and Db; announce the station on SYNs (a Choice, not the paper's).
    /// Cannot be changed while the link runs: connections have been told whether there are marks.
    pub transit_marks: bool,
    /// Add the measured loss rate of the radio link to what ACKs carry back.
    pub loss_report: bool,
    /// On which side of the station its radio link is.
    pub radio: Side,
    /// Connections that the transit agent remembers, and a quarter as many of which it has heard one side only. Of the
    /// rest it says what is taken for congestion, until it has learned them.
    pub max_flows: NonZeroU32,
    /// No connection has more octets in flight. Of one that it learns in mid-connection, the transit agent says so far
    /// above the first acknowledgment nothing that is taken for the radio; and numbers that are further from all that
    /// it knows it does not believe.
    pub max_flight: Size,
    /// The mobile moves to a station that has seen nothing of its connections. Absent: never. What stands between it and
    /// that station, and the time in which nothing gets through, are other stages: an `outage` at the same times is the
    /// usual one.
    ///
    /// Choice: Chandra et al. leave "handoff" for later (§V). Here the new station is told nothing by the old one, and the
    /// old one, should the mobile come back, has forgotten it, as a base station forgets whoever leaves its cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handover: Option<Times>,
    /// The loss rate is averaged over about so many packets.
    pub window: NonZeroU32,
    /// No packet is made longer than this by the loss-rate report.
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

    fn build(&self, _position: Position<'_>, _seed: u64) -> Result<Box<dyn Stage>, String> {
        Ok(Box::new(Station::new(self)))
    }
}

/// One of the two sides of a station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// Packets that go down go there.
    #[default]
    Mobile,
    /// Packets that go up go there.
    Fixed,
}

impl Side {
    /// The direction of packets that go to this side.
    pub const fn towards(self) -> Direction {
        match self {
            Self::Mobile => Direction::Down,
            Self::Fixed => Direction::Up,
        }
    }
}

/// The stage.
#[derive(Debug)]
pub struct Station {
    config: StationConfig,
    agent: Agent,
    radio: PerDirection<Meter>,
    handovers: Handovers,
    counters: Counters,
}

/// How often the mobile has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Handovers {
    total: u64,
    /// By the present settings, which may have been changed under way.
    scheduled: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Counters {
    segments: u64,
    not_tcp: u64,
    fragments: u64,
    signed: u64,
    /// ACKs that got the loss-rate option.
    inserted: u64,
    /// ACKs that had it from another station: the rate in it was increased.
    added: u64,
    /// ACKs that went without: their option space was full.
    options_full: u64,
    /// ACKs that went without: their options could not be understood.
    options_garbled: u64,
    /// ACKs that went without: the packet would have become longer than the MTU.
    over_mtu: u64,
}

impl Station {
    /// Remembers no connection, and has measured nothing.
    pub fn new(config: &StationConfig) -> Self {
        Self {
            config: config.clone(),
            agent: Agent::new(config.radio, config.max_flows, config.max_flight),
            radio: PerDirection::from_fn(|_| Meter::new()),
            handovers: Handovers::default(),
            counters: Counters::default(),
        }
    }

    /// The station that is here now may be another one than at the last packet.
    fn hand_over(&mut self, now: Instant, out: &mut Outbox) {
        let Some(handover) = &self.config.handover else { return };
        let scheduled = handover.until(now);
        if scheduled > self.handovers.scheduled {
            let times = scheduled - self.handovers.scheduled;
            self.handovers.total += times;
            self.handovers.scheduled = scheduled;
            self.agent.forget();
            out.befall(Mishap::Handover { times });
            self.radio = PerDirection::from_fn(|_| Meter::new());
        }
    }

    fn segment(&mut self, mut segment: Segment, packet: &mut Packet, out: &mut Outbox) {
        self.counters.segments += 1;
        let signed = loss_rate::signed(segment.options(&packet.bytes));
        if self.config.transit_marks {
            // What a signed segment says is remembered all the same.
            let writing = self.agent.pass(&segment, packet.direction).filter(|_| !signed);
            if let Some(writing) = writing {
                segment.set_flags(&mut packet.bytes, writing.flags);
                out.note(packet, Event::Marked { what: writing.mark });
            }
        }
        if signed {
            self.counters.signed += 1;
        } else if self.config.loss_report && segment.has(ACK) && !segment.has_any(SYN | RST) {
            self.report(&mut segment, packet, out);
        }
    }

    fn report(&mut self, segment: &mut Segment, packet: &mut Packet, out: &mut Outbox) {
        // The link that the data crossed, not the ACK.
        let own = self.radio[packet.direction.reversed()].rate();
        let old = segment.options(&packet.bytes);
        let before = old.len();
        match loss_rate::add(old, own) {
            Err(Unfit::Full) => self.counters.options_full += 1,
            Err(Unfit::Garbled) => self.counters.options_garbled += 1,
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
                out.note(packet, Event::Marked { what: Mark::LossRate { rate: sum.0 } });
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

    fn handle_deadline(&mut self, _now: Instant, _out: &mut Outbox) {}

    fn next_deadline(&self) -> Option<Instant> {
        None
    }

    fn held(&self) -> usize {
        0
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

    fn reconfigure(&mut self, now: Instant, settings: &dyn Any, out: &mut Outbox) -> Result<(), NotLive> {
        let refuse = |setting: &str, why: &str| Err(NotLive { setting: setting.into(), why: why.into() });
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

    fn radio_carried(&mut self, direction: Direction, fate: RadioFate) {
        self.radio[direction].count(fate == RadioFate::Damaged, self.config.window);
    }
}
