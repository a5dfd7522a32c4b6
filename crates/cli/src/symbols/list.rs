//! `otlpprof symbols list`: the files of the store.

use std::io::Write as _;
use std::process::ExitCode;

use otlpprof_debug_files::store::StoredFile;
use serde_json::{Value, json};

use super::place_args::StoreArg;
use super::size::shown_size;
use crate::exit_codes::EXIT_FAILED;
use crate::format_args::{Format, FormatArgs};
use crate::terminal::{self, write_json};

/// List the files of the store
///
/// Each file is checked as when it was added. Exits with 1 if one is damaged.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    store: StoreArg,
    #[command(flatten)]
    form: FormatArgs,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.store.store()?;
    let files = store.files()?;
    let mut out = terminal::stdout();
    match args.form.format() {
        Format::Json => write_json(&files.iter().map(as_json).collect::<Vec<_>>(), &mut out)?,
        Format::Text => {
            for StoredFile { id, kind, len, quality, .. } in &files {
                let quality = match quality {
                    Ok(quality) => quality.to_string(),
                    Err(why) => format!("damaged: {why}"),
                };
                writeln!(out, "{id}  {:<10}  {:>10}  {quality}", kind.name(), shown_size(*len))?;
            }
            let size = shown_size(files.iter().map(|file| file.len).sum());
            writeln!(out, "{}: {} files, {size}", store.root().display(), files.len())?;
        }
    }
    out.flush()?;
    let is_damaged = files.iter().any(|file| file.quality.is_err());
    Ok(if is_damaged { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

fn as_json(file: &StoredFile) -> Value {
    let StoredFile { id, kind, path, len, quality, .. } = file;
    let (quality, damage) = match quality {
        Ok(quality) => (Some(quality.to_string()), None),
        Err(why) => (None, Some(why)),
    };
    json!({
        "id": id.to_string(),
        "kind": kind.name(),
        "path": path.display().to_string(),
        "size": len,
        "quality": quality,
        "damage": damage,
    })
}
