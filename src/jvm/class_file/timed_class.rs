//! A class of which chosen methods tell how long their calls took.

use super::ClassFileError;
use super::exit_class::{EXIT_CLASS, EXITED, EXITED_DESCRIPTOR};
use super::pool::ConstantPool;
use super::reader::{Reader, write_attribute};
use super::timed_code::{Calls, Method, timed_code};

const MAGIC: u32 = 0xcafe_babe;
const ACC_STATIC: u16 = 0x0008;
/// The first version whose classes the VM verifies by StackMapTables (JVM specification, 4.10).
const FIRST_WITH_FRAMES: u16 = 50;

/// What has become of a chosen method.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its name.
    pub name: String,
    /// Why it is not timed, if it is not.
    pub left: Option<Left>,
}

/// Why a method is left as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It is native or abstract.
    NoCode,
    /// Its code cannot be added to.
    Code(ClassFileError),
}

/// The class with timed methods, if any of the chosen ones can be timed, and what has become of each of them. `choose` is
/// asked of each method, by its name, for the shortest duration of a call that counts, in nanoseconds.
///
/// # Errors
/// If the class as a whole cannot be read or added to.
pub fn timed_class(
    class_file: &[u8],
    mut choose: impl FnMut(&str) -> Option<i64>,
) -> Result<(Option<Vec<u8>>, Vec<Chosen>), ClassFileError> {
    let mut reader = Reader(class_file);
    if reader.u32()? != MAGIC {
        return Err(ClassFileError::Malformed);
    }
    reader.u16()?;
    let version = reader.u16()?;
    let mut pool = ConstantPool::read(&mut reader)?;
    let middle = reader.0;
    let [_access, class, _super] = [reader.u16()?, reader.u16()?, reader.u16()?];
    let interfaces = usize::from(reader.u16()?);
    reader.take(2 * interfaces)?;
    for _ in 0..reader.u16()? {
        reader.take(6)?;
        for _ in 0..reader.u16()? {
            reader.attribute()?;
        }
    }
    let before_methods = &middle[..middle.len() - reader.0.len()];
    let method_count = reader.u16()?;
    let (mut methods, mut chosen) = (method_count.to_be_bytes().to_vec(), Vec::new());
    for _ in 0..method_count {
        let [access, name, descriptor] = [reader.u16()?, reader.u16()?, reader.u16()?];
        let name_bytes = pool.text(name).ok_or(ClassFileError::Malformed)?.to_vec();
        let descriptor_bytes = pool.text(descriptor).ok_or(ClassFileError::Malformed)?.to_vec();
        let text = String::from_utf8_lossy(&name_bytes).into_owned();
        let shortest_ns = choose(&text);
        let method = Method {
            name: &name_bytes,
            descriptor: &descriptor_bytes,
            is_static: access & ACC_STATIC != 0,
            class,
            has_frames: version >= FIRST_WITH_FRAMES,
        };
        methods.extend([access, name, descriptor].map(u16::to_be_bytes).as_flattened());
        let attributes = reader.u16()?;
        methods.extend(attributes.to_be_bytes());
        let mut left = Some(Left::NoCode);
        for _ in 0..attributes {
            let (attribute, content) = reader.attribute()?;
            let mut timed = None;
            if let (Some(shortest_ns), Some(b"Code")) = (shortest_ns, pool.text(attribute)) {
                let calls = calls(&mut pool, shortest_ns);
                let code = calls.and_then(|calls| timed_code(&mut pool, method, content, calls));
                left = code.as_ref().err().map(|error| Left::Code(*error));
                timed = code.ok();
            }
            write_attribute(&mut methods, attribute, timed.as_deref().unwrap_or(content))?;
        }
        if shortest_ns.is_some() {
            chosen.push(Chosen { name: text, left });
        }
    }
    if chosen.iter().all(|method| method.left.is_some()) {
        return Ok((None, chosen));
    }
    let mut out = class_file[..8].to_vec();
    pool.write(&mut out)?;
    out.extend(before_methods);
    out.extend(methods);
    out.extend(reader.0);
    Ok((Some(out), chosen))
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
        let folder = Path::new(env!("OTLPPROF_TEST_CLASSES")).join("programs");
        let files = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
        let classes = files.filter(|path| path.extension().is_some_and(|extension| extension == "class"));
        classes.map(|path| (path.display().to_string(), fs::read(&path).unwrap())).collect()
    }

    #[test]
    fn all_methods_with_code_can_be_timed_and_others_are_told() {
        let (mut timed, mut without_code) = (0, 0);
        for (path, bytes) in every_class() {
            let (class, chosen) = timed_class(&bytes, |_| Some(1_000)).unwrap();
            for method in &chosen {
                match method.left {
                    None => timed += 1,
                    Some(Left::NoCode) => without_code += 1,
                    other => panic!("{path} {}: {other:?}", method.name),
                }
            }
            assert_eq!(class.is_some(), chosen.iter().any(|method| method.left.is_none()), "{path}");
            // The result is a class file, too.
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
    fn what_is_not_chosen_stays_as_it_is() {
        for (path, bytes) in every_class() {
            assert_eq!(timed_class(&bytes, |_| None), Ok((None, Vec::new())), "{path}");
        }
    }

    #[test]
    fn what_is_cut_short_or_damaged_is_refused_or_read_to_its_end() {
        let (_, bytes) = every_class().swap_remove(0);
        for end in 0..bytes.len() {
            // The class's own attributes are not looked into.
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
