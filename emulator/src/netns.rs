//! Network namespaces that are always removed, even if their process is killed.
//!
//! A namespace is bind-mounted under /run/netns, so `ip netns exec NAME tcpdump …` works. Its name contains
//! the pid of its owner, and the owner locks it. The next `sweep` removes namespaces without a living owner.
//! The pid alone does not identify the owner: it may belong to another PID namespace, as in a container that
//! shares /run/netns.

#![expect(clippy::disallowed_methods, reason = "removing a namespace gives its processes a moment to end")]

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::{Pid, getegid, geteuid};

use crate::interface;

/// Directory of named namespaces, as in iproute2.
const RUN_NETNS: &str = "/run/netns";
const PREFIX: &str = "airtcp-";
/// Network namespace of the calling thread.
const CURRENT: &str = "/proc/thread-self/ns/net";

/// Reason why a namespace cannot be created or entered. Each message contains the remedy.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// The name or path does not exist.
    #[error("unknown network namespace {}: create it with `ip netns add NAME`, or give a path such as /proc/PID/ns/net", .0.display())]
    NotFound(PathBuf),
    /// The process does not have the privileges for this operation, a verb with its object.
    #[error("not allowed to {0}: run as root, or inside `unshare --user --map-root-user --net --mount`")]
    NotPermitted(String),
    /// The path exists, but is not a namespace.
    #[error("{} is not a network namespace", .0.display())]
    NotANamespace(PathBuf),
    /// Any other error of the kernel.
    #[error("cannot {what}: {source}")]
    Failed {
        /// The failed operation, as a verb with its object.
        what: String,
        /// Error of the kernel.
        source: io::Error,
    },
}

impl NamespaceError {
    fn new(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::NotPermitted(what),
            _ => Self::Failed { what, source },
        }
    }
}

/// A namespace that this process owns. Dropping it ends the processes inside and removes it.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    path: PathBuf,
    /// The namespace itself, locked while its owner exists.
    _alive: Option<Flock<File>>,
}

impl Namespace {
    /// Creates an empty namespace with `lo` up, named `airtcp-PID-N`.
    pub fn create() -> Result<Self, NamespaceError> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(RUN_NETNS).join(&name);
        // Hold the directory's lock until the namespace is locked, so that a sweep does not remove it.
        let _directory = prepare_run_netns()
            .map_err(|source| NamespaceError::new(format!("prepare {RUN_NETNS}"), source))?;
        File::create(&path)
            .map_err(|source| NamespaceError::new(format!("create {}", path.display()), source))?;
        // From here on, the guard removes the file after any error.
        let mut namespace = Self { name, path, _alive: None };
        namespace._alive = Some(in_new_thread(|| {
            new_network()?;
            mount(Some(CURRENT), &namespace.path, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(
                |errno| {
                    NamespaceError::new(format!("mount a namespace at {}", namespace.path.display()), errno)
                },
            )?;
            let own = File::open(CURRENT)
                .map_err(|source| NamespaceError::new(format!("open {CURRENT}"), source))?;
            Flock::lock(own, FlockArg::LockExclusiveNonblock)
                .map_err(|(_, errno)| NamespaceError::new("lock a new namespace", errno))
        })?);
        Ok(namespace)
    }

    /// Name for `ip netns`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Path of the mount.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs `f` inside. Sockets and devices that it opens stay in the namespace.
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        enter(&self.path, f)
    }

    /// Starts a program inside. It is killed when the namespace is dropped.
    pub fn spawn(&self, command: &mut Command) -> Result<Child, NamespaceError> {
        let program = command.get_program().to_string_lossy().into_owned();
        self.enter(|| {
            // A child inherits the blocked signals of the thread that starts it. Unblock them, so that
            // signals can end it.
            SigSet::all().thread_unblock().map_err(io::Error::from)?;
            command.spawn()
        })?
        .map_err(|source| NamespaceError::new(format!("start {program} (is it installed?)"), source))
    }

    /// Sets a sysctl inside, such as `net.ipv4.tcp_sack` to `0`.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), NamespaceError> {
        let path = Path::new("/proc/sys").join(key.replace('.', "/"));
        self.enter(|| fs::write(&path, value))?
            .map_err(|source| NamespaceError::new(format!("set {key} to `{value}`"), source))
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            tracing::warn!(
                "cannot remove the namespace {}: {error}; remove it with `ip netns del {}`",
                self.name,
                self.name
            );
        }
    }
}

