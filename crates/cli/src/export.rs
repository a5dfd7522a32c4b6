//! `otlpprof export`: profiles in the formats of other tools.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use otlpprof_collapsed::Quantity;
use otlpprof_report::collect::Collected;
use otlpprof_report::export::pprof::samples::PprofSamples;
use otlpprof_report::export::thread_samples::ThreadSamples;
use otlpprof_report::export::{collapsed, firefox, pprof, speedscope};
use otlpprof_report::measure::Measure;
use otlpprof_report::sample_reader::{SampleForm, SampleReader};
use otlpprof_report::selection::Selection;

use super::report::conditions;
use super::report::inputs::ProfileInputs;
use super::report::selection_args::SelectionArgs;
use super::report::stack_args::StackArgs;
use super::symbolize::symbols_args::SymbolsArgs;
use super::{terminal, whole_file};

/// Write profiles in the format of another tool
///
/// One line on standard error names the parts of the profiles that the format cannot hold.
#[derive(Debug, clap::Args)]
// `--to` names the format here.
#[command(mut_arg("to", |to| to.long("until").visible_alias(None::<&str>)))]
// An export is complete unless its user says otherwise.
#[command(mut_arg("idle", |idle| idle.help(IDLE)), mut_arg("no_idle", |no_idle| no_idle.help(NO_IDLE)))]
pub(super) struct Args {
    /// Profiles: OTLP (protobuf, plain or length-prefixed, or JSON), recordings of JDK Flight Recorder,
    /// pprof, collapsed stacks; gzipped or not. - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The format
    #[arg(id = "format", long = "to", value_enum, value_name = "FORMAT")]
    to: Target,
    /// The result; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    selection: SelectionArgs,
    #[command(flatten)]
    stacks: StackArgs,
    #[command(flatten)]
    symbols: SymbolsArgs,
}

/// The help of the options about idle threads.
const IDLE: &str = "Export idle threads of the VM and of native code in wall-clock profiles [default]";
const NO_IDLE: &str = "Leave idle threads out";

/// The format of the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Target {
    /// pprof's profile.proto, gzipped
    Pprof,
    /// Collapsed stacks for flame graph scripts: a line for each stack
    Collapsed,
    /// JSON for speedscope: a profile for each thread, of all types unless --type names one
    Speedscope,
    /// JSON for the Firefox Profiler: threads over time, of all types unless --type names one
    Firefox,
}

impl Target {
    /// The place of a thread's name, in words, in a format that has threads of its own.
    fn place_of_threads(self) -> Option<&'static str> {
        match self {
            Self::Pprof => {
                Some("in pprof the thread is a label; `go tool pprof -tagroot=thread.name` makes it the root")
            }
            Self::Speedscope => Some("in speedscope's format each thread has a profile of its own"),
            Self::Firefox => Some("in the Firefox Profiler's format each thread has a track of its own"),
            Self::Collapsed => None,
        }
    }
}

/// An export that is being made.
struct Export<'e> {
    args: &'e Args,
    inputs: &'e ProfileInputs,
    /// The measure that `--type` names, or the default one.
    measure: &'e Measure,
    selection: &'e Selection,
}

/// The contents of a result.
#[derive(Default)]
struct Contents {
    /// The measures, the one that is shown first at the end.
    measures: Vec<Measure>,
    /// Parts of the profiles that are left out, in words.
    lost: Vec<&'static str>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    whole_file::check_is_no_input(&args.output, &args.files)?;
    if args.stacks.has_threads()
        && let Some(place) = args.to.place_of_threads()
    {
        bail!("--threads: {place}");
    }
    let inputs = ProfileInputs::open_with(&args.files, args.selection.unit(), |_| {})?;
    let inputs = inputs.symbolized_by(args.symbols.symbolizer()?);
    let measure = inputs.measure(args.selection.measure())?;
    let selection = args.selection.complete_selection(&inputs.survey, measure.is_snapshot())?;
    let export = Export { args, inputs: &inputs, measure, selection: &selection };
    let contents = match args.to {
        Target::Pprof => export.pprof()?,
        Target::Collapsed => export.collapsed()?,
        Target::Speedscope => export.speedscope()?,
        Target::Firefox => export.firefox()?,
    };
    export.say(&contents)?;
    inputs.print_symbols()?;
    Ok(ProfileInputs::exit_code([&inputs]))
}

