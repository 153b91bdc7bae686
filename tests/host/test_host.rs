//! One host, whose peer is the test itself. Sequence numbers are offsets: 0 is the SYN, 1 the first byte of
//! the stream.

use std::net::IpAddr;

use airtcp::host::{ConnId, Host, ListenId};
use airtcp::profile::Profile;
use airtcp::tcp::{Connection, SocketOptions, State};
use airtcp_testkit::pair::{LEFT, RIGHT};
use airwire::checksum;
use airwire::options::{Options, Timestamps};
use airwire::segment::{self, Ecn, Flags, Header};
use airwire::seq::Seq;
use airwire::time::{Duration, Instant};

use crate::common::host;

/// A packet that left the host.
#[derive(Clone, Debug)]
pub(crate) struct Out {
    pub(crate) flags: Flags,
    pub(crate) seq: u64,
    pub(crate) ack: u64,
    pub(crate) window: u16,
    pub(crate) options: Options,
    pub(crate) len: u64,
}

impl Out {
    /// The SACK blocks, as offsets in the peer's stream.
    pub(crate) fn blocks(&self) -> Vec<(u64, u64)> {
        let offset = |seq: Seq| seq.offset(IRS, 1 << 20).unwrap_or(u64::MAX);
        self.options.sack.as_slice().iter().map(|(left, right)| (offset(*left), offset(*right))).collect()
    }
}

pub(crate) struct TestHost {
    pub(crate) now: Instant,
    pub(crate) host: Host,
    pub(crate) id: Option<ConnId>,
    pub(crate) listener: Option<ListenId>,
    iss: Seq,
    port: u16,
    /// The options of the peer's next segments.
    pub(crate) options: Options,
    pub(crate) ecn: Ecn,
}

const IRS: Seq = Seq(0xffff_f000);

impl TestHost {
    pub(crate) fn new(recipe: &str, profile: Profile) -> Self {
        let host = host(recipe, profile);
        Self {
            now: Instant::from_secs(1),
            host,
            id: None,
            listener: None,
            iss: Seq(0),
            port: 80,
            options: Options::default(),
            ecn: Ecn::NotEct,
        }
    }

    /// A host that has connected to the peer with the default socket options.
    pub(crate) fn connected(recipe: &str, profile: Profile, syn_ack: Options, window: u16) -> Self {
        let options = SocketOptions::of(&profile);
        let mut test = Self::new(recipe, profile);
        test.connect(options, syn_ack, window);
        test
    }

    /// A host that has sent a SYN with the default socket options.
    pub(crate) fn syn_sent(recipe: &str, profile: Profile) -> Self {
        let options = SocketOptions::of(&profile);
        let mut test = Self::new(recipe, profile);
        test.send_syn(options);
        test
    }

    /// Starts an active open and takes the SYN from the host.
    pub(crate) fn send_syn(&mut self, options: SocketOptions) {
        self.open_active(options);
        assert_eq!(self.out().len(), 1, "a SYN");
    }

    /// Starts an active open. The SYN stays queued.
    pub(crate) fn open_active(&mut self, options: SocketOptions) {
        let (local, remote) = ((LEFT, 40_000).into(), (RIGHT, 80).into());
        self.id = Some(self.host.connect(self.now, Some(local), remote, options).unwrap());
    }

    /// Connects the host to the peer. The window of the SYN,ACK is never scaled (RFC 7323 §2.2).
    pub(crate) fn connect(&mut self, options: SocketOptions, syn_ack: Options, window: u16) {
        self.send_syn(options);
        self.options = syn_ack;
        let replies = self.segment(Flags::SYN.with(Flags::ACK), 0, 1, window, 0);
        assert_eq!(replies.len(), 1, "{replies:?}");
        self.options = Options { timestamps: syn_ack.timestamps, ..Options::default() };
    }

    /// Delivers a SYN from the peer to a listener. Returns the answer.
    pub(crate) fn open(&mut self, options: SocketOptions, syn: Options) -> Out {
        self.port = 4000;
        self.listener = Some(self.host.listen((LEFT, 40_000).into(), 4, options).unwrap());
        self.options = syn;
        let replies = self.segment(Flags::SYN, 0, 0, 65_535, 0);
        self.options = Options { timestamps: syn.timestamps, ..Options::default() };
        replies[0].clone()
    }

    pub(crate) fn accept(&mut self) {
        self.id = self.listener.and_then(|listener| self.host.accept(listener));
        assert!(self.id.is_some());
    }

    /// Delivers a segment from the peer and leaves the host's answers queued.
    pub(crate) fn deliver(&mut self, flags: Flags, seq: u64, ack: u64, window: u16, len: usize) {
        let header = Header {
            src: (RIGHT, self.port).into(),
            dst: (LEFT, 40_000).into(),
            seq: IRS.at(seq),
            ack: self.iss.at(ack),
            flags,
            window,
            ecn: self.ecn,
            tos: 0,
            ttl: 64,
            dont_fragment: true,
            ident: 0,
        };
        let mut options = vec![];
        self.options.write(airwire::options::Layout::Linux, &mut options);
        let mut packet = vec![];
        segment::emit(&mut packet, &header, &options, (&vec![b'x'; len], &[]));
        self.host.handle_packet(self.now, &packet);
    }

