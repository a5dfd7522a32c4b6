//! The types of variables that a method's StackMapTable declares (JVM specification, 4.7.4).
//!
//! Each entry is relative to the entry before. Adding a variable after all others requires each entry in
//! full.

use super::error::ClassFileError;
use super::error::ClassFileError::{Malformed, TooLarge};
use super::pool::ConstantPool;
use super::reader::{ClassReader, count};

/// `verification_type_info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum VerificationType {
    /// Top, Integer, Float, Double, Long, Null or UninitializedThis, by its tag.
    Plain(u8),
    /// An object of the class at this index of the constant pool.
    Object(u16),
    /// An object made by the `new` at this bytecode index, whose constructor has not run yet.
    Uninitialized(u16),
}

use VerificationType::{Object, Plain, Uninitialized};

pub(super) const TOP: VerificationType = Plain(0);
const INTEGER: VerificationType = Plain(1);
const FLOAT: VerificationType = Plain(2);
const DOUBLE: VerificationType = Plain(3);
pub(super) const LONG: VerificationType = Plain(4);
const UNINITIALIZED_THIS: VerificationType = Plain(6);

impl VerificationType {
    /// The number of local variable slots that a value of this type takes.
    fn slots(self) -> usize {
        if [DOUBLE, LONG].contains(&self) { 2 } else { 1 }
    }

    fn read(reader: &mut ClassReader<'_>) -> Result<Self, ClassFileError> {
        match reader.u8()? {
            tag @ 0..=6 => Ok(Plain(tag)),
            7 => reader.u16().map(Object),
            8 => reader.u16().map(Uninitialized),
            _ => Err(Malformed),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        let (tag, more) = match self {
            Plain(tag) => return out.push(tag),
            Object(class) => (7, class),
            Uninitialized(at) => (8, at),
        };
        out.push(tag);
        out.extend(more.to_be_bytes());
    }
}

/// The types that the verifier knows at one place of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StackMapFrame {
    /// The bytecode index.
    pub(super) at: usize,
    pub(super) locals: Vec<VerificationType>,
    pub(super) stack: Vec<VerificationType>,
}

/// The types of a method's parameters on entry. `this` is the type of an instance method's receiver.
pub(super) fn parameters(
    pool: &mut ConstantPool,
    descriptor: &[u8],
    this: Option<VerificationType>,
) -> Result<Vec<VerificationType>, ClassFileError> {
    let mut types: Vec<_> = this.into_iter().collect();
    let mut rest = descriptor.strip_prefix(b"(").ok_or(Malformed)?;
    loop {
        let element = rest.iter().position(|&c| c != b'[').ok_or(Malformed)?;
        let length = match rest[element] {
            b')' if element == 0 => return Ok(types),
            b'L' => rest.iter().position(|&c| c == b';').ok_or(Malformed)? + 1,
            _ => element + 1,
        };
        let (parameter, after) = rest.split_at(length);
        rest = after;
        types.push(match parameter {
            [b'Z' | b'B' | b'C' | b'S' | b'I'] => INTEGER,
            [b'F'] => FLOAT,
            [b'D'] => DOUBLE,
            [b'J'] => LONG,
            // An array class is named by its descriptor.
            [b'[', ..] => Object(pool.add_class(parameter)?),
            [b'L', name @ .., b';'] => Object(pool.add_class(name)?),
            _ => return Err(Malformed),
        });
    }
}

/// The type of `this` on entry to a method named `name`.
pub(super) fn this_type(name: &[u8], class: u16) -> VerificationType {
    if name == b"<init>" { UNINITIALIZED_THIS } else { Object(class) }
}

/// Parses a StackMapTable into full frames. `locals` are the types at the method's beginning.
pub(super) fn read_frames(
    table: &[u8],
    mut locals: Vec<VerificationType>,
) -> Result<Vec<StackMapFrame>, ClassFileError> {
    let mut reader = ClassReader(table);
    let mut frames: Vec<StackMapFrame> = Vec::new();
    for _ in 0..reader.u16()? {
        let kind = reader.u8()?;
        let offset = match kind {
            0..=63 => u16::from(kind),
            64..=127 => u16::from(kind - 64),
            247..=255 => reader.u16()?,
            _ => return Err(Malformed),
        };
        let mut stack = Vec::new();
        match kind {
            64..=127 | 247 => stack.push(VerificationType::read(&mut reader)?),
            248..=250 => {
                let left = locals.len().checked_sub(usize::from(251 - kind)).ok_or(Malformed)?;
                locals.truncate(left);
            }
            252..=254 => {
                for _ in 251..kind {
                    locals.push(VerificationType::read(&mut reader)?);
                }
            }
            255 => {
                let mut read = |types: &mut Vec<_>| {
                    types.clear();
                    for _ in 0..reader.u16()? {
                        types.push(VerificationType::read(&mut reader)?);
                    }
                    Ok::<_, ClassFileError>(())
                };
                read(&mut locals)?;
                read(&mut stack)?;
            }
            _ => {}
        }
        let before = frames.last().map_or(0, |frame| frame.at + 1);
        frames.push(StackMapFrame { at: before + usize::from(offset), locals: locals.clone(), stack });
    }
    Ok(frames)
}

