//! Memory of packets that have left, for packets that come.

use std::io;

use super::MAX_PACKET;
use crate::offload::Pieces;
use crate::tun::Tun;

/// Small packets have places of their own, where they fit: thousands of them may wait in a queue.
pub(super) struct Memory {
    /// Octets of the largest packet that devices are expected to hand over.
    usual: usize,
    /// Each has room for such a packet.
    large: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    /// For reads. To read straight to a packet's place would take a second part for what is longer than usual, and with
    /// two parts a read costs the kernel more than the copy costs here.
    buffer: Vec<u8>,
}

/// Octets of the longest packet with such a place.
const SMALL: usize = 512;
/// The most octets that are kept of either sort.
const KEPT: usize = 8 << 20;

impl Memory {
    pub(super) fn new(usual: usize) -> Self {
        Self { usual, large: Vec::new(), small: Vec::new(), buffer: vec![0; MAX_PACKET] }
    }

    /// The next packet of a device without offload.
    pub(super) fn read(&mut self, tun: &Tun) -> io::Result<Option<Vec<u8>>> {
        let Some(len) = tun.recv(&mut self.buffer)? else { return Ok(None) };
        let mut packet = self.place(len);
        packet.extend_from_slice(&self.buffer[..len]);
        Ok(Some(packet))
    }

    /// The next packet of what was read of a device with offload.
    pub(super) fn cut(&mut self, pieces: &mut Pieces) -> Option<Vec<u8>> {
        let mut packet = self.place(pieces.next_len()?);
        pieces.next_into(&mut packet).then_some(packet)
    }

    /// For a packet of so many octets.
    fn place(&mut self, len: usize) -> Vec<u8> {
        let (list, room) =
            if len <= SMALL { (&mut self.small, len) } else { (&mut self.large, len.max(self.usual)) };
        let mut packet = list.pop().unwrap_or_else(|| Vec::with_capacity(room));
        packet.clear();
        packet
    }

    /// The packet has left.
    pub(super) fn put(&mut self, packet: Vec<u8>) {
        let is_large = packet.capacity() >= self.usual.max(SMALL + 1);
        let list = if is_large { &mut self.large } else { &mut self.small };
        if packet.capacity() > 0 && list.len() < KEPT / self.usual.max(1) {
            list.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespace;
    use crate::tun::TunConfig;

    /// Packets of these many octets, sent into a device with an MTU of 1500.
    fn read(larger_mtu: bool, lengths: &[usize]) -> (Memory, Vec<Vec<u8>>) {
        let namespace = Namespace::create()
            .unwrap_or_else(|error| panic!("this test makes a network namespace: {error}"));
        let addrs = vec!["10.7.0.1/24".parse().unwrap()];
        let config =
            TunConfig { namespace: Some(namespace.path().to_path_buf()), addrs, ..TunConfig::default() };
        let tun = Tun::open(&config).unwrap();
        if larger_mtu {
            let mut ip = std::process::Command::new("ip");
            namespace.spawn(ip.args(["link", "set", tun.name(), "mtu", "9000"])).unwrap().wait().unwrap();
        }
        let socket = namespace.enter(|| std::net::UdpSocket::bind("10.7.0.1:0").unwrap()).unwrap();
        let mut memory = Memory::new(tun.mtu());
        let packets = lengths.iter().map(|len| {
            let data: Vec<u8> = (0..len - 28).map(|at| at as u8).collect();
            socket.send_to(&data, "10.7.0.9:9").unwrap();
            let packet = memory.read(&tun).unwrap().unwrap();
            assert_eq!((packet.len(), &packet[28..]), (*len, &data[..]));
            packet
        });
        let packets = packets.collect();
        assert_eq!(memory.read(&tun).unwrap(), None);
        (memory, packets)
    }

    #[test]
    fn packets_of_every_length_are_read_and_small_ones_take_little_room() {
        let lengths = [40, 1500, 512, 513, 1499, 28, 1500];
        let (mut memory, packets) = read(false, &lengths);
        for (packet, len) in packets.iter().zip(lengths) {
            assert_eq!(packet.capacity(), if len <= SMALL { len } else { 1500 });
        }
        packets.into_iter().for_each(|packet| memory.put(packet));
        assert_eq!((memory.small.len(), memory.large.len()), (3, 4));
    }

    #[test]
    fn a_packet_is_whole_though_somebody_has_made_the_mtu_larger() {
        read(true, &[1500, 1501, 9000, 1400]);
    }

    #[test]
    fn what_has_left_is_used_again() {
        let mut memory = Memory::new(1500);
        let (large, small) = (Vec::with_capacity(1500), Vec::with_capacity(100));
        let addresses: [*const u8; 2] = [large.as_ptr(), small.as_ptr()];
        memory.put(large);
        memory.put(small);
        memory.put(Vec::new());
        let places = [memory.place(1400), memory.place(60)];
        assert_eq!(places.each_ref().map(|place| place.as_ptr()), addresses);
    }
}
