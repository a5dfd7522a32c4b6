//! The output of profiles: encodes them, writes them to the file, submits them to the uploader, and sends
//! them to other processes that read along.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use otlpprof_export::file_error::FileError;
use otlpprof_export::notice::Notices;
use otlpprof_export::stats::{FileStats, UploadStats};
use otlpprof_export::stream::Readers;
use otlpprof_export::upload::{ConfigError, Room, Splitter};
use otlpprof_export::{ContentType, FileExporter, OutgoingMessage, Uploader};
use otlpprof_model::Batch;
use otlpprof_options::Options;
use otlpprof_otlp::{EncodeOptions, Format, Split, encode_split, halve};
use otlpprof_sampling::own_threads;

/// The largest message of a file, in bytes: readers hold one message in memory at a time.
const FILE_MESSAGE_BYTES: usize = 64 << 20;

/// The reasons for which there is no destination for profiles.
#[derive(Debug, thiserror::Error)]
pub(super) enum OutputError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("endpoint: {0}")]
    Config(#[from] ConfigError),
}

/// Samples that did not go into messages as they should.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EncodeStats {
    /// Samples that alone exceed the size limit and were left out.
    pub(super) over_limit_samples: u64,
    /// The sum of the values of these samples.
    pub(super) over_limit_periods: u64,
    /// Samples that were written without the times that the user requested.
    pub(super) untimed_samples: u64,
}

/// The longest time that one wait for room in the queue takes before the caller's `meanwhile` is called.
const ROOM_WAIT: Duration = Duration::from_millis(50);

/// The longest time for which the end of a session waits for readers of the stream.
const LAST_WAIT: Duration = Duration::from_millis(200);

/// Kinds of log lines.
const OVER_LIMIT: u32 = 0;
const UNTIMED: u32 = 1;

/// The destinations of profiles.
pub(super) struct Output {
    file: Option<FileExporter>,
    uploader: Option<Uploader>,
    encoding: EncodeOptions,
    limit_bytes: usize,
    /// Other processes that read along.
    readers: Readers,
    stats: Mutex<EncodeStats>,
    notices: Notices,
}

impl Output {
    /// Checks whether files can be written and uploads made, without doing so. Called before the VM is live,
    /// when a mistake can still fail its start.
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
        let format = options.encode.format;
        let halves: Splitter = Box::new(move |body, _| halve(body, format));
        let start = |config| Uploader::start(config, Some(halves), own_threads::spawn);
        let uploader = options.upload.clone().map(start).transpose()?;
        let limit_bytes =
            options.upload.as_ref().map_or(FILE_MESSAGE_BYTES, |upload| upload.max_request_bytes);
        let encoding = options.encode;
        let (readers, stats, notices) = Default::default();
        Ok(Self { file, uploader, encoding, limit_bytes, readers, stats, notices })
    }

    /// Sends a batch. Returns whether the batch gave any message.
    ///
    /// From the second message of a batch on, waits for room in the queue, for as long as the collector
    /// accepts messages and no longer than `patience` in all. Calls `meanwhile` after each [`ROOM_WAIT`], and
    /// stops waiting when it returns `false`. Otherwise a collector never delays the caller.
    pub(super) fn send(&self, batch: &Batch, patience: Duration, meanwhile: impl Fn() -> bool) -> bool {
        let deadline = Instant::now() + patience;
        let split = encode_split(batch, &self.encoding, self.limit_bytes);
        self.count(&split);
        let any = !split.messages.is_empty();
        self.send_to_readers(batch, &split);
        let content_type = content_type(self.encoding.format);
        if let Some(file) = &self.file {
            file.retry();
        }
        for (number, part) in split.messages.into_iter().enumerate() {
            let message = OutgoingMessage { body: part.bytes, content_type, samples: part.samples };
            if let Some(file) = &self.file {
                // A failure is counted and logged by the exporter.
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

    /// Sends the profiles of an ended interval to the readers.
    fn send_to_readers(&self, batch: &Batch, split: &Split) {
        if self.readers.is_empty() {
            return;
        }
        let encoded;
        let split = match self.encoding.format {
            Format::Proto => split,
            Format::Json => {
                encoded = self.encoded_for_readers(batch);
                &encoded
            }
        };
        split.messages.iter().for_each(|message| self.readers.send_to_all(&message.bytes));
    }

    /// Sends the profiles of an interval so far to the readers that are due.
    pub(super) fn send_so_far(&self, batch: &Batch) {
        // One message, unless no reader could hold it.
        let split = self.encoded_for_readers(batch);
        if let [message] = &*split.messages {
            self.readers.send_to_due(&message.bytes);
        }
    }

    fn encoded_for_readers(&self, batch: &Batch) -> Split {
        let encoding = EncodeOptions { format: Format::Proto, ..self.encoding };
        encode_split(batch, &encoding, FILE_MESSAGE_BYTES)
    }

    /// Other processes that read along.
    pub(super) const fn readers(&self) -> &Readers {
        &self.readers
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
            let line = format!(
                "samples written without timestamps, each having too many: {}",
                split.untimed_samples
            );
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

    /// Sends pending messages within the time limit, and ends.
    pub(super) fn shutdown(&self, within: Duration) {
        self.readers.finish(within.min(LAST_WAIT));
        if let Some(file) = &self.file {
            file.give_up();
        }
        if let Some(uploader) = &self.uploader {
            uploader.shutdown(within);
        }
    }
}

fn wait_for_room(
    uploader: &Uploader,
    message: &OutgoingMessage,
    deadline: Instant,
    meanwhile: impl Fn() -> bool,
) {
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
