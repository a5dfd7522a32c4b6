//! Counts of resolved and unresolved frames.

use std::collections::BTreeMap;
use std::fmt;

use otlpprof_debug_files::ObjectIdentity;

/// The frames of one object, in the dictionaries of all messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectSummary {
    /// The object.
    pub identity: ObjectIdentity,
    /// The number of resolved frames.
    pub resolved: u64,
    /// The numbers of unresolved frames, by reason.
    pub unresolved: BTreeMap<String, u64>,
    /// Companions of its files that are missing, and damage: one line each.
    pub problems: Vec<String>,
}

impl ObjectSummary {
    /// The number of unresolved frames.
    pub fn unresolved_frames(&self) -> u64 {
        self.unresolved.values().sum()
    }
}

/// The object's path or identity.
impl fmt::Display for ObjectSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.identity.path {
            Some(path) => write!(f, "{path}"),
            None => write!(f, "the object with {}", self.identity),
        }
    }
}

/// The frames of all objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The objects, those with the most unresolved frames first.
    pub objects: Vec<ObjectSummary>,
    /// Parts of the folders to search that could not be read: one line each.
    pub problems: Vec<String>,
}

impl Summary {
    /// The number of resolved frames.
    pub fn resolved(&self) -> u64 {
        self.objects.iter().map(|object| object.resolved).sum()
    }

    /// The number of unresolved frames.
    pub fn unresolved(&self) -> u64 {
        self.objects.iter().map(ObjectSummary::unresolved_frames).sum()
    }

    /// A line about all frames, then one for each reason of each object.
    pub fn lines(&self) -> Vec<String> {
        let (resolved, unresolved) = (self.resolved(), self.unresolved());
        let all = resolved + unresolved;
        if all == 0 {
            return vec!["no native frame without a name".to_owned()];
        }
        let objects = self.objects.len();
        let mut lines = vec![format!("{resolved} of {all} native frames resolved, of {objects} objects")];
        for object in &self.objects {
            for (reason, count) in &object.unresolved {
                lines.push(format!("unresolved: {object}: {count} frames: {reason}"));
            }
            let named = object.to_string();
            lines.extend(object.problems.iter().map(|problem| match problem.starts_with(&named) {
                true => problem.clone(),
                false => format!("{named}: {problem}"),
            }));
        }
        lines.extend(self.problems.iter().cloned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: the line about an object's own file named the path twice.
    #[test]
    fn a_line_names_its_object_once() {
        let identity = ObjectIdentity { path: Some("/l/a.so".to_owned()), ..ObjectIdentity::default() };
        let problems = vec!["/l/a.so names no file".to_owned(), "a.dwz is missing".to_owned()];
        let object = ObjectSummary { identity, resolved: 1, problems, ..ObjectSummary::default() };
        let lines = Summary { objects: vec![object], ..Summary::default() }.lines();
        assert_eq!(lines[1..], ["/l/a.so names no file", "/l/a.so: a.dwz is missing"]);
    }
}
