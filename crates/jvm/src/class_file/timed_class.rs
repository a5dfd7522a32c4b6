//! Instruments chosen methods of a class to report the duration of their calls.

use super::changed_class::changed_class;
use super::error::ClassFileError;
use super::exit_class::{EXIT_CLASS, EXITED, EXITED_DESCRIPTOR};
use super::pool::ConstantPool;
use super::timed_code::{Calls, timed_code};

/// The result for one chosen method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// The reason why the method is not timed, if it is not.
    pub skipped: Option<Skipped>,
}

/// The reason why a method is left unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The method is native or abstract.
    NoCode,
    /// The method's code cannot be extended.
    Code(ClassFileError),
}

/// The class with timed methods, `None` if no chosen method can be timed, and the result for each chosen
/// method. `choose` is passed the name of each method and returns, for a method to be timed, the shortest
/// call to report, in nanoseconds.
///
/// # Errors
/// If the class as a whole cannot be parsed or extended.
pub fn timed_class(
    class_file: &[u8],
    mut choose: impl FnMut(&str) -> Option<i64>,
) -> Result<(Option<Vec<u8>>, Vec<Chosen>), ClassFileError> {
    let mut chosen = Vec::new();
    let class = changed_class(class_file, |pool, method, code| {
        let name = String::from_utf8_lossy(method.name).into_owned();
        let Some(shortest_ns) = choose(&name) else { return Ok(None) };
        let timed = code.ok_or(Skipped::NoCode).and_then(|code| {
            let timed = calls(pool, shortest_ns).and_then(|calls| timed_code(pool, method, code, calls));
            timed.map_err(Skipped::Code)
        });
        chosen.push(Chosen { name, skipped: timed.as_ref().err().copied() });
        Ok(timed.ok())
    })?;
    Ok((class, chosen))
}

fn calls(pool: &mut ConstantPool, shortest_ns: i64) -> Result<Calls, ClassFileError> {
    Ok(Calls {
        clock: pool.add_method("java/lang/System", "nanoTime", "()J")?,
        exited: pool.add_method(EXIT_CLASS, EXITED, EXITED_DESCRIPTOR)?,
        shortest: pool.add_long(shortest_ns)?,
        throwable: pool.add_class(b"java/lang/Throwable")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    fn every_class() -> Vec<(String, Vec<u8>)> {
        let folder = Path::new(otlpprof_testkit_products::TEST_CLASSES).join("programs");
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let classes = files.filter(|path| path.extension().is_some_and(|extension| extension == "class"));
        classes.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
    }

    #[test]
    fn all_methods_with_code_can_be_timed_and_others_are_reported() {
        let (mut timed, mut without_code) = (0, 0);
        for (path, bytes) in every_class() {
            let (class, chosen) = timed_class(&bytes, |_| Some(1_000)).unwrap();
            for method in &chosen {
                match method.skipped {
                    None => timed += 1,
                    Some(Skipped::NoCode) => without_code += 1,
                    other => panic!("{path} {}: {other:?}", method.name),
                }
            }
            assert_eq!(class.is_some(), chosen.iter().any(|method| method.skipped.is_none()), "{path}");
            // The result is again a class file.
            if let Some(class) = class {
                assert!(class.len() > bytes.len());
                let (twice, again) = timed_class(&class, |_| Some(1)).unwrap();
                assert!(twice.is_some());
                assert_eq!(again, chosen, "{path}");
            }
        }
        assert!(timed > 500 && without_code > 10, "{timed} {without_code}");
    }

    #[test]
    fn a_class_without_chosen_methods_stays_unchanged() {
        for (path, bytes) in every_class() {
            assert_eq!(timed_class(&bytes, |_| None), Ok((None, Vec::new())), "{path}");
        }
    }

    #[test]
    fn truncated_or_damaged_classes_are_refused_or_parsed_without_panic() {
        let (_, bytes) = every_class().swap_remove(0);
        for end in 0..bytes.len() {
            // The class's own attributes are not parsed.
            let _ = timed_class(&bytes[..end], |_| Some(1));
        }
        assert_eq!(timed_class(&bytes[..100], |_| Some(1)), Err(ClassFileError::Truncated));
        assert_eq!(timed_class(&bytes[1..], |_| Some(1)), Err(ClassFileError::Malformed));
        for at in 0..bytes.len() {
            for damage in [0x00, 0x7f, 0xaa, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = damage;
                let _ = timed_class(&damaged, |_| Some(1));
            }
        }
    }
}
