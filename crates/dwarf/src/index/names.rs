//! The names for people of an object's functions, as they are written.

use std::thread;

use otlpprof_elf::symbols::demangle::demangle;

use crate::texts::Texts;

/// The fewest texts for which a thread is started.
const WORTH_A_THREAD: usize = 1 << 12;

/// The texts that are linkage names, demangled.
#[derive(Debug, Default)]
pub(super) struct DemangledNames {
    /// The names, one after another.
    bytes: Vec<u8>,
    /// For each name, in ascending order: the number of the linkage name, and the end of the name in `bytes`.
    ends: Vec<(u32, usize)>,
}

impl DemangledNames {
    /// Demangles all texts that are linkage names, by several threads.
    pub(super) fn of(texts: &Texts) -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let numbers: Vec<u32> = (0..texts.len() as u32).collect();
        let part = numbers.len().div_ceil(threads).max(WORTH_A_THREAD);
        let parts = thread::scope(|scope| {
            let parts: Vec<_> =
                numbers.chunks(part).map(|numbers| scope.spawn(|| Self::of_part(texts, numbers))).collect();
            let joined = parts.into_iter().map(|part| part.join());
            joined
                .map(|part| part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Vec<_>>()
        });
        let mut all = Self::default();
        for part in parts {
            let before = all.bytes.len();
            all.bytes.extend_from_slice(&part.bytes);
            all.ends.extend(part.ends.into_iter().map(|(number, end)| (number, before + end)));
        }
        all
    }

    fn of_part(texts: &Texts, numbers: &[u32]) -> Self {
        let mut found = Self::default();
        for &number in numbers {
            let text = String::from_utf8_lossy(texts.get(number));
            let name = demangle(&text);
            if name != *text {
                found.bytes.extend_from_slice(name.as_bytes());
                found.ends.push((number, found.bytes.len()));
            }
        }
        found
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The name at this position.
    pub(super) fn get(&self, position: usize) -> &[u8] {
        let begin = position.checked_sub(1).map_or(0, |before| self.ends[before].1);
        &self.bytes[begin..self.ends[position].1]
    }

    /// The number of the text whose name is at this position.
    pub(super) fn linkage_name(&self, position: usize) -> u32 {
        self.ends[position].0
    }
}
