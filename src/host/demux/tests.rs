use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use airwire::rng::Stream;

use super::*;

type Tuple = (SocketAddr, SocketAddr);

fn tuple(number: u16) -> Tuple {
    let local = SocketAddr::from(([192, 0, 2, 1], 80));
    match number % 4 {
        // Few ports and many addresses, the reverse, and the other address family.
        0 => (local, SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 1000))),
        1 => {
            (SocketAddr::from((Ipv6Addr::LOCALHOST, 80)), SocketAddr::from((Ipv6Addr::from_bits(7), number)))
        }
        _ => (local, SocketAddr::from(([10, 0, 0, 1], number))),
    }
}

fn ends_of((local, remote): &Tuple) -> Ends<'_> {
    (local, remote)
}

/// As in a host, slots are reused, and a connection may replace another one.
#[test]
fn demux_matches_map_after_random_operations() {
    for seed in 0..8_u64 {
        let mut stream = Stream::new(seed, "demux");
        let mut random = |n: usize| stream.below(n as u64) as usize;
        let mut demux = Demux::new(seed);
        let mut map: BTreeMap<Tuple, u32> = BTreeMap::new();
        let mut ends: Vec<Option<Tuple>> = Vec::new();
        for step in 0..6000 {
            // Grow first, then shrink.
            let add = random(6000) > step;
            let of = tuple(random(700) as u16);
            if add {
                let index = ends.len() as u32;
                ends.push(Some(of));
                demux.insert(ends_of(&of), index, |other| ends[other as usize] == Some(of));
                map.insert(of, index);
            } else if !ends.is_empty() {
                let index = random(ends.len());
                if let Some(of) = ends[index].take() {
                    demux.remove(ends_of(&of), index as u32);
                    map.retain(|_, other| *other != index as u32);
                }
            }
            let mut found = |of: Tuple| demux.find(ends_of(&of), |index| ends[index as usize] == Some(of));
            assert_eq!(found(of), map.get(&of).copied(), "step {step}");
            if step % 500 == 0 {
                (0..700).for_each(|number| {
                    assert_eq!(found(tuple(number)), map.get(&tuple(number)).copied(), "{number}")
                });
            }
            assert_eq!(demux.used, map.len());
        }
        assert!(demux.entries.len() >= 2 * map.len());
    }
}

#[test]
fn hash_depends_on_seed() {
    let differs =
        |number| Demux::new(1).hash(ends_of(&tuple(number))) != Demux::new(2).hash(ends_of(&tuple(number)));
    assert!((0..100).all(differs));
}

/// Tuples that differ in a single port or address, or only in the order of their ends, must have different
/// hashes.
#[test]
fn hash_depends_on_every_port_and_address() {
    let demux = Demux::new(1);
    let (local, remote) = tuple(2);
    let mut hashes = vec![demux.hash((&local, &remote)), demux.hash((&remote, &local))];
    for (port, address) in [(1, 0), (0, 1), (256, 0), (0, 256)] {
        let moved = |end: SocketAddr| {
            let SocketAddr::V4(v4) = end else { unreachable!() };
            SocketAddr::from((std::net::Ipv4Addr::from_bits(v4.ip().to_bits() + address), end.port() + port))
        };
        hashes.extend([demux.hash((&moved(local), &remote)), demux.hash((&local, &moved(remote)))]);
    }
    let count = hashes.len();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), count, "two tuples have the same hash");
}
