//! ZGC's coloured pointers on aarch64 (cpu/aarch64/gc/z/zAddress_aarch64.inline.hpp, 21 and 25): the address is shifted
//! to the left by 16 bits, whatever the colour.

const SHIFT: u32 = 16;
/// One of these bits is set in every pointer that can be followed (gc/z/zAddress.hpp, the remapped bits).
const REMAPPED: u64 = 0xf << 12;

/// The address in a coloured pointer; `None` if it has no colour that can be followed.
pub(in crate::signal::walk) fn address_of(pointer: u64) -> Option<u64> {
    (pointer & REMAPPED != 0).then_some(pointer >> SHIFT)
}
