//! An input file with its content.

use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::anyhow;

use super::content::Content;
use super::messages::{self, Findings};
use crate::cli::input::Input;
use crate::cli::terminal;
use crate::otlp::encoded::EncodedMessage;

/// The number of messages that wait until they are taken.
const WAITING: usize = 1;

/// A file of profiles in any format that [`Content`] names. It can be read several times.
#[derive(Debug)]
pub(in crate::cli) struct ProfileFile {
    pub(in crate::cli) input: Input,
    pub(in crate::cli) content: Content,
    /// The unit of collapsed stacks, if it is chosen.
    pub(super) unit: Option<String>,
    /// Whether the line about parts that are left out has been written.
    is_remarked: AtomicBool,
}

impl ProfileFile {
    /// Opens a file, and detects its content.
    ///
    /// # Errors
    /// The file cannot be read, or must be unpacked first.
    pub(in crate::cli) fn open(path: &Path) -> anyhow::Result<Self> {
        let input = Input::open(path)?;
        let content = Content::of(&input)?;
        Ok(Self { input, content, unit: None, is_remarked: AtomicBool::new(false) })
    }

    /// Calls `take` with each message. Returns the line about a damaged recording, of which everything that
    /// could be read has been taken. The first reading writes a line to standard error about parts that are
    /// left out, such as comments.
    pub(in crate::cli) fn each_message(
        &self,
        take: &mut dyn FnMut(EncodedMessage),
    ) -> anyhow::Result<Option<String>> {
        let Findings { damage, remark } =
            messages::each_message(&self.input, self.content, self.unit.as_deref(), take)?;
        if let Some(remark) = remark
            && !self.is_remarked.swap(true, Relaxed)
        {
            writeln!(terminal::stderr(), "{remark}")?;
        }
        Ok(damage)
    }
}

/// Calls `take` with each message of the files, in order, while another thread reads and checks the next
/// ones. Returns a line for each damaged recording.
pub(in crate::cli) fn each_message_ahead(
    files: &[ProfileFile],
    take: &mut dyn FnMut(EncodedMessage),
) -> anyhow::Result<Vec<String>> {
    let (read, waiting) = sync_channel(WAITING);
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut damage = Vec::new();
            for file in files {
                damage.extend(file.each_message(&mut |message| {
                    // Only a panic of the caller ends the receiver before this thread.
                    let _ = read.send(message);
                })?);
            }
            Ok(damage)
        });
        waiting.into_iter().for_each(take);
        reader.join().map_err(|_| anyhow!("the thread that reads has panicked"))?
    })
}
