//! Reads all integers and keys among a type's fields at once: for values that are read millions of times,
//! such as the frames of stacks.

use std::ops::Range;

use super::chunk::Chunk;
use super::cursor::ChunkCursor;
use super::error::JfrError;
use super::layout::Layout;
use super::types::{Constant, Field, FieldKind, TypeIndex};
use super::values::{Array, Struct, Value};

/// The number of constants that are fetched together.
const BATCH: usize = 32;

/// The compiled reading of some fields of a type as numbers. The number of a reference is its key.
#[derive(Clone, Debug)]
pub struct Numbers {
    of: TypeIndex,
    steps: Vec<Step>,
    /// The compressed integers to read, in the order in which they are written.
    compressed: Vec<Compressed>,
    /// The layout of the fields after the last number.
    after: Layout,
    /// For each slot, the type that its keys refer to.
    constants: Vec<Option<TypeIndex>>,
    /// Set if the type has exactly four compressed integers, as the frames of all known writers have.
    four: Option<FourIntegers>,
}

/// A type that consists of four compressed integers.
#[derive(Clone, Debug)]
struct FourIntegers {
    /// For each field, the number of bits by which it is narrower than 64 bits.
    unused_bits: [u32; 4],
    /// For each slot, the position of its field, or [`FourIntegers::NONE`].
    of_slots: Vec<u8>,
}

impl FourIntegers {
    const NONE: u8 = 4;

    fn new(fields: &[Field], names: &[&str]) -> Option<Self> {
        let unused_bits = |field: &Field| unused_bits(field.kind).filter(|_| !field.is_array);
        let bits: Option<Vec<u32>> = fields.iter().map(unused_bits).collect();
        let position = |name: &&str| fields.iter().rposition(|field| &*field.name == *name);
        let of_slots = names.iter().map(|name| position(name).map_or(Self::NONE, |position| position as u8));
        Some(Self { unused_bits: bits?.try_into().ok()?, of_slots: of_slots.collect() })
    }

    /// The value of each slot. Each slot loads its value from the values' positions. If the values were
    /// stored to their slots instead, the processor would stall on these stores when the slots are then read
    /// together.
    #[inline(always)]
    fn slots<const N: usize>(&self, of_slots: &[u8; N], values: [u64; 4]) -> [i64; N] {
        let mut all = [0; 8];
        for (position, value) in values.into_iter().enumerate() {
            all[position] = signed(value, self.unused_bits[position]);
        }
        of_slots.map(|position| all[usize::from(position & 7)])
    }
}

/// The next step of reading a type's values.
#[derive(Clone, Debug)]
enum Step {
    /// Skips fields that no slot needs.
    Pass(Layout),
    /// Reads the consecutive compressed integers at these positions of [`Numbers::compressed`].
    Compressed(Range<usize>),
    /// Reads a value of this kind into a slot.
    Read { slot: usize, kind: FieldKind },
}

/// A compressed integer that is read into a slot. `unused_bits` is the number of bits by which its field is
/// narrower than 64 bits.
#[derive(Clone, Copy, Debug)]
struct Compressed {
    slot: usize,
    unused_bits: u32,
}

impl Numbers {
    /// Compiles the fields with these names; each name is a slot. Fields that are neither integers nor
    /// references are skipped like fields without a slot.
    pub fn new(chunk: Chunk<'_>, of: TypeIndex, names: &[&str]) -> Self {
        let metadata = chunk.metadata();
        let (types, compressed) = (metadata.all(), chunk.header().compressed_integers());
        let fields = &metadata.get(of).fields;
        let mut budget = metadata.layout_budget(of);
        let mut layout =
            |range: Range<usize>| Layout::of_fields(fields[range].iter(), types, compressed, &mut budget);
        let four = FourIntegers::new(fields, names).filter(|_| compressed);
        let mut numbers = Self {
            of,
            steps: Vec::new(),
            compressed: Vec::new(),
            after: Layout::default(),
            constants: vec![None; names.len()],
            four,
        };
        let mut next = 0;
        for (position, field) in fields.iter().enumerate() {
            let slot = names.iter().position(|name| *name == &*field.name);
            let Some(slot) = slot.filter(|_| !field.is_array && is_number(field.kind)) else { continue };
            if let FieldKind::Constant(of) = field.kind {
                numbers.constants[slot] = Some(of);
            }
            if next < position {
                numbers.steps.push(Step::Pass(layout(next..position)));
            }
            match unused_bits(field.kind).filter(|_| compressed) {
                Some(unused_bits) => numbers.read_compressed(Compressed { slot, unused_bits }),
                None => numbers.steps.push(Step::Read { slot, kind: field.kind }),
            }
            next = position + 1;
        }
        numbers.after = layout(next..fields.len());
        numbers
    }

    /// Appends the reading of a compressed integer.
    fn read_compressed(&mut self, integer: Compressed) {
        let at = self.compressed.len();
        self.compressed.push(integer);
        match self.steps.last_mut() {
            Some(Step::Compressed(range)) => range.end = at + 1,
            _ => self.steps.push(Step::Compressed(at..at + 1)),
        }
    }

    /// Whether the type has the field of this slot.
    pub fn has(&self, slot: usize) -> bool {
        let is_read = |step: &Step| matches!(*step, Step::Read { slot: taken, .. } if taken == slot);
        self.compressed.iter().any(|integer| integer.slot == slot) || self.steps.iter().any(is_read)
    }

    /// The reference whose key was read into this slot; `None` if the type has no such field, or if the field
    /// is not a reference.
    #[inline]
    pub fn constant(&self, slot: usize, read: &[i64]) -> Option<Constant> {
        Some(Constant { of: self.constants[slot]?, key: read[slot] })
    }

