//! The tables of a merged message: entries of the messages that are read, each distinct entry once.

use std::collections::HashMap;
use std::mem::take;

use foldhash::fast::RandomState as FastState;
use prost::Message as _;

use otlpprof_model::{
    AttributeId, FrameId, FunctionId, Id, Interner, LinkId, MappingId, SliceInterner, StackId, StringId,
    StringInterner,
};
use otlpprof_otlp::encoded::EncodedTables;
use otlpprof_otlp::lookup::DictionaryTables as _;
use otlpprof_otlp::wire::{
    AnyValue, ArrayValue, Function, KeyValue, KeyValueAndUnit, KeyValueList, Line, Link, Location, Mapping,
    ProfilesDictionary, Value, ValueType,
};

/// A reference to an entry that a message does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{table}[{index}] does not exist")]
pub struct NoEntry {
    /// The table.
    pub table: &'static str,
    /// The index.
    pub index: i32,
}

/// The tables of a message.
#[derive(Clone, Copy, Debug)]
enum Table {
    Strings,
    Attributes,
    Mappings,
    Functions,
    Links,
    Locations,
    Stacks,
}

const TABLES: usize = 7;
/// Stands for the new index of an entry that has none.
const NOT_MOVED: i32 = -1;

/// The most attributes of a [`UsualLocation`].
const USUAL_ATTRIBUTES: usize = 2;

/// A location of the merged message with one frame at most and few attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UsualLocation {
    mapping_index: i32,
    address: u64,
    line: Option<Line>,
    /// The set of attributes, then [`NOT_MOVED`].
    attributes: [i32; USUAL_ATTRIBUTES],
}

impl Table {
    fn name(self) -> &'static str {
        match self {
            Self::Strings => "string_table",
            Self::Attributes => "attribute_table",
            Self::Mappings => "mapping_table",
            Self::Functions => "function_table",
            Self::Links => "link_table",
            Self::Locations => "location_table",
            Self::Stacks => "stack_table",
        }
    }
}

/// Tables that grow. Element 0 of each is its zero value.
#[derive(Debug)]
pub struct MergedDictionary {
    strings: StringInterner<StringId>,
    /// Encoded attributes, since values of attributes cannot be hashed.
    attributes: SliceInterner<u8, AttributeId>,
    mappings: Interner<Mapping, MappingId>,
    functions: Interner<Function, FunctionId>,
    links: Interner<Link, LinkId>,
    locations: Interner<Location, FrameId>,
    stacks: SliceInterner<i32, StackId>,
    /// For each table, the new indices of the present message's entries, by their old indices; or
    /// [`NOT_MOVED`].
    moved: [Vec<i32>; TABLES],
    /// The indices of usual locations, which are found faster here.
    usual_locations: HashMap<UsualLocation, i32, FastState>,
    /// Scratch space: the locations of a stack, and the attributes of a location.
    stack: Vec<i32>,
    set: Vec<i32>,
}

impl Default for MergedDictionary {
    fn default() -> Self {
        let mut tables = Self {
            strings: StringInterner::default(),
            attributes: SliceInterner::default(),
            mappings: Interner::default(),
            functions: Interner::default(),
            links: Interner::default(),
            locations: Interner::default(),
            stacks: SliceInterner::default(),
            moved: Default::default(),
            usual_locations: HashMap::default(),
            stack: Vec::new(),
            set: Vec::new(),
        };
        tables.strings.intern("");
        tables.attributes.intern(&[]);
        tables.mappings.intern(Mapping::default());
        tables.functions.intern(Function::default());
        tables.links.intern(Link::default());
        tables.locations.intern(Location::default());
        tables.stacks.intern(&[]);
        tables
    }
}

impl MergedDictionary {
    /// Begins the next message, in which indices have another meaning.
    pub fn begin_message(&mut self) {
        self.moved.iter_mut().for_each(Vec::clear);
    }

    /// The index of a text.
    pub fn text(&mut self, text: &str) -> i32 {
        index_of(self.strings.intern(text))
    }

    /// A value type with these texts.
    pub fn value_type(&mut self, (name, unit): (&str, &str)) -> ValueType {
        ValueType { type_strindex: self.text(name), unit_strindex: self.text(unit) }
    }

    /// The index of an attribute.
    pub fn attribute_of(&mut self, key: &str, value: Option<AnyValue>, unit: &str) -> i32 {
        let (key_strindex, unit_strindex) = (self.text(key), self.text(unit));
        let attribute = KeyValueAndUnit { key_strindex, value, unit_strindex };
        index_of(self.attributes.intern(&attribute.encode_to_vec()))
    }

