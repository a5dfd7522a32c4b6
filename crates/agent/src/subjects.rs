//! The classes that samples are about. Each has a number for its signature, since a record has no room for
//! text.
//!
//! The numbers are kept for the life of the process, so that a number in a record that is still to be drained
//! keeps its meaning. There is a limit to the number of classes; further classes get no number.

use std::collections::HashMap;

use parking_lot::Mutex;

use otlpprof_core::record::Subject;
use otlpprof_model::java_type_name;

/// The most classes: their names take some 10 MB.
const MOST_SUBJECTS: usize = 100_000;

/// From this number of classes on, hidden classes share the name without their suffix, since a program may
/// define them without end.
const MAX_DISTINCT_HIDDEN: usize = MOST_SUBJECTS / 2;

/// Classes by their number.
pub(super) struct Subjects(Mutex<Option<KnownClasses>>);

#[derive(Default)]
struct KnownClasses {
    by_signature: HashMap<Box<str>, Subject>,
    /// The signature of number 1 comes first.
    signatures: Vec<Box<str>>,
}

/// The classes of this process.
pub(super) static SUBJECTS: Subjects = Subjects(Mutex::new(None));

impl Subjects {
    /// Returns the number of the class with this signature, such as `Ljava/lang/Object;` or `[I`.
    pub(super) fn of_signature(&self, signature: &str) -> Subject {
        let mut known = self.0.lock();
        let known = known.get_or_insert_default();
        let shared =
            (known.signatures.len() >= MAX_DISTINCT_HIDDEN).then(|| without_hidden_suffix(signature));
        let signature = shared.as_deref().unwrap_or(signature);
        if let Some(&subject) = known.by_signature.get(signature) {
            return subject;
        }
        if known.signatures.len() >= MOST_SUBJECTS {
            return Subject::NONE;
        }
        known.signatures.push(signature.into());
        let subject = Subject(known.signatures.len() as u32);
        known.by_signature.insert(signature.into(), subject);
        subject
    }

    /// Returns the class's name in the form of Java source: `java.lang.Object`, `int[]`. `None` for a number
    /// that no class has.
    pub(super) fn class_name(&self, subject: Subject, normalise: bool) -> Option<String> {
        let known = self.0.lock();
        let signature = known.as_ref()?.signatures.get((subject.0 as usize).checked_sub(1)?)?;
        // JVMTI separates a hidden class's suffix by a dot (`Klass::signature_name`, oops/klass.cpp, 17-25).
        Some(java_type_name(&signature.replace('.', "+"), normalise))
    }
}

/// Removes the suffix that distinguishes hidden classes, which JVMTI separates by a dot
/// (`Klass::signature_name`, oops/klass.cpp, 17-25).
fn without_hidden_suffix(signature: &str) -> String {
    match signature.split_once('.') {
        Some((name, _)) => format!("{name};"),
        None => signature.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_classes_without_end_do_not_take_the_room_of_others() {
        let subjects = Subjects(Mutex::new(None));
        for number in 0..MOST_SUBJECTS + 10 {
            assert_ne!(subjects.of_signature(&format!("[LFoo$$Lambda.{number:#x};")), Subject::NONE);
        }
        let new = subjects.of_signature("Lcom/example/New;");
        assert_eq!(subjects.class_name(new, true).as_deref(), Some("com.example.New"));
        let hidden = subjects.of_signature("[LFoo$$Lambda.0xffffff;");
        assert_eq!(subjects.class_name(hidden, true).as_deref(), Some("Foo$$Lambda[]"));
    }

    #[test]
    fn hidden_classes_are_named_as_in_java() {
        let subjects = Subjects(Mutex::new(None));
        let hidden = subjects.of_signature("LN$T.0x00007f0000c01000;");
        assert_eq!(subjects.class_name(hidden, false).as_deref(), Some("N$T/0x00007f0000c01000"));
        let lambdas = subjects.of_signature("[LN$$Lambda.0x00007f0000c01000;");
        assert_eq!(subjects.class_name(lambdas, true).as_deref(), Some("N$$Lambda[]"));
    }

    #[test]
    fn a_class_has_one_number_and_a_number_one_class() {
        let subjects = Subjects(Mutex::new(None));
        assert_eq!(subjects.class_name(Subject(1), true), None);
        let numbers = ["LA;", "LB;", "LA;"].map(|signature| subjects.of_signature(signature));
        assert_eq!(numbers[0], numbers[2]);
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(subjects.class_name(numbers[1], true).as_deref(), Some("B"));
        assert_eq!(subjects.class_name(Subject::NONE, true), None);
    }
}
