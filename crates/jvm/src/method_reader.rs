//! Reads HotSpot's description of one `Method*` (`oops/method.hpp`, `oops/constMethod.hpp`,
//! `oops/constantPool.hpp`, `oops/symbol.hpp`). Only loads from memory and never calls the VM, so it may run
//! at a safepoint.

use otlpprof_core::memory::Memory;
use otlpprof_core::vm_layout::{MethodLayout, SourceFileIndex};

use super::line_table::LineTable;

/// The addresses of a method's parts. Two readings of one `Method*` with equal addresses and equal names mean
/// the same method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MethodParts {
    const_method: u64,
    constants: u64,
    pub(super) class_name: u64,
    pub(super) name: u64,
    pub(super) signature: u64,
    code_size: u16,
    /// The symbol in the constant pool; 0 if there is none.
    source_file: u64,
}

/// Reads methods in the layout of one JVM.
#[derive(Clone, Copy, Debug)]
pub(super) struct MethodReader {
    layout: MethodLayout,
}

impl MethodReader {
    pub(super) const fn new(layout: MethodLayout) -> Self {
        Self { layout }
    }

    /// The addresses of the parts of `method`; `None` if `method` does not lead to names.
    pub(super) fn parts(&self, memory: &dyn Memory, method: u64) -> Option<MethodParts> {
        let layout = &self.layout;
        let pointer = |base: u64, offset: u32| {
            let value = memory.load_u64(base.checked_add(u64::from(offset))?)?;
            (value != 0 && value % 8 == 0).then_some(value)
        };
        let index = |base: u64, offset: u32| memory.load_u16(base.checked_add(u64::from(offset))?);
        let const_method = pointer(method, layout.const_method)?;
        let constants = pointer(const_method, layout.constants)?;
        let holder = pointer(constants, layout.pool_holder)?;
        let entry = |pool: u64, index: u16| pointer(pool, layout.constant_pool_size + 8 * u32::from(index));
        let has = |pool: u64, index: u16| {
            let length = memory.load_u32(pool.checked_add(u64::from(layout.constant_pool_length))?)?;
            Some(u32::from(index) < length)
        };
        let source_file_index = match layout.source_file_name_index {
            SourceFileIndex::InstanceKlass(offset) => index(holder, offset)?,
            SourceFileIndex::ConstantPool(offset) => index(constants, offset)?,
        };
        let source_file = if source_file_index == 0 {
            0
        } else if has(constants, source_file_index)? {
            entry(constants, source_file_index)?
        } else {
            // A method handle intrinsic: its own pool has only a name and a signature, and the index refers
            // to its class's pool (oops/method.cpp make_method_handle_intrinsic, 11-25).
            let class_pool = pointer(holder, layout.klass_constants)?;
            if has(class_pool, source_file_index)? { entry(class_pool, source_file_index)? } else { 0 }
        };
        Some(MethodParts {
            const_method,
            constants,
            class_name: pointer(holder, layout.klass_name)?,
            name: entry(constants, index(const_method, layout.name_index)?)?,
            signature: entry(constants, index(const_method, layout.signature_index)?)?,
            code_size: index(const_method, layout.code_size)?,
            source_file,
        })
    }

    /// The symbol of the source file's name, if the class has one.
    pub(super) fn source_file(parts: &MethodParts) -> Option<u64> {
        (parts.source_file != 0).then_some(parts.source_file)
    }

    /// Reads a symbol's bytes into `into`, replacing its content.
    pub(super) fn symbol(&self, memory: &dyn Memory, symbol: u64, into: &mut Vec<u8>) -> Option<()> {
        let length = memory.load_u16(symbol.checked_add(u64::from(self.layout.symbol_length))?)?;
        into.clear();
        into.resize(usize::from(length), 0);
        let body = symbol.checked_add(u64::from(self.layout.symbol_body))?;
        memory.read_bytes(body, into).then_some(())
    }

    /// The method's line table; empty for a native method or a class without line tables.
    pub(super) fn line_table(&self, memory: &dyn Memory, parts: &MethodParts) -> LineTable {
        let layout = &self.layout;
        let flags = memory.load_u16(parts.const_method + u64::from(layout.const_method_flags)).unwrap_or(0);
        if flags & layout.has_line_table == 0 {
            return LineTable::default();
        }
        let start = parts.const_method + u64::from(layout.const_method_size) + u64::from(parts.code_size);
        LineTable::read(memory, start, layout.unsigned5_excluded).unwrap_or_default()
    }
}
