//! The profiles that are shown: files that are read twice, first in outline.

use std::path::PathBuf;

use anyhow::bail;

use crate::cli::input::Input;
use crate::otlp::encoded::EncodedMessage;
use crate::report::measure::Measure;
use crate::report::survey::Survey;

/// Files of profiles that can be read to their ends.
pub(in crate::cli) struct ProfileInputs {
    inputs: Vec<Input>,
    /// Their contents in outline.
    pub(in crate::cli) survey: Survey,
}

impl ProfileInputs {
    /// Opens files and reads all of them, so that no part of a broken file is shown.
    pub(in crate::cli) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let inputs = paths.iter().map(|path| Input::open(path)).collect::<Result<_, _>>()?;
        let mut opened = Self { inputs, survey: Survey::default() };
        let mut survey = Survey::default();
        opened.each_message(|message| survey.add(&message))?;
        opened.survey = survey;
        Ok(opened)
    }

    /// Calls `take` with each message.
    pub(in crate::cli) fn each_message(&self, mut take: impl FnMut(EncodedMessage)) -> anyhow::Result<()> {
        for input in &self.inputs {
            for message in input.messages()? {
                take(message?);
            }
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
