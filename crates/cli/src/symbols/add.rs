//! `otlpprof symbols add`: puts files into the store.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use otlpprof_debug_files::examined::{ExamineError, open};
use otlpprof_debug_files::store::{Belonging, Incoming, Outcome, Placed, Store, StoreError};

use super::package::each_elf_file;
use super::place_args::StoreArg;
use super::size::shown_size;
use crate::exit_codes::EXIT_FAILED;
use crate::terminal;

/// Put executables and debug files into the store
///
/// Each file is checked first: it must be a whole 64-bit little-endian ELF file with a build-id. An object
/// without a build-id is known by its content, and its debug file by the name and the CRC-32 in the object's
/// .gnu_debuglink. The package of an object's split units (.dwp) is known by their ids. A file replaces a
/// worse one of its build-id, and never a better one.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Executables, libraries and debug files; folders of them, with all folders below; packages and archives
    /// of them: .deb, .rpm, .tar, images of containers, plain or compressed with gzip, xz or zstd; - is a
    /// package from standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    store: StoreArg,
    /// Print a line for each file
    #[arg(short, long)]
    verbose: bool,
}

/// The reasons why ELF files are of no use.
const NOT_STORED: &str = "without code or symbols, without an identity, or not 64-bit little-endian";

/// The most debug files of a run that wait for their object.
const MOST_WAITING: usize = 4_096;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = args.store.store()?;
    let mut adding = Adding::new(&store, args.verbose);
    for path in &args.files {
        let result = if path == Path::new("-") {
            adding.add_package(&mut io::stdin().lock(), OsStr::new("-"))
        } else if path.is_dir() {
            adding.add_folder(path)
        } else {
            adding.add_named(path)
        };
        if let Err(error) = result {
            adding.failures += 1;
            writeln!(terminal::stderr(), "otlpprof: {}: {error:#}", path.display())?;
        }
    }
    adding.place_waiting()?;
    adding.print_summary()?;
    Ok(if adding.failures > 0 { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

struct Adding<'a> {
    store: &'a Store,
    verbose: bool,
    added: usize,
    replaced: usize,
    kept: usize,
    bytes: u64,
    /// ELF files that are of no use, such as relocatable objects.
    useless: usize,
    failures: usize,
    /// Debug files without a build-id and packages of split units, whose object may come later.
    waiting: Vec<Waiting>,
}

/// A file that waits for its object.
struct Waiting {
    path: OsString,
    incoming: Incoming,
    /// Whether the user named it: then it is a mistake if the object never comes.
    is_named: bool,
}

impl<'a> Adding<'a> {
    fn new(store: &'a Store, verbose: bool) -> Self {
        Self {
            store,
            verbose,
            added: 0,
            replaced: 0,
            kept: 0,
            bytes: 0,
            useless: 0,
            failures: 0,
            waiting: Vec::new(),
        }
    }

    /// Adds a file that the user named: the user has to hear of a mistake in it.
    fn add_named(&mut self, path: &Path) -> anyhow::Result<()> {
        let source = open(path)?;
        if !is_elf(source.file())? {
            return self.add_package(&mut BufReader::with_capacity(1 << 20, source.file()), path.as_os_str());
        }
        match self.store.belonging(&source, path.file_name().unwrap_or_default()) {
            Err(error) if !may_wait(&error) => Err(error.into()),
            _ => self.add_elf(path, true),
        }
    }

    fn add_folder(&mut self, first: &Path) -> anyhow::Result<()> {
        let (mut folders, mut visited) = (vec![first.to_owned()], HashSet::new());
        while let Some(folder) = folders.pop() {
            let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
            let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort_unstable();
            for path in paths {
                // A link without a target is no file.
                let Ok(metadata) = fs::metadata(&path) else { continue };
                if !visited.insert((metadata.dev(), metadata.ino())) {
                    continue;
                }
                if metadata.is_dir() {
                    folders.push(path);
                } else if metadata.is_file()
                    && let Err(error) = self.add_found(&path)
                {
                    self.failures += 1;
                    writeln!(terminal::stderr(), "otlpprof: {}: {error:#}", path.display())?;
                }
            }
        }
        Ok(())
    }

    /// Adds a file of a folder, in which other files are no mistake.
    fn add_found(&mut self, path: &Path) -> anyhow::Result<()> {
        let file = open(path)?;
        if is_elf(file.file())? {
            return self.add_elf(path, false);
        }
        let endings = ["deb", "ddeb", "udeb", "rpm"];
        if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            return self.add_package(&mut BufReader::with_capacity(1 << 20, file.file()), path.as_os_str());
        }
        Ok(())
    }

    /// Adds an ELF file, which is not copied if the store has one that is as good.
    fn add_elf(&mut self, path: &Path, is_named: bool) -> anyhow::Result<()> {
        let source = open(path)?;
        match self.store.belonging(&source, path.file_name().unwrap_or_default()) {
            Ok(belonging) if self.store.has_as_good(&belonging) => {
                let (Belonging { id, kinds, quality }, outcome) = (belonging, Outcome::Kept);
                let placed = kinds.into_iter().map(|kind| Placed { id, kind, quality, outcome });
                return self.count(path.as_os_str(), &placed.collect::<Vec<_>>(), 0);
            }
            Err(error) if is_no_mistake(&error) => {
                self.useless += 1;
                return Ok(());
            }
            Err(error) if !may_wait(&error) => return Err(error.into()),
            Ok(_) | Err(_) => {}
        }
        let mut file = source.file();
        file.rewind()?;
        self.take(path.as_os_str(), &mut file, is_named)
    }

    fn add_package(&mut self, from: &mut dyn Read, name: &OsStr) -> anyhow::Result<()> {
        let (before, useless_before) = (self.seen(), self.useless);
        each_elf_file(from, name, &mut |path, content| {
            if let Err(error) = self.take(path, content, false) {
                // The store cannot be written, or the package cannot be read: the next file would fail too.
                if error
                    .downcast_ref::<StoreError>()
                    .is_none_or(|error| matches!(error, StoreError::Io { .. }))
                {
                    return Err(error);
                }
                self.failures += 1;
                writeln!(terminal::stderr(), "otlpprof: {}: {}: {error:#}", name.display(), path.display())?;
            }
            Ok(())
        })?;
        if self.seen() == before {
            if self.useless > useless_before {
                anyhow::bail!("none of the package's ELF files is stored: {NOT_STORED}");
            }
            anyhow::bail!("the package has no executable, library or debug file");
        }
        Ok(())
    }

    fn seen(&self) -> usize {
        self.added + self.replaced + self.kept + self.failures + self.waiting.len()
    }

    /// Copies an ELF file into the store.
    fn take(&mut self, path: &OsStr, content: &mut dyn Read, is_named: bool) -> anyhow::Result<()> {
        let mut incoming = self.store.begin()?;
        let len = io::copy(content, &mut incoming)?;
        let name = Path::new(path).file_name().unwrap_or_default();
        match self.store.place(incoming, name) {
            Ok(placed) => self.count(path, &placed, len),
            Err((error, _)) if is_no_mistake(&error) => {
                self.useless += 1;
                Ok(())
            }
            Err((error, incoming)) if may_wait(&error) && self.waiting.len() < MOST_WAITING => {
                self.waiting.push(Waiting { path: path.to_owned(), incoming, is_named });
                Ok(())
            }
            Err((error, _)) => Err(error.into()),
        }
    }

    /// Places the debug files whose object came after them. The others belong to no known object.
    fn place_waiting(&mut self) -> anyhow::Result<()> {
        for Waiting { path, incoming, is_named } in std::mem::take(&mut self.waiting) {
            let path = Path::new(&path);
            match self.store.place(incoming, path.file_name().unwrap_or_default()) {
                Ok(placed) => self.count(path.as_os_str(), &placed, 0)?,
                Err((error, _)) => {
                    *if is_named { &mut self.failures } else { &mut self.useless } += 1;
                    if is_named || self.verbose {
                        writeln!(terminal::stderr(), "otlpprof: {}: {error}", path.display())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, path: &OsStr, placed: &[Placed], len: u64) -> anyhow::Result<()> {
        // A file that is executable and debug file in one is one file.
        let best = placed.iter().map(|placed| placed.outcome);
        let outcome = best.min_by_key(|outcome| match outcome {
            Outcome::Added => 0,
            Outcome::Replaced => 1,
            Outcome::Kept => 2,
        });
        match outcome {
            Some(Outcome::Added) => (self.added, self.bytes) = (self.added + 1, self.bytes + len),
            Some(Outcome::Replaced) => (self.replaced, self.bytes) = (self.replaced + 1, self.bytes + len),
            Some(Outcome::Kept) | None => self.kept += 1,
        }
        if self.verbose {
            for Placed { id, kind, quality, outcome } in placed {
                let outcome = match outcome {
                    Outcome::Added => "added",
                    Outcome::Replaced => "replaced a worse one",
                    Outcome::Kept => "there already",
                };
                let kind = kind.name();
                writeln!(terminal::stdout(), "{id} {kind}: {outcome}, {quality}: {}", path.display())?;
            }
        }
        Ok(())
    }

    fn print_summary(&self) -> anyhow::Result<()> {
        let Self { added, replaced, kept, useless, .. } = self;
        let (size, root) = (shown_size(self.bytes), self.store.root().display());
        let mut out = terminal::stdout();
        writeln!(
            out,
            "{root}: {added} files added, {replaced} replaced, {kept} there already ({size} written)"
        )?;
        if *useless > 0 {
            writeln!(out, "{useless} ELF files are not stored: {NOT_STORED}")?;
        }
        Ok(out.flush()?)
    }
}

/// Whether folders and packages have such files beside those that are stored.
fn is_no_mistake(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Useless | StoreError::Split | StoreError::Examine(ExamineError::OtherForm { .. })
    )
}

/// Whether the file's object may come later.
fn may_wait(error: &StoreError) -> bool {
    matches!(error, StoreError::NoIdentity | StoreError::NoObject)
}

/// Whether a file begins as an ELF file does.
fn is_elf(mut file: &File) -> io::Result<bool> {
    let mut head = Vec::new();
    file.take(4).read_to_end(&mut head)?;
    file.rewind()?;
    Ok(head == b"\x7fELF")
}
