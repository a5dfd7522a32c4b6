//! The selection of samples by the name of their thread and by the frames of their stack.

use otlpprof_model::{Frame, StackId, Tables};

/// A name in which each `*` stands for any characters, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// The parts between the `*`s; at least one.
    parts: Vec<Box<str>>,
}

impl NamePattern {
    /// Makes a pattern; any text is a valid one.
    pub fn new(text: &str) -> Self {
        Self { parts: text.split('*').map(Into::into).collect() }
    }

    /// Whether the whole of `name` matches the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let Some((first, others)) = self.parts.split_first() else { return false };
        let Some(rest) = name.strip_prefix(&**first) else { return false };
        let Some((last, middle)) = others.split_last() else { return rest.is_empty() };
        let found = middle.iter().try_fold(rest, |rest, part| {
            let at = rest.find(&**part)?;
            Some(&rest[at + part.len()..])
        });
        found.is_some_and(|rest| rest.ends_with(&**last))
    }
}

/// Patterns of names that are wanted, and of names that are not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameSelection {
    /// Wanted names. If there are none, all names are wanted.
    pub wanted: Vec<NamePattern>,
    /// Unwanted names. They take precedence over wanted ones.
    pub unwanted: Vec<NamePattern>,
}

impl NameSelection {
    /// Whether everything is selected.
    pub const fn is_everything(&self) -> bool {
        self.wanted.is_empty() && self.unwanted.is_empty()
    }

    /// Whether an item with these names is selected: one of them is wanted, and none is unwanted.
    pub fn selects<'a>(&self, names: impl Iterator<Item = &'a str>) -> bool {
        let mut is_wanted = self.wanted.is_empty();
        for name in names {
            if self.unwanted.iter().any(|pattern| pattern.matches(name)) {
                return false;
            }
            is_wanted = is_wanted || self.wanted.iter().any(|pattern| pattern.matches(name));
        }
        is_wanted
    }

    /// Whether the stack is selected by the names of its frames. Native frames that are left to the backend
    /// have no names.
    pub fn selects_stack(&self, tables: &Tables, stack: StackId) -> bool {
        self.selects(tables.stacks.get(stack).iter().filter_map(|frame| {
            let function = match *tables.frames.get(*frame) {
                Frame::Java { function, .. }
                | Frame::Native { function, .. }
                | Frame::Kernel { function, .. }
                | Frame::Stub { function }
                | Frame::Marker { function, .. } => function,
                Frame::RemoteNative { .. } => return None,
            };
            Some(tables.strings.get(tables.functions.get(function).name))
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, name, is_match) in [
            ("main", "main", true),
            ("main", "main2", false),
            ("main", "amain", false),
            ("*", "", true),
            ("http-*", "http-8080-1", true),
            ("http-*", "ahttp-1", false),
            ("*-exec-*", "http-exec-1", true),
            ("*-exec-*", "http-exec1", false),
            ("a*a", "a", false),
            ("a*a", "aa", true),
            ("a*b*b", "axbxb", true),
            ("a*b*b", "axb", false),
            ("*Thé*", "lesThés", true),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), is_match, "{pattern} {name}");
        }
    }

    #[test]
    fn unwanted_names_are_never_selected() {
        let patterns = |texts: &[&str]| texts.iter().map(|text| NamePattern::new(text)).collect::<Vec<_>>();
        let selection = NameSelection { wanted: patterns(&["a*"]), unwanted: patterns(&["ab*"]) };
        assert!(selection.selects(["x", "ac"].into_iter()));
        assert!(!selection.selects(["ac", "abc"].into_iter()));
        assert!(!selection.selects(["x"].into_iter()));
        assert!(!selection.selects([].into_iter()));
        let all_but = NameSelection { wanted: Vec::new(), ..selection };
        assert!(all_but.selects([].into_iter()) && all_but.selects(["x"].into_iter()));
        assert!(!all_but.selects(["x", "abc"].into_iter()));
    }
}
