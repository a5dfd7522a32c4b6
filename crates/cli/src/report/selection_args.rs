//! The options that select samples, shared by all commands that show profiles.

use anyhow::{Context as _, bail};
use otlpprof_model::attribute_keys;
use otlpprof_report::selection::{MOST_EXPRESSIONS, Selection, Window};
use otlpprof_report::survey::Survey;
use regex::Regex;

use super::conditions::Condition;
use super::idle_args::IdleArgs;
use crate::time_bound::{self, TimeBound};

/// The options that select samples by their attributes and stacks. All of them must hold.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SampleArgs {
    /// The kind of profile, such as cpu or alloc-space, or the engine, such as alloc or lock [default: cpu;
    /// all in outputs that hold several]
    #[arg(long = "type", value_name = "NAME")]
    pub(crate) measure: Option<String>,
    /// Only samples with this attribute, of the sample, its profile or its resource
    #[arg(long = "where", value_name = "KEY=VALUE", value_parser = parse_attribute)]
    attributes: Vec<(String, String)>,
    /// Only samples of the thread with this name
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Only samples of this trace: 32 hexadecimal digits
    #[arg(long, value_name = "ID", value_parser = parse_trace)]
    trace: Option<[u8; 16]>,
    /// Only stacks with a function that matches this regular expression
    #[arg(long = "frame", value_name = "REGEX")]
    frames: Vec<Regex>,
    /// Only stacks without a function that matches this regular expression
    #[arg(long, value_name = "REGEX")]
    without: Vec<Regex>,
    #[command(flatten)]
    idle: IdleArgs,
}

/// The options that select samples, by time as well. All of them must hold.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct SelectionArgs {
    #[command(flatten)]
    samples: SampleArgs,
    /// Only samples from this time on: 2026-01-31T12:00:00Z, with an offset, in local time without one,
    /// seconds since 1970, +5m for five minutes after the begin, or -5m for five minutes before the end
    #[arg(long, value_name = "TIME", value_parser = time_bound::parse, allow_hyphen_values = true)]
    from: Option<TimeBound>,
    /// Only samples before this time; the same forms as --from
    #[arg(
        long,
        visible_alias = "until",
        value_name = "TIME",
        value_parser = time_bound::parse,
        allow_hyphen_values = true
    )]
    to: Option<TimeBound>,
    /// Of profiles that are a state, such as live-space: the last one at this time
    #[arg(
        long,
        value_name = "TIME",
        value_parser = time_bound::parse,
        allow_hyphen_values = true,
        conflicts_with = "to"
    )]
    at: Option<TimeBound>,
    /// Of collapsed stacks: the unit of their values, such as nanoseconds or bytes [default: as the file
    /// says, or count]
    #[arg(long, value_name = "UNIT")]
    unit: Option<String>,
}

impl SampleArgs {
    /// The selection in this window of time, for a command that shows profiles: without idle threads, unless
    /// the options name threads.
    pub(crate) fn selection(&self, window: Window) -> anyhow::Result<Selection> {
        if self.frames.len() + self.without.len() > MOST_EXPRESSIONS {
            bail!("--frame and --without: at most {MOST_EXPRESSIONS} expressions");
        }
        let thread = self.thread.iter().map(|name| Selection::thread(name));
        let mut selection = Selection {
            attributes: self.attributes.iter().cloned().chain(thread).collect(),
            trace: self.trace,
            frames: self.frames.clone(),
            without: self.without.clone(),
            window,
            without_idle: false,
        };
        selection.without_idle = self.idle.leave_out(!selection.is_about_threads());
        Ok(selection)
    }
}

impl SelectionArgs {
    /// All samples of a measure.
    pub(crate) fn of_measure(measure: Option<String>, idle: IdleArgs) -> Self {
        Self { samples: SampleArgs { measure, idle, ..SampleArgs::default() }, ..Self::default() }
    }

    /// The name of the measure, if one is chosen.
    pub(crate) fn measure(&self) -> Option<&str> {
        self.samples.measure.as_deref()
    }

    /// The options that name an attribute's value.
    pub(crate) fn conditions(&self) -> Vec<Condition> {
        let SampleArgs { attributes, thread, .. } = &self.samples;
        let attributes = attributes.iter().map(|(key, value)| Condition {
            option: format!("--where {key}={value}"),
            key: key.clone(),
            value: Some(value.clone()),
        });
        let thread = thread.iter().map(|name| {
            let (key, value) = Selection::thread(name);
            Condition { option: format!("--thread {name}"), key, value: Some(value) }
        });
        attributes.chain(thread).collect()
    }

    /// Whether samples are selected by their thread or their functions.
    pub(super) fn has_threads_or_functions(&self) -> bool {
        let SampleArgs { attributes, thread, frames, .. } = &self.samples;
        let is_of_thread =
            |key: &str| key == attribute_keys::THREAD_NAME || key == attribute_keys::THREAD_OS_ID;
        thread.is_some() || !frames.is_empty() || attributes.iter().any(|(key, _)| is_of_thread(key))
    }

    /// The unit of collapsed stacks, if it is chosen.
    pub(crate) fn unit(&self) -> Option<&str> {
        self.unit.as_deref()
    }

    /// As [`SelectionArgs::selection`], for a command that passes profiles on: with idle threads, unless
    /// the options leave them out.
    pub(crate) fn complete_selection(&self, survey: &Survey, is_snapshot: bool) -> anyhow::Result<Selection> {
        let selection = self.selection(survey, is_snapshot)?;
        Ok(Selection { without_idle: self.samples.idle.leave_out(false), ..selection })
    }

    /// The selection in the files of this survey, for a command that shows profiles.
    pub(crate) fn selection(&self, survey: &Survey, is_snapshot: bool) -> anyhow::Result<Selection> {
        if self.at.is_some() && !is_snapshot {
            bail!("--at: this kind of profile is no state at a time; use --from and --to");
        }
        let bounds = [("--from", self.from), ("--to", self.to), ("--at", self.at)];
        if survey.times.is_none()
            && let Some((option, _)) = bounds.iter().find(|(_, bound)| bound.is_some())
        {
            bail!("{option}: the profiles have no times");
        }
        let unix_ns = |bound: TimeBound, option: &'static str| bound.unix_ns(survey.times).context(option);
        let from_ns = self.from.map_or(Ok(0), |from| unix_ns(from, "--from"))?;
        let to_ns = match (self.at, self.to) {
            (Some(at), _) => unix_ns(at, "--at")?.saturating_add(1),
            (None, Some(to)) => unix_ns(to, "--to")?,
            (None, None) => u64::MAX,
        };
        self.samples.selection(Window { from_ns, to_ns })
    }
}

fn parse_attribute(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("an attribute is KEY=VALUE, such as tenant=acme")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn parse_trace(text: &str) -> Result<[u8; 16], String> {
    let number = (text.len() == 32).then(|| u128::from_str_radix(text, 16).ok()).flatten();
    let number = number.filter(|_| text.bytes().all(|digit| digit.is_ascii_hexdigit()));
    number.map(u128::to_be_bytes).ok_or_else(|| "a trace's id is 32 hexadecimal digits".to_owned())
}
