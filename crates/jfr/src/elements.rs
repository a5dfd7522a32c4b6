//! The element tree in which metadata is written: elements with names, attributes and children, as in XML.

use std::sync::Arc;

use super::cursor::ChunkCursor;
use super::error::{JfrError, Problem};
use super::strings::RawString;

/// The deepest nesting. Writers use five levels: root, metadata, class, field, annotation.
const MOST_LEVELS: usize = 32;

/// The elements of one metadata event. Each follows its parent.
#[derive(Debug, Default)]
pub(super) struct Elements {
    /// The string table. Any number of elements may refer to one string, so callers that keep a string share
    /// it.
    strings: Vec<Arc<str>>,
    /// The name and value of each attribute, as positions in `strings`.
    attributes: Vec<(u32, u32)>,
    elements: Vec<Element>,
}

/// One element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Element {
    name: u32,
    /// The range of the element's attributes.
    attributes: (u32, u32),
    /// The parent's position.
    pub(super) parent: Option<u32>,
}

impl Elements {
    /// Reads the strings and the tree. The cursor is after the event's id.
    pub(super) fn parse(cursor: &mut ChunkCursor<'_>) -> Result<Self, JfrError> {
        let mut tree = Self::default();
        for _ in 0..cursor.count()? {
            let text = RawString::read(cursor)?.text().unwrap_or_default();
            tree.strings.push(text.into());
        }
        // The elements that still expect children, each with the number of children to come.
        let mut open: Vec<(u32, usize)> = Vec::new();
        loop {
            let children = tree.element(cursor, open.last().map(|&(parent, _)| parent))?;
            if children > 0 {
                if open.len() == MOST_LEVELS {
                    return Err(cursor.error(Problem::TooDeep));
                }
                open.push((tree.elements.len() as u32 - 1, children));
            }
            while open.pop_if(|&mut (_, to_come)| to_come == 0).is_some() {}
            let Some((_, to_come)) = open.last_mut() else { return Ok(tree) };
            *to_come -= 1;
        }
    }

    /// Reads one element without its children. Returns the number of children.
    fn element(&mut self, cursor: &mut ChunkCursor<'_>, parent: Option<u32>) -> Result<usize, JfrError> {
        let name = self.string(cursor)?;
        let first = self.attributes.len() as u32;
        for _ in 0..cursor.count()? {
            let attribute = (self.string(cursor)?, self.string(cursor)?);
            self.attributes.push(attribute);
        }
        let attributes = (first, self.attributes.len() as u32);
        self.elements.push(Element { name, attributes, parent });
        cursor.count()
    }

    fn string(&self, cursor: &mut ChunkCursor<'_>) -> Result<u32, JfrError> {
        let at = *cursor;
        let index = cursor.int()? as u32;
        if index as usize >= self.strings.len() {
            let problem = Problem::MetadataString { index: index.into(), count: self.strings.len() };
            return Err(at.error(problem));
        }
        Ok(index)
    }

    /// All elements. Each follows its parent.
    pub(super) fn all(&self) -> impl Iterator<Item = (u32, Element)> {
        (0..).zip(self.elements.iter().copied())
    }

    /// The element's name.
    pub(super) fn name(&self, element: Element) -> &str {
        &self.strings[element.name as usize]
    }

    /// The element's attributes, as names and values.
    pub(super) fn attributes(&self, element: Element) -> impl Iterator<Item = (&Arc<str>, &Arc<str>)> {
        let range = element.attributes.0 as usize..element.attributes.1 as usize;
        self.attributes[range]
            .iter()
            .map(|&(name, value)| (&self.strings[name as usize], &self.strings[value as usize]))
    }

    /// The value of an attribute.
    pub(super) fn attribute(&self, element: Element, name: &str) -> Option<&Arc<str>> {
        self.attributes(element).find(|(other, _)| ***other == *name).map(|(_, value)| value)
    }
}
