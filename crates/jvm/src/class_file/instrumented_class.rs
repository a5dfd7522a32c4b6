//! Instruments the constructors of a class to report each object as soon as it is initialised:
//! `created(this)` is called right after the call of the superclass's constructor. The class is
//! `java.lang.Throwable`, so that all exceptions are reported. A constructor that calls another constructor
//! of its own class reports nothing, because the other constructor does.
//!
//! ```java
//! package io.otlpprof.agent;
//!
//! public final class NewThrowable {
//!     public static native void created(Object throwable);
//! }
//! ```

use super::changed_class::changed_class;
use super::error::ClassFileError;
use super::instructions::{ALOAD_0, INVOKESTATIC, with_constant};
use super::moved_code::{Code, Method};
use super::own_class::OwnNativeMethod;
use super::pool::ConstantPool;

/// The native method that receives each object.
pub const CREATED: OwnNativeMethod = OwnNativeMethod {
    class: "io/otlpprof/agent/NewThrowable",
    name: "created",
    descriptor: "(Ljava/lang/Object;)V",
};

/// The class with instrumented constructors.
///
/// # Errors
/// If the class cannot be parsed or extended, or has no constructor to instrument.
pub fn instrumented_class(class_file: &[u8]) -> Result<Vec<u8>, ClassFileError> {
    let class = changed_class(class_file, |pool, method, code| match code {
        Some(code) if method.is_constructor() => instrumented_code(pool, method, code),
        _ => Ok(None),
    });
    class?.ok_or(ClassFileError::Malformed)
}

fn instrumented_code(
    pool: &mut ConstantPool,
    method: Method<'_>,
    attribute: &[u8],
) -> Result<Option<Vec<u8>>, ClassFileError> {
    let code = Code::read(attribute)?;
    let Some(call) = code.call_of_other_constructor(pool) else { return Ok(None) };
    let called = call.constant().and_then(|constant| pool.class_of_method(constant));
    if called == Some(method.class) {
        return Ok(None);
    }
    let created = pool.add_method(CREATED.class, CREATED.name, CREATED.descriptor)?;
    let added = [&[ALOAD_0][..], &with_constant(INVOKESTATIC, created)].concat();
    let after_call = call.at + call.bytes.len();
    let instrumented = code.with_added(&[], &added, |instruction| instruction.at == after_call)?;
    code.check_new_length(instrumented.code.len())?;
    let most = (code.max_stack.max(1), code.max_locals);
    instrumented.write(pool, method, most, &[], |_| Ok(())).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The methods that each constructor calls, by name and index of the class.
    fn calls(class_file: &[u8]) -> Vec<Vec<(String, u16)>> {
        let mut found = Vec::new();
        changed_class(class_file, |pool, method, code| {
            if method.is_constructor() {
                let code = Code::read(code.unwrap())?;
                let called = code.instructions.iter().filter_map(|instruction| {
                    let constant = instruction.constant()?;
                    let name = pool.method_name(constant)?;
                    Some((String::from_utf8_lossy(name).into_owned(), pool.class_of_method(constant)?))
                });
                found.push(called.collect());
            }
            Ok(None)
        })
        .unwrap();
        found
    }

    #[test]
    fn constructors_report_their_object_unless_they_call_another_constructor() {
        let path = format!("{}/programs/Constructed.class", otlpprof_testkit_products::TEST_CLASSES);
        let bytes = std::fs::read(path).unwrap();
        let instrumented = instrumented_class(&bytes).unwrap();
        let (before, after) = (calls(&bytes), calls(&instrumented));
        let is_created = |(name, _): &(String, u16)| name == CREATED.name;
        let places: Vec<_> = after.iter().map(|called| called.iter().position(is_created)).collect();
        // The first constructor calls its superclass's and reports after that. The others call the first.
        assert_eq!(places[1..], [None, None]);
        let place = places[0].unwrap();
        assert_eq!(after[0][place - 1].0, "<init>");
        assert_eq!(after[0].iter().filter(|call| is_created(call)).count(), 1);
        for (old, mut new) in before.into_iter().zip(after) {
            new.retain(|call| !is_created(call));
            assert_eq!(new, old);
        }
        // Instrumenting again works: other agents may already have changed the class.
        assert!(instrumented_class(&instrumented).is_ok());
    }

    #[test]
    fn truncated_or_damaged_classes_are_refused_or_parsed_without_panic() {
        let path = format!("{}/programs/Constructed.class", otlpprof_testkit_products::TEST_CLASSES);
        let bytes = std::fs::read(path).unwrap();
        for at in 0..bytes.len() {
            let _ = instrumented_class(&bytes[..at]);
            for damage in [0x00, 0x7f, 0xaa, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = damage;
                let _ = instrumented_class(&damaged);
            }
        }
        assert_eq!(instrumented_class(&bytes[1..]), Err(ClassFileError::Malformed));
    }
}
