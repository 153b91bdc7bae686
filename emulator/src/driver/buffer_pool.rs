//! Pool of packet buffers.

use std::io;

use super::MAX_PACKET;
use crate::offload::Segmenter;
use crate::tun::Tun;

/// Buffers of packets that have left, for reuse. Small packets get small buffers, since thousands of small
/// packets may wait in a queue.
pub(super) struct BufferPool {
    /// Bytes of the largest packet expected from the devices.
    mtu: usize,
    /// Buffers with room for `mtu` bytes.
    large: Vec<Vec<u8>>,
    small: Vec<Vec<u8>>,
    /// Read buffer. A read directly into the packet's buffer would need a second iovec for packets longer
    /// than `mtu`, which costs the kernel more than this copy.
    buffer: Vec<u8>,
}

/// Bytes of the longest packet that is stored in a small buffer.
const SMALL: usize = 512;
/// Upper bound on the bytes in each list.
const MAX_POOLED: usize = 8 << 20;

impl BufferPool {
    pub(super) fn new(mtu: usize) -> Self {
        Self { mtu, large: Vec::new(), small: Vec::new(), buffer: vec![0; MAX_PACKET] }
    }

    /// Reads the next packet of a device without offload.
    pub(super) fn read(&mut self, tun: &Tun) -> io::Result<Option<Vec<u8>>> {
        let Some(len) = tun.recv(&mut self.buffer)? else { return Ok(None) };
        let mut packet = self.empty_buffer(len);
        packet.extend_from_slice(&self.buffer[..len]);
        Ok(Some(packet))
    }

    /// Splits the next packet off a read from a device with offload.
    pub(super) fn next_packet(&mut self, segmenter: &mut Segmenter) -> Option<Vec<u8>> {
        let mut packet = self.empty_buffer(segmenter.next_len()?);
        segmenter.next_into(&mut packet).then_some(packet)
    }

    /// Returns an empty buffer for a packet of `len` bytes.
    fn empty_buffer(&mut self, len: usize) -> Vec<u8> {
        let (list, room) =
            if len <= SMALL { (&mut self.small, len) } else { (&mut self.large, len.max(self.mtu)) };
        let mut packet = list.pop().unwrap_or_else(|| Vec::with_capacity(room));
        packet.clear();
        packet
    }

    /// Takes back the buffer of a packet that has left.
    pub(super) fn put(&mut self, packet: Vec<u8>) {
        let is_large = packet.capacity() >= self.mtu.max(SMALL + 1);
        let list = if is_large { &mut self.large } else { &mut self.small };
        if packet.capacity() > 0 && list.len() < MAX_POOLED / self.mtu.max(1) {
            list.push(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::test_namespace;
    use crate::tun::TunConfig;

    /// Sends packets of these lengths into a device with an MTU of 1500 and reads them back.
    fn read(larger_mtu: bool, lengths: &[usize]) -> (BufferPool, Vec<Vec<u8>>) {
        let namespace = test_namespace();
        let addrs = vec!["10.7.0.1/24".parse().unwrap()];
        let config =
            TunConfig { namespace: Some(namespace.path().to_path_buf()), addrs, ..TunConfig::default() };
        let tun = Tun::open(&config).unwrap();
        if larger_mtu {
            let mut ip = std::process::Command::new("ip");
            namespace.spawn(ip.args(["link", "set", tun.name(), "mtu", "9000"])).unwrap().wait().unwrap();
        }
        let socket = namespace.enter(|| std::net::UdpSocket::bind("10.7.0.1:0").unwrap()).unwrap();
        let mut buffers = BufferPool::new(tun.mtu());
        let packets = lengths.iter().map(|len| {
            let data: Vec<u8> = (0..len - 28).map(|at| at as u8).collect();
            socket.send_to(&data, "10.7.0.9:9").unwrap();
            let packet = buffers.read(&tun).unwrap().unwrap();
            assert_eq!((packet.len(), &packet[28..]), (*len, &data[..]));
            packet
        });
        let packets = packets.collect();
        assert_eq!(buffers.read(&tun).unwrap(), None);
        (buffers, packets)
    }

    #[test]
    fn small_packets_get_buffers_of_exact_length() {
        let lengths = [40, 1500, 512, 513, 1499, 28, 1500];
        let (mut buffers, packets) = read(false, &lengths);
        for (packet, len) in packets.iter().zip(lengths) {
            assert_eq!(packet.capacity(), if len <= SMALL { len } else { 1500 });
        }
        packets.into_iter().for_each(|packet| buffers.put(packet));
        assert_eq!((buffers.small.len(), buffers.large.len()), (3, 4));
    }

    #[test]
    fn packet_is_read_whole_after_mtu_increase() {
        read(true, &[1500, 1501, 9000, 1400]);
    }

    #[test]
    fn buffers_of_sent_packets_are_reused() {
        let mut buffers = BufferPool::new(1500);
        let (large, small) = (Vec::with_capacity(1500), Vec::with_capacity(100));
        let addresses: [*const u8; 2] = [large.as_ptr(), small.as_ptr()];
        buffers.put(large);
        buffers.put(small);
        buffers.put(Vec::new());
        let reused = [buffers.empty_buffer(1400), buffers.empty_buffer(60)];
        assert_eq!(reused.each_ref().map(|buffer| buffer.as_ptr()), addresses);
    }
}
