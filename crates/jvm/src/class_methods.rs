//! Finds the `Method*` of a method whose class the caller holds by a JNI reference.
//!
//! Until JDK 25 a jmethodID leads to its `Method*`. From 26 on only the VM resolves a jmethodID, and the
//! method is looked for by its name among the methods of its class: from the class's object to its `Klass`
//! (java_lang_Class::_klass_offset), and to that class's array of methods (InstanceKlass::_methods).

use std::ffi::CStr;

use jni::sys::{jclass, jmethodID};
use otlpprof_core::memory::Memory;
use otlpprof_core::method_ids::MethodIds;
use otlpprof_core::vm_layout::MethodLayout;

use super::method_reader::MethodReader;

/// The most methods of a class (JVM specification, 4.1: methods_count is a u2).
const MAX_METHODS: u32 = 0xffff;
/// A collector may move the object of a class while it is read. So many readings are tried.
const READINGS: usize = 4;

/// The `Method*` that `id` stands for: the method of this name and descriptor that `class` itself declares.
/// `None` if `id` is null. `class` is a local reference of the current thread.
pub fn of_id(
    memory: &dyn Memory,
    layout: &MethodLayout,
    id: jmethodID,
    class: jclass,
    name: &CStr,
    descriptor: &CStr,
) -> Option<u64> {
    match layout.ids {
        MethodIds::Cells => layout.ids.method(memory, id as u64),
        MethodIds::Opaque if id.is_null() => None,
        MethodIds::Opaque => by_name(memory, layout, class, name, descriptor),
    }
}

/// The method of this name and descriptor that `class` itself declares. `class` is a local reference of the
/// current thread.
pub fn by_name(
    memory: &dyn Memory,
    layout: &MethodLayout,
    class: jclass,
    name: &CStr,
    descriptor: &CStr,
) -> Option<u64> {
    let reader = MethodReader::new(*layout);
    let mut symbol = Vec::new();
    let mut is_called = |method: u64| {
        let parts = reader.parts(memory, method)?;
        let mut is = |address: u64, text: &CStr| {
            reader.symbol(memory, address, &mut symbol).is_some() && symbol == text.to_bytes()
        };
        (is(parts.name, name) && is(parts.signature, descriptor)).then_some(method)
    };
    (0..READINGS).find_map(|_| read(memory, layout, class)?.find_map(&mut is_called))
}

/// The methods that `class` itself declares. `class` is a local reference of the current thread.
pub(super) fn all(memory: &dyn Memory, layout: &MethodLayout, class: jclass) -> Vec<u64> {
    let reader = MethodReader::new(*layout);
    let is_method = |&method: &u64| reader.parts(memory, method).is_some();
    let read = || Some(read(memory, layout, class)?.filter(is_method).collect::<Vec<_>>());
    (0..READINGS).filter_map(|_| read()).find(|methods| !methods.is_empty()).unwrap_or_default()
}

/// The class's array of methods, unless a collector has just moved the class's object.
fn read<'a>(
    memory: &'a dyn Memory,
    layout: &MethodLayout,
    class: jclass,
) -> Option<impl Iterator<Item = u64> + use<'a>> {
    let of_class = layout.of_class?;
    let pointer = move |base: u64, offset: u32| {
        let value = memory.load_u64(base.checked_add(u64::from(offset))?)?;
        (value != 0 && value.is_multiple_of(8)).then_some(value)
    };
    // A local reference points to the object's plain address, under every collector.
    let klass = pointer(pointer(class as u64, 0)?, of_class.klass)?;
    let methods = pointer(klass, of_class.methods)?;
    let length = memory.load_u32(methods.checked_add(u64::from(of_class.length))?)?;
    let elements = 0..length.min(MAX_METHODS);
    Some(elements.filter_map(move |index| pointer(methods, of_class.first.checked_add(8 * index)?)))
}

#[cfg(test)]
mod tests {
    use otlpprof_core::memory::RecordedMemory;
    use otlpprof_core::vm_layout::ClassMethodsLayout;

    use super::*;
    use crate::methods;

    const LAYOUT: MethodLayout = MethodLayout {
        ids: MethodIds::Opaque,
        of_class: Some(ClassMethodsLayout { klass: 16, methods: 32, length: 0, first: 8 }),
        ..methods::tests::LAYOUT
    };
    const REFERENCE: u64 = 0x1000;
    const KLASS: u64 = 0x3000;
    const FIRST: u64 = 0x10_000;
    const SECOND: u64 = 0x20_000;

    /// A class with two methods, `run()V` and `run(J)V`, behind a reference.
    fn memory() -> RecordedMemory {
        let mut memory = RecordedMemory::default();
        memory.put_u64(REFERENCE, 0x2000).put_u64(0x2000 + 16, KLASS).put_u64(KLASS + 32, 0x4000);
        memory.put(0x4000, 2u32.to_ne_bytes()).put_u64(0x4008, FIRST).put_u64(0x4010, SECOND);
        memory.put_u64(KLASS + 24, 0x5000);
        for (method, descriptor) in [(FIRST, "()V"), (SECOND, "(J)V")] {
            let (const_method, pool) = (method + 0x1000, method + 0x2000);
            memory.put_u64(method + 8, const_method).put_u64(const_method + 8, pool);
            // Code size 1; name and descriptor are the pool's entries 1 and 2.
            memory.put(const_method + 32, [1u16, 1, 2].map(u16::to_ne_bytes).concat());
            memory.put_u64(pool + 24, KLASS).put(pool + 54, [0, 0]).put(pool + 60, 3u32.to_ne_bytes());
            for (entry, text) in [(1, "run"), (2, descriptor)] {
                let symbol = method + 0x3000 + 0x100 * entry;
                memory.put_u64(pool + 72 + 8 * entry, symbol);
                memory.put(symbol + 4, (text.len() as u16).to_ne_bytes()).put(symbol + 6, text.as_bytes());
            }
        }
        memory
    }

    fn find(memory: &RecordedMemory, id: u64, name: &CStr, descriptor: &CStr) -> Option<u64> {
        of_id(memory, &LAYOUT, id as jmethodID, REFERENCE as jclass, name, descriptor)
    }

    #[test]
    fn a_method_is_found_by_name_and_descriptor() {
        let memory = memory();
        assert_eq!(find(&memory, 7, c"run", c"()V"), Some(FIRST));
        assert_eq!(find(&memory, 7, c"run", c"(J)V"), Some(SECOND));
        assert_eq!(find(&memory, 7, c"run", c"(I)V"), None);
        assert_eq!(find(&memory, 0, c"run", c"()V"), None, "the VM knows no such method");
    }

    #[test]
    fn damaged_memory_leads_to_no_method() {
        for (at, value) in [(REFERENCE, 0), (0x2000 + 16, 0x3001), (KLASS + 32, 0x9_0000), (0x4008, 0)] {
            let mut memory = memory();
            memory.put_u64(at, value);
            assert_eq!(find(&memory, 7, c"run", c"()V"), None, "{at:#x}");
        }
    }
}
