//! Numbers from ELF for the Arm 64-bit Architecture, "Dynamic relocations".

/// The relocation of a word in data: symbol + addend.
pub const R_ABSOLUTE: u32 = 257;
/// The relocation of a GOT entry: symbol.
pub const R_GLOB_DAT: u32 = 1025;
/// The relocation of the PLT's GOT entry: symbol.
pub const R_JUMP_SLOT: u32 = 1026;

/// The vendor extensions of call frame information: return addresses are marked as signed (DWARF for the Arm
/// 64-bit Architecture, DW_CFA_AARCH64_negate_ra_state).
pub const CALL_FRAME_EXTENSIONS: gimli::Vendor = gimli::Vendor::AArch64;
