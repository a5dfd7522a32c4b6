//! Finished profiles: encoded, written to the file, handed to the uploader.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::options::Options;
use crate::export::file::FileError;
use crate::export::notice::Notices;
use crate::export::stats::{FileStats, UploadStats};
use crate::export::upload::{ConfigError, Room};
use crate::export::{ContentType, FileExporter, Message, Uploader};
use crate::model::Batch;
use crate::otlp::{EncodeOptions, Format, Split, encode_split, halve};
use crate::sampling::own_threads;

/// The largest message of a file: readers hold one in memory at a time.
const FILE_MESSAGE_BYTES: usize = 64 << 20;

/// Why there is nowhere to send profiles to.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("endpoint: {0}")]
    Config(#[from] ConfigError),
}

/// What did not go into messages as it should.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EncodeStats {
    /// Samples that alone are over the size limit and were left out.
    pub(super) over_limit_samples: u64,
    /// The sum of their values.
    pub(super) over_limit_periods: u64,
    /// Samples written without the times that were asked for.
    pub(super) untimed_samples: u64,
}

/// How long room in the queue is waited for before the caller gets a turn.
const ROOM_WAIT: Duration = Duration::from_millis(50);

/// Kinds of log lines.
const OVER_LIMIT: u32 = 0;
const UNTIMED: u32 = 1;

/// Where profiles go.
pub(super) struct Output {
    file: Option<FileExporter>,
    uploader: Option<Uploader>,
    encoding: EncodeOptions,
    limit_bytes: usize,
    stats: Mutex<EncodeStats>,
    notices: Notices,
}

impl Output {
    /// Whether files could be written and uploads be made, without doing so: known before the VM is live, where a
    /// mistake can still fail its start.
    pub(super) fn check(options: &Options) -> Result<(), OutputError> {
        if let Some(file) = &options.file {
            FileExporter::new(file)?.check_content(content_type(options.encode.format))?;
        }
        if let Some(upload) = &options.upload {
            Uploader::check(upload)?;
        }
        Ok(())
    }

    pub(super) fn new(options: &Options) -> Result<Self, OutputError> {
        let file = options.file.as_deref().map(FileExporter::new).transpose()?;
        let file = file.map(|file| file.rolling(options.file_period));
        if let Some((path, bytes)) = file.as_ref().and_then(FileExporter::continued) {
            log::info!(
                "file={}: has {bytes} bytes of profiles already; this run appends to it",
                path.display()
            );
        }
        let start = |config| Uploader::start(config, Some(Box::new(halves)), own_threads::spawn);
        let uploader = options.upload.clone().map(start).transpose()?;
        let limit_bytes =
            options.upload.as_ref().map_or(FILE_MESSAGE_BYTES, |upload| upload.max_request_bytes);
        let encoding = options.encode;
        let (stats, notices) = Default::default();
        Ok(Self { file, uploader, encoding, limit_bytes, stats, notices })
    }

    /// Sends a batch. Whether anything of it went anywhere, and the counts in it.
    ///
    /// A batch of several messages waits for room in the queue, as long as the collector takes messages and no longer than
    /// `patience`, and calls `meanwhile` every so often, until that says false; otherwise no collector makes it wait.
    pub(super) fn send(&self, batch: &Batch, patience: Duration, meanwhile: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + patience;
        let split = encode_split(batch, &self.encoding, self.limit_bytes);
        self.count(&split);
        let any = !split.messages.is_empty();
        let content_type = content_type(self.encoding.format);
        if let Some(file) = &self.file {
            file.retry();
        }
        for (number, part) in split.messages.into_iter().enumerate() {
            let message = Message { body: part.bytes, content_type, samples: part.samples };
            if let Some(file) = &self.file {
                // Counted and logged where it happens.
                let _ = file.write(&message);
            }
            if let Some(uploader) = &self.uploader {
                if number > 0 {
                    wait_for_room(uploader, &message, deadline, &meanwhile);
                }
                uploader.submit(message);
            }
        }
        any
    }

    fn count(&self, split: &Split) {
        let mut stats = self.stats.lock();
        stats.over_limit_samples += split.dropped_samples;
        stats.over_limit_periods += split.dropped_value;
        stats.untimed_samples += split.untimed_samples;
        drop(stats);
        if split.dropped_samples > 0 {
            let (count, limit) = (split.dropped_samples, self.limit_bytes);
            let line = format!("samples left out, each over the size limit of {limit} bytes: {count}");
            self.notices.warn(OVER_LIMIT, &line);
        }
        if split.untimed_samples > 0 {
            let line =
                format!("samples written without their times, which are too many: {}", split.untimed_samples);
            self.notices.warn(UNTIMED, &line);
        }
    }

    pub(super) fn encode_stats(&self) -> EncodeStats {
        *self.stats.lock()
    }

    pub(super) fn upload_stats(&self) -> Option<UploadStats> {
        self.uploader.as_ref().map(Uploader::stats)
    }

    pub(super) fn file_stats(&self) -> Option<FileStats> {
        self.file.as_ref().map(FileExporter::stats)
    }

    /// Sends what is pending, within the limit, and ends.
    pub(super) fn shutdown(&self, within: Duration) {
        if let Some(file) = &self.file {
            file.give_up();
        }
        if let Some(uploader) = &self.uploader {
            uploader.shutdown(within);
        }
    }
}

fn wait_for_room(uploader: &Uploader, message: &Message, deadline: Instant, meanwhile: impl Fn() -> bool) {
    while Instant::now() < deadline
        && uploader.wait_for_room(message.body.len(), ROOM_WAIT) == Room::NotYet
        && meanwhile()
    {}
}

fn content_type(format: Format) -> ContentType {
    match format {
        Format::Proto => ContentType::Protobuf,
        Format::Json => ContentType::Json,
    }
}

/// What is sent in place of a message that the collector finds too large.
fn halves(message: &Message) -> Vec<Message> {
    let format = match message.content_type {
        ContentType::Protobuf => Format::Proto,
        ContentType::Json => Format::Json,
    };
    let part = |(body, samples)| Message { body, content_type: message.content_type, samples };
    halve(&message.body, format).map_or_else(Vec::new, |halves| halves.map(part).into())
}
