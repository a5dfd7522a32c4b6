//! The tables in which libjvm describes its own structures (`runtime/vmStructs.cpp`), made for the
//! serviceability agent. Offsets differ between builds of one version, so every offset is looked up by name,
//! and a missing one is an error with its name.

use std::collections::HashMap;

use otlpprof_core::memory::Memory;

use super::layout::error::LayoutError;

/// An upper bound of the entries of a table in HotSpot 11-25; a longer one is not a table.
const MAX_ENTRIES: usize = 100_000;

/// An upper bound of the length of a name, in bytes. The longest ones are names of templates.
const MAX_NAME: usize = 512;

#[derive(Clone, Copy, Debug)]
enum Field {
    /// The offset, and the address of the name of the field's type, which few readers want.
    At {
        offset: u64,
        type_name: u64,
    },
    Static(u64),
}

/// The tables of one libjvm.
#[derive(Clone, Debug, Default)]
pub struct VmStructs {
    fields: HashMap<String, Field>,
    type_sizes: HashMap<String, u64>,
    constants: HashMap<String, i64>,
}

impl VmStructs {
    /// Reads the tables. `symbol` returns the address of an exported variable of libjvm.
    pub fn read(memory: &dyn Memory, symbol: impl Fn(&str) -> Option<u64>) -> Result<Self, LayoutError> {
        let reader = TableReader { memory, symbol: &symbol };
        let mut structs = Self::default();
        structs.read_fields(&reader)?;
        structs.read_types(&reader)?;
        structs.read_constants(&reader, "Int", |memory, at| {
            memory.load_u32(at).map(|value| i64::from(value as i32))
        })?;
        structs
            .read_constants(&reader, "Long", |memory, at| memory.load_u64(at).map(|value| value as i64))?;
        Ok(structs)
    }

    fn read_fields(&mut self, reader: &TableReader<'_>) -> Result<(), LayoutError> {
        let part = |name: &str| reader.variable(&format!("gHotSpotVMStructEntry{name}"));
        let (type_name, field_name) = (part("TypeNameOffset")?, part("FieldNameOffset")?);
        let (is_static, offset, address) =
            (part("IsStaticOffset")?, part("OffsetOffset")?, part("AddressOffset")?);
        let type_string = part("TypeStringOffset")?;
        reader.for_each("gHotSpotVMStructs", part("ArrayStride")?, type_name, |entry, type_name| {
            let field_name = reader.name_at(entry + field_name)?;
            let field = if reader.u32_at(entry + is_static)? != 0 {
                Field::Static(reader.u64_at(entry + address)?)
            } else {
                let type_name = reader.u64_at(entry + type_string)?;
                Field::At { offset: reader.u64_at(entry + offset)?, type_name }
            };
            self.fields.insert(format!("{type_name}::{field_name}"), field);
            Ok(())
        })
    }

    fn read_types(&mut self, reader: &TableReader<'_>) -> Result<(), LayoutError> {
        let part = |name: &str| reader.variable(&format!("gHotSpotVMTypeEntry{name}"));
        let (type_name, size) = (part("TypeNameOffset")?, part("SizeOffset")?);
        reader.for_each("gHotSpotVMTypes", part("ArrayStride")?, type_name, |entry, type_name| {
            self.type_sizes.insert(type_name, reader.u64_at(entry + size)?);
            Ok(())
        })
    }

    fn read_constants(
        &mut self,
        reader: &TableReader<'_>,
        width: &str,
        load: impl Fn(&dyn Memory, u64) -> Option<i64>,
    ) -> Result<(), LayoutError> {
        let part = |name: &str| reader.variable(&format!("gHotSpotVM{width}ConstantEntry{name}"));
        let (name, value) = (part("NameOffset")?, part("ValueOffset")?);
        let table = format!("gHotSpotVM{width}Constants");
        reader.for_each(&table, part("ArrayStride")?, name, |entry, name| {
            let value = load(reader.memory, entry + value);
            self.constants
                .insert(name, value.ok_or(LayoutError::Unreadable { what: "a constant of libjvm" })?);
            Ok(())
        })
    }

    /// Describes the size of a type, for tests.
    #[cfg(test)]
    pub(super) fn set_size(&mut self, structure: &str, size: u64) {
        self.type_sizes.insert(structure.to_owned(), size);
    }

