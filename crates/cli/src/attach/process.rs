//! The process of a JVM: what /proc says of it, and signals to it.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use super::access;
use super::account_names::user_name;
use super::error::AttachError;
use super::status::Status;

/// A process that has the JVM's library mapped.
#[derive(Debug)]
pub(super) struct JvmProcess {
    /// The process's id as this command sees it.
    pub(super) pid: u32,
    /// The process's id in its own namespace.
    pub(super) own_pid: u32,
    /// The effective user and group.
    pub(super) uid: libc::uid_t,
    pub(super) gid: libc::gid_t,
    /// The mapped files that matter.
    pub(super) maps: Maps,
    /// Whether the JVM was started with its attach mechanism off. SIGQUIT would make it print its threads.
    pub(super) has_attach_disabled: bool,
    /// Refers to this very process even if its id is used again. `None` on kernels without such descriptors.
    descriptor: Option<OwnedFd>,
}

/// Mapped files, from /proc/PID/maps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Maps {
    /// The JVM's library.
    pub(super) libjvm: Option<MappedFile>,
    /// The agent.
    pub(super) agent: Option<MappedFile>,
    /// Whether the C library is musl.
    pub(super) has_musl: bool,
    /// Whether the JVM is Eclipse OpenJ9. Its libjvm.so passes calls on to the library of the VM.
    is_openj9: bool,
}

/// A mapped file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MappedFile {
    /// The path in the process's own namespace.
    pub(super) path: PathBuf,
    pub(super) inode: u64,
}

impl JvmProcess {
    /// Finds the process. Sends no signal.
    pub(super) fn find(pid: u32) -> Result<Self, AttachError> {
        check_proc()?;
        let descriptor = open_descriptor(pid);
        let status = Status::of(pid)?;
        if status.process != pid {
            return Err(AttachError::Thread { id: pid, process: status.process });
        }
        if matches!(status.state, 'Z' | 'X') {
            return Err(AttachError::Ended(pid));
        }
        let maps = Maps::of(pid).map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied => access::refusal(pid, &status),
            io::ErrorKind::NotFound => AttachError::NoProcess(pid),
            _ if error.raw_os_error() == Some(libc::ESRCH) => AttachError::Ended(pid),
            _ => AttachError::Proc { pid, error },
        })?;
        if maps.libjvm.is_none() {
            return Err(AttachError::NoJvm(pid));
        }
        if maps.is_openj9 {
            return Err(AttachError::OpenJ9(pid));
        }
        if !access::may_command(status.uid) {
            return Err(AttachError::OtherUser { pid, user: user_name(status.uid) });
        }
        let Status { own_pid, uid, gid, .. } = status;
        // Read now: as the JVM's user, the command may no longer be permitted to.
        let has_attach_disabled = is_attach_disabled(pid);
        Ok(Self { pid, own_pid, uid, gid, maps, has_attach_disabled, descriptor })
    }

    /// Whether the process has ended.
    pub(super) fn has_ended(&self) -> bool {
        Status::of(self.pid).map_or(true, |status| matches!(status.state, 'Z' | 'X'))
    }

    /// Fails if the process is stopped: nothing in it would answer.
    pub(super) fn check_running(&self) -> Result<(), AttachError> {
        match Status::of(self.pid)?.state {
            'T' | 't' => Err(AttachError::Stopped(self.pid)),
            'Z' | 'X' => Err(AttachError::Ended(self.pid)),
            _ => Ok(()),
        }
    }

    /// Makes the JVM look for the file that requests its attach listener. Sends no signal unless the process
    /// catches it: it would end the process.
    pub(super) fn send_quit(&self) -> Result<(), AttachError> {
        if !Status::of(self.pid)?.catches(libc::SIGQUIT) {
            return Err(AttachError::QuitNotCaught(self.pid));
        }
        let sent = match &self.descriptor {
            // SAFETY: the descriptor is open, and the null pointer means a signal as kill(2) sends it.
            Some(descriptor) => unsafe {
                libc::syscall(
                    libc::SYS_pidfd_send_signal,
                    descriptor.as_raw_fd(),
                    libc::SIGQUIT,
                    std::ptr::null::<libc::siginfo_t>(),
                    0,
                )
            },
            // SAFETY: the call accesses no memory.
            None => unsafe { libc::kill(self.pid.cast_signed(), libc::SIGQUIT) }.into(),
        };
        if sent == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ESRCH) => Err(AttachError::Ended(self.pid)),
            Some(libc::EPERM) => Err(AttachError::OtherUser { pid: self.pid, user: user_name(self.uid) }),
            _ => Err(AttachError::Proc { pid: self.pid, error }),
        }
    }

    /// Reads the mapped files once more.
    pub(super) fn reload_maps(&mut self) {
        if let Ok(maps) = Maps::of(self.pid) {
            self.maps = maps;
        }
    }
}

