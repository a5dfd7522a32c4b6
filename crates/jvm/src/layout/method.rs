//! Methods and the structures that lead to their names (`oops/method.hpp`, `oops/constMethod.hpp`,
//! `oops/constantPool.hpp`, `oops/klass.hpp`, `oops/symbol.hpp`).

use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::vm_layout::{ClassMethodsLayout, MethodLayout, SourceFileIndex};

use super::error::LayoutError;
use crate::vm_structs::VmStructs;

/// Methods and their names.
pub(super) fn method(
    structs: &VmStructs,
    memory: &dyn Memory,
    unsigned5_excluded: u8,
) -> Result<MethodLayout, LayoutError> {
    let const_method = |name| structs.offset("ConstMethod", name);
    // From 21 on the flags are a ConstMethodFlags (oops/constMethodFlags.hpp) instead of a u2.
    let (flags, line_table_flag) = match const_method("_flags._flags") {
        Ok(flags) => (flags, "ConstMethodFlags::_misc_has_linenumber_table"),
        Err(_) => (const_method("_flags")?, "ConstMethod::_has_linenumber_table"),
    };
    let has_line_table = u16::try_from(structs.constant(line_table_flag)?).map_err(|_| {
        LayoutError::implausible("ConstMethod", "_flags", "the line table's flag is beyond 16 bits")
    })?;
    let source_file_name_index = match structs.offset("ConstantPool", "_source_file_name_index") {
        Ok(offset) => SourceFileIndex::ConstantPool(offset),
        Err(_) => SourceFileIndex::InstanceKlass(structs.offset("InstanceKlass", "_source_file_name_index")?),
    };
    Ok(MethodLayout {
        // Until a jmethodID has been seen: see `Probe::method_ids`.
        ids: MethodIds::Opaque,
        of_class: of_class(structs, memory).ok(),
        const_method: structs.offset("Method", "_constMethod")?,
        method_size: structs.size_of("Method")?,
        constants: const_method("_constants")?,
        code_size: const_method("_code_size")?,
        name_index: const_method("_name_index")?,
        signature_index: const_method("_signature_index")?,
        const_method_flags: flags,
        has_line_table,
        const_method_size: structs.size_of("ConstMethod")?,
        pool_holder: structs.offset("ConstantPool", "_pool_holder")?,
        constant_pool_length: structs.offset("ConstantPool", "_length")?,
        klass_constants: structs.offset("InstanceKlass", "_constants")?,
        constant_pool_size: structs.size_of("ConstantPool")?,
        source_file_name_index,
        klass_name: structs.offset("Klass", "_name")?,
        symbol_length: structs.offset("Symbol", "_length")?,
        symbol_body: structs.offset("Symbol", "_body")?,
        unsigned5_excluded,
    })
}

/// The way from a class's object to its methods.
fn of_class(structs: &VmStructs, memory: &dyn Memory) -> Result<ClassMethodsLayout, LayoutError> {
    let unreadable = LayoutError::Unreadable { what: "java_lang_Class::_klass_offset" };
    let klass = memory.load_u32(structs.static_address("java_lang_Class", "_klass_offset")?);
    Ok(ClassMethodsLayout {
        klass: klass.ok_or(unreadable)?,
        methods: structs.offset("InstanceKlass", "_methods")?,
        length: structs.offset("Array<int>", "_length")?,
        first: structs.offset("Array<Method*>", "_data")?,
    })
}
