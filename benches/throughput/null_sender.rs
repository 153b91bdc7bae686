//! The null sender: no TCP, only its packets. The ceiling of this path for any userspace sender.
//!
//! It completes a handshake, then keeps the receiver's window full with prebuilt segments (timestamps on, as in an
//! ordinary Linux flow) and reads nothing of what comes back but ACK number and window.

use airlink::reactor::Clock;
use airwire::time::{Duration, Instant};
use anyhow::{Context, bail, ensure};

use crate::bare::MSS;
use crate::lab::{KERNEL, Lab, Receiver};
use crate::meter::{Count, Meter, Sample, Timing};
use crate::packet::{ACK, RST, Received, SYN, Segment, timestamps};

/// Segments written before the ACKs are read.
const BATCH: u64 = 32;
/// The path loses nothing. If the kernel drops all the same (a full buffer), begin again from what it has.
const STALL: Duration = Duration::from_millis(50);

pub(crate) fn run(clock: Clock, plan: Timing) -> anyhow::Result<Sample> {
    let mut lab = Lab::new(clock)?;
    let receiver = Receiver::start(&lab.namespace)?;
    let mut connection = Connection::open(&mut lab)?;
    let mut meter = Meter::start(clock, plan);
    while meter.tick(|| connection.count(&receiver)) {
        let room = (connection.snd_una + connection.snd_wnd).saturating_sub(connection.snd_nxt) / MSS as u64;
        for _ in 0..room.min(BATCH) {
            connection.send_next(&lab)?;
        }
        let acked = connection.read_acks(&lab)?;
        if room == 0 && !acked && !lab.wait(meter.deadline().min(clock.now() + STALL))? {
            connection.start_over();
        }
    }
    connection.reset(&lab)?;
    meter.sample().context("the run is over")
}

struct Connection {
    data: Segment,
    clock: Clock,
    iss: u32,
    wscale: u8,
    // Stream offsets.
    snd_una: u64,
    snd_nxt: u64,
    snd_wnd: u64,
    packets: u64,
    sent_again: u64,
    buffer: Vec<u8>,
}

impl Connection {
    fn open(lab: &mut Lab) -> anyhow::Result<Self> {
        let iss = 1000;
        // Timestamps first, so that their place is the same in every segment; then MSS, and window scale 7.
        let mut options = timestamps(0);
        options.extend([2, 4, 5, 180, 1, 3, 3, 7]);
        let mut syn = Segment::new(KERNEL, 0, SYN, &options, &[]);
        lab.tun.send(syn.stamped(iss, millis(lab.clock.now())))?;
        let mut buffer = vec![0; 2000];
        let syn_ack = loop {
            ensure!(lab.wait(lab.clock.now() + Duration::from_secs(1))?, "the kernel did not answer the SYN");
            let len = lab.tun.recv(&mut buffer)?.unwrap_or(0);
            match Received::parse(&buffer[..len]) {
                Some(received) if received.flags == SYN | ACK => break received,
                Some(received) => bail!("the kernel answered the SYN with flags {:#04x}", received.flags),
                None => {}
            }
        };
        let (Some(wscale), Some(ts_ecr)) = (syn_ack.window_scale(), syn_ack.ts_val()) else {
            bail!("the kernel refused window scaling or timestamps");
        };
        let ack = syn_ack.seq.wrapping_add(1);
        let mut third = Segment::new(KERNEL, ack, ACK, &timestamps(ts_ecr), &[]);
        lab.tun.send(third.stamped(iss + 1, millis(lab.clock.now())))?;
        Ok(Self {
            data: Segment::new(KERNEL, ack, ACK, &timestamps(ts_ecr), &[0x5a; MSS]),
            clock: lab.clock,
            iss,
            wscale,
            snd_una: 0,
            snd_nxt: 0,
            snd_wnd: u64::from(syn_ack.window),
            packets: 0,
            sent_again: 0,
            buffer,
        })
    }

    fn send_next(&mut self, lab: &Lab) -> anyhow::Result<()> {
        // Offset 0 has the sequence number after the SYN's.
        let seq = self.iss.wrapping_add(1).wrapping_add(self.snd_nxt as u32);
        lab.tun.send(self.data.stamped(seq, millis(self.clock.now())))?;
        self.snd_nxt += MSS as u64;
        self.packets += 1;
        Ok(())
    }

    /// True if an ACK came that is not old.
    fn read_acks(&mut self, lab: &Lab) -> anyhow::Result<bool> {
        let mut any = false;
        while let Some(len) = lab.tun.recv(&mut self.buffer)? {
            let Some(received) = Received::parse(&self.buffer[..len]) else { continue };
            ensure!(received.flags & RST == 0, "the kernel reset the connection");
            let una = self.iss.wrapping_add(1).wrapping_add(self.snd_una as u32);
            let advance = received.ack.wrapping_sub(una);
            // An ACK that seems more than half the number space ahead is an old one.
            if advance < 1 << 31 {
                self.snd_una += u64::from(advance);
                self.snd_wnd = u64::from(received.window) << self.wscale;
                any = true;
            }
        }
        Ok(any)
    }

    fn start_over(&mut self) {
        self.sent_again += (self.snd_nxt - self.snd_una) / MSS as u64;
        self.snd_nxt = self.snd_una;
    }

    fn reset(&mut self, lab: &Lab) -> anyhow::Result<()> {
        let mut rst = Segment::new(KERNEL, 0, RST, &timestamps(0), &[]);
        let seq = self.iss.wrapping_add(1).wrapping_add(self.snd_una as u32);
        lab.tun.send(rst.stamped(seq, millis(self.clock.now())))?;
        Ok(())
    }

    fn count(&self, receiver: &Receiver) -> Count {
        Count { packets: self.packets, payload: receiver.bytes(), sent_again: Some(self.sent_again) }
    }
}

/// The timestamp clock: it must not be 0 in the SYN, which older receivers take for "none".
fn millis(at: Instant) -> u32 {
    at.as_millis() as u32 + 1
}
