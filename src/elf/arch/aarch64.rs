//! ELF for the Arm 64-bit Architecture: "Dynamic relocations".

/// A word in data: symbol + addend.
pub const R_ABSOLUTE: u32 = 257;
/// A GOT entry: symbol.
pub const R_GLOB_DAT: u32 = 1025;
/// A GOT entry of the PLT: symbol.
pub const R_JUMP_SLOT: u32 = 1026;

/// The extensions of call frame information: return addresses are marked as signed (DWARF for the Arm 64-bit
/// Architecture, DW_CFA_AARCH64_negate_ra_state).
pub const CALL_FRAME_EXTENSIONS: gimli::Vendor = gimli::Vendor::AArch64;
