//! Rules for which methods of a program may call which. They apply to programs with a call tree known by
//! construction.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::Context as _;

use otlpprof_otlp::frames::Frame;
use otlpprof_otlp::roots::{is_java, is_marker};

/// Stands in place of the callers if the method is the first one of its thread.
const NOBODY: &str = "-";

/// The allowed callers of each method that has rules. Its text has lines `method: caller caller…`; `#` starts
/// a comment.
#[derive(Debug, Default)]
pub(super) struct CallGrammar {
    callers: HashMap<String, HashSet<String>>,
}

impl CallGrammar {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let mut callers = HashMap::<_, HashSet<_>>::new();
        for (line, number) in text.lines().zip(1..) {
            let rule = line.split('#').next().unwrap_or_default().trim();
            if rule.is_empty() {
                continue;
            }
            let parts = rule.split_once(':').filter(|(_, callers)| !callers.trim().is_empty());
            let (method, names) = parts
                .with_context(|| format!("{}: line {number} is not 'method: caller…'", path.display()))?;
            let names = names.split_whitespace().map(str::to_owned);
            callers.entry(method.trim().to_owned()).or_default().extend(names);
        }
        Ok(Self { callers })
    }

    /// The first impossible call of a stack, from the leaf on: callee and caller. Frames of native code and
    /// of hidden classes are skipped. A marker of a broken walk hides the caller of the frame before it.
    pub(super) fn illegal_call(&self, frames: &[Frame<'_>]) -> Option<(String, String)> {
        let mut callee: Option<Cow<'_, str>> = None;
        for frame in frames {
            if is_marker(&frame.text) {
                callee = None;
                continue;
            }
            if !is_java(frame) || is_hidden(&frame.text) {
                continue;
            }
            let name = dotted(&frame.text);
            if let Some(callee) = callee.take()
                && self.callers.get(&*callee).is_some_and(|callers| !callers.contains(&*name))
            {
                return Some((callee.into_owned(), name.into_owned()));
            }
            callee = Some(name);
        }
        let last = callee?;
        let alone = self.callers.get(&*last).is_some_and(|callers| !callers.contains(NOBODY));
        alone.then(|| (last.into_owned(), NOBODY.to_owned()))
    }
}

/// Whether the frame's class is one that the VM generates. The VM chooses its number and its callers.
fn is_hidden(name: &str) -> bool {
    name.contains("$$Lambda") || name.contains("LambdaForm")
}

fn dotted(name: &str) -> Cow<'_, str> {
    if name.contains('/') { name.replace('/', ".").into() } else { name.into() }
}

#[cfg(test)]
mod tests {
    use otlpprof_otlp::frames::Naming;

    use super::*;

    fn grammar(text: &str) -> anyhow::Result<CallGrammar> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text)?;
        CallGrammar::read(file.path())
    }

    fn illegal(grammar: &CallGrammar, names: &[&str]) -> Option<(String, String)> {
        let frame = |&name: &&'static str| Frame {
            text: name.into(),
            naming: Naming::Function,
            frame_type: if name.contains('.') { "jvm" } else { "native" },
            is_stub: false,
            mapping_index: 0,
            file: "",
            line: 0,
        };
        let names: Vec<&'static str> = names.iter().map(|name| &*String::leak((*name).to_owned())).collect();
        let frames: Vec<_> = names.iter().map(frame).collect();
        grammar.illegal_call(&frames)
    }

    #[test]
    fn calls_that_cannot_have_been_are_found() {
        let grammar =
            grammar("# a program\na.A.leaf: a.A.outer a.A.other\na.A.outer: a.A.run # once\na.A.run: -\n");
        let grammar = grammar.unwrap();
        for legal in [
            &["a.A.leaf", "a.A.outer", "a.A.run"][..],
            &["memcpy", "a/A.leaf", "a/A.other", "b.B.whatever"],
            &["a.A.leaf", "jni_call", "a.A$$Lambda.apply", "a.A.outer", "a.A.run"],
            &["a.A.leaf", "[unwalkable: no_frame]"],
            &["a.A.leaf", "[unwalkable: no_frame]", "a.A.run"],
        ] {
            assert_eq!(illegal(&grammar, legal), None, "{legal:?}");
        }
        for (stack, callee, caller) in [
            (&["a.A.leaf", "a.A.run"][..], "a.A.leaf", "a.A.run"),
            (&["a.A.leaf", "a.A.outer"], "a.A.outer", "-"),
            (&["a.A.run", "java.lang.Thread.run"], "a.A.run", "java.lang.Thread.run"),
        ] {
            assert_eq!(illegal(&grammar, stack), Some((callee.to_owned(), caller.to_owned())), "{stack:?}");
        }
    }

    #[test]
    fn a_line_that_is_no_rule_is_named() {
        for text in ["a.A.leaf\n", "a.A.leaf:\n"] {
            let error = grammar(&format!("\n{text}")).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
    }
}