/// Whether a JVM's attach mechanism is off, by its arguments and variables.
fn is_attach_disabled(pid: u32) -> bool {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let environment = read("environ");
    let of_variable = |name: &str| {
        let variables = environment.split(|byte| *byte == 0);
        let values = variables.filter_map(|variable| variable.strip_prefix(name.as_bytes())).next_back();
        values.unwrap_or_default().split(u8::is_ascii_whitespace).map(<[u8]>::to_vec).collect::<Vec<_>>()
    };
    // The JVM reads them in this order, and later ones win (java(1)).
    let words = [of_variable("JAVA_TOOL_OPTIONS="), of_variable("JDK_JAVA_OPTIONS=")].concat();
    let arguments = read("cmdline").split(|byte| *byte == 0).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let words = [words, arguments, of_variable("_JAVA_OPTIONS=")].concat();
    is_on(words.iter().map(Vec::as_slice), b"DisableAttachMechanism")
}

/// Whether the last setting of a flag turns it on.
fn is_on<'a>(words: impl DoubleEndedIterator<Item = &'a [u8]>, flag: &[u8]) -> bool {
    let setting = |word: &'a [u8]| {
        let (sign, name) = word.strip_prefix(b"-XX:")?.split_first()?;
        (name == flag && matches!(sign, b'+' | b'-')).then_some(*sign == b'+')
    };
    words.rev().find_map(setting).unwrap_or(false)
}

/// Fails if /proc has the ids of another PID namespace: signals would reach other processes.
fn check_proc() -> Result<(), AttachError> {
    let own = fs::read_link("/proc/self").ok();
    let is_same = own.is_some_and(|own| own == Path::new(&std::process::id().to_string()));
    if is_same { Ok(()) } else { Err(AttachError::ForeignProc) }
}