    /// A stack of the present message.
    ///
    /// # Errors
    /// The message does not have the stack, or an entry that the stack refers to.
    pub fn stack(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Stacks, index, |new| {
            let mut locations = take(&mut new.stack);
            if !tables.stack_to(index, &mut locations) {
                return Err(missing(Table::Stacks, index));
            }
            for location in &mut locations {
                *location = new.location(tables, *location)?;
            }
            let stack = index_of(new.stacks.intern(&locations));
            new.stack = locations;
            Ok(stack)
        })
    }

    /// A link of the present message; 0 is no link.
    ///
    /// # Errors
    /// The message does not have the link.
    pub fn link(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Links, index, |new| match index {
            0 => Ok(0),
            _ => Ok(index_of(new.links.intern(tables.link(index).ok_or(missing(Table::Links, index))?))),
        })
    }

    /// Attributes of the present message, sorted by their new indices. 0 is left out, as it stands for none.
    ///
    /// # Errors
    /// The message does not have one of the attributes.
    pub fn attribute_set(&mut self, tables: EncodedTables<'_>, indices: &[i32]) -> Result<Vec<i32>, NoEntry> {
        let mut set = Vec::new();
        self.attribute_set_to(tables, indices, &mut set)?;
        Ok(set)
    }

    /// As [`MergedDictionary::attribute_set`], to a list that had something else.
    ///
    /// # Errors
    /// The message does not have one of the attributes.
    pub fn attribute_set_to(
        &mut self,
        tables: EncodedTables<'_>,
        indices: &[i32],
        set: &mut Vec<i32>,
    ) -> Result<(), NoEntry> {
        set.clear();
        for &index in indices.iter().filter(|&&index| index != 0) {
            set.push(self.attribute(tables, index)?);
        }
        set.sort_unstable();
        set.dedup();
        Ok(())
    }

    /// The new index of an entry, which `enter` adds if it has not been moved.
    fn moved(
        &mut self,
        table: Table,
        old: i32,
        enter: impl FnOnce(&mut Self) -> Result<i32, NoEntry>,
    ) -> Result<i32, NoEntry> {
        let at = usize::try_from(old).map_err(|_| missing(table, old))?;
        if let Some(&known) = self.moved[table as usize].get(at)
            && known != NOT_MOVED
        {
            return Ok(known);
        }
        // Fails if the message has no such entry, so that the list is no longer than the message's table.
        let new = enter(self)?;
        let moved = &mut self.moved[table as usize];
        if moved.len() <= at {
            moved.resize(at + 1, NOT_MOVED);
        }
        moved[at] = new;
        Ok(new)
    }

    fn string(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Strings, index, |new| match tables.string(index) {
            Some(text) => Ok(new.text(text)),
            None if index == 0 => Ok(0),
            None => Err(missing(Table::Strings, index)),
        })
    }

    fn attribute(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Attributes, index, |new| {
            let attribute = tables.attribute(index).ok_or(missing(Table::Attributes, index))?;
            let value = attribute.value.map(|value| written_out(tables, value));
            let key_strindex = new.string(tables, attribute.key_strindex)?;
            let unit_strindex = new.string(tables, attribute.unit_strindex)?;
            let attribute = KeyValueAndUnit { key_strindex, value, unit_strindex };
            Ok(index_of(new.attributes.intern(&attribute.encode_to_vec())))
        })
    }

    fn mapping(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Mappings, index, |new| {
            if index == 0 {
                return Ok(0);
            }
            let mapping = tables.mapping(index).ok_or(missing(Table::Mappings, index))?;
            let moved = Mapping {
                filename_strindex: new.string(tables, mapping.filename_strindex)?,
                attribute_indices: new.attribute_set(tables, &mapping.attribute_indices)?,
                ..mapping
            };
            Ok(index_of(new.mappings.intern(moved)))
        })
    }

    fn function(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Functions, index, |new| {
            if index == 0 {
                return Ok(0);
            }
            let function = tables.function(index).ok_or(missing(Table::Functions, index))?;
            let moved = Function {
                name_strindex: new.string(tables, function.name_strindex)?,
                system_name_strindex: new.string(tables, function.system_name_strindex)?,
                filename_strindex: new.string(tables, function.filename_strindex)?,
                start_line: function.start_line,
            };
            Ok(index_of(new.functions.intern(moved)))
        })
    }

    fn location(&mut self, tables: EncodedTables<'_>, index: i32) -> Result<i32, NoEntry> {
        self.moved(Table::Locations, index, |new| {
            let location = tables.location(index).ok_or(missing(Table::Locations, index))?;
            if location.lines.len() > 1 || location.attribute_indices.len() > USUAL_ATTRIBUTES {
                return new.unusual_location(tables, location);
            }
            let line = match location.lines.first() {
                Some(line) => {
                    Some(Line { function_index: new.function(tables, line.function_index)?, ..*line })
                }
                None => None,
            };
            let mapping_index = new.mapping(tables, location.mapping_index)?;
            let mut set = take(&mut new.set);
            new.attribute_set_to(tables, &location.attribute_indices, &mut set)?;
            let mut attributes = [NOT_MOVED; USUAL_ATTRIBUTES];
            attributes[..set.len()].copy_from_slice(&set);
            let usual = UsualLocation { mapping_index, address: location.address, line, attributes };
            let known = new.usual_locations.get(&usual).copied();
            let moved = known.unwrap_or_else(|| {
                let (lines, attribute_indices) = (line.into_iter().collect(), set.clone());
                let moved = Location { mapping_index, address: location.address, lines, attribute_indices };
                index_of(new.locations.intern(moved))
            });
            if known.is_none() {
                new.usual_locations.insert(usual, moved);
            }
            new.set = set;
            Ok(moved)
        })
    }

    fn unusual_location(&mut self, tables: EncodedTables<'_>, location: Location) -> Result<i32, NoEntry> {
        let mut lines = Vec::with_capacity(location.lines.len());
        for line in &location.lines {
            lines.push(Line { function_index: self.function(tables, line.function_index)?, ..*line });
        }
        let moved = Location {
            mapping_index: self.mapping(tables, location.mapping_index)?,
            address: location.address,
            lines,
            attribute_indices: self.attribute_set(tables, &location.attribute_indices)?,
        };
        Ok(index_of(self.locations.intern(moved)))
    }

    /// The stacks, which the dictionary then lacks.
    pub fn take_stacks(&mut self) -> SliceInterner<i32, StackId> {
        take(&mut self.stacks)
    }

    /// The tables but for the stacks as a part of a message.
    pub fn into_wire(self) -> ProfilesDictionary {
        // SANITY: an interner has fewer than 2^32 values.
        let strings =
            (0..self.strings.len()).map(|index| self.strings.get(StringId(index as u32)).to_owned());
        // SANITY: the bytes are those of an encoded attribute.
        let attributes =
            self.attributes.iter().map(|bytes| KeyValueAndUnit::decode(bytes).unwrap_or_default());
        ProfilesDictionary {
            string_table: strings.collect(),
            attribute_table: attributes.collect(),
            stack_table: Vec::new(),
            mapping_table: self.mappings.values().to_vec(),
            location_table: self.locations.values().to_vec(),
            function_table: self.functions.values().to_vec(),
            link_table: self.links.values().to_vec(),
        }
    }
}

