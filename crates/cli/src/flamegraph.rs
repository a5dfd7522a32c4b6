//! `otlpprof flamegraph`: profiles as one page that a browser opens without network.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use otlpprof_model::{attribute_keys, types};
use otlpprof_report::measure::Measure;
use otlpprof_report::page::columns::{self, PageTexts};
use otlpprof_report::page::html;
use otlpprof_report::page::rows::PageRows;
use otlpprof_report::page::steps::Steps;
use otlpprof_report::sample_reader::{SampleForm, SampleReader};
use otlpprof_report::selected_resources::SelectedResources;
use otlpprof_report::selection::Window;
use otlpprof_report::sides::{self, Comparison};
use otlpprof_report::survey::Survey;

use super::output_args::DEFAULT_PAGE;
use super::print::time;
use super::report::amount::amount;
use super::report::compare_args::{CompareArgs, empty_side, measure_of_either};
use super::report::conditions;
use super::report::idle_args;
use super::report::inputs::ProfileInputs;
use super::report::kinds;
use super::report::processes;
use super::report::selection_args::SelectionArgs;
use super::report::stack_args::StackArgs;
use super::symbolize::symbols_args::SymbolsArgs;
use super::{browser, terminal, whole_file};

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
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    place: PageOutput,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    page: PageArgs,
    /// Divide the time into at most this many steps; 0 leaves times out [default: a step for each interval;
    /// shorter steps where samples have times]
    #[arg(long, value_name = "N")]
    steps: Option<u32>,
}

/// Compare two profiles on a page
///
/// The page shows the new profile, coloured by the change since the base.
#[derive(Debug, clap::Args)]
#[command(override_usage = "otlpprof diff [OPTIONS] <BASE> <NEW>\n       \
                            otlpprof diff [OPTIONS] <NEW>... --base <BASE>...")]
pub(super) struct DiffArgs {
    /// The file to compare with and the file that is shown; with --base all files that are shown
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Compare with this file; may be given several times
    #[arg(long, value_name = "BASE")]
    base: Vec<PathBuf>,
    #[command(flatten)]
    place: PageOutput,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    page: PageArgs,
}

/// The place of a page.
#[derive(Clone, Debug, clap::Args)]
struct PageOutput {
    /// The page; - is standard output
    #[arg(short, long, value_name = "HTML", default_value = DEFAULT_PAGE)]
    output: PathBuf,
    /// Open the page in a browser
    #[arg(long)]
    open: bool,
}

impl PageOutput {
    /// Fails if the page cannot be where it is to be.
    fn check<P: AsRef<Path>>(&self, inputs: &[P]) -> anyhow::Result<()> {
        if self.open && self.output == Path::new("-") {
            bail!("--open: the page goes to standard output; name a file by -o NAME.html");
        }
        whole_file::check_is_no_input(&self.output, inputs)
    }

    /// Opens the page in a browser, if the options say so.
    fn show(&self) -> anyhow::Result<()> {
        if self.open { browser::open(&self.output, |_| {}) } else { Ok(()) }
    }
}

/// The options of a page.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct PageArgs {
    /// The title [default: the services, or the files' names if there are none]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    symbols: SymbolsArgs,
    /// Whether the command prints a report too, whose lines name idle threads.
    #[arg(skip)]
    is_beside_report: bool,
}

impl PageArgs {
    /// Opens files, whose frames are resolved if the options say so.
    fn open(&self, files: &[PathBuf], selection: &SelectionArgs) -> anyhow::Result<ProfileInputs> {
        let inputs = ProfileInputs::open_with(files, selection.unit(), |_| {})?;
        Ok(inputs.symbolized_by(self.symbols.symbolizer()?))
    }
}

/// The base of a comparison.
struct Base {
    inputs: ProfileInputs,
    /// The names of the base and the new side.
    sides: [String; 2],
    compare: CompareArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.place.check(&args.files)?;
    let new = args.page.open(&args.files, &args.selection)?;
    let code = write(&args.place.output, None, &new, &args.selection, &args.page, args.steps)?;
    args.place.show()?;
    Ok(code)
}

