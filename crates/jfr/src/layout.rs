//! The layout of values that are skipped, compiled once for each type of a chunk.

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::strings::RawString;
use super::types::{Field, FieldKind, Type, TypeIndex};

/// The deepest nesting of structs in structs or of arrays in arrays. The JDK's types have three levels.
pub(super) const MOST_LEVELS: usize = 32;
/// The most steps of all types of a chunk together, for each field in its metadata. Inline structs are
/// expanded, and crafted types could be expanded endlessly.
const STEPS_PER_FIELD: usize = 16;
pub(super) const FEWEST_STEPS: usize = 4_096;
/// The most elements of an array of elements that take no bytes. The bytes left do not bound their number. No
/// known writer has such arrays.
const MOST_EMPTY_ELEMENTS: usize = 16;

/// The steps that skip a sequence of values.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
    /// The reason why the values after the steps cannot be skipped.
    broken: Option<Problem>,
}

/// The layouts of a chunk's types, by the types' positions.
#[derive(Clone, Debug, Default)]
pub(super) struct Layouts(Vec<Layout>);

impl Layouts {
    /// `layouts` has one for each type.
    pub(super) fn new(layouts: Vec<Layout>) -> Self {
        Self(layouts)
    }

    /// The layout of a type.
    #[inline]
    pub(super) fn of(&self, of: TypeIndex) -> &Layout {
        &self.0[of.0 as usize]
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// This number of compressed integers.
    Integers(usize),
    /// This number of bytes.
    Bytes(usize),
    Text,
    /// A count, followed by this number of elements.
    Array(Element),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Integer,
    Bytes(usize),
    Text,
    Struct(TypeIndex),
}

impl Layout {
    /// The layout of consecutive fields. Each visited field reduces `budget` by one.
    pub(super) fn of_fields<'t>(
        fields: impl Iterator<Item = &'t Field>,
        types: &[Type],
        compressed: bool,
        budget: &mut usize,
    ) -> Self {
        let mut layout = Self::default();
        for field in fields {
            if let Err(problem) = layout.add_field(field, types, compressed, budget, 0) {
                layout.broken = Some(problem);
                break;
            }
        }
        layout
    }

    /// The budget of [`Layout::of_fields`] for all types together.
    pub(super) fn budget(types: &[Type]) -> usize {
        let fields: usize = types.iter().map(|of| of.fields.len()).sum();
        (fields * STEPS_PER_FIELD).max(FEWEST_STEPS)
    }

    fn add_field(
        &mut self,
        field: &Field,
        types: &[Type],
        compressed: bool,
        budget: &mut usize,
        level: usize,
    ) -> Result<(), Problem> {
        *budget = budget.checked_sub(1).ok_or(Problem::TooLarge)?;
        let element = element(field.kind, compressed)?;
        if field.is_array {
            self.steps.push(Step::Array(element));
            return Ok(());
        }
        match element {
            Element::Struct(of) => {
                if level == MOST_LEVELS {
                    return Err(Problem::TooDeep);
                }
                let of = &types[of.0 as usize];
                of.fields
                    .iter()
                    .try_for_each(|field| self.add_field(field, types, compressed, budget, level + 1))?;
            }
            Element::Integer => match self.steps.last_mut() {
                Some(Step::Integers(count)) => *count += 1,
                _ => self.steps.push(Step::Integers(1)),
            },
            Element::Bytes(len) => match self.steps.last_mut() {
                Some(Step::Bytes(count)) => *count += len,
                _ => self.steps.push(Step::Bytes(len)),
            },
            Element::Text => self.steps.push(Step::Text),
        }
        Ok(())
    }

