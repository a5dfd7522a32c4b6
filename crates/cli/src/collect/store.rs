//! Stores received messages in files.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context as _;

use super::super::terminal::is_harmful;
use super::message::Encoding;
use super::protocol::Received;

/// A folder in which messages are stored.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    count: AtomicU64,
}

/// Properties of an accepted request. Displays as the line that is printed for the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// `service.name` of each resource.
    pub services: Vec<String>,
    /// Number of `Profile`s.
    pub profiles: usize,
    /// Number of samples that were taken: each `Sample` may stand for many.
    pub samples: u64,
    /// Decompressed size in bytes.
    pub bytes: usize,
    /// The file. `None` for a request without samples, which is not stored.
    pub file: Option<PathBuf>,
}

impl Store {
    /// Opens a folder that exists and can be written.
    ///
    /// # Errors
    /// The folder does not exist, is not a folder, or does not allow a file to be created in it.
    pub fn open(folder: &Path) -> anyhow::Result<Self> {
        let out = folder.display();
        match fs::metadata(folder) {
            Ok(metadata) => anyhow::ensure!(metadata.is_dir(), "--output {out}: not a folder"),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir(folder).with_context(|| format!("--output {out}"))?
            }
            Err(error) => anyhow::bail!("--output {out}: {error}"),
        }
        let store = Self { folder: folder.to_owned(), count: AtomicU64::new(0) };
        store.probe().with_context(|| format!("--output {out}: no file can be created in it"))?;
        Ok(store)
    }

    /// Creates a file and removes it again, since permissions alone do not show whether a file can be
    /// created.
    fn probe(&self) -> io::Result<()> {
        let (_, temporary) = self.name("probe");
        OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        fs::remove_file(temporary)
    }

    /// The name of a new file, and the temporary name under which the file is written.
    fn name(&self, extension: &str) -> (PathBuf, PathBuf) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("profiles-{now}-{number}.{extension}"));
        let temporary = self.folder.join(format!(".profiles-{now}-{number}.{}.tmp", std::process::id()));
        (path, temporary)
    }

    /// Stores a request. Its file appears once it is whole.
    pub(super) fn put(&self, received: &Received) -> io::Result<Stored> {
        let file = received.has_samples.then(|| self.write(received)).transpose()?;
        Ok(Stored {
            services: received.services.clone(),
            profiles: received.profiles,
            samples: received.samples,
            bytes: received.body.len(),
            file,
        })
    }

    fn write(&self, received: &Received) -> io::Result<PathBuf> {
        let extension = match received.encoding {
            Encoding::Protobuf => "otlp",
            Encoding::Json => "json",
        };
        let (path, temporary) = self.name(extension);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        let written = file.write_all(&received.body).and_then(|()| fs::rename(&temporary, &path));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.map(|()| path)
    }
}

impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names come from the network and must not break out of their line.
        let printable = |c: char| if c.is_whitespace() || is_harmful(c) { '_' } else { c };
        let services = self.services.join("+").chars().map(printable).collect::<String>();
        let Self { profiles, samples, bytes, .. } = self;
        write!(f, "service={services} profiles={profiles} samples={samples} bytes={bytes}")?;
        match &self.file {
            Some(file) => write!(f, " file={}", file.display()),
            None => write!(f, " file=none"),
        }
    }
}