/// A namespace without a name. The kernel removes it when this value and all processes and devices inside are
/// gone.
#[derive(Debug)]
pub struct Anonymous(File);

impl Anonymous {
    /// Creates an empty namespace with `lo` up.
    pub fn create() -> Result<Self, NamespaceError> {
        in_new_thread(|| {
            new_network()?;
            Self::current()
        })
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Self, NamespaceError> {
        File::open(CURRENT).map(Self).map_err(|source| NamespaceError::new(format!("open {CURRENT}"), source))
    }

    /// A path that is valid only in this process. It contains `self` instead of the pid, because /proc may
    /// belong to an outer PID namespace, in which this process has another pid.
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// See [`Namespace::enter`].
    pub fn enter<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        enter(&self.path(), f)
    }

    /// Enables forwarding between the devices of the namespace.
    pub fn forward_packets(&self) -> Result<(), NamespaceError> {
        self.enter(|| {
            // For IPv6, `all` decides. A device whose own setting is on also sends a report that it joined
            // the all-routers multicast group. To avoid this packet, the default for new devices stays off.
            let settings = [
                ("ipv4/ip_forward", "1"),
                ("ipv6/conf/all/forwarding", "1"),
                ("ipv6/conf/default/forwarding", "0"),
            ];
            for (key, value) in settings {
                let path = Path::new("/proc/sys/net").join(key);
                if key.starts_with("ipv6") && !interface::has_ipv6() {
                    continue;
                }
                fs::write(&path, value)
                    .map_err(|source| NamespaceError::new(format!("write {}", path.display()), source))?;
            }
            Ok(())
        })?
    }
}

impl AsFd for Anonymous {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Makes the calling process root of a new user namespace, so that an ordinary user can create network
/// namespaces and devices. The process must not have other threads yet.
pub fn become_root_inside() -> Result<(), NamespaceError> {
    let (uid, gid) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)
        .map_err(|errno| NamespaceError::new("create a user namespace", errno))?;
    // An ordinary user must give up setgroups before mapping a group (user_namespaces(7)).
    let maps = [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("0 {uid} 1")),
        ("gid_map", format!("0 {gid} 1")),
    ];
    for (file, text) in maps {
        let path = Path::new("/proc/self").join(file);
        fs::write(&path, text)
            .map_err(|source| NamespaceError::new(format!("write {}", path.display()), source))?;
    }
    Ok(())
}

/// Runs `f` in the namespace with this name under /run/netns, or with this path.
///
/// `f` runs in its own thread, so the caller stays in its namespace.
pub fn enter<T: Send>(name_or_path: &Path, f: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    let file = open(name_or_path)?;
    in_new_thread(|| {
        setns(&file, CloneFlags::CLONE_NEWNET).map_err(|errno| match errno {
            Errno::EINVAL => NamespaceError::NotANamespace(name_or_path.to_path_buf()),
            _ => NamespaceError::new(format!("enter {}", name_or_path.display()), errno),
        })?;
        Ok(f())
    })
}

/// Removes the namespaces whose owner has ended, and ends the processes inside. Returns the names of the
/// namespaces.
pub fn sweep() -> Vec<String> {
    // Without the lock, another process might just be creating a namespace.
    let directory = lock_run_netns();
    let (Ok(_directory), Ok(entries)) = (directory, fs::read_dir(RUN_NETNS)) else {
        return Vec::new();
    };
    let mut removed = Vec::new();
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(owner) = owner(&name) else { continue };
        if Path::new("/proc").join(owner.to_string()).exists() || is_locked(&entry.path()) {
            continue;
        }
        match remove(&entry.path()) {
            Ok(()) => removed.push(name),
            Err(error) => tracing::warn!("cannot remove namespace {name} of a process that died: {error}"),
        }
    }
    removed
}

