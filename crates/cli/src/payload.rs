//! `otlpprof payload`: extracts the recording from which a profile was made.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use flate2::bufread::MultiGzDecoder;
use otlpprof_otlp::found_payloads::PayloadPlace;
use otlpprof_otlp::is_gzip;
use otlpprof_otlp::payload::{copy_payload, find_payloads};

use super::spool::kept;
use super::whole_file;

/// Extract the recording that a profile was converted from
///
/// The recording is the payload that `otlpprof convert --include-payload` has put into the profile. If
/// several profiles of the file have a payload, the payloads are written one after the other, which is again
/// a recording.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A file of OTLP profiles: protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is
    /// standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// The output file; - is standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// Number of bytes that show whether a file is compressed.
const GZIP_LEN: u64 = 2;
/// The most formats that an error message names.
const SHOWN_FORMATS: usize = 4;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let name = || args.file.display().to_string();
    if whole_file::is_same(&args.file, &args.output) {
        bail!("{} is the input: write to another file", name());
    }
    let (file, is_compressed) = open(&args.file)?;
    let mut file = BufReader::new(file);
    let places = find_payloads(&mut file);
    let places = match is_compressed {
        true => places.context("after decompression"),
        false => places.map_err(Into::into),
    };
    let places = places.with_context(name)?;
    check_formats(&args.file, &places)?;
    write(&args.output, |to| places.iter().try_for_each(|place| copy_payload(&mut file, place, to)))
}

/// Opens a file in which payloads can be searched: the file of this name, or a decompressed copy of it or of
/// standard input. Also returns whether the input was compressed.
fn open(path: &Path) -> anyhow::Result<(File, bool)> {
    let name = || path.display().to_string();
    let is_stdin = path == Path::new("-");
    let file = match is_stdin {
        true => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        false => File::open(path),
    };
    let file = file.with_context(name)?;
    let mut first = Vec::new();
    (&file).take(GZIP_LEN).read_to_end(&mut first).with_context(name)?;
    let is_compressed = is_gzip(&first);
    if !is_stdin && !is_compressed && file.metadata().with_context(name)?.is_file() {
        return Ok((file, false));
    }
    let whole = BufReader::new(io::Cursor::new(first).chain(file));
    let kept = match is_compressed {
        true => kept(MultiGzDecoder::new(whole), path)?,
        false => kept(whole, path)?,
    };
    Ok((kept, is_compressed))
}

/// Fails if there is no payload, or several that cannot be concatenated.
fn check_formats(file: &Path, places: &[PayloadPlace]) -> anyhow::Result<()> {
    if places.is_empty() {
        bail!("{}: no profile has an original payload", file.display());
    }
    if places.len() == 1 || places.iter().all(|place| place.format == "jfr") {
        return Ok(());
    }
    let formats: BTreeSet<_> = places.iter().map(|place| format!("{:?}", place.format)).collect();
    let more = if formats.len() > SHOWN_FORMATS { " and others" } else { "" };
    let shown: Vec<_> = formats.into_iter().take(SHOWN_FORMATS).collect();
    let (file, count, shown) = (file.display(), places.len(), shown.join(", "));
    bail!(
        "{file}: {count} payloads cannot be written to one file, because their formats differ: {shown}{more}"
    );
}

fn write(output: &Path, body: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> anyhow::Result<ExitCode> {
    if output == Path::new("-") {
        body(&mut io::stdout().lock()).context("standard output")?;
        return Ok(ExitCode::SUCCESS);
    }
    whole_file::write(output, body).with_context(|| output.display().to_string())?;
    Ok(ExitCode::SUCCESS)
}
