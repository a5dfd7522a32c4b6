//! `otlpprof symbols check`: the files that a profile needs, and the ones that are there.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use otlpprof_debug_files::{Locator, NotLocated, ObjectFiles, ObjectIdentity};
use otlpprof_symbolize::needs::Needs;
use serde_json::{Value, json};

use super::place_args::PlaceArgs;
use crate::exit_codes::EXIT_FAILED;
use crate::format_args::{Format, FormatArgs};
use crate::report::inputs::ProfileInputs;
use crate::terminal::{self, write_json};

/// Show which files a profile needs for names, and which are there
///
/// Lists the objects of frames without a name, and for each the best file that is found, or the places that
/// were searched. Exits with 1 if an object has no file.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Profiles; - is standard input
    #[arg(required = true, value_name = "PROFILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    places: PlaceArgs,
    #[command(flatten)]
    form: FormatArgs,
}

/// An object, the number of its frames without a name, and its files.
type Checked = (ObjectIdentity, u64, Result<ObjectFiles, NotLocated>);

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let locator = Locator::new(args.places.places()?);
    let mut needs = Needs::default();
    ProfileInputs::open(&args.files)?.each_message(|message| needs.add(&message))?;
    let objects = needs.into_objects();
    let identities: Vec<_> = objects.iter().map(|(identity, _)| identity).collect();
    let located = locator.locate_all(&identities);
    let checked: Vec<Checked> = objects
        .into_iter()
        .zip(located)
        .map(|((identity, locations), files)| (identity, locations, files))
        .collect();
    for problem in locator.problems() {
        writeln!(terminal::stderr(), "otlpprof: {problem}")?;
    }
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Json => write_json(&checked.iter().map(as_json).collect::<Vec<_>>(), &mut out)?,
        Format::Text => print(&checked, &mut out)?,
    }
    out.flush()?;
    let is_missing = checked.iter().any(|(_, _, files)| files.is_err());
    Ok(if is_missing { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

fn print(checked: &[Checked], out: &mut dyn std::io::Write) -> anyhow::Result<()> {
    for (identity, locations, files) in checked {
        let path = identity.path.as_deref().unwrap_or("path unknown");
        writeln!(out, "{path}, {identity}: {locations} addresses")?;
        match files {
            Ok(files) => {
                writeln!(out, "    {}", files.quality)?;
                for (role, path) in roles(files) {
                    writeln!(out, "    {role}: {}", path.display())?;
                }
                for problem in &files.problems {
                    writeln!(out, "    note: {problem}")?;
                }
            }
            Err(why) => writeln!(out, "    missing: {why}")?,
        }
    }
    let found = checked.iter().filter(|(_, _, files)| files.is_ok()).count();
    Ok(writeln!(out, "{} objects have frames without a name; files of {found} are found", checked.len())?)
}

fn roles(files: &ObjectFiles) -> impl Iterator<Item = (&'static str, &PathBuf)> {
    let all = [
        ("debug file", &files.debug),
        ("executable", &files.executable),
        ("supplementary file", &files.supplementary),
        ("split units", &files.package),
    ];
    all.into_iter().filter_map(|(role, path)| Some((role, path.as_ref()?)))
}

fn as_json((identity, locations, files): &Checked) -> Value {
    let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let mut object = json!({
        "path": identity.path,
        "build_id": identity.build_id.map(|id| id.to_string()),
        "htlhash": identity.htlhash.map(|hash| hash.to_string()),
        "addresses": locations,
    });
    let found = match files {
        Ok(files) => json!({
            "quality": files.quality.to_string(),
            "debug": text(&files.debug),
            "executable": text(&files.executable),
            "supplementary": text(&files.supplementary),
            "package": text(&files.package),
            "problems": files.problems,
        }),
        Err(why) => json!({ "missing": why.to_string() }),
    };
    if let (Value::Object(object), Value::Object(found)) = (&mut object, found) {
        object.extend(found);
    }
    object
}