/// Writes a page of the wanted samples in these files.
pub(super) fn write_page(files: &[PathBuf], wanted: &SelectionArgs, output: &Path) -> anyhow::Result<()> {
    let inputs = ProfileInputs::open(files)?;
    let page = PageArgs { is_beside_report: true, ..PageArgs::default() };
    write(output, None, &inputs, wanted, &page, None).map(drop)
}

impl DiffArgs {
    /// The files of the base and of the new side.
    fn sides(&self) -> anyhow::Result<[&[PathBuf]; 2]> {
        match (&self.base[..], &self.files[..]) {
            ([], [base, new]) => Ok([base, new].map(std::slice::from_ref)),
            ([], _) => bail!(
                "name two files, BASE and NEW; with several files a side, name those of the base by --base"
            ),
            (base, new) => Ok([base, new]),
        }
    }
}

pub(super) fn run_diff(args: &DiffArgs) -> anyhow::Result<ExitCode> {
    let sides = args.sides()?;
    args.place.check(&sides.concat())?;
    let [inputs, new] = sides.map(|files| args.page.open(files, &args.selection));
    let base = Base { inputs: inputs?, sides: sides.map(side_name), compare: args.compare };
    let code = write(&args.place.output, Some(&base), &new?, &args.selection, &args.page, None)?;
    args.place.show()?;
    Ok(code)
}

/// The name of a side: its first file, and the number of the others.
fn side_name(files: &[PathBuf]) -> String {
    match files {
        [] => String::new(),
        [file] => file.display().to_string(),
        [file, others @ ..] => format!("{} and {} more", file.display(), others.len()),
    }
}

fn write(
    output: &Path,
    base: Option<&Base>,
    new: &ProfileInputs,
    wanted: &SelectionArgs,
    page: &PageArgs,
    most_steps: Option<u32>,
) -> anyhow::Result<ExitCode> {
    let measures = match (wanted.measure(), base) {
        (Some(name), Some(base)) => vec![measure_of_either(&base.inputs, new, Some(name))?.clone()],
        (Some(name), None) => vec![new.measure(Some(name))?.clone()],
        (None, Some(base)) => measure_of_either(&base.inputs, new, None).map(|_| Vec::new())?,
        (None, None) => new.measure(None).map(|_| Vec::new())?,
    };
    let is_snapshot = measures.iter().any(Measure::is_snapshot);
    let selection = wanted.selection(&new.survey, is_snapshot)?;
    // The times of two files have nothing in common.
    let steps = match base {
        None => steps_of(&new.survey, selection.window, most_steps),
        Some(_) => None,
    };
    let mut rows = PageRows::new(measures, selection.window, steps, MOST_LABEL_VALUES);
    if most_steps.is_none() {
        rows.most_rows = MOST_ROWS;
    }
    rows.resource_keys = new.survey.resources.differing();
    let by_thread = page.stacks.has_threads();
    if by_thread {
        rows.keep_label(attribute_keys::THREAD_NAME);
    }
    // The page itself makes threads the roots of stacks, from their label.
    let form = SampleForm { threads: false, ..page.stacks.form() };
    let mut reader = SampleReader::new(&selection, form);
    let (mut base_labels, mut base_idle) = (BTreeSet::new(), 0);
    if let Some(base) = base {
        rows.side = 0;
        // Attributes that differ between the sides alone would only repeat the comparison.
        rows.resource_keys.extend(base.inputs.survey.resources.differing());
        // Times relative to the end are relative to the end of each side.
        let window = wanted.selection(&base.inputs.survey, is_snapshot)?.window;
        (rows.window, reader.window) = (window, window);
        base.inputs.read(&mut reader, &mut rows)?;
        base_labels = std::mem::take(&mut reader.label_keys);
        base_idle = std::mem::take(&mut reader.idle);
        reader.selected = SelectedResources::default();
        rows.side = 1;
        (rows.window, reader.window) = (selection.window, selection.window);
    }
    new.read(&mut reader, &mut rows)?;
    match base {
        None => conditions::check_selected(new, reader.selected_samples, &wanted.conditions())?,
        Some(base) if reader.selected_samples == 0 => {
            conditions::check_exist(&[&base.inputs, new], &wanted.conditions())?;
        }
        Some(_) => {}
    }
    if let Some(measure) = new.survey.measure(None) {
        rows.begin_with(measure);
    }
    rows.merge_steps();
    let mut notes = notes(&rows, steps);
    let idle = [base_idle, reader.idle];
    let idle_note = idle_note(&rows, idle, base.is_some());
    notes.extend(idle_note.clone());
    if let Some(base) = base {
        base.compare.check_times([0, 1].map(|side| rows.time(side).total_ns()))?;
        let surveys = [&base.inputs.survey, &new.survey];
        let mut differences = sides::differences(surveys, [&base_labels, &reader.label_keys]);
        differences.extend(empty_side([0, 1].map(|side| rows.has_values(side)), idle)?.map(str::to_owned));
        differences.iter().try_for_each(|line| writeln!(terminal::stderr(), "{line}"))?;
        notes.extend(differences);
    }
    if let Some(line) = idle_note.filter(|_| !page.is_beside_report) {
        writeln!(terminal::stderr(), "{line}")?;
    }
    let sides = base.map(|base| base.sides.clone());
    let texts = PageTexts {
        title: page.title.clone().unwrap_or_else(|| title(new, &sides)),
        about: if base.is_some() { String::new() } else { about(&reader.selected, selection.window, &rows) },
        selection: conditions::in_words(&selection).join(", "),
        notes,
        sides,
        comparison: base.map_or_else(Comparison::default, |base| base.compare.comparison()),
        by_thread,
        kinds: kinds::names(),
    };
    whole_file::write_or_print(output, |out| {
        html::write(out, |out| columns::write(&reader.tree, &reader.frames, &mut rows, &texts, out))
    })?;
    if output != Path::new("-") {
        writeln!(terminal::stderr(), "{} written: open it in a browser", output.display())?;
    }
    let all = || base.map(|base| &base.inputs).into_iter().chain([new]);
    all().try_for_each(ProfileInputs::print_symbols)?;
    Ok(ProfileInputs::exit_code(all()))
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
        None => {
            let last_ns = survey.last_start_ns.min(window.to_ns.saturating_sub(1));
            Steps::of_intervals(start_ns, last_ns, end_ns, survey.usual_interval())
        }
    };
    (steps.count > 1).then_some(steps)
}

