//! The folder that the JVM records to: the agent marks it as its own, and removes folders that killed JVMs
//! left behind.
//!
//! A JVM that ends removes its repository; a killed one does not. When a recording starts, folders next to
//! its repository are checked. Such a folder is removed only if all of this holds:
//!
//! - Its name has the JDK's form (`jdk.jfr.internal.Repository`), it belongs to this user, and it is no
//!   symbolic link.
//! - It has the agent's mark. The mark says that no other recording of that JVM had files in the folder, as
//!   of the last check of the JVM's recordings, at most a second before the JVM's end.
//! - No process holds the lock of the mark. The kernel releases a lock (`flock(2)`) when the process that
//!   took it ends. Process ids are not used for this, since they are reused and differ between PID
//!   namespaces.
//! - The mark was made since this machine started. The lock of a process on another machine may not be
//!   visible here.
//!
//! Files that are neither recordings nor the mark stay, and the folder stays with them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::dir::Dir;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use nix::unistd::{Uid, UnlinkatFlags, unlinkat};

/// The file that marks a repository as the agent's. It contains the boot id of the machine.
const MARK: &str = "otlpprof.mark";

/// The name of the mark before it is locked.
const UNLOCKED_MARK: &str = "otlpprof.mark.new";

/// The suffixes of recordings. JDK 11 has a file with the second one next to each recording that it has not
/// finished (`RepositoryChunk`).
const RECORDED: [&str; 2] = [".jfr", ".part"];

/// A repository's mark. Dropping this value removes the mark.
#[derive(Debug)]
pub(super) struct Mark {
    path: PathBuf,
    /// Holds the lock.
    _file: File,
}

impl Mark {
    /// Marks a repository of this process.
    ///
    /// # Errors
    /// If the mark cannot be created or locked.
    pub(super) fn new(repository: &Path) -> io::Result<Self> {
        let (unlocked, path) = (repository.join(UNLOCKED_MARK), repository.join(MARK));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked)?;
        // The file gets its final name once it is locked: a mark that is not locked has been left by a killed
        // JVM.
        let locked = file.try_lock().map_err(io::Error::from);
        let marked = locked.and_then(|()| file.write_all(boot_id()?.as_bytes()));
        if let Err(error) = marked.and_then(|()| fs::rename(&unlocked, &path)) {
            let _ = fs::remove_file(&unlocked);
            return Err(error);
        }
        Ok(Self { path, _file: file })
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        // At the JVM's end the mark may have been removed with its repository.
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the repositories of killed JVMs that are next to this one.
pub(super) fn remove_abandoned(own: &Path) {
    let Some(entries) = own.parent().and_then(|parent| fs::read_dir(parent).ok()) else { return };
    let Ok(boot_id) = boot_id() else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path == own || !entry.file_name().to_str().is_some_and(is_repository_name) {
            continue;
        }
        match remove_if_abandoned(&path, &boot_id) {
            Ok(false) => {}
            Ok(true) => log::debug!("jfr: removed {}, which a killed JVM left behind", path.display()),
            Err(error) => log::debug!("jfr: {}: {error}", path.display()),
        }
    }
}

/// Removes the folder if it is the repository of a killed JVM. Returns whether it has been removed.
fn remove_if_abandoned(path: &Path, boot_id: &str) -> io::Result<bool> {
    let folder = open(path, OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC, Mode::empty())?;
    let folder = File::from(folder);
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(mark) = openat(&folder, MARK, flags, Mode::empty()) else { return Ok(false) };
    let mut mark = File::from(mark);
    let user = Uid::effective().as_raw();
    let (of_folder, of_mark) = (folder.metadata()?, mark.metadata()?);
    if of_folder.uid() != user || of_mark.uid() != user || !of_mark.is_file() || mark.try_lock().is_err() {
        return Ok(false);
    }
    let mut marked_boot_id = String::new();
    mark.read_to_string(&mut marked_boot_id)?;
    if marked_boot_id != boot_id {
        return Ok(false);
    }
    let remove = |name: &str| unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir);
    for entry in Dir::from_fd(folder.try_clone()?.into())?.iter() {
        let entry = entry?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        if RECORDED.iter().any(|ending| name.ends_with(ending)) {
            remove(name)?;
        }
    }
    // The mark is removed last, so that the rest of an interrupted removal is still recognised.
    remove(MARK)?;
    fs::remove_dir(path)?;
    Ok(true)
}

