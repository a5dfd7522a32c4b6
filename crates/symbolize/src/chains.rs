//! The chains of functions at addresses, read from an index by several threads.

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::thread;

use foldhash::fast::RandomState;
use otlpprof_dwarf::{LookUp, SourceFrame, TextId};
use otlpprof_model::StringId;
use parking_lot::RwLock;

use super::names::{ChainId, CodeLine, NamedFunction, Names};

/// A name or a path is cut after this many bytes.
const LONGEST_TEXT: usize = 32 << 10;
/// The fewest addresses or texts for which a thread is started.
const WORTH_A_THREAD: usize = 256;

/// The texts of one source of answers, by their numbers there.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The name for people and the linkage name of each function.
    functions: HashMap<TextId, (StringId, StringId), RandomState>,
    files: HashMap<TextId, StringId, RandomState>,
}

impl Texts {
    /// The chains at ELF virtual addresses in ascending order; `None` where there is no function. The readers
    /// come from one source, and work at the same time.
    ///
    /// # Errors
    /// If the source is damaged.
    pub(super) fn chains<L>(
        &mut self,
        readers: &mut [L],
        vaddrs: &[u64],
        names: &RwLock<Names>,
    ) -> Result<Vec<Option<ChainId>>, L::Error>
    where
        L: LookUp<Error: Send> + Send,
    {
        let parts = in_parts(readers, vaddrs, |reader, vaddrs| {
            let (mut all, mut ends, mut frames) = (Vec::new(), Vec::with_capacity(vaddrs.len()), Vec::new());
            for &vaddr in vaddrs {
                reader.frames(vaddr, &mut frames)?;
                all.extend_from_slice(&frames);
                ends.push(all.len());
            }
            let functions = unknown(all.iter().filter_map(|frame| frame.function), &self.functions);
            let files = unknown(all.iter().filter_map(|frame| frame.file), &self.files);
            Ok(PartFrames { frames: all, ends, functions, files })
        })?;
        let functions = merged(parts.iter().map(|part| &part.functions[..]));
        let files = merged(parts.iter().map(|part| &part.files[..]));
        let linkage_names = in_parts(readers, &functions, |reader, ids| {
            let mut texts = (TextList::default(), TextList::default());
            // One after the other: both are sorted.
            for &id in ids {
                texts.0.push(&reader.name(id)?);
            }
            for &id in ids {
                texts.1.push(&reader.text(id)?);
            }
            Ok(texts)
        })?;
        let paths = in_parts(readers, &files, |reader, ids| {
            let mut texts = TextList::default();
            for &id in ids {
                texts.push(&reader.text(id)?);
            }
            Ok(texts)
        })?;
        // Another thread reads the names meanwhile: the lock is held for a short time.
        let names = &mut *names.write();
        for texts in linkage_names.iter().flat_map(|(names, texts)| [names, texts]).chain(&paths) {
            names.strings.reserve(texts.ends.len(), texts.bytes.len());
        }
        self.functions.reserve(functions.len());
        self.files.reserve(files.len());
        let both = linkage_names.iter().flat_map(|(names, texts)| names.iter().zip(texts.iter()));
        for (id, (name, linkage_name)) in functions.into_iter().zip(both) {
            self.functions.insert(id, (names.text(name), names.text(linkage_name)));
        }
        for (id, path) in files.into_iter().zip(paths.iter().flat_map(TextList::iter)) {
            self.files.insert(id, names.text(path));
        }
        let mut chains = Vec::with_capacity(vaddrs.len());
        for part in &parts {
            let mut begin = 0;
            for &end in &part.ends {
                chains.push(self.chain(&part.frames[begin..end], names));
                begin = end;
            }
        }
        Ok(chains)
    }

    /// The chain of these frames, whose texts are known.
    fn chain(&self, frames: &[SourceFrame], names: &mut Names) -> Option<ChainId> {
        // A chain without any name would make the frame look resolved.
        frames.iter().find(|frame| frame.function.is_some())?;
        let lines: Vec<_> = frames
            .iter()
            .map(|frame| {
                let function = frame.function.and_then(|id| self.functions.get(&id));
                let (name, system_name) = function.copied().unwrap_or_default();
                let file = frame.file.and_then(|id| self.files.get(&id));
                let filename = file.copied().unwrap_or(StringId::EMPTY);
                let function = names.functions.intern(NamedFunction { name, system_name, filename });
                CodeLine { function, line: frame.line, column: frame.column }
            })
            .collect();
        Some(names.chain(&lines))
    }
}

/// The frames at a part of the addresses, and the texts in them that are not known.
struct PartFrames {
    frames: Vec<SourceFrame>,
    /// For each address, the end of its frames.
    ends: Vec<usize>,
    functions: Vec<TextId>,
    files: Vec<TextId>,
}

/// Texts, one after another.
#[derive(Debug, Default)]
struct TextList {
    bytes: String,
    /// The end of each text.
    ends: Vec<usize>,
}

impl TextList {
    fn push(&mut self, text: &str) {
        self.bytes.push_str(cut(text));
        self.ends.push(self.bytes.len());
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, &end)| &self.bytes[begin..end])
    }
}

/// The numbers without a text so far, each once, in ascending order.
fn unknown<T>(ids: impl Iterator<Item = TextId>, known: &HashMap<TextId, T, RandomState>) -> Vec<TextId> {
    let mut ids: Vec<_> = ids.filter(|id| !known.contains_key(id)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The numbers of all parts, each of which is in ascending order; each once, in ascending order.
fn merged<'p>(parts: impl Iterator<Item = &'p [TextId]>) -> Vec<TextId> {
    let mut ids = parts.collect::<Vec<_>>().concat();
    // The stable sort merges parts that are sorted.
    ids.sort();
    ids.dedup();
    ids
}

/// The results of each part of the items, in their order: each reader reads one part, in a thread of its own.
fn in_parts<L, T, R, E>(
    readers: &mut [L],
    items: &[T],
    read: impl Fn(&mut L, &[T]) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E>
where
    L: Send,
    T: Sync,
    R: Send,
    E: Send,
{
    let part = items.len().div_ceil(readers.len().max(1)).max(WORTH_A_THREAD);
    let mut parts = readers.iter_mut().zip(items.chunks(part));
    let Some((first_reader, first_part)) = parts.next() else { return Ok(Vec::new()) };
    thread::scope(|scope| {
        let read = &read;
        let others: Vec<_> = parts.map(|(reader, part)| scope.spawn(move || read(reader, part))).collect();
        let first = read(first_reader, first_part);
        let others =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(first).chain(others).collect()
    })
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}
