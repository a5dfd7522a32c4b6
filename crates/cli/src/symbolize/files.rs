//! Files whose frames are resolved.

use std::convert::identity;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::sync_channel;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use otlpprof_otlp::Form;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_symbolize::Symbolizer;
use otlpprof_symbolize::resolved_message::ResolvedMessage;

use crate::exit_codes::EXIT_BAD_INPUT;
use crate::report::content::Content;
use crate::report::profile_file::ProfileFile;
use crate::report::read_ahead::each_message_ahead;
use crate::{terminal, whole_file};

/// The number of resolved messages that wait to be written.
const WAITING: usize = 2;

/// Writes all messages of these files with their frames resolved.
pub(super) fn run(paths: &[PathBuf], output: &Path, mut symbolizer: Symbolizer) -> anyhow::Result<ExitCode> {
    whole_file::check_is_no_input(output, paths)?;
    let inputs = paths.iter().map(|path| ProfileFile::open(path)).collect::<Result<Vec<_>, _>>()?;
    let outlines = inputs.iter().map(outline).collect::<Result<Vec<_>, _>>()?;
    let form = form_of(&outlines);
    if let [Outline { is_one_message: true, .. }] = outlines[..] {
        symbolizer.expect_one_message();
    }
    let is_compressed = output.extension().is_some_and(|extension| extension == OsStr::new("gz"));
    let mut failure = None;
    let mut done = None;
    let written = whole_file::write_or_print(output, |out| {
        let result = match is_compressed {
            true => {
                let mut out = GzEncoder::new(out, Compression::default());
                let result = symbolize(&inputs, form, symbolizer, &mut out);
                out.finish()?;
                result
            }
            false => symbolize(&inputs, form, symbolizer, out),
        };
        match result {
            Ok(result) => done = Some(result),
            Err(error) => {
                failure = Some(error);
                // The file is not replaced.
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(())
    });
    if let Some(error) = failure {
        return Err(error);
    }
    written?;
    let Done { symbolizer, messages, damage } = done.unwrap_or_default();
    let place = if output == Path::new("-") { "standard output".into() } else { output.to_string_lossy() };
    let summary = symbolizer.as_ref().map(|symbolizer| symbolizer.summary().lines());
    // The process ends soon. To free each name and each block of an index would take a good part of the time
    // that one message takes.
    mem::forget(symbolizer);
    let mut lines = summary.unwrap_or_default().into_iter();
    let mut err = terminal::stderr();
    writeln!(err, "{place} has {messages} messages: {}", lines.next().unwrap_or_default())?;
    lines.try_for_each(|line| writeln!(err, "{line}"))?;
    damage.iter().try_for_each(|line| writeln!(err, "otlpprof: {line}"))?;
    Ok(if damage.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_BAD_INPUT) })
}

/// The messages of a file in outline.
struct Outline {
    form: Form,
    /// Whether the file is known to have only one message.
    is_one_message: bool,
}

fn outline(file: &ProfileFile) -> anyhow::Result<Outline> {
    let unknown = Outline { form: Form::LengthPrefixed, is_one_message: false };
    if file.content != Content::Otlp {
        return Ok(unknown);
    }
    let mut messages = file.input.unchecked_messages()?;
    let Some(first) = messages.next().transpose()? else { return Ok(unknown) };
    Ok(Outline { form: first.form(), is_one_message: messages.next().is_none() })
}

/// The form of the result: the form of the inputs, or, if they differ or have several messages, protobuf with
/// length prefixes.
fn form_of(inputs: &[Outline]) -> Form {
    match inputs {
        [Outline { form: Form::Plain, .. }] => Form::Plain,
        inputs if inputs.iter().all(|input| input.form == Form::Json) => Form::Json,
        _ => Form::LengthPrefixed,
    }
}

#[derive(Default)]
struct Done {
    symbolizer: Option<Symbolizer>,
    messages: u64,
    /// A line for each damaged recording.
    damage: Vec<String>,
}

/// Reads in one thread, resolves in another, and puts the names into the messages and writes in this one.
fn symbolize(
    inputs: &[ProfileFile],
    form: Form,
    mut symbolizer: Symbolizer,
    out: &mut dyn Write,
) -> anyhow::Result<Done> {
    let (resolved, to_write) = sync_channel::<ResolvedMessage>(WAITING);
    thread::scope(|scope| {
        let resolver = scope.spawn(move || {
            let mut is_awaited = true;
            let damage = each_message_ahead(inputs, identity, |message| {
                // Once the result cannot be written, nobody receives.
                is_awaited = is_awaited && resolved.send(symbolizer.resolve(message)).is_ok();
            })?;
            anyhow::Ok((symbolizer, damage))
        });
        let (mut messages, mut refused) = (0, Vec::new());
        let written = to_write.iter().try_for_each(|resolved| {
            messages += 1;
            let (message, refused_frames) = resolved.rewritten();
            refused.extend(refused_frames);
            write_message(&message, form, out)
        });
        drop(to_write);
        let panicked = |_| anyhow::anyhow!("a thread panicked");
        let (mut symbolizer, damage) = resolver.join().map_err(panicked)??;
        written?;
        refused.into_iter().for_each(|refused| symbolizer.take_back(refused));
        Ok(Done { symbolizer: Some(symbolizer), messages, damage })
    })
}

fn write_message(message: &EncodedMessage, form: Form, out: &mut dyn Write) -> io::Result<()> {
    if form == Form::Json {
        out.write_all(&message.to_json().ok_or(io::ErrorKind::InvalidData)?)?;
        return out.write_all(b"\n");
    }
    if !message.is_readable_protobuf() {
        let why = "a JSON message has samples with neither values nor times, which protobuf cannot carry: \
                   give the files of JSON alone, for a result in JSON";
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let bytes = message.bytes();
    if form == Form::LengthPrefixed {
        // A message has less than 2 GiB.
        out.write_all(&(bytes.len() as u32).to_be_bytes())?;
    }
    out.write_all(bytes)
}
