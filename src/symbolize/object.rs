//! One object: its files, its index if there is one, and its answers so far.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use parking_lot::RwLock;

use super::address::{MappedRange, NoCode};
use super::index_cache::{IndexCache, IndexKey, WithLosses};
use super::names::{ChainId, Function, Line, Names};
use super::open_files::OpenFiles;
use super::unresolved::Unresolved;
use crate::core::address::ElfVaddr;
use crate::debug_files::{Locator, ObjectFiles, ObjectIdentity, Quality};
use crate::dwarf::index::Index;
use crate::dwarf::{Frame, LookUp, TextId};
use crate::elf::source::{FileSource, Source as _};
use crate::elf::symbols::demangle::demangle;
use crate::model::StringId;

/// A name or a path is cut after this many bytes.
const LONGEST_TEXT: usize = 32 << 10;

/// An object with its files.
#[derive(Debug)]
pub(super) struct Object {
    files: OpenFiles,
    key: IndexKey,
    /// The index; `None` before it is due.
    index: Option<Index<FileSource>>,
    /// Whether its debug information was read without an index.
    was_read: bool,
    quality: Quality,
    /// Companions of its files that are missing: in words, for people.
    problems: Vec<String>,
    /// The losses of its debug information, in words.
    losses: Option<String>,
    texts: Texts,
    /// The chains of the addresses that were looked up; `None` where there is no function.
    answers: HashMap<ElfVaddr, Option<ChainId>, RandomState>,
}

/// The texts of the source of answers, by their numbers there.
#[derive(Debug, Default)]
struct Texts {
    functions: HashMap<TextId, (StringId, StringId), RandomState>,
    files: HashMap<TextId, StringId, RandomState>,
}

impl Object {
    /// Opens the files that the locator has found, and the index if there is one.
    ///
    /// # Errors
    /// If none of the files has code or debug information, or they are damaged.
    pub(super) fn open(
        identity: &ObjectIdentity,
        located: ObjectFiles,
        locator: &Locator,
        cache: &IndexCache,
    ) -> Result<Self, Unresolved> {
        let files = OpenFiles::open(&located, locator.split_units(&located))?.ok_or(Unresolved::NoFile)?;
        let key = IndexKey::of(identity, &files);
        let (index, losses) = match cache.find(&key) {
            Some(WithLosses { answers, losses }) => (Some(answers), losses),
            None => (None, None),
        };
        let ObjectFiles { quality, problems, .. } = located;
        let (was_read, texts, answers) = Default::default();
        Ok(Self { files, key, index, was_read, quality, problems, losses, texts, answers })
    }

    /// Companions of its files that are missing, and damage: one line each.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.iter().chain(&self.losses).cloned().collect()
    }

    /// The best quality of its files.
    pub(super) fn quality(&self) -> Quality {
        self.quality
    }

    /// The length of its index, in bytes.
    pub(super) fn index_bytes(&self) -> u64 {
        self.index.as_ref().map_or(0, |index| index.source().len())
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

    /// Looks addresses up, which are sorted: in the index, which is made if it is due or damaged, else in the
    /// debug information of these addresses alone.
    ///
    /// # Errors
    /// If the debug information cannot be read, or the index cannot be made.
    pub(super) fn look_up(
        &mut self,
        vaddrs: &[ElfVaddr],
        names: &RwLock<Names>,
        cache: &mut IndexCache,
    ) -> Result<(), Unresolved> {
        let is_unknown = |vaddr: &&ElfVaddr| !self.answers.contains_key(vaddr);
        let unknown: Vec<u64> = vaddrs.iter().filter(is_unknown).map(|vaddr| vaddr.0).collect();
        // The lock is not taken in vain: a thread that puts names into messages holds it for milliseconds.
        if unknown.is_empty() {
            return Ok(());
        }
        if self.index.is_none() && !self.was_read && !cache.is_due(&self.key) {
            let read = cache.read_directly(&self.key, &self.files, &unknown)?;
            (self.was_read, self.losses) = (true, read.losses);
            let mut compiled = read.answers;
            let answered = self.answers_of(&mut compiled, &unknown, &mut names.write());
            // The numbers of texts are not those of the index.
            self.texts = Texts::default();
            return answered.map_err(|never| match never {});
        }
        let mut is_new = false;
        loop {
            let mut index = match self.index.take() {
                Some(index) => index,
                None => {
                    let made = cache.make(&self.key, &self.files)?;
                    (is_new, self.losses) = (true, made.losses);
                    self.texts = Texts::default();
                    made.answers
                }
            };
            match self.answers_of(&mut index, &unknown, &mut names.write()) {
                Ok(()) => {
                    self.index = Some(index);
                    return Ok(());
                }
                Err(why) if is_new => return Err(Unresolved::Unreadable(why)),
                Err(_) => {}
            }
        }
    }

    fn answers_of<L: LookUp>(
        &mut self,
        from: &mut L,
        vaddrs: &[u64],
        names: &mut Names,
    ) -> Result<(), L::Error> {
        let (mut frames, mut lines) = (Vec::new(), Vec::new());
        for &vaddr in vaddrs {
            from.frames(vaddr, &mut frames)?;
            // A chain without any name would make the frame look resolved.
            let is_named = frames.iter().any(|frame| frame.function.is_some());
            lines.clear();
            for frame in frames.iter().filter(|_| is_named) {
                lines.push(self.texts.line(frame, from, names)?);
            }
            self.answers.insert(ElfVaddr(vaddr), is_named.then(|| names.chain(&lines)));
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
    fn line<L: LookUp>(&mut self, frame: &Frame, from: &mut L, names: &mut Names) -> Result<Line, L::Error> {
        let (name, system_name) = match frame.function {
            Some(id) => self.function(id, from, names)?,
            None => Default::default(),
        };
        let filename = match frame.file {
            Some(id) => self.file(id, from, names)?,
            None => StringId::EMPTY,
        };
        let function = names.functions.intern(Function { name, system_name, filename });
        Ok(Line { function, line: frame.line, column: frame.column })
    }

    fn function<L: LookUp>(
        &mut self,
        id: TextId,
        from: &mut L,
        names: &mut Names,
    ) -> Result<(StringId, StringId), L::Error> {
        if let Some(&known) = self.functions.get(&id) {
            return Ok(known);
        }
        let linkage_name = from.text(id)?;
        let linkage_name = cut(&linkage_name);
        let texts = (names.text(cut(&demangle(linkage_name))), names.text(linkage_name));
        self.functions.insert(id, texts);
        Ok(texts)
    }

    fn file<L: LookUp>(&mut self, id: TextId, from: &mut L, names: &mut Names) -> Result<StringId, L::Error> {
        if let Some(&known) = self.files.get(&id) {
            return Ok(known);
        }
        let path = names.text(cut(&from.text(id)?));
        self.files.insert(id, path);
        Ok(path)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}
