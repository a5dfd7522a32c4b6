//! The code of a method that tells how long its calls took.
//!
//! What is added, where `start` is a variable behind all others:
//!
//! - at the beginning, `start = System.nanoTime()`;
//! - before each return, `exited(start, shortest)`;
//! - around all of that, where an exception leaves the method, the same before it is thrown on.
//!
//! All else stays, at other places: jumps, switches, exception handlers, lines, variables and the verifier's types are led
//! there. In a constructor exceptions count from the call of the other constructor on: before it, there is no `this` that a
//! handler could have (JVM specification, 4.10.1.4).

use super::ClassFileError;
use super::ClassFileError::{Malformed, TooLarge, TooLargeToCompile};
use super::frames::{Frame, LONG, TOP, add_local, parameters, read_frames, this_type, write_frames};
use super::instructions::{
    ATHROW, INVOKESPECIAL, INVOKESTATIC, Instruction, LDC2_W, LLOAD, LSTORE, NEW, WIDE, instructions,
};
use super::pool::ConstantPool;
use super::reader::{Reader, count, write_attribute};

/// What is called, and with what: indices of the constant pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calls {
    /// `System.nanoTime`.
    pub(super) clock: u16,
    /// `exited`.
    pub(super) exited: u16,
    /// The shortest duration that counts.
    pub(super) shortest: u16,
    /// `java.lang.Throwable`.
    pub(super) throwable: u16,
}

/// The method that the code is of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'a> {
    pub(super) name: &'a [u8],
    pub(super) descriptor: &'a [u8],
    pub(super) is_static: bool,
    /// Its class, by the index in the constant pool.
    pub(super) class: u16,
    /// Whether the class file's version knows StackMapTables.
    pub(super) has_frames: bool,
}

/// The most bytes of a method's code (JVM specification, 4.7.3).
const MOST_CODE: usize = 65_535;

/// The most bytes of code that the VM compiles, unless it is told otherwise (`HugeMethodLimit` in runtime/globals.hpp,
/// `can_be_compiled` in compiler/compilationPolicy.cpp, 11-25).
const MOST_COMPILED_CODE: usize = 8_000;

/// Where instructions are now.
struct Layout {
    /// By their old places; the end of the old code is one too.
    places: Vec<Option<usize>>,
    /// Where each return is now, and what is put before it.
    exits: Vec<usize>,
    /// The end of what was there before.
    end: usize,
    /// From where on exceptions count.
    guarded_from: usize,
}

