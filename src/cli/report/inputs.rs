//! The profiles that are shown: files that are read twice, first in outline.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::bail;

use super::content::Content;
use super::messages;
use crate::cli::input::Input;
use crate::cli::{EXIT_BAD_INPUT, terminal};
use crate::otlp::encoded::EncodedMessage;
use crate::report::measure::Measure;
use crate::report::survey::Survey;

/// Files of profiles that can be read to their ends, in any format that [`Content`] names.
pub(in crate::cli) struct ProfileInputs {
    inputs: Vec<(Input, Content)>,
    /// Their contents in outline.
    pub(in crate::cli) survey: Survey,
    /// Whether a recording is damaged or cut off. The part that can be read is shown.
    is_damaged: bool,
}

impl ProfileInputs {
    /// Opens files and reads all of them, so that no part of a broken file is shown. Of a damaged recording
    /// the part that can be read is shown: a line on standard error names the damage.
    pub(in crate::cli) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let mut opened = Self { inputs: Vec::new(), survey: Survey::default(), is_damaged: false };
        for path in paths {
            let input = Input::open(path)?;
            let content = Content::of(&input)?;
            let survey = &mut opened.survey;
            if let Some(problem) =
                messages::each_message(&input, content, &mut |message| survey.add(&message))?
            {
                writeln!(terminal::stderr(), "otlpprof: {problem}")?;
                opened.is_damaged = true;
            }
            opened.inputs.push((input, content));
        }
        Ok(opened)
    }

    /// The exit code of a command that has shown these files: it says whether one is damaged.
    pub(in crate::cli) fn exit_code<'i>(all: impl IntoIterator<Item = &'i Self>) -> ExitCode {
        match all.into_iter().any(|inputs| inputs.is_damaged) {
            true => ExitCode::from(EXIT_BAD_INPUT),
            false => ExitCode::SUCCESS,
        }
    }

    /// Calls `take` with each message. Files in other formats are converted to messages.
    pub(in crate::cli) fn each_message(&self, mut take: impl FnMut(EncodedMessage)) -> anyhow::Result<()> {
        for (input, content) in &self.inputs {
            messages::each_message(input, *content, &mut take)?;
        }
        Ok(())
    }

    /// The measure of this name, or the one that is shown if none is named. If there is none, the error names
    /// the measures of the files.
    pub(in crate::cli) fn measure(&self, name: Option<&str>) -> anyhow::Result<&Measure> {
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
