//! Two hosts in one process and a bad path between them, in virtual time: `cargo run --example in_memory`.
//!
//! The client sends 200 kB. The path takes 100 ms each way and loses packets at random. Each line reports
//! retransmissions and their effect on the congestion window.

use std::collections::VecDeque;
use std::error::Error;

use airtcp::{Host, HostConfig, Profile, SocketOptions};
use airwire::rng::Stream;
use airwire::time::{Duration, Instant};

const RECIPE: &str = "sack+limited-transmit";
const OCTETS: usize = 200_000;
const DELAY: Duration = Duration::from_millis(100);
const LOSS: f64 = 0.02;

/// One direction of the path.
struct Path {
    /// In the order in which they arrive.
    packets: VecDeque<(Instant, Vec<u8>)>,
    luck: Stream,
}

impl Path {
    fn new(name: &str) -> Self {
        Self { packets: VecDeque::new(), luck: Stream::new(1, name) }
    }

    /// Takes everything that `from` has to send.
    fn collect(&mut self, now: Instant, from: &mut Host) {
        let mut packet = Vec::new();
        while from.poll_packet(now, &mut packet) {
            if !self.luck.chance(LOSS) {
                self.packets.push_back((now + DELAY, packet.clone()));
            }
        }
    }

    /// Hands over what has arrived by now.
    fn deliver(&mut self, now: Instant, to: &mut Host) {
        while let Some((_, packet)) = self.packets.pop_front_if(|(at, _)| *at <= now) {
            to.handle_packet(now, &packet);
        }
    }
}

fn host(address: &str) -> Result<Host, Box<dyn Error>> {
    let (addrs, recipe) = (vec![address.parse()?], RECIPE.parse()?);
    Ok(Host::new(HostConfig { addrs, mtu: 1500, profile: Profile::default(), recipe, seed: 1 }))
}

fn main() -> Result<(), Box<dyn Error>> {
    let (mut client, mut server) = (host("192.0.2.1")?, host("192.0.2.2")?);
    let (mut there, mut back) = (Path::new("there"), Path::new("back"));
    let options = SocketOptions::of(client.profile());
    let listener = server.listen("192.0.2.2:80".parse()?, 1, options.clone())?;
    let mut now = Instant::ZERO;
    let conn = client.connect(now, None, "192.0.2.2:80".parse()?, options)?;
    let (mut accepted, mut written, mut received, mut resent) = (None, 0, 0, 0);
    let (data, mut buffer) = (vec![42; OCTETS], vec![0; OCTETS]);
    loop {
        there.deliver(now, &mut server);
        back.deliver(now, &mut client);
        client.handle_deadline(now);
        server.handle_deadline(now);

        // An error would end the run: nothing would be left to happen.
        written += client.write(now, conn, &data[written..]).unwrap_or(0);
        accepted = accepted.or_else(|| server.accept(listener));
        if let Some(id) = accepted {
            received += server.read(id, &mut buffer).unwrap_or(0);
        }

        there.collect(now, &mut client);
        back.collect(now, &mut server);
        let info = client.connection(conn).ok_or("the connection is gone")?.info();
        if info.total_retrans > resent {
            resent = info.total_retrans;
            println!("{now} s: {resent} segments sent again so far, cwnd {}", info.cwnd);
        }
        if received == OCTETS {
            let (all, rtt, cwnd) = (info.segs_out, info.rtt, info.cwnd);
            println!("{RECIPE}: {OCTETS} octets in {now} s, {resent} of {all} segments sent again");
            println!("at the end: smoothed round-trip time {rtt}, cwnd {cwnd}");
            return Ok(());
        }

        let arrivals = [&there, &back].map(|path| path.packets.front().map(|(at, _)| *at));
        let timers = [client.next_deadline(), server.next_deadline()];
        now = arrivals.into_iter().chain(timers).flatten().min().ok_or("nothing is left to happen")?;
    }
}
