//! The destination of the result: a file or standard output. The result may enclose the recordings.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use base64::Engine as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use otlpprof_convert::Unpacked;
use otlpprof_model::Batch;
use otlpprof_otlp::json_indent::Indenter;
use otlpprof_otlp::validate::validate;
use otlpprof_otlp::{EncodeOptions, Parts, Payload, encode, encode_around};

use super::super::validate::print_verdict;
use super::super::whole_file;
use super::args::{Args, OutputFormat};

/// The most bytes of a protobuf message (protobuf.dev, "Proto Limits").
const LARGEST_MESSAGE: u64 = i32::MAX as u64;
/// The most breaches of each rule that are shown.
const SHOWN_BREACHES: usize = 5;
/// A multiple of three, so that parts encoded in base64 can be concatenated without padding.
const COPY_LEN: usize = 3 << 14;

/// The form and the destination of a result.
pub(super) struct Output {
    path: PathBuf,
    format: OutputFormat,
    options: EncodeOptions,
    /// The recordings to be included, with their lengths in bytes.
    payload: Option<Vec<(PathBuf, u64)>>,
    validate: bool,
    /// Whether warnings count as errors.
    strict: bool,
    /// Whether the result is compressed with gzip.
    is_compressed: bool,
    /// The most bytes that a result may have.
    largest: u64,
}

/// The verdict of the rules on a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// No error was found, or the result was not validated.
    Valid,
    /// Errors were found and printed.
    Invalid,
}

impl Output {
    /// Reads the arguments.
    ///
    /// # Errors
    /// The recordings do not fit into a message, or the output would overwrite one of them.
    pub(super) fn new(args: &Args) -> anyhow::Result<Self> {
        if args.files.iter().any(|file| whole_file::is_same(file, &args.output)) {
            bail!("{} is one of the recordings: write to another file", args.output.display());
        }
        let format = match args.format {
            OutputFormat::Proto => otlpprof_otlp::Format::Proto,
            OutputFormat::Json | OutputFormat::JsonPretty => otlpprof_otlp::Format::Json,
        };
        let options = EncodeOptions { timestamps: args.timestamps, format, ..Default::default() };
        let payload = args.include_payload.then(|| lengths(&args.files)).transpose()?;
        let length = payload.iter().flatten().map(|(_, length)| length).sum::<u64>();
        if length > LARGEST_MESSAGE {
            return Err(too_large(length));
        }
        Ok(Self {
            path: args.output.clone(),
            format: args.format,
            options,
            payload,
            validate: args.validate,
            strict: args.strict,
            is_compressed: is_gzip_name(&args.output)?,
            largest: LARGEST_MESSAGE,
        })
    }

    /// Writes a batch. If validation is on, writes the breaches of rules to `printed`.
    ///
    /// # Errors
    /// The result is too large for a message, or cannot be written. An existing file is then unchanged.
    pub(super) fn write(&self, batch: &Batch, printed: &mut dyn Write) -> anyhow::Result<Validity> {
        let parts = self.encode(batch)?;
        let verdict = self.verdict(batch, &parts, printed)?;
        if self.path == Path::new("-") {
            self.write_parts(&parts, &mut io::stdout().lock()).context("standard output")?;
            return Ok(verdict);
        }
        whole_file::write(&self.path, |to| self.write_in_form(&parts, to))
            .with_context(|| self.path.display().to_string())?;
        Ok(verdict)
    }

    /// Opens the destination to which messages are appended.
    pub(super) fn open(&self) -> anyhow::Result<Box<dyn Write>> {
        if self.path == Path::new("-") {
            return Ok(Box::new(io::stdout()));
        }
        let file = File::create(&self.path).with_context(|| self.path.display().to_string())?;
        Ok(Box::new(file))
    }

