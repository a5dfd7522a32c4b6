//! The messages of an input file of any content. Other formats than OTLP are converted while they are read,
//! part by part: only a file in pprof's format is in memory as a whole.

use std::fs::File;
use std::io::{Read as _, Seek as _};

use anyhow::{Context as _, bail};
use otlpprof_convert::{ConvertOptions, JfrToOtlp, Unpacked};
use otlpprof_model::Batch;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_otlp::reader::{Reader, UncheckedMessage};
use otlpprof_otlp::{EncodeOptions, encode, encode_split};

use super::content::Content;
use crate::input::Input;
use crate::recording;

/// The most bytes of a message that a batch becomes.
const MESSAGE_BYTES: usize = 1 << 26;
/// The most bytes of a file in pprof's format, after decompression.
const PPROF_BYTES: u64 = 1 << 30;

/// The lines about an input that has been read to its end.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The damage to a recording, of which everything that could be read has been taken.
    pub(super) damage: Option<String>,
    /// The parts that are left out although nothing is damaged.
    pub(super) remark: Option<String>,
}

/// A message as it has been read.
#[derive(Debug)]
pub(super) enum ReadMessage {
    /// A part of a file, which is still to be checked.
    Unchecked(UncheckedMessage),
    /// A message that was made of another format.
    Made(Box<EncodedMessage>),
}

impl ReadMessage {
    /// The size in bytes.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Unchecked(message) => message.size(),
            Self::Made(message) => message.bytes().len(),
        }
    }

    /// The checked message, which is one of this input. `is_trusted` states that an earlier reading has
    /// checked the same bytes.
    pub(super) fn check(self, input: &Input, is_trusted: bool) -> anyhow::Result<EncodedMessage> {
        match self {
            Self::Unchecked(message) if is_trusted => input.trusted(message),
            Self::Unchecked(message) => input.check(message),
            Self::Made(message) => Ok(*message),
        }
    }
}

/// Calls `take` with each message of the input, in order, until one cannot be used. `unit` is the unit of
/// collapsed stacks, if it is chosen.
///
/// # Errors
/// The input cannot be read, or an error of `take`.
pub(super) fn each_message(
    input: &Input,
    content: Content,
    unit: Option<&str>,
    take: &mut dyn FnMut(ReadMessage) -> anyhow::Result<()>,
) -> anyhow::Result<Findings> {
    let name = || input.path.display().to_string();
    match content {
        Content::Otlp => {
            for message in input.unchecked_messages()? {
                take(ReadMessage::Unchecked(message?))?;
            }
        }
        Content::Recording => {
            return Ok(Findings { damage: of_recording(input, take)?, remark: None });
        }
        Content::Pprof => {
            let mut bytes = Vec::new();
            let mut from = Unpacked::new(input.bytes()?).with_context(name)?.take(PPROF_BYTES + 1);
            from.read_to_end(&mut bytes).with_context(name)?;
            if bytes.len() as u64 > PPROF_BYTES {
                bail!("{}: a pprof profile of more than {PPROF_BYTES} bytes", name());
            }
            let read = otlpprof_pprof::read(&bytes, |batch| each_of_batch(&batch, take));
            let remarks = read.with_context(|| format!("{}: pprof", name()))?;
            let remark = (!remarks.is_empty()).then(|| format!("{}: {remarks}", name()));
            return Ok(Findings { damage: None, remark });
        }
        Content::Collapsed => {
            let from = Unpacked::new(input.bytes()?).with_context(name)?;
            let remarks = otlpprof_collapsed::read(from, unit, |batch| each_of_batch(&batch, take));
            let remarks = remarks.with_context(name)?;
            let remark = (!remarks.is_empty()).then(|| format!("{}: {remarks}", name()));
            return Ok(Findings { damage: None, remark });
        }
    }
    Ok(Findings::default())
}

/// Calls `take` with the messages that an earlier reading has made of the input and kept in a file.
pub(super) fn each_made(
    input: &Input,
    mut made: &File,
    take: &mut dyn FnMut(ReadMessage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let name = || input.path.display().to_string();
    made.rewind().with_context(name)?;
    let mut messages = Reader::new(made).with_context(name)?;
    while let Some(message) = messages.next_unchecked() {
        take(ReadMessage::Unchecked(message.with_context(name)?))?;
    }
    Ok(())
}

/// Converts a recording chunk by chunk, with the time of each event. Returns the line about its damage.
fn of_recording(
    input: &Input,
    take: &mut dyn FnMut(ReadMessage) -> anyhow::Result<()>,
) -> anyhow::Result<Option<String>> {
    let mut converter = JfrToOtlp::new(ConvertOptions { times: true, ..ConvertOptions::default() });
    let (mut has_events, mut has_converted, mut taken) = (false, false, Ok(()));
    let added = converter.add_reader_by_chunk(input.bytes()?, |converter| {
        for (_, count) in converter.counts() {
            (has_events, has_converted) = (true, has_converted || count.converted > 0);
        }
        if taken.is_ok() {
            taken = each_of_batch(&converter.convert(), take);
        }
    });
    taken.with_context(|| input.path.display().to_string())?;
    let problem = added.err().map(|error| recording::problem(&input.path, error)).transpose()?;
    match problem {
        Some(problem) if !has_events => bail!("no event in {problem}"),
        Some(problem) if !has_converted => bail!("{problem}"),
        None if !has_events => bail!("no event in {}", input.path.display()),
        None if !has_converted => Err(recording::nothing(&input.path)),
        problem => Ok(problem),
    }
}

/// Encodes a batch as messages, so that all files are read by one path.
fn each_of_batch(
    batch: &Batch,
    take: &mut dyn FnMut(ReadMessage) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let options = EncodeOptions { timestamps: true, values_beside_times: true, ..EncodeOptions::default() };
    let split = encode_split(batch, &options, MESSAGE_BYTES);
    if split.dropped_samples > 0 {
        bail!("{} samples of more than {MESSAGE_BYTES} bytes each", split.dropped_samples);
    }
    if split.messages.is_empty() && !batch.profiles.is_empty() {
        let bytes = encode(batch, &EncodeOptions { empty_profiles: true, ..options });
        take(ReadMessage::Made(EncodedMessage::of_protobuf(bytes)?.into()))?;
    }
    for message in split.messages {
        take(ReadMessage::Made(EncodedMessage::of_protobuf(message.bytes)?.into()))?;
    }
    Ok(())
}