    /// Reads the numbers of one value into their slots. Slots without a field keep their content.
    ///
    /// # Errors
    /// If the fields extend beyond the end of the event.
    #[inline]
    pub fn read(&self, values: &Struct<'_>, into: &mut [i64]) -> Result<(), JfrError> {
        debug_assert_eq!(values.of, self.of, "numbers of another type");
        self.read_at(&mut values.cursor(), values.chunk, into)
    }

    /// Reads the numbers of each value of an array, and calls `with` for each. Values of another type are
    /// skipped.
    ///
    /// # Errors
    /// If the values extend beyond the end of the event or constant that contains them.
    pub fn each<const N: usize>(
        &self,
        array: &Array<'_>,
        mut with: impl FnMut([i64; N]),
    ) -> Result<(), JfrError> {
        let (chunk, mut cursor) = (array.chunk(), array.cursor());
        let four = self.four.as_ref().and_then(|four| Some((four, four.of_slots.first_chunk::<N>()?)));
        if array.kind() != FieldKind::Struct(self.of) {
            // References to values of the type: JMC writes frames so.
            let mut values = array.values();
            for batch in (0..array.len()).step_by(BATCH) {
                touch(chunk, values.clone().take(BATCH));
                for value in values.by_ref().take(BATCH.min(array.len() - batch)) {
                    if let Some(of) = value?.as_struct(chunk).filter(|of| of.of == self.of) {
                        with(self.next(&mut of.cursor(), chunk, four, |_| Ok(()))?);
                    }
                }
            }
            return Ok(());
        }
        for _ in 0..array.len() {
            let pass_rest =
                |cursor: &mut ChunkCursor<'_>| self.after.skip(cursor, chunk.metadata().layouts());
            with(self.next(&mut cursor, chunk, four, pass_rest)?);
        }
        Ok(())
    }

    /// Reads the numbers at the cursor, on the fast path of `four` if they are short. `pass_rest` skips the
    /// fields after the last number.
    #[inline(always)]
    fn next<'c, const N: usize>(
        &self,
        cursor: &mut ChunkCursor<'c>,
        chunk: Chunk<'_>,
        four: Option<(&FourIntegers, &[u8; N])>,
        pass_rest: impl FnOnce(&mut ChunkCursor<'c>) -> Result<(), JfrError>,
    ) -> Result<[i64; N], JfrError> {
        if let Some((four, of_slots)) = four {
            if let Some(values) = cursor.four_short() {
                return Ok(four.slots(of_slots, values.map(u64::from)));
            }
            if let Some(values) = cursor.within_a_word::<4>() {
                return Ok(four.slots(of_slots, values));
            }
        }
        let mut numbers = [0; N];
        self.read_at(cursor, chunk, &mut numbers)?;
        pass_rest(cursor)?;
        Ok(numbers)
    }

    #[inline]
    fn read_at(
        &self,
        cursor: &mut ChunkCursor<'_>,
        chunk: Chunk<'_>,
        into: &mut [i64],
    ) -> Result<(), JfrError> {
        let metadata = chunk.metadata();
        for step in &self.steps {
            let (slot, kind) = match step {
                Step::Pass(layout) => {
                    layout.skip(cursor, metadata.layouts())?;
                    continue;
                }
                Step::Compressed(range) => {
                    cursor.each_compressed(&self.compressed[range.clone()], |integer, value| {
                        into[integer.slot] = signed(value, integer.unused_bits);
                    })?;
                    continue;
                }
                Step::Read { slot, kind } => (*slot, kind),
            };
            into[slot] = match kind {
                FieldKind::Boolean => (cursor.byte()? != 0).into(),
                FieldKind::Byte => (cursor.byte()? as i8).into(),
                FieldKind::Short => (cursor.short()? as i16).into(),
                FieldKind::Char => cursor.short()?.into(),
                FieldKind::Int => cursor.int()?.into(),
                // No other kinds are compiled.
                _ => cursor.long()?,
            };
        }
        Ok(())
    }
}

/// Loads the first byte of each constant, so that the processor fetches them at the same time. Otherwise each
/// would be fetched only after the one before it has been converted.
fn touch<'c>(chunk: Chunk<'c>, values: impl Iterator<Item = Result<Value<'c>, JfrError>>) {
    let first_bytes = values.map(|value| match value {
        Ok(Value::Constant(constant)) => chunk.first_byte(constant),
        _ => 0,
    });
    std::hint::black_box(first_bytes.fold(0, |all, byte| all ^ byte));
}

/// The type of an array's elements, whether they are inline or references.
pub fn element_type(array: &Value<'_>) -> Option<TypeIndex> {
    match array {
        Value::Array(array) => match array.kind() {
            FieldKind::Struct(of) | FieldKind::Constant(of) => Some(of),
            _ => None,
        },
        _ => None,
    }
}

/// The number of bits by which a compressed signed integer of this kind is narrower than 64 bits; `None` for
/// any other kind.
fn unused_bits(kind: FieldKind) -> Option<u32> {
    match kind {
        FieldKind::Short => Some(48),
        FieldKind::Int => Some(32),
        FieldKind::Long | FieldKind::Constant(_) => Some(0),
        _ => None,
    }
}

#[inline(always)]
fn signed(value: u64, unused_bits: u32) -> i64 {
    ((value << unused_bits) as i64) >> unused_bits
}

fn is_number(kind: FieldKind) -> bool {
    use FieldKind::{Boolean, Byte, Char, Constant, Int, Long, Short};
    matches!(kind, Boolean | Byte | Short | Char | Int | Long | Constant(_))
}
