//! The temporary file of a recording: in the JVM's /tmp, written by the agent, read by the command.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;

use super::error::AttachError;
use super::jvm_agent::JvmAgent;
use super::target_files::{TemporaryFolder, random_name};
use super::target_user::TargetUser;
use crate::cli::{spool, whole_messages};

/// The name of the file in its folder.
const NAME: &str = "recording.otlp";

/// The file to which the agent writes. It is removed with this value.
pub(super) struct RecordingFile {
    /// Opened when the file was created: another file that takes its place is not read.
    file: File,
    /// The path in the JVM's namespace.
    path: String,
    /// A folder of its own: when it is gone, an agent that still writes cannot create the file again.
    _folder: TemporaryFolder,
}

impl RecordingFile {
    /// Creates the file in the JVM's /tmp, as the JVM's user.
    pub(super) fn create(jvm: &JvmAgent) -> Result<Self, AttachError> {
        let _user = TargetUser::switch_to(&jvm.process)?;
        jvm.files.check_tmp()?;
        let name = format!(".otlpprof-{}", random_name().map_err(AttachError::Wait)?);
        let mut folder = jvm.files.create_folder(&name).map_err(|error| jvm.files.tmp_error(error))?;
        let file = folder.create(NAME, 0o600).map_err(|error| jvm.files.tmp_error(error))?;
        Ok(Self { file, path: format!("/tmp/{name}/{NAME}"), _folder: folder })
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
