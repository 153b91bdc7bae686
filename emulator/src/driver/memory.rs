//! Pool of packet buffers.

use std::io;

use super::MAX_PACKET;
use crate::offload::Pieces;
use crate::tun::Tun;

/// Buffers of packets that have left, for reuse. Small packets get small buffers, since thousands of them may
/// wait in a queue.
pub(super) struct Memory {
    /// Bytes of the largest packet expected from the devices.
    usual: usize,
    /// Buffers with room for `usual` bytes.
    large: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    /// Read buffer. A read directly into the packet's buffer would need a second iovec for packets longer
    /// than `usual`, and a read with two iovecs costs the kernel more than this copy.
    buffer: Vec<u8>,
}

/// Bytes of the longest packet that gets a small buffer.
const SMALL: usize = 512;
/// Upper bound on the bytes kept in each list.
const KEPT: usize = 8 << 20;

impl Memory {
    pub(super) fn new(usual: usize) -> Self {
        Self { usual, large: Vec::new(), small: Vec::new(), buffer: vec![0; MAX_PACKET] }
    }

    /// Reads the next packet of a device without offload.
    pub(super) fn read(&mut self, tun: &Tun) -> io::Result<Option<Vec<u8>>> {
        let Some(len) = tun.recv(&mut self.buffer)? else { return Ok(None) };
        let mut packet = self.place(len);
        packet.extend_from_slice(&self.buffer[..len]);
        Ok(Some(packet))
    }

    /// Splits the next packet off a read from a device with offload.
    pub(super) fn cut(&mut self, pieces: &mut Pieces) -> Option<Vec<u8>> {
        let mut packet = self.place(pieces.next_len()?);
        pieces.next_into(&mut packet).then_some(packet)
    }

    /// Returns an empty buffer for a packet of `len` bytes.
    fn place(&mut self, len: usize) -> Vec<u8> {
        let (list, room) =
            if len <= SMALL { (&mut self.small, len) } else { (&mut self.large, len.max(self.usual)) };
        let mut packet = list.pop().unwrap_or_else(|| Vec::with_capacity(room));
        packet.clear();
        packet
    }

    /// Takes back the buffer of a packet that has left.
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

    /// Sends packets of these lengths into a device with an MTU of 1500 and reads them back.
    fn read(larger_mtu: bool, lengths: &[usize]) -> (Memory, Vec<Vec<u8>>) {
        let namespace = Namespace::create()
            .unwrap_or_else(|error| panic!("this test needs root to create a network namespace: {error}"));
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
    fn small_packets_get_buffers_of_exact_length() {
        let lengths = [40, 1500, 512, 513, 1499, 28, 1500];
        let (mut memory, packets) = read(false, &lengths);
        for (packet, len) in packets.iter().zip(lengths) {
            assert_eq!(packet.capacity(), if len <= SMALL { len } else { 1500 });
        }
        packets.into_iter().for_each(|packet| memory.put(packet));
        assert_eq!((memory.small.len(), memory.large.len()), (3, 4));
    }

    #[test]
    fn packet_is_read_whole_after_mtu_increase() {
        read(true, &[1500, 1501, 9000, 1400]);
    }

    #[test]
    fn buffers_of_sent_packets_are_reused() {
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
