//! ZGC's coloured pointers on x86_64 (cpu/x86/gc/z/zAddress_x86.inline.hpp, JDK 21 and 25): the address is
//! shifted left by 13 to 16 bits. The one bit of bits 12 to 15 that is set says by how many.

const REMAPPED_SHIFT: u32 = 12;
const REMAPPED_BITS: u64 = 0xf;

/// The index of the remapped bit that is set. The four bits alternate with the collections of the two
/// generations.
pub(in crate::walk) fn remapping_of(pointer: u64) -> Option<u32> {
    only_bit(pointer >> REMAPPED_SHIFT & REMAPPED_BITS)
}

/// The index of the remapped bit that is set in pointers that need no update, by the mask of the bits that
/// must be clear (`ZPointerLoadBadMask`).
pub(in crate::walk) fn good_remapping(bad_mask: u64) -> Option<u32> {
    only_bit(bad_mask >> REMAPPED_SHIFT & REMAPPED_BITS ^ REMAPPED_BITS)
}

fn only_bit(bits: u64) -> Option<u32> {
    bits.is_power_of_two().then(|| bits.trailing_zeros())
}

/// The address in a coloured pointer. `None` if the pointer has no valid colour.
pub(in crate::walk) fn address_of(pointer: u64) -> Option<u64> {
    Some(pointer >> REMAPPED_SHIFT.wrapping_add(1).wrapping_add(remapping_of(pointer)?))
}
