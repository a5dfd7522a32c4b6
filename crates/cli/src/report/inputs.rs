//! The profiles that are shown: files that are read twice, first in outline.

use std::cell::RefCell;
use std::convert::identity;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;
use otlpprof_otlp::encoded::EncodedMessage;
use otlpprof_report::measure::Measure;
use otlpprof_report::sample_reader::{SampleReader, SampleSink};
use otlpprof_report::survey::Survey;
use otlpprof_symbolize::Symbolizer;

use super::content::Content;
use super::made_messages::MadeMessages;
use super::profile_file::ProfileFile;
use super::read_ahead::each_message_ahead;
use crate::exit_codes::EXIT_BAD_INPUT;
use crate::terminal;

/// The service of a process that has no name (semantic conventions, "service.name").
const NO_SERVICE: &str = "unknown_service";
/// The most files that a title names.
const MOST_NAMES: usize = 3;
/// The most bytes of a message that is kept from the first reading to the second.
const KEPT_BYTES: usize = 64 << 20;

/// Files of profiles that can be read to their ends, in any format that a [`ProfileFile`] may have.
pub(crate) struct ProfileInputs {
    files: Vec<ProfileFile>,
    /// Their contents in outline.
    pub(crate) survey: Survey,
    /// The message, if the files have only one and it is small enough. The next reading takes it: to read and
    /// check it again would take about a tenth of a page's time.
    only_message: RefCell<Option<EncodedMessage>>,
    /// Whether a recording is damaged or cut off. The part that can be read is shown.
    is_damaged: bool,
    /// Resolves native frames without names.
    symbolizer: Option<RefCell<Symbolizer>>,
}

