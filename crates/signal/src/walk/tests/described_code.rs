//! Native code with call frame information in memory, as a loaded object has it.

use std::sync::{Arc, OnceLock};

use otlpprof_core::address::{ElfVaddr, LoadBias, RuntimeAddr};
use otlpprof_core::frame_rules::native;
use otlpprof_core::object::{IdentityWord, LoadedObject, ObjectIndex, ObjectMap, TextRange};

use super::machine;
use super::vm_world::World;

/// The start of the object's code.
pub(super) const NATIVE: u64 = 0x40_0000;
/// The distance from one function to the next, in bytes.
pub(super) const FUNCTION_BYTES: u64 = 0x100;
const IDENTITY: u64 = 0x3f_0000;
const HEADER: u64 = 0x48_0000;
const ENTRIES: u64 = 0x48_1000;
const SAVED: u8 = 0x80;

/// The contents of a function's description.
#[derive(Clone, Copy, Debug)]
pub(super) struct Function<'a> {
    /// The bytes from SP to the CFA. The last word holds the return address.
    pub(super) frame_bytes: u8,
    /// The instructions for other registers.
    pub(super) program: &'a [u8],
}

/// `DW_CFA_offset`: the register is saved `words_below` words below the CFA.
pub(super) const fn saved(register: u8, words_below: u8) -> [u8; 2] {
    [SAVED | register, words_below]
}

/// Loads an object with these functions, one after the other.
pub(super) fn load_functions(world: &mut World, functions: &[Function<'_>]) {
    let entry = |content: Vec<u8>| {
        let mut content = content;
        content.resize(content.len().next_multiple_of(8) + 4, 0);
        [&(content.len() as u32).to_le_bytes()[..], &content].concat()
    };
    let sp = machine::SP as u8;
    let return_column = native::ARCHITECTURE.return_address as u8;
    // Version 1, "zR", code and data factors 1 and -8, pointers as distances of four bytes; DW_CFA_def_cfa.
    let common = [
        &[0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, return_column, 1, 0x1b, 0x0c, sp, 8][..],
        &saved(return_column, 1),
    ];
    let mut section = entry(common.concat());
    let mut table = vec![];
    for (number, function) in functions.iter().enumerate() {
        let at = section.len() as u64;
        let start = NATIVE + number as u64 * FUNCTION_BYTES;
        let distance = |to: u64, from: u64| (to.wrapping_sub(from) as i32).to_le_bytes();
        table.extend([distance(start, HEADER), distance(ENTRIES + at, HEADER)].concat());
        let description = [
            &(at as u32 + 4).to_le_bytes()[..],
            &distance(start, ENTRIES + at + 8),
            &(FUNCTION_BYTES as u32).to_le_bytes(),
            // No augmentation; DW_CFA_def_cfa_offset.
            &[0, 0x0e, function.frame_bytes],
            function.program,
        ];
        section.extend(entry(description.concat()));
    }
    // Version 1, no pointer to the section, a count of four bytes, a sorted table.
    let head = [&[1, 0xff, 0x03, 0x3b][..], &(functions.len() as u32).to_le_bytes(), &table].concat();
    world.memory.put(HEADER, head).put(ENTRIES, section).put_u64(IDENTITY, 42);
    let end = NATIVE + functions.len() as u64 * FUNCTION_BYTES;
    let object = LoadedObject {
        index: ObjectIndex(5),
        load_bias: LoadBias(NATIVE),
        build_id: None,
        identity: IdentityWord { address: RuntimeAddr(IDENTITY), value: 42 },
        unwind: OnceLock::new(),
        frame_header: Some(RuntimeAddr(HEADER)),
        text: ElfVaddr(0)..ElfVaddr(end - NATIVE),
    };
    let (start, end) = (RuntimeAddr(NATIVE), RuntimeAddr(end));
    world.objects = ObjectMap::new(vec![TextRange { start, end, object: Arc::new(object) }], 1);
}
