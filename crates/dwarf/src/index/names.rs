//! The names for people of an object's functions, as they are written.

use std::thread;

use otlpprof_elf::symbols::demangle::demangle;

use crate::text_list::TextList;
use crate::texts::Texts;

/// The fewest texts for which a thread is started.
const WORTH_A_THREAD: usize = 1 << 12;

/// The texts that are linkage names, demangled.
#[derive(Debug, Default)]
pub(super) struct DemangledNames {
    names: TextList,
    /// The number of each name's linkage name, in ascending order.
    linkage_names: Vec<u32>,
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
            all.names.append(&part.names);
            all.linkage_names.extend(part.linkage_names);
        }
        all
    }

    fn of_part(texts: &Texts, numbers: &[u32]) -> Self {
        let mut found = Self::default();
        for &number in numbers {
            let text = String::from_utf8_lossy(texts.get(number));
            let name = demangle(&text);
            if name != *text {
                found.names.push(name.as_bytes());
                found.linkage_names.push(number);
            }
        }
        found
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The name at this position.
    pub(super) fn get(&self, position: usize) -> &[u8] {
        self.names.get(position)
    }

    /// The number of the text whose name is at this position.
    pub(super) fn linkage_name(&self, position: usize) -> u32 {
        self.linkage_names[position]
    }
}
