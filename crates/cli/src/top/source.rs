//! The origin of messages: the agent in a JVM, a file that grows, or a whole file of any format.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

use otlpprof_otlp::encoded::EncodedMessage;

use super::growing_file::GrowingFile;
use super::recent::Succession;
use crate::attach::{AgentStream, AttachError, Interrupts, Opened, StreamArgs};
use crate::report::inputs::ProfileInputs;

/// The origin of messages.
pub(super) enum Source {
    Agent(Box<AgentStream>),
    File {
        file: GrowingFile,
        window_ns: u64,
    },
    /// A file to which no agent writes, until it has been read.
    Whole(Option<Box<ProfileInputs>>),
}

/// The result of opening a source.
pub(super) enum OpenedSource {
    Source(Source),
    /// The agent sends nothing, for this reason.
    Refused(String),
}

impl Source {
    pub(super) fn of_agent(
        args: &StreamArgs,
        interrupts: &mut Interrupts,
    ) -> Result<OpenedSource, AttachError> {
        Ok(match AgentStream::open(args, interrupts)? {
            Opened::Stream(stream) => OpenedSource::Source(Self::Agent(Box::new(stream))),
            Opened::Refused(reason) => OpenedSource::Refused(reason),
        })
    }

    pub(super) fn of_file(path: &Path, window: Duration) -> anyhow::Result<OpenedSource> {
        let window_ns = u64::try_from(window.as_nanos()).unwrap_or(u64::MAX);
        Ok(OpenedSource::Source(match GrowingFile::open(path)? {
            Some(file) => Self::File { file, window_ns },
            None => Self::Whole(Some(Box::new(ProfileInputs::open(&[path.to_owned()])?))),
        }))
    }

    /// The time whose sums are shown, which is this one unless the source is a whole file.
    pub(super) fn window(&self, wanted: Duration) -> Duration {
        match self {
            Self::Agent(_) | Self::File { .. } => wanted,
            Self::Whole(_) => Duration::MAX,
        }
    }

    /// How the messages follow each other.
    pub(super) fn succession(&self) -> Succession {
        match self {
            Self::Agent(_) => Succession::Cumulative,
            Self::File { .. } | Self::Whole(_) => Succession::Separate,
        }
    }

    /// The warnings that the agent has logged while it started the session.
    pub(super) fn warnings(&self) -> &[String] {
        match self {
            Self::Agent(stream) => stream.warnings(),
            Self::File { .. } | Self::Whole(_) => &[],
        }
    }

    /// Becomes readable when messages have arrived; `None` of a file, which is looked at now and then.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Agent(stream) => Some(stream.descriptor()),
            Self::File { .. } | Self::Whole(_) => None,
        }
    }

    /// Calls `take` with each message that has arrived. Returns the line for the end of messages, once they
    /// have ended.
    pub(super) fn read(&mut self, mut take: impl FnMut(&EncodedMessage)) -> anyhow::Result<Option<String>> {
        match self {
            Self::Agent(stream) => {
                let is_open = stream.read(|bytes| {
                    take(&EncodedMessage::of_protobuf(bytes)?);
                    Ok(())
                })?;
                Ok((!is_open).then(|| stream.end_line()))
            }
            Self::File { file, window_ns } => {
                file.read(*window_ns)?.iter().for_each(take);
                Ok(None)
            }
            Self::Whole(inputs) => {
                if let Some(inputs) = inputs.take() {
                    inputs.each_message(|message| take(&message))?;
                }
                Ok(None)
            }
        }
    }

    /// Ends the stream, and the session if this command has started it.
    pub(super) fn close(self, interrupts: &mut Interrupts) -> Result<(), AttachError> {
        match self {
            Self::Agent(stream) => stream.close(interrupts),
            Self::File { .. } | Self::Whole(_) => Ok(()),
        }
    }
}