impl Export<'_> {
    fn collapsed(&self) -> anyhow::Result<Contents> {
        let mut reader = SampleReader::new(self.selection, self.form());
        let mut collected = Collected::new(self.measure, self.selection.window, None);
        self.inputs.read(&mut reader, &mut collected)?;
        self.check_selected(&reader)?;
        let own = collected.merged();
        let quantity = Quantity { name: &*self.measure.name, unit: self.unit(self.measure) };
        whole_file::write_or_print(&self.args.output, |out| {
            collapsed::write(&reader.tree, &reader.frames, own, quantity, out)
        })?;
        let (measures, lost) = (vec![self.measure.clone()], vec!["labels", "times", "kinds of code"]);
        Ok(Contents { measures, lost })
    }

    /// The form of samples.
    fn form(&self) -> SampleForm {
        self.args.stacks.form()
    }

    /// Checks the options that select samples if none was read.
    fn check_selected(&self, reader: &SampleReader<'_>) -> anyhow::Result<()> {
        conditions::check_selected(self.inputs, reader.selected_samples, &self.args.selection.conditions())
    }

    /// The unit of a measure's values.
    fn unit<'m>(&self, measure: &'m Measure) -> &'m str {
        self.args.stacks.weight().unit(measure)
    }

    fn pprof(&self) -> anyhow::Result<Contents> {
        let mut measures: Vec<_> = self.inputs.survey.of_same_events(self.measure).cloned().collect();
        measures.push(self.measure.clone());
        let form = SampleForm { ignores_stacks: true, ..self.form() };
        let mut reader = SampleReader::new(self.selection, form);
        let mut samples =
            PprofSamples::new(measures.clone(), self.selection.window, self.args.stacks.weight());
        self.inputs.read(&mut reader, &mut samples)?;
        self.check_selected(&reader)?;
        drop(reader);
        let mut lost = vec!["kinds of code"];
        lost.extend(samples.has_times.then_some("times of samples"));
        lost.extend(samples.labels.has_lost_values.then_some("lists and bytes in labels"));
        whole_file::write_or_print(&self.args.output, |out| pprof::write::write(samples, out))?;
        Ok(Contents { measures, lost })
    }

    /// The measure that `--type` names; without it all measures of the files, the default one first.
    fn wanted_measures(&self) -> Vec<Measure> {
        match self.args.selection.measure() {
            Some(_) => vec![self.measure.clone()],
            None => {
                let others = self.inputs.survey.measures.keys().filter(|&other| other != self.measure);
                std::iter::once(self.measure).chain(others).cloned().collect()
            }
        }
    }

    fn speedscope(&self) -> anyhow::Result<Contents> {
        let measures = self.wanted_measures();
        let (reader, samples) = self.thread_samples(measures.clone(), self.form())?;
        let weight = self.args.stacks.weight();
        whole_file::write_or_print(&self.args.output, |out| {
            speedscope::write(&reader.tree, &reader.frames, samples, &self.inputs.title(), weight, out)
        })?;
        let lost = vec!["labels but threads", "times but their order", "kinds of code"];
        Ok(Contents { measures, lost })
    }

    fn firefox(&self) -> anyhow::Result<Contents> {
        let measures = self.wanted_measures();
        let form = SampleForm { objects: true, ..self.form() };
        let (reader, samples) = self.thread_samples(measures.clone(), form)?;
        let weight = self.args.stacks.weight();
        let mut lost = vec!["labels but threads", "marks of inlined frames"];
        if samples.has_untimed {
            lost.push("times within profiles (samples without a time are spread evenly)");
        }
        whole_file::write_or_print(&self.args.output, |out| {
            let (tree, frames, objects) = (&reader.tree, &reader.frames, reader.objects.all());
            firefox::write(
                firefox::Stacks { tree, frames, objects },
                samples,
                &self.inputs.title(),
                weight,
                out,
            )
        })?;
        Ok(Contents { measures, lost })
    }

    fn thread_samples(
        &self,
        measures: Vec<Measure>,
        form: SampleForm,
    ) -> anyhow::Result<(SampleReader<'_>, ThreadSamples)> {
        let mut reader = SampleReader::new(self.selection, form);
        let mut samples = ThreadSamples::new(measures, self.selection.window);
        self.inputs.read(&mut reader, &mut samples)?;
        self.check_selected(&reader)?;
        Ok((reader, samples))
    }

    /// Writes one line to standard error: what was written, and the parts of the profiles that were left out.
    fn say(&self, contents: &Contents) -> anyhow::Result<()> {
        let path = &self.args.output;
        let place = if path == Path::new("-") { "standard output".into() } else { path.to_string_lossy() };
        let written =
            contents.measures.iter().map(|measure| format!("{} in {}", measure.name, self.unit(measure)));
        let written: Vec<_> = written.collect();
        let mut lost: Vec<_> = contents.lost.iter().copied().map(str::to_owned).collect();
        let others = self.inputs.survey.measures.keys().filter(|other| !contents.measures.contains(other));
        let others: Vec<_> = others.map(|other| &*other.name).collect();
        if !others.is_empty() {
            lost.push(format!("{} (--type)", others.join(", ")));
        }
        let mut line = format!("{place} has {}", written.join(", "));
        if !lost.is_empty() {
            line.push_str("; left out: ");
            line.push_str(&lost.join(", "));
        }
        writeln!(terminal::stderr(), "{line}")?;
        Ok(())
    }
}