/// The index in a message of an interned value.
fn index_of(id: impl Id) -> i32 {
    // SANITY: 2^31 entries of a table exceed the largest message.
    id.index() as i32
}

fn missing(table: Table, index: i32) -> NoEntry {
    NoEntry { table: table.name(), index }
}

/// A value without references to the string table, which few readers resolve in values.
pub fn written_out(tables: EncodedTables<'_>, value: AnyValue) -> AnyValue {
    let value = value.value.map(|value| match value {
        Value::StringValueStrindex(index) => Value::StringValue(tables.text(index).to_owned()),
        Value::ArrayValue(list) => {
            let values = list.values.into_iter().map(|value| written_out(tables, value)).collect();
            Value::ArrayValue(ArrayValue { values })
        }
        Value::KvlistValue(map) => {
            let values = map.values.into_iter().map(|pair| pair_written_out(tables, pair)).collect();
            Value::KvlistValue(KeyValueList { values })
        }
        plain => plain,
    });
    AnyValue { value }
}

/// A pair without references to the string table.
pub fn pair_written_out(tables: EncodedTables<'_>, pair: KeyValue) -> KeyValue {
    let key = tables.key(&pair).to_owned();
    let value = pair.value.map(|value| written_out(tables, value));
    KeyValue { key, value, key_strindex: 0 }
}