    /// Describes an instance field at this offset. The field has no type.
    pub(super) fn set_offset(&mut self, structure: &'static str, field: &'static str, offset: u32) {
        let field_at = Field::At { offset: offset.into(), type_name: 0 };
        self.fields.insert(format!("{structure}::{field}"), field_at);
    }

    /// The offset of an instance field.
    pub fn offset(&self, structure: &'static str, field: &'static str) -> Result<u32, LayoutError> {
        match self.fields.get(&format!("{structure}::{field}")) {
            Some(Field::At { offset, .. }) => u32::try_from(*offset).map_err(|_| LayoutError::Implausible {
                structure,
                field,
                reason: format!("its offset is {offset:#x}"),
            }),
            _ => Err(LayoutError::MissingField { structure, field }),
        }
    }

    /// The offset of an instance field, in the first of `structures` that has the field: between versions,
    /// fields move up and down the class hierarchy.
    pub fn offset_in_any(
        &self,
        structures: &[&'static str],
        field: &'static str,
    ) -> Result<u32, LayoutError> {
        let found = structures.iter().find_map(|structure| self.offset(structure, field).ok());
        let structure = structures.first().copied().unwrap_or_default();
        found.ok_or(LayoutError::MissingField { structure, field })
    }

    /// The width of an instance field of an integer type, in bytes.
    pub fn width_of(
        &self,
        memory: &dyn Memory,
        structure: &'static str,
        field: &'static str,
    ) -> Result<u8, LayoutError> {
        let Some(&Field::At { type_name, .. }) = self.fields.get(&format!("{structure}::{field}")) else {
            return Err(LayoutError::MissingField { structure, field });
        };
        let name = super::c_string::read(memory, type_name, MAX_NAME).unwrap_or_default();
        match name.as_str() {
            "int8_t" | "uint8_t" | "u1" | "s1" | "char" | "bool" => Ok(1),
            "int16_t" | "uint16_t" | "u2" | "s2" | "short" => Ok(2),
            "int32_t" | "uint32_t" | "u4" | "s4" | "int" | "jint" => Ok(4),
            // An enumeration, or another name of an integer: the tables state the size of each.
            other => match self.type_sizes.get(other) {
                Some(&size @ (1 | 2 | 4)) => Ok(size as u8),
                _ => Err(LayoutError::implausible(structure, field, format!("its type is {other}"))),
            },
        }
    }

    /// Whether the tables have this type.
    pub fn has_type(&self, structure: &str) -> bool {
        self.type_sizes.contains_key(structure)
    }

    /// The address of a static field.
    pub fn static_address(&self, structure: &'static str, field: &'static str) -> Result<u64, LayoutError> {
        match self.fields.get(&format!("{structure}::{field}")) {
            Some(Field::Static(address)) => Ok(*address),
            _ => Err(LayoutError::MissingField { structure, field }),
        }
    }

    /// The pointer in a static variable; an error if the pointer is null.
    pub fn static_pointer(
        &self,
        memory: &dyn Memory,
        structure: &'static str,
        field: &'static str,
    ) -> Result<u64, LayoutError> {
        let address = self.static_address(structure, field)?;
        match memory.load_u64(address) {
            None => Err(LayoutError::implausible(structure, field, "it cannot be read")),
            Some(0) => {
                Err(LayoutError::implausible(structure, field, "it is null: the VM is not initialised"))
            }
            Some(pointer) => Ok(pointer),
        }
    }

    /// The size of a type, in bytes.
    pub fn size_of(&self, structure: &'static str) -> Result<u32, LayoutError> {
        let size = self.type_sizes.get(structure).copied().unwrap_or(0);
        match u32::try_from(size) {
            Ok(size) if size > 0 => Ok(size),
            _ => Err(LayoutError::MissingSize { structure }),
        }
    }

    /// A constant, by its name `Structure::NAME`.
    pub fn constant(&self, name: &'static str) -> Result<i64, LayoutError> {
        self.constants.get(name).copied().ok_or(LayoutError::MissingConstant { name })
    }
}

struct TableReader<'a> {
    memory: &'a dyn Memory,
    symbol: &'a dyn Fn(&str) -> Option<u64>,
}

