//! `otlpprof symbols prune`: removes files from the store.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use otlpprof_debug_files::store::StoredFile;

use super::place_args::StoreArg;
use super::size::shown_size;
use crate::terminal;

/// Remove files from the store
///
/// Removes damaged files, and incomplete files that their writers gave up a day ago or longer. Options also
/// remove files that are whole, the longest unused ones first. A file is used when a command reads it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    store: StoreArg,
    /// Remove files that were not used for so long, such as 30d
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    unused_for: Option<Duration>,
    /// Remove files until the others have at most this size, such as 20GiB
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Print the files that would be removed, and remove none
    #[arg(long)]
    dry_run: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.store.store()?;
    let mut files = store.files()?;
    files.sort_by_key(|file| file.used);
    let now = SystemTime::now();
    let mut left: u64 = files.iter().map(|file| file.len).sum();
    let mut out = terminal::stdout();
    let (mut removed, mut bytes) = (0, 0);
    // A damaged file counts first, for its room is free then.
    files.sort_by_key(|file| file.quality.is_ok());
    for file in &files {
        let age = now.duration_since(file.used).unwrap_or_default();
        let is_unused = args.unused_for.is_some_and(|longest| age >= longest);
        let is_too_much = args.max_size.is_some_and(|most| left > most);
        let Some(reason) = reason(file, is_unused, is_too_much, age) else { continue };
        if !args.dry_run {
            store.remove(file)?;
        }
        left -= file.len;
        (removed, bytes) = (removed + 1, bytes + file.len);
        writeln!(out, "{} {}: {reason}", file.id, file.kind.name())?;
    }
    let abandoned = if args.dry_run { 0 } else { store.remove_abandoned()? };
    let (verb, size, left) =
        (if args.dry_run { "would be removed" } else { "removed" }, shown_size(bytes), shown_size(left));
    writeln!(out, "{removed} files {verb} ({size}), {abandoned} incomplete ones; {left} are left")?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn reason(file: &StoredFile, is_unused: bool, is_too_much: bool, age: Duration) -> Option<String> {
    let days = age.as_secs() / 86_400;
    match &file.quality {
        Err(why) => Some(format!("damaged: {why}")),
        Ok(_) if is_unused || is_too_much => Some(format!("last used {days} days ago")),
        Ok(_) => None,
    }
}

/// A number of bytes, with a unit of 1,024 or 1,000.
fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "kb" => 1_000,
        "m" | "mib" => 1 << 20,
        "mb" => 1_000_000,
        "g" | "gib" => 1 << 30,
        "gb" => 1_000_000_000,
        "t" | "tib" => 1 << 40,
        "tb" => 1_000_000_000_000,
        _ => return Err("not a size; write 500MB or 20GiB".to_owned()),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes.ok_or_else(|| "not a size; write 500MB or 20GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("0", 0), ("20GiB", 20 << 30), ("5 MB", 5_000_000), ("1k", 1024), ("7b", 7)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for bad in ["", "GiB", "1x", "-1", "1.5G", "99999999999T"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
