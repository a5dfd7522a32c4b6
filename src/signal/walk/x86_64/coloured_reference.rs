//! ZGC's coloured pointers on x86_64 (cpu/x86/gc/z/zAddress_x86.inline.hpp, 21 and 25): the address is shifted to the
//! left by one to four bits more than twelve, and the highest of the four bits above bit 12 that is set says by how many.

/// The address in a coloured pointer; `None` if it has no colour that can be followed.
pub(in crate::signal::walk) fn address_of(pointer: u64) -> Option<u64> {
    let shift = match (pointer >> 12) & 0xf {
        1 => 13,
        2 => 14,
        4 => 15,
        8 => 16,
        _ => return None,
    };
    Some(pointer >> shift)
}
