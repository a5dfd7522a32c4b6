//! The code of a method that reports the duration of its calls.
//!
//! The inserted code, where `start` is a new variable after all others:
//!
//! - at the beginning, `start = System.nanoTime()`;
//! - before each return, `exited(start, shortest)`;
//! - around all of the code, an exception handler that calls `exited(start, shortest)` and rethrows the
//!   exception.
//!
//! In a constructor, the handler covers only the code after the call of the other constructor. Before that
//! call, `this` is uninitialised, and no handler may have such a `this` (JVM specification, 4.10.1.4).

use super::error::ClassFileError;
use super::error::ClassFileError::TooLarge;
use super::frames::{LONG, StackMapFrame, TOP, VerificationType, add_local};
use super::instructions::{ATHROW, INVOKESTATIC, LDC2_W, LLOAD, LSTORE, WIDE, with_constant};
use super::moved_code::{Code, Handler, Method, MovedCode};
use super::pool::ConstantPool;
use super::reader::count;

/// The called methods and their arguments, as indices of the constant pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// `System.nanoTime`.
    pub(super) clock: u16,
    /// `exited`.
    pub(super) exited: u16,
    /// The shortest duration to report, in nanoseconds.
    pub(super) shortest: u16,
    /// `java.lang.Throwable`.
    pub(super) throwable: u16,
}

/// The content of the Code attribute of a timed method, made from the content of the untimed method's.
pub(super) fn timed_code(
    pool: &mut ConstantPool,
    method: Method<'_>,
    attribute: &[u8],
    calls: Calls,
) -> Result<Vec<u8>, ClassFileError> {
    let code = Code::read(attribute)?;
    let start = code.max_locals;
    let entry = [&with_constant(INVOKESTATIC, calls.clock)[..], &with_local(LSTORE, start)].concat();
    let exit = [
        &with_local(LLOAD, start)[..],
        &with_constant(LDC2_W, calls.shortest),
        &with_constant(INVOKESTATIC, calls.exited),
    ]
    .concat();
    let mut timed = code.with_added(&entry, &exit, |instruction| instruction.is_return())?;
    let mut guarded_from = entry.len();
    if method.is_constructor() {
        // No exception is caught in a constructor that calls no other constructor, such as Object's.
        let call = code.call_of_other_constructor(pool);
        guarded_from = timed.place(call.map_or(code.bytes, |call| call.at + call.bytes.len()))?;
    }
    timed.code.extend(&exit);
    timed.code.push(ATHROW);
    code.check_new_length(timed.code.len())?;
    // The inserted code pushes two longs (4 slots), on top of a returned value or an exception.
    let max_stack = code.max_stack.max(1).checked_add(4).ok_or(TooLarge)?;
    let max_locals = start.checked_add(2).ok_or(TooLarge)?;
    let handlers = handlers(&timed, guarded_from, exit.len(), calls)?;
    let handled_at = timed.end;
    timed.write(pool, method, (max_stack, max_locals), &handlers, |frames| {
        for frame in &mut *frames {
            add_local(&mut frame.locals, usize::from(start), LONG)?;
        }
        // An exception may come from anywhere, so the handler assumes no type of any variable but `start`.
        let mut locals = vec![TOP; usize::from(start)];
        locals.push(LONG);
        let thrown = VerificationType::Object(calls.throwable);
        frames.push(StackMapFrame { at: handled_at, locals, stack: vec![thrown] });
        Ok(())
    })
}

/// An instruction with the index of a local variable.
fn with_local(opcode: u8, local: u16) -> Vec<u8> {
    match (u8::try_from(local), local.to_be_bytes()) {
        (Ok(local), _) => vec![opcode, local],
        (Err(_), [high, low]) => vec![WIDE, opcode, high, low],
    }
}

/// Exception handlers for all code except the inserted calls of `exited` and the returns after them.
fn handlers(
    timed: &MovedCode<'_>,
    guarded_from: usize,
    exit_bytes: usize,
    calls: Calls,
) -> Result<Vec<Handler>, ClassFileError> {
    let mut handlers = Vec::new();
    let mut from = guarded_from;
    for &exit in timed.additions.iter().chain([&timed.end]) {
        if from < exit {
            handlers.push([count(from)?, count(exit)?, count(timed.end)?, calls.throwable.to_be_bytes()]);
        }
        from = from.max(exit + exit_bytes + 1);
    }
    Ok(handlers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_file::ClassFileError::TooLargeToCompile;
    use crate::class_file::reader::ClassReader;

    /// Times a method of `code_bytes` bytes that does nothing and returns; the length of the new code.
    fn time(code_bytes: usize) -> Result<usize, ClassFileError> {
        const NOP: u8 = 0;
        const RETURN: u8 = 177;
        let mut pool = ConstantPool::read(&mut ClassReader(&1_u16.to_be_bytes()))?;
        let method = Method { name: b"m", descriptor: b"()V", is_static: true, class: 0, has_frames: false };
        let calls = Calls { clock: 1, exited: 2, shortest: 3, throwable: 4 };
        let mut attribute = [0; 4].to_vec();
        attribute.extend(u32::try_from(code_bytes).unwrap().to_be_bytes());
        attribute.resize(attribute.len() + code_bytes - 1, NOP);
        // No exception handlers and no attributes.
        attribute.extend([RETURN, 0, 0, 0, 0]);
        let timed = timed_code(&mut pool, method, &attribute, calls)?;
        Ok(u32::from_be_bytes(timed[4..8].try_into().unwrap()) as usize)
    }

    #[test]
    fn a_timed_method_never_grows_too_large_to_compile() {
        let added = time(1).unwrap() - 1;
        assert_eq!(time(8_000 - added), Ok(8_000));
        assert_eq!(time(8_000 - added + 1), Err(TooLargeToCompile));
        assert_eq!(time(8_000), Err(TooLargeToCompile));
        // The VM only interprets so large a method anyway.
        assert_eq!(time(8_001), Ok(8_001 + added));
        assert_eq!(time(65_535 - added), Ok(65_535));
        assert_eq!(time(65_535 - added + 1), Err(TooLarge));
    }
}
