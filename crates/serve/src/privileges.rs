//! Drops the server's privileges once its device and files are open.

use airtcp_command::failure::Failure;
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, geteuid, setgid, setgroups, setuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

/// Default of `--user`.
pub(crate) const NOBODY: &str = "nobody";

/// Switches to `user`, drops all capabilities, and prevents later programs from gaining any. Two processes
/// keep their user: a process that is not root, and root in a user namespace that does not have `user`. Other
/// threads would keep their privileges, so none may run yet. Returns the name of the effective user.
///
/// # Errors
/// If the user does not exist, or if a privilege cannot be dropped.
pub(crate) fn drop_privileges(user: &str) -> anyhow::Result<String> {
    let cannot_drop = |privilege: &str, error: &dyn std::fmt::Display| {
        Failure::Environment(format!("cannot drop {privilege}: {error}"))
    };
    prctl::set_no_new_privs().map_err(|error| cannot_drop("the right to new privileges", &error))?;
    if user == "root" {
        return Ok(name_of(geteuid()));
    }
    let Some(known) = User::from_name(user).map_err(|error| cannot_drop("root", &error))? else {
        return Err(Failure::Environment(format!(
            "unknown user `{user}`: choose another one with --user, or keep root with --user root"
        ))
        .into());
    };
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // EINVAL: an older kernel does not know the capability. EPERM: a process without CAP_SETPCAP
            // cannot gain it.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(cannot_drop("capabilities", &error).into()),
        }
    }
    if geteuid().is_root() {
        match become_user(known.uid, known.gid) {
            // The user does not exist in this user namespace, whose root is an ordinary user outside.
            Ok(()) | Err(Errno::EINVAL | Errno::EPERM) => {}
            Err(error) => return Err(cannot_drop("root", &error).into()),
        }
    }
    // The root user of a user namespace still has its capabilities.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| cannot_drop("capabilities", &error))?;
    Ok(name_of(geteuid()))
}

fn name_of(uid: Uid) -> String {
    User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

fn become_user(uid: Uid, gid: Gid) -> Result<(), Errno> {
    setgroups(&[gid])?;
    setgid(gid)?;
    setuid(uid)
}
