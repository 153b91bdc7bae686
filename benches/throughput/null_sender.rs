//! The null sender: packets without a TCP implementation. It is the upper bound for any userspace
//! sender on this path.
//!
//! The sender completes a handshake, then keeps the receiver's window full with prebuilt segments. The
//! segments carry timestamps, as in an ordinary Linux flow. The only fields that it reads from
//! incoming packets are ACK number and window. With offload, each write carries as many segments as
//! fit into an IP packet.

use airlink::offload::Segmenter;
use airlink::reactor::Clock;
use airwire::options::{Options, Timestamps};
use airwire::time::{Duration, Instant};
use anyhow::{Context, bail, ensure};

use crate::addresses::{KERNEL, MSS};
use crate::meter::{Count, Meter, Sample, Timing};
use crate::packet::{ACK, RST, SYN, Segment, Segments, received, timestamps};
use crate::test_bed::{Offload, Receiver, TestBed};

/// Number of segments of 1500-byte packets that fit into one IP packet.
const SEGMENTS_IN_ONE: u64 = 45;
/// Time without ACKs after which the sender restarts from the acknowledged data. The path loses
/// nothing, but the kernel drops packets when a buffer is full.
const STALL: Duration = Duration::from_millis(50);

pub(crate) fn run(clock: Clock, timing: Timing, offload: Offload) -> anyhow::Result<Sample> {
    let mut test_bed = TestBed::new(clock, offload)?;
    let receiver = Receiver::start(&test_bed.namespace)?;
    let mut connection = Connection::open(&mut test_bed, offload)?;
    let mut meter = Meter::start(clock, timing);
    while meter.tick(|| connection.count(&receiver)) {
        let bytes = (connection.snd_una + connection.snd_wnd).saturating_sub(connection.snd_nxt);
        let room = bytes / (connection.data.count() * MSS as u64);
        for _ in 0..room.min(connection.data.batch()) {
            connection.send_next(&test_bed)?;
        }
        let acked = connection.read_acks(&test_bed)?;
        if room == 0 && !acked && !test_bed.wait(meter.deadline().min(clock.now() + STALL))? {
            connection.restart_from_acknowledged();
        }
    }
    connection.reset(&test_bed)?;
    meter.sample().context("the run is over")
}

/// The prebuilt data that each write sends.
enum Data {
    Segment(Segment),
    Segments(Segments),
}

impl Data {
    /// Returns the number of segments per write.
    const fn count(&self) -> u64 {
        match self {
            Self::Segment(_) => 1,
            Self::Segments(_) => SEGMENTS_IN_ONE,
        }
    }

    /// Returns the number of writes between two reads of ACKs.
    const fn batch(&self) -> u64 {
        match self {
            Self::Segment(_) => 32,
            Self::Segments(_) => 2,
        }
    }
}

struct Connection {
    data: Data,
    clock: Clock,
    iss: u32,
    wscale: u8,
    // Stream offsets.
    snd_una: u64,
    snd_nxt: u64,
    snd_wnd: u64,
    packets: u64,
    retransmissions: u64,
    arriving: Segmenter,
}

