//! Access to the caller's memory. C's pointers and lengths become slices, or the error that a kernel returns
//! for invalid pointers.

#![expect(unsafe_code, reason = "pointers of C become slices here")]

use std::ffi::{c_int, c_void};
use std::net::{IpAddr, SocketAddr};
use std::slice;

use airtcp_script::errno::Errno;
use libc::{iovec, pollfd, sockaddr, sockaddr_in, sockaddr_in6, socklen_t};

/// Limits: the kernel's maximum number of vectors (UIO_MAXIOV), and more descriptors than a process
/// can have open.
const MAX_VECTORS: usize = 1024;
const MAX_POLLED: usize = 1 << 20;

/// Returns the `len` bytes at `buf`.
///
/// # Safety
/// `buf` must be NULL or point to `len` bytes, which are readable and do not change while the slice
/// is in use.
pub(crate) unsafe fn bytes<'a>(buf: *const c_void, len: usize) -> Result<&'a [u8], Errno> {
    if !is_there(buf, len)? {
        return Ok(&[]);
    }
    // SAFETY: guaranteed by the caller, see above. `len` does not exceed the maximum size of an object.
    Ok(unsafe { slice::from_raw_parts(buf.cast(), len) })
}

/// Returns the `len` bytes at `buf` for writing.
///
/// # Safety
/// `buf` must be NULL or point to `len` bytes, which no other code accesses while the slice is in use.
pub(crate) unsafe fn bytes_mut<'a>(buf: *mut c_void, len: usize) -> Result<&'a mut [u8], Errno> {
    if !is_there(buf, len)? {
        return Ok(&mut []);
    }
    // SAFETY: guaranteed by the caller, see above. `len` does not exceed the maximum size of an object.
    Ok(unsafe { slice::from_raw_parts_mut(buf.cast(), len) })
}

/// Returns the `n` iovecs at `vectors`.
///
/// # Safety
/// `vectors` must be NULL or point to `n` iovecs, which do not change while the slice is in use.
pub(crate) unsafe fn vectors<'a>(vectors: *const iovec, n: usize) -> Result<&'a [iovec], Errno> {
    if n > MAX_VECTORS {
        return Err(Errno::EINVAL);
    }
    if !is_there(vectors.cast(), n)? {
        return Ok(&[]);
    }
    // SAFETY: guaranteed by the caller, see above.
    Ok(unsafe { slice::from_raw_parts(vectors, n) })
}

/// Returns the `n` entries at `fds` for writing.
///
/// # Safety
/// `fds` must be NULL or point to `n` entries, which no other code accesses while the slice is in use.
pub(crate) unsafe fn entries<'a>(fds: *mut pollfd, n: usize) -> Result<&'a mut [pollfd], Errno> {
    if n > MAX_POLLED {
        return Err(Errno::EINVAL);
    }
    if !is_there(fds.cast_const().cast(), n)? {
        return Ok(&mut []);
    }
    // SAFETY: guaranteed by the caller, see above.
    Ok(unsafe { slice::from_raw_parts_mut(fds, n) })
}

/// Returns whether there is memory to access. A NULL pointer is valid only with length 0.
fn is_there(at: *const c_void, len: usize) -> Result<bool, Errno> {
    match len {
        0 => Ok(false),
        _ if at.is_null() => Err(Errno::EFAULT),
        _ if isize::try_from(len).is_err() => Err(Errno::EINVAL),
        _ => Ok(true),
    }
}

/// Copies the bytes of all `parts` into one vector.
///
/// # Safety
/// Each of `parts` must meet the requirements of [`bytes`].
pub(crate) unsafe fn gather(parts: &[iovec]) -> Result<Vec<u8>, Errno> {
    let mut data = Vec::new();
    for part in parts {
        // SAFETY: guaranteed by the caller, see above.
        data.extend_from_slice(unsafe { bytes(part.iov_base, part.iov_len) }?);
    }
    Ok(data)
}

/// Returns the total size of `parts` in bytes.
pub(crate) fn room(parts: &[iovec]) -> Result<usize, Errno> {
    parts.iter().try_fold(0_usize, |sum, part| {
        is_there(part.iov_base, part.iov_len)?;
        sum.checked_add(part.iov_len).filter(|sum| isize::try_from(*sum).is_ok()).ok_or(Errno::EINVAL)
    })
}

/// Distributes `data` over `parts`.
///
/// # Safety
/// Each of `parts` must meet the requirements of [`bytes_mut`].
pub(crate) unsafe fn scatter(parts: &[iovec], mut data: &[u8]) -> Result<(), Errno> {
    for part in parts {
        let (now, later) = data.split_at(part.iov_len.min(data.len()));
        // SAFETY: guaranteed by the caller, see above.
        unsafe { bytes_mut(part.iov_base, now.len()) }?.copy_from_slice(now);
        data = later;
    }
    Ok(())
}

/// Reads the socket address at `addr`.
///
/// # Safety
/// `addr` must be NULL or point to `len` bytes.
pub(crate) unsafe fn read_addr(addr: *const sockaddr, len: socklen_t) -> Result<SocketAddr, Errno> {
    if addr.is_null() {
        return Err(Errno::EFAULT);
    } else if (len as usize) < size_of::<sockaddr_in>() {
        return Err(Errno::EINVAL);
    }
    // SAFETY: there are at least the bytes of a sockaddr_in, which begins with the address family.
    let family = c_int::from(unsafe { addr.cast::<libc::sa_family_t>().read_unaligned() });
    match family {
        libc::AF_INET => {
            // SAFETY: the length was checked above.
            let addr = unsafe { addr.cast::<sockaddr_in>().read_unaligned() };
            let ip = IpAddr::from(u32::from_be(addr.sin_addr.s_addr).to_be_bytes());
            Ok(SocketAddr::new(ip, u16::from_be(addr.sin_port)))
        }
        libc::AF_INET6 if len as usize >= size_of::<sockaddr_in6>() => {
            // SAFETY: the length was just checked.
            let addr = unsafe { addr.cast::<sockaddr_in6>().read_unaligned() };
            Ok(SocketAddr::new(IpAddr::from(addr.sin6_addr.s6_addr), u16::from_be(addr.sin6_port)))
        }
        _ => Err(Errno::EAFNOSUPPORT),
    }
}

/// Writes the address `from` to `addr`, truncated to `*len` bytes, and its full length to `len`.
///
/// # Safety
/// `len` must be NULL, or `addr` must be NULL or point to `*len` bytes.
pub(crate) unsafe fn write_addr(from: SocketAddr, addr: *mut sockaddr, len: *mut socklen_t) {
    if addr.is_null() || len.is_null() {
        return;
    }
    let mut raw = [0; size_of::<sockaddr_in6>()];
    raw[2..4].copy_from_slice(&from.port().to_be_bytes());
    let (family, used) = match from.ip() {
        IpAddr::V4(ip) => {
            raw[4..8].copy_from_slice(&ip.octets());
            (libc::AF_INET, size_of::<sockaddr_in>())
        }
        IpAddr::V6(ip) => {
            raw[8..24].copy_from_slice(&ip.octets());
            (libc::AF_INET6, size_of::<sockaddr_in6>())
        }
    };
    raw[..2].copy_from_slice(&(family as u16).to_ne_bytes());
    // SAFETY: guaranteed by the caller, see above: `len` contains the size of `addr`. It receives
    // the size of the whole address.
    unsafe {
        let room = used.min(len.read_unaligned() as usize);
        std::ptr::copy_nonoverlapping(raw.as_ptr(), addr.cast(), room);
        len.write_unaligned(used as socklen_t);
    }
}