/// Turns the directory into a shared mount, exactly as `ip netns add` does.
///
/// Otherwise the first `ip netns add` of another process would turn the directory into a shared mount later.
/// That mount would contain copies of our mounts and hide the originals, so that we could not remove our
/// mounts.
fn prepare_run_netns() -> io::Result<Flock<File>> {
    fs::create_dir_all(RUN_NETNS)?;
    // Two processes at the same time would stack two mounts. `ip` takes the same lock.
    let lock = lock_run_netns()?;
    let share =
        || mount(None::<&str>, RUN_NETNS, None::<&str>, MsFlags::MS_SHARED | MsFlags::MS_REC, None::<&str>);
    match share() {
        // Not a mount point yet.
        Err(Errno::EINVAL) => {
            let bind = MsFlags::MS_BIND | MsFlags::MS_REC;
            mount(Some(RUN_NETNS), RUN_NETNS, None::<&str>, bind, None::<&str>)?;
            share()?;
        }
        result => result?,
    }
    Ok(lock)
}

fn lock_run_netns() -> io::Result<Flock<File>> {
    Ok(Flock::lock(File::open(RUN_NETNS)?, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?)
}

/// Whether a living process, in any PID namespace, holds the lock of the namespace. The lock belongs to the
/// namespace, so it is the same at every path where that is mounted.
fn is_locked(path: &Path) -> bool {
    let attempt = File::open(path).map(|file| Flock::lock(file, FlockArg::LockExclusiveNonblock));
    matches!(attempt, Ok(Err((_, Errno::EWOULDBLOCK))))
}

/// Moves the calling thread to a new, empty namespace.
fn new_network() -> Result<(), NamespaceError> {
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|errno| NamespaceError::new("create a network namespace", errno))?;
    // A new namespace may inherit settings that disable IPv6 (net.core.devconf_inherit_init_net).
    interface::enable_ipv6();
    interface::loopback_up().map_err(|source| NamespaceError::new("bring lo up", source))
}

/// The pid in `airtcp-PID-N`.
fn owner(name: &str) -> Option<u32> {
    let (pid, number) = name.strip_prefix(PREFIX)?.split_once('-')?;
    number.parse::<u32>().ok()?;
    pid.parse().ok()
}

fn open(name_or_path: &Path) -> Result<File, NamespaceError> {
    // `join` returns an absolute path unchanged. A bare name is only searched under /run/netns.
    let path = Path::new(RUN_NETNS).join(name_or_path);
    File::open(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => NamespaceError::NotFound(name_or_path.to_path_buf()),
        _ => NamespaceError::new(format!("open {}", path.display()), source),
    })
}

/// Runs `f` in a new thread. Each thread has its own namespace membership, which ends with the thread.
fn in_new_thread<T: Send>(f: impl FnOnce() -> Result<T, NamespaceError> + Send) -> Result<T, NamespaceError> {
    thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("netns".to_owned())
            .spawn_scoped(scope, f)
            .map_err(|source| NamespaceError::new("start a thread", source))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn remove(path: &Path) -> io::Result<()> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        // Send SIGTERM first, so that a tcpdump inside can write out its buffer.
        for _ in 0..20 {
            let inside = processes_inside(path);
            if inside.is_empty() {
                break;
            }
            for pid in inside {
                // The process may have ended meanwhile.
                let _ = kill(pid, signal);
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
    match umount2(path, MntFlags::MNT_DETACH) {
        // Not mounted, because its creation failed early.
        Ok(()) | Err(Errno::EINVAL) => {}
        Err(errno) => return Err(errno.into()),
    }
    fs::remove_file(path)
}

/// All processes in the namespace, except this one.
fn processes_inside(path: &Path) -> Vec<Pid> {
    // Device and inode identify a namespace. An unmounted one is a plain file, which does not match any
    // process.
    let id = |path: &Path| fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()));
    let Some(namespace) = id(path) else {
        return Vec::new();
    };
    if id(Path::new("/proc/self/ns/net")) == Some(namespace) {
        return Vec::new();
    }
    // If /proc belongs to an outer PID namespace, its pids are not valid for `kill`.
    let own = PathBuf::from(std::process::id().to_string());
    if !fs::read_link("/proc/self").is_ok_and(|number| number == own) {
        return Vec::new();
    }
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| *pid as u32 != std::process::id())
        .filter(|pid| id(&PathBuf::from(format!("/proc/{pid}/ns/net"))) == Some(namespace))
        .map(Pid::from_raw)
        .collect()
}

