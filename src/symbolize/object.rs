//! One object: its files, its index, and its answers so far.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::address::{MappedRange, NoCode};
use super::index_cache::{IndexCache, OpenIndex};
use super::names::{ChainId, Function, Line, Names};
use super::open_files::OpenFiles;
use super::unresolved::Unresolved;
use crate::core::address::ElfVaddr;
use crate::debug_files::{Locator, ObjectFiles, ObjectIdentity, Quality};
use crate::dwarf::index::{Index, IndexError};
use crate::dwarf::{Frame, LookUp as _, TextId};
use crate::elf::source::{FileSource, Source as _};
use crate::elf::symbols::demangle::demangle;
use crate::model::StringId;

/// A name or a path is cut after this many bytes.
const LONGEST_TEXT: usize = 32 << 10;

/// An object with an index.
#[derive(Debug)]
pub(super) struct Object {
    identity: ObjectIdentity,
    files: OpenFiles,
    index: Index<FileSource>,
    quality: Quality,
    /// Companions of its files that are missing, and damage: in words, for people.
    problems: Vec<String>,
    texts: Texts,
    /// The chains of the addresses that were looked up; `None` where there is no function.
    answers: HashMap<ElfVaddr, Option<ChainId>, RandomState>,
}

/// The texts of an index, by their numbers there.
#[derive(Debug, Default)]
struct Texts {
    functions: HashMap<TextId, (StringId, StringId), RandomState>,
    files: HashMap<TextId, StringId, RandomState>,
}

impl Object {
    /// Opens the files that the locator has found, and opens or makes the index of an object.
    ///
    /// # Errors
    /// If none of the files has code or debug information, or they are damaged.
    pub(super) fn open(
        identity: &ObjectIdentity,
        located: ObjectFiles,
        locator: &Locator,
        cache: &mut IndexCache,
    ) -> Result<Self, Unresolved> {
        let quality = located.quality;
        let files = OpenFiles::open(&located, locator.split_units(&located))?.ok_or(Unresolved::NoFile)?;
        let OpenIndex { index, losses } = cache.open(identity, &files)?;
        let problems = located.problems.into_iter().chain(losses).collect();
        let (texts, answers) = Default::default();
        Ok(Self { identity: identity.clone(), files, index, quality, problems, texts, answers })
    }

    /// Companions of its files that are missing, and damage: one line each.
    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The best quality of its files.
    pub(super) fn quality(&self) -> Quality {
        self.quality
    }

    /// The length of its index, in bytes.
    pub(super) fn index_bytes(&self) -> u64 {
        self.index.source().len()
    }

    /// The ELF virtual address of an address in a message.
    ///
    /// # Errors
    /// If the address is not one of the object's code.
    pub(super) fn vaddr(&self, address: u64, mapped: MappedRange) -> Result<ElfVaddr, Unresolved> {
        self.files.segments().vaddr(address, mapped).map_err(|why| match why {
            NoCode::Outside => Unresolved::Outside,
            NoCode::NeedsObject => Unresolved::RunTimeAddress,
        })
    }

    /// The chain at an address that was looked up.
    pub(super) fn answer(&self, vaddr: ElfVaddr) -> Option<ChainId> {
        self.answers.get(&vaddr).copied().flatten()
    }

    /// Looks addresses up, which are sorted. The index is made again if it turns out to be damaged.
    ///
    /// # Errors
    /// If the index cannot be made.
    pub(super) fn look_up(
        &mut self,
        vaddrs: &[ElfVaddr],
        names: &RwLock<Names>,
        cache: &mut IndexCache,
    ) -> Result<(), Unresolved> {
        if self.look_up_all(vaddrs, names).is_ok() {
            return Ok(());
        }
        let OpenIndex { index, .. } = cache.remake(&self.identity, &self.files)?;
        self.index = index;
        self.texts = Texts::default();
        self.look_up_all(vaddrs, names).map_err(Unresolved::Unreadable)
    }

    fn look_up_all(&mut self, vaddrs: &[ElfVaddr], names: &RwLock<Names>) -> Result<(), IndexError> {
        let unknown: Vec<_> = vaddrs.iter().filter(|vaddr| !self.answers.contains_key(vaddr)).collect();
        // The lock is not taken in vain: a thread that puts names into messages holds it for milliseconds.
        if unknown.is_empty() {
            return Ok(());
        }
        let names = &mut *names.write();
        let (mut frames, mut lines) = (Vec::new(), Vec::new());
        for &vaddr in unknown {
            self.index.frames(vaddr.0, &mut frames)?;
            // A chain without any name would make the frame look resolved.
            let is_named = frames.iter().any(|frame| frame.function.is_some());
            lines.clear();
            for frame in frames.iter().filter(|_| is_named) {
                lines.push(self.texts.line(frame, &mut self.index, names)?);
            }
            self.answers.insert(vaddr, is_named.then(|| names.chain(&lines)));
        }
        Ok(())
    }

    /// Forgets the answers, whose chains are no longer valid.
    pub(super) fn forget_answers(&mut self) {
        self.answers.clear();
        self.texts = Texts::default();
    }
}

impl Texts {
    fn line(
        &mut self,
        frame: &Frame,
        index: &mut Index<FileSource>,
        names: &mut Names,
    ) -> Result<Line, IndexError> {
        let (name, system_name) = match frame.function {
            Some(id) => self.function(id, index, names)?,
            None => Default::default(),
        };
        let filename = match frame.file {
            Some(id) => self.file(id, index, names)?,
            None => StringId::EMPTY,
        };
        let function = names.functions.intern(Function { name, system_name, filename });
        Ok(Line { function, line: frame.line, column: frame.column })
    }

    fn function(
        &mut self,
        id: TextId,
        index: &mut Index<FileSource>,
        names: &mut Names,
    ) -> Result<(StringId, StringId), IndexError> {
        if let Some(&known) = self.functions.get(&id) {
            return Ok(known);
        }
        let linkage_name = index.text(id)?;
        let linkage_name = cut(&linkage_name);
        let texts = (names.text(cut(&demangle(linkage_name))), names.text(linkage_name));
        self.functions.insert(id, texts);
        Ok(texts)
    }

    fn file(
        &mut self,
        id: TextId,
        index: &mut Index<FileSource>,
        names: &mut Names,
    ) -> Result<StringId, IndexError> {
        if let Some(&known) = self.files.get(&id) {
            return Ok(known);
        }
        let path = names.text(cut(&index.text(id)?));
        self.files.insert(id, path);
        Ok(path)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}
