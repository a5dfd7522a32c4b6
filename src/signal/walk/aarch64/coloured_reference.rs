//! ZGC's coloured pointers on aarch64 (cpu/aarch64/gc/z/zAddress_aarch64.inline.hpp, 21 and 25): the address is shifted
//! to the left by 16 bits, whatever the colour.

const SHIFT: u32 = 16;
/// One of these bits is set in every pointer that can be followed (gc/z/zAddress.hpp, the remapped bits).
const REMAPPED: u64 = 0xf << REMAPPED_SHIFT;
const REMAPPED_SHIFT: u32 = 12;

/// Which of the four remapped bits is not set, which alternate with the collections of the two generations: here they
/// are inverted.
pub(in crate::signal::walk) fn remapping_of(pointer: u64) -> Option<u32> {
    only_bit(!pointer & REMAPPED)
}

/// The one that is not set in pointers that need not be updated, by the mask of those that must not be set
/// (`ZPointerLoadBadMask`).
pub(in crate::signal::walk) fn good_remapping(bad_mask: u64) -> Option<u32> {
    only_bit(bad_mask & REMAPPED)
}

fn only_bit(bits: u64) -> Option<u32> {
    bits.is_power_of_two().then(|| bits.trailing_zeros().wrapping_sub(REMAPPED_SHIFT))
}

/// The address in a coloured pointer; `None` if it has no colour that can be followed.
pub(in crate::signal::walk) fn address_of(pointer: u64) -> Option<u64> {
    (pointer & REMAPPED != 0).then_some(pointer >> SHIFT)
}