/// Adds a variable of type `added` at slot `slot`, after all others. Unused slots before it become Top.
pub(super) fn add_local(
    locals: &mut Vec<VerificationType>,
    slot: usize,
    added: VerificationType,
) -> Result<(), ClassFileError> {
    let slots: usize = locals.iter().map(|local| local.slots()).sum();
    let free = slot.checked_sub(slots).ok_or(Malformed)?;
    locals.resize(locals.len() + free, TOP);
    locals.push(added);
    Ok(())
}

/// Writes frames, sorted by place, each in full. `place` maps the old place of a `new` to its new place.
pub(super) fn write_frames(
    frames: &[StackMapFrame],
    place: impl Fn(usize) -> Result<usize, ClassFileError>,
) -> Result<Vec<u8>, ClassFileError> {
    let mut out = count(frames.len())?.to_vec();
    let mut next = 0;
    for frame in frames {
        let offset = frame.at.checked_sub(next).ok_or(Malformed)?;
        next = frame.at + 1;
        out.push(255);
        out.extend(count(offset)?);
        for types in [&frame.locals, &frame.stack] {
            out.extend(count(types.len())?);
            for &known in types {
                let moved = match known {
                    Uninitialized(at) => {
                        Uninitialized(u16::try_from(place(usize::from(at))?).map_err(|_| TooLarge)?)
                    }
                    other => other,
                };
                moved.write(&mut out);
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_frame_is_read() {
        let table = [
            &[0, 7][..],
            &[5],                                  // same
            &[64 + 2, 1],                          // one value on the stack
            &[247, 1, 0, 7, 0, 9],                 // one value on the stack, with a larger offset
            &[253, 0, 3, 4, 2],                    // appends a long and a float
            &[250, 0, 0],                          // one variable fewer
            &[251, 0, 1],                          // same, with a larger offset
            &[255, 0, 2, 0, 1, 6, 0, 1, 8, 0, 20], // in full
        ]
        .concat();
        let this = Object(3);
        let frames = read_frames(&table, vec![this]).unwrap();
        let expected: [(usize, &[VerificationType], &[VerificationType]); 7] = [
            (5, &[this], &[]),
            (8, &[this], &[INTEGER]),
            (265, &[this], &[Object(9)]),
            (269, &[this, LONG, FLOAT], &[]),
            (270, &[this, LONG], &[]),
            (272, &[this, LONG], &[]),
            (275, &[UNINITIALIZED_THIS], &[Uninitialized(20)]),
        ];
        for (frame, (at, locals, stack)) in frames.iter().zip(expected) {
            assert_eq!((frame.at, &*frame.locals, &*frame.stack), (at, locals, stack));
        }
        assert_eq!(frames.len(), 7);
        let written = write_frames(&frames, |at| Ok(at + 100)).unwrap();
        let again = read_frames(&written, Vec::new()).unwrap();
        assert_eq!(again[..6], frames[..6]);
        assert_eq!(again[6].stack, [Uninitialized(120)]);
        for end in 0..table.len() {
            assert!(read_frames(&table[..end], vec![this]).is_err(), "{end}");
        }
        assert_eq!(read_frames(&[0, 1, 248, 0, 0], vec![this, this]), Err(Malformed));
    }

    #[test]
    fn parameters_have_the_types_of_the_descriptor() {
        let mut pool = ConstantPool::new();
        let types = parameters(&mut pool, b"(IJ[[DLa/B;ZLa/B;)V", Some(Object(77))).unwrap();
        let (array, class) = (pool.add_class(b"[[D").unwrap(), pool.add_class(b"a/B").unwrap());
        let expected = [Object(77), INTEGER, LONG, Object(array), Object(class), INTEGER, Object(class)];
        assert_eq!(types, expected);
        let mut padded = types;
        add_local(&mut padded, 10, LONG).unwrap();
        assert_eq!(padded[7..], [TOP, TOP, LONG], "8 slots are taken");
        for bad in [&b"I"[..], b"(", b"(L", b"(X)V", b"([)V"] {
            assert_eq!(parameters(&mut pool, bad, None), Err(Malformed), "{bad:?}");
        }
    }
}
