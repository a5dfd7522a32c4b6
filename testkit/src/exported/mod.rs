//! Exports and merges files as a user does, and reads the results: sums of stacks by OpenTelemetry's Python
//! package, and pprof files by pprof itself.
//!
//! | Module | Duty |
//! |---|---|
//! | [`pprof`] | pprof files, as Go's pprof reads them |

pub mod pprof;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::commands::run_otlpprof;
use crate::profile_files::Files;
use crate::toolchain::{output_unless_missing, page_script, python_oracle};

/// The sum of each stack; the stack has the names of its frames, from the root on.
pub type Stacks = BTreeMap<Vec<String>, i64>;

/// Self and total of each function.
pub type Functions = BTreeMap<String, (i64, i64)>;

impl Files {
    /// Exports files; returns the result and the line about it.
    #[track_caller]
    pub fn export(&self, files: &[&str], to: &str, options: &[&str]) -> (PathBuf, String) {
        let out = self.path(&format!("out.{to}"));
        let arguments = [&["export", "--to", to, "-o", &out], files, options].concat();
        let output = run_otlpprof(&arguments).success().get_output().clone();
        assert_eq!(output.stdout, b"", "nothing on stdout");
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(line.lines().count(), 1, "{line}");
        (out.into(), line)
    }
}

/// The sums of all stacks in OTLP files, by type, as Python reads them; `None` if Python is not available,
/// which is reported.
#[track_caller]
pub fn truth(files: &[&str]) -> Option<BTreeMap<String, Stacks>> {
    let output = output_unless_missing(python_oracle().arg("stacks").args(files), "sums of stacks")?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && error.is_empty(), "{error}");
    let rows: Vec<(String, String, Vec<String>, i64)> = serde_json::from_slice(&output.stdout).unwrap();
    let mut types: BTreeMap<String, Stacks> = BTreeMap::new();
    for (name, _, stack, value) in rows {
        *types.entry(name).or_default().entry(stack).or_default() += value;
    }
    types.values_mut().for_each(|stacks| stacks.retain(|_, value| *value != 0));
    Some(types)
}

/// The sums of collapsed stacks.
#[track_caller]
pub fn collapsed(file: &Path) -> Stacks {
    let text = std::fs::read_to_string(file).unwrap();
    let mut stacks = Stacks::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (stack, value) = line.rsplit_once(' ').expect("a stack and a value");
        let stack = stack.split(';').map(str::to_owned).collect();
        *stacks.entry(stack).or_default() += value.parse::<i64>().expect("a number");
    }
    stacks
}

/// Self and total of each function. A recursive function counts once in total.
pub fn functions(stacks: &Stacks) -> Functions {
    let mut functions = Functions::new();
    for (stack, value) in stacks {
        if let Some(leaf) = stack.last() {
            functions.entry(leaf.clone()).or_default().0 += value;
        }
        for function in stack.iter().collect::<BTreeSet<_>>() {
            functions.entry(function.clone()).or_default().1 += value;
        }
    }
    functions
}

/// The answer of a script of `tests/viewers`, which opens a file in its viewer: one JSON document. `None`
/// if Node or its packages are not available, which is reported.
#[track_caller]
pub fn viewer(script: &str, arguments: &[&str]) -> Option<Value> {
    let mut command = page_script("viewer", Path::new("tests/viewers").join(script));
    let output = output_unless_missing(command.args(arguments), script)?;
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {error}");
    Some(serde_json::from_slice(&output.stdout).unwrap_or_else(|wrong| panic!("{wrong}: {output:?}")))
}
