//! Socket options: getsockopt(2) and setsockopt(2).

use std::ffi::{c_int, c_void};
use std::sync::PoisonError;

use airtcp_script::errno::Errno;
use airtcp_script::sockopt::{FastOpenOption, SockOpt};
use airtcp_script::syscall::{FastOpenKeys, Fd, OptionValue};
use libc::socklen_t;

use super::{CURRENT, fail, on_stack, status};
use crate::memory::{bytes, bytes_mut};
use crate::stack::Stack;

const TCP_CC_INFO: c_int = 26;
const SO_MEMINFO: c_int = 55;

pub(super) unsafe extern "C" fn interface_getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    // SAFETY: getsockopt(2): `len` contains the size of `value`.
    status(unsafe { on_stack(userdata, |stack| read_option(stack, Fd(fd), level, option, value, len)) })
}

/// Reads a socket option into `value`.
///
/// # Safety
/// `len` must be NULL, or `value` must be NULL or point to `*len` bytes.
unsafe fn read_option(
    stack: &Stack,
    fd: Fd,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> Result<(), Errno> {
    if len.is_null() {
        return Err(Errno::EFAULT);
    }
    let data = match (level, option) {
        (libc::SOL_TCP, libc::TCP_INFO) => stack.tcp_info(fd)?.to_vec(),
        // Algorithm-specific information is not available.
        (libc::SOL_TCP, TCP_CC_INFO) => Vec::new(),
        (libc::SOL_SOCKET, SO_MEMINFO) => vec![0; 36],
        _ => {
            let known = SockOpt::by_number(level, option).ok_or(Errno::ENOPROTOOPT)?;
            match stack.option(fd, known)? {
                OptionValue::Int(int) => int.to_ne_bytes().to_vec(),
                OptionValue::Linger { on, seconds } => {
                    [i32::from(on).to_ne_bytes(), seconds.to_ne_bytes()].concat()
                }
                OptionValue::FastOpenKeys(keys) => {
                    [keys.primary.as_slice(), keys.backup.as_ref().map_or(&[], |key| key)].concat()
                }
            }
        }
    };
    // SAFETY: guaranteed by the caller, see above: `len` contains the size of `value`. It receives
    // the number of bytes used.
    unsafe {
        let used = data.len().min(len.read_unaligned() as usize);
        bytes_mut(value, used)?.copy_from_slice(&data[..used]);
        len.write_unaligned(used as socklen_t);
    }
    Ok(())
}

pub(super) unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    len: socklen_t,
) -> c_int {
    let set = |stack: &Stack| {
        let known = SockOpt::by_number(level, option).ok_or(Errno::ENOPROTOOPT)?;
        if known == SockOpt::Ignored {
            eprintln!("airtcp: setsockopt with level {level} and option {option} has no effect");
        }
        // SAFETY: setsockopt(2): `value` points to `len` bytes.
        let data = unsafe { bytes(value, len as usize) }?;
        let int = |at: usize| {
            data.get(at..at + 4).map_or(0, |four| i32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
        };
        let value = match known {
            SockOpt::Linger => OptionValue::Linger { on: int(0) != 0, seconds: int(4) },
            SockOpt::FastOpen(FastOpenOption::Key) => {
                let (primary, backup) = data.split_first_chunk().ok_or(Errno::EINVAL)?;
                let backup = match backup {
                    [] => None,
                    backup => Some(backup.try_into().map_err(|_| Errno::EINVAL)?),
                };
                OptionValue::FastOpenKeys(FastOpenKeys { primary: *primary, backup })
            }
            _ => OptionValue::Int(int(0)),
        };
        stack.set_option(Fd(fd), known, value)
    };
    // SAFETY: guaranteed by packetdrill.h, see the module's documentation.
    status(unsafe { on_stack(userdata, set) })
}

/// Replaces libc's function through LD_PRELOAD: packetdrill reads TCP_INFO, TCP_CC_INFO and SO_MEMINFO with
/// this function, and not through the interface.
///
/// # Safety
/// As for getsockopt(2).
// SAFETY: this function deliberately replaces libc's, to which it forwards calls for other descriptors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *mut c_void,
    len: *mut socklen_t,
) -> c_int {
    let current = CURRENT.lock().unwrap_or_else(PoisonError::into_inner).clone();
    if let Some(stack) = current.filter(|stack| stack.owns(Fd(fd))) {
        // SAFETY: guaranteed by the caller, see above.
        return status(unsafe { read_option(&stack, Fd(fd), level, option, value, len) });
    }
    // SAFETY: the argument is a constant C string. RTLD_NEXT finds the function that this one replaces.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, c"getsockopt".as_ptr()) };
    if next.is_null() {
        return fail(Errno::ENOPROTOOPT);
    }
    // SAFETY: libc's getsockopt has this signature.
    let next: unsafe extern "C" fn(c_int, c_int, c_int, *mut c_void, *mut socklen_t) -> c_int =
        unsafe { std::mem::transmute(next) };
    // SAFETY: guaranteed by the caller, see above.
    unsafe { next(fd, level, option, value, len) }
}
