//! Finished profiles: encoded, written to the file, handed to the uploader.

use std::time::Duration;

use log::warn;

use super::options::Options;
use crate::export::file::FileError;
use crate::export::stats::{FileStats, UploadStats};
use crate::export::upload::ConfigError;
use crate::export::{ContentType, FileExporter, Message, Uploader};
use crate::model::Batch;
use crate::otlp::{EncodeOptions, Format, encode_split, halve};
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

/// Where profiles go.
pub(super) struct Output {
    file: Option<FileExporter>,
    uploader: Option<Uploader>,
    encoding: EncodeOptions,
    limit_bytes: usize,
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
        let start = |config| Uploader::start(config, Some(Box::new(halves)), own_threads::spawn);
        let uploader = options.upload.clone().map(start).transpose()?;
        let limit_bytes =
            options.upload.as_ref().map_or(FILE_MESSAGE_BYTES, |upload| upload.max_request_bytes);
        let encoding = options.encode;
        Ok(Self { file, uploader, encoding, limit_bytes })
    }

    /// Sends a batch. Never waits for a collector.
    pub(super) fn send(&self, batch: &Batch) {
        let split = encode_split(batch, &self.encoding, self.limit_bytes);
        if split.dropped_samples > 0 {
            warn!("{} samples are each over the size limit and were left out", split.dropped_samples);
        }
        let content_type = content_type(self.encoding.format);
        for part in split.messages {
            let message = Message { body: part.bytes, content_type, samples: part.samples };
            if let Some(file) = &self.file {
                // Counted and logged where it happens.
                let _ = file.write(&message);
            }
            if let Some(uploader) = &self.uploader {
                uploader.submit(message);
            }
        }
    }

    pub(super) fn upload_stats(&self) -> Option<UploadStats> {
        self.uploader.as_ref().map(Uploader::stats)
    }

    pub(super) fn file_stats(&self) -> Option<FileStats> {
        self.file.as_ref().map(FileExporter::stats)
    }

    /// Sends what is pending, within the limit, and ends.
    pub(super) fn shutdown(&self, within: Duration) {
        if let Some(uploader) = &self.uploader {
            uploader.shutdown(within);
        }
    }
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
