//! The temporary file of a recording: in the JVM's /tmp, written by the agent, read by the command.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::error::AttachError;
use super::jvm_agent::JvmAgent;
use super::target_files::{TargetFiles, TemporaryFolder, random_name};
use super::target_user::TargetUser;
use crate::{spool, whole_messages};

/// The name of the file in its folder.
const NAME: &str = "recording.otlp";
/// The begin of the folders' names.
const FOLDER: &str = ".otlpprof-";
/// A folder that is younger may not be locked yet.
const YOUNG: Duration = Duration::from_secs(60);

/// The file to which the agent writes. It is removed with this value.
pub(super) struct RecordingFile {
    /// Opened when the file was created: another file that takes its place is not read.
    file: File,
    /// The path in the JVM's namespace.
    path: String,
    /// A folder of its own: when it is gone, an agent that still writes cannot create the file again.
    _folder: TemporaryFolder,
    /// The folder's lock, which ends with this process however it ends.
    _lock: File,
}

impl RecordingFile {
    /// Creates the file in the JVM's /tmp, as the JVM's user.
    pub(super) fn create(jvm: &JvmAgent) -> Result<Self, AttachError> {
        let _user = TargetUser::switch_to(&jvm.process)?;
        jvm.files.check_tmp()?;
        remove_abandoned(&jvm.files, jvm.process.uid);
        let name = format!("{FOLDER}{}", random_name().map_err(AttachError::Wait)?);
        let tmp_error = |error| jvm.files.tmp_error(error);
        let mut folder = jvm.files.create_folder(&name).map_err(tmp_error)?;
        let lock = File::open(jvm.files.path_in_tmp(&name)).map_err(tmp_error)?;
        // On a file system without locks, the folder of a command that was killed stays.
        let _ = lock.try_lock();
        let file = folder.create(NAME, 0o600).map_err(tmp_error)?;
        Ok(Self { file, path: format!("/tmp/{name}/{NAME}"), _folder: folder, _lock: lock })
    }

    /// The path in the JVM's namespace.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// A copy of the messages, and their length in bytes. The agent may still be writing.
    pub(super) fn messages(&self) -> anyhow::Result<(File, u64)> {
        let mut file = &self.file;
        let length = file.metadata()?.len();
        // The JVM may have ended while it wrote a message.
        let length = whole_messages::whole_length(&mut file, length)?;
        file.rewind()?;
        Ok((spool::kept(file.take(length), Path::new(&self.path))?, length))
    }
}

/// Removes the folders of earlier commands that were killed: folders of this user that nobody has locked.
fn remove_abandoned(files: &TargetFiles, uid: libc::uid_t) {
    let Ok(entries) = fs::read_dir(files.path_in_tmp(".")) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| {
            let random = name.strip_prefix(FOLDER).unwrap_or_default();
            random.len() == 16 && random.bytes().all(|digit| digit.is_ascii_hexdigit())
        });
        // The metadata describes the entry itself, and not the target of a symbolic link.
        let Some(metadata) = entry.metadata().ok().filter(|found| is_ours && found.is_dir()) else {
            continue;
        };
        let age = metadata.modified().ok().and_then(|time| SystemTime::now().duration_since(time).ok());
        if metadata.uid() != uid || age.is_none_or(|age| age < YOUNG) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path().join(NAME));
            let _ = fs::remove_dir(entry.path());
        }
    }
}