fn open_descriptor(pid: u32) -> Option<OwnedFd> {
    // SAFETY: the call accesses no memory.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let descriptor = i32::try_from(descriptor).ok().filter(|descriptor| *descriptor >= 0)?;
    // SAFETY: the descriptor was just opened, and nobody else has it.
    Some(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

impl Maps {
    pub(super) fn of(pid: u32) -> io::Result<Self> {
        let root = fs::read_link(format!("/proc/{pid}/root")).unwrap_or_else(|_| "/".into());
        fs::read(format!("/proc/{pid}/maps")).map(|maps| Self::parse(&maps, &root))
    }

    /// Parses lines of `START-END PERMISSIONS OFFSET DEVICE INODE PATH` (proc_pid_maps(5)). The paths there
    /// begin at the root of the mount namespace. `root` is the process's root in that namespace, which is
    /// another one after chroot(2).
    fn parse(maps: &[u8], root: &Path) -> Self {
        let mut found = Self::default();
        for line in maps.split(|byte| *byte == b'\n') {
            let Some(mut file) = MappedFile::parse(line) else { continue };
            if let Ok(below_root) = file.path.strip_prefix(root) {
                file.path = Path::new("/").join(below_root);
            }
            let name = file.path.file_name().unwrap_or_default().as_bytes();
            found.has_musl |= name.starts_with(b"ld-musl-");
            found.is_openj9 |= name.starts_with(b"libj9vm");
            if name == b"libjvm.so" {
                found.libjvm.get_or_insert(file);
            } else if is_agent(name) {
                found.agent.get_or_insert(file);
            }
        }
        found
    }
}

/// Whether a file of this name is the agent: `libotlpprof.so`, a copy in /tmp (`libotlpprof-….so`), or the
/// file that the jar of the Java API unpacks (`otlpprof-….so`).
fn is_agent(name: &[u8]) -> bool {
    name.strip_prefix(b"lib").unwrap_or(name).starts_with(b"otlpprof") && name.ends_with(b".so")
}

impl MappedFile {
    fn parse(line: &[u8]) -> Option<Self> {
        let path = line.iter().position(|byte| *byte == b'/')?;
        let inode = std::str::from_utf8(&line[..path]).ok()?.split_whitespace().nth(4)?.parse().ok()?;
        let path = &line[path..];
        let path = path.strip_suffix(b" (deleted)").unwrap_or(path);
        Some(Self { path: Path::new(OsStr::from_bytes(path)).to_owned(), inode })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_name_the_jvm_the_agent_and_the_c_library() {
        let maps = b"55e0-55e1 r-xp 00000000 08:01 11 /jdk/bin/java\n\
                     7f00-7f01 rw-p 00000000 00:00 0 \n\
                     7f10-7f20 r-xp 00000000 08:01 12 /my jdk/lib/server/libjvm.so\n\
                     7f30-7f40 r-xp 00000000 08:01 13 /tmp/libotlpprof-12ab-0f.so (deleted)\n\
                     7f50-7f60 r-xp 00000000 08:01 14 /lib/ld-linux-x86-64.so.2\n\
                     7ff0-7ff1 rw-p 00000000 00:00 0 [stack]\n";
        let file = |path: &str, inode| Some(MappedFile { path: path.into(), inode });
        let parsed = Maps::parse(maps, Path::new("/"));
        assert_eq!(parsed.libjvm, file("/my jdk/lib/server/libjvm.so", 12));
        assert_eq!(parsed.agent, file("/tmp/libotlpprof-12ab-0f.so", 13));
        assert!(!parsed.has_musl);
        let musl = b"1-2 r-xp 00000000 08:01 14 /lib/ld-musl-x86_64.so.1\n";
        assert!(Maps::parse(musl, Path::new("/")).has_musl);
        assert_eq!(Maps::parse(b"", Path::new("/")), Maps::default());
    }

    #[test]
    fn the_agent_has_three_kinds_of_names() {
        for name in ["libotlpprof.so", "libotlpprof-12ab-0f.so", "otlpprof-4711.so"] {
            assert!(is_agent(name.as_bytes()), "{name}");
        }
        for name in ["otlpprof", "libotlpprof.so.debug", "libjvm.so"] {
            assert!(!is_agent(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn paths_of_a_process_with_a_root_of_its_own_begin_there() {
        let maps = b"7f10-7f20 r-xp 00000000 08:01 12 /srv/jail/jdk/lib/server/libjvm.so\n\
                     7f30-7f40 r-xp 00000000 08:01 13 /srv/jailed/libotlpprof.so\n";
        let parsed = Maps::parse(maps, Path::new("/srv/jail"));
        let path = |file: Option<MappedFile>| file.unwrap().path;
        assert_eq!(path(parsed.libjvm), Path::new("/jdk/lib/server/libjvm.so"));
        assert_eq!(path(parsed.agent), Path::new("/srv/jailed/libotlpprof.so"));
    }

    #[test]
    fn the_last_setting_of_a_flag_counts() {
        let disabled =
            |words: &[&str]| is_on(words.iter().map(|word| word.as_bytes()), b"DisableAttachMechanism");
        assert!(disabled(&["java", "-XX:+DisableAttachMechanism", "Main"]));
        assert!(!disabled(&["-XX:+DisableAttachMechanism", "-XX:-DisableAttachMechanism"]));
        assert!(!disabled(&["java", "Main", "+DisableAttachMechanism"]));
    }
}
