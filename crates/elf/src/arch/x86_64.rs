//! Numbers from the System V ABI, AMD64 Architecture Processor Supplement, "Relocation Types".

/// The relocation of a word in data: symbol + addend.
pub const R_ABSOLUTE: u32 = 1;
/// The relocation of a GOT entry: symbol.
pub const R_GLOB_DAT: u32 = 6;
/// The relocation of the PLT's GOT entry: symbol.
pub const R_JUMP_SLOT: u32 = 7;

/// The vendor extensions of call frame information: only GNU's.
pub const CALL_FRAME_EXTENSIONS: gimli::Vendor = gimli::Vendor::Default;
