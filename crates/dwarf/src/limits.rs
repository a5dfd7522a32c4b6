//! Bounds for hostile debug information. Each is far above the largest debug files that are known (browsers'
//! and machine learning libraries', some gigabytes), and each has an error of its own.

/// The most bytes of a section that is kept in memory as a whole.
pub const SECTION_IN_MEMORY: u64 = 4 << 30;

/// The most bytes of a decompressed `.debug_info`, of which one unit at a time is in memory.
pub const SECTION_STREAMED: u64 = 64 << 30;

/// The most bytes that one compressed byte may become. DEFLATE cannot exceed 1,032 (RFC 1951: 258 bytes from
/// two bits); debug sections reach 10.
pub const EXPANSION: u64 = 1_040;

/// The most bytes that one compressed byte may become in a section longer than [`EXPANDED_FREELY`].
pub const EXPANSION_OF_LONG: u64 = 100;

/// The most bytes of a section that may expand as far as DEFLATE can.
pub const EXPANDED_FREELY: u64 = 64 << 20;

/// The most bytes of a unit.
pub const UNIT: u64 = 1 << 30;

/// The most split units of an object.
pub const SPLIT_UNITS: usize = 1 << 20;

/// The most bytes of split units that are read, counted again for each unit that reads the same ones.
pub const SPLIT_BYTES: u64 = 64 << 30;

/// The most rows of a unit's line table.
pub const LINE_ROWS: usize = 1 << 24;

/// The most rows of all units.
pub const ROWS: u64 = 1 << 27;

/// The most functions of all units, each place at which one is inlined included.
pub const FUNCTIONS: u64 = 1 << 26;

/// The most units, on average, that read the same byte of a line table, or the same byte of a list of address
/// ranges. Compilers give each unit its own.
pub const SHARES: u64 = 4;

/// The bytes of line tables, and the address ranges, that may be read whatever the length of the sections.
pub const SHARED_FREELY: u64 = 1 << 20;

/// The most units, on average, that read the same byte of abbreviations, or of a line table's head. Partial
/// units of dwz share some.
pub const HEAD_SHARES: u64 = 64;

/// The bytes of abbreviations and of line tables' heads that may be read whatever the length of the sections.
pub const HEADS_FREELY: u64 = 16 << 20;

/// The most attributes of an entry. Compilers need some dozens.
pub const ATTRIBUTES: usize = 256;

/// The most functions that are inlined into each other.
pub const CHAIN: usize = 4_096;

/// The most entries from a function to its name.
pub const ORIGINS: usize = 64;

/// The most units from a function to its name. Each costs another pass over `.debug_info`; compilers and dwz
/// need two or three.
pub const UNITS_TO_A_NAME: usize = 8;

/// The most bytes of a function's name or a file's path.
pub const TEXT: usize = 1 << 20;

/// The most bytes of all names and paths.
pub const TEXTS: usize = 2 << 30;

/// The most problems that are kept; the others are counted.
pub const PROBLEMS: usize = 16;
