//! What a server that strangers reach gives up once its device and files are open.

use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, geteuid, setgid, setgroups, setuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set, remove_capability_from_bounding_set,
    set_capabilities,
};

use crate::shared::failure::Failure;

/// Who the server is from then on, where nobody is named.
pub(super) const NOBODY: &str = "nobody";

/// Becomes this user, keeps no capability, and can get none by whatever it might run. Who is not root stays who it is, and
/// so does root where this user cannot be. Threads keep what they have, so none may run before. Says who it is now.
///
/// # Errors
/// If the user is not known here, or something could not be given up.
pub(super) fn give_up(user: &str) -> anyhow::Result<String> {
    let left = |what: &str, error: &dyn std::fmt::Display| {
        Failure::Environment(format!("cannot drop {what}: {error}"))
    };
    prctl::set_no_new_privs().map_err(|error| left("the right to new privileges", &error))?;
    if user == "root" {
        return Ok(name_of(geteuid()));
    }
    let Some(known) = User::from_name(user).map_err(|error| left("root", &error))? else {
        return Err(Failure::Environment(format!(
            "unknown user `{user}`: choose another one with --user, or keep root with --user root"
        ))
        .into());
    };
    for capability in CapabilitySet::all().iter() {
        match remove_capability_from_bounding_set(capability) {
            // An older kernel does not know all; without CAP_SETPCAP there is nothing that could be got.
            Ok(()) | Err(rustix::io::Errno::INVAL | rustix::io::Errno::PERM) => {}
            Err(error) => return Err(left("capabilities", &error).into()),
        }
    }
    if geteuid().is_root() {
        match become_user(known.uid, known.gid) {
            // In a namespace that has no such user, root is an ordinary user outside.
            Ok(()) | Err(Errno::EINVAL | Errno::EPERM) => {}
            Err(error) => return Err(left("root", &error).into()),
        }
    }
    // Root of a user namespace has them still.
    let _ = clear_ambient_capability_set();
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|error| left("capabilities", &error))?;
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
