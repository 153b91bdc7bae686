//! The model: a host with the profile `linux` receives the same segments as the kernel at the same times, and
//! its application reads at once.

use std::net::SocketAddr;

use airtcp::host::{ConnId, Host, HostConfig, ListenId};
use airtcp::profile::{AckRules, Profile, SackOffer};
use airtcp::recovery::Recipe;
use airtcp::tcp::SocketOptions;
use airwire::segment::Flags;
use airwire::time::{Duration, Instant};

use crate::recording::{Ack, Recording, parse, translate};

/// Start of a recording on the host's clock: a multiple of its tick.
const BEGIN: Instant = Instant::from_secs(100);

/// An ACK of the model.
#[derive(Clone, Debug)]
pub(crate) struct ModelAck {
    pub ack: Ack,
    /// Whether a timer triggered the ACK, rather than a segment or a read.
    pub by_timer: bool,
}

struct Player {
    host: Host,
    listener: ListenId,
    connection: Option<ConnId>,
    receiver: SocketAddr,
    begin: Instant,
    irs: u32,
    /// The model's initial sequence number and first timestamp.
    first: Option<(u32, u32)>,
    /// The read buffer of the application.
    buffer: Vec<u8>,
    sent: Vec<ModelAck>,
}

/// Returns the profile and the socket options of a receiver in `list.txt`.
fn receiver(name: &str) -> Result<(Profile, SocketOptions), String> {
    let mut profile = Profile::linux();
    let mut buffer = None;
    match name {
        "linux" => {}
        "linux-no-sack" => profile.handshake.sack = SackOffer::Never,
        "linux-no-timestamps" => profile.handshake.timestamps = false,
        "linux-bare" => {
            (profile.handshake.sack, profile.handshake.timestamps, profile.handshake.window_scale) =
                (SackOffer::Never, false, None);
        }
        "linux-no-compression" => {
            if let AckRules::Linux(acks) = &mut profile.acks.policy.rules {
                acks.compression = None;
            }
        }
        "linux-8k" => buffer = Some(8192),
        "linux-1m" => buffer = Some(1 << 20),
        other => return Err(format!("list.txt: unknown receiver `{other}`")),
    }
    let mut options = SocketOptions::of(&profile);
    options.recv_buffer = buffer;
    Ok((profile, options))
}

/// Replays a recording and returns the model's ACKs. `clock` is the phase of the kernel's tick at the start
/// of the recording.
pub(crate) fn play(recording: &Recording, name: &str, clock: Duration) -> Result<Vec<ModelAck>, String> {
    let (profile, options) = receiver(name)?;
    let recipe: Recipe = "sack+rack+cubic+prr+frto".parse().map_err(|error| format!("{error}"))?;
    let addrs = vec![recording.receiver.ip()];
    let mut host = Host::new(HostConfig { addrs, mtu: 1500, profile, recipe, seed: 1 });
    let listener = host.listen(recording.receiver, 5, options).map_err(|error| error.to_string())?;
    let syn = recording.packets.first().map(|packet| packet.seq);
    let mut player = Player {
        host,
        listener,
        connection: None,
        receiver: recording.receiver,
        begin: BEGIN + clock,
        irs: syn.ok_or("the recording does not begin with a SYN")?,
        first: None,
        buffer: vec![0; 1 << 18],
        sent: Vec::new(),
    };
    // The kernel's initial sequence number and first timestamp, to translate the sender's ACKs and echoes.
    let mut theirs = None;
    for packet in &recording.packets {
        if packet.src == player.receiver {
            if packet.flags.contains(Flags::SYN) {
                let stamp = packet.timestamps.map_or(0, |stamps| stamps.val);
                theirs = theirs.or(Some((packet.seq, stamp)));
            }
            continue;
        }
        let (ack, echo) = match (player.first, theirs) {
            (Some(mine), Some(theirs)) => (mine.0.wrapping_sub(theirs.0), mine.1.wrapping_sub(theirs.1)),
            _ => (0, 0),
        };
        let packet_of_ours =
            translate(&packet.bytes, ack, echo).ok_or("a recorded packet cannot be translated")?;
        player.arrive(packet.at, &packet_of_ours);
    }
    let last = recording.packets.last().map_or(Duration::ZERO, |packet| packet.at);
    player.run_until(last);
    Ok(player.sent)
}

impl Player {
    fn arrive(&mut self, at: Duration, packet: &[u8]) {
        self.run_until(at);
        let now = self.begin + at;
        self.host.handle_packet(now, packet);
        self.drain(now, false);
        self.read(now);
        self.drain(now, false);
    }

    fn run_until(&mut self, at: Duration) {
        let until = self.begin + at;
        while let Some(due) = self.host.next_deadline().filter(|due| *due < until) {
            self.host.handle_deadline(due);
            self.drain(due, true);
        }
    }

    /// Reads all available data as the application does.
    fn read(&mut self, now: Instant) {
        if self.connection.is_none() {
            self.connection = self.host.accept(self.listener);
        }
        let Some(id) = self.connection else { return };
        loop {
            match self.host.read(id, &mut self.buffer) {
                // The sender has closed the connection.
                Ok(0) => break self.host.close(now, id),
                // Send the window updates that this read caused before the next read.
                Ok(_) => self.drain(now, false),
                Err(_) => break,
            }
        }
    }

    fn drain(&mut self, now: Instant, by_timer: bool) {
        let mut packet = Vec::new();
        while self.host.poll_packet(now, &mut packet) {
            if self.first.is_none() {
                self.first = parse(&packet, |segment| {
                    (segment.seq.0, segment.options.timestamps.map_or(0, |ts| ts.val))
                });
            }
            if let Some(ack) = Ack::of(now - self.begin, &packet, self.receiver, self.irs) {
                self.sent.push(ModelAck { ack, by_timer });
            }
        }
    }
}