impl TableReader<'_> {
    /// The value of an exported 8-byte variable.
    fn variable(&self, name: &str) -> Result<u64, LayoutError> {
        let address =
            (self.symbol)(name).ok_or_else(|| LayoutError::MissingSymbol { symbol: name.to_owned() })?;
        self.u64_at(address)
    }

    fn u64_at(&self, address: u64) -> Result<u64, LayoutError> {
        self.memory.load_u64(address).ok_or(LayoutError::Unreadable { what: "a table of libjvm" })
    }

    fn u32_at(&self, address: u64) -> Result<u32, LayoutError> {
        self.memory.load_u32(address).ok_or(LayoutError::Unreadable { what: "a table of libjvm" })
    }

    /// The C string that the pointer at `address` points to.
    fn name_at(&self, address: u64) -> Result<String, LayoutError> {
        let start = self.u64_at(address)?;
        super::c_string::read(self.memory, start, MAX_NAME)
            .ok_or(LayoutError::Unreadable { what: "a name in a table of libjvm" })
    }

    /// Calls `each` with the address and the name of every entry, until the entry whose name is null.
    fn for_each(
        &self,
        table: &str,
        stride: u64,
        name_offset: u64,
        mut each: impl FnMut(u64, String) -> Result<(), LayoutError>,
    ) -> Result<(), LayoutError> {
        let start = self.variable(table)?;
        for index in 0..MAX_ENTRIES as u64 {
            let entry = start + index * stride;
            if self.u64_at(entry + name_offset)? == 0 {
                return Ok(());
            }
            each(entry, self.name_at(entry + name_offset)?)?;
        }
        Err(LayoutError::Unreadable { what: "the end of a table of libjvm" })
    }
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;

    use super::*;

    /// Small tables in libjvm's format. Strides and offsets are exported variables, so they may have any
    /// value.
    struct Libjvm {
        memory: RecordedMemory,
        symbols: HashMap<String, u64>,
        next: u64,
    }

    impl Libjvm {
        fn new() -> Self {
            let mut libjvm =
                Self { memory: RecordedMemory::default(), symbols: HashMap::new(), next: 0x1000 };
            libjvm.table(
                "gHotSpotVMStructs",
                "gHotSpotVMStructEntry",
                &["TypeName", "FieldName", "IsStatic", "Offset", "Address", "TypeString"],
            );
            libjvm.table("gHotSpotVMTypes", "gHotSpotVMTypeEntry", &["TypeName", "Size"]);
            libjvm.table("gHotSpotVMIntConstants", "gHotSpotVMIntConstantEntry", &["Name", "Value"]);
            libjvm.table("gHotSpotVMLongConstants", "gHotSpotVMLongConstantEntry", &["Name", "Value"]);
            libjvm
        }

        fn put(&mut self, bytes: &[u8]) -> u64 {
            let address = self.next;
            self.memory.put(address, bytes);
            self.next += bytes.len().next_multiple_of(8) as u64;
            address
        }

        fn variable(&mut self, name: &str, value: u64) {
            let address = self.put(&value.to_ne_bytes());
            self.symbols.insert(name.to_owned(), address);
        }

        /// An empty table with 8-byte columns.
        fn table(&mut self, table: &str, prefix: &str, columns: &[&str]) {
            for (index, column) in (0..).zip(columns) {
                self.variable(&format!("{prefix}{column}Offset"), 8 * index);
            }
            self.variable(&format!("{prefix}ArrayStride"), 8 * columns.len() as u64);
            self.rows(table, &[]);
        }

        /// Sets the rows of a table; texts become pointers.
        fn rows(&mut self, table: &str, rows: &[&[Cell]]) {
            let cells: Vec<u64> = rows
                .concat()
                .iter()
                .map(|cell| match *cell {
                    Cell::Text(text) => self.put(format!("{text}\0").as_bytes()),
                    Cell::Number(number) => number,
                })
                .collect();
            let bytes: Vec<u8> = cells.iter().chain(&[0; 6]).flat_map(|cell| cell.to_ne_bytes()).collect();
            let start = self.put(&bytes);
            self.variable(table, start);
        }

        fn read(&self) -> Result<VmStructs, LayoutError> {
            VmStructs::read(&self.memory, |name| self.symbols.get(name).copied())
        }
    }

    #[derive(Clone, Copy)]
    enum Cell {
        Text(&'static str),
        Number(u64),
    }
    use Cell::{Number, Text};

    #[test]
    fn fields_sizes_and_constants_are_found_by_name() {
        let mut libjvm = Libjvm::new();
        libjvm.rows(
            "gHotSpotVMStructs",
            &[
                &[Text("Klass"), Text("_name"), Number(0), Number(24), Number(0), Text("Symbol*")],
                &[Text("CodeCache"), Text("_heaps"), Number(1), Number(0), Number(0x7777), Number(0)],
            ],
        );
        libjvm.rows("gHotSpotVMTypes", &[&[Text("Method"), Number(88)]]);
        libjvm.rows("gHotSpotVMIntConstants", &[&[Text("frame::slot"), Number(0xffff_fffa)]]);
        libjvm.rows("gHotSpotVMLongConstants", &[&[Text("markWord::mask"), Number(1 << 40)]]);
        let structs = libjvm.read().unwrap();
        assert_eq!(structs.offset("Klass", "_name").unwrap(), 24);
        assert_eq!(structs.offset_in_any(&["Thread", "Klass"], "_name").unwrap(), 24);
        assert_eq!(structs.static_address("CodeCache", "_heaps").unwrap(), 0x7777);
        assert_eq!(structs.size_of("Method").unwrap(), 88);
        assert_eq!(structs.constant("frame::slot").unwrap(), -6);
        assert_eq!(structs.constant("markWord::mask").unwrap(), 1 << 40);
    }

    #[test]
    fn the_width_of_a_field_is_that_of_its_type() {
        let mut libjvm = Libjvm::new();
        let row =
            |name, of_type| [Text("nmethod"), Text(name), Number(0), Number(8), Number(0), Text(of_type)];
        let rows =
            [row("_id", "int"), row("_at", "int16_t"), row("_level", "CompLevel"), row("_m", "Method*")];
        libjvm.rows("gHotSpotVMStructs", &rows.each_ref().map(|row| &row[..]));
        libjvm.rows("gHotSpotVMTypes", &[&[Text("CompLevel"), Number(1)]]);
        let structs = libjvm.read().unwrap();
        let widths =
            ["_id", "_at", "_level"].map(|field| structs.width_of(&libjvm.memory, "nmethod", field).unwrap());
        assert_eq!(widths, [4, 2, 1]);
        assert!(matches!(
            structs.width_of(&libjvm.memory, "nmethod", "_m"),
            Err(LayoutError::Implausible { .. })
        ));
        assert!(matches!(
            structs.width_of(&libjvm.memory, "nmethod", "_x"),
            Err(LayoutError::MissingField { .. })
        ));
        assert!(structs.has_type("CompLevel") && !structs.has_type("CompiledMethod"));
    }

    #[test]
    fn a_missing_field_or_type_is_named() {
        let structs = Libjvm::new().read().unwrap();
        let error = structs.offset("Klass", "_name").unwrap_err();
        assert_eq!(error.to_string(), "libjvm does not describe Klass::_name");
        let error = structs.offset_in_any(&["Thread", "JavaThread"], "_osthread").unwrap_err();
        assert_eq!(error.to_string(), "libjvm does not describe Thread::_osthread");
        let error = structs.size_of("Method").unwrap_err();
        assert_eq!(error.to_string(), "libjvm does not describe the size of Method");
        let mut libjvm = Libjvm::new();
        libjvm.symbols.remove("gHotSpotVMTypes");
        assert!(libjvm.read().unwrap_err().to_string().starts_with("libjvm does not export gHotSpotVMTypes"));
    }

    #[test]
    fn a_static_field_has_no_offset_and_a_huge_one_is_refused() {
        let mut libjvm = Libjvm::new();
        libjvm.rows(
            "gHotSpotVMStructs",
            &[
                &[Text("A"), Text("_static"), Number(1), Number(0), Number(0x7777), Number(0)],
                &[Text("A"), Text("_far"), Number(0), Number(1 << 40), Number(0), Text("int")],
            ],
        );
        let structs = libjvm.read().unwrap();
        assert!(matches!(structs.offset("A", "_static"), Err(LayoutError::MissingField { .. })));
        assert!(matches!(structs.offset("A", "_far"), Err(LayoutError::Implausible { .. })));
        assert!(matches!(structs.static_address("A", "_far"), Err(LayoutError::MissingField { .. })));
    }

    #[test]
    fn a_table_without_an_end_is_refused() {
        let mut libjvm = Libjvm::new();
        libjvm.variable("gHotSpotVMTypeEntryArrayStride", 0);
        libjvm.rows("gHotSpotVMTypes", &[&[Text("Method"), Number(88)]]);
        assert!(matches!(libjvm.read(), Err(LayoutError::Unreadable { .. })));
        libjvm.variable("gHotSpotVMTypes", 0xdead_0000);
        assert!(matches!(libjvm.read(), Err(LayoutError::Unreadable { .. })));
    }
}
