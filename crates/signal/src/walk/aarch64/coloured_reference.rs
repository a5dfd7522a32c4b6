//! ZGC's coloured pointers on aarch64 (cpu/aarch64/gc/z/zAddress_aarch64.inline.hpp, JDK 21 and 25): the
//! address is shifted left by 16 bits, whatever the colour.

const SHIFT: u32 = 16;
/// One of these bits is set in every pointer with a valid colour (gc/z/zAddress.hpp, the remapped bits).
const REMAPPED: u64 = 0xf << REMAPPED_SHIFT;
const REMAPPED_SHIFT: u32 = 12;

/// The index of the remapped bit that is clear. The four bits alternate with the collections of the two
/// generations, and are inverted on aarch64.
pub(in crate::walk) fn remapping_of(pointer: u64) -> Option<u32> {
    only_bit(!pointer & REMAPPED)
}

/// The index of the remapped bit that is clear in pointers that need no update, by the mask of the bits that
/// must be clear (`ZPointerLoadBadMask`).
pub(in crate::walk) fn good_remapping(bad_mask: u64) -> Option<u32> {
    only_bit(bad_mask & REMAPPED)
}

fn only_bit(bits: u64) -> Option<u32> {
    bits.is_power_of_two().then(|| bits.trailing_zeros().wrapping_sub(REMAPPED_SHIFT))
}

/// The address in a coloured pointer. `None` if the pointer has no valid colour.
pub(in crate::walk) fn address_of(pointer: u64) -> Option<u64> {
    (pointer & REMAPPED != 0).then_some(pointer >> SHIFT)
}
