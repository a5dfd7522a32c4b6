//! Names of functions, through origins and specifications.
//!
//! A linkage name anywhere on the way from a function to its origins precedes a plain name anywhere on it
//! (LLVM's `DWARFDie::getName` and `findRecursively`).

use std::collections::HashMap;

use gimli::{AttributeSpecification, AttributeValue, EntriesRaw, UnitOffset, UnitRef};

use super::error::DwarfError;
use super::limits;
use super::sections::Bytes;
use super::texts::{NO_TEXT, SharedTexts};

/// The value of an attribute.
pub(super) type Value<'a> = AttributeValue<Bytes<'a>>;

/// An entry outside the unit: its offset in `.debug_info` of one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Target {
    /// In the file itself.
    Main(u64),
    /// In the supplementary file.
    Supplementary(u64),
}

/// The name of a function, as far as its unit has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The number of the linkage name.
    pub(super) linkage: u32,
    /// The number of the plain name.
    pub(super) plain: u32,
    /// The entry at which the search goes on; none once a linkage name is found.
    pub(super) next: Option<Target>,
}

impl Name {
    /// No name.
    pub(super) const NONE: Self = Self { linkage: NO_TEXT, plain: NO_TEXT, next: None };

    /// The number of the name, if the search is over.
    pub(super) fn text(self) -> u32 {
        if self.linkage != NO_TEXT { self.linkage } else { self.plain }
    }

    /// This name, and where it has none the name that the search found further on.
    pub(super) fn or(self, further: Self) -> Self {
        if self.linkage != NO_TEXT {
            return self;
        }
        let plain = if self.plain != NO_TEXT { self.plain } else { further.plain };
        Self { plain, ..further }
    }
}

/// The attributes of an entry that lead to its name.
#[derive(Clone, Copy, Default)]
pub(super) struct NameAttributes<'a> {
    linkage: Option<Value<'a>>,
    plain: Option<Value<'a>>,
    origin: Option<Value<'a>>,
    specification: Option<Value<'a>>,
}

impl<'a> NameAttributes<'a> {
    /// Takes an attribute if it leads to the name.
    pub(super) fn take(&mut self, name: gimli::DwAt, value: Value<'a>) {
        match name {
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => self.linkage = Some(value),
            gimli::DW_AT_name => self.plain = Some(value),
            gimli::DW_AT_abstract_origin => self.origin = Some(value),
            gimli::DW_AT_specification => self.specification = Some(value),
            _ => {}
        }
    }

    fn read(
        entries: &mut EntriesRaw<'_, Bytes<'a>>,
        specifications: &[AttributeSpecification],
    ) -> Result<Self, DwarfError> {
        let mut attributes = Self::default();
        for &specification in specifications {
            let attribute = entries.read_attribute(specification)?;
            attributes.take(attribute.name(), attribute.raw_value());
        }
        Ok(attributes)
    }
}

/// Finds the names of the functions of one unit.
pub(super) struct Names<'u, 'a> {
    unit: UnitRef<'u, Bytes<'a>>,
    /// The unit's offset in `.debug_info`.
    offset: u64,
    /// The file that references lead into; none of split units, whose references stay inside.
    home: Option<fn(u64) -> Target>,
    found: HashMap<usize, Name>,
}

impl<'u, 'a> Names<'u, 'a> {
    /// A finder for a unit at this offset of its `.debug_info`.
    pub(super) fn new(unit: UnitRef<'u, Bytes<'a>>, offset: u64, home: Option<fn(u64) -> Target>) -> Self {
        Self { unit, offset, home, found: HashMap::new() }
    }

    /// The name of an entry with these attributes.
    ///
    /// # Errors
    /// If an entry on the way is malformed, or the way is a circle.
    pub(super) fn of(
        &mut self,
        attributes: &NameAttributes<'a>,
        texts: &SharedTexts,
    ) -> Result<Name, DwarfError> {
        let (name, next) = self.own(attributes, texts)?;
        match next {
            Some(next) => Ok(name.or(self.at(next, texts)?)),
            None => Ok(name),
        }
    }

    /// The name of the entry at this offset in the unit.
    ///
    /// # Errors
    /// If an entry on the way is malformed, or the way is a circle.
    pub(super) fn at(&mut self, offset: UnitOffset, texts: &SharedTexts) -> Result<Name, DwarfError> {
        if let Some(&found) = self.found.get(&offset.0) {
            return Ok(found);
        }
        let (mut name, mut at) = (Name::NONE, offset);
        for _ in 0..limits::ORIGINS {
            let mut entries = self.unit.entries_raw(Some(at))?;
            let Some(abbreviation) = entries.read_abbreviation()? else {
                return Err(gimli::Error::NoEntryAtGivenOffset(at.0 as u64).into());
            };
            let attributes = NameAttributes::read(&mut entries, abbreviation.attributes())?;
            let (own, next) = self.own(&attributes, texts)?;
            name = name.or(own);
            match next {
                Some(next) => at = next,
                None => {
                    self.found.insert(offset.0, name);
                    return Ok(name);
                }
            }
        }
        Err(DwarfError::Origins)
    }

    /// The name that the attributes themselves have, and the entry of the unit at which to go on.
    fn own(
        &self,
        attributes: &NameAttributes<'a>,
        texts: &SharedTexts,
    ) -> Result<(Name, Option<UnitOffset>), DwarfError> {
        let linkage = self.text(attributes.linkage, texts)?;
        if linkage != NO_TEXT {
            return Ok((Name { linkage, ..Name::NONE }, None));
        }
        let name = Name { plain: self.text(attributes.plain, texts)?, ..Name::NONE };
        let outside = |target| Ok((Name { next: Some(target), ..name }, None));
        match attributes.specification.or(attributes.origin) {
            Some(AttributeValue::UnitRef(offset)) => Ok((name, Some(offset))),
            Some(AttributeValue::DebugInfoRef(target)) => {
                let target = target.0 as u64;
                let len = self.unit.header.length_including_self() as u64;
                match (target.checked_sub(self.offset).filter(|&inside| inside < len), self.home) {
                    (Some(inside), _) => Ok((name, Some(UnitOffset(inside as usize)))),
                    (None, Some(home)) => outside(home(target)),
                    (None, None) => Ok((name, None)),
                }
            }
            Some(AttributeValue::DebugInfoRefSup(target)) => outside(Target::Supplementary(target.0 as u64)),
            _ => Ok((name, None)),
        }
    }

    fn text(&self, value: Option<Value<'a>>, texts: &SharedTexts) -> Result<u32, DwarfError> {
        match value.and_then(|value| self.unit.attr_string(value).ok()) {
            Some(text) => texts.add(text.slice()),
            None => Ok(NO_TEXT),
        }
    }
}