impl Layout {
    fn of(found: &[Instruction<'_>], code_bytes: usize, entry_bytes: usize, exit_bytes: usize) -> Self {
        let mut places = vec![None; code_bytes + 1];
        let (mut at, mut exits) = (entry_bytes, Vec::new());
        for instruction in found {
            places[instruction.at] = Some(at);
            if instruction.is_return() {
                exits.push(at);
                at += exit_bytes;
            }
            at += instruction.length_at(at);
        }
        places[code_bytes] = Some(at);
        Self { places, exits, end: at, guarded_from: entry_bytes }
    }

    fn place(&self, old: usize) -> Result<usize, ClassFileError> {
        self.places.get(old).copied().flatten().ok_or(Malformed)
    }

    fn place16(&self, old: u16) -> Result<[u8; 2], ClassFileError> {
        count(self.place(usize::from(old))?)
    }
}

/// The content of the Code attribute of a method that calls `calls`, made of that of one that does not.
pub(super) fn timed_code(
    pool: &mut ConstantPool,
    method: Method<'_>,
    attribute: &[u8],
    calls: Calls,
) -> Result<Vec<u8>, ClassFileError> {
    let mut reader = Reader(attribute);
    let (max_stack, max_locals) = (reader.u16()?, reader.u16()?);
    let code_bytes = reader.u32()? as usize;
    let code = reader.take(code_bytes)?;
    if code.is_empty() || code.len() > MOST_CODE {
        return Err(Malformed);
    }
    let found = instructions(code)?;
    let entry = [&with_constant(INVOKESTATIC, calls.clock)[..], &with_local(LSTORE, max_locals)].concat();
    let exit = [
        &with_local(LLOAD, max_locals)[..],
        &with_constant(LDC2_W, calls.shortest),
        &with_constant(INVOKESTATIC, calls.exited),
    ]
    .concat();
    let mut layout = Layout::of(&found, code_bytes, entry.len(), exit.len());
    if method.name == b"<init>" {
        // One that never calls another, as that of Object, has none of its exceptions counted.
        let behind = behind_other_constructor(pool, &found).unwrap_or(code_bytes);
        layout.guarded_from = layout.place(behind)?;
    }

    let mut new_code = entry;
    for instruction in &found {
        if instruction.is_return() {
            new_code.extend(&exit);
        }
        let at = new_code.len();
        instruction.write_at(at, &mut new_code, |old| layout.place(old))?;
    }
    new_code.extend(&exit);
    new_code.push(ATHROW);
    if new_code.len() > MOST_CODE {
        return Err(TooLarge);
    }
    if code_bytes <= MOST_COMPILED_CODE && new_code.len() > MOST_COMPILED_CODE {
        return Err(TooLargeToCompile);
    }

    let mut out = Vec::with_capacity(attribute.len() + 256);
    // What is added takes two longs, above a value that is returned, or an exception.
    out.extend(max_stack.max(1).checked_add(4).ok_or(TooLarge)?.to_be_bytes());
    out.extend(max_locals.checked_add(2).ok_or(TooLarge)?.to_be_bytes());
    out.extend(u32::try_from(new_code.len()).map_err(|_| TooLarge)?.to_be_bytes());
    out.extend(&new_code);
    write_exception_table(&mut reader, &layout, exit.len(), calls, &mut out)?;
    write_attributes(&mut reader, pool, method, &layout, max_locals, calls, &mut out)?;
    Ok(out)
}

/// An instruction with a constant.
fn with_constant(opcode: u8, constant: u16) -> [u8; 3] {
    let [high, low] = constant.to_be_bytes();
    [opcode, high, low]
}

/// An instruction with a local variable.
fn with_local(opcode: u8, local: u16) -> Vec<u8> {
    match (u8::try_from(local), local.to_be_bytes()) {
        (Ok(local), _) => vec![opcode, local],
        (Err(_), [high, low]) => vec![WIDE, opcode, high, low],
    }
}

/// The place behind a constructor's call of another: the first for which no object has just been made.
fn behind_other_constructor(pool: &ConstantPool, found: &[Instruction<'_>]) -> Option<usize> {
    let mut made = 0_usize;
    for instruction in found {
        match instruction.opcode {
            NEW => made += 1,
            INVOKESPECIAL if pool.method_name(instruction.constant()?) == Some(b"<init>") => {
                if made == 0 {
                    return Some(instruction.at + instruction.bytes.len());
                }
                made -= 1;
            }
            _ => {}
        }
    }
    None
}

fn write_exception_table(
    reader: &mut Reader<'_>,
    layout: &Layout,
    exit_bytes: usize,
    calls: Calls,
    out: &mut Vec<u8>,
) -> Result<(), ClassFileError> {
    let mut entries: Vec<[[u8; 2]; 4]> = Vec::new();
    for _ in 0..reader.u16()? {
        let [start, end, handler] = [reader.u16()?, reader.u16()?, reader.u16()?];
        let caught = reader.u16()?.to_be_bytes();
        entries.push([layout.place16(start)?, layout.place16(end)?, layout.place16(handler)?, caught]);
    }
    // Behind the method's own, which come first; not what is called at a return, and the return.
    let mut from = layout.guarded_from;
    for &exit in layout.exits.iter().chain([&layout.end]) {
        if from < exit {
            entries.push([count(from)?, count(exit)?, count(layout.end)?, calls.throwable.to_be_bytes()]);
        }
        from = from.max(exit + exit_bytes + 1);
    }
    out.extend(count(entries.len())?);
    out.extend(entries.as_flattened().as_flattened());
    Ok(())
}

/// Lines, variables and types at their new places. Other attributes of code are for debuggers and are left out: what they
/// say of places would be wrong.
fn write_attributes(
    reader: &mut Reader<'_>,
    pool: &mut ConstantPool,
    method: Method<'_>,
    layout: &Layout,
    max_locals: u16,
    calls: Calls,
    out: &mut Vec<u8>,
) -> Result<(), ClassFileError> {
    let mut written: Vec<(u16, Vec<u8>)> = Vec::new();
    let mut types = None;
    for _ in 0..reader.u16()? {
        let (name, content) = reader.attribute()?;
        match pool.text(name) {
            Some(b"LineNumberTable") => written.push((name, moved_lines(content, layout)?)),
            Some(b"LocalVariableTable" | b"LocalVariableTypeTable") => {
                written.push((name, moved_variables(content, layout)?));
            }
            Some(b"StackMapTable") => types = Some(content),
            _ => {}
        }
    }
    if method.has_frames {
        let this = (!method.is_static).then(|| this_type(method.name, method.class));
        let entered = parameters(pool, method.descriptor, this)?;
        let mut frames = types.map_or(Ok(Vec::new()), |types| read_frames(types, entered))?;
        for frame in &mut frames {
            frame.at = layout.place(frame.at)?;
            add_local(&mut frame.locals, usize::from(max_locals), LONG)?;
        }
        // A variable may be of any type where an exception comes from.
        let mut locals = vec![TOP; usize::from(max_locals)];
        locals.push(LONG);
        let thrown = super::frames::VerificationType::Object(calls.throwable);
        frames.push(Frame { at: layout.end, locals, stack: vec![thrown] });
        let name = pool.add_text(b"StackMapTable")?;
        written.push((name, write_frames(&frames, |old| layout.place(old))?));
    }
    out.extend(count(written.len())?);
    written.iter().try_for_each(|(name, content)| write_attribute(out, *name, content))
}

/// `LineNumberTable`: places and lines. What is at the beginning belongs to the first line.
fn moved_lines(content: &[u8], layout: &Layout) -> Result<Vec<u8>, ClassFileError> {
    let mut reader = Reader(content);
    let lines = reader.u16()?;
    let mut out = lines.to_be_bytes().to_vec();
    for _ in 0..lines {
        let at = reader.u16()?;
        out.extend(if at == 0 { [0, 0] } else { layout.place16(at)? });
        out.extend(reader.take(2)?);
    }
    Ok(out)
}

/// `LocalVariableTable` and `LocalVariableTypeTable`: from where on and how long, and three more numbers.
fn moved_variables(content: &[u8], layout: &Layout) -> Result<Vec<u8>, ClassFileError> {
    let mut reader = Reader(content);
    let variables = reader.u16()?;
    let mut out = variables.to_be_bytes().to_vec();
    for _ in 0..variables {
        let (start, length) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
        let (from, to) = (layout.place(start)?, layout.place(start + length)?);
        out.extend(count(from)?);
        out.extend(count(to.checked_sub(from).ok_or(Malformed)?)?);
        out.extend(reader.take(6)?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code of so many bytes that does nothing and returns.
    fn time(code_bytes: usize) -> Result<usize, ClassFileError> {
        const NOP: u8 = 0;
        const RETURN: u8 = 177;
        let mut pool = ConstantPool::read(&mut Reader(&1_u16.to_be_bytes()))?;
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
    fn what_is_compiled_stays_what_is_compiled() {
        let added = time(1).unwrap() - 1;
        assert_eq!(time(8_000 - added), Ok(8_000));
        assert_eq!(time(8_000 - added + 1), Err(TooLargeToCompile));
        assert_eq!(time(8_000), Err(TooLargeToCompile));
        // The VM only interprets it, whatever is added.
        assert_eq!(time(8_001), Ok(8_001 + added));
        assert_eq!(time(65_535 - added), Ok(65_535));
        assert_eq!(time(65_535 - added + 1), Err(TooLarge));
    }
}