fn title(inputs: &ProfileInputs, sides: &Option<[String; 2]>) -> String {
    match sides {
        Some([base, new]) => format!("{new} compared with {base}"),
        None => inputs.title(),
    }
}

/// The processes of a page, and the time that it shows.
fn about(selected: &SelectedResources, window: Window, rows: &PageRows) -> String {
    let (start_ns, profiled_ns) =
        (rows.time(1).start_ns(selected, window), rows.time(1).selected_ns(selected));
    let time = start_ns.filter(|_| profiled_ns > 0).map(|start_ns| {
        let profiled = amount(i64::try_from(profiled_ns).unwrap_or(i64::MAX), "nanoseconds");
        format!("{profiled} from {}", time::utc_seconds(start_ns))
    });
    let cpu = Measure { name: types::CPU.name.to_owned(), unit: types::CPU.period_unit.to_owned() };
    let whole = rows.total(&cpu.name, 1);
    let cores = processes::cores(&cpu, rows.weight().unit(&cpu), whole, profiled_ns).filter(|_| whole > 0);
    let parts = [Some(processes::in_words(&selected.survey)).filter(|words| !words.is_empty()), time, cores];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The line about idle threads that the page lacks. `idle` has the sums of both sides.
fn idle_note(rows: &PageRows, idle: [i64; 2], is_comparison: bool) -> Option<String> {
    let wall = Measure { name: types::WALL.name.to_owned(), unit: types::WALL.period_unit.to_owned() };
    let shown = [0, 1].map(|side| rows.total(&wall.name, side));
    let line = match is_comparison {
        true => idle_args::line_of_sides(idle, shown),
        false => idle_args::line(idle[1], shown[1], rows.weight().unit(&wall), "--idle"),
    };
    line.map(|line| format!("{}: {line}", wall.name))
}

/// Samples and labels that the page lacks, in words.
fn notes(rows: &PageRows, steps: Option<Steps>) -> Vec<String> {
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
    notes
}