/// Whether a name has the form that the JDK gives: date, time, the process's id, and a further number if that
/// name was taken, each of digits only.
fn is_repository_name(name: &str) -> bool {
    let parts: Vec<&str> = name.split('_').collect();
    let are_numbers =
        parts.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    let lengths: Vec<usize> = parts.iter().take(6).map(|part| part.len()).collect();
    are_numbers && (7..=8).contains(&parts.len()) && lengths == [4, 2, 2, 2, 2, 2]
}

/// Returns the boot id, which differs after each start of the machine (`random(4)`).
fn boot_id() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const OWN: &str = "2026_01_31_12_00_00_4711";

    /// Creates a repository in the state in which a killed JVM leaves it.
    fn abandoned(folder: &Path, name: &str) -> PathBuf {
        let repository = folder.join(name);
        fs::create_dir(&repository).unwrap();
        for name in ["2026_01_31_12_00_00.jfr", "2026_01_31_12_00_00.part"] {
            fs::write(repository.join(name), "FLR").unwrap();
        }
        fs::write(repository.join(MARK), boot_id().unwrap()).unwrap();
        repository
    }

    /// Removes abandoned repositories next to our own, and returns the names left in the folder, sorted.
    fn left(folder: &Path) -> Vec<String> {
        remove_abandoned(&folder.join(OWN));
        let names =
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn only_repositories_of_killed_jvms_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        abandoned(folder, "2026_01_31_12_00_00_1");
        abandoned(folder, "2026_01_31_12_00_00_1_0");
        abandoned(folder, OWN);
        abandoned(folder, "2026_01_31_12_00_00");
        abandoned(folder, "2026_01_31_12_00_00_1_backup");
        fs::remove_file(abandoned(folder, "2026_01_31_12_00_00_2").join(MARK)).unwrap();
        fs::write(abandoned(folder, "2026_01_31_12_00_00_3").join(MARK), "another start").unwrap();
        fs::write(abandoned(folder, "2026_01_31_12_00_00_4").join("notes.txt"), "mine").unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let target = abandoned(elsewhere.path(), "2026_01_31_12_00_00_5");
        symlink(&target, folder.join("2026_01_31_12_00_00_5")).unwrap();
        let linked = abandoned(folder, "2026_01_31_12_00_00_6");
        fs::remove_file(linked.join(MARK)).unwrap();
        symlink(target.join(MARK), linked.join(MARK)).unwrap();

        let stay = [2, 3, 4, 5, 6].map(|pid| format!("2026_01_31_12_00_00_{pid}"));
        let mut stay: Vec<_> = stay.to_vec();
        stay.extend(["2026_01_31_12_00_00", "2026_01_31_12_00_00_1_backup", OWN].map(str::to_owned));
        stay.sort();
        assert_eq!(left(folder), stay);
        assert!(target.join("2026_01_31_12_00_00.jfr").exists());
        assert_eq!(fs::read(folder.join("2026_01_31_12_00_00_4/notes.txt")).unwrap(), b"mine");
    }

    #[test]
    fn a_running_jvms_repository_stays_and_its_mark_is_removed_with_the_recording() {
        let folder = tempfile::tempdir().unwrap();
        let name = "2026_01_31_12_00_00_1";
        let repository = folder.path().join(name);
        fs::create_dir(&repository).unwrap();
        let mark = Mark::new(&repository).unwrap();
        assert_eq!(left(folder.path()), [name]);
        assert!(repository.join(MARK).exists());
        drop(mark);
        assert_eq!(fs::read_dir(&repository).unwrap().count(), 0);
        assert_eq!(left(folder.path()), [name], "without a mark it is nobody's");
    }
}
