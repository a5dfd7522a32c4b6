//! ZGC's coloured pointers on x86_64 (cpu/x86/gc/z/zAddress_x86.inline.hpp, 21 and 25): the address is shifted to the
//! left by one to four bits more than twelve, and the highest of the four bits above bit 12 that is set says by how many.

const REMAPPED_SHIFT: u32 = 12;
const REMAPPED_BITS: u64 = 0xf;

/// Which of the four remapped bits is set, which alternate with the collections of the two generations.
pub(in crate::signal::walk) fn remapping_of(pointer: u64) -> Option<u32> {
    only_bit(pointer >> REMAPPED_SHIFT & REMAPPED_BITS)
}

/// The one that is set in pointers that need not be updated, by the mask of those that must not be set
/// (`ZPointerLoadBadMask`).
pub(in crate::signal::walk) fn good_remapping(bad_mask: u64) -> Option<u32> {
    only_bit(bad_mask >> REMAPPED_SHIFT & REMAPPED_BITS ^ REMAPPED_BITS)
}

fn only_bit(bits: u64) -> Option<u32> {
    bits.is_power_of_two().then(|| bits.trailing_zeros())
}

/// The address in a coloured pointer; `None` if it has no colour that can be followed.
pub(in crate::signal::walk) fn address_of(pointer: u64) -> Option<u64> {
    Some(pointer >> REMAPPED_SHIFT.wrapping_add(1).wrapping_add(remapping_of(pointer)?))
}