    /// Appends a batch to earlier ones. A protobuf message is preceded by its length as a big-endian u32, and
    /// a JSON document has its own lines.
    pub(super) fn append(
        &self,
        batch: &Batch,
        to: &mut dyn Write,
        printed: &mut dyn Write,
    ) -> anyhow::Result<Validity> {
        let parts = self.encode(batch)?;
        let verdict = self.verdict(batch, &parts, printed)?;
        let mut message = Vec::new();
        if self.options.format == otlpprof_otlp::Format::Proto {
            // `encode` has checked that the message is shorter than 2^31 bytes. Without a payload, all of it
            // is in `before`.
            message.extend((parts.before.len() as u32).to_be_bytes());
        }
        self.write_parts(&parts, &mut message)?;
        if self.format == OutputFormat::Json {
            message.push(b'\n');
        }
        if self.is_compressed {
            // Each message is a gzip member of its own, so that the messages written can be read while more
            // are appended.
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&message)?;
            message = encoder.finish()?;
        }
        to.write_all(&message).and_then(|()| to.flush()).with_context(|| self.path.display().to_string())?;
        Ok(verdict)
    }

    fn verdict(&self, batch: &Batch, parts: &Parts, printed: &mut dyn Write) -> anyhow::Result<Validity> {
        if !self.validate {
            return Ok(Validity::Valid);
        }
        let report = match self.payload {
            None => validate(&parts.before, SHOWN_BREACHES),
            // No rule is about a payload's bytes, which are not in memory. The batch is validated without
            // them.
            Some(_) => validate(&encode(batch, &self.options), SHOWN_BREACHES),
        };
        let is_valid = print_verdict(&self.path, &report, self.strict, printed)?;
        Ok(if is_valid { Validity::Valid } else { Validity::Invalid })
    }

    fn encode(&self, batch: &Batch) -> anyhow::Result<Parts> {
        let Some(payload) = &self.payload else {
            let message = encode(batch, &self.options);
            return match self.options.format {
                otlpprof_otlp::Format::Proto if message.len() as u64 > self.largest => {
                    Err(too_large(message.len() as u64))
                }
                _ => Ok(Parts { before: message, after: Vec::new() }),
            };
        };
        let length = payload.iter().map(|(_, length)| length).sum::<u64>();
        let parts = encode_around(batch, &Payload { format: "jfr", length }, &self.options);
        let Some(parts) = parts else {
            bail!("no event was converted, so no profile can include the recordings");
        };
        let whole = (parts.before.len() + parts.after.len()) as u64 + length;
        if whole > self.largest { Err(too_large(whole)) } else { Ok(parts) }
    }

    fn write_in_form(&self, parts: &Parts, to: &mut dyn Write) -> io::Result<()> {
        if !self.is_compressed {
            return self.write_parts(parts, to);
        }
        let mut encoder = GzEncoder::new(to, Compression::default());
        self.write_parts(parts, &mut encoder)?;
        encoder.finish().map(drop)
    }

    fn write_parts(&self, parts: &Parts, to: &mut dyn Write) -> io::Result<()> {
        if self.format == OutputFormat::JsonPretty {
            let mut indenter = Indenter::new(to);
            self.write_around(parts, &mut indenter)?;
            return indenter.finish();
        }
        self.write_around(parts, to)?;
        to.flush()
    }

    fn write_around(&self, parts: &Parts, to: &mut dyn Write) -> io::Result<()> {
        to.write_all(&parts.before)?;
        if let Some(payload) = &self.payload {
            let is_json = self.options.format == otlpprof_otlp::Format::Json;
            copy_payload(payload, is_json, to)?;
        }
        to.write_all(&parts.after)
    }
}

fn too_large(bytes: u64) -> anyhow::Error {
    anyhow::anyhow!(
        "the result would have {bytes} bytes, and a protobuf message ends at 2 GiB: convert fewer \
         recordings, or leave out --include-payload"
    )
}

/// Whether a file of this name is to be compressed with gzip.
///
/// # Errors
/// The name's extension stands for another compression.
fn is_gzip_name(path: &Path) -> anyhow::Result<bool> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("gz") => Ok(true),
        Some(other @ ("zst" | "zstd" | "lz4" | "xz" | "bz2" | "zip")) => {
            bail!("{}: a result cannot be compressed as .{other}, only as .gz", path.display())
        }
        _ => Ok(false),
    }
}

/// The recordings with their decompressed lengths in bytes.
fn lengths(files: &[PathBuf]) -> anyhow::Result<Vec<(PathBuf, u64)>> {
    let length = |path: &PathBuf| {
        if path == Path::new("-") {
            bail!("--include-payload needs files, not standard input");
        }
        let length = unpacked_len(path).with_context(|| path.display().to_string())?;
        Ok((path.clone(), length))
    };
    files.iter().map(length).collect()
}

/// The length of a recording in bytes. A compressed file is decompressed to count them.
fn unpacked_len(path: &Path) -> io::Result<u64> {
    let file = std::fs::metadata(path)?;
    if !file.is_file() {
        return Ok(file.len());
    }
    let mut recording = Unpacked::new(File::open(path)?)?;
    if recording.is_packed() { io::copy(&mut recording, &mut io::sink()) } else { Ok(file.len()) }
}

