//! `otlpprof payload`: takes out what a profile was made of.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};

use super::input::Input;
use super::whole_file;
use crate::otlp::payload::find_payloads;

/// Take the original payload out of a file: the recording that a profile was made of
///
/// If several profiles of the file have one, all are written, one behind the other, as a recording may be.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of OTLP profiles: protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where to write; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// As many bytes as tell what a file is.
const TELLING: u64 = 64;

/// Whether a file that begins so is protobuf, which can be read in parts. A message begins with 0x0a, which is a line feed:
/// what follows tells it from JSON, but for messages of so few bytes that it does not matter.
fn is_protobuf(first: &[u8]) -> bool {
    let is_gzip = first.starts_with(&[0x1f, 0x8b]);
    let text = first.trim_ascii_start();
    !is_gzip && !text.is_empty() && !text.starts_with(b"{")
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let name = || args.file.display().to_string();
    let mut first = Vec::new();
    if args.file != Path::new("-") {
        let file = File::open(&args.file).with_context(name)?;
        file.take(TELLING).read_to_end(&mut first).with_context(name)?;
    }
    if is_protobuf(&first) {
        let mut file = BufReader::new(File::open(&args.file).with_context(name)?);
        let places = find_payloads(&mut file).with_context(name)?;
        check_formats(&args.file, places.iter().map(|place| &*place.format))?;
        return write(&args.output, |to| {
            for place in &places {
                file.seek(SeekFrom::Start(place.bytes.start))?;
                let length = place.bytes.end - place.bytes.start;
                if io::copy(&mut file.by_ref().take(length), to)? != length {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            Ok(())
        });
    }
    // JSON and what is compressed cannot be read in parts.
    let input = Input::open(&args.file)?;
    let messages = input.messages().collect::<anyhow::Result<Vec<_>>>()?;
    let profiles = messages
        .iter()
        .flat_map(|message| &message.data.resource_profiles)
        .flat_map(|resource| &resource.scope_profiles)
        .flat_map(|scope| &scope.profiles)
        .filter(|profile| !profile.original_payload.is_empty());
    check_formats(&args.file, profiles.clone().map(|profile| &*profile.original_payload_format))?;
    write(&args.output, |to| profiles.clone().try_for_each(|profile| to.write_all(&profile.original_payload)))
}

/// Fails without any payload, and with several that cannot follow one another.
fn check_formats<'f>(file: &Path, formats: impl Iterator<Item = &'f str>) -> anyhow::Result<()> {
    let formats: Vec<_> = formats.collect();
    match &formats[..] {
        [] => bail!("{}: no profile has an original payload", file.display()),
        [_] => Ok(()),
        several if several.iter().all(|format| *format == "jfr") => Ok(()),
        several => bail!(
            "{}: {} payloads that cannot be put into one file: {}",
            file.display(),
            several.len(),
            several.join(", ")
        ),
    }
}

fn write(output: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<ExitCode> {
    if output == Path::new("-") {
        body(&mut io::stdout().lock()).context("standard output")?;
        return Ok(ExitCode::SUCCESS);
    }
    whole_file::write(output, body).with_context(|| output.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::is_protobuf;

    #[test]
    fn a_message_is_not_taken_for_text_by_the_line_feed_that_it_begins_with() {
        assert!(is_protobuf(b"\x0a\x80\x01\x0a\x10"), "resource_profiles of 128 bytes");
        assert!(is_protobuf(b"\x00\x00\x01\x00\x0a\x80\x01"), "behind its length");
        assert!(!is_protobuf(b"\n {\"resourceProfiles\":[]}"));
        assert!(!is_protobuf(b"\x1f\x8b\x08"));
        assert!(!is_protobuf(b""));
    }
}
