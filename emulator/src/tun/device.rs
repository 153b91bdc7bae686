//! The open file of a device. The crate `tun-tap` opens it or, with offload, this module does.

use std::ffi::CStr;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd};
use std::os::unix::fs::OpenOptionsExt;

use tun_tap::{Iface, Mode};

use crate::offload::{Header, MAX_PARTS};

#[derive(Debug)]
pub(super) struct Device {
    file: File,
    name: String,
    framing: Framing,
}

/// Data that precedes each packet that is read or written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Framing {
    None,
    /// A [`Header`], with offload.
    Header,
}

mod ioctl {
    use nix::{ioctl_readwrite_bad, ioctl_write_int, request_code_write};

    ioctl_write_int!(tun_set_offload, b'T', 208);
    // linux/if_tun.h declares it as a write of an int. In fact the kernel reads a `struct ifreq` and writes
    // it back with the device's name.
    ioctl_readwrite_bad!(tun_set_iff, request_code_write!(b'T', 202, size_of::<libc::c_int>()), libc::ifreq);
}

impl Device {
    /// Opens a device with a non-blocking descriptor.
    pub(super) fn open(name: &str, offload: bool) -> io::Result<Self> {
        if !offload {
            let iface = Iface::without_packet_info(name, Mode::Tun)?;
            iface.set_non_blocking()?;
            let name = iface.name().to_owned();
            // SAFETY: `iface` gives up the descriptor, which is open and has no other owner.
            let file = unsafe { File::from_raw_fd(iface.into_raw_fd()) };
            return Ok(Self { file, name, framing: Framing::None });
        }
        // `tun-tap` cannot open a device with IFF_VNET_HDR, and the kernel takes that flag only together with
        // the name.
        let mut file = OpenOptions::new();
        let file = file.read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        // SAFETY: all-zero bytes are a valid `ifreq`.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero, because the name is shorter (`is_interface_name`).
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes().take(libc::IFNAMSIZ - 1)) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: the kernel reads and writes `request`, which outlives the call.
        unsafe { ioctl::tun_set_iff(file.as_raw_fd(), &raw mut request) }?;
        // SAFETY: the kernel has written a name that ends with a zero byte.
        let name = unsafe { CStr::from_ptr(request.ifr_name.as_ptr()) }.to_string_lossy().into_owned();
        Ok(Self { file, name, framing: Framing::Header })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn offloads(&self) -> bool {
        self.framing == Framing::Header
    }

    /// Sets the offloads, also if there are none: a persistent device keeps earlier flags, and would hand
    /// packets larger than its MTU to a reader that does not expect them.
    pub(super) fn set_offload(&self) -> io::Result<()> {
        let wanted = match self.framing {
            Framing::None => 0,
            Framing::Header => libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6,
        };
        // SAFETY: TUNSETOFFLOAD takes its flags by value. No memory is passed.
        unsafe { ioctl::tun_set_offload(self.as_fd().as_raw_fd(), u64::from(wanted)) }?;
        Ok(())
    }

    /// Reads a packet. Without offload it is complete and does not have a header.
    pub(super) fn read(&self, packet: &mut [u8]) -> io::Result<(Header, usize)> {
        match self.framing {
            Framing::None => Ok((Header::Whole, (&self.file).read(packet)?)),
            Framing::Header => {
                let mut header = [0; Header::LEN];
                let mut parts = [IoSliceMut::new(&mut header), IoSliceMut::new(packet)];
                let len = (&self.file).read_vectored(&mut parts)?;
                let header = Header::from_bytes(header).map_err(io::Error::other)?;
                Ok((header, len.saturating_sub(Header::LEN)))
            }
        }
    }

    /// Writes a packet that consists of at most [`MAX_PARTS`] parts.
    pub(super) fn write<'a>(&self, header: Header, parts: impl Iterator<Item = &'a [u8]>) -> io::Result<()> {
        let mut parts = parts.take(MAX_PARTS);
        match self.framing {
            Framing::None if header == Header::Whole => {
                (&self.file).write(parts.next().unwrap_or_default()).map(drop)
            }
            Framing::None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "several packets in one, for a device that was opened without offload",
            )),
            Framing::Header => {
                let header = header.to_bytes();
                let mut slices = [IoSlice::new(&[]); MAX_PARTS + 1];
                slices[0] = IoSlice::new(&header);
                let mut count = 1;
                for part in parts {
                    slices[count] = IoSlice::new(part);
                    count += 1;
                }
                (&self.file).write_vectored(&slices[..count]).map(drop)
            }
        }
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