/// Copies the recordings, decompressed, each in the length that was determined before.
fn copy_payload(files: &[(PathBuf, u64)], as_base64: bool, to: &mut dyn Write) -> io::Result<()> {
    let mut files = files.iter();
    let mut open: Option<io::Take<Unpacked<File>>> = None;
    let mut bytes = vec![0; COPY_LEN];
    let mut text = String::new();
    loop {
        let mut filled = 0;
        while filled < bytes.len() {
            let Some(file) = &mut open else {
                let Some((path, length)) = files.next() else { break };
                open = Some(Unpacked::new(File::open(path)?)?.take(*length));
                continue;
            };
            match file.read(&mut bytes[filled..])? {
                0 if file.limit() > 0 => {
                    return Err(io::Error::other("a recording became shorter during its conversion"));
                }
                0 => open = None,
                count => filled += count,
            }
        }
        if filled == 0 {
            return Ok(());
        }
        if as_base64 {
            text.clear();
            base64::engine::general_purpose::STANDARD.encode_string(&bytes[..filled], &mut text);
            to.write_all(text.as_bytes())?;
        } else {
            to.write_all(&bytes[..filled])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_model::{AttributeSetId, LinkId, Profile, ProfileType, Resource, SampleIdentity, StackId};

    use super::*;

    /// A batch of one sample, with a resource attribute of the key `key`.
    fn batch(key: &str) -> Batch {
        let mut profile =
            Profile::new(ProfileType::custom("app.Sent", ("events", "count"), ("events", "count")), 1);
        (profile.start_unix_nano, profile.duration_nano) = (1_700_000_000_000_000_000, 1);
        let (stack, attributes, link) = (StackId::EMPTY, AttributeSetId::EMPTY, LinkId::NONE);
        profile.add(SampleIdentity { stack, attributes, link }, 7, None);
        let mut resource = Resource::default();
        resource.set(key, "shop");
        Batch { resource, profiles: vec![profile], ..Batch::default() }
    }

    /// An output in `directory`. With a payload, creates a recording in that directory.
    fn output(directory: &Path, format: OutputFormat, with_payload: bool, largest: u64) -> Output {
        let recording = directory.join("recording");
        std::fs::write(&recording, [7; 1_000]).unwrap();
        let of = if format == OutputFormat::Proto {
            otlpprof_otlp::Format::Proto
        } else {
            otlpprof_otlp::Format::Json
        };
        Output {
            path: directory.join("out"),
            format,
            options: EncodeOptions { format: of, ..EncodeOptions::default() },
            payload: with_payload.then(|| vec![(recording, 1_000)]),
            validate: true,
            strict: false,
            is_compressed: false,
            largest,
        }
    }

    /// Regression: the result was validated before its size was checked, and so was first reported as valid.
    #[test]
    fn a_result_that_is_too_large_is_refused_before_anything_is_written() {
        let batch = batch("service.name");
        for (format, with_payload) in [
            (OutputFormat::Proto, false),
            (OutputFormat::Proto, true),
            (OutputFormat::Json, true),
            (OutputFormat::JsonPretty, true),
        ] {
            let directory = tempfile::tempdir().unwrap();
            let output = |largest| output(directory.path(), format, with_payload, largest);
            let parts = output(u64::MAX).encode(&batch).unwrap();
            let length =
                (parts.before.len() + parts.after.len()) as u64 + if with_payload { 1_000 } else { 0 };
            let mut printed = Vec::new();
            let refusal = output(length - 1).write(&batch, &mut printed).unwrap_err();
            let expected =
                format!("the result would have {length} bytes, and a protobuf message ends at 2 GiB");
            assert!(refusal.to_string().starts_with(&expected), "{format:?}: {refusal}");
            assert!(printed.is_empty() && !output(0).path.exists(), "{format:?}");
            if !with_payload {
                let mut followed = Vec::new();
                output(length - 1).append(&batch, &mut followed, &mut printed).unwrap_err();
                assert!(printed.is_empty() && followed.is_empty(), "{format:?}");
                output(length).append(&batch, &mut followed, &mut printed).unwrap();
                assert_eq!(followed.len() as u64, 4 + length, "{format:?}");
            }
            assert_eq!(output(length).write(&batch, &mut printed).unwrap(), Validity::Valid, "{format:?}");
            assert!(!printed.is_empty() && output(0).path.exists(), "{format:?}");
        }
    }

    #[test]
    fn a_result_that_breaks_a_rule_is_written_and_reported() {
        // The semantic conventions do not allow this attribute in profiles.
        let batch = batch("code.function.name");
        let directory = tempfile::tempdir().unwrap();
        for with_payload in [false, true] {
            let mut output = output(directory.path(), OutputFormat::Proto, with_payload, LARGEST_MESSAGE);
            let mut printed = Vec::new();
            assert_eq!(output.write(&batch, &mut printed).unwrap(), Validity::Invalid);
            assert!(String::from_utf8(printed).unwrap().contains("error: code-attribute: "));
            assert!(std::fs::metadata(&output.path).unwrap().len() > 0);
            output.validate = false;
            assert_eq!(output.write(&batch, &mut Vec::new()).unwrap(), Validity::Valid, "nobody asked");
        }
    }
}
