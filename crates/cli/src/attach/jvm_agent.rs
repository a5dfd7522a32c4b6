//! The agent in a JVM: requests that load it, and commands to it.

use std::path::Path;
use std::time::Duration;

use super::command::{self, Received};
use super::error::AttachError;
use super::interrupts::Interrupts;
use super::library::{self, Library, VisibleLibrary};
use super::process::JvmProcess;
use super::target_files::TargetFiles;
use super::target_user::TargetUser;
use crate::agent_string;

/// The time between two requests to a JVM that is still starting.
const RETRY: Duration = Duration::from_millis(20);

/// The agent in a JVM, or a JVM that does not have the agent yet.
pub(super) struct JvmAgent {
    pub(super) process: JvmProcess,
    pub(super) files: TargetFiles,
}

impl JvmAgent {
    /// Finds the JVM. Sends nothing to it.
    pub(super) fn find(pid: u32) -> Result<Self, AttachError> {
        let process = JvmProcess::find(pid)?;
        let files = TargetFiles::open(&process)?;
        Ok(Self { process, files })
    }

    /// Whether the JVM has loaded the agent.
    pub(super) fn is_loaded(&self) -> bool {
        self.process.maps.agent.is_some()
    }

    /// The agent string with absolute paths. Fails if the JVM does not see the caller's folder, where
    /// relative paths begin.
    pub(super) fn options_of_caller(&self, options: &str) -> Result<String, AttachError> {
        let folder = std::env::current_dir().map_err(AttachError::Wait)?;
        let absolute = agent_string::with_absolute_paths(options, &folder)?;
        if absolute != options && !self.files.sees_folder(&folder) {
            return Err(AttachError::FolderElsewhere { pid: self.process.pid, folder });
        }
        Ok(absolute)
    }

    /// Reads the library that [`Self::load`] needs: the one at `path`, or else the one that is installed
    /// with this command.
    /// `None` if the JVM has loaded the agent already and no path is given.
    pub(super) fn library(&self, path: Option<&Path>) -> Result<Option<Library>, AttachError> {
        if self.is_loaded() && path.is_none() { Ok(None) } else { Library::read(path).map(Some) }
    }

    /// Passes these options to the agent. Loads the library unless the JVM has loaded the agent.
    pub(super) fn load(
        &mut self,
        library: Option<&Library>,
        options: &str,
        interrupts: &Interrupts,
    ) -> Result<Received, AttachError> {
        let mut visible: VisibleLibrary;
        let answer = {
            let _user = TargetUser::switch_to(&self.process)?;
            visible = self.visible_library(library)?;
            loop {
                let copy = &mut visible.copy;
                let is_sent = || copy.iter_mut().for_each(|copy| copy.keep(true));
                let (process, files) = (&self.process, &self.files);
                match command::send(process, files, &visible.path, options, interrupts, is_sent) {
                    // The JVM has its attach socket some time before it loads agents.
                    Err(AttachError::Starting(_)) if !interrupts.left().is_zero() => {
                        if let Err(error) = interrupts.wait([], RETRY.min(interrupts.left())) {
                            break Err(error);
                        }
                    }
                    answer => break answer,
                }
            }
        };
        self.process.reload_maps();
        // A copy that the JVM has not loaded is of no use. After a timeout it may still be loaded.
        let is_over = !matches!(answer, Err(AttachError::NoAnswer { .. } | AttachError::Interrupted(_)));
        if is_over && !self.is_loaded() {
            visible.copy.iter_mut().for_each(|copy| copy.keep(false));
        }
        answer
    }

    /// Passes a command to the agent that the JVM has loaded.
    pub(super) fn command(&mut self, word: &str, interrupts: &Interrupts) -> Result<Received, AttachError> {
        self.load(None, word, interrupts)
    }

    /// The library that the JVM is to load: the very one that it has loaded, or else this one.
    fn visible_library(&self, library: Option<&Library>) -> Result<VisibleLibrary, AttachError> {
        let (process, files) = (&self.process, &self.files);
        if let Some(path) = library::loaded(process, files)? {
            let inode = process.maps.agent.as_ref().map_or(0, |agent| agent.inode);
            if library.is_some_and(|library| !library.has_inode(inode)) {
                return Err(AttachError::OtherLibrary { pid: process.pid, path });
            }
            return Ok(VisibleLibrary { path, copy: None });
        }
        let library = library.ok_or(AttachError::NoAgent(process.pid))?;
        library.check(process, files)?;
        library.make_visible(process, files)
    }
}
