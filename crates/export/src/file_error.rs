//! The reasons why a message cannot be written to a file.

use std::io;
use std::path::PathBuf;

use super::pattern::PatternError;

/// The reason why a message could not be written, in one line.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The name does not parse.
    #[error("file={0}")]
    Pattern(#[from] PatternError),
    /// The folder of the file does not exist.
    #[error("file={}: the folder {} does not exist; create it", path.display(), folder.display())]
    NoFolder {
        /// The file.
        path: PathBuf,
        /// Its folder.
        folder: PathBuf,
    },
    /// A system call failed.
    #[error("file={}: {reason}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A folder, a pipe or a socket.
    #[error("file={}: neither a regular file nor a character device; name another", path.display())]
    Kind {
        /// The file.
        path: PathBuf,
    },
    /// The file exists and has other content, which appending would spoil.
    #[error("file={}: exists and {found}; name another file or remove it", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// A description of the file's content.
        found: &'static str,
    },
    /// A symbolic link in a folder where other users could have placed it.
    #[error(
        "file={}: {} is a symbolic link in a folder that other users can write to, and is not followed; name \
         the link's target, or remove other users' write permission from the folder",
        path.display(),
        link.display()
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// The part of the path that is the link.
        link: PathBuf,
    },
    /// A file of another user, in a folder where other users can create files.
    #[error(
        "file={}: belongs to another user, in a folder that other users can write to; name another file",
        path.display()
    )]
    Owner {
        /// The file.
        path: PathBuf,
    },
    /// Another process has held the file's lock for too long.
    #[error("file={}: locked by another process", path.display())]
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// The message is longer than a length prefix can express.
    #[error("file={}: a message of {bytes} bytes is too long for a length prefix", path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The message's length.
        bytes: usize,
    },
}

impl FileError {
    /// The error's kind for the log: one line is logged per kind, and per kind of system error.
    pub(super) fn kind(&self) -> u32 {
        match self {
            Self::Pattern(_) => 0,
            Self::NoFolder { .. } => 1,
            Self::Kind { .. } => 2,
            Self::Foreign { .. } => 3,
            Self::Locked { .. } => 4,
            Self::TooLong { .. } => 5,
            Self::Io { reason, .. } => match reason.kind() {
                io::ErrorKind::PermissionDenied => 6,
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => 7,
                io::ErrorKind::ReadOnlyFilesystem => 8,
                io::ErrorKind::FileTooLarge => 9,
                _ => 10,
            },
            Self::Link { .. } => 11,
            Self::Owner { .. } => 12,
        }
    }

    /// Whether the message itself is the cause, so that no retry can succeed.
    pub(super) fn is_final(&self) -> bool {
        matches!(self, Self::TooLong { .. })
    }
}
