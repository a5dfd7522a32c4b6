//! Functions and chains of functions, each kept once over all messages.

use otlpprof_model::{FunctionId, Id, Interner, SliceInterner, StringId, StringInterner};

/// A function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct NamedFunction {
    /// The name for people: demangled.
    pub(super) name: StringId,
    /// The linkage name.
    pub(super) system_name: StringId,
    /// The source file.
    pub(super) filename: StringId,
}

/// A place in a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct CodeLine {
    /// The function.
    pub(super) function: FunctionId,
    /// The line, from 1; 0 if unknown.
    pub(super) line: u32,
    /// The column, from 1; 0 if unknown.
    pub(super) column: u32,
}

/// The number of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ChainId(u32);

impl Id for ChainId {
    fn from_index(index: u32) -> Self {
        Self(index)
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The names of all resolved frames.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) strings: StringInterner<StringId>,
    pub(super) functions: Interner<NamedFunction, FunctionId>,
    chains: SliceInterner<CodeLine, ChainId>,
    text_bytes: usize,
}

/// The most bytes of names and paths, and the most chains, of which a few hundred thousand are usual.
const TEXT_BYTES: usize = 128 << 20;
const CHAINS: usize = 1 << 20;

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            strings: StringInterner::default(),
            functions: Interner::default(),
            chains: SliceInterner::default(),
            text_bytes: 0,
        };
        // SANITY: `StringId::EMPTY` is the first one.
        names.strings.intern("");
        names
    }
}

impl Names {
    /// The number of a text.
    pub(super) fn text(&mut self, text: &str) -> StringId {
        let known = self.strings.len();
        let id = self.strings.intern(text);
        if self.strings.len() > known {
            self.text_bytes += text.len();
        }
        id
    }

    /// The number of a chain, innermost function first.
    pub(super) fn chain(&mut self, lines: &[CodeLine]) -> ChainId {
        self.chains.intern(lines)
    }

    /// The lines of a chain.
    pub(super) fn lines(&self, chain: ChainId) -> &[CodeLine] {
        self.chains.get(chain)
    }

    /// Whether so much is kept that the caller is to forget it, after the message in progress.
    pub(super) fn is_full(&self) -> bool {
        self.text_bytes > TEXT_BYTES || self.chains.len() > CHAINS
    }
}
