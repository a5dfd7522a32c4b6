//! System V ABI, AMD64 Architecture Processor Supplement: "Relocation Types".

/// A word in data: symbol + addend.
pub const R_ABSOLUTE: u32 = 1;
/// A GOT entry: symbol.
pub const R_GLOB_DAT: u32 = 6;
/// A GOT entry of the PLT: symbol.
pub const R_JUMP_SLOT: u32 = 7;

/// The extensions of call frame information: GNU's alone.
pub const CALL_FRAME_EXTENSIONS: gimli::Vendor = gimli::Vendor::Default;