impl Connection {
    fn open(test_bed: &mut TestBed, offload: Offload) -> anyhow::Result<Self> {
        let iss = 1000;
        // Timestamps come first, so that they have the same position in every segment. Then MSS and
        // window scale 7.
        let mut options = timestamps(0);
        options.extend([2, 4, 5, 180, 1, 3, 3, 7]);
        let mut syn = Segment::new(KERNEL, 0, SYN, &options, &[]);
        test_bed.tun.send(syn.stamped(iss, millis(test_bed.clock.now())))?;
        let mut arriving = Segmenter::new(1 << 16);
        let (syn_ack, options) = loop {
            ensure!(
                test_bed.wait(test_bed.clock.now() + Duration::from_secs(1))?,
                "the kernel did not answer the SYN"
            );
            test_bed.tun.fill(&mut arriving)?;
            let Some(segment) = arriving.next_packet().and_then(received) else { continue };
            let flags = segment.header.flags.0 as u8;
            ensure!(flags == SYN | ACK, "the kernel answered the SYN with flags {flags:#04x}");
            break (segment.header, Options::parse(segment.options).unwrap_or_default());
        };
        let (Some(wscale), Some(Timestamps { val: ts_ecr, .. })) = (options.window_scale, options.timestamps)
        else {
            bail!("the kernel refused window scaling or timestamps");
        };
        let ack = syn_ack.seq.0.wrapping_add(1);
        let mut third = Segment::new(KERNEL, ack, ACK, &timestamps(ts_ecr), &[]);
        test_bed.tun.send(third.stamped(iss + 1, millis(test_bed.clock.now())))?;
        let options = timestamps(ts_ecr);
        Ok(Self {
            data: match offload {
                Offload::Off => Data::Segment(Segment::new(KERNEL, ack, ACK, &options, &[0x5a; MSS])),
                Offload::On => {
                    let count = SEGMENTS_IN_ONE as usize;
                    Data::Segments(Segments::new(KERNEL, ack, ACK, &options, MSS, count))
                }
            },
            clock: test_bed.clock,
            iss,
            wscale,
            snd_una: 0,
            snd_nxt: 0,
            snd_wnd: u64::from(syn_ack.window),
            packets: 0,
            retransmissions: 0,
            arriving,
        })
    }

    fn send_next(&mut self, test_bed: &TestBed) -> anyhow::Result<()> {
        // Offset 0 has the sequence number after the SYN.
        let seq = self.iss.wrapping_add(1).wrapping_add(self.snd_nxt as u32);
        let ts_val = millis(self.clock.now());
        match &mut self.data {
            Data::Segment(segment) => test_bed.tun.send(segment.stamped(seq, ts_val))?,
            Data::Segments(segments) => {
                nix::unistd::write(&test_bed.tun, segments.stamped(seq, ts_val))?;
            }
        }
        self.snd_nxt += self.data.count() * MSS as u64;
        self.packets += self.data.count();
        Ok(())
    }

    /// Reads the ACKs that have arrived. Returns true if at least one ACK is not old.
    fn read_acks(&mut self, test_bed: &TestBed) -> anyhow::Result<bool> {
        let mut any = false;
        while test_bed.tun.fill(&mut self.arriving)? {
            let Some(segment) = self.arriving.next_packet().and_then(received) else { continue };
            let header = segment.header;
            ensure!(header.flags.0 as u8 & RST == 0, "the kernel reset the connection");
            let una = self.iss.wrapping_add(1).wrapping_add(self.snd_una as u32);
            let advance = header.ack.0.wrapping_sub(una);
            // An ACK number that appears more than half of the number space ahead is old.
            if advance < 1 << 31 {
                self.snd_una += u64::from(advance);
                self.snd_wnd = u64::from(header.window) << self.wscale;
                any = true;
            }
        }
        Ok(any)
    }

    fn restart_from_acknowledged(&mut self) {
        self.retransmissions += (self.snd_nxt - self.snd_una) / MSS as u64;
        self.snd_nxt = self.snd_una;
    }

    fn reset(&mut self, test_bed: &TestBed) -> anyhow::Result<()> {
        let mut rst = Segment::new(KERNEL, 0, RST, &timestamps(0), &[]);
        let seq = self.iss.wrapping_add(1).wrapping_add(self.snd_una as u32);
        test_bed.tun.send(rst.stamped(seq, millis(self.clock.now())))?;
        Ok(())
    }

    fn count(&self, receiver: &Receiver) -> Count {
        Count {
            packets: self.packets,
            payload: receiver.bytes(),
            retransmissions: Some(self.retransmissions),
            receiver: receiver.cpu(),
        }
    }
}

/// Returns the timestamp clock in milliseconds. It must not be 0 in the SYN: older receivers treat
/// 0 as a missing timestamp.
fn millis(at: Instant) -> u32 {
    at.as_millis() as u32 + 1
}
