//! `otlpprof flamegraph`: profiles as one page that a browser opens without network.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;

use super::report::inputs::ProfileInputs;
use super::report::selection_args::SelectionArgs;
use super::{terminal, whole_file};
use crate::report::measure::Measure;
use crate::report::page::columns::{self, PageTexts};
use crate::report::page::html;
use crate::report::page::rows::PageRows;
use crate::report::page::steps::Steps;
use crate::report::sample_reader::SampleReader;
use crate::report::selection::{Selection, Window};
use crate::report::survey::Survey;

/// The most values of a label that is kept on the page.
const MOST_LABEL_VALUES: usize = 2_000;

/// The most rows of a page whose steps are chosen by itself. Above it steps are merged.
const MOST_ROWS: usize = 250_000;

/// Write a flame graph page
///
/// The page is one file that a browser opens without network: flame graph, table, search, comparison. It has
/// all kinds of profiles in the files, unless --type names one.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Files of OTLP profiles: protobuf, plain or length-prefixed, or OTLP/JSON, gzipped or not; - is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page; - is standard output
    #[arg(short, long, value_name = "HTML")]
    output: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// Compare two profiles on a page
///
/// The page shows the new profile, coloured by the change since the base.
#[derive(Debug, clap::Args)]
pub(super) struct DiffArgs {
    /// The file to compare with
    #[arg(value_name = "BASE")]
    base: PathBuf,
    /// The file that is shown
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// The page; - is standard output
    #[arg(short, long, value_name = "HTML")]
    output: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// The options of a page.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct PageArgs {
    /// The title [default: the services]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Make each source line a frame of its own
    #[arg(long)]
    lines: bool,
    /// Divide the time into at most this many steps; 0 leaves times out [default: a step for each interval;
    /// shorter steps where samples have times]
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let new = ProfileInputs::open(&args.files)?;
    write(&args.output, None, &new, None, &args.selection, &args.page)
}

/// Writes a page of everything in these files.
pub(super) fn write_page(files: &[PathBuf], output: &Path) -> anyhow::Result<()> {
    let inputs = ProfileInputs::open(files)?;
    write(output, None, &inputs, None, &SelectionArgs::default(), &PageArgs::default()).map(drop)
}

pub(super) fn run_diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let base = ProfileInputs::open(std::slice::from_ref(&args.base))?;
    let new = ProfileInputs::open(std::slice::from_ref(&args.new))?;
    let name = |path: &Path| path.display().to_string();
    let sides = [name(&args.base), name(&args.new)];
    write(&args.output, Some(&base), &new, Some(sides), &args.selection, &args.page)
}

fn write(
    output: &Path,
    base: Option<&ProfileInputs>,
    new: &ProfileInputs,
    sides: Option<[String; 2]>,
    wanted: &SelectionArgs,
    page: &PageArgs,
) -> anyhow::Result<ExitCode> {
    let measures = match &wanted.measure {
        Some(name) => vec![new.measure(Some(name))?.clone()],
        None => new.measure(None).map(|_| Vec::new())?,
    };
    let is_snapshot = measures.iter().any(Measure::is_snapshot);
    let selection = wanted.selection(&new.survey, is_snapshot)?;
    // The times of two files have nothing in common.
    let steps = match base {
        None => steps_of(&new.survey, selection.window, page.steps),
        Some(_) => None,
    };
    let mut rows = PageRows::new(measures, selection.window, steps, MOST_LABEL_VALUES);
    if page.steps.is_none() {
        rows.most_rows = MOST_ROWS;
    }
    let mut reader = SampleReader::new(&selection, page.lines);
    if let Some(base) = base {
        rows.side = 0;
        base.each_message(|message| reader.read(&message, &mut rows))?;
        rows.side = 1;
    }
    new.each_message(|message| reader.read(&message, &mut rows))?;
    rows.merge_steps();
    let texts = PageTexts {
        title: page.title.clone().unwrap_or_else(|| title(&new.survey, &sides)),
        selection: description(&selection),
        notes: notes(&rows, steps, base, new),
        sides,
    };
    let mut write = |out: &mut dyn Write| -> io::Result<()> {
        html::write(out, |out| columns::write(&reader.tree, &reader.frames, &mut rows, &texts, out))
    };
    if output == Path::new("-") {
        write(&mut io::stdout().lock())?;
    } else {
        whole_file::write(output, write).with_context(|| output.display().to_string())?;
        writeln!(terminal::stderr(), "{} written: open it in a browser", output.display())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The steps of the time in the window: at most as many as wanted, otherwise as fine as the files' times are.
/// `None` if times are not wanted, or if there would be one step.
fn steps_of(survey: &Survey, window: Window, most: Option<u32>) -> Option<Steps> {
    let (start_ns, end_ns) = survey.times?;
    let (start_ns, end_ns) = (start_ns.max(window.from_ns), end_ns.min(window.to_ns));
    let steps = match most {
        Some(0) => return None,
        Some(most) => Steps::new(start_ns, end_ns, most),
        None if survey.has_sample_times => Steps::finest(start_ns, end_ns),
        None => Steps::of_intervals(start_ns, end_ns, survey.usual_length_ns()),
    };
    (steps.count > 1).then_some(steps)
}

fn title(survey: &Survey, sides: &Option<[String; 2]>) -> String {
    if let Some([base, new]) = sides {
        return format!("{new} compared with {base}");
    }
    let services = survey.service_names();
    if services.is_empty() { "profile".to_owned() } else { services }
}

/// The conditions of a selection in words; empty if everything is selected.
fn description(selection: &Selection) -> String {
    let attributes = selection.attributes.iter().map(|(key, value)| format!("{key}={value}"));
    let frames = selection.frames.iter().map(|frame| format!("with {frame}"));
    let without = selection.without.iter().map(|frame| format!("without {frame}"));
    let trace = selection.trace.map(|trace| format!("trace {:032x}", u128::from_be_bytes(trace)));
    attributes.chain(frames).chain(without).chain(trace).collect::<Vec<_>>().join(", ")
}

/// Samples and measures that the page lacks, in words.
fn notes(
    rows: &PageRows,
    steps: Option<Steps>,
    base: Option<&ProfileInputs>,
    new: &ProfileInputs,
) -> Vec<String> {
    let dropped = rows.labels().keys().iter().filter(|key| key.is_dropped);
    let mut notes: Vec<_> = dropped
        .map(|key| format!("samples are merged over {}: more than {MOST_LABEL_VALUES} values", key.name))
        .collect();
    if let Some(merged) = rows.steps().filter(|_| rows.steps() != steps) {
        let length_ms = merged.step_ns / 1_000_000;
        notes.push(format!(
            "samples are merged within steps of {length_ms} ms: --from and --to make a page of less time"
        ));
    }
    if let Some(base) = base {
        for (one, other, side) in [(base, new, "new"), (new, base, "base")] {
            let missing =
                one.survey.measures.keys().filter(|&measure| !other.survey.measures.contains_key(measure));
            notes.extend(missing.map(|measure| format!("the {side} side has no {}", measure.name)));
        }
    }
    notes
}
