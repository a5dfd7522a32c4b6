//! `otlpprof merge`: many messages as one.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use flate2::Compression;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::merge::merger::Merger;
use otlpprof_report::parallel_deflate::{self, Container};

use super::counted::counted;
use super::report::inputs::ProfileInputs;
use super::{terminal, whole_file};

/// Sum the messages of files into one
///
/// Profiles of one process and type become one profile: equal stacks with equal attributes are summed. Of
/// profiles that are a state, such as live-space, the last one counts.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The result, gzipped if its name ends in .gz; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// Keep the time of each value: its own, or the start of its profile
    #[arg(long)]
    keep_times: bool,
    /// Make one of all processes with equal values of this attribute of their resources, such as
    /// service.name; may be given several times. Other attributes that differ are left out
    #[arg(long, value_name = "KEY")]
    by: Vec<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    whole_file::check_is_no_input(&args.output, &args.files)?;
    let mut merger = Merger::new(args.keep_times);
    let inputs = ProfileInputs::open_with(&args.files, None, |message| merger.survey(message))?;
    let mut broken = None;
    inputs.each_message(|message| {
        if broken.is_none() {
            broken = merger.add(&message).err().map(|error| (message.index, error));
        }
    })?;
    if let Some((index, error)) = broken {
        bail!("message {index}: {error}; `otlpprof validate` shows all such references");
    }
    let mut lost = Vec::new();
    if merger.payloads > 0 {
        lost.push(format!("{} recordings", merger.payloads));
    }
    if !args.by.is_empty() {
        let left_out = merger.unite(&args.by).context("--by")?;
        lost.extend(left_out.into_iter().map(|key| format!("{key} (differs)")));
    }
    let bytes = merger.into_encoded();
    // A message that exceeds the bounds could not be read again.
    let merged = EncodedMessage::of_protobuf(bytes).context("the merged message: merge fewer files")?;
    write(&args.output, merged.bytes())?;
    let (path, size) = (&args.output, merged.bytes().len());
    let place = if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() };
    let lost = if lost.is_empty() { String::new() } else { format!("; left out: {}", lost.join(", ")) };
    writeln!(
        terminal::stderr(),
        "{place} has {} in one of {size} bytes{lost}",
        counted(inputs.survey.messages as u64, "message")
    )?;
    Ok(ProfileInputs::exit_code([&inputs]))
}

fn write(path: &Path, message: &[u8]) -> anyhow::Result<()> {
    let is_compressed = path.extension().is_some_and(|extension| extension == OsStr::new("gz"));
    whole_file::write_or_print(path, |out| match is_compressed {
        true => {
            let level = Compression::default();
            parallel_deflate::write(Container::Gzip, level, out, |out| out.write_all(message))
        }
        false => out.write_all(message),
    })
}