    /// Delivers a segment from the peer. Returns the host's answers.
    pub(crate) fn segment(&mut self, flags: Flags, seq: u64, ack: u64, window: u16, len: usize) -> Vec<Out> {
        self.deliver(flags, seq, ack, window, len);
        self.out()
    }

    /// Delivers an ICMP error about the segment at `offset` of the host's stream. `mtu` is for type 3, code
    /// 4. Returns the host's answers.
    pub(crate) fn icmp(&mut self, kind: u8, code: u8, mtu: u32, offset: u64) -> Vec<Out> {
        let quoted = Header {
            src: (LEFT, 40_000).into(),
            dst: (RIGHT, self.port).into(),
            seq: self.iss.at(offset),
            ack: IRS,
            flags: Flags::ACK,
            window: 0,
            ecn: Ecn::NotEct,
            tos: 0,
            ttl: 1,
            dont_fragment: true,
            ident: 0,
        };
        let mut quote = Vec::new();
        segment::emit(&mut quote, &quoted, &[], (&[], &[]));
        self.icmp_message([&[kind, code, 0, 0][..], &mtu.to_be_bytes(), &quote].concat());
        self.out()
    }

    /// Delivers an ICMP message from a router. The checksum is filled in here.
    pub(crate) fn icmp_message(&mut self, mut message: Vec<u8>) {
        let sum = checksum::plain(&message);
        message[2..4].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0x45, 0, 0, 20 + message.len() as u8, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 254];
        let IpAddr::V4(to) = LEFT else { unreachable!("the host of these tests has an IPv4 address") };
        packet.extend(to.octets());
        let sum = checksum::plain(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(message);
        self.host.handle_packet(self.now, &packet);
    }

    /// Returns the host's next packet, of any protocol.
    pub(crate) fn raw(&mut self) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        self.host.poll_packet(self.now, &mut packet).then_some(packet)
    }

    pub(crate) fn out(&mut self) -> Vec<Out> {
        let (mut all, mut packet) = (vec![], vec![]);
        while self.host.poll_packet(self.now, &mut packet) {
            let segment = segment::parse(&packet).unwrap();
            if segment.flags.contains(Flags::SYN) {
                self.iss = segment.seq;
            }
            all.push(Out {
                flags: segment.flags,
                seq: segment.seq.offset(self.iss, 1 << 20).unwrap_or(u64::MAX),
                ack: segment.ack.offset(IRS, 1 << 20).unwrap_or(u64::MAX),
                window: segment.window,
                options: segment.options,
                len: segment.payload.len() as u64,
            });
        }
        all
    }

    /// Advances to the next deadline. Returns the packets that leave then.
    pub(crate) fn next(&mut self) -> Vec<Out> {
        self.now = self.now.max(self.host.next_deadline().expect("a timer is running"));
        self.host.handle_deadline(self.now);
        self.out()
    }

    /// Advances by `time`. Returns the packets that leave in this time.
    pub(crate) fn wait(&mut self, time: Duration) -> Vec<Out> {
        let until = self.now + time;
        let mut all = vec![];
        while self.host.next_deadline().is_some_and(|at| at <= until) {
            all.extend(self.next());
        }
        self.now = until;
        all
    }

    /// Writes `len` bytes. Returns the packets that leave.
    pub(crate) fn write(&mut self, len: usize) -> Vec<Out> {
        self.enqueue(len);
        self.out()
    }

    /// Writes `len` bytes without polling the host.
    pub(crate) fn enqueue(&mut self, len: usize) {
        let id = self.id.unwrap();
        assert_eq!(self.host.write(self.now, id, &vec![b'y'; len]), Ok(len));
    }

    /// Shuts down writing. Returns the packets that leave.
    pub(crate) fn shutdown_write(&mut self) -> Vec<Out> {
        self.host.shutdown_write(self.id.unwrap()).unwrap();
        self.out()
    }

    /// Closes the connection. Returns the packets that leave.
    pub(crate) fn close(&mut self) -> Vec<Out> {
        self.host.close(self.now, self.id.unwrap());
        self.out()
    }

    /// The sequence number on the wire of an offset in the host's stream.
    pub(crate) fn wire(&self, offset: u64) -> Seq {
        self.iss.at(offset)
    }

    /// The host's initial sequence number, for a test that must know it in advance.
    pub(crate) fn iss(&self) -> Seq {
        self.iss
    }

    pub(crate) fn set_iss(&mut self, iss: Seq) {
        self.iss = iss;
    }

    pub(crate) fn connection(&self) -> &Connection {
        self.host.connection(self.id.unwrap()).unwrap()
    }

    pub(crate) fn state(&self) -> State {
        self.connection().state()
    }
}

pub(crate) fn mss(mss: u16) -> Options {
    Options { mss: Some(mss), ..Options::default() }
}

/// An MSS of 1460 and SACK.
pub(crate) fn sack() -> Options {
    Options { sack_permitted: true, ..mss(1460) }
}

pub(crate) fn with_timestamps(options: Options, val: u32) -> Options {
    Options { timestamps: Some(Timestamps { val, ecr: 0 }), ..options }
}
