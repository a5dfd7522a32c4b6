//! Inserts code into a method. The existing instructions stay and move to other places. Jumps, switches,
//! exception handlers, line numbers, local variables and StackMapTable entries are adjusted to the new
//! places.

use super::error::ClassFileError;
use super::error::ClassFileError::{Malformed, TooLarge, TooLargeToCompile};
use super::frames::{StackMapFrame, parameters, read_frames, this_type, write_frames};
use super::instructions::{INVOKESPECIAL, Instruction, NEW, instructions};
use super::pool::ConstantPool;
use super::reader::{ClassReader, count, write_attribute};

/// The method that owns the code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'a> {
    pub(super) name: &'a [u8],
    pub(super) descriptor: &'a [u8],
    pub(super) is_static: bool,
    /// Its class, by index in the constant pool.
    pub(super) class: u16,
    /// Whether the class file's version has StackMapTables.
    pub(super) has_frames: bool,
}

impl Method<'_> {
    pub(super) fn is_constructor(&self) -> bool {
        self.name == b"<init>"
    }
}

/// The most bytes of a method's code (JVM specification, 4.7.3).
const MOST_CODE: usize = 65_535;

/// The most bytes of a method's code that the VM compiles by default (`HugeMethodLimit` in
/// compiler/compiler_globals.hpp, `can_be_compiled` in compiler/compilationPolicy.cpp, 17-25; in 11
/// runtime/globals.hpp and runtime/compilationPolicy.cpp).
const MOST_COMPILED_CODE: usize = 8_000;

/// An exception handler in the class file's format: start_pc, end_pc, handler_pc, catch_type.
pub(super) type Handler = [[u8; 2]; 4];

/// The content of a Code attribute.
pub(super) struct Code<'a> {
    pub(super) max_stack: u16,
    pub(super) max_locals: u16,
    pub(super) bytes: usize,
    pub(super) instructions: Vec<Instruction<'a>>,
    /// The unparsed rest: exception handlers and attributes.
    tables: ClassReader<'a>,
}

impl<'a> Code<'a> {
    pub(super) fn read(attribute: &'a [u8]) -> Result<Self, ClassFileError> {
        let mut reader = ClassReader(attribute);
        let (max_stack, max_locals) = (reader.u16()?, reader.u16()?);
        let bytes = reader.u32()? as usize;
        let code = reader.take(bytes)?;
        if code.is_empty() || code.len() > MOST_CODE {
            return Err(Malformed);
        }
        Ok(Self { max_stack, max_locals, bytes, instructions: instructions(code)?, tables: reader })
    }

    /// The constructor call by which a constructor initialises `this`: the first call of an `<init>` that no
    /// preceding `new` accounts for.
    pub(super) fn call_of_other_constructor(&self, pool: &ConstantPool) -> Option<Instruction<'a>> {
        let mut made = 0_usize;
        for instruction in &self.instructions {
            match instruction.opcode {
                NEW => made += 1,
                INVOKESPECIAL if pool.method_name(instruction.constant()?) == Some(b"<init>") => {
                    if made == 0 {
                        return Some(*instruction);
                    }
                    made -= 1;
                }
                _ => {}
            }
        }
        None
    }

    /// Inserts `entry` at the beginning, and `added` before each instruction for which `is_before` holds.
    pub(super) fn with_added(
        &self,
        entry: &[u8],
        added: &[u8],
        is_before: impl Fn(Instruction<'_>) -> bool,
    ) -> Result<MovedCode<'a>, ClassFileError> {
        let mut places = vec![None; self.bytes + 1];
        let (mut at, mut additions) = (entry.len(), Vec::new());
        for instruction in &self.instructions {
            places[instruction.at] = Some(at);
            if is_before(*instruction) {
                additions.push(at);
                at += added.len();
            }
            at += instruction.length_at(at);
        }
        places[self.bytes] = Some(at);
        let mut moved = MovedCode { places, additions, end: at, code: entry.to_vec(), tables: self.tables };
        let mut code = entry.to_vec();
        for instruction in &self.instructions {
            if is_before(*instruction) {
                code.extend(added);
            }
            let at = code.len();
            instruction.write_at(at, &mut code, |old| moved.place(old))?;
        }
        moved.code = code;
        Ok(moved)
    }

    /// Checks that `bytes` is a legal length of code, and that the VM compiles code of that length if it
    /// compiles this code.
    pub(super) fn check_new_length(&self, bytes: usize) -> Result<(), ClassFileError> {
        if bytes > MOST_CODE {
            return Err(TooLarge);
        }
        if self.bytes <= MOST_COMPILED_CODE && bytes > MOST_COMPILED_CODE {
            return Err(TooLargeToCompile);
        }
        Ok(())
    }
}

