//! The answer for an address.

use std::borrow::Cow;

/// The number of a name or path. [`LookUp::text`] has the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextId(pub u32);

/// One function of the chain at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFrame {
    /// The function's linkage name, or its name where it has none.
    pub function: Option<TextId>,
    /// The path of the source file, absolute where the compiler recorded its folder.
    pub file: Option<TextId>,
    /// The line, from 1; 0 if it is unknown.
    pub line: u32,
    /// The column, from 1; 0 if it is unknown.
    pub column: u32,
}

impl SourceFrame {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.function.is_none() && self.file.is_none() && self.line == 0
    }
}

/// Debug information that answers for addresses.
pub trait LookUp {
    /// The reason why a question cannot be answered.
    type Error;

    /// Replaces `frames` by the chain at an ELF virtual address: the innermost inlined function first, the
    /// function that has the code last. Empty if nothing is known of the address. Addresses in ascending
    /// order are the fastest. The address is looked up as given: for a caller, pass the return address
    /// minus 1.
    ///
    /// # Errors
    /// If the source of the answers is damaged.
    fn frames(&mut self, vaddr: u64, frames: &mut Vec<SourceFrame>) -> Result<(), Self::Error>;

    /// The name for people of a function: its linkage name, demangled, or the text itself if it is none.
    ///
    /// # Errors
    /// If the source of the answers is damaged.
    fn name(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error>;

    /// The text of a name or path. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// If the source of the answers is damaged.
    fn text(&mut self, id: TextId) -> Result<Cow<'_, str>, Self::Error>;
}