/// Creates a namespace for a test. The test fails without root, because a skipped test would hide errors.
#[cfg(test)]
pub(crate) fn test_namespace() -> Namespace {
    Namespace::create()
        .unwrap_or_else(|error| panic!("this test needs root to create a network namespace: {error}"))
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::{test_namespace as create, *};

    #[test]
    fn namespace_isolates_loopback_and_drop_ends_its_processes() {
        let namespace = create();
        let (name, path) = (namespace.name().to_owned(), namespace.path().to_path_buf());
        let listener = namespace.enter(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let addr = listener.local_addr().unwrap();
        assert!(
            namespace.enter(|| TcpStream::connect(addr)).unwrap().is_ok(),
            "the loopback device inside the namespace is up"
        );
        assert!(TcpStream::connect(addr).is_err(), "the loopback device inside is not the one outside");

        let mut child = namespace.spawn(Command::new("sleep").arg("1000")).unwrap();
        assert_eq!(processes_inside(&path), [Pid::from_raw(child.id() as i32)]);
        drop(namespace);
        assert!(!child.wait().unwrap().success(), "the child was killed");
        assert!(!path.exists());
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
        assert!(!mounts.contains(&name));
    }

    #[test]
    fn anonymous_namespace_isolates_loopback_and_settings() {
        let namespace = Anonymous::create().unwrap();
        let listener = namespace.enter(|| TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        let addr = listener.local_addr().unwrap();
        assert!(namespace.enter(|| TcpStream::connect(addr)).unwrap().is_ok());
        assert!(TcpStream::connect(addr).is_err());
        namespace.forward_packets().unwrap();
        let forwards = || fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap();
        assert_eq!(namespace.enter(forwards).unwrap(), "1\n");
    }

    #[test]
    fn sysctl_applies_only_inside_namespace() {
        let namespace = create();
        let read = || fs::read_to_string("/proc/sys/net/ipv4/tcp_reordering").unwrap();
        let outside = read();
        namespace.sysctl("net.ipv4.tcp_reordering", "17").unwrap();
        assert_eq!(namespace.enter(read).unwrap(), "17\n");
        assert_eq!(read(), outside);
        let error = namespace.sysctl("net.ipv4.no_such_knob", "1").unwrap_err();
        assert!(error.to_string().contains("net.ipv4.no_such_knob"), "{error}");
    }

    /// Renames a namespace as if an invisible process owned it. The kernel's largest pid is 2^22.
    fn rename(mut namespace: Namespace, number: u32) -> Namespace {
        let name = format!("{PREFIX}{}-{number}", (1 << 22) + std::process::id());
        let path = Path::new(RUN_NETNS).join(&name);
        {
            let _directory = lock_run_netns().unwrap();
            File::create(&path).unwrap();
            mount(Some(&namespace.path), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).unwrap();
        }
        umount2(&namespace.path, MntFlags::MNT_DETACH).unwrap();
        fs::remove_file(&namespace.path).unwrap();
        (namespace.name, namespace.path) = (name, path);
        namespace
    }

    #[test]
    fn sweep_removes_only_namespaces_of_dead_processes() {
        let living = create();
        let elsewhere = rename(create(), 0);
        let mut dead = rename(create(), 1);
        dead._alive = None;
        let mut child = dead.spawn(Command::new("sleep").arg("1000")).unwrap();

        // The sweep of another test may already have removed it.
        sweep();
        assert!(!dead.path.exists() && living.path.exists());
        assert!(elsewhere.path.exists(), "the owner is alive, in a PID namespace that hides its PID");
        assert!(!child.wait().unwrap().success());
        std::mem::forget(dead);
    }

    #[test]
    fn netns_directory_is_mounted_once_and_shared() {
        let _namespace = create();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let stacked: Vec<_> =
            mounts.lines().filter(|line| line.split(' ').nth(4) == Some(RUN_NETNS)).collect();
        assert_eq!(stacked.len(), 1, "{stacked:?}");
        assert!(stacked[0].contains(" shared:"), "{stacked:?}");
    }

    #[test]
    fn namespace_names_of_other_programs_have_no_owner() {
        assert_eq!(owner("airtcp-12-0"), Some(12));
        for name in ["airtcp-12", "airtcp-x-0", "airtcp-12-x", "other-12-0", "lab"] {
            assert_eq!(owner(name), None, "{name}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let missing = enter(Path::new("no-such-namespace"), || ()).unwrap_err();
        assert!(missing.to_string().contains("ip netns add"), "{missing}");
        let file = enter(Path::new("/proc/self/status"), || ()).unwrap_err();
        assert!(matches!(file, NamespaceError::NotANamespace(_)), "{file}");
    }
}