/// Code with insertions.
pub(super) struct MovedCode<'a> {
    /// The new place of each instruction, by its old place. The end of the old code counts as a place.
    places: Vec<Option<usize>>,
    /// The new place of each insertion.
    pub(super) additions: Vec<usize>,
    /// The end of the moved old code.
    pub(super) end: usize,
    /// The whole code, including all insertions.
    pub(super) code: Vec<u8>,
    tables: ClassReader<'a>,
}

impl MovedCode<'_> {
    /// The new place of the instruction that was at `old`, or of the insertion before it.
    pub(super) fn place(&self, old: usize) -> Result<usize, ClassFileError> {
        self.places.get(old).copied().flatten().ok_or(Malformed)
    }

    fn place16(&self, old: u16) -> Result<[u8; 2], ClassFileError> {
        count(self.place(usize::from(old))?)
    }

    /// The content of the Code attribute of `method`, with these limits of stack and local variables.
    /// `handlers` follow the method's own exception handlers. `change_frames` may change the frames of the
    /// StackMapTable.
    pub(super) fn write(
        self,
        pool: &mut ConstantPool,
        method: Method<'_>,
        (max_stack, max_locals): (u16, u16),
        handlers: &[Handler],
        change_frames: impl FnOnce(&mut Vec<StackMapFrame>) -> Result<(), ClassFileError>,
    ) -> Result<Vec<u8>, ClassFileError> {
        let mut out = Vec::with_capacity(self.code.len() + self.tables.0.len() + 256);
        out.extend([max_stack, max_locals].map(u16::to_be_bytes).as_flattened());
        out.extend(u32::try_from(self.code.len()).map_err(|_| TooLarge)?.to_be_bytes());
        out.extend(&self.code);
        let mut reader = self.tables;
        let mut all_handlers: Vec<Handler> = Vec::new();
        for _ in 0..reader.u16()? {
            let [start, end, handler] = [reader.u16()?, reader.u16()?, reader.u16()?];
            let caught = reader.u16()?.to_be_bytes();
            all_handlers.push([self.place16(start)?, self.place16(end)?, self.place16(handler)?, caught]);
        }
        all_handlers.extend(handlers);
        out.extend(count(all_handlers.len())?);
        out.extend(all_handlers.as_flattened().as_flattened());
        self.write_attributes(reader, pool, method, change_frames, &mut out)?;
        Ok(out)
    }

    /// Writes line numbers, local variables and StackMapTable entries with their new places. Other attributes
    /// of code are for debuggers. They are omitted, because their places would be wrong.
    fn write_attributes(
        &self,
        mut reader: ClassReader<'_>,
        pool: &mut ConstantPool,
        method: Method<'_>,
        change_frames: impl FnOnce(&mut Vec<StackMapFrame>) -> Result<(), ClassFileError>,
        out: &mut Vec<u8>,
    ) -> Result<(), ClassFileError> {
        let mut written: Vec<(u16, Vec<u8>)> = Vec::new();
        let mut types = None;
        for _ in 0..reader.u16()? {
            let (name, content) = reader.attribute()?;
            match pool.text(name) {
                Some(b"LineNumberTable") => written.push((name, self.moved_lines(content)?)),
                Some(b"LocalVariableTable" | b"LocalVariableTypeTable") => {
                    written.push((name, self.moved_variables(content)?));
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
                frame.at = self.place(frame.at)?;
            }
            change_frames(&mut frames)?;
            let name = pool.add_text(b"StackMapTable")?;
            written.push((name, write_frames(&frames, |old| self.place(old))?));
        }
        out.extend(count(written.len())?);
        written.iter().try_for_each(|(name, content)| write_attribute(out, *name, content))
    }

    /// Converts a `LineNumberTable`: places and lines. The code inserted at the beginning belongs to the
    /// first line.
    fn moved_lines(&self, content: &[u8]) -> Result<Vec<u8>, ClassFileError> {
        let mut reader = ClassReader(content);
        let lines = reader.u16()?;
        let mut out = lines.to_be_bytes().to_vec();
        for _ in 0..lines {
            let at = reader.u16()?;
            out.extend(if at == 0 { [0, 0] } else { self.place16(at)? });
            out.extend(reader.take(2)?);
        }
        Ok(out)
    }

    /// Converts a `LocalVariableTable` or `LocalVariableTypeTable`: start and length of the range, and three
    /// more numbers.
    fn moved_variables(&self, content: &[u8]) -> Result<Vec<u8>, ClassFileError> {
        let mut reader = ClassReader(content);
        let variables = reader.u16()?;
        let mut out = variables.to_be_bytes().to_vec();
        for _ in 0..variables {
            let (start, length) = (usize::from(reader.u16()?), usize::from(reader.u16()?));
            let (from, to) = (self.place(start)?, self.place(start + length)?);
            out.extend(count(from)?);
            out.extend(count(to.checked_sub(from).ok_or(Malformed)?)?);
            out.extend(reader.take(6)?);
        }
        Ok(out)
    }
}
