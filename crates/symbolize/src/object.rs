//! One object: its files, its index if there is one, and its answers so far.

use std::collections::HashMap;
use std::slice;

use foldhash::fast::RandomState;
use otlpprof_core::address::ElfVaddr;
use otlpprof_debug_files::{Locator, ObjectFiles, ObjectIdentity, Quality};
use otlpprof_elf::source::Source as _;
use otlpprof_workers::processors;
use parking_lot::RwLock;

use super::address::{MappedRange, NoCode};
use super::chains::Texts;
use super::index_cache::{IndexCache, IndexKey, IndexReader, WithLosses};
use super::names::{ChainId, Names};
use super::open_files::OpenFiles;
use super::unresolved::Unresolved;

/// The most threads that read an index.
const MOST_READERS: usize = 4;

/// An object with its files.
#[derive(Debug)]
pub(super) struct Object {
    files: OpenFiles,
    key: IndexKey,
    /// The readers of the index, for several threads; none before it is due.
    readers: Vec<IndexReader>,
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
        let (readers, losses) = match cache.find(&key) {
            Some(WithLosses { answers, losses }) => (readers(answers), losses),
            None => (Vec::new(), None),
        };
        let ObjectFiles { quality, problems, .. } = located;
        let (was_read, texts, answers) = Default::default();
        Ok(Self { files, key, readers, was_read, quality, problems, losses, texts, answers })
    }

    /// Companions of its files that are missing, and damage: one line each.
    pub(super) fn problems(&self) -> Vec<String> {
        self.problems.iter().chain(&self.losses).cloned().collect()
    }

    /// The best quality of its files.
    pub(super) fn quality(&self) -> Quality {
        self.quality
    }

    /// The most bytes that the readers of its index keep.
    pub(super) fn index_bytes(&self) -> u64 {
        self.readers.iter().map(|reader| reader.source().len()).sum()
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
    /// debug information of only these addresses.
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
        if self.readers.is_empty() && !self.was_read && !cache.is_due(&self.key) {
            let mut read = cache.read_directly(&self.key, &self.files, &unknown)?;
            (self.was_read, self.losses) = (true, read.losses);
            let Ok(chains) = Texts::default().chains(slice::from_mut(&mut read.answers), &unknown, names);
            self.answer_with(&unknown, chains);
            return Ok(());
        }
        let mut is_new = false;
        loop {
            if self.readers.is_empty() {
                let made = cache.make(&self.key, &self.files)?;
                (is_new, self.losses) = (true, made.losses);
                (self.readers, self.texts) = (readers(made.answers), Texts::default());
            }
            match self.texts.chains(&mut self.readers, &unknown, names) {
                Ok(chains) => {
                    self.answer_with(&unknown, chains);
                    return Ok(());
                }
                Err(why) if is_new => return Err(Unresolved::Unreadable(why)),
                Err(_) => self.readers.clear(),
            }
        }
    }

    fn answer_with(&mut self, vaddrs: &[u64], chains: Vec<Option<ChainId>>) {
        self.answers.extend(vaddrs.iter().map(|&vaddr| ElfVaddr(vaddr)).zip(chains));
    }

    /// Forgets the answers, whose chains are no longer valid.
    pub(super) fn forget_answers(&mut self) {
        self.answers.clear();
        self.texts = Texts::default();
    }
}

/// One reader of an index for each thread.
fn readers(first: IndexReader) -> Vec<IndexReader> {
    let others: Vec<_> = (1..processors(MOST_READERS)).map(|_| first.another()).collect();
    std::iter::once(first).chain(others).collect()
}
