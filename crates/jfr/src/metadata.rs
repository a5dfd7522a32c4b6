//! A metadata event: the types of a chunk, and the region in which it was recorded.

use std::sync::Arc;

use super::cursor::ChunkCursor;
use super::elements::{Element, Elements};
use super::error::{JfrError, Problem};
use super::key_index::KeyIndex;
use super::layout::{FEWEST_STEPS, Layout, Layouts};
use super::types::{Annotation, Field, FieldKind, Setting, Type, TypeIndex};

/// Type ids below this number are looked up in a table.
const DIRECT_IDS: usize = 4_096;
/// The longest number in the metadata, in bytes: an `i64` and some leading zeros.
const LONGEST_NUMBER: usize = 32;
const NO_TYPE: u32 = u32::MAX;

/// The description of a chunk's values.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    types: Vec<Type>,
    layouts: Layouts,
    /// The position of each type with a small id, by the id.
    direct: Vec<u32>,
    other: KeyIndex,
    other_types: Vec<u32>,
    region: Region,
    string_type: Option<TypeIndex>,
    bare_stacks: Option<TypeIndex>,
}

/// The region in which the recording was made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Region {
    /// For example `en_US`.
    pub locale: Option<Arc<str>>,
    /// The offset of local time from UTC, in milliseconds.
    pub gmt_offset_ms: Option<i64>,
    /// The part of this offset that is daylight saving, in milliseconds. JDK 25 writes it.
    pub daylight_saving_ms: Option<i64>,
}

/// The element that annotations belong to.
enum Owner {
    Type(usize),
    Field(usize, usize),
    Setting(usize, usize),
    Nothing,
}

impl Metadata {
    /// Parses the event after its id. Errors are reported at `start`.
    pub(super) fn parse(start: ChunkCursor<'_>, cursor: &mut ChunkCursor<'_>) -> Result<Self, JfrError> {
        let elements = Elements::parse(cursor)?;
        Self::of_elements(&elements, cursor.compressed()).map_err(|problem| start.error(problem))
    }

    fn of_elements(elements: &Elements, compressed: bool) -> Result<Self, Problem> {
        let mut metadata = Self::default();
        // A field may precede the definition of its type, so ids are resolved to positions in a second pass.
        for (_, element) in elements.all().filter(|&(_, element)| elements.name(element) == "class") {
            metadata.add_type(elements, element)?;
        }
        let mut owners: Vec<Owner> = Vec::new();
        let mut next_type = 0;
        for (_, element) in elements.all() {
            let owner = element.parent.and_then(|parent| owners.get(parent as usize));
            let owner = match (elements.name(element), owner) {
                ("class", _) => {
                    next_type += 1;
                    Owner::Type(next_type - 1)
                }
                ("field", Some(&Owner::Type(of))) => {
                    let field = metadata.field(elements, element)?;
                    metadata.types[of].fields.push(field);
                    Owner::Field(of, metadata.types[of].fields.len() - 1)
                }
                ("setting", Some(&Owner::Type(of))) => {
                    let setting = metadata.setting(elements, element);
                    metadata.types[of].settings.push(setting);
                    Owner::Setting(of, metadata.types[of].settings.len() - 1)
                }
                ("annotation", Some(owner)) => {
                    let annotation = metadata.annotation(elements, element);
                    match *owner {
                        Owner::Type(of) => metadata.types[of].annotations.push(annotation),
                        Owner::Field(of, field) => {
                            metadata.types[of].fields[field].annotations.push(annotation);
                        }
                        Owner::Setting(of, setting) => {
                            metadata.types[of].settings[setting].annotations.push(annotation);
                        }
                        Owner::Nothing => {}
                    }
                    Owner::Nothing
                }
                ("region", _) => {
                    metadata.region = region(elements, element);
                    Owner::Nothing
                }
                _ => Owner::Nothing,
            };
            owners.push(owner);
        }
        metadata.string_type = metadata.find_by_name("java.lang.String");
        if compressed && metadata.types.iter().any(|of| of.name.starts_with("datadog.")) {
            metadata.bare_stacks = metadata.find_by_name("jdk.types.StackTrace");
        }
        let mut budget = Layout::budget(&metadata.types);
        let types = &metadata.types;
        let layouts = types.iter().map(|of| match &*of.name {
            // The layout of a constant in the string pool.
            "java.lang.String" => {
                Layout::of_fields([&string_itself()].into_iter(), types, compressed, &mut budget)
            }
            _ => Layout::of_fields(of.fields.iter(), types, compressed, &mut budget),
        });
        metadata.layouts = Layouts::new(layouts.collect());
        Ok(metadata)
    }

    fn add_type(&mut self, elements: &Elements, element: Element) -> Result<(), Problem> {
        let id = number(elements, element, "id").ok_or(Problem::Attribute("id"))?;
        let attribute = |name| elements.attribute(element, name);
        let position = self.types.len() as u32;
        self.types.push(Type {
            id,
            name: attribute("name").cloned().unwrap_or_default(),
            super_type: attribute("superType").cloned(),
            is_simple: attribute("simpleType").is_some_and(|is| **is == *"true"),
            fields: Vec::new(),
            annotations: Vec::new(),
            settings: Vec::new(),
        });
        match usize::try_from(id).ok().filter(|&id| id < DIRECT_IDS) {
            Some(id) => {
                if self.direct.len() <= id {
                    self.direct.resize(id + 1, NO_TYPE);
                }
                self.direct[id] = position;
            }
            None => match self.other.add(id, 0) {
                Some(_) => self.other_types.push(position),
                None => {
                    if let Some(again) = self.other.find(id) {
                        self.other_types[again] = position;
                    }
                }
            },
        }
        Ok(())
    }