    /// Whether the values take no bytes.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.broken.is_none()
    }

    /// Whether all fields were expanded.
    pub(super) fn is_whole(&self) -> bool {
        self.broken.is_none()
    }

    /// Skips the values.
    #[inline(always)]
    pub(super) fn skip(&self, cursor: &mut ChunkCursor<'_>, layouts: &Layouts) -> Result<(), JfrError> {
        // Fast paths for the most frequent layouts.
        match (&self.steps[..], self.broken) {
            ([], None) => Ok(()),
            (&[Step::Integers(count)], None) => cursor.skip_compressed(count),
            _ => self.skip_at(cursor, layouts, 0),
        }
    }

    fn skip_at(&self, cursor: &mut ChunkCursor<'_>, layouts: &Layouts, level: usize) -> Result<(), JfrError> {
        for step in &self.steps {
            match *step {
                Step::Integers(count) => cursor.skip_compressed(count)?,
                Step::Bytes(len) => cursor.skip_bytes(len)?,
                Step::Text => RawString::skip(cursor)?,
                Step::Array(element) => skip_array(element, cursor, layouts, level)?,
            }
        }
        match self.broken {
            Some(problem) => Err(cursor.error(problem)),
            None => Ok(()),
        }
    }
}

fn element(kind: FieldKind, compressed: bool) -> Result<Element, Problem> {
    let integer = |len| if compressed { Element::Integer } else { Element::Bytes(len) };
    Ok(match kind {
        FieldKind::Boolean | FieldKind::Byte => Element::Bytes(1),
        FieldKind::Short | FieldKind::Char => integer(2),
        FieldKind::Int => integer(4),
        FieldKind::Long | FieldKind::Constant(_) => integer(8),
        FieldKind::Float => Element::Bytes(4),
        FieldKind::Double => Element::Bytes(8),
        FieldKind::String => Element::Text,
        FieldKind::Struct(of) => Element::Struct(of),
        FieldKind::Unknown(id) => return Err(Problem::UnknownType(id)),
    })
}

/// Skips `count` values of a kind. The cursor is after the count.
pub(super) fn skip_values(
    kind: FieldKind,
    count: usize,
    cursor: &mut ChunkCursor<'_>,
    layouts: &Layouts,
) -> Result<(), JfrError> {
    match element(kind, cursor.compressed()) {
        Ok(element) => skip_elements(element, count, cursor, layouts, 0),
        Err(problem) => Err(cursor.error(problem)),
    }
}

/// Reads the number of elements of an array of structs. The number is bounded even if the structs take no
/// bytes.
#[inline]
pub(super) fn count_structs(
    of: TypeIndex,
    cursor: &mut ChunkCursor<'_>,
    layouts: &Layouts,
) -> Result<usize, JfrError> {
    let (at, count) = (*cursor, cursor.count()?);
    if count > MOST_EMPTY_ELEMENTS && layouts.of(of).is_empty() {
        return Err(at.error(Problem::EmptyElements(count)));
    }
    Ok(count)
}

/// Skips an array. Its count is at most the number of bytes left, so no loop is longer than the recording.
fn skip_array(
    element: Element,
    cursor: &mut ChunkCursor<'_>,
    layouts: &Layouts,
    level: usize,
) -> Result<(), JfrError> {
    let count = match element {
        Element::Struct(of) => count_structs(of, cursor, layouts)?,
        _ => cursor.count()?,
    };
    skip_elements(element, count, cursor, layouts, level)
}

fn skip_elements(
    element: Element,
    count: usize,
    cursor: &mut ChunkCursor<'_>,
    layouts: &Layouts,
    level: usize,
) -> Result<(), JfrError> {
    match element {
        Element::Integer => cursor.skip_compressed(count),
        Element::Bytes(len) => cursor.skip_bytes(count.saturating_mul(len)),
        Element::Text => (0..count).try_for_each(|_| RawString::skip(cursor)),
        Element::Struct(of) => {
            let layout = layouts.of(of);
            match (&layout.steps[..], layout.broken) {
                ([], None) => Ok(()),
                (&[Step::Integers(integers)], None) => cursor.skip_compressed(count.saturating_mul(integers)),
                (&[Step::Bytes(len)], None) => cursor.skip_bytes(count.saturating_mul(len)),
                _ if level == MOST_LEVELS => Err(cursor.error(Problem::TooDeep)),
                _ => (0..count).try_for_each(|_| layout.skip_at(cursor, layouts, level + 1)),
            }
        }
    }
}
