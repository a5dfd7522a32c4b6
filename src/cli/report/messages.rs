//! The messages of an input file of any content. Other formats than OTLP are converted while they are read,
//! part by part: only a file in pprof's format is in memory as a whole.

use std::io::{BufReader, Read as _};

use anyhow::{Context as _, bail};

use super::content::Content;
use crate::cli::input::Input;
use crate::cli::recording;
use crate::collapsed;
use crate::convert::{ConvertOptions, JfrToOtlp, Unpacked};
use crate::model::Batch;
use crate::otlp::encoded::EncodedMessage;
use crate::otlp::{EncodeOptions, encode_split};
use crate::pprof;

/// The most bytes of a message that a batch becomes.
const MESSAGE_BYTES: usize = 1 << 26;
/// The most bytes of a file in pprof's format, after decompression.
const PPROF_BYTES: u64 = 1 << 30;

/// Calls `take` with each message of the input. Returns the line about a damaged recording, of which
/// everything that could be read has been taken.
pub(super) fn each_message(
    input: &Input,
    content: Content,
    take: &mut dyn FnMut(EncodedMessage),
) -> anyhow::Result<Option<String>> {
    let name = || input.path.display().to_string();
    match content {
        Content::Otlp => {
            for message in input.messages()? {
                take(message?);
            }
        }
        Content::Recording => return of_recording(input, take),
        Content::Pprof => {
            let mut bytes = Vec::new();
            let mut from = Unpacked::new(input.bytes()?).with_context(name)?.take(PPROF_BYTES + 1);
            from.read_to_end(&mut bytes).with_context(name)?;
            if bytes.len() as u64 > PPROF_BYTES {
                bail!("{}: a pprof profile of more than {PPROF_BYTES} bytes", name());
            }
            let read = pprof::read(&bytes, |batch| each_of_batch(&batch, take));
            read.with_context(|| format!("{}: pprof", name()))?;
        }
        Content::Collapsed => {
            let from = BufReader::new(Unpacked::new(input.bytes()?).with_context(name)?);
            collapsed::read(from, |batch| each_of_batch(&batch, take)).with_context(name)?;
        }
    }
    Ok(None)
}

/// Converts a recording chunk by chunk, with the time of each event.
fn of_recording(input: &Input, take: &mut dyn FnMut(EncodedMessage)) -> anyhow::Result<Option<String>> {
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
fn each_of_batch(batch: &Batch, take: &mut dyn FnMut(EncodedMessage)) -> anyhow::Result<()> {
    let options = EncodeOptions { timestamps: true, values_beside_times: true, ..EncodeOptions::default() };
    let split = encode_split(batch, &options, MESSAGE_BYTES);
    if split.dropped_samples > 0 {
        bail!("{} samples of more than {MESSAGE_BYTES} bytes each", split.dropped_samples);
    }
    for message in split.messages {
        take(EncodedMessage::of_protobuf(message.bytes)?);
    }
    Ok(())
}