    fn field(&self, elements: &Elements, element: Element) -> Result<Field, Problem> {
        let id = number(elements, element, "class").ok_or(Problem::Attribute("class"))?;
        let attribute = |name| elements.attribute(element, name);
        let of = self.find(id);
        let kind = match (of, attribute("constantPool").is_some_and(|is| **is == *"true")) {
            (Some(of), true) => FieldKind::Constant(of),
            (Some(of), false) => primitive(&self.get(of).name).unwrap_or(FieldKind::Struct(of)),
            // The key can be skipped, although it cannot be resolved.
            (None, true) => FieldKind::Long,
            (None, false) => FieldKind::Unknown(id),
        };
        Ok(Field {
            name: attribute("name").cloned().unwrap_or_default(),
            kind,
            is_array: number(elements, element, "dimension").is_some_and(|dimension| dimension > 0),
            type_name: self.name_of(Some(id)),
            annotations: Vec::new(),
        })
    }

    fn setting(&self, elements: &Elements, element: Element) -> Setting {
        Setting {
            name: elements.attribute(element, "name").cloned().unwrap_or_default(),
            type_name: self.name_of(number(elements, element, "class")),
            default_value: elements.attribute(element, "defaultValue").cloned(),
            annotations: Vec::new(),
        }
    }

    fn annotation(&self, elements: &Elements, element: Element) -> Annotation {
        let values = elements.attributes(element).filter(|(name, _)| ***name != *"class");
        Annotation {
            type_name: self.name_of(number(elements, element, "class")),
            values: values.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }

    fn name_of(&self, id: Option<i64>) -> Arc<str> {
        id.and_then(|id| self.find(id)).map(|of| self.get(of).name.clone()).unwrap_or_default()
    }

    /// The types, in the order of their definitions.
    pub fn types(&self) -> impl Iterator<Item = (TypeIndex, &Type)> {
        (0..).map(TypeIndex).zip(&self.types)
    }

    pub(super) fn all(&self) -> &[Type] {
        &self.types
    }

    /// The layouts of the types.
    #[inline]
    pub(super) fn layouts(&self) -> &Layouts {
        &self.layouts
    }

    /// The budget of [`Layout::of_fields`] for parts of this type. If the whole type was expanded within the
    /// budget of all types, its parts need no limit. Otherwise the limit is small, since any number of types
    /// may be read so.
    pub(super) fn layout_budget(&self, of: TypeIndex) -> usize {
        let is_expanded = self.layouts.of(of).is_whole() && self.string_type != Some(of);
        if is_expanded { usize::MAX } else { FEWEST_STEPS }
    }

    /// A type.
    #[inline]
    pub fn get(&self, index: TypeIndex) -> &Type {
        &self.types[index.0 as usize]
    }

    /// The type with this id.
    #[inline]
    pub fn find(&self, id: i64) -> Option<TypeIndex> {
        let position = match self.direct.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            Some(&position) => position,
            None => self.other_types[self.other.find(id)?],
        };
        (position != NO_TYPE).then_some(TypeIndex(position))
    }

    /// The first type with this name.
    pub fn find_by_name(&self, name: &str) -> Option<TypeIndex> {
        self.types().find(|(_, of)| &*of.name == name).map(|(index, _)| index)
    }

    /// The type of the constants in the string pool.
    pub(super) fn string_type(&self) -> Option<TypeIndex> {
        self.string_type
    }

    /// The type of stacks, if the recording's writer omits a field of stacks without frames.
    pub(super) fn bare_stacks(&self) -> Option<TypeIndex> {
        self.bare_stacks
    }

    /// The region in which the recording was made.
    pub fn region(&self) -> &Region {
        &self.region
    }
}

/// The encoding of a primitive type or a string. Values of all other types are sequences of fields.
fn primitive(name: &str) -> Option<FieldKind> {
    Some(match name {
        "boolean" => FieldKind::Boolean,
        "byte" => FieldKind::Byte,
        "short" => FieldKind::Short,
        "char" => FieldKind::Char,
        "int" => FieldKind::Int,
        "long" => FieldKind::Long,
        "float" => FieldKind::Float,
        "double" => FieldKind::Double,
        "java.lang.String" => FieldKind::String,
        _ => return None,
    })
}

fn string_itself() -> Field {
    Field {
        name: Arc::default(),
        kind: FieldKind::String,
        is_array: false,
        type_name: Arc::default(),
        annotations: Vec::new(),
    }
}

fn number(elements: &Elements, element: Element, name: &str) -> Option<i64> {
    // No valid number is longer. The limit matters because any number of elements may refer to one long text.
    elements.attribute(element, name).filter(|text| text.len() <= LONGEST_NUMBER)?.parse().ok()
}

fn region(elements: &Elements, element: Element) -> Region {
    Region {
        locale: elements.attribute(element, "locale").cloned(),
        gmt_offset_ms: number(elements, element, "gmtOffset"),
        daylight_saving_ms: number(elements, element, "dst"),
    }
}