impl ProfileInputs {
    /// Opens files and reads all of them, so that no part of a broken file is shown. Of a damaged recording
    /// the part that can be read is shown: a line on standard error names the damage.
    pub(crate) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        Self::open_with(paths, None, |_| {})
    }

    /// As [`ProfileInputs::open`], with a unit for the values of collapsed stacks, and passes each message to
    /// `outline` too.
    ///
    /// # Errors
    /// If there is a unit and no file with collapsed stacks.
    pub(crate) fn open_with(
        paths: &[PathBuf],
        unit: Option<&str>,
        mut outline: impl FnMut(&EncodedMessage),
    ) -> anyhow::Result<Self> {
        let (files, survey, only_message) = Default::default();
        let mut opened = Self { files, survey, only_message, is_damaged: false, symbolizer: None };
        let mut messages = 0_u64;
        for path in paths {
            let mut file = ProfileFile::open(path)?;
            file.unit = unit.map(str::to_owned);
            let state = file.input.state();
            let mut made = file.keeps_messages().then(MadeMessages::new);
            let (survey, only_message) = (&mut opened.survey, opened.only_message.get_mut());
            let problems = each_message_ahead(std::slice::from_ref(&file), identity, |message| {
                survey.add(&message);
                outline(&message);
                messages += 1;
                made.iter_mut().for_each(|made| made.add(&message));
                let is_kept = messages == 1 && message.bytes().len() <= KEPT_BYTES;
                *only_message = is_kept.then_some(message);
            })?;
            for problem in problems {
                writeln!(terminal::stderr(), "otlpprof: {problem}")?;
                opened.is_damaged = true;
            }
            made.into_iter().for_each(|made| file.keep(made));
            file.note_checked(state);
            opened.files.push(file);
        }
        let has_collapsed = || opened.files.iter().any(|file| file.content == Content::Collapsed);
        if let Some(unit) = unit.filter(|_| !has_collapsed()) {
            bail!("--unit {unit}: none of the files has collapsed stacks; other formats name their units");
        }
        Ok(opened)
    }

    /// A title for what is made of the files: the services, or else the names of the files.
    pub(crate) fn title(&self) -> String {
        let services = self.survey.resources.service_names();
        if !services.is_empty() && services != NO_SERVICE {
            return services;
        }
        let names = self.files.iter().filter_map(|file| Some(file.input.path.file_name()?.to_string_lossy()));
        let names: Vec<_> = names.filter(|name| name != "-").collect();
        match &names[..] {
            [] => "profile".to_owned(),
            names if names.len() <= MOST_NAMES => names.join(", "),
            names => format!("{} and {} more", names[..MOST_NAMES].join(", "), names.len() - MOST_NAMES),
        }
    }

    /// Resolves native frames without names from now on.
    pub(crate) fn symbolized_by(self, symbolizer: Option<Symbolizer>) -> Self {
        Self { symbolizer: symbolizer.map(RefCell::new), ..self }
    }

    /// Writes to standard error how many frames were resolved, and the reasons of the others.
    pub(crate) fn print_symbols(&self) -> anyhow::Result<()> {
        let Some(symbolizer) = &self.symbolizer else { return Ok(()) };
        let summary = symbolizer.borrow().summary();
        let mut err = terminal::stderr();
        summary.lines().iter().try_for_each(|line| writeln!(err, "{line}"))?;
        Ok(())
    }

    /// The exit code of a command that has shown these files: it says whether one is damaged.
    pub(crate) fn exit_code<'i>(all: impl IntoIterator<Item = &'i Self>) -> ExitCode {
        match all.into_iter().any(|inputs| inputs.is_damaged) {
            true => ExitCode::from(EXIT_BAD_INPUT),
            false => ExitCode::SUCCESS,
        }
    }

    /// Calls `take` with each message. Files in other formats are converted to messages.
    pub(crate) fn each_message(&self, take: impl FnMut(EncodedMessage)) -> anyhow::Result<()> {
        self.each_prepared(identity, take)
    }

    /// Passes the selected samples of all messages to the sink.
    pub(crate) fn read(
        &self,
        reader: &mut SampleReader<'_>,
        sink: &mut impl SampleSink,
    ) -> anyhow::Result<()> {
        self.read_beside(reader, sink, |_| {})
    }

    /// As [`ProfileInputs::read`], and passes each message to `beside` too.
    pub(crate) fn read_beside(
        &self,
        reader: &mut SampleReader<'_>,
        sink: &mut impl SampleSink,
        mut beside: impl FnMut(&EncodedMessage),
    ) -> anyhow::Result<()> {
        let resolver = reader.resolver();
        self.each_prepared(
            |message| resolver.resolve(message),
            |framed| {
                beside(framed.message());
                reader.read_framed(&framed, sink);
            },
        )
    }

    /// Calls `take` with each message, which another thread may have prepared by `prepare`.
    fn each_prepared<P: Send>(
        &self,
        prepare: impl Fn(EncodedMessage) -> P + Sync,
        mut take: impl FnMut(P),
    ) -> anyhow::Result<()> {
        let only = self.only_message.take();
        match (&self.symbolizer, only) {
            (Some(symbolizer), Some(only)) => {
                let mut symbolizer = symbolizer.borrow_mut();
                symbolizer.expect_one_message();
                take(prepare(symbolizer.symbolize(only)));
            }
            (None, Some(only)) => take(prepare(only)),
            // A symbolizer resolves the frames of one message after another.
            (Some(symbolizer), None) => {
                each_message_ahead(&self.files, identity, |message| {
                    take(prepare(symbolizer.borrow_mut().symbolize(message)));
                })?;
            }
            (None, None) => drop(each_message_ahead(&self.files, prepare, take)?),
        }
        Ok(())
    }

    /// The measure of this name, or the one that is shown if none is named. If there is none, the error names
    /// the measures of the files.
    pub(crate) fn measure(&self, name: Option<&str>) -> anyhow::Result<&Measure> {
        if let Some(measure) = self.survey.measure(name) {
            return Ok(measure);
        }
        let names: Vec<_> = self.survey.measures.keys().map(|measure| &*measure.name).collect();
        match name {
            Some(name) if !names.is_empty() => bail!("--type {name}: the files have {}", names.join(", ")),
            _ => bail!("the files have no profiles"),
        }
    }
}
