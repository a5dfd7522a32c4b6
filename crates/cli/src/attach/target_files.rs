//! Files in the mount namespace of the JVM.
//!
//! All paths begin at descriptors of the namespace's root and of its /tmp, and symbolic links in them stay
//! below that root: the target may not direct the command to files outside.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::error::AttachError;
use super::process::JvmProcess;

/// openat2(2): absolute paths and links begin at the directory that the call names.
const RESOLVE_IN_ROOT: u64 = 0x10;

/// The files of the JVM's mount namespace.
#[derive(Debug)]
pub(super) struct TargetFiles {
    pid: u32,
    root: OwnedFd,
    tmp: Rc<OwnedFd>,
}

impl TargetFiles {
    /// Opens the root and the /tmp of the process's mount namespace.
    pub(super) fn open(process: &JvmProcess) -> Result<Self, AttachError> {
        let pid = process.pid;
        let flags = libc::O_PATH | libc::O_DIRECTORY;
        let root = open_at(None, OsStr::new(&format!("/proc/{pid}/root")), flags, 0)
            .map_err(|error| AttachError::of_proc(pid, error))?;
        let tmp =
            open_in_root(&root, Path::new("/tmp"), flags).map_err(|error| AttachError::Tmp { pid, error })?;
        Ok(Self { pid, root, tmp: Rc::new(tmp) })
    }

    /// Opens a regular file of the namespace for reading. Another file, which could block, is an error.
    pub(super) fn read(&self, path: &Path) -> io::Result<File> {
        let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_NOCTTY;
        let file = File::from(open_in_root(&self.root, path, flags)?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    /// A path to a file in /tmp, by which this process reaches it. Short enough for a socket's address.
    pub(super) fn path_in_tmp(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}/{name}", self.tmp.as_raw_fd()))
    }

    /// Whether programs in /tmp can be executed, and libraries loaded.
    pub(super) fn tmp_is_noexec(&self) -> bool {
        self.tmp_flags() & libc::ST_NOEXEC != 0
    }

    /// Fails if nothing can be written to /tmp.
    pub(super) fn check_tmp(&self) -> Result<(), AttachError> {
        if self.tmp_flags() & libc::ST_RDONLY != 0 {
            return Err(AttachError::TmpReadOnly(self.pid));
        }
        Ok(())
    }

    fn tmp_flags(&self) -> libc::c_ulong {
        let mut flags = MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the descriptor is open, and the kernel fills the structure if it returns 0.
        match unsafe { libc::fstatvfs(self.tmp.as_raw_fd(), flags.as_mut_ptr()) } {
            // SAFETY: the kernel has filled the structure.
            0 => unsafe { flags.assume_init() }.f_flag,
            _ => 0,
        }
    }

    /// Creates a file in /tmp that did not exist. It is removed with the returned name.
    pub(super) fn create(&self, name: &str, mode: libc::mode_t) -> io::Result<(File, TemporaryName)> {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_NOFOLLOW;
        let file = open_at(Some(&self.tmp), OsStr::new(name), flags, mode)?;
        Ok((file.into(), self.remove_later(name)))
    }

    /// Creates a folder in /tmp that only this user may access. It is removed with the returned value.
    pub(super) fn create_folder(&self, name: &str) -> io::Result<TemporaryFolder> {
        let path = CString::new(name)?;
        // SAFETY: the descriptor is open, and the name is a C string.
        if unsafe { libc::mkdirat(self.tmp.as_raw_fd(), path.as_ptr(), 0o700) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let folder = open_at(Some(&self.tmp), OsStr::new(name), flags, 0)?;
        Ok(TemporaryFolder { parent: self.tmp.clone(), name: path, folder, files: Vec::new() })
    }

    /// Whether the JVM sees this very folder under its path.
    pub(super) fn sees_folder(&self, path: &Path) -> bool {
        let seen = open_in_root(&self.root, path, libc::O_PATH | libc::O_DIRECTORY);
        let (Ok(seen), Ok(own)) = (seen.map(File::from).and_then(|file| file.metadata()), path.metadata())
        else {
            return false;
        };
        (seen.ino(), seen.dev()) == (own.ino(), own.dev())
    }

    /// A name in /tmp that is removed when the value is dropped.
    pub(super) fn remove_later(&self, name: &str) -> TemporaryName {
        TemporaryName { folder: self.tmp.clone(), name: name.to_owned(), is_kept: false }
    }

    /// The error of a call that creates something in /tmp.
    pub(super) fn tmp_error(&self, error: io::Error) -> AttachError {
        match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => AttachError::TmpFull(self.pid),
            Some(libc::EROFS) => AttachError::TmpReadOnly(self.pid),
            _ => AttachError::Tmp { pid: self.pid, error },
        }
    }
}

/// A name in the target's /tmp that is removed with this value.
#[derive(Debug)]
pub(super) struct TemporaryName {
    folder: Rc<OwnedFd>,
    name: String,
    is_kept: bool,
}

impl TemporaryName {
    /// Whether the file stays when this value is dropped.
    pub(super) fn keep(&mut self, is_kept: bool) {
        self.is_kept = is_kept;
    }
}

impl Drop for TemporaryName {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // SANITY: the names are made of digits, letters and punctuation.
        let name = CString::new(&*self.name).expect("no zero");
        // SAFETY: the descriptor is open, and the name is a C string.
        unsafe { libc::unlinkat(self.folder.as_raw_fd(), name.as_ptr(), 0) };
    }
}

