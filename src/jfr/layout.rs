//! What has to be passed to come behind a value that nobody reads: compiled once for each type of a chunk.

use super::cursor::Cursor;
use super::error::{JfrError, Problem};
use super::metadata::Metadata;
use super::strings::RawString;
use super::types::{Field, FieldKind, Type, TypeIndex};

/// Structs in structs, or arrays in arrays, to this level; the JDK's have three.
pub(super) const MOST_LEVELS: usize = 32;
/// Steps that all types of a chunk may have together for each field that its metadata has: structs that stand in place
/// are expanded, and made-up ones could be so without end.
const STEPS_PER_FIELD: usize = 16;
pub(super) const FEWEST_STEPS: usize = 4_096;
/// Elements without any byte that an array may have. The bytes left do not bound their number, and no writer has them.
const MOST_EMPTY_ELEMENTS: usize = 16;

/// How to pass a sequence of values.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    steps: Vec<Step>,
    /// Why the values behind the steps cannot be passed.
    broken: Option<Problem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// So many compressed integers.
    Integers(usize),
    /// So many bytes.
    Bytes(usize),
    Text,
    /// A count, and so many of this.
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
    /// The layout of these fields, one after the other. `budget` is taken from for each field that is looked at.
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

    /// What [`Layout::of_fields`] may take for all types together.
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

    /// Whether the values have no byte.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.broken.is_none()
    }

    /// Whether all fields were expanded.
    pub(super) fn is_whole(&self) -> bool {
        self.broken.is_none()
    }

    /// Passes the values.
    #[inline(always)]
    pub(super) fn skip(&self, cursor: &mut Cursor<'_>, metadata: &Metadata) -> Result<(), JfrError> {
        // Most are one of these.
        match (&self.steps[..], self.broken) {
            ([], None) => Ok(()),
            (&[Step::Integers(count)], None) => cursor.skip_compressed(count),
            _ => self.skip_at(cursor, metadata, 0),
        }
    }

    fn skip_at(&self, cursor: &mut Cursor<'_>, metadata: &Metadata, level: usize) -> Result<(), JfrError> {
        for step in &self.steps {
            match *step {
                Step::Integers(count) => cursor.skip_compressed(count)?,
                Step::Bytes(len) => cursor.skip_bytes(len)?,
                Step::Text => RawString::skip(cursor)?,
                Step::Array(element) => skip_array(element, cursor, metadata, level)?,
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

/// Passes so many values of a kind; the cursor is behind their count.
pub(super) fn skip_values(
    kind: FieldKind,
    count: usize,
    cursor: &mut Cursor<'_>,
    metadata: &Metadata,
) -> Result<(), JfrError> {
    match element(kind, cursor.compressed()) {
        Ok(element) => skip_elements(element, count, cursor, metadata, 0),
        Err(problem) => Err(cursor.error(problem)),
    }
}

/// The number of elements of an array of structs, which are bounded even if they have no byte.
#[inline]
pub(super) fn count_structs(
    of: TypeIndex,
    cursor: &mut Cursor<'_>,
    metadata: &Metadata,
) -> Result<usize, JfrError> {
    let (at, count) = (*cursor, cursor.count()?);
    if count > MOST_EMPTY_ELEMENTS && metadata.get(of).layout.is_empty() {
        return Err(at.error(Problem::EmptyElements(count)));
    }
    Ok(count)
}

/// A count is at most that of the bytes left, so that no loop is longer than the recording.
fn skip_array(
    element: Element,
    cursor: &mut Cursor<'_>,
    metadata: &Metadata,
    level: usize,
) -> Result<(), JfrError> {
    let count = match element {
        Element::Struct(of) => count_structs(of, cursor, metadata)?,
        _ => cursor.count()?,
    };
    skip_elements(element, count, cursor, metadata, level)
}

fn skip_elements(
    element: Element,
    count: usize,
    cursor: &mut Cursor<'_>,
    metadata: &Metadata,
    level: usize,
) -> Result<(), JfrError> {
    match element {
        Element::Integer => cursor.skip_compressed(count),
        Element::Bytes(len) => cursor.skip_bytes(count.saturating_mul(len)),
        Element::Text => (0..count).try_for_each(|_| RawString::skip(cursor)),
        Element::Struct(of) => {
            let layout = &metadata.get(of).layout;
            match (&layout.steps[..], layout.broken) {
                ([], None) => Ok(()),
                (&[Step::Integers(integers)], None) => cursor.skip_compressed(count.saturating_mul(integers)),
                (&[Step::Bytes(len)], None) => cursor.skip_bytes(count.saturating_mul(len)),
                _ if level == MOST_LEVELS => Err(cursor.error(Problem::TooDeep)),
                _ => (0..count).try_for_each(|_| layout.skip_at(cursor, metadata, level + 1)),
            }
        }
    }
}
