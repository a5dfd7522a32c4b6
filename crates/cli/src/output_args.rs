//! The options of commands that profile for the files to write: pages, and profiles.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::bail;

use super::whole_file;

/// The page's name if the user names no file.
pub(super) const DEFAULT_PAGE: &str = "otlpprof.html";

/// The files to write when profiling has ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct OutputFiles {
    pub(super) pages: Vec<PathBuf>,
    /// Files of OTLP profiles.
    pub(super) profiles: Vec<PathBuf>,
}

/// The options that name files.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArgs {
    /// Write this file at the end: a page if its name ends in .html or .htm, the profiles if it ends in
    /// .otlp. May be given several times [default: otlpprof.html]
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Keep the profiles in this file, whatever its name, for the other commands
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Write no page unless --output names one
    #[arg(long)]
    no_page: bool,
    /// Open the page in a browser
    #[arg(long)]
    pub(super) open: bool,
}

/// The content of a file, by the ending of its name.
enum Content {
    Page,
    Profiles,
}

impl Content {
    fn of(file: &Path) -> Option<Self> {
        match file.extension().and_then(OsStr::to_str)? {
            "html" | "htm" => Some(Self::Page),
            "otlp" => Some(Self::Profiles),
            _ => None,
        }
    }
}

impl OutputFiles {
    /// The files that the options name.
    ///
    /// # Errors
    /// A file's name says nothing of its content, or the file could not be written. Nothing has been profiled
    /// then.
    pub(super) fn of(args: &OutputArgs) -> anyhow::Result<Self> {
        let mut outputs = Self::default();
        for file in &args.output {
            match Content::of(file) {
                Some(Content::Page) => outputs.pages.push(file.clone()),
                Some(Content::Profiles) => outputs.profiles.push(file.clone()),
                None => bail!(
                    "-o {}: write NAME.html for a page, NAME.otlp for profiles; `otlpprof export` writes \
                     other formats from NAME.otlp",
                    file.display()
                ),
            }
        }
        outputs.profiles.extend(args.keep.clone());
        for file in outputs.pages.iter().chain(&outputs.profiles) {
            whole_file::check_writable(file)?;
        }
        if args.output.is_empty() && !args.no_page {
            outputs.pages.push(DEFAULT_PAGE.into());
        }
        if args.open && outputs.pages.is_empty() {
            bail!("--open: no page is written; name one by -o NAME.html");
        }
        Ok(outputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(
        output: &[&str],
        keep: Option<&str>,
        no_page: bool,
        open: bool,
    ) -> anyhow::Result<OutputFiles> {
        let output = output.iter().map(PathBuf::from).collect();
        OutputFiles::of(&OutputArgs { output, keep: keep.map(PathBuf::from), no_page, open })
    }

    #[test]
    fn endings_say_what_a_file_is_to_have() {
        let expected = |pages: &[&str], profiles: &[&str]| OutputFiles {
            pages: pages.iter().map(PathBuf::from).collect(),
            profiles: profiles.iter().map(PathBuf::from).collect(),
        };
        assert_eq!(outputs(&[], None, false, true).unwrap(), expected(&["otlpprof.html"], &[]));
        assert_eq!(outputs(&[], Some("/tmp/otlpprof.kept"), false, false).unwrap(), {
            expected(&["otlpprof.html"], &["/tmp/otlpprof.kept"])
        });
        assert_eq!(
            outputs(&[], Some("/tmp/otlpprof.kept"), true, false).unwrap(),
            expected(&[], &["/tmp/otlpprof.kept"])
        );
        assert_eq!(outputs(&["/tmp/a.otlp"], None, false, false).unwrap(), expected(&[], &["/tmp/a.otlp"]));
        assert_eq!(
            outputs(&["/tmp/a.otlp", "/tmp/b.html"], None, true, true).unwrap(),
            expected(&["/tmp/b.html"], &["/tmp/a.otlp"])
        );
        assert_eq!(outputs(&["/tmp/b.htm"], None, false, false).unwrap(), expected(&["/tmp/b.htm"], &[]));
        for (output, open) in [("/tmp/x.svg", false), ("-", false), ("html", false), ("/tmp/a.otlp", true)] {
            assert!(outputs(&[output], None, false, open).is_err(), "{output}");
        }
        for (file, reason) in [("/no/such/a.html", "does not exist"), ("/tmp", "a folder")] {
            let error = format!("{:#}", outputs(&[], Some(file), false, false).unwrap_err());
            assert!(error.starts_with(file) && error.contains(reason), "{error}");
        }
    }
}