/// A folder in the target's /tmp that is removed with this value, together with its files.
#[derive(Debug)]
pub(super) struct TemporaryFolder {
    parent: Rc<OwnedFd>,
    name: CString,
    folder: OwnedFd,
    files: Vec<CString>,
}

impl TemporaryFolder {
    /// Creates an empty file that can be read and written.
    pub(super) fn create(&mut self, name: &str, mode: libc::mode_t) -> io::Result<File> {
        let flags = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW;
        let file = open_at(Some(&self.folder), OsStr::new(name), flags, mode)?;
        self.files.push(CString::new(name)?);
        Ok(file.into())
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        /// A process that still writes may create a file once more before the folder is gone.
        const ATTEMPTS: u32 = 100;
        for _ in 0..ATTEMPTS {
            for file in &self.files {
                // SAFETY: the descriptor is open, and the name is a C string.
                unsafe { libc::unlinkat(self.folder.as_raw_fd(), file.as_ptr(), 0) };
            }
            let (parent, flag) = (self.parent.as_raw_fd(), libc::AT_REMOVEDIR);
            // SAFETY: the descriptor is open, and the name is a C string.
            let removed = unsafe { libc::unlinkat(parent, self.name.as_ptr(), flag) };
            if removed == 0 || io::Error::last_os_error().raw_os_error() != Some(libc::ENOTEMPTY) {
                return;
            }
        }
    }
}

/// Sixteen random hexadecimal digits, which other users cannot guess.
pub(super) fn random_name() -> io::Result<String> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{:016x}", u64::from_ne_bytes(bytes)))
}

/// The inode of an open file.
pub(super) fn inode(file: &File) -> io::Result<u64> {
    file.metadata().map(|metadata| metadata.ino())
}

fn open_at(folder: Option<&OwnedFd>, path: &OsStr, flags: i32, mode: libc::mode_t) -> io::Result<OwnedFd> {
    let path = CString::new(path.as_bytes())?;
    let folder = folder.map_or(libc::AT_FDCWD, |folder| folder.as_raw_fd());
    // SAFETY: the folder is open or the working directory, and the path is a C string.
    let descriptor = unsafe { libc::openat(folder, path.as_ptr(), flags | libc::O_CLOEXEC, mode) };
    owned(descriptor.into())
}

/// Opens a path as a process would whose root is this folder.
fn open_in_root(root: &OwnedFd, path: &Path, flags: i32) -> io::Result<OwnedFd> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the structure consists of integers, so zeros are a valid value.
    let mut how: libc::open_how = unsafe { std::mem::zeroed() };
    how.flags = (flags | libc::O_CLOEXEC) as u64;
    how.resolve = RESOLVE_IN_ROOT;
    // SAFETY: the folder is open, the path is a C string, and the length is the size of the structure.
    let descriptor = unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            name.as_ptr(),
            &raw const how,
            size_of::<libc::open_how>(),
        )
    };
    match owned(descriptor) {
        // Kernels before 5.6, and filters of system calls that do not know the call.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM)) => {
            let below = path.strip_prefix("/").unwrap_or(path);
            open_at(Some(root), below.as_os_str(), flags, 0)
        }
        opened => opened,
    }
}

fn owned(descriptor: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(descriptor) {
        // SAFETY: the descriptor was just opened, and nobody else has it.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}
